//! Large texts, of the shapes that generators make and that make walks quadratic: reading, checking, linking and
//! preparing one takes time in proportion to its length.
//!
//! Each shape is made small and four times as large. Four times the time is expected, sixteen times is quadratic; half of
//! that is the limit, which leaves room for caches. Only the time counts that the thread had a core.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use cuda::program::{Allocate, AllocateError, Module, check};
use cuda::ptx;

const HEAD: &str = ".version 8.7\n.target sm_90\n.address_size 64\n";

/// Addresses and no memory.
struct Nowhere(u64);

impl Allocate for Nowhere {
    fn allocate(&mut self, bytes: u64, align: u64, _: bool, _: bool) -> Result<u64, AllocateError> {
        let address = self.0.next_multiple_of(align);
        self.0 = address + bytes;
        Ok(address)
    }
    fn write(&mut self, _: u64, _: &[u8]) {}
}

/// How long this thread has had a core.
fn busy() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists on every Linux, and the place to write to is ours.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Reads, checks, links and prepares the kernel `k`; how long that took.
fn time(text: &str) -> Duration {
    let start = busy();
    let tree = match ptx::parse(ptx::Source::new("large.ptx", text.to_owned())) {
        Ok(tree) => tree,
        Err(found) => panic!("{}", found.render_plain()),
    };
    let found = check::all(&tree);
    assert!(!found.has_errors(), "{}", found.render_plain());
    let module = match Module::link(&[Arc::new(tree)], &mut Nowhere(0x10_0000)) {
        Ok(module) => module,
        Err(error) => panic!("{error}"),
    };
    let kernel = module.functions.iter().position(|f| *f.name == *"k").expect("k");
    match module.prepare(kernel as u32) {
        Ok(function) => assert!(!function.body.blocks.is_empty()),
        Err(found) => panic!("{}", found.render_plain()),
    }
    busy() - start
}

/// Fails if four times the text takes more than eight times as long.
fn is_linear(small: usize, text: impl Fn(usize) -> String) {
    // Tables that are made once are made here.
    time(&text(2));
    let few = time(&text(small)).max(Duration::from_millis(5));
    let many = time(&text(4 * small));
    let ratio = many.as_secs_f64() / few.as_secs_f64();
    assert!(
        ratio < 8.0,
        "{few:?} for {small}, {many:?} for four times as many: {ratio:.1}"
    );
}

/// A text of `count` pieces between `start` and `end`.
fn pieces(
    start: &str,
    count: usize,
    end: &str,
    mut piece: impl FnMut(&mut String, usize) -> std::fmt::Result,
) -> String {
    let mut text = format!("{HEAD}{start}\n");
    for i in 0..count {
        piece(&mut text, i).expect("a string takes everything");
    }
    text + end
}

#[test]
fn a_chain_of_functions() {
    is_linear(800, |n| {
        let end = format!(".visible .entry k() {{ call f{}; ret; }}\n", n - 1);
        pieces(".func f() { ret; }", n, &end, |text, i| match i {
            0 => writeln!(text, ".func f0() {{ ret; }}"),
            _ => writeln!(text, ".func f{i}() {{ call f{}; ret; }}", i - 1),
        })
    });
}

#[test]
fn a_chain_of_functions_that_are_declared_first() {
    is_linear(800, |n| {
        let mut declared = String::new();
        for i in 0..=n {
            let _ = writeln!(declared, ".func f{i}();");
        }
        let end = format!(".func f{n}() {{ ret; }}\n.visible .entry k() {{ call f0; ret; }}\n");
        pieces(&declared, n, &end, |text, i| {
            writeln!(text, ".func f{i}() {{ call f{}; ret; }}", i + 1)
        })
    });
}

/// As many paths through it as two to the power of the layers.
#[test]
fn layers_of_functions_that_call_all_of_the_next() {
    is_linear(100, |n| {
        let end = format!(".visible .entry k() {{ call a{0}; call b{0}; ret; }}\n", n - 1);
        pieces("", n, &end, |text, i| {
            for name in ["a", "b"] {
                match i {
                    0 => writeln!(text, ".func {name}0() {{ ret; }}")?,
                    _ => writeln!(text, ".func {name}{i}() {{ call a{0}; call b{0}; ret; }}", i - 1)?,
                }
            }
            Ok(())
        })
    });
}

const COUNTER: &str = ".visible .entry k(.param .u32 n) { .reg .u32 %r<2>; .reg .pred %p; ld.param.u32 %r1, [n];";

#[test]
fn loops_one_after_the_other() {
    is_linear(700, |n| {
        pieces(COUNTER, n, "ret; }", |text, i| {
            writeln!(
                text,
                "L{i}: add.u32 %r1, %r1, 1; setp.lt.u32 %p, %r1, {i}; @%p bra L{i};"
            )
        })
    });
}

#[test]
fn jumps_back_to_one_place() {
    is_linear(700, |n| {
        pieces(&format!("{COUNTER}\nL:"), n, "ret; }", |text, i| {
            writeln!(text, "add.u32 %r1, %r1, 1; setp.lt.u32 %p, %r1, {i}; @%p bra L;")
        })
    });
}

#[test]
fn loops_within_loops() {
    is_linear(600, |n| {
        let mut heads = COUNTER.to_owned();
        for i in 0..n {
            let _ = write!(heads, "\nL{i}: add.u32 %r1, %r1, 1;");
        }
        pieces(&heads, n, "ret; }", |text, i| {
            let to = n - 1 - i;
            writeln!(text, "setp.lt.u32 %p, %r1, {to}; @%p bra L{to};")
        })
    });
}

/// Each block writes a register that the last one reads: all are live all the way.
#[test]
fn as_many_registers_as_blocks() {
    is_linear(500, |n| {
        let start = format!(
            ".visible .entry k(.param .u64 a) {{ .reg .u32 %r<{n}>; .reg .u64 %a; .reg .pred %p; ld.param.u64 %a, [a];"
        );
        let mut end = String::new();
        for i in 0..n {
            let _ = writeln!(end, "st.global.u32 [%a], %r{i};");
        }
        pieces(&start, n, &(end + "ret; }"), |text, i| {
            writeln!(
                text,
                "ld.volatile.global.u32 %r{i}, [%a]; setp.lt.u32 %p, %r{i}, {i}; @%p bra L{i}; st.global.u32 [%a], \
                 %r{i};\nL{i}:"
            )
        })
    });
}

#[test]
fn copies_of_copies() {
    is_linear(1500, |n| {
        let start = format!(
            ".visible .entry k(.param .u64 a) {{ .reg .u32 %r<{}>; .reg .u64 %a; ld.param.u64 %a, [a]; \
             ld.global.u32 %r{n}, [%a];",
            n + 1
        );
        pieces(&start, n, "st.global.u32 [%a], %r0; ret; }", |text, i| {
            writeln!(text, "mov.u32 %r{}, %r{};", n - 1 - i, n - i)
        })
    });
}

#[test]
fn places_of_a_jump_table() {
    is_linear(1500, |n| {
        let mut start = format!("{COUNTER}\nts: .branchtargets L0");
        for i in 1..n {
            let _ = write!(start, ", L{i}");
        }
        pieces(&(start + ";\nbrx.idx %r1, ts;"), n, "ret; }", |text, i| {
            writeln!(text, "L{i}: add.u32 %r1, %r1, {i};")
        })
    });
}

#[test]
fn a_long_sum_is_one_number() {
    is_linear(4000, |n| {
        pieces(&format!("{COUNTER}\nmov.u32 %r1, 0"), n, "; ret; }", |text, i| {
            write!(text, "+{i}")
        })
    });
}

/// A word as long as a book.
#[test]
fn a_long_word() {
    let text = format!(
        "{HEAD}.global .u32 {};\n.visible .entry k() {{ ret; }}\n",
        "a".repeat(900_000)
    );
    time(&text);
}
