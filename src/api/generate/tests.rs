//! The table and the header, held against NVIDIA's headers where those are installed, and against compilers.

use super::table::{EntryPoint, Twin, parse};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const GENERATED: &str = include_str!(concat!(env!("OUT_DIR"), "/cuda.h"));

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn table() -> Vec<EntryPoint> {
    let mut table = Vec::new();
    for entry in fs::read_dir(root().join("src/api/entry_points")).unwrap() {
        let path = entry.unwrap().path();
        let chapter = path.file_stem().unwrap().to_str().unwrap();
        table.extend(parse(chapter, &fs::read_to_string(&path).unwrap()).unwrap_or_else(|problem| panic!("{problem}")));
    }
    table
}

/// The folder of NVIDIA's `cuda.h`, of the version we speak of; says so when there is none.
fn nvidia() -> Option<PathBuf> {
    fn find(folder: &Path, depth: u32) -> Option<PathBuf> {
        let is_ours = |text: String| text.contains("#define CUDA_VERSION 13050");
        if folder.join("cudaTypedefs.h").is_file() && fs::read_to_string(folder.join("cuda.h")).is_ok_and(is_ours) {
            return Some(folder.into());
        }
        let mut folders: Vec<_> = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).collect();
        folders.sort();
        folders
            .iter()
            .filter(|path| path.is_dir() && depth > 0)
            .find_map(|path| find(path, depth - 1))
    }
    let found = find(&root().join(".env"), 8);
    if found.is_none() {
        eprintln!("skipped: NVIDIA's headers of CUDA 13.5 are not in .env; scripts/setup installs them");
    }
    found
}

/// `make header` runs this test with `UPDATE_HEADER=1`, which copies the header.
#[test]
fn the_committed_header_is_the_generated_one() {
    let path = root().join("include/cuda.h");
    if env::var_os("UPDATE_HEADER").is_some() {
        fs::write(&path, GENERATED).unwrap();
    }
    let committed = fs::read_to_string(path).unwrap();
    assert!(
        committed == GENERATED,
        "include/cuda.h is out of date: run `make header`"
    );
}

#[test]
fn symbols_are_unique_and_versions_ascend() {
    let table = table();
    let symbols: BTreeSet<_> = table.iter().map(|entry| &entry.symbol).collect();
    assert_eq!(symbols.len(), table.len());
    let mut since: BTreeMap<&str, (&str, u32)> = BTreeMap::new();
    let mut sorted: Vec<_> = table.iter().collect();
    sorted.sort_by_key(|entry| (entry.name(), &entry.symbol));
    for entry in sorted {
        if let Some((before, earlier)) = since.insert(entry.name(), (&entry.symbol, entry.since)) {
            assert!(earlier < entry.since, "{before} and {}", entry.symbol);
        }
    }
}

/// (name, `_ptsz` or `_ptds` or nothing, version)
type Variant = (String, String, u32);

/// NVIDIA's typedef headers name every variant `PFN_<name>_v<version>[_ptsz|_ptds]`.
fn variants(folder: &Path) -> BTreeSet<Variant> {
    let headers = [
        "cudaTypedefs.h",
        "cudaProfilerTypedefs.h",
        "cudaGLTypedefs.h",
        "cudaEGLTypedefs.h",
        "cudaVDPAUTypedefs.h",
    ];
    let texts = headers.map(|header| fs::read_to_string(folder.join(header)).unwrap_or_default());
    let mut variants = BTreeSet::new();
    for piece in texts.iter().flat_map(|text| text.split("*PFN_").skip(1)) {
        let Some((name, _)) = piece.split_once(')') else {
            continue;
        };
        let (name, suffix) = match name.rsplit_once("_pt") {
            Some((name, rest)) => (name, format!("_pt{rest}")),
            None => (name, String::new()),
        };
        // CUDA 12's header leaves four names without a version.
        let version = name
            .rsplit_once("_v")
            .map(|(name, version)| (name, version.parse().unwrap()));
        // cuWGL…: Windows'.
        if let Some((name, version)) = version.filter(|(name, _)| !name.starts_with("cuWGL")) {
            variants.insert((name.into(), suffix, version));
        }
    }
    variants
}

/// The k-th version of a name is its k-th symbol: every line of the table must be one of the header's variants, and every
/// variant must be in the table.
#[test]
fn the_table_agrees_with_nvidias_typedefs() {
    let Some(folder) = nvidia() else { return };
    let expected = variants(&folder);
    let mut ours = BTreeSet::new();
    for entry in table() {
        ours.insert((entry.name().to_string(), String::new(), entry.since));
        if let Some(Twin { suffix, since }) = &entry.twin {
            ours.insert((entry.name().to_string(), format!("_{suffix}"), *since));
        }
    }
    assert_eq!(ours.difference(&expected).collect::<Vec<_>>(), Vec::<&Variant>::new());
    assert_eq!(expected.difference(&ours).collect::<Vec<_>>(), Vec::<&Variant>::new());
    let table = table();
    let missing = table.iter().filter(|entry| entry.implementation.is_none()).count();
    let refused = table.iter().filter(|entry| entry.is_refused()).count();
    println!(
        "{} functions, {} names with twins; {} implemented, {refused} answer NOT_SUPPORTED, {missing} missing",
        table.len(),
        ours.len(),
        table.len() - missing - refused,
    );
}

/// Programs of earlier versions ask for what their headers name: nothing of it is gone.
#[test]
fn the_table_has_all_that_earlier_headers_name() {
    let Ok(folders) = fs::read_dir(root().join(".env")) else {
        eprintln!("skipped: there is no .env; scripts/setup makes it");
        return;
    };
    let ours: BTreeSet<Variant> = table()
        .iter()
        .flat_map(|entry| {
            let twin = entry.twin.as_ref();
            let twin = twin.map(|twin| (entry.name().to_string(), format!("_{}", twin.suffix), twin.since));
            [(entry.name().to_string(), String::new(), entry.since)]
                .into_iter()
                .chain(twin)
        })
        .collect();
    let folders = folders.flatten().map(|entry| entry.path().join("include"));
    for folder in folders.filter(|folder| folder.join("cudaTypedefs.h").is_file()) {
        let theirs = variants(&folder);
        println!("{}: {} variants", folder.display(), theirs.len());
        assert_eq!(theirs.difference(&ours).collect::<Vec<_>>(), Vec::<&Variant>::new());
    }
}

/// `#define cuMemAlloc cuMemAlloc_v2` and the like, as the preprocessor sees them.
fn mappings(include: &Path, per_thread: bool, names: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut source = "#include <cuda.h>\n".to_string();
    for name in names {
        source += &format!("MARGAY \"{name}\" {name}\n");
    }
    let file = scratch("mappings.c", &source);
    let mut gcc = Command::new("cc");
    gcc.args(["-E", "-P", "-I"]).arg(include).arg(&file);
    if per_thread {
        gcc.arg("-DCUDA_API_PER_THREAD_DEFAULT_STREAM");
    }
    let output = gcc.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .filter_map(|line| line.strip_prefix("MARGAY "))
        .filter_map(|line| line.split_once(' '))
        .map(|(name, symbol)| (name.trim_matches('"').into(), symbol.into()))
        .collect()
}

fn scratch(name: &str, text: &str) -> PathBuf {
    let folder = env::temp_dir().join(format!(
        "margay-header-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ));
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join(name);
    fs::write(&file, text).unwrap();
    file
}

#[test]
fn names_stand_for_the_symbols_they_stand_for_in_nvidias_header() {
    let Some(folder) = nvidia() else { return };
    let names: BTreeSet<String> = table()
        .iter()
        .filter(|entry| entry.implementation.is_some() && !entry.symbol.starts_with("cuProfiler"))
        .filter(|entry| !["opengl", "egl", "vdpau"].contains(&entry.chapter.as_str()))
        .map(|entry| entry.name().to_string())
        .collect();
    for per_thread in [false, true] {
        let ours = mappings(&root().join("include"), per_thread, &names);
        let theirs = mappings(&folder, per_thread, &names);
        assert_eq!(ours.len(), names.len());
        for name in &names {
            assert_eq!(ours[name], theirs[name], "per thread: {per_thread}");
        }
    }
}

fn compiles(compiler: &str, arguments: &[&str], include: &Path, file: &Path) {
    let output = Command::new(compiler)
        .args(arguments)
        .args(["-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I"])
        .arg(include)
        .arg(file)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{compiler} {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A program in the common subset of C and C++ that compiles against our header and NVIDIA's.
const PROGRAM: &str = r#"
#include <cuda.h>
#if CUDA_VERSION != 13050
#error "which CUDA is this?"
#endif
static void CUDA_CB later(void *data) { *(int *)data = 1; }
int program(void);
int program(void) {
    CUdevice device = 0;
    CUcontext context = 0;
    CUmodule module = 0;
    CUfunction function = 0;
    CUstream stream = CU_STREAM_PER_THREAD;
    CUdeviceptr pointer = 0;
    CUdevice_attribute attribute = CU_DEVICE_ATTRIBUTE_WARP_SIZE;
    CUjit_option options[1] = {CU_JIT_ERROR_LOG_BUFFER};
    void *values[1] = {0};
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, values, CU_LAUNCH_PARAM_BUFFER_SIZE, values, CU_LAUNCH_PARAM_END};
    CUDA_MEMCPY2D box = {0, 0, CU_MEMORYTYPE_HOST, 0, 0, 0, 0, 0, 0, CU_MEMORYTYPE_DEVICE, 0, 0, 0, 0, 0, 0};
    CUmemLocation location;
    CUlaunchConfig config;
    CUlaunchAttribute launch;
    CUresult result = cuInit(0);
    const char *text = 0;
    int number = 0;
    location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    location.id = 0;
    launch.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    launch.value.clusterDim.x = 2;
    config.attrs = &launch;
    config.numAttrs = 1;
    config.hStream = stream;
    if (result != CUDA_SUCCESS) return cuGetErrorString(result, &text);
    cuDeviceGetAttribute(&number, attribute, device);
    cuDevicePrimaryCtxRetain(&context, device);
    cuCtxCreate(&context, 0, CU_CTX_SCHED_AUTO | CU_CTX_MAP_HOST, device);
    cuModuleLoadDataEx(&module, "", 1, options, values);
    cuModuleGetFunction(&function, module, "kernel");
    cuMemAlloc(&pointer, 16);
    cuMemcpyHtoD(pointer, &number, sizeof number);
    cuMemcpy2D(&box);
    cuMemsetD32Async(pointer, 0, 4, stream);
    cuMemAdvise(pointer, 16, CU_MEM_ADVISE_SET_READ_MOSTLY, location);
    cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, CU_STREAM_LEGACY, 0, extra);
    cuLaunchKernelEx(&config, function, values, 0);
    cuLaunchHostFunc(stream, later, &number);
    return cuMemFree(pointer);
}
"#;

#[test]
fn the_header_compiles_as_c_and_as_cpp() {
    let include = root().join("include");
    let c = scratch("program.c", PROGRAM);
    let cpp = scratch("program.cpp", PROGRAM);
    for define in ["-DNOTHING", "-DCUDA_API_PER_THREAD_DEFAULT_STREAM"] {
        compiles("cc", &["-std=gnu99", define], &include, &c);
        compiles("cc", &["-std=c11", define], &include, &c);
        compiles("c++", &["-std=c++11", define], &include, &cpp);
        compiles("c++", &["-std=c++20", define], &include, &cpp);
        if let Some(folder) = nvidia() {
            compiles("cc", &["-std=c11", define], &folder, &c);
            compiles("c++", &["-std=c++17", define], &folder, &cpp);
        }
    }
}

/// The records of the header lie as `types/layout.rs` says they lie in NVIDIA's.
#[test]
fn records_of_the_header_lie_as_in_nvidias() {
    let layout = fs::read_to_string(root().join("src/api/types/layout.rs")).unwrap();
    let mut source = "#include <cuda.h>\n#include <stddef.h>\n".to_string();
    let mut records = 0;
    for record in layout.split("layout! {").skip(1).flat_map(|body| body.split('}')) {
        let Some((name, body)) = record.split_once('{') else {
            continue;
        };
        let (name, Some((sizes, fields))) = (name.trim(), body.split_once(';')) else {
            continue;
        };
        let Some((size, align)) = sizes.split_once(',') else {
            continue;
        };
        records += 1;
        // Later versions of the header's own records are typedefs, older ones tags: a typedef names both.
        source += &format!("_Static_assert(sizeof({name}) == {}, \"{name}\");\n", size.trim());
        source += &format!("_Static_assert(_Alignof({name}) == {}, \"{name}\");\n", align.trim());
        for field in fields.split(',').map(str::trim).filter(|field| !field.is_empty()) {
            let (field, offset) = field.split_once(' ').unwrap();
            let field = field.trim_start_matches("r#");
            if field != "anonymous" {
                source += &format!("_Static_assert(offsetof({name}, {field}) == {offset}, \"{name}.{field}\");\n");
            }
        }
    }
    assert!(records > 100, "{records}");
    compiles(
        "cc",
        &["-std=c11"],
        &root().join("include"),
        &scratch("layout.c", &source),
    );
}
