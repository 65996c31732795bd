//! The tables with which a process ends that was asked for a summary (`MARGAY_SUMMARY=1`, `margay run --summary`): kernels by
//! time, copies, memory, calls, what went wrong, and of which instructions the manual does not define every bit.

use std::fmt::Write;
use std::io::Write as _;
use std::process;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use super::tally::{self, Count, Tally, Way};
use crate::driver::{Device, Error};
use crate::isa::fidelity::Fidelity;
use crate::memory::AddressSpace;
use crate::program::demangle;
use crate::program::executed::{self, Executed};
use crate::simt::account::{self, Ran};

/// Kernels, and calls, that have lines of their own.
const MOST: usize = 20;
/// Characters of a kernel's name.
const NAME: usize = 80;

/// The process that is asked, and since when.
static PROCESS: OnceLock<(u32, Instant)> = OnceLock::new();

/// Notes everything from now on, and prints it when the process ends by itself.
pub fn start() {
    if !crate::config::get().summary || PROCESS.set((process::id(), Instant::now())).is_err() {
        return;
    }
    account::keep();
    tally::keep();
    executed::keep();
    extern "C" fn at_exit() {
        // A child by `fork` has its parent's notes, which are not its own.
        let Some((_, since)) = PROCESS.get().filter(|(process, _)| *process == process::id()) else {
            return;
        };
        let text = crate::defect::within(|| Summary::now(since.elapsed()).text()).unwrap_or_default();
        // Nobody is left to tell of a failure.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
    // SAFETY: the handler catches panics, and the library is never unloaded.
    unsafe { libc::atexit(at_exit) };
}

struct Summary {
    program: String,
    process: u32,
    time: Duration,
    kernels: Vec<(Arc<str>, Ran)>,
    tally: Tally,
    /// Devices that had memory in use, with the most bytes at a time.
    memory: Vec<(u32, u64)>,
    executed: Executed,
}

impl Summary {
    fn now(time: Duration) -> Summary {
        let program = std::env::current_exe().ok();
        let program = program.as_deref().and_then(|path| path.file_name());
        let devices = (0..Device::count()).map(|device| (device, AddressSpace::get().peak(device)));
        Summary {
            program: program.map_or("?".into(), |name| name.to_string_lossy().into_owned()),
            process: process::id(),
            time,
            kernels: account::ran(),
            tally: tally::noted(),
            memory: devices.filter(|(_, bytes)| *bytes > 0).collect(),
            executed: executed::noted(),
        }
    }

    fn text(&self) -> String {
        let mut out = format!(
            "\nmargay: summary of {} (process {}), {} after cuInit\n",
            self.program,
            self.process,
            time(self.time)
        );
        self.kernels(&mut out);
        self.copies(&mut out);
        self.calls(&mut out);
        self.doubts(&mut out);
        out
    }

    fn kernels(&self, out: &mut String) {
        let total: Duration = self.kernels.iter().map(|(_, ran)| ran.time).sum();
        if self.kernels.is_empty() {
            out.push_str("  no kernel ran\n");
            return;
        }
        let _ = writeln!(
            out,
            "  {:>9} {:>6} {:>9} {:>9} {:>9}  {:<12} kernel",
            "time", "share", "launches", "mean", "longest", "how"
        );
        for (name, ran) in self.kernels.iter().take(MOST) {
            let share = 100.0 * ran.time.as_secs_f64() / total.as_secs_f64().max(f64::MIN_POSITIVE);
            let how = match (ran.interpreted, ran.compiled) {
                (launches, _) if launches == ran.launches => "interpreted",
                (_, launches) if launches == ran.launches => "compiled",
                _ => "both",
            };
            let failed = match ran.failed {
                0 => String::new(),
                n => format!(" ({n} failed)"),
            };
            let _ = writeln!(
                out,
                "  {:>9} {share:>4.0} % {:>9} {:>9} {:>9}  {how:<12} {}{failed}",
                time(ran.time),
                ran.launches,
                time(ran.time.div_f64(ran.launches as f64)),
                time(ran.longest),
                shortened(&demangle(name)),
            );
        }
        if let Some(rest) = self.kernels.get(MOST..).filter(|rest| !rest.is_empty()) {
            let sum: Duration = rest.iter().map(|(_, ran)| ran.time).sum();
            let _ = writeln!(out, "  {:>9} in {} other kernels", time(sum), rest.len());
        }
    }

    fn copies(&self, out: &mut String) {
        for (device, most) in &self.memory {
            let _ = writeln!(out, "  memory    device {device}: {} at most", size(*most));
        }
        let words = |way| match way {
            Way::ToDevice => "to devices",
            Way::FromDevice => "from devices",
            Way::OnDevice => "on devices",
            Way::OnHost => "on the host",
            Way::Set => "set",
        };
        let copies = self.tally.copies.iter();
        let copies: Vec<_> = copies
            .map(|(&way, count)| format!("{} {} ({})", words(way), size(count.bytes), times(count.times)))
            .collect();
        if !copies.is_empty() {
            let _ = writeln!(out, "  copies    {}", copies.join(", "));
        }
    }

    /// How long the program waited for the driver: the time within its calls.
    fn calls(&self, out: &mut String) {
        let mut calls: Vec<(&str, Count)> = self.tally.calls.iter().map(|(name, count)| (*name, *count)).collect();
        calls.sort_by(|(a, x), (b, y)| y.time.cmp(&x.time).then_with(|| a.cmp(b)));
        let all: Duration = calls.iter().map(|(_, count)| count.time).sum();
        let number: u64 = calls.iter().map(|(_, count)| count.times).sum();
        let longest = calls.iter().take(3);
        let longest: Vec<_> = longest
            .map(|(name, count)| format!("{name} {} ({})", time(count.time), times(count.times)))
            .collect();
        let _ = writeln!(
            out,
            "  driver    {} spent in {number} calls, the most in {}",
            time(all),
            longest.join(", ")
        );
    }

    /// What failed, and what is not to the bit what a GPU computes.
    fn doubts(&self, out: &mut String) {
        for ((name, result), n) in self.tally.failed.iter().take(MOST) {
            let error = Error::from_code(*result).map_or("an unknown error", Error::name);
            let _ = writeln!(out, "  failed    {name}: {error} ({})", times(*n));
        }
        if let Some(more) = self.tally.failed.len().checked_sub(MOST).filter(|more| *more > 0) {
            let _ = writeln!(out, "  failed    and {more} others");
        }
        for (fidelity, instructions) in self
            .executed
            .iter()
            .filter(|(fidelity, _)| **fidelity != Fidelity::Exact)
        {
            let names: Vec<&str> = instructions.iter().map(|name| &**name).collect();
            let _ = writeln!(out, "  results   {}: {}", fidelity.words(), names.join(", "));
        }
    }
}

fn times(n: u64) -> String {
    match n {
        1 => "once".into(),
        n => format!("{n} times"),
    }
}

/// Three digits or so.
fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        s if s >= 100.0 => format!("{s:.0} s"),
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{:.2} ms", s * 1e3),
        s => format!("{:.1} us", s * 1e6),
    }
}

/// Binary units.
fn size(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let which = (bytes.ilog2() / 10).min(units.len() as u32);
    format!(
        "{:.1} {}",
        bytes as f64 / (1_u64 << (10 * which)) as f64,
        units[which as usize - 1]
    )
}

fn shortened(name: &str) -> String {
    if name.chars().count() <= NAME {
        return name.to_string();
    }
    let mut short: String = name.chars().take(NAME - 1).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_have_few_digits() {
        let times = [
            (1_234, "1.2 us"),
            (56_780_000, "56.78 ms"),
            (2_346_000_000, "2.35 s"),
            (123_400_000_000, "123 s"),
        ];
        for (nanoseconds, text) in times {
            assert_eq!(time(Duration::from_nanos(nanoseconds)), text);
        }
        for (bytes, text) in [
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1_610_612_736, "1.5 GiB"),
            (u64::MAX, "16777216.0 TiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn every_kind_of_news_has_its_line() {
        let second = Duration::from_secs(1);
        let ran = Ran {
            launches: 4,
            blocks: 16,
            time: 3 * second,
            longest: 2 * second,
            interpreted: 1,
            compiled: 3,
            failed: 1,
        };
        let quick = Ran {
            launches: 1,
            time: second,
            longest: second,
            compiled: 1,
            ..Ran::default()
        };
        let mut tally = Tally::default();
        let count = |times, bytes, time| Count { times, bytes, time };
        tally.calls.insert("cuCtxSynchronize", count(2, 0, 3 * second));
        tally.calls.insert("cuInit", count(1, 0, second));
        tally.failed.insert(("cuMemAlloc", 2), 7);
        tally.copies.insert(Way::ToDevice, count(2, 4096, Duration::ZERO));
        tally.copies.insert(Way::Set, count(1, 10, Duration::ZERO));
        let mut executed = Executed::new();
        executed.insert(Fidelity::Exact, [Box::from("add")].into());
        executed.insert(Fidelity::WithinBounds, [Box::from("tex.2d.v4.f32.f32")].into());
        let summary = Summary {
            program: "app".into(),
            process: 77,
            time: 5 * second,
            kernels: vec![("_Z5scalePfi".into(), ran), ("copy".into(), quick)],
            tally,
            memory: vec![(1, 3 << 20)],
            executed,
        };
        let text = summary.text();
        let expected = "
margay: summary of app (process 77), 5.00 s after cuInit
       time  share  launches      mean   longest  how          kernel
     3.00 s   75 %         4 750.00 ms    2.00 s  both         scale(float*, int) (1 failed)
     1.00 s   25 %         1    1.00 s    1.00 s  compiled     copy
  memory    device 1: 3.0 MiB at most
  copies    to devices 4.0 KiB (2 times), set 10 B (once)
  driver    4.00 s spent in 3 calls, the most in cuCtxSynchronize 3.00 s (2 times), cuInit 1.00 s (once)
  failed    cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (7 times)
  results   within the manual's bounds: tex.2d.v4.f32.f32
";
        assert_eq!(text, expected);
    }
}
