//! `margay run -- CMD…`: starts a program so that it finds this `libcuda.so.1`.
//!
//! The program replaces this process: signals, exit code and terminal are its own.

use crate::Outcome;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The name that programs ask the loader for.
const LIBRARY: &str = "libcuda.so.1";
/// The name that linkers ask for, under which cargo leaves it.
const LINKED_AS: &str = "libcuda.so";

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
            Arg::new("program")
                .value_name("CMD")
                .num_args(1..)
                .required(true)
                .trailing_var_arg(true)
                .allow_hyphen_values(true)
                .value_parser(value_parser!(OsString))
                .help("The program and its arguments"),
        )
}

pub fn run(matches: &ArgMatches) -> Outcome {
    let mut words = matches.get_many::<OsString>("program").into_iter().flatten();
    let program = words.next().ok_or("no program given")?;
    let library = find_library().map_err(|looked| {
        let looked: Vec<_> = looked.iter().map(|path| path.display().to_string()).collect();
        format!("no {LIBRARY} found in {}", looked.join(", "))
    })?;
    let mut command = std::process::Command::new(program);
    command.args(words);
    let name = library.file_name();
    let directory = library.parent().unwrap_or(Path::new("/"));
    command.env(
        "LD_LIBRARY_PATH",
        prepend(directory.as_os_str(), ":", std::env::var_os("LD_LIBRARY_PATH")),
    );
    let mut preloaded = std::env::var_os("LD_PRELOAD").unwrap_or_default();
    // JAX asks the driver only where it finds NVIDIA's device files.
    let devices = directory.join("companions/libdevices.so");
    if cuda::config::read().companions && devices.is_file() && !Path::new("/dev/nvidiactl").exists() {
        preloaded = prepend(devices.as_os_str(), ":", Some(preloaded));
    }
    // Under another name the loader does not find it in the directory, but recognises it by its SONAME once loaded.
    if matches.get_flag("preload") || name != Some(OsStr::new(LIBRARY)) {
        preloaded = prepend(library.as_os_str(), ":", Some(preloaded));
    }
    if !preloaded.is_empty() {
        command.env("LD_PRELOAD", preloaded);
    }
    if matches.get_flag("fidelity") {
        command.env("MARGAY_FIDELITY", "1");
    }
    keep_ptx(&mut command, directory);
    let error = command.exec();
    eprintln!("margay run: {}: {error}", program.display());
    // As shells have it: 127 for what is not there, 126 for what cannot be started.
    Ok(ExitCode::from(if error.kind() == std::io::ErrorKind::NotFound {
        127
    } else {
        126
    }))
}

/// Programs that start NVIDIA's assembler or compiler find ours, which keep PTX.
fn keep_ptx(command: &mut std::process::Command, directory: &Path) {
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

/// The library beside this command, or in `../lib` of it: as an archive unpacks, as it is installed, as cargo builds. An
/// error lists where it was looked for.
pub fn find_library() -> Result<PathBuf, Vec<PathBuf>> {
    let command = std::env::current_exe()
        .and_then(|path| path.canonicalize())
        .unwrap_or_default();
    let beside = command.parent().unwrap_or(Path::new("."));
    let directories = [
        beside.to_path_buf(),
        beside.join("../lib"),
        beside.join("../lib/margay"),
    ];
    for directory in directories.iter().filter_map(|directory| directory.canonicalize().ok()) {
        let path = directory.join(LIBRARY);
        if path.is_file() {
            return Ok(path);
        }
        let linked_as = directory.join(LINKED_AS);
        if linked_as.is_file() {
            // Fresh from cargo: give it the name that is looked for. Another run may have done so at the same moment.
            let _ = std::os::unix::fs::symlink(LINKED_AS, &path);
            return Ok(if path.is_file() { path } else { linked_as });
        }
    }
    Err(directories.to_vec())
}
