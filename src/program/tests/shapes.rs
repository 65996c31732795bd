//! Small bodies and the code that they become.

use super::{complaints, index, kernel, link, listing, prepare};
use crate::isa::lanes::Width;
use crate::program::facts::{Facts, Shape};
use crate::program::{End, Initial, Op, Special};

fn shape(body: &str) -> Vec<String> {
    listing(&kernel(body))
}

#[test]
fn parameters_immediates_and_specials_cost_no_code() {
    let function = kernel(
        ".reg .u32 %r<5>; .reg .u64 %rd<4>;
        ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n]; cvta.to.global.u64 %rd2, %rd1;
        mov.u32 %r2, %tid.x; add.s32 %r3, %r2, 5; add.s32 %r4, %r3, %r1;
        st.global.u32 [%rd2], %r4; ret;",
    );
    assert_eq!(
        listing(&function),
        [
            "add.s32 r0 ← r1, r2",
            "add.s32 r3 ← r0, r4",
            "store.4 global[d0] ← r3",
            "exit"
        ]
    );
    let initials: Vec<_> = function.body.registers.iter().filter_map(|info| info.initial).collect();
    assert!(initials.contains(&Initial::Constant(5)));
    assert!(initials.contains(&Initial::Special(Special::Tid(0))));
}

#[test]
fn launch_constants_are_computed_once() {
    let function = kernel(
        ".reg .u32 %r<5>; .reg .u64 %rd<2>; .reg .pred %p;
        ld.param.u64 %rd1, [p]; mov.u32 %r1, %ntid.x; mov.u32 %r2, %nctaid.x; mul.lo.s32 %r3, %r1, %r2;
        mov.u32 %r4, %tid.x; setp.lt.u32 %p, %r4, 3; @%p mul.lo.s32 %r3, %r1, 2; st.global.u32 [%rd1], %r3; ret;",
    );
    // %r3 is written twice: it stays.
    assert!(function.body.prologue.is_empty());
    let function = kernel(
        ".reg .u32 %r<5>; .reg .u64 %rd<2>;
        ld.param.u64 %rd1, [p]; mov.u32 %r1, %ntid.x; mov.u32 %r2, %nctaid.x; mul.lo.s32 %r3, %r1, %r2;
        add.s32 %r4, %r3, 1; st.global.u32 [%rd1], %r4; ret;",
    );
    assert_eq!(function.body.prologue.len(), 2);
    assert_eq!(listing(&function).len(), 2);
}

#[test]
fn an_or_without_common_bits_is_a_sum() {
    let code = |number: &str| {
        shape(&format!(
            ".reg .u32 %r<9>; .reg .u64 %rd; ld.param.u64 %rd, [p]; ld.param.u32 %r8, [n]; mov.u32 %r1, %tid.x;
            {number}; st.global.u32 [%rd], %r3; ret;"
        ))
    };
    let has = |code: Vec<String>, opcode: &str| code.iter().any(|line| line.starts_with(opcode));
    // 4 · tid, and what is less than 4; both ways round.
    for sum in [
        "shl.b32 %r2, %r1, 2; or.b32 %r3, %r2, 3",
        "shl.b32 %r2, %r8, 5; and.b32 %r4, %r1, 31; or.b32 %r3, %r4, %r2",
        "and.b32 %r2, %r1, 0x3c0; shr.u32 %r4, %r1, 4; or.b32 %r3, %r2, %r4",
    ] {
        assert!(has(code(sum), "add.u32 r"), "{sum}: {:?}", code(sum));
        assert!(!has(code(sum), "or.b32"), "{sum}");
    }
    // Bits that may be in both.
    for or in [
        "shl.b32 %r2, %r1, 2; or.b32 %r3, %r2, 4",
        "shl.b32 %r2, %r8, 4; and.b32 %r4, %r1, 31; or.b32 %r3, %r4, %r2",
        "or.b32 %r3, %r1, %r8",
        "shl.b32 %r2, %r1, 2; shr.s32 %r4, %r8, 30; or.b32 %r3, %r2, %r4",
    ] {
        assert!(has(code(or), "or.b32"), "{or}: {:?}", code(or));
    }
}

#[test]
fn results_that_nobody_reads_are_not_computed() {
    assert_eq!(
        shape(".reg .u32 %r<4>; mov.u32 %r1, %tid.x; mul.lo.u32 %r2, %r1, %r1; add.u32 %r3, %r2, 1; ret;"),
        ["exit"]
    );
    // A load may fault: it stays.
    assert_eq!(
        shape(".reg .u32 %r; .reg .u64 %rd; ld.param.u64 %rd, [p]; ld.global.u32 %r, [%rd]; ret;").len(),
        2
    );
}

#[test]
fn copies_of_registers_written_twice_stay() {
    let lines = shape(
        ".reg .u32 %r<5>; .reg .u64 %rd; .reg .pred %p;
        ld.param.u64 %rd, [p]; mov.u32 %r1, %tid.x; mov.u32 %r2, 0;
        L: mov.u32 %r3, %r2; add.u32 %r2, %r2, %r1; setp.lt.u32 %p, %r2, 100; @%p bra L;
        st.global.u32 [%rd], %r3; ret;",
    );
    assert_eq!(lines.iter().filter(|l| l.starts_with("mov.")).count(), 2, "{lines:#?}");
}

#[test]
fn a_branch_and_its_join() {
    let lines = shape(
        ".reg .u32 %r<4>; .reg .u64 %rd; .reg .pred %p;
        ld.param.u64 %rd, [p]; mov.u32 %r1, %tid.x; setp.eq.u32 %p, %r1, 0; @%p bra THEN;
        st.global.u32 [%rd], 1; bra JOIN;
        THEN: st.global.u32 [%rd+4], 2;
        JOIN: st.global.u32 [%rd+8], 3; ret;",
    );
    let shown: Vec<&str> = lines.iter().map(|l| l.split(' ').next().unwrap()).collect();
    assert_eq!(
        shown,
        ["setp.eq.u32", "@p0", "store.4", "jump", "store.4", "store.4", "exit"]
    );
    assert!(lines[1].ends_with("jump b2") && lines[3].ends_with("jump b3"));
}

#[test]
fn what_leaves_a_loop_comes_after_it() {
    // The text has the exit between the header and the latch; the code has it last.
    let lines = shape(
        ".reg .u32 %r<4>; .reg .u64 %rd; .reg .pred %p;
        ld.param.u64 %rd, [p]; mov.u32 %r1, %tid.x; mov.u32 %r2, 0;
        HEAD: setp.ge.u32 %p, %r2, %r1; @!%p bra BODY;
        st.global.u32 [%rd], 7; ret;
        BODY: add.u32 %r2, %r2, 1; bra HEAD;",
    );
    let store = lines.iter().position(|l| l.starts_with("store")).unwrap();
    let add = lines.iter().position(|l| l.starts_with("add")).unwrap();
    assert!(add < store, "{lines:#?}");
    assert!(lines.last().unwrap() == "exit");
}

#[test]
fn several_jumps_back_meet_at_one_latch() {
    let function = kernel(
        ".reg .u32 %r<4>; .reg .u64 %rd; .reg .pred %p<3>;
        ld.param.u64 %rd, [p]; mov.u32 %r1, %tid.x; mov.u32 %r2, 0;
        HEAD: add.u32 %r2, %r2, %r1; setp.lt.u32 %p1, %r2, 10; @%p1 bra HEAD;
        st.global.u32 [%rd], %r2; setp.lt.u32 %p2, %r2, 100; @%p2 bra HEAD; ret;",
    );
    let mut back = 0;
    for (number, block) in function.body.blocks.iter().enumerate() {
        block.end.successors(|to| back += usize::from(to as usize <= number));
    }
    assert_eq!(back, 1, "{function}");
}

#[test]
fn irreducible_flow_is_laid_out_too() {
    let function = kernel(
        ".reg .u32 %r<4>; .reg .pred %p;
        mov.u32 %r1, %tid.x; setp.eq.u32 %p, %r1, 0; @%p bra B;
        A: add.u32 %r1, %r1, 1; setp.lt.u32 %p, %r1, 10; @%p bra B; ret;
        B: add.u32 %r1, %r1, 2; setp.lt.u32 %p, %r1, 20; @%p bra A; ret;",
    );
    assert!(listing(&function).len() >= 9);
}

#[test]
fn guards_mask_everything() {
    let lines = shape(
        ".reg .u32 %r<4>; .reg .u64 %rd; .reg .pred %p;
        ld.param.u64 %rd, [p]; mov.u32 %r1, %tid.x; setp.eq.u32 %p, %r1, 0;
        @%p add.u32 %r1, %r1, 1; @!%p ld.global.u32 %r1, [%rd]; @%p st.global.u32 [%rd], %r1; @!%p ret;
        @%p bar.sync 0; st.global.u32 [%rd+4], %r1; ret;",
    );
    let guards: Vec<&str> = lines
        .iter()
        .map(|l| l.split(' ').next().unwrap())
        .filter(|w| w.starts_with('@'))
        .collect();
    assert_eq!(guards, ["@p0", "@!p0", "@p0", "@!p0", "@p0"]);
}

#[test]
fn vectors_pack_and_unpack() {
    let lines = shape(
        ".reg .b16 %rs<5>; .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .v2 .u32 %v; .reg .pred %p;
        ld.param.u64 %rd1, [p]; ld.global.v2.u32 %v, [%rd1]; mov.b64 %rd2, %v; mov.b64 {%r1, _}, %rd2;
        mov.b32 {%rs1, %rs2}, %r1; mov.b32 %r2, {%rs2, %rs1}; st.global.v2.u32 [%rd1], {%r2, %v.y}; ret;",
    );
    let shown: Vec<&str> = lines.iter().map(|l| l.split(' ').next().unwrap()).collect();
    assert_eq!(
        shown,
        [
            "load.4",
            "pack.b32x2",
            "extract.b32.b64.0",
            "extract.b16.b32.0",
            "extract.b16.b32.1",
            "pack.b16x2",
            "store.4",
            "exit"
        ]
    );
    assert_eq!(lines[0].matches(", ").count(), 1);
}

#[test]
fn loads_extend_and_refuse_to_shrink() {
    let function = kernel(
        ".reg .b32 %r; .reg .b64 %rd<3>; ld.param.u64 %rd1, [p]; ld.global.s8 %rd2, [%rd1]; ld.global.u16 %r, [%rd1+2];
        st.global.u8 [%rd1], %r; st.global.u64 [%rd1+8], %rd2; ret;",
    );
    assert!(matches!(
        &function.body.blocks[0].insts[0].op,
        Op::Load { element, dst, .. } if element.bytes == 1 && element.signed && dst[0].unwrap().width == Width::B64
    ));
    let (module, _) = link(&[
        ".visible .entry k(.param .u64 p) { .reg .b32 %r; .reg .b64 %rd; ld.param.u64 %rd, [p];
            ld.global.u64 %r, [%rd]; add.u64 %r, %r, 1; mov.u32 %rd, 1; add.f32 %q, %r, %r; ret; }",
    ]);
    assert_eq!(
        complaints(&module, "k"),
        [
            "`%r` is declared `.b32`; a `.u64`, or something wider, is expected",
            "`%r` is declared `.b32`; a `.u64` is expected",
            "`%rd` is declared `.b64`; a `.u32` is expected",
            "`%q` is not declared",
        ]
    );
}

#[test]
fn a_device_functions_frame() {
    let (module, _) = link(&["
        .func (.param .b32 r) f(.param .b64 a, .param .align 4 .b8 b[6]) {
            .local .align 16 .b8 l[20]; .reg .b64 %rd<3>; .reg .b32 %r;
            ld.param.u64 %rd1, [a]; ld.param.u16 %r, [b+4]; mov.u64 %rd2, l; st.local.u32 [l+4], %r;
            st.local.u64 [%rd2+8], %rd1; st.param.b32 [r], %r; ret; }
        .visible .entry k(.param .u64 p) { .reg .b64 %rd; .reg .b32 %r; ld.param.u64 %rd, [p];
            { .param .b64 x; st.param.b64 [x], %rd; .param .align 4 .b8 y[6]; st.param.b32 [y], 5;
              .param .b32 z; call.uni (z), f, (x, y); ld.param.b32 %r, [z]; }
            st.global.u32 [%rd], %r; ret; }"]);
    let f = prepare(&module, "f");
    // r at 0, a at 8, b at 16 to 22, l from 32.
    assert_eq!((f.return_bytes, f.param_bytes, f.local, f.local_align), (4, 18, 64, 16));
    let lines = listing(&f);
    assert_eq!(lines[0].split(" ← ").nth(1), Some("local[0x8]"));
    assert_eq!(lines[1].split(" ← ").nth(1), Some("local[0x14]"));
    // Through the register that holds l's address, too, the frame's bytes are named directly.
    assert!(lines[2].starts_with("store.4 local[0x24]"));
    assert!(lines[3].starts_with("store.8 local[0x28]"));
    let k = prepare(&module, "k");
    let call = listing(&k).into_iter().find(|l| l.starts_with("call")).unwrap();
    // x at 0, y at 8, z at 16 of the caller.
    assert_eq!(call, "call #0 args [0→8 ×8, 8→16 ×6] results [0→16 ×4]");
    assert_eq!(k.callees, [index(&module, "f")]);
}

#[test]
fn registers_as_arguments_pass_through_the_frame() {
    let (module, _) = link(&["
        .func (.reg .u32 r) f(.reg .u32 a, .reg .u32 b) { add.u32 r, a, b; ret; }
        .visible .entry k(.param .u64 p) { .reg .b64 %rd; .reg .b32 %r<3>; ld.param.u64 %rd, [p];
            mov.u32 %r1, %tid.x; call (%r2), f, (%r1, 7); st.global.u32 [%rd], %r2; ret; }"]);
    assert_eq!(
        listing(&prepare(&module, "f"))
            .iter()
            .map(|l| l.split(' ').next().unwrap())
            .collect::<Vec<_>>(),
        ["load.4", "load.4", "add.u32", "store.4", "return"]
    );
    let lines = listing(&prepare(&module, "k"));
    let shown: Vec<&str> = lines.iter().map(|l| l.split(' ').next().unwrap()).collect();
    assert_eq!(shown, ["store.4", "store.4", "call", "load.4", "store.4", "exit"]);
}

/// The operations of `k` where calls may become the text that they call, and whom `k` still calls.
fn inlined(text: &str) -> (Vec<String>, Vec<u32>) {
    let (mut module, _) = link(&[text]);
    module.linked.as_written = false;
    let function = prepare(&module, "k");
    let names = listing(&function);
    let names = names.iter().map(|l| l.split(' ').next().unwrap().to_owned());
    (names.collect(), function.callees.clone())
}

#[test]
fn calls_become_what_they_call() {
    let (names, callees) = inlined(
        ".func (.reg .u32 r) twice(.reg .u32 a) { add.u32 r, a, a; ret; }
        .func (.reg .u32 r) f(.reg .u32 a, .reg .u32 b) { .reg .u32 t; call (t), twice, (a); sub.u32 r, t, b; ret; }
        .visible .entry k(.param .u64 p) { .reg .b64 %rd; .reg .b32 %r<3>; ld.param.u64 %rd, [p];
            mov.u32 %r1, %tid.x; call (%r2), f, (%r1, 7); st.global.u32 [%rd], %r2; ret; }",
    );
    // Arguments and results are registers, and nothing of frames is left.
    assert_eq!(names, ["add.u32", "sub.u32", "store.4", "exit"]);
    assert!(callees.is_empty());
}

#[test]
fn what_calls_itself_or_the_system_stays_a_call() {
    let recursive =
        ".func f(.reg .u32 a) { .reg .pred q; setp.eq.u32 q, a, 0; @q ret; sub.u32 a, a, 1; call g, (a); ret; }
        .func g(.reg .u32 a) { call f, (a); ret; }
        .visible .entry k(.param .u64 p) { .reg .b32 %r1; mov.u32 %r1, %tid.x; call f, (%r1); ret; }";
    let recursive = format!(".func g(.reg .u32 a); {recursive}");
    let (names, callees) = inlined(&recursive);
    assert!(names.iter().any(|name| name == "call"), "{names:?}");
    assert_eq!(callees.len(), 1);
    let (names, callees) = inlined(
        ".extern .func free(.param .b64 x);
        .func f(.reg .u64 a) { call free, (a); ret; }
        .visible .entry k(.param .u64 p) { .reg .b64 %rd; ld.param.u64 %rd, [p]; call f, (%rd); ret; }",
    );
    assert!(names.iter().any(|name| name == "call"), "{names:?}");
    assert_eq!(callees.len(), 1);
}

#[test]
fn products_meet_no_sums_of_their_callers() {
    let (names, _) = inlined(
        ".func (.reg .f32 r) f(.reg .f32 a) { mul.f32 r, a, a; ret; }
        .visible .entry k(.param .u64 p) { .reg .b64 %rd; .reg .f32 %f<3>; ld.param.u64 %rd, [p]; ld.global.f32 %f1, [%rd];
            call (%f2), f, (%f1); add.f32 %f2, %f2, %f1; st.global.f32 [%rd], %f2; ret; }",
    );
    assert_eq!(names, ["load.4", "mul.f32", "add.f32", "store.4", "exit"]);
}

#[test]
fn names_follow_scopes() {
    let lines = shape(
        ".reg .u32 %r<3>; .reg .u64 %rd; ld.param.u64 %rd, [p]; mov.u32 %r1, %tid.x;
        { .reg .u32 %r1; mov.u32 %r1, 5; st.global.u32 [%rd], %r1; bra L; L: }
        { bra L; L: st.global.u32 [%rd+4], %r1; }
        ret;",
    );
    assert_eq!(lines.len(), 3);
    assert_ne!(lines[0].rsplit(' ').next(), lines[1].rsplit(' ').next());
    let (module, _) = link(&[".visible .entry k() { { L: } bra L; }"]);
    assert_eq!(complaints(&module, "k"), ["label `L` is not defined"]);
}

#[test]
fn indexed_branches_know_their_targets() {
    let function = kernel(
        ".reg .u32 %r; .reg .u64 %rd; ld.param.u64 %rd, [p]; mov.u32 %r, %tid.x;
        t: .branchtargets A, B, A; brx.idx %r, t;
        A: st.global.u32 [%rd], 1; ret; B: st.global.u32 [%rd], 2; ret;",
    );
    let End::Indexed { targets, .. } = &function.body.blocks[0].end else {
        panic!("{function}");
    };
    assert_eq!(targets[..], [1, 2, 1]);
}

#[test]
fn carries_chain() {
    let lines = shape(
        ".reg .u32 %r<6>; .reg .u64 %rd; ld.param.u64 %rd, [p]; mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y;
        add.cc.u32 %r3, %r1, %r2; addc.u32 %r4, %r1, 0; st.global.v2.u32 [%rd], {%r3, %r4}; ret;",
    );
    assert!(
        lines[0].starts_with("add.cc.u32 r") && lines[0].contains(", p0 ←"),
        "{lines:#?}"
    );
    assert!(lines[1].ends_with(", p0"), "{lines:#?}");
}

#[test]
fn line_numbers_follow_the_code() {
    let function = kernel(
        ".reg .u32 %r; .reg .u64 %rd; .loc 1 10 1\n ld.param.u64 %rd, [p]; .loc 1 11 3\n st.global.u32 [%rd], 1;
        st.global.u32 [%rd+4], 1; .loc 2 5 1\n ret;",
    );
    let lines: Vec<_> = function.body.insts().map(|inst| inst.line).collect();
    assert_eq!(lines, [Some((1, 11)), Some((1, 11)), Some((2, 5))]);
}

/// What is wrong with a kernel's body.
fn wrong(body: &str) -> Vec<String> {
    let text = format!(
        ".func (.param .u32 r) f(.param .u64 a) {{ ret; }}
        .visible .entry k(.param .u64 p) {{ .reg .u32 %r<3>; .reg .f32 %f<3>; .reg .b32 %b<3>; .reg .pred %p<3>;
        {body} }}"
    );
    let (module, _) = link(&[&text]);
    complaints(&module, "k")
}

#[test]
fn kinds_of_operands_are_checked() {
    assert_eq!(
        wrong("add.f32 %f0, %f1, %r0;"),
        ["`%r0` is declared `.u32`; a `.f32` is expected"]
    );
    assert_eq!(
        wrong("add.s32 %f0, %r1, %b0;"),
        ["`%f0` is declared `.f32`; a `.s32` is expected"]
    );
    assert_eq!(
        wrong("mov.u32 %r0, %f0;"),
        ["`%f0` is declared `.f32`; a `.u32` is expected"]
    );
    assert_eq!(
        wrong("add.u32 %r0, %tid.x, 1;"),
        ["the special register `%tid` is an operand of `mov` and `cvt` alone; mov it to a register first"]
    );
    assert_eq!(
        wrong("add.u32 _, %r0, 1;"),
        ["the result of `add` cannot be thrown away; a register is expected"]
    );
    assert_eq!(
        wrong("add.f32 %f0, %f1, 1;"),
        ["an integer stands where a `.f32` is expected; did you mean `1.0`?"]
    );
    assert_eq!(
        wrong("add.u32 %r0, %r1;"),
        ["`add.u32` takes 3 operands, not 2; expected `d, a, b`"]
    );
    assert_eq!(
        wrong("@%r0 bra L; L:"),
        ["`%r0` is not a predicate; a `.pred` register is expected"]
    );
    assert_eq!(wrong(".reg .u32 %r1;"), ["`%r1` is declared twice in this scope"]);
    assert_eq!(wrong("st.param.u32 [p], %r0;"), ["the parameter `p` cannot be written"]);
    assert_eq!(wrong("call f, (%r0);"), ["0 results; `f` has 1 result"]);
    assert_eq!(
        wrong("{ .param .u32 x; call (%r0), f, (x); }"),
        ["`x` is a `.u32`; `f` takes a `.u64` as `a`"]
    );
    assert_eq!(wrong("ld.param.u64 %r0, [p+8];").len(), 1);
    assert_eq!(wrong("bar.sync 16;"), ["16 is out of range; expected 0 to 15"]);
    assert_eq!(
        wrong("add.u32 %r0, %r1, 1.5;"),
        ["a floating-point constant stands where a `.u32` is expected"]
    );
    assert_eq!(wrong("mov.u16 %b0, %laneid;").len(), 1);
    // Bits go with everything.
    kernel(".reg .b32 %b<3>; .reg .f32 %f; add.f32 %f, %b0, %b1; add.s32 %b2, %b0, %b1; shl.b32 %b1, %b2, 3; ret;");
}

#[test]
fn video_operands_are_checked() {
    // A third operand without use: the assembler takes it.
    kernel(".reg .u32 %r<3>; vadd.u32.u32.u32 %r0, %r1, %r2, %r1; ret;");
    assert_eq!(
        wrong("vadd.u32.u32.u32 %r0, %r1;"),
        ["`vadd.u32.u32.u32` takes 3 operands here, not 2"]
    );
    assert_eq!(
        wrong("vadd.u32.u32.u32.max %r0, %r1, %r2;"),
        ["`vadd.u32.u32.u32.max` takes 4 operands here, not 3"]
    );
    assert_eq!(
        wrong("vadd.u32.u32.u32.max %r0.b1, %r1, %r2, %r1;"),
        ["no selector is expected on this operand"]
    );
    assert_eq!(
        wrong("vsub.u32.u32.u32 %r0, %r1.h2, %r2;"),
        [".b0, .b1, .b2, .b3, .h0 or .h1 is expected on this operand"]
    );
    assert_eq!(
        wrong("vadd2.u32.u32.u32 %r0, %r1.b1, %r2, %r1;"),
        [".h and two digits from 0 to 3 is expected on this operand"]
    );
    assert_eq!(
        wrong("vadd4.u32.u32.u32 %r0, %r1, %r2.b8000, %r1;"),
        [".b and four digits from 0 to 7 is expected on this operand"]
    );
    assert_eq!(
        wrong("vset4.u32.u32.lt %r0.b01, %r1, %r2, %r1;"),
        [".b and some of the digits 3, 2, 1, 0 in this order is expected on this operand"]
    );
    assert_eq!(
        wrong("vadd.u32.u32.u32 %r0, -%r1, %r2;"),
        ["a sign is not expected here"]
    );
    assert_eq!(
        wrong("vmad.u32.u32.u32 %r0, -%r1, %r2, -%r1;"),
        ["either the product or the last operand is negated, not both"]
    );
    assert_eq!(wrong("vmad.u32.u32.u32.po %r0, %r1, %r2, -%r1;").len(), 1);
    assert_eq!(
        wrong("vmin.u32.u32.u32 %r0, %f1, %r2;"),
        ["`%f1` is declared `.f32`; a `.u32` is expected"]
    );
    assert_eq!(
        wrong("vmin.u32.u32.u32 _, %r1, %r2;"),
        ["the result of `vmin` cannot be thrown away"]
    );
}

#[test]
fn cache_policies_are_checked() {
    let wrong = |body: &str| wrong(&format!(".reg .b64 %d, %a; {body}"));
    assert_eq!(
        wrong("createpolicy.fractional.L2::evict_first.b64 %d, 1.5;"),
        ["a fraction lies above 0 and is at most 1"]
    );
    assert_eq!(
        wrong("createpolicy.range.L2::evict_first.b64 %d, %a, %r1, %r2;"),
        ["`%a` is not an address; an address in brackets is expected"]
    );
    assert_eq!(
        wrong("createpolicy.fractional.L2::evict_first.b64 %r0;"),
        ["`%r0` is declared `.u32`; a `.u64` is expected"]
    );
}

#[test]
fn four_numbers_and_random_bits_are_checked() {
    let wrong = |body: &str| wrong(&format!(".reg .b16 %h; .reg .b32 %b; {body}"));
    assert_eq!(
        wrong("cvt.rs.satfinite.e4m3x4.f32 %b, {%f0, %f1, %f2, %r1}, %r2;"),
        ["`%r1` is declared .u32; a .f32 is expected here"]
    );
    assert_eq!(
        wrong("cvt.rs.satfinite.e4m3x4.f32 %h, {%f0, %f1, %f2, %f1}, %r2;"),
        ["`%h` is declared `.b16`; a `.b32` is expected"]
    );
    assert_eq!(
        wrong("cvt.rs.satfinite.e2m1x4.f32 %h, {%f0, %f1, %f2}, %r2;"),
        ["four numbers in braces are expected here"]
    );
}

#[test]
fn several_mistakes_are_reported_at_once() {
    assert_eq!(wrong("foo.u32 %r0; add.u32 %x, %r0, 1; bra NOWHERE;").len(), 3);
}

#[test]
fn what_is_left_of_a_compilers_phi_costs_nothing() {
    // The value of the last round and the next one's are one register, as are i and its copy.
    let function = kernel(
        ".reg .u32 %r<8>; .reg .f32 %f<4>; .reg .u64 %rd; .reg .pred %p;
        ld.param.u64 %rd, [p]; ld.param.u32 %r1, [n]; mov.u32 %r5, 0; mov.f32 %f3, 0f00000000;
        L: mov.u32 %r2, %r5; mov.f32 %f1, %f3; ld.global.f32 %f2, [%rd]; add.f32 %f3, %f1, %f2;
        add.u32 %r5, %r2, 1; setp.lt.u32 %p, %r5, %r1; @%p bra L;
        st.global.f32 [%rd], %f3; ret;",
    );
    let lines = in_the_loop(&function);
    let shown: Vec<&str> = lines.iter().map(|l| l.split(' ').next().unwrap()).collect();
    assert_eq!(shown, ["load.4", "add.f32", "add.u32", "setp.lt.u32"]);
}

#[test]
fn swapped_values_stay_apart() {
    // a, b = b, a each round: one temporary at least.
    let function = kernel(
        ".reg .u32 %r<8>; .reg .u64 %rd; .reg .pred %p;
        ld.param.u64 %rd, [p]; mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, 0;
        L: mov.u32 %r4, %r1; mov.u32 %r1, %r2; mov.u32 %r2, %r4; add.u32 %r3, %r3, 1;
        setp.lt.u32 %p, %r3, %r1; @%p bra L;
        st.global.v2.u32 [%rd], {%r1, %r2}; ret;",
    );
    let lines = in_the_loop(&function);
    let moves = lines.iter().filter(|l| l.starts_with("mov.")).count();
    assert_eq!(moves, 3, "{lines:#?}");
}

/// What is done in each round of the only loop.
fn in_the_loop(function: &crate::program::Function) -> Vec<String> {
    let blocks = &function.body.blocks;
    let mut found = None;
    for (number, block) in blocks.iter().enumerate() {
        block.end.successors(|to| {
            if to as usize <= number {
                assert!(found.is_none(), "one loop: {function}");
                found = Some(to as usize..=number);
            }
        });
    }
    let range = found.expect("a loop");
    let insts = blocks[range].iter().flat_map(|block| &block.insts);
    insts.map(ToString::to_string).collect()
}

/// What is known of the value that the only store of a kernel stores.
fn stored(body: &str) -> Facts {
    let function = kernel(body);
    let value = function.body.insts().find_map(|inst| match &inst.op {
        Op::Store { src, .. } => Some(src[0].number),
        _ => None,
    });
    function.body.facts[value.expect("a store") as usize]
}

#[test]
fn values_are_known_by_shape_alignment_and_range() {
    let head = ".reg .u32 %r<9>; .reg .u64 %rd<9>; .reg .pred %p<3>; ld.param.u64 %rd1, [p]; ld.param.u32 %r8, [n];";
    let of = |body: &str, width: u32| stored(&format!("{head} {body} st.global.u{width} [%rd1], %r7; ret;"));
    let follows = |stride| Shape::Affine { stride };
    // A row of threads: base and step; the step is a multiple of 12.
    let facts = of("mov.u32 %r1, %tid.x; mad.lo.u32 %r7, %r1, 12, %r8;", 32);
    assert_eq!(facts.shape, follows(12));
    // %tid.x is below 1,024.
    let facts = of("mov.u32 %r1, %tid.x; shl.b32 %r7, %r1, 4;", 32);
    assert_eq!(
        (facts.shape, facts.align, facts.range),
        (follows(16), 4, Some((0, 1023 << 4)))
    );
    assert_eq!(
        of("mov.u32 %r1, %ctaid.x; add.u32 %r7, %r1, %r8;", 32).shape,
        Shape::Uniform
    );
    assert_eq!(
        of("mov.u32 %r1, %laneid; add.u32 %r7, %r1, 1;", 32).shape,
        Shape::Varying
    );
    assert_eq!(of("mov.u32 %r1, %tid.y; add.u32 %r7, %r1, 1;", 32).shape, follows(0));
    assert_eq!(of("ld.global.u32 %r7, [%rd1+8];", 32).shape, Shape::Varying);
    // A counter of all threads together.
    let counted = "mov.u32 %r7, 0; L: add.u32 %r7, %r7, 3; setp.lt.u32 %p1, %r7, %r8; @%p1 bra L;";
    assert_eq!(of(counted, 32).shape, Shape::Uniform);
    // One of which some threads leave sooner.
    let left = "mov.u32 %r1, %tid.x; mov.u32 %r7, 0; L: add.u32 %r7, %r7, 3; setp.lt.u32 %p1, %r7, %r1; @%p1 bra L;";
    assert_eq!(of(left, 32).shape, Shape::Varying);
    // Written on both sides of a branch on which threads differ, and on which they do not.
    let sides = |on: &str| {
        format!("mov.u32 %r1, {on}; setp.eq.u32 %p1, %r1, 0; @%p1 bra T; mov.u32 %r7, 5; bra J; T: mov.u32 %r7, 6; J:")
    };
    assert_eq!(of(&sides("%tid.x"), 32).shape, Shape::Varying);
    assert_eq!(of(&sides("%ctaid.x"), 32).shape, Shape::Uniform);
    // Threads that have left the kernel disturb nobody.
    let bounded = format!("mov.u32 %r1, %tid.x; setp.ge.u32 %p2, %r1, %r8; @%p2 bra OUT; {counted}");
    let facts = stored(&format!("{head} {bounded} st.global.u32 [%rd1], %r7; OUT: ret;"));
    assert_eq!(facts.shape, Shape::Varying, "the sides meet at OUT");
    let bounded = format!("mov.u32 %r1, %tid.x; setp.ge.u32 %p2, %r1, %r8; @%p2 bra OUT; {counted}");
    let facts = stored(&format!("{head} {bounded} st.global.u32 [%rd1], %r7; ret; OUT: ret;"));
    assert_eq!(facts.shape, Shape::Uniform);
}

/// How many loops of a kernel wait for nobody, of those that look at what others change. `%v` is read anew by others, `%i` counts.
fn bounded(turn: &str) -> usize {
    let function = kernel(&format!(
        ".shared .u32 s; .reg .u32 %r<9>; .reg .u32 %i; .reg .u32 %v; .reg .u32 %n; .reg .u64 %rd; .reg .pred %p<4>;
        ld.param.u64 %rd, [p]; ld.param.u32 %n, [n]; mov.u32 %i, 0; mov.u32 %v, 0;
        again: {turn} st.global.u32 [%rd], %v; ret;",
    ));
    function.body.bounded.len()
}

#[test]
fn loops_that_count_wait_for_nobody() {
    let looks = "ld.volatile.global.u32 %v, [%rd];";
    let counts = "add.u32 %i, %i, 256; setp.lt.u32 %p1, %i, %n; @%p1 bra again;";
    assert_eq!(bounded(&format!("{looks} {counts}")), 1);
    // What stands under a condition of its own does not matter if it decides nothing.
    let within = format!("{looks} setp.lt.u32 %p2, %v, 9; @%p2 bra over; st.global.u32 [%rd+4], %v; over: {counts}");
    assert_eq!(bounded(&within), 1);
    // A list that nobody changes meanwhile may end before its time.
    let listed = "ld.global.u32 %r1, [%rd+8]; setp.lt.u32 %p2, %r1, %n; @%p2 bra over;";
    assert_eq!(bounded(&format!("{listed} {looks} {counts} over:")), 1);
    // Nobody asks for loops that look at nothing.
    assert_eq!(bounded(&format!("ld.global.u32 %v, [%rd]; {counts}")), 0);
}

#[test]
fn loops_that_others_end_may_wait() {
    let looks = "ld.volatile.global.u32 %v, [%rd];";
    let counts = "add.u32 %i, %i, 256; setp.lt.u32 %p1, %i, %n; @%p1 bra again;";
    for turn in [
        // The flag itself, or what is computed from it.
        format!("{looks} setp.ne.u32 %p1, %v, 0; @%p1 bra again;"),
        format!("{looks} add.u32 %r1, %v, %i; shr.u32 %r2, %r1, 3; setp.ne.u32 %p1, %r2, 0; @%p1 bra again;"),
        "atom.global.cas.b32 %v, [%rd], 0, 1; setp.ne.u32 %p1, %v, 0; @%p1 bra again;".to_owned(),
        // A second way out, by a jump or by the end of a thread.
        format!("{looks} setp.ne.u32 %p2, %v, 0; @%p2 bra over; {counts} over:"),
        format!("{looks} setp.ne.u32 %p2, %v, 0; @%p2 exit; {counts}"),
        // A way out by a list that stands where others say, or by nothing else than a list.
        format!(
            "{looks} cvt.u64.u32 %rd, %v; ld.global.u32 %r1, [%rd]; setp.lt.u32 %p2, %r1, %n; @%p2 bra over; {counts} over:"
        ),
        format!("{looks} ld.global.u32 %r1, [%rd+8]; setp.ne.u32 %p1, %r1, 0; @%p1 bra again;"),
        // Counts only when somebody lets it.
        format!("{looks} setp.ne.u32 %p2, %v, 0; @%p2 add.u32 %i, %i, 1; setp.lt.u32 %p1, %i, %n; @%p1 bra again;"),
        format!(
            "{looks} setp.ne.u32 %p2, %v, 0; @%p2 bra over; add.u32 %i, %i, 1; over: setp.lt.u32 %p1, %i, %n; @%p1 bra again;"
        ),
        // By memory, or by other lanes.
        format!("{looks} st.shared.u32 [s], %v; ld.shared.u32 %r1, [s]; setp.ne.u32 %p1, %r1, 0; @%p1 bra again;"),
        format!("{looks} shfl.sync.idx.b32 %r1, %v, 0, 31, -1; setp.ne.u32 %p1, %r1, 0; @%p1 bra again;"),
        // For ever.
        format!("{looks} bra again;"),
    ] {
        assert_eq!(bounded(&turn), 0, "{turn}");
    }
}

#[test]
fn a_loop_within_one_that_waits_counts_for_itself() {
    let turn = "mov.u32 %i, 0; inner: ld.volatile.global.u32 %v, [%rd]; add.u32 %i, %i, 1; setp.lt.u32 %p2, %i, %n; @%p2 bra inner;
        setp.ne.u32 %p1, %v, 0; @%p1 bra again;";
    assert_eq!(bounded(turn), 1);
}
