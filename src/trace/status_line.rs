//! The one line at the bottom of a terminal that says what is being waited for. Whoever writes something else there removes it
//! before; it comes back if there is still something to say.

use std::io::Write;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

/// Whether a line is there to be removed.
static SHOWN: AtomicBool = AtomicBool::new(false);
/// Held while the terminal is written to.
static TERMINAL: Mutex<()> = Mutex::new(());

/// Columns that a terminal is taken to have that does not say.
const COLUMNS: usize = 80;

/// Whether standard error is a terminal that can take a line back.
pub fn has_terminal() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    // SAFETY: asks about a descriptor by number.
    !is_dumb && unsafe { libc::isatty(std::io::stderr().as_raw_fd()) } == 1
}

/// Shows a line in place of the one that is there; what does not fit is cut off.
pub fn show(text: &str) {
    let _turn = TERMINAL.lock();
    SHOWN.store(true, Ordering::Relaxed);
    write(&format!("\r{}\x1b[K", fitting(text, columns())));
}

/// Removes the line, if one is there.
#[inline]
pub fn clear() {
    if SHOWN.load(Ordering::Relaxed) {
        remove();
    }
}

#[cold]
fn remove() {
    let _turn = TERMINAL.lock();
    if SHOWN.swap(false, Ordering::Relaxed) {
        write("\r\x1b[K");
    }
}

fn write(text: &str) {
    // A terminal that is gone must not stop the program.
    let _ = super::signals::quietly(|| std::io::stderr().write_all(text.as_bytes()));
}

fn columns() -> usize {
    // SAFETY: an all-zero record is fit to be filled, and the call fills such a one.
    let size = unsafe {
        let mut size: libc::winsize = std::mem::zeroed();
        libc::ioctl(std::io::stderr().as_raw_fd(), libc::TIOCGWINSZ, &mut size);
        size
    };
    match size.ws_col {
        0 => COLUMNS,
        columns => usize::from(columns),
    }
}

/// As much of a text as leaves the last column free, where some terminals would begin a new line.
fn fitting(text: &str, columns: usize) -> String {
    let room = columns.saturating_sub(1);
    if text.chars().count() <= room {
        return text.to_string();
    }
    let mut short: String = text.chars().take(room.saturating_sub(1)).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_never_reaches_the_last_column() {
        assert_eq!(fitting("12345", 6), "12345");
        assert_eq!(fitting("12345", 5), "123…");
        assert_eq!(fitting("äöü€5", 5), "äöü…");
        assert_eq!(fitting("12345", 0), "…");
    }
}
