//! Who has allocated and freed the blocks of the kernels' heap, where accesses are checked to the byte: a wrong free, or an access
//! to what was freed, is told together with where the block came from and where it went.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Weak};

use parking_lot::Mutex;

use super::context::Cx;
use crate::memory;
use crate::ptx::ast::Span;
use crate::simt::executables::Executables;

/// Blocks that are remembered; of more none is.
const MOST: usize = 1 << 20;

/// Who did something, and where; the place is looked up when somebody asks.
#[derive(Clone)]
pub struct Deed {
    /// Its module, if that is still there.
    pub code: Weak<Executables>,
    /// The function's address.
    pub function: usize,
    pub span: Span,
    pub block: [u32; 3],
    pub thread: [u32; 3],
}

struct Block {
    allocated: Deed,
    freed: Option<Deed>,
}

/// By where a block starts.
static BLOCKS: LazyLock<Mutex<HashMap<u64, Block>>> = LazyLock::new(Mutex::default);

impl Deed {
    fn of(cx: &Cx<'_>, lane: usize) -> Deed {
        let launch = cx.launch();
        let [x, y, _] = launch.block;
        let thread = cx.first_thread + lane as u32;
        Deed {
            code: Arc::downgrade(&launch.code),
            function: std::ptr::from_ref(cx.function) as usize,
            span: cx.span,
            block: cx.block.ctaid,
            thread: [thread % x, thread / x % y, thread / x / y],
        }
    }
}

/// A lane has been given a block.
pub(super) fn allocated(cx: &Cx<'_>, lane: usize, address: u64) {
    if !memory::exact() {
        return;
    }
    let mut blocks = BLOCKS.lock();
    if blocks.len() < MOST || blocks.contains_key(&address) {
        let block = Block {
            allocated: Deed::of(cx, lane),
            freed: None,
        };
        blocks.insert(address, block);
    }
}

/// A lane gives a block back.
pub(super) fn freed(cx: &Cx<'_>, lane: usize, address: u64) {
    if memory::exact()
        && let Some(block) = BLOCKS.lock().get_mut(&address)
    {
        // Who frees it again did not free it.
        block.freed.get_or_insert_with(|| Deed::of(cx, lane));
    }
}

/// Who allocated the block that starts at an address, and who freed it, as far as that is known.
pub fn of(address: u64) -> (Option<Deed>, Option<Deed>) {
    match BLOCKS.lock().get(&address) {
        Some(block) => (Some(block.allocated.clone()), block.freed.clone()),
        None => (None, None),
    }
}
