//! `margay info`: what this Margay is, and every variable that steers it.

use crate::{Outcome, place::find_library};
use clap::{Arg, ArgAction, ArgMatches, Command};
use cuda::api::{self, State};
use cuda::config::{self, VARIABLES};
use std::process::ExitCode;

pub fn command() -> Command {
    let about = "Show version, library, machine and the environment variables with their values";
    let api = Arg::new("api")
        .long("api")
        .action(ArgAction::SetTrue)
        .help("List every function of the driver API with its state");
    Command::new("info").about(about).arg(api)
}

pub fn run(matches: &ArgMatches) -> Outcome {
    if matches.get_flag("api") {
        list();
        return Ok(ExitCode::SUCCESS);
    }
    let config = config::get();
    println!("Margay {}", env!("CARGO_PKG_VERSION"));
    match find_library() {
        Ok(path) => println!("library   {}", path.display()),
        Err(_) => println!("library   not found beside this command"),
    }
    println!("machine   {} worker threads, {}", config.threads, vector_units());
    match cuda::simt::compiler() {
        Ok(version) => println!("compiler  {version}"),
        Err(why) => println!("compiler  none, so that kernels are interpreted: {why}"),
    }
    println!();
    println!("Environment variables:");
    for variable in VARIABLES {
        let set = std::env::var(variable.name)
            .ok()
            .filter(|value| !value.trim().is_empty());
        let value = match &set {
            Some(value) => format!("{value} (set)"),
            None if variable.default.is_empty() => "unset (default)".into(),
            None => format!("{} (default)", variable.default),
        };
        println!("  {:16} {value}", variable.name);
        println!("  {:16}   {}", "", variable.meaning);
    }
    for problem in &config.problems {
        eprintln!("margay info: {problem}");
    }
    Ok(ExitCode::SUCCESS)
}

/// A line for each function: symbol, since which CUDA, state, chapter of the manual; then how many there are of each.
fn list() {
    let states = [
        (State::Implemented, "implemented"),
        (State::Refused, "answers NOT_SUPPORTED"),
        (State::Missing, "not implemented"),
    ];
    let mut counts = [0; 3];
    for function in api::entry_points() {
        let which = states
            .iter()
            .position(|(state, _)| *state == function.state)
            .unwrap_or(0);
        counts[which] += 1;
        println!(
            "{:48} {:>4}.{} {:22} {}",
            function.symbol,
            function.since / 1000,
            function.since % 1000 / 10,
            states[which].1,
            function.chapter.replace('_', " "),
        );
    }
    let total: i32 = counts.iter().sum();
    println!();
    println!(
        "{total} functions: {} {}, {} {}, {} {}",
        counts[0], states[0].1, counts[1], states[1].1, counts[2], states[2].1
    );
}

#[cfg(target_arch = "x86_64")]
pub fn vector_units() -> String {
    let features = [
        ("AVX2", is_x86_feature_detected!("avx2")),
        ("FMA", is_x86_feature_detected!("fma")),
        ("F16C", is_x86_feature_detected!("f16c")),
        ("AVX-512F", is_x86_feature_detected!("avx512f")),
        ("AVX-512BW", is_x86_feature_detected!("avx512bw")),
        ("AVX-512DQ", is_x86_feature_detected!("avx512dq")),
        ("AVX-512VL", is_x86_feature_detected!("avx512vl")),
    ];
    let present: Vec<_> = features
        .iter()
        .filter(|(_, present)| *present)
        .map(|(name, _)| *name)
        .collect();
    if present.is_empty() {
        "no vector units beyond the baseline".into()
    } else {
        present.join(" ")
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub fn vector_units() -> String {
    format!("{} baseline", std::env::consts::ARCH)
}
