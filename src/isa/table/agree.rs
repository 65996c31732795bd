//! What words of one opcode ask of each other, where a syntax line alone would say too much: a comparison and its
//! operands' type, an atomic operation and its type, a vector and its width. The manual says these things in prose.

use super::super::Form;
use crate::isa::types::Type;

use Then::{Last, NotLast, With, Without};

/// What must hold.
enum Then {
    /// The opcode's last type is one of these.
    Last(&'static str),
    /// The last type is none of these.
    NotLast(&'static str),
    /// One of these words is there.
    With(&'static str),
    /// None of these words is.
    Without(&'static str),
}

/// Mnemonics; when the rule applies: one of several conditions, each of words joined by `+`, where a type means the
/// opcode's first, `-word` that the word is absent, `~` that there is no rounding; what must hold then.
type Rule = (&'static str, &'static str, Then);

#[rustfmt::skip]
static RULES: &[Rule] = &[
    // Comparison and Selection Instructions: set, setp.
    ("set setp", "lo ls hi hs", Last("u16 u32 u64")),
    ("set setp", "lt le gt ge", NotLast("b16 b32 b64")),
    ("set setp", "equ neu ltu leu gtu geu num nan", Last("f16 f16x2 bf16 bf16x2 f32 f64")),
    ("set setp", "ftz", Last("f16 f16x2 f32")),
    ("set", "ftz+bf16 ftz+bf16x2", NotLast("f16 f16x2 f32")),
    ("set", "f16x2", Last("f16x2")),
    ("set", "bf16x2", Last("bf16x2")),
    ("set", "u16 s16", Last("f16 bf16")),
    ("set", "f16", NotLast("f16x2 bf16 bf16x2")),
    ("set", "f32", NotLast("f16 f16x2 bf16 bf16x2")),
    ("set", "bf16", NotLast("f16x2 bf16x2")),
    // Floating-Point Instructions.
    ("rcp sqrt rsqrt sin cos lg2 ex2", "ftz", With("approx rn rz rm rp")),
    ("div", "ftz", With("approx full rn rz rm rp")),
    // Data Movement and Conversion Instructions: mov, ld, st, ldu.
    ("mov", "v2 v4", NotLast("b128 s16 s64")),
    ("mov", "v4", NotLast("b64 u64 f64")),
    ("ld ldu st", "", NotLast("f16")),
    ("ld ldu st", "v2 v4 v8", NotLast("b128")),
    ("ld st", "v8", NotLast("b64 u64 s64 f64")),
    ("ld st", "v8+b32 v8+u32 v8+s32 v8+f32 v4+b64 v4+u64 v4+s64 v4+f64", Without("const local param param::entry param::func shared shared::cta shared::cluster")),
    ("ldu", "v4", NotLast("b64 u64 s64 f64")),
    ("ld st", "L1::evict_first L1::evict_last L1::evict_normal L1::evict_unchanged L1::no_allocate", Without("ca cg cs lu cv wb wt local param param::entry param::func shared shared::cta shared::cluster const")),
    ("ld", "volatile", Without("const param param::entry param::func")),
    ("st", "volatile", Without("param param::func")),
    ("ld st", "mmio", With("relaxed release")),
    ("ld st", "mmio+-async", With("sys")),
    ("ld st", "mmio+-async", With("relaxed")),
    // Texture and Surface Instructions: no access moves more than 16 bytes; sured.
    ("suld sust", "v4", NotLast("b64")),
    ("sured", "and or", Last("b32")),
    ("sured", "add+b+-p", Last("u32 s32 u64")),
    ("sured", "min+b+-p max+b+-p", NotLast("b32")),
    ("sured", "add+p", NotLast("b64")),
    // cvt
    ("cvt", "sat+s8+-pack", NotLast("s8")),
    ("cvt", "sat+u8+-pack", NotLast("u8")),
    ("cvt", "sat+s16+-pack", NotLast("s8 u8 s16")),
    ("cvt", "sat+u16+-pack", NotLast("u8 u16")),
    ("cvt", "sat+s32", NotLast("s8 u8 s16 u16 s32")),
    ("cvt", "sat+u32", NotLast("u8 u16 u32")),
    ("cvt", "sat+s64", NotLast("s8 u8 s16 u16 s32 u32 s64")),
    ("cvt", "sat+u64", NotLast("u8 u16 u32 u64")),
    ("cvt", "sat+bf16", Last("")),
    ("cvt", "sat", NotLast("bf16")),
    ("cvt", "ftz", With("f32")),
    ("cvt", "rni+f16 rzi+f16 rmi+f16 rpi+f16", Last("f16")),
    ("cvt", "rni+bf16 rzi+bf16 rmi+bf16 rpi+bf16", Last("bf16")),
    ("cvt", "rni+f32 rzi+f32 rmi+f32 rpi+f32", Last("f32")),
    ("cvt", "rni+f64 rzi+f64 rmi+f64 rpi+f64", Last("f64")),
    ("cvt", "rn+f16 rz+f16 rm+f16 rp+f16", NotLast("f16")),
    ("cvt", "rn+bf16 rz+bf16 rm+bf16 rp+bf16", NotLast("bf16")),
    ("cvt", "rn+f32 rz+f32 rm+f32 rp+f32", NotLast("f16 f32")),
    ("cvt", "rn+f64 rz+f64 rm+f64 rp+f64", NotLast("f16 f32 f64")),
    ("cvt", "~+f16 ~+bf16", NotLast("f32 f64")),
    ("cvt", "~+f32", NotLast("f64")),
    ("cvt", "ftz+bf16", Last("f32")),
    ("cvt", "e4m3x2 e5m2x2 e2m3x2 e3m2x2 e2m1x2 s2f6x2", With("satfinite")),
    ("cvt", "e4m3x2 e5m2x2 e2m3x2 e3m2x2 e2m1x2 s2f6x2", Without("rp")),
    ("cvt", "e4m3x2 e5m2x2 e2m3x2 e3m2x2 e2m1x2 ue8m0x2 ue5m3x2", Without("scaled::n2::ue8m0")),
    ("cvt", "ue8m0x2", Without("rn relu")),
    ("cvt", "ue8m0x2", NotLast("f16x2")),
    ("cvt", "s2f6x2", NotLast("f16x2")),
    ("cvt", "ue5m3x2", Without("relu")),
    ("cvt", "f16x2", NotLast("s2f6x2 ue8m0x2")),
    ("cvt", "relu+f16x2 relu+bf16x2", NotLast("ue8m0x2 ue5m3x2")),
    // Parallel Synchronization and Communication Instructions: atom, red.
    ("atom red", "and or xor", Last("b32 b64")),
    ("atom", "cas", Last("b16 b32 b64 b128")),
    ("atom", "exch", Last("b32 b64 b128")),
    ("atom red", "inc dec", Last("u32")),
    ("atom red", "min max", NotLast("b16 b32 b64 b128 f32 f64")),
    ("atom red", "add", NotLast("b16 b32 b64 b128")),
    ("atom red", "add+-async", NotLast("s64")),
    ("atom red", "min+noftz max+noftz", With("v2 v4 v8")),
    ("atom red", "v8", NotLast("f16x2 bf16x2")),
    ("atom red", "v2 v4 v8", Without("shared shared::cta shared::cluster")),
    ("fence", "proxy+alias proxy+fabric::fabric proxy+fabric::generic proxy+generic::fabric", Without("cta cluster gpu")),
    ("fence", "sync_restrict::shared::cta+async::generic", Without("cta")),
];

impl Form {
    fn holds(&self, condition: &str) -> bool {
        condition.split('+').all(|atom| match atom.strip_prefix('-') {
            Some(word) => !self.has(word),
            None if atom == "~" => self.rounding().is_none(),
            None => match Type::from_word(atom) {
                Some(ty) => self.types.first() == Some(&ty),
                None => self.has(atom),
            },
        })
    }

    /// What is wrong between the opcode's words: the word at fault, and what was expected.
    pub fn disagreement(&self) -> Option<(&'static str, String)> {
        let rules = RULES
            .iter()
            .filter(|rule| rule.0.split(' ').any(|mnemonic| mnemonic == self.mnemonic()));
        for (_, when, then) in rules {
            let Some(condition) = when
                .split(' ')
                .find(|condition| condition.is_empty() || self.holds(condition))
            else {
                continue;
            };
            let last = self.types.last().map_or("", |ty| ty.word());
            let among = |list: &str| list.split(' ').any(|word| word == last);
            let dotted = |list: &str| {
                let words: Vec<String> = list.split(' ').map(|word| format!("`.{word}`")).collect();
                words.join(", ")
            };
            let with = condition
                .split('+')
                .find(|atom| !atom.starts_with(['-', '~']))
                .unwrap_or("");
            let because = match with {
                "" => String::new(),
                word => format!(" with `.{word}`"),
            };
            match then {
                Last("") => return Some((last, format!("there is no such conversion{because}"))),
                Last(list) if !among(list) => return Some((last, format!("expected {}{because}", dotted(list)))),
                NotLast(list) if among(list) => return Some((last, format!("`.{last}` does not go{because}"))),
                With(list) if !list.split(' ').any(|word| self.includes(word)) => {
                    return Some((with, format!("expected {}{because}", dotted(list))));
                }
                Without(list) => {
                    if let Some(word) = self.words.iter().find(|word| list.split(' ').any(|one| one == **word)) {
                        return Some((word, format!("`.{word}` does not go{because}")));
                    }
                }
                _ => {}
            }
        }
        None
    }
}
