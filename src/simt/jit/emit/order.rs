//! The order of a stretch of code that keeps more numbers than the CPU has registers: one part of the warp after the other.
//!
//! Instructions are emitted for all parts of the warp at once, so that the parts' vectors live side by side. That hides the
//! latency of each; but where a thread has many numbers of its own, as in a product of matrices with a tile for each thread,
//! they go by way of memory, back and forth for each operation. Part by part they stay in registers.
//!
//! Nothing is reordered across what others might see: stores to memory, calls, labels.

use std::collections::{BTreeSet, HashMap};

/// Shorter stretches stay as they are.
const LONG: usize = 128;

/// What a line of LLVM's text does, as far as its order matters.
struct Line<'a> {
    text: &'a str,
    /// The values that it uses; the register of the frame that it reads or writes.
    uses: Vec<&'a str>,
    defines: Option<&'a str>,
    reads: Option<&'a str>,
    writes: Option<&'a str>,
}

impl<'a> Line<'a> {
    /// `None`: it stays where it is, and so does what stands before and behind it.
    fn of(text: &'a str) -> Option<Line<'a>> {
        let trimmed = text.trim();
        let (defines, what) = match trimmed.split_once(" = ") {
            Some((name, what)) => (Some(name), what),
            None => (None, trimmed),
        };
        let operation = what.split(' ').next().unwrap_or_default();
        let own = |name: &'a str| {
            name.strip_prefix("%r")
                .filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        let last = what
            .rsplit(' ')
            .next()
            .filter(|name| own(name).is_some_and(|rest| rest.contains('.')));
        let (mut reads, mut writes) = (None, None);
        match operation {
            "load" => reads = last,
            "store" => writes = Some(last?),
            // They stand together at the top of their block.
            "phi" => return None,
            "call" if !what.contains("@llvm.") || defines.is_none() => return None,
            _ if defines.is_none() => return None,
            _ => {}
        }
        let uses = what
            .split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '%' | '.')))
            .filter(|word| word.starts_with('%'))
            .collect();
        Some(Line {
            text,
            uses,
            defines,
            reads,
            writes,
        })
    }

    /// The part of the warp to whose register it writes.
    fn part(&self) -> Option<u32> {
        let (_, part) = self.writes?.rsplit_once('.')?;
        part.parse().ok()
    }

    fn is_of_vectors(&self) -> bool {
        self.text.contains('<')
    }
}

/// Puts the lines of `text` from `start` on in the order in which parts follow each other, where more registers of vectors are at work
/// than `registers`.
pub(super) fn by_parts(text: &mut String, start: usize, registers: usize) {
    let mut ordered = String::new();
    let mut stretch = Vec::new();
    for line in text[start..].split_inclusive('\n') {
        match Line::of(line) {
            Some(line) => stretch.push(line),
            None => {
                put(&mut ordered, &stretch, registers);
                stretch.clear();
                ordered.push_str(line);
            }
        }
    }
    put(&mut ordered, &stretch, registers);
    debug_assert_eq!(ordered.len(), text.len() - start);
    text.truncate(start);
    text.push_str(&ordered);
}

fn put(out: &mut String, lines: &[Line<'_>], registers: usize) {
    let at_work = lines.iter().filter(|line| line.is_of_vectors());
    let at_work: BTreeSet<&str> = at_work.flat_map(|line| [line.reads, line.writes]).flatten().collect();
    if lines.len() < LONG || at_work.len() <= registers {
        lines.iter().for_each(|line| out.push_str(line.text));
        return;
    }
    // Each line belongs to the first part that needs it. From the last one to the first, for what needs a line stands behind it.
    let mut parts = vec![u32::MAX; lines.len()];
    let mut needed: HashMap<&str, u32> = HashMap::new();
    // By register of the frame: the part of the next line that writes it, and the least one of those that read it until then.
    let mut written: HashMap<&str, u32> = HashMap::new();
    let mut read: HashMap<&str, u32> = HashMap::new();
    for (line, part) in lines.iter().zip(&mut parts).rev() {
        let mut first = line.part().unwrap_or(u32::MAX);
        let mut after = |other: Option<&u32>| first = first.min(other.copied().unwrap_or(u32::MAX));
        after(line.defines.and_then(|name| needed.get(name)));
        if let Some(register) = line.writes {
            after(read.get(register));
            after(written.get(register));
        }
        if let Some(register) = line.reads {
            after(written.get(register));
        }
        // What nobody here needs is for later: it comes as early as it did.
        if first == u32::MAX {
            first = 0;
        }
        if let Some(register) = line.writes {
            written.insert(register, first);
            read.remove(register);
        }
        if let Some(register) = line.reads {
            let least = read.entry(register).or_insert(u32::MAX);
            *least = first.min(*least);
        }
        for name in &line.uses {
            let least = needed.entry(name).or_insert(u32::MAX);
            *least = first.min(*least);
        }
        *part = first;
    }
    let mut order: Vec<usize> = (0..lines.len()).collect();
    order.sort_by_key(|&at| parts[at]);
    order.iter().for_each(|&at| out.push_str(lines[at].text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_a_block_stays_in_front_of_it() {
        let mut text = String::from("go1:\n");
        for part in 0..2 {
            text.push_str(&format!(
                "  %p{part} = phi <16 x i64> [ %a{part}, %from ], [ %b{part}, %again ]\n"
            ));
        }
        for register in 0..LONG {
            for part in 0..2 {
                text.push_str(&format!("  store <16 x i64> %p{part}, ptr %r{register}.{part}\n"));
            }
        }
        by_parts(&mut text, 0, 8);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3 + 2 * LONG);
        assert!(lines[1].contains("phi") && lines[2].contains("phi"));
        // What follows is in the order of the parts.
        assert!(lines[3..3 + LONG].iter().all(|line| line.contains("%p0,")));
    }
}
