//! The system calls of the PTX ABI (PTX Writer's Guide, System Calls): vprintf, malloc, free, __assertfail; and what the
//! device runtime offers to kernels in graphs (CUDA programming guide, "Conditional Graph Nodes").
//!
//! Arguments stand in the caller's frame in local memory, as for any call. Strings are read through the funnel, like a
//! kernel's own accesses.

use crate::defect;
use crate::program::{Copy3, Syscall};
use crate::simt::cause::Cause;

use super::access::string;
use super::context::{Cx, RawFault};
use super::format::{Text, print};
use super::observe::{HeapEvent, SyncEvent};
use super::slots::{first_lane, lanes};
use super::{device_runtime, frame, heap_log, tile_block};

/// Printed text is passed on when there is so much of it.
const BATCH: usize = 64 << 10;

/// Carries out a call for the lanes of `cx.mask`.
///
/// # Errors
/// A failed assertion, or a pointer that may not be read.
pub fn call<const WATCHED: bool>(
    which: Syscall,
    args: &[Copy3],
    results: &[Copy3],
    cx: &mut Cx<'_>,
) -> Result<(), RawFault> {
    cx.synchronised::<WATCHED>(|| SyncEvent::HostCall { lanes: cx.mask.lanes });
    let argument =
        |cx: &Cx<'_>, lane: usize, i: usize| u64::from_le_bytes(frame::argument::<WATCHED, 8>(cx, lane, args, i));
    let result = |cx: &Cx<'_>, lane: usize, value: u64| frame::result::<WATCHED>(cx, lane, results, value);
    let services = &cx.launch().services;
    defect::may_fail("system call", &cx.block.env.kernel().name);
    match which {
        Syscall::Vprintf => {
            let mut out = Text::default();
            for lane in lanes(&cx.mask.lanes) {
                let (format, block) = (argument(cx, lane, 0), argument(cx, lane, 1));
                let value = print::<WATCHED>(cx, lane, format, block, &mut out)?;
                result(cx, lane, u64::from(value as u32));
                if out.bytes().len() > BATCH {
                    services.print(out.bytes());
                    out = Text::default();
                }
            }
            services.print(out.bytes());
        }
        Syscall::Malloc => {
            for lane in lanes(&cx.mask.lanes) {
                let bytes = argument(cx, lane, 0);
                let address = services.malloc(bytes);
                if address != 0 {
                    cx.heap_changed::<WATCHED>(|| HeapEvent::Allocate { lane, address, bytes });
                    heap_log::allocated(cx, lane, address);
                }
                result(cx, lane, address);
            }
        }
        Syscall::Free => {
            for lane in lanes(&cx.mask.lanes) {
                let address = argument(cx, lane, 0);
                if address == 0 {
                    continue;
                }
                // Told before, for another thread may be given the memory at once.
                cx.heap_changed::<WATCHED>(|| HeapEvent::Free { lane, address });
                if !services.free(address) {
                    let cause = Cause::WrongFree { address };
                    return Err(RawFault::new(cause, lane));
                }
                heap_log::freed(cx, lane, address);
            }
        }
        Syscall::AssertFail => {
            for lane in lanes(&cx.mask.lanes) {
                let text = |i: usize| {
                    let raw = string::<WATCHED>(cx, lane, argument(cx, lane, i), usize::MAX)
                        .unwrap_or_else(|_| b"?".to_vec());
                    String::from_utf8_lossy(&raw).into_owned()
                };
                let (message, file, line, function) = (text(0), text(1), argument(cx, lane, 2) as u32, text(3));
                let [bx, by, bz] = cx.block.ctaid;
                let [nx, ny, _] = cx.launch().block;
                let t = cx.first_thread + lane as u32;
                let (x, y, z) = (t % nx, t / nx % ny, t / nx / ny);
                services.assert_failed(&format!(
                    "{file}:{line}: {function}: block: [{bx},{by},{bz}], thread: [{x},{y},{z}] Assertion `{message}` failed."
                ));
            }
            return Err(RawFault {
                cause: Cause::Assert,
                lane: first_lane(&cx.mask.lanes),
                others: 0,
            });
        }
        Syscall::TileBlock => {
            let lane = first_lane(&cx.mask.lanes);
            let (entry, variables) = (argument(cx, lane, 0) as usize, argument(cx, lane, 1));
            let next = tile_block::step::<WATCHED>(cx, lane, (entry, variables, argument(cx, lane, 2) as u32))?;
            result(cx, lane, next.into());
        }
        Syscall::Runtime(which, generation) => device_runtime::call::<WATCHED>(which, generation, args, results, cx)?,
        Syscall::GraphSetConditional => {
            for lane in lanes(&cx.mask.lanes) {
                let handle = argument(cx, lane, 0);
                if !services.set_conditional(handle, argument(cx, lane, 1) as u32) {
                    let why = format!("cudaGraphSetConditional({handle:#x}): not a conditional handle of a graph");
                    return Err(RawFault::instruction(why, lane));
                }
            }
        }
    }
    Ok(())
}
