//! Texels of a row of ordinary memory by their numbers, as `tex1Dfetch` reads them: words that lanes load wherever they are. The instruction
//! remembers the texture that it read the last time, as accesses remember where memory is. All other reads of textures are the
//! interpreter's.

use crate::isa::lanes::Width;
use crate::isa::operation::Geometry;
use crate::program::ir::texture::{Components, Detail, TextureOp};
use crate::program::{Address, Op, Space};

use super::super::Pc;
use super::super::text::Form;
use super::Emit;
use super::place::{Place, Spread};

/// Texels have as many words.
const CHANNELS: [u64; 3] = [1, 2, 4];

impl Emit<'_> {
    /// `false`: it is not of a kind that is known here.
    pub(super) fn texel(&mut self, texture: &TextureOp, op: &Op, pc: Pc) -> bool {
        let TextureOp {
            texture: handle,
            sampler: None,
            geometry: Geometry::D1,
            floats: false,
            layer: None,
            at,
            detail: Detail::Base,
            offset,
            compare: None,
            gather: None,
            components: Components::Words,
            dst,
            dst_pred: None,
        } = texture
        else {
            return false;
        };
        let is_word = |width: Width| width == Width::B32;
        let (&[at], []) = (&at[..], &offset[..]) else {
            return false;
        };
        if !is_word(at.width) || !dst.iter().flatten().all(|reg| is_word(reg.width)) || dst.len() != 4 {
            return false;
        }
        let form = self.form();
        // Its handle and where it is; how many texels it has, and of which kind.
        let (site, known, base) = self.site(0);
        let (_, width, kind) = self.site(0);
        let narrow = self.text.resize(Form::One, 64, &width, 32, false);
        let width = self.splat("i32", &narrow);
        let numbers = self.lanes_of(at, false);
        let mut bad: Vec<String> = numbers
            .iter()
            .map(|number| self.text.value(format!("icmp uge {} {number}, {width}", form.int(32))))
            .collect();
        let same = self.kind(handle.number).is_same();
        if !same {
            let known = self.splat("i64", &known);
            let handles = self.lanes_of(*handle, false);
            let others = handles
                .iter()
                .map(|handle| self.text.value(format!("icmp ne {} {handle}, {known}", form.int(64))));
            let others: Vec<String> = others.collect();
            bad = self.each(&bad, &others, "or");
        }
        if let Some(mask) = self.mask.clone() {
            bad = self.each(&bad, &mask, "and");
        }
        let mut bad = self.any(&bad);
        if same {
            let handle = self.line_of(*handle, false).0.swap_remove(0);
            let other = self.text.value(format!("icmp ne i64 {handle}, {known}"));
            bad = self.text.binary("or", "i1", &bad, &other);
        }
        let [slow, fast, done] = ["slow", "fast", "done"].map(|what| self.text.name(what));
        self.rarely(&bad, &slow, &fast);
        self.text.label(&slow);
        self.step(op, pc, Some(site));
        self.jump(&done);
        self.text.label(&fast);
        let channels = self.text.resize(Form::One, 64, &kind, 32, false);
        let upper = self.text.binary("lshr", "i64", &kind, "32");
        let one = self.text.resize(Form::One, 64, &upper, 32, false);
        let ways = CHANNELS.map(|_| self.text.name("texels"));
        let cases: String = CHANNELS[1..]
            .iter()
            .zip(&ways[1..])
            .map(|(channels, way)| format!(" i32 {channels}, label %{way}"))
            .collect();
        self.text
            .line(format!("switch i32 {channels}, label %{} [{cases} ]", ways[0]));
        let address = Address {
            space: Space::Global,
            register: Some(at),
            offset: 0,
        };
        for (count, way) in CHANNELS.into_iter().zip(&ways) {
            self.text.label(way);
            let place = Place::Lanes(Spread {
                base: base.clone(),
                distances: numbers.clone(),
                bits: 32,
                scale: 4 * count,
                end: None,
            });
            let (there, lacking) = dst.split_at(count as usize);
            let wanted: Vec<bool> = there.iter().map(Option::is_some).collect();
            let element = crate::program::Element {
                bytes: 4,
                signed: false,
            };
            let loaded = self.load_from((&address, &place), 4, &wanted, &base);
            self.write_loaded(loaded, element, there);
            for (number, reg) in (count..).zip(lacking) {
                let Some(reg) = *reg else { continue };
                let value = match number {
                    3 => self.splat("i32", &one),
                    _ => form.constant(32, 0),
                };
                self.write_lanes(reg, &vec![value; self.parts]);
            }
            self.jump(&done);
        }
        self.text.label(&done);
        true
    }
}
