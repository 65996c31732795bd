//! Random kernels as a GPU computed them (`tests/hardware/kernels.py`): texts and hashes, so that other draws of later versions
//! leave them as they are.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use libtest_mimic::Failed;

use super::generate;
use super::peer::Outcome;
use super::reduce::Comparison;

/// In a device's folder of goldens.
const FILE: &str = "kernels.zst";
/// What stands before a kernel's text: its number, block, grid and hash.
const HEAD: &str = "// kernel ";
/// How long compiled ones may take together: all are interpreted, and so many compiled as there is time for.
const MOST: Duration = Duration::from_secs(20);

/// Writes the kernels of a table's lines in a range, but for those that differ: these are looked into, and `docs/fidelity.md` counts them.
pub fn keep(table: &Path, range: std::ops::Range<u64>, file: &Path) -> Result<(), String> {
    let lines = std::fs::read_to_string(table).map_err(|error| format!("{}: {error}", table.display()))?;
    let mut texts = String::new();
    for line in lines.lines() {
        let [number, ours, gpu] = line.split('\t').collect::<Vec<_>>()[..] else {
            return Err(format!("no line of a table: {line}"));
        };
        let seed: u64 = number.parse().map_err(|_| format!("no number: {number}"))?;
        let Some(hash) = gpu.strip_prefix("ok ").filter(|_| range.contains(&seed) && ours == gpu) else {
            continue;
        };
        let kernel = generate::kernel(seed);
        let ([x, y, z], [columns, rows]) = (kernel.block, kernel.grid);
        texts += &format!("{HEAD}{seed} {x} {y} {z} {columns} {rows} {hash}\n{}", kernel.print());
    }
    let packed = zstd::encode_all(texts.as_bytes(), 22).map_err(|error| error.to_string())?;
    std::fs::write(file, packed).map_err(|error| format!("{}: {error}", file.display()))
}

/// The devices' files.
pub fn files() -> Vec<PathBuf> {
    let goldens = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hardware/goldens");
    let folders = std::fs::read_dir(goldens).into_iter().flatten().flatten();
    folders
        .map(|folder| folder.path().join(FILE))
        .filter(|path| path.is_file())
        .collect()
}

/// Runs a file's kernels in every configuration, and compares their hashes with the device's.
pub fn compare(file: &Path, configurations: &[String], patience: Duration) -> Result<(), Failed> {
    let texts = String::from_utf8(zstd::decode_all(std::fs::File::open(file)?)?)?;
    let kernels: Vec<(&str, &str)> = texts
        .split(HEAD)
        .skip(1)
        .filter_map(|kernel| kernel.split_once('\n'))
        .collect();
    if kernels.is_empty() {
        return Err(format!("{}: no kernel", file.display()).into());
    }
    let device = file.parent().and_then(Path::file_name).unwrap_or_default();
    let name = format!("tiers-measured-{}-{}", device.display(), std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder)?;
    let (text_file, left) = (folder.join("kernel.ptx"), folder.join("left"));
    let mut wrong = String::new();
    for configuration in configurations {
        let mut comparison = Comparison::new(&[format!("{configuration},TIERS_EXACT=approximate")], patience);
        let [(_, peer)] = &mut comparison.peers[..] else {
            unreachable!("one configuration")
        };
        let until = Instant::now() + MOST;
        for (head, text) in &kernels {
            if configuration != "MARGAY_JIT=off" && Instant::now() > until {
                break;
            }
            let (launch, hash) = head.rsplit_once(' ').ok_or("no hash")?;
            std::fs::write(&text_file, text)?;
            peer.send(&format!("file {} {launch} {}", text_file.display(), left.display()));
            let outcome = peer.answer(patience);
            if outcome != Outcome::Ran(hash.to_owned()) {
                wrong += &format!(
                    "{configuration}: kernel {launch} (number, block, grid) {outcome}, the device left {hash}\n"
                );
            }
        }
    }
    let _ = std::fs::remove_dir_all(&folder);
    if wrong.is_empty() { Ok(()) } else { Err(wrong.into()) }
}
