//! Which forms of the catalogue (`tests/data/forms.tsv.zst`) the cases of `tests/ptx` execute, in the families that are no
//! products of types and modifiers: a form counts when every opcode of its example, or the declaration of its parameter,
//! stands in a case. `tests/forms` and `tests/sweeps` count the others.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

/// Families, with the number of forms that no case has: it may fall, never rise.
const FAMILIES: &[(&str, usize)] = &[
    ("address", 0),
    ("barrier", 0),
    ("async", 0),
    ("bulk", 0),
    ("mbarrier", 0),
    ("cache", 0),
    ("cluster", 0),
    ("fence", 0),
    ("flow", 0),
    ("guard", 0),
    ("misc", 0),
    ("operand", 0),
    ("param", 0),
    ("sreg", 0),
];

fn cases(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("tests/ptx is there").flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => cases(&path, into),
            false if path.extension().is_some_and(|extension| extension == "ptx") => into.push(path),
            false => {}
        }
    }
}

/// The words that may be opcodes: what stands at the start of a statement, behind its guard and labels.
fn opcodes(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for statement in text.split([';', '{', '}', '\n']) {
        let mut words = statement.split_whitespace().peekable();
        while words
            .peek()
            .is_some_and(|word| word.ends_with(':') || word.starts_with('@'))
        {
            words.next();
        }
        if let Some(word) = words.next()
            && word.starts_with(|c: char| c.is_ascii_lowercase())
            && word
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '_'))
            && !word.starts_with("prototype")
        {
            found.push(word.to_owned());
        }
    }
    found
}

/// Parameters as declared: the words before the name, and whether it is an array.
fn parameters(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for piece in text.split(".param ").skip(1) {
        let end = piece.find([',', ')', ';']).unwrap_or(piece.len());
        let words: Vec<&str> = piece[..end].split_whitespace().collect();
        if let [types @ .., name] = &words[..]
            && types.first().is_some_and(|word| word.starts_with('.'))
        {
            let array = if name.contains('[') { " []" } else { "" };
            found.push(format!("{}{array}", types.join(" ")));
        }
    }
    found
}

#[test]
fn the_cases_execute_the_forms_of_small_families() {
    let mut files = Vec::new();
    cases(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ptx"), &mut files);
    let (mut executed, mut declared) = (HashSet::new(), HashSet::new());
    for file in files {
        let text = std::fs::read_to_string(file).expect("readable");
        let code: Vec<&str> = text.lines().filter(|line| !line.starts_with("//")).collect();
        let code = code.join("\n");
        executed.extend(opcodes(&code));
        declared.extend(parameters(&code));
    }
    let table = zstd::decode_all(&include_bytes!("data/forms.tsv.zst")[..]).expect("intact");
    let table = String::from_utf8(table).expect("text");
    let mut lines = table.lines();
    let names: Vec<&str> = lines.next().expect("a heading").split('\t').collect();
    let column = |name: &str| names.iter().position(|one| *one == name).expect("a column");
    let (category, example, kind) = (column("category"), column("example"), column("kind"));
    let mut counts = BTreeMap::<&str, (usize, Vec<&str>)>::new();
    for line in lines {
        let row: Vec<&str> = line.split('\t').collect();
        let Some((family, _)) = FAMILIES.iter().find(|(family, _)| *family == row[category]) else {
            continue;
        };
        if row[kind] != "semantic" {
            continue;
        }
        let (all, missing) = counts.entry(family).or_default();
        *all += 1;
        let there = match *family {
            "param" => parameters(row[example]).iter().all(|one| declared.contains(one)),
            _ => opcodes(row[example]).iter().all(|one| executed.contains(one)),
        };
        if !there {
            missing.push(row[example]);
        }
    }
    let mut wrong = Vec::new();
    for (family, allowed) in FAMILIES {
        let (all, missing) = counts.get(family).expect("a family of the catalogue");
        println!("{family}: {} of {all} forms executed", all - missing.len());
        missing
            .iter()
            .for_each(|example| println!("    not executed: {example}"));
        if missing.len() > *allowed {
            wrong.push(format!("{family}: {} missing, {allowed} allowed", missing.len()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
