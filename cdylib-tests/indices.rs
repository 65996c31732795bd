//! Kernels of random index arithmetic, by threads of blocks of every shape: what the library computes once for many
//! threads (indices, bounds, addresses) must be what each thread would have computed. The expectation is the same
//! arithmetic in Rust, a thread after the other.

use std::fmt::Write;
use std::ptr::null_mut;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::c::*;

/// A step of the kernel; operands count back from the newest value of their width.
#[derive(Clone, Debug)]
enum Step {
    Constant(u32),
    Constant64(u64),
    Add(usize, usize),
    Sub(usize, usize),
    Mul(usize, usize),
    Mad(usize, usize, usize),
    Shl(usize, u32),
    MulWide(bool, usize, usize),
    MadWide(bool, usize, usize, usize),
    Widen(bool, usize),
    Narrow(usize),
    Add64(usize, usize),
    Sub64(usize, usize),
    Mul64(usize, usize),
    Shl64(usize, u32),
    /// Relation, signed; the outcome is a bit of the result.
    Compare(usize, bool, usize, usize),
    Compare64(usize, bool, usize, usize),
    /// Reads the table at its middle + factor · `%tid.x` + constant · 4, some bytes.
    Load(i32, i32, usize),
    /// Doubles the register in place, as people write it: a value that dies before its name does.
    Again(usize),
}

const RELATIONS: [&str; 6] = ["eq", "ne", "lt", "le", "gt", "ge"];
const TABLE: usize = 1 << 16;

fn table() -> Vec<u32> {
    (0..TABLE as u32)
        .map(|i| i.wrapping_mul(0x9e37_79b1) ^ i >> 3)
        .collect()
}

fn step() -> impl Strategy<Value = Step> {
    let edge = prop_oneof![
        Just(0u32),
        Just(1),
        Just(2),
        Just(4),
        Just(u32::MAX),
        Just(0x7fff_ffff),
        Just(0x8000_0000),
        Just(127),
        Just(0x7fff_ff80),
        Just(0xffff_ff80),
        Just(0x4000_0000),
        0u32..1000,
        any::<u32>()
    ];
    let edge64 = prop_oneof![
        Just(0u64),
        Just(1),
        Just(u64::MAX),
        Just(1 << 63),
        Just((1 << 63) - 100),
        Just(1 << 32),
        Just(0xffff_ffff),
        0u64..1000,
        any::<u64>()
    ];
    let at = || 0usize..8;
    prop_oneof![
        2 => edge.prop_map(Step::Constant),
        1 => edge64.prop_map(Step::Constant64),
        3 => (at(), at()).prop_map(|(a, b)| Step::Add(a, b)),
        2 => (at(), at()).prop_map(|(a, b)| Step::Sub(a, b)),
        2 => (at(), at()).prop_map(|(a, b)| Step::Mul(a, b)),
        2 => (at(), at(), at()).prop_map(|(a, b, c)| Step::Mad(a, b, c)),
        1 => (at(), 0u32..40).prop_map(|(a, n)| Step::Shl(a, n)),
        2 => (any::<bool>(), at(), at()).prop_map(|(s, a, b)| Step::MulWide(s, a, b)),
        1 => (any::<bool>(), at(), at(), at()).prop_map(|(s, a, b, c)| Step::MadWide(s, a, b, c)),
        2 => (any::<bool>(), at()).prop_map(|(s, a)| Step::Widen(s, a)),
        1 => at().prop_map(Step::Narrow),
        2 => (at(), at()).prop_map(|(a, b)| Step::Add64(a, b)),
        1 => (at(), at()).prop_map(|(a, b)| Step::Sub64(a, b)),
        1 => (at(), at()).prop_map(|(a, b)| Step::Mul64(a, b)),
        1 => (at(), 0u32..70).prop_map(|(a, n)| Step::Shl64(a, n)),
        4 => (0usize..6, any::<bool>(), at(), at()).prop_map(|(r, s, a, b)| Step::Compare(r, s, a, b)),
        3 => (0usize..6, any::<bool>(), at(), at()).prop_map(|(r, s, a, b)| Step::Compare64(r, s, a, b)),
        3 => (-4i32..5, -40i32..40, prop::sample::select(vec![1usize, 2, 4, 8])).prop_map(|(f, c, b)| Step::Load(f, c, b)),
        1 => at().prop_map(Step::Again),
    ]
}

/// The kernel's text, and the same for one thread on the host.
struct Kernel {
    steps: Vec<Step>,
}

struct Thread {
    tid: [u32; 3],
    ctaid: [u32; 3],
    ntid: [u32; 3],
    argument: u32,
}

impl Kernel {
    fn text(&self) -> String {
        let mut body = String::new();
        let (mut n, mut w, mut p) = (9usize, 1usize, 0usize);
        for step in &self.steps {
            let r = |back: usize| format!("%r{}", n - 1 - back % n);
            let d = |back: usize| format!("%d{}", w - 1 - back % w);
            let sign = |signed: bool| if signed { 's' } else { 'u' };
            let line = match *step {
                Step::Constant(c) => format!("mov.u32 %r{n}, {c};"),
                Step::Add(a, b) => format!("add.s32 %r{n}, {}, {};", r(a), r(b)),
                Step::Sub(a, b) => format!("sub.u32 %r{n}, {}, {};", r(a), r(b)),
                Step::Mul(a, b) => format!("mul.lo.s32 %r{n}, {}, {};", r(a), r(b)),
                Step::Mad(a, b, c) => format!("mad.lo.u32 %r{n}, {}, {}, {};", r(a), r(b), r(c)),
                Step::Shl(a, by) => format!("shl.b32 %r{n}, {}, {by};", r(a)),
                Step::Narrow(a) => format!("cvt.u32.u64 %r{n}, {};", d(a)),
                Step::Again(a) => format!("add.u32 %r{n}, {}, 3; add.u32 %r{n}, %r{n}, %r{n};", r(a)),
                Step::Load(f, c, bytes) => {
                    let load = match bytes {
                        1 => format!("ld.global.u8 %r{n}, [%at];"),
                        2 => format!("ld.global.s16 %r{n}, [%at];"),
                        4 => format!("ld.global.b32 %r{n}, [%at];"),
                        _ => format!(
                            "and.b64 %at, %at, -8; ld.global.v2.u32 {{%r{n}, %x}}, [%at]; xor.b32 %r{n}, %r{n}, %x;"
                        ),
                    };
                    format!(
                        "mul.wide.s32 %at, %r0, {}; add.s64 %at, %at, %table; add.s64 %at, %at, {}; {load}",
                        f * bytes.min(4) as i32,
                        c * 4
                    )
                }
                Step::Constant64(c) => format!("mov.u64 %d{w}, {c};"),
                Step::MulWide(s, a, b) => format!("mul.wide.{}32 %d{w}, {}, {};", sign(s), r(a), r(b)),
                Step::MadWide(s, a, b, c) => format!("mad.wide.{}32 %d{w}, {}, {}, {};", sign(s), r(a), r(b), d(c)),
                Step::Widen(true, a) => format!("cvt.s64.s32 %d{w}, {};", r(a)),
                Step::Widen(false, a) => format!("cvt.u64.u32 %d{w}, {};", r(a)),
                Step::Add64(a, b) => format!("add.s64 %d{w}, {}, {};", d(a), d(b)),
                Step::Sub64(a, b) => format!("sub.s64 %d{w}, {}, {};", d(a), d(b)),
                Step::Mul64(a, b) => format!("mul.lo.u64 %d{w}, {}, {};", d(a), d(b)),
                Step::Shl64(a, by) => format!("shl.b64 %d{w}, {}, {by};", d(a)),
                Step::Compare(relation, s, a, b) => {
                    format!("setp.{}.{}32 %p{p}, {}, {};", RELATIONS[relation], sign(s), r(a), r(b))
                }
                Step::Compare64(relation, s, a, b) => {
                    format!("setp.{}.{}64 %p{p}, {}, {};", RELATIONS[relation], sign(s), d(a), d(b))
                }
            };
            let _ = writeln!(body, "    {line}");
            match step {
                Step::Constant64(_)
                | Step::MulWide(..)
                | Step::MadWide(..)
                | Step::Widen(..)
                | Step::Add64(..)
                | Step::Sub64(..)
                | Step::Mul64(..)
                | Step::Shl64(..) => w += 1,
                Step::Compare(..) | Step::Compare64(..) => {
                    let _ = writeln!(body, "    selp.u32 %x, 1, 0, %p{p}; mad.lo.u32 %sum, %sum, 5, %x;");
                    p += 1;
                }
                Step::Load(..) => {
                    let _ = writeln!(body, "    mad.lo.u32 %sum, %sum, 5, %r{n};");
                    n += 1;
                }
                _ => n += 1,
            }
        }
        format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n
.visible .entry kernel(.param .u64 out, .param .u64 table, .param .u32 argument)\n{{
    .reg .b32 %r<{}>, %x, %sum, %l;
    .reg .b64 %d<{}>, %at, %out, %table;
    .reg .pred %p<{}>;
    ld.param.u64 %out, [out];
    ld.param.u64 %table, [table];
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, %tid.y;
    mov.u32 %r2, %tid.z;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %ntid.y;
    mov.u32 %r5, %ctaid.x;
    mov.u32 %r6, %ctaid.y;
    ld.param.u32 %r7, [argument];
    mad.lo.u32 %r8, %r5, %r3, %r0;
    mov.u64 %d0, 3;
    mov.u32 %sum, 1;
{body}
    mov.u32 %l, %nctaid.x;
    mad.lo.u32 %l, %r6, %l, %r5;
    mov.u32 %x, %ntid.z;
    mul.lo.u32 %l, %l, %x;
    add.u32 %l, %l, %r2;
    mad.lo.u32 %l, %l, %r4, %r1;
    mad.lo.u32 %l, %l, %r3, %r0;
    mul.wide.u32 %at, %l, 4;
    add.s64 %at, %at, %out;
    st.global.u32 [%at], %sum;
    ret;\n}}\n",
            n + 1,
            w + 1,
            p + 1
        )
    }

    fn host(&self, thread: &Thread, table: &[u32]) -> u32 {
        let Thread {
            tid,
            ctaid,
            ntid,
            argument,
        } = *thread;
        let index = ctaid[0].wrapping_mul(ntid[0]).wrapping_add(tid[0]);
        let mut r = vec![
            tid[0], tid[1], tid[2], ntid[0], ntid[1], ctaid[0], ctaid[1], argument, index,
        ];
        let mut d = vec![3u64];
        let mut sum = 1u32;
        let byte = |at: usize| table[at / 4].to_le_bytes()[at % 4];
        for step in &self.steps {
            let n = |back: usize| r[r.len() - 1 - back % r.len()];
            let w = |back: usize| d[d.len() - 1 - back % d.len()];
            let wide = |signed: bool, x: u32| if signed { x as i32 as i64 as u64 } else { u64::from(x) };
            let holds = |relation: usize, ordering: std::cmp::Ordering| match RELATIONS[relation] {
                "eq" => ordering.is_eq(),
                "ne" => ordering.is_ne(),
                "lt" => ordering.is_lt(),
                "le" => ordering.is_le(),
                "gt" => ordering.is_gt(),
                _ => ordering.is_ge(),
            };
            let mut bit = |holds: bool| sum = sum.wrapping_mul(5).wrapping_add(u32::from(holds));
            match *step {
                Step::Constant(c) => r.push(c),
                Step::Constant64(c) => d.push(c),
                Step::Add(a, b) => r.push(n(a).wrapping_add(n(b))),
                Step::Sub(a, b) => r.push(n(a).wrapping_sub(n(b))),
                Step::Mul(a, b) => r.push(n(a).wrapping_mul(n(b))),
                Step::Mad(a, b, c) => r.push(n(a).wrapping_mul(n(b)).wrapping_add(n(c))),
                Step::Shl(a, by) => r.push(n(a).checked_shl(by).unwrap_or(0)),
                Step::Narrow(a) => r.push(w(a) as u32),
                Step::Again(a) => r.push(n(a).wrapping_add(3).wrapping_mul(2)),
                Step::MulWide(s, a, b) => d.push(wide(s, n(a)).wrapping_mul(wide(s, n(b)))),
                Step::MadWide(s, a, b, c) => d.push(wide(s, n(a)).wrapping_mul(wide(s, n(b))).wrapping_add(w(c))),
                Step::Widen(s, a) => d.push(wide(s, n(a))),
                Step::Add64(a, b) => d.push(w(a).wrapping_add(w(b))),
                Step::Sub64(a, b) => d.push(w(a).wrapping_sub(w(b))),
                Step::Mul64(a, b) => d.push(w(a).wrapping_mul(w(b))),
                Step::Shl64(a, by) => d.push(w(a).checked_shl(by).unwrap_or(0)),
                Step::Compare(relation, true, a, b) => bit(holds(relation, (n(a) as i32).cmp(&(n(b) as i32)))),
                Step::Compare(relation, false, a, b) => bit(holds(relation, n(a).cmp(&n(b)))),
                Step::Compare64(relation, true, a, b) => bit(holds(relation, (w(a) as i64).cmp(&(w(b) as i64)))),
                Step::Compare64(relation, false, a, b) => bit(holds(relation, w(a).cmp(&w(b)))),
                Step::Load(f, c, bytes) => {
                    let at =
                        TABLE as i64 * 2 + i64::from(f * bytes.min(4) as i32) * i64::from(tid[0]) + i64::from(c * 4);
                    let at = at as usize;
                    let value = match bytes {
                        1 => u32::from(byte(at)),
                        2 => i32::from(i16::from_le_bytes([byte(at), byte(at + 1)])) as u32,
                        4 => table[at / 4],
                        _ => table[at / 8 * 2] ^ table[at / 8 * 2 + 1],
                    };
                    sum = sum.wrapping_mul(5).wrapping_add(value);
                    r.push(value);
                }
            }
        }
        sum
    }
}

const SHAPES: [[u32; 3]; 14] = [
    [128, 1, 1],
    [100, 1, 1],
    [256, 1, 1],
    [1, 1, 1],
    [31, 1, 1],
    [32, 1, 1],
    [64, 1, 1],
    [32, 4, 1],
    [64, 3, 1],
    [16, 16, 1],
    [33, 2, 2],
    [96, 2, 1],
    [128, 2, 2],
    [32, 2, 3],
];

#[test]
fn values_that_follow_the_thread_are_each_threads_own() {
    ok(cuInit(0));
    let mut context = null_mut();
    ok(cuDevicePrimaryCtxRetain(&mut context, 0));
    ok(cuCtxSetCurrent(context));
    let table = table();
    let (mut in_device, mut out) = (0, 0);
    ok(cuMemAlloc(&mut in_device, TABLE * 4));
    ok(cuMemAlloc(&mut out, 4 * 4 * 512));
    ok(cuMemcpyHtoD(in_device, table.as_ptr().cast(), TABLE * 4));

    let mut runner = TestRunner::new(Config {
        failure_persistence: None,
        ..Config::with_cases(600)
    });
    let case = (
        prop::collection::vec(step(), 1..24),
        prop::sample::select(SHAPES.to_vec()),
        prop_oneof![0u32..2000, any::<u32>()],
    );
    let run = |(steps, block, argument): (Vec<Step>, [u32; 3], u32)| {
        let kernel = Kernel { steps };
        let text = std::ffi::CString::new(kernel.text()).expect("text");
        let (mut module, mut function) = (null_mut(), null_mut());
        ok(cuModuleLoadData(&mut module, text.as_ptr().cast()));
        ok(cuModuleGetFunction(&mut function, module, c"kernel".as_ptr()));
        let grid = [2, 2, 1];
        let mut middle = in_device + TABLE as u64 * 2;
        let (mut to, mut argument) = (out, argument);
        let mut parameters = [
            (&raw mut to).cast(),
            (&raw mut middle).cast(),
            (&raw mut argument).cast(),
        ];
        let ([gx, gy, gz], [x, y, z]) = (grid, block);
        ok(cuLaunchKernel(
            function,
            gx,
            gy,
            gz,
            x,
            y,
            z,
            0,
            null_mut(),
            parameters.as_mut_ptr(),
            null_mut(),
        ));
        ok(cuCtxSynchronize());
        let threads = (x * y * z) as usize;
        let mut found = vec![0u32; 4 * threads];
        ok(cuMemcpyDtoH(found.as_mut_ptr().cast(), out, 4 * found.len()));
        ok(cuModuleUnload(module));
        for (linear, &found) in found.iter().enumerate() {
            let (cta, t) = ((linear / threads) as u32, (linear % threads) as u32);
            let thread = Thread {
                tid: [t % x, t / x % y, t / x / y],
                ctaid: [cta % 2, cta / 2, 0],
                ntid: block,
                argument,
            };
            let expected = kernel.host(&thread, &table);
            prop_assert_eq!(
                found,
                expected,
                "thread {:?} of block {:?}, argument {}\n{}",
                thread.tid,
                thread.ctaid,
                argument,
                kernel.text()
            );
        }
        Ok(())
    };
    if let Err(error) = runner.run(&case, run) {
        panic!("{error}");
    }
    ok(cuMemFree(in_device));
    ok(cuMemFree(out));
    ok(cuDevicePrimaryCtxRelease(0));
}
