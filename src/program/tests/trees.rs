//! What names stand for, from the text to the lowered body: scopes, ranges, special registers, the linked module.

use std::sync::Arc;

use super::{complaints, index, link, prepare};
use crate::program::{Module, check};
use crate::ptx;

/// The lines of a kernel's body that hold a word.
fn lines_with(text: &str, word: &str) -> Vec<String> {
    let (module, _) = link(&[text]);
    let shown = prepare(&module, "k").to_string();
    let lines = shown.lines().map(|line| line.trim().to_owned());
    lines.filter(|line| line.contains(word)).collect()
}

fn check(text: &str) -> Vec<String> {
    let tree = ptx::parse(ptx::Source::new("check.ptx", text)).expect("reads");
    let found = check::all(&tree).list;
    found.into_iter().map(|finding| finding.message).collect()
}

#[test]
fn bodies_of_the_first_versions_are_resolved_when_they_are_checked() {
    let body = |body: &str| {
        check(&format!(
            ".version 1.4\n.target sm_11\n.entry k {{ .reg .u32 a; .reg .pred p; {body} }}"
        ))
    };
    assert_eq!(body("mov.u32 a, %tid.x; add.u32 a, a, 1; @p bra L; L: exit;"), [""; 0]);
    assert_eq!(body("mov.u32 b, 1; exit;"), ["`b` is not declared"]);
    assert_eq!(body("@a exit; exit;"), ["`a` is not a predicate"]);
    assert_eq!(body("bra L; exit;"), ["label `L` is not defined"]);
    assert_eq!(body("{ L: exit; } bra L; exit;"), ["label `L` is not defined"]);
    assert_eq!(
        body("foo.u32 a, a, a; exit;"),
        ["unknown instruction `foo`; did you mean `cos`?"]
    );
    assert_eq!(body("add.u32 a, a; exit;"), ["`add.u32` takes 3 operands, not 2"]);
    assert_eq!(
        body(".reg .u32 b; .reg .u32 b; exit;"),
        ["`b` is declared twice in this scope"]
    );
    // What the later rules refuse, and the first did not.
    assert_eq!(body("add.s32 a, a, %ntid.x; exit;"), [""; 0]);
}

#[test]
fn what_a_body_declares_hides_what_the_module_has() {
    let (module, _) = link(&[".func f { ret; }
        .visible .entry k(.param .u64 p) { .reg .b64 %d, f; .reg .b64 %g<3>; mov.b64 f, 1; mov.b64 %d, f;
            mov.b64 %g1, f; ret; }
        .visible .entry named(.param .u64 p) { .reg .b64 %d; mov.b64 %d, f; ret; }
        .visible .entry calls(.param .u64 p) { call f; ret; }"]);
    let references = |name: &str| {
        let found = module.references(index(&module, name));
        (found.callees.clone(), found.addresses.clone())
    };
    let f = index(&module, "f");
    assert_eq!(references("k"), (vec![], vec![]));
    assert_eq!(references("named"), (vec![], vec![f]));
    assert_eq!(references("calls"), (vec![f], vec![]));
}

#[test]
fn functions_that_variables_of_a_body_point_to_may_be_called() {
    let (module, _) = link(&[".func f { ret; }
        .visible .entry k { .global .u64 table[1] = { f }; ret; }"]);
    let f = index(&module, "f");
    assert!(module.address_taken().contains(&f));
}

#[test]
fn ranges_of_local_variables_lie_one_behind_the_other() {
    let stores = lines_with(
        ".visible .entry k { .local .align 8 .b32 x<3>; .reg .u32 %r; mov.u32 %r, %tid.x;
            st.local.u32 [x0], %r; st.local.u32 [x2+4], %r; ret; }",
        "store.4",
    );
    assert_eq!(stores.len(), 2);
    assert!(stores[0].starts_with("store.4 local[0x0]"), "{stores:?}");
    assert!(stores[1].starts_with("store.4 local[0x14]"), "{stores:?}");
}

#[test]
fn a_range_of_file_scope_that_is_too_long_is_refused() {
    let (module, _) = link(&[".version 1.4\n.target sm_11\n.reg .u32 r<600>;
        .func f { ret; }
        .entry k { mov.u32 r599, 1; exit; }"]);
    assert_eq!(complaints(&module, "k"), ["`r` cannot be shared between functions"]);
}

#[test]
fn a_special_register_may_be_a_guard() {
    let stores = lines_with(
        ".visible .entry k(.param .u64 p) { .reg .b64 %d; ld.param.b64 %d, [p];
            @%is_explicit_cluster st.global.u32 [%d], 1; ret; }",
        "store.4",
    );
    assert!(
        stores.iter().all(|line| line.starts_with("@%p")) && stores.len() == 1,
        "{stores:?}"
    );
}

#[test]
fn a_definition_that_differs_from_its_declaration_is_refused_at_the_call() {
    let (module, _) = link(&[
        ".extern .func f(.param .b32 a);
        .visible .entry k { .param .b32 a; st.param.b32 [a], 1; call f, (a); ret; }",
        ".visible .func f(.param .b32 a, .param .b32 b) { ret; }",
    ]);
    assert_eq!(complaints(&module, "k"), ["the function takes 2 arguments, not 1"]);
}

#[test]
fn a_body_lowers_alike_whether_or_not_it_was_checked_before() {
    let text = format!(
        "{}.global .texref t; .visible .entry k(.param .u64 p) {{
            .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %d; .reg .pred %p; .shared .b32 s[4];
            ld.param.b64 %d, [p]; mov.u32 %r1, %tid.x; mov.b32 %f1, %r1; mov.u32 %r2, s;
            tex.1d.v4.f32.s32 {{%f1, %f2, %f3, %f4}}, [t, {{%r1}}];
            setp.lt.u32 %p, %r1, 4; @%p bra L; vadd.u32.u32.u32 %r3, %r1.b0, %r2.h1;
            {{ .reg .b32 %r<2>; mov.b32 %r1, 7; st.shared.b32 [s+4], %r1; }}
            L: st.global.v2.b32 [%d], {{%r1, %r3}}; ret; }}",
        super::HEAD
    );
    let lowered = |checked: bool| {
        let tree = Arc::new(ptx::parse(ptx::Source::new("once.ptx", text.clone())).expect("reads"));
        if checked {
            assert!(check::all(&tree).list.is_empty());
        }
        let module = Module::link(&[tree], &mut super::Memory::default()).unwrap_or_else(|error| panic!("{error}"));
        prepare(&module, "k").to_string()
    };
    assert_eq!(lowered(true), lowered(false));
}

#[test]
fn a_register_that_is_named_twice_holds_the_last_element() {
    let loads = lines_with(
        ".visible .entry k(.param .u64 p) { .reg .b64 %d; .reg .b32 %r; ld.param.b64 %d, [p];
            ld.global.v2.b32 {%r, %r}, [%d]; st.global.b32 [%d], %r; ret; }",
        "load.4",
    );
    assert!(loads.len() == 1 && loads[0].starts_with("load.4 _, %r"), "{loads:?}");
}
