//! The lines of operations and their clocks: what is known when, by the rules of the manual ("Stream synchronization behavior", "API
//! synchronization behavior").

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::memory::caller::Caller;

use super::Mark;
use super::clock::{Clock, HOST, Open};
use super::hidden::{Hidden, Pages};
use super::history::History;
use super::operation::{Act, Operation, Rule, Stream};

/// The number of the first stream's line.
const FIRST: usize = HOST + 1;

/// One stream, and after it others that take its place.
#[derive(Default)]
struct Line {
    /// What lies before its next operation.
    clock: Clock,
    /// The number of its last one.
    last: u64,
    stream: Option<Stream>,
}

pub struct Lines {
    /// But for the host's.
    lines: Vec<Line>,
    /// By the stream's id.
    of_streams: BTreeMap<u64, usize>,
    /// Lines of streams that are destroyed. Another stream can have one when the host knows all of it.
    ended: Vec<usize>,
    /// By context, what later streams wait for.
    gates: BTreeMap<u64, Clock>,
    pub host: Clock,
    host_last: u64,
    serial: u64,
    pub history: History,
    /// What is hidden from the host.
    hidden: Hidden,
}

impl Lines {
    pub const fn new() -> Lines {
        Lines {
            lines: Vec::new(),
            of_streams: BTreeMap::new(),
            ended: Vec::new(),
            gates: BTreeMap::new(),
            host: Clock::new(),
            host_last: 0,
            serial: 0,
            history: History::new(),
            hidden: Hidden::new(),
        }
    }

    fn line(&mut self, number: usize) -> &mut Line {
        &mut self.lines[number - FIRST]
    }

    fn line_of(&mut self, stream: Stream) -> usize {
        if let Some(line) = self.of_streams.get(&stream.id) {
            return *line;
        }
        let known = |line: &usize| self.host.has(*line, self.lines[line - FIRST].last);
        let line = match self.ended.iter().position(known) {
            Some(index) => self.ended.swap_remove(index),
            None => {
                self.lines.push(Line::default());
                self.lines.len()
            }
        };
        let clock = self.gates.get(&stream.context).cloned().unwrap_or_default();
        let new = self.line(line);
        new.clock = clock;
        new.clock.set(line, new.last);
        if let Some(before) = new.stream.replace(stream) {
            self.of_streams.remove(&before.id);
        }
        self.of_streams.insert(stream.id, line);
        line
    }

    /// What lies before whatever comes into a stream now.
    fn enter(&mut self, stream: Stream) -> usize {
        let number = self.line_of(stream);
        let mut clock = std::mem::take(&mut self.line(number).clock);
        clock.join(&self.host);
        let before = match stream.rule {
            Rule::Legacy => Some(Rule::Blocking),
            Rule::Blocking => Some(Rule::Legacy),
            Rule::NonBlocking => None,
        };
        for line in &self.lines {
            if line
                .stream
                .is_some_and(|other| other.context == stream.context && Some(other.rule) == before)
            {
                clock.join(&line.clock);
            }
        }
        self.line(number).clock = clock;
        number
    }

    pub fn begin(&mut self, stream: Stream, act: Act, caller: Caller) -> Arc<Operation> {
        let number = self.enter(stream);
        self.serial += 1;
        let serial = self.serial;
        let line = self.line(number);
        line.last += 1;
        line.clock.set(number, line.last);
        Arc::new(Operation {
            serial,
            line: number,
            number: line.last,
            clock: Arc::new(line.clock.clone()),
            node: None,
            act,
            caller,
            stream: Some(stream),
        })
    }

    pub fn by_host(&mut self, act: Act, caller: Caller) -> Arc<Operation> {
        self.serial += 1;
        self.host_last += 1;
        self.host.set(HOST, self.host_last);
        Arc::new(Operation {
            serial: self.serial,
            line: HOST,
            number: self.host_last,
            clock: Arc::new(self.host.clone()),
            node: None,
            act,
            caller,
            stream: None,
        })
    }

    pub fn mark(&mut self, stream: Stream) -> Mark {
        let line = self.enter(stream);
        Mark(Arc::new(self.line(line).clock.clone()))
    }

    pub fn wait(&mut self, stream: Stream, clock: &Clock) {
        let line = self.enter(stream);
        self.line(line).clock.join(clock);
    }

    pub fn gate(&mut self, context: u64, clock: &Clock) {
        self.gates.entry(context).or_default().join(clock);
    }

    pub fn open(&mut self, stream: Stream) -> Arc<Open> {
        let open = Arc::new(Open::default());
        let line = self.enter(stream);
        self.line(line).clock.wait_for(&open);
        open
    }

    pub fn host_learns(&mut self, clock: &Clock) {
        self.host.join(clock);
        self.hidden.release(&self.host);
        let host = &self.host;
        let mut all = self.lines.iter().enumerate();
        if !self.history.is_empty() && all.all(|(index, line)| host.has(index + FIRST, line.last)) {
            // Whatever comes lies behind all of it.
            self.history.clear();
        }
    }

    /// Memory begins or ends: nobody has touched it.
    pub fn forget(&mut self, start: u64, end: u64) {
        self.history.forget(start, end);
        self.hidden.forget(start, end);
    }

    /// Hides what an operation has touched from the host, unless that knows that it is over.
    pub fn hide(&mut self, operation: &Operation, pages: Pages) {
        if !self.host.has(operation.line, operation.number) {
            self.hidden.add(operation, pages);
        }
    }

    pub fn done(&mut self, stream: Stream) {
        let clock = match stream.rule {
            // Who waits for it waits for what is in its way, too.
            Rule::Legacy => {
                let line = self.enter(stream);
                self.line(line).clock.clone()
            }
            Rule::Blocking | Rule::NonBlocking => {
                let line = self.line_of(stream);
                self.line(line).clock.clone()
            }
        };
        self.host_learns(&clock);
    }

    pub fn all_done(&mut self, context: Option<u64>) {
        let mut known = Clock::default();
        for line in &self.lines {
            if line
                .stream
                .is_some_and(|stream| context.is_none_or(|context| stream.context == context))
            {
                known.join(&line.clock);
            }
        }
        self.host_learns(&known);
    }

    pub fn ends(&mut self, stream: u64) {
        if let Some(line) = self.of_streams.get(&stream) {
            self.ended.push(*line);
        }
    }

    /// All that has been asked for.
    pub fn everything(&self) -> Clock {
        let mut known = self.host.clone();
        self.lines.iter().for_each(|line| known.join(&line.clock));
        known
    }
}
