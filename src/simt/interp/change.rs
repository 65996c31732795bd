//! Warps go on in compiled code that has come while they ran: a bundle of several becomes bundles of one, each at the places
//! where its lanes stood, with what their registers held.
//!
//! Code numbers its instructions alike for bundles of all widths, and gives registers the same slots. What the form without spared
//! instructions ([`super::affine`]) has not computed is made up where somebody may still read it.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use crate::isa::lanes::{MAX_WARPS, WARP, Width};
use crate::program::passes::liveness::{self, Flow};
use crate::program::{BlockId, Body};
use crate::simt::jit::Rows;
use crate::simt::machine::joint::warpgroup::Moved;
use crate::simt::machine::slots::{Slot, first_lane, lanes, read, write};
use crate::simt::machine::{BlockEnv, NONE};

use super::bundle::{Bundle, Conditions, Fragment};
use super::calls;
use super::code::{Code, Executable};
use super::compile::{Compiled, Pc};
use super::frame::Frame;
use super::native::only;

/// Which registers are live, at the places of a kernel where somebody stands.
pub struct Living<'k> {
    compiled: &'k Compiled,
    flow: Option<Flow>,
    found: HashMap<Pc, Rc<[bool]>>,
}

impl<'k> Living<'k> {
    pub fn of(kernel: &'k Executable) -> Living<'k> {
        Living {
            compiled: &kernel.compiled,
            flow: None,
            found: HashMap::new(),
        }
    }

    /// By register.
    fn before(&mut self, pc: Pc) -> Rc<[bool]> {
        if let Some(live) = self.found.get(&pc) {
            return Rc::clone(live);
        }
        let (starts, body): (_, &Body) = (&self.compiled.starts, &self.compiled.function.body);
        let flow = self.flow.get_or_insert_with(|| {
            let order: Vec<BlockId> = (0..body.blocks.len() as BlockId).collect();
            Flow::of(body, &order)
        });
        // Of blocks that begin at one place all but the last are empty.
        let block = starts.partition_point(|&start| start <= pc).saturating_sub(1);
        let index = pc - starts[block];
        let live: Rc<[bool]> = liveness::before(body, flow, (block as BlockId, index as usize)).into();
        self.found.insert(pc, Rc::clone(&live));
        live
    }
}

impl Bundle {
    /// Its warps as bundles of their own, which run `kernel`, a form of the same kernel for one warp with compiled code; and where
    /// registers have moved. `None`: a function that was called has no such form.
    pub fn apart(
        &self,
        kernel: &Arc<Executable>,
        block: &BlockEnv<impl Conditions>,
        (living, moved): (&mut Living<'_>, &mut Vec<Moved>),
    ) -> Option<Vec<Bundle>> {
        let warps = 0..self.warps as usize;
        warps.map(|w| self.warp(w, kernel, block, (living, moved))).collect()
    }

    fn warp(
        &self,
        w: usize,
        kernel: &Arc<Executable>,
        block: &BlockEnv<impl Conditions>,
        (living, moved): (&mut Living<'_>, &mut Vec<Moved>),
    ) -> Option<Bundle> {
        let first_thread = self.first_thread + (w * WARP) as u32;
        let mut one = Bundle::new(kernel, first_thread, self.exist[w].count_ones(), block);
        one.enter(block);
        one.live = only(self.live[w]);
        (one.ways, one.shares) = (self.ways, self.shares);
        (one.spins, one.looked) = (self.spins, self.looked);
        one.fragments.clear();
        one.frames[0].refs = 0;
        // The kernel's frame is the first one of every bundle.
        let mut frames = HashMap::from([(0, 0)]);
        self.copy_registers_of(w, 0, &one.frames[0]);
        for fragment in self.fragments.iter().filter(|fragment| fragment.mask[w] != 0) {
            let frame = self.carry(w, fragment, fragment.frame, &mut one, &mut frames, block)?;
            one.frames[frame as usize].refs += 1;
            let exec = &self.frames[fragment.frame as usize].exec;
            one.fragments.push(Fragment {
                pc: exec.pc_in_function(fragment.pc),
                frame,
                mask: only(fragment.mask[w]),
                ..fragment.clone()
            });
            self.make_up(w, fragment, &one.frames[0], living);
        }
        moved.extend(frames.iter().map(|(&from, &to)| Moved {
            warp: self.first_warp() + w,
            from: self.frames[from as usize].regs(),
            to: one.frames[to as usize].regs(),
            width: self.frames[from as usize].exec.width,
        }));
        Some(one)
    }

    /// A frame in which warp `w` has lanes of `fragment`, or from which they were called: its number in the bundle of that warp alone, where
    /// it is put if it is not there.
    fn carry(
        &self,
        w: usize,
        fragment: &Fragment,
        number: u32,
        one: &mut Bundle,
        frames: &mut HashMap<u32, u32>,
        block: &BlockEnv<impl Conditions>,
    ) -> Option<u32> {
        if let Some(&known) = frames.get(&number) {
            return Some(known);
        }
        let old = &self.frames[number as usize];
        let parent = self.carry(w, fragment, old.parent, one, frames, block)?;
        let caller = &self.frames[old.parent as usize];
        let rows = one.frames[0].exec.native.as_ref().map(|native| native.rows);
        let exec = called(caller, old.call, first_lane(&fragment.mask), rows, block)?;
        let window = one.window_for(&exec, block);
        let frame = Frame {
            exec,
            window: Some(window),
            base: old.base,
            refs: 0,
            depth: old.depth,
            parent,
            call: caller.exec.pc_in_function(old.call),
            tops: old.tops.as_ref().map(|tops| tops_of(w, tops)),
        };
        self.copy_registers_of(w, number, &frame);
        let at = one.frames.len() as u32;
        one.frames.push(frame);
        one.frames[parent as usize].refs += 1;
        frames.insert(number, at);
        Some(at)
    }

    /// What warp `w` has in the registers of a frame goes to another frame of the same function, for one warp.
    fn copy_registers_of(&self, w: usize, from: u32, to: &Frame) {
        let from = &self.frames[from as usize];
        let compiled = &to.exec.compiled;
        let registers = compiled.slots.iter().zip(&compiled.function.body.registers);
        for (offset, info) in registers {
            // What is set beforehand is there already; and a form that does not read it may have an old value.
            let (Some(offset), None) = (*offset, info.initial) else {
                continue;
            };
            let bytes = match info.width {
                Width::Pred => size_of::<u32>(),
                Width::B16 => 2 * WARP,
                Width::B32 => 4 * WARP,
                Width::B64 => 8 * WARP,
                Width::B128 => 16 * WARP,
            };
            // SAFETY: both windows are of this function, `from` for several warps, whose offsets are as many times as large, and of which
            // this is one; `to` for one. They are two.
            unsafe {
                let from = from.regs().add((offset * from.exec.width) as usize + w * bytes);
                std::ptr::copy_nonoverlapping(from, to.regs().add(offset as usize), bytes);
            }
        }
    }

    /// Registers of the kernel that its form has spared are written to the frame `to`, for lanes of warp `w` in `fragment`: those that
    /// these may still read.
    fn make_up(&self, w: usize, fragment: &Fragment, to: &Frame, living: &mut Living<'_>) {
        let kernel = &self.frames[0].exec;
        let (Some(affine), Some((values, _))) = (&kernel.affine, &self.affine) else {
            return;
        };
        // Where they stand in the kernel: behind a call, if they have made one.
        let (mut frame, mut pc) = (
            &self.frames[fragment.frame as usize],
            kernel.pc_in_function(fragment.pc),
        );
        while frame.depth > 0 {
            pc = kernel.pc_in_function(frame.call) + 1;
            frame = &self.frames[frame.parent as usize];
        }
        let live = living.before(pc);
        let compiled = &to.exec.compiled;
        for &(register, value) in affine.registers.iter().filter(|(register, _)| live[*register as usize]) {
            let Some(offset) = compiled.slots[register as usize] else {
                continue;
            };
            let slot = Slot {
                offset,
                width: compiled.function.body.registers[register as usize].width,
            };
            for lane in lanes(&only(fragment.mask[w])) {
                let number = values.at(value, w * WARP + lane);
                // SAFETY: the slot is of the function whose window this is, for one warp.
                unsafe { write(to.regs(), slot, lane, number) };
            }
        }
    }
}

/// The function that a frame's call has entered, for bundles of one warp.
fn called(
    caller: &Frame,
    call: Pc,
    lane: usize,
    rows: Option<Rows>,
    block: &BlockEnv<impl Conditions>,
) -> Option<Arc<Executable>> {
    let Code::Call(call) = &caller.exec.code[call as usize].code else {
        return None;
    };
    let index = match call.function {
        NONE => {
            let slot = Slot {
                offset: call.address,
                width: Width::B64,
            };
            // SAFETY: the address is a slot of 64 bits of the caller's code, in whose window it is still; `lane` is of those that it has.
            let address = unsafe { read(caller.regs(), slot, lane) };
            calls::function_at(&block.env.launch().code.module, address)?
        }
        function => function,
    };
    let (exec, _) = calls::executable(block, index, (1, rows), lane, |_| Ok(())).ok()?;
    Some(exec)
}

fn tops_of(w: usize, tops: &[u32; MAX_WARPS * WARP]) -> Box<[u32; MAX_WARPS * WARP]> {
    let mut own = Box::new([0; MAX_WARPS * WARP]);
    own[..WARP].copy_from_slice(&tops[w * WARP..(w + 1) * WARP]);
    own
}
