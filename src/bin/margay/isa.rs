//! `margay isa`: the instruction table for people, and how much of a list of forms it knows.

use crate::Outcome;
use clap::{Arg, ArgMatches, Command};
use cuda::isa::{self, table};
use cuda::ptx::ast::{Item, Statement};
use cuda::ptx::{self, Source};
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

/// The newest version: what a form is read in unless its list says otherwise.
const NEWEST: &str = "9.5";

pub fn command() -> Command {
    Command::new("isa")
        .about("List PTX instructions with their syntax, the PTX version that brought them and the least target")
        .arg(
            Arg::new("name")
                .value_name("NAME")
                .help("Only this instruction (add, cp.async.bulk), or the syntax line of one form (add.rn.f32)"),
        )
        .arg(
            Arg::new("forms")
                .long("forms")
                .value_name("FILE")
                .conflicts_with("name")
                .help("Count the forms of a list that are known, and name the others: one form a line, or a table with a column `example`, `text` or `form`"),
        )
}

pub fn run(matches: &ArgMatches) -> Outcome {
    if let Some(file) = matches.get_one::<String>("forms") {
        return forms(file);
    }
    let mut out = String::new();
    match matches.get_one::<String>("name") {
        None => {
            table::lines().for_each(|line| show(line, "", &mut out));
            let _ = writeln!(out, "\nPTX 1.x alone:\n");
            table::legacy_lines().for_each(|line| show(line, "", &mut out));
        }
        Some(name) => named(name, &mut out)?,
    }
    let written = std::io::stdout().lock().write_all(out.as_bytes());
    written.map_err(|error| format!("standard output: {error}"))?;
    Ok(ExitCode::SUCCESS)
}

fn show(line: &table::Line, note: &str, out: &mut String) {
    let (major, minor) = line.ptx;
    let _ = writeln!(out, "{:<64} PTX {major}.{minor}, sm_{}{note}", line.head(), line.target);
    for group in line.groups() {
        let _ = writeln!(out, "    {group}");
    }
}

/// Lines whose opcode starts with `name`, or the line of a whole opcode.
fn named(name: &str, out: &mut String) -> Result<(), String> {
    let starts = |line: &&table::Line| {
        let rest = line.head().strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '{', ' ']))
    };
    let before = out.len();
    table::lines().filter(starts).for_each(|line| show(line, "", out));
    let legacy = table::legacy_lines().filter(starts);
    legacy.for_each(|line| show(line, ", in PTX 1.x alone", out));
    if out.len() > before {
        return Ok(());
    }
    match isa::decode(name) {
        Ok(form) => show(form.line, "", out),
        Err(error) => match isa::decode_legacy(name) {
            Ok(form) => show(form.line, ", as PTX 1.x has it", out),
            Err(_) => return Err(error.to_string()),
        },
    }
    Ok(())
}

fn forms(file: &str) -> Outcome {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let mut lines = text.lines();
    let heading: Vec<&str> = text.lines().next().unwrap_or_default().split('\t').collect();
    let column = |name: &str| heading.iter().position(|column| *column == name);
    let form = ["example", "text", "form"].iter().find_map(|name| column(name));
    let version = ["max_ptx", "version_target"].iter().find_map(|name| column(name));
    if form.is_some() {
        lines.next();
    }
    let (mut known, mut all) = (0, 0);
    let mut unknown = String::new();
    for line in lines.filter(|line| !line.trim().is_empty() || form.is_some()) {
        let cells: Vec<&str> = line.split('\t').collect();
        let cell = |at: Option<usize>| at.and_then(|at| cells.get(at).copied()).unwrap_or_default();
        let text = if form.is_some() { cell(form) } else { line.trim() };
        let version = cell(version).split(' ').next().filter(|version| !version.is_empty());
        all += 1;
        match is_known(text, version.unwrap_or(NEWEST)) {
            Ok(()) => known += 1,
            Err(why) => {
                let _ = writeln!(unknown, "{text}: {why}");
            }
        }
    }
    println!("{file}: {known} of {all} forms known");
    print!("{unknown}");
    Ok(if known == all {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// An opcode alone, a statement, or the text of a module.
fn is_known(text: &str, version: &str) -> Result<(), String> {
    let number = |text: Option<&str>| text.and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut parts = version.split('.');
    let numbers = (number(parts.next()), number(parts.next()));
    let legacy = numbers.0 == 1;
    let decode = |opcode: &str| isa::decode_in(opcode, numbers);
    let opcode_alone = !text.is_empty()
        && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && !text.contains(char::is_whitespace)
        && !text.contains(';');
    if opcode_alone {
        return decode(text).map(|_| ()).map_err(|error| error.to_string());
    }
    let target = if legacy { "sm_13" } else { "sm_90" };
    let head = format!(".version {version}\n.target {target}\n");
    // What a table has on one line was several: those that start with `#` or `//` end somewhere before a declaration.
    let lines = match text.split_once(" .entry") {
        Some((line, rest)) if line.starts_with(['#', '/']) => format!("{line}\n.entry{rest}"),
        _ => text.to_owned(),
    };
    let as_statement = check(&format!("{head}.entry k()\n{{\n{text}\n}}\n"), decode);
    match as_statement {
        Ok(()) => Ok(()),
        Err(first) => check(&format!("{head}{lines}\n"), decode).map_err(|second| {
            // The more telling of the two.
            if text.starts_with(['.', '#', '/']) {
                second
            } else {
                first
            }
        }),
    }
}

fn check(text: &str, decode: impl Fn(&str) -> Result<isa::Form, isa::DecodeError>) -> Result<(), String> {
    let found = |list: ptx::diagnostic::Diagnostics| list.list[0].message.clone();
    let module = ptx::parse_all(Source::new("form", text)).map_err(found)?;
    let mut work: Vec<&[Statement]> = module
        .items
        .iter()
        .filter_map(|item| match item {
            Item::Function(function) => function.body.as_ref()?.statements().ok(),
            _ => None,
        })
        .collect();
    while let Some(statements) = work.pop() {
        for statement in statements {
            match statement {
                Statement::Block(inner) => work.push(inner),
                Statement::Instruction(instruction) => {
                    decode(&instruction.opcode.text).map_err(|error| error.to_string())?;
                }
                _ => {}
            }
        }
    }
    Ok(())
}
