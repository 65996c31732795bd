//! What threads do together: barriers and exchanges where a whole block comes, votes and shuffles among known lanes.

use super::instructions::{Draw, PREDICATES};
use super::tree::Node;

impl Draw {
    /// Among the lanes of the register `mask`, all of which come here.
    pub fn lanes(&mut self, mask: &str) -> Node {
        let (d, a, p) = (self.word(), self.source(), self.predicate());
        let q = self.condition();
        let lines = match self.random.below(12) {
            0..=4 => self.shuffle(mask),
            5 => vec![format!("vote.sync.ballot.b32 {d}, {q}, {mask};")],
            6 => {
                let how = self.random.pick(&["all", "any", "uni"]);
                vec![format!("vote.sync.{how}.pred {p}, {q}, {mask};")]
            }
            7 => {
                let bits = self.random.below(4);
                // Few values, so that some are equal.
                vec![
                    format!("and.b32 %t0, {a}, {bits};"),
                    format!("match.any.sync.b32 {d}, %t0, {mask};"),
                ]
            }
            8 => {
                let long = self.double();
                let other = format!("%p{}", self.random.below(PREDICATES));
                match self.random.below(3) {
                    0 => vec![format!("match.any.sync.b64 {d}, {long}, {mask};")],
                    1 => vec![format!("match.all.sync.b32 {d}|{other}, {a}, {mask};")],
                    _ => vec![
                        format!("and.b32 %t0, {a}, 0;"),
                        format!("match.all.sync.b32 {d}|{other}, %t0, {mask};"),
                    ],
                }
            }
            9 | 10 => {
                let how = self.random.pick(&[
                    "add.u32", "add.s32", "min.u32", "max.s32", "min.s32", "max.u32", "and.b32", "or.b32", "xor.b32",
                ]);
                vec![format!("redux.sync.{how} {d}, {a}, {mask};")]
            }
            _ => vec![format!("bar.warp.sync {mask};")],
        };
        Node::Unit { lines, guard: None }
    }

    /// What comes from a lane outside of the mask is undefined, so it is put aside for the lane's own number.
    fn shuffle(&mut self, mask: &str) -> Vec<String> {
        let (d, a) = (self.word(), self.source());
        let by = self.random.pick(&[1usize, 2, 3, 4, 8, 16, 5, 31]);
        let (q, r) = ("%q2", "%q3");
        let from_mask = |lines: &mut Vec<String>, source: &str| {
            lines.push(format!("and.b32 %t3, {source}, 31;"));
            lines.push(format!("shr.u32 %t4, {mask}, %t3;"));
            lines.push("and.b32 %t4, %t4, 1;".to_string());
            lines.push(format!("setp.ne.u32 {q}, %t4, 0;"));
        };
        let mut lines = Vec::new();
        let how = self.random.pick(&["idx", "idx", "up", "down", "bfly"]);
        if how == "idx" {
            let index = match self.random.below(3) {
                0 => self.random.below(32).to_string(),
                _ => self.source(),
            };
            lines.push(format!("mov.b32 %t2, {index};"));
            from_mask(&mut lines, "%t2");
            // A lane that is not there is replaced before.
            lines.push(format!("selp.b32 %t2, %t3, %lane, {q};"));
            lines.push(match self.random.chance(30) {
                true => format!("shfl.sync.idx.b32 {d}|{r}, {a}, %t2, 31, {mask};"),
                false => format!("shfl.sync.idx.b32 {d}, {a}, %t2, 31, {mask};"),
            });
            return lines;
        }
        let (op, clamp) = match how {
            "up" => ("sub.s32", 0),
            "down" => ("add.s32", 31),
            _ => ("xor.b32", 31),
        };
        lines.push(format!("{op} %t2, %lane, {by};"));
        from_mask(&mut lines, "%t2");
        lines.push(format!("shfl.sync.{how}.b32 %t5|{r}, {a}, {by}, {clamp}, {mask};"));
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
        let lines = match self.random.below(8) {
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
        Node::Unit { lines, guard: None }
    }
}
