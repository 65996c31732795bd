//! Addresses near both ends of 2^32 and 2^64, and near the ends of what a kernel has, in every space and width: what is the
//! kernel's is served, everything else is the right fault, and nothing outside is touched.
//!
//! What must happen is worked out here, from where the windows begin and end. Shared and local addresses have 32 bits
//! (PTX ISA, Addresses as Operands: what is wider is cut), the others 64; sums of register and offset wrap around.

use std::sync::Arc;

use cuda::simt::Cause;
use cuda::simt::observe::{Access, GridEvent, Observer, Who};
use parking_lot::Mutex;

use crate::counter::Run;

/// Bytes of the shared variable and of the buffer. A buffer of whole pages ends where its pages do.
const SHARED: u64 = 192;
const BUFFER: u64 = 4096;
/// Bytes of the kernel's parameters: the address, and what follows it.
const PARAMS: u64 = 40;
/// Bytes of the local variable; a thread's window is larger, but not by so much.
const LOCAL: u64 = 64;
const MOST_LOCAL: u64 = 1 << 16;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Global,
    Const,
    Shared,
    Local,
    Param,
    /// Generic addresses of each.
    ToGlobal,
    ToShared,
    ToLocal,
}

impl Place {
    fn word(self) -> &'static str {
        match self {
            Place::Global => ".global",
            Place::Const => ".const",
            Place::Shared => ".shared",
            Place::Local => ".local",
            Place::Param => ".param",
            Place::ToGlobal | Place::ToShared | Place::ToLocal => "",
        }
    }

    /// Whether the offset is one into a window, rather than from a base that the kernel adds.
    fn is_offset(self) -> bool {
        matches!(self, Place::Shared | Place::Local | Place::Param)
    }

    /// Whether an access at `at`, an offset from the window's or the buffer's start, must be served (`None`: what lies
    /// there is not this test's to know).
    fn serves(self, at: u64, bytes: u64) -> Option<bool> {
        let within = |size: u64| at.checked_add(bytes).is_some_and(|end| end <= size);
        Some(match self {
            Place::Global | Place::Const | Place::ToGlobal => within(BUFFER),
            Place::Shared | Place::ToShared => within(SHARED),
            Place::Param => within(PARAMS),
            Place::Local | Place::ToLocal if within(LOCAL) => true,
            Place::Local | Place::ToLocal if at < MOST_LOCAL => return None,
            Place::Local | Place::ToLocal => false,
        })
    }
}

/// A statement that touches `bytes` bytes at `ADDRESS`.
struct Operation {
    name: &'static str,
    text: &'static str,
    bytes: u64,
    writes: bool,
}

const fn operation(name: &'static str, text: &'static str, bytes: u64, writes: bool) -> Operation {
    Operation {
        name,
        text,
        bytes,
        writes,
    }
}

const OPERATIONS: &[Operation] = &[
    operation("ld1", "ldSPACE.u8 %h, [ADDRESS];", 1, false),
    operation("ld2", "ldSPACE.u16 %h, [ADDRESS];", 2, false),
    operation("ld4", "ldSPACE.u32 %w, [ADDRESS];", 4, false),
    operation("ld8", "ldSPACE.u64 %d, [ADDRESS];", 8, false),
    operation("ld16", "ldSPACE.b128 %q, [ADDRESS];", 16, false),
    operation("ldv2", "ldSPACE.v2.u32 {%w, %w2}, [ADDRESS];", 8, false),
    operation("ldv4", "ldSPACE.v4.u32 {%w, %w2, %w3, %w4}, [ADDRESS];", 16, false),
    operation("ldstrong", "ld.relaxed.gpuSPACE.u32 %w, [ADDRESS];", 4, false),
    operation(
        "ldstrongv",
        "ld.relaxed.gpuSPACE.v2.u64 {%d, %d2}, [ADDRESS];",
        16,
        false,
    ),
    operation("st1", "stSPACE.u8 [ADDRESS], %h;", 1, true),
    operation("st2", "stSPACE.u16 [ADDRESS], %h;", 2, true),
    operation("st4", "stSPACE.u32 [ADDRESS], %w;", 4, true),
    operation("st8", "stSPACE.u64 [ADDRESS], %d;", 8, true),
    operation("st16", "stSPACE.b128 [ADDRESS], %q;", 16, true),
    operation("stv4", "stSPACE.v4.u32 [ADDRESS], {%w, %w2, %w3, %w4};", 16, true),
    operation("ststrong", "st.release.gpuSPACE.u64 [ADDRESS], %d;", 8, true),
    operation("atom4", "atomSPACE.add.u32 %w, [ADDRESS], 1;", 4, true),
    operation("atom8", "atomSPACE.add.u64 %d, [ADDRESS], 1;", 8, true),
    operation("atom16", "atomSPACE.exch.b128 %q, [ADDRESS], %q;", 16, true),
    operation("red4", "redSPACE.add.u32 [ADDRESS], 1;", 4, true),
];

fn applies(operation: &Operation, place: Place) -> bool {
    let strong = operation.text.contains(".relaxed.") || operation.text.contains(".release.");
    let atomic = operation.text.starts_with("atom") || operation.text.starts_with("red");
    match place {
        Place::Const | Place::Param => !operation.writes && !strong,
        Place::Local => !strong && !atomic,
        // An atomic on local memory is undefined.
        Place::ToLocal => !atomic,
        Place::Global | Place::Shared | Place::ToGlobal | Place::ToShared => true,
    }
}

const PLACES: [Place; 8] = [
    Place::Global,
    Place::Const,
    Place::Shared,
    Place::Local,
    Place::Param,
    Place::ToGlobal,
    Place::ToShared,
    Place::ToLocal,
];

/// A kernel of one thread that gets an offset, adds a base if the place has one, and does the operation there. `%%`: with a
/// constant offset, or by a narrow register.
fn kernel(name: &str, operation: &Operation, place: Place, constant: i64, narrow: bool) -> String {
    let base = match place {
        Place::Shared | Place::Local | Place::Param => "",
        Place::Global | Place::ToGlobal => "ld.param.u64 %b, [base];",
        Place::Const => "mov.u64 %b, constants;",
        Place::ToShared => "mov.u64 %b, svar;\n    cvta.shared.u64 %b, %b;",
        Place::ToLocal => "mov.u64 %b, lvar;\n    cvta.local.u64 %b, %b;",
    };
    let add = if base.is_empty() { "" } else { "add.u64 %a, %a, %b;" };
    let register = if narrow { "%n" } else { "%a" };
    let address = match constant {
        0 => register.to_owned(),
        n => format!("{register}+{n}"),
    };
    let statement = operation
        .text
        .replace("SPACE", place.word())
        .replace("ADDRESS", &address);
    format!(
        ".visible .entry {name}(.param .u64 at, .param .u64 base, .param .b8 rest[24])\n{{
    .reg .b64 %a, %b, %d, %d2;\n    .reg .b32 %n, %w, %w2, %w3, %w4;\n    .reg .b16 %h;\n    .reg .b128 %q;
    .shared .align 64 .b8 svar[{SHARED}];\n    .local .align 64 .b8 lvar[{LOCAL}];
    mov.u32 %w, 7;\n    mov.u32 %w2, 7;\n    mov.u32 %w3, 7;\n    mov.u32 %w4, 7;\n    mov.u16 %h, 7;
    mov.u64 %d, 7;\n    mov.u64 %d2, 7;\n    mov.b128 %q, {{%d, %d2}};
    st.shared.u32 [svar], %w;\n    st.local.u32 [lvar], %w;
    ld.param.u64 %a, [at];\n    {base}\n    {add}\n    cvt.u32.u64 %n, %a;
    {statement}\n    ret;\n}}\n"
    )
}

/// Offsets around the ends of everything.
fn offsets() -> Vec<u64> {
    let mut offsets = Vec::new();
    let ends = [
        0,
        LOCAL,
        SHARED,
        PARAMS,
        BUFFER,
        1 << 31,
        1 << 32,
        1 << 40,
        1 << 47,
        1 << 63,
    ];
    for end in ends {
        for step in [1u64, 2, 4, 8, 12, 16, 32] {
            offsets.extend([u64::wrapping_sub(end, step), u64::wrapping_add(end, step)]);
        }
        offsets.push(end);
    }
    offsets.sort_unstable();
    offsets.dedup();
    offsets
}

/// What one launch must come to.
#[derive(PartialEq, Eq, Debug, Clone, Copy)]
enum Ending {
    Served,
    Illegal,
    Misaligned,
}

#[test]
fn nothing_outside_of_a_kernels_memory_is_touched() {
    let mut run = Run::new();
    let buffer = run.memory.buffer(&[0; BUFFER as usize]);
    let mut text =
        format!(".version 9.5\n.target sm_120a\n.address_size 64\n.const .align 64 .b8 constants[{BUFFER}];\n");
    let mut kernels = Vec::new();
    for place in PLACES {
        for operation in OPERATIONS.iter().filter(|operation| applies(operation, place)) {
            for (constant, narrow) in [(0, false), (16, false), (-16, false), (0, true), (16, true)] {
                // Only windows have narrow addresses.
                if narrow && !place.is_offset() {
                    continue;
                }
                text += &kernel(&format!("k{}", kernels.len()), operation, place, constant, narrow);
                kernels.push((place, operation, constant, narrow));
            }
        }
    }
    let module = run.load(&text).unwrap_or_else(|why| panic!("{why}"));
    let mut wrong = Vec::new();
    let offsets = offsets();
    // Without optimisation all of them take minutes.
    let step = if cfg!(debug_assertions) { 7 } else { 1 };
    for (i, &(place, operation, constant, narrow)) in kernels.iter().enumerate().step_by(step) {
        let entry = format!("k{i}");
        let prepared = run
            .prepare(&module, &entry)
            .unwrap_or_else(|why| panic!("{entry}: {why}"));
        for &offset in &offsets {
            let from = if narrow { u64::from(offset as u32) } else { offset };
            let sum = from.wrapping_add_signed(constant);
            let at = match place {
                Place::Shared | Place::Local => u64::from(sum as u32),
                _ => sum,
            };
            let Some(served) = place.serves(at, operation.bytes) else {
                continue;
            };
            let wanted = if !served {
                Ending::Illegal
            } else if at.is_multiple_of(operation.bytes) {
                Ending::Served
            } else {
                Ending::Misaligned
            };
            let mut params = [offset, buffer].map(u64::to_le_bytes).concat();
            params.resize(PARAMS as usize, 0);
            let found = match run.start(&module, prepared, (1, params), Default::default()) {
                Ok(()) => Ending::Served,
                Err(fault) => match fault.cause {
                    Cause::IllegalAddress { .. } => Ending::Illegal,
                    Cause::Misaligned { .. } => Ending::Misaligned,
                    other => panic!("{other}"),
                },
            };
            if found != wanted {
                let text = format!(
                    "{} {place:?} {offset:#x} + {constant}, narrow: {narrow}",
                    operation.name
                );
                wrong.push(format!("{text}: {found:?}, expected {wanted:?}"));
            }
        }
    }
    let shown = wrong.iter().take(40).cloned().collect::<Vec<_>>().join("\n");
    assert!(wrong.is_empty(), "{}:\n{shown}", wrong.len());
}

#[test]
fn asynchronous_copies_and_printed_texts_stay_within_the_kernels_memory() {
    let mut run = Run::new();
    let buffer = run.memory.buffer(&[0; BUFFER as usize]);
    let mut text = String::from(
        ".version 9.5\n.target sm_120a\n.address_size 64
.extern .func (.param .b32 status) vprintf(.param .b64 format, .param .b64 arguments);
.global .align 1 .b8 number[3] = { 37, 100, 0 };\n",
    );
    let head = format!(
        "(.param .u64 at, .param .u64 base)\n{{\n    .reg .b64 %a, %b, %s;\n    .reg .b32 %r;
    .shared .align 64 .b8 svar[{SHARED}];
    ld.param.u64 %a, [at];\n    ld.param.u64 %b, [base];\n    mov.u64 %s, svar;\n    st.shared.u32 [svar], 0;\n"
    );
    for bytes in [4, 8, 16] {
        text += &format!(
            ".visible .entry from{bytes}{head}    add.u64 %a, %a, %b;
    cp.async.ca.shared.global [%s], [%a], {bytes};\n    ret;\n}}
.visible .entry to{bytes}{head}    cp.async.ca.shared.global [%a], [%b], {bytes};\n    ret;\n}}\n"
        );
    }
    // The format, or the block of arguments.
    let call = |format: &str, arguments: &str| {
        format!(
            "    {{\n    .param .b64 x;\n    .param .b64 y;\n    .param .b32 out;\n    st.param.b64 [x], {format};
    st.param.b64 [y], {arguments};\n    call (out), vprintf, (x, y);\n    }}\n    ret;\n}}\n"
        )
    };
    text += &format!(
        ".visible .entry format{head}    add.u64 %a, %a, %b;\n{}",
        call("%a", "%b")
    );
    text += &format!(
        ".visible .entry arguments{head}    add.u64 %a, %a, %b;\n    mov.u64 %b, number;\n{}",
        call("%b", "%a")
    );
    let module = run.load(&text).unwrap_or_else(|why| panic!("{why}"));
    let names = [("from", 4), ("from", 8), ("from", 16), ("to", 4), ("to", 8), ("to", 16)];
    let names = names.into_iter().chain([("format", 1), ("arguments", 4)]);
    for (name, bytes) in names {
        let copies = matches!(name, "from" | "to");
        let entry = if copies {
            format!("{name}{bytes}")
        } else {
            name.to_owned()
        };
        let prepared = run
            .prepare(&module, &entry)
            .unwrap_or_else(|why| panic!("{entry}: {why}"));
        for offset in offsets() {
            // No format is no call.
            if name == "format" && offset.wrapping_add(buffer) == 0 {
                continue;
            }
            let (at, size) = match name {
                "to" => (u64::from(offset as u32), SHARED),
                _ => (offset, BUFFER),
            };
            let served = at.checked_add(bytes).is_some_and(|end| end <= size);
            let aligned = !copies || at.is_multiple_of(bytes);
            let params = [offset, buffer].map(u64::to_le_bytes).concat();
            let ended = run.start(&module, prepared, (1, params), Default::default());
            let good = match ended {
                Ok(()) => served && aligned,
                Err(fault) => match fault.cause {
                    Cause::IllegalAddress { .. } => !served,
                    Cause::Misaligned { .. } => served && !aligned,
                    _ => false,
                },
            };
            assert!(good, "{entry} at {offset:#x}");
        }
    }
}

#[test]
fn a_width_of_two_billion_is_cut() {
    let mut run = Run::new();
    // "%*d|%.*f", "%2000000000d"
    let text = "
.version 9.5\n.target sm_120a\n.address_size 64
.extern .func (.param .b32 status) vprintf(.param .b64 format, .param .b64 arguments);
.global .align 1 .b8 stars[9] = { 37, 42, 100, 124, 37, 46, 42, 102, 0 };
.global .align 1 .b8 digits[13] = { 37, 50, 48, 48, 48, 48, 48, 48, 48, 48, 48, 100, 0 };
.global .align 8 .b32 values[6] = { 2000000000, 5, 2000000000, 0, 0, 0 };
.visible .entry wide()
{
    .reg .b64 %f, %v;
    mov.u64 %v, values;
    mov.u64 %f, stars;
    {
    .param .b64 x;\n    .param .b64 y;\n    .param .b32 out;
    st.param.b64 [x], %f;\n    st.param.b64 [y], %v;
    call (out), vprintf, (x, y);
    }
    mov.u64 %f, digits;
    {
    .param .b64 x;\n    .param .b64 y;\n    .param .b32 out;
    st.param.b64 [x], %f;\n    st.param.b64 [y], %v;
    call (out), vprintf, (x, y);
    }
    ret;
}
";
    let module = run.load(text).unwrap_or_else(|why| panic!("{why}"));
    let prepared = run.prepare(&module, "wide").expect("it lowers");
    run.start(&module, prepared, (1, Vec::new()), Default::default())
        .expect("it runs");
    let printed = run.printed.lock().len();
    assert_eq!(printed, 2 << 20, "bytes of two calls, each as long as may be");
}

/// Keeps where a block's windows are.
#[derive(Default)]
struct Windows(Mutex<Vec<(u64, u64)>>);

impl Observer for Windows {
    fn access(&self, _: &Who<'_>, _: &Access<'_>) {}
    fn grid(&self, _: u64, event: &GridEvent) {
        if let GridEvent::Block { shared, .. } = event {
            self.0.lock().push(*shared);
        }
    }
}

#[test]
fn a_fault_says_which_window_a_generic_address_ran_over() {
    let mut run = Run::new();
    let text = format!(
        ".version 9.5\n.target sm_120a\n.address_size 64\n{}{}",
        kernel("shared", &OPERATIONS[11], Place::ToShared, 0, false),
        kernel("local", &OPERATIONS[11], Place::ToLocal, 0, false),
    );
    let module = run.load(&text).unwrap_or_else(|why| panic!("{why}"));
    let windows = Arc::new(Windows::default());
    let near = |name: &str, offset: i64| {
        let prepared = run.prepare(&module, name).expect("it lowers");
        let mut params = offset.to_le_bytes().to_vec();
        params.resize(PARAMS as usize, 0);
        let watch = cuda::simt::observe::Watch::new(Arc::clone(&windows));
        let fault = run.start(&module, prepared, (64, params), watch).expect_err("outside");
        assert!(matches!(fault.cause, Cause::IllegalAddress { .. }), "{}", fault.cause);
        fault.place.map(|place| (place.space, place.offset))
    };
    use cuda::program::Space;
    let end = SHARED as i64;
    assert_eq!(near("shared", end), Some((Space::Shared, end)));
    assert_eq!(near("shared", -4), Some((Space::Shared, -4)));
    assert_eq!(near("shared", 1000), Some((Space::Shared, 1000)));
    // Thread 1 of the block has the next part of the local window.
    assert!(matches!(near("local", 2048), Some((Space::Local, _))));
    // Where it is nobody's, no window is blamed.
    assert_eq!(near("shared", 1 << 45), None);
    let seen = windows.0.lock();
    assert!(seen.iter().all(|(_, bytes)| *bytes == SHARED), "{seen:?}");
}
