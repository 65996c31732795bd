//! What each form computes, told a second time and in another way than the library's: from the PTX manual, with 128-bit
//! integers, arbitrary-precision floats, and a plain array for memory. Must never use anything of the library.

mod compare;
mod float;
pub mod image;
mod integer;
pub mod matrix;
mod memory;
pub mod tensor;

pub use memory::NAN;

use crate::case::{Case, Class, Operand};

/// An opcode in words: `ld`, `global`, `L1::no_allocate`, `v2`, `u32`.
#[derive(Clone, Debug)]
pub struct Op {
    pub words: Vec<String>,
}

impl Op {
    pub fn of(opcode: &str) -> Op {
        Op {
            words: opcode.split('.').map(str::to_owned).collect(),
        }
    }
    pub fn mnemonic(&self) -> &str {
        &self.words[0]
    }
    pub fn has(&self, word: &str) -> bool {
        self.words[1..].iter().any(|w| w == word)
    }
    /// The types in written order.
    pub fn types(&self) -> Vec<Type> {
        self.words[1..].iter().filter_map(|word| Type::of(word)).collect()
    }
    /// The last type: that of the operands where there is only one.
    pub fn ty(&self) -> Type {
        self.types().last().copied().unwrap_or(Type::new(Kind::Bits, 32, 1))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[rustfmt::skip]
pub enum Kind { Unsigned, Signed, Bits, Float, Brain, Pred }

/// A type: elements of so many bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Type {
    pub kind: Kind,
    pub bits: u32,
    pub elements: u32,
}

impl Type {
    pub const fn new(kind: Kind, bits: u32, elements: u32) -> Type {
        Type { kind, bits, elements }
    }
    fn of(word: &str) -> Option<Type> {
        if word == "pred" {
            return Some(Type::new(Kind::Pred, 1, 1));
        }
        let (kind, rest) = if let Some(rest) = word.strip_prefix("bf") {
            (Kind::Brain, rest)
        } else {
            let kind = match word.chars().next()? {
                'u' => Kind::Unsigned,
                's' => Kind::Signed,
                'b' => Kind::Bits,
                'f' => Kind::Float,
                _ => return None,
            };
            (kind, &word[1..])
        };
        let (bits, elements) = match rest.split_once('x') {
            Some((bits, elements)) => (bits, elements.parse().ok()?),
            None => (rest, 1),
        };
        let bits = bits.parse().ok()?;
        matches!(bits, 8 | 16 | 32 | 64 | 128).then_some(Type::new(kind, bits, elements))
    }
    pub fn signed(self) -> bool {
        self.kind == Kind::Signed
    }
    pub fn is_float(self) -> bool {
        matches!(self.kind, Kind::Float | Kind::Brain)
    }
    /// One of its elements.
    pub fn element(self) -> Type {
        Type { elements: 1, ..self }
    }
    /// The value of a register's low bits as a number.
    pub fn number(self, register: u128) -> i128 {
        let bits = cut(register, self.bits);
        if self.signed() && self.bits < 128 && bits >> (self.bits - 1) & 1 == 1 {
            bits as i128 - (1i128 << self.bits)
        } else {
            bits as i128
        }
    }
    pub fn least(self) -> i128 {
        if self.signed() { -(1i128 << (self.bits - 1)) } else { 0 }
    }
    pub fn greatest(self) -> i128 {
        (1i128 << (self.bits - u32::from(self.signed()))) - 1
    }
}

/// The low bits.
pub fn cut(value: u128, bits: u32) -> u128 {
    if bits >= 128 { value } else { value & ((1 << bits) - 1) }
}

/// What a destination must hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Expect {
    Bits(u128),
    /// Any NaN of a float of so many bits.
    Nan(u32),
    /// A number at most so far away, of a float type.
    Near(f64, f64, Type),
    /// Packed halves, each on its own.
    Halves([Half; 2]),
    /// The manual leaves it open.
    Any,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Half {
    Bits(u16),
    Near(f64, f64, Type),
}

impl Expect {
    /// Whether the low `bits` of a register are as expected.
    pub fn agrees(&self, found: u128, bits: u32) -> bool {
        let found = cut(found, bits);
        match *self {
            Expect::Bits(expected) => cut(expected, bits) == found,
            Expect::Nan(width) => {
                let ty = Type::new(Kind::Float, width, 1);
                float::value(ty, found).is_nan()
            }
            Expect::Near(value, distance, ty) => near(float::value(ty, found), value, distance),
            Expect::Halves(halves) => halves.iter().enumerate().all(|(i, half)| {
                let found = (found >> (16 * i)) as u16;
                match *half {
                    Half::Bits(expected) => expected == found,
                    Half::Near(value, distance, ty) => near(float::value(ty, found.into()), value, distance),
                }
            }),
            Expect::Any => true,
        }
    }
}

fn near(found: f64, value: f64, distance: f64) -> bool {
    if value.is_nan() {
        return found.is_nan();
    }
    found == value || (found - value).abs() <= distance
}

/// Whether some model can tell what the statement does.
pub fn knows(case: &Case) -> bool {
    let sources = vec![0; case.sources.len() + usize::from(case.op.carries_in())];
    let mut window = [0; crate::case::WINDOW];
    expected(case, &sources, &mut window, false)
        .is_some_and(|e| e.len() == case.destinations.len() + usize::from(case.op.carries_out()))
}

/// Results of the statement for these operands (constants are looked up here); memory as it is left.
/// `shared`: the window lies in shared memory.
pub fn expected(case: &Case, sources: &[u128], window: &mut [u8], shared: bool) -> Option<Vec<Expect>> {
    let op = &case.op;
    match case.row.category {
        "compare" => compare::expected(op, case.destinations.len(), sources),
        "int" | "logic" => integer::expected(op, case.destinations.len(), sources),
        "move" => integer::moved(case, sources),
        "float" | "half" => float::expected(op, sources),
        "load" | "store" | "atomic" => memory::expected(case, sources, window, shared),
        _ => None,
    }
}

impl Op {
    /// Reads the carry flag.
    pub fn carries_in(&self) -> bool {
        matches!(self.mnemonic(), "addc" | "subc" | "madc")
    }
    /// Writes it.
    pub fn carries_out(&self) -> bool {
        self.has("cc")
    }
}

/// A constant of the text as the bits of a register.
pub fn constant(text: &str, ty: Type) -> u128 {
    if text.contains('.') {
        let number: f64 = text.parse().expect("a number");
        return if ty.bits == 32 {
            (number as f32).to_bits().into()
        } else {
            number.to_bits().into()
        };
    }
    if text == "WARP_SZ" {
        return 32;
    }
    if let Some(hex) = text.strip_prefix("0f").or(text.strip_prefix("0F")) {
        return u32::from_str_radix(hex, 16).expect("eight digits").into();
    }
    if let Some(hex) = text.strip_prefix("0d").or(text.strip_prefix("0D")) {
        return u64::from_str_radix(hex, 16).expect("sixteen digits").into();
    }
    if let Some(hex) = text.strip_prefix("0x") {
        return u128::from_str_radix(hex, 16).expect("digits");
    }
    text.parse::<i128>().unwrap_or_else(|_| panic!("{text} is no number")) as u128
}

/// The operands of a case in one thread: registers' values filled in by name, constants as written.
pub fn operands(case: &Case, value: impl Fn(&str) -> u128) -> Vec<u128> {
    case.sources
        .iter()
        .map(|source| match source {
            Operand::Register(class, name) => cut(value(name), class.bits()),
            Operand::Not(name) => u128::from(value(name) == 0),
            Operand::Constant(text) => constant(text, case.op.ty()),
            Operand::Address(variable, offset) => value(variable) + u128::from(*offset),
            Operand::Sink => 0,
        })
        .chain(case.op.carries_in().then(|| value("%carry") & 1))
        .collect()
}

/// Bits that a destination's register holds.
pub fn width(operand: &Operand) -> u32 {
    match operand {
        Operand::Register(class, _) => class.bits(),
        _ => Class::B128.bits(),
    }
}
