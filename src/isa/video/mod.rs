//! Scalar and SIMD video instructions (PTX ISA, Video Instructions): the operations, and which kernel computes each.
//! Part of what they do is written on their operands: [`Opcode::with`] puts the two together.

pub mod read;
mod scalar;
mod selectors;

use std::fmt;

use self::scalar::{
    ABSDIFF, ADD, AVRG, Bytes, Halves, MAD, MAX, MIN, SET, SHL, SHR, SUB, Scalar as Constant, Second as ConstantSecond,
    Three, Two,
};
use self::selectors::mask;
pub use self::selectors::{Misfit, Part, Places, Selectors};
use super::lane::Lane;
use super::types::Word;
use super::words::{modifiers, opcode};

/// What is done with a result and the third operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Second { Add, Min, Max }

impl Second {
    const ALL: [Second; 3] = [Second::Add, Second::Min, Second::Max];

    /// As written behind a dot.
    pub fn word(self) -> &'static str {
        match self {
            Second::Add => "add",
            Second::Min => "min",
            Second::Max => "max",
        }
    }
}

/// What `vset` compares by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Relation { Lt, Eq, Le, Gt, Ne, Ge }

impl Relation {
    const ALL: [Relation; 6] = [
        Relation::Lt,
        Relation::Eq,
        Relation::Le,
        Relation::Gt,
        Relation::Ne,
        Relation::Ge,
    ];

    /// As written behind a dot.
    pub fn word(self) -> &'static str {
        match self {
            Relation::Lt => "lt",
            Relation::Eq => "eq",
            Relation::Le => "le",
            Relation::Gt => "gt",
            Relation::Ne => "ne",
            Relation::Ge => "ge",
        }
    }
    /// Which of less (1), equal (2), greater (4) satisfy it.
    fn code(self) -> u64 {
        match self {
            Relation::Lt => 1,
            Relation::Eq => 2,
            Relation::Le => 3,
            Relation::Gt => 4,
            Relation::Ne => 5,
            Relation::Ge => 6,
        }
    }
}

/// What is done with two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Primary { Add, Sub, Absdiff, Min, Max }

/// What is done with two halves or four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Simd { Add, Sub, Avrg, Absdiff, Min, Max }

/// How far `vmad` shifts its sum down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Scale { None, Shr7, Shr15 }

/// How many elements a register holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Lanes { Two, Four }

impl Lanes {
    pub const fn count(self) -> usize {
        match self {
            Lanes::Two => 2,
            Lanes::Four => 4,
        }
    }
}

modifiers! { Second Relation }

/// The types of a result and of what it is made of; they say which are signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Types {
    pub d: Word,
    pub a: Word,
    pub b: Word,
}

/// A scalar video instruction without its operands' selectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum ScalarOpcode {
    Primary { op: Primary, types: Types, sat: bool, second: Option<Second> },
    /// `vshl`, `vshr`; the amount is unsigned. `wrap`: its low bits count; else up to 32.
    Shift { left: bool, d: Word, a: Word, sat: bool, wrap: bool, second: Option<Second> },
    Mad { types: Types, plus_one: bool, sat: bool, scale: Scale },
    Set { a: Word, b: Word, relation: Relation, second: Option<Second> },
}

/// A SIMD video instruction without its operands' selectors. `add`: the elements' sum, not the elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum SimdOpcode {
    Primary { op: Simd, lanes: Lanes, types: Types, sat: bool, add: bool },
    Set { lanes: Lanes, a: Word, b: Word, relation: Relation, add: bool },
}

/// What the opcode of a video instruction says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Opcode { Scalar(ScalarOpcode), Simd(SimdOpcode) }

/// A video instruction, its operands' selectors and signs included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Op {
    /// `third`: there is an operand `c`.
    Scalar { opcode: ScalarOpcode, d: Part, a: Part, b: Part, negate_product: bool, negate_c: bool, third: bool },
    /// `mask`: bit `i` is set where element `i` is written.
    Simd { opcode: SimdOpcode, mask: u8, a: Places, b: Places },
}

impl ScalarOpcode {
    /// What the third operand is for, besides being merged into.
    fn second(self) -> Option<Second> {
        match self {
            ScalarOpcode::Primary { second, .. }
            | ScalarOpcode::Shift { second, .. }
            | ScalarOpcode::Set { second, .. } => second,
            ScalarOpcode::Mad { .. } => None,
        }
    }
    /// The third operand takes part in the arithmetic: the result is whole.
    fn uses_third(self) -> bool {
        match self {
            ScalarOpcode::Mad { .. } => true,
            ScalarOpcode::Primary { second, .. }
            | ScalarOpcode::Shift { second, .. }
            | ScalarOpcode::Set { second, .. } => second.is_some(),
        }
    }
}

impl SimdOpcode {
    pub fn lanes(self) -> Lanes {
        match self {
            SimdOpcode::Primary { lanes, .. } | SimdOpcode::Set { lanes, .. } => lanes,
        }
    }
}

impl Opcode {
    pub fn mnemonic(self) -> &'static str {
        match self {
            Opcode::Scalar(opcode) => match opcode {
                ScalarOpcode::Primary { op, .. } => match op {
                    Primary::Add => "vadd",
                    Primary::Sub => "vsub",
                    Primary::Absdiff => "vabsdiff",
                    Primary::Min => "vmin",
                    Primary::Max => "vmax",
                },
                ScalarOpcode::Shift { left: true, .. } => "vshl",
                ScalarOpcode::Shift { left: false, .. } => "vshr",
                ScalarOpcode::Mad { .. } => "vmad",
                ScalarOpcode::Set { .. } => "vset",
            },
            Opcode::Simd(opcode) => match opcode {
                SimdOpcode::Primary { op, lanes, .. } => match (op, lanes) {
                    (Simd::Add, Lanes::Two) => "vadd2",
                    (Simd::Sub, Lanes::Two) => "vsub2",
                    (Simd::Avrg, Lanes::Two) => "vavrg2",
                    (Simd::Absdiff, Lanes::Two) => "vabsdiff2",
                    (Simd::Min, Lanes::Two) => "vmin2",
                    (Simd::Max, Lanes::Two) => "vmax2",
                    (Simd::Add, Lanes::Four) => "vadd4",
                    (Simd::Sub, Lanes::Four) => "vsub4",
                    (Simd::Avrg, Lanes::Four) => "vavrg4",
                    (Simd::Absdiff, Lanes::Four) => "vabsdiff4",
                    (Simd::Min, Lanes::Four) => "vmin4",
                    (Simd::Max, Lanes::Four) => "vmax4",
                },
                SimdOpcode::Set { lanes: Lanes::Two, .. } => "vset2",
                SimdOpcode::Set { lanes: Lanes::Four, .. } => "vset4",
            },
        }
    }
    /// Registers hold several elements.
    pub fn is_packed(self) -> bool {
        match self {
            Opcode::Scalar(_) => false,
            Opcode::Simd(_) => true,
        }
    }
    /// A third operand must be there, whether the result has a selector or not.
    pub fn needs_third(self) -> bool {
        match self {
            Opcode::Scalar(opcode) => opcode.uses_third(),
            Opcode::Simd(_) => true,
        }
    }
    /// Operands may be negated: `vmad` without `.po`.
    pub fn takes_signs(self) -> bool {
        match self {
            Opcode::Scalar(ScalarOpcode::Mad { plus_one, .. }) => !plus_one,
            Opcode::Scalar(ScalarOpcode::Primary { .. } | ScalarOpcode::Shift { .. } | ScalarOpcode::Set { .. })
            | Opcode::Simd(_) => false,
        }
    }

    /// The operation, with what its operands say. `third`: an operand `c` is written.
    ///
    /// # Errors
    /// A selector that the instruction does not know.
    pub fn with(self, selectors: &Selectors, third: bool) -> Result<Op, Misfit> {
        match self {
            Opcode::Scalar(opcode) => {
                if opcode.uses_third() && selectors.d.is_some() {
                    return Err(Misfit {
                        operand: 0,
                        expected: "no selector",
                    });
                }
                Ok(Op::Scalar {
                    opcode,
                    a: Part::read(selectors.a, 1)?,
                    b: Part::read(selectors.b, 2)?,
                    d: Part::read(selectors.d, 0)?,
                    negate_product: selectors.negate_product,
                    negate_c: selectors.negate_c,
                    third,
                })
            }
            Opcode::Simd(opcode) => {
                let count = opcode.lanes().count();
                Ok(Op::Simd {
                    opcode,
                    a: Places::read(selectors.a, 1, 0, count)?,
                    b: Places::read(selectors.b, 2, count as u8, count)?,
                    mask: mask(selectors.d, count)?,
                })
            }
        }
    }
}

fn signed(ty: Word) -> bool {
    match ty {
        Word::U32 => false,
        Word::S32 => true,
    }
}

impl Op {
    pub fn lane(self) -> Lane {
        match self {
            Op::Scalar {
                opcode,
                d,
                a,
                b,
                negate_product,
                negate_c,
                third,
            } => {
                let mut constant = Constant {
                    a: a.field(),
                    b: b.field(),
                    d: d.field(),
                    a_signed: false,
                    b_signed: false,
                    d_signed: false,
                    sat: false,
                    second: match opcode.second() {
                        None => ConstantSecond::None,
                        Some(Second::Add) => ConstantSecond::Add,
                        Some(Second::Min) => ConstantSecond::Min,
                        Some(Second::Max) => ConstantSecond::Max,
                    },
                    wrap: false,
                    relation: 0,
                    plus_one: false,
                    negate_product,
                    negate_c,
                    scale: 0,
                };
                opcode.fill(&mut constant);
                opcode.kernel(third).with(constant.code())
            }
            Op::Simd { opcode, mask, a, b } => opcode.kernel().with(opcode.constant(mask, a, b)),
        }
    }
}

impl ScalarOpcode {
    fn fill(self, constant: &mut Constant) {
        let mut types = |types: Types| {
            constant.d_signed = signed(types.d);
            constant.a_signed = signed(types.a);
            constant.b_signed = signed(types.b);
        };
        match self {
            ScalarOpcode::Primary {
                op: _,
                types: all,
                sat,
                second: _,
            } => {
                types(all);
                constant.sat = sat;
            }
            ScalarOpcode::Shift {
                left: _,
                d,
                a,
                sat,
                wrap,
                second: _,
            } => {
                types(Types { d, a, b: Word::U32 });
                (constant.sat, constant.wrap) = (sat, wrap);
            }
            ScalarOpcode::Mad {
                types: all,
                plus_one,
                sat,
                scale,
            } => {
                types(all);
                (constant.sat, constant.plus_one) = (sat, plus_one);
                constant.scale = match scale {
                    Scale::None => 0,
                    Scale::Shr7 => 7,
                    Scale::Shr15 => 15,
                };
            }
            ScalarOpcode::Set {
                a,
                b,
                relation,
                second: _,
            } => {
                // There is no type for the result, which is unsigned.
                types(Types { d: Word::U32, a, b });
                constant.relation = relation.code();
            }
        }
    }

    fn kernel(self, third: bool) -> Lane {
        macro_rules! either {
            ($op:ident) => {
                match third {
                    true => Lane::of::<Three<$op>>(),
                    false => Lane::of::<Two<$op>>(),
                }
            };
        }
        match self {
            ScalarOpcode::Primary { op, .. } => match op {
                Primary::Add => either!(ADD),
                Primary::Sub => either!(SUB),
                Primary::Absdiff => either!(ABSDIFF),
                Primary::Min => either!(MIN),
                Primary::Max => either!(MAX),
            },
            ScalarOpcode::Shift { left: true, .. } => either!(SHL),
            ScalarOpcode::Shift { left: false, .. } => either!(SHR),
            ScalarOpcode::Set { .. } => either!(SET),
            // It has a third operand always.
            ScalarOpcode::Mad { .. } => Lane::of::<Three<MAD>>(),
        }
    }
}

impl SimdOpcode {
    fn constant(self, mask: u8, a: Places, b: Places) -> u64 {
        let (wanted, signs, sat, add) = match self {
            SimdOpcode::Primary { types, sat, add, .. } => {
                let signs = [types.a, types.b, types.d].map(|ty| u64::from(signed(ty)));
                (0, signs[0] | signs[1] << 1 | signs[2] << 2, sat, add)
            }
            SimdOpcode::Set {
                a, b, relation, add, ..
            } => {
                let signs = [a, b].map(|ty| u64::from(signed(ty)));
                (relation.code(), signs[0] | signs[1] << 1, false, add)
            }
        };
        let flags = signs | u64::from(sat) << 3 | u64::from(add) << 4;
        let mut code = flags << 32 | wanted << 40;
        for i in 0..self.lanes().count() {
            let chosen = u64::from(mask >> i & 1);
            code |= (u64::from(a.0[i]) | u64::from(b.0[i]) << 3 | chosen << 6) << (8 * i);
        }
        code
    }

    fn kernel(self) -> Lane {
        macro_rules! either {
            ($op:ident, $lanes:expr) => {
                match $lanes {
                    Lanes::Two => Lane::of::<Halves<$op>>(),
                    Lanes::Four => Lane::of::<Bytes<$op>>(),
                }
            };
        }
        match self {
            SimdOpcode::Primary { op, lanes, .. } => match op {
                Simd::Add => either!(ADD, lanes),
                Simd::Sub => either!(SUB, lanes),
                Simd::Avrg => either!(AVRG, lanes),
                Simd::Absdiff => either!(ABSDIFF, lanes),
                Simd::Min => either!(MIN, lanes),
                Simd::Max => either!(MAX, lanes),
            },
            SimdOpcode::Set { lanes, .. } => either!(SET, lanes),
        }
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.mnemonic();
        match *self {
            Opcode::Scalar(opcode) => match opcode {
                ScalarOpcode::Primary {
                    op: _,
                    types,
                    sat,
                    second,
                } => opcode!(f, name, types.d, types.a, types.b, (sat, "sat"), second),
                ScalarOpcode::Shift {
                    left: _,
                    d,
                    a,
                    sat,
                    wrap,
                    second,
                } => {
                    let mode = if wrap { "wrap" } else { "clamp" };
                    opcode!(f, name, d, a, Word::U32, (sat, "sat"), mode, second)
                }
                ScalarOpcode::Mad {
                    types,
                    plus_one,
                    sat,
                    scale,
                } => {
                    let scale = match scale {
                        Scale::None => None,
                        Scale::Shr7 => Some("shr7"),
                        Scale::Shr15 => Some("shr15"),
                    };
                    opcode!(
                        f,
                        name,
                        types.d,
                        types.a,
                        types.b,
                        (plus_one, "po"),
                        (sat, "sat"),
                        scale
                    )
                }
                ScalarOpcode::Set { a, b, relation, second } => opcode!(f, name, a, b, relation, second),
            },
            Opcode::Simd(opcode) => match opcode {
                SimdOpcode::Primary {
                    op: _,
                    lanes: _,
                    types,
                    sat,
                    add,
                } => opcode!(f, name, types.d, types.a, types.b, (sat, "sat"), (add, "add")),
                SimdOpcode::Set {
                    lanes: _,
                    a,
                    b,
                    relation,
                    add,
                } => opcode!(f, name, a, b, relation, (add, "add")),
            },
        }
    }
}

/// The opcode; selectors and signs stand on the operands.
impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Op::Scalar { opcode, .. } => Opcode::Scalar(opcode).fmt(f),
            Op::Simd { opcode, .. } => Opcode::Simd(opcode).fmt(f),
        }
    }
}
