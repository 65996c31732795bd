//! What chains of calls take of a lane's local memory, for call graphs of all shapes.

use std::fmt::Write;
use std::time::{Duration, Instant};

use super::{index, link, prepare};
use crate::program::Stack;

/// The stack of a function of this text, when it has been prepared.
fn stack(text: &str, name: &str) -> Stack {
    let (module, _) = link(&[text]);
    prepare(&module, name);
    module.stack(index(&module, name))
}

fn frames(text: &str, name: &str) -> Option<u64> {
    stack(text, name).frames
}

/// A function with a frame of `bytes`, a multiple of 16.
fn function(name: &str, bytes: u32, calls: &[&str]) -> String {
    let mut text = format!(".func {name}() {{ .reg .b32 %r; ");
    if bytes > 0 {
        let _ = write!(text, ".local .align 16 .b8 room[{bytes}]; st.local.b32 [room], 1; ");
    }
    calls
        .iter()
        .for_each(|callee| text.push_str(&format!("call {callee}; ")));
    text + "ret; }\n"
}

fn declared(names: &[&str]) -> String {
    names.iter().map(|name| format!(".func {name}();\n")).collect()
}

fn kernel(calls: &[&str]) -> String {
    function("k", 32, calls).replace(".func k()", ".visible .entry k()")
}

#[test]
fn the_deepest_chain_counts_with_room_to_align_each_frame() {
    let text = function("c", 64, &[]) + &function("b", 16, &["c"]) + &function("a", 48, &[]) + &kernel(&["a", "b"]);
    assert_eq!(frames(&text, "k"), Some(32 + 16 + 16 + 16 + 64));
    assert_eq!(frames(&text, "a"), Some(48));
    // The callees have theirs from the kernel's preparation.
    let (module, _) = link(&[&text]);
    prepare(&module, "k");
    assert_eq!(module.stack(index(&module, "b")).frames, Some(16 + 16 + 64));
}

#[test]
fn circles_leave_all_that_reaches_them_open_and_nothing_else() {
    // e → b → c → d → b, and c → f.
    let text = declared(&["b", "c", "d"])
        + &function("f", 16, &[])
        + &function("b", 16, &["c"])
        + &function("c", 16, &["f", "d"])
        + &function("d", 16, &["f", "b"])
        + &function("e", 16, &["f", "b"])
        + &function("g", 16, &["f"])
        + &kernel(&["g", "e"]);
    let (module, _) = link(&[&text]);
    prepare(&module, "k");
    for (name, expected) in [
        ("k", None),
        ("e", None),
        ("b", None),
        ("c", None),
        ("d", None),
        ("f", Some(16)),
        ("g", Some(16 + 16 + 16)),
    ] {
        assert_eq!(module.stack(index(&module, name)).frames, expected, "{name}");
    }
    let itself = declared(&["s"]) + &function("s", 16, &["s"]) + &kernel(&["s"]);
    assert_eq!(frames(&itself, "k"), None);
}

#[test]
fn a_circle_that_is_entered_in_two_places_is_open_from_both() {
    // k → a → b → c → a, and k → c: `c` is finished while `a` is open.
    let text = declared(&["a", "b", "c"])
        + &function("a", 16, &["b"])
        + &function("b", 16, &["c"])
        + &function("c", 16, &["a"])
        + &kernel(&["a", "c"]);
    let (module, _) = link(&[&text]);
    prepare(&module, "k");
    for name in ["k", "a", "b", "c"] {
        assert_eq!(module.stack(index(&module, name)).frames, None, "{name}");
    }
}

#[test]
fn indirect_calls_and_alloca_leave_it_open() {
    let table = ".func f() { ret; }\n.global .u64 t = f;\n.visible .entry k() { .reg .u64 %a; ld.global.u64 %a, [t]; \
                 p: .callprototype _ (); call %a, p; ret; }";
    assert_eq!(frames(table, "k"), None);
    let alloca = "{ .reg .u64 %a; alloca.u64 %a, 16; st.local.b32 [%a], 1; ret; }\n";
    let own = stack(&format!(".visible .entry k() {alloca}"), "k");
    assert!(own.allocates && own.frames.is_some(), "{own:?}");
    let callee = stack(&format!(".func f() {alloca}{}", kernel(&["f"])), "k");
    assert_eq!((callee.allocates, callee.frames), (false, None));
}

/// Two functions a layer, each calling both of the next: as many paths as 2^60.
#[test]
fn layers_of_calls_are_walked_once() {
    let mut text = function("a0", 16, &[]) + &function("b0", 32, &[]);
    for layer in 1..60 {
        let below = [format!("a{}", layer - 1), format!("b{}", layer - 1)];
        let below = [&*below[0], &*below[1]];
        text += &function(&format!("a{layer}"), 16, &below);
        text += &function(&format!("b{layer}"), 32, &below);
    }
    text += &kernel(&["a59", "b59"]);
    let start = Instant::now();
    assert_eq!(frames(&text, "k"), Some(32 + 60 * (32 + 16)));
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

/// Deeper than a walk by recursion goes on a thread's stack.
#[test]
fn long_chains_of_calls_are_known() {
    let mut text = function("f0", 16, &[]);
    for i in 1..3000 {
        text += &function(&format!("f{i}"), 0, &[&format!("f{}", i - 1)]);
    }
    text += &kernel(&["f2999"]);
    assert_eq!(frames(&text, "k"), Some(32 + 16 + 3000 * 16));
}
