//! Register windows, and activations of functions.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::Arc;

use crate::isa::lanes::{MAX_WARPS, WARP};
use crate::simt::machine::NONE;

use super::code::Executable;
use super::compile::Pc;

/// A register window: zeroed when new, 128-byte aligned.
pub struct Window {
    memory: NonNull<u8>,
    layout: Layout,
    /// Block for which block-dependent initial values were set; 0: none, not even constants.
    pub epoch: u64,
}

// SAFETY: the window owns its memory; it moves between threads only with the bundle that owns it.
unsafe impl Send for Window {}

impl Window {
    pub fn new(bytes: u32) -> Window {
        // A predicate is read as a whole bundle's words whatever the width: room for that at the end.
        let layout = Layout::from_size_align(bytes as usize + 128, 128).expect("windows are small");
        // SAFETY: the size is not zero.
        let memory = unsafe { alloc_zeroed(layout) };
        let Some(memory) = NonNull::new(memory) else {
            handle_alloc_error(layout)
        };
        Window {
            memory,
            layout,
            epoch: 0,
        }
    }

    pub fn regs(&self) -> *mut u8 {
        self.memory.as_ptr()
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout in `new`.
        unsafe { dealloc(self.memory.as_ptr(), self.layout) }
    }
}

/// One activation of a function by some lanes.
pub struct Frame {
    pub exec: Arc<Executable>,
    pub(super) window: Option<Window>,
    /// Where it starts in each lane's local window.
    pub base: u32,
    /// Fragments in it plus frames called from it.
    pub refs: u32,
    pub depth: u32,
    /// The caller's frame and the pc of its call; no meaning at depth 0.
    pub(super) parent: u32,
    pub(super) call: Pc,
    /// Per lane, the end of what `alloca` took; absent until the first.
    pub(super) tops: Option<Box<[u32; MAX_WARPS * WARP]>>,
}

impl Frame {
    pub fn kernel(exec: Arc<Executable>, window: Window) -> Frame {
        Frame {
            exec,
            window: Some(window),
            base: 0,
            refs: 1,
            depth: 0,
            parent: NONE,
            call: 0,
            tops: None,
        }
    }

    /// The register window.
    pub fn regs(&self) -> *mut u8 {
        self.window.as_ref().map_or(std::ptr::null_mut(), Window::regs)
    }

    /// As at the kernel's first instruction.
    pub fn reset(&mut self) {
        self.refs = 1;
        self.tops = None;
    }

    /// First byte above the frame that no lane uses.
    pub(super) fn top(&self) -> u32 {
        let fixed = self.base + self.exec.function.local;
        self.tops
            .as_ref()
            .map_or(fixed, |tops| tops.iter().copied().max().unwrap_or(0).max(fixed))
    }
}
