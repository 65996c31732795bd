//! Conditional handles: values that kernels set and conditional nodes look at.
//!
//! Kernels set one by `cudaGraphSetConditional`; its value when the node's turn comes says which body runs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::RwLock;

use super::super::handle;
use super::Graph;
use crate::driver::{Error, Handle, Result};

pub struct Conditional {
    handle: Handle,
    value: AtomicU32,
    /// A node looks at it.
    is_used: AtomicBool,
    /// What the value is at the start of each launch (`CU_GRAPH_COND_ASSIGN_DEFAULT`).
    pub default: Option<u32>,
}

/// What a conditional node does.
pub struct ConditionalNode {
    pub conditional: Arc<Conditional>,
    /// `CUgraphConditionalNodeType`: 0 if, 1 while, 2 switch.
    pub kind: u32,
    pub bodies: Vec<Arc<Graph>>,
    /// `CUcontext` as given.
    pub context: Handle,
}

/// Graphs, executable ones too, keep them alive.
static CONDITIONALS: RwLock<BTreeMap<u64, Weak<Conditional>>> = RwLock::new(BTreeMap::new());

fn find(handle: u64) -> Option<Arc<Conditional>> {
    CONDITIONALS.read().get(&handle)?.upgrade()
}

/// `cudaGraphSetConditional` of a kernel; `false`: no such handle.
pub fn set(handle: u64, value: u32) -> bool {
    let found = find(handle);
    if let Some(conditional) = &found {
        conditional.value.store(value, Ordering::Release);
    }
    found.is_some()
}

impl Conditional {
    pub(super) fn create(default: Option<u32>) -> Arc<Conditional> {
        let conditional = Arc::new(Conditional {
            handle: handle::fresh(),
            value: AtomicU32::new(0),
            is_used: AtomicBool::new(false),
            default,
        });
        CONDITIONALS
            .write()
            .insert(conditional.handle(), Arc::downgrade(&conditional));
        conditional
    }

    pub fn from_handle(handle: u64) -> Result<Arc<Conditional>> {
        find(handle).ok_or(Error::InvalidValue)
    }

    pub fn handle(&self) -> u64 {
        self.handle as u64
    }

    pub(super) fn start(&self) {
        if let Some(default) = self.default {
            self.value.store(default, Ordering::Release);
        }
    }

    pub(super) fn value(&self) -> u32 {
        self.value.load(Ordering::Acquire)
    }

    pub(super) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Acquire)
    }

    /// A node looks at it from now on; 1 if one does already.
    pub(super) fn take(&self) -> Result<()> {
        match self.is_used.swap(true, Ordering::AcqRel) {
            false => Ok(()),
            true => Err(Error::InvalidValue),
        }
    }
}

impl Drop for Conditional {
    fn drop(&mut self) {
        CONDITIONALS.write().remove(&(self.handle as u64));
    }
}

impl ConditionalNode {
    /// `bodies` empty graphs: 1 or 2 for if, 1 for while, at least 1 for switch.
    pub fn new(conditional: Arc<Conditional>, kind: u32, bodies: u32, context: Handle) -> Result<ConditionalNode> {
        let fits = match kind {
            0 => (1..=2).contains(&bodies),
            1 => bodies == 1,
            2 => (1..=4096).contains(&bodies),
            _ => false,
        };
        if !fits {
            return Err(Error::InvalidValue);
        }
        let bodies = (0..bodies).map(|_| Graph::create()).collect::<Vec<_>>();
        for body in &bodies {
            body.give_away()?;
        }
        Ok(ConditionalNode {
            conditional,
            kind,
            bodies,
            context,
        })
    }

    /// Which body runs at this value.
    pub(super) fn body(&self, value: u32) -> Option<usize> {
        let wanted = match (self.kind, value) {
            (0 | 1, 0) => usize::from(self.kind == 0),
            (0 | 1, _) => 0,
            _ => value as usize,
        };
        let runs = self.kind != 1 || value != 0;
        Some(wanted).filter(|index| runs && *index < self.bodies.len())
    }
}
