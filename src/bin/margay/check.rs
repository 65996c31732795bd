//! `margay check CMD…`: runs a program and counts what is found wrong in its kernels and calls.
//!
//! The options are those of NVIDIA's compute-sanitizer, as far as there is what they ask for. The library finds and reports
//! (`MARGAY_CHECK`); this command waits for the program and sums up.

mod formats;
mod options;
mod others;
mod output;
mod rules;
mod whole;

use crate::Outcome;
use crate::run::{introduce, library, not_started, tell_of_other_drivers};
use clap::ArgMatches;
use serde_json::Value;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode, ExitStatus};

pub use options::command;

use options::Asked;
use output::Output;
use rules::Rules;

/// What a run of the program, or several, came to.
struct Ended<'a> {
    /// What the library has written down.
    records: &'a [Value],
    /// What was found.
    found: Vec<Value>,
    /// The program's own exit code.
    own: u8,
}

/// All that is known before the program starts.
struct Session<'a> {
    matches: &'a ArgMatches,
    asked: Asked,
    list: List,
    rules: Rules,
    output: Output,
}

pub fn run(matches: &ArgMatches) -> Outcome {
    others::refuse(&options::own(), matches)?;
    let mut given = matches.get_many::<OsString>("program").into_iter().flatten();
    let program = given.next().ok_or("no program given")?;
    let arguments: Vec<&OsString> = given.collect();
    let rules = matches.get_one::<PathBuf>("suppressions").map(|file| Rules::read(file));
    let output = Output::of(matches)?;
    let asked = options::asked(matches, output.path())?;
    let mut session = Session {
        matches,
        asked,
        list: List::make().map_err(|error| format!("no file to count in: {error}"))?,
        rules: rules.transpose()?.unwrap_or_default(),
        output,
    };
    let library = library()?;
    tell_of_other_drivers("check", &library);
    if let (true, Some(seeds)) = (matches.get_flag("whole"), matches.get_one::<u32>("seeds")) {
        return whole::run(&mut session, &library, program, &arguments, *seeds);
    }
    let mut command = process::Command::new(program);
    command.args(arguments);
    introduce(&mut command, &library, false)?;
    command.envs(session.environment());
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
    let records = session.list.read();
    session.conclude(&Ended {
        found: findings(&records),
        records: &records,
        own: own_code(status),
    })
}

/// As shells have it: 128 and the signal.
fn own_code(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => code as u8,
        (None, signal) => 128_u8.wrapping_add(signal.unwrap_or(0) as u8),
    }
}

impl Session<'_> {
    /// What the program's environment gets.
    fn environment(&self) -> impl Iterator<Item = (&'static str, OsString)> {
        let own: [(&'static str, OsString); 2] = [
            ("MARGAY_CHECK", self.asked.words.join(",").into()),
            ("MARGAY_CHECK_LOG", self.list.0.clone().into()),
        ];
        own.into_iter().chain(self.asked.settings.iter().cloned())
    }

    /// Says what was found, and writes it where it is asked for.
    fn conclude(&mut self, ended: &Ended<'_>) -> Outcome {
        let (matches, found) = (self.matches, &ended.found);
        let is = |record: &str| ended.records.iter().any(|one| one["record"] == record);
        for note in self.rules.unused(ended.records) {
            self.output.line(&format!("note: {note}"));
        }
        // Without anything to look for, processes say nothing of themselves.
        let used_cuda = self.asked.words.is_empty() || is("process");
        if used_cuda && self.asked.filters && !is("launch") {
            self.output
                .line("note: no launch was looked at: the filters for kernels and launches let none pass");
        }
        let sum = match used_cuda || !found.is_empty() {
            true => formats::sum(found),
            false => format!("nothing found: no process {}used CUDA", self.asked.of_those()),
        };
        if !(matches.get_flag("quiet") && found.is_empty() && used_cuda) {
            self.output.line(&sum);
        }
        let write = |path: &PathBuf, text: String| {
            std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
        };
        if let (Some(format), Some(path)) = (
            matches.get_one::<String>("format"),
            matches.get_one::<PathBuf>("output"),
        ) {
            let suppressed = ended.records.iter().filter(|record| record["record"] == "suppressed");
            let suppressed = suppressed.filter_map(|record| record["count"].as_u64()).sum();
            let data = match format.as_str() {
                "sarif" => formats::sarif(found, &std::env::current_dir().unwrap_or_default()),
                _ => formats::json(found, suppressed, &sum),
            };
            write(path, format!("{data:#}\n"))?;
        }
        if let Some(path) = matches.get_one::<PathBuf>("generate-suppressions") {
            write(path, rules::generate(found))?;
        }
        let code = *matches.get_one::<u8>("error-exitcode").unwrap_or(&1);
        let is_wrong = !found.is_empty() || !used_cuda && self.asked.requires_cuda && ended.own == 0;
        Ok(ExitCode::from(if is_wrong && code != 0 { code } else { ended.own }))
    }
}

/// The findings among the records that the library writes.
fn findings(records: &[Value]) -> Vec<Value> {
    let found = records.iter().filter(|record| record["record"] == "finding");
    found.cloned().collect()
}

/// The file to which all processes of the program add what they find; it goes in the end.
struct List(PathBuf);

impl List {
    fn make() -> std::io::Result<List> {
        let path = std::env::temp_dir().join(format!("margay-check-{}", process::id()));
        std::fs::File::create_new(&path)?;
        Ok(List(path))
    }

    /// The records in it, an object on each line. A line that was cut off by the end of its process is none.
    fn read(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        text.lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }
}

impl Drop for List {
    fn drop(&mut self) {
        // What cannot be removed is left to whoever cleans the folder for such files.
        let _ = std::fs::remove_file(Path::new(&self.0));
    }
}
