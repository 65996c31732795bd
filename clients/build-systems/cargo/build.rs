//! Compiles the kernel to PTX, and once more with a mistake in it for the tests.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=src/collatz.cu");
    println!("cargo::rerun-if-env-changed=NVCC");
    let nvcc = std::env::var("NVCC").unwrap_or("nvcc".into());
    let folder = std::env::var("OUT_DIR").unwrap();
    for (name, options) in [("collatz.ptx", &[][..]), ("wrong.ptx", &["-DWRONG"])] {
        let status = Command::new(&nvcc)
            .args(["--ptx", "-arch=compute_75", "src/collatz.cu", "-o"])
            .arg(Path::new(&folder).join(name))
            .args(options)
            .status();
        match status {
            Ok(status) if status.success() => {}
            Ok(status) => panic!("{nvcc} failed: {status}"),
            Err(error) => panic!("{nvcc} does not start: {error}. Put NVIDIA's compiler on PATH, or name it in NVCC"),
        }
    }
}
