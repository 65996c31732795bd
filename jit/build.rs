//! Links the parts of LLVM that compile IR text for x86-64, as archives: the library needs nothing of LLVM's at run time.

use std::path::Path;
use std::process::Command;

/// What the library uses, by LLVM's names; llvm-config adds what these need.
const COMPONENTS: [&str; 4] = ["x86codegen", "x86asmparser", "passes", "irreader"];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=find-llvm");
    println!("cargo:rerun-if-env-changed=LLVM_CONFIG");
    println!("cargo:rerun-if-env-changed=PATH");

    let config = run(&mut Command::new("./find-llvm"));
    let config = config.trim();
    println!("cargo:rerun-if-changed={config}");
    let ask = |what: &[&str]| run(Command::new(config).arg("--link-static").args(what).args(COMPONENTS));
    let version = run(Command::new(config).arg("--version"));
    println!("cargo:rustc-env=MARGAY_LLVM_VERSION={}", version.trim());

    let link = |argument: &str| println!("cargo:rustc-cdylib-link-arg={argument}");
    let archives = ask(&["--libfiles"]);
    for file in archives.split_whitespace() {
        link(file);
    }
    println!("cargo:rustc-env=MARGAY_LLVM_FORWARDS={}", forwards(&archives));
    // LLVM is in C++, and calls zlib and zstd where it can. Archives where there are any: what is not in the file may be missing,
    // or of another version, on the machine that runs it. The rest of what LLVM might ask for (XML, a solver) is in parts that
    // are not linked.
    let system = ask(&["--system-libs"]);
    for library in ["stdc++", "z", "zstd"] {
        if library == "stdc++"
            || system
                .split_whitespace()
                .any(|word| word.strip_prefix("-l") == Some(library))
        {
            link(&archive(library).unwrap_or(format!("-l{library}")));
        }
    }
    for library in ["-lrt", "-ldl", "-lm", "-lpthread"] {
        link(library);
    }

    // No symbol of these archives is anybody else's: other LLVMs live in the same process.
    link("-Wl,--exclude-libs,ALL");
    link("-Wl,--gc-sections");
    link("-Wl,-soname,libmargay-jit.so");
    // Threads may be in here when the program ends: the code stays, and nobody destroys what they use.
    link("-Wl,-z,nodelete");
    link("-Wl,--wrap=__cxa_atexit");
    // LLVM gives up by abort, where it does not ask the handler of fatal errors first; see src/fatal.rs.
    link("-Wl,--wrap=abort");
}

/// The option by which instructions are put in order from the first one on: its name has changed since LLVM 19, and LLVM ends a process that
/// gives it one that it does not know.
fn forwards(archives: &str) -> &'static str {
    const NEW: &str = "misched-prera-direction";
    let schedules = archives
        .split_whitespace()
        .find(|file| file.ends_with("libLLVMCodeGen.a"));
    let code = schedules.and_then(|file| std::fs::read(file).ok()).unwrap_or_default();
    match code.windows(NEW.len()).any(|word| word == NEW.as_bytes()) {
        true => "-misched-prera-direction=topdown",
        false => "-misched-topdown",
    }
}

/// Where the C compiler has a library as an archive.
fn archive(library: &str) -> Option<String> {
    let compiler = std::env::var("CC").unwrap_or("cc".into());
    let output = Command::new(compiler)
        .arg(format!("-print-file-name=lib{library}.a"))
        .output()
        .ok()?;
    let path = String::from_utf8(output.stdout).ok()?;
    Path::new(path.trim()).is_absolute().then(|| path.trim().into())
}

fn run(command: &mut Command) -> String {
    match command.output() {
        Ok(output) if output.status.success() => String::from_utf8(output.stdout).expect("paths in UTF-8"),
        Ok(output) => {
            // Cargo shows the last lines.
            eprintln!("{command:?}: {}", String::from_utf8_lossy(&output.stderr));
            std::process::exit(1);
        }
        Err(error) => {
            eprintln!("{command:?}: {error}");
            std::process::exit(1);
        }
    }
}
