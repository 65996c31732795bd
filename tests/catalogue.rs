//! The catalogues of what NVIDIA's assembler takes (`tests/data/*.tsv.zst`, made by asking it): every form is read,
//! decoded by the instruction table and lowered as far as this version executes it; modifiers may change places where the
//! assembler lets them; everything that the first specification describes is read and lowered.

use std::collections::BTreeMap;
use std::sync::Arc;

use cuda::isa;
use cuda::program::{Allocate, AllocateError, Module};
use cuda::ptx::{self, Source, ast};

fn unpacked(bytes: &[u8]) -> String {
    String::from_utf8(zstd::decode_all(bytes).expect("intact")).expect("text")
}

/// Rows by the names of their columns.
fn rows(table: &str) -> Vec<BTreeMap<&str, &str>> {
    let mut lines = table.lines();
    let names: Vec<&str> = lines.next().expect("a heading").split('\t').collect();
    lines
        .map(|line| names.iter().copied().zip(line.split('\t')).collect())
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

/// Reads, links and lowers a text, together with another unit.
fn lowered(text: &str, other: Option<&str>) -> Outcome {
    let tree = match ptx::parse_all(Source::new("row.ptx", text)) {
        Ok(tree) => tree,
        Err(found) => return Outcome::Unread(found.list[0].message.clone()),
    };
    let printed = tree.to_string();
    match ptx::parse_all(Source::new("printed.ptx", &*printed)) {
        Ok(again) if again == tree => {}
        Ok(_) => return Outcome::Unread(format!("reads otherwise when printed:\n{printed}")),
        Err(found) => return Outcome::Unread(format!("does not read when printed: {found}")),
    }
    let mut units = vec![Arc::new(tree)];
    if let Some(text) = other {
        units.push(Arc::new(
            ptx::parse_all(Source::new("other.ptx", text)).expect("definitions"),
        ));
    }
    let module = match Module::link(&units, &mut Nowhere(0x10_0000)) {
        Ok(module) => module,
        Err(error) => return Outcome::Unlinked(error.to_string()),
    };
    for index in 0..module.functions.len() as u32 {
        if let Err(found) = module.prepare(index) {
            let message = found.list[0].message.clone();
            return Outcome::Unlowered(message);
        }
    }
    Outcome::Lowered
}

enum Outcome {
    Unread(String),
    Unlinked(String),
    Unlowered(String),
    Lowered,
}

/// The module that an example of `forms.tsv` is part of.
fn form_text(row: &BTreeMap<&str, &str>, version: &str) -> String {
    let target = row["min_target"];
    let options = match row["texmode"] {
        "" => String::new(),
        "independent" => ", texmode_independent".to_owned(),
        other => format!(", {other}"),
    };
    let (major, minor) = version.split_once('.').expect("a version");
    let with_size = (major.parse::<u32>().unwrap(), minor.parse::<u32>().unwrap()) >= (2, 3);
    let head = format!(
        ".version {version}\n.target {target}{options}\n{}",
        if with_size { ".address_size 64\n" } else { "" }
    );
    let example = row["example"];
    if matches!(
        row["category"],
        "directive" | "debug" | "lexical" | "variable" | "initialiser" | "param"
    ) {
        // Line comments and markers were lines once.
        let lines = match example.split_once(" .entry") {
            Some((line, rest)) if line.starts_with(['#', '/']) => format!("{line}\n.entry{rest}"),
            _ => example.to_owned(),
        };
        return format!("{head}{lines}\n");
    }
    let sampler = if options.is_empty() {
        ""
    } else {
        ".global .samplerref smp0;"
    };
    let registers = ".reg .b8 %rb<200>; .reg .b16 %rs<200>; .reg .b32 %r<200>; .reg .b64 %rd<200>; .reg .b128 %rq<8>; \
                     .reg .f32 %f<200>; .reg .f64 %fd<200>; .reg .pred %p<16>;";
    // `.param::func` belongs to functions.
    let (header, own) = match example.contains("fparam") || example.contains("oparam") {
        true => (
            ".visible .func (.param .align 16 .b8 oparam[64]) fn_body(.param .align 16 .b8 fparam[64])",
            "",
        ),
        false => (
            ".visible .entry kern_self(.param .align 16 .b8 pvar[64], .param .align 64 .b8 tmparam[128])",
            ".local .align 16 .b8 lvar[256];",
        ),
    };
    format!(
        "{head}.global .texref tex0; .global .surfref srf0; {sampler}\n\
         .global .align 16 .b8 gvar[4096]; .const .align 16 .b8 cvar[256]; .shared .align 16 .b8 svar[1024];\n\
         .shared .align 8 .b64 mbar; .func fn_dev() {{ ret; }}\n\
         .func (.param .b32 rv) fn_two(.param .b32 x, .param .b32 y) {{ ret; }}\n\
         {header}\n{{ {registers} {own}\n{example}\nret; }}\n"
    )
}

/// The unit that defines what an example declares `.extern`.
fn definitions(row: &BTreeMap<&str, &str>, version: &str) -> Option<String> {
    let declared = row["example"].split(';').find(|one| one.contains(".extern"))?;
    let defined = declared.trim().replace(".extern", ".visible").replace("[]", "[4]");
    let end = if defined.contains(".func") { "{ ret; }" } else { ";" };
    let target = row["min_target"];
    let text = format!(".version {version}\n.target {target}\n{defined}{end}\n");
    (!declared.contains(".shared")).then_some(text)
}

#[test]
fn every_form_is_read() {
    let table = unpacked(include_bytes!("data/forms.tsv.zst"));
    let rows = rows(&table);
    let mut counts = BTreeMap::<&str, [usize; 2]>::new();
    let mut refused = Vec::new();
    for row in &rows {
        let newest = if row["max_ptx"].is_empty() {
            "9.5"
        } else {
            row["max_ptx"]
        };
        let count = counts.entry(row["category"]).or_default();
        count[0] += 1;
        let mut bad = None;
        for version in [newest, row["min_ptx"]] {
            let other = definitions(row, version);
            let complaint = match lowered(&form_text(row, version), other.as_deref()) {
                Outcome::Unread(message) => format!("not read: {message}"),
                Outcome::Unlinked(message) => format!("not linked: {message}"),
                Outcome::Unlowered(message) => format!("not lowered: {message}"),
                Outcome::Lowered => continue,
            };
            bad = Some(format!("{version}: {complaint}"));
        }
        match bad {
            Some(complaint) => refused.push(format!("{}\t{}\t{complaint}", row["category"], row["example"])),
            None => count[1] += 1,
        }
    }
    for (category, [all, lowered]) in &counts {
        println!("{category}: {all} forms, {lowered} lowered");
    }
    let sum = |at: usize| counts.values().map(|count| count[at]).sum::<usize>();
    println!("total: {} of {} forms lowered", sum(1), sum(0));
    assert_eq!(rows.len(), 39_470);
    assert!(
        refused.is_empty(),
        "{} are refused:\n{}",
        refused.len(),
        refused.join("\n")
    );
}

/// Types, state spaces, layouts and priorities mean something by their place.
fn has_place(word: &str) -> bool {
    ast::Type::from_word(word).is_some()
        || ast::Space::from_word(word).is_some()
        || matches!(word, "row" | "col")
        || word.starts_with("L2::evict")
}

/// Swaps that the assembler refuses must not be taken for what they are not: types and layouts keep their places.
#[test]
fn modifiers_change_places() {
    let table = unpacked(include_bytes!("data/modifier_order.tsv.zst"));
    let (mut accepted, mut lenient) = (0, Vec::new());
    for row in rows(&table) {
        let swapped = isa::decode(row["swapped_form"]);
        match row["ptxas"] {
            "accepted" => {
                let swapped = swapped.unwrap_or_else(|error| panic!("{}: {error}", row["swapped_form"]));
                accepted += 1;
                let documented = isa::decode(row["documented_form"]).expect("a legal form");
                // Two types that change places make another instruction.
                if documented.types == swapped.types {
                    assert!(std::ptr::eq(documented.line, swapped.line), "{}", row["swapped_form"]);
                }
            }
            _ => {
                let Ok(swapped) = swapped else { continue };
                // Harmless: what means something by its place is understood in the order in which it stands.
                let written: Vec<&str> = row["swapped_form"]
                    .split('.')
                    .skip(1)
                    .filter(|word| has_place(word))
                    .collect();
                let understood: Vec<&str> = swapped.words.iter().copied().filter(|word| has_place(word)).collect();
                let types: Vec<&str> = swapped.types.iter().map(|ty| ty.word()).collect();
                let only = |list: &[&str], types: bool| -> Vec<String> {
                    let is_type = |word: &&&str| ast::Type::from_word(word).is_some() == types;
                    list.iter().filter(is_type).map(|word| (*word).to_owned()).collect()
                };
                assert_eq!(only(&written, false), understood, "{}", row["swapped_form"]);
                assert_eq!(only(&written, true), types, "{}", row["swapped_form"]);
                lenient.push(row["swapped_form"].to_owned());
            }
        }
    }
    println!("{} refused swaps are taken: {}", lenient.len(), lenient.join(" "));
    assert_eq!(accepted, 2238);
}

/// The module that a row of `legacy_1x.tsv` is, or is part of.
fn legacy_text(row: &BTreeMap<&str, &str>) -> String {
    let (version, target) = row["version_target"].split_once(' ').expect("version and target");
    let mut text = row["text"].to_owned();
    for line in [
        "#define N 4",
        "#if 1",
        "#ifdef X",
        "#else",
        "#endif",
        "#include \"x.h\"",
        "#file \"x.cu\"",
        "#line 10 \"x.cu\"",
        "# 10 \"x.cu\"",
        "// a",
        "@@DWARF .byte 0x7d,0x01",
    ] {
        text = text.replace(line, &format!("\n{line}\n"));
    }
    if text.starts_with(".target") {
        return format!(".version {version}\n{text}\n.entry k {{ exit; }}\n");
    }
    let whole = [".entry", ".func", ".version"].iter().any(|word| text.contains(word))
        || row["construct"].starts_with("anonymous");
    if whole {
        return format!(".version {version}\n.target {target}\n{text}\n");
    }
    format!(
        ".version {version}\n.target {target}\n.global .align 16 .f32 gf[16]; .const .align 16 .s32 tbl[16];\n\
         .shared .align 16 .b32 sh[16]; .tex .u32 tex_a;\n.entry kernel {{ .param .align 16 .b8 prm[64];\n\
         .local .align 16 .b8 lc[64]; .reg .u32 r<9>; .reg .s32 s<9>; .reg .b32 b<9>; .reg .u16 h<9>; .reg .u64 d<9>;\n\
         .reg .f32 f<9>; .reg .f64 g<9>; .reg .pred p, q, t;\n{text}\nexit; }}\n"
    )
}

#[test]
fn the_first_specification_is_read_and_lowered() {
    let table = unpacked(include_bytes!("data/legacy_1x.tsv.zst"));
    let mut wrong = Vec::new();
    let mut specified = 0;
    for row in rows(&table) {
        let status = row["document_status"];
        let expected =
            status.starts_with("specified") || status.starts_with("syntax table") || row["ptxas_13_5"] == "accepted";
        let outcome = lowered(&legacy_text(&row), None);
        let name = format!("{} {}: {}", row["spec_1_1"], row["construct"], row["text"]);
        if !expected {
            // Named by 1.0 and gone: the message says so.
            if status.starts_with("removed") && row["construct"] != "membar" {
                match outcome {
                    Outcome::Unlowered(message) if message.contains("PTX 1.") => {}
                    _ => wrong.push(format!("{name}: not refused as a name that is gone")),
                }
            }
            continue;
        }
        specified += 1;
        match outcome {
            Outcome::Lowered => {}
            // A module is a text without a file system around it: the message says to preprocess it first.
            Outcome::Unread(message) if row["text"].starts_with("#include") => assert!(message.contains("#include")),
            Outcome::Unread(message) => wrong.push(format!("{name}: not read: {message}")),
            Outcome::Unlinked(_) if row["text"].contains(".extern") => {}
            Outcome::Unlinked(message) => wrong.push(format!("{name}: not linked: {message}")),
            Outcome::Unlowered(message) => wrong.push(format!("{name}: not lowered: {message}")),
        }
    }
    println!("{specified} constructs that the document specifies or the assembler takes");
    assert!(wrong.is_empty(), "{} go wrong:\n{}", wrong.len(), wrong.join("\n"));
}
