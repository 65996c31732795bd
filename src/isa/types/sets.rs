//! The types that families of instructions work on, each a part of [`super::Type`]: what an operation cannot be of, it cannot be
//! said to be of.

/// Enums whose variants are some of [`super::Type`]'s.
macro_rules! subtypes {
    ($($(#[$doc:meta])* $name:ident { $($variant:ident),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($variant),* }

        impl $name {
            /// All of them, in the order of the enum.
            pub const ALL: &[$name] = &[$($name::$variant),*];

            /// The one that `ty` is, if it is among them.
            pub const fn of(ty: $crate::isa::types::Type) -> Option<$name> {
                match ty {
                    $($crate::isa::types::Type::$variant => Some($name::$variant),)*
                    _ => None,
                }
            }

            pub const fn ty(self) -> $crate::isa::types::Type {
                match self { $($name::$variant => $crate::isa::types::Type::$variant),* }
            }

            /// As written behind a dot.
            pub fn word(self) -> &'static str {
                self.ty().word()
            }
        }
    )*};
}
pub(crate) use subtypes;

subtypes! {
    /// Integers that fill a register.
    IntType { U16, S16, U32, S32, U64, S64 }
    /// Integers that carry from one to the next, and those whose bits are searched.
    WideInt { U32, S32, U64, S64 }
    /// Integers whose product of twice the width fits in a register.
    NarrowInt { U16, S16, U32, S32 }
    /// Integers of 32 bits.
    Word { U32, S32 }
    SignedInt { S16, S32, S64 }
    /// Several integers in one register.
    PackedInt { U16x2, S16x2, U8x4, S8x4 }
    /// Bits of a register, without a meaning.
    Bits { B16, B32, B64 }
    /// Bits where the shortest will not do.
    LongBits { B32, B64 }
    /// Sixteen-bit formats, alone and in pairs.
    HalfType { F16, F16x2, Bf16, Bf16x2 }
    /// What registers hold that are moved whole: selected by a predicate or a sign.
    Movable { B16, B32, B64, U16, U32, U64, S16, S32, S64, F32, F64 }
}

impl IntType {
    pub const fn is_signed(self) -> bool {
        match self {
            IntType::S16 | IntType::S32 | IntType::S64 => true,
            IntType::U16 | IntType::U32 | IntType::U64 => false,
        }
    }

    pub const fn bits(self) -> u32 {
        match self {
            IntType::U16 | IntType::S16 => 16,
            IntType::U32 | IntType::S32 => 32,
            IntType::U64 | IntType::S64 => 64,
        }
    }
}

impl NarrowInt {
    pub const fn is_signed(self) -> bool {
        match self {
            NarrowInt::S16 | NarrowInt::S32 => true,
            NarrowInt::U16 | NarrowInt::U32 => false,
        }
    }
}

impl Movable {
    /// As bits.
    pub const fn bits(self) -> Bits {
        match self {
            Movable::B16 | Movable::U16 | Movable::S16 => Bits::B16,
            Movable::B32 | Movable::U32 | Movable::S32 | Movable::F32 => Bits::B32,
            Movable::B64 | Movable::U64 | Movable::S64 | Movable::F64 => Bits::B64,
        }
    }
}
