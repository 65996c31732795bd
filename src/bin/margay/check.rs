//! `margay check CMD…`: runs a program and counts what is found wrong in its kernels and calls.
//!
//! The options are those of NVIDIA's compute-sanitizer, as far as there is what they ask for. The library finds and reports
//! (`MARGAY_CHECK`); this command waits for the program and sums up.

mod formats;
mod whole;

use crate::Outcome;
use crate::run::{introduce, library, not_started, program_and_arguments, tell_of_other_drivers};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use serde_json::Value;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode, ExitStatus};

/// Each tool with its word of `MARGAY_CHECK`.
const TOOLS: [(&str, &str); 5] = [
    ("memcheck", "memory"),
    ("racecheck", "race"),
    ("initcheck", "init"),
    ("synccheck", "sync"),
    ("fpcheck", "fp"),
];

pub fn command() -> Command {
    Command::new("check")
        .about("Run a program and look for stray accesses, wrong frees, leaks and races")
        .arg(
            Arg::new("tool")
                .long("tool")
                .value_name("TOOL")
                .value_parser(TOOLS.map(|(tool, _)| tool))
                .action(ArgAction::Append)
                .value_delimiter(',')
                .default_value("memcheck")
                .help("memcheck: accesses of kernels beyond allocations and of freed memory, and wrong frees. racecheck: accesses of two threads in no order. initcheck: values that nobody has written, where they matter. synccheck: misused barriers. fpcheck: where numbers go wrong"),
        )
        .arg(
            Arg::new("benign")
                .long("benign")
                .action(ArgAction::SetTrue)
                .help("racecheck: also races that programs get away with, such as two stores of one value. --seeds: also sums of floats by atomics"),
        )
        .arg(
            Arg::new("seeds")
                .long("seeds")
                .value_name("N")
                .value_parser(value_parser!(u32).range(2..=65536))
                .help("Run each launch in N orders of its threads, and compare what it leaves"),
        )
        .arg(
            Arg::new("whole")
                .long("whole")
                .requires("seeds")
                .action(ArgAction::SetTrue)
                .help("--seeds: run the whole program in N orders instead, and compare output and exit status"),
        )
        .arg(
            Arg::new("fp-kinds")
                .long("fp-kinds")
                .value_name("KIND")
                .value_delimiter(',')
                .action(ArgAction::Append)
                .help("fpcheck: what counts: nan, inf, subnormal, cancellation, or cancellation=BITS; nan and inf unless given"),
        )
        .arg(
            Arg::new("leak-check")
                .long("leak-check")
                .value_name("HOW")
                .value_parser(["full", "no"])
                .default_value("no")
                .help("full: also memory that is not freed by the end of its context, or of the process"),
        )
        .arg(
            Arg::new("format")
                .long("format")
                .value_name("FORMAT")
                .value_parser(["json", "sarif"])
                .requires("output")
                .help("Write what was found to --output as data, too: JSON, or SARIF 2.1.0 for code scanning"),
        )
        .arg(
            Arg::new("output")
                .long("output")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .requires("format")
                .help("The file for --format"),
        )
        .arg(
            Arg::new("print-limit")
                .long("print-limit")
                .value_name("N")
                .value_parser(value_parser!(u64))
                .default_value("100")
                .help("Reports that each process prints; 0: all. What comes after that is counted"),
        )
        .arg(
            Arg::new("suppressions")
                .long("suppressions")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("What is not to be told of, a line each"),
        )
        .arg(
            Arg::new("generate-suppressions")
                .long("generate-suppressions")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("Write a line for --suppressions for each thing that was found"),
        )
        .arg(
            Arg::new("error-exitcode")
                .long("error-exitcode")
                .value_name("CODE")
                .value_parser(value_parser!(u8))
                .default_value("1")
                .help("Exit code if something is found; 0: the program's own, whatever is found"),
        )
        .arg(program_and_arguments())
        .after_help("Programs that start themselves take MARGAY_CHECK=memory,leaks instead.")
}

pub fn run(matches: &ArgMatches) -> Outcome {
    let mut given = matches.get_many::<OsString>("program").into_iter().flatten();
    let program = given.next().ok_or("no program given")?;
    let list = List::make().map_err(|error| format!("no file to count in: {error}"))?;
    let words = looked_for(matches)?;
    let settings = settings(matches)?;
    if let (true, Some(seeds)) = (matches.get_flag("whole"), matches.get_one::<u32>("seeds")) {
        return whole::run(
            matches,
            program,
            &given.collect::<Vec<_>>(),
            (&list, &words, &settings),
            *seeds,
        );
    }
    let mut command = process::Command::new(program);
    command.args(given);
    let library = library()?;
    tell_of_other_drivers("check", &library);
    introduce(&mut command, &library, false)?;
    command
        .env("MARGAY_CHECK", words.join(","))
        .env("MARGAY_CHECK_LOG", &list.0)
        .envs(settings);
    // Signals from the terminal are the program's: it ends, and then the sum is due.
    // SAFETY: to ignore a signal runs no code; the program gets the default back.
    unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
    // SAFETY: the closure makes one system call, as is allowed between fork and exec.
    unsafe {
        std::os::unix::process::CommandExt::pre_exec(&mut command, || {
            libc::signal(libc::SIGINT, libc::SIG_DFL);
            Ok(())
        })
    };
    let status = match command.status() {
        Ok(status) => status,
        Err(error) => return Ok(not_started("check", program, &error)),
    };
    let found = findings(&list.read());
    conclude(matches, &found, own_code(status))
}

/// Variables for the library besides what to look for.
fn settings(matches: &ArgMatches) -> Result<Vec<(&'static str, OsString)>, String> {
    let mut settings = Vec::new();
    if let Some(limit) = matches.get_one::<u64>("print-limit") {
        settings.push(("MARGAY_CHECK_LIMIT", limit.to_string().into()));
    }
    if let Some(file) = matches.get_one::<PathBuf>("suppressions") {
        // The program may change its folder before it uses the driver.
        let file = std::fs::canonicalize(file).map_err(|error| format!("{}: {error}", file.display()))?;
        settings.push(("MARGAY_CHECK_SUPPRESSIONS", file.into()));
    }
    Ok(settings)
}

/// As shells have it: 128 and the signal.
fn own_code(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => code as u8,
        (None, signal) => 128_u8.wrapping_add(signal.unwrap_or(0) as u8),
    }
}

/// Says what was found, and writes it where it is asked for; `own` is the program's exit code.
fn conclude(matches: &ArgMatches, found: &[Value], own: u8) -> Outcome {
    let sum = sum(found);
    eprintln!("margay check: {sum}");
    let write = |path: &PathBuf, text: String| {
        std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    if let (Some(format), Some(path)) = (
        matches.get_one::<String>("format"),
        matches.get_one::<PathBuf>("output"),
    ) {
        let data = match format.as_str() {
            "sarif" => formats::sarif(found, &std::env::current_dir().unwrap_or_default()),
            _ => formats::json(found, &sum),
        };
        write(path, format!("{data:#}\n"))?;
    }
    if let Some(path) = matches.get_one::<PathBuf>("generate-suppressions") {
        write(path, formats::suppressions(found))?;
    }
    let code = *matches.get_one::<u8>("error-exitcode").unwrap_or(&1);
    Ok(ExitCode::from(if found.is_empty() || code == 0 { own } else { code }))
}

/// The findings of the list that the library writes, an object on each line. A line that was cut off by the end of its process
/// is none.
fn findings(list: &str) -> Vec<Value> {
    let records = list.lines().filter_map(|line| serde_json::from_str(line).ok());
    records.filter(|record: &Value| record["record"] == "finding").collect()
}

/// The words of `MARGAY_CHECK`.
fn looked_for(matches: &ArgMatches) -> Result<Vec<String>, &'static str> {
    let tools = matches.get_many::<String>("tool").into_iter().flatten();
    // Orders by themselves, unless somebody asks for more: what a tool adds to a kernel's code is drawn for as well, and then
    // the seed of a report repeats its order under that tool alone.
    let orders_only = matches.contains_id("seeds") && matches.value_source("tool") == Some(ValueSource::DefaultValue);
    let mut words: Vec<String> = tools
        .filter(|_| !orders_only)
        .filter_map(|tool| TOOLS.iter().find(|(name, _)| name == tool))
        .map(|(_, word)| (*word).to_owned())
        .collect();
    let seeds = matches.get_one::<u32>("seeds").filter(|_| !matches.get_flag("whole"));
    if matches.get_flag("benign") {
        if !words.iter().any(|word| word == "race") && seeds.is_none() {
            return Err("--benign is an option of --tool racecheck and of --seeds");
        }
        words.push("benign".into());
    }
    if let Some(kinds) = matches.get_many::<String>("fp-kinds") {
        let fp = words.iter_mut().find(|word| word.as_str() == "fp");
        let fp = fp.ok_or("--fp-kinds is an option of --tool fpcheck")?;
        let mut all = fp.clone();
        for kind in kinds {
            if !is_fp_kind(kind) {
                return Err("--fp-kinds takes nan, inf, subnormal, cancellation and cancellation=BITS (1 to 24)");
            }
            all = format!("{all}:{kind}");
        }
        *fp = all;
    }
    words.extend(seeds.map(|seeds| format!("seeds:{seeds}")));
    if matches.get_one::<String>("leak-check").is_some_and(|how| how == "full") {
        words.push("leaks".into());
    }
    Ok(words)
}

fn is_fp_kind(kind: &str) -> bool {
    let bits = kind.strip_prefix("cancellation=").map(str::parse::<u32>);
    match bits {
        Some(bits) => bits.is_ok_and(|bits| (1..=24).contains(&bits)),
        None => matches!(kind, "nan" | "inf" | "subnormal" | "cancellation"),
    }
}

/// `1 kernel failed, 2 wrong frees`
fn sum(found: &[Value]) -> String {
    let count = |kind: &str| -> u64 {
        let of_kind = found.iter().filter(|finding| finding["kind"] == kind);
        of_kind.map(|finding| finding["count"].as_u64().unwrap_or(1)).sum()
    };
    let words = [
        (count("kernel"), "kernel failed", "kernels failed"),
        (count("free"), "wrong free", "wrong frees"),
        (count("leak"), "allocation was not freed", "allocations were not freed"),
        (count("race"), "race", "races"),
        (count("init"), "uninitialised value", "uninitialised values"),
        (count("sync"), "misused barrier", "misused barriers"),
        (
            count("whole"),
            "output that depends on the order of threads",
            "outputs that depend on the order of threads",
        ),
        (
            count("order"),
            "launch whose result depends on the order of threads",
            "launches whose results depend on the order of threads",
        ),
        (count("fp"), "number gone wrong", "numbers gone wrong"),
    ];
    let parts = words.iter().filter(|(n, ..)| *n > 0);
    let parts: Vec<String> = parts
        .map(|(n, one, many)| format!("{n} {}", if *n == 1 { one } else { many }))
        .collect();
    match parts.is_empty() {
        true => "nothing found".into(),
        false => parts.join(", "),
    }
}

/// The file to which all processes of the program add what they find; it goes in the end.
struct List(PathBuf);

impl List {
    fn make() -> std::io::Result<List> {
        let path = std::env::temp_dir().join(format!("margay-check-{}", process::id()));
        std::fs::File::create_new(&path)?;
        Ok(List(path))
    }

    fn read(&self) -> String {
        std::fs::read_to_string(&self.0).unwrap_or_default()
    }
}

impl Drop for List {
    fn drop(&mut self) {
        // What cannot be removed is left to whoever cleans the folder for such files.
        let _ = std::fs::remove_file(Path::new(&self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_counted_by_their_kind() {
        let sum = |list: &str| sum(&findings(list));
        assert_eq!(sum(""), "nothing found");
        assert_eq!(sum("{\"record\":\"process\",\"pid\":1}\n"), "nothing found");
        let kernel = "{\"record\":\"finding\",\"kind\":\"kernel\",\"count\":1}\n";
        assert_eq!(sum(kernel), "1 kernel failed");
        let leaks = "{\"record\":\"finding\",\"kind\":\"leak\",\"count\":2}\n";
        let free = "{\"record\":\"finding\",\"kind\":\"free\",\"count\":1}\n";
        assert_eq!(
            sum(&format!("{leaks}{free}{leaks}{{\"record")),
            "1 wrong free, 4 allocations were not freed"
        );
    }
}
