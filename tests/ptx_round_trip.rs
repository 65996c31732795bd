//! Text → tree → text → tree: the two trees are equal, and NVIDIA's assembler takes the printed text where it took the
//! original.
//!
//! `tests/language/NAME.ARCH.ptx` are the project's own texts. `MARGAY_PTX_CORPUS` names further folders of modules
//! (separated by `:`), `MARGAY_PTXAS` an assembler other than the one that
//! `scripts/setup` fetches; without one its part is skipped.

use std::path::{Path, PathBuf};
use std::process::Command;

use cuda::ptx;

fn texts(folder: &Path) -> Vec<PathBuf> {
    let mut list: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "ptx"))
        .collect();
    list.sort();
    list
}

fn own() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/language")
}

/// What the printer makes of a file, after the check that it reads back as the same.
fn round_trip(path: &Path) -> String {
    let name = path.display().to_string();
    let bytes = std::fs::read(path).expect("readable");
    let read = |source| ptx::parse_all(source).unwrap_or_else(|found| panic!("{found}"));
    let module = read(ptx::source_from_bytes(&*name, &bytes));
    let printed = module.to_string();
    let again = read(ptx::Source::new(format!("{name}, printed"), &*printed));
    assert!(
        again == module,
        "{name}: the printed text reads as something else:\n{printed}"
    );
    assert!(printed == again.to_string(), "{name}: printing is not stable");
    printed
}

#[test]
fn trees_survive_printing() {
    let corpus = std::env::var_os("MARGAY_PTX_CORPUS").unwrap_or_default();
    let folders = std::env::split_paths(&corpus).filter(|folder| !folder.as_os_str().is_empty());
    for path in folders.chain([own()]).flat_map(|folder| texts(&folder)) {
        round_trip(&path);
    }
}

fn assemble(ptxas: &Path, arch: &str, text: &str) -> std::io::Result<Result<(), String>> {
    let folder = std::env::temp_dir().join(format!("margay-ptxas-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let file = folder.join("printed.ptx");
    std::fs::write(&file, text)?;
    let output = Command::new(ptxas)
        .args([&format!("-arch={arch}"), "-c", "-o"])
        .arg(folder.join("out.cubin"))
        .arg(&file)
        .output();
    std::fs::remove_dir_all(&folder)?;
    let output = output?;
    Ok(match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    })
}

#[test]
fn the_assembler_takes_what_is_printed() {
    let fetched = Path::new(env!("CARGO_MANIFEST_DIR")).join(".env/cuda-13/bin/ptxas");
    let ptxas = std::env::var_os("MARGAY_PTXAS").map_or(fetched, PathBuf::from);
    for path in texts(&own()) {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let (_, arch) = name.rsplit_once('.').expect("NAME.ARCH.ptx");
        match assemble(&ptxas, arch, &round_trip(&path)) {
            Ok(result) => assert_eq!(result, Ok(()), "{name}"),
            Err(error) => {
                println!("skipped: {}: {error}", ptxas.display());
                return;
            }
        }
    }
}
