//! What to tell the person whose image cannot be run: what it holds, and how to rebuild it.
//!
//! The wording is product and under test.

use super::{Found, Kind};
use std::collections::BTreeSet;

/// `machine code for sm_80 and sm_90; LTO-IR for sm_90`; `None` when nothing was found at all.
pub(super) fn listing(found: &[Found]) -> Option<String> {
    let mut kinds: Vec<(Kind, BTreeSet<_>)> = Vec::new();
    for item in found {
        match kinds.iter_mut().find(|(kind, _)| *kind == item.kind) {
            Some((_, targets)) => {
                targets.insert(item.target);
            }
            None => kinds.push((item.kind, BTreeSet::from([item.target]))),
        }
    }
    kinds.sort();
    let parts = kinds.iter().map(|(kind, targets)| {
        let targets: Vec<String> = targets.iter().flatten().map(|target| target.to_string()).collect();
        if targets.is_empty() {
            kind.to_string()
        } else {
            format!("{kind} for {}", enumerate(&targets))
        }
    });
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The message for an image, or a unit of it, without PTX. Whoever has no better advice is told about nvcc.
pub(super) fn no_ptx(
    origin: Option<&str>,
    found: &[Found],
    missing: usize,
    units: usize,
    advice: Option<String>,
) -> String {
    let what = origin.map_or("this image".to_string(), |origin| format!("the GPU code of {origin}"));
    let mut text = if units > missing {
        format!("{missing} of {units} translation units in {what} hold no PTX, which is what Margay runs")
    } else {
        format!("{what} holds no PTX, which is what Margay runs")
    };
    match listing(found) {
        Some(listing) => text += &format!("; it holds {listing}."),
        None => return format!("{} holds no GPU code at all", origin.unwrap_or("this image")),
    }
    if let Some(advice) = advice {
        return format!("{text} {advice}");
    }
    // The PTX to ask for: of the newest architecture the program was built for.
    let newest = found
        .iter()
        .filter_map(|item| item.target)
        .max_by_key(|target| target.number);
    let number = newest.map_or("75".to_string(), |target| target.number.to_string());
    text += &format!(
        " Rebuild it with PTX: nvcc -gencode arch=compute_{number},code=compute_{number} beside the options it has \
         (-arch=sm_{number} alone embeds PTX too)."
    );
    if found.iter().any(|item| item.kind == Kind::LtoIr) {
        text += " LTO-IR (-dlto, code=lto_XX) does not do: it is NVIDIA's private format.";
    }
    text
}

fn enumerate(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [head @ .., last] => format!("{} and {last}", head.join(", ")),
    }
}
