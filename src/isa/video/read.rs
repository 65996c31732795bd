//! Which operation a line of the table means, for the words that an opcode has.

use super::{Lanes, Opcode, Primary, Relation, ScalarOpcode, Scale, Second, Simd, SimdOpcode, Types};
use crate::isa::types::Word;
use crate::isa::words::Words;

fn types(w: Words) -> Option<Types> {
    Some(Types {
        d: Word::of(w.ty(0))?,
        a: Word::of(w.ty(1))?,
        b: Word::of(w.ty(2))?,
    })
}
fn second(w: Words) -> Option<Second> {
    w.find(|word| Second::ALL.into_iter().find(|second| second.word() == word))
}
fn relation(w: Words) -> Option<Relation> {
    w.find(|word| Relation::ALL.into_iter().find(|relation| relation.word() == word))
}
fn primary(w: Words, op: Primary) -> Option<Opcode> {
    Some(Opcode::Scalar(ScalarOpcode::Primary {
        op,
        types: types(w)?,
        sat: w.has("sat"),
        second: second(w),
    }))
}
fn shift(w: Words, left: bool) -> Option<Opcode> {
    Some(Opcode::Scalar(ScalarOpcode::Shift {
        left,
        d: Word::of(w.ty(0))?,
        a: Word::of(w.ty(1))?,
        sat: w.has("sat"),
        wrap: w.has("wrap"),
        second: second(w),
    }))
}
fn simd(w: Words, op: Simd, lanes: Lanes) -> Option<Opcode> {
    Some(Opcode::Simd(SimdOpcode::Primary {
        op,
        lanes,
        types: types(w)?,
        sat: w.has("sat"),
        add: w.has("add"),
    }))
}
fn simd_set(w: Words, lanes: Lanes) -> Option<Opcode> {
    Some(Opcode::Simd(SimdOpcode::Set {
        lanes,
        a: Word::of(w.ty(0))?,
        b: Word::of(w.ty(1))?,
        relation: relation(w)?,
        add: w.has("add"),
    }))
}

pub fn vmad(w: Words) -> Option<Opcode> {
    Some(Opcode::Scalar(ScalarOpcode::Mad {
        types: types(w)?,
        plus_one: w.has("po"),
        sat: w.has("sat"),
        scale: match (w.has("shr7"), w.has("shr15")) {
            (true, _) => Scale::Shr7,
            (false, true) => Scale::Shr15,
            (false, false) => Scale::None,
        },
    }))
}
pub fn vset(w: Words) -> Option<Opcode> {
    Some(Opcode::Scalar(ScalarOpcode::Set {
        a: Word::of(w.ty(0))?,
        b: Word::of(w.ty(1))?,
        relation: relation(w)?,
        second: second(w),
    }))
}
macro_rules! readers {
    ($($name:ident = $read:ident($($argument:expr),*);)*) => {$(
        pub fn $name(w: Words) -> Option<Opcode> {
            $read(w, $($argument),*)
        }
    )*};
}
readers! {
    vadd = primary(Primary::Add);
    vsub = primary(Primary::Sub);
    vabsdiff = primary(Primary::Absdiff);
    vmin = primary(Primary::Min);
    vmax = primary(Primary::Max);
    vshl = shift(true);
    vshr = shift(false);
    vadd2 = simd(Simd::Add, Lanes::Two);
    vsub2 = simd(Simd::Sub, Lanes::Two);
    vavrg2 = simd(Simd::Avrg, Lanes::Two);
    vabsdiff2 = simd(Simd::Absdiff, Lanes::Two);
    vmin2 = simd(Simd::Min, Lanes::Two);
    vmax2 = simd(Simd::Max, Lanes::Two);
    vset2 = simd_set(Lanes::Two);
    vadd4 = simd(Simd::Add, Lanes::Four);
    vsub4 = simd(Simd::Sub, Lanes::Four);
    vavrg4 = simd(Simd::Avrg, Lanes::Four);
    vabsdiff4 = simd(Simd::Absdiff, Lanes::Four);
    vmin4 = simd(Simd::Min, Lanes::Four);
    vmax4 = simd(Simd::Max, Lanes::Four);
    vset4 = simd_set(Lanes::Four);
}
