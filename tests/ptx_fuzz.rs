//! Whatever text comes, the reader answers with a tree or with findings that have a place, in time and memory that go
//! with the text's length. A fixed budget; `PROPTEST_CASES=100000 cargo test --release --test ptx_fuzz` for longer runs.

use std::path::Path;

use cuda::ptx;
use proptest::prelude::*;

/// Reads `bytes` and checks what can be read; panics if the answer is not a proper one.
fn read(bytes: &[u8]) {
    if let Ok(module) = ptx::parse_bytes("fuzz.ptx", bytes) {
        let found = cuda::program::rules::check(&module);
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
        }
        Err(found) => {
            assert!(!found.list.is_empty());
            for finding in &found.list {
                assert!(finding.span.start <= finding.span.end && finding.span.end as usize <= found.source.text.len());
            }
            assert!(found.render_plain().len() < 4000 * found.list.len());
        }
    }
}

fn modules() -> Vec<Vec<u8>> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut list = Vec::new();
    for folder in ["language", "reports"] {
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
