//! Operations: what is compared, how two of them are ordered, and what a report says of them.

use std::sync::Arc;

use crate::memory::caller::Caller;

use super::clock::Clock;

/// A stream, as far as its order goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Never used twice.
    pub id: u64,
    pub context: u64,
    /// What programs know it by.
    pub handle: u64,
    pub rule: Rule,
}

/// How it stands to its context's legacy stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// It is that.
    Legacy,
    /// Its operations and those of the legacy stream are in the order of the calls.
    Blocking,
    NonBlocking,
}

/// Whatever is a stream.
pub trait Lane {
    fn lane(&self) -> Stream;
}

/// What an operation does as a whole, beside reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Touches,
    /// Memory begins.
    Allocates,
    /// Memory ends.
    Frees,
}

/// Something that touches memory, at its place in a stream or by a call of the host.
#[derive(Debug)]
pub struct Operation {
    /// In the order of the calls.
    pub(super) serial: u64,
    pub(super) line: usize,
    pub(super) number: u64,
    pub(super) clock: Arc<Clock>,
    pub(super) node: Option<Node>,
    pub(super) act: Act,
    /// The call that asked for it; of a node of a graph, what it does.
    pub(super) caller: Caller,
    /// `None`: the host itself does it.
    pub(super) stream: Option<Stream>,
}

/// The place of an operation in a graph that was launched: from the outside in, the run of a block of steps and the step.
#[derive(Clone, Debug)]
pub struct Node(Arc<[Step]>);

#[derive(Clone, Debug)]
struct Step {
    /// A block of steps that runs again (the body of a loop) has another number each time.
    run: u64,
    place: u32,
    order: Arc<dyn Order>,
}

/// Which steps of a block come before which.
pub trait Order: Send + Sync + std::fmt::Debug {
    fn precedes(&self, first: u32, second: u32) -> bool;
}

impl Node {
    /// A step of a block within a step of another one.
    pub fn new(around: Option<&Node>, run: u64, place: u32, order: Arc<dyn Order>) -> Node {
        let around = around.map_or(&[][..], |node| &node.0[..]);
        Node(around.iter().cloned().chain([Step { run, place, order }]).collect())
    }

    fn is_before(&self, other: &Node) -> bool {
        for (own, other) in self.0.iter().zip(&*other.0) {
            // One run of a block is over before the next begins.
            if own.run != other.run {
                return own.run < other.run;
            }
            if own.place != other.place {
                return own.order.precedes(own.place, other.place);
            }
        }
        true
    }
}

impl Operation {
    pub(super) fn is_before(&self, other: &Operation) -> bool {
        if (self.line, self.number) != (other.line, other.number) {
            return other.clock.has(self.line, self.number);
        }
        match (&self.node, &other.node) {
            (Some(own), Some(other)) => own.is_before(other),
            _ => true,
        }
    }

    /// One allocates and the other frees. Whoever uses the memory is told of with the one that he is not in order with.
    pub(super) fn is_one_life_with(&self, other: &Operation) -> bool {
        self.act != Act::Touches && other.act != Act::Touches && self.act != other.act
    }

    pub(super) fn is_ordered(&self, other: &Operation) -> bool {
        self.is_before(other) || other.is_before(self)
    }

    /// What the calls alone decide: which of two a report names first.
    pub(super) fn comes_first(&self, other: &Operation) -> bool {
        let place = |operation: &Operation| {
            let node = operation.node.iter();
            node.flat_map(|node| node.0.iter().map(|step| step.place))
                .collect::<Vec<_>>()
        };
        (self.serial, place(self)) <= (other.serial, place(other))
    }
}
