//! Loads, stores and atomics. Every address is made from an index that is masked, so that each is legal; a thread writes
//! what is its own, reads tables that nobody writes, and adds to sums of which the order does not matter.

use super::instructions::{DOUBLES, Draw, FLOATS, HALVES, LONGS, WORDS};
use super::tree::Node;

/// Bytes of the table, and of what each thread has for itself in global, local and shared memory.
pub const TABLE: usize = 4096;
pub const OWN: usize = 128;
const LOCAL: usize = 64;
const SHARED: usize = 16;
/// Elements of eight bytes that each thread has, a row of all threads for each.
pub const ROWS: usize = 8;
/// Sums: a row of 64 bytes for each operation.
pub const SUMS: usize = 512;

impl Draw {
    /// The type of an access of at most `most` bytes, its bytes, and registers for it.
    fn access(&mut self, most: usize) -> (String, usize, String) {
        loop {
            let (kind, bytes) = self.random.pick(&[
                ("b8", 1),
                ("s8", 1),
                ("u16", 2),
                ("s16", 2),
                ("b16", 2),
                ("b32", 4),
                ("u32", 4),
                ("b32", 4),
                ("f32", 4),
                ("f32", 4),
                ("b64", 8),
                ("u64", 8),
                ("f64", 8),
            ]);
            let count = self.random.pick(&[1, 1, 1, 2, 4]);
            if bytes * count > most.min(16) {
                continue;
            }
            // Narrow ones go to wider registers too: extended by loads, cut by stores.
            let (letter, pool) = match (kind, bytes) {
                ("f32", _) => ('f', FLOATS),
                ("f64", _) => ('e', LONGS),
                (_, 1 | 2) if self.random.chance(50) => ('h', HALVES),
                (_, 1 | 2 | 4) => ('r', WORDS),
                _ => ('d', DOUBLES),
            };
            let first = self.random.below(pool);
            let names: Vec<String> = (0..count).map(|i| format!("%{letter}{}", (first + i) % pool)).collect();
            return match count {
                1 => (kind.to_string(), bytes, names.concat()),
                _ => (
                    format!("v{count}.{kind}"),
                    bytes * count,
                    format!("{{{}}}", names.join(", ")),
                ),
            };
        }
    }

    /// A place among `room` bytes from `base`: a number, or computed from a register.
    fn place(&mut self, base: &str, room: usize, bytes: usize, lines: &mut Vec<String>) -> String {
        let count = room / bytes;
        if self.random.chance(40) {
            return format!("[{base}+{}]", self.random.below(count) * bytes);
        }
        let index = match self.random.below(3) {
            0 => {
                let (a, b) = (self.source(), self.random.below(9));
                lines.push(format!("mul.lo.u32 %t0, {a}, {b};"));
                "%t0".to_string()
            }
            _ => self.source(),
        };
        lines.push(format!("and.b32 %t1, {index}, {};", count - 1));
        lines.push(format!("mad.wide.u32 %w0, %t1, {bytes}, {base};"));
        "[%w0]".to_string()
    }

    /// One load or store.
    pub fn memory(&mut self, function: bool) -> Node {
        let guard = self.random.chance(20).then(|| self.condition());
        let mut lines = Vec::new();
        let own = [
            ("%Pown", "global", OWN),
            ("%Pown", "", OWN),
            ("%Ploc", "local", LOCAL),
            ("%Psown", "shared", SHARED),
        ];
        match self.random.below(13) {
            0..=2 => {
                let (kind, bytes, to) = self.access(16);
                let at = self.place("%Ptab", TABLE, bytes, &mut lines);
                let space = self.random.pick(&[".global", ".global.nc", ""]);
                lines.push(format!("ld{space}.{kind} {to}, {at};"));
            }
            3 => {
                let (kind, bytes, to) = self.access(16);
                let at = self.place("%Pctab", 256, bytes, &mut lines);
                lines.push(format!("ld.const.{kind} {to}, {at};"));
            }
            4 if !function => {
                let (kind, bytes, to) = self.access(16);
                lines.push(format!(
                    "ld.param.{kind} {to}, [p_values+{}];",
                    self.random.below(64 / bytes) * bytes
                ));
            }
            5 | 6 if !function => {
                // Neighbours have what lies beside: one row of all threads after the other.
                let (kind, _, value) = loop {
                    let access = self.access(8);
                    if !access.0.starts_with('v') {
                        break access;
                    }
                };
                lines.push(format!("mul.wide.u32 %w0, %ntg, {};", 8 * self.random.below(ROWS)));
                lines.push("add.u64 %w0, %w0, %Psoa;".to_string());
                let store = self.random.chance(50);
                lines.push(match store {
                    true => format!("st.global.{kind} [%w0], {value};"),
                    false => format!("ld.global.{kind} {value}, [%w0];"),
                });
            }
            4..=8 => {
                let (base, space, room) = self.random.pick(&own[..if function { 3 } else { 4 }]);
                let dot = if space.is_empty() { "" } else { "." };
                let store = self.random.chance(50);
                let (kind, bytes, value) = self.access(room);
                let at = self.place(base, room, bytes, &mut lines);
                lines.push(match store {
                    true => format!("st{dot}{space}.{kind} {at}, {value};"),
                    false => format!("ld{dot}{space}.{kind} {value}, {at};"),
                });
            }
            9 => {
                // Nobody else is there, so what was there before is known.
                let (base, space, room) = match function || self.random.chance(60) {
                    true => ("%Pown", "global", OWN),
                    false => ("%Psown", "shared", SHARED),
                };
                let wide = self.random.chance(30);
                let bytes = if wide { 8 } else { 4 };
                let (d, a, b) = if wide {
                    (self.double(), self.double(), self.double())
                } else {
                    (self.word(), self.source(), self.word())
                };
                let kind = match self.random.below(8) {
                    0 => "add.u",
                    1 => "exch.b",
                    2 => "cas.b",
                    3 => "min.s",
                    4 => "max.u",
                    5 => "xor.b",
                    6 => "and.b",
                    _ if wide => "or.b",
                    _ => self.random.pick(&["inc.u", "dec.u"]),
                };
                let at = self.place(base, room, bytes, &mut lines);
                let third = if kind == "cas.b" {
                    format!(", {b}")
                } else {
                    String::new()
                };
                if space == "global" && self.random.chance(25) {
                    // Of floats, whatever numbers these bits are.
                    let at = at.clone();
                    let kind = if wide { "f64" } else { "f32" };
                    let (to, value) = if wide {
                        (self.long(), self.long())
                    } else {
                        (self.float(), self.float())
                    };
                    lines.push(format!("atom.global.add.{kind} {to}, {at}, {value};"));
                }
                lines.push(format!("atom.{space}.{kind}{} {d}, {at}, {a}{third};", 8 * bytes));
            }
            12 if !function => {
                self.copy(guard.as_deref(), &mut lines);
                return Node::Unit { lines, guard: None };
            }
            _ => {
                let (row, kind) = self.random.pick(&[
                    (0, "add.u32"),
                    (0, "add.u32"),
                    (1, "add.u64"),
                    (2, "and.b32"),
                    (3, "or.b32"),
                    (4, "xor.b32"),
                    (5, "min.s32"),
                    (6, "max.u32"),
                    (7, "max.s64"),
                ]);
                let bytes = if kind.ends_with("64") { 8 } else { 4 };
                lines.push(format!("add.u64 %w1, %Pacc, {};", 64 * row));
                let at = self.place("%w1", 64, bytes, &mut lines);
                let value = if bytes == 8 { self.double() } else { self.source() };
                lines.push(match self.random.below(3) {
                    0 if bytes == 8 => format!("atom.global.{kind} %w2, {at}, {value};"),
                    0 => format!("atom.global.{kind} %t2, {at}, {value};"),
                    1 => format!("red.relaxed.gpu.global.{kind} {at}, {value};"),
                    _ => format!("red.global.{kind} {at}, {value};"),
                });
            }
        }
        for line in &mut lines {
            self.strengthen(line);
        }
        Node::Unit { lines, guard }
    }

    /// A copy from the table to what the thread has for itself in shared memory, perhaps by some threads alone, and a wait for it by all.
    fn copy(&mut self, guard: Option<&str>, lines: &mut Vec<String>) {
        let bytes = self.random.pick(&[4, 8, 16, 16]);
        let mut to = self.place("%Psown", SHARED, bytes, lines);
        if to == "[%w0]" {
            lines.push("mov.u64 %w1, %w0;".into());
            to = "[%w1]".into();
        }
        let from = self.place("%Ptab", TABLE, bytes, lines);
        let cache = if bytes == 16 {
            self.random.pick(&["ca", "cg"])
        } else {
            "ca"
        };
        // All of it is read, or nothing; now and then a part.
        let size = match self.random.below(6) {
            0 => format!(", {}", self.random.pick(&[0, bytes, bytes / 2])),
            1 | 2 => {
                let bits = self.random.pick(&[bytes, bytes, bytes, 2 * bytes - 1]);
                let which = self.source();
                lines.push(format!("and.b32 %t2, {which}, {bits};"));
                lines.push(format!("min.u32 %t2, %t2, {bytes};"));
                ", %t2".into()
            }
            _ => String::new(),
        };
        let guard = guard.map(|guard| format!("@{guard} ")).unwrap_or_default();
        lines.push(format!(
            "{guard}cp.async.{cache}.shared.global {to}, {from}, {bytes}{size};"
        ));
        match self.random.chance(50) {
            true => lines.push("cp.async.wait_all;".into()),
            false => lines.extend(["cp.async.commit_group;", "cp.async.wait_group 0;"].map(String::from)),
        }
    }

    /// Some of the loads and stores that others might see are strong ones.
    pub fn strengthen(&mut self, line: &mut String) {
        let strong = match line.get(..3) {
            Some("ld.") => ["volatile", "relaxed.gpu", "acquire.cta"],
            Some("st.") => ["volatile", "relaxed.gpu", "release.cta"],
            Some(_) | None => return,
        };
        let may = |space: &&str| line[3..].starts_with(*space) && !line[3..].starts_with("global.nc");
        if ["global.", "shared."].iter().any(may) && self.random.chance(20) {
            line.insert_str(3, &format!("{}.", self.random.pick(&strong)));
        }
    }

    /// Sums in shared memory; the kernel's end reads them.
    pub fn shared_sum(&mut self) -> Node {
        let (first, count, kind) = self
            .random
            .pick(&[(0, 8, "add.u32"), (8, 4, "or.b32"), (12, 4, "xor.b32")]);
        let (index, value) = (self.source(), self.source());
        let guard = self.random.chance(25).then(|| self.condition());
        let lines = vec![
            format!("and.b32 %t1, {index}, {};", count - 1),
            "mad.wide.u32 %w0, %t1, 4, %Psacc;".to_string(),
            format!("red.shared.{kind} [%w0+{}], {value};", 4 * first),
        ];
        Node::Unit { lines, guard }
    }
}
