//! Execution Control: launches of every kind, and what of them is refused.

use std::ffi::{CString, c_int, c_uint, c_void};
use std::ptr::null_mut;

use crate::alone::alone;
use crate::c::*;
use crate::code::*;
use crate::test_name;

functions! {
    cuLaunchKernelEx(
        config: *const LaunchConfig,
        function: CUfunction,
        parameters: *mut *mut c_void,
        extra: *mut *mut c_void,
    );
    cuLaunchCooperativeKernel(
        function: CUfunction,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared: c_uint,
        stream: CUstream,
        parameters: *mut *mut c_void,
    );
    cuLaunchCooperativeKernelMultiDevice(list: *mut LaunchParams, devices: c_uint, flags: c_uint);
    cuFuncSetBlockShape(function: CUfunction, x: c_int, y: c_int, z: c_int);
    cuFuncSetSharedSize(function: CUfunction, bytes: c_uint);
    cuParamSetSize(function: CUfunction, bytes: c_uint);
    cuParamSeti(function: CUfunction, offset: c_int, value: c_uint);
    cuParamSetf(function: CUfunction, offset: c_int, value: f32);
    cuParamSetv(function: CUfunction, offset: c_int, value: *mut c_void, bytes: c_uint);
    cuLaunch(function: CUfunction);
    cuLaunchGrid(function: CUfunction, width: c_int, height: c_int);
    cuLaunchGridAsync(function: CUfunction, width: c_int, height: c_int, stream: CUstream);
}

const TOO_LARGE: CUresult = 720;
const INVALID_CLUSTER_SIZE: CUresult = 912;

/// `CUlaunchAttribute`: the value as words.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Attribute {
    id: c_uint,
    pad: c_uint,
    pub value: [u64; 8],
}

/// `CUlaunchConfig`.
#[repr(C)]
pub struct LaunchConfig {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    pub stream: CUstream,
    attributes: *mut Attribute,
    count: c_uint,
}

impl LaunchConfig {
    pub fn plain(grid: [c_uint; 3], block: [c_uint; 3]) -> LaunchConfig {
        LaunchConfig::with(grid, block, &mut [])
    }

    /// The attributes must live as long as the configuration is used.
    pub fn with(grid: [c_uint; 3], block: [c_uint; 3], attributes: &mut [Attribute]) -> LaunchConfig {
        LaunchConfig {
            grid,
            block,
            shared: 0,
            stream: null_mut(),
            attributes: attributes.as_mut_ptr(),
            count: attributes.len() as c_uint,
        }
    }

    pub fn cluster(shape: [c_uint; 3]) -> [Attribute; 1] {
        [attribute(CLUSTER, &shape)]
    }
}

/// `CUDA_LAUNCH_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct LaunchParams {
    function: CUfunction,
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    stream: CUstream,
    parameters: *mut *mut c_void,
}

/// Attributes by their number (`CUlaunchAttributeID`).
const IGNORE: c_uint = 0;
const WINDOW: c_uint = 1;
const COOPERATIVE: c_uint = 2;
const SYNC_POLICY: c_uint = 3;
const CLUSTER: c_uint = 4;
const CLUSTER_POLICY: c_uint = 5;
const SERIALIZATION: c_uint = 6;
const PROGRAMMATIC_EVENT: c_uint = 7;
const PRIORITY: c_uint = 8;
const DOMAIN_MAP: c_uint = 9;
const DOMAIN: c_uint = 10;
const PREFERRED_CLUSTER: c_uint = 11;
const COMPLETION_EVENT: c_uint = 12;
const UPDATABLE: c_uint = 13;
const CARVEOUT: c_uint = 14;
const NVLINK: c_uint = 16;
const PORTABLE_CLUSTER: c_uint = 17;
const SHARED_MODE: c_uint = 18;

pub fn attribute(id: c_uint, words: &[u32]) -> Attribute {
    let mut value = [0_u64; 8];
    for (index, word) in words.iter().enumerate() {
        value[index / 2] |= u64::from(*word) << (index % 2 * 32);
    }
    Attribute { id, pad: 0, value }
}

/// Writes, at `to`, one word for each block with the sizes of its cluster, or adds 1 to each thread's word.
const BODY: &str = "
    .visible .entry count(.param .u64 to) {
        .reg .b64 %to, %i; .reg .b32 %r<6>;
        ld.param.u64 %to, [to];
        mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x;
        mad.lo.u32 %r3, %r0, %r1, %r2;
        mul.wide.u32 %i, %r3, 4;
        add.u64 %to, %to, %i;
        ld.global.u32 %r4, [%to];
        add.u32 %r4, %r4, 1;
        st.global.u32 [%to], %r4;
        ret;
    }
    .visible .entry four(.param .u32 a, .param .f32 b, .param .u64 c, .param .align 8 .b8 d[16]) {
        .reg .b64 %to, %x; .reg .b32 %r; .reg .f32 %f;
        ld.param.u64 %to, [c];
        ld.param.u32 %r, [a]; st.global.u32 [%to], %r;
        ld.param.f32 %f, [b]; st.global.f32 [%to+4], %f;
        ld.param.u64 %x, [d]; st.global.u64 [%to+8], %x;
        ld.param.u64 %x, [d+8]; st.global.u64 [%to+16], %x;
        ret;
    }
    .visible .entry shared_size(.param .u64 to) {
        .reg .b64 %to; .reg .b32 %r<3>;
        ld.param.u64 %to, [to];
        mov.u32 %r0, %dynamic_smem_size; st.global.u32 [%to], %r0;
        mov.u32 %r1, %ntid.y; st.global.u32 [%to+4], %r1;
        mov.u32 %r2, %nctaid.y; st.global.u32 [%to+8], %r2;
        ret;
    }
    .visible .entry limited() .maxntid 64 { ret; }
    .visible .entry exact() .reqntid 8, 2, 1 { ret; }";

fn clusters() -> CUmodule {
    let code = CString::new(
        ".version 8.0 .target sm_90 .address_size 64
         .visible .entry shape(.param .u64 to) {
            .reg .b64 %to; .reg .b32 %r<4>;
            ld.param.u64 %to, [to];
            mov.u32 %r0, %cluster_nctaid.x; mov.u32 %r1, %cluster_nctaid.y; mov.u32 %r2, %nclusterid.x;
            st.global.u32 [%to], %r0; st.global.u32 [%to+4], %r1; st.global.u32 [%to+8], %r2;
            ret;
         }
         .visible .entry explicit(.param .u64 to) .explicitcluster .maxclusterrank 4 { ret; }",
    )
    .unwrap();
    let mut module = null_mut();
    ok(cuModuleLoadData(&mut module, code.as_ptr().cast()));
    module
}

fn launch_ex(
    function: CUfunction,
    grid: [c_uint; 3],
    block: [c_uint; 3],
    attributes: &mut [Attribute],
    parameters: &[u64],
) -> CUresult {
    let mut pointers: Vec<*mut c_void> = parameters
        .iter()
        .map(|p| std::ptr::from_ref(p) as *mut c_void)
        .collect();
    let config = LaunchConfig::with(grid, block, attributes);
    match cuLaunchKernelEx(&config, function, pointers.as_mut_ptr(), null_mut()) {
        CUDA_SUCCESS => cuCtxSynchronize(),
        error => error,
    }
}

fn raw(function: CUfunction, grid: [c_uint; 3], block: [c_uint; 3], shared: c_uint, p: *mut *mut c_void) -> CUresult {
    let ([gx, gy, gz], [bx, by, bz]) = (grid, block);
    match cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, null_mut(), p, null_mut()) {
        CUDA_SUCCESS => cuCtxSynchronize(),
        error => error,
    }
}

#[test]
fn arguments_go_by_pointers_or_in_one_buffer() {
    context();
    let four = function(module(BODY), "four");
    let to = words(6);
    let (a, b, d) = (7_u32, 2.5_f32, [0x1111_2222_3333_4444_u64, 0x5555_6666_7777_8888]);
    let expected = [7, 2.5_f32.to_bits(), 0x3333_4444, 0x1111_2222, 0x7777_8888, 0x5555_6666];
    let mut pointers = [
        (&raw const a).cast::<c_void>().cast_mut(),
        (&raw const b).cast::<c_void>().cast_mut(),
        (&raw const to).cast::<c_void>().cast_mut(),
        d.as_ptr().cast::<c_void>().cast_mut(),
    ];
    ok(raw(four, [1; 3], [1; 3], 0, pointers.as_mut_ptr()));
    assert_eq!(read(to, 6), expected);

    // CU_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_SIZE, CU_LAUNCH_PARAM_END
    let (buffer, size, end) = (number(1), number(2), null_mut::<c_void>());
    let mut bytes = vec![0_u8; 32];
    bytes[..4].copy_from_slice(&a.to_le_bytes());
    bytes[4..8].copy_from_slice(&b.to_le_bytes());
    bytes[8..16].copy_from_slice(&to.to_le_bytes());
    bytes[16..24].copy_from_slice(&d[0].to_le_bytes());
    bytes[24..].copy_from_slice(&d[1].to_le_bytes());
    let mut count = bytes.len();
    let with = |extra: &mut [*mut c_void], pointers: *mut *mut c_void| {
        let result = cuLaunchKernel(four, 1, 1, 1, 1, 1, 1, 0, null_mut(), pointers, extra.as_mut_ptr());
        if result == CUDA_SUCCESS {
            cuCtxSynchronize()
        } else {
            result
        }
    };
    let bytes_at = bytes.as_mut_ptr().cast::<c_void>();
    let count_at = (&raw mut count).cast::<c_void>();
    for mut extra in [
        [buffer, bytes_at, size, count_at, end],
        [size, count_at, buffer, bytes_at, end],
    ] {
        write(to, &[0; 6]);
        ok(with(&mut extra, null_mut()));
        assert_eq!(read(to, 6), expected);
    }
    // Both forms at once, neither, too short a buffer, no buffer, an unknown name.
    let mut extra = [buffer, bytes_at, size, count_at, end];
    assert_eq!(with(&mut extra, pointers.as_mut_ptr()), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(raw(four, [1; 3], [1; 3], 0, null_mut()), CUDA_ERROR_INVALID_VALUE);
    let mut short = 16_usize;
    let mut extra = [buffer, bytes_at, size, (&raw mut short).cast(), end];
    assert_eq!(with(&mut extra, null_mut()), CUDA_ERROR_INVALID_VALUE);
    // It may end within the last parameter, as NCCL has it.
    short = 24;
    let mut extra = [buffer, bytes_at, size, (&raw mut short).cast(), end];
    ok(with(&mut extra, null_mut()));
    assert_eq!(read(to, 6), [expected[0], expected[1], expected[2], expected[3], 0, 0]);
    let mut extra = [size, count_at, end];
    assert_eq!(with(&mut extra, null_mut()), CUDA_ERROR_INVALID_VALUE);
    let mut extra = [number(3), bytes_at, end];
    assert_eq!(with(&mut extra, null_mut()), CUDA_ERROR_INVALID_VALUE);
    pointers[1] = null_mut();
    assert_eq!(
        raw(four, [1; 3], [1; 3], 0, pointers.as_mut_ptr()),
        CUDA_ERROR_INVALID_VALUE
    );
}

#[test]
fn limits_of_shapes_are_those_of_the_device() {
    context();
    let module = module(BODY);
    let limited = function(module, "limited");
    let (exact, plain) = (function(module, "exact"), function(module, "shared_size"));
    let attribute = |which| {
        let mut value = 0;
        ok(cuDeviceGetAttribute(&mut value, which, 0));
        value as c_uint
    };
    let block: [c_uint; 3] = [2, 3, 4].map(attribute);
    let to = words(4);
    let mut pointers = [(&raw const to).cast::<c_void>().cast_mut()];
    let p = pointers.as_mut_ptr();
    // MAX_GRID_DIM_Y and _Z; MAX_GRID_DIM_X of blocks is more than a test should run.
    for grid in [
        [1, attribute(6) + 1, 1],
        [1, 1, attribute(7) + 1],
        [0x8000_0000, 1, 1],
        [0, 1, 1],
        [1, 1, 0],
    ] {
        assert_eq!(raw(plain, grid, [1; 3], 0, p), CUDA_ERROR_INVALID_VALUE, "{grid:?}");
    }
    ok(raw(plain, [1, attribute(6), 1], [1; 3], 0, p));
    assert_eq!(read(to, 3)[2], attribute(6));
    for bad in [
        [block[0] + 1, 1, 1],
        [1, block[1] + 1, 1],
        [1, 1, block[2] + 1],
        [512, 2, 2],
        [1, 0, 1],
    ] {
        assert_eq!(raw(plain, [1; 3], bad, 0, p), CUDA_ERROR_INVALID_VALUE, "{bad:?}");
    }
    ok(raw(plain, [1; 3], [1, block[1], 1], 0, p));
    assert_eq!(read(to, 3)[1], block[1]);
    // What the function says of its blocks.
    ok(raw(limited, [1; 3], [64, 1, 1], 0, null_mut()));
    assert_eq!(
        raw(limited, [1; 3], [65, 1, 1], 0, null_mut()),
        CUDA_ERROR_INVALID_VALUE
    );
    ok(raw(exact, [1; 3], [8, 2, 1], 0, null_mut()));
    for other in [[16, 1, 1], [8, 1, 1]] {
        assert_eq!(raw(exact, [1; 3], other, 0, null_mut()), CUDA_ERROR_INVALID_VALUE);
    }
    // Shared memory: 48 KiB, or as much as was asked for.
    ok(raw(plain, [1; 3], [1; 3], 49152, p));
    assert_eq!(read(to, 1), [49152]);
    assert_eq!(raw(plain, [1; 3], [1; 3], 49153, p), CUDA_ERROR_INVALID_VALUE);
    ok(cuFuncSetAttribute(plain, 8, 60_000));
    ok(raw(plain, [1; 3], [1; 3], 60_000, p));
    assert_eq!(read(to, 1), [60_000]);
    assert_eq!(raw(plain, [1; 3], [1; 3], 60_001, p), CUDA_ERROR_INVALID_VALUE);
    for stray in [null_mut(), 0x1234 as CUfunction] {
        assert_eq!(raw(stray, [1; 3], [1; 3], 0, p), CUDA_ERROR_INVALID_HANDLE);
    }
    let stray = 0x1234 as CUstream;
    let result = cuLaunchKernel(plain, 1, 1, 1, 1, 1, 1, 0, stray, p, null_mut());
    assert_eq!(result, CUDA_ERROR_INVALID_HANDLE);
}

#[test]
fn attributes_of_launches_are_checked_and_do_what_they_say() {
    context();
    let plain = function(module(BODY), "count");
    let to = words(64);
    let one = |attribute: Attribute| launch_ex(plain, [2, 1, 1], [32, 1, 1], &mut [attribute], &[to]);
    let (mut timed, mut plain_event) = (null_mut(), null_mut());
    ok(cuEventCreate(&mut timed, 0));
    ok(cuEventCreate(&mut plain_event, 2));
    let event = |id, event: CUevent| one(attribute(id, &[event as u64 as u32, (event as u64 >> 32) as u32]));
    let taken = [
        one(attribute(IGNORE, &[77])),
        one(attribute(WINDOW, &[0])),
        one(attribute(COOPERATIVE, &[1])),
        one(attribute(SYNC_POLICY, &[1])),
        one(attribute(CLUSTER_POLICY, &[2])),
        one(attribute(SERIALIZATION, &[1])),
        one(attribute(PRIORITY, &[0])),
        one(attribute(DOMAIN_MAP, &[0x0100])),
        one(attribute(DOMAIN, &[1])),
        one(attribute(CARVEOUT, &[50])),
        one(attribute(NVLINK, &[1])),
        one(attribute(PORTABLE_CLUSTER, &[2])),
        one(attribute(SHARED_MODE, &[2])),
        one(attribute(UPDATABLE, &[0])),
        event(PROGRAMMATIC_EVENT, plain_event),
        event(COMPLETION_EVENT, plain_event),
        launch_ex(plain, [2, 1, 1], [32, 1, 1], &mut [], &[to]),
    ];
    assert_eq!(taken, [CUDA_SUCCESS; 17]);
    assert_eq!(read(to, 64), vec![17; 64]);
    ok(cuEventQuery(plain_event));
    let refused = [
        one(attribute(CLUSTER_POLICY, &[4])),
        one(attribute(DOMAIN, &[2])),
        one(attribute(CARVEOUT, &[101])),
        one(attribute(NVLINK, &[2])),
        one(attribute(PORTABLE_CLUSTER, &[3])),
        one(attribute(SHARED_MODE, &[5])),
        // Outside of a capture no node comes of it.
        one(attribute(UPDATABLE, &[1])),
        one(attribute(UPDATABLE, &[2])),
        one(attribute(19, &[0])),
        one(attribute(15, &[0])),
        one(attribute(u32::MAX, &[0])),
        // Events with times are not for this.
        event(PROGRAMMATIC_EVENT, timed),
        event(COMPLETION_EVENT, timed),
    ];
    assert_eq!(refused, [CUDA_ERROR_INVALID_VALUE; 13]);
    assert_eq!(event(COMPLETION_EVENT, 0x1234 as CUevent), CUDA_ERROR_INVALID_HANDLE);
    // Nothing of what was refused has run.
    assert_eq!(read(to, 64), vec![17; 64]);
    let mut pointers = [(&raw const to).cast::<c_void>().cast_mut()];
    assert_eq!(
        cuLaunchKernelEx(std::ptr::null(), plain, pointers.as_mut_ptr(), null_mut()),
        CUDA_ERROR_INVALID_VALUE
    );
}

#[test]
fn clusters_are_shaped_by_launches_functions_and_modes() {
    context();
    let module = clusters();
    let (shape, explicit) = (function(module, "shape"), function(module, "explicit"));
    let to = words(4);
    let run = |grid, attributes: &mut [Attribute]| launch_ex(shape, grid, [1; 3], attributes, &[to]);
    ok(run([8, 2, 1], &mut []));
    assert_eq!(read(to, 3), [1, 1, 8]);
    ok(run([8, 2, 1], &mut [attribute(CLUSTER, &[4, 2, 1])]));
    assert_eq!(read(to, 3), [4, 2, 2]);
    // It must divide the grid, and have 8 blocks at most, or 16 where that is allowed.
    for (grid, cluster) in [([8, 2, 1], [3, 1, 1]), ([8, 1, 1], [0, 1, 1]), ([16, 1, 1], [16, 1, 1])] {
        assert_eq!(
            run(grid, &mut [attribute(CLUSTER, &cluster)]),
            INVALID_CLUSTER_SIZE,
            "{cluster:?}"
        );
    }
    ok(run(
        [16, 1, 1],
        &mut [attribute(CLUSTER, &[16, 1, 1]), attribute(PORTABLE_CLUSTER, &[2])],
    ));
    ok(cuFuncSetAttribute(shape, 14, 1));
    ok(run([16, 1, 1], &mut [attribute(CLUSTER, &[16, 1, 1])]));
    let portable = run(
        [16, 1, 1],
        &mut [attribute(CLUSTER, &[16, 1, 1]), attribute(PORTABLE_CLUSTER, &[1])],
    );
    assert_eq!(portable, INVALID_CLUSTER_SIZE);
    // A preferred one is a multiple of the one that was asked for, and divides the grid.
    let both = |grid, cluster: &[u32], preferred: &[u32]| {
        run(
            grid,
            &mut [attribute(CLUSTER, cluster), attribute(PREFERRED_CLUSTER, preferred)],
        )
    };
    ok(both([8, 1, 1], &[2, 1, 1], &[4, 1, 1]));
    assert_eq!(both([12, 1, 1], &[2, 1, 1], &[3, 1, 1]), INVALID_CLUSTER_SIZE);
    assert_eq!(both([12, 1, 1], &[2, 1, 1], &[8, 1, 1]), INVALID_CLUSTER_SIZE);
    // The function's own.
    for (which, value) in [(11, 2), (12, 2), (13, 1)] {
        ok(cuFuncSetAttribute(shape, which, value));
    }
    ok(run([8, 2, 1], &mut []));
    assert_eq!(read(to, 3), [2, 2, 4]);
    assert_eq!(
        run([8, 2, 1], &mut [attribute(CLUSTER, &[4, 2, 1])]),
        INVALID_CLUSTER_SIZE
    );
    // One that wants to be told.
    assert_eq!(
        launch_ex(explicit, [8, 1, 1], [1; 3], &mut [], &[to]),
        INVALID_CLUSTER_SIZE
    );
    ok(launch_ex(
        explicit,
        [8, 1, 1],
        [1; 3],
        &mut [attribute(CLUSTER, &[4, 1, 1])],
        &[to],
    ));
    let more = launch_ex(
        explicit,
        [8, 1, 1],
        [1; 3],
        &mut [attribute(CLUSTER, &[8, 1, 1])],
        &[to],
    );
    assert_eq!(more, INVALID_CLUSTER_SIZE);
}

#[test]
fn blocks_of_a_cluster_share_memory() {
    context();
    let code = CString::new(
        ".version 9.0 .target sm_90 .address_size 64
         .shared .align 4 .u32 word;
         .visible .entry swap(.param .u64 to) {
            .reg .b64 %to; .reg .b32 %r<8>; .reg .pred %p;
            ld.param.u64 %to, [to];
            mov.u32 %r0, %ctaid.x; mov.u32 %r1, %cluster_ctarank;
            st.shared.u32 [word], %r0;
            barrier.cluster.arrive; barrier.cluster.wait;
            xor.b32 %r1, %r1, 1;
            mapa.shared::cluster.u32 %r2, word, %r1;
            ld.shared::cluster.u32 %r3, [%r2];
            barrier.cluster.arrive; barrier.cluster.wait;
            mad.wide.u32 %to, %r0, 4, %to;
            st.global.u32 [%to], %r3;
            ret;
         }
         .visible .entry asked(.param .u64 to) {
            .reg .b64 %to; .reg .b32 %r; .reg .pred %p;
            ld.param.u64 %to, [to];
            mov.pred %p, %is_explicit_cluster; selp.u32 %r, 1, 0, %p;
            st.global.u32 [%to], %r;
            ret;
         }
         .visible .entry counted(.param .u64 to) .reqntid 1 .reqnctapercluster 2, 1, 1 .blocksareclusters {
            .reg .b64 %to; .reg .b32 %r;
            ld.param.u64 %to, [to];
            mov.u32 %r, %nctaid.x; st.global.u32 [%to], %r;
            mov.u32 %r, %nclusterid.x; st.global.u32 [%to+4], %r;
            ret;
         }",
    )
    .unwrap();
    let mut module = null_mut();
    ok(cuModuleLoadData(&mut module, code.as_ptr().cast()));
    let (swap, asked, counted) = (
        function(module, "swap"),
        function(module, "asked"),
        function(module, "counted"),
    );
    let to = words(8);
    ok(launch_ex(
        swap,
        [8, 1, 1],
        [32, 1, 1],
        &mut [attribute(CLUSTER, &[4, 1, 1])],
        &[to],
    ));
    assert_eq!(read(to, 8), [1, 0, 3, 2, 5, 4, 7, 6]);
    // A cluster of one block counts as asked for; no cluster does not.
    ok(launch_ex(
        asked,
        [1; 3],
        [1; 3],
        &mut [attribute(CLUSTER, &[1, 1, 1])],
        &[to],
    ));
    assert_eq!(read(to, 1), [1]);
    ok(launch_ex(asked, [1; 3], [1; 3], &mut [], &[to]));
    assert_eq!(read(to, 1), [0]);
    // Launches count clusters.
    ok(launch_ex(counted, [3, 1, 1], [1; 3], &mut [], &[to]));
    assert_eq!(read(to, 2), [6, 3]);
    let too_many = launch_ex(counted, [0x7fff_ffff, 1, 1], [1; 3], &mut [], &[to]);
    assert_eq!(too_many, CUDA_ERROR_INVALID_VALUE);
}

#[test]
fn shared_memory_modes_go_before_what_the_function_says() {
    context();
    let plain = function(module(BODY), "shared_size");
    let to = words(4);
    let mut optin = 0;
    ok(cuDeviceGetAttribute(&mut optin, 97, 0));
    let run = |bytes: c_uint, mode: u32| {
        let mut attributes = [attribute(SHARED_MODE, &[mode])];
        let mut pointers = [(&raw const to).cast::<c_void>().cast_mut()];
        let config = LaunchConfig {
            grid: [1; 3],
            block: [1; 3],
            shared: bytes,
            stream: null_mut(),
            attributes: attributes.as_mut_ptr(),
            count: 1,
        };
        cuLaunchKernelEx(&config, plain, pointers.as_mut_ptr(), null_mut())
    };
    assert_eq!(run(60_000, 0), CUDA_ERROR_INVALID_VALUE);
    ok(run(60_000, 2));
    assert_eq!(run(optin as c_uint + 1, 2), CUDA_ERROR_INVALID_VALUE);
    ok(cuFuncSetAttribute(plain, 17, 2));
    ok(run(60_000, 0));
    assert_eq!(run(60_000, 1), CUDA_ERROR_INVALID_VALUE);
    ok(run(49_152, 1));
    ok(cuCtxSynchronize());
}

/// All blocks wait for each other, which ordinary launches do not promise.
const BARRIER: &str = "
    .visible .entry together(.param .u64 counter) {
        .reg .b64 %c; .reg .b32 %r, %n; .reg .pred %p;
        ld.param.u64 %c, [counter];
        mov.u32 %n, %nctaid.x; mov.u32 %r, %ntid.x;
        mul.lo.u32 %n, %n, %r;
        atom.global.add.u32 %r, [%c], 1;
        WAIT: ld.volatile.global.u32 %r, [%c];
        setp.lo.u32 %p, %r, %n;
        @%p bra WAIT;
        ret;
    }";

#[test]
fn cooperative_launches_are_held_to_what_fits() {
    context();
    let together = function(module(BARRIER), "together");
    let counter = words(1);
    let mut pointers = [(&raw const counter).cast::<c_void>().cast_mut()];
    let (mut each, mut multiprocessors) = (0, 0);
    ok(cuDeviceGetAttribute(&mut multiprocessors, 16, 0));
    ok(crate::occupancy::cuOccupancyMaxActiveBlocksPerMultiprocessor(
        &mut each, together, 256, 0,
    ));
    let most = (each * multiprocessors) as c_uint;
    let p = pointers.as_mut_ptr();
    let run = |blocks| cuLaunchCooperativeKernel(together, blocks, 1, 1, 256, 1, 1, 0, null_mut(), p);
    ok(run(most));
    ok(cuCtxSynchronize());
    assert_eq!(read(counter, 1), [most * 256]);
    assert_eq!(run(most + 1), TOO_LARGE);
    assert_eq!(
        launch_ex(
            together,
            [most + 1, 1, 1],
            [256, 1, 1],
            &mut [attribute(COOPERATIVE, &[1])],
            &[counter]
        ),
        720
    );
    let stray = cuLaunchCooperativeKernel(null_mut(), 1, 1, 1, 1, 1, 1, 0, null_mut(), p);
    assert_eq!(stray, CUDA_ERROR_INVALID_HANDLE);
    let without = cuLaunchCooperativeKernel(together, 1, 1, 1, 1, 1, 1, 0, null_mut(), null_mut());
    assert_eq!(without, CUDA_ERROR_INVALID_VALUE);
}

#[test]
fn several_devices_are_launched_on_together() {
    alone(test_name!(), &[("MARGAY_DEVICES", "3")], || {
        ok(cuInit(0));
        let mut launches = Vec::new();
        let mut counters = [0; 3];
        let mut arguments = [[null_mut::<c_void>(); 1]; 3];
        for device in 0..3 {
            let (mut context, mut stream) = (null_mut(), null_mut());
            ok(cuCtxCreate(&mut context, 0, device));
            ok(cuStreamCreate(&mut stream, 1));
            counters[device as usize] = words(64);
            arguments[device as usize] = [(&raw const counters[device as usize]).cast::<c_void>().cast_mut()];
            launches.push(LaunchParams {
                function: function(module(BODY), "count"),
                grid: [2, 1, 1],
                block: [32, 1, 1],
                shared: 0,
                stream,
                parameters: arguments[device as usize].as_mut_ptr(),
            });
        }
        let run = |list: &mut [LaunchParams], flags| {
            cuLaunchCooperativeKernelMultiDevice(list.as_mut_ptr(), list.len() as c_uint, flags)
        };
        for flags in 0..4 {
            ok(run(&mut launches, flags));
        }
        for (one, counter) in launches.iter().zip(counters) {
            ok(cuStreamSynchronize(one.stream));
            assert_eq!(read(counter, 64), vec![4; 64]);
        }
        assert_eq!(run(&mut launches, 4), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(run(&mut [], 0), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(
            cuLaunchCooperativeKernelMultiDevice(null_mut(), 1, 0),
            CUDA_ERROR_INVALID_VALUE
        );
        // Not two on one device, not shapes that differ, not default streams.
        let mut twice = [launches[0], launches[0]];
        assert_eq!(run(&mut twice, 0), CUDA_ERROR_INVALID_VALUE);
        let mut differing = [launches[0], launches[1]];
        differing[1].block = [16, 1, 1];
        assert_eq!(run(&mut differing, 0), CUDA_ERROR_INVALID_VALUE);
        let mut default = [launches[2]];
        default[0].stream = null_mut();
        assert_eq!(run(&mut default, 0), CUDA_ERROR_INVALID_VALUE);
        let mut large = [launches[0], launches[1]];
        for one in &mut large {
            one.grid = [100_000, 1, 1];
        }
        assert_eq!(run(&mut large, 0), TOO_LARGE);
    });
}

#[test]
fn launches_of_the_first_kind_take_what_was_set_before() {
    context();
    let module = module(BODY);
    let (four, sizes) = (function(module, "four"), function(module, "shared_size"));
    let to = words(6);
    ok(cuFuncSetBlockShape(four, 1, 1, 1));
    ok(cuParamSeti(four, 0, 9));
    ok(cuParamSetf(four, 4, -1.5));
    ok(cuParamSetv(four, 8, (&raw const to).cast_mut().cast(), 8));
    let d = [3_u64, 4];
    ok(cuParamSetv(four, 16, d.as_ptr().cast_mut().cast(), 16));
    ok(cuParamSetSize(four, 32));
    ok(cuLaunch(four));
    ok(cuCtxSynchronize());
    assert_eq!(read(to, 6), [9, (-1.5_f32).to_bits(), 3, 0, 4, 0]);
    // Set values stay.
    ok(cuParamSeti(four, 0, 10));
    ok(cuLaunchGrid(four, 1, 1));
    ok(cuCtxSynchronize());
    assert_eq!(read(to, 2), [10, (-1.5_f32).to_bits()]);

    ok(cuFuncSetBlockShape(sizes, 4, 5, 1));
    ok(cuFuncSetSharedSize(sizes, 321));
    ok(cuParamSetv(sizes, 0, (&raw const to).cast_mut().cast(), 8));
    ok(cuParamSetSize(sizes, 8));
    let mut stream = null_mut();
    ok(cuStreamCreate(&mut stream, 0));
    ok(cuLaunchGridAsync(sizes, 2, 6, stream));
    ok(cuStreamSynchronize(stream));
    assert_eq!(read(to, 3), [321, 5, 6]);

    for (x, y, z) in [(0, 1, 1), (1, -1, 1), (1, 1, 0)] {
        assert_eq!(cuFuncSetBlockShape(four, x, y, z), CUDA_ERROR_INVALID_VALUE);
    }
    assert_eq!(cuParamSeti(four, -4, 0), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuParamSetf(four, 1 << 20, 0.0), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuParamSetv(four, 0, null_mut(), 8), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuParamSetSize(four, 1 << 20), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuLaunchGrid(four, 0, 1), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuLaunchGridAsync(four, 1, -1, stream), CUDA_ERROR_INVALID_VALUE);
    // Too few bytes of arguments, and no shape at all.
    ok(cuParamSetSize(four, 8));
    assert_eq!(cuLaunch(four), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuLaunch(function(module, "limited")), CUDA_ERROR_INVALID_VALUE);
    let stray = 0x1234 as CUfunction;
    assert_eq!(cuFuncSetBlockShape(stray, 1, 1, 1), CUDA_ERROR_INVALID_HANDLE);
    assert_eq!(cuFuncSetSharedSize(stray, 1), CUDA_ERROR_INVALID_HANDLE);
    assert_eq!(cuParamSetSize(stray, 1), CUDA_ERROR_INVALID_HANDLE);
    assert_eq!(cuParamSeti(stray, 0, 1), CUDA_ERROR_INVALID_HANDLE);
    assert_eq!(cuLaunch(stray), CUDA_ERROR_INVALID_HANDLE);
    assert_eq!(cuLaunchGrid(null_mut(), 1, 1), CUDA_ERROR_INVALID_HANDLE);
}
