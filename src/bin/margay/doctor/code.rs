//! The GPU code of the program and of what it loads: which of it runs here, and how to get PTX where there is none.

use super::report::Report;
use cuda::config;
use cuda::image::{self, Image, Target};
use object::{Object, ObjectSection};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Sections in which nvcc puts fat binaries: wrappers, and what is still to be linked.
const SECTIONS: [&str; 4] = [".nv_fatbin", ".nvFatBinSegment", "__nv_relfatbin", "__nv_module_id"];
/// The oldest of NVIDIA's compilers whose programs are among Margay's tests.
const OLDEST_TRIED: (u32, u32) = (11, 8);

/// How people get PTX into what they did not compile with nvcc by hand: names of files by which it is known, and what to do.
const BUILDS: [(&str, &str); 5] = [
    (
        "libtorch",
        "PyTorch's packages hold machine code for known GPUs. Build it from source with TORCH_CUDA_ARCH_LIST=\"9.0+PTX\"; extensions of \
         one's own take the same variable",
    ),
    (
        "libtensorflow",
        "build TensorFlow with TF_CUDA_COMPUTE_CAPABILITIES=compute_80, which asks for PTX",
    ),
    (
        "libonnxruntime",
        "build ONNX Runtime with CMAKE_CUDA_ARCHITECTURES=80-virtual",
    ),
    (
        "libcupy",
        "install CuPy from source with CUPY_NVCC_GENERATE_CODE=arch=compute_80,code=compute_80",
    ),
    (
        "libggml",
        "build llama.cpp with -DGGML_CUDA=ON -DCMAKE_CUDA_ARCHITECTURES=80-virtual",
    ),
];

pub fn examine(files: &[PathBuf], report: &mut Report) {
    let mut any = false;
    for file in files.iter().filter(|file| has_gpu_code(file)) {
        match image::from_file(file) {
            Ok(image) if image.found.is_empty() => {}
            Ok(image) => {
                any = true;
                judge(file, &image, report);
            }
            Err(error) => report.problem(
                format!("The GPU code of {} cannot be read: {error}.", file.display()),
                "",
            ),
        }
    }
    if !any {
        report.seen("GPU code", "none in the program and the libraries that were looked at");
    }
}

/// Whether there is something to read: most libraries have none, and some are gigabytes.
fn has_gpu_code(file: &Path) -> bool {
    let Ok(file) = std::fs::File::open(file) else {
        return false;
    };
    let parts = object::ReadCache::new(file);
    let Ok(file) = object::File::parse(&parts) else {
        return false;
    };
    file.sections()
        .filter_map(|section| section.name().map(str::to_string).ok())
        .any(|name| SECTIONS.contains(&name.as_str()))
}

fn judge(file: &Path, image: &Image, report: &mut Report) {
    let name = file.display();
    report.seen("GPU code", format!("{name}: {}", image.summary()));
    if let Some(message) = image.no_ptx_message(|| advice(file)) {
        let (what, remedy) = message.split_once(". ").unwrap_or((&message, ""));
        report.problem(
            format!("{}.", capital(what.trim_end_matches('.'))),
            match remedy {
                "" => String::new(),
                remedy => format!(
                    "{remedy} With CMake: CMAKE_CUDA_ARCHITECTURES=75 embeds machine code and PTX, 75-virtual PTX alone, 75-real none."
                ),
            },
        );
    }
    let releases: BTreeSet<(u32, u32)> = releases(image);
    if let Some(oldest) = releases.first().filter(|release| **release < OLDEST_TRIED) {
        report.note(format!(
            "{name} was compiled by CUDA {}.{}; Margay is tested with programs of CUDA {}.{} and newer.",
            oldest.0, oldest.1, OLDEST_TRIED.0, OLDEST_TRIED.1
        ));
    }
}

fn advice(file: &Path) -> Option<String> {
    let name = file.file_name()?.to_str()?;
    let (_, advice) = BUILDS.iter().find(|(start, _)| name.starts_with(start))?;
    Some((*advice).to_string())
}

/// The releases of the compilers that made the PTX, of which its first lines tell.
fn releases(image: &Image) -> BTreeSet<(u32, u32)> {
    let device = config::get()
        .device
        .parse::<Target>()
        .map_or(120, |target| target.number);
    let chosen = image
        .units
        .iter()
        .filter_map(|unit| unit.choose((device / 10, device % 10)));
    // Libraries have hundreds of units, of one compiler.
    let texts = chosen.take(4).filter_map(|entry| entry.text().ok());
    texts.filter_map(|text| release(&text)).collect()
}

/// `// Cuda compilation tools, release 12.4, V12.4.131`
fn release(ptx: &str) -> Option<(u32, u32)> {
    let line = ptx
        .lines()
        .take(10)
        .find(|line| line.contains("compilation tools, release "))?;
    let number = line.split("release ").nth(1)?.split(',').next()?;
    let (major, minor) = number.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compilers_say_which_release_they_are() {
        let head = "//\n// Generated by NVIDIA NVVM Compiler\n//\n// Cuda compilation tools, release 11.4, V11.4.48\n.version 7.4\n";
        assert_eq!(release(head), Some((11, 4)));
        assert_eq!(release(".version 7.4\n"), None);
        assert_eq!(release("// compilation tools, release x.y\n"), None);
    }

    #[test]
    fn known_builds_have_advice_of_their_own() {
        assert!(advice(Path::new("/a/libtorch_cuda.so")).is_some_and(|text| text.contains("TORCH_CUDA_ARCH_LIST")));
        assert_eq!(advice(Path::new("/a/libmine.so")), None);
    }
}
