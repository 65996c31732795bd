//! The operators that compare, and those that combine the result with a predicate (PTX ISA, Comparison Operators).

/// Comparison operators. `lo`, `ls`, `hi`, `hs` are the unsigned names of the middle four.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[rustfmt::skip]
pub enum Compare { Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan }

impl Compare {
    /// As written behind a dot.
    pub fn word(self) -> &'static str {
        use Compare::*;
        match self {
            Eq => "eq",
            Ne => "ne",
            Lt => "lt",
            Le => "le",
            Gt => "gt",
            Ge => "ge",
            Equ => "equ",
            Neu => "neu",
            Ltu => "ltu",
            Leu => "leu",
            Gtu => "gtu",
            Geu => "geu",
            Num => "num",
            Nan => "nan",
        }
    }
    pub fn from_word(word: &str) -> Option<Compare> {
        use Compare::*;
        Some(match word {
            "eq" => Eq,
            "ne" => Ne,
            "lt" | "lo" => Lt,
            "le" | "ls" => Le,
            "gt" | "hi" => Gt,
            "ge" | "hs" => Ge,
            "equ" => Equ,
            "neu" => Neu,
            "ltu" => Ltu,
            "leu" => Leu,
            "gtu" => Gtu,
            "geu" => Geu,
            "num" => Num,
            "nan" => Nan,
            _ => return None,
        })
    }
}

/// Boolean operators that combine a comparison with a predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[rustfmt::skip]
pub enum Boolean { And, Or, Xor }

impl Boolean {
    /// As written behind a dot.
    pub fn word(self) -> &'static str {
        match self {
            Boolean::And => "and",
            Boolean::Or => "or",
            Boolean::Xor => "xor",
        }
    }
    pub fn from_word(word: &str) -> Option<Boolean> {
        Some(match word {
            "and" => Boolean::And,
            "or" => Boolean::Or,
            "xor" => Boolean::Xor,
            _ => return None,
        })
    }
}
