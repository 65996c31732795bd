//! The options of `margay check`, and what they mean for the library.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use cuda::sanitizer::filter::{Names, Processes};

use super::others;
use crate::run::program_and_arguments;

/// Each tool with its word of `MARGAY_CHECK`.
const TOOLS: [(&str, &str); 5] = [
    ("memcheck", "memory"),
    ("racecheck", "race"),
    ("initcheck", "init"),
    ("synccheck", "sync"),
    ("fpcheck", "fp"),
];

pub fn command() -> Command {
    others::add(own())
}

/// The command without what [`others`] answers.
pub fn own() -> Command {
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
            Arg::new("show-backtrace")
                .long("show-backtrace")
                .value_name("WHOSE")
                .value_parser(["yes", "host", "device", "no"])
                .help("Whose call stacks reports show: of the program where it launched, allocated and freed (host), of threads in kernels (device), or both (yes, the default)"),
        )
        .arg(
            Arg::new("num-callers-host")
                .long("num-callers-host")
                .value_name("N")
                .value_parser(value_parser!(u16))
                .help("Calls of the program that each host backtrace shows, from the innermost on; 0, the default: all"),
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
        .args(selection())
        .arg(
            Arg::new("strip-paths")
                .long("strip-paths")
                .value_name("WHETHER")
                .value_parser(["yes", "no"])
                .default_value("no")
                .help("yes: reports name files of the source without their folders"),
        )
        .arg(
            Arg::new("force-blocking-launches")
                .long("force-blocking-launches")
                .action(ArgAction::SetTrue)
                .help("Each launch ends before its call comes back"),
        )
        .arg(
            Arg::new("log-file")
                .long("log-file")
                .value_name("FILE")
                .help("Write reports and the sum to a file; %p in its name is this command's process id, %q{NAME} a variable of the environment, %% a percent sign"),
        )
        .arg(
            Arg::new("quiet")
                .long("quiet")
                .short('q')
                .action(ArgAction::SetTrue)
                .help("Say nothing if nothing is found"),
        )
        .arg(program_and_arguments())
        .after_help("Programs that start themselves take MARGAY_CHECK=memory,leaks instead.")
}

/// Which processes, kernels and launches are looked at.
fn selection() -> Vec<Arg> {
    let number = |name: &'static str, short: char| {
        Arg::new(name)
            .long(name)
            .short(short)
            .value_name("N")
            .value_parser(value_parser!(u64))
            .default_value("0")
    };
    let names = |name: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name("KEY=NAME")
            .action(ArgAction::Append)
    };
    vec![
        names("kernel-name")
            .visible_alias("kernel-regex")
            .alias("filter")
            .help("Look at these kernels alone: kne=NAME, kns=PART, several with commas, or regex=EXPRESSION; may be given again"),
        names("kernel-name-exclude")
            .visible_alias("kernel-regex-exclude")
            .help("Do not look at these kernels"),
        number("launch-skip", 's').help("Launches of such kernels that pass before one is looked at"),
        number("launch-count", 'c').help("Launches of such kernels that are looked at; 0: all"),
        Arg::new("target-processes")
            .long("target-processes")
            .value_name("WHICH")
            .value_parser(["all", "application-only"])
            .default_value("all")
            .help("application-only: not the processes that the program starts"),
        Arg::new("target-processes-filter")
            .long("target-processes-filter")
            .value_name("NAME")
            .action(ArgAction::Append)
            .help("Look at processes whose program's file is called so, several with commas, or as regex:EXPRESSION has it"),
        Arg::new("require-cuda-init")
            .long("require-cuda-init")
            .value_name("WHETHER")
            .value_parser(["yes", "no"])
            .default_value("yes")
            .help("yes: it is an error if the program does not use CUDA"),
    ]
}

/// What somebody asks for.
pub struct Asked {
    /// The words of `MARGAY_CHECK`.
    pub words: Vec<String>,
    /// Variables for the library besides.
    pub settings: Vec<(&'static str, OsString)>,
    /// Not every launch is to be looked at.
    pub filters: bool,
    /// Nor every process.
    some_processes: bool,
    pub requires_cuda: bool,
}

impl Asked {
    /// For a sentence about processes.
    pub fn of_those(&self) -> &'static str {
        if self.some_processes {
            "that is looked at has "
        } else {
            "of the program has "
        }
    }
}

/// # Errors
/// What does not fit together, or is not understood.
pub fn asked(matches: &ArgMatches, log: Option<&Path>) -> Result<Asked, String> {
    let words = looked_for(matches)?;
    let mut settings: Vec<(&'static str, OsString)> = Vec::new();
    if let Some(limit) = matches.get_one::<u64>("print-limit") {
        settings.push(("MARGAY_CHECK_LIMIT", limit.to_string().into()));
    }
    if let Some(whose) = matches.get_one::<String>("show-backtrace") {
        settings.push(("MARGAY_CHECK_BACKTRACE", whose.into()));
    }
    if let Some(callers) = matches.get_one::<u16>("num-callers-host") {
        settings.push(("MARGAY_CHECK_CALLERS", callers.to_string().into()));
    }
    if let Some(file) = matches.get_one::<PathBuf>("suppressions") {
        // The program may change its folder before it uses the driver.
        let file = std::fs::canonicalize(file).map_err(|error| format!("{}: {error}", file.display()))?;
        settings.push(("MARGAY_CHECK_SUPPRESSIONS", file.into()));
    }
    let before = settings.len();
    for (option, variable) in [
        ("kernel-name", "MARGAY_CHECK_KERNEL_NAME"),
        ("kernel-name-exclude", "MARGAY_CHECK_KERNEL_NAME_EXCLUDE"),
    ] {
        if let Some(names) = matches.get_many::<String>(option) {
            let names = names.cloned().collect::<Vec<_>>().join("\n");
            Names::parse(&names).map_err(|error| format!("--{option}: {error}"))?;
            settings.push((variable, names.into()));
        }
    }
    for (option, variable) in [
        ("launch-skip", "MARGAY_CHECK_LAUNCH_SKIP"),
        ("launch-count", "MARGAY_CHECK_LAUNCH_COUNT"),
    ] {
        if let Some(number) = matches.get_one::<u64>(option).filter(|number| **number > 0) {
            settings.push((variable, number.to_string().into()));
        }
    }
    let filters = settings.len() > before;
    let before = settings.len();
    if let Some(processes) = matches.get_many::<String>("target-processes-filter") {
        let processes = processes.cloned().collect::<Vec<_>>().join(",");
        Processes::parse(&processes).map_err(|error| format!("--target-processes-filter: {error}"))?;
        settings.push(("MARGAY_CHECK_PROCESSES", processes.into()));
    }
    let is = |option: &str, value: &str| matches.get_one::<String>(option).is_some_and(|given| given == value);
    if is("target-processes", "application-only") {
        settings.push(("MARGAY_CHECK_PARENT", process::id().to_string().into()));
    }
    let some_processes = settings.len() > before;
    if is("strip-paths", "yes") {
        settings.push(("MARGAY_CHECK_STRIP_PATHS", "1".into()));
    }
    if matches.get_flag("force-blocking-launches") {
        settings.push(("CUDA_LAUNCH_BLOCKING", "1".into()));
    }
    if let Some(log) = log {
        settings.push(("MARGAY_LOG_FILE", log.into()));
    }
    Ok(Asked {
        words,
        settings,
        filters,
        some_processes,
        requires_cuda: is("require-cuda-init", "yes"),
    })
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
