//! The bytes of maps.

use super::*;

const TILED: TensorMap = TensorMap {
    rank: 5,
    element: Element::Bf16,
    address: 0x7f12_3456_7890,
    dims: [1 << 31, 2, 3, 4, 5],
    strides: [16, (1 << 40) - 16, 48, 64],
    tile: [8, 256, 1, 2, 3],
    steps: [1, 8, 2, 3, 4],
    swizzle: Swizzle::B128Atom64,
    promotion: 3,
    fills_nan: true,
    ..TensorMap::EMPTY
};

#[test]
fn what_is_written_is_read() {
    let column = TensorMap {
        mode: Mode::Im2col,
        lower: [-16, 15, 0],
        upper: [15, -1, -4],
        dims: [64, 40, 20, 20, 7],
        channels: 64,
        pixels: 1024,
        tile: [0; MOST],
        ..TILED
    };
    let wide = TensorMap {
        mode: Mode::Im2colW128,
        swizzle: Swizzle::B64,
        element: Element::U8,
        fills_nan: false,
        lower: [-32768, 0, 0],
        upper: [32767, 0, 0],
        ..column
    };
    for map in [TILED, column, wide] {
        assert_eq!(map.wrong(), None, "{map:?}");
        assert_eq!(TensorMap::decode(&map.encode()), Ok(map));
    }
}

#[test]
fn fields_stand_where_the_table_says() {
    let bytes = TILED.encode();
    assert_eq!(bytes[0..8], 0x7f12_3456_7890_u64.to_le_bytes());
    assert_eq!(bytes[8..12], [0, 0, 0, 0x80]);
    assert_eq!(bytes[32..40], 16_u64.to_le_bytes());
    assert_eq!(bytes[66..68], [0, 1]);
    assert_eq!(bytes[74..87], [1, 8, 2, 3, 4, 5, 0, 9, 0, 3, 3, 1, 3]);
}

#[test]
fn what_is_no_map_is_not_read() {
    assert!(TensorMap::decode(&[0; BYTES]).is_err());
    assert!(TensorMap::decode(&[0xff; BYTES]).is_err());
    for (at, value) in [(79, 0), (79, 6), (80, 4), (81, 16), (82, 3), (83, 7), (84, 4), (112, 0)] {
        let mut bytes = TILED.encode();
        bytes[at] = value;
        assert!(TensorMap::decode(&bytes).is_err(), "byte {at}");
    }
}

#[test]
fn zeros_become_a_map_when_all_is_replaced() {
    let mut bytes = [0; BYTES];
    let mut fields = Fields::of(&mut bytes).unwrap();
    fields.set_address(0x1000);
    fields.set_rank(2);
    for (index, (size, tile)) in [(100, 64), (30, 8)].into_iter().enumerate() {
        fields.set_dim(index, size);
        fields.set_tile(index, tile);
        fields.set_step(index, 1);
    }
    fields.set_stride(0, 208);
    fields.set_element(Element::from_replaced(10).unwrap());
    fields.set_swizzle_mode(3);
    fields.set_fill(1);
    let map = TensorMap {
        rank: 2,
        element: Element::Bf16,
        address: 0x1000,
        dims: [100, 30, 0, 0, 0],
        strides: [208, 0, 0, 0],
        tile: [64, 8, 0, 0, 0],
        steps: [1, 1, 0, 0, 0],
        swizzle: Swizzle::B128,
        fills_nan: true,
        ..TensorMap::EMPTY
    };
    assert_eq!(TensorMap::decode(&bytes), Ok(map));
    assert!(Fields::of(&mut [1; BYTES]).is_err());
    // What has no room is no small number.
    let mut fields = Fields::of(&mut bytes).unwrap();
    fields.set_tile(0, (1 << 16) + 64);
    assert!(TensorMap::decode(&bytes).is_err());
}

/// Numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ x >> 31) % n
    }

    fn between(&mut self, least: i64, most: i64) -> i64 {
        least + self.below((most - least + 1) as u64) as i64
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

/// For each unit of the box, by its place in shared memory: where it lies in global memory, if it lies in the tensor.
fn units(boxed: &TensorBox) -> Vec<Option<u64>> {
    let row_units = boxed.units() as usize;
    let mut all: Vec<Option<Option<u64>>> = Vec::new();
    boxed
        .rows(|row| {
            let first = row.place as usize * row_units;
            if all.len() < first + row_units {
                all.resize(first + row_units, None);
            }
            for unit in 0..boxed.units() {
                let inside = (row.first..row.last).contains(&unit);
                let address = u64::from(unit.wrapping_sub(row.first)).wrapping_mul(boxed.spacing());
                let before = all[first + unit as usize].replace(inside.then(|| row.address + address));
                assert_eq!(before, None, "no place twice");
            }
            Ok::<(), ()>(())
        })
        .unwrap();
    all.into_iter()
        .map(|unit| unit.expect("no place is left out"))
        .collect()
}

/// The address of a unit by its coordinates, of which the first counts units; `None`: outside (PTX ISA, Out of Boundary
/// Access).
fn element(map: &TensorMap, at: &[i64], packed: i64, bytes: u64) -> Option<u64> {
    let rank = usize::from(map.rank);
    let mut address = map.address as i128 + i128::from(at[0].div_euclid(packed)) * i128::from(bytes);
    for (index, &at) in at.iter().enumerate().take(rank) {
        if at < 0 || at >= map.dims[index] as i64 {
            return None;
        }
        if index > 0 {
            address += i128::from(at) * i128::from(map.strides[index - 1]);
        }
    }
    Some(u64::try_from(address).unwrap())
}

fn shape(numbers: &mut Numbers, rank: usize, interleave: Interleave) -> TensorMap {
    let element = match interleave {
        Interleave::None => numbers.one(&ELEMENTS),
        Interleave::B16 | Interleave::B32 => numbers.one(&[Element::F16, Element::U8, Element::F32]),
    };
    let packed = match element {
        Element::U4Align8 => 2,
        Element::U4Align16 | Element::U6Align16 => 128,
        _ => 1,
    };
    let mut map = TensorMap {
        rank: rank as u8,
        element,
        address: 0x10_0000 + numbers.below(64) * 32,
        interleave,
        ..TensorMap::EMPTY
    };
    for index in 0..rank {
        map.dims[index] = 1 + numbers.below(20);
        map.steps[index] = 1 + numbers.below(3) as u32;
    }
    map.dims[0] = (1 + numbers.below(40)) * packed;
    for index in 0..rank - 1 {
        map.strides[index] = 32 * (1 + numbers.below(1000));
    }
    if interleave == Interleave::B32 {
        map.swizzle = Swizzle::B32;
    }
    map
}

/// Units of an element type: elements, bytes.
fn packing(map: &TensorMap) -> (i64, u64) {
    match (map.interleave, map.element) {
        (Interleave::B16, _) => (1, 16),
        (Interleave::B32, _) => (1, 32),
        (_, Element::U4Align8) => (2, 1),
        (_, Element::U4Align16) => (16, 8),
        (_, Element::U6Align16) => (16, 12),
        (_, element) => (1, element.bits() / 8),
    }
}

#[test]
fn tiles_hold_the_elements_that_the_manual_says() {
    let mut numbers = Numbers(1);
    let mut count = 0;
    for _ in 0..4000 {
        let interleave = numbers.one(&[Interleave::None, Interleave::None, Interleave::B16, Interleave::B32]);
        let least = if interleave == Interleave::None { 1 } else { 3 };
        let rank = numbers.between(least, 5) as usize;
        let mut map = shape(&mut numbers, rank, interleave);
        for index in 0..rank {
            map.tile[index] = 1 + numbers.below(5) as u32;
        }
        let (packed, bytes) = packing(&map);
        if interleave == Interleave::None {
            map.tile[0] = match map.element {
                Element::U4Align16 | Element::U6Align16 => 128,
                element => (16 * 8 / element.bits()) as u32 * (1 + numbers.below(3) as u32),
            };
        }
        let multiple = match map.element {
            Element::U4Align16 | Element::U6Align16 => 128,
            _ => packed,
        };
        let start: Vec<i32> = (0..rank)
            .map(|index| match index {
                0 => (numbers.between(-3, map.dims[0] as i64 / multiple) * multiple) as i32,
                _ => numbers.between(-2, map.dims[index] as i64) as i32,
            })
            .collect();
        assert_eq!(map.wrong(), None, "{map:?}");
        let boxed = TensorBox::new(map, &start, Walk::Tile, false).unwrap();
        // Element by element: each coordinate is the start's and so many steps; the first counts fastest.
        let sliced = interleave != Interleave::None;
        let counts: Vec<i64> = (0..rank)
            .map(|index| match index {
                0 if !sliced => i64::from(map.tile[0]) / packed,
                _ if sliced && index == rank - 2 => 1,
                _ => (i64::from(map.tile[index]) + i64::from(map.steps[index]) - 1) / i64::from(map.steps[index]),
            })
            .collect();
        let total: i64 = counts.iter().product();
        let expected: Vec<Option<u64>> = (0..total)
            .map(|number| {
                let mut rest = number;
                let at: Vec<i64> = (0..rank)
                    .map(|index| {
                        let turn = rest % counts[index];
                        rest /= counts[index];
                        let step = match index {
                            0 if !sliced => packed,
                            _ => i64::from(map.steps[index]),
                        };
                        i64::from(start[index]) + turn * step
                    })
                    .collect();
                element(&map, &at, packed, bytes)
            })
            .collect();
        assert_eq!(units(&boxed), expected, "{map:?} at {start:?}");
        assert_eq!(u64::from(boxed.transferred()), total as u64 * bytes);
        count += expected.iter().flatten().count();
    }
    assert!(count > 25_000, "{count} elements lay in their tensors");
}

/// The position `p` of a walk that starts at `start` and then goes, by `step`, from `lower` to before `upper` again and
/// again: where it is, and how often it began anew.
fn position(p: i64, start: i64, lower: i64, upper: i64, step: i64) -> (i64, i64) {
    let before = (upper - start + step - 1) / step;
    if p < before {
        return (start + p * step, 0);
    }
    let each = (upper - lower + step - 1) / step;
    (lower + (p - before) % each * step, 1 + (p - before) / each)
}

#[test]
fn pixels_are_those_of_the_bounding_box() {
    let mut numbers = Numbers(2);
    let mut count = 0;
    for turn in 0..4000 {
        let wide = turn % 3;
        let interleave = match wide {
            0 => numbers.one(&[Interleave::None, Interleave::B16, Interleave::B32]),
            _ => Interleave::None,
        };
        let rank = numbers.between(3, 5) as usize;
        let mut map = shape(&mut numbers, rank, interleave);
        let first = usize::from(interleave == Interleave::None);
        (map.mode, map.swizzle) = match wide {
            0 => (Mode::Im2col, map.swizzle),
            1 => (Mode::Im2colW, Swizzle::B128),
            _ => (Mode::Im2colW128, Swizzle::B128),
        };
        let (packed, bytes) = packing(&map);
        map.channels = match map.element {
            Element::U4Align16 | Element::U6Align16 => 128,
            _ => 2 * (1 + numbers.below(8) as u32),
        };
        map.pixels = 1 + numbers.below(60) as u32;
        let axes = if wide == 0 { rank - 2 } else { 1 };
        for axis in 0..axes {
            let size = map.dims[first + axis] as i64;
            map.lower[axis] = numbers.between(-3, 2) as i32;
            let least = i64::from(map.lower[axis]) + 1 - size;
            map.upper[axis] = numbers.between(least.max(-10), 4.max(least)) as i32;
        }
        if map.wrong().is_some() {
            continue;
        }
        let offsets: [u16; 3] = std::array::from_fn(|axis| {
            let some = numbers.below(4) as u16;
            if wide == 0 && axis < rank - 2 { some } else { 0 }
        });
        let (halo, offset) = (numbers.below(4) as u16, numbers.below(4) as u16);
        let walk = match wide {
            0 => Walk::Im2col(offsets),
            1 => Walk::Im2colW { halo, offset },
            _ => Walk::Im2colW128 { halo, offset },
        };
        let shift = if wide == 0 { 0 } else { i64::from(offset) };
        let bound = |axis: usize| {
            let lower = i64::from(map.lower[axis]) + shift;
            (
                lower,
                map.dims[first + axis] as i64 + i64::from(map.upper[axis]) + shift,
            )
        };
        let multiple = match map.element {
            Element::U4Align16 | Element::U6Align16 => 128,
            _ => packed,
        };
        let start: Vec<i64> = (0..rank)
            .map(|index| match index {
                _ if index >= first && index < first + axes => {
                    let (lower, upper) = bound(index - first);
                    numbers.between(lower - shift, upper - shift - 1)
                }
                0 => numbers.between(-3, 10) * multiple,
                _ => numbers.between(-1, 8),
            })
            .collect();
        let coordinates: Vec<i32> = start.iter().map(|at| *at as i32).collect();
        let boxed = TensorBox::new(map, &coordinates, walk, false).unwrap();
        // Pixel number `p` from the start, by division.
        let pixel = |p: i64| {
            let mut at = start.clone();
            let mut carry = p;
            for axis in 0..axes {
                let (lower, upper) = bound(axis);
                let step = i64::from(map.steps[first + axis]);
                let from = start[first + axis] + if axis == 0 { shift } else { 0 };
                let (here, again) = position(carry, from, lower, upper, step);
                at[first + axis] = here;
                carry = again;
            }
            at[rank - 1] += carry * i64::from(map.steps[rank - 1]);
            for axis in 0..rank - 2 {
                at[first + axis] += i64::from(offsets[axis]);
            }
            at
        };
        let order: Vec<i64> = match wide {
            0 => (0..map.pixels.into()).collect(),
            1 => (0..i64::from(map.pixels) + i64::from(halo)).collect(),
            // 128, then what follows each 32 of them: first of each, second of each …
            _ => (0..128)
                .chain((0..i64::from(halo)).flat_map(|n| (1..=4).map(move |part| part * 32 + n)))
                .collect(),
        };
        let row = if first == 0 {
            1
        } else {
            (i64::from(map.channels) + packed - 1) / packed
        };
        let expected: Vec<Option<u64>> = order
            .iter()
            .flat_map(|p| {
                let at = pixel(*p);
                (0..row).map(move |unit| {
                    let mut at = at.clone();
                    if first == 1 {
                        at[0] += unit * packed;
                    }
                    element(&map, &at, packed, bytes)
                })
            })
            .collect();
        assert_eq!(units(&boxed), expected, "{map:?} {walk:?} at {start:?}");
        count += expected.iter().flatten().count();
    }
    assert!(count > 100_000, "{count} elements lay in their tensors");
}

#[test]
fn four_rows_lie_anywhere() {
    let map = TensorMap {
        rank: 2,
        element: Element::F32,
        address: 0x1000,
        dims: [10, 7, 0, 0, 0],
        strides: [48, 0, 0, 0],
        tile: [4, 1, 0, 0, 0],
        steps: [1; MOST],
        ..TensorMap::EMPTY
    };
    let boxed = TensorBox::new(map, &[8, 0], Walk::Rows([6, -1, 0, 7]), false).unwrap();
    let row = |y: u64| (0..4).map(move |x| (x < 2).then_some(0x1000 + y * 48 + (8 + x) * 4));
    let outside = [None; 4];
    let expected: Vec<_> = row(6).chain(outside).chain(row(0)).chain(outside).collect();
    assert_eq!(units(&boxed), expected);
    assert_eq!(boxed.transferred(), 64);
    let two = TensorMap {
        tile: [4, 2, 0, 0, 0],
        ..map
    };
    assert!(TensorBox::new(two, &[8, 0], Walk::Rows([0; 4]), false).is_err());
}

#[test]
fn what_does_not_go_together_is_refused() {
    let map = TensorMap {
        rank: 4,
        element: Element::F16,
        dims: [64, 9, 14, 64, 0],
        strides: [128, 1152, 16128, 0],
        steps: [1; MOST],
        channels: 8,
        pixels: 64,
        mode: Mode::Im2col,
        lower: [-1, -1, 0],
        upper: [-1, -1, 0],
        ..TensorMap::EMPTY
    };
    let column = |start: &[i32], offsets| TensorBox::new(map, start, Walk::Im2col(offsets), false);
    assert!(column(&[0, 7, 4, 0], [0, 0, 0]).is_ok());
    assert!(column(&[0, 7, 4], [0, 0, 0]).is_err(), "three dimensions");
    assert!(column(&[0, 8, 4, 0], [0, 0, 0]).is_err(), "to the right of the box");
    assert!(column(&[0, -1, -1, 0], [255, 0, 0]).is_ok());
    assert!(column(&[0, -2, -1, 0], [0, 0, 0]).is_err(), "to the left of it");
    assert!(column(&[0, -1, -1, 0], [256, 0, 0]).is_err(), "8 bits");
    assert!(TensorBox::new(map, &[0, 7, 4, 0], Walk::Tile, false).is_err());
    assert!(
        TensorBox::new(map, &[0, 7, 4, 0], Walk::Im2col([0; 3]), true).is_err(),
        "beyond the tensor"
    );
    let tile = TensorMap {
        mode: Mode::Tiled,
        tile: [8, 1, 1, 1, 0],
        swizzle: Swizzle::B128Atom32Flip8,
        ..map
    };
    assert!(TensorBox::new(tile, &[-8, 0, 0, 0], Walk::Tile, false).is_ok());
    assert!(
        TensorBox::new(tile, &[0, 0, 0, 0], Walk::Tile, true).is_err(),
        "flipped"
    );
    let plain = TensorMap {
        swizzle: Swizzle::None,
        ..tile
    };
    assert!(TensorBox::new(plain, &[0, 0, 0, 0], Walk::Tile, true).is_ok());
    assert!(
        TensorBox::new(plain, &[-8, 0, 0, 0], Walk::Tile, true).is_err(),
        "negative"
    );
}
