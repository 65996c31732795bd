//! Texture and surface objects: what is made, what is refused, what kernels see of objects that are gone.

use std::ptr::{null, null_mut};

use crate::alone::alone;
use crate::c::*;
use crate::test_name;

const FLOAT: u32 = 0x20;
const UINT8: u32 = 1;
const ARRAY: u32 = 0;
const MIPMAP: u32 = 1;
const LINEAR: u32 = 2;
const PITCH: u32 = 3;
const NORMALIZED: u32 = 2;
const SRGB: u32 = 0x10;
const SEAMLESS: u32 = 0x40;

const KERNELS: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .entry look(.param .u64 t, .param .u64 out)
{
    .reg .b64 %t, %o;
    .reg .f32 %f<4>;
    .reg .b32 %r<4>;
    ld.param.u64 %t, [t];
    ld.param.u64 %o, [out];
    mov.u32 %r0, %tid.x;
    tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%t, {%r0}];
    mul.wide.u32 %t, %r0, 4;
    add.u64 %o, %o, %t;
    st.global.f32 [%o], %f0;
    ret;
}
.visible .entry look2d(.param .u64 t, .param .u64 out)
{
    .reg .b64 %t, %o;
    .reg .f32 %f<4>;
    .reg .b32 %r<4>;
    ld.param.u64 %t, [t];
    ld.param.u64 %o, [out];
    mov.u32 %r0, %tid.x;
    and.b32 %r1, %r0, 7;
    shr.u32 %r2, %r0, 3;
    tex.2d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%t, {%r1, %r2}];
    mul.wide.u32 %t, %r0, 16;
    add.u64 %o, %o, %t;
    st.global.v4.f32 [%o], {%f0, %f1, %f2, %f3};
    ret;
}
.visible .entry store(.param .u64 s, .param .u64 out)
{
    .reg .b64 %s;
    .reg .b32 %r<4>;
    ld.param.u64 %s, [s];
    mov.u32 %r0, %tid.x;
    mul.lo.u32 %r1, %r0, 4;
    sust.b.1d.b32.trap [%s, {%r1}], %r0;
    ret;
}
\0";

fn in_context() {
    ok(cuInit(0));
    let mut context = null_mut();
    ok(cuDevicePrimaryCtxRetain(&mut context, 0));
    ok(cuCtxSetCurrent(context));
}

fn array_of(format: u32, width: usize, height: usize, depth: usize, flags: u32) -> CUarray {
    let descriptor = ArrayDescriptor {
        width,
        height,
        depth,
        format,
        channels: 1,
        flags,
    };
    let mut array = null_mut();
    ok(cuArray3DCreate(&mut array, &descriptor));
    array
}

fn resource(kind: u32, words: &[u64]) -> ResourceDescriptor {
    let mut res = [0; 16];
    res[..words.len()].copy_from_slice(words);
    ResourceDescriptor { kind, res, flags: 0 }
}

/// A linear resource of f32: address, format and channels, bytes.
fn linear(address: u64, bytes: u64) -> ResourceDescriptor {
    resource(LINEAR, &[address, u64::from(FLOAT) | 1 << 32, bytes])
}

fn created(resource: &ResourceDescriptor, texture: &TextureDescriptor) -> u64 {
    let mut object = 0;
    ok(cuTexObjectCreate(&mut object, resource, texture, null()));
    object
}

#[track_caller]
fn refused(resource: &ResourceDescriptor, texture: &TextureDescriptor, view: *const ViewDescriptor) {
    let mut object = 0;
    let result = cuTexObjectCreate(&mut object, resource, texture, view);
    assert_eq!(result, CUDA_ERROR_INVALID_VALUE);
}

fn launch(name: &str, object: u64, out: CUdeviceptr, threads: u32) -> CUresult {
    let mut module = null_mut();
    ok(cuModuleLoadData(&mut module, KERNELS.as_ptr().cast()));
    let mut function = null_mut();
    let name = std::ffi::CString::new(name).expect("a name");
    ok(cuModuleGetFunction(&mut function, module, name.as_ptr()));
    let (mut object, mut out) = (object, out);
    let mut parameters = [(&raw mut object).cast(), (&raw mut out).cast()];
    let parameters = parameters.as_mut_ptr();
    let launched = cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, null_mut(), parameters, null_mut());
    if launched != CUDA_SUCCESS {
        return launched;
    }
    cuCtxSynchronize()
}

#[test]
fn descriptors_come_back() {
    in_context();
    let array = array_of(FLOAT, 8, 4, 0, 0);
    let asked = resource(ARRAY, &[array as u64]);
    let texture = TextureDescriptor {
        address: [0, 1, 2],
        filter: 1,
        flags: NORMALIZED,
        anisotropy: 4,
        level_filter: 1,
        level_bias: 0.5,
        level_clamp: [0.25, 2.0],
        border: [1.0, 2.0, 3.0, 4.0],
        reserved: [0; 12],
    };
    let view = ViewDescriptor {
        format: 0x16,
        width: 8,
        height: 4,
        ..ViewDescriptor::default()
    };
    let mut object = 0;
    ok(cuTexObjectCreate(&mut object, &asked, &texture, &view));
    let (mut r, mut t, mut v) = Default::default();
    ok(cuTexObjectGetResourceDesc(&mut r, object));
    ok(cuTexObjectGetTextureDesc(&mut t, object));
    ok(cuTexObjectGetResourceViewDesc(&mut v, object));
    assert_eq!((r.kind, r.res[0], t, v), (asked.kind, asked.res[0], texture, view));
    let other = created(&asked, &texture);
    assert_ne!(object, other);
    assert_eq!(cuTexObjectGetResourceViewDesc(&mut v, other), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuSurfObjectDestroy(object), CUDA_ERROR_INVALID_VALUE);
    ok(cuTexObjectDestroy(object));
    ok(cuTexObjectDestroy(other));
    assert_eq!(cuTexObjectDestroy(object), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuTexObjectGetTextureDesc(&mut t, object), CUDA_ERROR_INVALID_VALUE);
    ok(cuArrayDestroy(array));
}

#[test]
fn what_does_not_go_together_is_refused() {
    in_context();
    let array = array_of(FLOAT, 8, 4, 0, 0);
    let good = resource(ARRAY, &[array as u64]);
    let plain = TextureDescriptor::default();
    refused(&resource(ARRAY, &[0]), &plain, null());
    refused(&resource(ARRAY, &[0x1234]), &plain, null());
    refused(&resource(MIPMAP, &[array as u64]), &plain, null());
    refused(&resource(7, &[array as u64]), &plain, null());
    refused(&ResourceDescriptor { flags: 1, ..good }, &plain, null());
    let with = |change: fn(&mut TextureDescriptor)| {
        let mut texture = plain;
        change(&mut texture);
        texture
    };
    refused(&good, &with(|t| t.address[1] = 4), null());
    refused(&good, &with(|t| t.filter = 2), null());
    refused(&good, &with(|t| t.level_filter = 2), null());
    refused(&good, &with(|t| t.flags = 0x100), null());
    refused(&good, &with(|t| t.flags = SRGB), null());
    refused(&good, &with(|t| t.flags = SEAMLESS), null());
    let view = |change: fn(&mut ViewDescriptor)| {
        let mut view = ViewDescriptor {
            width: 8,
            height: 4,
            ..ViewDescriptor::default()
        };
        change(&mut view);
        view
    };
    refused(&good, &plain, &view(|v| v.width = 9));
    refused(&good, &plain, &view(|v| v.last_level = 1));
    refused(&good, &plain, &view(|v| v.first_layer = 1));
    // Two floats are not as wide as one.
    refused(&good, &plain, &view(|v| v.format = 0x17));
    refused(&good, &plain, &view(|v| v.format = 0x99));
    // Mipmapped arrays take fractions of their size.
    let descriptor = ArrayDescriptor {
        width: 8,
        height: 8,
        depth: 0,
        format: FLOAT,
        channels: 1,
        flags: 0,
    };
    let mut mipmap = null_mut();
    ok(cuMipmappedArrayCreate(&mut mipmap, &descriptor, 3));
    refused(&resource(MIPMAP, &[mipmap as u64]), &plain, null());
    let normalized = with(|t| t.flags = NORMALIZED);
    ok(cuTexObjectDestroy(created(
        &resource(MIPMAP, &[mipmap as u64]),
        &normalized,
    )));
    ok(cuMipmappedArrayDestroy(mipmap));
    let mut memory = 0;
    ok(cuMemAlloc(&mut memory, 4096));
    refused(&linear(0, 64), &plain, null());
    refused(&linear(memory + 4, 64), &plain, null());
    refused(&linear(memory, 0), &plain, null());
    refused(&linear(memory, 1 << 40), &plain, null());
    refused(&linear(memory, 64), &plain, &view(|_| ()));
    let format = u64::from(FLOAT) | 1 << 32;
    // A pitch that is too small, and one that is not aligned.
    refused(&resource(PITCH, &[memory, format, 8, 2, 0]), &plain, null());
    refused(&resource(PITCH, &[memory, format, 8, 2, 48]), &plain, null());
    ok(cuTexObjectDestroy(created(
        &resource(PITCH, &[memory, format, 8, 2, 64]),
        &plain,
    )));
    ok(cuMemFree(memory));
    let mut object = 0;
    assert_eq!(
        cuTexObjectCreate(null_mut(), &good, &plain, null()),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(
        cuTexObjectCreate(&mut object, null(), &plain, null()),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(
        cuTexObjectCreate(&mut object, &good, null(), null()),
        CUDA_ERROR_INVALID_VALUE
    );
    // Surfaces need arrays that were made for them.
    assert_eq!(cuSurfObjectCreate(&mut object, &good), CUDA_ERROR_INVALID_VALUE);
    ok(cuArrayDestroy(array));
    let bytes = array_of(UINT8, 8, 4, 0, 0);
    let srgb = with(|t| t.flags = SRGB);
    ok(cuTexObjectDestroy(created(&resource(ARRAY, &[bytes as u64]), &srgb)));
    ok(cuArrayDestroy(bytes));
}

#[test]
fn kernels_read_what_was_copied() {
    in_context();
    let array = array_of(FLOAT, 32, 0, 0, 2);
    let texels: [f32; 32] = std::array::from_fn(|i| 1.5 * i as f32);
    ok(cuMemcpyHtoA(array, 0, texels.as_ptr().cast(), 128));
    let object = created(&resource(ARRAY, &[array as u64]), &TextureDescriptor::default());
    let mut out = 0;
    ok(cuMemAlloc(&mut out, 4096));
    let mut found = [0f32; 32];
    ok(launch("look", object, out, 32));
    ok(cuMemcpyDtoH(found.as_mut_ptr().cast(), out, 128));
    assert_eq!(found, texels);
    // A surface over the same array.
    let mut surface = 0;
    ok(cuSurfObjectCreate(&mut surface, &resource(ARRAY, &[array as u64])));
    ok(launch("store", surface, out, 32));
    let mut words = [0u32; 32];
    ok(cuMemcpyAtoH(words.as_mut_ptr().cast(), array, 0, 128));
    assert_eq!(words, std::array::from_fn(|i| i as u32));
    // Memory in a row: beyond its end are zeros.
    ok(cuMemcpyHtoD(out + 512, texels.as_ptr().cast(), 64));
    let row = created(&linear(out + 512, 64), &TextureDescriptor::default());
    ok(launch("look", row, out, 32));
    ok(cuMemcpyDtoH(found.as_mut_ptr().cast(), out, 128));
    assert_eq!(found[..16], texels[..16]);
    assert_eq!(found[16..], [0.0; 16]);
    ok(cuTexObjectDestroy(row));
    ok(cuTexObjectDestroy(object));
    ok(cuSurfObjectDestroy(surface));
    ok(cuMemFree(out));
    ok(cuArrayDestroy(array));
}

#[test]
fn an_object_that_is_gone_is_a_fault() {
    let run = alone(test_name!(), &[("MARGAY_LOG", "error")], || {
        in_context();
        let array = array_of(FLOAT, 32, 0, 0, 0);
        let object = created(&resource(ARRAY, &[array as u64]), &TextureDescriptor::default());
        let mut out = 0;
        ok(cuMemAlloc(&mut out, 4096));
        ok(cuTexObjectDestroy(object));
        assert_eq!(launch("look", object, out, 32), CUDA_ERROR_LAUNCH_FAILED);
    });
    assert!(run.stderr.contains("is no texture"), "{}", run.stderr);
}

#[test]
fn an_array_that_is_gone_is_a_fault() {
    let run = alone(test_name!(), &[("MARGAY_LOG", "error")], || {
        in_context();
        let array = array_of(FLOAT, 32, 0, 0, 0);
        let object = created(&resource(ARRAY, &[array as u64]), &TextureDescriptor::default());
        let mut out = 0;
        ok(cuMemAlloc(&mut out, 4096));
        ok(cuArrayDestroy(array));
        assert_eq!(launch("look", object, out, 32), CUDA_ERROR_LAUNCH_FAILED);
    });
    assert!(run.stderr.contains("was destroyed"), "{}", run.stderr);
}

#[test]
fn memory_that_is_gone_is_a_fault() {
    let run = alone(test_name!(), &[("MARGAY_LOG", "error")], || {
        in_context();
        let (mut out, mut memory) = (0, 0);
        ok(cuMemAlloc(&mut out, 4096));
        ok(cuMemAlloc(&mut memory, 4096));
        let object = created(&linear(memory, 4096), &TextureDescriptor::default());
        ok(cuMemFree(memory));
        assert_eq!(launch("look", object, out, 32), CUDA_ERROR_ILLEGAL_ADDRESS);
    });
    assert!(run.stderr.contains("illegal read"), "{}", run.stderr);
}

const ROWS: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .entry rows(.param .u64 t, .param .u64 u, .param .u64 at, .param .u64 out)
{
    .reg .b64 %t, %u, %at, %out, %a, %o;
    .reg .b32 %r<4>, %lane, %i, %n, %place;
    .reg .pred %p;
    ld.param.u64 %t, [t];
    ld.param.u64 %u, [u];
    ld.param.u64 %at, [at];
    ld.param.u64 %out, [out];
    mov.u32 %lane, %tid.x;
    and.b32 %n, %lane, 1;
    setp.eq.u32 %p, %n, 0;
    selp.b64 %u, %t, %u, %p;
    mov.u32 %i, 0;
again:
    mad.lo.u32 %place, %i, 32, %lane;
    mad.wide.u32 %a, %place, 4, %at;
    mad.wide.u32 %o, %place, 32, %out;
    ld.global.u32 %n, [%a];
    // Some do not read.
    setp.eq.u32 %p, %n, 999;
    @%p bra next;
    tex.1d.v4.u32.s32 {%r0, %r1, %r2, %r3}, [%t, {%n}];
    st.global.v4.u32 [%o], {%r0, %r1, %r2, %r3};
    tex.1d.v4.u32.s32 {%r0, %r1, %r2, %r3}, [%u, {%n}];
    st.global.v4.u32 [%o+16], {%r0, %r1, %r2, %r3};
next:
    add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, 6;
    @%p bra again;
    ret;
}
\0";

/// Reads rows by whole numbers, in six turns: those of 32 threads, one turn after the other.
fn read_rows(first: u64, second: u64, at: &[u32; 192]) -> Result<[[u32; 8]; 192], CUresult> {
    let (mut numbers, mut out) = (0, 0);
    let mut found = [[7; 8]; 192];
    ok(cuMemAlloc(&mut numbers, 768));
    ok(cuMemAlloc(&mut out, 192 * 32));
    ok(cuMemcpyHtoD(numbers, at.as_ptr().cast(), 768));
    ok(cuMemcpyHtoD(out, found.as_ptr().cast(), 192 * 32));
    let mut module = null_mut();
    ok(cuModuleLoadData(&mut module, ROWS.as_ptr().cast()));
    let mut function = null_mut();
    ok(cuModuleGetFunction(&mut function, module, c"rows".as_ptr()));
    let mut values = [first, second, numbers, out];
    let mut parameters = values.each_mut().map(|value| (&raw mut *value).cast());
    let parameters = parameters.as_mut_ptr();
    let launched = cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, null_mut(), parameters, null_mut());
    ok(launched);
    match cuCtxSynchronize() {
        CUDA_SUCCESS => {
            ok(cuMemcpyDtoH(found.as_mut_ptr().cast(), out, 192 * 32));
            Ok(found)
        }
        error => Err(error),
    }
}

/// Numbers of texels: the first turn all of one row, then anywhere, some beyond the end, some of nobody.
fn numbers(width: u32) -> [u32; 192] {
    std::array::from_fn(|place| {
        let (turn, lane) = (place as u32 / 32, place as u32 % 32);
        match (turn, lane) {
            (0 | 1, _) => lane,
            (3, 5) => width,
            (3, 6) => u32::MAX,
            (4, _) if lane % 3 == 0 => 999,
            _ => (lane * 37 + turn * 11) % width,
        }
    })
}

#[test]
fn rows_are_read_by_whole_numbers() {
    for tier in ["off", "always"] {
        alone(
            test_name!(),
            &[("MARGAY_JIT", tier), ("MARGAY_JIT_CACHE", "off")],
            || {
                in_context();
                const UINT32: u32 = 3;
                const SINT32: u32 = 10;
                let mut memory = 0;
                ok(cuMemAlloc(&mut memory, 8192));
                let words: [u32; 2048] = std::array::from_fn(|at| at as u32 * 0x9e37_79b9);
                ok(cuMemcpyHtoD(memory, words.as_ptr().cast(), 8192));
                let kinds = [(FLOAT, 1), (UINT32, 2), (SINT32, 4), (FLOAT, 4), (UINT32, 1)];
                let rows = kinds.map(|(format, channels): (u32, usize)| {
                    let format = u64::from(format) | (channels as u64) << 32;
                    let bytes = 100 * 4 * channels as u64;
                    let texture = TextureDescriptor::default();
                    (created(&resource(LINEAR, &[memory, format, bytes]), &texture), channels)
                });
                let one = |kind: usize| if kinds[kind].0 == FLOAT { 1.0_f32.to_bits() } else { 1 };
                let texel = |kind: usize, number: u32| -> [u32; 4] {
                    std::array::from_fn(|i| match i < kinds[kind].1 {
                        true => words[number as usize * kinds[kind].1 + i],
                        false if i == 3 => one(kind),
                        false => 0,
                    })
                };
                let at = numbers(100);
                for (first, second) in [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (2, 2)] {
                    let found = read_rows(rows[first].0, rows[second].0, &at).expect("to be read");
                    for (place, found) in found.iter().enumerate() {
                        let lane = place % 32;
                        let kinds = [first, if lane % 2 == 0 { first } else { second }];
                        for (kind, found) in kinds.into_iter().zip(found.chunks(4)) {
                            match at[place] {
                                999 => assert_eq!(found, [7; 4], "{place}"),
                                // Beyond the end are zeros.
                                number if number >= 100 => assert_eq!(found[0], 0, "{place}"),
                                number => assert_eq!(found, texel(kind, number), "{place} of {kind}"),
                            }
                        }
                    }
                }
                // What was learned of an object is forgotten with it.
                let (object, memory_of) = (rows[1].0, memory);
                ok(cuTexObjectDestroy(rows[0].0));
                let other = created(&linear(memory_of + 512, 400), &TextureDescriptor::default());
                let found = read_rows(other, object, &at).expect("to be read");
                assert_eq!(found[3][0], words[128 + 3]);
                assert_eq!(found[32 + 3][4..6], words[6..8]);
            },
        );
    }
}

#[test]
fn a_row_that_is_gone_is_a_fault_for_those_who_have_read_it() {
    for what in ["object", "memory"] {
        let settings = [("MARGAY_JIT", "always"), ("MARGAY_JIT_CACHE", "off"), ("GOES", what)];
        alone(test_name!(), &settings, || {
            in_context();
            let mut memory = 0;
            ok(cuMemAlloc(&mut memory, 1 << 21));
            let object = created(&linear(memory, 400), &TextureDescriptor::default());
            assert!(read_rows(object, object, &numbers(100)).is_ok());
            let expected = match std::env::var("GOES").as_deref() {
                Ok("object") => {
                    ok(cuTexObjectDestroy(object));
                    CUDA_ERROR_LAUNCH_FAILED
                }
                _ => {
                    ok(cuMemFree(memory));
                    CUDA_ERROR_ILLEGAL_ADDRESS
                }
            };
            assert_eq!(read_rows(object, object, &numbers(100)).unwrap_err(), expected);
        });
    }
}

/// Four blocks of BC1, made by hand: red and blue, and thirds between them.
#[test]
fn blocks_are_read_as_texels() {
    in_context();
    const BC1: u32 = 0x91;
    let index = |x: usize, y: usize| match (x / 4, y / 4) {
        (0, 0) => 0,
        (1, 0) => 1,
        (0, 1) => (4 * y + x) % 4,
        _ => 3,
    };
    let mut blocks = [0_u64; 4];
    for (n, block) in blocks.iter_mut().enumerate() {
        *block = 0xf800 | 0x001f << 16;
        for at in 0..16 {
            *block |= (index(n % 2 * 4 + at % 4, n / 2 * 4 + at / 4) as u64) << (32 + 2 * at);
        }
    }
    let mut out = 0;
    ok(cuMemAlloc(&mut out, 64 * 16));
    let look = |object: u64| {
        let mut found = [[9.0_f32; 4]; 64];
        ok(launch("look2d", object, out, 64));
        ok(cuMemcpyDtoH(found.as_mut_ptr().cast(), out, 64 * 16));
        ok(cuTexObjectDestroy(object));
        found
    };
    // As an array of blocks, and as words that are viewed as blocks.
    let native = array_of(BC1, 8, 8, 0, 0);
    let descriptor = ArrayDescriptor {
        width: 2,
        height: 2,
        depth: 0,
        format: 3,
        channels: 2,
        flags: 0,
    };
    let mut words = null_mut();
    ok(cuArray3DCreate(&mut words, &descriptor));
    for array in [native, words] {
        ok(cuMemcpy2D(&Copy2D {
            src_x: 0,
            src_y: 0,
            src_type: 1,
            src_host: blocks.as_ptr().cast(),
            src_device: 0,
            src_array: null_mut(),
            src_pitch: 16,
            dst_x: 0,
            dst_y: 0,
            dst_type: 3,
            dst_host: null_mut(),
            dst_device: 0,
            dst_array: array,
            dst_pitch: 0,
            width: 16,
            height: 2,
        }));
    }
    let plain = TextureDescriptor::default();
    let view = ViewDescriptor {
        format: 0x19,
        width: 8,
        height: 8,
        ..ViewDescriptor::default()
    };
    let (native, words) = (resource(ARRAY, &[native as u64]), resource(ARRAY, &[words as u64]));
    let mut viewed = 0;
    ok(cuTexObjectCreate(&mut viewed, &words, &plain, &view));
    let expected: [[f32; 4]; 64] = std::array::from_fn(|at| {
        let blue = [0.0, 1.0, 1.0 / 3.0, 2.0 / 3.0][index(at % 8, at / 8)];
        [1.0 - blue, 0.0, blue, 1.0]
    });
    let near = |found: [[f32; 4]; 64], expected: [[f32; 4]; 64]| {
        let each = found.as_flattened().iter().zip(expected.as_flattened());
        each.for_each(|(found, expected)| assert!((found - expected).abs() < 1e-6, "{found} for {expected}"));
    };
    near(look(created(&native, &plain)), expected);
    near(look(viewed), expected);
    // IEC 61966-2-1, as an H100's table has it: bytes 85 and 170 are a third and two.
    let srgb = TextureDescriptor { flags: SRGB, ..plain };
    let linear = |value: f32| match (value * 255.0).round() {
        85.0 => 1488.0 / 16384.0,
        170.0 => 6592.0 / 16384.0,
        whole => whole / 255.0,
    };
    let curved = expected.map(|[r, g, b, a]| [linear(r), linear(g), linear(b), a]);
    near(look(created(&native, &srgb)), curved);
    // Views are four times as large, of words, of blocks as long as these; surfaces have no blocks.
    for view in [
        ViewDescriptor {
            width: 2,
            height: 2,
            ..view
        },
        ViewDescriptor { format: 0x1a, ..view },
        ViewDescriptor { format: 0x23, ..view },
    ] {
        refused(&words, &plain, &view);
    }
    let floats = ArrayDescriptor {
        format: FLOAT,
        ..descriptor
    };
    let mut array = null_mut();
    ok(cuArray3DCreate(&mut array, &floats));
    refused(&resource(ARRAY, &[array as u64]), &plain, &view);
    let surface = resource(ARRAY, &[array_of(BC1, 8, 8, 0, 2) as u64]);
    let mut object = 0;
    assert_eq!(cuSurfObjectCreate(&mut object, &surface), CUDA_ERROR_INVALID_VALUE);
    for used in [native, words, surface, resource(ARRAY, &[array as u64])] {
        ok(cuArrayDestroy(used.res[0] as CUarray));
    }
    ok(cuMemFree(out));
}
