//! Fragments run compiled code: they enter it with their registers in the window, and leave it as the fragments that they
//! have become.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::isa::lanes::{MAX_WARPS, Mask};
use crate::memory::{AddressSpace, READ, WRITE};
use crate::program::Op as Operation;
use crate::simt::jit::Native;
use crate::simt::jit::context::{Context, Cut, Extent, LaneCall, SCRATCH, outcome, step};
use crate::simt::machine::slots::{Slot, first_lane, read};
use crate::simt::machine::state::State as BlockState;
use crate::simt::machine::{BlockEnv, Copy, Cx, MemOp, NONE, RawFault, warp};

use super::bundle::{Bundle, Conditions, Located, State};
use super::code::{Code, Executable};
use super::collective;
use super::compile::Pc;
use crate::isa::lanes::Width;
use crate::program::Space;

/// Instructions that code runs until it comes back for a look at the clock.
const BUDGET: i64 = 1 << 19;

/// What the helpers know besides what code sees.
#[repr(C)]
struct Run<'a, 'b> {
    /// First, so that code's context is this.
    context: Context,
    cx: &'a mut Cx<'b>,
    state: &'a mut BlockState,
    exec: &'a Executable,
    native: &'a Native,
    live: [u32; MAX_WARPS],
    /// The instruction that a helper was asked for last.
    pc: Pc,
    /// A helper has panicked: it goes on when code has returned.
    panic: Option<Box<dyn Any + Send>>,
}

/// Extents of one function's sites, as the thread has seen them.
struct Extents {
    native: usize,
    /// The state of the address space for which they hold.
    version: u64,
    extents: Box<[Extent]>,
}

thread_local! {
    /// Of the functions that the thread has run last.
    static EXTENTS: RefCell<Vec<Extents>> = const { RefCell::new(Vec::new()) };
}

/// Functions of which a thread remembers extents.
const REMEMBERED: usize = 8;

/// The extents of a function's sites. They stay where they are until the thread has run some other functions.
fn extents(native: &Native) -> *mut Extent {
    let key = std::ptr::from_ref(native) as usize;
    let version = AddressSpace::get().version();
    EXTENTS.with(|all| {
        let mut all = all.borrow_mut();
        let at = match all.iter().position(|one| one.native == key && one.extents.len() == native.sites.len()) {
            Some(at) => at,
            None => {
                if all.len() == REMEMBERED {
                    all.remove(0);
                }
                all.push(Extents {
                    native: key,
                    version,
                    extents: vec![Extent::NONE; native.sites.len()].into(),
                });
                all.len() - 1
            }
        };
        let one = &mut all[at];
        if one.version != version {
            one.extents.fill(Extent::NONE);
            one.version = version;
        }
        one.extents.as_mut_ptr()
    })
}

impl Bundle {
    /// Fragment `at` enters its function's code at this entry. `false`: it cannot, for its lanes differ where the code takes
    /// them for the same; nothing was done.
    ///
    /// # Errors
    /// The first fault.
    pub(super) fn run_native(
        &mut self,
        at: usize,
        (native, entry): (&Native, u32),
        block: &BlockEnv<impl Conditions>,
        state: &mut BlockState,
    ) -> Result<bool, Box<Located>> {
        let fragment = self.fragments[at].clone();
        let exec = std::sync::Arc::clone(&self.frames[fragment.frame as usize].exec);
        let mut cx = self.context(&fragment, &exec, block);
        let regs = cx.regs;
        let budget = self.share.clamp(1, BUDGET);
        let context = Context {
            step: step_for,
            lane: lane_call,
            calls: native.calls.as_ptr(),
            extents: extents(native),
            shared: block.shared,
            shared_start: u64::from(cx.block.shared_start()),
            shared_bytes: u64::from(block.shared_bytes),
            cluster_shared: cx.block.cluster_shared(),
            local: cx.local(0),
            local_stride: u64::from(block.local_stride),
            frame: u64::from(cx.frame),
            param: block.param,
            param_bytes: u64::from(block.param_bytes),
            budget,
            cut_count: 0,
            cuts: [Cut::default(); 32],
            scratch: [0; SCRATCH],
        };
        let mut run = Run {
            context,
            cx: &mut cx,
            state,
            exec: &exec,
            native,
            live: self.live,
            pc: fragment.pc,
            panic: None,
        };
        // SAFETY: the code was made for this executable, in whose window the fragment runs; the context's pointers are to
        // what lives until it returns; the entry is one of its own.
        let outcome = unsafe { (native.run)(&raw mut run.context, regs, entry, fragment.mask[0]) };
        if let Some(panic) = run.panic.take() {
            resume_unwind(panic);
        }
        let (pc, fault) = (run.pc, run.cx.fault.take());
        let (count, cuts, left) = (run.context.cut_count as usize, run.context.cuts, run.context.budget);
        match outcome {
            outcome::LEFT => {}
            outcome::NOT_ENTERED => return Ok(false),
            _ => {
                let lane = first_lane(&fragment.mask);
                return Err(Box::new(Located {
                    fault: fault.unwrap_or_else(|| RawFault::instruction("compiled code gave up".into(), lane)),
                    stack: self.stack(fragment.frame, pc),
                    first_thread: self.first_thread,
                }));
            }
        }
        let spent = (budget - left).max(1);
        self.share -= spent;
        self.slice -= spent;
        for (number, cut) in cuts[..count].iter().enumerate() {
            let place = match number {
                0 => at,
                _ => {
                    self.frames[fragment.frame as usize].refs += 1;
                    self.fragments.push(fragment.clone());
                    self.fragments.len() - 1
                }
            };
            let fragment = &mut self.fragments[place];
            (fragment.pc, fragment.state) = (cut.pc, State::Ready);
            fragment.mask = [0; MAX_WARPS];
            fragment.mask[0] = cut.lanes;
        }
        Ok(true)
    }
}

/// An operation on copies of registers.
extern "C" fn lane_call(call: *const LaneCall, scratch: *mut u8) {
    // SAFETY: code passes one of the calls that were made with it, and scratch memory laid out as its operands say; kernels
    // are of the level that the CPU was found to have, and do not panic.
    unsafe { ((*call).run)(scratch, &(*call).operands, &(*call).mask) }
}

/// An instruction of the interpreter's code.
extern "C" fn step_for(context: *mut Context, _regs: *mut u8, pc: Pc, lanes: u32, site: u32) -> u32 {
    // SAFETY: code passes the context that it was given, which is the first field of a `Run`, and holds no reference to it.
    let run = unsafe { &mut *context.cast::<Run<'_, '_>>() };
    run.pc = pc;
    match catch_unwind(AssertUnwindSafe(|| run.step(pc, lanes, site))) {
        Ok(answer) => answer,
        Err(panic) => {
            run.panic = Some(panic);
            step::FAULT
        }
    }
}

impl Run<'_, '_> {
    fn step(&mut self, pc: Pc, lanes: u32, site: u32) -> u32 {
        let mut mask = [0; MAX_WARPS];
        mask[0] = lanes;
        self.cx.mask = Mask { warps: 1, lanes: mask };
        let cx = &mut *self.cx;
        let machine = self.exec.machine;
        let done = match &self.exec.code[pc as usize].code {
            Code::Lane { kernel, operands } => {
                // SAFETY: the operands are slots of the window, which `cx` has; kernels are of the CPU's level.
                unsafe { (kernel.masked)(cx.regs, operands, &cx.mask) };
                true
            }
            Code::Load { run, mem } | Code::Store { run, mem } => {
                // SAFETY: `mem` has slots of the window, which `cx` has.
                let done = unsafe { run(cx, mem) };
                if done && site != u32::MAX {
                    let writes = matches!(self.exec.code[pc as usize].code, Code::Store { .. });
                    self.remember(pc, site as usize, writes);
                }
                done
            }
            // SAFETY: `atom` has slots of the window, which `cx` has.
            Code::Atomic { run, atom } => unsafe { run(cx, atom) },
            Code::Rare(op) => {
                let fault = match &**op {
                    Operation::CopyAsync {
                        dst,
                        src,
                        bytes,
                        src_size,
                        ignore,
                    } => {
                        let copy = Copy {
                            dst,
                            src,
                            bytes: *bytes,
                            src_size: *src_size,
                            ignore: *ignore,
                        };
                        // SAFETY: the operands are slots of the window, which `cx` has.
                        unsafe { (machine.copy_async)(cx, &copy, self.state) }
                    }
                    Operation::CopyGroup(group) => (machine.copy_group)(cx, *group, self.state),
                    other => {
                        if let Some(members) = collective::members(other) {
                            // SAFETY: the member mask is a number or a slot of the window, which `cx` has.
                            let ready = unsafe { warp::gathered(cx, members, &self.live) };
                            if ready != cx.mask.lanes {
                                return step::MISSING;
                            }
                        }
                        // SAFETY: `op` is of the code in whose window `cx` is.
                        unsafe { collective::execute(other, cx, machine) }
                    }
                };
                cx.fault = fault;
                cx.fault.is_none()
            }
            Code::Branch { .. }
            | Code::BranchIndexed { .. }
            | Code::BarrierAll { .. }
            | Code::Call(_)
            | Code::Return
            | Code::Exit => unreachable!("code is left before these"),
        };
        if done { step::DONE } else { step::FAULT }
    }

    /// Looks up where an access that was carried out for the lanes of the mask may go without being asked.
    fn remember(&mut self, pc: Pc, site: usize, writes: bool) {
        let (Code::Load { mem, .. } | Code::Store { mem, .. }) = &self.exec.code[pc as usize].code else {
            return;
        };
        if !matches!(mem.space, Space::Generic | Space::Global | Space::Const) {
            return;
        }
        let address = self.address(mem);
        let bits = if writes { WRITE } else { READ };
        let (low, length) = self.cx.block.view.around(address, bits);
        let reach = self.native.sites[site];
        let extent = Extent {
            low,
            room: (length + 1).saturating_sub(reach),
        };
        // SAFETY: there is an extent for each site; nobody else has them, for they are the thread's.
        unsafe { *self.context.extents.add(site) = extent };
    }

    /// The address of the first lane of the mask.
    fn address(&self, mem: &MemOp) -> u64 {
        let register = if mem.register == NONE {
            0
        } else {
            let slot = Slot {
                offset: mem.register,
                width: if mem.narrow { Width::B32 } else { Width::B64 },
            };
            // SAFETY: the address register is a slot of the window, which `cx` has.
            unsafe { read(self.cx.regs, slot, first_lane(&self.cx.mask.lanes)) }
        };
        register.wrapping_add(mem.offset as u64)
    }
}
