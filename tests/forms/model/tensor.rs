//! Boxes of tensors, byte by byte, from the formulas of the PTX manual (Tensors; Swizzling Modes): which byte of global
//! memory stands at which place of shared memory.

/// How a copy goes through the tensor, with what the instruction says besides coordinates.
#[derive(Clone, Debug)]
pub enum Way {
    Tile,
    Rows([i64; 4]),
    Im2col([i64; 3]),
    /// Halo, offset, and whether there are 128 pixels in four parts.
    Wide(i64, i64, bool),
}

/// What the tensor map says. `element` and `swizzle` as the driver API numbers them.
#[derive(Clone, Debug)]
pub struct Spec {
    pub element: u32,
    pub rank: usize,
    /// Of the first element, in the buffer.
    pub base: i64,
    pub dims: [i64; 5],
    pub strides: [i64; 4],
    pub tile: [i64; 5],
    pub steps: [i64; 5],
    /// 0, 16, 32 bytes: 0, 1, 2.
    pub interleave: u32,
    pub swizzle: u32,
    pub nan: bool,
    pub lower: [i64; 3],
    pub upper: [i64; 3],
    pub channels: i64,
    pub pixels: i64,
}

/// Bytes that move together.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Where it stands, counted from where the box starts, before bytes change places.
    pub place: i64,
    /// Where it lies in global memory; `None`: outside of the tensor.
    pub from: Option<i64>,
}

pub const TF32: u32 = 11;
pub const TF32_FTZ: u32 = 12;
pub const U4_ALIGN16: u32 = 14;
pub const U6_ALIGN16: u32 = 15;

impl Spec {
    /// Elements of a piece, its bytes in global memory, and from one to the next in shared memory.
    pub fn packing(&self) -> (i64, i64, i64) {
        match (self.interleave, self.element) {
            (1, _) => (1, 16, 16),
            (2, _) => (1, 32, 32),
            (_, 13) => (2, 1, 1),
            (_, U4_ALIGN16) => (16, 8, 16),
            (_, U6_ALIGN16) => (16, 12, 16),
            (_, element) => {
                let bytes = [1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4][element as usize];
                (1, bytes, bytes)
            }
        }
    }

    /// Elements that the first coordinate is a multiple of.
    pub fn granule(&self) -> i64 {
        match self.element {
            13 => 2,
            U4_ALIGN16 | U6_ALIGN16 => 128,
            _ => 1,
        }
    }

    fn first_spatial(&self) -> usize {
        usize::from(self.interleave == 0)
    }

    /// The coordinates of each row of the box, of its first element, in the order of shared memory.
    fn rows(&self, start: &[i64; 5], way: &Way) -> Vec<[i64; 5]> {
        match way {
            Way::Tile => {
                let mut rows = vec![*start];
                for index in 1..self.rank {
                    // The slices of interleaved channels are looked at one at a time.
                    let slices = self.interleave != 0 && index == self.rank - 2;
                    let count = if slices {
                        1
                    } else {
                        (self.tile[index] + self.steps[index] - 1) / self.steps[index]
                    };
                    rows = (0..count)
                        .flat_map(|turn| {
                            rows.iter().map(move |row| {
                                let mut row = *row;
                                row[index] += turn * self.steps[index];
                                row
                            })
                        })
                        .collect();
                }
                rows
            }
            Way::Rows(rows) => rows.iter().map(|row| [start[0], *row, 0, 0, 0]).collect(),
            Way::Im2col(offsets) => (0..self.pixels)
                .map(|p| self.pixel(start, p, offsets, self.rank - 2, 0))
                .collect(),
            Way::Wide(halo, offset, false) => (0..self.pixels + halo)
                .map(|p| self.pixel(start, p, &[0; 3], 1, *offset))
                .collect(),
            Way::Wide(halo, offset, true) => {
                let halos = (0..*halo).flat_map(|n| (1..=4).map(move |part| part * 32 + n));
                (0..128)
                    .chain(halos)
                    .map(|p| self.pixel(start, p, &[0; 3], 1, *offset))
                    .collect()
            }
        }
    }

    /// Pixel number `p`: how far along each axis by division, with what is left over for the next one.
    fn pixel(&self, start: &[i64; 5], p: i64, offsets: &[i64; 3], axes: usize, shift: i64) -> [i64; 5] {
        let first = self.first_spatial();
        let mut at = *start;
        let mut carry = p;
        for axis in 0..axes {
            let index = first + axis;
            let (lower, upper) = (self.lower[axis] + shift, self.dims[index] + self.upper[axis] + shift);
            let step = self.steps[index];
            let from = start[index] + if axis == 0 { shift } else { 0 };
            let before = (upper - from + step - 1) / step;
            let each = (upper - lower + step - 1) / step;
            (at[index], carry) = match carry < before {
                true => (from + carry * step, 0),
                false => (lower + (carry - before) % each * step, 1 + (carry - before) / each),
            };
        }
        at[self.rank - 1] += carry * self.steps[self.rank - 1];
        for axis in 0..self.rank - 2 {
            at[first + axis] += offsets[axis];
        }
        at
    }

    pub fn pieces(&self, start: &[i64; 5], way: &Way) -> Vec<Piece> {
        let (elements, bytes, shared) = self.packing();
        let is_tile = matches!(way, Way::Tile | Way::Rows(_));
        let (count, step) = match (is_tile, self.interleave) {
            (true, 0) => (self.tile[0] / elements, elements),
            (true, _) => ((self.tile[0] + self.steps[0] - 1) / self.steps[0], self.steps[0]),
            (false, 0) => ((self.channels + elements - 1) / elements, elements),
            (false, _) => (1, 1),
        };
        let span = [0, 32, 64, 128, 128, 128, 128, 96][self.swizzle as usize];
        let pitch = (count * shared).max(span);
        let mut pieces = Vec::new();
        for (number, row) in self.rows(start, way).iter().enumerate() {
            for n in 0..count {
                let mut at = *row;
                at[0] += n * step;
                let inside = (0..self.rank).all(|index| (0..self.dims[index]).contains(&at[index]));
                let outer: i64 = (1..self.rank).map(|index| at[index] * self.strides[index - 1]).sum();
                pieces.push(Piece {
                    place: number as i64 * pitch + n * shared,
                    from: inside.then(|| self.base + at[0] / elements * bytes + outer),
                });
            }
        }
        pieces
    }
}

/// Where the byte at `address` goes: by the manual's tables, which say for each line of 128 bytes what stands in its
/// eight places of 16 bytes.
pub fn swizzled(swizzle: u32, address: i64) -> i64 {
    const PLAIN: [i64; 8] = [0, 1, 2, 3, 4, 5, 6, 7];
    const PAIRS: [i64; 8] = [1, 0, 3, 2, 5, 4, 7, 6];
    const TWOS: [i64; 8] = [2, 3, 0, 1, 6, 7, 4, 5];
    const BACK: [i64; 8] = [3, 2, 1, 0, 7, 6, 5, 4];
    const HALVES: [i64; 8] = [4, 5, 6, 7, 0, 1, 2, 3];
    let table: &[[i64; 8]] = match swizzle {
        0 => &[PLAIN],
        1 | 7 => &[PLAIN, PAIRS],
        2 => &[PLAIN, PAIRS, TWOS, BACK],
        3 => &[
            PLAIN,
            PAIRS,
            TWOS,
            BACK,
            HALVES,
            [5, 4, 7, 6, 1, 0, 3, 2],
            [6, 7, 4, 5, 2, 3, 0, 1],
            [7, 6, 5, 4, 3, 2, 1, 0],
        ],
        4 | 5 => &[PLAIN, TWOS, HALVES, [6, 7, 4, 5, 2, 3, 0, 1]],
        _ => &[PLAIN, HALVES],
    };
    let (line, place) = (address / 128, address / 16 % 8);
    // They say what comes to each place: the other way round it is the same.
    let to = table[line as usize % table.len()]
        .iter()
        .position(|from| *from == place)
        .expect("each is there");
    let flip = if swizzle == 5 && line % 2 == 1 { 8 } else { 0 };
    line * 128 + to as i64 * 16 + ((address % 16) ^ flip)
}

/// f32 → tf32, to nearest even, by arithmetic on numbers; the library has it by bits.
pub fn tf32(bits: u32) -> u32 {
    let value = f32::from_bits(bits);
    if value.is_nan() {
        return 0x7fff_e000;
    }
    if value.is_infinite() || value == 0.0 {
        return bits;
    }
    // Multiples of 2^(e-10), or of the least one.
    let exponent = ((bits >> 23 & 0xff) as i32).max(1) - 127;
    let unit = 2f64.powi(exponent - 10);
    let rounded = (f64::from(value) / unit).round_ties_even() * unit;
    // A zero keeps its sign; what becomes too large is infinite.
    (rounded as f32).to_bits() | bits & 0x8000_0000
}
