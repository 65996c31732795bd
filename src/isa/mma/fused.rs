//! `mma.m8n8k4` of halves since sm_80: NVIDIA's assembler has it computed by ordinary `f32` arithmetic, with no tensor
//! core.

use super::level::{self, Kernel};
use super::vector::Vector;
use super::{Accumulator, Product, Tiles, convert, stride};
use crate::isa::number;
use crate::isa::simd::Level;

pub fn multiply(level: Level, product: &Product, tiles: Tiles) {
    level::run::<Fused>(level, (product, tiles));
}

struct Fused;

impl Kernel for Fused {
    type Arguments<'a> = (&'a Product, Tiles<'a>);
    #[inline(always)]
    unsafe fn run<C: Vector>((product, tiles): Self::Arguments<'_>) {
        let stride = stride(product.m);
        for n in 0..product.n {
            for m in 0..product.m {
                let a: [f32; 4] = std::array::from_fn(|k| number::widen_f16(tiles.a[k * stride + m] as u16));
                let b: [f32; 4] = std::array::from_fn(|k| number::widen_f16(tiles.b[k * product.n + n] as u16));
                let d = &mut tiles.d[n * stride + m];
                let c = convert::read(product.c, *d);
                let result = match product.d {
                    Accumulator::F16 => {
                        let low = C::fma32(a[1], b[1], a[0] * b[0]);
                        let high = C::fma32(a[3], b[3], a[2] * b[2]);
                        (c + low) + high
                    }
                    Accumulator::F32 | Accumulator::F64 | Accumulator::S32 => {
                        c + (0..4).fold(0.0, |sum, k| C::fma32(a[k], b[k], sum))
                    }
                };
                *d = convert::write(product.d, result);
            }
        }
    }
}
