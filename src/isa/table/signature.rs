//! The operands of a syntax line, from the same notation as its opcode.
//!
//! A line lists operands as the manual does: `d, a, b{, c}`; `[a]` is an address, `d|p` and `d{|p}` a result with a
//! predicate, `{…}` optional. Behind a name stands what the operand is, where that does not follow from the name:
//!
//! ```text
//! d:wide            twice as wide as the instruction's type       a:1     has the opcode's second type
//! b:u32[0..255]     that type; a constant lies in the range       n:imm   is a constant (`imm~`: limits only warn)
//! d:v+              `.vN` elements; registers may be wider        d:_     may be thrown away with `_`
//! a:vid             a part of a register (video instructions)
//! e:b32!            a register, no constant; in braces or not     m:pointer  a register with an address, or a variable
//! t:label, l:list   a label; one of a `.branchtargets` list       a:&     a register, or a variable's address
//! c:pred?and/or     is there when the opcode has such a word, and only then
//! d:v~, f:f32~      of `.f32` and `.f16`, registers of any type of that size will do
//! [a:texref, c]     a texture and coordinates (a sampler may stand between); [a:texref] alone to ask about it
//! e:offset, e:gradient    coordinates: whole numbers, and changes of them
//! d:frag, b:2*u16   as many registers as `fragment.rs` says; two   r:b32=  is written, though not the first
//! [a]:shared        an address in that space; `tmem`: tensor memory
//! [map, x:frag]     several values in one pair of brackets         (a:u64|[b])  one or the other
//! ```
//!
//! A line may have two lists, with `or` between them. Of operands without a `:`, `p` and `q` are predicates,
//! `membermask` and `cache-policy` what the manual says; any other has the opcode's type, and where there are two, the
//! first operand has the first and the others the last.

use crate::isa::types::{Space, Type};

/// All ways to write the operands of a line, optional ones left out or not.
#[derive(Debug, Default)]
pub struct Signature {
    pub ways: Vec<Vec<Operand>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Operand {
    pub name: &'static str,
    pub kind: Kind,
    /// Words of the opcode, separated by `/`, one of which is there exactly when the operand is.
    pub when: Option<&'static str>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    Destination(Value),
    Source(Value),
    /// `[a]`
    Address(Place),
    /// `[a, b]`; those that have a `when` and lack its words are not there.
    Group(Vec<Operand>),
    /// `[a]` or `[a, c]` of textures, samplers and surfaces; whether there are coordinates.
    Handle(Type, bool),
    /// As many numbers as the coordinates have; whether they are floating-point.
    Coordinates(bool),
    /// A register, or the address of a variable.
    AddressOf(Ty),
    /// A constant; whether one outside of the limits is merely odd.
    Constant(Limits, bool),
    Label,
    /// The label of a `.branchtargets` list.
    Targets,
    /// `_`: there is no result.
    Sink,
    /// A part of a 32-bit register, chosen by a selector, perhaps with its sign changed.
    Video,
    /// A register with a generic address, or a variable.
    Pointer,
    /// Not described.
    Any,
}

/// Where an address lies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Place {
    /// In the next state space that the opcode names; generic when there is none.
    Opcode,
    Space(Space),
    /// In tensor memory, which has no variables and addresses of 32 bits.
    TensorMemory,
}

/// How many registers in braces.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Count {
    One,
    /// As many elements as the opcode's `.vN` says.
    Opcode,
    Exactly(u8),
    /// As [`super::fragment`] says, which knows the type as well.
    Fragment,
}

/// A value in registers, or a constant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Value {
    pub ty: Ty,
    /// Registers may be wider than the type (PTX ISA, Operand Size Exceeding Instruction-Type Size).
    pub wider: bool,
    pub count: Count,
    /// Registers of any type of the size hold `.f32` and `.f16`.
    pub loose: bool,
    /// `_` may stand for it.
    pub sink: bool,
    /// A constant may not.
    pub register: bool,
    /// A result with a predicate behind it: `d|p`.
    pub pair: Pair,
    pub limits: Limits,
}

impl Value {
    /// One value of this type.
    pub fn of(ty: Type) -> Value {
        Value {
            ty: Ty::Fixed(ty),
            wider: false,
            count: Count::One,
            loose: false,
            sink: false,
            register: false,
            pair: Pair::Never,
            limits: Limits::default(),
        }
    }
}

impl Value {
    /// The type that registers are held against.
    pub fn loosened(&self, ty: Type) -> Type {
        match ty {
            Type::F32 if self.loose => Type::B32,
            Type::F16 if self.loose => Type::B16,
            ty => ty,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pair {
    Never,
    Maybe,
    Always,
}

/// The type of an operand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ty {
    /// Number `n` of the opcode's.
    Of(u8),
    /// The first one where the operand is the first, the last one elsewhere.
    Usual,
    /// The integer type of twice the first one's width.
    Wide,
    Fixed(Type),
    /// An integer of 32 or 64 bits.
    Integer,
}

/// Which constants may stand for an operand, as written: `0..15`, `24..256/8` (in steps of 8), `4,8,16`; empty: all.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Limits(pub &'static str);

impl Limits {
    /// Whether a constant is among them.
    pub fn admit(self, value: u64) -> bool {
        let number = |text: &str| text.parse::<i64>().ok().map(|number| number as u64);
        if self.0.is_empty() {
            return true;
        }
        let Some((least, rest)) = self.0.split_once("..") else {
            return self.0.split(',').any(|one| number(one) == Some(value));
        };
        let (most, step) = rest.split_once('/').unwrap_or((rest, "1"));
        number(least).is_none_or(|least| value >= least)
            && number(most).is_none_or(|most| value <= most)
            && value.is_multiple_of(number(step).unwrap_or(1))
    }
}

impl std::fmt::Display for Limits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Some((least, rest)) = self.0.split_once("..") else {
            let list: Vec<&str> = self.0.split(',').collect();
            return match &list[..] {
                [one] => f.write_str(one),
                [most @ .., last] => write!(f, "{} or {last}", most.join(", ")),
                [] => Ok(()),
            };
        };
        let (most, step) = rest.split_once('/').unwrap_or((rest, ""));
        match (most, step) {
            ("", step) => write!(f, "a multiple of {step}"),
            (most, "") => write!(f, "{least} to {most}"),
            (most, step) => write!(f, "{least} to {most}, a multiple of {step}"),
        }
    }
}

/// Reads what stands behind the opcode of a syntax line.
pub(super) fn read(text: &'static str) -> Signature {
    let ways = text.split(" or ").flat_map(ways).collect();
    Signature { ways }
}

fn ways(text: &'static str) -> Vec<Vec<Operand>> {
    let mut ways: Vec<Vec<Operand>> = vec![Vec::new()];
    for (piece, optional) in pieces(text) {
        let mut longer = ways.clone();
        for one in split(piece) {
            let alternatives: Vec<&'static str> = match one.strip_prefix('(').and_then(|one| one.strip_suffix(')')) {
                Some(inner) => inner.split('|').collect(),
                None => vec![one],
            };
            let extended = alternatives.into_iter().flat_map(|one| {
                longer.iter().map(move |way| {
                    let mut way = way.clone();
                    way.push(operand(one, way.is_empty()));
                    way
                })
            });
            longer = extended.collect();
        }
        match optional {
            true => ways.extend(longer),
            false => ways = longer,
        }
    }
    ways
}

/// Splits at the braces of optional operands: `d, a{, b}, c` → (`d, a`, no), (`, b`, yes), (`, c`, no). Braces that hold
/// no comma belong to an operand.
fn pieces(text: &'static str) -> Vec<(&'static str, bool)> {
    let mut pieces = Vec::new();
    let mut rest = text.trim();
    while let Some(open) = rest.find("{,") {
        let close = rest[open..].find('}').map_or(rest.len(), |at| open + at);
        // `{, {!}c}` closes behind its inner braces.
        let close = match rest[open + 1..close].find('{') {
            Some(_) => rest[close + 1..].find('}').map_or(rest.len(), |at| close + 1 + at),
            None => close,
        };
        pieces.push((&rest[..open], false));
        pieces.push((&rest[open + 1..close], true));
        rest = rest.get(close + 1..).unwrap_or("");
    }
    pieces.push((rest, false));
    pieces
}

/// Splits at commas outside of brackets.
fn split(text: &'static str) -> impl Iterator<Item = &'static str> {
    let mut depth = 0;
    text.split(move |c| {
        match c {
            '[' | '(' => depth += 1,
            ']' | ')' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    })
    .map(str::trim)
    .filter(|one| !one.is_empty())
}

fn operand(text: &'static str, first: bool) -> Operand {
    if text.starts_with('[') {
        return bracketed(text);
    }
    let (text, when) = match text.split_once('?') {
        Some((text, when)) => (text, Some(when)),
        None => (text, None),
    };
    let named = |name, kind| Operand { name, kind, when };
    if text == "_" {
        return named(text, Kind::Sink);
    }
    let text = text.trim_start_matches("{!}").trim_start_matches("{-}");
    let (text, pair) = match (
        text.strip_suffix("|p}").or(text.strip_suffix("|q}")),
        text.strip_suffix("|p").or(text.strip_suffix("|q")),
    ) {
        (Some(text), _) => (text.trim_end_matches('{'), Pair::Maybe),
        (None, Some(text)) => (text, Pair::Always),
        (None, None) => (text, Pair::Never),
    };
    let (name, spec) = text.split_once(':').unwrap_or((text, ""));
    let (spec, limits) = match spec.split_once('[') {
        Some((spec, limits)) => (spec, Limits(limits.trim_end_matches(']'))),
        None => (spec, Limits::default()),
    };
    match spec {
        "imm" | "imm~" => return named(name, Kind::Constant(limits, spec.ends_with('~'))),
        "label" => return named(name, Kind::Label),
        "list" => return named(name, Kind::Targets),
        "vid" => return named(name, Kind::Video),
        "pointer" => return named(name, Kind::Pointer),
        "any" => return named(name, Kind::Any),
        "offset" => return named(name, Kind::Coordinates(false)),
        "gradient" => return named(name, Kind::Coordinates(true)),
        _ => {}
    }
    if let Some(ty) = spec.strip_prefix('&') {
        return named(name, Kind::AddressOf(type_of(ty, name)));
    }
    let ty = spec.trim_end_matches(['+', '_', '=', '!', '~']);
    let (count, ty) = match (ty.split_once('*'), ty.strip_suffix('v')) {
        (Some((count, ty)), _) => (Count::Exactly(count.parse().unwrap_or(1)), ty),
        (None, Some(ty)) => (Count::Opcode, ty),
        (None, None) if ty == "frag" => (Count::Fragment, ""),
        (None, None) => (Count::One, ty),
    };
    let value = Value {
        ty: type_of(ty, name),
        wider: spec.contains('+'),
        count,
        loose: spec.contains('~'),
        sink: spec.contains('_'),
        register: spec.contains('!'),
        pair,
        limits,
    };
    let result = first && matches!(name, "d" | "p" | "f" | "r" | "state") || spec.ends_with('=');
    let kind = if result {
        Kind::Destination(value)
    } else {
        Kind::Source(value)
    };
    let when = if name == "cache-policy" {
        Some("L2::cache_hint")
    } else {
        when
    };
    Operand { name, kind, when }
}

/// `[a]`, `[a]:space`, `[a, b]`
fn bracketed(text: &'static str) -> Operand {
    let (inside, place) = text.rsplit_once(']').unwrap_or((text, ""));
    let name = inside.trim_start_matches('[');
    let handle = |(_, rest): (_, &'static str)| {
        let (word, coordinates) = rest.split_once(',').map_or((rest, false), |(word, _)| (word, true));
        let opaque = [Type::TexRef, Type::SamplerRef, Type::SurfRef];
        let ty = Type::from_word(word).filter(|ty| opaque.contains(ty))?;
        Some(Kind::Handle(ty, coordinates))
    };
    if let Some(kind) = name.split_once(':').and_then(handle) {
        return Operand {
            name: text,
            kind,
            when: None,
        };
    }
    let kind = match place.trim_start_matches(':') {
        _ if name.contains(',') => Kind::Group(split(name).map(|one| operand(one, false)).collect()),
        "tmem" => Kind::Address(Place::TensorMemory),
        word => Kind::Address(Space::from_word(word).map_or(Place::Opcode, Place::Space)),
    };
    Operand { name, kind, when: None }
}

fn type_of(spec: &str, name: &str) -> Ty {
    match (spec, name) {
        ("", "p" | "q") => Ty::Fixed(Type::Pred),
        ("", "membermask") => Ty::Fixed(Type::U32),
        ("", "cache-policy") => Ty::Fixed(Type::U64),
        ("", _) => Ty::Usual,
        ("wide", _) => Ty::Wide,
        ("int", _) => Ty::Integer,
        (word, _) => match Type::from_word(word) {
            Some(ty) => Ty::Fixed(ty),
            None => Ty::Of(word.parse().unwrap_or(0)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(text: &'static str) -> Vec<usize> {
        read(text).ways.iter().map(Vec::len).collect()
    }

    #[test]
    fn lists_unfold() {
        assert_eq!(counts(""), [0]);
        assert_eq!(counts("d, a, b"), [3]);
        assert_eq!(counts("d, a{, b}, c"), [3, 4]);
        assert_eq!(counts("p{|q}, a, b{, {!}c:pred?and/or}"), [3, 4]);
        assert_eq!(counts("[dst], [src], n:imm[4,8,16]{, s}{, cache-policy}"), [3, 4, 4, 5]);
        let way = &read("[dst], n:imm[4,8,16]").ways[0];
        assert_eq!(way[1].kind, Kind::Constant(Limits("4,8,16"), false));
        let way = &read("d:v~{|p}, [a:texref, c]{, e:offset}").ways[1];
        assert_eq!(way[1].kind, Kind::Handle(Type::TexRef, true));
        assert_eq!(way[2].kind, Kind::Coordinates(false));
        assert_eq!(
            read("d, [a:surfref]").ways[0][1].kind,
            Kind::Handle(Type::SurfRef, false)
        );
    }

    #[test]
    fn limits_admit() {
        let admits = |text, value| Limits(text).admit(value);
        assert!(admits("0..15", 15) && !admits("0..15", 16));
        assert!(admits("24..256/8", 24) && !admits("24..256/8", 25) && !admits("24..256/8", 16));
        assert!(admits("0../32", 64) && !admits("0../32", 33));
        assert!(admits("4,8,16", 8) && !admits("4,8,16", 12));
        assert!(admits("-1,1", u64::MAX) && !admits("-1,1", 0));
        assert!(admits("", 12));
    }
}
