//! Lines in the block's shared window of which some lanes run: what counts is where the first and the last of those go. Lanes that do not
//! run often lie outside: `if (i >= 2) sum += s[i - 2]`, or a tile's last columns, at the end of all that the block has.
//!
//! Vectors reach the others, too, so there is room before and behind the window, which nobody looks at ([`AROUND`]).

use std::mem::offset_of;

use super::super::context::{AROUND, Context};
use super::super::text::Form;
use super::place::Near;
use super::{Emit, LANES};

/// Addresses of lines, and whether a lane that runs leaves the window.
pub(super) type Ends = (Vec<String>, Option<String>);

impl Emit<'_> {
    /// Rows of all lanes, of which the one that begins first is at such a distance.
    pub(super) fn rows_in_window(&mut self, distance: &str, reach: u64, near: &Near) -> Ends {
        let shared = self.field(offset_of!(Context, shared), "i64", true);
        let all = self.field(offset_of!(Context, shared_bytes), "i64", true);
        let end = self.text.value(format!("add i64 {distance}, {}", reach + near.span));
        let beyond = self.text.value(format!("icmp ugt i64 {end}, {all}"));
        let first = self.text.value(format!("add i64 {shared}, {distance}"));
        let at = near.behind.iter();
        let at = at.map(|behind| self.text.value(format!("add i64 {first}, {behind}")));
        (at.collect(), Some(beyond))
    }

    /// Lines at such distances, numbers of 32 bits, from where the window begins, all of whose lanes reach so far together.
    pub(super) fn in_window(&mut self, distances: Vec<String>, reach: u64, step: u64) -> Ends {
        let shared = self.field(offset_of!(Context, shared), "i64", true);
        let all = self.field(offset_of!(Context, shared_bytes), "i64", true);
        let lanes = LANES / distances.len() as u32;
        // Of the line, but for the last lane.
        let line = step * u64::from(lanes - 1);
        let mask = self.mask.clone().filter(|_| line > 0 && line <= AROUND);
        let (mut at, mut bad) = (Vec::new(), None);
        for (number, distance) in distances.into_iter().enumerate() {
            let Some(mask) = &mask else {
                let end = self.text.value(format!("add i64 {distance}, {reach}"));
                let beyond = self.text.value(format!("icmp ugt i64 {end}, {all}"));
                bad = self.or(bad, beyond);
                at.push(self.text.value(format!("add i64 {shared}, {distance}")));
                continue;
            };
            let running = match lanes {
                LANES => self.bits(mask),
                lanes if lanes == self.lanes => {
                    let word = self.word_of(&mask[number]);
                    self.text.value(format!("zext i{lanes} {word} to i32"))
                }
                lanes => {
                    let all = self.bits(mask);
                    let from = self.text.value(format!("lshr i32 {all}, {}", number as u32 * lanes));
                    self.text.value(format!("and i32 {from}, {}", (1u32 << lanes) - 1))
                }
            };
            let [before, behind] = ["cttz", "ctlz"].map(|count| {
                let count = format!("call i32 @llvm.{count}.i32(i32 {running}, i1 false)");
                let count = self.text.value(count);
                self.text.resize(Form::One, 32, &count, 64, false)
            });
            // Bytes to the first lane that runs, and from the last one on.
            let before = self.text.value(format!("mul i64 {before}, {step}"));
            let behind = self.text.value(format!("mul i64 {behind}, {step}"));
            let first = self.text.value(format!("add i64 {distance}, {before}"));
            let first = self.text.value(format!("and i64 {first}, 4294967295"));
            // Lanes of a word that the line does not have count as well.
            let rest = reach + step * u64::from(LANES - lanes);
            let rest = self.text.value(format!("sub i64 {rest}, {behind}"));
            let rest = self.text.value(format!("sub i64 {rest}, {before}"));
            let end = self.text.value(format!("add i64 {first}, {rest}"));
            let beyond = self.text.value(format!("icmp ugt i64 {end}, {all}"));
            let from = self.text.value(format!("sub i64 {first}, {before}"));
            let from = self.text.value(format!("add i64 {shared}, {from}"));
            // Where no lane runs, it may lie anywhere.
            let none = self.text.value(format!("icmp eq i32 {running}, 0"));
            let beyond = match reach <= AROUND {
                true => {
                    at.push(self.text.value(format!("select i1 {none}, i64 {shared}, i64 {from}")));
                    self.text.value(format!("select i1 {none}, i1 false, i1 {beyond}"))
                }
                false => {
                    at.push(from);
                    self.text.value(format!("or i1 {none}, {beyond}"))
                }
            };
            bad = self.or(bad, beyond);
        }
        (at, bad)
    }
}
