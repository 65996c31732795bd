//! Forms of textures and surfaces: an image is bound to the references that the examples name, each access runs in a
//! thread of its own with operands of its own, and what it leaves in registers and in the surface is compared.

use std::ffi::CString;
use std::ptr::null_mut;

use crate::c::*;
use crate::catalogue::Row;
use crate::device;
use crate::execute::Random;
use crate::model::image::{self as model, Access, Geometry};

/// Accesses of one form.
const ACCESSES: usize = 12;
const RECORD: usize = 16 * 32;
const BATCH: usize = 120;
const LEVELS: i64 = 3;

const UINT32: u32 = 0x03;
const SINT32: u32 = 0x0a;
const FLOAT: u32 = 0x20;
const LAYERED: u32 = 1;
const SURFACE: u32 = 2;
const CUBEMAP: u32 = 4;

/// An example taken apart.
struct Case<'a> {
    row: &'a Row,
    words: Vec<&'static str>,
    /// Registers, a predicate last if there is one; `_` never occurs in the list.
    destinations: Vec<&'static str>,
    /// Registers that hold handles, and the variables that they are set to.
    handles: Vec<(&'static str, &'static str)>,
    /// Coordinates in brackets, then every other operand: registers of each.
    sources: Vec<Vec<&'static str>>,
}

/// Splits at commas outside of brackets and braces.
fn split(text: &'static str) -> Vec<&'static str> {
    let mut depth = 0;
    text.split(move |c| {
        depth += i32::from(matches!(c, '[' | '{')) - i32::from(matches!(c, ']' | '}'));
        c == ',' && depth == 0
    })
    .map(str::trim)
    .collect()
}

fn registers(text: &'static str) -> Vec<&'static str> {
    let inner = text.trim_start_matches('{').trim_end_matches('}');
    inner
        .split(',')
        .map(str::trim)
        .filter(|name| name.starts_with('%'))
        .collect()
}

impl<'a> Case<'a> {
    fn of(row: &'a Row) -> Option<Case<'a>> {
        let statement = row.example.trim().strip_suffix(';')?;
        let (opcode, operands) = statement.split_once(' ')?;
        let words: Vec<&str> = opcode.split('.').collect();
        let operands = split(operands);
        let stores = operands[0].starts_with('[');
        let mut case = Case {
            row,
            words,
            destinations: Vec::new(),
            handles: Vec::new(),
            sources: Vec::new(),
        };
        let mut rest = &operands[..];
        if !stores {
            let (values, predicate) = operands[0].split_once('|').unwrap_or((operands[0], ""));
            case.destinations = registers(values);
            case.destinations.extend(registers(predicate));
            rest = &operands[1..];
        }
        let surface = matches!(case.words[0], "suld" | "sust" | "sured" | "suq");
        for operand in rest {
            match operand.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')) {
                Some(inner) => {
                    for part in split(inner) {
                        match part {
                            "%rd1" if surface => case.handles.push((part, "srf0")),
                            "%rd1" => case.handles.push((part, "tex0")),
                            "%rd2" => case.handles.push((part, "smp0")),
                            part if part.starts_with(['%', '{']) => case.sources.push(registers(part)),
                            "tex0" | "srf0" | "smp0" => {}
                            _ => return None,
                        }
                    }
                }
                None if case.words[0] == "istypep" && operand.starts_with('%') => case.handles.push((operand, "tex0")),
                None => case.sources.push(registers(operand)),
            }
        }
        Some(case)
    }

    fn has(&self, word: &str) -> bool {
        self.words.contains(&word)
    }

    fn kernel(&self, name: &str) -> String {
        let mut text = format!(".visible .entry {name}(.param .u64 from, .param .u64 to)\n{{ {REGISTERS}\n");
        text += "ld.param.u64 %from, [from]; ld.param.u64 %to, [to];\n";
        for (register, variable) in &self.handles {
            text += &format!("mov.u64 {register}, {variable};\n");
        }
        for (at, register) in self.sources.iter().flatten().enumerate() {
            text += &format!("ld.global.{} {register}, [%from+{}];\n", class(register), 16 * at);
        }
        text += self.row.example;
        for (at, register) in self.destinations.iter().enumerate() {
            match class(register) {
                "pred" => {
                    text += &format!(
                        "\nselp.u32 %sel, 1, 0, {register}; st.global.u32 [%to+{}], %sel;",
                        16 * at
                    )
                }
                class => text += &format!("\nst.global.{class} [%to+{}], {register};", 16 * at),
            }
        }
        text + "\nret; }\n"
    }
}

const REGISTERS: &str = ".reg .b8 %rb<200>; .reg .b16 %rs<200>; .reg .b32 %r<200>; .reg .b64 %rd<200>; \
     .reg .f32 %f<200>; .reg .pred %p<16>; .reg .b64 %from, %to; .reg .b32 %sel;";

fn class(register: &str) -> &'static str {
    match register
        .trim_start_matches('%')
        .trim_end_matches(|c: char| c.is_ascii_digit())
    {
        "rb" => "b8",
        "rs" => "b16",
        "rd" => "b64",
        "f" => "f32",
        "p" => "pred",
        _ => "b32",
    }
}

fn bytes_of(register: &str) -> usize {
    match class(register) {
        "b8" => 1,
        "b16" => 2,
        "b64" => 8,
        _ => 4,
    }
}

/// What went wrong, a line each, and how many forms there were.
pub fn run(rows: &[&Row]) -> (usize, Vec<String>) {
    if rows.is_empty() {
        return (0, Vec::new());
    }
    let cases: Vec<Option<Case>> = rows.iter().map(|row| Case::of(row)).collect();
    let mut failures: Vec<String> = Vec::new();
    for (case, row) in cases.iter().zip(rows) {
        if case.is_none() {
            failures.push(format!("{}: not understood", row.example));
        }
    }
    let cases: Vec<Case> = cases.into_iter().flatten().collect();
    let (mut input, mut output) = (0, 0);
    ok(cuMemAlloc(&mut input, RECORD));
    ok(cuMemAlloc(&mut output, RECORD));
    for independent in [false, true] {
        let cases: Vec<&Case> = cases
            .iter()
            .filter(|case| case.row.independent == independent)
            .collect();
        for batch in cases.chunks(BATCH) {
            failures.extend(batch_of(batch, independent, input, output));
        }
    }
    ok(cuMemFree(input));
    ok(cuMemFree(output));
    (cases.len(), failures)
}

fn batch_of(batch: &[&Case], independent: bool, input: CUdeviceptr, output: CUdeviceptr) -> Vec<String> {
    let (version, target) = device::header(batch[0].row, ("9.5", "sm_90"));
    let mut text = format!(
        ".version {version}\n.target {target}{}\n.address_size 64\n.global .texref tex0;\n.global .surfref srf0;\n",
        if independent { ", texmode_independent" } else { "" }
    );
    if independent {
        text += ".global .samplerref smp0 = { addr_mode_0 = wrap, addr_mode_1 = clamp_to_edge, \
                 addr_mode_2 = clamp_to_border, filter_mode = linear };\n";
    }
    for (i, case) in batch.iter().enumerate() {
        text += &case.kernel(&format!("k{i}"));
    }
    let text = CString::new(text).expect("text");
    let mut module = null_mut();
    let loaded = cuModuleLoadData(&mut module, text.as_ptr().cast());
    if loaded != CUDA_SUCCESS {
        if device::device().is_some() && batch.len() > 1 {
            let (first, second) = batch.split_at(batch.len() / 2);
            return [first, second]
                .into_iter()
                .flat_map(|half| batch_of(half, independent, input, output))
                .collect();
        }
        return vec![format!("module of {}: error {loaded}", batch[0].row.form)];
    }
    let mut failures = Vec::new();
    for (i, case) in batch.iter().enumerate() {
        let mut function = null_mut();
        let name = CString::new(format!("k{i}")).expect("a name");
        let found = cuModuleGetFunction(&mut function, module, name.as_ptr());
        if found != CUDA_SUCCESS {
            failures.push(format!("{}: its kernel is not there: {found}", case.row.example));
            continue;
        }
        let bench = Bench {
            function,
            module,
            input,
            output,
        };
        let outcome = match case.words[0] {
            "suld" | "sust" | "sured" => surface(case, &bench),
            "txq" | "suq" | "istypep" => query(case, &bench),
            _ => texture(case, &bench),
        };
        if let Err(why) = outcome {
            failures.push(format!("{}: {why}", case.row.example));
        }
    }
    ok(cuModuleUnload(module));
    failures
}

struct Bench {
    function: CUfunction,
    module: CUmodule,
    input: CUdeviceptr,
    output: CUdeviceptr,
}

impl Bench {
    /// Runs one access; what it left in registers, 16 bytes each.
    fn run(&self, inputs: &[u64]) -> Result<Vec<u64>, String> {
        let mut record = [0u8; RECORD];
        for (at, value) in inputs.iter().enumerate() {
            record[16 * at..][..8].copy_from_slice(&value.to_le_bytes());
        }
        ok(cuMemcpyHtoD(self.input, record.as_ptr().cast(), RECORD));
        ok(cuMemsetD8(self.output, 0, RECORD));
        let (mut from, mut to) = (self.input, self.output);
        let mut parameters = [(&raw mut from).cast(), (&raw mut to).cast()];
        let parameters = parameters.as_mut_ptr();
        ok(cuLaunchKernel(
            self.function,
            1,
            1,
            1,
            1,
            1,
            1,
            0,
            null_mut(),
            parameters,
            null_mut(),
        ));
        match cuCtxSynchronize() {
            CUDA_SUCCESS => {}
            error => return Err(format!("error {error}")),
        }
        ok(cuMemcpyDtoH(record.as_mut_ptr().cast(), self.output, RECORD));
        let word = |at: usize| u64::from_le_bytes(record[16 * at..][..8].try_into().expect("eight"));
        Ok((0..RECORD / 16).map(word).collect())
    }
}

/// An array of the geometry's shape with these bytes.
fn array(
    geometry: Geometry,
    format: u32,
    channels: u32,
    flags: u32,
    levels: i64,
) -> (CUmipmappedArray, ArrayDescriptor) {
    let [width, height, depth] = geometry.size().map(|size| size as usize);
    let descriptor = ArrayDescriptor {
        width,
        height: if geometry.dimensions > 1 { height } else { 0 },
        depth: match (geometry.array || geometry.cube, geometry.dimensions) {
            (true, _) => geometry.layers() as usize,
            (false, 3) => depth,
            _ => 0,
        },
        format,
        channels,
        flags: flags | if geometry.array { LAYERED } else { 0 } | if geometry.cube { CUBEMAP } else { 0 },
    };
    let mut mipmap = null_mut();
    ok(cuMipmappedArrayCreate(&mut mipmap, &descriptor, levels as u32));
    (mipmap, descriptor)
}

/// Moves all bytes of a level.
fn transfer(array: CUarray, row: usize, rows: usize, slices: usize, bytes: &mut [u8], into: bool) {
    let mut copy = Copy3D::between(array, bytes.as_mut_ptr().cast(), row, rows, into);
    (copy.width, copy.height, copy.depth) = (row, rows, slices);
    ok(cuMemcpy3D(&copy));
}

/// Texels of all levels: whole numbers, as floats or as integers.
fn filled(geometry: Geometry, format: u32) -> CUmipmappedArray {
    let (mipmap, _) = array(geometry, format, 4, 0, LEVELS);
    for level in 0..LEVELS {
        let [width, height, depth] = geometry.size_of_level(level);
        let layered = geometry.array || geometry.cube;
        let slices = if layered { geometry.layers() } else { depth };
        let mut bytes = Vec::new();
        for slice in 0..slices {
            for y in 0..height {
                for x in 0..width {
                    let (layer, z) = if layered { (slice, 0) } else { (0, slice) };
                    for channel in 0..4 {
                        let value = model::texel(level, layer, [x, y, z], channel);
                        let bits = if format == FLOAT {
                            (value as f32).to_bits()
                        } else {
                            value as u32
                        };
                        bytes.extend(bits.to_le_bytes());
                    }
                }
            }
        }
        let mut array = null_mut();
        ok(cuMipmappedArrayGetLevel(&mut array, mipmap, level as u32));
        transfer(
            array,
            width as usize * 16,
            height as usize,
            slices as usize,
            &mut bytes,
            true,
        );
    }
    mipmap
}

fn bound(module: CUmodule, mipmap: CUmipmappedArray) {
    let mut reference = null_mut();
    ok(cuModuleGetTexRef(&mut reference, module, c"tex0".as_ptr()));
    ok(cuTexRefSetMipmappedArray(reference, mipmap, 1));
    // Fractions of the size; integers stay integers.
    ok(cuTexRefSetFlags(reference, 3));
    for (axis, mode) in [0, 1, 3].into_iter().enumerate() {
        ok(cuTexRefSetAddressMode(reference, axis as i32, mode));
    }
    ok(cuTexRefSetFilterMode(reference, 1));
    ok(cuTexRefSetMipmapFilterMode(reference, 1));
    ok(cuTexRefSetMipmapLevelClamp(reference, 0.0, 100.0));
}

fn bits(value: f64) -> u64 {
    (value as f32).to_bits().into()
}

fn texture(case: &Case, bench: &Bench) -> Result<(), String> {
    let geometry = model::geometry(&case.words);
    let types: Vec<&str> = case.words.iter().rev().take(2).copied().collect();
    let (ctype, dtype) = (types[0], types[1]);
    let float = ctype == "f32";
    let gather = ["r", "g", "b", "a"]
        .iter()
        .position(|word| case.has(word))
        .filter(|_| case.words[0] == "tld4");
    let (level, gradient) = (case.has("level"), case.has("grad"));
    let skip = 1 + usize::from(level) + 2 * usize::from(gradient);
    // Of what follows vectors are offsets, floats references.
    let rest = case.sources.get(skip..).unwrap_or_default();
    let compares = rest
        .iter()
        .any(|registers| registers.len() == 1 && class(registers[0]) == "f32");
    let floats = compares || !matches!(dtype, "s32" | "u32");
    let format = match (floats, dtype) {
        (true, _) => FLOAT,
        (_, "s32") => SINT32,
        _ => UINT32,
    };
    let mipmap = filled(geometry, format);
    bound(bench.module, mipmap);
    let mut random = Random::of(case.row.example);
    let outcome = (0..ACCESSES).try_for_each(|_| {
        let mut inputs = Vec::new();
        let mut access = Access {
            float,
            // Samplers that stand apart say nothing of levels.
            blend: !case.row.independent && floats,
            gather: gather.map(|component| component as i64),
            filter: float && floats,
            ..Access::default()
        };
        let mut pick = |most: i64| (random.next() % most as u64) as i64;
        let size = geometry.size();
        let before = usize::from(geometry.array) + usize::from(geometry.sample);
        for at in 0..case.sources[0].len() {
            if at < before {
                let number = if geometry.array && at == 0 { pick(5) } else { 0 };
                access.layer = access.layer.max(number);
                inputs.push(number as u64);
                continue;
            }
            let axis = at - before;
            if axis >= geometry.dimensions {
                // What pads the vector.
                inputs.push(u64::from(pick(1 << 30) as u32));
                continue;
            }
            let value = match (geometry.cube, float) {
                // Sixty-fourths of the major axis, which is z for gradients.
                (true, _) if axis == 2 => [1.0, -2.0, 4.0][pick(if gradient { 1 } else { 3 }) as usize],
                (true, _) => (pick(121) - 60) as f64 / 64.0 * if gradient || pick(3) > 0 { 1.0 } else { 16.0 },
                (false, true) => (pick(40 * size[axis]) - 16 * size[axis]) as f64 / 8.0 / size[axis] as f64,
                (false, false) => pick((size[axis] / 4).max(1)) as f64,
            };
            access.at[axis] = value;
            inputs.push(if float { bits(value) } else { value as u64 });
        }
        if geometry.cube {
            // Divisions by the major axis must be exact.
            let major = access.at.iter().fold(0.0, |most: f64, v| most.max(v.abs()));
            let exact = 2f64.powi(major.log2().ceil() as i32);
            if major != exact {
                let axis = (0..3).find(|&axis| access.at[axis].abs() == major).expect("one");
                access.at[axis] = exact.copysign(access.at[axis]);
                inputs[before + axis] = bits(access.at[axis]);
            }
        }
        if level {
            access.level = match (float, access.blend) {
                (true, true) => pick(11) as f64 / 4.0,
                (true, false) => [0.0, 0.25, 0.75, 1.25, 2.0][pick(5) as usize],
                _ => pick(3) as f64,
            };
            inputs.push(if float { bits(access.level) } else { access.level as u64 });
        }
        if gradient {
            let power = pick(3);
            access.level = power as f64;
            // One step in x is 2^power texels, one in y a quarter as long: their diagonal does not count.
            for (axis, length) in [(0, 2f64.powi(power as i32)), (1, 2f64.powi(power as i32 - 2))] {
                for at in 0..case.sources[1 + axis].len() {
                    let unit = match (geometry.cube, float) {
                        (true, _) => 2.0 / size[0] as f64,
                        (_, true) => 1.0 / size[axis.min(geometry.dimensions - 1)] as f64,
                        _ => 1.0,
                    };
                    let along = at == axis.min(geometry.dimensions - 1);
                    inputs.push(if along { bits(length * unit) } else { 0 });
                }
            }
        }
        for registers in rest {
            if registers.len() == 1 && class(registers[0]) == "f32" {
                let reference = pick(64) as f64 + 0.5;
                access.compare = Some(reference);
                inputs.push(bits(reference));
                continue;
            }
            for axis in 0..registers.len() {
                let value = if float {
                    pick(16) - 8
                } else {
                    pick(2).min(size[axis.min(2)] - 1)
                };
                if axis < geometry.dimensions {
                    access.offset[axis] = value;
                }
                inputs.push(u64::from(value as u32));
            }
        }
        let expected = model::fetch(geometry, &access);
        let words: Vec<u64> = match dtype {
            "f16" => expected
                .map(|value| half::f16::from_f64(value).to_bits().into())
                .to_vec(),
            "f16x2" => {
                let half = |value: f64| u64::from(half::f16::from_f64(value).to_bits());
                vec![
                    half(expected[0]) | half(expected[1]) << 16,
                    half(expected[2]) | half(expected[3]) << 16,
                ]
            }
            _ if floats => expected.map(bits).to_vec(),
            _ => expected.map(|value| value as u64).to_vec(),
        };
        let found = bench.run(&inputs)?;
        for (at, register) in case.destinations.iter().enumerate() {
            let want = words.get(at).copied().unwrap_or(1);
            if found[at] != want {
                return Err(format!(
                    "{register} is {:#x}, expected {want:#x} ({expected:?}), for {access:?}",
                    found[at]
                ));
            }
        }
        Ok(())
    });
    ok(cuMipmappedArrayDestroy(mipmap));
    outcome
}

/// What the images of [`query`] are.
fn query(case: &Case, bench: &Bench) -> Result<(), String> {
    let geometry = model::geometry(&["2d"]);
    let mipmap = filled(geometry, FLOAT);
    bound(bench.module, mipmap);
    let (surfaces, _) = array(geometry, UINT32, 2, SURFACE, 1);
    let mut level = null_mut();
    ok(cuMipmappedArrayGetLevel(&mut level, surfaces, 0));
    let mut reference = null_mut();
    ok(cuModuleGetSurfRef(&mut reference, bench.module, c"srf0".as_ptr()));
    ok(cuSurfRefSetArray(reference, level, 0));
    let surface = case.words[0] == "suq";
    let outcome = (0..LEVELS as u64).try_for_each(|lod| {
        let lod = match (case.has("level"), case.sources.iter().flatten().next()) {
            (false, _) => 0,
            (true, Some(_)) => lod,
            // The example names level 2 itself.
            (true, None) => 2,
        };
        let want = case.words.iter().find_map(|word| {
            Some(match *word {
                "width" => 8 >> lod,
                "height" => 4 >> lod,
                "depth" | "array_size" | "num_samples" | "normalized_coords" | "filter_mode" => 1,
                // CL_FLOAT and CL_RGBA; CL_UNSIGNED_INT32 and CL_RG.
                "channel_data_type" => [0x10de, 0x10dc][usize::from(surface)],
                "channel_order" => [0x10b5, 0x10b2][usize::from(surface)],
                "num_mipmap_levels" => LEVELS as u64,
                "memory_layout" | "force_unnormalized_coords" | "addr_mode_0" => 0,
                // clamp_to_edge and clamp_to_border, in the order of the manual's list.
                "addr_mode_1" => 3,
                "addr_mode_2" => 4,
                "texref" => 1,
                "samplerref" | "surfref" => 0,
                _ => return None,
            })
        });
        let want = want.ok_or("what is asked for?")?;
        let inputs: Vec<u64> = case.sources.iter().flatten().map(|_| lod).collect();
        match bench.run(&inputs)?[0] {
            found if found == want => Ok(()),
            found => Err(format!("{found:#x}, expected {want:#x}")),
        }
    });
    ok(cuMipmappedArrayDestroy(mipmap));
    ok(cuMipmappedArrayDestroy(surfaces));
    outcome
}

/// Formats that formatted stores convert to: number, channels, bytes of a channel, what their values are.
const FORMATS: [(u32, u32, usize, char); 6] = [
    (FLOAT, 4, 4, 'f'),
    (0x10, 4, 2, 'h'),
    (0x01, 4, 1, 'u'),
    (0x09, 2, 2, 's'),
    (UINT32, 2, 4, 'u'),
    (SINT32, 1, 4, 's'),
];

fn surface(case: &Case, bench: &Bench) -> Result<(), String> {
    let geometry = model::geometry(&case.words);
    let formatted = case.has("p");
    let load = case.words[0] == "suld";
    let reduces = case.words[0] == "sured";
    let data: &[&str] = if load { &case.destinations } else { &case.sources[1] };
    let element = match case
        .words
        .iter()
        .find_map(|word| word.strip_prefix(['b', 'u', 's']).filter(|n| n.parse::<u32>().is_ok()))
    {
        Some(number) => number.parse::<usize>().expect("a number") / 8,
        None => bytes_of(data[0]),
    };
    let mut random = Random::of(case.row.example);
    let (format, channels, size, kind) = match (formatted, reduces, element) {
        (true, false, _) => FORMATS[random.next() as usize % FORMATS.len()],
        (true, true, 4) => FORMATS[4 + random.next() as usize % 2],
        (_, true, _) => [(UINT32, 2, 4, 'u'), (SINT32, 2, 4, 's')][random.next() as usize % 2],
        _ => (UINT32, 4, 4, 'u'),
    };
    let texel = channels as usize * size;
    let (mipmap, _) = array(geometry, format, channels, SURFACE, 1);
    let mut level = null_mut();
    ok(cuMipmappedArrayGetLevel(&mut level, mipmap, 0));
    let mut reference = null_mut();
    ok(cuModuleGetSurfRef(&mut reference, bench.module, c"srf0".as_ptr()));
    ok(cuSurfRefSetArray(reference, level, 0));
    let [width, height, depth] = geometry.size();
    let slices = if geometry.array { geometry.layers() } else { depth };
    let row = width as usize * texel;
    let mut memory: Vec<u8> = (0..row * height as usize * slices as usize)
        .map(|_| random.next() as u8)
        .collect();
    transfer(level, row, height as usize, slices as usize, &mut memory, true);
    let moved = if formatted && !reduces {
        texel
    } else {
        element * data.len()
    };
    let unit = if formatted { texel } else { moved };
    let (trap, clamp) = (case.has("trap"), case.has("clamp"));
    let outcome = (0..ACCESSES).try_for_each(|_| {
        let mut inputs = Vec::new();
        let (mut layer, mut at) = (0, [0; 3]);
        let before = usize::from(geometry.array);
        let extent = [(row / unit) as i64, height, depth];
        let mut pick = |count: i64| match trap {
            true => (random.next() % count as u64) as i64,
            false => (random.next() % (count as u64 + 4)) as i64 - 2,
        };
        for number in 0..case.sources[0].len() {
            if number < before {
                layer = pick(geometry.layers());
                inputs.push(u64::from(layer as u32));
                // Layers are counted without sign.
                layer = i64::from(layer as u32);
                continue;
            }
            let axis = number - before;
            let value = if axis < geometry.dimensions {
                pick(extent[axis])
            } else {
                0
            };
            if axis < geometry.dimensions {
                at[axis] = value;
            }
            let scale = if formatted || axis > 0 { 1 } else { unit as i64 };
            inputs.push(u64::from((value * scale) as u32));
        }
        at[0] *= unit as i64;
        // Formatted accesses count whole texels.
        let least = if formatted { texel } else { moved };
        let place = model::place(geometry, at, layer, row as i64, least as i64, clamp);
        let mut values: Vec<u64> = Vec::new();
        if !load {
            for _ in data {
                let raw = random.next();
                values.push(match kind {
                    // Small multiples of a quarter are exact as f16, too.
                    'f' | 'h' if formatted => bits((raw % 4096) as f64 / 4.0 - 512.0),
                    _ if formatted && raw.is_multiple_of(3) => raw & 0xff,
                    _ if element == 8 => raw,
                    _ => raw & 0xffff_ffff,
                });
            }
            inputs.extend(&values);
        }
        let found = bench.run(&inputs)?;
        if load {
            for (number, register) in case.destinations.iter().enumerate() {
                let want = place.map_or(0, |place| {
                    let mut raw = [0; 8];
                    raw[..element].copy_from_slice(&memory[place + number * element..][..element]);
                    u64::from_le_bytes(raw)
                });
                if found[number] != want {
                    return Err(format!(
                        "{register} is {:#x}, expected {want:#x}, at {at:?} layer {layer}",
                        found[number]
                    ));
                }
            }
            return Ok(());
        }
        if let Some(place) = place {
            if reduces {
                let mut raw = [0; 8];
                raw[..element].copy_from_slice(&memory[place..][..element]);
                let new = reduced(case, u64::from_le_bytes(raw), values[0], element, kind);
                memory[place..][..element].copy_from_slice(&new.to_le_bytes()[..element]);
            } else if formatted {
                for channel in 0..channels as usize {
                    // What the source lacks is not defined: nothing else is compared with it.
                    let value = values.get(channel).copied();
                    let target = &mut memory[place + channel * size..][..size];
                    let value = value.map_or(0, |value| converted(value as u32, kind, size));
                    target.copy_from_slice(&value.to_le_bytes()[..size]);
                }
            } else {
                for (number, value) in values.iter().enumerate() {
                    memory[place + number * element..][..element].copy_from_slice(&value.to_le_bytes()[..element]);
                }
            }
        }
        let mut now = vec![0; memory.len()];
        transfer(level, row, height as usize, slices as usize, &mut now, false);
        match now == memory {
            true => Ok(()),
            false => {
                let differs = (0..now.len()).find(|&i| now[i] != memory[i]).expect("a byte");
                Err(format!(
                    "byte {differs} differs after {values:x?} at {at:?} layer {layer}, format {format:#x}"
                ))
            }
        }
    });
    ok(cuMipmappedArrayDestroy(mipmap));
    outcome
}

/// A component in the surface's format.
fn converted(value: u32, kind: char, size: usize) -> u32 {
    let most = u64::MAX >> (64 - 8 * size as u32);
    match kind {
        'f' => value,
        'h' => half::f16::from_f32(f32::from_bits(value)).to_bits().into(),
        'u' => u64::from(value).min(most) as u32,
        _ => {
            let most = (most >> 1) as i64;
            i64::from(value as i32).max(-most - 1).min(most) as u32
        }
    }
}

fn reduced(case: &Case, old: u64, value: u64, bytes: usize, kind: char) -> u64 {
    let signed = match case.has("p") {
        true => kind == 's',
        false => case.has("s32") || case.has("s64"),
    };
    let number = |bits: u64| -> i128 {
        match (bytes, signed) {
            (4, true) => (bits as i32).into(),
            (4, false) => (bits as u32).into(),
            (_, true) => (bits as i64).into(),
            (_, false) => bits.into(),
        }
    };
    let (a, b) = (number(old), number(value));
    let result = if case.has("add") {
        a + b
    } else if case.has("min") {
        a.min(b)
    } else if case.has("max") {
        a.max(b)
    } else if case.has("and") {
        a & b
    } else {
        a | b
    };
    result as u64
}
