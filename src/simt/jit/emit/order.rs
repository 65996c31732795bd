//! The order of a stretch of code that keeps more numbers than the CPU has registers: one part of the warp after the other.
//!
//! Instructions are emitted for all parts of the warp at once, so that the parts' vectors live side by side. That hides the
//! latency of each; but where a thread has many numbers of its own, as in a product of matrices with a tile for each thread,
//! they go by way of memory, back and forth for each operation. Part by part they stay in registers. Where one part's sums are too
//! many as well, some of them go ahead of the others. Between the parts is a jump that nobody takes ([`NEVER`]): LLVM brings
//! what stands in one block into an order of its own, by which the parts would mix again.
//!
//! Nothing is reordered across what others might see: stores to memory, calls, labels.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use super::super::text::Text;

/// Shorter stretches stay as they are.
const LONG: usize = 128;

/// A number that goes through registers of the frame so often is one that others are added to.
const OFTEN: u32 = 4;
/// Orders within a part.
const GROUPS: u32 = 1 << 8;
/// Lines that are worth a jump.
const PIECE: usize = 64;

/// A byte of the frame that is zero, which LLVM does not know.
pub(super) const NEVER: &str = "%never";

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
/// than `registers`; `apart`: with a jump between them.
pub(super) fn by_parts(text: &mut Text, start: usize, registers: usize, apart: bool) {
    let lines = text.lines.split_off(start);
    let mut ordered = String::new();
    let mut stretch = Vec::new();
    // The label of the block, and the one that its end has now.
    let mut label = block_at_end(&text.lines).to_owned();
    let mut ends: HashMap<String, String> = HashMap::new();
    let mut put = |ordered: &mut String, stretch: &mut Vec<Line<'_>>, label: &str| {
        if let Some(end) = put(ordered, stretch, registers, apart.then_some(&mut *text)) {
            ends.insert(label.to_owned(), end);
        }
        stretch.clear();
    };
    for line in lines.split_inclusive('\n') {
        match Line::of(line) {
            Some(line) => stretch.push(line),
            None => {
                put(&mut ordered, &mut stretch, &label);
                ordered.push_str(line);
                if let Some(name) = label_of(line) {
                    name.clone_into(&mut label);
                }
            }
        }
    }
    put(&mut ordered, &mut stretch, &label);
    if ends.is_empty() {
        debug_assert_eq!(ordered.len(), lines.len());
        text.lines.push_str(&ordered);
        return;
    }
    // Who comes from a block comes from its end.
    for line in ordered.split_inclusive('\n') {
        if !line.contains(" = phi ") {
            text.lines.push_str(line);
            continue;
        }
        let mut from = line.to_owned();
        for (label, end) in &ends {
            from = from.replace(&format!(", %{label} ]"), &format!(", %{end} ]"));
        }
        text.lines.push_str(&from);
    }
}

fn label_of(line: &str) -> Option<&str> {
    line.strip_suffix(":\n").filter(|name| !name.starts_with(' '))
}

/// The label of the block that a text ends in; none: no text.
fn block_at_end(text: &str) -> &str {
    let mut lines = text.split_inclusive('\n').rev();
    lines.find_map(label_of).unwrap_or_default()
}

/// Gives the label of the block that the lines end in, if it is not the one that they begin in.
fn put(out: &mut String, lines: &[Line<'_>], registers: usize, mut names: Option<&mut Text>) -> Option<String> {
    if lines.len() < LONG || most_at_once(lines) <= registers {
        lines.iter().for_each(|line| out.push_str(line.text));
        return None;
    }
    // Each line belongs to the first part, or group of a part, that needs it. From the last one to the first, for what needs a line
    // stands behind it.
    let groups = groups(lines, registers * 2 / 3);
    let mut parts = vec![u32::MAX; lines.len()];
    let mut needed: HashMap<&str, u32> = HashMap::new();
    // By register of the frame: the part of the next line that writes it, and the least one of those that read it until then.
    let mut written: HashMap<&str, u32> = HashMap::new();
    let mut read: HashMap<&str, u32> = HashMap::new();
    for (at, (line, part)) in lines.iter().zip(&mut parts).enumerate().rev() {
        let own = line.part().map_or(u32::MAX, |part| part * GROUPS);
        let mut first = groups.as_ref().map_or(own, |groups| groups[at]);
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
            first = if own == u32::MAX { 0 } else { own };
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
    let mut end = None;
    for piece in order.chunk_by(|&a, &b| parts[a] == parts[b]) {
        piece.iter().for_each(|&at| out.push_str(lines[at].text));
        if let Some(names) = names.as_mut().filter(|_| piece.len() >= PIECE) {
            end = Some(jump(out, results(piece.iter().map(|&at| &lines[at])), names));
        }
    }
    end
}

/// How many registers of vectors hold something that is still wanted, at most, if the lines keep their order.
fn most_at_once(lines: &[Line<'_>]) -> usize {
    // From where to where: what is read first has come from before, what is written last may go on.
    let mut spans: HashMap<&str, (usize, usize)> = HashMap::new();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.is_of_vectors()) {
        if let Some(register) = line.reads {
            spans.entry(register).or_insert((0, at)).1 = at;
        }
        if let Some(register) = line.writes {
            spans.entry(register).or_insert((at, at)).1 = lines.len();
        }
    }
    let mut changes: Vec<(usize, isize)> = spans.values().flat_map(|&(from, to)| [(from, 1), (to, -1)]).collect();
    changes.sort_unstable();
    let (mut now, mut most) = (0_isize, 0);
    for (_, change) in changes {
        now += change;
        most = most.max(now);
    }
    most.unsigned_abs()
}

/// A jump that nobody takes, behind lines with these results: gives the label of what follows.
fn jump(out: &mut String, results: BTreeMap<&str, &str>, names: &mut Text) -> String {
    let [zero, is_not] = [(); 2].map(|()| names.name("%v"));
    let (other, next) = (names.name("other"), names.name("next"));
    let _ = write!(
        out,
        "  {zero} = load volatile i8, ptr {NEVER}\n  {is_not} = icmp ne i8 {zero}, 0\n  \
         br i1 {is_not}, label %{other}, label %{next}, !prof !1\n{other}:\n"
    );
    // The results are wanted on the way around as well, for else LLVM moves all that leads to them behind the jump.
    for (register, vector) in results {
        let value = names.name("%v");
        let _ = write!(
            out,
            "  {value} = load {vector}>, ptr {register}\n  store volatile {vector}> {value}, ptr %scratch\n"
        );
    }
    let _ = write!(out, "  store volatile i8 0, ptr {NEVER}\n  br label %{next}\n{next}:\n");
    next
}

/// Vectors that lines write to the frame and none of them reads: the registers, and their types but for the last sign.
fn results<'a>(lines: impl Iterator<Item = &'a Line<'a>>) -> BTreeMap<&'a str, &'a str> {
    let mut results = BTreeMap::new();
    for line in lines {
        if let Some(register) = line.reads {
            results.remove(register);
        }
        let stored = line.text.trim().strip_prefix("store ").filter(|_| line.is_of_vectors());
        if let (Some(register), Some((vector, _))) = (line.writes, stored.and_then(|what| what.split_once("> "))) {
            results.insert(register, vector);
        }
    }
    results
}

/// Where more sums than `most` of one part grow side by side: the group of each line that belongs to one of them, and the greatest
/// number for others.
///
/// A sum is a chain of lines, each of which uses what the one before gives and nobody else wants.
fn groups(lines: &[Line<'_>], most: usize) -> Option<Vec<u32>> {
    let mut chains = Chains((0..lines.len()).collect());
    let mut links = Vec::new();
    // By value, and by register since it was last written: who gives it, and who has used it.
    let mut given: HashMap<&str, (usize, Vec<usize>)> = HashMap::new();
    let mut written: HashMap<&str, (usize, Vec<usize>)> = HashMap::new();
    for (at, line) in lines.iter().enumerate() {
        for name in &line.uses {
            if let Some((_, users)) = given.get_mut(name) {
                users.push(at);
            }
        }
        if let Some((_, readers)) = line.reads.and_then(|register| written.get_mut(register)) {
            readers.push(at);
        }
        if let Some(name) = line.defines {
            given.insert(name, (at, Vec::new()));
        }
        if let Some((store, readers)) = line
            .writes
            .and_then(|register| written.insert(register, (at, Vec::new())))
        {
            links.push((store, readers));
        }
    }
    links.extend(written.into_values());
    for (giver, users) in given.into_values() {
        if let [user] = users[..] {
            chains.join(giver, user);
        }
    }
    let links: Vec<usize> = links
        .into_iter()
        .filter_map(|(store, readers)| match readers[..] {
            [reader] => Some(chains.join(store, reader)),
            _ => None,
        })
        .collect();
    let mut times: HashMap<usize, u32> = HashMap::new();
    for link in links {
        *times.entry(chains.of(link)).or_default() += 1;
    }
    // By part: the sums in the order in which they begin, and where each of them ends.
    let mut sums: HashMap<u32, Vec<(usize, usize, usize)>> = HashMap::new();
    let mut place: HashMap<usize, (u32, usize)> = HashMap::new();
    for (at, line) in lines.iter().enumerate() {
        let chain = chains.of(at);
        if times.get(&chain).is_none_or(|&times| times < OFTEN) {
            continue;
        }
        if let Some(&(part, number)) = place.get(&chain) {
            sums.get_mut(&part)?[number].2 = at;
        } else if let Some(part) = line.part() {
            let of_part = sums.entry(part).or_default();
            place.insert(chain, (part, of_part.len()));
            of_part.push((chain, at, at));
        }
    }
    let beside = |of_part: &[(usize, usize, usize)]| {
        let begins = of_part.iter().map(|&(_, begin, _)| begin);
        let open = begins.map(|at| {
            of_part
                .iter()
                .filter(|(_, from, to)| (*from..=*to).contains(&at))
                .count()
        });
        open.max().unwrap_or(0)
    };
    let widest = sums.values().map(|of_part| beside(of_part)).max()?;
    let count = widest.div_ceil(most);
    if count < 2 {
        return None;
    }
    let mut group: HashMap<usize, u32> = HashMap::new();
    for (part, of_part) in &sums {
        let each = of_part.len().div_ceil(count).max(1);
        for (number, (chain, ..)) in of_part.iter().enumerate() {
            group.insert(*chain, part * GROUPS + (number / each) as u32);
        }
    }
    let of = |at: usize| group.get(&chains.of(at)).copied().unwrap_or(u32::MAX);
    Some((0..lines.len()).map(of).collect())
}

/// Which lines are of one chain: each knows another one of it, and the first one itself.
struct Chains(Vec<usize>);

impl Chains {
    fn of(&self, mut at: usize) -> usize {
        while self.0[at] != at {
            at = self.0[at];
        }
        at
    }
    /// Gives the chain.
    fn join(&mut self, a: usize, b: usize) -> usize {
        let (a, b) = (self.of(a), self.of(b));
        let (first, other) = (a.min(b), a.max(b));
        self.0[other] = first;
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_a_block_stays_in_front_of_it() {
        let mut text = Text::default();
        text.lines.push_str("go1:\n");
        for part in 0..2 {
            text.lines.push_str(&format!(
                "  %p{part} = phi <16 x i64> [ %a{part}, %from ], [ %b{part}, %again ]\n"
            ));
        }
        for register in 0..LONG {
            for part in 0..2 {
                text.lines
                    .push_str(&format!("  store <16 x i64> %p{part}, ptr %r{register}.{part}\n"));
            }
        }
        text.lines
            .push_str("  br label %go2\ngo2:\n  %w = phi <16 x i64> [ %p0, %go1 ], [ %p1, %go10 ]\n");
        by_parts(&mut text, 0, 8, true);
        let lines: Vec<&str> = text.lines.lines().collect();
        assert!(lines[1].contains("phi") && lines[2].contains("phi"));
        // What follows is in the order of the parts, a jump behind each.
        assert!(lines[3..3 + LONG].iter().all(|line| line.contains("%p0,")));
        let nexts: Vec<usize> = (0..lines.len()).filter(|&at| lines[at].starts_with("next")).collect();
        let &[first, last] = &nexts[..] else {
            panic!("{} jumps", nexts.len())
        };
        assert!(lines[3 + LONG].contains("volatile") && first > 3 + LONG);
        assert!(lines[first + 1..][..LONG].iter().all(|line| line.contains("%p1,")));
        // All results are wanted on the way around.
        assert_eq!(
            lines.iter().filter(|line| line.contains("ptr %scratch")).count(),
            2 * LONG
        );
        // Who comes from the block comes from its end.
        let label = lines[last].strip_suffix(':').unwrap();
        let phi = format!("[ %p0, %{label} ], [ %p1, %go10 ]");
        assert!(lines.last().is_some_and(|line| line.contains(&phi)));
    }

    /// A sum for each part, to which a number is added that is stored and loaded just before.
    fn sums(parts: usize) -> String {
        let mut lines = String::from("go1:\n");
        for turn in 0..LONG {
            for part in 0..parts {
                let _ = write!(
                    lines,
                    "  store <8 x i32> %a{turn}, ptr %r{turn}.{part}\n  %x{turn}.{part} = load <8 x i32>, ptr %r{turn}.{part}\n  \
                     %y{turn}.{part} = load <8 x i32>, ptr %r9999.{part}\n  \
                     %z{turn}.{part} = add <8 x i32> %x{turn}.{part}, %y{turn}.{part}\n  \
                     store <8 x i32> %z{turn}.{part}, ptr %r9999.{part}\n"
                );
            }
        }
        lines
    }

    #[test]
    fn what_does_not_live_on_takes_no_register_from_sums() {
        for (parts, stays) in [(4, true), (8, false)] {
            let mut text = Text::default();
            text.lines = sums(parts);
            by_parts(&mut text, 0, 8, true);
            assert_eq!(text.lines == sums(parts), stays, "{parts} sums");
        }
    }
}
