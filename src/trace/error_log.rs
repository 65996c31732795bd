//! The driver's error log: what went wrong lately, for programs that ask (CUDA driver API manual, "Error Log Management
//! Functions"), and for the file that `CUDA_LOG_FILE` names.
//!
//! Failed calls come from `api/call.rs`, warnings and errors of all rooms through `tracing`.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// Bytes of lines that are kept (manual, cuLogsDumpToMemory).
pub const CAPACITY: usize = 25600;

/// How long a line waits for its turn.
const PATIENCE: Duration = Duration::from_millis(100);

/// `CUlogLevel`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Severity {
    Error = 0,
    Warning = 1,
}

/// Gets each line: level, text.
pub type Listener = Box<dyn Fn(Severity, &str) + Send + Sync>;

#[derive(Default)]
struct Log {
    lines: VecDeque<String>,
    bytes: usize,
    /// The number of the next line; numbers wrap around.
    next: u32,
    listeners: Vec<(usize, std::sync::Arc<Listener>)>,
    listener_number: usize,
}

static LOG: Mutex<Option<Log>> = Mutex::new(None);
static MUTED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// A listener's own mistakes are not told to listeners.
    static TELLING: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

fn with<R>(f: impl FnOnce(&mut Log) -> R) -> R {
    f(LOG.lock().get_or_insert_with(Log::default))
}

/// Nothing is noted while it is muted: a client expects that calls of its own may fail.
pub fn mute(on: bool) {
    MUTED.store(on, Ordering::Relaxed);
}

/// `[time][thread][CUDA][E][call] text`
fn line(severity: Severity, call: &str, text: &str) -> String {
    let letter = match severity {
        Severity::Error => 'E',
        Severity::Warning => 'W',
    };
    // SAFETY: plain numbers; an all-zero record is fit to be filled.
    let (thread, time, now) = unsafe {
        let mut now: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_REALTIME, &mut now);
        let mut time: libc::tm = std::mem::zeroed();
        libc::localtime_r(&now.tv_sec, &mut time);
        (libc::gettid(), time, now)
    };
    let mut line = format!(
        "[{:02}:{:02}:{:02}.{:03}][{thread}][CUDA][{letter}]",
        time.tm_hour,
        time.tm_min,
        time.tm_sec,
        now.tv_nsec / 1_000_000
    );
    if !call.is_empty() {
        // Writing to a String cannot fail.
        let _ = write!(line, "[{call}]");
    }
    line.push(' ');
    // One entry is one line.
    line.extend(text.trim_end().chars().map(|c| if c == '\n' { ' ' } else { c }));
    line
}

/// Notes something. `call` is the entry point, if it is known.
pub fn note(severity: Severity, call: &str, text: &str) {
    if MUTED.load(Ordering::Relaxed) || TELLING.try_with(|telling| telling.replace(true)).unwrap_or(true) {
        return;
    }
    let line = line(severity, call, text);
    let listeners = keep(&line);
    if let Some(file) = file() {
        let mut file = file.lock();
        // A log that cannot be written must not stop the program that is being logged.
        let _ = super::signals::quietly(|| file.write_all(format!("{line}\n").as_bytes()));
    }
    for listener in listeners {
        listener(severity, &line);
    }
    let _ = TELLING.try_with(|telling| telling.set(false));
}

/// Runs a listener later than [`note`] does: what goes wrong in it is not told either.
pub fn unheard(work: impl FnOnce()) {
    let outer = TELLING.try_with(|telling| telling.replace(true));
    work();
    if let Ok(outer) = outer {
        let _ = TELLING.try_with(|telling| telling.set(outer));
    }
}

/// Adds a line; answers who wants to hear it.
fn keep(line: &str) -> Vec<std::sync::Arc<Listener>> {
    // In a child of a process that was writing, nobody will ever let go of the lock.
    let Some(mut log) = LOG.try_lock_for(PATIENCE) else {
        return Vec::new();
    };
    let log = log.get_or_insert_with(Log::default);
    log.bytes += line.len() + 1;
    log.lines.push_back(line.to_owned());
    log.next = log.next.wrapping_add(1);
    while log.bytes > CAPACITY {
        let Some(oldest) = log.lines.pop_front() else { break };
        log.bytes -= oldest.len() + 1;
    }
    log.listeners.iter().map(|(_, listener)| listener.clone()).collect()
}

/// `CUDA_LOG_FILE`: `stdout`, `stderr`, or a path.
fn file() -> Option<&'static Mutex<Box<dyn Write + Send>>> {
    static FILE: OnceLock<Option<Mutex<Box<dyn Write + Send>>>> = OnceLock::new();
    FILE.get_or_init(|| {
        let name = std::env::var_os("CUDA_LOG_FILE")?;
        let file: Box<dyn Write + Send> = match name.to_str() {
            Some("stdout") => Box::new(std::io::stdout()),
            Some("stderr") => Box::new(std::io::stderr()),
            _ => match File::options().create(true).append(true).open(&name) {
                Ok(file) => Box::new(file),
                Err(error) => {
                    tracing::warn!("CUDA_LOG_FILE: {}: {error}", name.display());
                    return None;
                }
            },
        };
        Some(Mutex::new(file))
    })
    .as_ref()
}

/// Where the next line will be.
pub fn tail() -> u32 {
    with(|log| log.next)
}

/// Lines from a place on, all that are kept if none is named; whether older ones of them are lost; and where the next will
/// be.
pub fn since(place: Option<u32>) -> (Vec<String>, bool, u32) {
    with(|log| {
        let kept = log.lines.len() as u32;
        let wanted = match place {
            Some(place) => log.next.wrapping_sub(place),
            None => log.next,
        };
        // A place that never was: nothing comes after it.
        let wanted = if wanted > log.next { 0 } else { wanted };
        let skipped = kept.saturating_sub(wanted) as usize;
        let lines = log.lines.iter().skip(skipped).cloned().collect();
        (lines, wanted > kept, log.next)
    })
}

/// Tells a listener of every line from now on; answers its number.
pub fn listen(listener: Listener) -> usize {
    with(|log| {
        log.listener_number += 1;
        log.listeners.push((log.listener_number, std::sync::Arc::new(listener)));
        log.listener_number
    })
}

/// `false`: there is no such listener.
pub fn forget(number: usize) -> bool {
    with(|log| {
        let before = log.listeners.len();
        log.listeners.retain(|(other, _)| *other != number);
        log.listeners.len() < before
    })
}

/// Warnings and errors of all rooms.
pub(super) struct Notes;

impl<S: Subscriber> Layer<S> for Notes {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let severity = match *event.metadata().level() {
            Level::ERROR => Severity::Error,
            Level::WARN => Severity::Warning,
            _ => return,
        };
        struct Message(String);
        impl Visit for Message {
            fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
                if field.name() == "message" {
                    self.0 = format!("{value:?}");
                }
            }
        }
        let mut message = Message(String::new());
        event.record(&mut message);
        note(severity, "", &message.0);
    }
}
