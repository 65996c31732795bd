//! Options of compute-sanitizer that `margay check` need not have, or does not: what they ask for that is so anyway is taken, and
//! otherwise an answer says what to use.

use clap::{Arg, ArgAction, ArgMatches, Command};

/// What an option is followed by.
enum Value {
    /// Nothing.
    Nothing,
    /// Something that makes no difference.
    Any,
    /// One of these is so anyway.
    Is(&'static [&'static str]),
    /// Nothing that it could be is there.
    None,
}

use Value::{Any, Is, None as NoneOf, Nothing};

/// An option, what follows, and what to say; an empty text: it makes no difference.
type Other = (&'static str, Value, &'static str);

static OTHERS: [Other; 56] = [
    (
        "xml",
        Nothing,
        "use --format json or --format sarif, with --output FILE",
    ),
    (
        "save",
        NoneOf,
        "use --format json or --format sarif, with --output FILE",
    ),
    (
        "read",
        NoneOf,
        "what --format json writes is for other programs to read",
    ),
    ("print-session-details", Nothing, "margay info prints what is set"),
    ("save-session-details", Nothing, "margay info prints what is set"),
    (
        "prefix",
        NoneOf,
        "reports have the time and the level of the log before them",
    ),
    (
        "print-level",
        Is(&["auto", "info", "warn"]),
        "--suppressions leaves reports out",
    ),
    (
        "dump-kernel-launches",
        Nothing,
        "MARGAY_LOG=margay::api=debug logs each call, launches among them",
    ),
    ("language", Is(&["c"]), "blocks and threads count from 0"),
    (
        "demangle",
        Is(&["full"]),
        "reports have both names, the mangled one in brackets",
    ),
    (
        "destroy-on-device-error",
        Is(&["context"]),
        "a context whose kernel failed is of no more use",
    ),
    (
        "force-synchronization-limit",
        Is(&["0"]),
        "use --force-blocking-launches",
    ),
    ("generate-coredump", Nothing, "set CUDA_ENABLE_COREDUMP_ON_EXCEPTION=1"),
    (
        "coredump-name",
        NoneOf,
        "set CUDA_ENABLE_COREDUMP_ON_EXCEPTION=1 and CUDA_COREDUMP_FILE",
    ),
    ("coredump-behavior", NoneOf, "set CUDA_COREDUMP_GENERATION_FLAGS"),
    (
        "check-exit-code",
        Is(&["no"]),
        "the exit code is the program's own if nothing is found",
    ),
    (
        "check-bulk-copy",
        Is(&["yes"]),
        "this is always looked at; --suppressions leaves reports out",
    ),
    (
        "check-tensor-ops",
        Is(&["yes"]),
        "this is always looked at; --suppressions leaves reports out",
    ),
    (
        "check-warpgroup-mma",
        Is(&["yes"]),
        "this is always looked at; --suppressions leaves reports out",
    ),
    (
        "check-device-heap",
        Is(&["yes"]),
        "this is always looked at; --suppressions leaves reports out",
    ),
    ("check-cache-control", Nothing, "hints for caches touch no memory here"),
    ("check-optix", Nothing, "there is no OptiX here"),
    ("check-optix-leaks", Nothing, "there is no OptiX here"),
    ("ignore-getprocaddress-notfound", Nothing, ""),
    (
        "injection-path",
        NoneOf,
        "nothing is injected into the program: its driver looks",
    ),
    (
        "injection-path32",
        NoneOf,
        "nothing is injected into the program: its driver looks",
    ),
    ("preload-library", NoneOf, "set LD_PRELOAD"),
    ("support-32bit", Nothing, "there is no driver for 32-bit programs here"),
    (
        "mode",
        Is(&["launch-and-attach"]),
        "a program that somebody else starts is looked at if MARGAY_CHECK is set for it",
    ),
    ("launch-timeout", Any, ""),
    ("max-connections", Any, ""),
    ("port", Any, ""),
    ("kill", Nothing, ""),
    ("nvtx", Any, ""),
    ("num-callers-device", Is(&["0"]), "stacks are printed whole"),
    ("num-cuda-barriers", Any, ""),
    ("backtrace-short", Is(&["yes"]), "stacks are those of kernels"),
    (
        "detect-missing-module-unload",
        Nothing,
        "modules are no memory: --leak-check full tells of memory",
    ),
    (
        "padding",
        Is(&["0"]),
        "not needed: accesses are checked to the byte, and two allocations never touch each other",
    ),
    (
        "report-api-errors",
        Is(&["no"]),
        "margay run --summary counts failed calls, and CUDA_LOG_FILE=stderr shows them",
    ),
    (
        "report-device-side-allocation-failure",
        Is(&["no"]),
        "a kernel's malloc may come back with nothing",
    ),
    (
        "track-stream-ordered-races",
        Is(&["no"]),
        "use --tool racecheck, which finds them",
    ),
    (
        "racecheck-detect-level",
        Is(&["warn", "error"]),
        "use --benign, which tells of races that programs get away with, too",
    ),
    (
        "racecheck-memcpy-async",
        Is(&["yes"]),
        "this is always looked at; --suppressions leaves reports out",
    ),
    (
        "racecheck-trace-sync",
        Is(&["no"]),
        "a report says what does not order its two accesses",
    ),
    (
        "racecheck-deadlock-timeout",
        Is(&["0"]),
        "use --tool synccheck, which finds deadlocks",
    ),
    ("racecheck-continue-on-deadlock", Any, ""),
    ("racecheck-num-workers", Any, ""),
    (
        "racecheck-report",
        Is(&["analysis"]),
        "each race is one report, and says how often it was seen",
    ),
    ("racecheck-filter-cluster-id", NoneOf, "all blocks are looked at"),
    (
        "check-api-memory-access",
        Is(&["yes"]),
        "this is always looked at; --suppressions leaves reports out",
    ),
    (
        "track-unused-memory",
        Nothing,
        "memory that nobody uses is not looked for",
    ),
    (
        "unused-memory-threshold",
        Is(&["0"]),
        "memory that nobody uses is not looked for",
    ),
    ("unused-shared-memory-report-limit", Any, ""),
    (
        "initcheck-address-space",
        Is(&["all"]),
        "values are followed through all memory; --suppressions leaves reports out",
    ),
    (
        "missing-barrier-init-is-fatal",
        Is(&["yes"]),
        "an mbarrier that was not initialised always ends the kernel",
    ),
];

/// Those that a command does not have by itself.
fn missing(command: &Command) -> impl Iterator<Item = &'static Other> {
    let own: Vec<String> = command
        .get_arguments()
        .filter_map(Arg::get_long)
        .map(str::to_owned)
        .collect();
    OTHERS
        .iter()
        .filter(move |(name, ..)| !own.iter().any(|own| own == name))
}

/// Adds them to a command.
pub fn add(command: Command) -> Command {
    let others: Vec<Arg> = missing(&command)
        .map(|(name, value, _)| argument(name, value))
        .collect();
    command.args(others)
}

fn argument(name: &'static str, value: &Value) -> Arg {
    let argument = Arg::new(name).long(name).hide(true);
    match value {
        Nothing => argument.action(ArgAction::SetTrue),
        Any | Is(_) | NoneOf => argument.action(ArgAction::Append),
    }
}

/// Looks at what a command was given, which has them by [`add`].
///
/// # Errors
/// An option asks for what is not there: what to use.
pub fn refuse(command: &Command, matches: &ArgMatches) -> Result<(), String> {
    for (name, value, answer) in missing(command) {
        let given = match value {
            Nothing => {
                let flag = matches.try_get_one::<bool>(name).ok().flatten();
                flag.filter(|flag| **flag && !answer.is_empty()).map(|_| String::new())
            }
            Any => None,
            Is(_) | NoneOf => {
                let values = matches.try_get_many::<String>(name).ok().flatten();
                let fine: &[&str] = if let Is(fine) = value { fine } else { &[] };
                let wrong = values
                    .into_iter()
                    .flatten()
                    .find(|value| !fine.contains(&value.as_str()));
                wrong.map(|wrong| format!(" {wrong}"))
            }
        };
        if let Some(given) = given {
            return Err(format!("there is no --{name}{given}: {answer}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(words: &[&str]) -> Result<(), String> {
        let own = || {
            Command::new("check")
                .no_binary_name(true)
                .arg(Arg::new("prefix").long("prefix"))
        };
        refuse(&own(), &add(own()).get_matches_from(words))
    }

    #[test]
    fn what_is_so_anyway_is_taken() {
        let fine = [
            "--racecheck-report",
            "analysis",
            "--port",
            "5",
            "--nvtx",
            "no",
            "--kill",
            "--check-bulk-copy",
            "yes",
        ];
        assert_eq!(asked(&fine), Ok(()));
        // An option of the command's own is no other.
        assert_eq!(asked(&["--prefix", "a"]), Ok(()));
    }

    #[test]
    fn what_is_not_there_has_an_answer() {
        let answer = |words: &[&str]| asked(words).unwrap_err();
        assert_eq!(
            answer(&["--xml"]),
            "there is no --xml: use --format json or --format sarif, with --output FILE"
        );
        assert!(answer(&["--racecheck-report", "all"]).starts_with("there is no --racecheck-report all: each race"));
        assert!(answer(&["--coredump-name", "x"]).contains("CUDA_COREDUMP_FILE"));
        // Each that refuses something says what to do.
        for (name, value, text) in &OTHERS {
            assert!(!text.is_empty() || matches!(value, Any | Nothing), "{name}");
        }
    }
}
