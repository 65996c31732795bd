//! Blocks → code: laid out, slots allocated, jumps resolved.

use std::ops::Range;

use super::ir::{BlockId, Body, End, Linear, Node};
use super::{affine, coalesce, contract, flow, liveness, simplify, slots, webs};
use crate::program::affine::Affine;
use crate::program::instr::{Guard, Initial, Instr, Kind, Pc, Slot};
use crate::program::visit::Role;
use crate::ptx::ast::Span;

/// What of a [`Function`] is code; the rest the caller knows.
pub struct Code {
    pub code: Vec<Instr>,
    pub window: u32,
    pub initial: Vec<(Slot, Initial)>,
    pub prologue: Vec<Instr>,
    pub lines: Vec<(Pc, u32, u32)>,
    pub affine: Option<Affine>,
}

/// Lays out, simplifies, allocates.
///
/// `contract`: products and sums of floats that leave their rounding open are made one operation.
pub fn emit(mut body: Body, kernel: bool, contract: bool) -> Code {
    let order = flow::layout(&mut body);
    webs::run(&mut body, &order);
    if contract {
        contract::run(&mut body, &order);
    }
    let prologue = simplify::run(&mut body, &order, kernel);
    coalesce::run(&mut body, &order);
    let flow = liveness::Flow::of(&body, &order);

    let mut code: Vec<Instr> = Vec::new();
    let mut linear: Vec<Option<Linear>> = Vec::new();
    let mut lines = Vec::new();
    let mut ranges: Vec<Range<u32>> = Vec::with_capacity(order.len());
    for (index, &block) in order.iter().enumerate() {
        let start = code.len() as u32;
        let b = &mut body.blocks[block as usize];
        for node in std::mem::take(&mut b.nodes) {
            push_line(&mut lines, code.len() as u32, node.line);
            linear.push(node.linear.or(node.copy.map(|_| Linear::Copy)));
            code.push(node.instr);
        }
        push_end(&mut code, &b.end, order.get(index + 1).copied());
        linear.resize(code.len(), None);
        ranges.push(start..code.len() as u32);
    }
    // Falling off the last block cannot happen: it stops or jumps. An empty body has no code at all.

    let mut intervals = liveness::intervals(&flow, body.registers.len(), &code, &ranges);
    let mut pinned: Vec<bool> = body.registers.iter().map(|r| r.initial.is_some()).collect();
    let mut affine = if kernel {
        affine::find(&body, &code, &linear)
    } else {
        None
    };
    if let Some(affine) = &mut affine {
        affine.slots_mut(|slot| pinned[slot.offset as usize] = true);
    }
    for node in &prologue {
        node.instr.slots(|slot, role| {
            pinned[slot.offset as usize] |= role == Role::Def;
            let interval = &mut intervals[slot.offset as usize];
            interval.get_or_insert(liveness::Interval { start: 0, end: 0 });
        });
    }
    for (register, pinned) in pinned.iter_mut().enumerate() {
        *pinned &= intervals[register].is_some();
    }
    let allocation = slots::allocate(&body, &code, &intervals, &pinned);
    #[cfg(test)]
    verify(&body, &code, &ranges, &order, &pinned, &allocation.offsets);

    let offset = |register: u32| allocation.offsets[register as usize].unwrap_or(0);
    let mut starts = vec![0; body.blocks.len()];
    for (range, &block) in ranges.iter().zip(&order) {
        starts[block as usize] = range.start;
    }
    for instr in &mut code {
        instr.slots_mut(&mut |slot, _, _| *slot = offset(*slot));
        match &mut instr.kind {
            Kind::Branch { target } => *target = starts[*target as usize],
            Kind::BranchIndexed { targets, .. } => targets.iter_mut().for_each(|t| *t = starts[*t as usize]),
            _ => {}
        }
    }
    if let Some(affine) = &mut affine {
        affine.slots_mut(|slot| slot.offset = offset(slot.offset));
    }
    let prologue = prologue
        .into_iter()
        .map(|node: Node| {
            let mut instr = node.instr;
            instr.slots_mut(&mut |slot, _, _| *slot = offset(*slot));
            instr
        })
        .collect();
    let initial = body
        .registers
        .iter()
        .enumerate()
        .filter_map(|(register, info)| {
            let slot = Slot {
                offset: allocation.offsets[register]?,
                width: info.width,
            };
            info.initial.map(|initial| (slot, initial))
        })
        .collect();
    Code {
        code,
        window: allocation.window,
        initial,
        prologue,
        lines,
        affine,
    }
}

fn push_line(lines: &mut Vec<(Pc, u32, u32)>, pc: Pc, line: Option<(u32, u32)>) {
    if let Some((file, line)) = line
        && lines.last().is_none_or(|&(_, f, l)| (f, l) != (file, line))
    {
        lines.push((pc, file, line));
    }
}

/// Jumps still name blocks.
fn push_end(code: &mut Vec<Instr>, end: &End, next: Option<BlockId>) {
    let jump = |to: BlockId, guard: Option<Guard>, span: Span| Instr {
        guard,
        kind: Kind::Branch { target: to },
        span,
    };
    match end {
        End::Jump(to) => {
            if Some(*to) != next {
                let span = code.last().map(|i| i.span).unwrap_or_default();
                code.push(jump(*to, None, span));
            }
        }
        End::Branch {
            guard,
            taken,
            fall,
            span,
        } => {
            if taken == fall {
                push_end(code, &End::Jump(*fall), next);
            } else if Some(*taken) == next {
                let inverted = Guard {
                    negated: !guard.negated,
                    ..*guard
                };
                code.push(jump(*fall, Some(inverted), *span));
            } else {
                code.push(jump(*taken, Some(*guard), *span));
                if Some(*fall) != next {
                    code.push(jump(*fall, None, *span));
                }
            }
        }
        End::Indexed { index, targets, span } => code.push(Instr {
            guard: None,
            kind: Kind::BranchIndexed {
                index: *index,
                targets: targets.clone().into(),
            },
            span: *span,
        }),
        End::Stop => {}
    }
}

/// Liveness once more, instruction by instruction and without intervals: no two registers that are live at the same
/// place may share bytes.
#[cfg(test)]
fn verify(
    body: &Body,
    code: &[Instr],
    ranges: &[Range<u32>],
    order: &[BlockId],
    pinned: &[bool],
    offsets: &[Option<u32>],
) {
    use std::collections::BTreeSet;
    let mut starts = vec![u32::MAX; body.blocks.len()];
    for (range, &block) in ranges.iter().zip(order) {
        starts[block as usize] = range.start;
    }
    let count = code.len();
    let mut successors: Vec<Vec<u32>> = Vec::with_capacity(count);
    for (pc, instr) in code.iter().enumerate() {
        let mut next: Vec<u32> = match &instr.kind {
            Kind::Branch { target } => vec![starts[*target as usize]],
            Kind::BranchIndexed { targets, .. } => targets.iter().map(|&t| starts[t as usize]).collect(),
            _ => Vec::new(),
        };
        let leaves = matches!(instr.kind, Kind::Branch { .. } | Kind::BranchIndexed { .. }) || instr.kind.ends_path();
        if !leaves || instr.guard.is_some() {
            next.push(pc as u32 + 1);
        }
        successors.push(next);
    }
    let mut live_in: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); count];
    loop {
        let mut changed = false;
        for pc in (0..count).rev() {
            let mut live: BTreeSet<u32> = BTreeSet::new();
            for &next in &successors[pc] {
                live.extend(&live_in[next as usize]);
            }
            let instr = &code[pc];
            instr.slots(|slot, role| {
                if role == Role::Def && instr.guard.is_none() {
                    live.remove(&slot.offset);
                }
            });
            instr.slots(|slot, role| {
                if role == Role::Use || instr.guard.is_some() {
                    live.insert(slot.offset);
                }
            });
            changed |= live != live_in[pc];
            live_in[pc] = live;
        }
        if !changed {
            break;
        }
    }
    let always: BTreeSet<u32> = (0..pinned.len() as u32).filter(|&r| pinned[r as usize]).collect();
    for pc in 0..count {
        let mut after = always.clone();
        for &next in &successors[pc] {
            after.extend(&live_in[next as usize]);
        }
        code[pc].slots(|slot, role| {
            if role == Role::Def {
                after.insert(slot.offset);
            }
        });
        for set in [&after, &live_in[pc]] {
            let mut places: Vec<(u32, u32, u32)> = set
                .iter()
                .map(|&r| {
                    let start = offsets[r as usize].expect("a live register has a slot");
                    (start, start + body.registers[r as usize].width.warp_bytes(), r)
                })
                .collect();
            places.sort_unstable();
            for pair in places.windows(2) {
                assert!(
                    pair[0].1 <= pair[1].0,
                    "{pc}: registers {} and {} share a slot",
                    pair[0].2,
                    pair[1].2
                );
            }
        }
    }
}
