//! Tensor Map Object Management: every rule of the manual, on its edge.

use crate::alone::alone;
use crate::basics::context;
use crate::c::*;
use crate::test_name;
use std::ffi::{c_int, c_uint, c_void};
use std::ptr::null_mut;

/// `CUtensorMap`.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Map([u64; 16]);

functions! {
    cuTensorMapEncodeTiled(
        map: *mut Map,
        element: c_uint,
        rank: c_uint,
        address: *mut c_void,
        dims: *const u64,
        strides: *const u64,
        tile: *const u32,
        steps: *const u32,
        interleave: c_uint,
        swizzle: c_uint,
        promotion: c_uint,
        fill: c_uint,
    );
    cuTensorMapEncodeIm2col(
        map: *mut Map,
        element: c_uint,
        rank: c_uint,
        address: *mut c_void,
        dims: *const u64,
        strides: *const u64,
        lower: *const c_int,
        upper: *const c_int,
        channels: c_uint,
        pixels: c_uint,
        steps: *const u32,
        interleave: c_uint,
        swizzle: c_uint,
        promotion: c_uint,
        fill: c_uint,
    );
    cuTensorMapEncodeIm2colWide(
        map: *mut Map,
        element: c_uint,
        rank: c_uint,
        address: *mut c_void,
        dims: *const u64,
        strides: *const u64,
        lower: c_int,
        upper: c_int,
        channels: c_uint,
        pixels: c_uint,
        steps: *const u32,
        interleave: c_uint,
        mode: c_uint,
        swizzle: c_uint,
        promotion: c_uint,
        fill: c_uint,
    );
    cuTensorMapReplaceAddress(map: *mut Map, address: *mut c_void);
    cuTensorMapSetAllocationClass(map: *mut Map, class: c_uint, class_out: *mut c_uint);
}

// CUtensorMapDataType
const U8: c_uint = 0;
const FLOAT16: c_uint = 6;
const FLOAT32: c_uint = 7;
const TF32_FTZ: c_uint = 12;
const U4_ALIGN8: c_uint = 13;
const U4_ALIGN16: c_uint = 14;
const U6_ALIGN16: c_uint = 15;
const INTERLEAVE_16: c_uint = 1;
const INTERLEAVE_32: c_uint = 2;
// CUtensorMapSwizzle
const SWIZZLE_32: c_uint = 1;
const SWIZZLE_64: c_uint = 2;
const SWIZZLE_128: c_uint = 3;
const ATOM_32: c_uint = 4;
const ATOM_32_FLIP: c_uint = 5;
const ATOM_64: c_uint = 6;

/// The arguments of a call; those of the other calls are not used.
#[derive(Clone, Copy, Debug)]
struct Shape {
    element: c_uint,
    rank: c_uint,
    address: usize,
    dims: [u64; 5],
    strides: [u64; 4],
    tile: [u32; 5],
    steps: [u32; 5],
    interleave: c_uint,
    swizzle: c_uint,
    promotion: c_uint,
    fill: c_uint,
    lower: [c_int; 3],
    upper: [c_int; 3],
    channels: c_uint,
    pixels: c_uint,
    mode: c_uint,
}

const SHAPE: Shape = Shape {
    element: FLOAT16,
    rank: 3,
    address: 0x7000_0010,
    dims: [64, 32, 16, 8, 4],
    strides: [128, 128 * 32, 128 * 512, 128 * 4096],
    tile: [64, 8, 4, 2, 1],
    steps: [1; 5],
    interleave: 0,
    swizzle: SWIZZLE_128,
    promotion: 2,
    fill: 0,
    lower: [-1, -1, -1],
    upper: [-1, -1, -1],
    channels: 64,
    pixels: 128,
    mode: 0,
};

impl Shape {
    fn tiled(&self, map: *mut Map) -> CUresult {
        cuTensorMapEncodeTiled(
            map,
            self.element,
            self.rank,
            self.address as *mut c_void,
            self.dims.as_ptr(),
            self.strides.as_ptr(),
            self.tile.as_ptr(),
            self.steps.as_ptr(),
            self.interleave,
            self.swizzle,
            self.promotion,
            self.fill,
        )
    }

    fn column(&self, map: *mut Map) -> CUresult {
        cuTensorMapEncodeIm2col(
            map,
            self.element,
            self.rank,
            self.address as *mut c_void,
            self.dims.as_ptr(),
            self.strides.as_ptr(),
            self.lower.as_ptr(),
            self.upper.as_ptr(),
            self.channels,
            self.pixels,
            self.steps.as_ptr(),
            self.interleave,
            self.swizzle,
            self.promotion,
            self.fill,
        )
    }

    fn wide(&self, map: *mut Map) -> CUresult {
        cuTensorMapEncodeIm2colWide(
            map,
            self.element,
            self.rank,
            self.address as *mut c_void,
            self.dims.as_ptr(),
            self.strides.as_ptr(),
            self.lower[0],
            self.upper[0],
            self.channels,
            self.pixels,
            self.steps.as_ptr(),
            self.interleave,
            self.mode,
            self.swizzle,
            self.promotion,
            self.fill,
        )
    }
}

fn with(change: impl FnOnce(&mut Shape)) -> Shape {
    let mut shape = SHAPE;
    change(&mut shape);
    shape
}

type Encode = fn(&Shape, *mut Map) -> CUresult;
const ALL: [(&str, Encode); 3] = [
    ("tiled", Shape::tiled),
    ("im2col", Shape::column),
    ("wide", Shape::wide),
];

#[track_caller]
fn expect(encodings: &[(&str, Encode)], right: bool, what: &str, shape: &Shape) {
    for (name, encode) in encodings {
        let mut map = Map([0x55; 16]);
        let result = encode(shape, &mut map);
        let expected = if right { CUDA_SUCCESS } else { CUDA_ERROR_INVALID_VALUE };
        assert_eq!(result, expected, "{name}: {what}");
        assert_eq!(
            map == Map([0x55; 16]),
            !right,
            "{name}: {what}: written if and only if it is right"
        );
    }
}

#[test]
fn what_all_maps_have_is_checked() {
    let context = context();
    let right = |what, shape: Shape| expect(&ALL, true, what, &shape);
    let wrong = |what, shape: Shape| expect(&ALL, false, what, &shape);
    right("as it is", SHAPE);
    wrong("rank 0", with(|s| s.rank = 0));
    wrong("rank 6", with(|s| s.rank = 6));
    right("rank 5", with(|s| s.rank = 5));
    wrong("element", with(|s| s.element = 16));
    wrong("an address at 8 bytes", with(|s| s.address += 8));
    right("an address at 16 bytes", with(|s| s.address = 16));
    right("the largest size", with(|s| s.dims[2] = 1 << 31));
    wrong("a larger size", with(|s| s.dims[2] = (1 << 31) + 1));
    wrong("no size", with(|s| s.dims[0] = 0));
    right("sizes beyond the rank", with(|s| s.dims[3] = 0));
    right("the largest stride", with(|s| s.strides[1] = (1 << 40) - 16));
    wrong("a larger stride", with(|s| s.strides[1] = 1 << 40));
    wrong("a stride of 8 bytes", with(|s| s.strides[0] = 136));
    right("strides beyond the rank", with(|s| s.strides[2] = 1));
    right("the largest step", with(|s| s.steps[1] = 8));
    wrong("a larger step", with(|s| s.steps[1] = 9));
    wrong("no step", with(|s| s.steps[2] = 0));
    right(
        "a step along the first dimension, which is ignored",
        with(|s| s.steps[0] = 0),
    );
    wrong("interleave", with(|s| s.interleave = 3));
    wrong("swizzle", with(|s| s.swizzle = 7));
    right("the largest promotion", with(|s| s.promotion = 3));
    wrong("promotion", with(|s| s.promotion = 4));
    wrong("fill", with(|s| s.fill = 2));
    // Not-a-number outside: of floating-point elements.
    for element in 0..16 {
        let shape = with(|s| {
            s.element = element;
            s.fill = 1;
            s.address = 0x7000_0020;
            s.swizzle = SWIZZLE_128;
            (s.dims[0], s.tile[0], s.channels) = (128, 16, 16);
            if element >= U4_ALIGN16 {
                (s.tile[0], s.channels) = (128, 128);
            } else if element == U4_ALIGN8 {
                (s.tile[0], s.channels) = (32, 32);
            }
        });
        let is_float = (FLOAT16..=TF32_FTZ).contains(&element);
        expect(&ALL, is_float, "not-a-number", &shape);
        expect(&ALL, true, "zeros", &Shape { fill: 0, ..shape });
    }
    for (name, encode) in ALL {
        assert_eq!(encode(&SHAPE, null_mut()), CUDA_ERROR_INVALID_VALUE, "{name}");
        // The manual has them 64 bytes apart, where kernels find them; cuda.core makes them in Python's objects first.
        let mut maps = [Map([0; 16]); 3];
        ok(encode(&SHAPE, &mut maps[0]));
        let off = (&raw mut maps[1]).wrapping_byte_add(16);
        ok(encode(&SHAPE, off));
        // SAFETY: a map that was written there, within the two that follow.
        let there = unsafe { off.read_unaligned() };
        assert_eq!(there.0, maps[0].0, "{name}");
    }
    let mut map = Map([0; 16]);
    let nothing = std::ptr::null();
    assert_eq!(
        cuTensorMapEncodeTiled(
            &mut map,
            U8,
            1,
            null_mut(),
            nothing,
            nothing,
            [16].as_ptr(),
            [1].as_ptr(),
            0,
            0,
            0,
            0
        ),
        CUDA_ERROR_INVALID_VALUE
    );
    ok(cuCtxSetCurrent(null_mut()));
    assert_eq!(SHAPE.tiled(&mut map), CUDA_ERROR_INVALID_CONTEXT);
    ok(cuCtxSetCurrent(context));
    ok(cuCtxDestroy(context));
}

#[test]
fn tiles_are_checked() {
    let context = context();
    let tiled: &[(&str, Encode)] = &ALL[..1];
    let right = |what, shape: Shape| expect(tiled, true, what, &shape);
    let wrong = |what, shape: Shape| expect(tiled, false, what, &shape);
    right("one dimension", with(|s| s.rank = 1));
    right("two dimensions", with(|s| s.rank = 2));
    right("the largest box", with(|s| s.tile[1] = 256));
    wrong("a larger box", with(|s| s.tile[1] = 257));
    wrong("no box", with(|s| s.tile[2] = 0));
    // Multiples of 16 bytes along the first dimension, unless channels are interleaved.
    wrong("14 bytes", with(|s| s.tile[0] = 7));
    right("16 bytes", with(|s| s.tile[0] = 8));
    right(
        "14 bytes of interleaved channels",
        with(|s| (s.tile[0], s.interleave) = (7, INTERLEAVE_16)),
    );
    // No more than the swizzle spans.
    for (swizzle, bytes) in [
        (SWIZZLE_32, 32),
        (SWIZZLE_64, 64),
        (SWIZZLE_128, 128),
        (ATOM_32, 128),
        (ATOM_32_FLIP, 128),
        (ATOM_64, 128),
    ] {
        right("a whole span", with(|s| (s.swizzle, s.tile[0]) = (swizzle, bytes / 2)));
        wrong(
            "more than a span",
            with(|s| (s.swizzle, s.tile[0]) = (swizzle, bytes / 2 + 8)),
        );
        let interleaved = with(|s| (s.swizzle, s.tile[0], s.interleave) = (swizzle, 256, INTERLEAVE_16));
        right("interleaved, any", interleaved);
    }
    right("no swizzle, no span", with(|s| (s.swizzle, s.tile[0]) = (0, 256)));
    // Interleaved layouts.
    wrong(
        "interleaved planes",
        with(|s| (s.interleave, s.rank) = (INTERLEAVE_16, 2)),
    );
    let by_32 = |change: fn(&mut Shape)| {
        with(|s| {
            (s.interleave, s.swizzle, s.address) = (INTERLEAVE_32, SWIZZLE_32, 0x7000_0020);
            change(s);
        })
    };
    right("32 bytes", by_32(|_| {}));
    wrong("32 bytes, another swizzle", by_32(|s| s.swizzle = SWIZZLE_64));
    wrong("32 bytes, no swizzle", by_32(|s| s.swizzle = 0));
    wrong("32 bytes at 16", by_32(|s| s.address = 0x7000_0010));
    wrong("32 bytes, a stride of 16", by_32(|s| s.strides[0] = 144));
    wrong("32 bytes, no first step", by_32(|s| s.steps[0] = 0));
    // Packed elements.
    let packed = |element, change: fn(&mut Shape)| {
        with(|s| {
            (s.element, s.address, s.dims[0], s.tile[0]) = (element, 0x7000_0020, 256, 128);
            change(s);
        })
    };
    for element in [U4_ALIGN16, U6_ALIGN16] {
        right("packed", packed(element, |_| {}));
        wrong("packed, at 16", packed(element, |s| s.address = 0x7000_0010));
        wrong("packed, 129 elements", packed(element, |s| s.dims[0] = 129));
        wrong("packed, 192 elements", packed(element, |s| s.dims[0] = 192));
        wrong("packed, a box of 64", packed(element, |s| s.tile[0] = 64));
        wrong("packed, a stride of 16", packed(element, |s| s.strides[1] = 16));
        right("packed, no swizzle", packed(element, |s| s.swizzle = 0));
        right("packed, 32-byte chunks", packed(element, |s| s.swizzle = ATOM_32));
        wrong("packed, 64 bytes", packed(element, |s| s.swizzle = SWIZZLE_64));
        wrong("packed, flipped", packed(element, |s| s.swizzle = ATOM_32_FLIP));
    }
    right("6 bits, 64-byte chunks", packed(U6_ALIGN16, |s| s.swizzle = ATOM_64));
    wrong("4 bits, 64-byte chunks", packed(U4_ALIGN16, |s| s.swizzle = ATOM_64));
    wrong(
        "6 bits, interleaved",
        packed(U6_ALIGN16, |s| s.interleave = INTERLEAVE_16),
    );
    let dense = |change: fn(&mut Shape)| packed(U4_ALIGN8, change);
    right("4 bits without gaps, at 16", dense(|s| s.address = 0x7000_0010));
    wrong("4 bits without gaps, an odd size", dense(|s| s.dims[0] = 33));
    right("4 bits without gaps, 16 bytes", dense(|s| s.tile[0] = 32));
    wrong("4 bits without gaps, 8 bytes", dense(|s| s.tile[0] = 16));
    right("4 bits without gaps, 128 bytes", dense(|s| s.tile[0] = 256));
    ok(cuCtxDestroy(context));
}

#[test]
fn columns_are_checked() {
    let context = context();
    let columns: &[(&str, Encode)] = &ALL[1..];
    let right = |what, shape: Shape| expect(columns, true, what, &shape);
    let wrong = |what, shape: Shape| expect(columns, false, what, &shape);
    wrong("two dimensions", with(|s| s.rank = 2));
    right("four dimensions", with(|s| s.rank = 4));
    right(
        "the most channels",
        with(|s| (s.channels, s.interleave) = (256, INTERLEAVE_16)),
    );
    wrong(
        "more channels",
        with(|s| (s.channels, s.interleave) = (257, INTERLEAVE_16)),
    );
    wrong("no channels", with(|s| s.channels = 0));
    wrong("more channels than the swizzle spans", with(|s| s.channels = 65));
    right("the most pixels", with(|s| s.pixels = 1024));
    wrong("more pixels", with(|s| s.pixels = 1025));
    right("a box of one pixel", with(|s| (s.lower[0], s.upper[0]) = (0, -31)));
    wrong("a box of none", with(|s| (s.lower[0], s.upper[0]) = (0, -32)));
    right("corners far out", with(|s| (s.lower[0], s.upper[0]) = (-32768, 32767)));
    wrong("a corner farther out", with(|s| s.lower[0] = -32769));
    wrong("the other corner, too", with(|s| s.upper[0] = 32768));
    // The more dimensions, the fewer bits has a corner.
    let im2col: &[(&str, Encode)] = &ALL[1..2];
    for (rank, last, least, most) in [(4, 1, -128, 127), (5, 2, -16, 15)] {
        for index in 0..=last {
            let shape = with(|s| (s.rank, s.lower[index], s.upper[index]) = (rank, least, most));
            expect(im2col, true, "the farthest corners", &shape);
            let shape = with(|s| (s.rank, s.lower[index]) = (rank, least - 1));
            expect(im2col, false, "a lower one", &shape);
            let shape = with(|s| (s.rank, s.upper[index]) = (rank, most + 1));
            expect(im2col, false, "a higher one", &shape);
        }
        // Along H and D the wide modes have no corner.
        let shape = with(|s| (s.rank, s.lower, s.upper) = (rank, [-1000, 99999, 0], [1000, 0, 99999]));
        expect(&ALL[2..], true, "a corner along W alone", &shape);
    }
    for element in [U4_ALIGN16, U6_ALIGN16] {
        let packed =
            |channels| with(|s| (s.element, s.address, s.dims[0], s.channels) = (element, 0x7000_0020, 256, channels));
        right("packed", packed(128));
        wrong("packed, fewer channels", packed(64));
    }
    // The wide ones swizzle in three ways.
    let wide: &[(&str, Encode)] = &ALL[2..];
    for swizzle in 0..7 {
        let shape = with(|s| (s.swizzle, s.channels, s.element) = (swizzle, 8, FLOAT32));
        let known = matches!(swizzle, SWIZZLE_64 | SWIZZLE_128 | ATOM_32);
        expect(wide, known, "a swizzle", &shape);
        expect(im2col, true, "a swizzle", &shape);
    }
    expect(wide, true, "W128", &with(|s| (s.mode, s.pixels) = (1, 0)));
    expect(wide, false, "W without pixels", &with(|s| s.pixels = 0));
    expect(wide, false, "a mode that is none", &with(|s| s.mode = 2));
    ok(cuCtxDestroy(context));
}

#[test]
fn addresses_and_classes_are_set_later() {
    let context = context();
    for (name, encode) in ALL {
        let (mut map, mut same) = (Map([0; 16]), Map([0; 16]));
        ok(encode(&SHAPE, &mut map));
        // Replacing gives the map that the address would have given at once.
        ok(encode(&with(|s| s.address = 0x1234_5670), &mut same));
        assert_ne!(map, same);
        ok(cuTensorMapReplaceAddress(&mut map, 0x1234_5670 as *mut c_void));
        assert_eq!(map, same, "{name}");
        let off = 0x1234_5678 as *mut c_void;
        assert_eq!(cuTensorMapReplaceAddress(&mut map, off), CUDA_ERROR_INVALID_VALUE);
        // The class has no effect, and says so; the map stays as it is.
        let mut least = 0;
        ok(cuDeviceGetAttribute(&mut least, 160, 0));
        assert_eq!(least, c_int::MAX);
        for class in 0..3 {
            let mut found = 99;
            ok(cuTensorMapSetAllocationClass(&mut map, class, &mut found));
            assert_eq!(found, 1);
            ok(cuTensorMapSetAllocationClass(&mut map, class, null_mut()));
        }
        let mut found = 99;
        assert_eq!(
            cuTensorMapSetAllocationClass(&mut map, 3, &mut found),
            CUDA_ERROR_INVALID_VALUE
        );
        assert_eq!((found, map), (1, same));
    }
    let mut none = Map([7; 16]);
    let mut found = 99;
    let address = 0x1000 as *mut c_void;
    assert_eq!(cuTensorMapReplaceAddress(&mut none, address), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuTensorMapReplaceAddress(null_mut(), address), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(
        cuTensorMapSetAllocationClass(&mut none, 1, &mut found),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(found, 1);
    assert_eq!(
        cuTensorMapSetAllocationClass(null_mut(), 1, null_mut()),
        CUDA_ERROR_INVALID_VALUE
    );
    // The alignment that the map was made with counts.
    let by_32 = with(|s| (s.interleave, s.swizzle, s.address) = (INTERLEAVE_32, SWIZZLE_32, 64));
    ok(by_32.tiled(&mut none));
    assert_eq!(
        cuTensorMapReplaceAddress(&mut none, 0x1010 as *mut c_void),
        CUDA_ERROR_INVALID_VALUE
    );
    ok(cuTensorMapReplaceAddress(&mut none, 0x1020 as *mut c_void));
    ok(cuCtxDestroy(context));
}

#[test]
fn older_devices_have_no_tensor_maps() {
    alone(test_name!(), &[("MARGAY_DEVICE", "sm_80")], || {
        context();
        let mut supported = 9;
        ok(cuDeviceGetAttribute(&mut supported, 127, 0));
        assert_eq!(supported, 0);
        let mut map = Map([0; 16]);
        assert_eq!(SHAPE.tiled(&mut map), 801);
    });
}
