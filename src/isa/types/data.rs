//! Fundamental types and packed formats (PTX ISA, Types).

macro_rules! types {
    ($($variant:ident = $word:literal),* $(,)?) => {
        /// Fundamental types and the packed/alternate formats (PTX ISA, Types).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Type { $($variant),* }

        impl Type {
            /// All types, in the order of the enum.
            pub const ALL: &[Type] = &[$(Type::$variant),*];

            /// `b32` for `.b32`.
            pub fn word(self) -> &'static str {
                match self { $(Type::$variant => $word),* }
            }

            /// The type that is written `.word`.
            pub fn from_word(word: &str) -> Option<Type> {
                match word { $($word => Some(Type::$variant),)* _ => None }
            }
        }
    };
}

types! {
    B8 = "b8", B16 = "b16", B32 = "b32", B64 = "b64", B128 = "b128", U8 = "u8", U16 = "u16", U32 = "u32",
    U64 = "u64", S8 = "s8", S16 = "s16", S32 = "s32", S64 = "s64", F16 = "f16", F16x2 = "f16x2", Bf16 = "bf16",
    Bf16x2 = "bf16x2", F32 = "f32", F32x2 = "f32x2", F64 = "f64", Tf32 = "tf32", U8x4 = "u8x4", S8x4 = "s8x4",
    U16x2 = "u16x2", S16x2 = "s16x2", E4m3 = "e4m3", E5m2 = "e5m2",
    E3m2 = "e3m2", E2m3 = "e2m3", E2m1 = "e2m1", E4m3x2 = "e4m3x2", E5m2x2 = "e5m2x2",
    E3m2x2 = "e3m2x2", E2m3x2 = "e2m3x2", E2m1x2 = "e2m1x2", E4m3x4 = "e4m3x4", E5m2x4 = "e5m2x4",
    E3m2x4 = "e3m2x4", E2m3x4 = "e2m3x4", E2m1x4 = "e2m1x4", Ue8m0x2 = "ue8m0x2", Ue5m3x2 = "ue5m3x2",
    S2f6x2 = "s2f6x2", Pred = "pred", TexRef = "texref", SamplerRef = "samplerref", SurfRef = "surfref",
}
