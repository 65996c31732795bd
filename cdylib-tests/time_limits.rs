//! `MARGAY_TIMEOUT`: whatever a kernel does, it ends soon after its time is over, and the report names a thread that runs.

use std::time::{Duration, Instant};

use crate::alone::{Run, alone};
use crate::c::*;
use crate::code::*;
use crate::test_name;

const LIMIT: Duration = Duration::from_millis(500);
/// After the limit: a second, and another one for a machine that does much else.
const SOON: Duration = Duration::from_secs(2);

/// Runs `kernel` of `text` in a process of its own, which must end by the limit.
fn overdue(test: &str, text: &str, blocks: [u32; 2], threads: u32) -> Run {
    overdue_with(test, &[], text, blocks, threads)
}

fn overdue_with(test: &str, settings: &[(&str, &str)], text: &str, blocks: [u32; 2], threads: u32) -> Run {
    let limit = format!("{}", LIMIT.as_secs_f64());
    let settings = [&[("MARGAY_TIMEOUT", &limit[..])], settings].concat();
    alone(test, &settings, || {
        context();
        let kernel = function(module(text), "kernel");
        let began = Instant::now();
        let parameters = std::ptr::null_mut();
        let [x, y] = blocks;
        ok(cuLaunchKernel(
            kernel,
            x,
            y,
            1,
            threads,
            1,
            1,
            0,
            std::ptr::null_mut(),
            parameters,
            std::ptr::null_mut(),
        ));
        assert_eq!(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_TIMEOUT);
        let took = began.elapsed();
        assert!(took >= LIMIT, "after {took:?}");
        assert!(took < LIMIT + SOON, "only after {took:?}");
    })
}

#[test]
fn a_loop_of_one_lane_is_reported_with_its_place() {
    let text = "
        .visible .entry kernel() {
            .reg .b32 %r; .reg .pred %p;
            mov.u32 %r, %tid.x;
            setp.ne.u32 %p, %r, 37;
            @%p bra done;
        again:
            add.u32 %r, %r, 1;
            bra again;
        done:
            ret;
        }";
    let run = overdue(test_name!(), text, [1, 1], 64);
    assert!(run.stderr.contains("thread (37,0,0)"), "{}", run.stderr);
    let named = ["add.u32 %r, %r, 1;", "bra again;"];
    assert!(
        named.iter().any(|instruction| run.stderr.contains(instruction)),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("PTX line "), "{}", run.stderr);
}

#[test]
fn calls_of_calls() {
    // Each level calls the next one twice: 2^60 calls.
    let text = "
        .func deeper(.param .b32 n) {
            .reg .b32 %n; .reg .pred %p;
            ld.param.b32 %n, [n];
            setp.eq.u32 %p, %n, 0;
            @%p ret;
            sub.u32 %n, %n, 1;
            { .param .b32 next; st.param.b32 [next], %n; call deeper, (next); }
            { .param .b32 next; st.param.b32 [next], %n; call deeper, (next); }
            ret;
        }
        .visible .entry kernel() {
            { .param .b32 next; st.param.b32 [next], 60; call deeper, (next); }
            ret;
        }";
    let text = text.replacen(".func deeper", ".func deeper(.param .b32 n);\n.func deeper", 1);
    overdue(test_name!(), &text, [1, 1], 33);
}

#[test]
fn an_endless_printf() {
    let text = "
        .global .align 1 .b8 text[2] = {46, 0};
        .extern .func (.param .b32 r) vprintf(.param .b64 format, .param .b64 arguments);
        .visible .entry kernel() {
            .reg .b64 %a;
            mov.u64 %a, text;
            cvta.global.u64 %a, %a;
        again:
            {
                .param .b64 f; .param .b64 v; .param .b32 r;
                st.param.b64 [f], %a; st.param.b64 [v], 0;
                call.uni (r), vprintf, (f, v);
            }
            bra again;
        }";
    overdue(test_name!(), text, [1, 1], 128);
}

#[test]
fn more_empty_blocks_than_anybody_can_count() {
    overdue(
        test_name!(),
        ".visible .entry kernel() { ret; }",
        [0x7FFF_FFFF, 65535],
        1,
    );
}

#[test]
fn a_loop_around_a_barrier() {
    let text = ".visible .entry kernel() { again: bar.sync 0; bra again; }";
    overdue(test_name!(), text, [3, 1], 1024);
}

#[test]
fn a_loop_in_which_lanes_part() {
    let text = "
        .visible .entry kernel() {
            .reg .b32 %r; .reg .pred %p;
            mov.u32 %r, %tid.x;
        again:
            add.u32 %r, %r, 1;
            and.b32 %r, %r, 127;
            setp.lt.u32 %p, %r, 64;
            @%p bra other;
            add.u32 %r, %r, 2;
            bra again;
        other:
            add.u32 %r, %r, 3;
            bra again;
        }";
    overdue(test_name!(), text, [1, 1], 128);
}

#[test]
fn threads_that_wait_for_nobody() {
    let text = "
        .global .u32 flag;
        .visible .entry kernel() {
            .reg .b32 %r; .reg .pred %p;
        again:
            nanosleep.u32 100;
            ld.volatile.global.u32 %r, [flag];
            setp.eq.u32 %p, %r, 0;
            @%p bra again;
            ret;
        }";
    overdue(test_name!(), text, [100, 1], 64);
}

#[test]
fn many_heavy_instructions() {
    // Each stores to 32 places far apart.
    let stores = "atom.add.u64 %a, [%at], 1;".repeat(200);
    let text = format!(
        ".global .align 8 .b8 many[65536];
        .visible .entry kernel() {{
            .reg .b64 %at, %a; .reg .b32 %r;
            mov.u32 %r, %tid.x;
            mul.wide.u32 %at, %r, 64;
            mov.u64 %a, many;
            add.u64 %at, %at, %a;
        again:
            {stores}
            bra again;
        }}"
    );
    overdue(test_name!(), &text, [1, 1], 1024);
}

/// `launch KERNEL, stream` without parameters.
fn launching(prefix: &str, stream: u32) -> String {
    format!(
        "{{
            .param .b64 f; .param .align 4 .b8 g[12]; .param .align 4 .b8 b[12]; .param .b32 s; .param .b64 r;
            .param .b64 p; .param .b64 q; .param .b32 e;
            .reg .b64 %k, %buffer;
            mov.u64 %k, child;
            st.param.b64 [f], %k;
            st.param.b32 [g], 1; st.param.b32 [g+4], 1; st.param.b32 [g+8], 1;
            st.param.b32 [b], 1; st.param.b32 [b+4], 1; st.param.b32 [b+8], 1;
            st.param.b32 [s], 0;
            call.uni (r), {prefix}GetParameterBufferV2, (f, g, b, s);
            ld.param.b64 %buffer, [r];
            st.param.b64 [p], %buffer; st.param.b64 [q], {stream};
            call.uni (e), {prefix}LaunchDeviceV2, (p, q);
        }}"
    )
}

fn family(prefix: &str, kernel: &str, child: &str) -> String {
    format!(
        ".extern .func (.param .b64 r) {prefix}GetParameterBufferV2(.param .b64 f, .param .align 4 .b8 g[12],
             .param .align 4 .b8 b[12], .param .b32 s);
         .extern .func (.param .b32 r) {prefix}LaunchDeviceV2(.param .b64 p, .param .b64 s);
         .extern .func (.param .b32 r) cudaDeviceSynchronize();
         .visible .entry child() {{ {child} ret; }}
         .visible .entry kernel() {{ {kernel} ret; }}"
    )
}

#[test]
fn grids_that_launch_each_other_for_ever() {
    let again = launching("__cudaCDP2", 3);
    overdue(test_name!(), &family("__cudaCDP2", &again, &again), [1, 1], 1);
}

#[test]
fn a_child_that_somebody_waits_for() {
    let wait = "{ .param .b32 r; call.uni (r), cudaDeviceSynchronize, (); }";
    let parent = [launching("cuda", 0), wait.into()].concat();
    let run = overdue(test_name!(), &family("cuda", &parent, "again: bra again;"), [1, 1], 1);
    assert!(run.stderr.contains("kernel child"), "{}", run.stderr);
}

/// Blocks that wait for a flag which nobody sets, with everything in the loop that may stand there.
const WAITING: &str = "
    .global .u32 flag;
    .func (.param .b32 v) look() {
        .reg .b32 %v;
        ld.volatile.global.u32 %v, [flag];
        st.param.b32 [v], %v;
        ret;
    }
    .visible .entry kernel() {
        .reg .b32 %i, %v; .reg .pred %p, %odd;
        mov.u32 %i, %tid.x;
        and.b32 %i, %i, 1;
        setp.ne.u32 %odd, %i, 0;
    again:
        @%odd bra odd;
        { .param .b32 v; call.uni (v), look, (); ld.param.b32 %v, [v]; }
        bra join;
    odd:
        atom.global.cas.b32 %v, [flag], 0, 0;
    join:
        shfl.sync.bfly.b32 %v, %v, 1, 31, 0xffffffff;
        bar.sync 0;
        setp.eq.u32 %p, %v, 0;
        barrier.red.or.pred %p, 1, %p;
        @%p bra again;
        ret;
    }";

#[test]
fn blocks_that_wait_in_vain_on_one_thread() {
    overdue_with(test_name!(), &[("MARGAY_THREADS", "1")], WAITING, [50, 1], 256);
}

#[test]
fn blocks_that_wait_in_vain_on_several_threads() {
    overdue_with(test_name!(), &[("MARGAY_THREADS", "3")], WAITING, [50, 1], 256);
}

#[test]
fn blocks_that_wait_in_vain_under_a_seed() {
    overdue_with(test_name!(), &[("MARGAY_SEED", "7")], WAITING, [50, 1], 256);
}

#[test]
fn lanes_that_meet_at_a_barrier_of_their_warp_for_ever() {
    let text = "
        .visible .entry kernel() {
            .reg .b32 %i; .reg .pred %p;
            mov.u32 %i, %tid.x;
            and.b32 %i, %i, 1;
            setp.ne.u32 %p, %i, 0;
            @%p bra odd;
        even:
            bar.warp.sync 0xffffffff;
            bra even;
        odd:
            bar.warp.sync 0xffffffff;
            bra odd;
        }";
    overdue(test_name!(), text, [2, 1], 96);
}

#[test]
fn a_fill_of_more_rows_than_anybody_can_count() {
    // All at the same place: rows a byte apart, slices none.
    let text = "
        .global .align 8 .b8 cell[8];
        .extern .func (.param .b32 r) __cudaCDP2Memset3DAsync(.param .align 8 .b8 p[32], .param .b32 v,
             .param .align 8 .b8 e[24], .param .b64 s);
        .visible .entry kernel() {
            .reg .b64 %a;
            mov.u64 %a, cell;
            cvta.global.u64 %a, %a;
            {
                .param .align 8 .b8 p[32]; .param .b32 v; .param .align 8 .b8 e[24]; .param .b64 s; .param .b32 r;
                st.param.b64 [p], %a; st.param.b64 [p+8], 1; st.param.b64 [p+16], 1; st.param.b64 [p+24], 0;
                st.param.b32 [v], 7;
                st.param.b64 [e], 1; st.param.b64 [e+8], 8; st.param.b64 [e+16], 0x100000000000;
                st.param.b64 [s], 0;
                call.uni (r), __cudaCDP2Memset3DAsync, (p, v, e, s);
            }
            ret;
        }";
    overdue(test_name!(), text, [1, 1], 1);
}
