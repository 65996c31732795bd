//! Registers in memory with a number for every lane of the warp: in the window, where those are that do not change, and for kernels
//! in scratch memory.

use crate::isa::lanes::Width;
use crate::program::Reg;

use super::super::compute::bits_of;
use super::{Emit, LANES};

impl Emit<'_> {
    /// The numbers that are kept of a line from the window, where all lanes are on it.
    pub(super) fn bases_in_slot(&mut self, reg: Reg, window: &str, how: &str) -> Vec<String> {
        let bits = bits_of(reg.width).unwrap_or(32);
        let slot = self.slot(reg.number);
        (0..self.kept_bases_of(reg.number))
            .map(|number| {
                let lane = number * LANES as usize / self.kept_bases_of(reg.number);
                let at = self.place(window, slot + lane * bits as usize / 8);
                self.text.value(format!("load i{bits}, ptr {at}{how}"))
            })
            .collect()
    }

    /// A number for each lane from memory: so many bytes behind a place, one after the other; predicates are bits of a word.
    pub(super) fn load_lanes(&mut self, place: &str, start: usize, width: Width) -> Vec<String> {
        let Some(bits @ 2..) = bits_of(width) else {
            // Where the CPU has registers for bits, they come from memory as they are. (Not as words that become bits: LLVM 19 makes of what is
            // done with these what is done with words, and the other way round, sometimes for ever.)
            if self.lanes == 16 {
                return (0..self.parts)
                    .map(|part| {
                        let at = self.place(place, start + 2 * part);
                        self.text.value(format!("load <16 x i1>, ptr {at}, align 2"))
                    })
                    .collect();
            }
            let at = self.place(place, start);
            let word = self.text.value(format!("load i32, ptr {at}"));
            return self.spread(&word);
        };
        let ty = self.form().int(bits);
        let bytes = (bits / 8 * self.lanes) as usize;
        (0..self.parts)
            .map(|part| {
                let at = self.place(place, start + part * bytes);
                self.text.value(format!("load {ty}, ptr {at}, align {}", bytes.min(64)))
            })
            .collect()
    }

    /// The way back.
    pub(super) fn store_lanes(&mut self, place: &str, start: usize, width: Width, values: &[String]) {
        let Some(bits @ 2..) = bits_of(width) else {
            if self.lanes == 16 {
                for (part, bits) in values.iter().enumerate() {
                    let at = self.place(place, start + 2 * part);
                    self.text.line(format!("store <16 x i1> {bits}, ptr {at}, align 2"));
                }
                return;
            }
            let word = self.bits(values);
            let at = self.place(place, start);
            self.text.line(format!("store i32 {word}, ptr {at}"));
            return;
        };
        let ty = self.form().int(bits);
        let bytes = (bits / 8 * self.lanes) as usize;
        for (part, value) in values.iter().enumerate() {
            let at = self.place(place, start + part * bytes);
            self.text
                .line(format!("store {ty} {value}, ptr {at}, align {}", bytes.min(64)));
        }
    }

    /// All lanes of a register from the window.
    pub(super) fn load_slot(&mut self, reg: Reg) -> Vec<String> {
        self.load_lanes("%regs", self.slot(reg.number), reg.width)
    }
}
