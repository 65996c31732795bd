//! What threads do together: barriers and exchanges where a whole block comes, votes and shuffles among known lanes.

use super::instructions::{Draw, PREDICATES};
use super::tree::Node;

impl Draw {
    /// Among the lanes of the register `mask`, all of which come here.
    pub fn lanes(&mut self, mask: &str) -> Node {
        // Where the warp has all its lanes here, a program mostly names 32, whether they exist or not.
        let named = match mask == "%full" && self.random.chance(60) {
            true => "0xffffffff",
            false => mask,
        };
        if mask == "%full" && self.random.chance(10) {
            return self.broadcast(named);
        }
        let (d, a, p) = (self.word(), self.source(), self.predicate());
        let q = self.condition();
        let lines = match self.random.below(12) {
            0..=4 => self.shuffle(mask, named),
            5 => vec![format!("vote.sync.ballot.b32 {d}, {q}, {named};")],
            6 => {
                let how = self.random.pick(&["all", "any", "uni"]);
                vec![format!("vote.sync.{how}.pred {p}, {q}, {named};")]
            }
            7 => {
                let bits = self.random.below(4);
                // Few values, so that some are equal.
                vec![
                    format!("and.b32 %t0, {a}, {bits};"),
                    format!("match.any.sync.b32 {d}, %t0, {named};"),
                ]
            }
            8 => {
                let long = self.double();
                let other = format!("%p{}", self.random.below(PREDICATES));
                match self.random.below(3) {
                    0 => vec![format!("match.any.sync.b64 {d}, {long}, {named};")],
                    1 => vec![format!("match.all.sync.b32 {d}|{other}, {a}, {named};")],
                    _ => vec![
                        format!("and.b32 %t0, {a}, 0;"),
                        format!("match.all.sync.b32 {d}|{other}, %t0, {named};"),
                    ],
                }
            }
            9 | 10 => {
                let how = self.random.pick(&[
                    "add.u32", "add.s32", "min.u32", "max.s32", "min.s32", "max.u32", "and.b32", "or.b32", "xor.b32",
                ]);
                vec![format!("redux.sync.{how} {d}, {a}, {named};")]
            }
            _ => vec![format!("bar.warp.sync {named};")],
        };
        Node::Unit { lines, guard: None }
    }

    /// From one lane to all others: the first, or one that the block's place in the grid names, among those that each warp has.
    fn broadcast(&mut self, named: &str) -> Node {
        let (d, a) = (self.word(), self.source());
        let lines = match self.random.chance(50) {
            true => vec![format!("shfl.sync.idx.b32 {d}|%q3, {a}, 0, 31, {named};")],
            false => vec![
                // The largest power of two of which the block's threads are a multiple.
                "neg.s32 %t0, %nt;".to_string(),
                "and.b32 %t0, %t0, %nt;".to_string(),
                "min.u32 %t0, %t0, 32;".to_string(),
                "mov.u32 %t1, %ctaid.x;".to_string(),
                "mad.lo.u32 %t1, %t1, 5, 3;".to_string(),
                "rem.u32 %t1, %t1, %t0;".to_string(),
                format!("shfl.sync.idx.b32 {d}, {a}, %t1, 31, {named};"),
            ],
        };
        Node::Unit { lines, guard: None }
    }

    /// What comes from a lane outside of the mask is undefined, so it is put aside for the lane's own number.
    fn shuffle(&mut self, mask: &str, named: &str) -> Vec<String> {
        let (d, a) = (self.word(), self.source());
        // A number of the program, one of the block's, or each lane's own.
        let mut lines = Vec::new();
        let by = match self.random.below(4) {
            0 => {
                lines.push("mov.u32 %t6, %ctaid.x;".to_string());
                lines.push(format!("mad.lo.u32 %t6, %t6, 5, {};", self.random.below(32)));
                lines.push("and.b32 %t6, %t6, 31;".to_string());
                "%t6".to_string()
            }
            1 => {
                lines.push(format!("and.b32 %t6, {}, 31;", self.source()));
                "%t6".to_string()
            }
            _ => self.random.pick(&[1usize, 2, 3, 4, 8, 16, 5, 31]).to_string(),
        };
        let segment = match self.random.chance(30) {
            true => self.random.pick(&[0x10u32, 0x18, 0x1c, 0x1e]),
            false => 0,
        };
        let (q, r) = ("%q2", "%q3");
        let from_mask = |lines: &mut Vec<String>, source: &str| {
            lines.push(format!("and.b32 %t3, {source}, 31;"));
            lines.push(format!("shr.u32 %t4, {mask}, %t3;"));
            lines.push("and.b32 %t4, %t4, 1;".to_string());
            lines.push(format!("setp.ne.u32 {q}, %t4, 0;"));
        };
        let how = self.random.pick(&["idx", "idx", "up", "down", "bfly"]);
        if how == "idx" {
            let index = match self.random.below(3) {
                0 => self.random.below(32).to_string(),
                1 => by,
                _ => self.source(),
            };
            lines.push(format!("mov.b32 %t2, {index};"));
            if segment != 0 {
                // Those bits are the lane's own.
                lines.push(format!("and.b32 %t2, %t2, {};", !segment & 0x1f));
                lines.push(format!("and.b32 %t4, %lane, {segment};"));
                lines.push("or.b32 %t2, %t2, %t4;".to_string());
            }
            from_mask(&mut lines, "%t2");
            // A lane that is not there is replaced before.
            lines.push(format!("selp.b32 %t2, %t3, %lane, {q};"));
            let clamp = segment << 8 | 31;
            lines.push(match self.random.chance(30) {
                true => format!("shfl.sync.idx.b32 {d}|{r}, {a}, %t2, {clamp}, {named};"),
                false => format!("shfl.sync.idx.b32 {d}, {a}, %t2, {clamp}, {named};"),
            });
            return lines;
        }
        let (op, clamp) = match how {
            "up" => ("sub.s32", 0),
            "down" => ("add.s32", 31),
            _ => ("xor.b32", 31),
        };
        let clamp = segment << 8 | clamp;
        lines.push(format!("{op} %t2, %lane, {by};"));
        from_mask(&mut lines, "%t2");
        lines.push(format!("shfl.sync.{how}.b32 %t5|{r}, {a}, {by}, {clamp}, {named};"));
        // Beyond the ends `r` is false, and what comes is the lane's own.
        lines.push(format!("not.pred %q4, {r};"));
        lines.push(format!("or.pred {q}, {q}, %q4;"));
        lines.push(format!("selp.b32 {d}, %t5, %lane, {q};"));
        lines
    }

    /// Where all threads of the block come.
    pub fn block(&mut self) -> Node {
        let (d, a, p) = (self.word(), self.source(), self.predicate());
        let q = self.condition();
        let number = self.random.below(3);
        let mut lines = match self.random.below(8) {
            0 => vec![format!("bar.sync {number};")],
            1 => vec![format!("barrier.sync {number};")],
            2 => vec![format!("bar.red.popc.u32 {d}, {number}, {q};")],
            3 => {
                let how = self.random.pick(&["and", "or"]);
                vec![format!("bar.red.{how}.pred {p}, {number}, {q};")]
            }
            4 | 5 => {
                // Each writes its own place and reads another's.
                let by = self.random.pick(&[1usize, 2, 7, 16, 32, 33]);
                vec![
                    "mad.wide.u32 %w0, %lt, 4, %Psexc;".to_string(),
                    format!("st.shared.b32 [%w0], {a};"),
                    format!("add.u32 %t0, %lt, {by};"),
                    "rem.u32 %t0, %t0, %nt;".to_string(),
                    "mad.wide.u32 %w0, %t0, 4, %Psexc;".to_string(),
                    format!("bar.sync {number};"),
                    format!("ld.shared.b32 {d}, [%w0];"),
                    format!("bar.sync {number};"),
                ]
            }
            6 => {
                let (from, to) = (self.double(), self.double());
                vec![
                    "mad.wide.u32 %w0, %lt, 8, %Psexc;".to_string(),
                    format!("st.shared.b64 [%w0], {from};"),
                    format!("rem.u32 %t0, {a}, %nt;"),
                    "mad.wide.u32 %w0, %t0, 8, %Psexc;".to_string(),
                    format!("bar.sync {number};"),
                    format!("ld.shared.b64 {to}, [%w0];"),
                    format!("bar.sync {number};"),
                ]
            }
            _ => {
                // A step of a tree: half of the threads add what the others have.
                let (from, to) = (self.float(), self.float());
                vec![
                    "mad.wide.u32 %w0, %lt, 4, %Psexc;".to_string(),
                    format!("st.shared.f32 [%w0], {from};"),
                    format!("bar.sync {number};"),
                    "shr.u32 %t0, %nt, 1;".to_string(),
                    "setp.lt.u32 %q0, %lt, %t0;".to_string(),
                    "mad.wide.u32 %w1, %t0, 4, %w0;".to_string(),
                    "@%q0 ld.shared.f32 %g0, [%w1];".to_string(),
                    format!("@%q0 add.f32 {to}, {to}, %g0;"),
                    format!("bar.sync {number};"),
                ]
            }
        };
        lines.iter_mut().for_each(|line| self.strengthen(line));
        Node::Unit { lines, guard: None }
    }
}
