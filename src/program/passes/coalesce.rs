//! Copies whose two registers never hold different values that both matter become one register: what a compiler's
//! φ-insts leave behind (`mov` at the end of a loop's body) then costs nothing.
//!
//! Two registers may be one if, wherever either is written, the other is not live behind the instruction (the copy
//! between them apart). A guarded write keeps its register live before it, so that guarded copies are judged alike.

use std::collections::{HashMap, HashSet};

use super::liveness::Flow;
use crate::program::ir::{BlockId, Body, Register, Role};

/// Rounds, each merging pairs that have no register in common; chains of copies need several.
const ROUNDS: usize = 6;
/// Functions beyond this many instructions get one round.
const LARGE: usize = 20_000;
/// Registers that are copied to and from more others than this stay as they are: each write of one looks at all of them.
const MANY: usize = 500;

/// Merges in place; true if any copy became idle.
pub fn run(body: &mut Body, order: &[BlockId]) -> bool {
    let size: usize = order.iter().map(|&b| body.blocks[b as usize].insts.len()).sum();
    let rounds = if size > LARGE { 1 } else { ROUNDS };
    let mut any = false;
    for _ in 0..rounds {
        let merges = round(body, order);
        if merges.is_empty() {
            break;
        }
        any = true;
        rename(body, order, &merges);
    }
    any
}

/// Registers to be replaced, and by what.
fn round(body: &Body, order: &[BlockId]) -> HashMap<Register, Register> {
    let mut pairs: Vec<(Register, Register)> = Vec::new();
    for &block in order {
        for inst in &body.blocks[block as usize].insts {
            if let Some((d, s)) = inst.copied()
                && d != s
                && !body.is_fixed(s)
                && !body.is_fixed(d)
            {
                pairs.push((d.min(s), d.max(s)));
            }
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    if pairs.is_empty() {
        return HashMap::new();
    }
    let mut partners: HashMap<Register, Vec<Register>> = HashMap::new();
    for &(a, b) in &pairs {
        partners.entry(a).or_default().push(b);
        partners.entry(b).or_default().push(a);
    }

    let few = |register: &Register| partners[register].len() <= MANY;
    pairs.retain(|(a, b)| few(a) && few(b));

    let flow = Flow::of(body, order);
    let mut apart: HashSet<(Register, Register)> = HashSet::new();
    // Pairs that are apart if a register is live behind a block: its number, the block's position, the pair.
    let mut unsure: Vec<(u32, u32, (Register, Register))> = Vec::new();
    // Whether a register is live behind the instruction at hand, where the rest of the block tells: the block's
    // position, and the answer.
    let mut live: Vec<(u32, bool)> = vec![(u32::MAX, false); body.registers.len()];
    for (index, &block) in order.iter().enumerate() {
        let index = index as u32;
        let b = &body.blocks[block as usize];
        if let Some(register) = b.end.register() {
            live[register as usize] = (index, true);
        }
        for inst in b.insts.iter().rev() {
            let guarded = inst.guard.is_some();
            let mut written: [Register; 16] = [u32::MAX; 16];
            let mut count = 0;
            inst.regs(|reg, role| {
                if role != Role::Def {
                    return;
                }
                if count < written.len() {
                    written[count] = reg.number;
                    count += 1;
                }
                let others = partners.get(&reg.number).filter(|others| others.len() <= MANY);
                for &other in others.into_iter().flatten() {
                    if inst.copied().is_some_and(|(d, s)| (d, s) == (reg.number, other)) {
                        continue;
                    }
                    let pair = (reg.number.min(other), reg.number.max(other));
                    match live[other as usize] {
                        (at, false) if at == index => {}
                        (at, true) if at == index => {
                            apart.insert(pair);
                        }
                        _ => unsure.extend(flow.number(other).map(|number| (number, index, pair))),
                    }
                }
            });
            // Two results of one instruction are two registers.
            for (i, &a) in written[..count].iter().enumerate() {
                for &b in &written[i + 1..count] {
                    apart.insert((a.min(b), a.max(b)));
                }
            }
            if !guarded {
                written[..count].iter().for_each(|&r| live[r as usize] = (index, false));
            }
            inst.regs(|reg, role| {
                if role == Role::Use || guarded {
                    live[reg.number as usize] = (index, true);
                }
            });
        }
    }
    unsure.sort_unstable();
    unsure.dedup();
    let mut numbers: Vec<u32> = unsure.iter().map(|&(number, ..)| number).collect();
    numbers.dedup();
    flow.solve(&numbers, |group| {
        for (member, &number) in group.members.iter().enumerate() {
            let first = unsure.partition_point(|&(other, ..)| other < number);
            for &(_, block, pair) in unsure[first..].iter().take_while(|&&(other, ..)| other == number) {
                if group.is_live_out(member, block) {
                    apart.insert(pair);
                }
            }
        }
    });
    // What is live on entry without having been written holds nothing: no definition, no conflict.

    let mut merges = HashMap::new();
    let mut busy: HashSet<Register> = HashSet::new();
    for (a, b) in pairs {
        if !apart.contains(&(a, b)) && !busy.contains(&a) && !busy.contains(&b) {
            busy.insert(a);
            busy.insert(b);
            merges.insert(b, a);
        }
    }
    merges
}

fn rename(body: &mut Body, order: &[BlockId], merges: &HashMap<Register, Register>) {
    let new = |register: &mut Register| {
        if let Some(&to) = merges.get(register) {
            *register = to;
        }
    };
    for &block in order {
        let b = &mut body.blocks[block as usize];
        for inst in &mut b.insts {
            inst.regs_mut(|reg, _| new(&mut reg.number));
        }
        b.insts.retain(|inst| inst.copied().is_none_or(|(d, s)| d != s));
        if let Some(register) = b.end.register_mut() {
            new(register);
        }
    }
}
