//! Results that were measured on GPUs, through kernels: each row of a set is an element on the diagonal of a product of a
//! warp. Those of warpgroups are compared in `tests/tensor_cores`.

use std::ffi::CString;
use std::ptr::null_mut;

use crate::c::*;
use crate::matrix::{AREA, RECORD, bit, get, put};
use crate::measured::{Set, code, pattern, sets};
use crate::model::matrix as model;
use crate::model::products::half;

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

/// The instruction that a set stands for; none if it is `wgmma`.
fn instruction(set: &Set, architecture: u32) -> Option<String> {
    let (d, k, ty) = (if set.half { "f16" } else { "f32" }, set.k, set.input);
    match architecture {
        70 => Some(format!("mma.sync.aligned.m8n8k4.row.col.{d}.f16.f16.{d}")),
        90 if k == 32 && !set.half => None,
        _ => Some(format!("mma.sync.aligned.m16n8k{k}.row.col.{d}.{ty}.{ty}.{d}")),
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
            let Some(opcode) = instruction(set, architecture) else {
                continue;
            };
            match one(set, architecture, &opcode) {
                Ok(()) => compared += set.rows.len(),
                Err(why) => failures.push(format!("{}: {why}", set.name)),
            }
        }
    }
    (compared, failures)
}

fn one(set: &Set, architecture: u32, opcode: &str) -> Result<(), String> {
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
            put(
                area,
                8 * other * RECORD + 128 * a_count + bit(bits, f),
                bits,
                code(set.input, b[k]),
            );
        }
        let (lane, e) = place(i);
        // C is given as the `f32` that it was before it became a half.
        let c = if set.half {
            half(f32::from_bits(c[0]).into())
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
    let [a, b, c] = [("a", a_count), ("b", b_count), ("c", c_count)].map(|(name, count)| list(name, count));
    body += &format!("{opcode} {c}, {a}, {b}, {c};\n");
    for i in 0..c_count {
        body += &format!("st.global.b32 [%to+{}], %c{i};\n", 16 * i);
    }
    let (version, target) = if architecture == 70 {
        ("6.4", "sm_70")
    } else {
        ("8.8", "sm_90")
    };
    let text = format!(
        ".version {version}\n.target {target}\n.address_size 64
.visible .entry k(.param .u64 from, .param .u64 to)\n{{ .reg .b32 %a<8>, %b<8>, %lane, %warp; .reg .{} %c<8>; .reg .b64 %from, %to;
ld.param.u64 %from, [from]; ld.param.u64 %to, [to]; mov.u32 %warp, %ctaid.x; mov.u32 %lane, %tid.x;
mad.wide.u32 %from, %warp, {AREA}, %from; mad.wide.u32 %to, %warp, {AREA}, %to;
mad.wide.u32 %from, %lane, {RECORD}, %from; mad.wide.u32 %to, %lane, {RECORD}, %to;
{body}ret; }}\n",
        if set.half { "b32" } else { "f32" }
    );
    let found = launched(&text, warps, &memory)?;
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

fn launched(text: &str, blocks: usize, memory: &[u8]) -> Result<Vec<u8>, String> {
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
        32,
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
