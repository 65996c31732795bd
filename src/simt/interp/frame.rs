//! Register windows, and activations of functions.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::Arc;

use arrayvec::ArrayVec;

use crate::isa::lanes::{MAX_WARPS, WARP};
use crate::simt::machine::NONE;

use super::code::Executable;
use super::compile::Pc;

/// A register window: zeroed when new, 128-byte aligned.
pub struct Window {
    memory: Option<Memory>,
    /// Block for which block-dependent initial values were set; 0: none, not even constants.
    pub epoch: u64,
}

/// What stands behind a window.
struct Memory {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it owns what it points to, and moves between threads only with the bundle that owns the window.
unsafe impl Send for Memory {}

impl Memory {
    fn zeroed(layout: Layout) -> Memory {
        // SAFETY: windows are not empty.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else {
            handle_alloc_error(layout)
        };
        Memory { start, layout }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout, in `zeroed`.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

thread_local! {
    /// A few windows of the thread's last bundles, for its next ones: of small grids they cost more than all else.
    static KEPT: RefCell<ArrayVec<Memory, 8>> = const { RefCell::new(ArrayVec::new_const()) };
}

/// Larger windows are not kept: 8 of these are a fraction of a megabyte.
const KEPT_BYTES: usize = 48 << 10;

impl Window {
    pub fn new(bytes: u32) -> Window {
        // A predicate is read as a whole bundle's words whatever the width: room for that at the end.
        let layout = Layout::from_size_align(bytes as usize + 128, 128).expect("windows are small");
        // A thread that is about to end has kept nothing.
        let kept = KEPT.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            let fits = kept.last().is_some_and(|memory| memory.layout == layout);
            if fits { kept.pop() } else { None }
        });
        let memory = match kept {
            Ok(Some(memory)) => {
                // SAFETY: memory of this size, which nobody else has.
                unsafe { memory.start.as_ptr().write_bytes(0, layout.size()) };
                memory
            }
            _ => Memory::zeroed(layout),
        };
        Window {
            memory: Some(memory),
            epoch: 0,
        }
    }

    pub fn regs(&self) -> *mut u8 {
        self.memory
            .as_ref()
            .map_or(std::ptr::null_mut(), |memory| memory.start.as_ptr())
    }

    /// All of it.
    pub(super) fn bytes(&self) -> &[u8] {
        match &self.memory {
            // SAFETY: it is so large, zeroed when new, and written by operations of the bundle that owns it alone, of which none is
            // under way while somebody has this borrow.
            Some(memory) => unsafe { std::slice::from_raw_parts(memory.start.as_ptr(), memory.layout.size()) },
            None => &[],
        }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        let Some(memory) = self.memory.take().filter(|memory| memory.layout.size() <= KEPT_BYTES) else {
            return;
        };
        // What there is no room for goes, as it does when the thread is ending.
        let _ = KEPT.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            if kept.is_full() {
                kept.clear();
            }
            kept.push(memory);
        });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_was_used_before_is_zeroed() {
        let size = 1024;
        let used = Window::new(size);
        let start = used.regs();
        // SAFETY: the window has so many bytes.
        unsafe { start.write_bytes(0xA5, size as usize) };
        drop(used);
        let again = Window::new(size);
        assert_eq!(again.regs(), start, "the thread has kept it");
        // SAFETY: the window lives, has so many bytes, and nobody else has it.
        let bytes = unsafe { std::slice::from_raw_parts(again.regs(), size as usize) };
        assert!(bytes.iter().all(|&byte| byte == 0));
        assert_eq!(again.epoch, 0);
        // One of another size is not cut from it.
        drop(again);
        assert_ne!(Window::new(2 * size).regs(), start);
    }
}
