//! Companions: libraries of ours with the names of NVIDIA's compilers, which make programs keep PTX.
//!
//! Some programs (numba-cuda, CuPy) compile to machine code before the driver sees anything, with nvJitLink and NVRTC, which
//! they find at run time. A companion (`companions/`) has such a library's SONAME and exports, hands out PTX in place of machine
//! code, and passes everything else on to NVIDIA's library. Programs ask first whether a library of that name is loaded, so it
//! is enough to load the companions early.
//!
//! *When*: numba-cuda opens libcuda and then nvJitLink before it calls anything, so a constructor does it, when this library
//! is loaded; `cuInit` looks once more, for what the program has loaded in between. *Whether*: where the folder `companions`
//! lies beside this library, NVIDIA's library of that name is found, and it is not loaded yet. Otherwise nothing happens:
//! a program that has no such compiler at hand finds none. NVRTC that is loaded already is made to hand out PTX itself
//! ([`redirect`]), and who is linked with nvJitLink is made to call the companion ([`relink`]).
//!
//! The companion for NVML is not among them: it lies beside this library, and programs load it themselves.

mod python;
mod redirect;
mod relink;

use std::error::Error;
use std::ffi::{CStr, CString, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::config;

/// The companions: names of NVIDIA's libraries, and where the wheel of the Python package index has each, below the folder
/// in which packages are installed.
const COMPANIONS: [(&str, &str); 4] = [
    ("libnvJitLink.so.13", "nvidia/cu13/lib"),
    ("libnvJitLink.so.12", "nvidia/nvjitlink/lib"),
    ("libnvrtc.so.13", "nvidia/cu13/lib"),
    ("libnvrtc.so.12", "nvidia/cuda_nvrtc/lib"),
];

/// What came of a companion.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Outcome {
    /// It stands in for the library at this path.
    AtWork(PathBuf),
    /// A library of that name was there first, and hands out PTX itself now ([`redirect`]).
    Redirected,
    /// A library of that name was there first, and who is linked with it calls the companion now ([`relink`]).
    Relinked,
    /// A library of that name was there first, and why it is left as it is.
    TooLate(String),
    /// NVIDIA's library was not found.
    NotNeeded,
    /// The companion does not lie where it should, or the loader refuses it.
    Unloadable(String),
}

static OUTCOMES: Mutex<[Option<Outcome>; COMPANIONS.len()]> = Mutex::new([const { None }; COMPANIONS.len()]);

/// Runs when the loader has loaded this library, before its caller has a handle of it.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;

extern "C" fn at_load() {
    // A panic must not reach the loader, and there is nobody to tell yet.
    let _ = std::panic::catch_unwind(load);
}

/// Loads what was not at hand when this library was loaded, and says in the log what came of it. Only the first call does
/// anything, and no other waits for it. Whoever calls must not hold a lock: the loader has one, and constructors that it runs
/// under it may call in here.
pub fn at_init() {
    static DONE: AtomicBool = AtomicBool::new(false);
    if DONE.load(Ordering::Relaxed) || DONE.swap(true, Ordering::Relaxed) {
        return;
    }
    load();
    if config::read().companions
        && let Some(folder) = folder()
        && python::tell(&mapped_files(), folder)
    {
        tracing::info!(
            "Python is told of programs that keep PTX and Tile IR: {}",
            folder.join("bin").display()
        );
    }
    for ((name, _), outcome) in COMPANIONS.iter().zip(outcomes().clone()) {
        match outcome {
            None => tracing::debug!("no companion for {name}: they are switched off, or not beside this library"),
            Some(Outcome::AtWork(real)) => {
                tracing::info!(
                    "a companion stands in for {name} and keeps PTX; behind it is {}",
                    real.display()
                );
            }
            Some(Outcome::Redirected) => {
                tracing::info!("{name} was loaded before libcuda.so.1 and is made to hand out PTX for machine code");
            }
            Some(Outcome::Relinked) => {
                tracing::info!(
                    "{name} was loaded before libcuda.so.1, and whoever is linked with it calls a companion, which keeps PTX"
                );
            }
            Some(Outcome::TooLate(why)) => {
                tracing::info!(
                    "no companion for {name}: it was loaded before libcuda.so.1, and is left as it is: {why}"
                );
            }
            Some(Outcome::NotNeeded) => tracing::debug!("no companion for {name}: the library is not found"),
            Some(Outcome::Unloadable(why)) => tracing::warn!("no companion for {name}: {why}"),
        }
    }
}

/// What to do about machine code that the program made itself; `None` if no program is known that does.
pub fn advice() -> Option<String> {
    advice_for(&mapped_files())
}

fn advice_for(mapped: &[PathBuf]) -> Option<String> {
    let loaded = |folder: &str| {
        mapped
            .iter()
            .any(|file| file.components().any(|part| part.as_os_str() == folder))
    };
    if loaded("numba_cuda") && !is_at_work("libnvJitLink") {
        let why = why_not("libnvJitLink");
        return Some(format!("numba-cuda made it with nvJitLink. {why}."));
    }
    if loaded("cupy_backends") && !is_at_work("libnvrtc") {
        let why = why_not("libnvrtc");
        return Some(format!(
            "CuPy made it with NVRTC. {why}; or set CUPY_COMPILE_WITH_PTX=1."
        ));
    }
    if loaded("triton") && !folder().is_some_and(|folder| folder.join("bin/ptxas").is_file()) {
        return Some(
            "Triton made it with ptxas. Margay's stand-in would keep the PTX; put the folder `companions` of its build \
             beside libcuda.so.1"
                .into(),
        );
    }
    let is_cutile = |file: &PathBuf| {
        file.components()
            .zip(file.components().skip(1))
            .any(|(one, next)| one.as_os_str() == "cuda" && next.as_os_str() == "tile")
    };
    if mapped.iter().any(is_cutile) {
        return Some(
            "cuTile made it with NVIDIA's tileiras. Margay's stand-in, in the folder `companions` beside libcuda.so.1, would keep \
             the Tile IR"
                .into(),
        );
    }
    let has = |library: &str| {
        let name = |file: &PathBuf| {
            file.file_name()
                .is_some_and(|name| name.as_bytes().starts_with(library.as_bytes()))
        };
        mapped.iter().any(name)
    };
    if has("libnvJitLink.so") && !is_at_work("libnvJitLink") {
        return Some(format!(
            "The program may have made it with nvJitLink. {}.",
            why_not("libnvJitLink")
        ));
    }
    if has("libnvrtc.so") && !is_at_work("libnvrtc") {
        return Some(format!(
            "The program may have made it with NVRTC. {}.",
            why_not("libnvrtc")
        ));
    }
    if loaded("triton") || loaded("numba_cuda") || loaded("cupy_backends") {
        return Some(
            "The program may have it from a cache of compiled kernels: empty CuPy's (CUPY_CACHE_DIR, else \
             ~/.cupy/kernel_cache), Numba's (NUMBA_CACHE_DIR, else __pycache__) and Triton's (TRITON_CACHE_DIR, else \
             ~/.triton/cache)."
                .into(),
        );
    }
    None
}

/// Why no companion stands in for a library, and what helps.
fn why_not(library: &str) -> String {
    if !config::get().companions {
        return "Margay's companion would keep the PTX, but MARGAY_COMPANIONS=0 switches it off".into();
    }
    let Some(folder) = folder() else {
        return "Margay's companion would keep the PTX; put the folder `companions` of its build beside libcuda.so.1"
            .into();
    };
    let too_late = |outcome: &Outcome| matches!(outcome, Outcome::TooLate(_));
    if outcomes_of(library).iter().any(too_late) {
        return format!(
            "{library} was loaded before libcuda.so.1, so that Margay's companion cannot keep the PTX: preload libcuda.so.1"
        );
    }
    format!(
        "Margay's companion would keep the PTX, but the one in {} is not at work: see MARGAY_LOG=debug",
        folder.display()
    )
}

/// Whether a companion for this library, of any version, is at work, or the library keeps PTX itself.
fn is_at_work(library: &str) -> bool {
    outcomes_of(library)
        .iter()
        .any(|outcome| matches!(outcome, Outcome::AtWork(_) | Outcome::Redirected | Outcome::Relinked))
}

/// What came of the companions for all versions of a library.
fn outcomes_of(library: &str) -> Vec<Outcome> {
    let of_library = COMPANIONS
        .iter()
        .zip(outcomes().clone())
        .filter(|((name, _), _)| name.starts_with(library));
    of_library.filter_map(|(_, outcome)| outcome).collect()
}

fn outcomes() -> MutexGuard<'static, [Option<Outcome>; COMPANIONS.len()]> {
    OUTCOMES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Loads the companions that are of use by now. The lock is not held while the loader is at work.
fn load() {
    let Some(folder) = folder() else { return };
    // Not the configuration that holds for good: a program may change its environment before it calls us.
    if !config::read().companions {
        return;
    }
    let before = outcomes().clone();
    let places = Places::of_process();
    for (index, (name, wheel)) in COMPANIONS.iter().enumerate() {
        // Who is linked with a library may have been loaded since.
        if matches!(
            before[index],
            Some(Outcome::AtWork(_) | Outcome::Redirected | Outcome::Unloadable(_))
        ) {
            continue;
        }
        let companion = folder.join("compilers/lib").join(name);
        let outcome = if is_loaded(name) {
            let done = if name.starts_with("libnvrtc.so") {
                redirect::keep_ptx(name).map(|()| Outcome::Redirected)
            } else {
                relink::call_companion(name, &companion).map(|()| Outcome::Relinked)
            };
            done.unwrap_or_else(Outcome::TooLate)
        } else {
            match places.find(name, wheel, &companion) {
                None => Outcome::NotNeeded,
                Some(real) => match introduce(&companion, &real) {
                    Ok(library) => {
                        // Others have addresses in it from now on.
                        let _ = library.into_raw();
                        Outcome::AtWork(real)
                    }
                    Err(why) => Outcome::Unloadable(why),
                },
            }
        };
        outcomes()[index] = Some(outcome);
    }
}

/// The folder of companions beside this library, as it was found or where it really lies.
fn folder() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let find = || {
        // SAFETY: all-zero is a valid Dl_info.
        let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
        // SAFETY: dladdr takes any address and writes to `info` alone.
        if unsafe { libc::dladdr(at_load as *const c_void, &mut info) } == 0 || info.dli_fname.is_null() {
            return None;
        }
        // SAFETY: dladdr's names are NUL-terminated and live as long as the object, which is this one; it is copied at once.
        let name = unsafe { CStr::from_ptr(info.dli_fname) };
        let found = std::path::absolute(OsStr::from_bytes(name.to_bytes())).ok()?;
        let resolved = found.canonicalize().ok();
        let mut libraries = [Some(found), resolved].into_iter().flatten();
        libraries.find_map(|library| Some(library.parent()?.join("companions")).filter(|folder| folder.is_dir()))
    };
    FOLDER.get_or_init(find).as_deref()
}

fn is_loaded(name: &str) -> bool {
    // SAFETY: the loader only looks for a library that is there, whose constructors have run; what it opened it closes.
    unsafe { Library::open(Some(name), RTLD_NOW | libc::RTLD_NOLOAD) }.is_ok()
}

/// Loads a companion, and tells it where NVIDIA's library is.
fn introduce(companion: &Path, real: &Path) -> Result<Library, String> {
    type Tell = unsafe extern "C" fn(*const c_char);
    let path = CString::new(real.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
    // SAFETY: a library of ours, which has no constructors.
    let library = unsafe { Library::open(Some(companion), RTLD_NOW | RTLD_LOCAL) }.map_err(in_words)?;
    // SAFETY: the type of the function in companion.h.
    let tell = unsafe { library.get::<Tell>(b"margay_companion_for\0") }.map_err(in_words)?;
    // SAFETY: a C string, which the function copies.
    unsafe { tell(path.as_ptr()) };
    Ok(library)
}

/// What the loader says: the error itself names only the call.
fn in_words(error: libloading::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

/// Where libraries of NVIDIA's may lie.
#[derive(Default)]
struct Places {
    /// Folders in which Python's packages are installed.
    packages: Vec<PathBuf>,
    /// Folders of libraries.
    libraries: Vec<PathBuf>,
}

impl Places {
    /// In the order in which Python programs look: wheels, conda, the loader's paths, toolkits.
    fn of_process() -> Places {
        let mut places = Places::default();
        let mapped = mapped_files();
        for file in &mapped {
            let installed = |folder: &&Path| folder.ends_with("site-packages") || folder.ends_with("dist-packages");
            if let Some(folder) = file.ancestors().find(installed) {
                add(&mut places.packages, folder.into());
            }
        }
        let home = |variable: &str| {
            std::env::var_os(variable)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        for prefix in home("VIRTUAL_ENV").into_iter().chain(prefix_of_program()) {
            let versions = std::fs::read_dir(prefix.join("lib")).into_iter().flatten().flatten();
            for version in versions.filter(|entry| entry.file_name().as_bytes().starts_with(b"python")) {
                add(&mut places.packages, version.path().join("site-packages"));
            }
        }
        if let Some(prefix) = home("CONDA_PREFIX") {
            add(&mut places.libraries, prefix.join("lib"));
        }
        let paths = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        for folder in std::env::split_paths(&paths).filter(|path| path.is_absolute()) {
            add(&mut places.libraries, folder);
        }
        for file in mapped.iter().filter_map(|file| file.parent()) {
            add(&mut places.libraries, file.into());
        }
        let toolkits = [home("CUDA_PATH"), home("CUDA_HOME"), Some("/usr/local/cuda".into())];
        for toolkit in toolkits.into_iter().flatten() {
            for folder in ["lib64", "lib", "targets/x86_64-linux/lib"] {
                add(&mut places.libraries, toolkit.join(folder));
            }
        }
        add(&mut places.libraries, "/usr/lib/x86_64-linux-gnu".into());
        add(&mut places.libraries, "/usr/lib64".into());
        places
    }

    /// NVIDIA's library of this name: a file that is not the companion itself, by whatever way.
    fn find(&self, name: &str, wheel: &str, companion: &Path) -> Option<PathBuf> {
        let wheels = self.packages.iter().map(|folder| folder.join(wheel));
        let mut candidates = wheels
            .chain(self.libraries.iter().cloned())
            .map(|folder| folder.join(name));
        let ours = companion.canonicalize().ok();
        candidates.find(|path| path.is_file() && path.canonicalize().ok() != ours)
    }
}

fn add(folders: &mut Vec<PathBuf>, folder: PathBuf) {
    if !folders.contains(&folder) {
        folders.push(folder);
    }
}

/// `/opt/env` of a process that was started as `/opt/env/bin/python`: a virtual environment's Python is a link, which the
/// process's own executable does not tell any more.
fn prefix_of_program() -> Option<PathBuf> {
    let program = PathBuf::from(std::env::args_os().next()?);
    let program = if program.components().nth(1).is_some() {
        std::path::absolute(program).ok()?
    } else {
        let paths = std::env::var_os("PATH")?;
        let mut named = std::env::split_paths(&paths).map(|folder| folder.join(&program));
        named.find(|path| path.is_file())?
    };
    Some(program.parent()?.parent()?.into())
}

/// The files that are mapped into this process, each once: programs, libraries, modules of Python.
fn mapped_files() -> Vec<PathBuf> {
    let maps = std::fs::read("/proc/self/maps").unwrap_or_default();
    let mut files: Vec<PathBuf> = Vec::new();
    for line in maps.split(|byte| *byte == b'\n') {
        let Some(start) = line.iter().position(|byte| *byte == b'/') else {
            continue;
        };
        let file = Path::new(OsStr::from_bytes(&line[start..]));
        // The mappings of a file follow each other.
        if files.last().is_none_or(|last| last != file) {
            files.push(file.into());
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// An empty folder of this test's own.
    fn scratch(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("margay-companions-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn wheels_come_before_libraries_of_the_system() {
        let base = scratch("wheels");
        let (packages, system) = (base.join("site-packages"), base.join("lib64"));
        let wheel = packages.join("nvidia/cu13/lib");
        fs::create_dir_all(&wheel).unwrap();
        fs::create_dir_all(&system).unwrap();
        let (folder, other_way) = (base.join("companions"), base.join("link"));
        fs::create_dir_all(&folder).unwrap();
        std::os::unix::fs::symlink(&folder, &other_way).unwrap();
        let companion = folder.join("libnvrtc.so.13");
        fs::write(&companion, "").unwrap();
        let places = Places {
            packages: vec![packages],
            libraries: vec![base.join("not there"), other_way, system.clone()],
        };
        let find = || places.find("libnvrtc.so.13", "nvidia/cu13/lib", &companion);
        assert_eq!(find(), None);
        fs::write(system.join("libnvrtc.so.13"), "").unwrap();
        assert_eq!(find(), Some(system.join("libnvrtc.so.13")));
        fs::write(wheel.join("libnvrtc.so.13"), "").unwrap();
        assert_eq!(find(), Some(wheel.join("libnvrtc.so.13")));
        assert_eq!(places.find("libnvrtc.so.12", "nvidia/cuda_nvrtc/lib", &companion), None);
        fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn the_files_of_this_process_are_known() {
        let files = mapped_files();
        assert!(files.contains(&std::env::current_exe().unwrap()));
        assert!(files.iter().any(|file| {
            file.file_name()
                .is_some_and(|name| name.as_bytes().starts_with(b"libc.so"))
        }));
    }

    #[test]
    fn a_program_is_found_where_it_was_started_from() {
        let exe = std::env::current_exe().unwrap();
        // Test harnesses are started by their path.
        assert_eq!(prefix_of_program().as_deref(), exe.parent().and_then(Path::parent));
    }

    #[test]
    fn libraries_that_are_loaded_are_told_from_others() {
        assert!(is_loaded("libc.so.6"));
        assert!(!is_loaded("libnvrtc.so.13"));
    }

    #[test]
    fn there_is_advice_for_known_programs_only() {
        assert_eq!(advice(), None);
        assert_eq!(advice_for(&["/env/site-packages/numpy/core.so".into()]), None);
        let numba = advice_for(&["/env/site-packages/numba_cuda/numba/cuda/cext/_dispatcher.so".into()]).unwrap();
        assert!(numba.starts_with("numba-cuda made it with nvJitLink. Margay's companion would keep the PTX; put"));
        let cupy = advice_for(&["/env/site-packages/cupy_backends/cuda/api/driver.so".into()]).unwrap();
        assert!(cupy.starts_with("CuPy made it with NVRTC. ") && cupy.contains("CUPY_COMPILE_WITH_PTX=1"));
    }

    #[test]
    fn what_is_no_companion_is_refused() {
        let base = scratch("refused");
        let file = base.join("libnvrtc.so.13");
        fs::write(&file, "no library").unwrap();
        assert!(introduce(&file, Path::new("/")).unwrap_err().contains("libnvrtc.so.13"));
        fs::remove_dir_all(base).unwrap();
    }
}
