//! Whether NVIDIA's assembler takes a case: a test of illegal PTX would prove nothing.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, str};

/// ptxas of the local environment, if it is there.
pub fn assembler() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(".env/cuda-13/bin/ptxas");
    path.exists().then_some(path)
}

/// # Errors
/// What the assembler says.
pub fn check(ptxas: &Path, file: &Path) -> Result<(), String> {
    let text = fs::read_to_string(file).map_err(|error| error.to_string())?;
    // What the first specification has and no assembler takes any more: the specification alone is the judge.
    if text.lines().any(|line| line.starts_with(".version 1.")) {
        return Ok(());
    }
    let target = text
        .lines()
        .find_map(|line| line.strip_prefix(".target "))
        .and_then(|rest| rest.split([',', ' ']).next())
        .ok_or("no .target")?;
    // Code for devices of long ago is assembled for the first that today's assembler knows.
    let target = if target.len() == "sm_13".len() && target < "sm_75" {
        "sm_75"
    } else {
        target
    };
    let assembled = |options: &[&str]| {
        let mut command = Command::new(ptxas);
        command.args(["-O0", "-o", "/dev/null", "-arch", target]).args(options);
        command.arg(file).output().map_err(|error| error.to_string())
    };
    let mut output = assembled(&["-c"])?;
    // Functions with several results have no ABI, without which the assembler links, too.
    if String::from_utf8_lossy(&output.stderr).contains("requires ABI") {
        output = assembled(&[])?;
    }
    if output.status.success() {
        return Ok(());
    }
    Err(str::from_utf8(&output.stderr).unwrap_or("ptxas refuses it").to_owned())
}
