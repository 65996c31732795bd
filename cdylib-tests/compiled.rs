//! Kernels that are compiled while they run, while their module goes, while the process ends.

use crate::alone::{Run, alone};
use crate::basics::context;
use crate::c::*;
use crate::code::*;
use crate::test_name;

functions! {
    cuModuleUnload(module: CUmodule);
}

/// Long enough for the interpreter that the code comes in the middle.
const BLOCKS: u32 = 3000;
const THREADS: u32 = 200;
const TURNS: u32 = 1500;

/// Each thread goes round a loop, and leaves it at a turn of its own: the last warp of a block lacks lanes.
const KERNEL: &str = "
.visible .entry mix(.param .u64 to, .param .u32 turns) {
    .reg .pred %p<3>; .reg .b32 %r<10>; .reg .b64 %rd<4>;
    ld.param.u64 %rd0, [to];
    ld.param.u32 %r0, [turns];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    and.b32 %r5, %r4, 7;
    sub.s32 %r6, %r0, %r5;
    mov.u32 %r7, %r4;
again:
    mad.lo.s32 %r7, %r7, 1664525, 1013904223;
    shr.u32 %r8, %r7, 16;
    xor.b32 %r7, %r7, %r8;
    sub.s32 %r6, %r6, 1;
    setp.gt.s32 %p0, %r6, 0;
    @%p0 bra again;
    mul.wide.s32 %rd1, %r4, 4;
    add.s64 %rd2, %rd0, %rd1;
    st.global.u32 [%rd2], %r7;
    ret;
}";

fn expected(thread: u32) -> u32 {
    (0..TURNS - thread % 8).fold(thread, |x, _| {
        let x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        x ^ x >> 16
    })
}

/// In a process that says what it compiles.
fn compiling(test: &str, tier: &str, body: impl FnOnce()) -> Run {
    let environment = [
        ("MARGAY_JIT", tier),
        ("MARGAY_JIT_CACHE", "off"),
        ("MARGAY_LOG", "cuda::simt::jit=debug"),
    ];
    alone(test, &environment, body)
}

/// Without the compiler's library everything is interpreted, and the log says so.
fn was_compiled(run: &Run) -> bool {
    run.stderr.contains("compiled") || run.stderr.contains("kernels are interpreted")
}

#[test]
fn a_launch_goes_on_in_code_that_is_compiled_meanwhile() {
    let run = compiling(test_name!(), "auto", || {
        context();
        let count = (BLOCKS * THREADS) as usize;
        let to = words(count);
        let mix = function(module(KERNEL), "mix");
        // Again in code from the beginning.
        for _ in 0..2 {
            write(to, &vec![0; count]);
            launch(mix, BLOCKS, THREADS, &[to, TURNS.into()]);
            let is = read(to, count);
            for thread in (0..count).step_by(97) {
                assert_eq!(is[thread], expected(thread as u32), "thread {thread}");
            }
        }
    });
    assert!(was_compiled(&run), "{}", run.stderr);
}

#[test]
fn nothing_is_compiled_where_that_is_switched_off() {
    let run = compiling(test_name!(), "off", || {
        context();
        let to = words((BLOCKS * THREADS) as usize);
        let mix = function(module(KERNEL), "mix");
        launch(mix, BLOCKS, THREADS, &[to, TURNS.into()]);
    });
    assert!(!was_compiled(&run), "{}", run.stderr);
}

#[test]
fn a_module_may_go_while_its_kernel_is_compiled() {
    compiling(test_name!(), "auto", || {
        context();
        let to = words(300 * THREADS as usize);
        // Each time another text, which is compiled anew.
        for which in 0..12 {
            let body = KERNEL.replace("1013904223", &format!("{}", 1_013_904_223 + which));
            let module = module(&body);
            launch(function(module, "mix"), 300, THREADS, &[to, TURNS.into()]);
            ok(cuModuleUnload(module));
        }
    });
}

#[test]
fn the_process_may_end_while_a_kernel_is_compiled() {
    compiling(test_name!(), "auto", || {
        context();
        let to = words(300 * THREADS as usize);
        for which in 0..4 {
            let body = KERNEL.replace("1013904223", &format!("{}", 1_013_904_223 + which));
            launch(function(module(&body), "mix"), 300, THREADS, &[to, TURNS.into()]);
        }
    });
}

/// What a turn of each loop does to a number, so many times: enough for a kernel to be compiled for what it is seen to do.
const STEPS: usize = 60;
const FACTORS: [u32; 2] = [1_664_525, 22_695_477];

/// Two loops, of as many turns as are asked for; threads of a warp stay in the second one for turns of their own if `apart`.
fn phases() -> String {
    let steps = |factor: u32| format!("    mad.lo.s32 %r1, %r1, {factor}, 1013904223;\n").repeat(STEPS);
    format!(
        "
.visible .entry phases(.param .u64 to, .param .u32 first, .param .u32 second, .param .u32 apart) {{
    .reg .pred %p<4>; .reg .b32 %r<10>; .reg .b64 %rd<4>;
    ld.param.u64 %rd0, [to];
    ld.param.u32 %r2, [first];
    ld.param.u32 %r3, [second];
    ld.param.u32 %r4, [apart];
    mov.u32 %r5, %ctaid.x; mov.u32 %r6, %ntid.x; mov.u32 %r7, %tid.x;
    mad.lo.s32 %r8, %r5, %r6, %r7;
    mov.u32 %r1, %r8;
    and.b32 %r4, %r4, %r7;
    add.s32 %r3, %r3, %r4;
    setp.eq.s32 %p0, %r2, 0;
    @%p0 bra between;
one:
{}    sub.s32 %r2, %r2, 1;
    setp.gt.s32 %p1, %r2, 0;
    @%p1 bra one;
between:
    setp.eq.s32 %p2, %r3, 0;
    @%p2 bra end;
two:
{}    sub.s32 %r3, %r3, 1;
    setp.gt.s32 %p3, %r3, 0;
    @%p3 bra two;
end:
    mul.wide.s32 %rd1, %r8, 4;
    add.s64 %rd2, %rd0, %rd1;
    st.global.u32 [%rd2], %r1;
    ret;
}}",
        steps(FACTORS[0]),
        steps(FACTORS[1])
    )
}

/// Launches loops of so many turns, and looks at some of what comes out.
fn go_through_phases(phases: CUfunction, to: u64, blocks: u32, [first, second, apart]: [u32; 3]) {
    let count = (blocks * 64) as usize;
    write(to, &vec![0; count]);
    launch(phases, blocks, 64, &[to, first.into(), second.into(), apart.into()]);
    let is = read(to, count);
    for thread in (0..count as u32).step_by(count / 7 + 1) {
        let turns = [first, second + (apart & (thread % 64))];
        let mut expected = thread;
        for (factor, turns) in FACTORS.into_iter().zip(turns) {
            for _ in 0..turns as usize * STEPS {
                expected = expected.wrapping_mul(factor).wrapping_add(1_013_904_223);
            }
        }
        assert_eq!(is[thread as usize], expected, "thread {thread} of {turns:?}");
    }
}

/// Code was made of the kernel more than once, if there is a compiler.
fn was_compiled_again(run: &Run) {
    let times = run.stderr.matches("kernel=\"phases\" whom=All").count();
    let compiles = !run.stderr.contains("kernels are interpreted");
    assert!(times >= 2 || !compiles, "{times}: {}", run.stderr);
}

#[test]
fn what_a_kernel_was_not_seen_to_do_is_compiled_when_it_does_it() {
    let run = compiling(test_name!(), "auto", || {
        context();
        let to = words(400 * 64);
        let phases = function(module(&phases()), "phases");
        for turns in [
            [2000, 0, 0],
            [2000, 0, 0],
            [0, 4000, 0],
            [0, 4000, 0],
            [100, 4000, 3],
            [1000, 1000, 31],
        ] {
            go_through_phases(phases, to, 400, turns);
        }
    });
    was_compiled_again(&run);
}

#[test]
fn a_block_comes_to_what_nobody_has_done_before() {
    let run = compiling(test_name!(), "auto", || {
        context();
        let to = words(2 * 64);
        let phases = function(module(&phases()), "phases");
        // One launch: the blocks are in the first loop when it is compiled, and nobody has been in the second one.
        go_through_phases(phases, to, 2, [300_000, 300_000, 1]);
    });
    was_compiled_again(&run);
}

/// Which of a test's processes this is.
const PROCESS: &str = "CDYLIB_TEST_PROCESS";

#[test]
fn what_an_earlier_process_has_compiled_is_there_at_once() {
    let folder = std::env::temp_dir().join(format!("margay-compiled-{}", std::process::id()));
    let test = test_name!();
    let process = |which: &str| {
        let environment = [
            ("MARGAY_JIT", "auto"),
            ("MARGAY_JIT_CACHE", folder.to_str().expect("a path in UTF-8")),
            ("MARGAY_LOG", "cuda::simt::jit=debug"),
            (PROCESS, which),
        ];
        alone(test, &environment, || {
            context();
            let mix = function(module(KERNEL), "mix");
            let phases = function(module(&phases()), "phases");
            let to = words((BLOCKS * THREADS) as usize);
            if std::env::var(PROCESS).is_ok_and(|which| which == "first") {
                for _ in 0..2 {
                    launch(mix, BLOCKS, THREADS, &[to, TURNS.into()]);
                    go_through_phases(phases, to, 400, [2000, 0, 0]);
                }
                return;
            }
            // A hundred of these are far from what it takes to be compiled.
            for _ in 0..100 {
                launch(mix, 1, THREADS, &[to, 10]);
                go_through_phases(phases, to, 1, [2, 0, 0]);
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        })
    };
    let (first, second) = (process("first"), process("second"));
    let _ = std::fs::remove_dir_all(folder);
    for kernel in ["mix", "phases"] {
        let compiled = format!("kernel=\"{kernel}\" whom=All kept=");
        let interpreted = first.stderr.contains("kernels are interpreted");
        assert!(
            first.stderr.contains(&(compiled.clone() + "false")) || interpreted,
            "{}",
            first.stderr
        );
        assert!(
            second.stderr.contains(&(compiled + "true")) || interpreted,
            "{}",
            second.stderr
        );
    }
}

/// In each turn lanes part by the lowest bit of their number; the even ones come to a branch that depends on the launch alone.
fn parting() -> String {
    let steps = "    mad.lo.s32 %r1, %r1, 1664525, 1013904223;\n".repeat(2 * STEPS);
    format!(
        "
.visible .entry parting(.param .u64 to, .param .u32 turns, .param .u32 other) {{
    .reg .pred %p<4>; .reg .b32 %r<10>; .reg .b64 %rd<4>;
    ld.param.u64 %rd0, [to];
    ld.param.u32 %r2, [turns];
    ld.param.u32 %r3, [other];
    mov.u32 %r5, %ctaid.x; mov.u32 %r6, %ntid.x; mov.u32 %r7, %tid.x;
    mad.lo.s32 %r8, %r5, %r6, %r7;
    mov.u32 %r1, %r8;
    and.b32 %r4, %r7, 1;
    setp.ne.s32 %p0, %r4, 0;
    setp.ne.s32 %p1, %r3, 0;
again:
{steps}    @%p0 bra odd;
    add.s32 %r1, %r1, 7;
    @%p1 bra new;
    xor.b32 %r1, %r1, 21;
    bra.uni both;
new:
    xor.b32 %r1, %r1, 42;
    bra.uni both;
odd:
    mul.lo.s32 %r1, %r1, 5;
both:
    sub.s32 %r2, %r2, 1;
    setp.gt.s32 %p2, %r2, 0;
    @%p2 bra again;
    mul.wide.s32 %rd1, %r8, 4;
    add.s64 %rd2, %rd0, %rd1;
    st.global.u32 [%rd2], %r1;
    ret;
}}"
    )
}

#[test]
fn lanes_that_have_parted_from_others_may_do_something_new() {
    let run = compiling(test_name!(), "auto", || {
        context();
        let (blocks, turns) = (300, 1200);
        let count = (blocks * 64) as usize;
        let to = words(count);
        let parting = function(module(&parting()), "parting");
        for other in [0, 0, 0, 1, 0, 1, 1] {
            write(to, &vec![0; count]);
            launch(parting, blocks, 64, &[to, turns, other]);
            let is = read(to, count);
            // What all steps of a turn come to is a product and a sum, too. Few warps are in code that was made of something else: all are looked at.
            let step = |(factor, sum): (u32, u32)| {
                let sum = sum.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (factor.wrapping_mul(1_664_525), sum)
            };
            let (factor, sum) = (0..2 * STEPS).fold((1, 0), |all, _| step(all));
            for (thread, is) in (0u32..).zip(is) {
                let turn = |x: u32| {
                    let x = x.wrapping_mul(factor).wrapping_add(sum);
                    match (thread % 2, other) {
                        (0, 0) => x.wrapping_add(7) ^ 21,
                        (0, _) => x.wrapping_add(7) ^ 42,
                        _ => x.wrapping_mul(5),
                    }
                };
                assert_eq!(is, (0..turns).fold(thread, |x, _| turn(x)), "thread {thread}, {other}");
            }
        }
    });
    assert!(was_compiled(&run), "{}", run.stderr);
}
