//! The report of a launch that failed, word for word: beside each such case stands what it prints, in a `.txt`.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// Set, the texts are written instead of compared; read the difference before you commit it.
const REWRITE: &str = "MARGAY_REWRITE_REPORTS";

/// # Errors
/// How the report differs from what is expected.
pub fn compare(report: Option<&str>, path: &Path) -> Result<(), String> {
    let found = report.map(|report| masked(report) + "\n");
    if std::env::var_os(REWRITE).is_some() {
        let done = match &found {
            Some(found) => fs::write(path, found),
            None => match fs::remove_file(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
                Ok(()) | Err(_) => Ok(()),
            },
        };
        return done.map_err(|error| format!("{}: {error}", path.display()));
    }
    let expected = match fs::read_to_string(path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(format!("{}: {error}", path.display())),
    };
    match (expected, found) {
        (expected, found) if expected == found => Ok(()),
        (Some(expected), Some(found)) => Err(format!("expected the report:\n{expected}\ngot:\n{found}")),
        (Some(_), None) => Err(format!("{} is there, and the launch succeeds", path.display())),
        (None, Some(found)) => Err(format!(
            "{} is missing ({REWRITE}=1 writes it); the report is:\n{found}",
            path.display()
        )),
        (None, None) => Ok(()),
    }
}

/// Addresses vary from run to run: `0x` with six digits or more becomes `0x…`, and so does a handle, with which the report of
/// a texture begins. Offsets in a window, and null pointers, are shorter. So vary the numbers of logical endpoints.
fn masked(report: &str) -> String {
    let mut out = String::new();
    let mut rest = report;
    while let Some(at) = rest.find("0x") {
        let digits = rest[at + 2..].bytes().take_while(u8::is_ascii_hexdigit).count();
        let end = at + 2 + digits;
        let is_handle = out.is_empty() && at == 0;
        if digits < 6 && !is_handle {
            out.push_str(&rest[..end]);
        } else {
            out.push_str(&rest[..at]);
            out.push_str("0x…");
        }
        rest = &rest[end..];
    }
    without_numbers(&(out + rest))
}

/// `logical endpoint 7` → `logical endpoint …`
fn without_numbers(report: &str) -> String {
    const NAME: &str = "logical endpoint ";
    let mut parts = report.split(NAME);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        let number = if rest.len() < part.len() { "…" } else { "" };
        all + NAME + number + rest
    })
}
