//! Rounding modifiers (PTX ISA, Rounding Modifiers).

/// How a result that a format does not have becomes one that it has; for floating-point and for integral results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// To nearest even.
    Rn,
    /// To nearest, ties away from zero.
    Rna,
    Rz,
    /// Towards negative infinity.
    Rm,
    /// Towards positive infinity.
    Rp,
    /// Stochastic.
    Rs,
}

impl Rounding {
    /// As a kernel's constant.
    pub fn code(self) -> u64 {
        self as u64
    }
    /// From a kernel's constant.
    #[inline(always)]
    pub fn from_code(code: u64) -> Rounding {
        match code & 7 {
            0 => Rounding::Rn,
            1 => Rounding::Rna,
            2 => Rounding::Rz,
            3 => Rounding::Rm,
            4 => Rounding::Rp,
            _ => Rounding::Rs,
        }
    }

    /// As written behind a dot, where the result is a floating-point number.
    pub fn word(self) -> &'static str {
        match self {
            Rounding::Rn => "rn",
            Rounding::Rna => "rna",
            Rounding::Rz => "rz",
            Rounding::Rm => "rm",
            Rounding::Rp => "rp",
            Rounding::Rs => "rs",
        }
    }

    /// The rounding that is written `.word`.
    pub fn from_word(word: &str) -> Option<Rounding> {
        Some(match word {
            "rn" => Rounding::Rn,
            "rna" => Rounding::Rna,
            "rz" => Rounding::Rz,
            "rm" => Rounding::Rm,
            "rp" => Rounding::Rp,
            "rs" => Rounding::Rs,
            _ => return None,
        })
    }

    /// The rounding to integral values that is written `.word`.
    pub fn from_integral_word(word: &str) -> Option<Rounding> {
        Some(match word {
            "rni" => Rounding::Rn,
            "rzi" => Rounding::Rz,
            "rmi" => Rounding::Rm,
            "rpi" => Rounding::Rp,
            _ => return None,
        })
    }
}
