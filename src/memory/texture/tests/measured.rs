//! Reads beside those that an H100 answered.

use super::*;

fn unpacked(packed: &[u8]) -> String {
    String::from_utf8(zstd::decode_all(packed).expect("packed")).expect("text")
}

/// Three lines each, by their fields.
fn paragraphs(text: &str) -> Vec<[Vec<&str>; 3]> {
    let fields: Vec<_> = text.lines().map(|line| line.split('\t').collect()).collect();
    let (paragraphs, rest) = fields.as_chunks();
    assert!(rest.is_empty(), "whole paragraphs");
    paragraphs.to_vec()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
    (0..hex.len()).step_by(2).map(digit).collect()
}

fn words(hex: &str) -> Vec<u32> {
    let bytes = bytes(hex);
    bytes
        .as_chunks()
        .0
        .iter()
        .map(|word| u32::from_le_bytes(*word))
        .collect()
}

/// Reads of `tests/hardware/texture.py`, as an H100 answered them.
#[test]
fn reads_have_the_bits_of_hardware() {
    let packed = include_bytes!("../../../../tests/hardware/goldens/H100/texture.tsv.zst");
    let (mut wrong, mut count) = (Vec::new(), 0);
    let text = unpacked(packed);
    for paragraph in paragraphs(&text) {
        let [_, name, kind, size, mode, fractions, filter, srgb] = paragraph[0][..] else {
            panic!("{:?}", paragraph[0]);
        };
        let channel = match kind {
            "u8" => Channel::U8,
            "s8" => Channel::S8,
            "u16" => Channel::U16,
            "s16" => Channel::S16,
            "f16" => Channel::F16,
            _ => Channel::F32,
        };
        let mut size = size.split('x').map(|side| side.parse().expect("a number"));
        let mut side = || size.next().unwrap_or(1);
        let [width, height, depth] = [side(), side(), side()];
        let format = Format { channel, channels: 1 };
        let pitch = u64::from(width * format.bytes());
        let texels = bytes(paragraph[1][1]);
        let mode = match mode {
            "wrap" => AddressMode::Wrap,
            "mirror" => AddressMode::Mirror,
            "border" => AddressMode::Border,
            _ => AddressMode::Clamp,
        };
        let texture = Texture {
            image: Image {
                levels: Box::new([Level {
                    address: texels.as_ptr() as u64,
                    width,
                    height,
                    depth,
                    pitch,
                    slice: pitch * u64::from(height),
                }]),
                format,
                layers: 0,
                cube: false,
                memory: Backing::Array(Arc::new(AtomicBool::new(true))),
            },
            sampler: Sampler {
                address: [mode; 3],
                filter: if filter == "linear" {
                    Filter::Linear
                } else {
                    Filter::Point
                },
                normalized: fractions == "1",
                ..Sampler::default()
            },
            normalize: true,
            srgb: srgb == "1",
        };
        let (geometry, dimensions) = match (height, depth) {
            (1, 1) => (Geometry::D1, 1),
            (_, 1) => (Geometry::D2, 2),
            _ => (Geometry::D3, 3),
        };
        let words = words(paragraph[2][1]);
        for read in words.chunks_exact(dimensions + 1) {
            let mut at = [0.0; 3];
            (0..dimensions).for_each(|i| at[i] = f32::from_bits(read[i]));
            let found = read_at(&texture, geometry, at, Detail::Base).to_bits();
            count += 1;
            if found != read[dimensions] {
                wrong.push(format!(
                    "{name} at {at:?}: {found:#010x} for {:#010x}",
                    read[dimensions]
                ));
            }
        }
    }
    assert!(count > 20_000, "{count}");
    // How the two slices of a volume are lined up with each other is not known.
    let known = ["f32_3d at [6.9726563, 0.890625, 0.8828125]: 0xbf0e6a2e for 0xbf0e6a2f"];
    assert_eq!(wrong, known, "of {count}");
}

fn filter(name: &str) -> Filter {
    if name == "linear" {
        Filter::Linear
    } else {
        Filter::Point
    }
}

/// Reads of `tests/hardware/levels.cu`: several levels, gradients, cubes.
#[test]
fn levels_and_cubes_have_the_bits_of_hardware() {
    let text = unpacked(include_bytes!("../../../../tests/hardware/goldens/H100/levels.tsv.zst"));
    let (mut wrong, mut near, mut gradients, mut count) = (Vec::new(), 0, 0, 0);
    for [about, texels, reads] in paragraphs(&text) {
        let [
            _,
            name,
            side,
            levels,
            faces,
            linear,
            between,
            mode,
            anisotropy,
            bias,
            least,
            most,
        ] = about[..]
        else {
            panic!("{about:?}");
        };
        // How several probes are placed is not known.
        if anisotropy.parse::<u32>().expect("a number") > 1 {
            continue;
        }
        let number = |text: &str| text.parse::<u32>().expect("a number");
        let float = |text: &str| text.parse::<f32>().expect("a number");
        let (side, faces, texels) = (number(side), number(faces), bytes(texels[1]));
        let mut address = texels.as_ptr() as u64;
        let levels = (0..number(levels)).map(|level| {
            let side = side >> level;
            let level = Level {
                address,
                width: side,
                height: side,
                depth: 1,
                pitch: u64::from(side * 4),
                slice: u64::from(side * side * 4),
            };
            address += level.slice * u64::from(faces);
            level
        });
        let texture = Texture {
            image: Image {
                levels: levels.collect(),
                format: Format {
                    channel: Channel::F32,
                    channels: 1,
                },
                layers: if faces == 6 { 6 } else { 0 },
                cube: faces == 6,
                memory: Backing::Array(Arc::new(AtomicBool::new(true))),
            },
            sampler: Sampler {
                address: [if mode == "wrap" {
                    AddressMode::Wrap
                } else {
                    AddressMode::Clamp
                }; 3],
                filter: filter(linear),
                level_filter: filter(between),
                level_bias: float(bias),
                level_clamp: [least, most].map(float),
                normalized: true,
                ..Sampler::default()
            },
            normalize: false,
            srgb: false,
        };
        let geometry = if faces == 6 { Geometry::Cube } else { Geometry::D2 };
        for row in words(reads[1]).as_chunks::<9>().0 {
            let [x, y, z, level, dx, dx2, dy, dy2, expected] = row.map(f32::from_bits);
            let detail = match reads[0] {
                "lod" | "cubelod" => Detail::Level(level),
                "grad" => Detail::Gradient([dx, dx2, 0.0], [dy, dy2, 0.0]),
                _ => Detail::Base,
            };
            let found = read_at(&texture, geometry, [x, y, z], detail);
            count += 1;
            if reads[0] == "grad" {
                // Texels are their level's number.
                gradients += 1;
                assert!(
                    (found - expected).abs() <= 2.0 / 256.0,
                    "{name} {dx} {dx2} {dy} {dy2}: {found} for {expected}"
                );
                near += u32::from(found != expected);
            } else if found.to_bits() != expected.to_bits() {
                wrong.push(format!("{name} at {x} {y} {z}, level {level}: {found} for {expected}"));
            }
        }
    }
    assert!(count > 30_000, "{count}");
    // How the quotient of a direction is rounded is not known.
    let known = ["cube_linear at 0.15368056 0.30847144 0.60877717, level 0.76258063: 1.2829334 for 1.2832611"];
    assert_eq!(wrong, known, "of {count}");
    assert!(near < gradients / 16, "{near} of {gradients} levels differ");
}
