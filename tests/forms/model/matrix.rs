//! The layouts of fragments as the manual's formulas have them, one by one.

/// A place: row and column of A, C and D; of B row `k` and column `n`.
pub type Place = (usize, usize);

/// Bits of an element in registers.
pub fn bits(ty: &str, kind: &str) -> usize {
    match ty {
        _ if kind == "mxf4" => 4,
        _ if kind == "f8f6f4" => 8,
        "f64" => 64,
        "tf32" | "f32" | "s32" => 32,
        "f16" | "bf16" => 16,
        "s8" | "u8" | "e4m3" | "e5m2" => 8,
        "s4" | "u4" => 4,
        "b1" => 1,
        other => panic!("{other}"),
    }
}

/// Element `i` of a lane's fragment of A (PTX ISA, Matrix Fragments for mma.*), of `k` columns that are there.
pub fn a((m, k): (usize, usize), bits: usize, lane: usize, i: usize) -> Place {
    let (g, t) = (lane >> 2, lane % 4);
    match (m, k, bits) {
        (8, 4, 64) => (g, t),
        (8, 16, 8) => (g, 4 * t + i),
        (8, 32, 4) => (g, 8 * t + i),
        (8, 128, 1) => (g, 32 * t + i),
        (16, 4, 64 | 32) => (g + 8 * i, t),
        (16, 8, 64 | 32) => (g + 8 * (i & 1), t + 4 * (i >> 1)),
        (16, 16, 64) => (g + 8 * (i & 1), 4 * (i >> 1) + t),
        (16, 8, 16) => (g + 8 * (i >> 1), 2 * t + (i & 1)),
        (16, 16, 16) => (g + 8 * ((i >> 1) & 1), 2 * t + (i & 1) + 8 * (i >> 2)),
        (16, 16, 8) => (g + 8 * (i >> 2), 4 * t + (i & 3)),
        (16, 32, 8) => (g + 8 * ((i >> 2) & 1), 4 * t + (i & 3) + 16 * (i >> 3)),
        (16, 32, 4) => (g + 8 * (i >> 3), 8 * t + (i & 7)),
        (16, 64, 4) => (g + 8 * ((i >> 3) & 1), 8 * t + (i & 7) + 32 * (i >> 4)),
        (16, 128, 1) => (g + 8 * (i >> 5), 32 * t + (i & 31)),
        (16, 256, 1) => (g + 8 * ((i >> 5) & 1), 32 * t + (i & 31) + 128 * (i >> 6)),
        other => panic!("no fragment of A for {other:?}"),
    }
}

/// Element `i` of a lane's fragment of B.
pub fn b(k: usize, bits: usize, lane: usize, i: usize) -> Place {
    let (g, t) = (lane >> 2, lane % 4);
    let row = match (k, bits) {
        (4, 64 | 32) => t,
        (8 | 16, 64 | 32) => t + 4 * i,
        (8, 16) => 2 * t + i,
        (16 | 32, 16) => 2 * t + (i & 1) + 8 * (i >> 1),
        (16, 8) => 4 * t + i,
        (32 | 64, 8) => 4 * t + (i & 3) + 16 * (i >> 2),
        (32, 4) => 8 * t + i,
        (64 | 128, 4) => 8 * t + (i & 7) + 32 * (i >> 3),
        (128, 1) => 32 * t + i,
        (256, 1) => 32 * t + (i & 31) + 128 * (i >> 5),
        other => panic!("no fragment of B for {other:?}"),
    };
    (row, g)
}

/// Element `i` of a lane's fragment of C or D.
pub fn c(m: usize, lane: usize, i: usize) -> Place {
    let (g, t) = (lane >> 2, lane % 4);
    if m == 8 {
        (g, 2 * t + i)
    } else {
        (g + 8 * (i >> 1), 2 * t + (i & 1))
    }
}

/// NaN of any kind: payloads of `f64` are not known.
pub fn same(d: &str, found: u64, expected: u64) -> bool {
    let nan = |bits: u64| f64::from_bits(bits).is_nan();
    found == expected || d == "f64" && nan(found) && nan(expected)
}
