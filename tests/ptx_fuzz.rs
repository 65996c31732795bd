//! Whatever text comes, the reader answers with a tree or with findings that have a place, in time and memory that go
//! with the text's length; what it reads is linked and lowered, or refused with a place. A fixed budget;
//! `PROPTEST_CASES=100000 cargo test --release --test ptx_fuzz` for longer runs.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cuda::program::{Allocate, AllocateError, LinkError, Module};
use cuda::ptx::diagnostic::Diagnostics;
use cuda::ptx::{self, ast};
use proptest::prelude::*;

/// Reads `bytes` and checks what can be read; panics if the answer is not a proper one.
fn read(bytes: &[u8]) {
    if let Ok(module) = ptx::parse_bytes("fuzz.ptx", bytes) {
        let found = cuda::program::check::all(&module);
        for finding in &found.list {
            assert!(finding.span.start <= finding.span.end && finding.span.end as usize <= found.source.text.len());
        }
        assert!(found.list.is_empty() || found.render_plain().len() < 4000 * found.list.len());
    }
    match ptx::parse_all(ptx::source_from_bytes("fuzz.ptx", bytes)) {
        Ok(module) => {
            let printed = module.to_string();
            match ptx::parse_all(ptx::Source::new("printed.ptx", printed.clone())) {
                Ok(again) => assert!(again == module, "reads as something else:\n{printed}"),
                Err(found) => panic!("what is printed does not read:\n{found}"),
            }
            lower(module);
        }
        Err(found) => have_places(&found),
    }
}

fn have_places(found: &Diagnostics) {
    assert!(!found.list.is_empty());
    for finding in &found.list {
        assert!(finding.span.start <= finding.span.end && finding.span.end as usize <= found.source.text.len());
    }
    assert!(found.render_plain().len() < 4000 * found.list.len());
}

/// Memory for variables that nobody runs on.
struct Nowhere(u64);

impl Allocate for Nowhere {
    fn allocate(&mut self, bytes: u64, align: u64, _: bool, _: bool) -> Result<u64, AllocateError> {
        if bytes > 1 << 24 {
            return Err(AllocateError);
        }
        let address = self.0.next_multiple_of(align);
        self.0 = address + bytes;
        Ok(address)
    }
    fn write(&mut self, _: u64, _: &[u8]) {}
}

/// Links and lowers; panics if what comes out breaks the executor's rules.
fn lower(tree: ast::Module) {
    match Module::link(&[Arc::new(tree)], &mut Nowhere(0x10_0000)) {
        Ok(module) => {
            // Rendering a finding reads the text up to it: a few functions are enough.
            for index in 0..module.functions.len().min(100) as u32 {
                match module.prepare(index) {
                    Ok(function) => assert_eq!(function.body.verify(), Ok(())),
                    Err(found) => have_places(&found),
                }
            }
        }
        Err(LinkError::Invalid(found)) => have_places(&found),
        Err(_) => {}
    }
}

fn modules() -> Vec<Vec<u8>> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut list = Vec::new();
    for folder in ["language", "reports", "ptx/legacy"] {
        let mut files: Vec<_> = std::fs::read_dir(tests.join(folder))
            .expect("a folder")
            .map(|entry| entry.expect("entry").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "ptx"))
            .collect();
        files.sort();
        list.extend(files.iter().map(|path| std::fs::read(path).expect("readable")));
    }
    list
}

const LEGACY: &str = ".version 1.1\n.target sm_11\n";

/// Words that mean something to the reader, so that mutations hit what blind bytes would not.
const WORDS: &[&str] = &[
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ";",
    ",",
    ":",
    "@",
    "!",
    "|",
    "+",
    "-",
    "/*",
    "*/",
    "//",
    "\"",
    "\\",
    "#",
    "@@",
    "\0",
    "_",
    ".",
    "%",
    "<",
    ">",
    "=",
    "0x",
    "0f",
    "0d3",
    "99999999999999999999",
    "1.0",
    "1e999",
    ".reg",
    ".b32",
    ".entry k",
    ".func",
    ".version 1.1",
    ".loc 1 1 1",
    ".pragma \"x\";",
    ".file",
    ".section",
    ".callprototype",
    "call",
    "generic(",
    ".align 3",
    "%r1",
    "%tid.x",
    "-",
    "~",
    "?",
    "\n",
    "\u{e9}",
    ".unified",
    "ld.const[1].b32",
    "{{{{",
    "}}}}",
    "((((",
    "\n#define T u32\n",
    "\n#define f(x) x x f(x)\n",
    "f(f(1))",
    "\n#if T > 0\n",
    "\n#else\n",
    "\n#endif\n",
    "##",
    ".struct s { .s32 a; .f32[2] v; };",
    ".union {",
    ".global s x = {1, {2}};",
    "x.v[1]",
    "x.a",
    ".entry k[4][]",
    "@%p1 {",
    ".byte 1,",
    "5.u32",
    ".v3 .f32",
    "%tid.0",
    ".sreg",
    ".extern x",
    ".reg .s32 i = 1;",
    ".shared .b16 h[][] = {{1}, {}};",
    "v.xxyy",
    ".param .u32 a;",
    "add.v4.s32",
    "mov.v3.f32",
    "_",
];

#[derive(Clone, Debug)]
enum Change {
    Remove(usize, usize),
    Insert(usize, usize),
    Byte(usize, u8),
    Copy(usize, usize, usize),
    Truncate(usize),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        (any::<usize>(), 0..40usize).prop_map(|(at, count)| Change::Remove(at, count)),
        (any::<usize>(), 0..WORDS.len()).prop_map(|(at, word)| Change::Insert(at, word)),
        (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Change::Byte(at, byte)),
        (any::<usize>(), any::<usize>(), 0..200usize).prop_map(|(from, to, count)| Change::Copy(from, to, count)),
        any::<usize>().prop_map(Change::Truncate),
    ]
}

fn apply(text: &mut Vec<u8>, change: &Change) {
    let len = text.len().max(1);
    match *change {
        Change::Remove(at, count) => {
            let at = (at % len).min(text.len());
            let end = (at + count).min(text.len());
            text.drain(at..end);
        }
        Change::Insert(at, word) => {
            let at = (at % len).min(text.len());
            text.splice(at..at, WORDS[word].bytes());
        }
        Change::Byte(at, byte) => {
            if let Some(place) = text.get_mut(at % len) {
                *place = byte;
            }
        }
        Change::Copy(from, to, count) => {
            let from = (from % len).min(text.len());
            let piece = text[from..(from + count).min(text.len())].to_vec();
            let to = (to % len).min(text.len());
            text.splice(to..to, piece);
        }
        Change::Truncate(at) => text.truncate(at % len),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        read(&bytes);
        read(&[b".version 8.7\n.target sm_90\n.entry k() {".as_slice(), &bytes].concat());
    }

    #[test]
    fn any_words(words in proptest::collection::vec(0..WORDS.len(), 0..60)) {
        let text: Vec<&str> = words.iter().map(|&word| WORDS[word]).collect();
        let text = text.join(" ");
        read(text.as_bytes());
        read(format!(".version 8.7\n.target sm_90\n{text}").as_bytes());
        read(format!(".version 8.7\n.target sm_90\n.entry k() {{\n{text};\n}}").as_bytes());
        read(format!("{LEGACY}{text}").as_bytes());
        read(format!("{LEGACY}.reg .s32 i; .struct s {{ .s32 a; .f32 v[2]; }}; .global s x; .entry k {{\n{text};\n}}").as_bytes());
    }

    #[test]
    fn changed_modules(which in any::<usize>(), changes in proptest::collection::vec(change(), 1..12)) {
        thread_local!(static MODULES: Vec<Vec<u8>> = modules());
        let mut text = MODULES.with(|modules| modules[which % modules.len()].clone());
        for change in &changes {
            apply(&mut text, change);
        }
        read(&text);
    }
}

/// Texts that are out of proportion in one way each.
#[test]
fn monsters() {
    let head = ".version 8.7\n.target sm_90\n";
    let within = |text: String| format!("{head}.entry k() {{ {text} }}");
    let many = 300_000;
    for text in [
        "(".repeat(many),
        "{".repeat(many),
        "[".repeat(many),
        format!("mov.u32 %r1, {}1;", "-".repeat(many)),
        format!("mov.u32 %r1, {}1;", "(".repeat(many)),
        format!("mov.u32 %r1, {}1;", "1?1:".repeat(many)),
        format!("mov.u32 %r1, {}1;", "1+".repeat(many)),
        format!("mov.u32 %r1, {}1;", "(.s64)".repeat(many)),
        format!("mov.u32 {{{}}};", "%r1,".repeat(many)),
        "}".repeat(many),
        ";".repeat(many),
        "a:".repeat(many),
        "/*".repeat(many),
        "\"".repeat(many),
        "x".repeat(many),
        format!("{}.x;", "x.y".repeat(many)),
        "9".repeat(many),
        "é".repeat(many),
        "\0".repeat(many),
        format!("{}{}", "{".repeat(many), "}".repeat(many)),
    ] {
        read(within(text.clone()).as_bytes());
        read(format!("{head}{text}").as_bytes());
        read(format!("{head}.global .u32 x[] = {text}").as_bytes());
        read(text.as_bytes());
    }
}

/// The same in PTX 1.x, whose lines and structures can grow.
#[test]
fn old_monsters() {
    let many = 30_000;
    let numbered = |line: &dyn Fn(usize) -> String| (0..many).map(line).collect::<String>();
    for text in [
        numbered(&|i| format!("#define a{i} a{} a{}\n", i + 1, i + 1)) + "a0",
        numbered(&|i| format!("#define a{i} {i}\n")) + "a0",
        "#if 1\n".repeat(many),
        "#".repeat(many),
        "#define a /*".to_owned() + &"\n".repeat(many),
        "#define a \\\n".repeat(many),
        format!("#define f(x) x\n{}1{}", "f(".repeat(many), ")".repeat(many)),
        format!("#define f(x) x x\nf({})", "y ".repeat(many)),
        format!("#define f(x) #x #x #x\nf({})", "\"y\" ".repeat(many)),
        format!("#if {}1{}\n#endif", "(".repeat(many), ")".repeat(many)),
        format!("#if {}1\n#endif", "!".repeat(many)),
        ".struct a { ".repeat(many),
        format!(".struct a {{ {} }};", ".struct { ".repeat(many)),
        format!(".struct a {{ {} }};", numbered(&|i| format!(".b8 m{i};"))),
        format!(".struct a {{ {} .b8 x; }};", ".b8[4294967295] y; ".repeat(many)),
        format!(
            ".struct a {{ .b8[1000000] x; .b8 y; }}; .global a v[] = {{ {} }};",
            "{{}, 1}, ".repeat(many)
        ),
        numbered(&|i| format!(".struct s{i} {{ .b8 x; }};")),
        ".byte 1,".repeat(many),
        ".extern a ".repeat(many),
        numbered(&|i| format!(".extern a{i} .global .b32 a{i};")),
        numbered(&|i| format!(".param .u32 p{i}; .entry k{i} {{ exit; }}")),
        "a; .byte 1 ".repeat(many),
        "@p { ".repeat(many),
        ".entry k[".repeat(many),
        format!(".entry k{} {{ exit; }}", "[1]".repeat(many)),
        format!(".shared .b8 a{} = {{1}};", "[]".repeat(many)),
        numbered(&|i| format!(".reg .u32 r{i}; .func f{i} {{ ret; }}")),
        ".sreg ".repeat(many),
        format!("mov.v4.u32 a, b.{};", "x".repeat(many)),
    ] {
        for text in [format!("{LEGACY}{text}"), format!("{LEGACY}.entry k {{ {text}\n }}")] {
            let start = Instant::now();
            read(text.as_bytes());
            let took = start.elapsed();
            let head: String = text.chars().take(80).collect();
            assert!(
                took < Duration::from_secs(20),
                "{took:?} for {} bytes: {head}",
                text.len()
            );
        }
    }
}
