//! The cases of `tests/ptx` and whole functions on a driver library, through its C ABI: on NVIDIA's with a GPU, to record
//! what the hardware computes, and on ours, to compare. `tests/hardware/README.md` says how.

#[path = "../ptx_cases/case.rs"]
mod case;
mod cases;
mod driver;
#[path = "../forms/part.rs"]
mod part;
mod sweeps;
#[path = "../ptx_cases/value.rs"]
mod value;
#[path = "../ptx_cases/verdict.rs"]
mod verdict;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use driver::Driver;
use sweeps::{CHUNK, Sweep};

/// What a folder of goldens holds: buffers of cases, and hashes of functions.
const CASES: &str = "cases.tsv.zst";
const SWEEPS: &str = "sweeps.tsv.zst";
/// Results themselves, a line for each function: all of few, or every so many of 2^32.
const VALUES: &str = "values.tsv.zst";
/// Cases that a device ran against their headers, each of which is known: not compared.
const DIFFERENT: &str = "different.txt";
const STRIDE: usize = 262_147;
/// The buffer of a case that need not be the hardware's: any order of the tickets will do.
const FREE: (&str, &str) = ("atomic/permutation", "ticket");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match &arguments[..] {
        [command, library, folder] if command == "record" => record(Path::new(library), Path::new(folder)),
        [command, library, name] if command == "from" => {
            Driver::open(Path::new(library)).and_then(|driver| from(&driver, name))
        }
        [command, library] if command == "cases" => {
            Driver::open(Path::new(library)).and_then(|mut d| expectations(&mut d, Path::new(library)))
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

/// What is to be seen of a case: how it ended.
type Seen<'a> = &'a mut dyn FnMut(&str, Result<cases::Outcome, String>);

/// The cases that the device can run, by name.
fn wanted(driver: &Driver) -> Result<Vec<(String, String)>, String> {
    let ours = is_ours(driver);
    let capability = driver.capability.0 * 10 + driver.capability.1;
    let mut list = Vec::new();
    for (name, path) in files() {
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        // NVIDIA's assembler has no other characters, even in comments.
        let text = if ours {
            text
        } else {
            text.replace(|c: char| !c.is_ascii(), "?")
        };
        // What the first specification alone describes, no assembler takes.
        if !ours && (target(&text) > capability || name.starts_with("legacy/")) {
            continue;
        }
        if !case::parse(&text).as_ref().is_ok_and(cases::is_left_out) {
            list.push((name, text));
        }
    }
    Ok(list)
}

fn is_ours(driver: &Driver) -> bool {
    driver.name.starts_with("Margay")
}

fn one(driver: &Driver, text: &str) -> Result<cases::Outcome, String> {
    case::parse(text).and_then(|case| cases::run(driver, &case, text))
}

/// Runs the cases that the device can run; hands each to `seen`.
fn run(driver: &mut Driver, library: &Path, seen: Seen) -> Result<(), String> {
    let list = wanted(driver)?;
    if !is_ours(driver) {
        return apart(&list, library, seen);
    }
    for (name, text) in list {
        let outcome = one(driver, &text);
        let broken = outcome.as_ref().map_or(true, |outcome| outcome.broken);
        seen(&name, outcome);
        if broken {
            driver.renew()?;
        }
    }
    Ok(())
}

/// How long a case may take that is run [`apart`].
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs cases in other processes: a fault leaves NVIDIA's driver of no use to the process that it happened in, and what
/// spins there for good can only be killed.
fn apart(list: &[(String, String)], library: &Path, seen: Seen) -> Result<(), String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut next = 0;
    while let Some((name, _)) = list.get(next) {
        let mut command = Command::new(&program);
        command.arg("from").arg(library).arg(name);
        let spawned = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = spawned.map_err(|error| error.to_string())?;
        let (to, lines) = channel();
        if let Some(output) = child.stdout.take() {
            std::thread::spawn(move || {
                let lines = BufReader::new(output).lines().map_while(Result::ok);
                lines.take_while(|line| to.send(line.clone()).is_ok()).for_each(drop);
            });
        }
        let before = next;
        let mut buffers = Vec::new();
        let why = loop {
            let line = match lines.recv_timeout(PATIENCE) {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout) => break "did not end in time",
                Err(RecvTimeoutError::Disconnected) => break "ended its process",
            };
            match line.split('\t').collect::<Vec<_>>()[..] {
                ["buffer", buffer, hex] => buffers.push((buffer.to_owned(), hex.to_owned())),
                [end @ ("end" | "broken" | "error"), name, said] => {
                    let said = said.replace("\\n", "\n");
                    let outcome = match end {
                        "error" => Err(said),
                        end => Ok(cases::Outcome {
                            report: said,
                            buffers: std::mem::take(&mut buffers),
                            broken: end == "broken",
                        }),
                    };
                    seen(name, outcome);
                    next += 1;
                }
                _ => {}
            }
        };
        let _ = child.kill();
        let _ = child.wait();
        if let (true, Some((name, _))) = (next == before || why.starts_with("did"), list.get(next)) {
            seen(name, Err(why.to_owned()));
            next += 1;
        }
    }
    Ok(())
}

/// The other side of [`apart`]: cases from a name on, until one breaks the context.
fn from(driver: &Driver, first: &str) -> Result<(), String> {
    let list = wanted(driver)?;
    for (name, text) in list.iter().skip_while(|(name, _)| name != first) {
        let outcome = one(driver, text);
        let (end, said) = match &outcome {
            Ok(outcome) if outcome.broken => ("broken", &outcome.report),
            Ok(outcome) => ("end", &outcome.report),
            Err(error) => ("error", error),
        };
        for (buffer, hex) in outcome.iter().flat_map(|outcome| &outcome.buffers) {
            println!("buffer\t{buffer}\t{hex}");
        }
        println!("{end}\t{name}\t{}", said.replace('\n', "\\n").replace('\t', " "));
        if end != "end" {
            break;
        }
    }
    Ok(())
}

/// Every case against its header.
fn expectations(driver: &mut Driver, library: &Path) -> Result<(), String> {
    let (mut good, mut bad) = (0, String::new());
    run(driver, library, &mut |name, outcome| match outcome {
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
    // `HARDWARE_PART=3/8`: every eighth function, so that processes can share the work; the first has the cases.
    let (part, parts) = part::part("HARDWARE_PART");
    if part == 0 {
        record_cases(&mut driver, library, &write)?;
    }
    let mut table = String::new();
    let mut raw = String::new();
    let sweeps: Vec<Sweep> = sweeps::all()
        .into_iter()
        .filter(|sweep| sweep.needs.0 <= capability)
        .collect();
    // `HARDWARE_ONLY=beside`: the functions whose names begin so.
    let only = std::env::var("HARDWARE_ONLY").unwrap_or_default();
    let wanted = sweeps.iter().filter(|sweep| sweep.name.starts_with(&only));
    for sweep in wanted.skip(part).step_by(parts) {
        let started = std::time::Instant::now();
        let loaded = match sweep.on(&driver) {
            Ok(loaded) => loaded,
            Err(error) => {
                println!("{}: left out: {error}", sweep.name);
                continue;
            }
        };
        let mut kept = Vec::new();
        let hashes = hashed(&loaded, sweep.chunks(), &mut |chunk, values| {
            if sweep.count < CHUNK as u64 / 4 {
                kept.extend_from_slice(values);
            } else if sweep.count == 1 << 32 {
                let first = (chunk * CHUNK).next_multiple_of(STRIDE) - chunk * CHUNK;
                let chosen = values.chunks_exact(4).skip(first).step_by(STRIDE);
                kept.extend(chosen.flatten());
            }
        })?;
        if !kept.is_empty() {
            let _ = writeln!(raw, "{}\t{}", sweep.name, hex(&kept));
        }
        for (chunk, hash) in hashes.iter().enumerate() {
            let _ = writeln!(table, "{}\t{chunk}\t{hash}", sweep.name);
        }
        println!("{}: {:.1} s", sweep.name, started.elapsed().as_secs_f64());
        // What is there so far is not lost when time runs out.
        write(SWEEPS, &packed(table.as_bytes())?)?;
        write(VALUES, &packed(raw.as_bytes())?)?;
    }
    let dumps = sweeps::dumps();
    let wanted = dumps.into_iter().filter(|(_, sweep, ..)| sweep.starts_with(&only));
    for (name, sweep, ranges, reference) in wanted.skip(part).step_by(parts) {
        let sweep = sweeps
            .iter()
            .find(|one| one.name == sweep)
            .expect("a sweep of this name");
        let loaded = sweep.on(&driver)?;
        let mut content = Vec::new();
        for (start, end, every) in ranges {
            let mut at = start;
            while at < end {
                let chunk = at as usize / CHUNK;
                let values = loaded.values(chunk)?;
                let (from, base) = (at as usize % CHUNK, chunk * CHUNK);
                let to = (end as usize - base).min(CHUNK);
                for (i, word) in values[4 * from..4 * to].chunks_exact(4).enumerate().step_by(every) {
                    let value = u32::from_le_bytes(word.try_into().expect("four bytes"));
                    // What is small takes little room.
                    let difference = value.wrapping_sub(reference((base + from + i) as u32));
                    content.extend_from_slice(&difference.to_le_bytes());
                }
                at = (base + to) as u64;
            }
        }
        write(&format!("{name}.bin.zst"), &packed(&content)?)?;
    }
    Ok(())
}

fn packed(content: &[u8]) -> Result<Vec<u8>, String> {
    zstd::encode_all(content, 19).map_err(|error| error.to_string())
}

/// Writes a file of the goldens.
type Keep<'a> = &'a dyn Fn(&str, &[u8]) -> Result<(), String>;

/// Writes down what the cases leave.
fn record_cases(driver: &mut Driver, library: &Path, write: Keep<'_>) -> Result<(), String> {
    let (mut table, mut different) = (String::new(), String::new());
    run(driver, library, &mut |name, outcome| match outcome {
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
    write(CASES, &packed(table.as_bytes())?)?;
    write(DIFFERENT, different.as_bytes())?;
    println!("cases: written; {} lines of differences", different.lines().count());
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The hashes of a sweep's chunks. Other threads compute them while the device goes on; `seen` gets the results in order.
fn hashed(loaded: &sweeps::Loaded, chunks: usize, seen: &mut dyn FnMut(usize, &[u8])) -> Result<Vec<String>, String> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let (mut hashes, mut running) = (Vec::new(), VecDeque::new());
        for chunk in 0..chunks {
            if running.len() == workers {
                let first: ScopedJoinHandle<String> = running.pop_front().expect("as many as there are workers");
                hashes.push(first.join().expect("a hash"));
            }
            let values = loaded.values(chunk)?;
            seen(chunk, &values);
            running.push_back(scope.spawn(move || sweeps::hash(&values)));
        }
        hashes.extend(running.into_iter().map(|one| one.join().expect("a hash")));
        Ok(hashes)
    })
}

/// Our library against what was recorded, and the cases against their headers.
fn compare() -> Result<(), String> {
    let library = std::env::current_exe().map_err(|error| error.to_string())?;
    let library = library
        .parent()
        .map(|folder| folder.join("libcuda.so"))
        .unwrap_or_default();
    let mut driver = Driver::open(&library)?;
    expectations(&mut driver, &library)?;
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
    let only = std::env::var("HARDWARE_ONLY").unwrap_or_default();
    let sweeps = sweeps::all();
    let mut wrong = String::new();
    for folder in folders {
        let read = |name: &str| -> Result<String, String> {
            let path = folder.join(name);
            let content = std::fs::read(&path).and_then(|packed| zstd::decode_all(&packed[..]));
            let content = content.map_err(|error| format!("{}: {error}", path.display()))?;
            String::from_utf8(content).map_err(|error| format!("{}: {error}", path.display()))
        };
        let different = std::fs::read_to_string(folder.join(DIFFERENT)).unwrap_or_default();
        let known: BTreeSet<&str> = different
            .lines()
            .filter_map(|line| Some(line.split_once(':')?.0))
            .collect();
        let recorded = read(CASES)?;
        let recorded: BTreeMap<(&str, &str), &str> = recorded
            .lines()
            .filter_map(|line| line.split_once('\t'))
            .filter_map(|(case, rest)| rest.split_once('\t').map(|(buffer, hex)| ((case, buffer), hex)))
            .collect();
        let mut buffers = 0;
        run(&mut driver, &library, &mut |name, outcome| {
            if known.contains(name) {
                return;
            }
            for (buffer, hex) in outcome.map(|outcome| outcome.buffers).unwrap_or_default() {
                let Some(recorded) = recorded.get(&(name, &*buffer)) else {
                    continue;
                };
                if (name, &*buffer) == FREE {
                    continue;
                }
                buffers += 1;
                if recorded.len() != hex.len() {
                    let why = "has more or fewer values than the hardware left: operands that it did not see need a case of their own";
                    let _ = writeln!(wrong, "{name}: {buffer} {why}");
                } else if *recorded != hex {
                    let _ = writeln!(wrong, "{name}: {buffer} differs from the hardware's");
                }
            }
        })?;
        let mut counts = [0, 0];
        for line in read(SWEEPS)?.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let [name, chunk, hash] = fields[..] else { continue };
            let Some(sweep) = sweeps.iter().find(|sweep| sweep.name == name) else {
                continue;
            };
            if !name.starts_with(&only) {
                continue;
            }
            let chunk = chunk.parse().unwrap_or(0);
            // One in so many: with `MARGAY_SLOW` all.
            if !slow && sweep.chunks() > 1 && chunk != 0x3f {
                continue;
            }
            counts[0] += 1;
            if sweeps::hash(&sweep.on(&driver)?.values(chunk)?) != hash {
                counts[1] += 1;
                let _ = writeln!(wrong, "{name}: numbers from {:#x} on differ", chunk * CHUNK);
            }
        }
        println!(
            "{}: {buffers} buffers of cases and {} hashes of functions compared, of which {} differ",
            folder.display(),
            counts[0],
            counts[1]
        );
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}
