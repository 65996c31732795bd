//! Gives the cdylib the name that programs look for, and generates what follows from the table of entry points: the
//! exported functions and the address table (`entry_points.rs`), and the header (`cuda.h`), both in `OUT_DIR`.

#[path = "src/api/generate/header.rs"]
mod header;
#[allow(dead_code, reason = "the tests look at more of it")]
#[path = "src/api/generate/table.rs"]
mod table;
#[path = "src/api/generate/wrappers.rs"]
mod wrappers;

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    // Without DT_SONAME glibc does not recognise a preloaded library as the `libcuda.so.1` that cudart asks dlopen for.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcuda.so.1");
    // Its threads and the handlers it registers outlive any dlclose.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    for path in [
        "build.rs",
        "src/api/entry_points",
        "src/api/types",
        "src/api/generate",
        "src/api/header",
    ] {
        println!("cargo:rerun-if-changed={path}");
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));

    let mut entry_points = Vec::new();
    for (chapter, text) in files("src/api/entry_points", "txt") {
        match table::parse(&chapter, &text) {
            Ok(lines) => entry_points.extend(lines),
            Err(problem) => panic!("{problem}"),
        }
    }
    write(&out.join("entry_points.rs"), &wrappers::generate(&entry_points));

    let mut types: Vec<String> = Vec::new();
    for (name, text) in files("src/api/types", "rs") {
        if name != "mod" && name != "layout" {
            types.push(text);
        }
    }
    let source = header::source(&types, &entry_points);
    let source_path = out.join("header.rs");
    write(&source_path, &source);
    let [prologue, epilogue] = ["src/api/header/prologue.h", "src/api/header/epilogue.h"]
        .map(|path| fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}")));
    let mut config = cbindgen::Config {
        language: cbindgen::Language::C,
        cpp_compat: true,
        include_guard: Some("__cuda_cuda_h__".into()),
        header: Some(
            "/* The CUDA driver API, as Margay offers it. Generated: change src/api and run `make header`. */".into(),
        ),
        no_includes: true,
        usize_is_size_t: true,
        after_includes: Some(header::macros(&prologue, &entry_points)),
        trailer: Some(epilogue),
        documentation: true,
        documentation_style: cbindgen::DocumentationStyle::C,
        line_length: 120,
        tab_width: 4,
        ..Default::default()
    };
    config.layout.aligned_n = Some("CU_ALIGNED".into());
    config.export.include = header::type_names(&source);
    let mut text = Vec::new();
    cbindgen::Builder::new()
        .with_src(&source_path)
        .with_config(config)
        .generate()
        .expect("cbindgen reads what header.rs writes")
        .write(&mut text);
    let text = String::from_utf8(text).expect("cbindgen writes text");
    write(&out.join("cuda.h"), &header::unname(&text));
}

/// The files of a folder, by name without extension, in the order of names.
fn files(folder: &str, extension: &str) -> Vec<(String, String)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{folder}: {error}"))
        .map(|entry| entry.expect("a folder can be listed").path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .map(|path| {
            let name = path
                .file_stem()
                .expect("a file has a name")
                .to_string_lossy()
                .into_owned();
            (
                name,
                fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())),
            )
        })
        .collect();
    files.sort();
    files
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
