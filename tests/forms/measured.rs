//! Results that were measured on GPUs (`goldens/tensor-core` beside the repository: F. Khattak, M. Mikaitis): sets of rows
//! of operands and results.

use std::path::PathBuf;

/// A set of rows; all values are `f32` patterns.
pub struct Set {
    pub name: String,
    pub input: &'static str,
    pub half: bool,
    pub k: usize,
    /// A, B, C, D.
    pub rows: Vec<[Vec<u32>; 4]>,
}

/// Those of a device; none where they are absent.
pub fn sets(device: &str) -> Option<Vec<Set>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/goldens/tensor-core");
    let bytes = std::fs::read(folder.join(format!("{device}.txt.gz"))).ok()?;
    // RFC 1952: ten bytes, the file's name if bit 3 of the flags is set, and eight bytes behind the data.
    let name = match bytes[3] & 8 {
        0 => 0,
        _ => bytes[10..].iter().position(|&byte| byte == 0).expect("a name ends") + 1,
    };
    let text = miniz_oxide::inflate::decompress_to_vec(&bytes[10 + name..bytes.len() - 8]).expect("intact");
    let mut sets: Vec<Set> = Vec::new();
    for line in String::from_utf8(text).expect("text").lines() {
        if let Some(head) = line.strip_prefix("# set ") {
            let field = |name: &str| {
                head.split(' ')
                    .find_map(|field| field.strip_prefix(name))
                    .expect("a field")
            };
            sets.push(Set {
                name: format!("{device} {head}"),
                input: match field("in=") {
                    "fp16" => "f16",
                    "bf16" => "bf16",
                    "tf32" => "tf32",
                    "E4M3" => "e4m3",
                    "E5M2" => "e5m2",
                    other => panic!("{other}"),
                },
                half: field("out=") == "fp16",
                k: field("k=").parse().expect("a number"),
                rows: Vec::new(),
            });
        } else if !line.starts_with('#') {
            let words = |part: &str| {
                let words = part.split_whitespace();
                words
                    .map(|word| u32::from_str_radix(word, 16).expect("a word"))
                    .collect()
            };
            let parts: Vec<Vec<u32>> = line.split(';').map(words).collect();
            sets.last_mut()?.rows.push(parts.try_into().expect("four parts"));
        }
    }
    Some(sets)
}

/// The code of a number that the format has: `f32`'s fields, moved.
pub fn code(ty: &str, pattern: u32) -> u64 {
    let (exponent, fraction, bias) = match ty {
        "tf32" => return pattern.into(),
        "bf16" => return u64::from(pattern >> 16),
        "f16" => (5, 10, 15),
        "e4m3" => (4, 3, 7),
        _ => (5, 2, 15),
    };
    let sign = u64::from(pattern >> 31) << (exponent + fraction);
    let magnitude = f32::from_bits(pattern & 0x7fff_ffff);
    let least = 2f32.powi(1 - bias);
    let unit = 2f32.powi(1 - bias - fraction);
    if magnitude < least {
        return sign | (magnitude / unit) as u64;
    }
    let field = (pattern >> 23 & 0xff) as i32 - 127 + bias;
    sign | (field as u64) << fraction | u64::from(pattern & 0x7f_ffff) >> (23 - fraction)
}

/// `f32`'s pattern of a result.
pub fn pattern(half: bool, code: u64) -> u32 {
    if !half {
        return code as u32;
    }
    let magnitude = code & 0x7fff;
    let value = match (magnitude >> 10, magnitude & 0x3ff) {
        (0, low) => low as f32 * 2f32.powi(-24),
        (31, 0) => f32::INFINITY,
        (31, _) => f32::from_bits(0x7fff_ffff),
        (field, low) => (1024 + low) as f32 * 2f32.powi(field as i32 - 25),
    };
    value.to_bits() | (code as u32 & 0x8000) << 16
}
