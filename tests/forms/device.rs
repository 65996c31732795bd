//! Forms on the driver library that `DRIVER_UNDER_TEST` names: which of them its device takes, and in what modules.

use std::sync::OnceLock;

use crate::c::*;
use crate::catalogue::{self, Row};
use crate::part::part;

/// The version and the target of modules on a GPU's driver; none on ours, which takes those of any time.
pub fn device() -> Option<(&'static str, &'static str)> {
    static DEVICE: OnceLock<Option<(String, String)>> = OnceLock::new();
    let device = DEVICE.get_or_init(|| {
        std::env::var_os("DRIVER_UNDER_TEST")?;
        let (mut version, mut parts) = (0, [0; 2]);
        ok(cuInit(0));
        ok(cuDriverGetVersion(&mut version));
        // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR
        for (part, attribute) in parts.iter_mut().zip([75, 76]) {
            ok(cuDeviceGetAttribute(part, attribute, 0));
        }
        let version = match version {
            // PTX is numbered as the toolkit is, since 13.0.
            13_000.. => format!("9.{}", version % 1000 / 10),
            _ => "8.0".to_owned(),
        };
        let accelerated = if parts[0] >= 9 { "a" } else { "" };
        Some((version, format!("sm_{}{}{accelerated}", parts[0], parts[1])))
    });
    device
        .as_ref()
        .map(|(version, target)| (version.as_str(), target.as_str()))
}

/// Version and target of the modules that hold a form: the device's, those of the form's time, or else `usual`.
pub fn header(row: &Row, usual: (&'static str, &'static str)) -> (&'static str, &'static str) {
    device().or(row.last).unwrap_or(usual)
}

/// Whether the device takes a form.
fn takes((version, target): (&str, &str), row: &Row) -> bool {
    let number = |text: &str| -> u32 {
        let (major, minor) = text.split_once('.').unwrap_or((text, "0"));
        100 * major.parse::<u32>().unwrap_or(0) + minor.parse::<u32>().unwrap_or(0)
    };
    let capability = |target: &str| -> u32 {
        let digits = target.trim_start_matches("sm_");
        digits.trim_end_matches(['a', 'f', '+']).parse().unwrap_or(u32::MAX)
    };
    let target_fits = match row.targets.strip_suffix('+') {
        Some(from) => capability(from) <= capability(target),
        None => row.targets.split(' ').any(|one| one == target),
    };
    // The compiler in drivers of CUDA 13.0 ends by a segmentation fault on these.
    let fatal = row.form.contains(".v8.") && ["8", "16"].iter().any(|bits| row.form.ends_with(bits));
    target_fits && !fatal && row.last.is_none() && number(row.least) <= number(version)
}

/// The forms to run: those that the device takes; with `FORMS_PART=3/16` every sixteenth, from the third on, so that
/// processes can share the work.
pub fn rows() -> Vec<Row> {
    let (first, parts) = part("FORMS_PART");
    let rows = catalogue::rows().into_iter().skip(first).step_by(parts);
    rows.filter(|row| device().is_none_or(|device| takes(device, row)))
        .collect()
}
