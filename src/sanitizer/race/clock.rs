//! What a thread knows of others: vector clocks, kept by warp and block so that threads that know the same share it.
//!
//! A warp counts its steps: everything that may let others know what its threads have done ends one. A thread's clock says of
//! each other thread up to which of its steps all that it did lies before.

use std::sync::Arc;

use crate::isa::lanes::WARP;

/// A step of a warp, from 1.
pub type Step = u32;

/// Steps of the lanes of one warp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    All(Step),
    Each(Box<[Step; WARP]>),
}

impl Default for Row {
    fn default() -> Row {
        Row::All(0)
    }
}

impl Row {
    pub fn get(&self, lane: usize) -> Step {
        match self {
            Row::All(step) => *step,
            Row::Each(steps) => steps[lane],
        }
    }

    /// Each lane's later step of both.
    pub fn join(&mut self, other: &Row) {
        match (&mut *self, other) {
            (Row::All(own), Row::All(step)) => *own = (*own).max(*step),
            (Row::Each(own), Row::All(step)) => own.iter_mut().for_each(|own| *own = (*own).max(*step)),
            (Row::All(own), Row::Each(steps)) => {
                let own = *own;
                *self = Row::Each(Box::new(std::array::from_fn(|lane| own.max(steps[lane]))));
            }
            (Row::Each(own), Row::Each(steps)) => {
                own.iter_mut()
                    .zip(steps.iter())
                    .for_each(|(own, step)| *own = (*own).max(*step));
            }
        }
        if let Row::Each(own) = self
            && own.iter().all(|step| *step == own[0])
        {
            *self = Row::All(own[0]);
        }
    }

    fn covers(&self, other: &Row) -> bool {
        match (self, other) {
            (Row::All(own), Row::All(step)) => own >= step,
            // Without an early end, so that it takes a few instructions.
            (Row::Each(own), Row::All(step)) => own.iter().fold(true, |all, own| all & (own >= step)),
            (Row::All(own), Row::Each(steps)) => steps.iter().fold(true, |all, step| all & (own >= step)),
            (Row::Each(own), Row::Each(steps)) => own
                .iter()
                .zip(&**steps)
                .fold(true, |all, (own, step)| all & (own >= step)),
        }
    }
}

/// Steps of a block's warps; none have been made by those that are missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows(Vec<Row>);

impl Rows {
    pub fn get(&self, warp: usize, lane: usize) -> Step {
        self.0.get(warp).map_or(0, |row| row.get(lane))
    }

    pub fn row(&self, warp: usize) -> Option<&Row> {
        self.0.get(warp)
    }

    pub fn join_row(&mut self, warp: usize, row: &Row) {
        if self.0.len() <= warp {
            self.0.resize(warp + 1, Row::default());
        }
        self.0[warp].join(row);
    }
}

/// What two may know of one thing, and both together.
pub trait Knowledge: Clone {
    fn join(&mut self, other: &Self);
    /// The other adds nothing.
    fn covers(&self, other: &Self) -> bool;
}

impl Knowledge for Rows {
    fn join(&mut self, other: &Rows) {
        for (warp, row) in other.0.iter().enumerate() {
            self.join_row(warp, row);
        }
    }

    fn covers(&self, other: &Rows) -> bool {
        other.0.iter().enumerate().all(|(warp, row)| match self.row(warp) {
            Some(own) => own.covers(row),
            None => Row::default().covers(row),
        })
    }
}

/// Who wrote a word by a strong access: lanes of a warp, in one step of it, by one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writer {
    pub block: u32,
    pub warp: u32,
    pub step: Step,
    pub site: u32,
    pub lanes: u32,
}

/// Writers of one word that are kept; those of the last to come stay.
const WRITERS: usize = 8;

/// Of a word: writes that somebody before has read, so that they lie before as well, and nothing else that their threads have done
/// (PTX ISA, Memory Consistency Model: Causality order, by observation).
#[derive(Clone, Debug, Default)]
pub struct Writers(pub Vec<Writer>);

impl Writers {
    fn has(&self, writer: &Writer) -> bool {
        let is_same = |own: &&Writer| {
            (own.block, own.warp, own.step, own.site) == (writer.block, writer.warp, writer.step, writer.site)
        };
        self.0
            .iter()
            .find(is_same)
            .is_some_and(|own| own.lanes & writer.lanes == writer.lanes)
    }
}

impl Knowledge for Writers {
    fn join(&mut self, other: &Writers) {
        for writer in &other.0 {
            if !self.has(writer) {
                if self.0.len() == WRITERS {
                    self.0.remove(0);
                }
                self.0.push(*writer);
            }
        }
    }

    fn covers(&self, other: &Writers) -> bool {
        other.0.iter().all(|writer| self.has(writer))
    }
}

impl Knowledge for Step {
    fn join(&mut self, other: &Step) {
        *self = (*self).max(*other);
    }

    fn covers(&self, other: &Step) -> bool {
        self >= other
    }
}

/// A map that many have in common: versions share what is the same in them, and two that share much are joined quickly
/// (Okasaki and Gill, Fast Mergeable Integer Maps).
#[derive(Clone, Debug)]
pub struct Map<V>(Option<Arc<Node<V>>>);

#[derive(Debug)]
enum Node<V> {
    Leaf(u64, V),
    /// Keys that agree above `bit`: those without it, and those with it.
    Fork {
        key: u64,
        bit: u64,
        sides: [Arc<Node<V>>; 2],
    },
}

impl<V> Default for Map<V> {
    fn default() -> Map<V> {
        Map(None)
    }
}

/// Whether `key` agrees with a fork's above its bit.
fn within(key: u64, fork: u64, bit: u64) -> bool {
    (key ^ fork) & !(bit | (bit - 1)) == 0
}

impl<V: Knowledge> Map<V> {
    pub fn get(&self, key: u64) -> Option<&V> {
        let mut node = self.0.as_deref()?;
        loop {
            match node {
                Node::Leaf(own, value) => return (*own == key).then_some(value),
                Node::Fork { bit, sides, .. } => node = &sides[usize::from(key & bit != 0)],
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub fn insert(&mut self, key: u64, value: V) {
        self.join(&Map(Some(Arc::new(Node::Leaf(key, value)))));
    }

    /// Whether both are the same version.
    pub fn is_same(&self, other: &Map<V>) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(own), Some(other)) => Arc::ptr_eq(own, other),
            (None, Some(_)) | (Some(_), None) => false,
        }
    }

    pub fn join(&mut self, other: &Map<V>) {
        match (&mut self.0, &other.0) {
            (_, None) => {}
            (own @ None, _) => own.clone_from(&other.0),
            (Some(own), Some(other)) => {
                let both = join(own, other);
                *own = both;
            }
        }
    }
}

fn fork<V>(a: &Arc<Node<V>>, at: u64, b: &Arc<Node<V>>, other: u64) -> Arc<Node<V>> {
    let bit = 1 << (63 - (at ^ other).leading_zeros());
    let sides = match at & bit {
        0 => [Arc::clone(a), Arc::clone(b)],
        _ => [Arc::clone(b), Arc::clone(a)],
    };
    Arc::new(Node::Fork { key: at, bit, sides })
}

fn join<V: Knowledge>(a: &Arc<Node<V>>, b: &Arc<Node<V>>) -> Arc<Node<V>> {
    if Arc::ptr_eq(a, b) {
        return Arc::clone(a);
    }
    match (&**a, &**b) {
        (Node::Leaf(at, own), Node::Leaf(other, value)) if at == other => {
            if own.covers(value) {
                return Arc::clone(a);
            }
            if value.covers(own) {
                return Arc::clone(b);
            }
            let mut both = own.clone();
            both.join(value);
            Arc::new(Node::Leaf(*at, both))
        }
        (Node::Leaf(at, _), Node::Leaf(other, _)) => fork(a, *at, b, *other),
        (Node::Fork { key, bit, sides }, Node::Leaf(at, _)) => side(a, (*key, *bit, sides), b, *at),
        (Node::Leaf(at, _), Node::Fork { key, bit, sides }) => side(b, (*key, *bit, sides), a, *at),
        (
            Node::Fork { key, bit, sides },
            Node::Fork {
                key: other,
                bit: below,
                sides: others,
            },
        ) => {
            if bit == below && within(*other, *key, *bit) {
                let both = [join(&sides[0], &others[0]), join(&sides[1], &others[1])];
                let is = |sides: &[Arc<Node<V>>; 2]| both.iter().zip(sides).all(|(new, old)| Arc::ptr_eq(new, old));
                match () {
                    () if is(sides) => Arc::clone(a),
                    () if is(others) => Arc::clone(b),
                    () => Arc::new(Node::Fork {
                        key: *key,
                        bit: *bit,
                        sides: both,
                    }),
                }
            } else if bit > below && within(*other, *key, *bit) {
                side(a, (*key, *bit, sides), b, *other)
            } else if below > bit && within(*key, *other, *below) {
                side(b, (*other, *below, others), a, *key)
            } else {
                fork(a, *key, b, *other)
            }
        }
    }
}

/// Joins a fork with what has the key `at` and lies within one side of it, or beside it.
fn side<V: Knowledge>(
    whole: &Arc<Node<V>>,
    (key, bit, sides): (u64, u64, &[Arc<Node<V>>; 2]),
    part: &Arc<Node<V>>,
    at: u64,
) -> Arc<Node<V>> {
    if !within(at, key, bit) {
        return fork(whole, key, part, at);
    }
    let which = usize::from(at & bit != 0);
    let new = join(&sides[which], part);
    if Arc::ptr_eq(&new, &sides[which]) {
        return Arc::clone(whole);
    }
    let mut sides = sides.clone();
    sides[which] = new;
    Arc::new(Node::Fork { key, bit, sides })
}

/// All that a thread knows: of the threads of each block, of phases of mbarriers that are over, and of writes that were read, by
/// address.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    pub blocks: Map<Rows>,
    pub phases: Map<Step>,
    pub writes: Map<Writers>,
}

impl Clock {
    pub fn join(&mut self, other: &Clock) {
        self.blocks.join(&other.blocks);
        self.phases.join(&other.phases);
        self.writes.join(&other.writes);
    }

    pub fn is_same(&self, other: &Clock) -> bool {
        self.blocks.is_same(&other.blocks) && self.phases.is_same(&other.phases) && self.writes.is_same(&other.writes)
    }

    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.phases.is_empty() && self.writes.is_empty()
    }

    /// Up to which step of a thread all lies before.
    pub fn step(&self, block: u32, warp: usize, lane: usize) -> Step {
        self.blocks.get(block.into()).map_or(0, |rows| rows.get(warp, lane))
    }

    /// Whether a write to a word was read by somebody before.
    pub fn has_read(&self, address: u64, writer: &Writer) -> bool {
        self.writes.get(address).is_some_and(|known| known.has(writer))
    }

    pub fn phase(&self, barrier: u64) -> Step {
        self.phases.get(barrier).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn maps_join_as_sorted_ones_do() {
        // A linear congruential generator (Knuth) draws the keys; the expectation is the standard library's map.
        let mut seed = 1u64;
        let mut draw = |below: u64| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for keys in [4, 50, 1 << 30] {
            let mut maps: Vec<(Map<Step>, BTreeMap<u64, Step>)> = vec![Default::default(); 8];
            for _ in 0..2000 {
                let (at, from) = (draw(8) as usize, draw(8) as usize);
                if draw(3) == 0 {
                    let (map, sorted) = maps[from].clone();
                    maps[at].0.join(&map);
                    for (key, step) in sorted {
                        let own = maps[at].1.entry(key).or_default();
                        *own = (*own).max(step);
                    }
                } else if maps[at].1.len() < 200 {
                    let (key, step) = (draw(keys) << draw(30), draw(9) as Step);
                    maps[at].0.insert(key, step);
                    let own = maps[at].1.entry(key).or_default();
                    *own = (*own).max(step);
                }
                let (map, sorted) = &maps[at];
                assert!(sorted.iter().all(|(key, step)| map.get(*key) == Some(step)));
                assert_eq!(map.get(1 << 62), None);
            }
        }
    }

    #[test]
    fn what_is_known_already_makes_no_new_version() {
        let mut map = Map::<Step>::default();
        for key in 0..100 {
            map.insert(key * 7, 5);
        }
        let mut other = map.clone();
        other.insert(14, 3);
        assert!(other.is_same(&map));
        other.insert(14, 6);
        assert!(!other.is_same(&map));
        map.join(&other);
        assert!(map.is_same(&other));
    }

    #[test]
    fn rows_know_each_lane() {
        let mut row = Row::All(3);
        let mut steps = [0; WARP];
        steps[4] = 9;
        row.join(&Row::Each(Box::new(steps)));
        assert_eq!((row.get(4), row.get(5)), (9, 3));
        row.join(&Row::All(9));
        assert_eq!(row, Row::All(9));
    }
}
