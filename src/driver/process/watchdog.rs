//! Deadlocks across the whole program: kernels that look at words, streams and threads that wait, and nobody left to do anything.
//!
//! Where synchronisation is checked, a thread looks once a second. If nothing has happened for ten seconds, all grids wait for
//! words that no other process can have, all busy streams run such grids or wait, and each thread of the program's own is in a wait of the driver's or of the
//! system's (a lock, a join) that only another thread can end, then nobody ever gets on: grids end with 719, and the report says
//! who waits for what. A thread of the program's that sleeps, polls or computes may still set a flag, and nothing is said.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::sync::Once;
use std::thread;
use std::time::Duration;

use crate::config;
use crate::driver::context;
use crate::driver::stream::{Doing, Standing};
use crate::memory::AddressSpace;
use crate::program::Named;
use crate::sanitizer::sync::{self, Stuck};
use crate::simt::NamedThreads;

use super::check::{self, Finding, Kind};
use super::waits::{self, Word};

const PAUSE: Duration = Duration::from_secs(1);
/// Looks in a row that find nothing changed.
const PATIENCE: u32 = 10;

pub fn start() {
    static ONCE: Once = Once::new();
    if config::get().check.sync {
        ONCE.call_once(|| {
            let looks = || {
                // Whatever is wrong with it is no reason to bother the program.
                let _ = crate::defect::within(look_on);
            };
            if let Err(error) = thread::Builder::new().name("margay-watchdog".into()).spawn(looks) {
                tracing::warn!("deadlocks of the whole program will not be found: {error}");
            }
        });
    }
}

fn look_on() {
    let (mut quiet, mut last) = (0, Vec::new());
    loop {
        thread::sleep(PAUSE);
        let now: Vec<_> = streams().iter().map(|s| (s.id, s.completed, s.behind)).collect();
        if sync::next_moment() || now != last {
            quiet = 0;
            waits::grids().iter().for_each(|grid| grid.forget());
        } else {
            quiet += 1;
        }
        last = now;
        if quiet >= PATIENCE {
            quiet = 0;
            judge();
        }
    }
}

fn streams() -> Vec<Standing> {
    context::all_streams()
        .iter()
        .filter_map(|stream| stream.standing())
        .collect()
}

/// Nothing has happened for long: ends what will never end, if that is so.
fn judge() {
    let (grids, words, streams, host) = (waits::grids(), waits::words(), streams(), waits::host());
    let at_work = streams.iter().filter(|stream| stream.doing == Doing::Runs).count();
    let in_line = streams.iter().any(|stream| stream.doing == Doing::InLine);
    if grids.len() + words.len() == 0 || at_work > grids.len() + words.len() || in_line || waits::host_functions() > 0 {
        return;
    }
    let stuck: Option<Vec<Stuck>> = grids.iter().map(|grid| grid.stuck()).collect();
    let Some(mut stuck) = stuck else { return };
    stuck.sort_by(|one, other| (&one.kernel, &one.addresses).cmp(&(&other.kernel, &other.addresses)));
    let looked_at = stuck.iter().flat_map(|grid| &grid.addresses).copied();
    let mut looked_at = looked_at.chain(words.iter().map(|word| word.address));
    if !looked_at.all(is_private) || !all_wait(&host) {
        return;
    }
    let text = describe(&stuck, &words, &streams, &host);
    // The first one tells of all; who ends behind it finds its context failed.
    for (i, grid) in grids.iter().enumerate() {
        if i == 1 {
            thread::sleep(PAUSE);
        }
        grid.give_up(text.clone());
    }
    if grids.is_empty() {
        check::tell(&Finding::new(Kind::Synchronisation, format!("deadlock: {text}")));
    }
    words.iter().for_each(Word::give_up);
}

/// Whether no other process can write a word.
fn is_private(address: u64) -> bool {
    let space = AddressSpace::get();
    match space.find(address) {
        Some(allocation) => allocation.is_private(),
        None => !space.host_range_contains(address, 1, 0),
    }
}

/// Whether no thread of the program's own can do anything: each waits in a call of the driver, or for another thread.
fn all_wait(host: &BTreeMap<i64, u64>) -> bool {
    let Ok(threads) = fs::read_dir("/proc/self/task") else {
        return false;
    };
    threads.flatten().all(|thread| {
        let path = thread.path();
        let name = fs::read_to_string(path.join("comm")).unwrap_or_default();
        let number = thread.file_name().to_str().and_then(|name| name.parse().ok());
        name.starts_with("margay-")
            || number.is_some_and(|number: i64| host.contains_key(&number))
            || fs::read_to_string(path.join("syscall")).is_ok_and(|call| waits_for_another(&call))
    })
}

/// What the system says of a thread's call: whether it waits at a futex without a time limit.
fn waits_for_another(call: &str) -> bool {
    /// `FUTEX_WAIT`, `FUTEX_WAIT_BITSET` and their flags.
    const WAITS: [u64; 2] = [0, 9];
    const FLAGS: u64 = 128 | 256;
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    let words: Option<Vec<u64>> = call.split_whitespace().map(number).collect();
    match words.as_deref() {
        Some([call, _, operation, _, limit, ..]) => {
            *call == libc::SYS_futex as u64 && WAITS.contains(&(operation & !FLAGS)) && *limit == 0
        }
        Some(_) | None => false,
    }
}

fn describe(stuck: &[Stuck], words: &[Word], streams: &[Standing], host: &BTreeMap<i64, u64>) -> String {
    let mut text =
        String::from("nothing of the program has got on for 10 seconds, and nobody is left who could change that");
    for grid in stuck {
        let _ = write!(text, "\n  kernel {} waits:", Named(&grid.kernel));
        for waiting in &grid.waiting {
            let [x, y, z] = waiting.party.block;
            let site = &waiting.party.site;
            let _ = write!(
                text,
                "\n    block ({x},{y},{z}), {} {} at the word at {}",
                NamedThreads(&waiting.party.threads),
                if waiting.party.threads.len() == 1 {
                    "looks"
                } else {
                    "look"
                },
                place(waiting.address)
            );
            // Of functions that were inlined, who called them.
            let _ = match site.origin.lines.last() {
                Some(line) => write!(text, " ({}:{}, PTX line {})", line.shown(), line.line, site.ptx_line),
                None => write!(text, " (PTX line {})", site.ptx_line),
            };
        }
        if grid.more > 0 {
            let _ = write!(text, "\n    and threads at {} more places or words", grid.more);
        }
        if grid.begun < grid.blocks {
            let left = grid.blocks - grid.begun;
            let _ = write!(
                text,
                "\n    {left} of its {} blocks have not begun: no more fit at a time",
                grid.blocks
            );
        }
    }
    for word in words {
        let is = match word.how {
            0 => "is at least",
            1 => "is",
            2 => "has a bit in common with",
            _ => "has a bit that is clear in both it and",
        };
        let _ = write!(
            text,
            "\n  a stream waits until the word at {} {is} {:#x} (cuStreamWaitValue)",
            place(word.address),
            word.value
        );
    }
    let name = |id: u64| match streams.iter().find(|stream| stream.id == id) {
        Some(stream) => format!("stream {:#x}", stream.handle),
        None => "a stream".to_owned(),
    };
    for stream in streams {
        let commands = match stream.behind {
            0 => continue,
            1 => "1 command of".to_owned(),
            n => format!("{n} commands of"),
        };
        let what = match stream.doing {
            Doing::WaitsFor(other) => format!("a point of {}", name(other)),
            Doing::Runs | Doing::InLine => "what is at work there".to_owned(),
        };
        let verb = if stream.behind == 1 { "waits" } else { "wait" };
        let _ = write!(text, "\n  {commands} {} {verb} for {what}", name(stream.id));
    }
    for stream in host.values() {
        let _ = write!(text, "\n  a thread of the host waits for {}", name(*stream));
    }
    text
}

/// An address, and what it is in.
fn place(address: u64) -> String {
    match AddressSpace::get().nearest(address).filter(|near| near.is_near()) {
        Some(near) => format!("{address:#x}, {near}"),
        None => format!("{address:#x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::waits_for_another;

    #[test]
    fn waits_without_a_limit_are_for_another_thread() {
        let futex = libc::SYS_futex;
        assert!(waits_for_another(&format!(
            "{futex} 0x7f00 0x80 0x2 0x0 0x0 0x0 0x7ffd 0x7f01"
        )));
        assert!(waits_for_another(&format!(
            "{futex} 0x7f00 0x189 0x2 0x0 0x0 0xffffffff 0x7ffd 0x7f01"
        )));
        // With a limit; a wake-up; another call; one that runs.
        assert!(!waits_for_another(&format!(
            "{futex} 0x7f00 0x80 0x2 0x7ffd10 0x0 0x0 0x7ffd 0x7f01"
        )));
        assert!(!waits_for_another(&format!(
            "{futex} 0x7f00 0x81 0x2 0x0 0x0 0x0 0x7ffd 0x7f01"
        )));
        assert!(!waits_for_another("230 0x0 0x0 0x7ffd 0x0 0x0 0x0 0x7ffd 0x7f01"));
        assert!(!waits_for_another("running"));
    }
}
