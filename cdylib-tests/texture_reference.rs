//! Texture and surface references: variables of modules, and what is bound to them when a kernel is launched.

use std::ptr::null_mut;

use crate::c::*;

const FLOAT: u32 = 0x20;
const SINT32: u32 = 0x0a;
const OVERRIDE: u32 = 1;

const KERNELS: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .global .texref one;
.visible .global .texref two = { normalized_coords = 1 };
.visible .global .surfref out;
.visible .global .u32 word;
.visible .entry look(.param .u64 to)
{
    .reg .b64 %o, %a;
    .reg .b32 %r<8>;
    .reg .f32 %f<4>;
    ld.param.u64 %o, [to];
    mov.u32 %r0, %tid.x;
    mul.wide.u32 %a, %r0, 4;
    add.u64 %o, %o, %a;
    tex.1d.v4.s32.s32 {%r1, %r2, %r3, %r4}, [one, {%r0}];
    st.global.u32 [%o], %r1;
    mul.lo.u32 %r5, %r0, 4;
    sust.b.1d.b32.trap [out, {%r5}], %r1;
    ret;
}
\0";

fn module() -> CUmodule {
    ok(cuInit(0));
    let mut context = null_mut();
    ok(cuDevicePrimaryCtxRetain(&mut context, 0));
    ok(cuCtxSetCurrent(context));
    let mut module = null_mut();
    ok(cuModuleLoadData(&mut module, KERNELS.as_ptr().cast()));
    module
}

fn array_of(texels: &[i32]) -> CUarray {
    let descriptor = ArrayDescriptor {
        width: texels.len(),
        height: 0,
        depth: 0,
        format: SINT32,
        channels: 1,
        flags: 2,
    };
    let mut array = null_mut();
    ok(cuArray3DCreate(&mut array, &descriptor));
    ok(cuMemcpyHtoA(array, 0, texels.as_ptr().cast(), texels.len() * 4));
    array
}

#[test]
fn launches_see_what_is_bound_then() {
    let module = module();
    let (mut texture, mut surface) = (null_mut(), null_mut());
    ok(cuModuleGetTexRef(&mut texture, module, c"one".as_ptr()));
    ok(cuModuleGetSurfRef(&mut surface, module, c"out".as_ptr()));
    let first = array_of(&[1, 2, 3, 4]);
    let second = array_of(&[10, 20, 30, 40]);
    let target = array_of(&[0; 4]);
    ok(cuSurfRefSetArray(surface, target, 0));
    let mut found = null_mut();
    ok(cuSurfRefGetArray(&mut found, surface));
    assert_eq!(found, target);
    let mut function = null_mut();
    ok(cuModuleGetFunction(&mut function, module, c"look".as_ptr()));
    let mut memory = 0;
    ok(cuMemAlloc(&mut memory, 2048));
    let launch = |to: u64| {
        let mut to = to;
        let mut parameters = [(&raw mut to).cast()];
        let parameters = parameters.as_mut_ptr();
        ok(cuLaunchKernel(
            function,
            1,
            1,
            1,
            4,
            1,
            1,
            0,
            null_mut(),
            parameters,
            null_mut(),
        ));
    };
    // Bound anew between two launches that nobody waits for.
    ok(cuTexRefSetArray(texture, first, OVERRIDE));
    launch(memory);
    ok(cuTexRefSetArray(texture, second, OVERRIDE));
    launch(memory + 16);
    ok(cuCtxSynchronize());
    let mut words = [0i32; 8];
    ok(cuMemcpyDtoH(words.as_mut_ptr().cast(), memory, 32));
    assert_eq!(words, [1, 2, 3, 4, 10, 20, 30, 40]);
    ok(cuMemcpyAtoH(words.as_mut_ptr().cast(), target, 0, 16));
    assert_eq!(words[..4], [10, 20, 30, 40]);
    // Memory: read as the format that was set.
    ok(cuTexRefSetFormat(texture, SINT32, 1));
    let mut offset = 1;
    ok(cuMemcpyDtoD(memory + 1024, memory, 32));
    ok(cuTexRefSetAddress(&mut offset, texture, memory + 1024, 16));
    assert_eq!(offset, 0);
    let mut address = 0;
    ok(cuTexRefGetAddress(&mut address, texture));
    assert_eq!(address, memory + 1024);
    launch(memory);
    ok(cuMemcpyDtoH(words.as_mut_ptr().cast(), memory, 16));
    assert_eq!(words[..4], [1, 2, 3, 4]);
    ok(cuTexRefSetAddress(&mut offset, texture, memory + 1028, 16));
    assert_eq!(offset, 4);
    assert_eq!(
        cuTexRefSetAddress(null_mut(), texture, memory + 1028, 16),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(cuTexRefGetArray(&mut found, texture), CUDA_ERROR_INVALID_VALUE);
    ok(cuMemFree(memory));
    ok(cuModuleUnload(module));
    assert_eq!(cuTexRefGetArray(&mut found, texture), CUDA_ERROR_INVALID_HANDLE);
    for array in [first, second, target] {
        ok(cuArrayDestroy(array));
    }
}

#[test]
fn settings_come_back() {
    let module = module();
    let mut texture = null_mut();
    ok(cuModuleGetTexRef(&mut texture, module, c"two".as_ptr()));
    let (mut flags, mut mode, mut format, mut channels) = (0, 9, 0, 0);
    // What the declaration says.
    ok(cuTexRefGetFlags(&mut flags, texture));
    assert_eq!(flags, 2);
    ok(cuTexRefSetFlags(texture, 3));
    ok(cuTexRefGetFlags(&mut flags, texture));
    assert_eq!(flags, 3);
    for dimension in 0..3 {
        ok(cuTexRefSetAddressMode(texture, dimension, dimension as u32));
        ok(cuTexRefGetAddressMode(&mut mode, texture, dimension));
        assert_eq!(mode, dimension as u32);
    }
    ok(cuTexRefSetFilterMode(texture, 1));
    ok(cuTexRefGetFilterMode(&mut mode, texture));
    assert_eq!(mode, 1);
    ok(cuTexRefSetFormat(texture, FLOAT, 2));
    ok(cuTexRefGetFormat(&mut format, &mut channels, texture));
    assert_eq!((format, channels), (FLOAT, 2));
    let mut colour = [1.0, 2.0, 3.0, 4.0];
    ok(cuTexRefSetBorderColor(texture, colour.as_mut_ptr()));
    let mut found = [0.0; 4];
    ok(cuTexRefGetBorderColor(found.as_mut_ptr(), texture));
    assert_eq!(found, colour);
    for refused in [
        cuTexRefSetAddressMode(texture, 3, 0),
        cuTexRefSetAddressMode(texture, -1, 0),
        cuTexRefSetAddressMode(texture, 0, 4),
        cuTexRefSetFilterMode(texture, 2),
        cuTexRefSetFlags(texture, 0x1000),
        cuTexRefSetFormat(texture, FLOAT, 3),
        cuTexRefSetFormat(texture, 0, 1),
        cuTexRefDestroy(texture),
    ] {
        assert_eq!(refused, CUDA_ERROR_INVALID_VALUE);
    }
    let mut none = null_mut();
    for name in [c"word", c"out", c"look", c"nothing"] {
        assert_eq!(
            cuModuleGetTexRef(&mut none, module, name.as_ptr()),
            CUDA_ERROR_NOT_FOUND
        );
    }
    assert_eq!(
        cuModuleGetSurfRef(&mut none, module, c"one".as_ptr()),
        CUDA_ERROR_NOT_FOUND
    );
    let (mut address, mut bytes) = (0, 0);
    let variable = cuModuleGetGlobal(&mut address, &mut bytes, module, c"one".as_ptr());
    assert_eq!(variable, CUDA_ERROR_NOT_FOUND);
    let mut own = null_mut();
    ok(cuTexRefCreate(&mut own));
    ok(cuTexRefDestroy(own));
    assert_eq!(cuTexRefDestroy(own), CUDA_ERROR_INVALID_HANDLE);
    assert_eq!(cuTexRefSetFlags(0x1000 as CUtexref, 0), CUDA_ERROR_INVALID_HANDLE);
    ok(cuModuleUnload(module));
}
