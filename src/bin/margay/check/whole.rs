//! `margay check --seeds N --whole`: runs the whole program in N orders of threads, and compares what it prints and how it ends.
//!
//! The program's standard input is empty in all runs, for they must read the same. What the first run says is shown; of the others
//! only what is found, and what differs.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use cuda::simt::Order;
use serde_json::{Value, json};

use super::{Ended, Session, findings, own_code};
use crate::Outcome;
use crate::run::{introduce, not_started};

/// How much of a line that differs is shown.
const SHOWN: usize = 100;

pub fn run(
    session: &mut Session<'_>,
    library: &Path,
    program: &OsString,
    arguments: &[&OsString],
    seeds: u32,
) -> Outcome {
    let start = |session: &Session<'_>, order: Order, is_first: bool| -> Result<std::io::Result<Output>, String> {
        let mut command = Command::new(program);
        command.args(arguments);
        introduce(&mut command, library, false)?;
        command
            .envs(session.environment())
            .env("MARGAY_SEED", order.to_string())
            .stdin(Stdio::null())
            .stderr(if is_first { Stdio::inherit() } else { Stdio::null() });
        if !is_first && session.output.path().is_some() {
            // Of what other runs find, this command says what is new.
            command.env_remove("MARGAY_LOG_FILE");
        }
        Ok(command.output())
    };
    let first_order = Order::nth(1, 0);
    let first = match start(session, first_order, true)? {
        Ok(output) => output,
        Err(error) => return Ok(not_started("check", program, &error)),
    };
    // A reader that has gone is no reason to look no further.
    let _ = std::io::stdout()
        .write_all(&first.stdout)
        .and_then(|()| std::io::stdout().flush());
    let own = own_code(first.status);
    let mut records = session.list.read();
    let mut found = findings(&records);
    let mut known: BTreeSet<String> = found.iter().map(what).collect();
    let (mut differ, mut shown) = (0, None);
    for n in 1..seeds {
        let order = Order::nth(1, n.into());
        let other = match start(session, order, false)? {
            Ok(output) => output,
            Err(error) => return Ok(not_started("check", program, &error)),
        };
        records = session.list.read();
        for finding in findings(&records) {
            if known.insert(what(&finding)) {
                let report = finding["report"].as_str().unwrap_or_default();
                session.output.line(&format!("with MARGAY_SEED={order}: {report}"));
                found.push(finding);
            }
        }
        if let Some(how) = difference(&first, &other) {
            differ += 1;
            shown.get_or_insert((order, how));
        }
    }
    if let Some((order, how)) = shown {
        let finding = json!({"record": "finding", "kind": "whole", "count": 1, "title": how, "report": how});
        if session.rules.leave_out(&finding) {
            records.push(json!({"record": "suppressed", "count": 1}));
        } else {
            let (others, s) = (seeds - 1, if seeds == 2 { "" } else { "s" });
            session.output.line(&format!("the order of threads matters: {how}"));
            session.output.lines(&format!(
                "  with MARGAY_SEED={first_order} and with MARGAY_SEED={order}\n  \
                 {differ} of {others} other order{s} came to something else than the first\n"
            ));
            found.push(finding);
        }
    }
    session.conclude(&Ended {
        records: &records,
        found,
        own,
    })
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
