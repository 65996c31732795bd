//! Formulas of the CUDA C++ Programming Guide, Texture Fetching, worked by hand.

mod measured;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::memory::{AddressSpace, Kind, Request};

/// A one-dimensional texture over `texels`, which outlive it.
fn row(texels: &[f32], sampler: Sampler) -> Texture {
    let width = texels.len() as u32;
    let bytes = 4 * u64::from(width);
    Texture {
        image: Image {
            levels: Box::new([Level {
                address: texels.as_ptr() as u64,
                width,
                height: 1,
                depth: 1,
                pitch: bytes,
                slice: bytes,
            }]),
            format: Format {
                channel: Channel::F32,
                channels: 1,
            },
            layers: 0,
            cube: false,
            memory: Backing::Array(Arc::new(AtomicBool::new(true))),
        },
        sampler,
        normalize: false,
        srgb: false,
    }
}

/// The first component at a position of the first layer.
fn read_at(texture: &Texture, geometry: Geometry, at: [f32; 3], detail: Detail) -> f32 {
    let fetch = Fetch {
        geometry,
        layer: 0,
        at: Probe::Position(at),
        offset: [0; 3],
        detail,
        compare: None,
        gather: None,
    };
    let texel = texture.fetch(&texture.sampler, &fetch, AddressSpace::get().view());
    f32::from_bits(texel.expect("an array")[0])
}

fn read(texture: &Texture, x: f32) -> f32 {
    read_at(texture, Geometry::D1, [x, 0.0, 0.0], Detail::Base)
}

const TEXELS: [f32; 4] = [1.0, 2.0, 4.0, 8.0];

#[test]
fn nearest_is_the_floor_after_addressing() {
    let mode = |address, normalized| {
        let sampler = Sampler {
            address: [address; 3],
            normalized,
            border: [-1.0; 4],
            ..Sampler::default()
        };
        row(&TEXELS, sampler)
    };
    let clamp = mode(AddressMode::Clamp, false);
    for (x, expected) in [
        (-3.0, 1.0),
        (0.0, 1.0),
        (0.99, 1.0),
        (1.0, 2.0),
        (3.5, 8.0),
        (4.0, 8.0),
        (1e30, 8.0),
    ] {
        assert_eq!(read(&clamp, x), expected, "{x}");
    }
    let border = mode(AddressMode::Border, true);
    for (x, expected) in [(-0.01, -1.0), (0.0, 1.0), (0.99, 8.0), (1.0, -1.0)] {
        assert_eq!(read(&border, x), expected, "{x}");
    }
    let wrap = mode(AddressMode::Wrap, true);
    for (x, expected) in [(-0.25, 8.0), (1.25, 2.0), (7.5, 4.0), (-3.0, 1.0)] {
        assert_eq!(read(&wrap, x), expected, "{x}");
    }
    // 1.25: texel 5 of the repetitions, which is texel 2 mirrored. NVIDIA Warp's tests expect it of devices; the guide's
    // 1 - frac(x) = 0.75 would be texel 3.
    let mirror = mode(AddressMode::Mirror, true);
    for (x, expected) in [
        (0.3, 2.0),
        (1.0, 8.0),
        (1.25, 4.0),
        (1.3, 4.0),
        (1.5, 2.0),
        (1.9, 1.0),
        (2.0, 1.0),
        (2.3, 2.0),
        (-0.1, 1.0),
        (-0.25, 1.0),
        (-512.75 + 2.0, 4.0),
        (1e30, 1.0),
    ] {
        assert_eq!(read(&mirror, x), expected, "{x}");
    }
    // Repetition needs fractions of the size.
    assert_eq!(read(&mode(AddressMode::Wrap, false), 5.0), 8.0);
}

#[test]
fn linear_weights_have_eight_bits() {
    let sampler = Sampler {
        filter: Filter::Linear,
        ..Sampler::default()
    };
    let texture = row(&[0.0, 256.0], sampler);
    for (x, expected) in [
        (0.0, 0.0),
        (0.5, 0.0),
        (1.0, 128.0),
        (1.5, 256.0),
        (2.5, 256.0),
        (0.75, 64.0),
    ] {
        assert_eq!(read(&texture, x), expected, "{x}");
    }
    // 1/1024 above a multiple of 1/256 rounds down, 3/1024 up.
    assert_eq!(read(&texture, 0.75 + 1.0 / 1024.0), 64.0);
    assert_eq!(read(&texture, 0.75 + 3.0 / 1024.0), 65.0);
}

#[test]
fn wrapping_blends_the_ends() {
    let sampler = Sampler {
        address: [AddressMode::Wrap; 3],
        filter: Filter::Linear,
        normalized: true,
        ..Sampler::default()
    };
    assert_eq!(read(&row(&TEXELS, sampler), 0.0), 4.5);
}

#[test]
fn what_is_no_number_reads_something() {
    for filter in [Filter::Point, Filter::Linear] {
        for address in [
            AddressMode::Wrap,
            AddressMode::Mirror,
            AddressMode::Clamp,
            AddressMode::Border,
        ] {
            let sampler = Sampler {
                address: [address; 3],
                filter,
                normalized: true,
                ..Sampler::default()
            };
            let texture = row(&TEXELS, sampler);
            for x in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, -f32::MAX] {
                read(&texture, x);
            }
        }
    }
}

#[test]
fn formats_come_back() {
    for channel in [
        Channel::Unorm8,
        Channel::Snorm8,
        Channel::Unorm16,
        Channel::Snorm16,
        Channel::F16,
        Channel::F32,
    ] {
        let format = Format { channel, channels: 4 };
        let texel = format.write([0.0_f32, 1.0, 0.5, -1.0].map(f32::to_bits));
        let [zero, one, half, minus] = format.read(texel, true, false).map(f32::from_bits);
        assert_eq!((zero, one), (0.0, 1.0), "{channel:?}");
        assert!((half - 0.5).abs() < 1.0 / 127.0, "{channel:?}");
        let signed = !matches!(channel, Channel::Unorm8 | Channel::Unorm16);
        assert_eq!(minus, if signed { -1.0 } else { 0.0 }, "{channel:?}");
    }
    // The least of two's complement is -1, too.
    let snorm = Format {
        channel: Channel::S8,
        channels: 1,
    };
    let mut least = [0; 16];
    least[0] = 0x80;
    assert_eq!(f32::from_bits(snorm.read(least, true, false)[0]), -1.0);
    assert_eq!(snorm.read(least, false, false), [-128_i32 as u32, 0, 0, 1]);
}

#[test]
fn faces_of_a_cube() {
    // CUDA C++ Programming Guide, Cubemap Textures: face, m, s, t.
    let table = [
        ([1.0, 0.5, 0.25], 0, [-0.25, -0.5, 1.0]),
        ([-1.0, 0.5, 0.25], 1, [0.25, -0.5, 1.0]),
        ([0.5, 1.0, 0.25], 2, [0.5, 0.25, 1.0]),
        ([0.5, -1.0, 0.25], 3, [0.5, -0.25, 1.0]),
        ([0.5, 0.25, 1.0], 4, [0.5, -0.25, 1.0]),
        ([0.5, 0.25, -1.0], 5, [-0.5, -0.25, 1.0]),
    ];
    for (direction, face, stm) in table {
        assert_eq!(cube::face(direction), (face, stm));
        assert_eq!(cube::direction(face, stm[0], stm[1]), direction);
        assert_eq!(cube::along(face, direction), stm);
    }
    assert_eq!(cube::face([1.0, 1.0, 1.0]).0, 4);
    assert_eq!(cube::face([1.0, -1.0, 0.5]).0, 3);
}

#[test]
fn gradients_choose_levels() {
    let one = level::footprint([0.25, 0.0, 0.0], [0.0, 0.125, 0.0], [16.0, 16.0, 1.0], 1);
    assert_eq!((one.level, one.probes), (2.0, 1));
    let two = level::footprint([0.25, 0.0, 0.0], [0.0, 0.125, 0.0], [16.0, 16.0, 1.0], 8);
    assert_eq!((two.level, two.probes, two.step), (1.0, 2, [0.125, 0.0, 0.0]));
}

#[test]
fn halfway_between_levels_the_nearest_is_the_coarser() {
    // NVIDIA Warp's tests expect it of devices.
    let mut texture = row(&TEXELS, Sampler::default());
    let finest = texture.image.levels[0];
    let level = |bytes| Level {
        address: finest.address + bytes,
        width: 1,
        ..finest
    };
    texture.image.levels = Box::new([0, 4, 8].map(level));
    for (level, expected) in [
        (-1.0, 1.0),
        (0.49, 1.0),
        (0.5, 2.0),
        (1.0, 2.0),
        (1.5, 4.0),
        (2.5, 4.0),
        (f32::NAN, 1.0),
    ] {
        let found = read_at(&texture, Geometry::D1, [0.0; 3], Detail::Level(level));
        assert_eq!(found, expected, "{level}");
    }
}

/// A cube of which each face has its own number in all texels.
fn cube(texels: &[f32], sampler: Sampler) -> Texture {
    let mut texture = row(texels, sampler);
    texture.image.levels[0] = Level {
        width: 2,
        height: 2,
        pitch: 8,
        slice: 16,
        ..texture.image.levels[0]
    };
    (texture.image.layers, texture.image.cube) = (6, true);
    texture
}

#[test]
fn edges_of_a_cube_are_seamless_where_asked_for() {
    let texels: [f32; 24] = std::array::from_fn(|i| (i / 4) as f32);
    let at = |seamless: bool, direction: [f32; 3]| {
        let sampler = Sampler {
            filter: Filter::Linear,
            normalized: true,
            seamless,
            ..Sampler::default()
        };
        let texture = cube(&texels, sampler);
        read_at(&texture, Geometry::Cube, direction, Detail::Base)
    };
    assert_eq!(at(false, [1.0, 0.0, 1.0]), 4.0);
    // Half of +z, half of +x; of +z and +y; of -z and -x.
    assert_eq!(at(true, [1.0, 0.0, 1.0]), 2.0);
    assert_eq!(at(true, [0.0, 1.0, 1.0]), 3.0);
    assert_eq!(at(true, [-1.0, 0.0, -1.0]), 3.0);
    // A quarter each of +z, +x, +y, and of their mean.
    assert_eq!(at(true, [1.0, 1.0, 1.0]), 2.0);
    // In the middle of a face nothing else is seen.
    assert_eq!(at(true, [0.0, 0.0, -3.0]), 5.0);
}

#[test]
fn encoded_bytes_become_linear() {
    let format = Format {
        channel: Channel::U8,
        channels: 4,
    };
    let mut texel = [0; 16];
    texel[..4].copy_from_slice(&[0, 10, 255, 128]);
    let [black, dark, white, alpha] = format.read(texel, true, true).map(f32::from_bits);
    // IEC 61966-2-1: 10/255 lies on the straight part, 49.7 steps of an H100's table. The fourth channel is not encoded.
    assert_eq!((black, dark, white), (0.0, 50.0 / 16384.0, 1.0));
    assert_eq!(alpha, 128.0 / 255.0);
}

/// Numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
    fn coordinate(&mut self) -> f32 {
        match self.below(12) {
            0 => self.pick(&[0.0, -0.0, 1.0, -1.0, 0.5, 1e-40, -1e-40, 2.0]),
            1 => self.below(64) as f32 * 0.25 - 8.0,
            2..=6 => self.below(1 << 20) as f32 / 65536.0 - 4.0,
            _ => self.below(1 << 20) as f32 / 524288.0 - 0.5,
        }
    }
}

const CHANNELS: [Channel; 13] = [
    Channel::U8,
    Channel::U16,
    Channel::U32,
    Channel::S8,
    Channel::S16,
    Channel::S32,
    Channel::F16,
    Channel::F32,
    Channel::Unorm8,
    Channel::Unorm16,
    Channel::Snorm8,
    Channel::Snorm16,
    Channel::Unorm101010x2,
];

/// An image over `memory` of three levels or one, as one in memory with layers would be.
fn image(random: &mut Random, memory: &[u32], geometry: Geometry) -> Image {
    let channel = random.pick(&CHANNELS);
    let channels = if channel == Channel::Unorm101010x2 {
        4
    } else {
        random.pick(&[1, 2, 4])
    };
    let format = Format { channel, channels };
    let cube = geometry.is_cube();
    let layers = match geometry {
        Geometry::Cube => 6,
        Geometry::ACube => 12,
        Geometry::A1 | Geometry::A2 => 3,
        _ => 0,
    };
    let size = |has: bool, most: usize, random: &mut Random| if has { 1 + random.below(most) as u32 } else { 1 };
    let width = size(true, 9, random);
    let height = if cube {
        width
    } else {
        size(geometry.dimensions() > 1, 7, random)
    };
    let depth = size(geometry == Geometry::D3, 5, random);
    let mut address = memory.as_ptr() as u64;
    let count = random.pick(&[1_u32, 1, 3]);
    let one = count == 1;
    let levels = (0..count).map(|n| {
        let [width, height, depth] = [width, height, depth].map(|size| (size >> n).max(1));
        let pitch = u64::from(width * format.bytes());
        let slice = pitch * u64::from(height);
        let level = Level {
            address,
            width,
            height,
            depth,
            pitch,
            slice,
        };
        address += slice * u64::from(depth.max(layers));
        level
    });
    let image = Image {
        levels: levels.collect(),
        format,
        layers,
        cube,
        memory: match geometry {
            Geometry::D1 | Geometry::D2 if one && random.below(2) == 0 => Backing::Plain {
                linear: geometry == Geometry::D1,
            },
            _ => Backing::Array(Arc::new(AtomicBool::new(true))),
        },
    };
    assert!(address <= memory.as_ptr() as u64 + size_of_val(memory) as u64);
    image
}

/// What a warp reads at once is what its threads read one by one, to the bit.
#[test]
fn a_warp_reads_what_its_threads_would() {
    let mut random = Random(0x1234_5678_9abc_def1);
    // NaN, infinities and subnormals among them.
    let space = AddressSpace::get();
    let own = space
        .allocate(&Request::new(Kind::Device, 4 << 16))
        .expect("a little memory");
    // SAFETY: memory of this test, and of its size.
    let memory = unsafe { std::slice::from_raw_parts_mut(own.start as *mut u32, 1 << 16) };
    memory.fill_with(|| random.next() as u32);
    let view = space.view();
    let geometries = [
        Geometry::D1,
        Geometry::D2,
        Geometry::D3,
        Geometry::A1,
        Geometry::A2,
        Geometry::Cube,
        Geometry::ACube,
    ];
    let modes = [
        AddressMode::Wrap,
        AddressMode::Mirror,
        AddressMode::Clamp,
        AddressMode::Border,
    ];
    let filters = [Filter::Point, Filter::Linear];
    let (mut at_once, rounds) = (0, 20_000);
    for round in 0..rounds {
        let geometry = random.pick(&geometries);
        let image = image(&mut random, memory, geometry);
        let sampler = Sampler {
            address: [0; 3].map(|_| random.pick(&modes)),
            filter: random.pick(&filters),
            normalized: random.below(3) != 0,
            unnormalized: false,
            level_filter: random.pick(&filters),
            level_bias: random.pick(&[0.0, 0.0, 0.75]),
            level_clamp: random.pick(&[[0.0, 100.0], [0.5, 1.25]]),
            anisotropy: random.pick(&[0, 1, 4]),
            border: [0.25, -3.0, f32::INFINITY, 1.0],
            seamless: random.below(4) == 0,
        };
        let texture = Texture {
            image,
            sampler,
            normalize: random.below(2) == 0,
            srgb: random.below(4) == 0,
        };
        let floats = random.below(4) != 0 || geometry.is_cube();
        let rows: [Run<u32>; 16] = std::array::from_fn(|row| {
            std::array::from_fn(|_| match (row, floats) {
                (0..3, false) => random.below(24) as i32 as u32 ^ if random.below(4) == 0 { u32::MAX } else { 0 },
                (12, false) => random.below(4) as u32,
                (3..6, _) => (random.below(17) as i32 - 8) as u32,
                (13, _) => random.below(14) as u32,
                (14, _) => random.pick(&[0.0_f32, 0.5, f32::NAN, 1.0]).to_bits(),
                _ => random.coordinate().to_bits(),
            })
        });
        // Directions that the geometry lacks are 0.
        let given = |first: usize| {
            [0, 1, 2].map(|i| {
                if i < geometry.dimensions() {
                    &rows[first + i]
                } else {
                    &ZEROS
                }
            })
        };
        let details = match random.below(4) {
            0 => Details::Level(&rows[12]),
            1 if floats => Details::Gradient(given(6), given(9)),
            _ => Details::Base,
        };
        let some = random.next() as u32 | 1;
        let fetches = Fetches {
            geometry,
            active: random.pick(&[u32::MAX, some]),
            layer: Some(&rows[13]),
            floats,
            at: [0, 1, 2].map(|i| &rows[i]),
            offset: (random.below(4) == 0).then(|| [3, 4, 5].map(|i| &rows[i])),
            details,
            compare: (random.below(5) == 0).then_some(&rows[14]),
            gather: match geometry.dimensions() == 2 || geometry.is_cube() {
                true if random.below(5) == 0 && floats => Some(random.below(4)),
                _ => None,
            },
        };
        let mut found = [[0; 32]; 4];
        if !texture.fetch_warp(&texture.sampler, &fetches, view, &mut found) {
            continue;
        }
        at_once += 1;
        let blends = texture.reads_floats() && filters_any(&texture.sampler);
        for lane in (0..32).filter(|lane| fetches.active >> lane & 1 == 1) {
            let words = |rows: [&Run<u32>; 3]| rows.map(|row| row[lane]);
            let float = |rows: [&Run<u32>; 3]| words(rows).map(f32::from_bits);
            let fetch = Fetch {
                geometry,
                layer: rows[13][lane],
                at: match floats {
                    true => Probe::Position(float(fetches.at)),
                    false => Probe::Index(words(fetches.at).map(|word| word as i32)),
                },
                offset: fetches
                    .offset
                    .map_or([0; 3], |offset| words(offset).map(|word| word as i32)),
                detail: match fetches.details {
                    Details::Base => Detail::Base,
                    Details::Level(level) if floats => Detail::Level(f32::from_bits(level[lane])),
                    Details::Level(level) => Detail::Level(level[lane] as i32 as f32),
                    Details::Gradient(x, y) => Detail::Gradient(float(x), float(y)),
                },
                compare: fetches.compare.map(|row| f32::from_bits(row[lane])),
                gather: fetches.gather,
            };
            let one = texture.fetch(&texture.sampler, &fetch, view).expect("an array");
            let both = [found.map(|row| row[lane]), one].map(|texel| if blends { texel.map(quiet) } else { texel });
            assert_eq!(both[0], both[1], "round {round}, lane {lane}: {fetch:?} of {texture:?}");
        }
    }
    space.free(own.start);
    // What is left to threads is rare even among such as these.
    assert!(at_once * 10 > rounds * 8, "{at_once} of {rounds}");
}

fn filters_any(sampler: &Sampler) -> bool {
    [sampler.filter, sampler.level_filter].contains(&Filter::Linear)
}

/// Sums with several NaN may take the bits of either.
fn quiet(bits: u32) -> u32 {
    if f32::from_bits(bits).is_nan() {
        f32::NAN.to_bits()
    } else {
        bits
    }
}
