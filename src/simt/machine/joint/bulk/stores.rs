//! `st.async`, `red.async` and `st.bulk`.

use super::{check_barrier, places, range, tell_begin};
use crate::isa::lanes::WARP;
use crate::program::{Proxy, Space};
use crate::simt::cause::Cause;
use crate::simt::machine::access;
use crate::simt::machine::access::Lanes;
use crate::simt::machine::asynchronous::{Completion, Operation, Owner, Work};
use crate::simt::machine::atomic::Element;
use crate::simt::machine::context::{Cx, Env, RawFault};
use crate::simt::machine::held::{Accessed, Held};
use crate::simt::machine::mbarrier::Report;
use crate::simt::machine::observe::Direction;
use crate::simt::machine::slots::{bits, read};
use crate::simt::machine::state::State;
use crate::simt::machine::step::Operands;
use crate::simt::machine::window;

/// Values of a warp's lanes on their way to memory.
struct Stores {
    to: Lanes,
    lanes: u32,
    values: Vec<[u8; 32]>,
    /// Bytes of an element, and how many there are.
    bytes: usize,
    count: usize,
    element: Option<Element>,
}

impl Work for Stores {
    fn finish(&mut self, env: &Env<'_>) -> Result<Report, Cause> {
        let whole = self.bytes * self.count;
        for (i, value) in bits(self.lanes).zip(&self.values) {
            access::still(env, self.to[i], whole as u64, Direction::Write)?;
            // SAFETY: the place was checked when this began, and found to be there still.
            unsafe {
                match self.element {
                    Some(element) => (element.apply)(self.to[i], value.as_ptr() as u64, false),
                    None => std::ptr::copy_nonoverlapping(value.as_ptr(), self.to[i] as *mut u8, whole),
                }
            }
        }
        Ok(Report::default())
    }
}

/// `st.async`, `red.async`
///
/// # Safety
/// Slots of `operands` lie in the running window.
pub(super) unsafe fn store<const WATCHED: bool>(
    (element, bytes, count): (Option<Element>, usize, usize),
    operands: &Operands,
    cx: &mut Cx<'_>,
    state: &mut State,
) -> Result<(), RawFault> {
    let direction = match element {
        Some(_) => Direction::Atomic,
        None => Direction::Write,
    };
    let whole = (bytes * count) as u64;
    for w in 0..cx.mask.warps as usize {
        if cx.mask.lanes[w] == 0 {
            continue;
        }
        // SAFETY: the registers of the addresses are slots of the running window.
        let (to, barriers) = unsafe {
            (
                places(cx, &operands.addresses[0], w, direction)?,
                match operands.addresses.get(1) {
                    Some(barrier) => Some(places(cx, barrier, w, Direction::Atomic)?),
                    None => None,
                },
            )
        };
        let mut rest = cx.mask.lanes[w];
        while rest != 0 {
            // Lanes with one barrier are one operation.
            let first = rest.trailing_zeros() as usize;
            let same = |i: usize| barriers.is_none_or(|barriers| barriers[i] == barriers[first]);
            let lanes = bits(rest).filter(|&i| same(i)).fold(0, |lanes, i| lanes | 1 << i);
            rest &= !lanes;
            let operation = state.asynchronous.number();
            let completion = match barriers {
                None => Completion::Nothing,
                Some(barriers) => {
                    check_barrier(cx, state, barriers[first], w * WARP + first, false)?;
                    Completion::Bytes {
                        barrier: barriers[first],
                        bytes: lanes.count_ones() * whole as u32,
                    }
                }
            };
            cx.operation = Some(operation);
            tell_begin::<WATCHED>(cx, operation, (w, lanes), completion);
            let mut values = Vec::with_capacity(WARP);
            for i in bits(lanes) {
                let lane = w * WARP + i;
                let at = (to[i], whole, whole);
                let space = operands.addresses[0].space;
                range::<WATCHED>(cx, space, lane, at, (direction, Proxy::Generic))?;
                if barriers.is_some() && !window::is_shared(cx.block, to[i], whole) {
                    let why = format!("an asynchronous store to {:#x}, which is not in shared memory", to[i]);
                    return Err(RawFault::misuse(why, lane));
                }
                let mut value = [0; 32];
                for (n, slot) in operands.src.iter().enumerate() {
                    // SAFETY: the value is a slot of the running window with a value for each lane of its width, which
                    // is at least `bytes`; `count` times that is at most 32.
                    unsafe {
                        let from = cx
                            .regs
                            .add(slot.offset as usize)
                            .add(lane * (slot.width.warp_bytes() as usize / WARP));
                        std::ptr::copy_nonoverlapping(from, value.as_mut_ptr().add(n * bytes), bytes);
                    }
                }
                values.push(value);
            }
            cx.operation = None;
            state.begin(Operation {
                owner: Owner::of(cx, w * WARP + first),
                line: None,
                work: Box::new(Stores {
                    to,
                    lanes,
                    values,
                    bytes,
                    count,
                    element,
                }),
                completion,
                number: operation,
            });
        }
    }
    Ok(())
}

/// `st.bulk`: an ordinary store, of many zeros.
///
/// # Safety
/// Slots of `operands` lie in the running window.
pub(super) unsafe fn clear<const WATCHED: bool>(operands: &Operands, cx: &mut Cx<'_>) -> Result<(), RawFault> {
    for w in 0..cx.mask.warps as usize {
        if cx.mask.lanes[w] == 0 {
            continue;
        }
        // SAFETY: the register of the address is a slot of the running window.
        let to = unsafe { places(cx, &operands.addresses[0], w, Direction::Write) }?;
        for i in bits(cx.mask.lanes[w]) {
            let lane = w * WARP + i;
            // SAFETY: the size is a slot of the running window, `lane` is of the mask.
            let bytes = unsafe { read(cx.regs, operands.src[0], lane) };
            if !bytes.is_multiple_of(8) {
                let why = format!("st.bulk of {bytes} bytes, which is no multiple of 8");
                return Err(RawFault::misuse(why, lane));
            }
            if bytes == 0 {
                continue;
            }
            if !window::is_shared(cx.block, to[i], bytes) {
                return Err(RawFault::illegal(
                    to[i].wrapping_sub(cx.block.cluster_shared()),
                    bytes,
                    true,
                    lane,
                    Space::Shared,
                ));
            }
            let space = operands.addresses[0].space;
            range::<WATCHED>(cx, space, lane, (to[i], bytes, 8), (Direction::Write, Proxy::Generic))?;
            let accessed = Accessed {
                address: to[i],
                bytes,
                write: true,
                space,
                lane,
            };
            // SAFETY: the operands are slots of the running window, `lane` is of the mask.
            unsafe { Held::of(operands, 0, lane, cx) }.check(accessed, cx.block)?;
            // SAFETY: the range was found to lie in shared memory of the block.
            unsafe { std::ptr::write_bytes(to[i] as *mut u8, 0, bytes as usize) };
        }
    }
    Ok(())
}
