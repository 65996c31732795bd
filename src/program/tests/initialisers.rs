//! Initialiser bytes, by hand from PTX ISA, Variables: Initializers, and Constants.

use super::{Memory, link, try_link};
use crate::program::{LinkError, Module};

fn bytes(text: &str, name: &str) -> Vec<u8> {
    let (module, memory) = link(&[text]);
    memory.global(&module, name).to_vec()
}

#[test]
fn integers_truncate() {
    assert_eq!(bytes(".global .u32 v = 0x12345678;", "v"), [0x78, 0x56, 0x34, 0x12]);
    assert_eq!(bytes(".global .s16 v = -2;", "v"), [0xfe, 0xff]);
    assert_eq!(bytes(".global .u8 v = 0x1ff;", "v"), [0xff]);
    assert_eq!(bytes(".global .s64 v = -1;", "v"), [0xff; 8]);
    assert_eq!(bytes(".const .b128 v = 1;", "v")[..2], [1, 0]);
}

#[test]
fn floats_narrow_and_keep_bits() {
    assert_eq!(bytes(".global .f32 v = 1.0;", "v"), 0x3f80_0000u32.to_le_bytes());
    assert_eq!(bytes(".global .f32 v = 0f40490fdb;", "v"), 0x4049_0fdbu32.to_le_bytes());
    assert_eq!(
        bytes(".global .f32 v = 0d3FF8000000000000;", "v"),
        0x3fc0_0000u32.to_le_bytes()
    );
    assert_eq!(
        bytes(".global .f64 v = 1.5;", "v"),
        0x3ff8_0000_0000_0000u64.to_le_bytes()
    );
    assert_eq!(bytes(".global .b32 v = 0f3F800000;", "v"), 0x3f80_0000u32.to_le_bytes());
    assert!(matches!(try_link(&[".global .f32 v = 1;"]), Err(LinkError::Invalid(_))));
}

#[test]
fn rows_may_be_short_and_dimensions_open() {
    assert_eq!(bytes(".global .u8 v[2][3] = {{1}, {4, 5}};", "v"), [1, 0, 0, 4, 5, 0]);
    assert_eq!(bytes(".global .u8 v[4] = {1, 2};", "v"), [1, 2, 0, 0]);
    assert_eq!(bytes(".global .u16 v[] = {1, 2, 3};", "v"), [1, 0, 2, 0, 3, 0]);
    assert_eq!(
        bytes(".global .u8 v[][2] = {{1, 2}, {3, 4}, {5, 6}};", "v"),
        [1, 2, 3, 4, 5, 6]
    );
    assert_eq!(
        bytes(".global .v2 .u16 v[2] = {{1, 2}, {3, 4}};", "v"),
        [1, 0, 2, 0, 3, 0, 4, 0]
    );
    assert!(matches!(
        try_link(&[".global .u8 v[2] = {1, 2, 3};"]),
        Err(LinkError::Invalid(_))
    ));
}

fn address(module: &Module, name: &str) -> u64 {
    module
        .globals
        .iter()
        .find(|g| *g.name == *name)
        .map(|g| g.address)
        .unwrap()
}

fn word(memory: &Memory, module: &Module, name: &str, i: usize) -> u64 {
    u64::from_le_bytes(memory.global(module, name)[8 * i..8 * i + 8].try_into().unwrap())
}

#[test]
fn addresses_of_variables_and_functions() {
    let text = ".global .u32 a[8]; .const .u32 c = 7;
        .func f() { ret; }
        .global .u64 v[4] = { a, generic(a)+8, generic(c), f };
        .global .u8 low[4] = { 0xFF(a), 0xFF00(a), 0xFF0000(a), 0xFF(a+1) };";
    let (module, memory) = link(&[text]);
    let a = address(&module, "a");
    assert_eq!(word(&memory, &module, "v", 0), a);
    assert_eq!(word(&memory, &module, "v", 1), a + 8);
    assert_eq!(word(&memory, &module, "v", 2), address(&module, "c"));
    assert_eq!(word(&memory, &module, "v", 3), module.code_base);
    let le = a.to_le_bytes();
    assert_eq!(
        memory.global(&module, "low"),
        [le[0], le[1], le[2], le[0].wrapping_add(1)]
    );
}

#[test]
fn functions_have_addresses_of_their_own() {
    let (one, _) = link(&[".func f() { ret; }"]);
    let (two, _) = link(&[".func f() { ret; }"]);
    assert_ne!(one.code_base, two.code_base);
    // Not canonical on x86-64: no memory of the process can have them.
    assert!(one.code_base >> 47 != 0 && one.code_base >> 47 != (1 << 17) - 1);
}
