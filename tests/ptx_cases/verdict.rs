//! Compares what a case left behind with what its header says, whoever ran it.

use std::fmt::Write;

use crate::case::{Case, Parameter, Within};
use crate::value::{Element, Type};

/// Mismatches that a report lists.
const SHOWN: usize = 12;

/// Writes down how `found`, what a kernel printed, differs from what is expected.
pub fn said(what: &str, expected: &Option<String>, found: &str, case: &Case, report: &mut String) {
    let order = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        if case.expect.print_sorted {
            lines.sort();
        }
        lines.join("\n")
    };
    let expected = expected.as_deref().unwrap_or_default();
    if order(expected) != order(found) {
        let _ = writeln!(report, "expected {what}:\n{expected}\ngot:\n{found}");
    }
}

/// Writes down how a buffer differs from what it must hold.
pub fn compare(parameter: &Parameter, found: &[u8], case: &Case, report: &mut String) {
    let ty = parameter.ty;
    let mut found: Vec<u128> = found
        .chunks_exact(ty.bytes)
        .map(|element| {
            let mut raw = [0u8; 16];
            raw[..ty.bytes].copy_from_slice(element);
            u128::from_le_bytes(raw)
        })
        .collect();
    let mut expected = parameter.after.clone();
    if parameter.sorted {
        found.sort_unstable();
        expected.sort_unstable_by_key(|e| if let Element::Bits(bits) = e { *bits } else { u128::MAX });
    }
    let wrong: Vec<usize> = (0..found.len())
        .filter(|&i| !agrees(parameter, expected[i], found[i]))
        .collect();
    if wrong.is_empty() {
        return;
    }
    let _ = writeln!(
        report,
        "{}: {} of {} elements differ",
        parameter.name,
        wrong.len(),
        found.len()
    );
    // One element for each thread is the rule; otherwise the index alone has to do.
    let threads: u32 = case.launches[0].block.iter().product();
    for &i in wrong.iter().take(SHOWN) {
        let lane = if (i as u32) < threads {
            format!(" (warp {}, lane {})", i / 32, i % 32)
        } else {
            String::new()
        };
        let expected = match expected[i] {
            Element::Bits(bits) => ty.show(bits),
            Element::AnyNan => "a NaN".into(),
            Element::Any => "anything".into(),
        };
        let _ = writeln!(report, "  [{i}]{lane}: expected {expected}, got {}", ty.show(found[i]));
    }
    if wrong.len() > SHOWN {
        let _ = writeln!(report, "  and {} more", wrong.len() - SHOWN);
    }
}

fn agrees(parameter: &Parameter, expected: Element, found: u128) -> bool {
    let ty = parameter.ty;
    let expected = match expected {
        Element::Any => return true,
        Element::AnyNan => return ty.is_nan(found),
        Element::Bits(bits) => bits,
    };
    let (e, f) = (ty.number(expected), ty.number(found));
    let close = |limit: f64| e.is_finite() && f.is_finite() && (e - f).abs() <= limit;
    expected == found
        || match parameter.within {
            Within::Exact => false,
            Within::Ulp(n) => f.is_finite() && (ty.ordinal(expected) - ty.ordinal(found)).abs() <= n,
            Within::Relative(r) => close(r * e.abs()),
            Within::Absolute(a) => close(a),
        }
}

/// The bytes of elements, little-endian and packed.
pub fn bytes(ty: Type, elements: &[u128]) -> Vec<u8> {
    elements
        .iter()
        .flat_map(|e| e.to_le_bytes().into_iter().take(ty.bytes))
        .collect()
}
