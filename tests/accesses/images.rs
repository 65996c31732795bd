//! Textures and surfaces: each form of the list reads, writes or updates as many texels as it says.
//!
//! All coordinates are 0 and nothing is filtered: `tex` reads one texel, `tld4` four, wherever that is.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use cuda::memory::texture::{
    Backing, Channel, Descriptor, Format, Image, Level, Objects, References, Sampler, Surface, Texture,
};
use cuda::simt::observe::{Direction, Watch};

use crate::catalogue::{self, Row};
use crate::counter::{Counter, Run};

const EDGE: u32 = 8;
/// Bytes of a texel: four words.
const TEXEL: u32 = 16;
const LAYERS: u32 = 12;

/// An image that a form of this geometry can be used on.
fn image(words: &[&str], address: u64) -> Image {
    let has = |word: &str| words.contains(&word);
    let cube = has("cube") || has("acube");
    let layers = match () {
        () if has("cube") => 6,
        () if ["a1d", "a2d", "acube", "a2dms"].into_iter().any(has) => LAYERS,
        () => 1,
    };
    let one = has("1d") || has("a1d");
    let (height, depth) = (if one { 1 } else { EDGE }, if has("3d") { EDGE } else { 1 });
    let pitch = u64::from(EDGE * TEXEL);
    Image {
        levels: Box::new([Level {
            address,
            width: EDGE,
            height,
            depth,
            pitch,
            slice: pitch * u64::from(height),
        }]),
        format: Format {
            channel: Channel::U32,
            channels: 4,
        },
        layers,
        cube,
        memory: Backing::Array(Arc::new(AtomicBool::new(true))),
    }
}

/// Registers of a statement, by the classes of the list.
fn declarations(example: &str) -> String {
    let names: BTreeSet<&str> = example
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '%' || c == '_'))
        .filter(|word| word.starts_with('%'))
        .collect();
    let mut text = String::new();
    for name in names {
        let letters = name
            .trim_start_matches('%')
            .trim_end_matches(|c: char| c.is_ascii_digit());
        let (ty, zero) = match letters {
            "rb" => ("b8", None),
            "rs" => ("b16", Some("0")),
            "rd" => ("b64", Some("0")),
            "f" => ("f32", Some("0f00000000")),
            "p" => ("pred", None),
            "r" => ("b32", Some("0")),
            other => panic!("registers {other}"),
        };
        text += &format!("    .reg .{ty} {name};\n");
        match (letters, zero) {
            ("rb", _) => text += &format!("    ld.global.b8 {name}, [%scratch];\n"),
            (_, Some(zero)) => text += &format!("    mov.{ty} {name}, {zero};\n"),
            (_, None) => {}
        }
    }
    text
}

/// What a lane does: how often, and how many bytes each time.
fn expected(words: &[&str]) -> (u32, u32, Option<Direction>) {
    let vector = ["v2", "v4"].into_iter().find(|word| words.contains(word));
    let elements = vector.map_or(1, |word| word[1..].parse().expect("a number"));
    let bits = words.last().and_then(|_| {
        words
            .iter()
            .rev()
            .find_map(|word| word.strip_prefix(['b', 'u', 's'])?.parse().ok())
    });
    let bytes: u32 = bits.map_or(4, |bits: u32| bits / 8);
    match (words[0], words.get(1).copied()) {
        ("tex", _) => (1, TEXEL, Some(Direction::Read)),
        ("tld4", _) => (4, TEXEL, Some(Direction::Read)),
        ("suld", Some("b")) => (1, elements * bytes, Some(Direction::Read)),
        ("sust", Some("b")) => (1, elements * bytes, Some(Direction::Write)),
        // A formatted store writes a texel, whatever it is given.
        ("sust", Some("p")) => (1, TEXEL, Some(Direction::Write)),
        ("sured", Some("b" | "p")) => (1, bytes, Some(Direction::Atomic)),
        ("txq" | "suq" | "istypep", _) => (0, 0, None),
        _ => panic!("{words:?}"),
    }
}

fn one(run: &mut Run, row: &Row, memory: u64) -> Result<(), String> {
    let example = row.example;
    let opcode = example.split_whitespace().next().unwrap_or_default();
    let words: Vec<&str> = opcode.split('.').collect();
    let mode = if row.independent { ", texmode_independent" } else { "" };
    let (version, target) = row.last.unwrap_or(("9.5", "sm_120a"));
    let surface = opcode.starts_with("su");
    let sampler = Objects::get().insert(0, Descriptor::Sampler(Arc::default()));
    let text = format!(
        ".version {version}\n.target {target}{mode}\n.address_size 64
.global .texref tex0;\n.global .surfref srf0;\n.global .samplerref smp0;
.visible .entry k(.param .u64 handle)\n{{\n    .reg .b64 %scratch, %texels;\n    ld.param.u64 %scratch, [handle];\n    mov.b64 %texels, {memory};
{}    {example}\n    ret;\n}}\n",
        declarations(example)
            .replace("mov.b64 %rd1, 0;", "ld.param.b64 %rd1, [handle];")
            .replace("mov.b64 %rd2, 0;", &format!("mov.b64 %rd2, {sampler};"))
            .replace("[%scratch]", "[%texels]")
    );
    let code = run.load(&text)?;
    let image = image(&words, memory);
    let described = match surface {
        true => Descriptor::Surface(Arc::new(Surface { image })),
        false => Descriptor::Texture(Arc::new(Texture {
            image,
            sampler: Sampler::default(),
            normalize: false,
            srgb: false,
        })),
    };
    let handle = Objects::get().insert(0, described.clone());
    let mut references: Vec<(u64, Descriptor)> = Vec::new();
    for global in code.module.globals.iter() {
        match &*global.name {
            "tex0" if !surface => references.push((global.address, described.clone())),
            "srf0" if surface => references.push((global.address, described.clone())),
            "smp0" => references.push((global.address, Descriptor::Sampler(Arc::default()))),
            _ => {}
        }
    }
    references.sort_by_key(|(address, _)| *address);
    run.references = References::from(references);
    let kernel = run.prepare(&code, "k")?;
    let counter = Arc::new(Counter::of(example));
    let block = (32, handle.to_le_bytes().to_vec());
    let ended = run.start(&code, kernel, block, Watch::new(Arc::clone(&counter)));
    ended.map_err(|fault| fault.cause.to_string())?;
    let (times, bytes, direction) = expected(&words);
    let seen = counter.seen();
    let lanes: u32 = seen.iter().map(|seen| seen.lanes).sum();
    let good = seen
        .iter()
        .all(|seen| seen.what.bytes == bytes && Some(seen.what.direction) == direction);
    if good && lanes == 32 * times {
        return Ok(());
    }
    let first = seen.first().map(|seen| (seen.what.bytes, seen.what.direction));
    Err(format!(
        "{lanes} accesses, the first {first:?}; expected {} of {bytes} bytes",
        32 * times
    ))
}

#[test]
fn texels_are_seen() {
    let rows = catalogue::rows();
    let rows: Vec<&Row> = rows
        .iter()
        .filter(|row| matches!(row.category, "texture" | "surface") && row.semantic)
        .collect();
    assert!(rows.len() > 1000, "{} forms", rows.len());
    let step = std::env::var("ACCESSES_STEP").map_or(None, |step| step.parse().ok());
    let step = step.unwrap_or(if cfg!(debug_assertions) { 13 } else { 1 });
    let mut run = Run::new();
    let memory = run.memory.buffer(&vec![0; (EDGE * EDGE * LAYERS * TEXEL) as usize]);
    let mut failures = Vec::new();
    for row in rows.iter().step_by(step) {
        if let Err(why) = one(&mut run, row, memory) {
            failures.push(format!("{}: {why}", row.example));
        }
    }
    let shown = failures.iter().take(40).cloned().collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} forms:\n{shown}", failures.len());
}
