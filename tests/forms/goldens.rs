//! Results that were measured on GPUs (`goldens/tensor-core` beside the repository: F. Khattak, M. Mikaitis), through
//! kernels: each row of a set is an element on the diagonal of a product of a warp, or of a warpgroup.

use std::ffi::CString;
use std::path::PathBuf;
use std::ptr::null_mut;

use crate::c::*;
use crate::matrix::{AREA, RECORD, bit, get, put};
use crate::model::matrix as model;

/// A set of rows; all values are `f32` patterns.
struct Set {
    name: String,
    input: &'static str,
    half: bool,
    k: usize,
    /// A, B, C, D.
    rows: Vec<[Vec<u32>; 4]>,
}

/// Devices whose tensor cores are those of a compute capability.
fn devices(architecture: u32) -> &'static [&'static str] {
    match architecture {
        70 => &["V100"],
        80 => &["A100", "A2"],
        89 => &["Ada", "L40S"],
        90 => &["H100", "H200"],
        100 => &["B200"],
        _ => &[],
    }
}

fn sets(device: &str) -> Option<Vec<Set>> {
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
fn code(ty: &str, pattern: u32) -> u64 {
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
fn pattern(half: bool, code: u64) -> u32 {
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

/// The instruction that a set stands for: whether it is `wgmma`, its name, its rows.
fn instruction(set: &Set, architecture: u32) -> (bool, String, usize) {
    let (d, k, ty) = (if set.half { "f16" } else { "f32" }, set.k, set.input);
    match () {
        () if architecture == 70 => (false, format!("mma.sync.aligned.m8n8k4.row.col.{d}.f16.f16.{d}"), 8),
        () if architecture == 90 && k == 32 && !set.half => {
            (true, format!("wgmma.mma_async.sync.aligned.m64n8k32.f32.{ty}.{ty}"), 64)
        }
        () => (
            false,
            format!("mma.sync.aligned.m16n8k{k}.row.col.{d}.{ty}.{ty}.{d}"),
            16,
        ),
    }
}

/// Registers named `letter` and a number, in braces.
fn list(letter: &str, count: usize) -> String {
    let names: Vec<String> = (0..count).map(|i| format!("%{letter}{i}")).collect();
    format!("{{{}}}", names.join(", "))
}

/// What went wrong; the number of rows that were compared, none where the goldens are absent.
pub fn run(architecture: u32) -> (usize, Vec<String>) {
    let (mut compared, mut failures) = (0, Vec::new());
    for device in devices(architecture) {
        let Some(sets) = sets(device) else {
            println!("  no results measured on {device} are at hand: nothing is compared");
            continue;
        };
        for set in &sets {
            match one(set, architecture) {
                Ok(()) => compared += set.rows.len(),
                Err(why) => failures.push(format!("{}: {why}", set.name)),
            }
        }
    }
    (compared, failures)
}

fn one(set: &Set, architecture: u32) -> Result<(), String> {
    let (warpgroup, opcode, m) = instruction(set, architecture);
    let quads = architecture == 70;
    let (bits, c_bits) = (model::bits(set.input, ""), if set.half { 16 } else { 32 });
    let rows_each = if quads { 32 } else { 8 };
    let warps = set.rows.len().div_ceil(rows_each);
    let a_count = if quads { 2 } else { 16 * set.k * bits / 1024 };
    let b_count = if quads { 2 } else { 8 * set.k * bits / 1024 };
    let c_count = (if quads { 8 } else { 4 }) * c_bits / 32;
    let mut memory = vec![0u8; warps * AREA];
    // Where each row's result is: lane and element.
    let place = |i: usize| -> (usize, usize) {
        if quads {
            let (quad, at) = (i / 8, i % 8);
            let lanes = (0..32).filter(|lane| lane % 16 / 4 == quad);
            return lanes
                .flat_map(|lane| (0..8).map(move |e| (lane, e)))
                .find(|&p| quad_place(set.half, p) == (at, at))
                .expect("a place");
        }
        let all = (0..32).flat_map(|lane| (0..4).map(move |e| (lane, e)));
        all.into_iter()
            .find(|&(lane, e)| model::c(16, lane, e) == (i, i))
            .expect("a place")
    };
    for (at, [a, b, c, _]) in set.rows.iter().enumerate() {
        let (area, i) = (&mut memory[at / rows_each * AREA..][..AREA], at % rows_each);
        for k in 0..set.k {
            let holds = |of: &dyn Fn(usize, usize) -> (usize, usize), wanted: (usize, usize), most: usize| {
                let all = (0..32).flat_map(|lane| (0..most).map(move |e| (lane, e)));
                all.into_iter()
                    .find(|&(lane, e)| of(lane, e) == wanted)
                    .expect("some lane has it")
            };
            let ((lane, e), (other, f)) = if quads {
                let lane = 16 * (i % 8 / 4) + 4 * (i / 8) + i % 4;
                ((lane, k), (lane, k))
            } else {
                let of_a = |lane, e| model::a((16, set.k), bits, lane, e);
                let of_b = |lane, e| model::b(set.k, bits, lane, e);
                (
                    holds(&of_a, (i, k), 16 * set.k / 32),
                    holds(&of_b, (k, i), 8 * set.k / 32),
                )
            };
            put(area, 8 * lane * RECORD + bit(bits, e), bits, code(set.input, a[k]));
            if warpgroup {
                // Rows of sixteen bytes, eight to a core matrix, in the last lane's record.
                let byte = 31 * RECORD + 256 + k / 16 * 128 + i * 16 + k % 16;
                put(area, 8 * byte, 8, code(set.input, b[k]));
            } else {
                put(
                    area,
                    8 * other * RECORD + 128 * a_count + bit(bits, f),
                    bits,
                    code(set.input, b[k]),
                );
            }
        }
        let (lane, e) = place(i);
        // C is given as the `f32` that it was before it became a half.
        let c = if set.half {
            model::half(f32::from_bits(c[0]).into())
        } else {
            c[0].into()
        };
        put(
            area,
            8 * lane * RECORD + 128 * (a_count + b_count) + bit(c_bits, e),
            c_bits,
            c,
        );
    }
    let mut body = String::new();
    for (name, count, first) in [
        ("a", a_count, 0),
        ("b", b_count, a_count),
        ("c", c_count, a_count + b_count),
    ] {
        for i in 0..count {
            body += &format!("ld.global.b32 %{name}{i}, [%from+{}];\n", 16 * (first + i));
        }
    }
    if warpgroup {
        body = format!(
            ".shared .align 128 .b8 tile[256]; .reg .b64 %desc; mov.u32 %d0, tile;
mad.lo.u32 %d1, %lane, 2, %d0; mad.wide.u32 %desc, %lane, 2, %area; add.u64 %desc, %desc, {};
ld.global.b16 %h, [%desc]; st.shared.b16 [%d1], %h; bar.sync 0; fence.proxy.async;
shr.u32 %d0, %d0, 4; cvt.u64.u32 %desc, %d0; or.b64 %desc, %desc, {};
setp.ne.u32 %p, 0, 0;\n",
            31 * RECORD + 256,
            // Leading and stride offsets, in units of sixteen bytes.
            8u64 << 16 | 8u64 << 32
        ) + &body;
        for i in 0..a_count {
            // The other warps have rows of zeros.
            body += &format!("@%idle mov.b32 %a{i}, 0;\n");
        }
        body += &format!(
            "wgmma.fence.sync.aligned;\n{opcode} {}, {}, %desc, %p, 1, 1;\n\
             wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n",
            list("c", c_count),
            list("a", a_count)
        );
        body += "@%idle ret;\n";
    } else {
        let [a, b, c] = [("a", a_count), ("b", b_count), ("c", c_count)].map(|(name, count)| list(name, count));
        body += &format!("{opcode} {c}, {a}, {b}, {c};\n");
    }
    for i in 0..c_count {
        body += &format!("st.global.b32 [%to+{}], %c{i};\n", 16 * i);
    }
    let (version, target) = if architecture == 70 {
        ("6.4", "sm_70")
    } else {
        ("8.8", "sm_90a")
    };
    let text = format!(
        ".version {version}\n.target {target}\n.address_size 64
.visible .entry k(.param .u64 from, .param .u64 to)\n{{ .reg .b32 %a<8>, %b<8>, %d<2>, %lane, %warp, %in_warp;
.reg .{} %c<8>; .reg .b16 %h; .reg .b64 %from, %to, %area; .reg .pred %p, %idle;
ld.param.u64 %from, [from]; ld.param.u64 %to, [to]; mov.u32 %warp, %ctaid.x; mov.u32 %lane, %tid.x;
setp.ge.u32 %idle, %lane, 32; and.b32 %in_warp, %lane, 31;
mad.wide.u32 %area, %warp, {AREA}, %from; mad.wide.u32 %to, %warp, {AREA}, %to;
mad.wide.u32 %from, %in_warp, {RECORD}, %area; mad.wide.u32 %to, %in_warp, {RECORD}, %to;
{body}ret; }}\n",
        if set.half { "b32" } else { "f32" }
    );
    let found = launched(&text, warps, m / 64 * 96 + 32, &memory)?;
    for (at, [_, _, _, d]) in set.rows.iter().enumerate() {
        let (lane, e) = place(at % rows_each);
        let result = get(&found[at / rows_each * AREA + lane * RECORD..], bit(c_bits, e), c_bits);
        let result = pattern(set.half, result);
        if result != d[0] {
            return Err(format!("row {at} is {result:#x}, measured {:#x}", d[0]));
        }
    }
    Ok(())
}

/// Row and column of an element of D of `mma.m8n8k4`.
fn quad_place(half: bool, (lane, i): (usize, usize)) -> (usize, usize) {
    let high = if lane >= 16 { 4 } else { 0 };
    if half {
        ((lane & 3) + high, i)
    } else {
        ((lane & 1) + (i & 2) + high, (i & 4) + (lane & 2) + (i & 1))
    }
}

fn launched(text: &str, blocks: usize, threads: usize, memory: &[u8]) -> Result<Vec<u8>, String> {
    let source = CString::new(text).expect("text");
    let (mut module, mut function) = (null_mut(), null_mut());
    let (mut from, mut to) = (0, 0);
    let loaded = cuModuleLoadData(&mut module, source.as_ptr().cast());
    if loaded != CUDA_SUCCESS {
        return Err(format!("error {loaded} of\n{text}"));
    }
    ok(cuModuleGetFunction(&mut function, module, c"k".as_ptr()));
    ok(cuMemAlloc(&mut from, memory.len()));
    ok(cuMemAlloc(&mut to, memory.len()));
    ok(cuMemcpyHtoD(from, memory.as_ptr().cast(), memory.len()));
    let mut parameters = [(&raw mut from).cast(), (&raw mut to).cast()];
    let launched = cuLaunchKernel(
        function,
        blocks as u32,
        1,
        1,
        threads as u32,
        1,
        1,
        0,
        null_mut(),
        parameters.as_mut_ptr(),
        null_mut(),
    );
    let ended = if launched == CUDA_SUCCESS {
        cuCtxSynchronize()
    } else {
        launched
    };
    if ended != CUDA_SUCCESS {
        return Err(format!("error {ended}"));
    }
    let mut found = vec![0; memory.len()];
    ok(cuMemcpyDtoH(found.as_mut_ptr().cast(), to, found.len()));
    ok(cuMemFree(from));
    ok(cuMemFree(to));
    ok(cuModuleUnload(module));
    Ok(found)
}
