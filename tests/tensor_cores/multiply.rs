//! `tcgen05.mma`: random instruction descriptors, layouts, metadata and factors; all of tensor memory is compared.
//!
//! Of a pair of blocks each has half of the rows of A and of D, and half of the columns of B (CuTe's `SM100_MMA_…_2x1SM`:
//! `ALayout`, `BLayout`, `CLayout`), at the same addresses.

use crate::device::{Buffer, launch};
use crate::kernel::{COLUMNS, Group, Statements, TILE, to_shared};
use crate::memory::same;
use crate::numbers::{Random, Sum, Type};
use crate::shared::{Layout, fill};

pub const A_BYTES: usize = 72 << 10;
/// Bytes of shared memory: A's, then B's, of which each block of a pair has half.
const BYTES: [usize; 2] = [200 << 10, 136 << 10];

/// What the instruction descriptor says.
#[derive(Clone)]
pub struct Product {
    pub a: Type,
    pub b: Type,
    pub sum: Sum,
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub sparse: bool,
    /// Two elements of four bits a byte.
    pub nibbles: bool,
    pub scale: Option<Scale>,
}

#[derive(Clone)]
pub struct Scale {
    pub factors: usize,
    pub ue4m3: bool,
    pub ids: [usize; 2],
}

/// Where D, A and metadata have their rows (PTX ISA, Data Path Layout Organization).
#[derive(Clone, Copy)]
struct Place {
    group: Group,
    ws: bool,
    sparse: bool,
    m: usize,
    n: usize,
    /// The first of 16 lanes.
    half: usize,
}

impl Place {
    fn rows_each(&self) -> usize {
        self.m / self.group.number
    }

    /// The block that has a row.
    fn block(&self, row: usize) -> usize {
        row / self.rows_each()
    }

    /// Lane (of all blocks, one behind the other) and column of an element of D.
    fn of(&self, row: usize, column: usize) -> (usize, usize) {
        let Place { ws, m, n, half, .. } = *self;
        let (block, row) = (self.block(row), row % self.rows_each());
        let (lane, column) = match (self.group.is_pair(), ws, m) {
            (false, true, 32) => (row + 32 * (column / (n / 4)), column % (n / 4)),
            (false, true, 64) => (row + 64 * (column / (n / 2)), column % (n / 2)),
            (false, false, 64) => (row / 16 * 32 + row % 16 + half, column),
            (true, _, 128) if self.sparse => (row / 16 * 32 + row % 16, column),
            (true, _, 128) => (row + 64 * (column / (n / 2)), column % (n / 2)),
            _ => (row, column),
        };
        (128 * block + lane, column)
    }

    fn lane(&self, row: usize) -> usize {
        self.of(row, 0).0
    }

    /// Columns of D that lie beside each other: factors of B's columns are there twice where D is folded into halves (CuTe,
    /// `TmemAllocMode::ScaleFactorDuplicated2by2`).
    fn folds(&self) -> usize {
        if self.group.is_pair() && self.m == 128 && !self.sparse {
            2
        } else {
            1
        }
    }
}

fn kinds(form: &str, group: Group, random: &mut Random) -> Product {
    let any8 = [Type::E4m3, Type::E5m2, Type::E2m3, Type::E3m2, Type::E2m1];
    let (a, b, sum) = match () {
        () if form.contains("kind::f16") => {
            let ty = random.one(&[Type::F16, Type::Bf16]);
            let sum = if ty == Type::F16 {
                random.one(&[Sum::F16, Sum::F32])
            } else {
                Sum::F32
            };
            (ty, ty, sum)
        }
        () if form.contains("kind::tf32") => (Type::Tf32, Type::Tf32, Sum::F32),
        () if form.contains("kind::i8") => {
            let of = [Type::S8, Type::U8];
            (random.one(&of), random.one(&of), Sum::S32)
        }
        () if form.contains("kind::mxf4") => (Type::E2m1, Type::E2m1, Sum::F32),
        () if form.contains("kind::mxf8f6f4") => (random.one(&any8), random.one(&any8), Sum::F32),
        () => (random.one(&any8), random.one(&any8), random.one(&[Sum::F16, Sum::F32])),
    };
    let nibbles = form.contains("kind::mxf4");
    let sparse = form.contains(".sp");
    let dense = match a {
        Type::F16 | Type::Bf16 => 16,
        Type::Tf32 => 8,
        _ if nibbles => 64,
        _ => 32,
    };
    let ws = form.contains(".ws");
    let scaled = form.contains("block_scale");
    let (m, n) = match (ws, scaled) {
        // Of sparse products with factors CUTLASS has those of 256 rows alone.
        _ if group.is_pair() => {
            let whole = form.contains("ashift") || scaled && sparse || random.below(2) == 0;
            (if whole { 256 } else { 128 }, 32 * (1 + random.below(8)))
        }
        (true, _) => (random.one(&[32, 64, 128]), random.one(&[64, 128, 256])),
        (false, true) => (128, 16 * (1 + random.below(16))),
        (false, false) if form.contains("ashift") || random.below(2) == 0 => (128, 16 * (1 + random.below(16))),
        (false, false) => (64, 8 * (1 + random.below(32))),
    };
    let of16 = form.contains("block16") || form.contains("scale_vec::4X");
    let scale = scaled.then(|| {
        let factors = match (nibbles, of16) {
            (false, _) => 1,
            (true, false) => 2,
            (true, true) => 4,
        };
        let ids = [0, 1].map(|_| match factors {
            1 => random.below(4),
            2 => 2 * random.below(2),
            _ => 0,
        });
        Scale {
            factors,
            ue4m3: of16 && form.contains("mxf4nvf4") && random.below(2) == 0,
            ids,
        }
    });
    Product {
        a,
        b,
        sum,
        m,
        n,
        k: if sparse { 2 * dense } else { dense },
        sparse,
        nibbles,
        scale,
    }
}

impl Product {
    fn code(ty: Type, nibbles: bool) -> u32 {
        match ty {
            Type::F16 | Type::U8 | Type::E4m3 => 0,
            Type::Bf16 | Type::S8 | Type::E5m2 => 1,
            Type::Tf32 => 2,
            Type::E2m3 => 3,
            Type::E3m2 => 4,
            Type::E2m1 if nibbles => 1,
            Type::E2m1 => 5,
            Type::B1 => unreachable!("tcgen05 has none"),
        }
    }

    pub fn descriptor(&self, turns: [bool; 2], transposes: [bool; 2], selector: usize) -> u32 {
        let sum = match self.sum {
            Sum::F16 => 0,
            Sum::F32 => 1,
            Sum::S32 => 2,
        };
        let mut bits = selector as u32
            | u32::from(self.sparse) << 2
            | Self::code(self.a, self.nibbles) << 7
            | Self::code(self.b, self.nibbles) << 10
            | u32::from(turns[0]) << 13
            | u32::from(turns[1]) << 14
            | u32::from(transposes[0]) << 15
            | u32::from(transposes[1]) << 16
            | (self.n as u32 / 8) << 17
            | (self.m as u32 / 16) << 24;
        match &self.scale {
            None => bits |= sum << 4,
            Some(scale) => {
                bits |= (scale.ids[1] as u32) << 4 | u32::from(!scale.ue4m3) << 23 | (scale.ids[0] as u32) << 29;
            }
        }
        bits
    }

    fn kept(&self) -> usize {
        if self.sparse { self.k / 2 } else { self.k }
    }

    /// Where A's element `at` is in a row of tensor memory: word and bit; and its code there.
    pub fn in_row(&self, at: usize, code: u32) -> (usize, usize, u32) {
        let each = match self.a {
            Type::Tf32 => 1,
            Type::F16 | Type::Bf16 => 2,
            _ if self.nibbles => 8,
            _ => 4,
        };
        let code = match (self.a, self.nibbles) {
            (Type::E2m1, false) => code << 2,
            _ => code,
        };
        (at / each, at % each * 32 / each, code)
    }
}

/// What a form's other operands are.
struct Columns {
    d: usize,
    a: usize,
    metadata: usize,
    scale_a: usize,
    scale_b: usize,
}

pub fn run(form: &str, shape: &str) -> Result<(), String> {
    let random = &mut Random::of(&format!("{form} {shape}"));
    let group = Group::of(form, random);
    let product = kinds(form, group, random);
    let Product { a, b, sum, m, n, k, .. } = product;
    let ws = form.contains(".ws");
    let kept = product.kept();
    let tensor_a =
        shape.matches("[r32]").count() - usize::from(product.sparse) - 2 * usize::from(product.scale.is_some()) == 2;
    let half = if !ws && m == 64 { 16 * random.below(2) } else { 0 };
    let place = Place {
        group,
        ws,
        sparse: product.sparse,
        m,
        n,
        half,
    };
    let (rows_each, columns_each) = (place.rows_each(), n / group.number);
    let size = BYTES[group.number - 1];
    let wide = |ty: Type| matches!(ty, Type::E3m2 | Type::E2m3 | Type::E2m1);
    let mn = |random: &mut Random, ty| !wide(ty) && random.below(2) == 1;
    let (a_mn, b_mn) = (!tensor_a && mn(random, a), mn(random, b));
    let modes = |mn: bool, ty: Type| -> &[usize] {
        if mn && ty == Type::Tf32 {
            &[0, 32, 64, 128, 129]
        } else {
            &[0, 32, 64, 128]
        }
    };
    let shift = if ws && shape.ends_with("r64") {
        random.below(if m == 32 { 17 } else { 33 })
    } else {
        0
    };
    let bits = |ty: Type| if product.nibbles { 4 } else { ty.bits() };
    let extent = |mn: bool, lines: usize, k: usize, ty: Type| match mn {
        true => ((lines * ty.bits()).div_ceil(128), k),
        false => (lines, k * bits(ty) / 8),
    };
    let a_extent = extent(a_mn, rows_each, kept, a);
    let a_layout = Layout::draw(random, modes(a_mn, a), a_mn, TILE, a_extent);
    let b_extent = extent(b_mn, columns_each + shift, k, b);
    let b_layout = Layout::draw(random, modes(b_mn, b), b_mn, A_BYTES, b_extent);
    let mut shared = vec![vec![0u8; size]; group.blocks];
    let used = [TILE..a_layout.end(a_extent), A_BYTES..b_layout.end(b_extent)];
    for bytes in &mut shared {
        fill(&mut bytes[used[0].clone()], a, product.nibbles, random);
        fill(&mut bytes[used[1].clone()], b, product.nibbles, random);
    }

    // Tensor memory: D, A, metadata, factors, one behind the other.
    let mut memory = group.image(random);
    let columns = Columns {
        d: random.below(8),
        a: 300,
        metadata: 320 + 4 * random.below(3),
        scale_a: 340,
        scale_b: 360,
    };
    let mut before = vec![0i32; m * n];
    for row in 0..m {
        for column in 0..n {
            let value = random.below(9) as i32 - 4;
            before[row * n + column] = value;
            let (l, c) = place.of(row, column);
            let high = if sum == Sum::F16 {
                (random.next() as u32) << 16
            } else {
                0
            };
            memory[l * COLUMNS + columns.d + c] = sum.encode(value) | high;
        }
    }
    let mut rows_of_a = vec![vec![0i32; kept]; m];
    if tensor_a {
        for (row, values) in rows_of_a.iter_mut().enumerate() {
            let l = place.lane(row);
            for (at, value) in values.iter_mut().enumerate().take(kept) {
                let code = a.draw(random);
                *value = a.decode(code);
                let (word_of_row, inside, code) = product.in_row(at, code);
                // A is there twice where D is folded into halves (CuTe, `TmemAllocMode::Duplicated`).
                for copy in 0..place.folds() {
                    let word = (l + 64 * copy) * COLUMNS + columns.a + word_of_row;
                    if inside == 0 {
                        memory[word] = 0;
                    }
                    memory[word] |= code << inside;
                }
            }
        }
        if form.contains("ashift") {
            // The last row of each block's tensor memory stays.
            for rows in rows_of_a.chunks_mut(rows_each) {
                for row in 1..rows_each {
                    rows[row - 1] = rows[row].clone();
                }
            }
        }
    } else {
        for (row, values) in rows_of_a.iter_mut().enumerate() {
            for (at, value) in values.iter_mut().enumerate() {
                let bytes = &shared[place.block(row)];
                *value = a.decode(a_layout.code(bytes, a, product.nibbles, row % rows_each, at));
            }
        }
    }
    let selector = match a {
        Type::F16 | Type::Bf16 | Type::Tf32 if product.sparse => random.below(2),
        _ => 0,
    };
    let of_row = |row| place.lane(row);
    let pick = metadata(random, &product, (columns.metadata, selector), of_row, &mut memory);
    // Of so many rows; `lanes` says in which lanes a row's factors are, and in which word behind the first.
    type Lanes<'a> = &'a dyn Fn(usize) -> (Vec<usize>, usize);
    let factors = |random: &mut Random, memory: &mut [u32], column: usize, rows: usize, id: usize, lanes: Lanes| {
        let Some(scale) = &product.scale else { return Vec::new() };
        (0..rows)
            .map(|row| -> Vec<i32> {
                let (lanes, word) = lanes(row);
                (0..scale.factors)
                    .map(|i| {
                        let power = random.below(3);
                        let code = if scale.ue4m3 {
                            0x38 + 8 * power as u32
                        } else {
                            127 + power as u32
                        };
                        for lane in &lanes {
                            let at = lane * COLUMNS + column + word;
                            let shift = 8 * (id + i);
                            memory[at] = memory[at] & !(0xff << shift) | code << shift;
                        }
                        1 << power
                    })
                    .collect()
            })
            .collect()
    };
    let ids = product.scale.as_ref().map_or([0, 0], |scale| scale.ids);
    // Each block has those of its rows, and of all columns; all warps' lanes have them, or the columns of their half.
    let of_a = |row: usize| {
        let (block, row) = (place.block(row), row % rows_each);
        let lanes = (0..4).map(|copy| 128 * block + 32 * copy + row % 32);
        (lanes.collect(), row / 32)
    };
    let of_b = |column: usize| {
        let each = n / place.folds();
        let (fold, column, copies) = (column / each, column % each, 4 / place.folds());
        let lanes =
            (0..group.number * copies).map(|i| 128 * (i / copies) + 32 * (fold * copies + i % copies) + column % 32);
        (lanes.collect(), column / 32)
    };
    let scale_a = factors(random, &mut memory, columns.scale_a, m, ids[0], &of_a);
    let scale_b = factors(random, &mut memory, columns.scale_b, n, ids[1], &of_b);

    let turn = |random: &mut Random| a != Type::S8 && a != Type::U8 && random.below(2) == 1;
    let turns = [turn(random), turn(random)];
    let add = random.below(4) != 0;
    let disabled: Vec<u32> = (0..8).map(|_| random.next() as u32 & random.next() as u32).collect();
    let disabled_words = 4 * group.number;
    let has_disabled = shape.contains(&format!("{{r32*{disabled_words}}}"));
    let divides = shape.ends_with("imm");
    // The manual has it for floats alone; the assembler takes it for integers, too.
    let divide = divides && sum != Sum::S32;
    let zero = ws && shape.ends_with("r64");
    let mask = Mask::draw(random, zero, shift);

    let mut operands = vec!["[%r20]".to_owned()];
    operands.push(if tensor_a { "[%r21]".into() } else { "%rd4".into() });
    operands.push("%rd5".into());
    if product.sparse {
        operands.push("[%r22]".into());
    }
    operands.push("%r23".into());
    if product.scale.is_some() {
        operands.extend(["[%r24]".into(), "[%r25]".into()]);
    }
    if has_disabled {
        operands.push(format!(
            "{{{}}}",
            (0..disabled_words)
                .map(|i| format!("%off{i}"))
                .collect::<Vec<_>>()
                .join(", ")
        ));
    }
    operands.push("%p5".into());
    if divides {
        operands.push(u8::from(divide).to_string());
    }
    if zero {
        operands.push("%rd6".into());
    }
    let at = |column: usize| format!("add.u32 %r9, %t, {};\n", half << 16 | column);
    let mut set = String::new();
    for (register, text) in [
        (20, at(columns.d)),
        (21, at(columns.a)),
        (22, at(columns.metadata)),
        (24, format!("add.u32 %r9, %t, {};\n", columns.scale_a)),
        (25, format!("add.u32 %r9, %t, {};\n", columns.scale_b)),
    ] {
        set += &format!("{text}mov.u32 %r{register}, %r9;\n");
    }
    for (i, word) in disabled.iter().enumerate() {
        set += &format!("mov.u32 %off{i}, {word:#x};\n");
    }
    set += &format!(
        "mov.u32 %r23, {:#x};\nsetp.{}.u32 %p5, %r9, %r9;\n{form} {};",
        product.descriptor(turns, [a_mn, b_mn], selector),
        if add { "eq" } else { "ne" },
        operands.join(", ")
    );
    let statements = Statements::of(group);
    let body = to_shared(3, size, &used) + &statements.by_one(&set);
    let text = statements.kernel(6, ".reg .b32 %off<8>;", &body, true);
    let (first, after) = (Buffer::of(&memory), Buffer::of(&memory));
    let tiles: Vec<u8> = shared.iter().flat_map(|bytes| &bytes[TILE..]).copied().collect();
    let tile = Buffer::of(&tiles);
    let parameters = [
        first.address,
        after.address,
        tile.address,
        a_layout.of_tcgen05(),
        b_layout.of_tcgen05(),
        mask.bits,
    ];
    launch(&text, group.blocks, (size - TILE) as u32, &parameters)?;

    let sign = if turns[0] != turns[1] { -1 } else { 1 };
    let parts = match (ws, m) {
        (true, 32) => 4,
        (true, 64) => 2,
        _ => 1,
    };
    let skipped: Vec<bool> = (0..n).map(|column| zero && mask.skips(column, n, parts)).collect();
    let columns_of_b: Vec<Vec<i32>> = (0..n)
        .map(|column| {
            let (bytes, line) = (&shared[column / columns_each], column % columns_each + shift);
            (0..k)
                .map(|at| match skipped[column] {
                    true => 0,
                    false => b.decode(b_layout.code(bytes, b, product.nibbles, line, at)),
                })
                .collect()
        })
        .collect();
    for row in 0..m {
        for column in 0..n {
            let (l, c) = place.of(row, column);
            if has_disabled && disabled[l / 32] >> (l % 32) & 1 == 1 {
                continue;
            }
            // Twice the sum, for what is divided by two may be odd.
            let mut total = 2 * before[row * n + column] * i32::from(add);
            if divide {
                total /= 2;
            }
            for at in 0..kept {
                let depth = if product.sparse { pick[row][at] } else { at };
                let scale = product.scale.as_ref().map_or(1, |scale| {
                    let i = depth * scale.factors / k;
                    scale_a[row][i] * scale_b[column][i]
                });
                total += 2 * sign * scale * rows_of_a[row][at] * columns_of_b[column][depth];
            }
            memory[l * COLUMNS + columns.d + c] = halves(sum, total);
        }
    }
    same(
        &format!("tensor memory (A {a_layout:?}, B {b_layout:?}, {a:?}·{b:?} m{m}n{n}k{k})"),
        &after.words(),
        &memory,
    )
}

/// The code of half a whole number.
fn halves(sum: Sum, twice: i32) -> u32 {
    match sum {
        Sum::S32 => (twice / 2) as u32,
        Sum::F32 => (twice as f32 / 2.0).to_bits(),
        Sum::F16 => match sum.encode(twice) {
            0 => 0,
            code => code - (1 << 10),
        },
    }
}

/// Metadata of random columns, and the column of each element (PTX ISA, Sparsity selector; CuTe's `tmem_e_frg`).
fn metadata(
    random: &mut Random,
    product: &Product,
    (column, selector): (usize, usize),
    lane: impl Fn(usize) -> usize,
    memory: &mut [u32],
) -> Vec<Vec<usize>> {
    let mut pick = vec![Vec::new(); product.m];
    if !product.sparse {
        return pick;
    }
    let narrow = matches!(product.a, Type::F16 | Type::Bf16 | Type::Tf32);
    for row in 0..product.m {
        for word in 0..2 {
            let at = if narrow { column + selector } else { column + word };
            memory[lane(row) * COLUMNS + at] = 0;
        }
    }
    for (row, pick) in pick.iter_mut().enumerate() {
        let mut bits = 0u64;
        let kept = product.kept();
        if product.a == Type::Tf32 {
            for i in 0..kept {
                let second = random.below(2);
                pick.push(2 * i + second);
                bits |= [0b0100u64, 0b1110][second] << (4 * i);
            }
        } else {
            // Pairs of elements of four bits go together.
            let run = if product.nibbles { 2 } else { 1 };
            for group in 0..kept / (2 * run) {
                let (first, second) = random.one(&[(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]);
                for index in [first, second] {
                    pick.extend((0..run).map(|i| (4 * group + index) * run + i));
                }
                bits |= ((first | second << 2) as u64) << (4 * group);
            }
        }
        if narrow {
            // ((8,2,8),(16,2)):((1 lane, 16 bits, 16 lanes), (1 bit, 8 lanes))
            for half in 0..2 {
                let at = lane(row / 16 * 16 + row % 8 + 8 * half) * COLUMNS + column + selector;
                memory[at] |= ((bits >> (16 * half) & 0xffff) as u32) << (row % 16 / 8 * 16);
            }
        } else {
            let at = lane(row) * COLUMNS + column;
            (memory[at], memory[at + 1]) = (bits as u32, (bits >> 32) as u32);
        }
    }
    pick
}

/// A zero-column mask descriptor.
struct Mask {
    bits: u64,
    starts: [usize; 4],
    firsts: [bool; 4],
    skip: usize,
    used: usize,
    enabled: bool,
}

impl Mask {
    fn draw(random: &mut Random, zero: bool, shift: usize) -> Mask {
        let (skip, used) = (1 + random.below(40), 1 + random.below(40));
        let firsts = [0; 4].map(|_| random.below(2) == 1);
        let starts: [usize; 4] = std::array::from_fn(|i| random.below(if firsts[i] { skip } else { used }));
        let enabled = zero && random.below(4) != 0;
        let mut bits =
            (shift as u64) << 56 | (used as u64 - 1) << 48 | (skip as u64 - 1) << 40 | u64::from(enabled) << 39;
        for i in 0..4 {
            bits |= (starts[i] as u64) << (8 * i) | u64::from(firsts[i]) << (32 + i);
        }
        Mask {
            bits: if zero { bits } else { 0 },
            starts,
            firsts,
            skip,
            used,
            enabled,
        }
    }

    /// The mask of a part, span after span, without the first bits.
    fn skips(&self, column: usize, n: usize, parts: usize) -> bool {
        let each = n / parts;
        let part = column / each;
        let mut mask = Vec::new();
        let mut skips = self.firsts[part];
        while mask.len() < self.starts[part] + each {
            mask.extend(std::iter::repeat_n(skips, if skips { self.skip } else { self.used }));
            skips = !skips;
        }
        self.enabled && mask[self.starts[part] + column % each]
    }
}
