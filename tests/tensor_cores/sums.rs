//! Products of given matrices: 64 rows and columns by `wgmma`, 128 by `tcgen05.mma`.

use std::slice::from_ref;

use crate::device::{Buffer, Kernel};
use crate::kernel::{COLUMNS, Group, Statements, TILE, WORDS, to_shared};
use crate::multiply::{self, Product};
use crate::numbers::{Random, Sum, Type};
use crate::shared::Layout;
use crate::warpgroup::{self, Form};

/// Bytes of shared memory of a kernel with `tcgen05.mma`: A's, then B's.
const BYTES: usize = multiply::A_BYTES + (64 << 10);
/// Where A and factors are in tensor memory; D is before them.
const A: usize = 300;
const SCALE_A: usize = 340;
const SCALE_B: usize = 360;

/// Codes: A's rows, B's columns, C row by row, and factors of rows and columns.
pub struct Operands {
    pub a: Vec<Vec<u32>>,
    pub b: Vec<Vec<u32>>,
    pub c: Vec<u32>,
    pub factors: [Vec<Vec<u8>>; 2],
}

/// A kernel that multiplies.
pub struct Multiplier {
    product: Product,
    kernel: Kernel,
    layouts: [Layout; 2],
    /// A is not in shared memory, but in registers or tensor memory.
    elsewhere: bool,
    warpgroup: bool,
}

impl Multiplier {
    pub fn wgmma(product: Product, elsewhere: bool, random: &mut Random) -> Result<Multiplier, String> {
        let Product { a, b, sum, n, k, .. } = product;
        let (d, count) = match sum {
            Sum::F16 => ("f16", n / 4),
            Sum::F32 => ("f32", n / 2),
            Sum::S32 => ("s32", n / 2),
        };
        let form = Form {
            count,
            registers: elsewhere,
            sparse: false,
            selector: 0,
            turns: Some((1, 1)),
            transposes: matches!(a, Type::F16 | Type::Bf16).then_some((false, false)),
        };
        let (first, second) = (a.name(), b.name());
        let opcode = format!("wgmma.mma_async.sync.aligned.m64n{n}k{k}.{d}.{first}.{second}");
        let kernel = Kernel::load(&warpgroup::kernel(&opcode, &form), warpgroup::BYTES as u32)?;
        let layouts = Self::layouts(&product, [0, warpgroup::A_BYTES], random);
        Ok(Multiplier {
            product,
            kernel,
            layouts,
            elsewhere,
            warpgroup: true,
        })
    }

    /// `kind` is all of the opcode behind the group.
    pub fn tcgen05(product: Product, kind: &str, elsewhere: bool, random: &mut Random) -> Result<Multiplier, String> {
        let statements = Statements::of(Group::ONE);
        let a = if elsewhere { "[%r21]" } else { "%rd4" };
        let factors = match product.scale {
            Some(_) => "[%r24], [%r25], ",
            None => "",
        };
        let set = format!(
            "add.u32 %r21, %t, {A}; add.u32 %r24, %t, {SCALE_A}; add.u32 %r25, %t, {SCALE_B};
mov.u32 %r23, {:#x}; setp.ne.u64 %p5, %rd6, 0;
tcgen05.mma.cta_group::1.{kind} [%t], {a}, %rd5, %r23, {factors}%p5;",
            product.descriptor([false; 2], [false; 2], 0)
        );
        let body = to_shared(3, BYTES, from_ref(&(TILE..BYTES))) + &statements.by_one(&set);
        let kernel = Kernel::load(&statements.kernel(6, "", &body, true), (BYTES - TILE) as u32)?;
        let layouts = Self::layouts(&product, [TILE, multiply::A_BYTES], random);
        Ok(Multiplier {
            product,
            kernel,
            layouts,
            elsewhere,
            warpgroup: false,
        })
    }

    fn layouts(product: &Product, starts: [usize; 2], random: &mut Random) -> [Layout; 2] {
        let Product { a, b, m, n, k, .. } = *product;
        [(a, m, starts[0]), (b, n, starts[1])].map(|(ty, lines, start)| {
            let bits = if product.nibbles { 4 } else { ty.bits() };
            Layout::draw(random, &[0, 32, 64, 128], false, start, (lines, k * bits / 8))
        })
    }

    /// D row by row.
    pub fn run(&self, operands: &Operands, add: bool) -> Result<Vec<u32>, String> {
        let Product { a, b, nibbles, .. } = self.product;
        let mut bytes = vec![0; if self.warpgroup { warpgroup::BYTES } else { BYTES }];
        for (layout, ty, lines) in [(self.layouts[0], a, &operands.a), (self.layouts[1], b, &operands.b)] {
            for (line, codes) in lines.iter().enumerate() {
                for (at, &code) in codes.iter().enumerate() {
                    layout.set(&mut bytes, ty, nibbles, (line, at), code);
                }
            }
        }
        match self.warpgroup {
            true => self.by_warpgroup(operands, &bytes, add),
            false => self.by_tensor_core(operands, &bytes, add),
        }
    }

    fn by_warpgroup(&self, operands: &Operands, bytes: &[u8], add: bool) -> Result<Vec<u32>, String> {
        let Product { a, sum, m, n, .. } = self.product;
        let places = || (0..m).flat_map(|row| (0..n).map(move |column| warpgroup::place(sum, row, column)));
        let mut held = vec![0u32; 128 * 128];
        for ((at, shift), code) in places().zip(&operands.c) {
            held[at] |= code << shift;
        }
        let mut fragments = vec![0u32; 128 * 4];
        for (row, codes) in operands.a.iter().enumerate().filter(|_| self.elsewhere) {
            for (at, code) in codes.iter().enumerate() {
                let (byte, shift) = warpgroup::in_fragment(a, row, at);
                fragments[byte / 4] |= code << shift;
            }
        }
        let (image, sums, fragments, metadata) = (
            Buffer::of(bytes),
            Buffer::of(&held),
            Buffer::of(&fragments),
            Buffer::of(&[0u32; 128]),
        );
        let [first, second] = self.layouts;
        let parameters = [
            image.address,
            sums.address,
            fragments.address,
            metadata.address,
            first.of_wgmma(),
            second.of_wgmma(),
            u64::from(add),
        ];
        self.kernel.launch(1, &parameters)?;
        let found = sums.words();
        let mask = if sum == Sum::F16 { 0xffff } else { u32::MAX };
        Ok(places().map(|(at, shift)| found[at] >> shift & mask).collect())
    }

    fn by_tensor_core(&self, operands: &Operands, bytes: &[u8], add: bool) -> Result<Vec<u32>, String> {
        let Product { m, n, .. } = self.product;
        let mut memory = vec![0u32; WORDS];
        for row in 0..m {
            let words = &mut memory[row * COLUMNS..][..COLUMNS];
            words[..n].copy_from_slice(&operands.c[row * n..][..n]);
            for (at, &code) in operands.a[row].iter().enumerate().filter(|_| self.elsewhere) {
                let (word, shift, code) = self.product.in_row(at, code);
                words[A + word] |= code << shift;
            }
        }
        for (column, of) in [SCALE_A, SCALE_B].into_iter().zip(&operands.factors) {
            for (line, codes) in of.iter().enumerate() {
                for (i, &code) in codes.iter().enumerate() {
                    for copy in 0..4 {
                        memory[(line % 32 + 32 * copy) * COLUMNS + column + line / 32] |= u32::from(code) << (8 * i);
                    }
                }
            }
        }
        let (first, after, tile) = (Buffer::of(&memory), Buffer::of(&memory), Buffer::of(&bytes[TILE..]));
        let parameters = [
            first.address,
            after.address,
            tile.address,
            self.layouts[0].of_tcgen05(),
            self.layouts[1].of_tcgen05(),
            u64::from(add),
        ];
        self.kernel.launch(1, &parameters)?;
        let found = after.words();
        Ok((0..m).flat_map(|row| found[row * COLUMNS..][..n].to_vec()).collect())
    }
}
