//! Writes the exported functions and the address table as Rust source.
//!
//! `src/api/exports.rs` includes what is written, `entry_points.rs` in `OUT_DIR`. Between C and a body lie tracing, the
//! common checks and typed pointers, and nothing that depends on the body.

use super::table::{EntryPoint, State};
use std::fmt::Write;

pub fn generate(table: &[EntryPoint]) -> String {
    let mut source = String::new();
    for entry in table {
        if let (Some(state), Some(body)) = (entry.state, &entry.implementation) {
            function(&mut source, entry, state, body, &entry.symbol, "Legacy");
            if let Some(twin) = entry.twin_symbol() {
                function(&mut source, entry, state, body, &twin, "PerThread");
            }
        }
    }
    let mut sorted: Vec<_> = table.iter().collect();
    sorted.sort_by_key(|entry| (entry.name(), entry.since));
    source.push_str("pub(super) static ENTRY_POINTS: &[EntryPoint] = &[\n");
    for entry in sorted {
        let address = |symbol: Option<String>| match symbol {
            Some(symbol) if entry.implementation.is_some() => format!("Some(Address({symbol} as *const c_void))"),
            _ => "None".into(),
        };
        writeln!(
            source,
            "    EntryPoint {{ name: {:?}, symbol: {:?}, chapter: {:?}, refused: {}, since: {}, plain: {}, per_thread: {} }},",
            entry.name(),
            entry.symbol,
            entry.chapter,
            entry.is_refused(),
            entry.since,
            address(Some(entry.symbol.clone())),
            address(entry.twin_symbol()),
        )
        .unwrap();
    }
    source.push_str("];\n");
    source
}

fn function(source: &mut String, entry: &EntryPoint, state: State, body: &str, symbol: &str, default_stream: &str) {
    let arguments: Vec<(String, &str)> = entry
        .arguments
        .iter()
        .map(|(name, of)| (identifier(name), of.as_str()))
        .collect();
    let list = |form: &dyn Fn(&str, &str) -> String| {
        arguments
            .iter()
            .map(|(name, of)| form(name, of))
            .collect::<Vec<_>>()
            .join(", ")
    };
    writeln!(source, "#[unsafe(no_mangle)]").unwrap();
    writeln!(
        source,
        "pub unsafe extern \"C\" fn {symbol}({}) -> CUresult {{",
        list(&|name, of| format!("{name}: {of}"))
    )
    .unwrap();
    for (name, of) in &arguments {
        if let Some(wrapper) = pointer(of) {
            writeln!(
                source,
                "    // SAFETY: a C caller passes a pointer that is null or good for what the manual says."
            )
            .unwrap();
            writeln!(source, "    let {name} = unsafe {{ {wrapper}::from_c({name}) }};").unwrap();
        }
    }
    if state == State::Any {
        // One of these comes first: the log must know by then what it is to show.
        writeln!(source, "    crate::trace::init();").unwrap();
    }
    let shown = list(&|name, _| format!("({:?}, &{name})", name.trim_start_matches("r#")));
    writeln!(
        source,
        "    call::enter({symbol:?}, |__log| call::show(__log, &[{shown}]), || {{"
    )
    .unwrap();
    let mut passed = Vec::new();
    let refused = entry.is_refused();
    match state {
        State::Any => {}
        State::Initialised => writeln!(source, "        call::initialised()?;").unwrap(),
        State::Context => {
            writeln!(source, "        let __context = call::context()?;").unwrap();
            passed.push("&__context".to_string());
        }
    }
    if refused {
        passed.push(format!("{symbol:?}"));
    } else if entry.twin.is_some() {
        passed.push(format!("DefaultStream::{default_stream}"));
    }
    if !refused {
        passed.extend(arguments.iter().map(|(name, _)| name.clone()));
    }
    writeln!(source, "        {body}({})\n    }})\n}}\n", passed.join(", ")).unwrap();
}

/// Pointers to something of known type reach the body as checked pointers; `void *` stays an address.
fn pointer(of: &str) -> Option<&'static str> {
    match of.split_once(' ') {
        Some((_, "c_void")) => None,
        Some(("*mut", _)) => Some("Out"),
        Some(("*const", _)) => Some("In"),
        _ => None,
    }
}

/// C argument names that are Rust keywords.
pub fn identifier(name: &str) -> String {
    match name {
        "type" | "ref" | "in" | "fn" | "mod" | "move" | "match" | "use" | "where" | "loop" => format!("r#{name}"),
        _ => name.into(),
    }
}
