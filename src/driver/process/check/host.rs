//! Where on the host something was asked for that a finding is about: host backtraces, for people and for programs.

use std::fmt::Write;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::backtrace::{Frame, Place};
use crate::config;
use crate::memory::caller::Caller;
use crate::memory::{Allocation, Nearest};
use crate::program::demangle;
use crate::simt::Launch;

/// What a call has to do with a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It launched the kernel.
    Launch,
    /// It made the node of a graph as which the kernel ran.
    Node,
    /// It made, or freed, the allocation that starts here.
    Allocation(u64),
    Free(u64),
    /// It made memory that has no address.
    Made,
    /// It is the call that the finding is about.
    Call,
    /// It is one of two operations that race, which does this.
    Operation(&'static str),
    /// It is no call, but the program's own code, which does this.
    Access(&'static str),
}

/// A call of the program's that has to do with a finding.
#[derive(Clone, Debug)]
pub struct Host {
    pub role: Role,
    pub call: Caller,
    /// Innermost first; never empty.
    frames: Arc<[Frame]>,
    /// What the runtime's stub of the kernel is called, which is no line of the program's.
    stub: Option<Arc<str>>,
}

impl Host {
    /// `None`: it is not known where the call was made.
    pub fn of(role: Role, call: Caller) -> Option<Host> {
        let frames = call.at.frames();
        (!frames.is_empty()).then_some(Host {
            role,
            call,
            frames,
            stub: None,
        })
    }

    /// Of a call that may have launched a kernel.
    pub fn launching(self, kernel: Option<&Arc<str>>) -> Host {
        Host {
            stub: kernel.cloned(),
            ..self
        }
    }

    fn frames(&self) -> &[Frame] {
        let is_stub = |frame: &Frame| frame.function.is_some() && frame.function.as_deref() == self.stub.as_deref();
        let frames = match &*self.frames {
            [first, rest @ ..] if !rest.is_empty() && is_stub(first) => rest,
            all => all,
        };
        match config::get().callers {
            0 => frames,
            most => &frames[..frames.len().min(most)],
        }
    }

    /// The heading of its frames.
    fn title(&self) -> String {
        let call = self.call.plain();
        match self.role {
            Role::Launch => format!("the kernel was launched by {call}"),
            Role::Node => format!("the kernel's node was made by {call}"),
            Role::Allocation(start) => format!("the allocation at {start:#x} was made by {call}"),
            Role::Free(start) => format!("the allocation at {start:#x} was freed by {call}"),
            Role::Made => format!("the memory was made by {call}"),
            Role::Call => format!("{call} was called"),
            Role::Operation(what) => format!("the {what} was asked for"),
            Role::Access(what) => format!("the {what} by the host is"),
        }
    }

    pub fn json(&self) -> Value {
        let mut object = Map::new();
        let (word, start) = match self.role {
            Role::Launch => ("launch", None),
            Role::Node => ("node", None),
            Role::Allocation(start) => ("allocation", Some(start)),
            Role::Free(start) => ("free", Some(start)),
            Role::Made => ("allocation", None),
            Role::Call => ("call", None),
            Role::Operation(what) => (what, None),
            Role::Access(_) => ("host", None),
        };
        object.insert("what".into(), word.into());
        object.insert("title".into(), self.title().into());
        if let Some(start) = start {
            object.insert("address".into(), format!("{start:#x}").into());
        }
        object.insert("call".into(), self.call.plain().into());
        object.insert("stack".into(), self.frames().iter().map(frame).collect());
        Value::Object(object)
    }
}

fn frame(frame: &Frame) -> Value {
    let mut object = Map::new();
    if let Some(function) = &frame.function {
        object.insert("function".into(), function.as_str().into());
        object.insert("name".into(), demangle(function).into());
    }
    match &frame.place {
        Place::Line { file, line } => {
            object.insert("file".into(), file.as_str().into());
            object.insert("line".into(), json!(line));
        }
        Place::Object { file, offset } => {
            object.insert("module".into(), file.as_str().into());
            object.insert("offset".into(), format!("{offset:#x}").into());
        }
    }
    Value::Object(object)
}

/// What they add to a report: lines, each with the end of the one before.
pub fn words_of_hosts(hosts: &[Host]) -> String {
    let mut text = String::new();
    for host in hosts {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n  {}", host.title());
        for (index, frame) in host.frames().iter().enumerate() {
            let word = if index == 0 { "at" } else { "from" };
            let _ = match &frame.place {
                Place::Line { file, line } => write!(text, "\n    {word} {file}:{line}"),
                Place::Object { file, offset } => write!(text, "\n    {word} {file}+{offset:#x}"),
            };
            if let Some(function) = &frame.function {
                let _ = write!(text, " in {}", demangle(function));
            }
        }
    }
    text
}

/// Who launched a kernel, and who made and freed the memory that its report names.
pub fn hosts(launch: Option<&Launch>, memory: &[Nearest]) -> Vec<Host> {
    let mut hosts: Vec<Host> = launch.and_then(of_launch).into_iter().collect();
    let mut seen: Vec<u64> = Vec::new();
    for Nearest { allocation, freed, .. } in memory {
        if !seen.contains(&allocation.id) {
            seen.push(allocation.id);
            hosts.extend(of_allocation(allocation, *freed));
        }
    }
    hosts
}

fn of_launch(launch: &Launch) -> Option<Host> {
    let role = if launch.family.is_node {
        Role::Node
    } else {
        Role::Launch
    };
    let kernel = launch.code.module.functions.get(launch.kernel as usize);
    let host = Host::of(role, launch.family.by)?;
    Some(host.launching(kernel.map(|kernel| &kernel.name)))
}

fn of_allocation(allocation: &Allocation, freed: bool) -> impl Iterator<Item = Host> {
    let made = Host::of(Role::Allocation(allocation.start), allocation.allocated_by);
    let end = freed.then(|| Host::of(Role::Free(allocation.start), allocation.freed_by));
    made.into_iter().chain(end.flatten())
}
