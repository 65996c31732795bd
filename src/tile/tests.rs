//! Bytecode that is written here, by the reference's words, and a world of bytes to run it in. Expectations are counted by hand or by
//! plain arithmetic.

use std::sync::Arc;

use super::debug::Line;
use super::op::Code;
use super::*;
use crate::isa::mma::Architecture;

/// A part of the bytecode.
#[derive(Clone, Default)]
struct Out(Vec<u8>);

impl Out {
    fn number(mut self, mut value: u64) -> Out {
        loop {
            let byte = (value & 0x7f) as u8;
            value >>= 7;
            self.0.push(byte | if value == 0 { 0 } else { 0x80 });
            if value == 0 {
                return self;
            }
        }
    }

    fn numbers(self, values: &[u64]) -> Out {
        values.iter().fold(self, |out, &value| out.number(value))
    }

    fn bytes(mut self, bytes: &[u8]) -> Out {
        self.0.extend(bytes);
        self
    }

    fn list(self, values: &[i64], width: usize) -> Out {
        values.iter().fold(self.number(values.len() as u64), |out, value| {
            out.bytes(&value.to_le_bytes()[..width])
        })
    }

    fn align(mut self, to: usize) -> Out {
        self.0.resize(self.0.len().next_multiple_of(to), 0xcb);
        self
    }
}

fn table(entries: &[Out], width: usize) -> Out {
    table_behind(Out::default(), entries, width)
}

/// A table behind what its section has before it, by which it is aligned.
fn table_behind(out: Out, entries: &[Out], width: usize) -> Out {
    let mut out = out.number(entries.len() as u64).align(width);
    let mut start = 0_u64;
    for entry in entries {
        out = out.bytes(&start.to_le_bytes()[..width]);
        start += entry.0.len() as u64;
    }
    entries.iter().fold(out, |out, entry| out.bytes(&entry.0))
}

fn section(out: Out, number: u8, align: usize, contents: Out) -> Out {
    out.bytes(&[number | 0x80])
        .number(contents.0.len() as u64)
        .number(align as u64)
        .align(align)
        .bytes(&contents.0)
}

/// A module of one entry `f`, with these types, constants and operations; type 0 is the function's.
fn module(minor: u8, types: &[Out], constants: &[Out], body: &[Out]) -> Vec<u8> {
    module_from((minor, &["f"], None), types, constants, body)
}

/// The same, with strings, of which the first one is the entry's name, and with debug information.
fn module_from(
    (minor, strings, debug): (u8, &[&str], Option<Out>),
    types: &[Out],
    constants: &[Out],
    body: &[Out],
) -> Vec<u8> {
    let body = body.iter().fold(Out::default(), |out, op| out.bytes(&op.0));
    // Its name, type, kind, place, length.
    let function = Out::default()
        .number(1)
        .numbers(&[0, 0])
        .bytes(&[2])
        .number(debug.is_some().into())
        .number(body.0.len() as u64)
        .bytes(&body.0);
    let constants: Vec<Out> = constants
        .iter()
        .map(|raw| Out::default().number(raw.0.len() as u64).bytes(&raw.0))
        .collect();
    let mut out = Out::default().bytes(&MAGIC).bytes(&[13, minor, 0, 0]);
    out = section(out, 2, 8, function);
    out = section(out, 4, 8, table(&constants, 8));
    if let Some(debug) = debug {
        out = section(out, 3, 8, debug);
    }
    out = section(out, 5, 4, table(types, 4));
    let strings: Vec<Out> = strings
        .iter()
        .map(|text| Out::default().bytes(text.as_bytes()))
        .collect();
    out = section(out, 1, 4, table(&strings, 4));
    out.bytes(&[0]).0
}

fn tile(element: u64, shape: &[i64]) -> Out {
    Out::default().numbers(&[13, element]).list(shape, 8)
}

/// Memory that begins at an address of its own.
struct World {
    memory: Vec<u8>,
    parameters: Vec<u8>,
}

const BASE: u64 = 0x1000;

impl World {
    fn at(&self, address: u64, bytes: usize) -> Result<std::ops::Range<usize>, String> {
        let start = address.checked_sub(BASE).ok_or("below")? as usize;
        let end = start.checked_add(bytes).filter(|&end| end <= self.memory.len());
        end.map(|end| start..end)
            .ok_or_else(|| format!("{bytes} bytes at {address:#x}"))
    }
}

impl Host for World {
    type Fault = String;
    const WATCHED: bool = true;
    fn block(&self) -> [u32; 3] {
        [2, 1, 0]
    }
    fn grid(&self) -> [u32; 3] {
        [4, 2, 1]
    }
    fn tensor_cores(&self) -> Architecture {
        Architecture::Hopper
    }
    fn parameter(&self, offset: u32, bytes: u32) -> u64 {
        let raw = self.parameters.get(offset as usize..).unwrap_or_default();
        raw.iter()
            .take(bytes as usize)
            .rev()
            .fold(0, |bits, byte| bits << 8 | u64::from(*byte))
    }
    fn variable(&mut self, _: usize) -> Result<u64, String> {
        Err("there are no variables".into())
    }
    fn read(&mut self, address: u64, _: u32, into: &mut [u8]) -> Result<(), String> {
        into.copy_from_slice(&self.memory[self.at(address, into.len())?]);
        Ok(())
    }
    fn write(&mut self, address: u64, _: u32, from: &[u8]) -> Result<(), String> {
        let range = self.at(address, from.len())?;
        self.memory[range].copy_from_slice(from);
        Ok(())
    }
    fn load(&mut self, address: u64, bytes: u32, _: Strength) -> Result<u64, String> {
        let mut raw = [0; 8];
        self.read(address, bytes, &mut raw[..bytes as usize])?;
        Ok(u64::from_le_bytes(raw))
    }
    fn store(&mut self, address: u64, bytes: u32, value: u64, _: Strength) -> Result<(), String> {
        self.write(address, bytes, &value.to_le_bytes()[..bytes as usize])
    }
    fn update(
        &mut self,
        address: u64,
        bytes: u32,
        strength: Strength,
        _: bool,
        new: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> Result<u64, String> {
        let old = self.load(address, bytes, strength)?;
        if let Some(new) = new(old) {
            self.store(address, bytes, new, strength)?;
        }
        Ok(old)
    }
    fn print(&mut self, _: &[u8]) {}
    fn assertion(&mut self, message: &str, index: &[usize], others: usize) -> String {
        format!("{message} at {index:?} and {others} others")
    }
    fn wrong(&mut self, why: String) -> String {
        why
    }
}

/// Runs entry 0 to its end, or as long as anybody may wait for it.
fn run(bytes: &[u8], world: &mut World) -> Result<bool, String> {
    let module = Arc::new(read(bytes).map_err(|error| error.to_string())?);
    let mut run = Run::new(module, 0, world).ok_or("no entry")?;
    let (mut turns, mut site) = (0, 0);
    while turns < 64 {
        match run.step(world)? {
            Stepped::Done => return Ok(true),
            Stepped::More => turns += 1,
            Stepped::Elsewhere => assert_ne!(std::mem::replace(&mut site, run.site()), run.site()),
        }
    }
    Ok(false)
}

/// `f(ptr<i32> out, i32 n)`: `out[i] = i·n + the sum of 0 to 3` for the 8 elements of a tile, by a `for`, an `if` and a view.
fn sample(minor: u8) -> Vec<u8> {
    let types = [
        // 0: the function; 1: i32; 2: ptr<i32>; 3: tile<ptr<i32>>; 4: tile<i32>; 5: tile<8xi32>; 6: a tensor of 8; 7: its view;
        // 8: a token; 9: i1; 10: tile<i1>; 11: tile<1xi32>.
        Out::default().numbers(&[16, 2, 3, 4, 0]),
        Out::default().number(3),
        if minor >= 4 {
            Out::default().numbers(&[12, 0, 1])
        } else {
            Out::default().numbers(&[12, 1])
        },
        tile(2, &[]),
        tile(1, &[]),
        tile(1, &[8]),
        if minor >= 4 {
            Out::default().numbers(&[14, 0, 1])
        } else {
            Out::default().numbers(&[14, 1])
        }
        .list(&[8], 8)
        .list(&[1], 8),
        match minor {
            3.. => Out::default().numbers(&[15, 0]),
            _ => Out::default().number(15),
        }
        .list(&[8], 4)
        .number(6)
        .list(&[0], 4)
        .bytes(if minor >= 3 { &[] } else { &[0] }),
        Out::default().number(17),
        Out::default().number(0),
        tile(9, &[]),
        tile(1, &[1]),
    ];
    let constants = [0_i32, 4, 1].map(|value| Out::default().bytes(&value.to_le_bytes()));
    let constant = |ty: u64, number: u64| Out::default().numbers(&[0x10, ty, number]);
    let flags: &[u64] = if minor >= 2 { &[0] } else { &[] };
    let body = [
        // Values 0 and 1 are the parameters. 2, 3, 4: the bounds.
        constant(4, 0),
        constant(4, 1),
        constant(4, 2),
        // 5: for %i (5) in 0..4 step 1, carrying %sum (6): if %i >= 0 { yield %sum + %i } else { yield %sum }
        Out::default()
            .numbers(&[0x29, 1, 4])
            .numbers(flags)
            .numbers(&[4, 2, 3, 4, 2, 1, 1, 2, 4, 4, 3])
            // 7: cmpi greater_than_or_equal, signed
            .numbers(&[0x0f, 10, 5, 1, 5, 2])
            // 8: if, whose blocks yield 6 + 5 (8), or 6.
            .numbers(&[0x32, 1, 4, 7, 2, 1, 0, 2, 0x03, 4, 0, 6, 5, 0x6d, 0, 1, 8])
            .numbers(&[1, 0, 1, 0x6d, 0, 1, 6])
            .numbers(&[0x11, 0, 1, 8]),
        // 6: iota; 7, 8: n as a tile of one, of eight; 9: the product.
        Out::default().numbers(&[0x3a, 5]),
        Out::default().numbers(&[0x5b, 11, 1]),
        Out::default().numbers(&[0x0b, 5, 7]),
        Out::default().numbers(&[0x4e, 5, 0, 6, 8]),
        // 10, 11: the sum as tiles; 12: all of it.
        Out::default().numbers(&[0x5b, 11, 5]),
        Out::default().numbers(&[0x0b, 5, 10]),
        Out::default().numbers(&[0x03, 5, 0, 9, 11]),
        // 13: the tensor; 14: its view; 15: the store, weak.
        Out::default().numbers(&[0x43, 1, 6, 0, 0, 0]),
        Out::default().numbers(&[0x42, 7, 13]),
        Out::default()
            .numbers(&[0x66, 1, 8, 0, 0])
            .numbers(if minor >= 4 { &[0] } else { &[] })
            .numbers(&[12, 14, 1, 2]),
        Out::default().numbers(&[0x5c, 0, 0]),
    ];
    module(minor, &types, &constants, &body)
}

fn world(n: i32) -> World {
    let mut parameters = BASE.to_le_bytes().to_vec();
    parameters.extend(n.to_le_bytes());
    World {
        memory: vec![0xee; 40],
        parameters,
    }
}

#[test]
fn an_entry_runs_in_every_version() {
    for minor in 1..=4 {
        let mut world = world(-3);
        assert_eq!(run(&sample(minor), &mut world), Ok(true), "13.{minor}");
        let numbers: Vec<i32> = world.memory[..32]
            .as_chunks()
            .0
            .iter()
            .map(|raw| i32::from_le_bytes(*raw))
            .collect();
        assert_eq!(numbers, [6, 3, 0, -3, -6, -9, -12, -15], "13.{minor}");
        assert_eq!(world.memory[32..], [0xee; 8]);
    }
}

#[test]
fn a_stray_store_is_the_worlds_to_refuse() {
    let mut world = world(1);
    world.memory.truncate(31);
    assert_eq!(run(&sample(1), &mut world).unwrap_err(), "32 bytes at 0x1000");
}

#[test]
fn damaged_bytecode_does_no_harm() {
    let whole = sample(3);
    for end in 0..whole.len() {
        assert!(read(&whole[..end]).is_err(), "{end} bytes");
    }
    // Each byte as each of a few others: what is read is run, for a while.
    let mut ran = 0;
    for at in 12..whole.len() {
        for value in [0, 1, 2, 3, 5, 8, 13, 0x29, 0x3d, 0x49, 0x58, 0x7f, 0x80, 0xff] {
            let mut damaged = whole.clone();
            damaged[at] = value;
            ran += u32::from(run(&damaged, &mut world(1)).is_ok());
        }
    }
    assert!(ran > 100, "{ran}");
}

#[test]
fn there_is_a_limit_to_what_tiles_take() {
    let types = [
        Out::default().numbers(&[16, 0, 0]),
        Out::default().number(4),
        tile(1, &[1 << 24]),
        tile(1, &[]),
        tile(1, &[1]),
    ];
    let zero = Out::default().bytes(&[0; 8]);
    let end = Out::default().numbers(&[0x5c, 0, 0]);
    // Of 128 MiB each, all of one element.
    let constants = vec![Out::default().numbers(&[0x10, 2, 0]); 3];
    let error = read(&module(
        1,
        &types,
        std::slice::from_ref(&zero),
        &[&constants[..], std::slice::from_ref(&end)].concat(),
    ))
    .unwrap_err();
    assert!(error.to_string().contains("more than 256 MiB of constants"), "{error}");
    let mut body = vec![
        Out::default().numbers(&[0x10, 3, 0]),
        Out::default().numbers(&[0x5b, 4, 0]),
    ];
    body.extend(vec![Out::default().numbers(&[0x0b, 2, 1]); 8]);
    let whole = [&body[..], std::slice::from_ref(&end)].concat();
    let error = run(&module(1, &types, std::slice::from_ref(&zero), &whole), &mut world(0)).unwrap_err();
    assert!(
        error.contains("`broadcast` of the tile kernel `f`: its values would take more than 1024 MiB"),
        "{error}"
    );
    body.pop();
    let whole = [&body[..], &[end]].concat();
    assert_eq!(run(&module(1, &types, &[zero], &whole), &mut world(0)), Ok(true));
}

#[test]
fn words_that_nobody_knows_are_errors() {
    let types = pointer_and_number();
    let end = Out::default().numbers(&[0x5c, 0, 0]);
    let runs = |op: &[u64]| {
        let body = [Out::default().numbers(op), end.clone()];
        run(&module(1, &types, &[], &body), &mut world(3))
    };
    let says = |op: &[u64], what: &str| {
        let error = runs(op).unwrap_err();
        assert!(error.ends_with(what), "{error}");
    };
    // Orderings, scopes, modes of atomics, rounding.
    says(&[0x3d, 4, 5, 0, 5, 0], "memory ordering of kind 5");
    says(&[0x08, 4, 5, 0, 1, 3, 3, 0, 1], "a scope of kind Number(3)");
    says(&[0x08, 4, 5, 0, 1, 2, 10, 0, 1], "an atomic of kind 10");
    says(&[0x15, 4, 1, 4, 1, 1], "rounding of kind 4");
    says(&[0x0f, 4, 6, 1, 1, 1], "a comparison of kind 6");
    assert_eq!(runs(&[0x08, 4, 5, 0, 1, 2, 9, 0, 1]), Ok(true));
    assert_eq!(runs(&[0x15, 4, 1, 3, 1, 1]), Ok(true));
}

#[test]
fn errors_say_what_and_where() {
    let says = |bytes: &[u8], what: &str| {
        let error = read(bytes).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    };
    let mut newer = sample(1);
    newer[9] = 9;
    says(&newer, "version 13.9, of 13.1 to 13.5, is not supported");
    let types = [Out::default().numbers(&[16, 0, 0]), Out::default().number(17)];
    let end = Out::default().numbers(&[0x5c, 0, 0]);
    says(
        &module(1, &types, &[], &[Out::default().number(0x55aa)]),
        "operation 0x55aa is not supported",
    );
    says(
        &module(1, &types, &[], &[Out::default().numbers(&[0x6e, 1, 0, 0])]),
        "`atan2` in bytecode 13.1",
    );
    says(
        &module(1, &types, &[], &[Out::default().numbers(&[0x3c, 1, 1, 1, 7])]),
        "value 7, of 0",
    );
    says(
        &module(1, &types, &[], &[Out::default().numbers(&[0x44, 1])]),
        "does not end with what ends blocks",
    );
    says(
        &module(1, &types, &[], &[Out::default().numbers(&[0x44, 9]), end.clone()]),
        "type 9, of 2",
    );
    assert!(read(&module(1, &types, &[], &[Out::default().numbers(&[0x44, 1]), end])).is_ok());
    // A type that consists of itself.
    let types = [Out::default().numbers(&[16, 0, 0]), tile(1, &[4])];
    says(&module(1, &types, &[], &[]), "consist of each other");
    let types = [
        Out::default().numbers(&[16, 0, 0]),
        Out::default().number(3),
        tile(1, &[3]),
    ];
    says(&module(1, &types, &[], &[]), "a tile of [3] elements");
}

/// The section of debug information of one function: the number of each operation, and the entries that they name.
fn debug(numbers: &[u64], entries: &[&[u64]]) -> Out {
    let entries: Vec<Out> = entries.iter().map(|entry| Out::default().numbers(entry)).collect();
    let mut out = Out::default().number(1).align(4).bytes(&[0; 4]);
    out = out.number(numbers.len() as u64).align(8);
    for number in numbers {
        out = out.bytes(&number.to_le_bytes());
    }
    table_behind(out, &entries, 4)
}

/// 0: a function of a pointer and a number; 1: the pointer, 2: a tile of it; 3: the number, 4: a tile of it; 5: a token.
fn pointer_and_number() -> [Out; 6] {
    [
        Out::default().numbers(&[16, 2, 2, 4, 0]),
        Out::default().numbers(&[12, 3]),
        tile(1, &[]),
        Out::default().number(3),
        tile(3, &[]),
        Out::default().number(17),
    ]
}

/// Loads and stores of a pointer's element, with numbers of debug information.
fn with_lines(numbers: &[u64], entries: &[&[u64]]) -> Vec<u8> {
    let types = pointer_and_number();
    let store = Out::default().numbers(&[0x65, 5, 0, 0, 0, 1]);
    let body = [
        Out::default().numbers(&[0x3d, 4, 5, 0, 0, 0]),
        store.clone(),
        store.clone(),
        store,
        Out::default().numbers(&[0x5c, 0, 0]),
    ];
    let strings = ["f", "kernel.py", "/src", "helper", ""];
    module_from((1, &strings, Some(debug(numbers, entries))), &types, &[], &body)
}

const LINES: [&[u64]; 8] = [
    // 1: `kernel.py` in `/src`; 2: a unit; 3: `f` in line 5; 4: line 7, column 9 in `f`, in no other file.
    &[2, 1, 2],
    &[1, 1],
    &[5, 1, 5, 0, 0, 2, 5],
    &[4, 3, 4, 7, 9],
    // 5: `helper`; 6: a block of it; 7: line 3, column 4 there; 8: that, called in line 7.
    &[5, 1, 1, 3, 3, 2, 1],
    &[3, 5, 1, 2, 0],
    &[4, 6, 1, 3, 4],
    &[6, 7, 4],
];

#[test]
fn what_reaches_out_has_lines() {
    let bytes = with_lines(&[4, 4, 8, 8, 0, 0], &LINES);
    let module = read(&bytes).unwrap();
    let outer = Line {
        file: "/src/kernel.py".into(),
        line: 7,
        column: 9,
        function: "f".into(),
    };
    let inner = Line {
        file: "kernel.py".into(),
        line: 3,
        column: 4,
        function: "helper".into(),
    };
    let sites: Vec<_> = module.entries[0]
        .sites
        .iter()
        .map(|site| (site.operation, &*site.lines))
        .collect();
    let want = [
        (None, &[outer.clone()][..]),
        (Some(Code::LoadPtr), std::slice::from_ref(&outer)),
        (Some(Code::StorePtr), &[inner, outer.clone()]),
        (Some(Code::StorePtr), &[]),
    ];
    assert_eq!(sites, want);
    let text = ptx(&module).unwrap();
    for part in [
        "begin:\n\t.loc 1 7 9\n",
        "tile_load_ptr_tko_1:\n\t.loc 1 7 9\n\t{",
        "tile_store_ptr_tko_2:\n\t.loc 1 7 9\n\t.loc 2 3 4, function_name $L__info_string0, inlined_at 1 7 9\n\t{",
        "tile_store_ptr_tko_3:\n\t{",
        ".file 1 \"/src/kernel.py\"\n.file 2 \"kernel.py\"\n",
        "$L__info_string0:\n.b8 104,101,108,112,101,114,0\n",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert_eq!(operation_at("tile_store_ptr_tko_2"), Some("store_ptr_tko"));
    assert_eq!(operation_at("begin"), None);
    is_ptx(text);
    assert_eq!(run(&bytes, &mut world(3)), Ok(true));
}

#[test]
fn debug_information_that_makes_no_sense_is_an_error() {
    let says = |bytes: &[u8], what: &str| {
        let error = read(bytes).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    };
    says(
        &with_lines(&[4, 4, 8, 8, 0], &LINES),
        "no debug information for operation 5 of function 0",
    );
    says(&with_lines(&[4, 4, 9, 8, 0, 0], &LINES), "debug entry 9, of 8");
    // A call that is its own caller, a scope that is its own.
    let mut lines = LINES;
    lines[7] = &[6, 7, 8];
    says(
        &with_lines(&[4, 4, 8, 8, 0, 0], &lines),
        "too many calls within each other",
    );
    lines[7] = LINES[7];
    lines[5] = &[3, 6, 1, 2, 0];
    let module = read(&with_lines(&[4, 4, 8, 8, 0, 0], &lines)).unwrap();
    assert_eq!(&*module.entries[0].sites[2].lines[0].function, "");
    // Damage anywhere in it neither panics nor hangs.
    let whole = with_lines(&[4, 4, 8, 8, 0, 0], &LINES);
    for at in 0..whole.len() {
        for value in [0, 1, 7, 0x7f, 0x80, 0xff] {
            let mut damaged = whole.clone();
            damaged[at] = value;
            let _ = read(&damaged).map(|module| ptx(&module));
        }
    }
}

/// What the text of a module has to be.
fn is_ptx(text: String) {
    let found = crate::ptx::parse(crate::ptx::Source::new("f", text)).map(|tree| crate::program::check::all(&tree));
    assert!(!found.unwrap().has_errors());
}

#[test]
fn the_text_that_calls_it_is_ptx() {
    let module = read(&sample(1)).unwrap();
    let text = ptx(&module).unwrap();
    is_ptx(text);
}
/// What an H100 computed, of the lines that begin with a word: their other fields, in which bytes are in hexadecimal.
pub fn of_hardware(word: &str) -> Vec<Vec<String>> {
    let packed = include_bytes!("../../tests/hardware/goldens/H100/tiles.tsv.zst");
    let text = String::from_utf8(zstd::decode_all(&packed[..]).expect("packed")).expect("text");
    let fields = |line: &str| line.split('\t').map(str::to_owned).collect::<Vec<String>>();
    let mut lines: Vec<Vec<String>> = text.lines().map(fields).filter(|line| line[0] == word).collect();
    lines.iter_mut().for_each(|line| drop(line.remove(0)));
    lines
}

/// Numbers of so many bytes each.
pub fn numbers(hex: &str, bytes: u32) -> impl Iterator<Item = u64> {
    let each = 2 * bytes as usize;
    let byte = |hex: &str, at: usize| u64::from_str_radix(&hex[2 * at..2 * at + 2], 16).expect("hexadecimal");
    let number = |at: usize| {
        (0..bytes as usize)
            .rev()
            .fold(0, |bits, i| bits << 8 | byte(&hex[at * each..], i))
    };
    (0..hex.len() / each).map(number).collect::<Vec<u64>>().into_iter()
}
