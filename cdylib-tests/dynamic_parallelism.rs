//! Kernels that launch kernels, by hand-written PTX. What nvcc makes of it is in `clients/cuda/dynamic_parallelism*.cu`.

use std::ffi::c_int;

use crate::alone::alone;
use crate::c::*;
use crate::code::*;
use crate::test_name;

functions! {
    cuCtxSetLimit(limit: c_int, value: usize);
}

/// `launch CHILD, stream` with one parameter of 8 bytes, in threads of grid and block 1; `%e` is the launch's answer.
fn launching(prefix: &str, child: &str, stream: u32, blocks: u32) -> String {
    format!(
        "{{
            .param .b64 f; .param .align 4 .b8 g[12]; .param .align 4 .b8 b[12]; .param .b32 s; .param .b64 r;
            .reg .b64 %k, %buffer; .reg .pred %none;
            mov.u64 %k, {child};
            st.param.b64 [f], %k;
            st.param.b32 [g], {blocks}; st.param.b32 [g+4], 1; st.param.b32 [g+8], 1;
            st.param.b32 [b], 1; st.param.b32 [b+4], 1; st.param.b32 [b+8], 1;
            st.param.b32 [s], 0;
            call.uni (r), {prefix}GetParameterBufferV2, (f, g, b, s);
            ld.param.b64 %buffer, [r];
            st.b64 [%buffer], %to;
            {{ .param .b64 p; .param .b64 q; .param .b32 e;
               st.param.b64 [p], %buffer; st.param.b64 [q], {stream};
               call.uni (e), {prefix}LaunchDeviceV2, (p, q);
               ld.param.b32 %e, [e]; }}
        }}"
    )
}

fn program(prefix: &str, body: &str) -> String {
    format!(
        ".extern .func (.param .b64 r) {prefix}GetParameterBufferV2(.param .b64 f, .param .align 4 .b8 g[12],
             .param .align 4 .b8 b[12], .param .b32 s);
         .extern .func (.param .b32 r) {prefix}LaunchDeviceV2(.param .b64 p, .param .b64 s);
         .extern .func (.param .b32 r) cudaDeviceSynchronize();
         .extern .func (.param .b32 r) {prefix}GetLastError();
         .visible .entry add(.param .u64 to) {{
            .reg .b64 %to; .reg .b32 %r;
            ld.param.u64 %to, [to];
            atom.global.add.u32 %r, [%to], 1;
            ret;
         }}
         .visible .entry stray(.param .u64 to) {{
            .reg .b64 %a; mov.u64 %a, 64; st.global.u64 [%a], %a; ret;
         }}
         .visible .entry parent(.param .u64 to) {{
            .reg .b64 %to; .reg .b32 %e, %v, %t; .reg .pred %p;
            ld.param.u64 %to, [to];
            {body}
            ret;
         }}"
    )
}

const SECOND: &str = "__cudaCDP2";
const FIRST: &str = "cuda";

#[test]
fn a_parent_is_complete_when_its_children_are() {
    context();
    // Three blocks of the child for each thread of the parent, and one as a tail; it notes how many it has seen.
    let body = [
        launching(SECOND, "add", 0, 3),
        launching(SECOND, "add", 4, 1),
        launching(SECOND, "add", 3, 1),
        "ld.volatile.global.u32 %v, [%to]; st.global.u32 [%to+4], %v;".into(),
    ]
    .concat();
    let parent = function(module(&program(SECOND, &body)), "parent");
    let to = words(2);
    launch(parent, 2, 40, &[to]);
    assert_eq!(read(to, 1), [2 * 40 * 5]);
}

#[test]
fn threads_of_the_first_generation_wait_for_their_children() {
    context();
    let wait = "{ .param .b32 r; call.uni (r), cudaDeviceSynchronize, (); ld.param.b32 %e, [r]; }
        ld.volatile.global.u32 %v, [%to]; st.global.u32 [%to+4], %v; st.global.u32 [%to+8], %e;";
    let body = [launching(FIRST, "add", 0, 7), wait.into()].concat();
    let parent = function(module(&program(FIRST, &body)), "parent");
    let to = words(3);
    launch(parent, 1, 1, &[to]);
    assert_eq!(read(to, 3), [7, 7, 0]);
}

#[test]
fn launches_that_cannot_be_are_told_to_the_thread() {
    context();
    let error = "{ .param .b32 r; call.uni (r), __cudaCDP2GetLastError, (); ld.param.b32 %v, [r]; }
        st.global.u32 [%to+4], %e; st.global.u32 [%to+8], %v;";
    // No such stream; no block. Numbers are those of cudaError.
    for (stream, blocks, expected) in [(0x1230, 1, 400), (0, 0, 9)] {
        let body = [launching(SECOND, "add", stream, blocks), error.into()].concat();
        let parent = function(module(&program(SECOND, &body)), "parent");
        let to = words(3);
        launch(parent, 1, 1, &[to]);
        assert_eq!(read(to, 3), [0, expected, expected]);
    }
    // Three tails where two have room (CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT).
    ok(cuCtxSetLimit(4, 2));
    let body = [0, 1, 2]
        .map(|index| {
            let note = format!("st.global.u32 [%to+{}], %e;", 4 + 4 * index);
            launching(SECOND, "add", 3, 1) + &note
        })
        .concat();
    let parent = function(module(&program(SECOND, &body)), "parent");
    let to = words(4);
    launch(parent, 1, 1, &[to]);
    assert_eq!(read(to, 4), [2, 0, 0, 701]);
}

#[test]
fn a_childs_fault_is_the_contexts_and_names_the_child() {
    for generation in ["1", "2"] {
        let environment = [("MARGAY_LOG", "error"), ("GENERATION", generation)];
        let run = alone(test_name!(), &environment, || {
            context();
            let (prefix, wait) = match std::env::var("GENERATION").as_deref() {
                Ok("1") => (FIRST, "{ .param .b32 r; call.uni (r), cudaDeviceSynchronize, (); }"),
                _ => (SECOND, ""),
            };
            let body = [launching(prefix, "stray", 0, 1), wait.into()].concat();
            let parent = function(module(&program(prefix, &body)), "parent");
            assert_eq!(try_launch(parent, 1, 1, &[words(1)]), CUDA_ERROR_ILLEGAL_ADDRESS);
        });
        assert!(run.stderr.contains("kernel stray"), "{}", run.stderr);
    }
}
