//! Forms of tensor copies, and of what changes tensor maps: each with a map, a box and a tensor drawn for it. A block
//! fills its shared memory, makes the copy of the example and waits for it; all of shared memory, or of the tensor, is
//! compared with the model. Tensors of fabric operations lie in memory of devices that a logical endpoint names.

use std::ffi::{CString, c_int, c_uint, c_void};
use std::ptr::null_mut;

use crate::c::*;
use crate::catalogue::Row;
use crate::device;
use crate::execute::Random;
use crate::fabric::Endpoints;
use crate::model::tensor::{self as model, Spec, TF32, TF32_FTZ, U4_ALIGN16, U6_ALIGN16, Way, swizzled};
use crate::multimem::DEVICES;

/// Bytes of shared memory that are looked at, of the tensor's memory, and cases of a module.
const BOX: usize = 32 << 10;
const TENSOR: usize = 512 << 10;
const BATCH: usize = 100;

#[repr(C, align(64))]
#[derive(Clone, Copy)]
pub struct Map([u64; 16]);

functions! {
    cuTensorMapEncodeTiled(
        map: *mut Map, element: c_uint, rank: c_uint, address: *mut c_void, dims: *const u64, strides: *const u64,
        tile: *const u32, steps: *const u32, interleave: c_uint, swizzle: c_uint, promotion: c_uint, fill: c_uint,
    );
    cuTensorMapEncodeIm2col(
        map: *mut Map, element: c_uint, rank: c_uint, address: *mut c_void, dims: *const u64, strides: *const u64,
        lower: *const c_int, upper: *const c_int, channels: c_uint, pixels: c_uint, steps: *const u32,
        interleave: c_uint, swizzle: c_uint, promotion: c_uint, fill: c_uint,
    );
    cuTensorMapEncodeIm2colWide(
        map: *mut Map, element: c_uint, rank: c_uint, address: *mut c_void, dims: *const u64, strides: *const u64,
        lower: c_int, upper: c_int, channels: c_uint, pixels: c_uint, steps: *const u32, interleave: c_uint,
        mode: c_uint, swizzle: c_uint, promotion: c_uint, fill: c_uint,
    );
}

/// What an example does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Load,
    Store,
    Reduce,
    /// `tensormap.replace`
    Replace,
    /// `tensormap.cp_fenceproxy`
    CopyMap,
}

struct Case<'a> {
    row: &'a Row,
    words: Vec<&'a str>,
    what: What,
    /// What the map says that the host makes, and what is true when the copy is made.
    given: Spec,
    spec: Spec,
    way: Way,
    start: [i64; 5],
    /// The box starts so many bytes behind the start of what is compared.
    offset: i64,
    /// All data has the pattern that is reported, or none.
    pattern: Option<bool>,
    /// `tensormap.replace`: values for the example's registers.
    value: i64,
}

fn between(random: &mut Random, least: i64, most: i64) -> i64 {
    least + (random.next() % (most - least + 1) as u64) as i64
}

fn one<T: Copy>(random: &mut Random, of: &[T]) -> T {
    of[random.next() as usize % of.len()]
}

fn up(value: i64, to: i64) -> i64 {
    (value + to - 1) / to * to
}

/// Bytes of a swizzle's span; more than any row where nothing is swizzled.
fn span(swizzle: u32) -> i64 {
    [256, 32, 64, 128, 128, 128, 128][swizzle as usize]
}

/// Where the box starts, and how it lies in the tensor.
fn place(words: &[&str], spec: &Spec, loads: bool, r: &mut Random) -> ([i64; 5], Way) {
    let has = |word: &str| words.contains(&word);
    let (rank, first) = (spec.rank, usize::from(spec.interleave == 0));
    let column = has("im2col") || has("im2col_no_offs");
    let wide = has("im2col::w") || has("im2col::w::128");
    let rows = has("tile::gather4") || has("tile::scatter4");
    let axes = if wide { 1 } else { rank.saturating_sub(2) };
    let mut start = [0; 5];
    let granule = if spec.interleave == 0 { spec.granule() } else { 1 };
    for (index, start) in start.iter_mut().enumerate().take(rank) {
        let least = if loads { -2 } else { 0 };
        *start = match index {
            0 => granule * between(r, least, spec.dims[0] / granule),
            _ => between(r, least, spec.dims[index]),
        };
    }
    let offset_bits = [0, 0, 0, 6, 4, 3][rank];
    let way = match () {
        () if rows => Way::Rows(std::array::from_fn(|_| between(r, -2, spec.dims[1]))),
        () if wide => Way::Wide(between(r, 0, 3), between(r, 0, 3), has("im2col::w::128")),
        () if has("im2col") => Way::Im2col(std::array::from_fn(|axis| match axis < rank - 2 {
            true => between(r, 0, offset_bits),
            false => 0,
        })),
        () if column => Way::Im2col([0; 3]),
        () => Way::Tile,
    };
    if rows {
        start[1] = 0;
    }
    if column || wide {
        for axis in 0..axes {
            let left = if wide { 2 } else { 0 };
            let (lower, upper) = (spec.lower[axis], spec.dims[first + axis] + spec.upper[axis]);
            start[first + axis] = between(r, lower - left, upper - 1);
        }
    }
    (start, way)
}

impl<'a> Case<'a> {
    fn of(row: &'a Row) -> Option<Case<'a>> {
        let opcode = row.example.split([' ', ';']).next()?;
        let words: Vec<&str> = opcode.split('.').collect();
        let what = match () {
            () if words[0] == "tensormap" && words[1] == "replace" => What::Replace,
            () if words[0] == "tensormap" => What::CopyMap,
            () if words[1] == "reduce" || words[1] == "try_red" => What::Reduce,
            () if words[1] == "try_put" => What::Store,
            () if words.contains(&"bulk_group") => What::Store,
            () => What::Load,
        };
        let has = |word: &str| words.contains(&word);
        let mut random = Random::of(row.example);
        let r = &mut random;
        let said = words
            .iter()
            .find_map(|word| word.strip_suffix('d')?.parse::<usize>().ok());
        let rank = said.unwrap_or(3);
        let loads = matches!(what, What::Load | What::Replace | What::CopyMap);
        let column = has("im2col") || has("im2col_no_offs");
        let wide = has("im2col::w") || has("im2col::w::128");
        let rows = has("tile::gather4") || has("tile::scatter4");
        let interleave = match () {
            () if rank < 3 || wide || rows || what == What::Replace => 0,
            () => one(r, &[0, 0, 0, 1, 2]),
        };
        let element = match what {
            _ if what == What::Reduce => one(r, reducible(&words)),
            _ if interleave != 0 => one(r, &[0, 6, 7]),
            What::Store => one(r, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15]),
            What::Replace => 1,
            // What is reported are whole elements.
            _ if has("mbarrier::report::validity::per_16bytes::80000000") => one(r, &[2, 3, 7, 10, 11]),
            _ if has("mbarrier::report::validity::per_16bytes::8000") => one(r, &[1, 6, 9]),
            _ => r.next() as u32 % 16,
        };
        let packed = matches!(element, U4_ALIGN16 | U6_ALIGN16);
        let swizzle = match interleave {
            2 => 1,
            1 => one(r, &[0, 0, 1, 2, 3]),
            _ if wide && !packed => one(r, &[2, 3, 4]),
            _ if wide => one(r, &[3, 4]),
            _ if packed => one(r, &[0, 3, 4]),
            _ if loads => r.next() as u32 % 7,
            _ => one(r, &[0, 1, 2, 3, 4, 6]),
        };
        let mut spec = Spec {
            element,
            rank,
            base: 4096 + 32 * between(r, 0, 20),
            dims: [0; 5],
            strides: [0; 4],
            tile: [0; 5],
            steps: [1; 5],
            interleave,
            swizzle,
            nan: loads && (6..=12).contains(&element) && r.next().is_multiple_of(2),
            lower: [0; 3],
            upper: [0; 3],
            channels: 0,
            pixels: 0,
        };
        // The first dimension: elements of so many bytes along it.
        let (elements, bytes, _) = spec.packing();
        let inner = match interleave {
            0 if packed => 128,
            0 => 16 * between(r, 1, span(swizzle).min(128) / 16) / bytes * elements,
            _ => between(r, 1, 5),
        };
        let most = [0, 40, 12, 12, 6, 4][rank];
        spec.dims[0] = match packed {
            true => 128 * between(r, 1, 2),
            false => elements * between(r, 1, 20),
        };
        for index in 1..rank {
            spec.dims[index] = between(r, 1, most);
            spec.steps[index] = between(r, 1, 3);
        }
        if interleave != 0 {
            spec.steps[0] = between(r, 1, 2);
        }
        let mut stride = up(spec.dims[0] / elements * bytes, 32);
        for index in 0..rank - 1 {
            spec.strides[index] = stride;
            stride *= spec.dims[index + 1];
        }
        spec.tile[0] = inner;
        for index in 1..rank {
            spec.tile[index] = between(r, 1, if rank > 3 { 3 } else { 6 });
        }
        if rows {
            spec.tile[1] = 1;
        }
        (spec.channels, spec.pixels) = (if interleave == 0 { inner } else { 8 }, between(r, 1, 40));
        let first = usize::from(interleave == 0);
        let axes = if wide { 1 } else { rank.saturating_sub(2) };
        if column || wide {
            for axis in 0..axes {
                let size = spec.dims[first + axis];
                (spec.lower[axis], spec.upper[axis]) = match loads {
                    true => {
                        let lower = between(r, -3, 2);
                        let least = lower + 1 - size;
                        (lower, between(r, least.max(-8), 3.max(least)))
                    }
                    false => (between(r, 0, (size - 1).min(1)), 0),
                };
            }
        }
        let (start, way) = place(&words, &spec, loads, r);
        let mut case = Case {
            row,
            words,
            what,
            given: spec.clone(),
            spec,
            way,
            start,
            offset: 128 * between(r, 0, 8),
            pattern: None,
            value: 0,
        };
        case.overridden(r);
        if case
            .words
            .iter()
            .any(|word| word.starts_with("mbarrier::report::validity"))
        {
            case.pattern = Some(r.next().is_multiple_of(2));
        }
        if what == What::Replace && !case.replaced(r) {
            return None;
        }
        Some(case)
    }

    fn has(&self, word: &str) -> bool {
        self.words.contains(&word)
    }

    fn is_fabric(&self) -> bool {
        self.words[0] == "fabric"
    }

    /// What a barrier counts of the box: bytes that come, or units of 16 that go.
    fn counted(&self) -> (i64, i64) {
        let (_, bytes, _) = self.spec.packing();
        let whole = self.spec.pieces(&self.start, &self.way).len() as i64 * bytes;
        (
            whole,
            if self.has("mbarrier::complete_tx::16B") {
                whole / 16
            } else {
                whole
            },
        )
    }

    /// What the instruction says in the map's stead, the map has otherwise.
    fn overridden(&mut self, r: &mut Random) {
        if self.has("override::global_address") {
            self.given.base = 64 * between(r, 0, 1000);
        }
        if self.has("override::global_dim") || self.has("override::global_dim_stride") {
            self.start = [0; 5];
            let granule = self.given.granule() * if self.given.granule() == 128 { 1 } else { 2 };
            self.given.dims[0] = granule * between(r, 1, 9);
            // Sizes have eight bits.
            if self.spec.dims[0] > 255 {
                self.spec.dims[0] = 128;
            }
            for index in 1..self.given.rank {
                self.given.dims[index] = between(r, 1, 9);
                self.given.strides[index - 1] = 32 * between(r, 1, 100);
            }
        }
    }

    /// Chooses what is replaced: the map of the host has something else there.
    fn replaced(&mut self, r: &mut Random) -> bool {
        let Some(field) = self.words.get(3).copied() else {
            return false;
        };
        // A number in the example, or one that is chosen.
        let fixed: Option<i64> = self
            .row
            .example
            .rsplit(',')
            .next()
            .and_then(|last| last.trim().trim_end_matches(';').parse().ok());
        match field {
            "global_address" => {
                self.value = self.spec.base;
                self.given.base = 0;
            }
            "rank" => {
                // One dimension fewer.
                self.spec.rank = 2;
                self.start[2] = 0;
                self.value = 1;
            }
            "box_dim" => (self.value, self.given.tile[0]) = (self.spec.tile[0], 8),
            "global_dim" => (self.value, self.given.dims[0]) = (self.spec.dims[0], between(r, 1, 50)),
            "global_stride" => (self.value, self.given.strides[0]) = (self.spec.strides[0], 4096),
            // Along the first dimension it says nothing.
            "element_stride" => self.value = 3,
            "elemtype" => {
                // The example's: bytes, of the same extent.
                if fixed != Some(0) {
                    return false;
                }
                self.spec.element = 0;
                self.spec.swizzle = 0;
                self.given = self.spec.clone();
                (self.spec.tile[0], self.given.tile[0]) = (32, 32);
                self.given.element = 1;
            }
            "interleave_layout" | "swizzle_mode" | "fill_mode" | "swizzle_atomicity" => {
                if fixed != Some(0) {
                    return false;
                }
                match field {
                    "swizzle_mode" => self.spec.swizzle = 0,
                    "swizzle_atomicity" => (self.spec.swizzle, self.given.swizzle) = (3, 4),
                    "fill_mode" => {
                        (self.spec.element, self.given.element) = (6, 6);
                        (self.spec.nan, self.given.nan) = (false, true);
                    }
                    // The strides along the first dimension then say nothing again.
                    _ => {
                        self.spec.swizzle = 0;
                        self.given = self.spec.clone();
                        self.given.interleave = 1;
                    }
                }
                // What 128 bytes have room for, the others may have more than they have.
                if field != "interleave_layout" {
                    (self.spec.tile[0], self.given.tile[0]) = (16, 16);
                }
                if field == "swizzle_mode" {
                    self.given.swizzle = 3;
                }
            }
            _ => return false,
        }
        true
    }

    fn encode(&self, tensor: CUdeviceptr) -> Result<Map, String> {
        let spec = &self.given;
        let mut map = Map([0; 16]);
        let dims = spec.dims.map(|dim| dim as u64);
        let strides = spec.strides.map(|stride| stride as u64);
        let tile = spec.tile.map(|size| size as u32);
        let steps = spec.steps.map(|step| step as u32);
        let (lower, upper) = (spec.lower.map(|at| at as c_int), spec.upper.map(|at| at as c_int));
        let address = (tensor + spec.base as u64) as *mut c_void;
        let (element, rank, fill) = (spec.element, spec.rank as u32, spec.nan.into());
        let (channels, pixels) = (spec.channels as u32, spec.pixels as u32);
        let (interleave, swizzle) = (spec.interleave, spec.swizzle);
        let encoded = match self.way {
            Way::Tile | Way::Rows(_) => cuTensorMapEncodeTiled(
                &mut map,
                element,
                rank,
                address,
                dims.as_ptr(),
                strides.as_ptr(),
                tile.as_ptr(),
                steps.as_ptr(),
                interleave,
                swizzle,
                0,
                fill,
            ),
            Way::Im2col(_) => cuTensorMapEncodeIm2col(
                &mut map,
                element,
                rank,
                address,
                dims.as_ptr(),
                strides.as_ptr(),
                lower.as_ptr(),
                upper.as_ptr(),
                channels,
                pixels,
                steps.as_ptr(),
                interleave,
                swizzle,
                0,
                fill,
            ),
            Way::Wide(_, _, parts) => cuTensorMapEncodeIm2colWide(
                &mut map,
                element,
                rank,
                address,
                dims.as_ptr(),
                strides.as_ptr(),
                lower[0],
                upper[0],
                channels,
                pixels,
                steps.as_ptr(),
                interleave,
                parts.into(),
                swizzle,
                0,
                fill,
            ),
        };
        match encoded {
            CUDA_SUCCESS => Ok(map),
            error => Err(format!("encoding: error {error}: {spec:?}")),
        }
    }

    /// Where a byte of the box stands in what is compared.
    fn at(&self, place: i64) -> usize {
        swizzled(self.spec.swizzle, self.offset + place) as usize
    }

    /// What data there is in global memory.
    fn tensor(&self) -> Vec<u8> {
        let mut random = Random::of(self.row.form);
        let mut tensor: Vec<u8> = match self.pattern {
            // No byte has a negative zero in it, nor 0xff.
            Some(false) => (0..TENSOR).map(|_| 0x11 * (1 + random.next() % 7) as u8).collect(),
            Some(true) => {
                let pattern: &[u8] = match self
                    .words
                    .iter()
                    .find_map(|word| word.strip_prefix("mbarrier::report::validity::"))
                {
                    Some("per_16bytes::8") => &[0x88],
                    Some("per_16bytes::80") => &[0x80],
                    Some("per_16bytes::8000") => &[0, 0x80],
                    Some("per_16bytes::80000000") => &[0, 0, 0, 0x80],
                    _ => &[0xff],
                };
                (0..TENSOR).map(|at| pattern[at % pattern.len()]).collect()
            }
            None => (0..TENSOR).map(|_| random.next() as u8).collect(),
        };
        if self.what == What::Reduce {
            numbers(&mut tensor, self.spec.element, &mut random);
        }
        tensor
    }

    /// What shared memory holds before: what is stored.
    fn shared(&self) -> Vec<u8> {
        let mut random = Random::of(self.row.example);
        let mut shared: Vec<u8> = (0..BOX).map(|_| random.next() as u8).collect();
        if self.what == What::Reduce {
            numbers(&mut shared, self.spec.element, &mut random);
        }
        shared
    }

    fn kernel(&self, name: &str) -> String {
        let (whole, counted) = self.counted();
        let is_load = !matches!(self.what, What::Store | What::Reduce);
        let mut t = format!(
            ".visible .entry {name}(.param .align 64 .b8 tm[128], .param .u64 shared, .param .u64 to, .param .u64 tensor, \
             .param .u64 scratch, .param .u32 id)\n{{\n.reg .pred %p<4>; .reg .b8 %b<4>; .reg .b16 %rs<60>; .reg .b32 %r<64>, %t<8>; \
             .reg .b64 %rd<12>, %u<8>;\n\
             .shared .align 1024 .b8 box[{BOX}]; .shared .align 128 .b8 made[128]; .shared .align 8 .b64 bar;\n\
             ld.param.u64 %u1, [shared]; ld.param.u64 %u2, [to]; mov.u32 %t1, %tid.x; shl.b32 %t1, %t1, 2;\n\
             mov.u32 %t2, box; add.u32 %t2, %t2, %t1; cvt.u64.u32 %u3, %t1; add.u64 %u1, %u1, %u3; \
             add.u64 %u2, %u2, %u3;\n\
             mov.u32 %t3, 0;\nfill: ld.global.u32 %t4, [%u1]; st.shared.u32 [%t2], %t4; add.u64 %u1, %u1, 128; \
             add.u32 %t2, %t2, 128;\n\
             add.u32 %t3, %t3, 128; setp.lt.u32 %p1, %t3, {BOX}; @%p1 bra fill;\n\
             bar.sync 0; fence.proxy.async; setp.ne.u32 %p0, %t1, 0;\n\
             mov.b64 %rd1, tm; cvta.param.u64 %rd1, %rd1; mov.b64 %u6, %rd1; ld.param.u64 %u5, [scratch];\n"
        );
        t += &self.changed();
        t += "@%p0 bra wait;\n";
        t += &format!(
            "mov.b64 %rd3, box; add.u64 %rd3, %rd3, {}; mov.b64 %rd4, bar; mov.b64 %rd7, 0;\n",
            self.offset
        );
        t += &match self.is_fabric() {
            false => format!("ld.param.u64 %rd2, [tensor]; add.u64 %rd2, %rd2, {};\n", self.spec.base),
            true => format!(
                "mov.b64 %rd0, %u6; ld.param.u32 %r1, [id]; mov.b64 %rd2, {}; mov.b64 %rd5, bar; mov.b64 %rd6, {}; \
                 mov.b32 %r4, {whole};\n",
                self.spec.base,
                Endpoints::COUNTER
            ),
        };
        let rows = match self.way {
            Way::Rows(rows) => vec![self.start[0], rows[0], rows[1], rows[2], rows[3]],
            _ => self.start[..self.spec.rank].to_vec(),
        };
        for (index, at) in rows.iter().enumerate() {
            t += &format!("mov.b32 %r{}, {at};\n", 20 + index);
        }
        for (index, dim) in self.spec.dims.iter().enumerate() {
            // Only the lower half counts.
            t += &format!("mov.b16 %rs{}, {};\n", 30 + index, dim & 0xff | 0x5500);
        }
        for (index, stride) in self.spec.strides.iter().enumerate() {
            t += &format!("mov.b32 %r{}, {};\n", 50 + index, stride >> 4);
        }
        t += "mov.b16 %rs40, 0; mov.b16 %rs6, 1; mov.b32 %r6, 1;\n";
        let info = match self.way {
            Way::Im2col(offsets) => offsets.to_vec(),
            Way::Wide(halo, offset, _) => vec![halo, offset],
            Way::Tile | Way::Rows(_) => Vec::new(),
        };
        for (index, value) in info.iter().enumerate() {
            t += &format!("mov.b16 %rs{}, {value};\n", 20 + index);
        }
        if is_load || self.is_fabric() {
            let reports = self.pattern.is_some() || self.is_fabric();
            let layout = if reports { ".layout::v1" } else { "" };
            t += &format!(
                "mbarrier.init{layout}.shared.b64 [bar], 1; mbarrier.arrive.expect_tx.shared.b64 _, [bar], {counted};\n"
            );
        }
        match self.what {
            What::Load | What::Store | What::Reduce => t += self.row.example,
            What::Replace | What::CopyMap => {
                let coordinates: Vec<String> = (0..self.spec.rank).map(|index| format!("%r{}", 20 + index)).collect();
                t += &format!(
                    "cp.async.bulk.tensor.{}d.shared::cta.global.mbarrier::complete_tx::bytes [%rd3], \
                     [%u6, {{{}}}], [%rd4];",
                    self.spec.rank,
                    coordinates.join(", ")
                );
            }
        }
        t += if self.is_fabric() { "\nfabric.submit;\n" } else { "\n" };
        if !is_load && self.is_fabric() {
            t += "again: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra again;\nwait: ret;\n}\n";
            return t;
        }
        if !is_load {
            t += "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\nwait: ret;\n}\n";
            return t;
        }
        t += "wait: bar.sync 0;\n";
        t += match self.pattern {
            None => "again: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra again;\n",
            Some(_) => {
                "again: mbarrier.try_wait.parity.phase_type::primary.shared.b64 %p1|%p2, [bar], 0; @!%p1 bra again;\n\
                 selp.u32 %t5, 1, 0, %p2; st.global.u32 [%u5], %t5;\n"
            }
        };
        t += &format!(
            "mov.u32 %t2, box; add.u32 %t2, %t2, %t1; mov.u32 %t3, 0;\n\
             out: ld.shared.u32 %t4, [%t2]; st.global.u32 [%u2], %t4; add.u64 %u2, %u2, 128; add.u32 %t2, %t2, 128;\n\
             add.u32 %t3, %t3, 128; setp.lt.u32 %p1, %t3, {BOX}; @%p1 bra out;\nret;\n}}\n"
        );
        t
    }

    /// The map is changed, or copied, before it is used: in shared memory or in scratch memory, from where it is used.
    fn changed(&self) -> String {
        let copy = |to: &str, space: &str, load: &str, from: &str| {
            (0..16)
                .map(|n| {
                    let at = 8 * n;
                    format!("ld{load}.u64 %u4, [{from}+{at}]; st{space}.u64 [{to}+{at}], %u4;\n")
                })
                .collect::<String>()
        };
        let published = "fence.proxy.tensormap::generic.release.gpu; fence.proxy.tensormap::generic.acquire.gpu \
                         [%u5], 128; mov.b64 %u6, %u5;\n";
        match self.what {
            What::Load | What::Store | What::Reduce => String::new(),
            What::Replace => {
                let in_shared = self.has("shared::cta");
                let values = match self.words[3] {
                    "global_address" => format!("ld.param.u64 %rd2, [tensor]; add.u64 %rd2, %rd2, {};\n", self.value),
                    _ => format!("mov.b64 %rd2, {0}; mov.b32 %r2, {0};\n", self.value),
                };
                let (to, space) = if in_shared {
                    ("made", ".shared")
                } else {
                    ("%u5", ".global")
                };
                let mut t = String::from("@%p0 bra changed;\n");
                t += &copy(to, space, ".param", "tm");
                t += &values;
                t += match in_shared {
                    true => "mov.b64 %rd1, made;\n",
                    false => "mov.b64 %rd1, %u5;\n",
                };
                t += self.row.example;
                t += "\n";
                if in_shared {
                    t += &copy("%u5", ".global", ".shared", "made");
                }
                t + published + "changed:\n"
            }
            What::CopyMap => {
                let mut t = String::from("@%p0 bra changed;\n");
                t += &copy("made", ".shared", ".param", "tm");
                t += "changed: bar.warp.sync -1; mov.b64 %rd1, %u5; mov.b64 %rd2, made;\n";
                t += self.row.example;
                t + "\nbar.warp.sync -1;\n" + published
            }
        }
    }

    fn check(&self, shared: &[u8], found: &[u8], tensor: &[u8]) -> Result<(), String> {
        let (_, bytes, pitch) = self.spec.packing();
        let mut expected: Vec<Option<u8>> = shared.iter().map(|byte| Some(*byte)).collect();
        let pieces = self.spec.pieces(&self.start, &self.way);
        for piece in &pieces {
            let mut data: Vec<u8> = match piece.from {
                Some(from) => tensor[from as usize..][..bytes as usize].to_vec(),
                None if self.spec.nan => (0..bytes).map(|n| [0xf7, 0x7f][n as usize % 2]).collect(),
                None => vec![0; bytes as usize],
            };
            if matches!(self.spec.element, TF32 | TF32_FTZ) && piece.from.is_some() {
                for word in data.chunks_exact_mut(4) {
                    let bits = u32::from_le_bytes(word.try_into().expect("four"));
                    word.copy_from_slice(&model::tf32(bits).to_le_bytes());
                }
            }
            for n in 0..pitch {
                // The gaps hold anything.
                expected[self.at(piece.place + n)] = data.get(n as usize).copied();
            }
        }
        let differs = (0..BOX).find(|&at| expected[at].is_some_and(|byte| byte != found[at]));
        match differs {
            None => Ok(()),
            Some(at) => Err(format!(
                "byte {at} is {:#x}, expected {:#x}: {:?} {:?} at {:?}, box at {}",
                found[at],
                expected[at].unwrap_or(0),
                self.spec,
                self.way,
                self.start,
                self.offset
            )),
        }
    }

    fn reduction(&self) -> &str {
        let known = ["add", "min", "max", "inc", "dec", "and", "or", "xor"];
        let found = self.words.iter().find(|word| known.contains(word));
        found.expect("it is there")
    }

    /// Bytes that a store with a counter writes.
    fn came(&self) -> u64 {
        let (_, bytes, _) = self.spec.packing();
        let pieces = self.spec.pieces(&self.start, &self.way);
        let inside = pieces.iter().filter(|piece| piece.from.is_some()).count();
        if self.has("counted::bytes") {
            inside as u64 * bytes as u64
        } else {
            0
        }
    }

    /// What the tensor holds after a store or a reduction.
    fn stored(&self, tensor: &mut [u8], shared: &[u8]) {
        let (_, bytes, pitch) = self.spec.packing();
        for piece in self.spec.pieces(&self.start, &self.way) {
            let Some(from) = piece.from else { continue };
            let data: Vec<u8> = (0..pitch).map(|n| shared[self.at(piece.place + n)]).collect();
            let data = match self.spec.element {
                // The low six bits of each byte.
                U6_ALIGN16 => {
                    let all = data
                        .iter()
                        .rev()
                        .fold(0u128, |all, byte| all << 6 | u128::from(byte & 0x3f));
                    all.to_le_bytes()[..12].to_vec()
                }
                _ => data,
            };
            let target = &mut tensor[from as usize..][..bytes as usize];
            match self.what {
                What::Reduce => {
                    let width = reduced_bytes(self.spec.element);
                    for (old, value) in target.chunks_exact_mut(width).zip(data.chunks_exact(width)) {
                        reduce(self.reduction(), self.spec.element, old, value);
                    }
                }
                _ => target.copy_from_slice(&data[..bytes as usize]),
            }
        }
    }
}

/// Element types that an operation reduces (PTX ISA, cp.reduce.async.bulk.tensor).
fn reducible(words: &[&str]) -> &'static [u32] {
    let has = |word: &str| words.contains(&word);
    match () {
        () if has("add") => &[2, 3, 4, 6, 7, 9],
        () if has("inc") || has("dec") => &[2],
        () if has("min") || has("max") => &[2, 3, 4, 5, 6, 9],
        () => &[2, 3, 4, 5],
    }
}

fn reduced_bytes(element: u32) -> usize {
    match element {
        4 | 5 => 8,
        6 | 9 => 2,
        _ => 4,
    }
}

/// Makes small numbers of bytes, whose sums are exact; integers stay as they are.
fn numbers(bytes: &mut [u8], element: u32, random: &mut Random) {
    let small = |random: &mut Random| (random.next() % 65) as f32 - 32.0;
    match element {
        6 => bytes
            .chunks_exact_mut(2)
            .for_each(|e| e.copy_from_slice(&half::f16::from_f32(small(random)).to_le_bytes())),
        9 => bytes
            .chunks_exact_mut(2)
            .for_each(|e| e.copy_from_slice(&half::bf16::from_f32(small(random)).to_le_bytes())),
        7 => bytes
            .chunks_exact_mut(4)
            .for_each(|e| e.copy_from_slice(&small(random).to_le_bytes())),
        _ => {}
    }
}

fn reduce(op: &str, element: u32, old: &mut [u8], value: &[u8]) {
    let raw = |bytes: &[u8]| bytes.iter().rev().fold(0u64, |all, byte| all << 8 | u64::from(*byte));
    let float = |bytes: &[u8]| match element {
        6 => half::f16::from_bits(raw(bytes) as u16).to_f32(),
        9 => half::bf16::from_bits(raw(bytes) as u16).to_f32(),
        _ => f32::from_bits(raw(bytes) as u32),
    };
    let number = |bytes: &[u8]| -> i128 {
        match element {
            3 => (raw(bytes) as i32).into(),
            5 => (raw(bytes) as i64).into(),
            _ => raw(bytes).into(),
        }
    };
    if matches!(element, 6 | 7 | 9) {
        let (a, b) = (float(old), float(value));
        let result = match op {
            "add" => a + b,
            "min" => a.min(b),
            _ => a.max(b),
        };
        let bytes = match element {
            6 => half::f16::from_f32(result).to_le_bytes().to_vec(),
            9 => half::bf16::from_f32(result).to_le_bytes().to_vec(),
            _ => result.to_le_bytes().to_vec(),
        };
        return old.copy_from_slice(&bytes);
    }
    let (a, b) = (number(old), number(value));
    let result = match op {
        "add" => a + b,
        "min" => a.min(b),
        "max" => a.max(b),
        "and" => a & b,
        "or" => a | b,
        "xor" => a ^ b,
        "inc" if a >= b => 0,
        "inc" => a + 1,
        _ if a == 0 || a > b => b,
        _ => a - 1,
    };
    let width = old.len();
    old.copy_from_slice(&result.to_le_bytes()[..width]);
}

/// Device memory that all cases use.
struct Bench<'a> {
    endpoints: Option<&'a Endpoints>,
    tensor: CUdeviceptr,
    shared: CUdeviceptr,
    output: CUdeviceptr,
    scratch: CUdeviceptr,
}

impl Bench<'_> {
    fn run(&self, case: &Case, function: CUfunction) -> Result<(), String> {
        let (tensor, shared) = (case.tensor(), case.shared());
        let is_team = case.has("multimem");
        let id = self.endpoints.map_or(0, |endpoints| endpoints.id(is_team));
        // Where the tensor lies, and whether the instruction reaches it there.
        let own = match self.endpoints {
            None => vec![(self.tensor, true)],
            Some(endpoints) => (0..DEVICES)
                .map(|device| (endpoints.own[device], Endpoints::has(is_team, device)))
                .collect(),
        };
        for (at, _) in &own {
            ok(cuMemcpyHtoD(*at, tensor.as_ptr().cast(), TENSOR));
            if self.endpoints.is_some() {
                ok(cuMemcpyHtoD(
                    at + Endpoints::COUNTER,
                    1_u64.to_le_bytes().as_ptr().cast(),
                    8,
                ));
            }
        }
        ok(cuMemcpyHtoD(self.shared, shared.as_ptr().cast(), BOX));
        ok(cuMemsetD8(self.scratch, 0, 128));
        let mut map = case.encode(self.tensor)?;
        let (mut a, mut b, mut c, mut d) = (self.shared, self.output, self.tensor, self.scratch);
        let mut id = id;
        let mut parameters = [
            (&raw mut map).cast(),
            (&raw mut a).cast(),
            (&raw mut b).cast(),
            (&raw mut c).cast(),
            (&raw mut d).cast(),
            (&raw mut id).cast(),
        ];
        ok(cuLaunchKernel(
            function,
            1,
            1,
            1,
            32,
            1,
            1,
            0,
            null_mut(),
            parameters.as_mut_ptr(),
            null_mut(),
        ));
        match cuCtxSynchronize() {
            CUDA_SUCCESS => {}
            error => {
                return Err(format!(
                    "error {error}: {:?} {:?} at {:?}",
                    case.spec, case.way, case.start
                ));
            }
        }
        let mut found = vec![0; TENSOR];
        if matches!(case.what, What::Store | What::Reduce) {
            for &(at, reached) in &own {
                let mut expected = tensor.clone();
                let mut count = 1;
                if reached {
                    case.stored(&mut expected, &shared);
                    count += case.came();
                }
                self.compare(case, (at, &mut found), &expected, count)?;
            }
            return Ok(());
        }
        ok(cuMemcpyDtoH(found.as_mut_ptr().cast(), self.output, BOX));
        case.check(&shared, &found[..BOX], &tensor)?;
        if let Some(has) = case.pattern {
            let mut word = [0u8; 4];
            ok(cuMemcpyDtoH(word.as_mut_ptr().cast(), self.scratch, 4));
            let any = case
                .spec
                .pieces(&case.start, &case.way)
                .iter()
                .any(|piece| piece.from.is_some());
            if (word[0] == 1) != (has && any) {
                return Err(format!("reported: {}, expected {}", word[0], has && any));
            }
        }
        Ok(())
    }
}

impl Bench<'_> {
    /// What lies in memory after a store or a reduction, and what its counter says.
    fn compare(
        &self,
        case: &Case,
        (at, found): (CUdeviceptr, &mut [u8]),
        expected: &[u8],
        count: u64,
    ) -> Result<(), String> {
        ok(cuMemcpyDtoH(found.as_mut_ptr().cast(), at, TENSOR));
        if let Some(differs) = (0..TENSOR).find(|&at| found[at] != expected[at]) {
            return Err(format!(
                "byte {differs} of the tensor is {:#x}, expected {:#x}: {:?} {:?} at {:?}",
                found[differs], expected[differs], case.spec, case.way, case.start
            ));
        }
        if self.endpoints.is_none() {
            return Ok(());
        }
        let mut is = [0; 8];
        ok(cuMemcpyDtoH(is.as_mut_ptr().cast(), at + Endpoints::COUNTER, 8));
        match u64::from_le_bytes(is) {
            is if is == count => Ok(()),
            is => Err(format!("{is} bytes counted, expected {count}")),
        }
    }
}

/// What went wrong, a line each, and how many forms were executed.
pub fn run(rows: &[&Row], endpoints: Option<&Endpoints>) -> (usize, Vec<String>) {
    if rows.is_empty() {
        return (0, Vec::new());
    }
    let mut failures = Vec::new();
    let mut cases = Vec::new();
    for row in rows {
        match Case::of(row) {
            Some(case) => cases.push(case),
            None => failures.push(format!("{}: not understood", row.example)),
        }
    }
    let mut bench = Bench {
        endpoints,
        tensor: 0,
        shared: 0,
        output: 0,
        scratch: 0,
    };
    ok(cuMemAlloc(&mut bench.tensor, TENSOR));
    ok(cuMemAlloc(&mut bench.shared, BOX));
    ok(cuMemAlloc(&mut bench.output, BOX));
    ok(cuMemAlloc(&mut bench.scratch, 128));
    let mut batches: Vec<&[Case]> = cases.chunks(BATCH).collect();
    while let Some(batch) = batches.pop() {
        let (version, target) = device::header(batch[0].row, ("9.5", "sm_120a"));
        let mut text = format!(".version {version}\n.target {target}\n.address_size 64\n");
        for (i, case) in batch.iter().enumerate() {
            text += &case.kernel(&format!("k{i}"));
        }
        let text = CString::new(text).expect("text");
        let mut module = null_mut();
        let loaded = cuModuleLoadData(&mut module, text.as_ptr().cast());
        if loaded != CUDA_SUCCESS {
            if device::device().is_some() && batch.len() > 1 {
                let (first, second) = batch.split_at(batch.len() / 2);
                batches.extend([first, second]);
                continue;
            }
            failures.push(format!("module of {}: error {loaded}", batch[0].row.form));
            continue;
        }
        for (i, case) in batch.iter().enumerate() {
            let mut function = null_mut();
            let name = CString::new(format!("k{i}")).expect("a name");
            ok(cuModuleGetFunction(&mut function, module, name.as_ptr()));
            if let Err(why) = bench.run(case, function) {
                // A fault leaves nothing that could be used.
                let ends = why.starts_with("error");
                failures.push(format!("{}: {why}", case.row.example));
                if ends {
                    return (cases.len(), failures);
                }
            }
        }
        ok(cuModuleUnload(module));
    }
    for memory in [bench.tensor, bench.shared, bench.output, bench.scratch] {
        ok(cuMemFree(memory));
    }
    (cases.len(), failures)
}
