//! `tcgen05` but for its products: transfers between registers and tensor memory, copies from shared memory, shifts, and
//! how tensor memory is managed. All of it, or all registers, are looked at.

use std::slice::from_ref;

use crate::device::{Buffer, launch};
use crate::kernel::{COLUMNS, Group, Statements, TILE, WORDS, to_shared};
use crate::numbers::Random;
use crate::shared::{Layout, fill};

pub fn run(form: &str, shape: &str) -> Result<(), String> {
    let random = &mut Random::of(&format!("{form} {shape}"));
    let group = Group::of(form, random);
    match form.split('.').nth(1).unwrap_or_default() {
        // They are part of every kernel here.
        "wait::ld" | "wait::st" | "fence::before_thread_sync" | "fence::after_thread_sync" => Ok(()),
        "alloc" | "dealloc" | "relinquish_alloc_permit" | "commit" => managed(form, shape, random),
        "ld" | "st" => transfer(form, random),
        "cp" => copy(form, &Statements::of(group), random),
        "shift" => shift(group, random),
        other => Err(format!("no case for {other}")),
    }
}

/// A copy in a kernel in which the form manages tensor memory.
fn managed(form: &str, shape: &str, random: &mut Random) -> Result<(), String> {
    let mut group = Group::of(form, random);
    if form.contains("multicast") {
        // There is somebody else to tell.
        group.blocks = 2;
        group.issuer = random.below(2);
    }
    let mut statements = Statements::of(group);
    let columns = match shape.ends_with("imm") {
        true => "512",
        false => "%r16",
    };
    match form.split('.').nth(1).unwrap_or_default() {
        "alloc" => {
            let at = if form.contains("shared::cta") { 26 } else { 25 };
            statements.alloc = format!("mov.u32 %r16, 512; {form} [%rd{at}], {columns};");
        }
        "dealloc" => {
            // What was given back can be had again.
            let (alloc, free) = (&statements.alloc, format!("{form} %r4, {columns};"));
            statements.dealloc = format!("mov.u32 %r16, 512; {free}\n{alloc}\nld.shared.b32 %r4, [base];\n{free}");
        }
        "relinquish_alloc_permit" => statements.relinquish = format!("{form};"),
        _ => {
            let at = if form.contains("shared::cluster") { 28 } else { 27 };
            let blocks = match shape.split_once(',') {
                Some((_, "r16")) => ", %h1",
                Some(_) => ", %r14",
                None => "",
            };
            statements.commit = format!("{form} [%rd{at}]{blocks};");
        }
    }
    copy(
        &format!("tcgen05.cp.cta_group::{}.128x256b", group.number),
        &statements,
        random,
    )
}

/// Lane and column of register `r` of thread `t` in a warp's window, by CuTe's layouts of `SM100_TMEM_LOAD_…`: coordinates of
/// a thread and a value, with strides in lanes and in columns.
fn cell(shape: &str, t: usize, r: usize, distance: usize) -> (usize, usize) {
    match shape {
        "32x32b" => (t, r),
        // ((2,2,8),(32,N)):((8 lanes, 1 column, 1 lane), 2 columns)
        "16x64b" => (t % 2 * 8 + t / 4, t / 2 % 2 + 2 * r),
        // ((4,8),(32,2,N)):((1 column, 1 lane), (8 lanes, 4 columns))
        "16x128b" => (t / 4 + r % 2 * 8, t % 4 + r / 2 * 4),
        // ((4,8),(64,2,N)):((2 columns, 1 lane), (1 column, 8 lanes, 8 columns))
        "16x256b" => (t / 4 + r / 2 % 2 * 8, t % 4 * 2 + r % 2 + r / 4 * 8),
        // ((16,2),N):((1 lane, distance), 1 column)
        "16x32bx2" => (t % 16, r + t / 16 * distance),
        other => panic!("no shape {other}"),
    }
}

fn transfer(form: &str, random: &mut Random) -> Result<(), String> {
    let words: Vec<&str> = form.split('.').collect();
    let shape = *words
        .iter()
        .find(|w| matches!(**w, "32x32b" | "16x64b" | "16x128b" | "16x256b" | "16x32bx2"))
        .expect("a shape");
    let repeat: usize = words
        .iter()
        .find_map(|w| w.strip_prefix('x')?.parse().ok())
        .expect("a number");
    let each = match shape {
        "16x128b" => 2,
        "16x256b" => 4,
        _ => 1,
    };
    let columns = repeat
        * match shape {
            "16x64b" => 2,
            "16x128b" => 4,
            "16x256b" => 8,
            _ => 1,
        };
    let count = repeat * each;
    let packed = form.contains("pack::16b");
    let store = words[1] == "st";
    let reduced = words[2] == "red";
    let width = if packed { 2 * columns } else { columns };
    let distance = (width + random.below(8)).min(COLUMNS - width);
    let used = width + if shape == "16x32bx2" { distance } else { 0 };
    if used > COLUMNS {
        return Err(format!("{used} columns do not fit"));
    }
    let column = random.below(COLUMNS - used + 1);
    let lane = if shape == "32x32b" { 0 } else { 16 * random.below(2) };
    let mut memory = Group::ONE.image(random);
    if reduced {
        // Values that are often equal, with numbers that are none.
        for word in &mut memory {
            *word = random.one(&[
                0,
                0x8000_0000,
                0x3f80_0000,
                0xbf80_0000,
                0x4000_0000,
                0x7fc0_0001,
                *word,
            ]);
        }
    }
    let values: Vec<u32> = (0..128 * 128).map(|_| random.next() as u32).collect();
    let list = |prefix: &str, count: usize| {
        let names: Vec<String> = (0..count).map(|i| format!("%{prefix}{i}")).collect();
        format!("{{{}}}", names.join(", "))
    };
    let half = match shape {
        "16x32bx2" => format!(", {distance}"),
        _ => String::new(),
    };
    let address = format!("add.u32 %r9, %t, {};\n", lane << 16 | column);
    let own = "mul.wide.u32 %rd22, %r1, 512; add.u64 %rd23, %rd3, %rd22;\n";
    let moves = |what: &str, count: usize| -> String {
        (0..count)
            .map(|i| match what {
                "ld" => format!("ld.global.b32 %v{i}, [%rd23+{}];\n", 4 * i),
                _ => format!("st.global.b32 [%rd23+{}], %v{i};\n", 4 * i),
            })
            .collect()
    };
    let compressed = words.contains(&"spcompress");
    let kept = if compressed { count / 2 } else { count };
    let meta = if compressed { count.div_ceil(32) } else { 0 };
    let body = match (store, reduced) {
        (true, _) => format!(
            "{own}{address}{}{form} [%r9]{half}, {};\ntcgen05.wait::st.sync.aligned;\n",
            moves("ld", count),
            list("v", count)
        ),
        (false, false) => format!(
            "{own}{address}{form} {}, [%r9]{half};\ntcgen05.wait::ld.sync.aligned;\n{}",
            list("v", count),
            moves("st", count)
        ),
        // Found values go behind the others, then metadata.
        (false, true) => {
            let float = form.contains(".f32");
            let (class, prefix) = if float { ("f32", "f") } else { ("b32", "v") };
            let first = if compressed {
                format!("{}, ", list("m", meta))
            } else {
                String::new()
            };
            let out: String = (0..kept)
                .map(|i| format!("st.global.{class} [%rd23+{}], %{prefix}{i};\n", 4 * i))
                .collect();
            let found = if float { "%g" } else { "%h" };
            let more: String = (0..meta)
                .map(|i| format!("st.global.b32 [%rd24+{}], %m{i};\n", 4 + 4 * i))
                .collect();
            format!(
                "{own}mul.wide.u32 %rd22, %r1, 32; add.u64 %rd24, %rd4, %rd22;\n\
                 {address}{form} {first}{}, {found}, [%r9]{half};\ntcgen05.wait::ld.sync.aligned;\n{out}\
                 st.global.{class} [%rd24], {found};\n{more}",
                list(prefix, kept)
            )
        }
    };
    let registers = ".reg .f32 %f<128>, %g; .reg .b32 %m<8>, %h;";
    let text = Statements::of(Group::ONE).kernel(4, registers, &body, store);
    let (before, after) = (Buffer::of(&memory), Buffer::of(&memory));
    let (data, found) = (Buffer::of(&values), Buffer::of(&vec![0u32; 128 * 8]));
    launch(
        &text,
        1,
        0,
        &[before.address, after.address, data.address, found.address],
    )?;

    let place = |thread: usize, r: usize| {
        let (l, c) = cell(shape, thread % 32, r, 0);
        let c = if packed { 2 * c } else { c };
        let beyond = if shape == "16x32bx2" {
            thread % 32 / 16 * distance
        } else {
            0
        };
        let lane = thread / 32 * 32 + lane + l;
        lane * COLUMNS + column + c + beyond
    };
    if store {
        for thread in 0..128 {
            for r in 0..count {
                let (at, value) = (place(thread, r), values[thread * 128 + r]);
                match packed {
                    false => memory[at] = value,
                    true => (memory[at], memory[at + 1]) = (value & 0xffff, value >> 16),
                }
            }
        }
        return same("tensor memory", &after.words(), &memory);
    }
    let data = data.words();
    let found = found.words();
    for thread in 0..128 {
        let loaded: Vec<u32> = (0..count)
            .map(|r| match (packed, place(thread, r)) {
                (false, at) => memory[at],
                (true, at) => memory[at] & 0xffff | memory[at + 1] << 16,
            })
            .collect();
        let (wanted, bits) = if compressed {
            compress(form, &loaded)
        } else {
            (loaded.clone(), Vec::new())
        };
        same(&format!("thread {thread}"), &data[thread * 128..][..kept], &wanted)?;
        if reduced {
            let value = reduce(form, &loaded);
            same(&format!("found by {thread}"), &found[thread * 8..][..1], &[value])?;
            same(
                &format!("metadata of {thread}"),
                &found[thread * 8 + 1..][..bits.len()],
                &bits,
            )?;
        }
    }
    Ok(())
}

/// The least or greatest of what a thread loads.
fn reduce(form: &str, values: &[u32]) -> u32 {
    let max = form.contains(".max");
    if form.ends_with("u32") {
        let values = values.iter().copied();
        return if max { values.max() } else { values.min() }.expect("some");
    }
    if form.ends_with("s32") {
        let values = values.iter().map(|&v| v as i32);
        return if max { values.max() } else { values.min() }.expect("some") as u32;
    }
    let floats = values.iter().map(|&v| f32::from_bits(v));
    if form.contains(".NaN") && floats.clone().any(f32::is_nan) {
        return 0x7fff_ffff;
    }
    let floats = floats
        .filter(|v| !v.is_nan())
        .map(|v| if form.contains(".abs") { v.abs() } else { v });
    let found = if max {
        floats.max_by(f32::total_cmp)
    } else {
        floats.min_by(f32::total_cmp)
    };
    found.map_or(0x7fff_ffff, f32::to_bits)
}

/// Of each four values the two greatest (least), and their places; of equal ones the first.
fn compress(form: &str, values: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let (mut kept, mut bits) = (Vec::new(), vec![0u32; values.len().div_ceil(32)]);
    for (group, four) in values.chunks(4).enumerate() {
        let better = |i: usize, j: usize| {
            let key = |i: usize| f32::from_bits(four[i] & if form.contains(".abs") { 0x7fff_ffff } else { u32::MAX });
            let order = key(i).total_cmp(&key(j));
            let order = if form.contains(".max") { order.reverse() } else { order };
            order.is_lt() || order.is_eq() && i < j
        };
        let beaten = |i: usize| (0..4).filter(|&j| j != i && better(j, i)).count();
        for (k, i) in (0..4).filter(|&i| beaten(i) < 2).enumerate() {
            kept.push(four[i]);
            bits[group / 8] |= (i as u32) << (group % 8 * 4 + 2 * k);
        }
    }
    (kept, bits)
}

pub fn same(what: &str, found: &[u32], expected: &[u32]) -> Result<(), String> {
    match found.iter().zip(expected).position(|(f, e)| f != e) {
        None => Ok(()),
        Some(i) => Err(format!(
            "{what}: word {i} (block {}, lane {}, column {}) is {:#x}, expected {:#x}",
            i / WORDS,
            i % WORDS / COLUMNS,
            i % COLUMNS,
            found[i],
            expected[i]
        )),
    }
}

/// `tcgen05.cp`: rows of a core-matrix layout in shared memory, to lanes as the manual's table of shapes says. Of a pair each
/// block copies what is in its own shared memory.
fn copy(form: &str, statements: &Statements, random: &mut Random) -> Result<(), String> {
    let group = statements.group;
    let (rows, units) = match () {
        () if form.contains("128x256b") => (128, 2),
        () if form.contains("128x128b") => (128, 1),
        () if form.contains("64x128b") => (64, 1),
        () if form.contains("32x128b") => (32, 1),
        () => (4, 2),
    };
    const SIZE: usize = 96 << 10;
    let layout = Layout::draw(random, &[0, 32, 64, 128], false, TILE, (rows, 16 * units));
    let mut shared = vec![vec![0u8; SIZE]; group.blocks];
    for bytes in &mut shared {
        fill(bytes, crate::numbers::Type::B1, false, random);
    }
    let column = random.below(COLUMNS - 4 * units + 1);
    let first_lane = if rows == 4 { random.below(32) } else { 0 };
    let mut memory = group.image(random);
    let what = format!("add.u32 %r9, %t, {};\n{form} [%r9], %rd4;", first_lane << 16 | column);
    let body = to_shared(3, SIZE, from_ref(&(TILE..SIZE))) + &statements.by_one(&what);
    let text = statements.kernel(4, "", &body, true);
    let (before, after) = (Buffer::of(&memory), Buffer::of(&memory));
    let tiles: Vec<u8> = shared.iter().flat_map(|bytes| &bytes[TILE..]).copied().collect();
    let tile = Buffer::of(&tiles);
    launch(
        &text,
        group.blocks,
        (SIZE - TILE) as u32,
        &[before.address, after.address, tile.address, layout.of_tcgen05()],
    )?;
    for (block, row) in group
        .taking_part()
        .flat_map(|block| (0..rows).map(move |row| (block, row)))
    {
        let bytes = &shared[block];
        let lanes: Vec<usize> = match () {
            () if form.contains("02_13") => vec![row, row + 64],
            () if form.contains("01_23") => {
                let lane = if row < 32 { row } else { row + 32 };
                vec![lane, lane + 32]
            }
            () if form.contains("warpx4") => vec![row, row + 32, row + 64, row + 96],
            () if rows == 4 => vec![first_lane + 32 * row],
            () => vec![row],
        };
        for unit in 0..units {
            let at = layout.offset(row, unit);
            let unit_bytes: [u8; 16] = bytes[at..at + 16].try_into().expect("sixteen");
            let bits = u128::from_le_bytes(unit_bytes);
            let out: Vec<u8> = (0..16)
                .map(|i| match () {
                    () if form.contains("b6x16_p32") => (bits >> (6 * i)) as u8 & 63,
                    () if form.contains("b4x16_p64") => ((bits >> (4 * i)) as u8 & 15) << 2,
                    () => unit_bytes[i],
                })
                .collect();
            for (j, word) in out.chunks(4).enumerate() {
                for lane in &lanes {
                    let at = block * WORDS + lane * COLUMNS + column + 4 * unit + j;
                    memory[at] = u32::from_le_bytes(word.try_into().expect("four"));
                }
            }
        }
    }
    same("tensor memory", &after.words(), &memory)
}

fn shift(group: Group, random: &mut Random) -> Result<(), String> {
    let column = random.below(COLUMNS - 8 + 1);
    let quarter = random.below(4);
    let mut memory = group.image(random);
    let statements = Statements::of(group);
    let body = statements.by_one(&format!(
        "add.u32 %r9, %t, {};\ntcgen05.shift.cta_group::{}.down [%r9];",
        quarter << 21 | column,
        group.number
    ));
    let text = statements.kernel(2, "", &body, true);
    let (before, after) = (Buffer::of(&memory), Buffer::of(&memory));
    launch(&text, group.blocks, 0, &[before.address, after.address])?;
    for block in group.taking_part() {
        for lane in 32 * quarter..32 * quarter + 31 {
            for at in block * WORDS + lane * COLUMNS + column..block * WORDS + lane * COLUMNS + column + 8 {
                memory[at] = memory[at + COLUMNS];
            }
        }
    }
    same("tensor memory", &after.words(), &memory)
}
