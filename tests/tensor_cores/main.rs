//! `wgmma` and `tcgen05`: every form that NVIDIA's assembler takes becomes a kernel, with descriptors, layouts, metadata and
//! scale factors drawn at random, and what it computes is compared with models written from the manual and from CuTe's
//! canonical layouts, which share nothing with the library.
//!
//! Elements of these are small whole numbers, so that every product is exact whatever an architecture does with bits: what is
//! tested is which elements are multiplied and where results go. `bits.rs` compares the bits, with results that were
//! measured on GPUs and with a model of them.
//! The kernels go through the C ABI, at every SIMD level. Without optimisation, a sample of the forms is run.

mod bits;
#[path = "../../cdylib-tests/c.rs"]
mod c;
mod device;
mod kernel;
#[path = "../forms/measured.rs"]
mod measured;
mod memory;
mod multiply;
mod numbers;
#[path = "../forms/model/products.rs"]
mod products;
mod shared;
mod sums;
mod warpgroup;

use std::process::{Child, Command, ExitCode, Stdio};

const LEVELS: [&str; 3] = ["avx512", "avx2", "baseline"];

/// Executes a form of this shape and compares.
type Check = fn(&str, &str) -> Result<(), String>;

fn main() -> ExitCode {
    let filter: Option<String> = std::env::args().skip(1).find(|a| !a.starts_with('-'));
    if std::env::args().any(|a| a == "--list") {
        println!("tensor_cores: test");
        return ExitCode::SUCCESS;
    }
    if std::env::var_os("MARGAY_SIMD").is_some() || std::env::var_os("DRIVER_UNDER_TEST").is_some() {
        return run(filter.as_deref());
    }
    let program = std::env::current_exe().expect("a running program has a file");
    // Side by side: each is busy with one thread for the most part.
    let runs = LEVELS.map(|level| {
        Command::new(&program)
            .args(filter.iter())
            .env("MARGAY_SIMD", level)
            .env("MARGAY_DEVICE", "sm_100")
            .env("MARGAY_LOG", "off")
            .stdout(Stdio::piped())
            .spawn()
    });
    let mut good = true;
    for (level, run) in LEVELS.into_iter().zip(runs) {
        let output = run.and_then(Child::wait_with_output).expect("a process of its own");
        println!("tensor cores at level {level}:");
        print!("{}", String::from_utf8_lossy(&output.stdout));
        good &= output.status.success();
    }
    ExitCode::from(if good { 0 } else { 101 })
}

/// Forms whose name contains `filter`, if there is one; every so many of them without optimisation.
fn run(filter: Option<&str>) -> ExitCode {
    let step = match (cfg!(debug_assertions), filter) {
        (true, None) => 41,
        _ => 1,
    };
    device::start();
    let rows = rows();
    let mut failures = 0;
    let families: [(&str, Check); 2] = [("wgmma", warpgroup::run), ("tcgen05", tcgen05)];
    for (family, one) in families {
        let forms: Vec<_> = rows
            .iter()
            .filter(|(category, form, _)| category == family && filter.is_none_or(|f| form.contains(f)))
            .collect();
        let mut executed = 0;
        for (_, form, shape) in forms.iter().step_by(step) {
            executed += 1;
            if let Err(why) = one(form, shape) {
                failures += 1;
                if failures <= 40 {
                    println!("  {form} {shape}: {why}");
                }
            }
        }
        println!("  {family}: {executed} of {} forms executed", forms.len());
    }
    if filter.is_none_or(|filter| filter == "bits") {
        let (measured, modelled) = (bits::measured(), bits::modelled());
        for why in measured.failures.iter().chain(&modelled.failures) {
            println!("  {why}");
        }
        failures += measured.failures.len() + modelled.failures.len();
        let of_model = measured.modelled + modelled.modelled;
        println!(
            "  sums: {} as measured on GPUs, {of_model} as the model has them",
            measured.measured
        );
    }
    ExitCode::from(if failures == 0 { 0 } else { 101 })
}

fn tcgen05(form: &str, shape: &str) -> Result<(), String> {
    match form.split('.').nth(1) {
        Some("mma") => multiply::run(form, shape),
        _ => memory::run(form, shape),
    }
}

/// Category, form and shape of operands.
fn rows() -> Vec<(String, String, String)> {
    let packed = include_bytes!("../data/forms.tsv.zst");
    let text = String::from_utf8(zstd::decode_all(&packed[..]).expect("intact")).expect("text");
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap_or_default().split('\t').collect();
    let column = |name: &str| header.iter().position(|h| *h == name).expect("the column is there");
    let (category, form, shape) = (column("category"), column("form"), column("shape"));
    lines
        .map(|line| line.split('\t').collect::<Vec<_>>())
        .filter(|cells| matches!(cells[category], "wgmma" | "tcgen05"))
        .map(|cells| (cells[category].into(), cells[form].into(), cells[shape].into()))
        .collect()
}
