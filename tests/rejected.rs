//! What NVIDIA's assembler refuses is refused, at the line where it says so (`tests/data/rejected.tsv.zst`,
//! `module_items_refused.tsv.zst`: small texts with one mistake each, made by asking ptxas 13.5), and what it lets pass
//! without noticing gets a warning.
//!
//! What `.version` or `.target` lack is a warning by default, since running is harmless, and an error when asked for
//! strictness; these tests ask.

use std::sync::Arc;

use cuda::program::{Allocate, AllocateError, Module, check};
use cuda::ptx::diagnostic::{Diagnostics, Severity};
use cuda::ptx::{self, Source};

fn unpacked(bytes: &[u8]) -> String {
    String::from_utf8(zstd::decode_all(bytes).expect("intact")).expect("text")
}

/// A field in which line breaks, tabs and backslashes are escaped.
fn unescaped(field: &str) -> String {
    let mut text = String::new();
    let mut chars = field.chars();
    while let Some(c) = chars.next() {
        match (c, if c == '\\' { chars.next() } else { None }) {
            ('\\', Some('n')) => text.push('\n'),
            ('\\', Some('t')) => text.push('\t'),
            ('\\', Some(other)) => text.push(other),
            (c, _) => text.push(c),
        }
    }
    text
}

fn findings(text: &str) -> Diagnostics {
    let source = Source::new("text.ptx", text);
    match ptx::parse(source.clone()) {
        Ok(tree) => check::all(&tree).strictly(),
        Err(found) => ptx::parse_all(source).err().unwrap_or(found),
    }
}

/// The lines of the errors, in order.
fn lines(found: &Diagnostics) -> Vec<usize> {
    let errors = found.list.iter().filter(|finding| finding.severity == Severity::Error);
    errors
        .map(|finding| found.source.line_column(finding.span.start).0)
        .collect()
}

/// Memory for variables that nobody runs on.
struct Nowhere(u64);

impl Allocate for Nowhere {
    fn allocate(&mut self, bytes: u64, align: u64, _: bool, _: bool) -> Result<u64, AllocateError> {
        let address = self.0.next_multiple_of(align);
        self.0 = address + bytes;
        Ok(address)
    }
    fn write(&mut self, _: u64, _: &[u8]) {}
}

#[test]
fn rejected_files_are_refused_at_their_line() {
    let table = unpacked(include_bytes!("data/rejected.tsv.zst"));
    let mut rows = 0;
    let mut wrong = Vec::new();
    for row in table.lines() {
        let [name, line, message, text] = row.split('\t').collect::<Vec<_>>()[..] else {
            panic!("a row of four: {row}");
        };
        let text = unescaped(text);
        rows += 1;
        // It calls a function that another unit may define, which is legal in a unit; it does not run without one.
        if name == "unresolved_function_body.ptx" {
            assert!(lines(&findings(&text)).is_empty());
            let tree = ptx::parse_all(Source::new(name, &*text)).expect("legal by itself");
            let linked = Module::link(&[Arc::new(tree)], &mut Nowhere(0x10_0000)).expect("links");
            let found = linked.prepare(0).expect_err("nobody defines it");
            assert!(found.list[0].message.contains("no unit defines it"), "{found}");
            continue;
        }
        let found = lines(&findings(&text));
        // The assembler's code generator names no line.
        let expected: Option<usize> = line.parse().ok();
        if found.is_empty() || expected.is_some_and(|line| found[0] != line) {
            wrong.push(format!("{name}: found {found:?}, expected {line} ({message})"));
        }
    }
    assert_eq!(rows, 224);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What the assembler has against a declaration, and why nothing is wrong with its meaning.
const HARMLESS: &[(&str, &str)] = &[
    (
        ".target sm, debug",
        "the sections that it misses are read by debuggers alone",
    ),
    (".target sm, texmode_unified, debug", "as above"),
    (
        ".func .attribute(.unified(x,y))",
        "asks for an option of the assembler's command line",
    ),
    (".attribute(.unified(1, 2)) .global", "as above"),
    (".attribute(.unified(0xDC5A, 0x8B27), .managed) .global", "as above"),
    (".attribute(.managed, .unified(1, 2)) .global", "as above"),
    (
        ".pragma in .entry header",
        "the manual's grammar has it there; only the assembler wants a `;` behind",
    ),
    (
        ".section .debug_info",
        "the content of debug sections is kept and not read",
    ),
    ("@@DWARF lines", "as above"),
    ("@@DWARF .4byte", "as above"),
];

#[test]
fn refused_declarations_are_refused() {
    let table = unpacked(include_bytes!("data/module_items_refused.tsv.zst"));
    let mut accepted = Vec::new();
    let mut rows = 0;
    for row in table.lines() {
        let [_, form, text, message] = row.split('\t').collect::<Vec<_>>()[..] else {
            panic!("a row of four: {row}");
        };
        rows += 1;
        let options = form.strip_prefix(".target sm").unwrap_or("");
        let text = format!(".version 9.5\n.target sm_75{options}\n.address_size 64\n{text}\n");
        if lines(&findings(&text)).is_empty() {
            accepted.push((form, message));
        }
    }
    assert_eq!(rows, 342);
    let names: Vec<&str> = accepted.iter().map(|(form, _)| *form).collect();
    let harmless: Vec<&str> = HARMLESS.iter().map(|(form, _)| *form).collect();
    let mut sorted = (names.clone(), harmless.clone());
    sorted.0.sort_unstable();
    sorted.1.sort_unstable();
    assert_eq!(sorted.0, sorted.1, "accepted and expected to be: {accepted:?}");
}

/// The mistakes of `rejected_candidates_accepted.tsv`, which the assembler does not notice.
#[test]
fn unnoticed_mistakes_get_a_warning() {
    let body = |statement: &str| {
        format!(
            ".version 9.5\n.target sm_80\n.address_size 64\n.file 1 \"a.cu\"\n.visible .entry k()\n{{\n\
             .reg .b32 %r<4>; .reg .f32 %f<4>; .reg .b64 %d<4>; .reg .b16 %h<4>;\n{statement}\nret;\n}}\n"
        )
    };
    let texts = [
        (
            "declaration_missing_name",
            ".version 9.5\n.target sm_80\n.address_size 64\n\n\n\n\n.global .u32 ;\n".to_owned(),
            "declares nothing",
        ),
        (
            "type_address_register_32_in_64",
            body("ld.global.u32 %r0, [%r1];"),
            "32 bits",
        ),
        ("the same with 16 bits", body("ld.global.u32 %r0, [%h1];"), "16 bits"),
        (
            "vector_mixed_register_types",
            body("ld.global.v2.b32 {%r0, %f1}, [%d0];"),
            "`.f32`",
        ),
        ("loc_unknown_file", body(".loc 7 1 1"), "file 7"),
        ("range_lop3_lut", body("lop3.b32 %r0, %r1, %r2, %r3, 300;"), "300"),
    ];
    for (name, text, words) in texts {
        let found = findings(&text);
        let [one] = &found.list[..] else {
            panic!("{name}: {found}");
        };
        assert_eq!(one.severity, Severity::Warning, "{name}: {found}");
        assert_eq!(found.source.line_column(one.span.start).0, 8, "{name}: {found}");
        assert!(found.to_string().contains(words), "{name}: {found}");
    }
    for legal in [
        "ld.global.u32 %r0, [%d1];",
        "ld.shared.u32 %r0, [%r1];",
        "ld.global.v2.b32 {%r0, %r1}, [%d0];",
        ".loc 1 1 1",
        "lop3.b32 %r0, %r1, %r2, %r3, 255;",
    ] {
        let found = findings(&body(legal));
        assert!(found.list.is_empty(), "{found}");
    }
}

/// What the assembler lets pass although the manual asks for a vector, or for one element.
const SLOPPY: &[&str] = &[
    "tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [t0, %f4];",
    "tex.3d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [t0, %f4];",
    "tex.cube.v4.f32.f32 {%f0,%f1,%f2,%f3}, [t0, %f4];",
    "tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [t0, {%f4,%f5}], 1;",
    "tex.level.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [t0, {%f4,%f5}], {%f1};",
    "suld.b.2d.b16.trap %vb1, [s0, {%r2,%r3}];",
    "suld.b.2d.b32.trap %vb1, [s0, {%r2,%r3}];",
    "suld.b.2d.b32.trap %r1, [s0, %r1];",
];

/// Operands of texture and surface instructions, right ones and wrong ones, with the assembler's verdict on each.
#[test]
fn texture_operands_are_judged_like_the_assembler_does() {
    let table = unpacked(include_bytes!("data/texture_operands.tsv.zst"));
    let mut wrong = Vec::new();
    let mut rows = 0;
    for row in table.lines().skip(1) {
        let [verdict, mode, statement, message] = row.split('\t').collect::<Vec<_>>()[..] else {
            panic!("a row of four: {row}");
        };
        rows += 1;
        let (option, sampler) = match mode {
            "independent" => (", texmode_independent", ".global .samplerref m0;"),
            _ => ("", ""),
        };
        let text = format!(
            ".version 9.5\n.target sm_90{option}\n.address_size 64\n.global .texref t0; .global .texref ta[4];\
             .global .surfref s0; .global .u32 g0; {sampler}\n\
             .visible .entry k(.param .u64 p, .param .texref pt, .param .surfref ps) {{\n\
             .reg .b32 %r<20>; .reg .s32 %s<9>; .reg .u32 %u<9>; .reg .f32 %f<20>; .reg .b64 %rd<9>; .reg .s64 %sd<9>;\
             .reg .u64 %ud<9>; .reg .b16 %h<9>; .reg .u16 %uh<9>; .reg .f16 %fh<9>; .reg .f16x2 %fx<9>;\
             .reg .pred %p<4>; .reg .b8 %rb<9>; .reg .v4 .f32 %v<3>; .reg .v4 .b32 %vb<3>; .reg .v2 .f32 %w<3>;\
             .reg .f64 %fd<3>;\n{statement}\nret; }}\n"
        );
        let found = findings(&text);
        let refused = !lines(&found).is_empty();
        if refused != (verdict == "refused" || SLOPPY.contains(&statement)) {
            let said = found.list.first().map_or("nothing", |one| &*one.message);
            wrong.push(format!(
                "{verdict} by the assembler: {statement} {mode} ({message}); here: {said}"
            ));
            continue;
        }
        // What is right is also understood.
        if !refused {
            let tree = ptx::parse_all(Source::new("row.ptx", text)).expect("read");
            let linked = Module::link(&[Arc::new(tree)], &mut Nowhere(0x10_0000)).expect("links");
            if let Err(found) = linked.prepare(0) {
                wrong.push(format!("{statement}: {found}"));
            }
        }
    }
    assert_eq!(rows, 758);
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// What is harmless here is an error to those who ask for strictness alone.
#[test]
fn requirements_are_warnings_unless_asked_for() {
    let text = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry k()\n{\n.reg .b32 %r<4>;\nactivemask.b32 %r0;\nret;\n}\n";
    let tree = ptx::parse(Source::new("old.ptx", text)).expect("read");
    let found = check::all(&tree);
    assert!(!found.has_errors());
    assert_eq!(found.list.len(), 1);
    assert_eq!(found.list[0].severity, Severity::Requirement);
    assert_eq!(lines(&found.strictly()), [7]);
}
