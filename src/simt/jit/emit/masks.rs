//! Masks: which lanes of a warp run, as vectors of bits, as words, and as the flags of those who wait at a unit.

use std::fmt::Write;

use super::{Emit, Node};

/// Flags beyond so many have places in memory. As values each lives from where it is set to its unit, through all units between, and
/// has a phi at every one: LLVM spends half of its time on them, and spills them in the end.
const MOST_FLAGS_IN_REGISTERS: usize = 384;

/// Labels of code that is passed by: before it, in it and behind it.
pub(super) struct Passed {
    pub(super) before: String,
    pub(super) some: String,
    pub(super) behind: String,
}

impl Emit<'_> {
    /// Of bits as they live on ([`super::super::text::Text::flag`]).
    pub(super) fn flag_type(&self) -> String {
        self.form().int(self.flag_bits())
    }

    fn flag_bits(&self) -> u32 {
        if self.form().has_flags() { 32 } else { 1 }
    }

    pub(super) fn flag_of(&mut self, bits: &str) -> String {
        let form = self.form();
        self.text.flag(form, bits)
    }

    pub(super) fn of_flag(&mut self, flag: &str) -> String {
        let form = self.form();
        self.text.of_flag(form, flag)
    }

    /// Places for the flags of all nodes at which somebody may wait; nobody does yet.
    pub(super) fn place_flags(&mut self, count: Node) {
        let ty = self.flag_type();
        let nobody = self.form().constant(self.flag_bits(), 0);
        let nodes: Vec<Node> = (0..2 * count).filter(|node| self.used.contains(node)).collect();
        let all = nodes.len() * self.parts;
        let head = &mut self.head;
        if all > MOST_FLAGS_IN_REGISTERS {
            // Parts of an array, which LLVM's `mem2reg` leaves where they are.
            let bytes = all * if self.lanes == 16 { 2 } else { 4 * self.lanes as usize };
            let _ = writeln!(head, "  %flags = alloca [{all} x {ty}], align 64");
            let _ = writeln!(
                head,
                "  call void @llvm.memset.p0.i64(ptr %flags, i8 0, i64 {bytes}, i1 false)"
            );
            for at in 0..all {
                let (node, part) = (nodes[at / self.parts], at % self.parts);
                let place = format!("getelementptr inbounds [{all} x {ty}], ptr %flags, i64 0, i64 {at}");
                let _ = writeln!(head, "  %p{node}.{part} = {place}");
            }
            return;
        }
        for node in nodes {
            for part in 0..self.parts {
                let _ = writeln!(head, "  %p{node}.{part} = alloca {ty}");
                // Where nobody comes from elsewhere, whoever asks has stored it.
                if self.flags.contains(&node) {
                    let _ = writeln!(head, "  store {ty} {nobody}, ptr %p{node}.{part}");
                }
            }
        }
    }

    pub(super) fn load_flags(&mut self, node: Node) -> Vec<String> {
        self.used.insert(node);
        let ty = self.flag_type();
        (0..self.parts)
            .map(|part| {
                let flag = self.text.value(format!("load {ty}, ptr %p{node}.{part}"));
                self.of_flag(&flag)
            })
            .collect()
    }

    pub(super) fn store_flags(&mut self, node: Node, mask: &[String]) {
        self.used.insert(node);
        let ty = self.flag_type();
        for (part, bits) in mask.iter().enumerate() {
            let flag = self.flag_of(bits);
            self.text.line(format!("store {ty} {flag}, ptr %p{node}.{part}"));
        }
    }

    /// Whoever has waited at a node goes on.
    pub(super) fn nobody_waits(&mut self, node: Node) {
        let nobody = vec![self.form().constant(1, 0); self.parts];
        self.store_flags(node, &nobody);
    }

    /// Lanes go to a node, where others may be already.
    pub(super) fn add_flags(&mut self, node: Node, mask: &[String]) {
        if !self.plan.others[self.unit as usize].contains(&node) || self.full {
            self.store_flags(node, mask);
            return;
        }
        let there = self.load_flags(node);
        let both = self.each(mask, &there, "or");
        self.store_flags(node, &both);
    }

    pub(super) fn each(&mut self, a: &[String], b: &[String], op: &str) -> Vec<String> {
        let form = self.form();
        a.iter().zip(b).map(|(a, b)| self.text.logic(op, form, a, b)).collect()
    }

    pub(super) fn not(&mut self, a: &[String]) -> Vec<String> {
        let ones = vec![self.form().constant(1, 1); a.len()];
        self.each(a, &ones, "xor")
    }

    /// One bit a lane.
    pub(super) fn bits(&mut self, mask: &[String]) -> String {
        let lanes = self.lanes;
        let mut all: Option<String> = None;
        for (part, bits) in mask.iter().enumerate() {
            let word = self.word_of(bits);
            let word = self.text.value(format!("zext i{lanes} {word} to i32"));
            let word = match part {
                0 => word,
                _ => self.text.value(format!("shl i32 {word}, {}", part as u32 * lanes)),
            };
            all = Some(match all {
                None => word,
                Some(all) => self.text.value(format!("or i32 {all}, {word}")),
            });
        }
        all.unwrap_or_default()
    }

    /// A mask from one bit a lane.
    pub(super) fn spread(&mut self, bits: &str) -> Vec<String> {
        let lanes = self.lanes;
        let form = self.form();
        (0..self.parts)
            .map(|part| {
                let word = self.text.value(format!("lshr i32 {bits}, {}", part as u32 * lanes));
                let all = self.splat("i32", &word);
                let each: Vec<String> = (0..lanes).map(|lane| format!("i32 {}", 1u32 << lane)).collect();
                let each = format!("<{}>", each.join(", "));
                let one = self.text.binary("and", &form.int(32), &all, &each);
                self.text
                    .value(format!("icmp ne {} {one}, {}", form.int(32), form.constant(32, 0)))
            })
            .collect()
    }

    /// The bits of a part's lanes.
    pub(super) fn word_of(&mut self, mask: &str) -> String {
        let (ty, lanes) = (self.form().int(1), self.lanes);
        self.text.convert("bitcast", &ty, mask, &format!("i{lanes}"))
    }

    /// What follows is passed by where a part has no lane that runs: reductions and scans leave most parts so.
    pub(super) fn pass(&mut self, running: &str) -> Passed {
        let [before, some, behind] = ["before", "some", "behind"].map(|what| self.text.name(what));
        self.jump(&before);
        self.text.label(&before);
        let any = self.text.value(format!("icmp ne i{} {running}, 0", self.lanes));
        self.branch(&any, &some, &behind);
        self.text.label(&some);
        Passed { before, some, behind }
    }

    /// Whether any lane is in a mask.
    pub(super) fn any(&mut self, mask: &[String]) -> String {
        let (form, lanes) = (self.form(), self.lanes);
        let mut all = mask[0].clone();
        for more in &mask[1..] {
            all = self.text.logic("or", form, &all, more);
        }
        let word = self.word_of(&all);
        self.text.value(format!("icmp ne i{lanes} {word}, 0"))
    }

    pub(super) fn all(&mut self, mask: &[String]) -> String {
        let (form, lanes) = (self.form(), self.lanes);
        let mut all = mask[0].clone();
        for more in &mask[1..] {
            all = self.text.logic("and", form, &all, more);
        }
        let word = self.word_of(&all);
        self.text.value(format!("icmp eq i{lanes} {word}, -1"))
    }

    /// Bits of the lanes for which the code runs at this place.
    pub(super) fn mask_bits(&mut self) -> String {
        match self.mask.clone() {
            None => "-1".to_owned(),
            Some(mask) => self.bits(&mask),
        }
    }

    pub(super) fn splat(&mut self, element: &str, value: &str) -> String {
        let form = self.form();
        self.text.splat(form, element, value)
    }

    pub(super) fn branch(&mut self, by: &str, yes: &str, no: &str) {
        self.text.line(format!("br i1 {by}, label %{yes}, label %{no}"));
    }

    /// A branch whose first way is hardly ever taken.
    pub(super) fn rarely(&mut self, by: &str, yes: &str, no: &str) {
        self.text
            .line(format!("br i1 {by}, label %{yes}, label %{no}, !prof !1"));
    }

    pub(super) fn jump(&mut self, to: &str) {
        self.text.line(format!("br label %{to}"));
    }
}
