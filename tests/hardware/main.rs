//! The cases of `tests/ptx` and whole functions on a driver library, through its C ABI: on NVIDIA's with a GPU, to record
//! what the hardware computes, and on ours, to compare. `tests/hardware/README.md` says how.

#[path = "../ptx_cases/case.rs"]
mod case;
mod cases;
mod driver;
mod sweeps;
#[path = "../ptx_cases/value.rs"]
mod value;
#[path = "../ptx_cases/verdict.rs"]
mod verdict;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use driver::Driver;
use sweeps::CHUNK;

/// What a folder of goldens holds: buffers of cases, and hashes of functions.
const CASES: &str = "cases.tsv";
const SWEEPS: &str = "sweeps.tsv";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match &arguments[..] {
        [command, library, folder] if command == "record" => record(Path::new(library), Path::new(folder)),
        [command, library] if command == "cases" => {
            Driver::open(Path::new(library)).and_then(|mut d| expectations(&mut d))
        }
        // `cargo test` passes what it was given.
        rest if rest.iter().all(|one| one.starts_with('-'))
            || !rest.is_empty() && std::env::var_os("CARGO").is_some() =>
        {
            compare()
        }
        _ => Err("usage: hardware [record LIBCUDA FOLDER | cases LIBCUDA]".to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(101)
        }
    }
}

/// Every `tests/ptx/**/*.ptx`, by its name.
fn files() -> BTreeMap<String, PathBuf> {
    let root = std::env::var_os("MARGAY_CASES").map_or_else(|| self::root().join("tests/ptx"), PathBuf::from);
    let mut found = BTreeMap::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "ptx") {
                let name = path.strip_prefix(&root).expect("found below it").with_extension("");
                found.insert(name.display().to_string(), path);
            }
        }
    }
    found
}

/// The `.target` number of a text.
fn target(text: &str) -> i32 {
    let line = text
        .lines()
        .find(|line| line.trim_start().starts_with(".target"))
        .unwrap_or_default();
    let digits = line.split("sm_").nth(1).unwrap_or_default();
    digits
        .chars()
        .take_while(char::is_ascii_digit)
        .collect::<String>()
        .parse()
        .unwrap_or(0)
}

/// Runs the cases that the device can run; hands each to `seen`.
fn run(driver: &mut Driver, seen: &mut dyn FnMut(&str, Result<cases::Outcome, String>)) -> Result<(), String> {
    let ours = driver.name.starts_with("Margay");
    let capability = driver.capability.0 * 10 + driver.capability.1;
    for (name, path) in files() {
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        // What the first specification alone describes, no assembler takes.
        if !ours && (target(&text) > capability || name.starts_with("legacy/")) {
            continue;
        }
        let case = case::parse(&text);
        if case.as_ref().is_ok_and(cases::is_left_out) {
            continue;
        }
        let outcome = case.and_then(|case| cases::run(driver, &case, &text));
        let broken = outcome.as_ref().map_or(true, |outcome| outcome.broken);
        seen(&name, outcome);
        if broken {
            driver.renew()?;
        }
    }
    Ok(())
}

/// Every case against its header.
fn expectations(driver: &mut Driver) -> Result<(), String> {
    let (mut good, mut bad) = (0, String::new());
    run(driver, &mut |name, outcome| match outcome {
        Ok(outcome) if outcome.report.is_empty() => good += 1,
        Ok(outcome) => {
            let _ = writeln!(bad, "{name}:\n{}", outcome.report);
        }
        Err(error) => {
            let _ = writeln!(bad, "{name}: {error}");
        }
    })?;
    println!("{}: {good} cases as their headers say", driver.name);
    if bad.is_empty() { Ok(()) } else { Err(bad) }
}

/// Writes down what a device computes.
fn record(library: &Path, folder: &Path) -> Result<(), String> {
    let mut driver = Driver::open(library)?;
    let write = |name: &str, content: &[u8]| {
        std::fs::write(folder.join(name), content).map_err(|error| format!("{}: {error}", folder.display()))
    };
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let capability = driver.capability.0 * 10 + driver.capability.1;
    write("device.txt", format!("{}, sm_{capability}\n", driver.name).as_bytes())?;
    let (mut table, mut different) = (String::new(), String::new());
    run(&mut driver, &mut |name, outcome| match outcome {
        Ok(outcome) => {
            for (buffer, hex) in outcome.buffers {
                let _ = writeln!(table, "{name}\t{buffer}\t{hex}");
            }
            if !outcome.report.is_empty() {
                let _ = writeln!(different, "{name}:\n{}", outcome.report);
            }
        }
        Err(error) => {
            let _ = writeln!(different, "{name}: {error}");
        }
    })?;
    write(CASES, table.as_bytes())?;
    write("different.txt", different.as_bytes())?;
    println!("cases: written; {} lines of differences", different.lines().count());
    let mut table = String::new();
    let sweeps = sweeps::all();
    for sweep in sweeps.iter().filter(|sweep| sweep.needs.0 <= capability) {
        let started = std::time::Instant::now();
        for chunk in 0..sweep.chunks() {
            let _ = writeln!(table, "{}\t{chunk}\t{}", sweep.name, sweep.hash(&driver, chunk)?);
        }
        println!("{}: {:.1} s", sweep.name, started.elapsed().as_secs_f64());
        // What is there so far is not lost when time runs out.
        write(SWEEPS, table.as_bytes())?;
    }
    for (name, sweep, ranges) in sweeps::dumps() {
        let sweep = sweeps
            .iter()
            .find(|one| one.name == sweep)
            .expect("a sweep of this name");
        let mut content = Vec::new();
        for (start, end) in ranges {
            let mut at = start;
            while at < end {
                let chunk = at as usize / CHUNK;
                let values = sweep.values(&driver, chunk)?;
                let (from, base) = (at as usize % CHUNK, chunk * CHUNK);
                let to = (end as usize - base).min(CHUNK);
                content.extend_from_slice(&values[4 * from..4 * to]);
                at = (base + to) as u64;
            }
        }
        let packed = zstd::encode_all(&content[..], 19).map_err(|error| error.to_string())?;
        write(&format!("{name}.bin.zst"), &packed)?;
    }
    Ok(())
}

/// Our library against what was recorded, and the cases against their headers.
fn compare() -> Result<(), String> {
    let library = std::env::current_exe().map_err(|error| error.to_string())?;
    let library = library
        .parent()
        .map(|folder| folder.join("libcuda.so"))
        .unwrap_or_default();
    let mut driver = Driver::open(&library)?;
    expectations(&mut driver)?;
    let goldens = root().join("tests/hardware/goldens");
    let folders: Vec<PathBuf> = std::fs::read_dir(&goldens)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    if folders.is_empty() {
        println!("hardware: no goldens are recorded; nothing was compared with a GPU");
    }
    let slow = std::env::var_os("MARGAY_SLOW").is_some();
    let sweeps = sweeps::all();
    let mut wrong = String::new();
    for folder in folders {
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
        let recorded = read(CASES);
        let recorded: BTreeMap<(&str, &str), &str> = recorded
            .lines()
            .filter_map(|line| line.split_once('\t'))
            .filter_map(|(case, rest)| rest.split_once('\t').map(|(buffer, hex)| ((case, buffer), hex)))
            .collect();
        run(&mut driver, &mut |name, outcome| {
            for (buffer, hex) in outcome.map(|outcome| outcome.buffers).unwrap_or_default() {
                if recorded.get(&(name, &*buffer)).is_some_and(|recorded| *recorded != hex) {
                    let _ = writeln!(wrong, "{name}: {buffer} differs from the hardware's");
                }
            }
        })?;
        let mut counts = [0, 0];
        for line in read(SWEEPS).lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let [name, chunk, hash] = fields[..] else { continue };
            let Some(sweep) = sweeps.iter().find(|sweep| sweep.name == name) else {
                continue;
            };
            let chunk = chunk.parse().unwrap_or(0);
            // One in so many: with `MARGAY_SLOW` all.
            if !slow && sweep.chunks() > 1 && chunk != 0x3f {
                continue;
            }
            counts[0] += 1;
            if sweep.hash(&driver, chunk)? != hash {
                counts[1] += 1;
                let _ = writeln!(wrong, "{name}: numbers from {:#x} on differ", chunk * CHUNK);
            }
        }
        println!(
            "{}: {} hashes compared, {} differ",
            folder.display(),
            counts[0],
            counts[1]
        );
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}
