//! Calls: register windows, frames in local memory, arguments and results (PTX Writer's Guide, Function Calling Sequence).
//!
//! A frame belongs to the fragment that made the call; lanes that diverge inside the callee share it, each in its own
//! lanes of the window. It goes when the last of them has returned.

use std::sync::{Arc, Weak};

use crate::isa::lanes::{MAX_WARPS, WARP};
use crate::program::{Function, Initial, Module};
use crate::simt::cause::Cause;
use crate::simt::jit::Rows;
use crate::simt::machine::frame::Between;
use crate::simt::machine::slots::{Slot, first_lane, lanes, read, write};
use crate::simt::machine::special::{self, Place};
use crate::simt::machine::{Cx, Env, NONE, RawFault};

use super::bundle::Bundle;
use super::code::{CallOp, Code, Executable};
use super::compile::Pc;
use super::frame::{Frame, Window};
use super::rare::Rare;

impl Bundle {
    /// The lanes of `cx`, of fragment `at`, enter the callee of the call at `pc`, unless that makes a chain of more
    /// than `max_depth` frames.
    pub(super) fn call(
        &mut self,
        (at, pc): (usize, Pc),
        call: &CallOp,
        cx: &mut Cx<'_>,
        max_depth: u64,
    ) -> Result<(), RawFault> {
        let taken = cx.mask.lanes;
        let mut at = self.leave(at, taken, pc);
        let lane = first_lane(&taken);
        let caller = &self.frames[self.fragments[at].frame as usize].exec;
        let width = (caller.width, caller.native.as_ref().map(|native| native.rows));
        let exec = if call.function != NONE {
            match call.resolved.get().and_then(Weak::upgrade) {
                Some(exec) => exec,
                None => {
                    let (exec, lasts) = executable(cx.block, call.function, width, lane, |_| Ok(()))?;
                    if lasts {
                        call.resolved.get_or_init(|| Arc::downgrade(&exec));
                    }
                    exec
                }
            }
        } else {
            // Lanes may call different functions: those that agree with the first go now, the others stay here.
            // SAFETY: the address is a slot of 64 bits of the code that runs, whose window `cx` has, a value for each
            // lane.
            let address = |l: usize| unsafe { *(cx.regs.add(call.address as usize) as *const u64).add(l) };
            let target = address(lane);
            let mut same = [0; MAX_WARPS];
            for (w, lanes) in taken.iter().enumerate() {
                for i in (0..WARP).filter(|i| lanes >> i & 1 == 1) {
                    same[w] |= u32::from(address(w * WARP + i) == target) << i;
                }
            }
            if same != taken {
                self.split(at, same, pc, pc);
                at = self.fragments.len() - 1;
            }
            let module = &cx.launch().code.module;
            let Some(index) = function_at(module, target) else {
                return Err(RawFault {
                    cause: Cause::InvalidPc { address: target },
                    lane,
                    others: 0,
                });
            };
            // Where parameters lie depends on the results before them. More parameters than the function takes stay behind,
            // as in registers of hardware that nobody reads.
            executable(cx.block, index, width, lane, |function| {
                if function.param_bytes > call.params || function.return_bytes != call.returns {
                    return Err(format!(
                        "indirect call of {} with {} bytes of parameters and {} of results: it takes {} and returns {}",
                        function.name, call.params, call.returns, function.param_bytes, function.return_bytes
                    ));
                }
                Ok(())
            })?
            .0
        };
        let mask = self.fragments[at].mask;
        let parent = self.fragments[at].frame;
        let caller = &self.frames[parent as usize];
        let function = &exec.function;
        let align = function.local_align.max(16);
        let base = caller.top().next_multiple_of(align);
        let end = u64::from(base) + u64::from(function.local);
        let depth = caller.depth + 1;
        // Windows live on the host's heap: bound the depth of frames that use no local memory as well.
        if end > u64::from(cx.block.local_stride) || u64::from(depth) > max_depth {
            let limit = u64::from(cx.block.local_stride);
            return Err(RawFault {
                cause: Cause::StackOverflow { needed: end, limit },
                lane,
                others: 0,
            });
        }
        let frames = Between {
            from: caller.base,
            to: base,
            readable: caller.exec.function.local,
            writable: function.return_bytes + function.param_bytes,
        };
        cx.span = call.span;
        (exec.machine.copy_frame)(cx, &mask, &call.args, frames);
        let window = self.window_for(&exec, cx.block);
        let frame = Frame {
            exec,
            window: Some(window),
            base,
            refs: 1,
            depth,
            parent,
            call: pc,
            tops: None,
        };
        let index = match self.vacant.pop() {
            Some(i) => {
                self.frames[i as usize] = frame;
                i
            }
            None => {
                self.frames.push(frame);
                self.frames.len() as u32 - 1
            }
        };
        // The fragment leaves the caller's frame, the callee's frame takes its place in the count.
        let f = &mut self.fragments[at];
        f.frame = index;
        f.pc = 0;
        Ok(())
    }

    /// A window for a call of a function: what is set beforehand is there, and registers hold anything.
    pub(super) fn window_for(&mut self, exec: &Arc<Executable>, block: &Env<'_>) -> Window {
        let key = Arc::as_ptr(exec) as usize;
        let mut window = self
            .windows
            .get_mut(&key)
            .and_then(Vec::pop)
            .unwrap_or_else(|| Window::new(exec.window));
        if window.epoch != self.epoch {
            let place = Place {
                block,
                first_thread: self.first_thread,
                warps: self.warps,
            };
            for (slot, initial) in &exec.initial {
                let stale = match initial {
                    Initial::Special(which) => !special::outlives_block(*which),
                    Initial::Constant(_) | Initial::Param { .. } => false,
                };
                if window.epoch == 0 || stale {
                    // SAFETY: the window was made for this executable, whose slots these are.
                    unsafe { special::set_initial(window.regs(), *slot, initial, &place) };
                }
            }
            window.epoch = self.epoch;
        }
        window
    }

    /// The functions from a frame to the kernel, with the instruction at which each stands.
    #[cold]
    pub(super) fn stack(&self, frame: u32, pc: Pc) -> Vec<(Arc<Executable>, Pc)> {
        let (mut frame, mut pc) = (&self.frames[frame as usize], pc);
        let mut stack = Vec::new();
        loop {
            stack.push((Arc::clone(&frame.exec), pc));
            if frame.depth == 0 {
                return stack;
            }
            pc = frame.call;
            frame = &self.frames[frame.parent as usize];
        }
    }

    /// One reference to a frame less; frames nobody is in any more go, and with them their hold on their callers.
    pub(super) fn release(&mut self, frame: u32) {
        let mut frame = frame;
        loop {
            let f = &mut self.frames[frame as usize];
            f.refs -= 1;
            if f.refs != 0 || f.depth == 0 {
                return;
            }
            let key = Arc::as_ptr(&f.exec) as usize;
            let window = f.window.take();
            let parent = f.parent;
            self.windows.entry(key).or_default().extend(window);
            self.vacant.push(frame);
            frame = parent;
        }
    }

    /// Lanes `taken` of fragment `at` return from their function; from the kernel, they exit: then `true`.
    pub(super) fn ret(&mut self, at: usize, taken: [u32; MAX_WARPS], pc: Pc, cx: &mut Cx<'_>) -> bool {
        let index = self.fragments[at].frame;
        let frame = &self.frames[index as usize];
        if frame.depth == 0 {
            self.exit(at, taken, pc);
            return true;
        }
        let at = self.leave(at, taken, pc);
        let frame = &self.frames[index as usize];
        let (parent, call, base) = (frame.parent, frame.call, frame.base);
        let caller = &self.frames[parent as usize];
        if let Code::Call(op) = &caller.exec.code[call as usize].code {
            let frames = Between {
                from: base,
                to: caller.base,
                readable: frame.exec.function.return_bytes,
                writable: caller.exec.function.local,
            };
            cx.span = op.span;
            (frame.exec.machine.copy_frame)(cx, &taken, &op.results, frames);
        }
        self.frames[parent as usize].refs += 1;
        let f = &mut self.fragments[at];
        f.frame = parent;
        f.pc = call + 1;
        self.release(index);
        false
    }

    fn tops(&mut self, at: usize) -> &mut [u32; MAX_WARPS * WARP] {
        let frame = &mut self.frames[self.fragments[at].frame as usize];
        let top = frame.base + frame.exec.function.local;
        frame.tops.get_or_insert_with(|| Box::new([top; MAX_WARPS * WARP]))
    }

    /// `alloca`: the next bytes of the lane's local window (PTX ISA, alloca).
    pub(super) fn alloca(&mut self, at: usize, dst: Slot, size: Slot, align: u32, cx: &Cx<'_>) -> Rare {
        let limit = u64::from(cx.block.local_stride);
        let tops = self.tops(at);
        for lane in lanes(&cx.mask.lanes) {
            // SAFETY: `size` is a slot of the code that runs, whose window `cx` has; `lane` is of its mask.
            let bytes = unsafe { read(cx.regs, size, lane) };
            let start = tops[lane].next_multiple_of(align.max(1));
            let end = u64::from(start).saturating_add(bytes);
            if end > limit {
                return Rare::Fault(RawFault {
                    cause: Cause::StackOverflow { needed: end, limit },
                    lane,
                    others: 0,
                });
            }
            tops[lane] = end as u32;
            // SAFETY: `dst` is a slot of the code that runs, whose window `cx` has; `lane` is of its mask.
            unsafe { write(cx.regs, dst, lane, u64::from(start)) };
        }
        Rare::Next
    }

    pub(super) fn stack_save(&mut self, at: usize, dst: Slot, cx: &Cx<'_>) {
        let tops = self.tops(at);
        for lane in lanes(&cx.mask.lanes) {
            // SAFETY: `dst` is a slot of the code that runs, whose window `cx` has; `lane` is of its mask.
            unsafe { write(cx.regs, dst, lane, u64::from(tops[lane])) };
        }
    }

    pub(super) fn stack_restore(&mut self, at: usize, src: Slot, cx: &Cx<'_>) {
        let limit = cx.block.local_stride;
        let tops = self.tops(at);
        for lane in lanes(&cx.mask.lanes) {
            // SAFETY: `src` is a slot of the code that runs, whose window `cx` has; `lane` is of its mask.
            let value = unsafe { read(cx.regs, src, lane) };
            tops[lane] = u32::try_from(value).unwrap_or(limit).min(limit);
        }
    }
}

/// The number of the function to which an address leads, if it is one's.
pub(super) fn function_at(module: &Module, address: u64) -> Option<u32> {
    let index = address.wrapping_sub(module.code_base) / 16;
    let is_one = address.is_multiple_of(16) && index < module.functions.len() as u64;
    is_one.then_some(index as u32)
}

/// Function `index` of the launch's module for bundles of `width` warps, made if need be; `fits` may refuse it.
pub(super) fn executable(
    block: &Env<'_>,
    index: u32,
    (width, rows): (u32, Option<Rows>),
    lane: usize,
    fits: impl FnOnce(&Function) -> Result<(), String>,
) -> Result<(Arc<Executable>, bool), RawFault> {
    let code = &block.env.launch().code;
    let lowered = code.module.prepare(index).map_err(|d| d.to_string());
    let function = lowered.and_then(|function| fits(&function).map(|()| function));
    let function = function.map_err(|why| RawFault::instruction(why, lane))?;
    let (native, lasts) = match rows {
        Some(rows) => code.native_callee(index, &function, rows),
        None => (None, true),
    };
    let exec = native.unwrap_or_else(|| code.executable(index, &function, width, block.env.watch()));
    Ok((exec, lasts))
}
