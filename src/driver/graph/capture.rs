//! Stream capture: streams that record what they are given into a graph instead of doing it.
//!
//! A stream that records has a [`Tail`]: the nodes that its next operation depends on. Waiting for an event that was
//! recorded in such a stream makes another stream record, too; at the end all of them have to have come back to the one
//! where it began. What cannot be recorded makes the capture invalid: its streams answer 901 until it is ended.

use std::any::Any;
use std::cell::Cell;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::super::context::Shared;
use super::super::event::Captured;
use super::super::per_thread;
use super::super::stream::Role;
use super::recapture::{OnMismatch, Recapture};
use super::{Dependency, EdgeData, Graph, Node, Work};
use crate::driver::{Error, Event, Handle, Result, Stream};

/// `CUstreamCaptureMode`: which calls that cannot be recorded make a capture invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Those of any thread.
    Global,
    /// Those of the thread that began it.
    ThreadLocal,
    /// None.
    Relaxed,
}

pub struct Capture {
    id: u64,
    graph: Arc<Graph>,
    /// The graph was there before.
    is_borrowed: bool,
    mode: Mode,
    thread: u64,
    is_invalid: AtomicBool,
    has_ended: AtomicBool,
    streams: Mutex<Vec<Weak<Stream>>>,
    /// The last nodes of streams that were destroyed meanwhile.
    left_behind: Mutex<Vec<Arc<Node>>>,
    /// What is recorded replaces what another graph does.
    recapture: Option<Recapture>,
}

/// What a stream that records has.
pub(in crate::driver) struct Tail {
    capture: Arc<Capture>,
    is_origin: bool,
    before: Vec<Dependency>,
    /// Nodes that `cuStreamUpdateCaptureDependencies` has put there: work of the program's own graph calls, which has to be
    /// joined no more than other nodes that it adds. NCCL leaves its second stream behind so.
    given: HashSet<u32>,
    /// What `cuStreamGetCaptureInfo` has handed out.
    shown: (Box<[Handle]>, Box<[EdgeData]>),
}

/// What is known of a stream (`cuStreamGetCaptureInfo`).
pub struct CaptureInfo {
    pub is_invalid: bool,
    pub id: u64,
    pub graph: Arc<Graph>,
    /// Valid until the next call on the stream.
    pub nodes: *const Handle,
    pub data: *const EdgeData,
    pub count: usize,
    pub has_data: bool,
}

/// How many captures there are: none is the common case, and free of locks.
static COUNT: AtomicUsize = AtomicUsize::new(0);
static CAPTURES: Mutex<Vec<Arc<Capture>>> = Mutex::new(Vec::new());

thread_local! {
    static MODE: Cell<Mode> = const { Cell::new(Mode::Global) };
}

/// `cuThreadExchangeStreamCaptureMode`.
pub fn exchange_mode(mode: Mode) -> Mode {
    MODE.try_with(|known| known.replace(mode)).unwrap_or(Mode::Global)
}

pub(in crate::driver) fn is_any() -> bool {
    COUNT.load(Ordering::Acquire) > 0
}

/// Calls that act at once and that a capture would not see begin with this: 900, and the captures concerned are invalid,
/// unless the modes of the thread and of the captures allow it (manual, cuThreadExchangeStreamCaptureMode).
pub(in crate::driver) fn check_unsafe() -> Result<()> {
    if !is_any() {
        return Ok(());
    }
    let mode = MODE.try_with(Cell::get).unwrap_or(Mode::Global);
    let thread = per_thread::number();
    invalidate(|capture| match capture.thread == thread {
        true => mode != Mode::Relaxed && capture.mode != Mode::Relaxed,
        false => mode == Mode::Global && capture.mode == Mode::Global,
    })
}

/// Calls that wait for everything in a context: 900 if one of its streams records.
pub(in crate::driver) fn check_context(shared: &Arc<Shared>) -> Result<()> {
    if !is_any() {
        return Ok(());
    }
    invalidate(|capture| capture.has_stream(|stream| Arc::ptr_eq(&stream.shared, shared)))
}

fn invalidate(which: impl Fn(&Capture) -> bool) -> Result<()> {
    let captures = CAPTURES.lock().clone();
    let mut result = Ok(());
    for capture in captures.iter().filter(|capture| which(capture)) {
        capture.invalidate();
        result = Err(Error::StreamCaptureUnsupported);
    }
    result
}

/// The captures that the legacy stream of a context would have to wait for.
fn in_blocking_streams(shared: &Arc<Shared>) -> Vec<Arc<Capture>> {
    let captures = CAPTURES.lock().clone();
    let concerned = |stream: &Stream| stream.is_blocking() && Arc::ptr_eq(&stream.shared, shared);
    let concerned = captures.into_iter().filter(|capture| capture.has_stream(concerned));
    concerned.collect()
}

impl Capture {
    pub(in crate::driver) fn invalidate(&self) {
        self.is_invalid.store(true, Ordering::Release);
    }

    fn has_stream(&self, which: impl Fn(&Stream) -> bool) -> bool {
        let streams = self.streams.lock();
        streams.iter().filter_map(Weak::upgrade).any(|stream| which(&stream))
    }

    fn check(&self) -> Result<()> {
        match self.is_invalid.load(Ordering::Acquire) {
            true => Err(Error::StreamCaptureInvalidated),
            false => Ok(()),
        }
    }

    /// Records an operation of a stream.
    pub(in crate::driver) fn add(self: &Arc<Capture>, stream: &Arc<Stream>, work: Work) -> Result<()> {
        self.add_node(stream, work).map(drop).inspect_err(|_| self.invalidate())
    }

    fn add_node(self: &Arc<Capture>, stream: &Arc<Stream>, work: Work) -> Result<Arc<Node>> {
        let node = {
            let mut tail = stream.tail().lock();
            let tail = tail.as_mut().ok_or(Error::StreamCaptureInvalidated)?;
            let node = self.graph.add(work, &tail.before)?;
            tail.before = vec![(Arc::clone(&node), [0; 8])];
            node
        };
        if let Some(recapture) = &self.recapture {
            recapture.compare(&self.graph, &node)?;
        }
        Ok(node)
    }

    /// The end of it: its streams are as before.
    fn end(self: &Arc<Capture>) {
        self.has_ended.store(true, Ordering::Release);
        self.graph.is_capturing.store(false, Ordering::Release);
        if let Some(recapture) = &self.recapture {
            recapture.end();
        }
        let mut captures = CAPTURES.lock();
        captures.retain(|capture| !Arc::ptr_eq(capture, self));
        COUNT.store(captures.len(), Ordering::Release);
        drop(captures);
        for stream in self.streams.lock().iter().filter_map(Weak::upgrade) {
            let mut tail = stream.tail().lock();
            if tail.as_ref().is_some_and(|tail| Arc::ptr_eq(&tail.capture, self)) {
                *tail = None;
            }
        }
    }

    /// Whether all that streams have recorded leads to these nodes.
    fn is_joined(&self, before: &[Dependency]) -> bool {
        let mut reached: HashSet<u32> = HashSet::new();
        let mut open: Vec<Arc<Node>> = before.iter().map(|(node, _)| Arc::clone(node)).collect();
        while let Some(node) = open.pop() {
            if reached.insert(node.id) {
                open.extend(self.graph.dependencies(&node).into_iter().map(|(node, _)| node));
            }
        }
        if !self.left_behind.lock().iter().all(|node| reached.contains(&node.id)) {
            return false;
        }
        let streams = self.streams.lock();
        streams.iter().filter_map(Weak::upgrade).all(|stream| {
            let tail = stream.tail().lock();
            let tail = tail.as_ref().filter(|tail| std::ptr::eq(&*tail.capture, self));
            let is_joined = |tail: &Tail, node: &Node| tail.given.contains(&node.id) || reached.contains(&node.id);
            tail.is_none_or(|tail| tail.before.iter().all(|(node, _)| is_joined(tail, node)))
        })
    }
}

impl Stream {
    /// What it has while it records.
    fn tail(&self) -> &Mutex<Option<Tail>> {
        let recorder = self.recorder.get_or_init(|| Box::new(Mutex::<Option<Tail>>::new(None)));
        // Nobody else fills the slot.
        recorder
            .downcast_ref()
            .unwrap_or_else(|| unreachable!("a recorder is a tail"))
    }

    /// What every operation begins with: where it is to be recorded, if that is what the stream does. 901 when its capture
    /// is invalid, 906 for the legacy stream while a stream that it would wait for records.
    pub(in crate::driver) fn admit(&self) -> Result<Option<Arc<Capture>>> {
        if !is_any() {
            return Ok(None);
        }
        if self.role() == Role::Legacy {
            let captures = in_blocking_streams(&self.shared);
            captures.iter().for_each(|capture| capture.invalidate());
            return match captures.is_empty() {
                true => Ok(None),
                false => Err(Error::StreamCaptureImplicit),
            };
        }
        let capture = self.tail().lock().as_ref().map(|tail| Arc::clone(&tail.capture));
        capture.map(|capture| capture.check().map(|()| capture)).transpose()
    }

    /// For operations that cannot be recorded: 900, and the capture is invalid.
    pub(in crate::driver) fn refuse_capture(&self) -> Result<()> {
        match self.admit()? {
            None => Ok(()),
            Some(capture) => {
                capture.invalidate();
                Err(Error::StreamCaptureUnsupported)
            }
        }
    }

    /// `cuStreamBeginCapture`; with a graph and nodes that the first operation depends on, `cuStreamBeginCaptureToGraph`.
    ///
    /// # Errors
    /// 900 for the legacy stream, 401 for a stream that records already.
    pub fn begin_capture(self: &Arc<Stream>, mode: Mode, into: Option<(Arc<Graph>, Vec<Dependency>)>) -> Result<()> {
        self.begin(mode, into, None)
    }

    /// `cuStreamBeginRecaptureToGraph`.
    ///
    /// # Errors
    /// As [`Stream::begin_capture`]; 401 for a graph that is recorded into, 900 for one with memory nodes.
    pub fn begin_recapture(
        self: &Arc<Stream>,
        mode: Mode,
        graph: &Arc<Graph>,
        on_mismatch: Option<OnMismatch>,
    ) -> Result<()> {
        let recapture = Recapture::new(graph, on_mismatch)?;
        self.begin(mode, None, Some(recapture))
            .inspect_err(|_| graph.is_capturing.store(false, Ordering::Release))
    }

    fn begin(
        self: &Arc<Stream>,
        mode: Mode,
        into: Option<(Arc<Graph>, Vec<Dependency>)>,
        recapture: Option<Recapture>,
    ) -> Result<()> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        self.shared.check()?;
        if self.role() == Role::Legacy {
            return Err(Error::StreamCaptureUnsupported);
        }
        let mut tail = self.tail().lock();
        if tail.is_some() {
            return Err(Error::IllegalState);
        }
        let is_borrowed = into.is_some();
        let (graph, before) = into.unwrap_or_else(|| (Graph::create(), Vec::new()));
        for (node, _) in &before {
            graph.check_contains(node)?;
        }
        if graph.is_capturing.swap(true, Ordering::AcqRel) {
            return Err(Error::IllegalState);
        }
        let capture = Arc::new(Capture {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            graph,
            is_borrowed,
            mode,
            thread: per_thread::number(),
            is_invalid: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            streams: Mutex::new(vec![Arc::downgrade(self)]),
            left_behind: Mutex::default(),
            recapture,
        });
        let mut captures = CAPTURES.lock();
        captures.push(Arc::clone(&capture));
        COUNT.store(captures.len(), Ordering::Release);
        drop(captures);
        *tail = Some(Tail::new(capture, true, before));
        Ok(())
    }

    /// `cuStreamEndCapture`.
    ///
    /// # Errors
    /// 401 if the stream does not record, 903 if it began elsewhere, 908 in another thread (unless relaxed), 901 if the
    /// capture is invalid, 904 if a stream has not come back; after the last two it is over, and there is no graph.
    pub fn end_capture(self: &Arc<Stream>) -> Result<Arc<Graph>> {
        let (capture, is_origin, before) = {
            let tail = self.tail().lock();
            let tail = tail.as_ref().ok_or(Error::IllegalState)?;
            (Arc::clone(&tail.capture), tail.is_origin, tail.before.clone())
        };
        if !is_origin {
            capture.invalidate();
            return Err(Error::StreamCaptureUnmatched);
        }
        if capture.mode != Mode::Relaxed && capture.thread != per_thread::number() {
            return Err(Error::StreamCaptureWrongThread);
        }
        let result = match capture.check() {
            Ok(()) if !capture.is_joined(&before) => Err(Error::StreamCaptureUnjoined),
            result => result,
        };
        let result = result.and_then(|()| match &capture.recapture {
            Some(recapture) => recapture.finish(&capture.graph),
            None => Ok(Arc::clone(&capture.graph)),
        });
        capture.end();
        if (result.is_err() && !capture.is_borrowed) || capture.recapture.is_some() {
            capture.graph.end();
        }
        result
    }

    /// The stream goes, and what it was recording with it.
    pub(in crate::driver) fn abandon_capture(&self) {
        let tail = self.tail().lock().take();
        if let Some(tail) = tail {
            if !tail.is_origin {
                // What it recorded stays, and has to be joined all the same.
                let nodes = tail.before.into_iter().map(|(node, _)| node);
                tail.capture.left_behind.lock().extend(nodes);
                return;
            }
            tail.capture.invalidate();
            tail.capture.end();
            if !tail.capture.is_borrowed {
                tail.capture.graph.end();
            }
        }
    }

    /// It records into a graph that was there before (`cuStreamBeginCaptureToGraph`).
    pub fn records_into_given_graph(&self) -> bool {
        self.tail()
            .lock()
            .as_ref()
            .is_some_and(|tail| tail.capture.is_borrowed || tail.capture.recapture.is_some())
    }

    /// `cuStreamGetCaptureInfo`; `None`: it does not record. 906 for the legacy stream while a stream that it would wait
    /// for records.
    pub fn capture_info(&self) -> Result<Option<CaptureInfo>> {
        if self.role() == Role::Legacy {
            return match is_any() && !in_blocking_streams(&self.shared).is_empty() {
                true => Err(Error::StreamCaptureImplicit),
                false => Ok(None),
            };
        }
        let mut tail = self.tail().lock();
        Ok(tail.as_mut().map(|tail| {
            tail.shown = (
                tail.before.iter().map(|(node, _)| node.handle).collect(),
                tail.before.iter().map(|(_, data)| *data).collect(),
            );
            CaptureInfo {
                is_invalid: tail.capture.check().is_err(),
                id: tail.capture.id,
                graph: Arc::clone(&tail.capture.graph),
                nodes: tail.shown.0.as_ptr(),
                data: tail.shown.1.as_ptr(),
                count: tail.before.len(),
                has_data: tail.before.iter().any(|(_, data)| *data != [0; 8]),
            }
        }))
    }

    /// `cuStreamUpdateCaptureDependencies`: 401 if the stream does not record.
    pub fn update_capture(&self, nodes: Vec<Dependency>, replace: bool) -> Result<()> {
        let capture = self.admit()?.ok_or(Error::IllegalState)?;
        for (node, _) in &nodes {
            capture.graph.check_contains(node)?;
        }
        let mut tail = self.tail().lock();
        let tail = tail.as_mut().ok_or(Error::IllegalState)?;
        if replace {
            tail.before.clear();
        }
        tail.given.extend(nodes.iter().map(|(node, _)| node.id));
        tail.depend_on(&nodes);
        Ok(())
    }

    /// `cuEventRecord` in a stream that records; `external` makes it a node.
    pub(in crate::driver) fn record_captured(
        self: &Arc<Stream>,
        event: &Arc<Event>,
        capture: &Arc<Capture>,
        external: bool,
    ) -> Result<()> {
        if external {
            return capture.add(self, Work::RecordEvent(Arc::clone(event)));
        }
        let tail = self.tail().lock();
        let before = tail.as_ref().map(|tail| tail.before.clone()).unwrap_or_default();
        drop(tail);
        event.set_captured(Arc::new(Recorded {
            capture: Arc::clone(capture),
            before,
        }));
        Ok(())
    }

    /// `cuStreamWaitEvent` where the stream records, or the event was recorded in one that does; `None`: neither.
    pub(in crate::driver) fn wait_captured(self: &Arc<Stream>, event: &Arc<Event>, external: bool) -> Result<bool> {
        let own = self.admit()?;
        let Some(captured) = recorded(event) else {
            let Some(own) = own else {
                // Only a stream that records can make a node of it.
                return if external { Err(Error::InvalidValue) } else { Ok(false) };
            };
            if external {
                own.add(self, Work::WaitEvent(Arc::clone(event)))?;
            } else if event.point().is_some() {
                own.invalidate();
                return Err(Error::StreamCaptureIsolation);
            }
            return Ok(true);
        };
        let theirs = Arc::clone(&captured.capture);
        if external {
            own.unwrap_or(theirs).invalidate();
            return Err(Error::CapturedEvent);
        }
        if theirs.has_ended.load(Ordering::Acquire) {
            if let Some(own) = own {
                own.invalidate();
            }
            return Err(Error::CapturedEvent);
        }
        theirs.check()?;
        match own {
            Some(own) if !Arc::ptr_eq(&own, &theirs) => {
                own.invalidate();
                theirs.invalidate();
                return Err(Error::StreamCaptureMerge);
            }
            None if self.role() == Role::Legacy => {
                theirs.invalidate();
                return Err(Error::StreamCaptureImplicit);
            }
            _ => {}
        }
        let mut tail = self.tail().lock();
        match tail.as_mut() {
            Some(tail) => tail.depend_on(&captured.before),
            None => {
                theirs.streams.lock().push(Arc::downgrade(self));
                *tail = Some(Tail::new(theirs, false, captured.before.clone()));
            }
        }
        Ok(true)
    }
}

impl Tail {
    fn new(capture: Arc<Capture>, is_origin: bool, before: Vec<Dependency>) -> Tail {
        Tail {
            capture,
            is_origin,
            before,
            given: HashSet::new(),
            shown: Default::default(),
        }
    }

    fn depend_on(&mut self, nodes: &[Dependency]) {
        for (node, data) in nodes {
            if !self.before.iter().any(|(known, _)| Arc::ptr_eq(known, node)) {
                self.before.push((Arc::clone(node), *data));
            }
        }
    }
}

/// What an event is that was recorded in a stream that records: nodes that what follows depends on.
struct Recorded {
    capture: Arc<Capture>,
    before: Vec<Dependency>,
}

impl Captured for Recorded {
    fn refuse(&self) -> Error {
        self.capture.invalidate();
        Error::CapturedEvent
    }
}

/// What an event was recorded as, if that was in a stream that records.
fn recorded(event: &Event) -> Option<Arc<Recorded>> {
    let captured: Arc<dyn Any + Send + Sync> = event.captured()?;
    captured.downcast().ok()
}
