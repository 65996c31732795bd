//! What NVIDIA's tools wrote, what our own writer wrote, and what nobody should write.

mod damaged;
mod write;
mod written;

use super::*;

macro_rules! sample {
    ($name:literal) => {
        include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/fatbin/", $name)).as_slice()
    };
}
use sample;

const SAMPLES: [&[u8]; 16] = [
    sample!("ptx-default.fatbin"),
    sample!("ptx-speed.fatbin"),
    sample!("ptx-size.fatbin"),
    sample!("ptx-balance.fatbin"),
    sample!("ptx-none.fatbin"),
    sample!("several.fatbin"),
    sample!("concat.fatbin"),
    sample!("compress-all.fatbin"),
    sample!("lto.fatbin"),
    sample!("sass.fatbin"),
    sample!("unit1.fatbin"),
    sample!("unit2.fatbin"),
    sample!("unit2.o"),
    sample!("nvfatbin-12-default.fatbin"),
    sample!("nvfatbin-12-size.fatbin"),
    sample!("nvfatbin-12-none.fatbin"),
];

fn target(word: &str) -> Target {
    word.parse().unwrap()
}

/// The texts of an image's only unit, by target.
fn texts(bytes: &[u8]) -> Vec<(String, Arc<str>)> {
    let image = from_bytes(bytes).unwrap();
    assert_eq!(image.units.len(), 1);
    image.units[0]
        .entries
        .iter()
        .map(|entry| (entry.target.to_string(), entry.text().unwrap()))
        .collect()
}

/// The only text of an image.
fn only_text(bytes: &[u8]) -> Arc<str> {
    let mut texts = texts(bytes);
    assert_eq!(texts.len(), 1);
    texts.remove(0).1
}

/// `sm_90a` → its kind and so on, for comparisons.
fn kinds(image: &Image) -> Vec<(Kind, String)> {
    image
        .found
        .iter()
        .map(|f| (f.kind, f.target.map_or(String::new(), |t| t.to_string())))
        .collect()
}

#[test]
fn every_compression_of_nvcc_holds_the_same_text() {
    // What stands uncompressed in the file can be found without reading the format.
    let plain = sample!("ptx-none.fatbin");
    let start = plain.windows(8).position(|window| window == b".version").unwrap();
    let length = plain[start..].iter().position(|&byte| byte == 0).unwrap();
    let expected = std::str::from_utf8(&plain[start..start + length]).unwrap();
    for bytes in &SAMPLES[..5] {
        let image = from_bytes(bytes).unwrap();
        let entry = &image.units[0].entries[0];
        assert_eq!((entry.target, entry.isa), (target("sm_75"), Some((9, 5))));
        assert_eq!(entry.text().unwrap().trim(), expected.trim());
        assert_eq!(image.no_ptx_message(|| None), None);
    }
    let encodings = SAMPLES[..5]
        .iter()
        .map(|bytes| from_bytes(bytes).unwrap().found[0].encoding);
    use Encoding::*;
    assert_eq!(encodings.collect::<Vec<_>>(), [Zstd, Lz4, Zstd, Zstd, Plain]);
}

#[test]
fn nvfatbin_of_cuda_12_holds_what_went_in() {
    // It takes blanks and the words of comments out.
    let words = |text: &str| {
        let code = text.lines().map(|line| line.split("//").next().unwrap());
        code.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
    };
    let input = words(std::str::from_utf8(sample!("add.ptx")).unwrap());
    for (bytes, encoding) in SAMPLES[13..]
        .iter()
        .zip([Encoding::Lz4, Encoding::Zstd, Encoding::Plain])
    {
        assert_eq!(words(&only_text(bytes)), input);
        let image = from_bytes(bytes).unwrap();
        assert_eq!(image.found[0].encoding, encoding);
        assert_eq!(image.units[0].entries[0].name.as_deref(), Some("add.cu"));
        assert_eq!(image.units[0].entries[0].target, target("sm_90a"));
    }
}

#[test]
fn containers_hold_what_separate_entries_hold() {
    let (mut several, mut concat) = (texts(sample!("several.fatbin")), texts(sample!("concat.fatbin")));
    several.sort();
    concat.sort();
    assert_eq!(
        several.iter().map(|(target, _)| target.as_str()).collect::<Vec<_>>(),
        ["sm_100f", "sm_75", "sm_90a"]
    );
    assert_eq!(several, concat);
    for (target, text) in &several {
        assert!(
            text.contains(&format!(".target {target}")) && text.contains(".file\t1 "),
            "{text}"
        );
    }
    for bytes in [sample!("several.fatbin"), sample!("concat.fatbin")] {
        let image = from_bytes(bytes).unwrap();
        for entry in &image.units[0].entries {
            assert_eq!(entry.name.as_deref(), Some("add.cu"));
            assert_eq!(entry.options.as_deref().map(str::trim), Some("--generate-line-info"));
            assert_eq!(entry.isa, Some((9, 5)));
        }
        assert!(kinds(&image).contains(&(Kind::Cubin, "sm_75".into())));
        assert_eq!(image.found.len(), 4);
    }
}

#[test]
fn ptx_beside_other_kinds_is_found() {
    let image = from_bytes(sample!("lto.fatbin")).unwrap();
    assert_eq!(
        kinds(&image),
        [(Kind::Ptx, "sm_90".into()), (Kind::LtoIr, "sm_90".into())]
    );
    assert_eq!(image.found[1].encoding, Encoding::Scrambled);
    assert_eq!(image.summary(), "PTX for sm_90; LTO-IR for sm_90");
    assert!(image.units[0].entries[0].text().unwrap().contains(".entry add"));
    let image = from_bytes(sample!("compress-all.fatbin")).unwrap();
    assert_eq!(
        kinds(&image),
        [(Kind::Cubin, "sm_80".into()), (Kind::Ptx, "sm_80".into())]
    );
}

#[test]
fn images_without_ptx_are_accepted_and_explained() {
    for bytes in [sample!("sass.fatbin"), sample!("add.cubin")] {
        let mut image = from_bytes(bytes).unwrap();
        assert_eq!(image.units.len(), 0);
        let number = image.found[0].target.unwrap().number;
        // The program made it: whoever knows how may say what helps.
        let advice = || Some("Ask the program.".to_string());
        assert_eq!(
            image.no_ptx_message(advice).unwrap(),
            format!(
                "this image holds no PTX, which is what Margay runs; it holds machine code for sm_{number}. Ask the program."
            )
        );
        image.origin = Some("./app".into());
        assert_eq!(
            image.no_ptx_message(advice).unwrap(),
            format!(
                "the GPU code of ./app holds no PTX, which is what Margay runs; it holds machine code for sm_{number}. \
                 Rebuild it with PTX: nvcc -gencode arch=compute_{number},code=compute_{number} beside the options it \
                 has (-arch=sm_{number} alone embeds PTX too)."
            )
        );
    }
}

#[test]
fn host_objects_and_archives_are_searched() {
    let unit1 = only_text(sample!("unit1.fatbin"));
    let unit2 = only_text(sample!("unit2.fatbin"));
    assert!(unit1.contains(".extern") && unit2.contains(".visible .func"));
    assert_eq!(only_text(sample!("unit2.o")), unit2);
    let archive = write::archive(&[
        ("a.o", sample!("unit2.o")),
        ("notes", b"abc"),
        ("b", sample!("unit1.fatbin")),
    ]);
    let image = from_bytes(&archive).unwrap();
    let texts: Vec<_> = image
        .units
        .iter()
        .map(|unit| unit.choose((12, 0)).unwrap().text().unwrap())
        .collect();
    assert_eq!(texts, [unit2, unit1]);
}

#[test]
fn choice_of_an_entry() {
    let choose = |offered: &[&str], capability| {
        let entries = offered.iter().map(|word| {
            let text = Stored::Text(Arc::from(*word));
            PtxEntry {
                is_tile_ir: false,
                target: target(word),
                isa: None,
                name: None,
                options: None,
                text,
            }
        });
        let unit = Unit {
            entries: entries.collect(),
            ..Unit::default()
        };
        unit.choose(capability).map(|entry| entry.target.to_string())
    };
    for (offered, capability, chosen) in [
        // The highest up to the device.
        (&["sm_52", "sm_75", "sm_90"][..], (8, 6), "sm_75"),
        (&["sm_90", "sm_75", "sm_120"], (12, 0), "sm_120"),
        // Of two with one number, the plain one; in any order.
        (&["sm_90a", "sm_90"], (9, 0), "sm_90"),
        (&["sm_90", "sm_90a"], (9, 0), "sm_90"),
        // a: on exactly its own; f: in its family, from itself on.
        (&["sm_80", "sm_90a"], (9, 0), "sm_90a"),
        (&["sm_80", "sm_90a"], (12, 0), "sm_80"),
        (&["sm_90", "sm_100f"], (10, 3), "sm_100f"),
        (&["sm_90", "sm_100f"], (12, 0), "sm_90"),
        (&["sm_90", "sm_103f"], (10, 0), "sm_90"),
        // Anything rather than nothing: below first, then the lowest above.
        (&["sm_90a", "sm_121"], (12, 0), "sm_90a"),
        (&["sm_121"], (7, 5), "sm_121"),
        (&["sm_121", "sm_90", "sm_100"], (7, 5), "sm_90"),
        (&["sm_90a", "sm_90"], (7, 5), "sm_90"),
    ] {
        assert_eq!(
            choose(offered, capability).as_deref(),
            Some(chosen),
            "{offered:?} on {capability:?}"
        );
    }
    assert_eq!(choose(&[], (12, 0)), None);
}

#[test]
fn targets_read_and_print() {
    for word in ["sm_75", "sm_90a", "sm_100f", "sm_121"] {
        assert_eq!(target(word).to_string(), word);
    }
    assert_eq!(target("compute_90a"), target("sm_90a"));
    for word in ["", "sm_", "sm_a", "75", "sm_90b", "sm_90aa", "sm_99999999999", "sm_9 0"] {
        assert_eq!(word.parse::<Target>(), Err(()), "{word}");
    }
}

#[test]
fn files() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/fatbin/ptx-default.fatbin");
    let image = from_file(path).unwrap();
    assert_eq!((image.units.len(), image.origin.as_deref()), (1, Some(path)));
    assert_eq!(from_file("/nowhere/at/all").unwrap_err().kind, ErrorKind::FileNotFound);
    assert_eq!(from_file("/").unwrap_err().kind, ErrorKind::FileUnreadable);
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/fatbin/README.md");
    let error = from_file(source).unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotAnImage);
    assert!(error.to_string().starts_with(source), "{error}");
}
