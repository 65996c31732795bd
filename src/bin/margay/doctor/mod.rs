//! `margay doctor CMD…`: why a program does not work under Margay.
//!
//! It looks at the machine and at the program's file, runs the program once with the loader's and the driver's own reports
//! switched on, and looks at the GPU code of whatever was loaded. Each file here looks at one of these and adds what it finds to
//! a [`Report`].

mod code;
mod machine;
mod program;
mod report;
mod trial;

use crate::{Outcome, run::library};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use report::Report;
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

/// Seconds that the program may run.
const PATIENCE: &str = "60";

pub fn command() -> Command {
    Command::new("doctor")
        .about("Find out why a program does not work: its GPU code, the libraries it loads, the machine")
        .arg(
            Arg::new("no-run")
                .long("no-run")
                .action(ArgAction::SetTrue)
                .help("Look at the machine and the program's file alone, and do not start it"),
        )
        .arg(
            Arg::new("timeout")
                .long("timeout")
                .value_name("SECONDS")
                .default_value(PATIENCE)
                .value_parser(value_parser!(u64).range(1..))
                .help("End the program after so long"),
        )
        .arg(
            Arg::new("program")
                .value_name("CMD")
                .num_args(0..)
                .trailing_var_arg(true)
                .allow_hyphen_values(true)
                .value_parser(value_parser!(OsString))
                .help("The program and its arguments; without any, the machine is looked at"),
        )
        .after_help("Exit code: 0 if nothing was found, 1 if something was, 2 for a wrong use.")
}

pub fn run(matches: &ArgMatches) -> Outcome {
    let mut report = Report::default();
    machine::examine(&mut report);
    let library = library();
    match &library {
        Ok(library) => machine::examine_installation(library, &mut report),
        Err(complaint) => report.problem(
            complaint,
            "keep the folders of the package together: the command finds the library by its own place",
        ),
    }
    let words: Vec<OsString> = matches.get_many("program").into_iter().flatten().cloned().collect();
    if let Some((name, arguments)) = words.split_first() {
        let program = program::examine(name, &mut report);
        let mut has_failed = false;
        let mut files: Vec<_> = program.iter().map(|program| program.file.clone()).collect();
        if let (Some(program), Ok(library), false) = (&program, &library, matches.get_flag("no-run")) {
            let patience = Duration::from_secs(*matches.get_one("timeout").unwrap_or(&60));
            let mut trial = trial::run(program, arguments, library, patience).map_err(|error| error.to_string())?;
            trial.loaded.extend(files);
            trial.examine(library, &mut report);
            has_failed = trial.has_failed();
            files = trial.loaded.into_iter().collect();
        } else if let Some(program) = &program {
            files.extend(program.needed.iter().cloned());
        }
        files.sort();
        files.dedup();
        code::examine(&files, &mut report);
        if has_failed && !report.has_problems() {
            report.problem(
                "The program failed, and neither the loader nor the driver says why.",
                "MARGAY_LOG=info,margay::api=debug shows every call with its arguments and result",
            );
        }
    }
    print!("{report}");
    Ok(match report.has_problems() {
        false => ExitCode::SUCCESS,
        true => ExitCode::FAILURE,
    })
}
