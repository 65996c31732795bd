//! Runs every `tests/ptx/**/*.ptx`: one file, one test, named by its path. `tests/ptx/README.md` explains the notation.
//!
//! In: the files. Out: a verdict for each, at every SIMD level of this CPU, interpreted, compiled, and interpreted for a few
//! instructions and compiled from there on: all of this is fixed for the life of a process, so the program runs itself again for
//! the others. ptxas, where `scripts/setup` has put it, confirms that
//! each case is legal PTX.

mod case;
mod execute;
mod image;
mod legal;
mod report;
mod value;
mod verdict;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use cuda::isa::Level;
use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ptx");
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();

    // The parent goes through everything; a child, told its level, only runs kernels.
    let parent = std::env::var_os("MARGAY_SIMD").is_none();
    let compiled = std::env::var_os("MARGAY_JIT").is_some_and(|tier| tier == "always");
    if let (true, Err(why)) = (compiled, cuda::simt::compiler()) {
        eprintln!("ptx_cases: MARGAY_JIT=always, and nothing is compiled: {why}");
        return ExitCode::from(101);
    }
    let level = format!(
        "{}{}{}",
        format!("{:?}", Level::current()).to_lowercase(),
        if compiled { ", compiled" } else { "" },
        if std::env::var_os("MARGAY_JIT_AFTER").is_some() {
            " in the middle"
        } else if std::env::var_os("MARGAY_JIT_UNSEEN").is_some() {
            " in part"
        } else {
            ""
        }
    );
    let mut trials: Vec<Trial> = files.iter().map(|file| trial(&root, file, &level)).collect();
    if parent {
        trials.extend(files.iter().map(|file| seeded(&root, file)));
        match legal::assembler() {
            Some(ptxas) => trials.extend(files.iter().map(|file| {
                let (ptxas, file) = (ptxas.clone(), file.clone());
                Trial::test(name(&root, &file), move || Ok(legal::check(&ptxas, &file)?)).with_kind("ptxas")
            })),
            None => eprintln!("ptx_cases: no .env/cuda-13/bin/ptxas (scripts/setup makes it): legality is not checked"),
        }
    }
    let mut failed = libtest_mimic::run(&arguments, trials).has_failed();
    if let Some(why) = cuda::simt::compiler_defect() {
        eprintln!("ptx_cases: LLVM made no code of a kernel: {why}");
        failed = true;
    }
    if parent && !arguments.list {
        for level in Level::available().filter(|&level| level < Level::current()) {
            failed |= !again(level, &[("MARGAY_JIT", "off")]);
        }
        match cuda::simt::compiler() {
            Ok(_) => {
                for level in Level::available().filter(|&level| level < Level::current()) {
                    failed |= !again(level, &[("MARGAY_JIT", "always"), ("MARGAY_JIT_CACHE", "off")]);
                }
                // What is compiled for the last two is the same.
                let cache = std::env::temp_dir().join(format!("ptx-cases-{}", std::process::id()));
                let compiled = [
                    ("MARGAY_JIT", "always"),
                    ("MARGAY_JIT_CACHE", cache.to_str().unwrap_or("off")),
                ];
                failed |= !again(Level::current(), &compiled);
                failed |= !again(
                    Level::current(),
                    &[&compiled[..], &[("MARGAY_JIT_AFTER", "7")]].concat(),
                );
                failed |= !again(
                    Level::current(),
                    &[&compiled[..], &[("MARGAY_JIT_UNSEEN", "5")]].concat(),
                );
                // There is none if nothing was compiled.
                let _ = fs::remove_dir_all(cache);
            }
            Err(why) => eprintln!("ptx_cases: nothing is compiled: {why}"),
        }
    }
    ExitCode::from(if failed { 101 } else { 0 })
}

/// This program once more, with the same arguments, at another level or in another tier.
fn again(level: Level, variables: &[(&str, &str)]) -> bool {
    let program = std::env::current_exe().expect("a running program has a file");
    Command::new(program)
        .args(std::env::args_os().skip(1))
        .env("MARGAY_SIMD", format!("{level:?}").to_lowercase())
        .envs(variables.iter().copied())
        .status()
        .is_ok_and(|status| status.success())
}

fn trial(root: &Path, file: &Path, level: &str) -> Trial {
    let (label, path) = (name(root, file), file.to_path_buf());
    Trial::test(label.clone(), move || {
        let text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
        let case = case::parse(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        // What it shows of a race is there unless somebody else has a turn.
        if case.races && std::env::var_os("MARGAY_JIT_AFTER").is_some() {
            return Ok(());
        }
        let report = execute::run(&case, &format!("{label}.ptx"), &text, None)?;
        report::compare(report.as_deref(), &path.with_extension("txt")).map_err(Failed::from)
    })
    .with_kind(level)
}

/// The same under seeds: what a correct program computes does not depend on the schedule.
fn seeded(root: &Path, file: &Path) -> Trial {
    let (label, path) = (name(root, file), file.to_path_buf());
    let about_order = [
        "progress/",
        "barrier/",
        "atomic/",
        "asynchronous/",
        "cluster/",
        "fabric/",
    ]
    .iter()
    .any(|folder| label.starts_with(folder));
    let seeds = std::env::var("PTX_CASES_SEEDS")
        .ok()
        .and_then(|seeds| seeds.parse().ok());
    // Without optimisation it takes its time.
    let seeds: u64 = seeds.unwrap_or(match (about_order, cfg!(debug_assertions)) {
        (true, false) => 50,
        (true, true) => 5,
        (false, _) => 1,
    });
    Trial::test(label, move || {
        let text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
        let case = case::parse(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        // What it shows of a race holds without a seed alone.
        for seed in (0..seeds).filter(|_| !case.races) {
            execute::run(&case, &path.display().to_string(), &text, Some(seed))
                .map_err(|report| format!("under seed {seed}:\n{report}"))?;
        }
        Ok(())
    })
    .with_kind("seeds")
}

/// `integer/add_carry` for `tests/ptx/integer/add_carry.ptx`.
fn name(root: &Path, file: &Path) -> String {
    let relative = file.strip_prefix(root).expect("found below the root");
    relative.with_extension("").display().to_string()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("tests/ptx is there").flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "ptx") {
            files.push(path);
        }
    }
}
