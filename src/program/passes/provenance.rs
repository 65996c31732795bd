//! From which object's address each access's was made, and a check of it before the access ([`Op::Within`]): an index that
//! is far off lands in another variable, or in another allocation, where a look at what lies there finds nothing wrong.
//!
//! Only where accesses are checked to the variable (`MARGAY_CHECK=memory`). A register is a number, an address made from one
//! object's, or not known, whatever the order in which its writes are done: everything starts as not seen, and falls until
//! nothing changes. An address and a number make an address; where two addresses meet, or something that may be one (64
//! bits from memory), nothing is known, and nothing is checked. What counts is where an access ends up, and not the way of
//! its address: compilers go below an array and come back.

use std::collections::HashMap;

mod columns;
mod extents;
mod held;

use self::columns::Columns;
use self::extents::{Extents, Reach};
use super::definitions::Definition;
use crate::isa::lanes::Width;
use crate::isa::{Compute, logic};
use crate::program::ir::{
    Address, BlockId, Body, Element, Initial, Inst, Linear, MadeFrom, Op, Reached, Reg, Register, Role, Space, Within,
};
use crate::program::{Function, value_bytes};

/// Rounds until nothing changes; programs of people need a handful.
const ROUNDS: usize = 64;

/// A function without these checks; `None` if it has none.
pub fn strip(function: &Function) -> Option<Function> {
    let is_check = |inst: &Inst| matches!(inst.op, Op::Within(_));
    let checks_itself = |inst: &Inst| matches!(&inst.op, Op::Joint(joint) if !joint.objects.is_empty());
    if !function.body.insts().any(|inst| is_check(inst) || checks_itself(inst)) {
        return None;
    }
    let mut bare = function.clone();
    for block in &mut bare.body.blocks {
        block.insts.retain(|inst| !is_check(inst));
        for inst in &mut block.insts {
            if let Op::Joint(joint) = &mut inst.op {
                joint.objects = Box::new([]);
            }
        }
    }
    Some(bare)
}

/// What lowering knows of the registers that it makes.
#[derive(Default, Debug)]
pub struct Objects {
    /// Registers that hold the address of an object from the start.
    pub registers: HashMap<Register, MadeFrom>,
    /// Variables of the frame, by where they start. `None`: several of different sizes, one after the other.
    pub frame: HashMap<u32, Option<u32>>,
}

impl Objects {
    /// A variable of the frame whose address is taken.
    pub fn in_frame(&mut self, offset: u32, bytes: u32) {
        let known = self.frame.entry(offset).or_insert(Some(bytes));
        *known = known.filter(|known| *known == bytes);
    }
}

/// An address made from one object's.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Made {
    from: MadeFrom,
    form: Form,
    /// Bytes from the object's start, where that is the same always.
    offset: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// An address of the object's space.
    Own,
    Generic,
    /// Bits of it are those of an address from the fifth on, as descriptors of matrices have them.
    Descriptor,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Value {
    /// Nobody has written it yet.
    Unseen,
    /// No part of an address is in it.
    Number,
    Made(Made),
    Unknown,
}

/// Puts a check before each access whose address was made from one object's.
pub fn run(body: &mut Body, order: &[BlockId], definitions: &[Definition], objects: &Objects) {
    let blocks = allocas(body, order, definitions);
    let Some(values) = values(body, order, (objects, &blocks)) else {
        return;
    };
    let columns = Columns::of(body, order, definitions, &values);
    // What `alloca` takes lies above the frame.
    let fixed = !body.insts().any(|inst| matches!(inst.op, Op::Alloca { .. }));
    for &block in order {
        let mut insts = std::mem::take(&mut body.blocks[block as usize].insts);
        for inst in &mut insts {
            held::add(&mut inst.op, &values, &columns);
        }
        let mut groups = Groups::default();
        // What stands before an instruction and is no check of a group.
        let mut apart: Vec<(usize, Vec<Inst>)> = Vec::new();
        for (at, inst) in insts.iter().enumerate() {
            let checks = far(body, inst, &values);
            if !checks.is_empty() {
                apart.push((at, checks));
            }
            for (address, bytes, write) in accesses(&inst.op) {
                let Some(register) = address.register else { continue };
                let value = values[register.number as usize];
                if let Some(from) = object(value, &address, bytes, fixed) {
                    let reached = Reached {
                        offset: address.offset,
                        bytes,
                        write,
                        span: inst.span,
                    };
                    groups.add(at, (register, address.space, from), inst, reached);
                }
            }
            groups.pass(inst);
        }
        let mut checks = groups.all.into_iter().peekable();
        let mut apart = apart.into_iter().peekable();
        let mut out = Vec::with_capacity(insts.len() + checks.len());
        for (at, inst) in insts.into_iter().enumerate() {
            if let Some((_, checks)) = apart.next_if(|(before, _)| *before == at) {
                out.extend(checks);
            }
            while let Some(group) = checks.next_if(|group| group.at == at) {
                out.push(group.check);
            }
            out.push(inst);
        }
        body.blocks[block as usize].insts = out;
    }
}

/// What goes before an instruction that reaches further than a few bytes.
fn far(body: &mut Body, inst: &Inst, values: &[Value]) -> Vec<Inst> {
    let mut out = Vec::new();
    for (number, address) in Extents::addresses(&inst.op).iter().enumerate() {
        let Some(register) = address.register else { continue };
        // More than any object has, so that it is checked in any case; whose object is not known is not looked at.
        let Some(from) = object(values[register.number as usize], address, u32::MAX, false) else {
            continue;
        };
        let reached = Extents {
            body,
            inst,
            out: &mut out,
        }
        .reach(number, register);
        for Reach {
            register,
            guard,
            accesses,
        } in reached
        {
            let within = Within {
                space: address.space,
                register,
                from,
                accesses: accesses.into(),
            };
            out.push(Inst {
                guard,
                op: Op::Within(Box::new(within)),
                span: inst.span,
                line: inst.line,
            });
        }
    }
    out
}

/// Accesses of a block that are checked together: by one register, in the same lanes, and whoever makes the first makes all.
#[derive(Default)]
struct Groups {
    /// In the order of the block.
    all: Vec<Group>,
    /// Those that others may join.
    open: Vec<usize>,
}

struct Group {
    /// Before this instruction.
    at: usize,
    check: Inst,
}

impl Groups {
    fn add(&mut self, at: usize, (register, space, from): (Reg, Space, MadeFrom), inst: &Inst, reached: Reached) {
        for &number in &self.open {
            let check = &mut self.all[number].check;
            if let Op::Within(within) = &mut check.op
                && check.guard == inst.guard
                && (within.register, within.space, within.from) == (register, space, from)
            {
                let mut all = std::mem::take(&mut within.accesses).into_vec();
                all.push(reached);
                within.accesses = all.into();
                return;
            }
        }
        let within = Within {
            space,
            register,
            from,
            accesses: Box::new([reached]),
        };
        self.open.push(self.all.len());
        self.all.push(Group {
            at,
            check: Inst {
                guard: inst.guard,
                op: Op::Within(Box::new(within)),
                span: inst.span,
                line: inst.line,
            },
        });
    }

    /// What comes behind an instruction: other values of registers, and perhaps fewer lanes, much later.
    fn pass(&mut self, inst: &Inst) {
        let effects = inst.op.effects();
        if effects.leaves || effects.waits || effects.synchronises || effects.frame {
            self.open.clear();
        }
        let all = &self.all;
        inst.regs(|written, role| {
            if role == Role::Def {
                self.open.retain(|&number| {
                    let mut is_read = false;
                    all[number].check.regs(|reg, _| is_read |= reg.number == written.number);
                    !is_read
                });
            }
        });
    }
}

/// Registers that hold the address of what an `alloca` took, and keep it as long as the function runs: each is carried out once,
/// and nothing is given back before the end.
fn allocas(body: &Body, order: &[BlockId], definitions: &[Definition]) -> HashMap<Register, MadeFrom> {
    let mut found = HashMap::new();
    if body.insts().any(|inst| matches!(inst.op, Op::StackRestore { .. })) {
        return found;
    }
    let once = |reg: &Reg| body.is_fixed(reg.number) || matches!(definitions[reg.number as usize], Definition::One(..));
    for &block in order {
        for inst in &body.blocks[block as usize].insts {
            if let Op::Alloca { dst, size, .. } = &inst.op
                && once(dst)
                && once(size)
                && !comes_back(body, block)
            {
                let (base, size) = (*dst, *size);
                found.insert(dst.number, MadeFrom::Block { base, size });
            }
        }
    }
    found
}

/// Whether a block runs again after itself.
fn comes_back(body: &Body, block: BlockId) -> bool {
    let mut seen = vec![false; body.blocks.len()];
    let mut work = vec![block];
    while let Some(from) = work.pop() {
        let mut back = false;
        body.blocks[from as usize].end.successors(|to| {
            back |= to == block;
            if !std::mem::replace(&mut seen[to as usize], true) {
                work.push(to);
            }
        });
        if back {
            return true;
        }
    }
    false
}

/// What an operation's accesses are checked for: address, bytes, whether it writes.
fn accesses(op: &Op) -> Vec<(Address, u32, bool)> {
    let of = |element: &Element, count: usize| u32::from(element.bytes) * count as u32;
    match op {
        Op::Load {
            address, element, dst, ..
        } => vec![(*address, of(element, dst.len()), false)],
        Op::Store {
            address, element, src, ..
        } => vec![(*address, of(element, src.len()), true)],
        Op::Atomic { address, ty, b, .. } => {
            let bytes = value_bytes(ty.ty()) as u32 * b.len() as u32;
            vec![(*address, bytes, true)]
        }
        Op::CopyAsync {
            dst,
            src,
            bytes,
            src_size: None,
            ignore: None,
        } => vec![(*dst, u32::from(*bytes), true), (*src, u32::from(*bytes), false)],
        Op::CopyAsync { dst, bytes, .. } => vec![(*dst, u32::from(*bytes), true)],
        Op::Joint(joint) => held::accesses(joint),
        Op::Compute { .. }
        | Op::Call { .. }
        | Op::Return
        | Op::Exit
        | Op::Trap
        | Op::Breakpoint
        | Op::Barrier { .. }
        | Op::WarpBarrier { .. }
        | Op::Fence { .. }
        | Op::Shuffle { .. }
        | Op::Vote { .. }
        | Op::Match { .. }
        | Op::Redux { .. }
        | Op::Activemask { .. }
        | Op::Elect { .. }
        | Op::ReadSpecial { .. }
        | Op::FrameAddress { .. }
        | Op::ConvertAddress { .. }
        | Op::IsSpace { .. }
        | Op::Within(_)
        | Op::Shadow(_)
        | Op::Nanosleep
        | Op::Alloca { .. }
        | Op::StackSave { .. }
        | Op::StackRestore { .. }
        | Op::CopyGroup(_)
        | Op::Texture(_)
        | Op::Surface(_)
        | Op::HandleQuery { .. }
        | Op::IsHandle { .. }
        | Op::Syscall { .. } => Vec::new(),
    }
}

/// What an access by a register of this value is checked against, if it must be. `fixed`: the frame's size does not change.
fn object(value: Value, address: &Address, bytes: u32, fixed: bool) -> Option<MadeFrom> {
    let frames = || {
        let may = matches!(address.space, Space::Generic | Space::Local);
        (may && fixed).then_some(MadeFrom::Unknown)
    };
    let Value::Made(made) = value else {
        return frames();
    };
    let is_own = made.form == Form::Own;
    let fits = match address.space {
        Space::Generic => made.form == Form::Generic || matches!(made.from, MadeFrom::Pointer { .. }),
        Space::Global | Space::Const => matches!(made.from, MadeFrom::Pointer { .. }),
        Space::Shared => is_own && matches!(made.from, MadeFrom::Shared { .. }),
        Space::Local => is_own && matches!(made.from, MadeFrom::Frame { .. } | MadeFrom::Block { .. }),
        Space::Param => is_own && matches!(made.from, MadeFrom::Parameter { .. }),
    };
    if !fits {
        return frames();
    }
    let size = match made.from {
        MadeFrom::Shared { bytes, .. } => bytes,
        MadeFrom::Frame { bytes, .. } | MadeFrom::Parameter { bytes, .. } => Some(bytes),
        MadeFrom::Block { .. } | MadeFrom::Pointer { .. } | MadeFrom::Unknown => None,
    };
    let at = made.offset.and_then(|offset| offset.checked_add(address.offset));
    if let (Some(at), Some(size)) = (at, size)
        && at >= 0
        && at + i64::from(bytes) <= i64::from(size)
    {
        return None;
    }
    Some(made.from)
}

/// What each register holds. `None`: a text made to take long.
fn values(body: &Body, order: &[BlockId], known: Known<'_>) -> Option<Vec<Value>> {
    let objects = known.0;
    let mut values = vec![Value::Unseen; body.registers.len()];
    for (number, info) in body.registers.iter().enumerate() {
        let known = objects.registers.get(&(number as Register));
        values[number] = match (known, info.initial) {
            (Some(&from), _) => Value::Made(Made {
                from,
                form: Form::Own,
                offset: Some(0),
            }),
            (None, None) => continue,
            (None, Some(Initial::Param { offset, element })) if info.width == Width::B64 && element.bytes == 8 => {
                Value::Made(Made {
                    from: MadeFrom::Pointer {
                        base: body.reg(number as Register),
                        parameter: Some(offset),
                    },
                    form: Form::Own,
                    offset: None,
                })
            }
            (None, Some(_)) if info.width == Width::B128 => Value::Unknown,
            (None, Some(_)) => Value::Number,
        };
    }
    for _ in 0..ROUNDS {
        let mut changed = false;
        for &block in order {
            for inst in &body.blocks[block as usize].insts {
                let new = given(body, known, &values, &inst.op);
                inst.op.regs(|reg, role| {
                    if role == Role::Def {
                        let known = &mut values[reg.number as usize];
                        let wide = matches!(reg.width, Width::B64 | Width::B128);
                        let next = meet(*known, new.of(wide));
                        changed |= next != *known;
                        *known = next;
                    }
                });
            }
        }
        if !changed {
            return Some(values);
        }
    }
    None
}

/// What a register may hold that is given either.
fn meet(a: Value, b: Value) -> Value {
    match (a, b) {
        (Value::Unseen, other) | (other, Value::Unseen) => other,
        (Value::Number, Value::Number) => Value::Number,
        (Value::Made(a), Value::Made(b)) if a.from == b.from && a.form == b.form => Value::Made(Made {
            offset: a.offset.filter(|_| a.offset == b.offset),
            ..a
        }),
        (Value::Number | Value::Made(_) | Value::Unknown, Value::Number | Value::Made(_) | Value::Unknown) => {
            Value::Unknown
        }
    }
}

/// What an operation gives its registers.
enum Given {
    Value(Value),
    /// From memory, or from who knows where: what has 64 bits may be an address.
    Elsewhere,
}

impl Given {
    fn of(&self, wide: bool) -> Value {
        match (self, wide) {
            (Given::Value(value), _) => *value,
            (Given::Elsewhere, true) => Value::Unknown,
            (Given::Elsewhere, false) => Value::Number,
        }
    }
}

/// What lowering knows, and what an `alloca` takes, by its register.
type Known<'a> = (&'a Objects, &'a HashMap<Register, MadeFrom>);

fn given(body: &Body, (objects, blocks): Known<'_>, values: &[Value], op: &Op) -> Given {
    let of = |reg: &Reg| values[reg.number as usize];
    let value = match op {
        Op::Compute { op, dst, src } => computed(body, values, *op, dst, src),
        Op::FrameAddress { offset, .. } => match objects.frame.get(offset) {
            Some(Some(bytes)) => Value::Made(Made {
                from: MadeFrom::Frame {
                    offset: *offset,
                    bytes: *bytes,
                },
                form: Form::Own,
                offset: Some(0),
            }),
            Some(None) | None => Value::Unknown,
        },
        Op::ConvertAddress {
            space, to_generic, src, ..
        } => match of(src) {
            Value::Made(made) if lies_in(made.from, *space) => match (made.form, to_generic) {
                (Form::Own, true) => Value::Made(Made {
                    form: Form::Generic,
                    ..made
                }),
                (Form::Generic, false) => Value::Made(Made {
                    form: Form::Own,
                    ..made
                }),
                (Form::Own | Form::Generic | Form::Descriptor, _) => Value::Unknown,
            },
            Value::Unseen => Value::Unseen,
            Value::Made(_) | Value::Number | Value::Unknown => Value::Unknown,
        },
        Op::Shuffle { a, .. } | Op::Redux { a, .. } => match of(a) {
            Value::Made(_) | Value::Unknown => Value::Unknown,
            other => other,
        },
        Op::IsSpace { .. }
        | Op::IsHandle { .. }
        | Op::HandleQuery { .. }
        | Op::Match { .. }
        | Op::Vote { .. }
        | Op::Activemask { .. }
        | Op::Elect { .. }
        | Op::ReadSpecial { .. }
        | Op::Barrier { .. } => Value::Number,
        Op::Load { .. } | Op::Atomic { .. } | Op::Texture(_) | Op::Surface(_) => return Given::Elsewhere,
        Op::Joint(joint) => held::given(joint, &of),
        Op::StackSave { .. } => Value::Unknown,
        Op::Alloca { dst, .. } => match blocks.get(&dst.number) {
            Some(&from) => Value::Made(Made {
                from,
                form: Form::Own,
                offset: None,
            }),
            None => Value::Unknown,
        },
        // They give no register anything.
        Op::Store { .. }
        | Op::Call { .. }
        | Op::Return
        | Op::Exit
        | Op::Trap
        | Op::Breakpoint
        | Op::WarpBarrier { .. }
        | Op::Fence { .. }
        | Op::Within(_)
        | Op::Shadow(_)
        | Op::Nanosleep
        | Op::StackRestore { .. }
        | Op::CopyAsync { .. }
        | Op::CopyGroup(_)
        | Op::Syscall { .. } => Value::Unknown,
    };
    Given::Value(value)
}

fn lies_in(from: MadeFrom, space: Space) -> bool {
    match from {
        MadeFrom::Shared { .. } => space == Space::Shared,
        MadeFrom::Frame { .. } | MadeFrom::Block { .. } => space == Space::Local,
        MadeFrom::Parameter { .. } => space == Space::Param,
        MadeFrom::Pointer { .. } | MadeFrom::Unknown => false,
    }
}

/// What an operation on registers gives.
fn computed(body: &Body, values: &[Value], op: Compute, dst: &[Reg], src: &[Reg]) -> Value {
    let of = |at: usize| values[src[at].number as usize];
    if src.iter().any(|reg| values[reg.number as usize] == Value::Unseen) {
        return Value::Unseen;
    }
    let numbers = |range: &[Reg]| range.iter().all(|reg| values[reg.number as usize] == Value::Number);
    if dst.iter().all(|reg| reg.width == Width::Pred) {
        return Value::Number;
    }
    match op.linear() {
        Some(Linear::Copy) => of(0),
        // An address of a window has 32 bits that count.
        Some(Linear::Narrow | Linear::Widen { .. }) => match of(0) {
            Value::Made(made) if made.form == Form::Generic || matches!(made.from, MadeFrom::Pointer { .. }) => {
                Value::Unknown
            }
            other => other,
        },
        Some(Linear::Add) => match held::of_descriptors(op, src, &of) {
            Some(descriptor) => descriptor,
            None => sum(body, of(0), of(1), (src[0], src[1])),
        },
        Some(Linear::Sub) => match (of(0), of(1)) {
            (Value::Made(a), Value::Made(b)) if a.from == b.from && a.form == b.form => Value::Number,
            (Value::Made(made), Value::Number) => Value::Made(Made {
                offset: moved(body, made, src[1], true),
                ..made
            }),
            (Value::Number, Value::Number) => Value::Number,
            _ => Value::Unknown,
        },
        Some(Linear::Mad | Linear::MadWide { .. }) if numbers(&src[..2]) => match of(2) {
            Value::Made(made) => Value::Made(Made { offset: None, ..made }),
            other => other,
        },
        Some(Linear::Mul | Linear::MulWide { .. } | Linear::Shl) if numbers(src) => Value::Number,
        Some(
            Linear::Mul
            | Linear::MulWide { .. }
            | Linear::Mad
            | Linear::MadWide { .. }
            | Linear::Shl
            | Linear::Compare { .. },
        ) => Value::Unknown,
        None => match held::of_address(body, op, src, &of).or_else(|| held::of_descriptors(op, src, &of)) {
            Some(value) => value,
            None => other(op, dst, src, &of),
        },
    }
}

/// What an operation gives that is no sum.
fn other(op: Compute, dst: &[Reg], src: &[Reg], of: &impl Fn(usize) -> Value) -> Value {
    if let Compute::Logic(op) = op {
        match op {
            logic::Op::Selp { .. } => return meet(of(0), of(1)),
            // A sum, where the address is aligned.
            logic::Op::Or { .. } => match (of(0), of(1)) {
                (Value::Made(made), Value::Number) | (Value::Number, Value::Made(made)) => {
                    return Value::Made(Made { offset: None, ..made });
                }
                (Value::Unseen | Value::Number | Value::Made(_) | Value::Unknown, _) => {}
            },
            logic::Op::And { .. }
            | logic::Op::Xor { .. }
            | logic::Op::Not { .. }
            | logic::Op::Cnot { .. }
            | logic::Op::Lop3 { .. }
            | logic::Op::Shl { .. }
            | logic::Op::Shr { .. }
            | logic::Op::ShfL { .. }
            | logic::Op::ShfR { .. }
            | logic::Op::Prmt { .. }
            | logic::Op::Slct { .. } => {}
        }
    }
    let numbers = (0..src.len()).all(|at| of(at) == Value::Number);
    // Halves of 32 bits may be those of an address that was read.
    let wide = |reg: &Reg| matches!(reg.width, Width::B64 | Width::B128);
    let put_together = dst.iter().any(wide) && !src.iter().any(wide) && !matches!(op, Compute::Convert(_));
    match numbers && !put_together {
        true => Value::Number,
        false => Value::Unknown,
    }
}

fn sum(body: &Body, a: Value, b: Value, (first, second): (Reg, Reg)) -> Value {
    match (a, b) {
        (Value::Number, Value::Number) => Value::Number,
        (Value::Made(made), Value::Number) => Value::Made(Made {
            offset: moved(body, made, second, false),
            ..made
        }),
        (Value::Number, Value::Made(made)) => Value::Made(Made {
            offset: moved(body, made, first, false),
            ..made
        }),
        _ => Value::Unknown,
    }
}

/// The distance of an address from its object, after a number was added to it, or taken from it.
fn moved(body: &Body, made: Made, by: Reg, back: bool) -> Option<i64> {
    let bits = body.constant(by.number)?;
    let by = match by.width {
        Width::B32 => i64::from(bits as u32 as i32),
        Width::B64 => bits as u64 as i64,
        Width::Pred | Width::B16 | Width::B128 => return None,
    };
    match back {
        false => made.offset?.checked_add(by),
        true => made.offset?.checked_sub(by),
    }
}
