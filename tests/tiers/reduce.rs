//! Cuts a kernel down to what still makes two configurations differ.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::peer::{Outcome, Peer};
use super::tree::{Kernel, Masks, Node, name};

/// All configurations, the first of which says what is right.
pub struct Comparison {
    pub peers: Vec<(String, Peer)>,
    pub patience: Duration,
    /// A folder of this comparison alone.
    folder: PathBuf,
}

impl Comparison {
    pub fn new(configurations: &[String], patience: Duration) -> Comparison {
        use std::sync::atomic::{AtomicUsize, Ordering};
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("tiers-{}-{number}", std::process::id()));
        let peers = configurations
            .iter()
            .map(|text| (text.clone(), Peer::new(text)))
            .collect();
        Comparison {
            peers,
            patience,
            folder,
        }
    }

    fn ask(&mut self, command: impl Fn(usize) -> String) -> Vec<Outcome> {
        for (i, (_, peer)) in self.peers.iter_mut().enumerate() {
            peer.send(&command(i));
        }
        let patience = self.patience;
        self.peers.iter_mut().map(|(_, peer)| peer.answer(patience)).collect()
    }

    pub fn seed(&mut self, seed: u64) -> Vec<Outcome> {
        self.ask(|_| format!("seed {seed}"))
    }

    fn output(&self, which: usize) -> PathBuf {
        self.folder.join(format!("{which}.bin"))
    }

    pub fn kernel(&mut self, kernel: &Kernel) -> Vec<Outcome> {
        let file = self.folder.join("kernel.ptx");
        let written = std::fs::create_dir_all(&self.folder).and_then(|()| std::fs::write(&file, kernel.print()));
        if let Err(error) = written {
            return vec![Outcome::Failed(error.to_string())];
        }
        let ([bx, by, bz], [gx, gy]) = (kernel.block, kernel.grid);
        let outputs: Vec<PathBuf> = (0..self.peers.len()).map(|i| self.output(i)).collect();
        self.ask(|i| {
            let (file, out) = (file.display(), outputs[i].display());
            format!("file {file} {} {bx} {by} {bz} {gx} {gy} {out}", kernel.seed)
        })
    }

    /// The kernel runs where the first configuration is, and some other says something else.
    fn differs(&mut self, kernel: &Kernel) -> bool {
        let outcomes = self.kernel(kernel);
        matches!(outcomes[0], Outcome::Ran(_)) && outcomes[1..].iter().any(|outcome| *outcome != outcomes[0])
    }

    /// The smallest kernel found that still differs, and where.
    pub fn reduce(&mut self, kernel: &Kernel, most: Duration) -> (Kernel, String) {
        let (before, until) = (self.patience, Instant::now() + most);
        self.peers.iter_mut().for_each(|(_, peer)| {
            peer.stop();
            peer.loud = false;
        });
        // What is asked for counts: a process that begins with a GPU takes seconds.
        if std::env::var_os("MARGAY_TIERS_PATIENCE").is_none() {
            self.patience = before.min(Duration::from_secs(3));
        }
        let mut best = kernel.clone();
        if self.differs(&best) {
            while self.round(&mut best, until) && Instant::now() < until {}
        }
        let outcomes = self.kernel(&best);
        let place = self.place(&best, &outcomes);
        self.patience = before;
        (best, place)
    }

    fn round(&mut self, best: &mut Kernel, until: Instant) -> bool {
        let mut smaller = false;
        let launches: [([u32; 3], [u32; 2]); 5] = [
            (best.block, [1, 1]),
            ([1, 1, 1], [1, 1]),
            ([2, 1, 1], [1, 1]),
            ([32, 1, 1], [1, 1]),
            ([64, 1, 1], [1, 1]),
        ];
        for (block, grid) in launches {
            let threads =
                |block: [u32; 3], grid: [u32; 2]| block.iter().product::<u32>() * grid.iter().product::<u32>();
            if threads(block, grid) < threads(best.block, best.grid) {
                let candidate = Kernel {
                    block,
                    grid,
                    ..best.clone()
                };
                smaller |= self.take(best, candidate);
            }
        }
        let mut list = 0;
        while list < count(best) {
            // Whole parts first, then smaller ones, at last single nodes.
            let mut part = length(best, list);
            while part > 0 {
                let mut at = 0;
                while at < length(best, list) {
                    if Instant::now() > until {
                        return smaller;
                    }
                    let end = (at + part).min(length(best, list));
                    let candidate = changed(best, list, |nodes| {
                        nodes.drain(at..end);
                    });
                    match self.take(best, candidate) {
                        true => smaller = true,
                        false => at += part,
                    }
                }
                part /= 2;
            }
            for at in (0..length(best, list)).rev() {
                for way in 0..4 {
                    let mut did = false;
                    let candidate = changed(best, list, |nodes| did = simpler(nodes, at, way));
                    if did && self.take(best, candidate) {
                        smaller = true;
                        break;
                    }
                }
            }
            list += 1;
        }
        smaller
    }

    fn take(&mut self, best: &mut Kernel, candidate: Kernel) -> bool {
        let differs = self.differs(&candidate);
        if differs {
            *best = candidate;
        }
        differs
    }

    /// In words: what each configuration did, and the first thread that has something else.
    fn place(&self, kernel: &Kernel, outcomes: &[Outcome]) -> String {
        let mut text = String::new();
        for ((name, _), outcome) in self.peers.iter().zip(outcomes) {
            text += &format!("{name}: {outcome}\n");
        }
        let Some(other) = outcomes[1..]
            .iter()
            .position(|outcome| *outcome != outcomes[0])
            .map(|i| i + 1)
        else {
            return text;
        };
        if let (Outcome::Ran(_), Outcome::Ran(_)) = (&outcomes[0], &outcomes[other])
            && let (Ok(a), Ok(b)) = (std::fs::read(self.output(0)), std::fs::read(self.output(other)))
            && let Some(at) = a.iter().zip(&b).position(|(a, b)| a != b)
        {
            let threads = (kernel.block.iter().product::<u32>() * kernel.grid.iter().product::<u32>()) as usize;
            let (outputs, own) = (8 * super::generate::STRIDE * threads, super::memory::OWN * threads);
            let from = at & !7;
            let word = |bytes: &[u8]| {
                bytes[from..from + 8]
                    .iter()
                    .rev()
                    .map(|byte| format!("{byte:02x}"))
                    .collect::<String>()
            };
            let place = match at {
                _ if at < outputs => format!("thread {}, %Pout+{}", at / 512, (at % 512) & !7),
                _ if at < outputs + own => {
                    format!("thread {}, %Pown+{}", (at - outputs) / 128, ((at - outputs) % 128) & !7)
                }
                _ => format!("byte {} of the rows and sums", at - outputs - own),
            };
            text += &format!("first difference: {place}: {} and {}\n", word(&a), word(&b));
        }
        text
    }
}

impl Drop for Comparison {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn count(kernel: &Kernel) -> usize {
    let mut count = 0;
    kernel.clone().lists(&mut |_| count += 1);
    count
}

fn length(kernel: &Kernel, list: usize) -> usize {
    let (mut at, mut length) = (0, 0);
    kernel.clone().lists(&mut |nodes| {
        if at == list {
            length = nodes.len();
        }
        at += 1;
    });
    length
}

fn changed(kernel: &Kernel, list: usize, change: impl FnOnce(&mut Vec<Node>)) -> Kernel {
    let (mut copy, mut at, mut change) = (kernel.clone(), 0, Some(change));
    copy.lists(&mut |nodes| {
        if at == list
            && let Some(change) = change.take()
        {
            change(nodes);
        }
        at += 1;
    });
    copy
}

/// Takes a node's outer part away, in one of three ways; false where there is none.
fn simpler(nodes: &mut Vec<Node>, at: usize, way: usize) -> bool {
    let mov = |mask: usize, all: &str| super::tree::unit(format!("mov.b32 %m{mask}, {all};"));
    let by = match (&mut nodes[at], way) {
        (Node::Unit { guard, .. }, 0) if guard.is_some() => {
            *guard = None;
            return true;
        }
        (Node::If { mask, then, other, .. }, 0 | 1) => {
            let side = if way == 0 { then } else { other };
            let mut by = Vec::new();
            if let Some(masks) = mask {
                by.push(mov(if way == 0 { masks.then } else { masks.other }, &masks.all));
            }
            by.append(side);
            by
        }
        (Node::If { other, .. }, 2) if !other.is_empty() => {
            other.clear();
            return true;
        }
        (Node::If { mask, then, other, .. }, 3) => {
            let used = |m: &Masks| {
                let registers = [format!("%m{}", m.then), format!("%m{}", m.other)];
                registers.iter().any(|r| name(then, r) || name(other, r))
            };
            return mask.take_if(|mask| !used(mask)).is_some();
        }
        (Node::Loop { mask, body, .. }, 3) => return mask.take_if(|m| !name(body, &format!("%m{}", m.0))).is_some(),
        (Node::Loop { once, .. }, 0) if !*once => {
            *once = true;
            return true;
        }
        (
            Node::Loop {
                always,
                body,
                mask: None,
                ..
            },
            1,
        ) if !body.iter().any(jumps) => {
            let mut by: Vec<Node> = always.drain(..).map(super::tree::unit).collect();
            by.append(body);
            by
        }
        (Node::Middle { id, first, second, .. }, 0) => {
            let mut by = vec![super::tree::unit(format!("mov.b32 %c{id}, 0;"))];
            by.append(first);
            by.append(second);
            by
        }
        (Node::Switch { cases, .. }, 0) => cases.drain(..).flat_map(|(body, _)| body).collect(),
        (Node::Switch { cases, .. }, 1) if cases.len() > 1 => {
            cases.pop();
            return true;
        }
        _ => return false,
    };
    nodes.splice(at..=at, by);
    true
}

/// Whether a node jumps, to wherever.
fn jumps(node: &Node) -> bool {
    match node {
        Node::Jump { .. } => true,
        Node::Unit { .. } => false,
        Node::If { then, other, .. } => then.iter().chain(other).any(jumps),
        Node::Loop { body, .. } => body.iter().any(jumps),
        Node::Middle { first, second, .. } => first.iter().chain(second).any(jumps),
        Node::Switch { cases, .. } => cases.iter().any(|(body, _)| body.iter().any(jumps)),
    }
}
