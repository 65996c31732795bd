//! Carrying out an entry for one tile block: its values, its loops, and what the operations ask of the world ([`Host`]).

mod convert;
mod float;
mod fold;
mod integer;
mod matrix;
mod memory;
mod print;
mod shape;

use std::sync::Arc;

use crate::isa::mma::Architecture;
use crate::isa::types::Scope;

use super::op::Code;
use super::read::{Module, Op};
use super::stub::parameter_bytes;
use super::types::{Element, TileType, Type};
use super::value::{Tile, Value};

/// What orders an access that is stronger than weak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Relaxed,
    Acquire,
    Release,
    AcquireRelease,
}

/// How strong an access to memory is, for those beyond weak ones, and among whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strength {
    pub order: Order,
    pub scope: Scope,
}

/// The world around a tile block. Addresses are those of the kernel, which may be wrong: that is a fault.
pub trait Host {
    type Fault;
    /// Whether somebody wants to know of each access where it comes from: then the run stops before each other site.
    const WATCHED: bool;
    fn block(&self) -> [u32; 3];
    fn grid(&self) -> [u32; 3];
    /// Whose tensor cores multiply.
    fn tensor_cores(&self) -> Architecture;
    /// Bytes of the launch's parameters, eight at most.
    fn parameter(&self, offset: u32, bytes: u32) -> u64;
    /// Where a variable is.
    fn variable(&mut self, number: usize) -> Result<u64, Self::Fault>;
    /// Neighbours of `element` bytes each, which are aligned to as many.
    fn read(&mut self, address: u64, element: u32, into: &mut [u8]) -> Result<(), Self::Fault>;
    fn write(&mut self, address: u64, element: u32, from: &[u8]) -> Result<(), Self::Fault>;
    fn load(&mut self, address: u64, bytes: u32, strength: Strength) -> Result<u64, Self::Fault>;
    fn store(&mut self, address: u64, bytes: u32, value: u64, strength: Strength) -> Result<(), Self::Fault>;
    /// One step: what was there, after `new` has said what is to be there instead, if anything.
    /// `is_swap`: it writes only if it finds what it compares with.
    fn update(
        &mut self,
        address: u64,
        bytes: u32,
        strength: Strength,
        is_swap: bool,
        new: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> Result<u64, Self::Fault>;
    fn print(&mut self, text: &[u8]);
    /// An assertion has failed, first for the element of this index, and for so many others.
    fn assertion(&mut self, message: &str, index: &[usize], others: usize) -> Self::Fault;
    /// The bytecode asks for what makes no sense.
    fn wrong(&mut self, why: String) -> Self::Fault;
}

/// What came of running for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stepped {
    Done,
    /// Others may have their turn, and perhaps it waits for them.
    More,
    /// It goes on with what reaches out at another site ([`Run::site`]).
    Elsewhere,
}

/// Why an operation was not carried out.
enum Stop<F> {
    Wrong(String),
    Fault(F),
}

impl<F> From<String> for Stop<F> {
    fn from(why: String) -> Stop<F> {
        Stop::Wrong(why)
    }
}

/// Operations in one go, about: then it is others' turn.
const SHARE: u32 = 4096;
/// Bytes that the values of a tile block may have: more than any device has room for.
const MOST_BYTES: usize = 1 << 30;

/// A tile block under way.
pub struct Run {
    module: Arc<Module>,
    entry: usize,
    values: Vec<Option<Value>>,
    /// Of its values; those of which there are two count twice.
    bytes: usize,
    frames: Vec<Frame>,
    /// Something strong was read since the last time round a loop: perhaps it waits for somebody.
    looks: bool,
    site: u32,
    tensor_cores: Architecture,
}

/// A block of operations under way.
struct Frame {
    block: u32,
    next: usize,
    kind: Kind,
}

enum Kind {
    Body,
    If,
    For {
        current: i128,
        upper: i128,
        step: i128,
        element: Element,
    },
    Loop,
}

/// Where a terminator leads.
enum Next {
    On,
    /// Round a loop once more.
    Round,
    End,
}

impl Run {
    /// `entry`: its number. The block's parameters are the launch's.
    pub fn new(module: Arc<Module>, entry: usize, host: &impl Host) -> Option<Run> {
        let kernel = module.entries.get(entry)?;
        let mut values = vec![None; kernel.values];
        let mut offset = 0_u32;
        for (value, ty) in values.iter_mut().zip(&kernel.parameters) {
            let bytes = parameter_bytes(ty.element);
            offset = offset.next_multiple_of(bytes);
            let bits = host.parameter(offset, bytes) & super::value::mask(ty.element.bits());
            *value = Some(Value::Tile(Arc::new(Tile::scalar(ty.element, bits))));
            offset += bytes;
        }
        Some(Run {
            module,
            entry,
            values,
            bytes: 0,
            frames: vec![Frame {
                block: 0,
                next: 0,
                kind: Kind::Body,
            }],
            looks: false,
            site: 0,
            tensor_cores: host.tensor_cores(),
        })
    }

    /// Where it reached out last, or, if it stopped there, is about to: a number among the entry's sites. At first, the entry's own.
    pub fn site(&self) -> u32 {
        self.site
    }

    /// Runs it for a while.
    ///
    /// # Errors
    /// What a host says to an address that is none of the kernel's, or to what the bytecode asks of it.
    pub fn step<H: Host>(&mut self, host: &mut H) -> Result<Stepped, H::Fault> {
        let module = Arc::clone(&self.module);
        let blocks = &module.entries[self.entry].blocks;
        let mut share = SHARE;
        while let Some(frame) = self.frames.last_mut() {
            let op = &blocks[frame.block as usize].ops[frame.next];
            if let Some(site) = op.site
                && std::mem::replace(&mut self.site, site) != site
                && H::WATCHED
            {
                return Ok(Stepped::Elsewhere);
            }
            frame.next += 1;
            share = share.saturating_sub(1);
            match self.carry_out(&module, op, host) {
                Ok(Next::On) => {}
                Ok(Next::Round) => {
                    if std::mem::take(&mut self.looks) || share == 0 {
                        return Ok(Stepped::More);
                    }
                }
                Ok(Next::End) => break,
                Err(Stop::Fault(fault)) => return Err(fault),
                Err(Stop::Wrong(why)) => {
                    let (name, kernel) = (op.code.layout().name, &module.entries[self.entry].name);
                    return Err(host.wrong(format!("`{name}` of the tile kernel `{kernel}`: {why}")));
                }
            }
        }
        Ok(Stepped::Done)
    }

    fn carry_out<H: Host>(&mut self, module: &Module, op: &Op, host: &mut H) -> Result<Next, Stop<H::Fault>> {
        match op.code {
            Code::If => self.begin_if(module, op)?,
            Code::For => return Ok(self.begin_for(module, op)?),
            Code::Loop => {
                let first = self.all(&op.operands)?;
                self.enter(op.regions[0], Kind::Loop);
                self.arguments(module, first)?;
            }
            Code::Yield => {
                let values = self.all(&op.operands)?;
                match self.frames.pop() {
                    Some(Frame { kind: Kind::If, .. }) => self.end(module, values)?,
                    _ => return Err("it ends no `if`".to_string().into()),
                }
            }
            Code::Continue | Code::Break => return Ok(self.turn(module, op)?),
            Code::Return => return Ok(Next::End),
            Code::Assert => {
                let condition = self.tile(op, 0)?;
                let mut failed = (0..condition.len()).filter(|&at| condition.data.get(at) == 0);
                if let Some(first) = failed.next() {
                    let strides = super::value::row_strides(&condition.shape);
                    let index: Vec<usize> = strides
                        .iter()
                        .zip(&condition.shape)
                        .map(|(stride, &size)| first / stride % size as usize)
                        .collect();
                    let others = failed.count();
                    return Err(Stop::Fault(host.assertion(op.text(0), &index, others)));
                }
            }
            Code::Print => {
                let text = print::text(op.text(0), op.group(0), |value| self.tile_of(value))?;
                host.print(&text);
                let token = vec![Value::Token; op.results.len()];
                self.define(module, op, token)?;
            }
            Code::GetTileBlockId | Code::GetNumTileBlocks => {
                let numbers = match op.code {
                    Code::GetTileBlockId => host.block(),
                    _ => host.grid(),
                };
                let scalar = |number: u32| Value::Tile(Arc::new(Tile::scalar(Element::I32, number.into())));
                self.define(module, op, numbers.map(scalar).into())?;
            }
            Code::GetGlobal => {
                let name = op.text(0);
                let Some(number) = module.globals.iter().position(|global| &*global.name == name) else {
                    return Err(format!("there is no variable `{name}`").into());
                };
                let address = host.variable(number).map_err(Stop::Fault)?;
                let pointer = Tile::scalar(Element::Pointer, address);
                self.define(module, op, vec![Value::Tile(Arc::new(pointer))])?;
            }
            code if code.is_access() => {
                let results = self.access(module, op, host)?;
                self.define(module, op, results)?;
            }
            Code::Reduce | Code::Scan => {
                let results = self.fold(module, op)?;
                self.define(module, op, results)?;
            }
            _ => {
                let results = self.pure(module, op)?;
                self.define(module, op, results)?;
            }
        }
        Ok(Next::On)
    }

    /// Operations whose results follow from their operands alone.
    fn pure(&self, module: &Module, op: &Op) -> Result<Vec<Value>, String> {
        let result = |at: usize| -> Result<&TileType, String> {
            match op.results.get(at).map(|&ty| module.types.known(ty)) {
                Some(Type::Tile(ty)) => Ok(ty),
                _ => Err("the result is no tile".to_string()),
            }
        };
        let tile = match op.code {
            Code::MakeToken | Code::JoinTokens | Code::GdcLaunchDependents | Code::GdcWait | Code::MemoryFenceAlias => {
                return Ok(vec![Value::Token]);
            }
            Code::Assume => return Ok(vec![self.value(op.group(0)[0])?.clone()]),
            Code::MakeTensorView | Code::MakePartitionView | Code::MakeStridedView | Code::MakeGatherScatterView => {
                return Ok(vec![self.view(module, op)?]);
            }
            Code::GetTensorShape | Code::GetIndexSpaceShape => return self.extents(module, op),
            Code::Constant => match op.attributes.first() {
                Some(super::read::Given::Tile(tile)) => return Ok(vec![Value::Tile(Arc::clone(tile))]),
                _ => return Err("it has no value".to_string()),
            },
            Code::AbsI
            | Code::AddI
            | Code::AndI
            | Code::CmpI
            | Code::DivI
            | Code::ExtI
            | Code::MaxI
            | Code::MinI
            | Code::MulhiI
            | Code::MulI
            | Code::NegI
            | Code::OrI
            | Code::RemI
            | Code::ShLI
            | Code::ShRI
            | Code::SubI
            | Code::TruncI
            | Code::XOrI
            | Code::Offset
            | Code::IntToPtr
            | Code::PtrToInt
            | Code::PtrToPtr
            | Code::Bitcast
            | Code::Iota => self.integer(op, result(0)?)?,
            Code::AbsF
            | Code::AddF
            | Code::Atan2
            | Code::Ceil
            | Code::CmpF
            | Code::Cos
            | Code::CosH
            | Code::DivF
            | Code::Exp
            | Code::Exp2
            | Code::Floor
            | Code::Fma
            | Code::Log
            | Code::Log2
            | Code::MaxF
            | Code::MinF
            | Code::MulF
            | Code::NegF
            | Code::PowF
            | Code::PowI
            | Code::RemF
            | Code::Rsqrt
            | Code::Sin
            | Code::SinH
            | Code::Sqrt
            | Code::SubF
            | Code::Tan
            | Code::TanH => self.float(op)?,
            Code::FToF | Code::FToI | Code::IToF => self.convert(op, result(0)?)?,
            Code::MmaF | Code::MmaI | Code::MmaFScaled => self.product(op)?,
            Code::Broadcast
            | Code::Cat
            | Code::Extract
            | Code::Insert
            | Code::Pack
            | Code::Permute
            | Code::Reshape
            | Code::Select
            | Code::Unpack => self.arrange(op, result(0)?)?,
            Code::Alloca
            | Code::Assert
            | Code::AtomicCas
            | Code::AtomicRedView
            | Code::AtomicRmw
            | Code::Break
            | Code::Continue
            | Code::For
            | Code::GetGlobal
            | Code::GetNumTileBlocks
            | Code::GetTileBlockId
            | Code::If
            | Code::LoadPtr
            | Code::LoadView
            | Code::Loop
            | Code::MultimemLoadReduceView
            | Code::MultimemReduceView
            | Code::MultimemStoreView
            | Code::Print
            | Code::Reduce
            | Code::Return
            | Code::Scan
            | Code::StorePtr
            | Code::StoreView
            | Code::Yield => return Err("it stands where only what computes may stand".to_string()),
        };
        Ok(vec![Value::Tile(Arc::new(tile))])
    }

    fn value(&self, number: u32) -> Result<&Value, String> {
        match self.values.get(number as usize) {
            Some(Some(value)) => Ok(value),
            _ => Err(format!("value {number} is not there")),
        }
    }

    fn all(&self, numbers: &[u32]) -> Result<Vec<Value>, String> {
        numbers.iter().map(|&number| self.value(number).cloned()).collect()
    }

    fn tile_of(&self, number: u32) -> Result<&Arc<Tile>, String> {
        match self.value(number)? {
            Value::Tile(tile) => Ok(tile),
            _ => Err(format!("value {number} is no tile")),
        }
    }

    /// The tile that is the operand of this place in the table.
    fn tile(&self, op: &Op, group: usize) -> Result<&Arc<Tile>, String> {
        match op.group(group) {
            [number] => self.tile_of(*number),
            _ => Err("an operand is missing".to_string()),
        }
    }

    fn maybe_tile(&self, op: &Op, group: usize) -> Result<Option<&Arc<Tile>>, String> {
        match op.group(group) {
            [] => Ok(None),
            _ => self.tile(op, group).map(Some),
        }
    }

    /// The results of an operation are these, which are of the types that it says.
    fn define(&mut self, module: &Module, op: &Op, results: Vec<Value>) -> Result<(), String> {
        if results.len() != op.results.len() {
            return Err(format!(
                "it has {} results, and {} types of them",
                results.len(),
                op.results.len()
            ));
        }
        for (at, (value, &ty)) in results.into_iter().zip(&op.results).enumerate() {
            must_be(&value, module.types.known(ty))?;
            self.put(op.first_result as usize + at, value)?;
        }
        Ok(())
    }

    /// A value takes the place of the one that was there.
    fn put(&mut self, at: usize, value: Value) -> Result<(), String> {
        let bytes = |value: &Value| match value {
            Value::Tile(tile) => tile.bytes(),
            Value::Tensor(_) | Value::View(_) | Value::Token => 0,
        };
        let more = bytes(&value);
        let less = self.values[at].replace(value).as_ref().map_or(0, bytes);
        self.bytes = (self.bytes + more).saturating_sub(less);
        match self.bytes <= MOST_BYTES {
            true => Ok(()),
            false => Err(format!("its values would take more than {} MiB", MOST_BYTES >> 20)),
        }
    }

    fn enter(&mut self, block: u32, kind: Kind) {
        self.frames.push(Frame { block, next: 0, kind });
    }

    /// The arguments of the block that is under way are these.
    fn arguments(&mut self, module: &Module, values: Vec<Value>) -> Result<(), String> {
        let Some(frame) = self.frames.last() else {
            return Err("no block is under way".to_string());
        };
        let block = &module.entries[self.entry].blocks[frame.block as usize];
        if values.len() != block.arguments as usize {
            return Err(format!(
                "{} values for a block of {} arguments",
                values.len(),
                block.arguments
            ));
        }
        let first = block.first_argument as usize;
        values
            .into_iter()
            .zip(first..)
            .try_for_each(|(value, at)| self.put(at, value))
    }

    /// The operation whose block is through has these results.
    fn end(&mut self, module: &Module, values: Vec<Value>) -> Result<(), String> {
        let Some(frame) = self.frames.last() else {
            return Err("no block is under way".to_string());
        };
        let block = &module.entries[self.entry].blocks[frame.block as usize];
        self.define(module, &block.ops[frame.next - 1], values)
    }

    fn begin_if(&mut self, module: &Module, op: &Op) -> Result<(), String> {
        let condition = self.tile(op, 0)?;
        let taken = condition.data.get(0) != 0;
        match op.regions.get(usize::from(!taken)) {
            Some(&block) => {
                self.enter(block, Kind::If);
                self.arguments(module, Vec::new())
            }
            None => self.define(module, op, Vec::new()),
        }
    }

    fn begin_for(&mut self, module: &Module, op: &Op) -> Result<Next, String> {
        let [lower, upper, step, first @ ..] = &*op.operands else {
            return Err("it has no bounds".to_string());
        };
        let is_unsigned = op.flag(0);
        let bound = |number: u32| -> Result<i128, String> {
            let tile = self.tile_of(number)?;
            Ok(match is_unsigned {
                true => tile.data.get(0).into(),
                false => tile.signed(0).into(),
            })
        };
        let (current, upper, step) = (bound(*lower)?, bound(*upper)?, bound(*step)?);
        if step <= 0 {
            return Err(format!("a step of {step}"));
        }
        let element = self.tile_of(*lower)?.element;
        let first = self.all(first)?;
        self.enter(
            op.regions[0],
            Kind::For {
                current,
                upper,
                step,
                element,
            },
        );
        self.go_round(module, first)
    }

    /// Carried values are these: round the loop with them, or out of it.
    fn go_round(&mut self, module: &Module, carried: Vec<Value>) -> Result<Next, String> {
        let index = match self.frames.last_mut() {
            Some(Frame { next, kind, .. }) => {
                *next = 0;
                match kind {
                    Kind::For {
                        current,
                        upper,
                        step,
                        element,
                    } => {
                        if *current >= *upper {
                            self.frames.pop();
                            self.end(module, carried)?;
                            return Ok(Next::On);
                        }
                        let bits = *current as u64 & super::value::mask(element.bits());
                        let index = Tile::scalar(*element, bits);
                        *current += *step;
                        Some(Value::Tile(Arc::new(index)))
                    }
                    Kind::Body | Kind::If | Kind::Loop => None,
                }
            }
            None => return Err("no loop is under way".to_string()),
        };
        self.arguments(module, index.into_iter().chain(carried).collect())?;
        Ok(Next::Round)
    }

    fn turn(&mut self, module: &Module, op: &Op) -> Result<Next, String> {
        let carried = self.all(&op.operands)?;
        while matches!(self.frames.last(), Some(Frame { kind: Kind::If, .. })) {
            self.frames.pop();
        }
        if !matches!(
            self.frames.last(),
            Some(Frame {
                kind: Kind::For { .. } | Kind::Loop,
                ..
            })
        ) {
            return Err("it stands in no loop".to_string());
        }
        match op.code {
            Code::Continue => self.go_round(module, carried),
            _ => {
                self.frames.pop();
                self.end(module, carried)?;
                Ok(Next::On)
            }
        }
    }
}

fn must_be(value: &Value, ty: &Type) -> Result<(), String> {
    let is = match (value, ty) {
        (Value::Tile(tile), Type::Tile(ty)) if tile.element == ty.element && tile.shape == ty.shape => true,
        (Value::Tile(tile), Type::Tile(ty)) => {
            let found = TileType {
                shape: tile.shape.clone(),
                element: tile.element,
                pointee: ty.pointee,
            };
            return Err(format!("the result would be {found}, and is to be {ty}"));
        }
        (Value::Tensor(_), Type::Tensor(_)) | (Value::View(_), Type::View(_)) | (Value::Token, Type::Token) => true,
        _ => false,
    };
    match is {
        true => Ok(()),
        false => Err("the result is of another kind than its type".to_string()),
    }
}
