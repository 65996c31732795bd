//! `margay run -- CMD…`: starts a program so that it finds this `libcuda.so.1`.
//!
//! The program replaces this process: signals, exit code and terminal are its own.

use crate::Outcome;
use crate::place::{LIBRARY, find_library, other_drivers};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode};

pub fn command() -> Command {
    Command::new("run")
        .about("Run a program with Margay as its CUDA driver")
        .arg(Arg::new("preload").long("preload").action(ArgAction::SetTrue).help(
            "Also preload the library (LD_PRELOAD), for programs that look for the driver in fixed places (RPATH)",
        ))
        .arg(
            Arg::new("fidelity")
                .long("fidelity")
                .action(ArgAction::SetTrue)
                .help("At the end, list the instructions of all kernels that ran by how exact their results are"),
        )
        .arg(
            Arg::new("summary")
                .long("summary")
                .action(ArgAction::SetTrue)
                .help("At the end, print the kernels by time, copies, memory, calls, and what failed, and whose bits the manual does not define"),
        )
        .arg(
            Arg::new("no-progress")
                .long("no-progress")
                .action(ArgAction::SetTrue)
                .help("On a terminal, show no line for kernels that take longer than two seconds"),
        )
        .arg(program_and_arguments())
}

/// `CMD…`, for sub-commands that start a program.
pub fn program_and_arguments() -> Arg {
    Arg::new("program")
        .value_name("CMD")
        .num_args(1..)
        .required(true)
        .trailing_var_arg(true)
        .allow_hyphen_values(true)
        .value_parser(value_parser!(OsString))
        .help("The program and its arguments")
}

pub fn run(matches: &ArgMatches) -> Outcome {
    let mut words = matches.get_many::<OsString>("program").into_iter().flatten();
    let program = words.next().ok_or("no program given")?;
    let library = library()?;
    let mut command = process::Command::new(program);
    command.args(words);
    tell_of_other_drivers("run", &library);
    introduce(&mut command, &library, matches.get_flag("preload"))?;
    for (flag, variable) in [("fidelity", "MARGAY_FIDELITY"), ("summary", "MARGAY_SUMMARY")] {
        if matches.get_flag(flag) {
            command.env(variable, "1");
        }
    }
    if matches.get_flag("no-progress") {
        command.env("MARGAY_PROGRESS", "0");
    } else if std::io::stderr().is_terminal() && std::env::var_os("MARGAY_PROGRESS").is_none() {
        command.env("MARGAY_PROGRESS", "1");
    }
    let error = command.exec();
    Ok(not_started("run", program, &error))
}

/// Another driver is never passed over in silence.
pub fn tell_of_other_drivers(command: &str, library: &Path) {
    for other in other_drivers() {
        eprintln!(
            "margay {command}: this machine has another driver, {}; the program gets Margay's, {}",
            other.display(),
            library.display()
        );
    }
}

/// Says why a program does not start. As shells have it: 127 for what is not there, 126 for what cannot be started.
pub fn not_started(command: &str, program: &OsStr, error: &std::io::Error) -> ExitCode {
    eprintln!("margay {command}: {}: {error}", program.display());
    let is_missing = error.kind() == std::io::ErrorKind::NotFound;
    ExitCode::from(if is_missing { 127 } else { 126 })
}

/// The library that programs are to find.
///
/// # Errors
/// There is none; a sentence says where it was looked for.
pub fn library() -> Result<PathBuf, String> {
    find_library().map_err(|looked| {
        let looked: Vec<_> = looked.iter().map(|path| path.display().to_string()).collect();
        format!("no {LIBRARY} of Margay's found in {}", looked.join(", "))
    })
}

/// Sets a program's environment so that it finds the library, and the companions beside it.
///
/// # Errors
/// A sentence: the loader's lists cannot have the library's path in them.
pub fn introduce(command: &mut process::Command, library: &Path, preload: bool) -> Result<(), String> {
    let directory = library.parent().unwrap_or(Path::new("/"));
    let has = |separators: &[u8]| {
        directory
            .as_os_str()
            .as_bytes()
            .iter()
            .any(|byte| separators.contains(byte))
    };
    // ld.so(8): what parts the elements of its lists, from which nothing protects them.
    if has(b":;") {
        return Err(format!(
            "{} has a colon or semicolon in its path: programs cannot find it there",
            library.display()
        ));
    }
    let can_be_preloaded = !has(b" \t\n");
    let is_renamed = library.file_name() != Some(OsStr::new(LIBRARY));
    if (preload || is_renamed) && !can_be_preloaded {
        return Err(format!(
            "{} has a blank in its path: it cannot be preloaded",
            library.display()
        ));
    }
    command.env(
        "LD_LIBRARY_PATH",
        prepend(directory.as_os_str(), ":", std::env::var_os("LD_LIBRARY_PATH")),
    );
    let mut preloaded = std::env::var_os("LD_PRELOAD").unwrap_or_default();
    // JAX asks the driver only where it finds NVIDIA's device files.
    let devices = directory.join("companions/libdevices.so");
    let is_asked_for = cuda::config::read().companions && !Path::new("/dev/nvidiactl").exists();
    if is_asked_for && can_be_preloaded && devices.is_file() {
        preloaded = prepend(devices.as_os_str(), ":", Some(preloaded));
    }
    // Under another name the loader does not find it in the directory, but recognises it by its SONAME once loaded.
    if preload || is_renamed {
        preloaded = prepend(library.as_os_str(), ":", Some(preloaded));
    }
    if !preloaded.is_empty() {
        command.env("LD_PRELOAD", preloaded);
    }
    keep_ptx(command, directory);
    Ok(())
}

/// Programs that start NVIDIA's assembler or compiler find ours, which keep PTX.
fn keep_ptx(command: &mut process::Command, directory: &Path) {
    let folder = directory.join("companions/bin");
    if !folder.is_dir() || !cuda::config::read().companions {
        return;
    }
    command.env("PATH", prepend(folder.as_os_str(), ":", std::env::var_os("PATH")));
    for variable in ["TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"] {
        if std::env::var_os(variable).is_none() {
            command.env(variable, folder.join("ptxas"));
        }
    }
    // JAX takes the assembler from the toolkit that it is told of.
    if std::env::var_os("CUDA_ROOT").is_none() {
        command.env("CUDA_ROOT", directory.join("companions"));
    }
}

fn prepend(first: &OsStr, separator: &str, rest: Option<OsString>) -> OsString {
    let mut list = first.to_os_string();
    // An empty list must not become an empty element, which means the current directory.
    if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
        list.push(separator);
        list.push(rest);
    }
    list
}
