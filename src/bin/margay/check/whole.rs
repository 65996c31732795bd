//! `margay check --seeds N --whole`: runs the whole program in N orders of threads, and compares what it prints and how it ends.
//!
//! The program's standard input is empty in all runs, for they must read the same. What the first run says is shown; of the others
//! only what is found, and what differs.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use clap::ArgMatches;
use cuda::simt::Order;
use serde_json::{Value, json};

use super::{List, conclude, findings, own_code};
use crate::Outcome;
use crate::run::{introduce, library, not_started, tell_of_other_drivers};

/// How much of a line that differs is shown.
const SHOWN: usize = 100;

pub fn run(
    matches: &ArgMatches,
    program: &OsString,
    arguments: &[&OsString],
    (list, words, settings): (&List, &[String], &[(&str, OsString)]),
    seeds: u32,
) -> Outcome {
    let library = library()?;
    tell_of_other_drivers("check", &library);
    let start = |order: Order, is_first: bool| -> Result<std::io::Result<Output>, String> {
        let mut command = Command::new(program);
        command.args(arguments);
        introduce(&mut command, &library, false)?;
        command
            .env("MARGAY_CHECK", words.join(","))
            .env("MARGAY_CHECK_LOG", &list.0)
            .envs(settings.iter().cloned())
            .env("MARGAY_SEED", order.to_string())
            .stdin(Stdio::null())
            .stderr(if is_first { Stdio::inherit() } else { Stdio::null() });
        Ok(command.output())
    };
    let first_order = Order::nth(1, 0);
    let first = match start(first_order, true)? {
        Ok(output) => output,
        Err(error) => return Ok(not_started("check", program, &error)),
    };
    // A reader that has gone is no reason to look no further.
    let _ = std::io::stdout()
        .write_all(&first.stdout)
        .and_then(|()| std::io::stdout().flush());
    let own = own_code(first.status);
    let mut found = findings(&list.read());
    let mut known: BTreeSet<String> = found.iter().map(what).collect();
    let (mut differ, mut shown) = (0, None);
    for n in 1..seeds {
        let order = Order::nth(1, n.into());
        let other = match start(order, false)? {
            Ok(output) => output,
            Err(error) => return Ok(not_started("check", program, &error)),
        };
        for finding in findings(&list.read()) {
            if known.insert(what(&finding)) {
                let report = finding["report"].as_str().unwrap_or_default();
                eprintln!("margay check: with MARGAY_SEED={order}: {report}");
                found.push(finding);
            }
        }
        if let Some(how) = difference(&first, &other) {
            differ += 1;
            shown.get_or_insert((order, how));
        }
    }
    if let Some((order, how)) = shown {
        eprintln!("margay check: the order of threads matters: {how}");
        eprintln!("  with MARGAY_SEED={first_order} and with MARGAY_SEED={order}");
        let (others, s) = (seeds - 1, if seeds == 2 { "" } else { "s" });
        eprintln!("  {differ} of {others} other order{s} came to something else than the first");
        found.push(json!({"record": "finding", "kind": "whole", "count": 1, "title": how, "report": how}));
    }
    conclude(matches, &found, own)
}

/// What is found a second time is nothing new, but for addresses.
fn what(finding: &Value) -> String {
    let title = finding["title"].as_str().unwrap_or_default();
    let words = title.split(' ').filter(|word| !word.starts_with("0x"));
    format!("{} {}", finding["kind"], words.collect::<Vec<_>>().join(" "))
}

/// In what two runs differ, in a sentence.
fn difference(first: &Output, other: &Output) -> Option<String> {
    let (own, others) = (own_code(first.status), own_code(other.status));
    if own != others {
        return Some(format!("the exit code is {own}, or {others}"));
    }
    if first.stdout == other.stdout {
        return None;
    }
    let [one, two] = [first, other].map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let (one, two): (Vec<&str>, Vec<&str>) = (one.lines().collect(), two.lines().collect());
    let at = (0..one.len().max(two.len())).find(|&line| one.get(line) != two.get(line));
    let line = |lines: &[&str], at: usize| match lines.get(at) {
        Some(line) => format!("\u{201c}{}\u{201d}", line.chars().take(SHOWN).collect::<String>()),
        None => "missing".into(),
    };
    Some(match at {
        Some(at) => format!(
            "line {} of the output is {}, or {}",
            at + 1,
            line(&one, at),
            line(&two, at)
        ),
        None => "the output differs in blanks at its end".into(),
    })
}
