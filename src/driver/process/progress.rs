//! The line on the terminal for a kernel that takes long (`MARGAY_PROGRESS=1`, which `margay run` sets on a terminal).

use std::sync::Once;
use std::thread;
use std::time::Duration;

use crate::program::demangle;
use crate::simt::account::{self, Tier, UnderWay};
use crate::trace::status_line;

/// A kernel that takes less is not worth a line.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(250);

/// Shows it from now on, if it is asked for and standard error is a terminal.
pub fn start() {
    static ONCE: Once = Once::new();
    if crate::config::get().progress && status_line::has_terminal() {
        ONCE.call_once(|| {
            account::keep();
            let looks = || {
                // Whatever is wrong with it is no reason to bother the program.
                let _ = crate::defect::within(look_on);
            };
            if let Err(error) = thread::Builder::new().name("margay-progress".into()).spawn(looks) {
                tracing::warn!("no progress will be shown: {error}");
            }
            // What is left of it by an end in mid-kernel would stand before the shell's next prompt.
            extern "C" fn at_exit() {
                status_line::clear();
            }
            // SAFETY: the handler writes to standard error at most, and the library is never unloaded.
            unsafe { libc::atexit(at_exit) };
        });
    }
}

fn look_on() {
    loop {
        thread::sleep(PAUSE);
        match account::under_way().first() {
            Some(grid) if grid.time >= PATIENCE => status_line::show(&line(grid)),
            _ => status_line::clear(),
        }
    }
}

/// `scale(float*): 1024 of 4096 blocks (25 %), 30 s, about 92 s left, compiled`
fn line(grid: &UnderWay) -> String {
    let name = demangle(&grid.kernel);
    let (begun, blocks, time) = (grid.begun, grid.blocks, grid.time.as_secs());
    let tier = match grid.tier {
        Tier::Interpreted => "interpreted",
        Tier::Mixed | Tier::Compiled => "compiled",
    };
    if begun >= blocks {
        // The last ones, or all of them at once: nothing says how far they are.
        let which = if blocks == 1 {
            "its block runs"
        } else {
            "its last blocks run"
        };
        return format!("{name}: {which}, {time} s, {tier}");
    }
    let percent = begun * 100 / blocks.max(1);
    let left = match begun {
        0 => String::new(),
        _ => format!(
            "about {} left, ",
            duration(grid.time.as_secs_f64() * (blocks - begun) as f64 / begun as f64)
        ),
    };
    format!(
        "{name}: {begun} of {blocks} blocks ({percent} %), {}, {left}{tier}",
        duration(time as f64)
    )
}

/// To the second, or to the minute if it is long.
fn duration(seconds: f64) -> String {
    match seconds.ceil() as u64 {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds.div_ceil(60)),
        seconds => format!("{} h", seconds.div_ceil(3600)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_far_a_kernel_is() {
        let mut grid = UnderWay {
            kernel: "_Z5scalePfi".into(),
            time: Duration::from_millis(30_400),
            blocks: 4096,
            begun: 1024,
            tier: Tier::Interpreted,
        };
        assert_eq!(
            line(&grid),
            "scale(float*, int): 1024 of 4096 blocks (25 %), 30 s, about 92 s left, interpreted"
        );
        grid.begun = 1;
        grid.tier = Tier::Mixed;
        assert!(
            line(&grid).ends_with(" (0 %), 30 s, about 35 h left, compiled"),
            "{}",
            line(&grid)
        );
        grid.begun = 0;
        assert!(line(&grid).ends_with(" (0 %), 30 s, compiled"), "{}", line(&grid));
        (grid.begun, grid.blocks) = (1, 1);
        assert_eq!(line(&grid), "scale(float*, int): its block runs, 30 s, compiled");
    }
}
