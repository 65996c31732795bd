//! How many registers a thread holds of an operand that a whole warp, or a tensor, shares, and of which type (PTX ISA,
//! Warp-Level Matrix Instructions, Matrix Fragments; Asynchronous Warpgroup Level Matrix Instructions; tcgen05.ld;
//! cp.async.bulk.tensor).

use super::entry::Fragments;
use crate::isa::Form;
use crate::isa::types::Type;

/// The registers of the operand `name`: their type and their number. `None` where the opcode does not say.
pub fn of(form: &Form, name: &str) -> Option<(Type, u8)> {
    let (ty, count) = match form.instruction.fragments? {
        Fragments::Matrices => {
            let each = if form.has("m16n16") { 2 } else { 1 };
            (Type::B32, each * number(form, "x")?)
        }
        Fragments::Wmma => warp(form, name, false)?,
        Fragments::Mma => warp(form, name, true)?,
        Fragments::Warpgroup => match (name, form.ty(0)) {
            ("a", _) => (Type::B32, 4),
            (_, Type::F16) => (Type::U32, shape(form)?.1 / 4),
            (_, ty) => (ty, shape(form)?.1 / 2),
        },
        Fragments::TensorMemory => tensor_memory(form, name)?,
        Fragments::Tensor => tensor(form, name)?,
    };
    Some((ty, u8::try_from(count).ok()?))
}

/// Rows, columns and depth of `.mMnNkK`.
fn shape(form: &Form) -> Option<(u32, u32, u32)> {
    form.words.iter().find_map(|word| {
        let (m, rest) = word.strip_prefix('m')?.split_once('n')?;
        let (n, k) = rest.split_once('k')?;
        Some((m.parse().ok()?, n.parse().ok()?, k.parse().ok()?))
    })
}

/// The number of the word that is `prefix` and a number.
fn number(form: &Form, prefix: &str) -> Option<u32> {
    form.words
        .iter()
        .find_map(|word| word.strip_prefix(prefix)?.parse().ok())
}

/// Bits that an element of a multiplicand takes in registers.
fn bits(form: &Form) -> Option<u32> {
    let has = |words: &[&str]| words.iter().any(|word| form.has(word));
    let of = |types: &[Type]| types.iter().any(|ty| form.types.contains(ty));
    Some(match () {
        () if has(&["kind::mxf4", "kind::mxf4nvf4", "s4", "u4"]) => 4,
        // Formats of six and four bits have a byte each.
        () if has(&["kind::f8f6f4", "kind::mxf8f6f4"]) => 8,
        () if has(&["b1"]) => 1,
        () if of(&[Type::S8, Type::U8, Type::E4m3, Type::E5m2]) => 8,
        () if of(&[Type::Tf32]) => 32,
        () if of(&[Type::F64]) => 64,
        () if of(&[Type::F16, Type::Bf16, Type::F32]) => 16,
        () => return None,
    })
}

/// `packed`: no element is held twice.
fn warp(form: &Form, name: &str, packed: bool) -> Option<(Type, u32)> {
    let (m, n, k) = shape(form)?;
    // A load or a store says in its opcode which matrix it is about.
    let role = match name {
        "r" => ["a", "b", "c", "d"].into_iter().find(|role| form.has(role))?,
        role => role,
    };
    let depth = match role {
        "a" if form.has("sp") || form.has("sp::ordered_metadata") => k / 2,
        _ => k,
    };
    // Four matrices at once, with eight lanes each.
    let quads = packed && form.has("m8n8k4") && form.ty(0) != Type::F64;
    let accumulators = if quads { 8 } else { m * n / 32 };
    let multiplicands = |elements: u32| {
        Some(match bits(form)? {
            64 => (Type::F64, elements / 32),
            // Each element twice.
            16 if !packed && !form.types.contains(&Type::Bf16) => (Type::U32, 8),
            16 if quads => (Type::U32, 2),
            16 => (Type::U32, elements / 64),
            bits => (Type::B32, (elements * bits / 1024).max(1)),
        })
    };
    let accumulator = |ty: Type| match ty {
        Type::F16 => (Type::U32, accumulators / 2),
        ty => (ty, accumulators),
    };
    match role {
        "a" => multiplicands(m * depth),
        "b" => multiplicands(n * depth),
        "d" => Some(accumulator(*form.types.first()?)),
        _ => Some(accumulator(*form.types.last()?)),
    }
}

fn tensor_memory(form: &Form, name: &str) -> Option<(Type, u32)> {
    // A bit for each of the 128 rows of a CTA.
    if name == "disable-output-lane" {
        return Some((Type::B32, if form.has("cta_group::2") { 8 } else { 4 }));
    }
    let repeat = number(form, "x")?;
    let each = match () {
        () if form.has("16x128b") => 2,
        () if form.has("16x256b") => 4,
        () => 1,
    };
    let all = repeat * each;
    let ty = if form.ty(0) == Type::F32 { Type::F32 } else { Type::B32 };
    Some(match (form.has("spcompress"), name) {
        (true, "sp-meta") => (Type::B32, all.div_ceil(32)),
        (true, _) => (ty, all / 2),
        (false, _) => (ty, all),
    })
}

fn tensor(form: &Form, name: &str) -> Option<(Type, u32)> {
    let dimensions = form
        .words
        .iter()
        .find_map(|word| word.strip_suffix('d')?.parse::<u32>().ok())?;
    let gathered = form.has("tile::gather4") || form.has("tile::scatter4");
    Some(match name {
        // One column, four rows.
        "coords" if gathered => (Type::U32, 5),
        "coords" => (Type::U32, dimensions),
        "im2colInfo" if form.has("im2col") => (Type::U16, dimensions.checked_sub(2)?),
        "im2colInfo" => (Type::U16, 2),
        "sizes" => (Type::U16, dimensions),
        "strides" => (Type::U32, dimensions.checked_sub(1)?),
        _ => return None,
    })
}
