//! Where the library lies, and what other libraries of its name the machine has.

use object::{Object, ObjectSymbol};
use std::path::{Path, PathBuf};

/// The name that programs ask the loader for.
pub const LIBRARY: &str = "libcuda.so.1";
/// The name that linkers ask for, under which cargo leaves it.
const LINKED_AS: &str = "libcuda.so";

/// Where distributions and NVIDIA's installer put the driver's library.
const USUAL: [&str; 6] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/nvidia/lib64",
    "/usr/lib/wsl/lib",
    "/run/opengl-driver/lib",
];

/// The library of this command: in `../lib/margay`, `../lib` or beside it, as it is installed, as an archive unpacks, as cargo
/// builds. Libraries of others by that name are passed over. An error lists where it was looked for.
pub fn find_library() -> Result<PathBuf, Vec<PathBuf>> {
    let command = std::env::current_exe()
        .and_then(|path| path.canonicalize())
        .unwrap_or_default();
    let beside = command.parent().unwrap_or(Path::new("."));
    let directories = [
        beside.join("../lib/margay"),
        beside.join("../lib"),
        beside.to_path_buf(),
    ];
    for directory in directories.iter().filter_map(|directory| directory.canonicalize().ok()) {
        let path = directory.join(LIBRARY);
        if path.is_file() && is_margay(&path) {
            return Ok(path);
        }
        let linked_as = directory.join(LINKED_AS);
        if !path.exists() && linked_as.is_file() && is_margay(&linked_as) {
            // Fresh from cargo: give it the name that is looked for. Another run may have done so at the same moment.
            let _ = std::os::unix::fs::symlink(LINKED_AS, &path);
            return Ok(if path.is_file() { path } else { linked_as });
        }
    }
    Err(directories.to_vec())
}

/// Whether a library is Margay, whichever version.
pub fn is_margay(library: &Path) -> bool {
    let Ok(file) = std::fs::File::open(library) else {
        return false;
    };
    // With its debug information the library is large: only what is looked at is read.
    let parts = object::ReadCache::new(file);
    let Ok(file) = object::File::parse(&parts) else {
        return false;
    };
    let mut symbols = file.dynamic_symbols().filter(|symbol| symbol.is_definition());
    symbols.any(|symbol| symbol.name() == Ok("margay_version"))
}

/// The libraries of NVIDIA's driver that programs would find here without Margay.
pub fn other_drivers() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for path in USUAL.iter().map(|folder| Path::new(folder).join(LIBRARY)) {
        let Ok(real) = path.canonicalize() else { continue };
        if !is_margay(&real)
            && !found
                .iter()
                .any(|other| other.canonicalize().ok() == Some(real.clone()))
        {
            found.push(path);
        }
    }
    found
}
