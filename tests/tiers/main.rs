//! Random kernels on two tiers: what one leaves in memory the other must leave too, to the bit.
//!
//! A kernel is made from a number, so a number is all that a report needs. This program starts itself, once for each
//! configuration; the children load the library beside them as programs do and run the same kernels. A result that differs,
//! a process that dies and one that does not come back are all differences. A kernel that differs is cut down before it is
//! shown.
//!
//! `MARGAY_TIERS_SEEDS` has the numbers, as `100..200` or as a count; `MARGAY_TIERS_CONFIGS` the configurations, as in
//! `MARGAY_JIT=off;MARGAY_JIT=always,MARGAY_SIMD=baseline`, the one to believe first; `MARGAY_TIERS_PATIENCE` the seconds
//! that a kernel may take. `print SEED` as an argument prints a kernel, `write FROM..TO FOLDER` writes files, and
//! `keep TABLE FROM..TO FILE` goldens of what a GPU computed ([`measured`]).

mod child;
mod generate;
mod instructions;
mod measured;
mod memory;
mod peer;
mod random;
mod reduce;
mod together;
mod tree;

use std::ops::Range;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Failed, Trial};
use peer::Outcome;
use reduce::Comparison;

/// Kernels that a plain run compares at most, how many make a test, and how long it takes at most.
const SEEDS: u64 = 1000;
/// The interpreter that makes each call, as it does where leaks are looked for; the interpreter; compiled code; such that leaves its loops
/// again and again, and goes on, where kernels begin in the interpreter; code of a
/// part of each kernel.
const CONFIGS: &str = "MARGAY_JIT=off,MARGAY_CHECK=leaks;MARGAY_JIT=off;MARGAY_JIT=always;\
                       MARGAY_JIT=always,MARGAY_JIT_TURN=100,MARGAY_JIT_AFTER=50;\
                       MARGAY_JIT=always,MARGAY_JIT_UNSEEN=5";
const AT_ONCE: u64 = 50;
const PLAIN_RUN: Duration = Duration::from_secs(60);
static COMPARED: AtomicU64 = AtomicU64::new(0);

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["child"] => {
            child::serve();
            return ExitCode::SUCCESS;
        }
        ["print", seed] => {
            print!("{}", generate::kernel(seed.parse().unwrap_or(0)).print());
            return ExitCode::SUCCESS;
        }
        ["write", range, folder] => {
            for seed in seeds(range) {
                if let Err(error) = std::fs::write(
                    Path::new(folder).join(format!("{seed}.ptx")),
                    generate::kernel(seed).print(),
                ) {
                    eprintln!("tiers: {error}");
                    return ExitCode::FAILURE;
                }
            }
            return ExitCode::SUCCESS;
        }
        ["keep", table, range, file] => {
            if let Err(error) = measured::keep(Path::new(table), seeds(range), Path::new(file)) {
                eprintln!("tiers: {error}");
                return ExitCode::FAILURE;
            }
            return ExitCode::SUCCESS;
        }
        _ => {}
    }

    if child::compiler().is_none() {
        eprintln!("tiers: no libmargay-jit.so beside the library: both tiers are the interpreter");
    }
    // Compiling a kernel can take seconds: without a number of kernels, a plain run ends by the clock.
    let until = std::env::var_os("MARGAY_TIERS_SEEDS")
        .is_none()
        .then(|| Instant::now() + PLAIN_RUN);
    let range = std::env::var("MARGAY_TIERS_SEEDS").map_or(0..SEEDS, |text| seeds(&text));
    let mut trials: Vec<Trial> = Vec::new();
    let mut first = range.start;
    while first < range.end {
        let part = first..(first + AT_ONCE).min(range.end);
        first = part.end;
        trials.push(Trial::test(format!("seeds::{}..{}", part.start, part.end), move || {
            compare(part, until)
        }));
    }
    for file in measured::files() {
        let device = file.parent().and_then(Path::file_name).unwrap_or_default();
        trials.push(Trial::test(format!("measured::{}", device.display()), move || {
            measured::compare(&file, &configurations(), patience())
        }));
    }
    for (tamper, most) in [("operation", 16), ("death", 12), ("hang", 12), ("refusal", 12)] {
        trials.push(Trial::test(format!("self_test::{tamper}"), move || finds(tamper, most)));
    }
    let assembler = Path::new(env!("CARGO_MANIFEST_DIR")).join(".env/cuda-13/bin/ptxas");
    if assembler.is_file() {
        trials.push(Trial::test("legal", move || {
            legal(&assembler, range.start..range.end.min(range.start + 40))
        }));
    } else {
        eprintln!("tiers: no .env/cuda-13/bin/ptxas (scripts/setup makes it): legality is not checked");
    }
    let end = libtest_mimic::run(&Arguments::from_args(), trials);
    eprintln!("tiers: {} kernels compared", COMPARED.load(Ordering::Relaxed));
    end.exit_code()
}

/// `from..to`, or how many.
fn seeds(text: &str) -> Range<u64> {
    let number = |text: &str| {
        text.parse()
            .unwrap_or_else(|_| panic!("{text} is no number of a kernel"))
    };
    match text.split_once("..") {
        Some((from, to)) => number(from)..number(to),
        None => 0..number(text),
    }
}

fn patience() -> Duration {
    let seconds = std::env::var("MARGAY_TIERS_PATIENCE")
        .ok()
        .and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(180))
}

fn configurations() -> Vec<String> {
    let text = std::env::var("MARGAY_TIERS_CONFIGS").unwrap_or_else(|_| CONFIGS.into());
    text.split(';').map(String::from).collect()
}

fn compare(part: Range<u64>, until: Option<Instant>) -> Result<(), Failed> {
    let mut comparison = Comparison::new(&configurations(), patience());
    for seed in part {
        if until.is_some_and(|until| Instant::now() > until) {
            break;
        }
        COMPARED.fetch_add(1, Ordering::Relaxed);
        let outcomes = comparison.seed(seed);
        if !matches!(outcomes[0], Outcome::Ran(_)) {
            return Err(format!("kernel {seed} {} by the first configuration", outcomes[0]).into());
        }
        if outcomes.iter().any(|outcome| *outcome != outcomes[0]) {
            return Err(report(&mut comparison, seed).into());
        }
    }
    Ok(())
}

fn report(comparison: &mut Comparison, seed: u64) -> String {
    let kernel = generate::kernel(seed);
    let (least, place) = comparison.reduce(&kernel, Duration::from_secs(120));
    let text = least.print();
    let (block, grid, count) = (least.block, least.grid, tree::instructions(&text));
    format!(
        "kernel {seed} differs (MARGAY_TIERS_SEEDS={seed}..{} runs it alone)\n{place}block {block:?}, grid {grid:?}, \
         {count} instructions in bodies:\n\n{text}",
        seed + 1
    )
}

/// A library that is wrong on purpose is found, and its kernel is cut down to few instructions.
fn finds(tamper: &str, most: usize) -> Result<(), Failed> {
    let configurations = [
        "MARGAY_JIT=off".to_string(),
        format!("MARGAY_JIT=off,TIERS_TAMPER={tamper}"),
    ];
    let mut comparison = Comparison::new(
        &configurations,
        Duration::from_secs(if tamper == "hang" { 8 } else { 180 }),
    );
    comparison.peers.iter_mut().for_each(|(_, peer)| peer.loud = false);
    for seed in 0..200 {
        let outcomes = comparison.seed(seed);
        if outcomes[0] == outcomes[1] {
            continue;
        }
        let expected = match tamper {
            "death" => outcomes[1] == Outcome::Died,
            "hang" => outcomes[1] == Outcome::Hung,
            "refusal" => matches!(outcomes[1], Outcome::Failed(_)),
            _ => matches!(outcomes[1], Outcome::Ran(_)),
        };
        if !expected {
            return Err(format!("kernel {seed}: {}", outcomes[1]).into());
        }
        if tamper == "hang" {
            comparison.patience = Duration::from_millis(300);
        }
        let (least, place) = comparison.reduce(&generate::kernel(seed), Duration::from_secs(120));
        let text = least.print();
        let count = tree::instructions(&text);
        return match count <= most && (tamper != "operation" || place.contains("first difference")) {
            true => Ok(()),
            false => Err(format!("{count} instructions are left of kernel {seed}\n{place}\n{text}").into()),
        };
    }
    Err("nothing was found in 200 kernels".into())
}

/// NVIDIA's assembler takes the kernels.
fn legal(assembler: &Path, range: Range<u64>) -> Result<(), Failed> {
    let file = std::env::temp_dir().join(format!("tiers-{}.ptx", std::process::id()));
    for seed in range {
        std::fs::write(&file, generate::kernel(seed).print())?;
        let output = Command::new(assembler)
            .args(["-arch=sm_90", "-O0", "-o", "/dev/null"])
            .arg(&file)
            .output()?;
        if !output.status.success() {
            return Err(format!("kernel {seed}: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
    }
    let _ = std::fs::remove_file(&file);
    Ok(())
}
