//! Where a text chooses a size, a limit comes before the memory: the limits of NVIDIA's assembler (asked with ptxas 13.5)
//! and of the machine.

use std::sync::Arc;

use super::HEAD;
use crate::program::{Allocate, AllocateError, LinkError, Module, check};
use crate::ptx::diagnostic::Severity;
use crate::ptx::{self, ast};

/// Gives addresses, no memory; remembers what was asked of it.
#[derive(Default)]
struct Asked {
    allocations: Vec<u64>,
    writes: Vec<(u64, Vec<u8>)>,
}

impl Allocate for Asked {
    fn allocate(&mut self, bytes: u64, _: u64, _: bool, _: bool) -> Result<u64, AllocateError> {
        self.allocations.push(bytes);
        match bytes > 1 << 34 {
            true => Err(AllocateError),
            false => Ok(0x10_0000_0000),
        }
    }

    fn write(&mut self, address: u64, bytes: &[u8]) {
        self.writes.push((address - 0x10_0000_0000, bytes.to_vec()));
    }
}

fn tree(text: &str) -> ast::Module {
    let text = match text.starts_with(".version") {
        true => text.to_owned(),
        false => format!("{HEAD}{text}"),
    };
    match ptx::parse(ptx::Source::new("limits.ptx", text)) {
        Ok(tree) => tree,
        Err(found) => panic!("{}", found.render_plain()),
    }
}

fn link(text: &str) -> (Result<Module, LinkError>, Asked) {
    let mut asked = Asked::default();
    let linked = Module::link(&[Arc::new(tree(text))], &mut asked);
    (linked, asked)
}

/// Message and label of the only thing that is wrong.
fn found(text: &str) -> Option<(Severity, String)> {
    let list = check::all(&tree(text)).list;
    assert!(list.len() < 2, "{text}: {list:?}");
    let found = list.into_iter().next()?;
    Some((found.severity, format!("{}; {}", found.message, found.label)))
}

#[test]
fn kernel_parameters_fit_their_memory() {
    let kernel = |bytes: u64| format!(".visible .entry k(.param .b8 p[{bytes}]) {{ ret; }}");
    let old = |bytes: u64| format!(".version 8.0\n.target sm_90\n.address_size 64\n{}", kernel(bytes));
    assert_eq!(found(&kernel(32_764)), None);
    assert_eq!(found(&old(4_352)), None);
    for (bytes, said) in [
        (32_765, "32765"),
        (1 << 30, "1073741824"),
        (1 << 33, "4294967295"),
        (1 << 62, "4294967295"),
    ] {
        let error = format!("`k` has {said} bytes of parameters; a kernel may have 32764");
        assert_eq!(found(&kernel(bytes)), Some((Severity::Error, error.clone())));
        assert_eq!(found(&old(bytes)), Some((Severity::Error, error.clone())));
        match link(&kernel(bytes)).0 {
            Err(LinkError::Invalid(found)) => {
                assert_eq!(error, format!("{}; {}", found.list[0].message, found.list[0].label));
            }
            other => panic!("{bytes}: {:?}", other.err()),
        }
    }
    let requirement = "`k` has 4353 bytes of parameters; more than 4352 need PTX 8.1; this module has `.version 8.0`";
    assert_eq!(
        found(&old(4_353)),
        Some((Severity::Requirement, requirement.to_owned()))
    );
    assert!(link(&old(4_353)).0.is_ok());
    // Many small ones count together.
    let many: Vec<String> = (0..32_765).map(|i| format!(".param .b8 p{i}")).collect();
    let many = format!(".visible .entry k({}) {{ ret; }}", many.join(", "));
    assert!(matches!(link(&many).0, Err(LinkError::Invalid(_))));
}

#[test]
fn constants_are_counted_before_they_get_memory() {
    for bytes in [65_537u64, 1 << 32, 1 << 33, 1 << 40] {
        for init in ["", " = {1}"] {
            let (linked, asked) = link(&format!(".const .b8 c[{bytes}]{init};"));
            assert!(matches!(linked, Err(LinkError::Invalid(_))), "{bytes}{init}");
            assert!(asked.allocations.is_empty() && asked.writes.is_empty(), "{bytes}{init}");
        }
    }
    assert!(link(".const .b8 c[65536] = {1};").0.is_ok());
}

#[test]
fn initialisers_take_the_room_of_their_values() {
    let (linked, asked) = link(".global .b32 a[2147483648] = {1, 2};");
    assert!(linked.is_ok());
    assert_eq!(asked.allocations, [1 << 33]);
    assert_eq!(asked.writes, [(0, vec![1, 0, 0, 0, 2, 0, 0, 0])]);
    // Rows that are not full: what is between them is not written.
    let (linked, asked) = link(".global .b16 a[3][1073741824] = {{1, 2}, {}, {3}};");
    assert!(linked.is_ok());
    assert_eq!(asked.writes, [(0, vec![1, 0, 2, 0]), (1 << 32, vec![3, 0])]);
    // An open dimension takes as many rows as there are.
    let (linked, asked) = link(".global .b16 a[][1073741824] = {{1}, {3}};");
    assert!(linked.is_ok());
    assert_eq!(asked.allocations, [1 << 32]);
    assert_eq!(asked.writes, [(0, vec![1, 0]), (1 << 31, vec![3, 0])]);
}

#[test]
fn what_no_memory_holds_is_out_of_memory() {
    for text in [
        ".global .b8 a[1099511627776];",
        ".global .b8 a[1099511627776] = {1};",
        ".global .b8 a[1099511627777];",
        ".global .b8 a[1099511627777] = {1};",
        ".global .b32 a[65536][65536][65536][65536];",
        ".global .b32 a[4294967296][4294967296] = {{1}};",
        ".global .b64 a[18446744073709551615];",
        ".visible .entry k() { .global .b32 a[4294967296][4294967296]; ret; }",
    ] {
        assert!(matches!(link(text).0, Err(LinkError::OutOfMemory)), "{text}");
    }
    // An open dimension with rows of any size: there is no such initialiser.
    let text = ".global .b32 a[][4294967296][4294967296] = {{{1}}};";
    assert!(matches!(link(text).0, Err(LinkError::Invalid(_))), "{text}");
}

#[test]
fn alignments_have_32_bits() {
    for space in [".global", ".shared", ".const"] {
        let text = |align: u64| format!("{HEAD}{space} .align {align} .b8 a[4];\n");
        assert!(ptx::parse(ptx::Source::new("a", text(1 << 31))).is_ok());
        for align in [1u64 << 32, 1 << 63] {
            let wrong = ptx::parse(ptx::Source::new("a", text(align))).err();
            let wrong = wrong.map(|found| found.list[0].message.clone());
            assert_eq!(
                wrong,
                Some(format!("`a` is aligned to {align}; the most is 2147483648"))
            );
        }
    }
}

/// Registers are made when a name is used, however many are declared.
#[test]
fn a_thousand_million_registers_cost_nothing() {
    let text = ".visible .entry k() { .reg .b32 %r<1000000000>; mov.b32 %r999999999, 1; ret; }";
    assert_eq!(found(text), None);
    let (linked, _) = link(text);
    let module = linked.expect("links");
    assert!(module.prepare(0).is_ok());
    let too_many = format!("{HEAD}.visible .entry k() {{ .reg .b32 %r<4294967296>; ret; }}");
    assert!(ptx::parse_all(ptx::Source::new("r", too_many)).is_err());
}

/// Parameters and variables that are larger than any frame are told, or do not run; nothing is laid out beyond 4 GiB.
#[test]
fn frames_do_not_wrap_around() {
    let large = ".func f(.param .b8 p[4294967295], .param .b8 q[4294967295]) { ret; }\n\
                 .visible .entry k() { .local .b8 a[4294967295]; .local .b8 b[4294967295]; st.local.b8 [b], 1; ret; }";
    let (linked, _) = link(large);
    let module = linked.expect("links");
    let kernel = module.functions.iter().position(|f| *f.name == *"k").expect("k") as u32;
    let function = module.prepare(kernel).expect("lowers");
    assert_eq!(function.local, u32::MAX);
    for text in [
        ".visible .entry k() { .local .b8 a[4294967296]; ret; }",
        ".visible .entry k() { .local .b32 a[4294967296][4294967296]; ret; }",
    ] {
        let module = link(text).0.expect("links");
        assert!(module.prepare(0).is_err(), "{text}");
    }
    for text in [
        ".visible .entry k() { .reg .b32 r; .shared .b8 a[2147483648]; ld.shared.b32 r, [a]; ret; }",
        ".visible .entry k() { .reg .b32 r; .shared .b8 a[8589934592]; ld.shared.b32 r, [a]; ret; }",
        ".shared .b32 a[4294967296][4294967296]; .visible .entry k() { .reg .b32 r; ld.shared.b32 r, [a]; ret; }",
    ] {
        let refused = match link(text).0 {
            Ok(module) => module.prepare(0).is_err(),
            Err(_) => true,
        };
        assert!(refused, "{text}");
    }
}
