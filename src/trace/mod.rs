//! Where Margay's log goes: the environment decides, once.
//!
//! Lines go to standard error or are appended to a file; all rooms write them with the `tracing` macros.
//!
//! The library lives inside other people's programs. It carries its own copy of `tracing`, so that a host program written
//! in Rust with a subscriber of its own neither sees these lines nor loses its own; and when the crate is linked as a
//! Rust library, whose `tracing` is then shared, a subscriber that is already there is left in place. Nothing is written
//! unless something is worth a warning, or was asked for.

use crate::config::{self, Config};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Once;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;

pub mod error_log;
mod last_words;
pub mod signals;
pub mod status_line;

/// Sets up the log and reports what the environment got wrong. To be called by whatever can come first (`cuInit` and the
/// other entry points that answer before it); only the first call does anything.
pub fn init() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let config = config::get();
        let (filter, mut complaints) = filter(config);
        let sink = match config.log_file.as_deref().map(open) {
            Some(Ok(file)) => Sink::File(file),
            Some(Err((path, error))) => {
                complaints.push(format!(
                    "MARGAY_LOG_FILE: {}: {error}; the log goes to standard error",
                    path.display()
                ));
                Sink::Stderr
            }
            None => Sink::Stderr,
        };
        let subscriber = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_ansi(false)
            .with_thread_ids(true)
            .with_writer(sink)
            .finish()
            .with(error_log::Notes)
            .with(last_words::LastWords);
        // An error means that a subscriber is there already: the host's own, which then gets our lines.
        let _ = tracing::subscriber::set_global_default(subscriber);
        for complaint in config.problems.iter().chain(&complaints) {
            tracing::warn!("{complaint}");
        }
    });
}

/// The filter that `MARGAY_LOG` asks for. The crate is called `cuda`, after the library; people know it as `margay`.
fn filter(config: &Config) -> (EnvFilter, Vec<String>) {
    let mut complaints = Vec::new();
    let mut filter = EnvFilter::default();
    let mut understood = 0;
    for directive in config
        .log
        .split(',')
        .map(str::trim)
        .filter(|directive| !directive.is_empty())
    {
        match rename(directive).parse() {
            Ok(parsed) => {
                filter = filter.add_directive(parsed);
                understood += 1;
            }
            Err(error) => complaints.push(format!("MARGAY_LOG: {directive}: {error}")),
        }
    }
    if understood == 0 {
        filter = filter.add_directive(tracing::Level::WARN.into());
    }
    (filter, complaints)
}

/// `margay::api=debug` means the module `cuda::api`, and `margay=debug` the whole crate.
fn rename(directive: &str) -> String {
    match directive.strip_prefix("margay") {
        Some(rest) if rest.is_empty() || rest.starts_with([':', '=', '[']) => format!("cuda{rest}"),
        _ => directive.to_string(),
    }
}

fn open(path: &Path) -> Result<File, (PathBuf, io::Error)> {
    let path = PathBuf::from(path.to_string_lossy().replace("%p", &std::process::id().to_string()));
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .map_err(|error| (path, error))
}

/// Lines are written whole, each with one system call: appended, they do not mix with those of other processes.
enum Sink {
    Stderr,
    File(File),
}

struct Line<'a> {
    sink: &'a Sink,
    bytes: Vec<u8>,
}

impl<'a> MakeWriter<'a> for Sink {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line {
            sink: self,
            bytes: Vec::new(),
        }
    }
}

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        // A log that cannot be written must not stop the program that is being logged.
        let _ = signals::quietly(|| match self.sink {
            Sink::Stderr => {
                status_line::clear();
                io::stderr().write_all(&self.bytes)
            }
            Sink::File(file) => (&mut &*file).write_all(&self.bytes),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter_of(log: &str) -> (String, Vec<String>) {
        let (filter, complaints) = filter(&Config {
            log: log.into(),
            ..Config::default()
        });
        (filter.to_string(), complaints)
    }

    #[test]
    fn rooms_may_be_called_by_the_projects_name() {
        let (filter, complaints) = filter_of("warn,margay::api=debug");
        assert!(
            filter.contains("cuda::api=debug") && filter.contains("warn"),
            "{filter}"
        );
        assert!(complaints.is_empty());
    }

    #[test]
    fn a_bad_directive_is_reported_and_warnings_stay_on() {
        let (filter, complaints) = filter_of("cuda::api=loud");
        assert_eq!(filter, "warn");
        assert_eq!(complaints.len(), 1);
        assert!(
            complaints[0].starts_with("MARGAY_LOG: cuda::api=loud: "),
            "{}",
            complaints[0]
        );
    }
}
