//! `wgmma`: D of 64 rows in the registers of 128 threads, A there or in shared memory, B in shared memory.

use crate::device::{Buffer, launch};
use crate::numbers::{Random, Sum, Type};
use crate::shared::{Layout, fill};

/// Bytes of shared memory: A's, then B's.
pub const A_BYTES: usize = 48 << 10;
pub const BYTES: usize = 176 << 10;

pub fn ty(word: &str) -> Option<Type> {
    Some(match word {
        "f16" => Type::F16,
        "bf16" => Type::Bf16,
        "tf32" => Type::Tf32,
        "e4m3" => Type::E4m3,
        "e5m2" => Type::E5m2,
        "s8" => Type::S8,
        "u8" => Type::U8,
        "b1" => Type::B1,
        _ => return None,
    })
}

pub fn run(form: &str, shape: &str) -> Result<(), String> {
    let random = &mut Random::of(&format!("{form} {shape}"));
    let words: Vec<&str> = form.split('.').collect();
    if words[1] != "mma_async" {
        // They are part of every other kernel.
        return Ok(());
    }
    let (n, k) = words
        .iter()
        .find_map(|word| word.strip_prefix("m64n")?.split_once('k'))
        .expect("a shape");
    let (n, k): (usize, usize) = (n.parse().expect("columns"), k.parse().expect("depth"));
    let types: Vec<&str> = words
        .iter()
        .copied()
        .filter(|w| ty(w).is_some() || matches!(*w, "f32" | "s32"))
        .collect();
    let sum = match types[0] {
        "f16" => Sum::F16,
        "f32" => Sum::F32,
        _ => Sum::S32,
    };
    let (a, b) = (ty(types[1]).expect("a type"), ty(types[2]).expect("a type"));
    let sparse = words.contains(&"sp");
    let registers = shape.split(',').nth(1).is_some_and(|a| a.starts_with('{'));
    let halves = matches!(a, Type::F16 | Type::Bf16);
    let kept = if sparse { k / 2 } else { k };
    let mn = |random: &mut Random| halves && random.below(2) == 1;
    let (a_mn, b_mn) = (!registers && mn(random), mn(random));
    let modes = [0, 32, 64, 128];
    let extent = |mn: bool, lines: usize, k: usize, ty: Type| match mn {
        // Units of eight halves along the lines.
        true => (lines / 8, k),
        false => (lines, k * ty.bits() / 8),
    };
    let draw = |random: &mut Random, start: usize, mn: bool, lines, k, ty| {
        Layout::draw(random, &modes, mn, start, extent(mn, lines, k, ty))
    };
    let a_layout = draw(random, 0, a_mn, 64, kept, a);
    let b_layout = draw(random, A_BYTES, b_mn, n, k, b);
    let mut bytes = vec![0u8; BYTES];
    fill(&mut bytes[..A_BYTES], a, false, random);
    fill(&mut bytes[A_BYTES..], b, false, random);

    // Registers, thread by thread.
    let count = if sum == Sum::F16 { n / 4 } else { n / 2 };
    let before: Vec<i32> = (0..64 * n).map(|_| random.below(9) as i32 - 4).collect();
    let mut held = vec![0u32; 128 * 128];
    for row in 0..64 {
        for column in 0..n {
            let (at, shift) = place(sum, row, column);
            held[at] |= sum.encode(before[row * n + column]) << shift;
        }
    }
    let mut fragments = vec![0u8; 128 * 16];
    fill(&mut fragments, a, false, random);
    let (mut metadata, mut pick) = (vec![0u32; 128], vec![Vec::new(); 64]);
    let selector = match (sparse, halves || a == Type::Tf32) {
        (true, true) => random.below(2),
        _ => 0,
    };
    if sparse {
        draw_metadata(random, a, kept, selector, &mut metadata, &mut pick);
    }
    let turn = |random: &mut Random| match sum {
        Sum::S32 => 1,
        _ => random.one(&[-1, 1]),
    };
    let (turn_a, turn_b) = (turn(random), turn(random));
    let add = random.below(4) != 0;

    let text = kernel(
        form,
        &Form {
            count,
            registers,
            sparse,
            selector,
            turns: (sum != Sum::S32).then_some((turn_a, turn_b)),
            transposes: halves.then_some((a_mn, b_mn)),
        },
    );
    let image = Buffer::of(&bytes);
    let sums = Buffer::of(&held);
    let a_registers = Buffer::of(&fragments);
    let metadata_buffer = Buffer::of(&metadata);
    let parameters = [
        image.address,
        sums.address,
        a_registers.address,
        metadata_buffer.address,
        a_layout.of_wgmma(),
        b_layout.of_wgmma(),
        u64::from(add),
    ];
    launch(&text, 1, BYTES as u32, &parameters)?;
    let found = sums.words();
    // Bits stay as they are.
    let value = |ty: Type, code: u32| if ty == Type::B1 { code as i32 } else { ty.decode(code) };
    let columns: Vec<Vec<i32>> = (0..n)
        .map(|column| {
            let codes = (0..k).map(|at| b_layout.code(&bytes, b, false, column, at));
            codes.map(|code| value(b, code)).collect()
        })
        .collect();
    for row in 0..64 {
        let of_row: Vec<(usize, i32)> = (0..kept)
            .map(|at| {
                let code = match registers {
                    true => fragment(&fragments, a, row, at),
                    false => a_layout.code(&bytes, a, false, row, at),
                };
                (if sparse { pick[row][at] } else { at }, value(a, code))
            })
            .collect();
        for column in 0..n {
            let products = of_row.iter().map(|&(depth, element)| match a {
                Type::B1 => (element & columns[column][depth]).count_ones() as i32,
                _ => element * columns[column][depth],
            });
            let start = if add { before[row * n + column] } else { 0 };
            let total = start + turn_a * turn_b * products.sum::<i32>();
            let (at, shift) = place(sum, row, column);
            let width = if sum == Sum::F16 { 0xffff } else { u32::MAX };
            let value = found[at] >> shift & width;
            if value != sum.encode(total) {
                return Err(format!(
                    "row {row}, column {column}: {value:#x}, expected {total} ({:#x}); A {a_layout:?}, B {b_layout:?}",
                    sum.encode(total)
                ));
            }
        }
    }
    Ok(())
}

/// The word, of 128 for each thread, and the bit in it where D has an element (PTX ISA, Register Fragments for
/// wgmma.mma_async, Figure "D fragment").
pub fn place(sum: Sum, row: usize, column: usize) -> (usize, usize) {
    let (warp, upper, quad) = (row / 16, row % 16 / 8, row % 8);
    let thread = warp * 32 + quad * 4 + column % 8 / 2;
    let element = column / 8 * 4 + upper * 2 + column % 2;
    match sum {
        Sum::F16 => (thread * 128 + element / 2, element % 2 * 16),
        _ => (thread * 128 + element, 0),
    }
}

/// A's element in the registers of a warp: 16 bytes a thread, each word with neighbours along k. The first byte of its
/// register, and its first bit there.
pub fn in_fragment(ty: Type, row: usize, k: usize) -> (usize, usize) {
    let bit = k * ty.bits();
    let (word, inside) = (bit / 32, bit % 32);
    let thread = row / 16 * 32 + row % 8 * 4 + word % 4;
    let register = word / 4 * 2 + row % 16 / 8;
    (thread * 16 + register * 4, inside)
}

fn fragment(bytes: &[u8], ty: Type, row: usize, k: usize) -> u32 {
    let (at, inside) = in_fragment(ty, row, k);
    let word = u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"));
    word >> inside & (u32::MAX >> (32 - ty.bits()))
}

/// Metadata of random columns; `pick` gets the column of each element that is there (PTX ISA, Sparse matrix storage; Figures
/// of `mma.sp` with k16/k32 for words and halves, k64 for bytes).
fn draw_metadata(
    random: &mut Random,
    ty: Type,
    kept: usize,
    selector: usize,
    words: &mut [u32],
    pick: &mut [Vec<usize>],
) {
    for (row, pick) in pick.iter_mut().enumerate() {
        let mut bits = 0u64;
        if ty == Type::Tf32 {
            for i in 0..kept {
                let second = random.below(2);
                pick.push(2 * i + second);
                bits |= [0b0100u64, 0b1110][second] << (4 * i);
            }
        } else {
            for group in 0..kept / 2 {
                let (first, second) = random.one(&[(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]);
                pick.extend([4 * group + first, 4 * group + second]);
                bits |= (first | second << 2) as u64 * (1u64 << (4 * group));
            }
        }
        let quad = row / 16 * 32 + row % 8 * 4;
        let upper = row % 16 / 8;
        match ty {
            Type::F16 | Type::Bf16 | Type::Tf32 => {
                for half in 0..2 {
                    words[quad + 2 * selector + half] |= (bits >> (16 * half) & 0xffff) as u32 * (1 << (16 * upper));
                }
            }
            _ => {
                for half in 0..2 {
                    words[quad + upper + 2 * half] = (bits >> (32 * half)) as u32;
                }
            }
        }
    }
}

/// What a form's operands are.
pub struct Form {
    pub count: usize,
    pub registers: bool,
    pub sparse: bool,
    pub selector: usize,
    pub turns: Option<(i32, i32)>,
    pub transposes: Option<(bool, bool)>,
}

pub fn kernel(opcode: &str, form: &Form) -> String {
    let list = |prefix: &str, count: usize| {
        let names: Vec<String> = (0..count).map(|i| format!("%{prefix}{i}")).collect();
        format!("{{{}}}", names.join(", "))
    };
    let a = if form.registers { list("a", 4) } else { "%rd5".into() };
    let mut operands = vec![list("d", form.count), a, "%rd6".into()];
    if form.sparse {
        operands.extend(["%m".into(), form.selector.to_string()]);
    }
    operands.push("%add".into());
    if let Some((a, b)) = form.turns {
        operands.extend([a.to_string(), b.to_string()]);
    }
    if let Some((a, b)) = form.transposes {
        if !form.registers {
            operands.push(u8::from(a).to_string());
        }
        operands.push(u8::from(b).to_string());
    }
    let class = if opcode.contains(".f32.") { "f32" } else { "b32" };
    let each = |what: &str| -> String {
        (0..form.count)
            .map(|i| what.replace('#', &i.to_string()).replace('@', &(4 * i).to_string()))
            .collect()
    };
    let (loads, stores) = (
        each(&format!("ld.global.{class} %d#, [%rd10+@];\n")),
        each(&format!("st.global.{class} [%rd10+@], %d#;\n")),
    );
    format!(
        ".version 8.7
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 tile[];
.visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3, .param .u64 p4, .param .u64 p5,
    .param .u64 p6)
{{
.reg .{class} %d<{count}>; .reg .b32 %a<4>, %r<9>, %m; .reg .b64 %rd<12>; .reg .pred %p<3>, %add;
ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1]; ld.param.u64 %rd3, [p2]; ld.param.u64 %rd4, [p3];
ld.param.u64 %rd5, [p4]; ld.param.u64 %rd6, [p5]; ld.param.u64 %rd7, [p6];
setp.ne.u64 %add, %rd7, 0;
mov.u32 %r1, %tid.x; mul.lo.u32 %r2, %r1, 16; mov.u32 %r3, tile;
// Descriptors count from where shared memory begins; some of it may be the driver's.
shr.u32 %r5, %r3, 4; cvt.u64.u32 %rd8, %r5; add.u64 %rd5, %rd5, %rd8; add.u64 %rd6, %rd6, %rd8;
loop:
cvt.u64.u32 %rd8, %r2; add.u64 %rd8, %rd8, %rd1; add.u32 %r4, %r3, %r2;
ld.global.v4.b32 {{%a0, %a1, %a2, %a3}}, [%rd8]; st.shared.v4.b32 [%r4], {{%a0, %a1, %a2, %a3}};
add.u32 %r2, %r2, 2048; setp.lt.u32 %p1, %r2, {BYTES}; @%p1 bra loop;
bar.sync 0;
mul.wide.u32 %rd9, %r1, 16; add.u64 %rd9, %rd9, %rd3; ld.global.v4.b32 {{%a0, %a1, %a2, %a3}}, [%rd9];
mul.wide.u32 %rd9, %r1, 4; add.u64 %rd9, %rd9, %rd4; ld.global.b32 %m, [%rd9];
mul.wide.u32 %rd10, %r1, 512; add.u64 %rd10, %rd10, %rd2;
{loads}
fence.proxy.async;
wgmma.fence.sync.aligned;
{opcode} {operands};
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
{stores}
ret;
}}
",
        count = form.count,
        operands = operands.join(", "),
    )
}
