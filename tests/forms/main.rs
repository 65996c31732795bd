//! Executes the instruction forms that NVIDIA's assembler takes, one after the other, and compares what they compute with
//! models that share nothing with the library: exact integers, LLVM's arbitrary-precision floats, a sequential memory.
//!
//! In: `tests/data/forms.tsv.zst`, a row for each form with an example statement. Each example becomes a kernel that reads
//! the statement's operands from memory and writes its results back; each thread has operands of its own, edge values
//! and random ones. Out: a count for each family of forms executed out of forms in the list, and the names of the rest.
//! The kernels go through the C ABI, like any program's, at every SIMD level.

#[macro_use]
#[path = "../../cdylib-tests/c.rs"]
mod c;
mod case;
mod catalogue;
mod device;
mod execute;
mod fabric;
mod goldens;
mod image;
mod matrix;
mod measured;
mod model;
mod multimem;
mod part;
mod reduction;
mod tensor;
mod together;

use std::collections::BTreeMap;
use std::process::{Command, ExitCode};

/// Families of the list that are executed here, with the number of their forms that no case can be made of yet: it may
/// fall, never rise.
const FAMILIES: &[(&str, usize)] = &[
    ("int", 0),
    ("float", 0),
    ("half", 0),
    ("logic", 0),
    ("compare", 0),
    ("move", 0),
    ("load", 0),
    ("store", 0),
    ("atomic", 0),
];

const LEVELS: [&str; 3] = ["avx512", "avx2", "baseline"];
/// Generations of tensor cores; the last is that of the default device, and so runs at every level.
const ARCHITECTURES: [&str; 6] = ["sm_70", "sm_75", "sm_80", "sm_89", "sm_90", "sm_100"];

fn main() -> ExitCode {
    // `cargo test` passes filters that mean other tests.
    let filter: Option<String> = std::env::args().skip(1).find(|a| !a.starts_with('-'));
    if std::env::args().any(|a| a == "--list") {
        println!("forms: test");
        return ExitCode::SUCCESS;
    }
    if std::env::var_os("MARGAY_SIMD").is_some() || device::device().is_some() {
        return run(filter.as_deref());
    }
    let program = std::env::current_exe().expect("a running program has a file");
    let mut good = true;
    for level in LEVELS {
        println!("forms at level {level}:");
        good &= Command::new(&program)
            .args(filter.iter())
            .env("MARGAY_SIMD", level)
            .env("MARGAY_LOG", "off")
            .env("MARGAY_DEVICES", multimem::DEVICES.to_string())
            .status()
            .is_ok_and(|status| status.success());
    }
    for architecture in ARCHITECTURES {
        println!("matrices as {architecture} multiplies them:");
        good &= Command::new(&program)
            .args(filter.iter())
            .env("MARGAY_SIMD", LEVELS[0])
            .env("MARGAY_TENSOR_ARCH", architecture)
            .env("MARGAY_LOG", "off")
            .status()
            .is_ok_and(|status| status.success());
    }
    ExitCode::from(if good { 0 } else { 101 })
}

/// Forms of matrices that warps hold; those that multiply, where tensor cores of a generation are asked for, and the
/// results that were measured on these.
fn matrices(rows: &[catalogue::Row], filter: Option<&str>) -> Vec<String> {
    let generation = std::env::var_os("MARGAY_TENSOR_ARCH").is_some();
    // Without optimisation a sample does: models take their time.
    let step = if cfg!(debug_assertions) && filter.is_none() {
        13
    } else {
        1
    };
    let wanted: Vec<&catalogue::Row> = rows
        .iter()
        .filter(|row| matches!(row.category, "matrix" | "mma" | "wmma") && row.semantic)
        .filter(|row| filter.is_none_or(|f| row.form.contains(f)))
        .filter(|row| !generation || row.form.contains("mma.s"))
        .step_by(step)
        .collect();
    let (made, mut failures) = matrix::run(&wanted);
    println!("  matrices of warps: {made} of {} forms executed", wanted.len());
    if generation && filter.is_none_or(|f| f == "goldens") {
        let (compared, found) = goldens::run(matrix::architecture());
        println!("  results measured on GPUs: {compared} compared");
        failures.extend(found);
    }
    failures
}

/// Forms of fabric operations, those of tensors among them: how many were executed, of how many, and what went wrong.
fn fabric(rows: &[catalogue::Row], filter: Option<&str>) -> (usize, usize, Vec<String>) {
    let (tensors, others): (Vec<&catalogue::Row>, Vec<&catalogue::Row>) = rows
        .iter()
        .filter(|row| row.category == "fabric")
        .filter(|row| filter.is_none_or(|f| row.form.contains(f)))
        .partition(|row| row.form.contains(".tensor"));
    if tensors.is_empty() && others.is_empty() {
        return (0, 0, Vec::new());
    }
    let endpoints = fabric::Endpoints::new();
    let (mut made, mut failures) = fabric::run(&others, &endpoints);
    let reductions = fabric::tensor_reductions(&tensors);
    for tensors in [tensors.clone(), reductions.iter().collect()] {
        let (more, found) = tensor::run(&tensors, Some(&endpoints));
        made += more;
        failures.extend(found);
    }
    made -= reductions.len();
    (made, tensors.len() + others.len(), failures)
}

/// Begins to use the device.
fn start() {
    let mut context = std::ptr::null_mut();
    c::ok(c::cuInit(0));
    c::ok(c::cuDevicePrimaryCtxRetain(&mut context, 0));
    c::ok(c::cuCtxSetCurrent(context));
}

/// What went wrong, as far as there is room for it.
fn report(failures: &[String]) -> ExitCode {
    let shown = std::env::var("FORMS_SHOW").ok().and_then(|n| n.parse().ok());
    let limit = shown.unwrap_or(40);
    for failure in failures.iter().take(limit) {
        println!("  {failure}");
    }
    if failures.len() > limit {
        println!("  … and {} more", failures.len() - limit);
    }
    ExitCode::from(if failures.is_empty() { 0 } else { 101 })
}

/// Forms whose name contains `filter`, if there is one.
fn run(filter: Option<&str>) -> ExitCode {
    let rows = device::rows();
    start();
    if std::env::var_os("MARGAY_TENSOR_ARCH").is_some() {
        return report(&matrices(&rows, filter));
    }
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut missing: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut cases = Vec::new();
    for row in &rows {
        // Asynchronous and bulk copies are a family of their own.
        let copies = row.form.contains(".async") || row.form.contains(".bulk");
        let wanted = row.semantic && !copies && FAMILIES.iter().any(|(family, _)| *family == row.category);
        if !wanted || filter.is_some_and(|f| !row.form.contains(f)) {
            continue;
        }
        counts.entry(row.category).or_default().1 += 1;
        match case::Case::of(row) {
            Some(case) => {
                counts.entry(row.category).or_default().0 += 1;
                cases.push(case);
            }
            None => missing.entry(row.category).or_default().push(row.example),
        }
    }
    // `FORMS_FAMILY` runs one of these alone: on a GPU a fault leaves nothing for the others.
    let wants = |family: &str| std::env::var("FORMS_FAMILY").map_or(true, |wanted| wanted == family);
    if !wants("registers") {
        cases.clear();
    }
    let mut failures = execute::run(&cases);
    let images: Vec<&catalogue::Row> = rows
        .iter()
        .filter(|row| matches!(row.category, "texture" | "surface") || row.form.starts_with("istypep"))
        .filter(|_| wants("images"))
        .filter(|row| filter.is_none_or(|f| row.form.contains(f)))
        .collect();
    let (made, found) = image::run(&images);
    println!("  textures and surfaces: {made} of {} forms executed", images.len());
    failures.extend(found);
    let tensors: Vec<&catalogue::Row> = rows
        .iter()
        .filter(|row| row.category == "tensor" && !row.form.contains("prefetch"))
        .filter(|_| wants("tensors"))
        .filter(|row| filter.is_none_or(|f| row.form.contains(f)))
        .collect();
    let (made, found) = tensor::run(&tensors, None);
    println!("  tensor copies: {made} of {} forms executed", tensors.len());
    failures.extend(found);
    if wants("matrices") {
        failures.extend(matrices(&rows, filter));
    }
    let together: Vec<&catalogue::Row> = rows
        .iter()
        .filter(|row| matches!(row.category, "warp" | "barrier") && row.semantic)
        .filter(|_| wants("together"))
        .filter(|row| !row.form.contains("cluster") && !row.form.starts_with("griddepcontrol"))
        .filter(|row| filter.is_none_or(|f| row.form.contains(f)))
        .collect();
    let (made, found) = together::run(&together);
    println!("  threads that meet: {made} of {} forms executed", together.len());
    failures.extend(found);
    // A team takes more than one GPU.
    let alone = device::device().is_some();
    let multimem: Vec<&catalogue::Row> = rows
        .iter()
        .filter(|row| !alone && row.category == "multimem" && row.semantic)
        .filter(|row| filter.is_none_or(|f| row.form.contains(f)))
        .collect();
    let (made, found) = multimem::run(&multimem);
    println!("  teams of devices: {made} of {} forms executed", multimem.len());
    failures.extend(found);
    let (made, all, found) = fabric(&rows, filter);
    println!("  fabric: {made} of {all} forms executed");
    failures.extend(found);
    for (family, (made, all)) in &counts {
        println!("  {family}: {made} of {all} forms executed");
        for example in missing.get(family).into_iter().flatten().take(40) {
            println!("    not executed: {example}");
        }
    }
    let short = |(family, least): &(&str, usize)| missing.get(family).map_or(0, Vec::len) > *least;
    if filter.is_none() && !alone && FAMILIES.iter().any(short) {
        println!("  more forms than before are not executed");
        return ExitCode::from(101);
    }
    report(&failures)
}
