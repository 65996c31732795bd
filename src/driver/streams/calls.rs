//! What programs ask of streams, contexts and green contexts: to wait, to call the host, to record and await events.

use std::sync::Arc;

use super::stream::{Command, HostFunction, Role, as_host_function, check_host_function};
use crate::driver::graph::{self, BatchNode, HostNode, SemaphoreNode, Work};
use crate::driver::semaphore::{self, SemaphoreStep};
use crate::driver::{Context, Error, Event, Green, MemoryOperation, Result, Stream, pool};
use crate::sanitizer::between::{self, Act};

impl Stream {
    /// `cuStreamSynchronize`.
    pub fn synchronize(self: &Arc<Stream>) -> Result<()> {
        check_host_function()?;
        self.refuse_capture()?;
        for point in self.ahead() {
            point.wait();
        }
        self.wait_for(self.submitted());
        between::done(self);
        self.shared.printer.flush();
        pool::settle();
        self.shared.check()
    }

    /// `cuStreamQuery`: 600 while there is work.
    pub fn query(self: &Arc<Stream>) -> Result<()> {
        self.shared.check()?;
        self.refuse_capture()?;
        if self.is_busy() || !self.ahead().is_empty() {
            return Err(Error::NotReady);
        }
        between::done(self);
        self.shared.check()
    }

    /// `cuStreamWaitEvent`: an `external` wait (`CU_EVENT_WAIT_EXTERNAL`) becomes a node of the graph being recorded.
    pub fn wait_event(self: &Arc<Stream>, event: &Arc<Event>, external: bool) -> Result<()> {
        self.shared.check()?;
        if self.wait_captured(event, external)? {
            return Ok(());
        }
        if let Some(point) = event.point() {
            self.wait_point(point);
            between::wait(self, event.order().as_ref());
        }
        Ok(())
    }

    /// `cuLaunchHostFunc`: not called once the context has failed. `mode` is a `CUhostTaskSyncMode`.
    pub fn host_function(self: &Arc<Stream>, function: HostFunction, data: usize, mode: u32) -> Result<()> {
        self.shared.check()?;
        if let Some(capture) = self.admit()? {
            let node = HostNode {
                function,
                data,
                mode,
                context: self.context()?.handle(),
            };
            return capture.add(self, Work::Host(node));
        }
        let (operation, open) = between::begin_host_function(self);
        self.enqueue(Command::Work(Box::new(move |shared| {
            shared.printer.flush();
            between::calls(operation.as_ref());
            as_host_function(|| function(data));
            between::called(open.as_ref());
        })));
        Ok(())
    }
}

impl Stream {
    /// `cuStreamBatchMemOp`, and the calls with one operation: all of them, or none if one is wrong.
    pub fn memory_operations(self: &Arc<Stream>, operations: &[MemoryOperation]) -> Result<()> {
        self.shared.check()?;
        let checked = operations
            .iter()
            .map(|operation| operation.check())
            .collect::<Result<Vec<_>>>()?;
        if let Some(capture) = self.admit()? {
            let node = BatchNode {
                operations: operations.into(),
                context: self.context()?.handle(),
            };
            return capture.add(self, Work::Batch(node));
        }
        if !checked.is_empty() {
            let order = between::begin(self, Act::Touches);
            let waits = checked.iter().any(|operation| operation.waits());
            let open = waits.then(|| between::open(self)).flatten();
            self.enqueue(Command::Work(Box::new(move |shared| {
                checked
                    .iter()
                    .for_each(|operation| operation.run(shared, order.as_ref()));
                between::waited(open.as_ref());
            })));
        }
        Ok(())
    }

    /// `cuSignalExternalSemaphoresAsync`, `cuWaitExternalSemaphoresAsync`: one after the other, at their place in the stream.
    pub fn semaphores(self: &Arc<Stream>, steps: Vec<SemaphoreStep>, signal: bool) -> Result<()> {
        self.shared.check()?;
        if let Some(capture) = self.admit()? {
            let context = self.context()?.handle();
            let node = SemaphoreNode {
                steps: steps.into(),
                context,
            };
            let work = if signal { Work::Signal(node) } else { Work::Await(node) };
            return capture.add(self, work);
        }
        let open = (!signal).then(|| between::open(self)).flatten();
        self.enqueue(Command::Work(Box::new(move |shared| {
            semaphore::run(&steps, signal, shared);
            between::waited(open.as_ref());
        })));
        Ok(())
    }
}

impl Event {
    /// `cuEventQuery`: 600 while it is not complete.
    pub fn query(&self) -> Result<()> {
        self.shared.check()?;
        let recording = self.recording()?;
        graph::check_unsafe()?;
        if let Some((shared, number)) = self.foreign() {
            return if shared.settle(number) {
                self.shared.check()
            } else {
                Err(Error::NotReady)
            };
        }
        match recording {
            Some(recording) if !recording.point().is_done() => Err(Error::NotReady),
            recording => {
                between::reached(recording.as_ref().and_then(|recording| recording.order()));
                self.shared.check()
            }
        }
    }

    /// `cuEventSynchronize`.
    pub fn synchronize(&self) -> Result<()> {
        check_host_function()?;
        let recording = self.recording()?;
        graph::check_unsafe()?;
        if let Some((shared, number)) = self.foreign() {
            shared.wait(number, || self.shared.has_failed());
        } else if let Some(recording) = recording {
            recording.point().wait();
            between::reached(recording.order());
        }
        self.shared.printer.flush();
        pool::settle();
        self.shared.check()
    }
}

impl Context {
    /// `cuCtxSynchronize`.
    pub fn synchronize(&self) -> Result<()> {
        check_host_function()?;
        self.alive()?;
        graph::check_context(self.shared())?;
        self.drain();
        between::context_done(self.shared().id);
        self.shared().printer.flush();
        pool::settle();
        self.shared().check()
    }

    /// `cuCtxRecordEvent`: all that is in its streams now, those of its green contexts too.
    pub fn record(self: &Arc<Context>, event: &Arc<Event>) -> Result<()> {
        self.alive()?;
        self.shared().check()?;
        match self.green() {
            Some(green) => green.record(event),
            None => record_all(self, &self.shared().live_streams(), event),
        }
    }

    /// `cuCtxWaitEvent`: what comes next in its streams waits, in those of its green contexts and in later ones too.
    pub fn wait(self: &Arc<Context>, event: &Arc<Event>) -> Result<()> {
        self.alive()?;
        self.shared().check()?;
        match self.green() {
            Some(green) => green.wait(event),
            None => {
                wait_all(&self.shared().live_streams(), event)?;
                if let Some(point) = event.point() {
                    self.shared().add_gate(point);
                    between::gate(self.shared().id, event.order().as_ref());
                }
                Ok(())
            }
        }
    }
}

impl Green {
    /// `cuGreenCtxRecordEvent`: everything that is in its streams.
    pub fn record(&self, event: &Arc<Event>) -> Result<()> {
        record_all(self.primary(), &self.streams(), event)
    }

    /// `cuGreenCtxWaitEvent`.
    pub fn wait(&self, event: &Arc<Event>) -> Result<()> {
        wait_all(&self.streams(), event)
    }
}

/// Records what is in some streams of a context; none of them may be recording (900).
fn record_all(context: &Arc<Context>, streams: &[Arc<Stream>], event: &Arc<Event>) -> Result<()> {
    refuse_captures(streams)?;
    let gathering = Stream::create_in(context, 1, 0)?;
    for stream in streams {
        gathering.wait_point(stream.end());
        between::wait(&gathering, between::mark(stream).as_ref());
    }
    let result = event.record(&gathering, false);
    gathering.destroy()?;
    result
}

/// Lets what comes next in some streams wait for an event; neither they nor the event may be part of a capture (900).
fn wait_all(streams: &[Arc<Stream>], event: &Arc<Event>) -> Result<()> {
    if let Some(captured) = event.captured() {
        captured.refuse();
        return Err(Error::StreamCaptureUnsupported);
    }
    refuse_captures(streams)?;
    for stream in streams {
        stream.wait_event(event, false)?;
    }
    Ok(())
}

/// The legacy stream itself never records.
fn refuse_captures(streams: &[Arc<Stream>]) -> Result<()> {
    let mut created = streams.iter().filter(|stream| stream.role() != Role::Legacy);
    created.try_for_each(|stream| stream.refuse_capture())
}
