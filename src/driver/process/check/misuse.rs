//! Findings of synccheck.

use std::mem::{self, Discriminant};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::sanitizer::sync::{Misuse, Party, Wrong};
use crate::simt::{Launch, Site};

use super::finding::{Deed, Finding, Kind, Severity, tell};
use super::host::hosts;
use super::launched;

/// A launch misuses what synchronises, of which the report tells. A kernel that is launched again is not told of again.
pub fn misuse(misuse: &Misuse, report: String, launch: &Launch) {
    /// Its kernel, what is wrong, and where, on either side: lines of the source, of which a compiler makes many instructions.
    type Known = (Arc<str>, Discriminant<Wrong>, [(Option<Arc<str>>, u32); 2]);
    static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());
    let place = |site: &Site| match site.origin.lines.first() {
        Some(line) => (Some(Arc::clone(&line.file)), line.line),
        None => (None, site.ptx_line),
    };
    let second = misuse.second.as_ref().map(|party| &party.site);
    let mut places = [place(&misuse.first.site), second.map_or((None, 0), place)];
    places.sort();
    let known = (Arc::clone(&misuse.kernel), mem::discriminant(&misuse.wrong), places);
    {
        let mut all = KNOWN.lock();
        if all.contains(&known) {
            return;
        }
        all.push(known);
    }
    let deed = |party: &Party| {
        let [x, y, _] = misuse.shape;
        let first = party.threads.first();
        Deed {
            what: "",
            block: Some(party.block),
            thread: first.map(|thread| [thread % x, thread / x % y, thread / x / y]),
        }
    };
    tell(&Finding {
        severity: match misuse.wrong {
            // Hardware goes on, and does what was meant.
            Wrong::Meets { .. } | Wrong::ProductTouched => Severity::Warning,
            _ => Severity::Error,
        },
        kernel: Some(Arc::clone(&misuse.kernel)),
        launch: Some(launched(launch)),
        sites: vec![misuse.first.site.clone()],
        other: second.cloned().into_iter().collect(),
        first: deed(&misuse.first),
        second: misuse.second.as_ref().map(deed).unwrap_or_default(),
        hosts: hosts(Some(launch), &[]),
        ..Finding::new(Kind::Synchronisation, report)
    });
}
