//! The machine, and Margay as it is installed.

use super::report::Report;
use crate::info::vector_units;
use crate::place::{LIBRARY, is_margay, other_drivers};
use cuda::config;
use std::ffi::CStr;
use std::path::{Path, PathBuf};

/// Less memory than this is mentioned.
const LITTLE_MEMORY: u64 = 2 << 30;

pub fn examine(report: &mut Report) {
    let config = config::get();
    // SAFETY: gives a C string that lives as long as the process.
    let glibc = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) };
    let memory = physical_memory();
    report.seen(
        "machine",
        format!(
            "{}, glibc {}, {}, {} of memory",
            std::env::consts::ARCH,
            glibc.to_string_lossy(),
            vector_units(),
            gibibytes(memory)
        ),
    );
    if cfg!(target_arch = "x86_64") && !std::arch::is_x86_feature_detected!("avx2") {
        report.note("The CPU has no AVX2: kernels run with the baseline's vectors of 16 bytes, several times slower.");
    }
    for (name, resource) in [("-v", libc::RLIMIT_AS), ("-d", libc::RLIMIT_DATA)] {
        if let Some(limit) = limit(resource) {
            report.note(format!(
                "Processes may have {} (ulimit {name}): calls that need more answer CUDA_ERROR_OUT_OF_MEMORY.",
                gibibytes(limit)
            ));
        }
    }
    if let Some(most) = group_memory().filter(|most| *most < memory) {
        report.note(format!(
            "This container or session may use {} of memory; who exceeds that is killed. MARGAY_MEMORY makes the device as small.",
            gibibytes(most)
        ));
    } else if memory < LITTLE_MEMORY {
        report.note("The machine has little memory; MARGAY_MEMORY makes the device as small.");
    }
    for problem in &config.problems {
        report.problem(
            format!("The environment has a setting that is not understood: {problem}"),
            "correct or unset it (`margay info` lists the variables)",
        );
    }
    if config.devices == 0 {
        report.problem("MARGAY_DEVICES=0: there is no device.", "unset it");
    }
    if let Ok(visible) = std::env::var("CUDA_VISIBLE_DEVICES")
        && hides_all(&visible)
    {
        report.problem(
            format!("CUDA_VISIBLE_DEVICES={visible} hides all devices: calls answer CUDA_ERROR_NO_DEVICE."),
            "unset it, or set it to 0",
        );
    }
}

/// Margay's library and what lies beside it.
pub fn examine_installation(library: &Path, report: &mut Report) {
    report.seen(
        "margay",
        format!("{}, {}", env!("CARGO_PKG_VERSION"), library.display()),
    );
    match cuda::simt::compiler() {
        Ok(version) => report.seen("margay", format!("kernels that run for long are compiled by {version}")),
        Err(why) => report.note(format!("All kernels are interpreted, which is slower: {why}.")),
    }
    let companions = library.with_file_name("companions");
    if !config::get().companions {
        report.note("MARGAY_COMPANIONS=0: Numba, CuPy, Triton and PyCUDA will make machine code, which does not run.");
    } else if !companions.is_dir() {
        report.problem(
            format!(
                "There is no folder {}: Numba, CuPy, Triton and PyCUDA will make machine code, which does not run.",
                companions.display()
            ),
            "put the folder `companions` of the package beside the library",
        );
    }
    for other in other_drivers() {
        report.note(format!(
            "The machine has another driver, {}; `margay run` and `import margay` put Margay's in front of it.",
            other.display()
        ));
    }
    if let Some(other) = on_search_path(library) {
        let whose = if is_margay(&other) {
            "another Margay"
        } else {
            "not Margay"
        };
        report.note(format!(
            "LD_LIBRARY_PATH leads to {}, which is {whose}: programs started without `margay run` get that one.",
            other.display()
        ));
    }
}

/// The library that programs would find by `LD_LIBRARY_PATH`, if it is another one than this.
fn on_search_path(library: &Path) -> Option<PathBuf> {
    let paths = std::env::var_os("LD_LIBRARY_PATH")?;
    let mut candidates = std::env::split_paths(&paths).map(|folder| folder.join(LIBRARY));
    let first = candidates.find(|path| path.is_file())?;
    (first.canonicalize().ok() != library.canonicalize().ok()).then_some(first)
}

/// CUDA programming guide, "CUDA Environment Variables": devices after the first that is none are not seen.
fn hides_all(visible: &str) -> bool {
    let first = visible.split(',').next().unwrap_or_default().trim();
    let names_one = first.starts_with("GPU-") || first.starts_with("MIG-");
    !names_one && first.parse::<u32>().is_err()
}

fn physical_memory() -> u64 {
    // SAFETY: both ask for a number.
    let (pages, size) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    pages.max(0) as u64 * size.max(0) as u64
}

fn limit(resource: libc::__rlimit_resource_t) -> Option<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the call fills the record.
    let answered = unsafe { libc::getrlimit(resource, &mut limit) } == 0;
    (answered && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

/// What the control group lets its processes use together (kernel documentation, "Control Group v2", memory.max).
fn group_memory() -> Option<u64> {
    let files = [
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    ];
    let mut texts = files.iter().filter_map(|file| std::fs::read_to_string(file).ok());
    texts.find_map(|text| text.trim().parse().ok())
}

fn gibibytes(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / (1_u64 << 30) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_hidden_by_the_first_that_is_none() {
        for visible in ["", "-1", "-1,0", "x", "NoDevFiles"] {
            assert!(hides_all(visible), "{visible}");
        }
        for visible in ["0", "1,-1", " 0", "GPU-1234"] {
            assert!(!hides_all(visible), "{visible}");
        }
    }
}
