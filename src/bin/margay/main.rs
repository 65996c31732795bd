//! `margay`, the command people type.
//!
//! One file per sub-command; each offers `command`, its place in the usage, and `run`, its work. To add one, write its
//! file and its line in [`SUBCOMMANDS`].

mod check;
mod doctor;
mod image;
mod info;
mod isa;
mod place;
mod ptx;
mod ptxas;
mod run;
mod tileiras;

use clap::{ArgMatches, Command};
use std::process::ExitCode;

/// What a sub-command returns: the exit code, or the sentence to complain with.
type Outcome = Result<ExitCode, String>;

type Subcommand = (fn() -> Command, fn(&ArgMatches) -> Outcome);

const SUBCOMMANDS: &[Subcommand] = &[
    (run::command, run::run),
    (check::command, check::run),
    (doctor::command, doctor::run),
    (info::command, info::run),
    (image::command, image::run),
    (ptx::command, ptx::run),
    (isa::command, isa::run),
    (ptxas::command, ptxas::run),
    (tileiras::command, tileiras::run),
];

fn main() -> ExitCode {
    // A reader that has seen enough (`margay image … | head`) ends the command, as it does any other.
    // SAFETY: no other thread runs yet, and SIG_DFL is no handler of ours.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    // Under the name of the program for which it stands in.
    let mut words = std::env::args_os();
    let name = words.next().map(std::path::PathBuf::from).unwrap_or_default();
    match name.file_name().and_then(std::ffi::OsStr::to_str) {
        Some("ptxas") => return ptxas::assemble(words),
        Some("tileiras") => return tileiras::compile(words),
        _ => {}
    }
    let command = Command::new("margay")
        .about("Runs CUDA programs on the CPU")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(SUBCOMMANDS.iter().map(|(command, _)| command()));
    let matches = command.get_matches();
    let Some((name, matches)) = matches.subcommand() else {
        return ExitCode::FAILURE;
    };
    let Some((_, run)) = SUBCOMMANDS.iter().find(|(command, _)| command().get_name() == name) else {
        return ExitCode::FAILURE;
    };
    run(matches).unwrap_or_else(|complaint| {
        eprintln!("margay {name}: {complaint}");
        ExitCode::FAILURE
    })
}
