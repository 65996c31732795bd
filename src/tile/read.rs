//! Bytecode → [`Module`] (CUDA Tile IR Reference, Binary Format).
//!
//! What is read has values, types and blocks that exist, regions where operations have them, and an end to each block. Whether the
//! types of operands go together is seen when an operation is carried out: it is one look at a whole tile.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use super::bytes::{Bytes, Strings};
use super::debug::{Debug, Line};
use super::error::Error;
use super::op::{Attribute, Code, Layout, Operand};
use super::types::{Element, TileType, Type, Types};
use super::value::{Data, Tile, mask};

pub struct Module {
    /// Of the bytecode's version, 13.`minor`.
    pub minor: u8,
    pub entries: Vec<Entry>,
    pub globals: Vec<Global>,
    pub types: Types,
}

impl std::fmt::Debug for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.entries.iter().map(|entry| &*entry.name).collect();
        write!(f, "Tile IR 13.{} of {names:?}", self.minor)
    }
}

/// A kernel.
pub struct Entry {
    pub name: Arc<str>,
    /// Scalars, each.
    pub parameters: Vec<Arc<TileType>>,
    /// The first one is its body.
    pub blocks: Vec<Block>,
    /// How many values there are at a time.
    pub values: usize,
    /// Where it reaches out of the tile block; the first one is the entry itself, which does not.
    pub sites: Vec<Site>,
}

/// Operations of one kind, from one place in the source.
pub struct Site {
    /// `None`: the entry itself.
    pub operation: Option<Code>,
    /// Innermost first: a line, then where its function was inlined, and so on. Empty: the module does not say.
    pub lines: Box<[Line]>,
}

/// A variable in memory.
pub struct Global {
    pub name: Arc<str>,
    pub align: u64,
    pub value: Tile,
}

#[derive(Default)]
pub struct Block {
    /// The values that are its arguments, from this one on.
    pub first_argument: u32,
    pub arguments: u32,
    pub ops: Vec<Op>,
}

pub struct Op {
    pub code: Code,
    /// Its results, from this value on, and their types.
    pub first_result: u32,
    pub results: Box<[u32]>,
    pub flags: u64,
    pub attributes: Box<[Given]>,
    /// Values, and where each of the table's operands has its own among them.
    pub operands: Box<[u32]>,
    groups: [u32; 6],
    pub regions: Box<[u32]>,
    /// Which one of the entry's sites it is, if it reaches out.
    pub site: Option<u32>,
}

/// An attribute as it was given.
#[derive(Clone, Debug)]
pub enum Given {
    Nothing,
    Number(u64),
    Text(Arc<str>),
    List(Box<[i64]>),
    Tile(Arc<Tile>),
}

impl Op {
    /// The values of an operand of the table.
    pub fn group(&self, at: usize) -> &[u32] {
        let ends = |at: usize| self.groups.get(at).map_or(self.operands.len(), |&end| end as usize);
        &self.operands[ends(at)..ends(at + 1)]
    }

    pub fn number(&self, at: usize) -> u64 {
        match self.attributes.get(at) {
            Some(Given::Number(number)) => *number,
            _ => 0,
        }
    }

    pub fn text(&self, at: usize) -> &str {
        match self.attributes.get(at) {
            Some(Given::Text(text)) => text,
            _ => "",
        }
    }

    pub fn flag(&self, bit: u32) -> bool {
        self.flags >> bit & 1 != 0
    }
}

/// Bytes of all constants.
const MOST_CONSTANTS: usize = 256 << 20;
/// Blocks within one another, at most.
const DEEPEST: u32 = 200;
/// The last minor version that is known here.
const NEWEST: u8 = 5;

/// Reads all of it.
///
/// # Errors
/// It is malformed, or has something that is not carried out here.
pub fn read(bytes: &[u8]) -> Result<Module, Error> {
    let mut all = Bytes::new(bytes, 0);
    if all.array()? != super::MAGIC {
        return Err(all.wrong("it does not begin as Tile IR does"));
    }
    let (major, minor) = (all.byte()?, all.byte()?);
    let _tag: [u8; 2] = all.array()?;
    if major != 13 || !(1..=NEWEST).contains(&minor) {
        return Err(Error::Unsupported {
            what: format!("version {major}.{minor}, of 13.1 to 13.{NEWEST},"),
        });
    }
    let mut sections: [Option<Bytes<'_>>; 8] = Default::default();
    loop {
        let id = all.byte()?;
        let (number, aligned) = (id & 0x7f, id & 0x80 != 0);
        if number == 0 {
            break;
        }
        let length = all.number()?;
        if aligned {
            let to = all.number()?;
            if !to.is_power_of_two() || to > 1 << 20 {
                return Err(all.wrong(format!("a section aligned to {to}")));
            }
            all.align(to as usize)?;
        }
        let section = all.part(usize::try_from(length).unwrap_or(usize::MAX))?;
        match sections.get_mut(usize::from(number)) {
            Some(place @ None) => *place = Some(section),
            _ => return Err(section.wrong(format!("section {number}, once more or unknown"))),
        }
    }
    let [_, strings, functions, debug, constants, types, globals, _producer] = sections;
    let types = match types {
        Some(types) => Types::read(types, minor)?,
        None => return Err(all.wrong("no types")),
    };
    let reader = Reader {
        bytes: Cell::new(0),
        minor,
        strings: Strings::of(strings)?,
        debug: debug.map(Debug::read).transpose()?,
        constants: match constants {
            Some(section) => section.table(8)?.iter().map(Bytes::rest).collect(),
            None => Vec::new(),
        },
        types,
    };
    let globals = globals.map_or(Ok(Vec::new()), |section| reader.globals(section))?;
    let entries = match functions {
        Some(functions) => reader.entries(functions)?,
        None => return Err(all.wrong("no functions")),
    };
    Ok(Module {
        minor,
        entries,
        globals,
        types: reader.types,
    })
}

struct Reader<'a> {
    /// Bytes of the constants that have been read: one element may stand for a whole tile.
    bytes: Cell<usize>,
    minor: u8,
    strings: Strings,
    debug: Option<Debug<'a>>,
    constants: Vec<&'a [u8]>,
    types: Types,
}

/// An entry while it is read.
struct Body {
    blocks: Vec<Block>,
    /// Values that can be named.
    known: usize,
    most: usize,
    depth: u32,
    /// The function's number in the debug information, and operations so far.
    function: u64,
    ops: usize,
    /// What each site is of: a number of the debug information, and the kind of operation.
    sites: Vec<(u64, Option<Code>)>,
    site_numbers: HashMap<(u64, Code), u32>,
}

impl Reader<'_> {
    fn text(&self, bytes: &mut Bytes<'_>) -> Result<Arc<str>, Error> {
        self.strings.read(bytes)
    }

    /// The number of the next operation in the debug information; 0: there is none.
    fn place(&self, body: &mut Body, bytes: &Bytes<'_>) -> Result<u64, Error> {
        let at = body.ops;
        body.ops += 1;
        match &self.debug {
            Some(debug) => debug.number(body.function, at, bytes),
            None => Ok(0),
        }
    }

    fn lines(&self, place: u64, bytes: &Bytes<'_>) -> Result<Box<[Line]>, Error> {
        match &self.debug {
            Some(debug) => debug.lines(place, &self.strings, bytes),
            None => Ok(Box::default()),
        }
    }

    fn constant(&self, bytes: &mut Bytes<'_>, ty: u32) -> Result<Arc<Tile>, Error> {
        let index = bytes.index()? as usize;
        let ty = self.types.tile(ty, bytes)?;
        let Some(entry) = self.constants.get(index) else {
            return Err(bytes.wrong(format!("constant {index}, of {}", self.constants.len())));
        };
        let mut entry = Bytes::new(entry, 0);
        let length = entry.count()?;
        let raw = entry.take(length)?;
        self.bytes
            .set(self.bytes.get() + ty.len() * ty.element.bytes() as usize);
        if self.bytes.get() > MOST_CONSTANTS {
            return Err(Error::Unsupported {
                what: format!("more than {} MiB of constants", MOST_CONSTANTS >> 20),
            });
        }
        match elements(ty, raw) {
            Some(data) => Ok(Arc::new(Tile::of(ty, data))),
            None => Err(bytes.wrong(format!("{} bytes for a constant of type {ty}", raw.len()))),
        }
    }

    fn globals(&self, mut section: Bytes<'_>) -> Result<Vec<Global>, Error> {
        let count = section.count()?;
        let mut globals = Vec::new();
        for _ in 0..count {
            let name = self.text(&mut section)?;
            let ty = section.index()?;
            let value = self.constant(&mut section, ty)?;
            let align = section.number()?;
            if self.minor >= 3 {
                // Who may see it, and whether it is constant.
                section.number()?;
                section.number()?;
            }
            if align != 0 && (!align.is_power_of_two() || align > 1 << 20) {
                return Err(section.wrong(format!("`{name}` is aligned to {align}")));
            }
            globals.push(Global {
                name,
                align: align.max(value.element.bytes().into()),
                value: Tile::clone(&value),
            });
        }
        Ok(globals)
    }

    fn entries(&self, mut section: Bytes<'_>) -> Result<Vec<Entry>, Error> {
        let count = section.count()?;
        (0..count).map(|_| self.entry(&mut section)).collect()
    }

    fn entry(&self, section: &mut Bytes<'_>) -> Result<Entry, Error> {
        let name = self.text(section)?;
        let signature = section.index()?;
        let flags = section.byte()?;
        let function = section.number()?;
        if flags & 2 == 0 {
            return Err(Error::Unsupported {
                what: format!("`{name}`, a function that is no kernel,"),
            });
        }
        if flags & 4 != 0 || self.minor >= 5 {
            self.tagged(section, 0)?;
        }
        if self.minor >= 5 {
            self.tagged(section, 0)?;
        }
        let length = section.count()?;
        let mut bytes = section.part(length)?;
        let Type::Function { parameters } = self.types.get(signature, section)? else {
            return Err(section.wrong(format!("`{name}` is of type {signature}, which is no function")));
        };
        let parameters: Vec<_> = parameters
            .iter()
            .map(|&ty| self.types.tile(ty, section).cloned())
            .collect::<Result<_, _>>()?;
        if let Some(large) = parameters.iter().find(|ty| !ty.shape.is_empty()) {
            return Err(section.wrong(format!("`{name}` has a parameter of type {large}")));
        }
        let mut body = Body {
            blocks: vec![Block {
                arguments: parameters.len() as u32,
                ..Block::default()
            }],
            known: parameters.len(),
            most: parameters.len(),
            depth: 0,
            function,
            ops: 0,
            sites: Vec::new(),
            site_numbers: HashMap::new(),
        };
        let own = self.place(&mut body, &bytes)?;
        body.sites.push((own, None));
        while !bytes.is_empty() {
            let op = self.op(&mut bytes, &mut body)?;
            body.blocks[0].ops.push(op);
        }
        self.must_end(&bytes, &body.blocks[0])?;
        let site = |&(place, operation): &(u64, Option<Code>)| -> Result<Site, Error> {
            let lines = self.lines(place, &bytes)?;
            Ok(Site { operation, lines })
        };
        Ok(Entry {
            name,
            parameters,
            sites: body.sites.iter().map(site).collect::<Result<_, _>>()?,
            blocks: body.blocks,
            values: body.most,
        })
    }

    fn must_end(&self, bytes: &Bytes<'_>, block: &Block) -> Result<(), Error> {
        let ends: Vec<bool> = block.ops.iter().map(|op| op.code.layout().ends).collect();
        match ends.split_last() {
            Some((true, before)) if !before.contains(&true) => Ok(()),
            _ => Err(bytes.wrong("a block that does not end with what ends blocks")),
        }
    }

    fn block(&self, bytes: &mut Bytes<'_>, body: &mut Body) -> Result<u32, Error> {
        let number = body.blocks.len();
        body.blocks.push(Block::default());
        let outside = body.known;
        let arguments = bytes.count()?;
        for _ in 0..arguments {
            let ty = bytes.index()?;
            self.types.get(ty, bytes)?;
        }
        body.define(arguments);
        let mut block = Block {
            first_argument: outside as u32,
            arguments: arguments as u32,
            ops: Vec::new(),
        };
        let count = bytes.count()?;
        for _ in 0..count {
            block.ops.push(self.op(bytes, body)?);
        }
        self.must_end(bytes, &block)?;
        body.known = outside;
        body.blocks[number] = block;
        Ok(number as u32)
    }

    fn op(&self, bytes: &mut Bytes<'_>, body: &mut Body) -> Result<Op, Error> {
        let number = bytes.number()?;
        let Some(code) = Code::of(number) else {
            return Err(Error::Unsupported {
                what: format!("operation {number:#x}"),
            });
        };
        let place = self.place(body, bytes)?;
        let layout = code.layout();
        if layout.since > self.minor {
            return Err(bytes.wrong(format!("`{}` in bytecode 13.{}", layout.name, self.minor)));
        }
        if !is_carried_out(code) {
            return Err(Error::Unsupported {
                what: format!("`{}`", layout.name),
            });
        }
        let results = match layout.results {
            Some(count) => usize::from(count),
            None => bytes.count()?,
        };
        let results: Box<[u32]> = (0..results).map(|_| bytes.index()).collect::<Result<_, _>>()?;
        for &ty in &results {
            self.types.get(ty, bytes)?;
        }
        let flags = match layout.flags {
            1.. if self.minor >= layout.flags => bytes.number()?,
            _ => 0,
        };
        let mut bit = 0;
        let mut next = |optional: bool| {
            let there = !optional || flags >> bit & 1 != 0;
            bit += u32::from(optional);
            there
        };
        let mut attributes = Vec::new();
        for written in layout.attributes {
            attributes.push(match self.minor >= written.since && next(written.optional) {
                true => self.attribute(bytes, written.attribute, &results)?,
                false => Given::Nothing,
            });
        }
        let (operands, groups) = self.operands(bytes, layout, body.known, &mut next)?;
        let mut op = Op {
            code,
            first_result: 0,
            results,
            flags,
            attributes: attributes.into(),
            operands,
            groups,
            regions: Box::default(),
            site: code.reaches_out().then(|| body.site(place, code)),
        };
        if layout.regions > 0 {
            op.regions = self.regions(bytes, layout, body)?;
        }
        op.first_result = body.known as u32;
        body.define(op.results.len());
        Ok(op)
    }

    fn operands(
        &self,
        bytes: &mut Bytes<'_>,
        layout: &Layout,
        known: usize,
        next: &mut dyn FnMut(bool) -> bool,
    ) -> Result<(Box<[u32]>, [u32; 6]), Error> {
        let mut operands = Vec::new();
        let mut groups = [u32::MAX; 6];
        let mut take = |bytes: &mut Bytes<'_>, count: usize| -> Result<u32, Error> {
            let begins = operands.len() as u32;
            for _ in 0..count {
                let value = bytes.index()?;
                if value as usize >= known {
                    return Err(bytes.wrong(format!("value {value}, of {known}")));
                }
                operands.push(value);
            }
            Ok(begins)
        };
        match layout.operands {
            None => {
                let count = bytes.count()?;
                groups[0] = take(bytes, count)?;
            }
            Some(kinds) => {
                for (kind, begins) in kinds.iter().zip(&mut groups) {
                    let count = match kind {
                        Operand::One => 1,
                        Operand::Maybe => usize::from(next(true)),
                        Operand::Many => bytes.count()?,
                    };
                    *begins = take(bytes, count)?;
                }
            }
        }
        let groups = groups.map(|begins| begins.min(operands.len() as u32));
        Ok((operands.into(), groups))
    }

    fn regions(&self, bytes: &mut Bytes<'_>, layout: &Layout, body: &mut Body) -> Result<Box<[u32]>, Error> {
        body.depth += 1;
        if body.depth > DEEPEST {
            return Err(Error::Unsupported {
                what: format!("more than {DEEPEST} blocks within each other"),
            });
        }
        let count = bytes.count()?;
        if count != usize::from(layout.regions) {
            return Err(bytes.wrong(format!("`{}` with {count} regions", layout.name)));
        }
        let mut regions = Vec::new();
        for _ in 0..count {
            match bytes.count()? {
                // An `if` without `else`.
                0 if layout.regions == 2 => {}
                1 => regions.push(self.block(bytes, body)?),
                blocks => return Err(bytes.wrong(format!("`{}` with {blocks} blocks", layout.name))),
            }
        }
        if regions.is_empty() {
            return Err(bytes.wrong(format!("`{}` without a block", layout.name)));
        }
        body.depth -= 1;
        Ok(regions.into())
    }

    fn attribute(&self, bytes: &mut Bytes<'_>, attribute: Attribute, results: &[u32]) -> Result<Given, Error> {
        Ok(match attribute {
            Attribute::Word | Attribute::Number => Given::Number(bytes.number()?),
            Attribute::Bool => Given::Number(u64::from(bytes.byte()? != 0)),
            Attribute::Text => Given::Text(self.text(bytes)?),
            Attribute::List => Given::List(bytes.integers(4)?.into()),
            Attribute::Bounds => {
                let count = bytes.count()?;
                bytes.take(count)?;
                Given::Nothing
            }
            Attribute::Constant => match results {
                [ty] => Given::Tile(self.constant(bytes, *ty)?),
                _ => return Err(bytes.wrong("a constant of no type")),
            },
            Attribute::Predicate => {
                self.tagged(bytes, 0)?;
                Given::Nothing
            }
            Attribute::Identities => {
                let count = bytes.count()?;
                for _ in 0..count {
                    self.tagged(bytes, 0)?;
                }
                Given::Nothing
            }
            Attribute::Hints => {
                self.dictionary(bytes, 0)?;
                Given::Nothing
            }
        })
    }

    /// Passes over an attribute that says what it is: hints, promises, and the identities of folds, which no fold here needs.
    fn tagged(&self, bytes: &mut Bytes<'_>, depth: u32) -> Result<(), Error> {
        if depth > DEEPEST {
            return Err(bytes.wrong("attributes too deep within each other"));
        }
        let element = |bytes: &mut Bytes<'_>| -> Result<Element, Error> {
            let ty = bytes.index()?;
            match self.types.get(ty, bytes)? {
                Type::Element(element) => Ok(*element),
                _ => Err(bytes.wrong(format!("type {ty} is no number"))),
            }
        };
        match bytes.number()? {
            1 => match element(bytes)? {
                Element::I1 => bytes.byte().map(drop),
                _ => bytes.number().map(drop),
            },
            2 => match element(bytes)?.bits() {
                ..=8 => bytes.byte().map(drop),
                _ => bytes.number().map(drop),
            },
            3 => bytes.byte().map(drop),
            4 => bytes.number().map(drop),
            5 => self.text(bytes).map(drop),
            6 => {
                let count = bytes.count()?;
                (0..count).try_for_each(|_| self.tagged(bytes, depth + 1))
            }
            8 => {
                bytes.number()?;
                self.bounds(bytes)
            }
            9 => bytes.integers(8).map(drop),
            10 | 11 => self.dictionary(bytes, depth + 1),
            12 => self.bounds(bytes),
            other => Err(bytes.wrong(format!("an attribute of kind {other}"))),
        }
    }

    /// Two numbers, of which a byte says whether they are there.
    fn bounds(&self, bytes: &mut Bytes<'_>) -> Result<(), Error> {
        let there = bytes.byte()?;
        for bit in [1, 2] {
            if there & bit != 0 {
                bytes.signed()?;
            }
        }
        Ok(())
    }

    fn dictionary(&self, bytes: &mut Bytes<'_>, depth: u32) -> Result<(), Error> {
        let count = bytes.count()?;
        (0..count).try_for_each(|_| {
            self.text(bytes)?;
            self.tagged(bytes, depth + 1)
        })
    }
}

impl Body {
    fn define(&mut self, values: usize) {
        self.known += values;
        self.most = self.most.max(self.known);
    }

    fn site(&mut self, place: u64, operation: Code) -> u32 {
        let next = self.sites.len() as u32;
        let number = *self.site_numbers.entry((place, operation)).or_insert(next);
        if number == next {
            self.sites.push((place, Some(operation)));
        }
        number
    }
}

/// What is left to do: memory of a tile block's own, and tensors that several devices have in common.
fn is_carried_out(code: Code) -> bool {
    !matches!(
        code,
        Code::Alloca | Code::MultimemLoadReduceView | Code::MultimemReduceView | Code::MultimemStoreView
    )
}

/// The elements of a constant: all of them, or one that stands for all. Bits of `i1` are packed, if there are several.
fn elements(ty: &TileType, raw: &[u8]) -> Option<Data> {
    let (element, len) = (ty.element, ty.len());
    if element == Element::Pointer {
        return None;
    }
    if element == Element::I1 {
        return match raw {
            [all] if len == 1 || *all == 0 || *all == 0xff => Some(Data::splat(element, len, u64::from(*all != 0))),
            _ if raw.len() == len.div_ceil(8) => Some(Data::collect(
                element,
                (0..len).map(|at| u64::from(raw[at / 8] >> (at % 8) & 1)),
            )),
            _ => None,
        };
    }
    // Of TF32 the 19 bits that count.
    let (bytes, shift) = match element {
        Element::Tf32 => (3, 13),
        _ => (element.bytes() as usize, 0),
    };
    let read = |raw: &[u8]| {
        let bits = raw.iter().rev().fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
        bits << shift & mask(element.bits())
    };
    match raw.len() {
        one if one == bytes => Some(Data::splat(element, len, read(raw))),
        all if all == bytes * len => Some(Data::collect(element, raw.chunks_exact(bytes).map(read))),
        _ => None,
    }
}
