//! One run of the program, with the loader's report of what it loads and the driver's of what goes wrong.

use super::program::Program;
use super::report::Report;
use crate::place::{LIBRARY, is_margay};
use crate::run::introduce;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Lines of the program's own complaints that are shown.
const LAST_LINES: usize = 8;
/// Messages of the driver that are shown.
const MOST_MESSAGES: usize = 10;

pub struct Trial {
    /// `None`: it was ended for its time.
    status: Option<ExitStatus>,
    time: Duration,
    /// Files that the loader brought into the program's processes.
    pub loaded: BTreeSet<PathBuf>,
    processes: usize,
    /// Warnings and errors of the driver.
    messages: Vec<String>,
    /// Calls that failed, as `cuX: CUDA_ERROR_…`.
    failed: BTreeSet<String>,
    complaints: Vec<String>,
}

/// Runs the program in a group of processes of its own, which ends with it.
pub fn run(program: &Program, arguments: &[OsString], library: &Path, patience: Duration) -> io::Result<Trial> {
    let folder = Folder::make()?;
    let at = |name: &str| folder.0.join(name);
    let mut command = Command::new(&program.name);
    command.args(arguments);
    introduce(&mut command, library, false).map_err(io::Error::other)?;
    command
        .env("LD_DEBUG", "files")
        .env("LD_DEBUG_OUTPUT", at("loader"))
        .env("MARGAY_LOG", "warn,margay::companions=info")
        .env("MARGAY_LOG_FILE", at("driver"))
        .env("CUDA_LOG_FILE", at("calls"))
        .stdin(Stdio::null())
        .stdout(File::create(at("output"))?)
        .stderr(File::create(at("complaints"))?)
        .process_group(0);
    let began = Instant::now();
    let mut child = command.spawn()?;
    let group = -(child.id() as libc::pid_t);
    let status = loop {
        match child.try_wait()? {
            Some(status) => break Some(status),
            None if began.elapsed() > patience => {
                // SAFETY: a signal to the group that was made for the child, which has not been waited for yet.
                unsafe { libc::kill(group, libc::SIGKILL) };
                child.wait()?;
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let time = began.elapsed();
    let mut loaded = BTreeSet::new();
    let mut processes = 0;
    for entry in fs::read_dir(&folder.0)?.flatten() {
        if entry.file_name().to_string_lossy().starts_with("loader.") {
            processes += 1;
            loaded.extend(files_loaded(&text(&entry.path())));
        }
    }
    let messages = text(&at("driver"));
    let messages = messages_of(&messages);
    Ok(Trial {
        status,
        time,
        loaded,
        processes,
        failed: failed_calls(&text(&at("calls"))),
        messages,
        complaints: last_lines(&text(&at("complaints"))),
    })
}

impl Trial {
    pub fn examine(&self, library: &Path, report: &mut Report) {
        let end = match self.status {
            None => "was ended by the doctor, for it took too long (--timeout)".to_string(),
            Some(status) => match (status.code(), status.signal()) {
                (Some(code), _) => format!("ended with exit code {code}"),
                (None, Some(signal)) => format!("was ended by signal {signal}"),
                (None, None) => "ended".into(),
            },
        };
        let processes = match self.processes {
            0 | 1 => String::new(),
            n => format!(", with {n} processes"),
        };
        report.seen(
            "trial",
            format!("it {end} after {:.1} s{processes}", self.time.as_secs_f64()),
        );
        self.examine_driver(library, report);
        // Of files without PTX their own examination tells, with what to do.
        let is_of_a_file = |message: &&String| {
            self.loaded
                .iter()
                .any(|file| message.contains(&format!("the GPU code of {} holds no PTX", file.display())))
        };
        for message in self
            .messages
            .iter()
            .filter(|message| !is_of_a_file(message))
            .take(MOST_MESSAGES)
        {
            report.problem(format!("The driver says: {message}"), "");
        }
        if !self.failed.is_empty() {
            let calls: Vec<&str> = self.failed.iter().map(String::as_str).collect();
            report.seen(
                "trial",
                format!("calls that failed (programs may expect that): {}", calls.join(", ")),
            );
        }
        if self.has_failed() && !self.complaints.is_empty() {
            report.seen(
                "trial",
                format!("the end of its standard error:\n{}", self.complaints.join("\n")),
            );
        }
    }

    /// It ended by itself, and not as programs do that succeed.
    pub fn has_failed(&self) -> bool {
        self.status.is_some_and(|status| !status.success())
    }

    /// Which `libcuda.so.1` it got.
    fn examine_driver(&self, library: &Path, report: &mut Report) {
        let named = |name: &str| {
            let name = OsStr::new(name).to_os_string();
            self.loaded.iter().filter(move |path| path.file_name() == Some(&name))
        };
        let ours = library.canonicalize().ok();
        let mut drivers: Vec<&PathBuf> = named(LIBRARY).chain(named("libcuda.so")).collect();
        drivers.dedup_by_key(|path| path.canonicalize().ok());
        // The wheel has a second file beside the library, which has the other name and leads to it.
        let folder = |path: &Path| path.parent().map(Path::to_path_buf);
        drivers.retain(|path| {
            let real = path.canonicalize().ok();
            real == ours || real.as_deref().and_then(folder) != ours.as_deref().and_then(folder)
        });
        for driver in &drivers {
            let real = driver.canonicalize().ok();
            if real == ours {
                report.seen("trial", format!("its driver is Margay's, {}", driver.display()));
            } else if is_margay(driver) {
                report.problem(
                    format!("The program loads another Margay, {}.", driver.display()),
                    "take it out of the program's search path, or use the `margay` beside it",
                );
            } else {
                report.problem(
                    format!("The program loads {}, which is not Margay.", driver.display()),
                    "`margay run --preload`, for programs that look for the driver in fixed places",
                );
            }
        }
        if drivers.is_empty() {
            let runtime = self.loaded.iter().any(|path| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                name.starts_with("libcudart.so")
            });
            report.problem(
                "The program never loaded libcuda.so.1.",
                match runtime {
                    true => "it ended before its first CUDA call, or in an error of its own",
                    false => {
                        "it ended before its first CUDA call, or does not use CUDA: is it the version of the package that does?"
                    }
                },
            );
        }
    }
}

/// A folder that goes with its owner.
struct Folder(PathBuf);

impl Folder {
    fn make() -> io::Result<Folder> {
        let path = std::env::temp_dir().join(format!("margay-doctor-trial-{}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is left to whoever cleans the folder for such files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// As much as can be read; nothing of a file that is not there.
fn text(path: &Path) -> String {
    fs::read(path).map_or(String::new(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// ld.so(8), `LD_DEBUG=files`: each library that is loaded is told of when its constructors run, and then the program.
fn files_loaded(report: &str) -> impl Iterator<Item = PathBuf> + '_ {
    let words = ["calling init: ", "initialize program: "];
    let paths = report
        .lines()
        .filter_map(move |line| words.iter().find_map(|words| line.split(words).nth(1)));
    paths.filter(|path| path.starts_with('/')).map(PathBuf::from)
}

/// Warnings and errors, each once, with the lines that belong to them.
fn messages_of(log: &str) -> Vec<String> {
    let mut messages: Vec<String> = Vec::new();
    let mut wanted = false;
    for line in log.lines() {
        let level = [" WARN ", " ERROR ", " INFO ", " DEBUG ", " TRACE "]
            .iter()
            .position(|level| {
                line.split("ThreadId(")
                    .next()
                    .is_some_and(|start| start.contains(level))
            });
        match level {
            Some(0 | 1) => {
                wanted = true;
                // After the time, the level, the thread and the room.
                let message = line.split_once(": ").map_or(line, |(_, message)| message);
                messages.push(message.to_string());
            }
            Some(_) => wanted = false,
            None if wanted => {
                if let Some(last) = messages.last_mut() {
                    last.push('\n');
                    last.push_str(line);
                }
            }
            None => {}
        }
    }
    let mut seen = BTreeSet::new();
    messages.retain(|message| seen.insert(message.clone()));
    messages
}

/// `[time][thread][CUDA][E][cuMemAlloc_v2] CUDA_ERROR_…`: without time and thread, each once.
fn failed_calls(log: &str) -> BTreeSet<String> {
    let calls = log.lines().filter_map(|line| line.split_once("[CUDA][E][cu"));
    let calls = calls.filter_map(|(_, rest)| rest.split_once("] "));
    calls
        .map(|(call, text)| format!("cu{call}: {}", text.split(' ').next().unwrap_or_default()))
        .collect()
}

fn last_lines(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let first = lines.len().saturating_sub(LAST_LINES);
    lines[first..].iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loader_says_what_it_loads() {
        let report = "    81:\t\n    81:\tcalling init: /lib/libc.so.6\n    81:\tcalling fini: /x [0]\n    81:\tcalling init: ./a\n    81:\tinitialize program: /bin/app\n";
        assert_eq!(
            files_loaded(report).collect::<Vec<_>>(),
            [PathBuf::from("/lib/libc.so.6"), PathBuf::from("/bin/app")]
        );
    }

    #[test]
    fn warnings_are_told_once_and_whole() {
        let log = "\
2026-01-02T03:04:05Z  WARN ThreadId(01) cuda::driver::code: no PTX
2026-01-02T03:04:05Z  INFO ThreadId(01) cuda::companions: at work
 of no interest
2026-01-02T03:04:06Z ERROR ThreadId(02) cuda::driver::context: 700: a stray access
  in kernel k
2026-01-02T03:04:07Z  WARN ThreadId(03) cuda::driver::code: no PTX
";
        assert_eq!(messages_of(log), ["no PTX", "700: a stray access\n  in kernel k"]);
    }

    #[test]
    fn failed_calls_are_told_once() {
        let log = "[03:04:05.678][81][CUDA][E][cuMemAlloc_v2] CUDA_ERROR_OUT_OF_MEMORY (2): out of memory\n\
                   [03:04:05.679][81][CUDA][E][cuMemAlloc_v2] CUDA_ERROR_OUT_OF_MEMORY (2): out of memory\n\
                   [03:04:05.680][81][CUDA][W] something\n";
        assert_eq!(
            failed_calls(log).into_iter().collect::<Vec<_>>(),
            ["cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY"]
        );
    }
}
