//! What names stand for across units (PTX ISA, Linking Directives), and what a module tells without lowering.

use super::{complaints, index, link, prepare, try_link};
use crate::program::{Callee, LinkError, Module, Op};

fn callee(module: &Module, name: &str) -> String {
    let function = prepare(module, name);
    let index = function.body.insts().find_map(|inst| match inst.op {
        Op::Call {
            callee: Callee::Direct(index),
            ..
        } => Some(index),
        _ => None,
    });
    let entry = &module.functions[index.expect("a call") as usize];
    format!(
        "{} {}",
        entry.name,
        module.prepare(index.unwrap()).unwrap().body.insts().count()
    )
}

#[test]
fn visible_definitions_serve_other_units() {
    let (module, _) = link(&[
        ".extern .func f(); .extern .global .u32 v; .visible .entry k() { .reg .u32 %r; ld.global.u32 %r, [v];
            st.global.u32 [v], %r; call f; ret; }",
        ".visible .func f() { ret; } .visible .global .u32 v = 3;",
    ]);
    assert_eq!(callee(&module, "k"), "f 1");
    assert_eq!(module.globals.len(), 1);
    let listing = super::listing(&prepare(&module, "k"));
    assert_eq!(
        listing[0],
        format!("load.4 r0 ← global[{:#x}]", module.globals[0].address)
    );
}

#[test]
fn barriers_over_a_grid_are_defined_where_a_unit_declares_them() {
    let declaration = ".extern .func (.param .b32 e) cudaCGSynchronize(.param .b64 handle, .param .b32 flags);";
    let kernel = format!(
        "{declaration} .visible .entry k() {{ .param .b32 e; .param .b64 h; .param .b32 f; call (e), cudaCGSynchronize, (h, f); }}"
    );
    let (module, _) = link(&[&kernel, declaration]);
    assert!(callee(&module, "k").starts_with("cudaCGSynchronize "));
    assert_eq!(module.functions.len(), 3);
    // Whoever defines one keeps it, and has no other put beside it.
    let (module, _) = link(&[
        &kernel,
        ".visible .func (.param .b32 e) cudaCGSynchronize(.param .b64 handle, .param .b32 flags) { ret; }",
    ]);
    assert_eq!(callee(&module, "k"), "cudaCGSynchronize 1");
    assert_eq!(module.functions.len(), 2);
}

#[test]
fn internal_names_are_each_units_own() {
    let (module, memory) = link(&[
        ".func f() { ret; } .global .u32 v = 1; .visible .entry a() { call f; ret; }",
        ".func f() { trap; ret; } .global .u32 v = 2; .visible .entry b() { call f; ret; }",
    ]);
    assert_eq!(module.functions.len(), 4);
    let values: Vec<_> = module.globals.iter().map(|g| memory.read(g.address, 4)[0]).collect();
    assert_eq!(values, [1, 2]);
    let callee = |name: &str| prepare(&module, name).callees[0];
    assert_ne!(callee("a"), callee("b"));
}

#[test]
fn strong_beats_weak_and_common() {
    let (module, memory) = link(&[
        ".weak .func f() { ret; } .weak .global .u32 v = 1; .common .global .u32 c[2];
            .visible .entry k() { call f; ret; }",
        ".visible .func f() { trap; ret; } .visible .global .u32 v = 2; .common .global .u32 c[4];",
        ".weak .func f() { ret; } .weak .global .u32 v = 3; .common .global .u32 c[3];",
    ]);
    assert_eq!(module.functions.iter().filter(|f| &*f.name == "f").count(), 1);
    let function = module.prepare(prepare(&module, "k").callees[0]).unwrap();
    assert!(matches!(function.body.blocks[0].insts[0].op, Op::Trap));
    assert_eq!(memory.global(&module, "v"), [2, 0, 0, 0]);
    // Of common ones the largest.
    assert_eq!(memory.global(&module, "c").len(), 16);
    assert_eq!(module.globals.len(), 2);
}

#[test]
fn the_first_weak_definition_stands() {
    let (module, memory) = link(&[".weak .global .u32 v = 1;", ".weak .global .u32 v = 2;"]);
    assert_eq!(memory.global(&module, "v"), [1, 0, 0, 0]);
}

#[test]
fn duplicates_and_undefined_names_are_reported() {
    let twice = try_link(&[".visible .global .u32 v;", ".visible .global .u32 v;"]);
    assert!(matches!(twice, Err(LinkError::Duplicate(names)) if names == ["v"]));
    let functions = try_link(&[".visible .func f() { ret; }", ".visible .func f() { ret; }"]);
    assert!(matches!(functions, Err(LinkError::Duplicate(names)) if names == ["f"]));
    let inside = try_link(&[".func f() { ret; } .func f() { ret; }"]);
    assert!(matches!(inside, Err(LinkError::Duplicate(names)) if names == ["f"]));
    let undefined = try_link(&[".extern .global .u32 v;"]);
    assert!(matches!(undefined, Err(LinkError::Undefined(names)) if names == ["v"]));
}

#[test]
fn a_function_that_nobody_defines_matters_when_it_is_reached() {
    let (module, _) =
        link(&[".extern .func gone(); .visible .entry k() { call gone; ret; } .visible .entry fine() { ret; }"]);
    prepare(&module, "fine");
    assert_eq!(complaints(&module, "k"), ["`gone` is called and no unit defines it"]);
}

#[test]
fn aliases_are_other_names() {
    let (module, _) = link(&[
        ".visible .func g() { trap; ret; } .visible .func f(); .alias f, g; .visible .entry k() { call f; ret; }",
        ".extern .func f(); .visible .entry l() { call f; ret; }",
    ]);
    let g = index(&module, "g");
    assert_eq!(prepare(&module, "k").callees, [g]);
    assert_eq!(prepare(&module, "l").callees, [g]);
}

#[test]
fn kernels_tell_their_interface() {
    let (module, _) = link(&[".target sm_75
        .visible .entry k(.param .u8 a, .param .align 8 .b8 b[12], .param .u16 c, .param .u64 d)
        .maxntid 16, 8 .minnctapersm 2 .maxnreg 64 { ret; }"
        .replace(".target", ".version 8.5\n.target")
        .as_str()]);
    let info = module.functions[0].kernel.clone().unwrap();
    assert_eq!(info.params, [(0, 1), (8, 12), (20, 2), (24, 8)]);
    assert_eq!(info.param_bytes, 32);
    assert_eq!((info.maxntid, info.max_threads), (Some([16, 8, 1]), 128));
    assert_eq!((info.min_ctas_per_sm, info.max_registers, info.target), (2, 64, 75));
}

#[test]
fn managed_and_constant_variables_are_asked_for_as_such() {
    let (module, memory) =
        link(&[".global .attribute(.managed) .u32 m; .const .u32 c = 5; .global .u32 g; .const .f64 d;"]);
    let address = |name: &str| module.globals.iter().find(|g| &*g.name == name).unwrap().address;
    assert_eq!(memory.managed, [address("m")]);
    assert_eq!(memory.constant, [address("c")]);
    assert!(module.globals.iter().all(|g| g.address % g.align == 0 && g.visible));
    // Both constants in one block: 4 bytes, padding, 8 bytes.
    assert_eq!(address("d") - address("c"), 8);
}

const SHARED: &str = "
    .shared .align 4 .b8 a[12];
    .visible .shared .align 16 .b8 b[32];
    .extern .shared .align 16 .b8 dynamic[];
    .func (.param .u32 r) uses_a() { .reg .u32 %r; mov.u32 %r, a; st.param.u32 [r], %r; ret; }
    .func uses_b() { .reg .u32 %r; ld.shared.u32 %r, [b+4]; st.shared.u32 [b], %r; ret; }
    .visible .entry none() { ret; }
    .visible .entry one() { .reg .u32 %r; .shared .u64 own; ld.shared.u32 %r, [a+8]; st.shared.u32 [own], %r;
        call uses_b; ret; }
    .visible .entry two() { .reg .u32 %r; mov.u32 %r, dynamic; st.shared.u32 [%r], %r; st.shared.u32 [a], %r; ret; }
    ";

#[test]
fn shared_memory_is_laid_out_for_each_kernel() {
    let (module, _) = link(&[SHARED]);
    assert_eq!(prepare(&module, "none").shared_bytes, 0);
    // a: 12 bytes, b from 16, own from 48.
    let one = prepare(&module, "one");
    assert_eq!((one.shared_bytes, one.shared.len()), (56, 3));
    assert_eq!(
        super::listing(&one)[..2],
        ["load.4 r0 ← shared[0x8]", "store.4 shared[0x30] ← r0"]
    );
    let two = prepare(&module, "two");
    assert_eq!((two.shared_bytes, two.dynamic_shared), (12, 16));
    assert_eq!(super::listing(&two)[0], "store.4 shared[r0] ← r0");
    // A device function asks the kernel that runs.
    let listing = super::listing(&prepare(&module, "uses_b"));
    assert_eq!(listing[..2], ["load.4 r0 ← shared[r1+4]", "store.4 shared[r1] ← r0"]);
}

#[test]
fn reserved_shared_memory_lies_behind_the_variables_and_is_not_counted_with_them() {
    let (module, _) = link(&["
        .shared .b8 a[12];
        .extern .shared .align 8 .b8 dynamic[];
        .func asks(.reg .u32 %at) { mov.u32 %at, %reserved_smem_offset_1; ret; }
        .visible .entry k() { .reg .u32 %r; mov.u32 %r, dynamic; st.shared.u32 [%r], %r; st.shared.u32 [a], %r;
            call asks, (%r); ret; }"]);
    let kernel = prepare(&module, "k");
    assert_eq!((kernel.own_shared, kernel.reserved_shared), (12, Some(16)));
    assert_eq!((kernel.shared_bytes, kernel.dynamic_shared), (16 + 1024, 16 + 1024));
}

#[test]
fn functions_behind_pointers_count_for_shared_memory() {
    let (module, _) = link(&["
        .func hidden() { .shared .u32 s[100]; .reg .u32 %r; ld.shared.u32 %r, [s]; st.shared.u32 [s+4], %r; ret; }
        .global .u64 pointer = hidden;
        .visible .entry k() { .reg .u64 %rd; ld.global.u64 %rd, [pointer]; p: .callprototype _ ();
            call %rd, p; ret; }"]);
    let kernel = prepare(&module, "k");
    assert_eq!(kernel.shared_bytes, 400);
    assert!(kernel.calls_indirectly);
    // What it needs is known before it is lowered, which its first call does.
    assert!(
        module.functions[index(&module, "hidden") as usize]
            .lowered
            .get()
            .is_none()
    );
}

#[test]
fn system_calls_need_no_definition() {
    let (module, _) = link(&["
        .extern .func (.param .b64 r) malloc(.param .b64 n);
        .extern .func free(.param .b64 p);
        .visible .entry k() { .reg .b64 %rd; .param .b64 a; .param .b64 b; st.param.b64 [a], 16;
            call.uni (b), malloc, (a); ld.param.b64 %rd, [b]; st.param.b64 [a], %rd; call free, (a); ret; }"]);
    let listing = super::listing(&prepare(&module, "k"));
    assert_eq!(listing[1], "syscall malloc args [0→8 ×8] results [0→8 ×8]");
    assert_eq!(listing[4], "syscall free args [0→0 ×8] results []");
}

#[test]
fn units_of_separate_compilation_link() {
    let read = |name: &str| std::fs::read_to_string(format!("tests/data/nvcc/{name}.ptx")).unwrap();
    let (main, math, state) = (read("rdc_main"), read("rdc_math"), read("rdc_state"));
    let (module, _) = link(&[&main, &math, &state]);
    for function in &module.functions {
        prepare(&module, &function.name);
    }
}

#[test]
fn thousands_of_functions_link_in_no_time() {
    let mut text = String::new();
    for i in 0..20_000 {
        text += &format!(".visible .func (.param .b32 r) f{i}(.param .b32 a) {{ .reg .b32 %r<4>;\n");
        for _ in 0..12 {
            text += "    ld.param.u32 %r1, [a]; add.s32 %r2, %r1, 1;\n";
        }
        text += "    st.param.b32 [r], %r2; ret; }\n";
    }
    text += ".visible .entry k() { ret; }\n";
    assert!(text.len() > 10_000_000);
    let start = std::time::Instant::now();
    let (module, _) = link(&[&text]);
    prepare(&module, "k");
    let taken = start.elapsed();
    assert_eq!(module.functions.len(), 20_001);
    // Half a second on a slow machine under load, a tenth on a quiet one; many times that without the optimiser.
    let most = if cfg!(debug_assertions) { 30_000 } else { 3000 };
    assert!(taken.as_millis() < most, "{taken:?}");
}

/// The message of what is wrong with a module.
fn wrong(text: &str) -> String {
    match try_link(&[text]) {
        Ok(_) => panic!("links: {text}"),
        Err(LinkError::Invalid(found)) => found.list[0].message.clone(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn declarations_that_cannot_be() {
    assert_eq!(wrong(".global .u16 v = v;"), "an address does not fit a .u16");
    assert_eq!(
        wrong(".global .u32 v = 1.5;"),
        "a floating-point literal stands where a .u32 is expected"
    );
    assert_eq!(
        wrong(".global .u32 v[2] = 1;"),
        "an array or vector is initialised by a list in braces"
    );
    assert_eq!(
        wrong(".const .b8 v[70000];"),
        "70000 bytes of constant memory; a unit has 65536"
    );
}

#[test]
fn bodies_may_declare_memory_that_outlives_them() {
    let (module, memory) = link(&["
        .func f() { .const .u32 c = 4; .reg .u32 %r; ld.const.u32 %r, [c]; ld.global.u32 %r, [%r]; ret; }
        .visible .entry k() { .reg .u32 %r; { .global .u32 g[2] = {7, 8}; ld.global.u32 %r, [g+4];
            st.global.u32 [g], %r; } ret; }"]);
    assert_eq!(memory.global(&module, "c"), [4, 0, 0, 0]);
    assert_eq!(memory.global(&module, "g"), [7, 0, 0, 0, 8, 0, 0, 0]);
    let g = module.globals.iter().find(|g| &*g.name == "g").unwrap();
    assert!(!g.visible);
    let listing = super::listing(&prepare(&module, "k"));
    assert_eq!(listing[0], format!("load.4 r0 ← global[{:#x}]", g.address + 4));
}
