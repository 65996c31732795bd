//! Writes `cuda.h`.
//!
//! cbindgen reads a Rust file made for it: the type files with `c_enum!` and `opaque!` turned into plain declarations, and
//! one declaration per function. As in NVIDIA's header a function is declared by its plain name, and macros lead from
//! there to the symbol of the newest version, or to its per-thread twin.

use super::table::EntryPoint;
use super::wrappers::identifier;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Plain names that do not stand for their newest version: source compatibility kept an older one.
/// The first four are those of NVIDIA's header; programs name the newer symbol outright.
const KEPT: &[(&str, &str)] = &[
    ("cuCtxGetDevice", "cuCtxGetDevice"),
    ("cuCtxSynchronize", "cuCtxSynchronize"),
    ("cuLaunchHostFunc", "cuLaunchHostFunc"),
    ("cuStreamGetCtx", "cuStreamGetCtx"),
    ("cuGraphNodeSetParams", "cuGraphNodeSetParams"),
    ("cuGraphAddNode", "cuGraphAddNode_v2"),
    ("cuMulticastBindMem", "cuMulticastBindMem"),
    ("cuMulticastBindAddr", "cuMulticastBindAddr"),
];

/// Plain names that stand for another function altogether, as in NVIDIA's header.
const RENAMED: &[(&str, &str)] = &[("cuGraphInstantiate", "cuGraphInstantiateWithFlags")];

fn renamed(name: &str) -> Option<&'static str> {
    RENAMED.iter().find(|(known, _)| *known == name).map(|(_, to)| *to)
}

/// What stands before the declarations: macros. `prologue` is written by hand.
pub fn macros(prologue: &str, table: &[EntryPoint]) -> String {
    let mut text = prologue.trim_end().to_string();
    text.push_str("\n\n/* Plain names stand for the newest version of a function. */\n");
    let defaults = defaults(table);
    for (name, entry) in &defaults {
        let symbol = renamed(name).unwrap_or(&entry.symbol);
        if entry.twin.is_none() && *name != symbol {
            writeln!(text, "#define {name} {symbol}").unwrap();
        }
    }
    text.push_str("\n#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM)\n");
    text.push_str("/* Stream 0 stands for the default stream of the calling thread. */\n");
    for entry in exported(table) {
        if let Some(twin) = entry.twin_symbol() {
            let is_default = defaults[entry.name()].symbol == entry.symbol;
            let newer = entry.since > defaults[entry.name()].since;
            if is_default {
                writeln!(text, "#define {} {twin}", entry.name()).unwrap();
            } else if newer {
                writeln!(text, "#define {} {twin}", entry.symbol).unwrap();
            }
        }
    }
    text.push_str("#else\n");
    for (name, entry) in &defaults {
        if entry.twin.is_some() && *name != entry.symbol {
            writeln!(text, "#define {name} {}", entry.symbol).unwrap();
        }
    }
    text.push_str("#endif");
    text
}

/// The Rust source that cbindgen reads.
pub fn source(types: &[String], table: &[EntryPoint]) -> String {
    let mut source = String::new();
    for file in types {
        source.push_str(&plain(file));
    }
    let defaults = defaults(table);
    for entry in exported(table) {
        let is_default = defaults[entry.name()].symbol == entry.symbol && renamed(entry.name()).is_none();
        // The plain name is a macro for another version: this symbol could not be declared.
        if !is_default && entry.name() == entry.symbol {
            continue;
        }
        let name = if is_default { entry.name() } else { &entry.symbol };
        let arguments: Vec<String> = entry
            .arguments
            .iter()
            .map(|(name, of)| format!("{}: {of}", identifier(name)))
            .collect();
        writeln!(
            source,
            "#[no_mangle]\npub extern \"C\" fn {name}({}) -> CUresult {{}}",
            arguments.join(", ")
        )
        .unwrap();
    }
    source
}

/// The names of all types, so that cbindgen writes those too that no function mentions (flags are passed as integers).
pub fn type_names(source: &str) -> Vec<String> {
    source
        .lines()
        .filter_map(|line| line.strip_prefix("pub ")?.split_once(' '))
        .filter(|(kind, _)| matches!(*kind, "struct" | "enum" | "union" | "type"))
        .map(|(_, rest)| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect())
        .collect()
}

/// Gives unnamed members their C form: `Name_anonymous anonymous;` becomes the members of `Name_anonymous`, unnamed.
pub fn unname(header: &str) -> String {
    let mut header = header.to_string();
    while let Some(at) = header.find(" anonymous;\n") {
        let line = header[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let of = header[line..at]
            .trim()
            .trim_start_matches("union ")
            .trim_start_matches("struct ")
            .to_string();
        let (start, body_start, kind) = ["union", "struct"]
            .iter()
            .find_map(|kind| {
                let opening = format!("typedef {kind} {of} {{\n");
                header.find(&opening).map(|start| (start, start + opening.len(), *kind))
            })
            .unwrap_or_else(|| panic!("`{of}` has no definition"));
        let closing = format!("}} {of};\n");
        let body_end = body_start + header[body_start..].find(&closing).expect("a definition ends");
        let body: String = header[body_start..body_end]
            .lines()
            .map(|line| format!("  {line}\n"))
            .collect();
        let member = format!("  {kind} {{\n{body}  }};\n");
        header.replace_range(line..at + " anonymous;\n".len(), &member);
        let end = body_end + closing.len();
        header.replace_range(start..end, "");
    }
    header
}

/// Chapters that NVIDIA declares in headers of their own (`cudaGL.h`, `cudaEGL.h`, `cudaVDPAU.h`).
const ELSEWHERE: &[&str] = &["opengl", "egl", "vdpau"];

/// The implemented lines.
fn exported(table: &[EntryPoint]) -> impl Iterator<Item = &EntryPoint> {
    let here = |entry: &&EntryPoint| !ELSEWHERE.contains(&entry.chapter.as_str());
    table.iter().filter(|entry| entry.implementation.is_some()).filter(here)
}

/// Which version a plain name stands for.
fn defaults(table: &[EntryPoint]) -> BTreeMap<&str, &EntryPoint> {
    let mut defaults: BTreeMap<&str, &EntryPoint> = BTreeMap::new();
    for entry in exported(table) {
        let kept = KEPT.iter().find(|(name, _)| *name == entry.name());
        let better = match (kept, defaults.get(entry.name())) {
            (Some((_, symbol)), _) => entry.symbol == *symbol,
            (None, Some(other)) => entry.since > other.since,
            (None, None) => true,
        };
        if better {
            defaults.insert(entry.name(), entry);
        }
    }
    defaults
}

/// Undoes the macros of `types/mod.rs`.
fn plain(file: &str) -> String {
    let mut source = String::new();
    let mut within = "";
    for line in file.lines() {
        match (within, line) {
            ("", "c_enum! {") => within = "c_enum",
            ("", "opaque! {") => within = "opaque",
            ("", line) if line.starts_with("//!") || line.starts_with("use ") => {}
            ("", line) => writeln!(source, "{line}").unwrap(),
            (_, "}") => within = "",
            ("c_enum", line) => {
                let line = line.strip_prefix("    ").unwrap_or(line);
                match line.split_once(": ") {
                    Some((head, _)) if head.starts_with("pub enum ") => {
                        writeln!(source, "#[repr(C)]\n{head} {{").unwrap();
                    }
                    _ => writeln!(source, "{line}").unwrap(),
                }
            }
            ("opaque", line) => writeln!(source, "pub struct {}(u8);", line.trim().trim_end_matches(',')).unwrap(),
            (other, _) => unreachable!("{other}"),
        }
    }
    source
}
