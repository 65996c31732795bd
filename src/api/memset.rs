//! Memory management: sets (`cuMemset*`).
//!
//! Every variant is one rectangle of elements of 1, 2 or 4 bytes; whether the memory is there is found out in
//! `driver/memory/`.

use super::call::{Answer, DefaultStream};
use super::types::*;
use crate::driver::Context;
use crate::driver::copies::{set, set_async};
use std::sync::Arc;

/// A rectangle of elements; a line has one row.
struct Area {
    dst: CUdeviceptr,
    pitch: usize,
    element: u32,
    value: u32,
    width: usize,
    height: usize,
}

impl Area {
    fn is_empty(&self) -> bool {
        self.width == 0 || self.height == 0
    }

    fn set(&self, default: DefaultStream) -> Answer {
        if self.is_empty() {
            return Ok(());
        }
        let (width, height) = (self.width as u64, self.height as u64);
        Ok(set(
            self.dst,
            self.pitch as u64,
            self.element,
            self.value,
            width,
            height,
            default.is_per_thread(),
        )?)
    }

    fn set_async(&self, default: DefaultStream, stream: CUstream) -> Answer {
        let stream = default.resolve(stream)?;
        if self.is_empty() {
            return Ok(());
        }
        let (width, height) = (self.width as u64, self.height as u64);
        Ok(set_async(
            self.dst,
            self.pitch as u64,
            self.element,
            self.value,
            width,
            height,
            &stream,
        )?)
    }
}

/// The twelve calls differ in element, shape and stream only.
macro_rules! sets {
    ($($line:ident $line_async:ident $area:ident $area_async:ident $element:ty;)*) => {
        $(
            pub fn $line(
                _: &Arc<Context>,
                default: DefaultStream,
                dst: CUdeviceptr,
                value: $element,
                count: usize,
            ) -> Answer {
                area::<$element>(dst, 0, value.into(), count, 1).set(default)
            }

            pub fn $line_async(
                _: &Arc<Context>,
                default: DefaultStream,
                dst: CUdeviceptr,
                value: $element,
                count: usize,
                stream: CUstream,
            ) -> Answer {
                area::<$element>(dst, 0, value.into(), count, 1).set_async(default, stream)
            }

            pub fn $area(
                _: &Arc<Context>,
                default: DefaultStream,
                dst: CUdeviceptr,
                pitch: usize,
                value: $element,
                width: usize,
                height: usize,
            ) -> Answer {
                area::<$element>(dst, pitch, value.into(), width, height).set(default)
            }

            #[allow(clippy::too_many_arguments, reason = "the signature is that of the call in the manual")]
            pub fn $area_async(
                _: &Arc<Context>,
                default: DefaultStream,
                dst: CUdeviceptr,
                pitch: usize,
                value: $element,
                width: usize,
                height: usize,
                stream: CUstream,
            ) -> Answer {
                area::<$element>(dst, pitch, value.into(), width, height).set_async(default, stream)
            }
        )*
    };
}

fn area<Element>(dst: CUdeviceptr, pitch: usize, value: u32, width: usize, height: usize) -> Area {
    Area {
        dst,
        pitch,
        element: size_of::<Element>() as u32,
        value,
        width,
        height,
    }
}

sets! {
    memset_d8 memset_d8_async memset_d2d8 memset_d2d8_async c_uchar;
    memset_d16 memset_d16_async memset_d2d16 memset_d2d16_async c_ushort;
    memset_d32 memset_d32_async memset_d2d32 memset_d2d32_async c_uint;
}
