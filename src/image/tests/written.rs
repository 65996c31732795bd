//! Images from our own writer, and images in memory: wrappers and texts behind bare pointers.

use super::write::{self, Entry, Store};
use super::*;

const TEXT: &str = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n";

fn load<T>(image: *const T) -> Result<Image, ImageError> {
    // SAFETY: the tests hand in images that are whole, or memory whose reading is checked.
    unsafe { from_pointer(image.cast()) }
}

#[test]
fn all_fields_and_encodings_come_through() {
    for store in [Store::Plain, Store::Lz4, Store::Zstd] {
        for (name, options) in [
            ("", ""),
            ("a.cu", ""),
            ("", "-O0"),
            ("some/source file.cu", "--compile-only -g"),
        ] {
            let entry = Entry {
                name,
                options,
                store,
                flags: 0x10_0011,
                isa: (8, 7),
                ..write::ptx(90, TEXT)
            };
            let fatbin = write::fatbin(&[write::entry(&write::cubin(90)), write::entry(&entry)]);
            let image = from_bytes(&fatbin).unwrap();
            let read = &image.units[0].entries[0];
            assert_eq!((read.target, read.isa), (target("sm_90a"), Some((8, 7))));
            assert_eq!(
                (
                    read.name.as_deref().unwrap_or(""),
                    read.options.as_deref().unwrap_or("")
                ),
                (name, options)
            );
            assert_eq!(&*read.text().unwrap(), TEXT);
            assert_eq!(
                &*load(fatbin.as_ptr()).unwrap().units[0].entries[0].text().unwrap(),
                TEXT
            );
        }
    }
}

/// CUDA Tile IR: entries of kind 0x80, and bare images that begin `7f "TileIR" 00`, as cuBLAS makes them. What is wrong with the
/// bytecode is told when it is used.
#[test]
fn tile_ir_is_named_and_read_when_it_is_used() {
    let entry = Entry {
        kind: 0x80,
        ..write::cubin(100)
    };
    let fatbin = from_bytes(&write::fatbin(&[write::entry(&entry)])).unwrap();
    assert_eq!(fatbin.summary(), "Tile IR for sm_100");
    // A header and the end: there is nothing in it.
    let bare = b"\x7fTileIR\0\x0d\x01\0\0\0 and what follows in memory";
    for image in [fatbin, from_bytes(bare).unwrap(), load(bare.as_ptr()).unwrap()] {
        assert!(image.no_ptx_message(|| None).is_none());
        let error = image.units[0].entries[0].code().unwrap_err();
        assert!(error.to_string().contains("Tile IR"), "{error}");
    }
    // PTX goes before.
    let both = from_bytes(&write::fatbin(&[
        write::entry(&entry),
        write::entry(&write::ptx(50, TEXT)),
    ]))
    .unwrap();
    assert_eq!(&*both.units[0].choose((10, 0)).unwrap().text().unwrap(), TEXT);
}

#[test]
fn containers_of_all_encodings() {
    let second = TEXT.replace("80", "90");
    let entries = [
        Entry {
            name: "odd",
            ..write::ptx(80, TEXT)
        },
        write::cubin(80),
        Entry {
            options: "--x",
            flags: 0x20_0011,
            ..write::ptx(90, &second)
        },
    ];
    for store in [Store::Plain, Store::Lz4, Store::Zstd] {
        let image = from_bytes(&write::fatbin(&[write::container(&entries, store)])).unwrap();
        let found = [
            (Kind::Ptx, "sm_80".into()),
            (Kind::Cubin, "sm_80".into()),
            (Kind::Ptx, "sm_90f".into()),
        ];
        assert_eq!(kinds(&image), found);
        let [first, last] = &image.units[0].entries[..] else {
            panic!()
        };
        assert_eq!(
            (first.name.as_deref(), last.options.as_deref()),
            (Some("odd"), Some("--x"))
        );
        assert_eq!(
            (&*first.text().unwrap(), &*last.text().unwrap()),
            (TEXT, second.as_str())
        );
    }
}

#[test]
fn unknown_kinds_are_remembered() {
    let strange = Entry {
        kind: 0x40,
        name: "x",
        ..write::cubin(100)
    };
    let image = from_bytes(&write::fatbin(&[write::entry(&strange)])).unwrap();
    assert_eq!(kinds(&image), [(Kind::Other(0x40), "sm_100".into())]);
    assert_eq!(image.summary(), "entries of unknown kind 0x40 for sm_100");
    assert_eq!(image.units.len(), 0);
}

#[test]
fn an_ordinary_wrapper() {
    let fatbin = write::fatbin(&[write::entry(&write::ptx(80, TEXT))]);
    let wrapper = write::wrapper(1, fatbin.as_ptr(), std::ptr::null());
    let image = load(&wrapper).unwrap();
    drop(fatbin);
    // What is needed was copied: the image may go.
    assert_eq!(&*image.units[0].entries[0].text().unwrap(), TEXT);
}

#[test]
fn a_linked_wrapper_has_one_unit_per_translation_unit() {
    let linked = write::fatbin(&[write::entry(&write::cubin(80))]);
    let one = write::fatbin(&[
        write::entry(&write::cubin(80)),
        write::entry(&write::ptx(80, "// one\n")),
    ]);
    let two = write::fatbin(&[write::entry(&write::ptx(80, "// two\n"))]);
    let bare = write::fatbin(&[write::entry(&write::cubin(90))]);
    let empty = write::fatbin(&[]);
    let list = [one.as_ptr(), two.as_ptr(), empty.as_ptr(), std::ptr::null()];
    let image = load(&write::wrapper(2, linked.as_ptr(), list.as_ptr())).unwrap();
    let texts: Vec<_> = image.units.iter().map(|unit| unit.entries[0].text().unwrap()).collect();
    assert_eq!(
        texts.iter().map(|text| &**text).collect::<Vec<_>>(),
        ["// one\n", "// two\n"]
    );
    assert_eq!((image.units_without_ptx, image.no_ptx_message(|| None)), (0, None));

    let list = [one.as_ptr(), bare.as_ptr(), std::ptr::null()];
    let image = load(&write::wrapper(2, linked.as_ptr(), list.as_ptr())).unwrap();
    assert_eq!((image.units.len(), image.units_without_ptx), (1, 1));
    let message = image.no_ptx_message(|| None).unwrap();
    assert!(
        message.starts_with("1 of 2 translation units in this image hold no PTX"),
        "{message}"
    );

    // The list can be empty, or not be there: then the fatbin is what there is.
    for list in [&[std::ptr::null()] as *const [*const u8; 1], std::ptr::null()] {
        let image = load(&write::wrapper(2, two.as_ptr(), list.cast())).unwrap();
        assert_eq!(image.units.len(), 1);
        let image = load(&write::wrapper(2, linked.as_ptr(), list.cast())).unwrap();
        assert_eq!((image.units.len(), image.units_without_ptx), (0, 1));
    }
    let image = load(&write::wrapper(2, empty.as_ptr(), std::ptr::null())).unwrap();
    assert_eq!(
        image.no_ptx_message(|| None).unwrap(),
        "this image holds no GPU code at all"
    );
}

#[test]
fn the_device_runtime_is_recognised() {
    let library = ".version 9.5\n.target sm_121\n.visible .func (.param .b32 r)\ncudaCGGetIntrinsicHandle(.param .b32 p)\n{ ret; }\n";
    let user = ".version 9.5\n.target sm_75\n.extern .func (.param .b32 r) cudaCGGetIntrinsicHandle(.param .b32 p);\n\
                .visible .entry k() { call.uni (r), cudaCGGetIntrinsicHandle, (p); ret; }\n";
    let flag = |text: &str| {
        let image = from_bytes(&write::fatbin(&[write::entry(&write::ptx(75, text))])).unwrap();
        image.units[0].is_device_runtime()
    };
    assert_eq!([flag(library), flag(user), flag(TEXT)], [true, false, false]);
}

#[test]
fn text_of_known_size() {
    for (bytes, expected) in [
        (TEXT.to_string(), TEXT.to_string()),
        (format!("{TEXT}\0"), TEXT.to_string()),
        (format!("{TEXT}\0\0\0junk"), TEXT.to_string()),
        (format!("\u{FEFF}{TEXT}"), TEXT.to_string()),
        (format!("\r\n\t  {TEXT}"), format!("\r\n\t  {TEXT}")),
        (format!("// é\n/* \n */{TEXT}"), format!("// é\n/* \n */{TEXT}")),
    ] {
        let image = from_bytes(bytes.as_bytes()).unwrap();
        let entry = &image.units[0].entries[0];
        assert_eq!(*entry.text().unwrap(), *expected);
        assert_eq!((entry.target, entry.isa), (target("sm_80"), Some((8, 0))));
    }
    // Bytes of another character set, in a comment.
    let image = from_bytes(b"// caf\xE9\n.version 1.4").unwrap();
    assert_eq!(
        &*image.units[0].entries[0].text().unwrap(),
        "// caf\u{FFFD}\n.version 1.4"
    );
    assert_eq!(image.units[0].entries[0].isa, Some((1, 4)));
}

#[test]
fn target_directives() {
    let target_of = |text: &str| {
        let image = from_bytes(text.as_bytes()).unwrap();
        image.units[0].entries[0].target
    };
    let none = Target {
        number: 0,
        suffix: None,
    };
    assert_eq!(
        target_of(".version 9.0 .target sm_120a, debug .address_size 64"),
        target("sm_120a")
    );
    assert_eq!(target_of(".version 9.0\n.target debug,sm_90a\n"), target("sm_90a"));
    assert_eq!(target_of(".version 9.0\n.target /* why */ sm_103f"), target("sm_103f"));
    assert_eq!(target_of(".version 9.0\n// .target sm_80\n.address_size 64"), none);
    assert_eq!(target_of(""), none);
    assert_eq!(target_of("/* open"), none);
}

#[test]
fn text_behind_a_pointer() {
    let text = format!("\n{TEXT}\0 not this");
    let image = load(text.as_ptr()).unwrap();
    assert_eq!(*image.units[0].entries[0].text().unwrap(), format!("\n{TEXT}"));
    // Longer than a step of the search.
    let long = format!("{}{TEXT}\0", "// line\n".repeat(50_000));
    assert_eq!(
        load(long.as_ptr()).unwrap().units[0].entries[0].text().unwrap().len(),
        long.len() - 1
    );
    // Shorter than a magic number, and nothing at all.
    assert_eq!(
        &*load(c".x".as_ptr()).unwrap().units[0].entries[0].text().unwrap(),
        ".x"
    );
    assert_eq!(&*load(c"".as_ptr()).unwrap().units[0].entries[0].text().unwrap(), "");
}

#[test]
fn a_cubin_behind_a_pointer() {
    let image = load(sample!("add.cubin").as_ptr()).unwrap();
    assert_eq!(kinds(&image), [(Kind::Cubin, "sm_75".into())]);
    // This test's own program is where its constants lie.
    let own = std::env::current_exe().unwrap();
    assert_eq!(
        std::fs::canonicalize(image.origin.unwrap()).unwrap(),
        own.canonicalize().unwrap()
    );
}
