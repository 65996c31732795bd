//! Which products of `wgmma` may complete late: those whose sums nobody looks at before a wait for their group.
//!
//! A program may not touch the registers of a product that is under way (PTX ISA, wgmma.mma_async). One that does is not
//! wrong on hardware: where NVIDIA's assembler sees registers used too early, or products under way across a call, it
//! makes them wait at once, with a warning. So does this pass: what it leaves `late` is under way until a wait, which then
//! names the registers, so that they keep their places until it has written them.
//!
//! For each product it follows how many groups have been committed behind its own, the least number over all paths.

use std::collections::HashMap;

use crate::isa::Joint;
use crate::isa::joint::warpgroup::Op as Warpgroup;
use crate::program::ir::joint::warpgroup::Multiply;
use crate::program::ir::{BlockId, Body, Initial, Inst, Op, Reg, Register};

/// Not in a group yet.
const OPEN: i8 = -1;
/// As many groups as a wait can leave under way.
const MOST: i8 = 8;

/// Products under way, by their number: groups committed since.
type State = Vec<Option<i8>>;

/// A product's registers.
struct Product {
    before: Vec<Register>,
    after: Vec<Option<Register>>,
}

/// Sets `late`, and gives waits the registers that they complete.
pub fn run(body: &mut Body, order: &[BlockId]) {
    let mut places: HashMap<(BlockId, usize), usize> = HashMap::new();
    let mut products = Vec::new();
    let mut of_register: HashMap<Register, Vec<usize>> = HashMap::new();
    for &block in order {
        for (i, inst) in body.blocks[block as usize].insts.iter().enumerate() {
            let Op::Joint(joint) = &inst.op else { continue };
            let Joint::Warpgroup(Warpgroup::Mma(mma)) = joint.what else {
                continue;
            };
            let product = Product {
                before: Multiply::of(mma, &joint.src).d.iter().map(|reg| reg.number).collect(),
                after: joint.dst.iter().map(|reg| reg.map(|reg| reg.number)).collect(),
            };
            for register in product.after.iter().flatten() {
                of_register.entry(*register).or_default().push(products.len());
            }
            places.insert((block, i), products.len());
            products.push(product);
        }
    }
    if products.is_empty() {
        return;
    }
    let flow = Flow {
        places,
        products,
        of_register,
    };
    let states = flow.states(body, order);
    flow.mark(body, order, states);
}

struct Flow {
    places: HashMap<(BlockId, usize), usize>,
    products: Vec<Product>,
    /// The products that write a register.
    of_register: HashMap<Register, Vec<usize>>,
}

impl Flow {
    /// What is under way where each block begins.
    fn states(&self, body: &Body, order: &[BlockId]) -> Vec<State> {
        let mut states = vec![vec![None; self.products.len()]; body.blocks.len()];
        let mut changed = true;
        let mut first = true;
        while std::mem::take(&mut changed) || std::mem::take(&mut first) {
            for &block in order {
                let mut state = states[block as usize].clone();
                for (i, inst) in body.blocks[block as usize].insts.iter().enumerate() {
                    self.step(body, (block, i), inst, &mut state, &mut |_| {});
                }
                body.blocks[block as usize].end.successors(|to| {
                    for (there, here) in states[to as usize].iter_mut().zip(&state) {
                        let joined = match (*there, *here) {
                            (None, other) | (other, None) => other,
                            (Some(a), Some(b)) => Some(a.min(b)),
                        };
                        changed |= *there != joined;
                        *there = joined;
                    }
                });
            }
        }
        states
    }

    /// An instruction: what is under way behind it. `early` is told of products whose registers it touches.
    fn step(
        &self,
        body: &Body,
        place: (BlockId, usize),
        inst: &Inst,
        state: &mut State,
        early: &mut impl FnMut(usize),
    ) {
        let own = self.places.get(&place).map(|&own| (own, &self.products[own]));
        // The one that goes on with a sum may read it.
        let goes_on = |other: usize| {
            own.is_some_and(|(_, own)| {
                let after = self.products[other].after.iter().copied();
                after.eq(own.before.iter().map(|&register| Some(register)))
            })
        };
        let is_wait = wait(body, inst).is_some();
        inst.regs(|reg, _| {
            for &product in self.of_register.get(&reg.number).into_iter().flatten() {
                if state[product].is_some() && !goes_on(product) && !is_wait {
                    early(product);
                }
            }
        });
        if let Some((own, _)) = own {
            for (other, state) in state.iter_mut().enumerate() {
                if state.is_some() && goes_on(other) && inst.guard.is_none() {
                    *state = None;
                }
            }
            state[own] = Some(OPEN);
            return;
        }
        let leaves = matches!(inst.op, Op::Call { .. } | Op::Return);
        if leaves {
            for product in (0..state.len()).filter(|&product| state[product].is_some()) {
                early(product);
            }
        }
        if inst.guard.is_some() {
            return;
        }
        if is_commit(inst) {
            for age in state.iter_mut().flatten() {
                *age = (*age + 1).min(MOST);
            }
        }
        if let Some(pending) = wait(body, inst) {
            for age in state {
                *age = age.filter(|&age| age == OPEN || i64::from(age) < pending);
            }
        }
    }

    fn mark(&self, body: &mut Body, order: &[BlockId], states: Vec<State>) {
        let mut late = vec![true; self.products.len()];
        for &block in order {
            let mut state = states[block as usize].clone();
            for (i, inst) in body.blocks[block as usize].insts.iter().enumerate() {
                self.step(body, (block, i), inst, &mut state, &mut |product| late[product] = false);
            }
        }
        for &block in order {
            let mut state = states[block as usize].clone();
            for i in 0..body.blocks[block as usize].insts.len() {
                let inst = &body.blocks[block as usize].insts[i];
                if wait(body, inst).is_some() {
                    let mut registers: Vec<Register> = (0..state.len())
                        .filter(|&product| state[product].is_some() && late[product])
                        .flat_map(|product| self.products[product].after.iter().flatten().copied())
                        .collect();
                    registers.sort_unstable();
                    registers.dedup();
                    let registers: Vec<Reg> = registers.into_iter().map(|register| body.reg(register)).collect();
                    let inst = &mut body.blocks[block as usize].insts[i];
                    if let Op::Joint(joint) = &mut inst.op {
                        joint.src = joint.src[..1].iter().chain(&registers).copied().collect();
                        joint.dst = registers.into_iter().map(Some).collect();
                    }
                }
                let inst = &body.blocks[block as usize].insts[i];
                self.step(body, (block, i), inst, &mut state, &mut |_| {});
                if let Some(&product) = self.places.get(&(block, i))
                    && let Op::Joint(joint) = &mut body.blocks[block as usize].insts[i].op
                    && let Joint::Warpgroup(Warpgroup::Mma(mma)) = &mut joint.what
                {
                    mma.late = late[product];
                }
            }
        }
    }
}

fn is_commit(inst: &Inst) -> bool {
    matches!(&inst.op, Op::Joint(joint) if joint.what == Joint::Warpgroup(Warpgroup::Commit))
}

/// Of a wait, how many groups it leaves under way.
fn wait(body: &Body, inst: &Inst) -> Option<i64> {
    let Op::Joint(joint) = &inst.op else { return None };
    if joint.what != Joint::Warpgroup(Warpgroup::Wait) {
        return None;
    }
    match body.registers[joint.src[0].number as usize].initial {
        Some(Initial::Constant(pending)) => i64::try_from(pending).ok(),
        // Not known: as many as there may be.
        Some(Initial::Param { .. } | Initial::Special(_)) | None => Some(i64::from(MOST)),
    }
}
