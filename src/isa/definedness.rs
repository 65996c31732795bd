//! Which bits of a result are anybody's guess where bits of the operands are: what `MARGAY_CHECK=init` follows from load to
//! use.
//!
//! A *shadow* has a bit for each bit of a value, set where nobody has written it. Moves, logic and sums are exact to the bit,
//! as programs rely on it (bit-fields, flags, masks); of all else a result is as a whole undefined if an operand is in any bit.

use super::compare::{self, Compare, Operands};
use super::convert;
use super::half;
use super::logic::{self, Logical};
use super::types::HalfType;
use super::{Compute, float, int, moves};

/// What computes the shadow of the first result from the operands and their shadows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Definedness {
    /// The operation itself, on the shadows; operands whose bit is set say what moves where, and are taken as they are. If one of
    /// these has an undefined bit, so has all of the result.
    Same {
        controls: u8,
    },
    /// As the operation is anyhow: the result does not depend on operands.
    Constant,
    Rule(Rule),
}

/// How a shadow follows from operands' and their values, where the operation itself does not say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// All bits of each part of so many bits, 0 for the whole, if an operand has one there.
    Any { part: u8 },
    /// Bits where an operand has one.
    Union,
    /// From the lowest such bit upwards: sums and products.
    Carry,
    /// Unless a defined 0 of the other operand decides.
    And,
    /// Unless a defined 1 of the other operand decides.
    Or,
    /// A function of three bits.
    Lop3 { table: u8 },
    /// Whether two are equal: unless defined bits differ.
    Equal,
    /// Which of two is less: unless it is the same for all values that they may have.
    Order { signed: bool, or_equal: bool },
    /// One of two, by a predicate.
    Select,
}

const ANY: Definedness = Definedness::Rule(Rule::Any { part: 0 });

/// Bits of the parts in which an operation works side by side, 0 where it does not.
fn parts(part: u8) -> Definedness {
    Definedness::Rule(Rule::Any { part })
}

impl Compute {
    pub fn definedness(self) -> Definedness {
        match self {
            Compute::Move(op) => of_move(op),
            Compute::Logic(op) => of_logic(op),
            Compute::Int(op) => of_int(op),
            Compute::Compare(op) => of_compare(op),
            Compute::Convert(op) => match op {
                convert::Op::Cvt { flags, .. }
                    if self.is_between_integers() && !flags.sat && !flags.relu && !flags.satfinite =>
                {
                    Definedness::Same { controls: 0 }
                }
                convert::Op::Cvt { .. } | convert::Op::Halves { .. } | convert::Op::Pack { .. } => ANY,
            },
            Compute::Half(op) => parts(part_of_half(op)),
            Compute::Float(op) => parts(part_of_float(op)),
            Compute::Approx(_) | Compute::Narrow(_) | Compute::Video(_) | Compute::Legacy(_) => ANY,
        }
    }

    /// The comparison alone, where its result is combined with a predicate, and what combines them.
    pub fn uncombined(self) -> Option<(Compute, Rule)> {
        match self {
            Compute::Compare(compare::Op::Setp {
                compare,
                boolean: Some(boolean),
                of,
            }) => {
                let alone = compare::Op::Setp {
                    compare,
                    boolean: None,
                    of,
                };
                let rule = match boolean {
                    compare::Boolean::And => Rule::And,
                    compare::Boolean::Or => Rule::Or,
                    compare::Boolean::Xor => Rule::Union,
                };
                Some((Compute::Compare(alone), rule))
            }
            Compute::Compare(compare::Op::Setp { boolean: None, .. } | compare::Op::Set { .. })
            | Compute::Int(_)
            | Compute::Float(_)
            | Compute::Approx(_)
            | Compute::Half(_)
            | Compute::Logic(_)
            | Compute::Convert(_)
            | Compute::Narrow(_)
            | Compute::Video(_)
            | Compute::Legacy(_)
            | Compute::Move(_) => None,
        }
    }

    /// Of two predicates.
    pub fn and_predicates() -> Compute {
        Compute::Logic(logic::Op::And { ty: Logical::Pred })
    }

    /// Bit by bit, of two words.
    pub fn and_words() -> Compute {
        Compute::Logic(logic::Op::And { ty: Logical::B32 })
    }

    pub fn or_words() -> Compute {
        Compute::Logic(logic::Op::Or { ty: Logical::B32 })
    }

    pub fn not_word() -> Compute {
        Compute::Logic(logic::Op::Not { ty: Logical::B32 })
    }

    /// The negation of a predicate.
    pub fn not_predicate() -> Compute {
        Compute::Logic(logic::Op::Not { ty: Logical::Pred })
    }
}

fn of_move(op: moves::Op) -> Definedness {
    match op {
        moves::Op::Copy { .. }
        | moves::Op::Resize(_)
        | moves::Op::ExtendByte { .. }
        | moves::Op::Pack(_)
        | moves::Op::Extract { .. } => Definedness::Same { controls: 0 },
        moves::Op::IsNonzero(_) => Definedness::Rule(Rule::Equal),
        moves::Op::Constant { .. } => Definedness::Constant,
        moves::Op::Select128 => Definedness::Same { controls: 1 << 2 },
    }
}

fn of_logic(op: logic::Op) -> Definedness {
    match op {
        logic::Op::And { .. } => Definedness::Rule(Rule::And),
        logic::Op::Or { .. } => Definedness::Rule(Rule::Or),
        logic::Op::Xor { .. } | logic::Op::Not { .. } => Definedness::Rule(Rule::Union),
        logic::Op::Lop3 { predicate: _, table } => Definedness::Rule(Rule::Lop3 { table }),
        logic::Op::Shl { .. } | logic::Op::Shr { .. } => Definedness::Same { controls: 1 << 1 },
        logic::Op::ShfL { .. } | logic::Op::ShfR { .. } | logic::Op::Prmt { .. } => {
            Definedness::Same { controls: 1 << 2 }
        }
        logic::Op::Selp { .. } => Definedness::Rule(Rule::Select),
        logic::Op::Cnot { .. } | logic::Op::Slct { .. } => ANY,
    }
}

fn of_int(op: int::Op) -> Definedness {
    use int::{Op, Part};
    match op {
        Op::Add { .. }
        | Op::AddCc { .. }
        | Op::Addc { .. }
        | Op::AddcCc { .. }
        | Op::Sub { .. }
        | Op::SubCc { .. }
        | Op::Subc { .. }
        | Op::SubcCc { .. }
        | Op::Mul { part: Part::Lo, .. }
        | Op::MulWide { .. }
        | Op::Mad { part: Part::Lo, .. }
        | Op::MadWide { .. }
        | Op::MadCc { part: Part::Lo, .. }
        | Op::Madc { part: Part::Lo, .. }
        | Op::MadcCc { part: Part::Lo, .. }
        | Op::Mul24 { part: Part::Lo, .. }
        | Op::Mad24 { part: Part::Lo, .. }
        | Op::Neg { .. } => Definedness::Rule(Rule::Carry),
        Op::Bfe { .. } => Definedness::Same { controls: 0b110 },
        Op::Bfi { .. } => Definedness::Same { controls: 0b1100 },
        Op::Brev { .. } => Definedness::Same { controls: 0 },
        Op::AddPacked { .. }
        | Op::SubPacked { .. }
        | Op::NegPacked
        | Op::AddSat { .. }
        | Op::SubSat { .. }
        | Op::Mul { part: Part::Hi, .. }
        | Op::Mad { part: Part::Hi, .. }
        | Op::MadHiSat
        | Op::MadCc { part: Part::Hi, .. }
        | Op::Madc { part: Part::Hi, .. }
        | Op::MadcCc { part: Part::Hi, .. }
        | Op::Mul24 { part: Part::Hi, .. }
        | Op::Mad24 { part: Part::Hi, .. }
        | Op::Mad24HiSat
        | Op::Sad { .. }
        | Op::Div { .. }
        | Op::Rem { .. }
        | Op::Abs { .. }
        | Op::Min { .. }
        | Op::Max { .. }
        | Op::MinRelu { .. }
        | Op::MaxRelu { .. }
        | Op::Popc { .. }
        | Op::Clz { .. }
        | Op::Bfind { .. }
        | Op::Bmsk { .. }
        | Op::Szext { .. }
        | Op::Fns
        | Op::Dp4a { .. }
        | Op::Dp2a { .. } => ANY,
    }
}

fn of_compare(op: compare::Op) -> Definedness {
    let compare::Op::Setp {
        compare,
        boolean: None,
        of,
    } = op
    else {
        return ANY;
    };
    let signed = match of {
        Operands::B16 | Operands::B32 | Operands::B64 | Operands::U16 | Operands::U32 | Operands::U64 => false,
        Operands::S16 | Operands::S32 | Operands::S64 => true,
        Operands::F32 { .. }
        | Operands::F64
        | Operands::F16 { .. }
        | Operands::Bf16
        | Operands::F16x2 { .. }
        | Operands::Bf16x2 => return ANY,
    };
    Definedness::Rule(match compare {
        Compare::Eq | Compare::Ne => Rule::Equal,
        Compare::Lt | Compare::Ge => Rule::Order {
            signed,
            or_equal: false,
        },
        Compare::Le | Compare::Gt => Rule::Order { signed, or_equal: true },
        // Of floats alone.
        Compare::Equ
        | Compare::Neu
        | Compare::Ltu
        | Compare::Leu
        | Compare::Gtu
        | Compare::Geu
        | Compare::Num
        | Compare::Nan => Rule::Any { part: 0 },
    })
}

fn part_of_half(op: half::Op) -> u8 {
    use half::{Format, Op, Plain};
    let is_pair = match op {
        Op::Add { format, .. } | Op::Sub { format, .. } | Op::Mul { format, .. } => match format {
            Format::F16 { x2, .. } | Format::Bf16 { x2 } => x2,
        },
        Op::FmaF16 { x2, .. } | Op::FmaBf16 { x2, .. } | Op::FmaOobF16 { x2, .. } | Op::FmaOobBf16 { x2, .. } => x2,
        Op::Neg { format } | Op::Abs { format } | Op::Min { format, .. } | Op::Max { format, .. } => match format {
            Plain::F16 { x2, .. } | Plain::Bf16 { x2 } => x2,
        },
        Op::Ex2 { ty } | Op::Tanh { ty } => matches!(ty, HalfType::F16x2 | HalfType::Bf16x2),
        Op::MixedAdd { .. } | Op::MixedSub { .. } | Op::MixedFma { .. } => false,
    };
    if is_pair { 16 } else { 0 }
}

fn part_of_float(op: float::Op) -> u8 {
    use float::{Format, Op};
    match op {
        Op::Add { format, .. } | Op::Sub { format, .. } | Op::Mul { format, .. } | Op::Fma { format, .. } => {
            match format {
                Format::F32x2 { .. } => 32,
                Format::F32 { .. } | Format::F64 => 0,
            }
        }
        Op::Div { .. }
        | Op::Rcp { .. }
        | Op::Sqrt { .. }
        | Op::Abs { .. }
        | Op::Neg { .. }
        | Op::Min { .. }
        | Op::Max { .. }
        | Op::MinAbs { .. }
        | Op::MaxAbs { .. }
        | Op::Copysign { .. }
        | Op::Testp { .. } => 0,
    }
}
