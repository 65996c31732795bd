//! Formulas of the CUDA C++ Programming Guide, Texture Fetching, worked by hand.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::memory::AddressSpace;

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

fn read(texture: &Texture, x: f32) -> f32 {
    let fetch = Fetch {
        geometry: Geometry::D1,
        layer: 0,
        at: Probe::Position([x, 0.0, 0.0]),
        offset: [0; 3],
        detail: Detail::Base,
        compare: None,
        gather: None,
    };
    let texel = texture.fetch(&texture.sampler, &fetch, AddressSpace::get().view());
    f32::from_bits(texel.expect("an array")[0])
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
    // 1.25: floor is odd, so 1 - 0.25 = 0.75, texel 3.
    let mirror = mode(AddressMode::Mirror, true);
    for (x, expected) in [(0.3, 2.0), (1.25, 8.0), (1.3, 4.0), (1.9, 1.0), (-0.1, 1.0), (2.3, 2.0)] {
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
        let fetch = Fetch {
            geometry: Geometry::Cube,
            layer: 0,
            at: Probe::Position(direction),
            offset: [0; 3],
            detail: Detail::Base,
            compare: None,
            gather: None,
        };
        let texel = texture.fetch(&texture.sampler, &fetch, AddressSpace::get().view());
        f32::from_bits(texel.expect("an array")[0])
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
    // IEC 61966-2-1: 10/255 lies on the straight part; the fourth channel is not encoded.
    assert_eq!((black, white), (0.0, 1.0));
    assert!((dark - 10.0 / 255.0 / 12.92).abs() < 1e-9);
    assert_eq!(alpha, 128.0 / 255.0);
}
