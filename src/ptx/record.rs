//! Structures and unions of PTX 1.x (PTX ISA 1.1, 5.3.4 and 5.3.5), laid out while the text is read: a variable of such a
//! type becomes an array of bytes and a member an offset from it, so that nobody behind the reader knows of structures.
//!
//! Members are laid out as in C: each at its own alignment, in a union all at the start.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::ast::{Address, AddressBase, Expr, Init, Instruction, Name, Operand, Span, Type};
use super::constant::as_f64;
use super::lexer::{Kind, Lexer, Token};
use super::rules;
use crate::isa;

/// Structures within structures.
const MAX_DEPTH: usize = 64;
/// Members of a structure.
const MAX_MEMBERS: usize = 1 << 12;
/// Bytes of a structure.
const MAX_SIZE: u64 = 1 << 32;

#[derive(Debug, PartialEq)]
pub struct Record {
    pub size: u64,
    pub align: u64,
    union: bool,
    fields: Vec<Field>,
}

#[derive(Debug, PartialEq)]
struct Field {
    /// `None`: an anonymous structure or union, whose members count as the outer one's.
    name: Option<String>,
    offset: u64,
    what: What,
    /// Elements of each dimension of an array.
    dims: Vec<u64>,
}

#[derive(Clone, Debug, PartialEq)]
enum What {
    /// A scalar or, with more than one lane, a vector.
    Scalar(Type, u8),
    Record(Arc<Record>),
}

impl What {
    fn size(&self) -> u64 {
        match self {
            What::Scalar(ty, lanes) => size_of(*ty) * room(*lanes),
            What::Record(record) => record.size,
        }
    }
    fn align(&self) -> u64 {
        match self {
            What::Scalar(..) => self.size(),
            What::Record(record) => record.align,
        }
    }
}

fn size_of(ty: Type) -> u64 {
    u64::from(rules::bits(ty).div_ceil(8))
}

/// A vector of three takes the room of one of four.
fn room(lanes: u8) -> u64 {
    if lanes == 3 { 4 } else { u64::from(lanes) }
}

/// Structures by name, and variables that have one of them as their type.
#[derive(Clone, Debug, Default)]
pub struct Records {
    pub types: HashMap<Arc<str>, Arc<Record>>,
    pub variables: HashMap<Arc<str>, Arc<Record>>,
    /// Bytes that initialisers may still set: what few words spread over a large structure is no more than the text can
    /// account for.
    pub room: usize,
}

type Outcome<T> = Result<T, (Span, String)>;

/// The bytes that an initialiser sets, by place.
type Bytes = BTreeMap<u64, Expr>;

/// Reads definitions.
struct Reader<'a> {
    text: &'a str,
    tokens: &'a [Token],
    at: usize,
    end: Span,
    records: &'a Records,
}

/// The structure (or union) whose members stand between the braces at `span`, braces included.
///
/// # Errors
/// What cannot be read, and where.
pub fn define(text: &str, span: Span, union: bool, records: &Records) -> Outcome<Record> {
    let (start, end) = (span.start as usize + 1, span.end as usize - 1);
    let tokens: Vec<Token> = Lexer::new(text, start, end).collect();
    let mut reader = Reader {
        text,
        tokens: &tokens,
        at: 0,
        end: Span {
            start: span.end - 1,
            end: span.end,
        },
        records,
    };
    let record = reader.members(union, 0)?;
    match reader.peek() {
        None => Ok(record),
        Some(token) => reader.wrong(token.span, "a member of a structure is expected"),
    }
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<Token> {
        self.tokens.get(self.at).copied()
    }
    fn here(&self) -> Span {
        self.peek().map_or(self.end, |token| token.span)
    }
    fn word(&self, token: Token) -> &'a str {
        token.text(self.text)
    }
    fn accept(&mut self, kind: Kind) -> Option<Token> {
        let token = self.peek().filter(|token| token.kind == kind)?;
        self.at += 1;
        Some(token)
    }
    fn wrong<T>(&self, span: Span, message: impl Into<String>) -> Outcome<T> {
        Err((span, message.into()))
    }

    /// Members up to a `}` or the end.
    fn members(&mut self, union: bool, depth: usize) -> Outcome<Record> {
        if depth > MAX_DEPTH {
            return self.wrong(self.here(), "structures are nested too deeply");
        }
        let mut record = Record {
            size: 0,
            align: 1,
            union,
            fields: Vec::new(),
        };
        while let Some(token) = self.peek().filter(|token| token.kind != Kind::CloseBrace) {
            let (what, behind_type, align) = self.kind(depth)?;
            let inner = matches!(what, What::Record(_));
            let mut first = true;
            loop {
                let name = self.accept(Kind::Name);
                let name = name.map(|name| self.word(name).to_owned());
                if name.is_none() && !(inner && first) {
                    return self.wrong(self.here(), "a member needs a name");
                }
                let dims = [behind_type.clone(), self.dims()?].concat();
                self.place(&mut record, name, what.clone(), &dims, align, token.span)?;
                first = false;
                if self.accept(Kind::Comma).is_none() {
                    break;
                }
            }
            // The last `;` may be left out.
            if self.accept(Kind::Semicolon).is_none() && self.peek().is_some_and(|next| next.kind != Kind::CloseBrace) {
                return self.wrong(self.here(), "expected `;` behind a member");
            }
        }
        record.size = record.size.next_multiple_of(record.align);
        Ok(record)
    }

    /// `.align 8 .v4 .f32`, `.f32[4]`, `somestruct`, `.union { … }`; dimensions behind the type are the array's.
    fn kind(&mut self, depth: usize) -> Outcome<(What, Vec<u64>, u64)> {
        let (mut lanes, mut align) = (1, 1);
        loop {
            let Some(token) = self.peek() else {
                return self.wrong(self.end, "a type is expected");
            };
            self.at += 1;
            let word = self.word(token);
            let what = match (token.kind, word) {
                (Kind::Word, ".align") => {
                    align = self.number()?;
                    if !align.is_power_of_two() || align > 1 << 20 {
                        return self.wrong(token.span, format!("{align} is no alignment"));
                    }
                    continue;
                }
                (Kind::Word, ".v2") => {
                    lanes = 2;
                    continue;
                }
                (Kind::Word, ".v3") => {
                    lanes = 3;
                    continue;
                }
                (Kind::Word, ".v4") => {
                    lanes = 4;
                    continue;
                }
                (Kind::Word, ".struct" | ".union") => {
                    // A tag within is no type of its own to others.
                    self.accept(Kind::Name);
                    if self.accept(Kind::OpenBrace).is_none() {
                        return self.wrong(self.here(), "expected `{`");
                    }
                    let record = self.members(word == ".union", depth + 1)?;
                    if self.accept(Kind::CloseBrace).is_none() {
                        return self.wrong(self.here(), "expected `}`");
                    }
                    What::Record(Arc::new(record))
                }
                (Kind::Word, _) => match Type::from_word(&word[1..]).filter(|&ty| ty != Type::Pred) {
                    Some(ty) => What::Scalar(ty, lanes),
                    None => return self.wrong(token.span, format!("`{word}` is no type of a member")),
                },
                (Kind::Name, _) => match self.records.types.get(word) {
                    Some(record) => What::Record(record.clone()),
                    None => return self.wrong(token.span, format!("there is no structure `{word}`")),
                },
                _ => return self.wrong(token.span, "a type is expected"),
            };
            return Ok((what, self.dims()?, align));
        }
    }

    fn number(&mut self) -> Outcome<u64> {
        let here = self.here();
        let Some(token) = self.accept(Kind::Number) else {
            return self.wrong(here, "an integer is expected");
        };
        match super::constant::number(self.word(token), token.span) {
            Ok(Expr::Int { bits, .. }) => Ok(bits),
            _ => self.wrong(here, "an integer is expected"),
        }
    }

    fn dims(&mut self) -> Outcome<Vec<u64>> {
        let mut dims = Vec::new();
        while self.accept(Kind::OpenBracket).is_some() {
            dims.push(self.number()?);
            if self.accept(Kind::CloseBracket).is_none() {
                return self.wrong(self.here(), "expected `]`");
            }
        }
        Ok(dims)
    }

    fn place(
        &self,
        record: &mut Record,
        name: Option<String>,
        what: What,
        dims: &[u64],
        align: u64,
        span: Span,
    ) -> Outcome<()> {
        if record.fields.len() == MAX_MEMBERS {
            return self.wrong(span, "the structure has too many members");
        }
        if let Some(name) = &name
            && record.find(name).is_some()
        {
            return self.wrong(span, format!("a member `{name}` is there already"));
        }
        let bytes = dims.iter().try_fold(what.size(), |bytes, &dim| bytes.checked_mul(dim));
        let align = align.max(what.align());
        let offset = if record.union {
            0
        } else {
            record.size.next_multiple_of(align)
        };
        let Some(end) = bytes
            .and_then(|bytes| offset.checked_add(bytes))
            .filter(|&end| end <= MAX_SIZE)
        else {
            return self.wrong(span, "the structure is too large");
        };
        record.size = record.size.max(end);
        record.align = record.align.max(align);
        record.fields.push(Field {
            name,
            offset,
            what,
            dims: dims.to_vec(),
        });
        Ok(())
    }
}

impl Record {
    /// The member's offset and the field itself.
    fn find(&self, name: &str) -> Option<(u64, &Field)> {
        self.fields.iter().find_map(|field| match (&field.name, &field.what) {
            (Some(own), _) if own == name => Some((field.offset, field)),
            (None, What::Record(inner)) => {
                let (offset, found) = inner.find(name)?;
                Some((field.offset + offset, found))
            }
            _ => None,
        })
    }

    /// Offset of `in.a` or `v.x`, and bytes of one element there.
    pub fn member(&self, path: &str) -> Option<(u64, u64)> {
        let mut record = self;
        let mut offset = 0;
        let mut parts = path.split('.');
        loop {
            let (at, field) = record.find(parts.next()?)?;
            offset += at;
            match (&field.what, parts.clone().next()) {
                (what, None) => return Some((offset, what.size())),
                (What::Record(inner), Some(_)) if field.dims.is_empty() => record = inner,
                (What::Scalar(ty, lanes), Some(lane)) if *lanes > 1 && field.dims.is_empty() => {
                    let lane = "xyzw".find(lane).or("rgba".find(lane)).or("0123".find(lane))?;
                    let one = size_of(*ty);
                    return (lane < usize::from(*lanes) && parts.count() == 1)
                        .then_some((offset + lane as u64 * one, one));
                }
                _ => return None,
            }
        }
    }

    /// The bytes of one structure (5.3.5: "Structures take a list of values that matches the fields"), of a union by its
    /// first member; zeros at the end left out. `room` is what may still be set, and becomes less.
    ///
    /// # Errors
    /// What does not fit.
    pub fn bytes(&self, init: &Init, span: Span, room: &mut usize) -> Outcome<Init> {
        let mut set = Bytes::new();
        self.fill(init, 0, &mut set, span)?;
        let count = set.last_key_value().map_or(0, |(last, _)| *last as usize + 1);
        let Some(left) = room.checked_sub(count) else {
            return Err((span, "the structure is too large for an initialiser".to_owned()));
        };
        *room = left;
        let mut byte = |at: usize| {
            let zero = Expr::Int {
                bits: 0,
                unsigned: false,
                span,
            };
            Init::Value(set.remove(&(at as u64)).unwrap_or(zero))
        };
        Ok(Init::List((0..count).map(&mut byte).collect()))
    }

    fn fill(&self, init: &Init, base: u64, out: &mut Bytes, span: Span) -> Outcome<()> {
        let Init::List(list) = init else {
            return Err((span, "a structure is initialised by a list in braces".to_owned()));
        };
        let fields = if self.union {
            1.min(self.fields.len())
        } else {
            self.fields.len()
        };
        if list.len() > fields {
            return Err((
                span,
                "the initialiser has more values than the structure has members".to_owned(),
            ));
        }
        for (field, init) in self.fields.iter().zip(list) {
            let mut dims = field.dims.clone();
            if let What::Scalar(_, lanes) = field.what
                && lanes > 1
            {
                dims.push(u64::from(lanes));
            }
            field.fill(init, &dims, base + field.offset, out, span)?;
        }
        Ok(())
    }
}

impl Field {
    fn fill(&self, init: &Init, dims: &[u64], base: u64, out: &mut Bytes, span: Span) -> Outcome<()> {
        let one = match &self.what {
            What::Scalar(ty, _) => size_of(*ty),
            What::Record(record) => record.size,
        };
        let Some((&count, inner)) = dims.split_first() else {
            return match (&self.what, init) {
                (What::Record(record), init) => record.fill(init, base, out, span),
                (What::Scalar(ty, _), Init::Value(value)) => scalar(value, *ty, base, out, span),
                (What::Scalar(..), _) => Err((span, "a scalar member is initialised by one value".to_owned())),
            };
        };
        let Init::List(list) = init else {
            return Err((span, "an array is initialised by a list in braces".to_owned()));
        };
        if list.len() as u64 > count {
            return Err((
                span,
                "the initialiser has more values than the member has elements".to_owned(),
            ));
        }
        // The innermost dimension of a vector of three has the room of four.
        let stride: u64 = inner
            .iter()
            .map(|&dim| if dim == 3 && self.is_v3() { 4 } else { dim })
            .product::<u64>()
            * one;
        for (index, init) in list.iter().enumerate() {
            self.fill(init, inner, base + index as u64 * stride, out, span)?;
        }
        Ok(())
    }

    fn is_v3(&self) -> bool {
        matches!(self.what, What::Scalar(_, 3))
    }
}

/// A value of type `ty` as single bytes.
fn scalar(value: &Expr, ty: Type, base: u64, out: &mut Bytes, span: Span) -> Outcome<()> {
    let bytes = size_of(ty) as usize;
    let bits = match settled(value.clone(), ty) {
        Expr::Int { bits, .. } => bits,
        Expr::F32 { bits, .. } if bytes == 4 => u64::from(bits),
        Expr::F64 { bits, .. } if ty == Type::F64 => bits,
        Expr::F64 { bits, .. } if ty == Type::F32 => u64::from((f64::from_bits(bits) as f32).to_bits()),
        Expr::Symbol {
            name,
            offset,
            generic,
            mask: None,
            span,
        } if bytes >= 4 => {
            for at in 0..bytes.min(8) {
                let byte = Expr::Symbol {
                    name: name.clone(),
                    offset,
                    generic,
                    mask: Some(0xff << (8 * at)),
                    span,
                };
                out.insert(base + at as u64, byte);
            }
            return Ok(());
        }
        other => return Err((other.span(), format!("this is no value of a .{} member", ty.word()))),
    };
    for at in 0..bytes.min(8) {
        let byte = Expr::Int {
            bits: (bits >> (8 * at)) & 0xff,
            unsigned: false,
            span,
        };
        out.insert(base + at as u64, byte);
    }
    Ok(())
}

/// An initial value in the kind that its type has: PTX 1.x writes integers where floating-point values are meant (Table
/// 46), and has initialised `.f16` variables (5.3.5).
pub fn settled(value: Expr, ty: Type) -> Expr {
    let span = value.span();
    let double = |value: f64| Expr::F64 {
        bits: value.to_bits(),
        span,
    };
    match (&value, ty) {
        (Expr::Int { bits, unsigned, .. }, Type::F16 | Type::F32 | Type::F64) => {
            let number = if *unsigned { *bits as f64 } else { *bits as i64 as f64 };
            settled(double(number), ty)
        }
        (Expr::F64 { .. } | Expr::F32 { .. }, Type::F16) => Expr::Int {
            bits: u64::from(half::f16::from_f64(as_f64(&value).unwrap_or_default()).to_bits()),
            unsigned: false,
            span,
        },
        _ => value,
    }
}

impl Records {
    /// Members in an instruction's operands become offsets from their variables.
    ///
    /// # Errors
    /// A name that is no member.
    pub fn resolve(&self, instruction: &mut Instruction) -> Outcome<()> {
        // Outside of brackets only what reads memory takes `p.v[1]` for a place.
        let address = !isa::takes_addresses(&instruction.opcode.text);
        instruction
            .operands
            .iter_mut()
            .try_for_each(|operand| self.operand(operand, address))
    }

    fn member(&self, variable: &Name, path: &str, span: Span) -> Outcome<Option<(u64, u64)>> {
        let Some(record) = self.variables.get(&variable.text) else {
            return Ok(None);
        };
        match record.member(path) {
            Some(found) => Ok(Some(found)),
            None => Err((span, format!("`{}` has no member `{path}`", variable.text))),
        }
    }

    fn operand(&self, operand: &mut Operand, in_memory: bool) -> Outcome<()> {
        match operand {
            Operand::Name {
                name,
                select: select @ Some(_),
                offset,
            } => {
                let path = select.take().unwrap_or_else(|| name.clone());
                match self.member(name, &path.text, path.span)? {
                    Some((at, _)) => *offset = offset.wrapping_add(at as i64),
                    None => *select = Some(path),
                }
            }
            Operand::Address(address) => {
                if let Some((name, offset)) = self.address(address)?
                    && !in_memory
                    && address.index.is_none()
                {
                    *operand = Operand::Name {
                        name,
                        select: None,
                        offset,
                    };
                }
            }
            Operand::Vector(list, _) | Operand::Group(list, _) | Operand::Arguments(list, _) => {
                list.iter_mut().try_for_each(|one| self.operand(one, in_memory))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// `[p.x]`, `p.v[2]`: base and offset afterwards, if it was a member.
    fn address(&self, address: &mut Address) -> Outcome<Option<(Name, i64)>> {
        let AddressBase::Name(joined) = &address.base else {
            return Ok(None);
        };
        let (variable, path) = match joined.text.split_once('.') {
            Some((variable, path)) => (variable, Some(path)),
            None if address.subscript => (&*joined.text, None),
            None => return Ok(None),
        };
        let variable = Name {
            text: variable.into(),
            span: joined.span,
        };
        let found = match path {
            Some(path) => self.member(&variable, path, joined.span)?,
            // An element of an array of structures.
            None => self.variables.get(&variable.text).map(|record| (0, record.size)),
        };
        let Some((at, one)) = found else {
            return Ok(None);
        };
        if address.subscript {
            if address.index.is_some() && one != 1 {
                let message = "a member array is indexed by a constant; compute the address for anything else";
                return Err((address.span, message.to_owned()));
            }
            address.offset = address.offset.wrapping_mul(one as i64);
            address.subscript = address.index.is_some();
        }
        address.offset = address.offset.wrapping_add(at as i64);
        address.base = AddressBase::Name(variable.clone());
        Ok(Some((variable, address.offset)))
    }
}
