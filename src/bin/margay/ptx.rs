//! `margay ptx check FILE…`, `margay ptx print FILE`: what is wrong with PTX texts, and how the reader understands one.

use crate::Outcome;
use clap::{Arg, ArgMatches, Command};
use cuda::ptx;
use cuda::ptx::ast::{Item, Module};
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

pub fn command() -> Command {
    let file = || Arg::new("file").value_name("FILE").required(true);
    Command::new("ptx")
        .about("Check PTX texts, or print them as they are understood")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("check")
                .about("Read PTX files completely and report everything that is wrong with them")
                .arg(file().num_args(1..)),
        )
        .subcommand(
            Command::new("print")
                .about("Print a PTX file from its syntax tree: constants folded, comments gone")
                .arg(file()),
        )
}

pub fn run(matches: &ArgMatches) -> Outcome {
    let (print, matches) = match matches.subcommand() {
        Some(("print", matches)) => (true, matches),
        Some((_, matches)) => (false, matches),
        None => return Err("check or print?".to_owned()),
    };
    let mut code = ExitCode::SUCCESS;
    for file in matches.get_many::<String>("file").into_iter().flatten() {
        let bytes = std::fs::read(file).map_err(|error| format!("{file}: {error}"))?;
        match ptx::parse_all(ptx::source_from_bytes(file, &bytes)) {
            Ok(module) if print => {
                let written = write!(std::io::stdout().lock(), "{module}");
                written.map_err(|error| format!("standard output: {error}"))?;
            }
            Ok(module) => println!("{file}: {}", summary(&module)),
            Err(found) => {
                let coloured = std::io::stderr().is_terminal();
                eprint!("{}", if coloured { found.render() } else { found.render_plain() });
                code = ExitCode::FAILURE;
            }
        }
    }
    Ok(code)
}

fn summary(module: &Module) -> String {
    let (mut kernels, mut functions, mut variables) = (0, 0, 0);
    for item in &module.items {
        match item {
            Item::Function(function) if function.body.is_none() => {}
            Item::Function(function) if function.entry => kernels += 1,
            Item::Function(_) => functions += 1,
            Item::Variable(_) => variables += 1,
            Item::Alias { .. } | Item::File { .. } | Item::Section(_) | Item::Pragma(_) => {}
        }
    }
    let count = |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    let target: Vec<&str> = module.target.iter().map(|name| &*name.text).collect();
    let (major, minor) = module.version;
    format!(
        "PTX {major}.{minor} for {}: {}, {}, {}",
        target.join(", "),
        count(kernels, "kernel"),
        count(functions, "function"),
        count(variables, "variable")
    )
}
