//! Passes over a function's blocks: copies that need not be made, work that need be done only once a launch, results
//! that nobody reads. Each is safe on any program, in single-assignment form or not: a register written more than once
//! is left alone.

use super::flow::Dominators;
use super::ir::{BlockId, Body, Linear, Node, Register};
use super::select::operands_of;
use crate::isa::lanes::Width;
use crate::isa::moves;
use crate::program::instr::{Address, Instr, Kind, Space};
use crate::program::visit::Role;

/// Where a register is written, if in one place only.
#[derive(Clone, Copy, PartialEq)]
pub enum Definition {
    None,
    One(BlockId, u32),
    Many,
}

/// Copy propagation, hoisting (kernels), removal of dead code. Returns the hoisted instructions in order.
pub fn run(body: &mut Body, order: &[BlockId], hoist: bool) -> Vec<Node> {
    let definitions = definitions(body, order);
    propagate_copies(body, order, &definitions);
    if fold_sums(body, order, &definitions) {
        propagate_copies(body, order, &definitions);
    }
    let mut prologue = if hoist {
        hoist_constants(body, order, &definitions)
    } else {
        Vec::new()
    };
    remove_dead(body, order, &mut prologue);
    prologue
}

pub fn definitions(body: &Body, order: &[BlockId]) -> Vec<Definition> {
    let mut definitions = vec![Definition::None; body.registers.len()];
    for &block in order {
        for (index, node) in body.blocks[block as usize].nodes.iter().enumerate() {
            node.instr.slots(|slot, role| {
                if role == Role::Def {
                    let entry = &mut definitions[slot.offset as usize];
                    *entry = match *entry {
                        // A guarded write may leave the old value: not *the* value of the register.
                        Definition::None if node.instr.guard.is_none() => Definition::One(block, index as u32),
                        _ => Definition::Many,
                    };
                }
            });
        }
    }
    definitions
}

/// Reads of `d` become reads of `s` where `d` is written by one unguarded `mov d, s` only and `s` is constant, or is
/// itself written once, before the copy on every path, and the copy comes before every read of `d`.
fn propagate_copies(body: &mut Body, order: &[BlockId], definitions: &[Definition]) {
    let mut source: Vec<Option<Register>> = vec![None; body.registers.len()];
    let mut unsure = Vec::new();
    for &block in order {
        for (index, node) in body.blocks[block as usize].nodes.iter().enumerate() {
            let Some((d, s)) = node.copy else { continue };
            if definitions[d as usize] != Definition::One(block, index as u32) {
                continue;
            }
            if body.registers[s as usize].initial.is_some() {
                source[d as usize] = Some(s);
            } else if let Definition::One(..) = definitions[s as usize] {
                source[d as usize] = Some(s);
                unsure.push(d);
            }
        }
    }
    if !unsure.is_empty() {
        let dominators = Dominators::of(body);
        let before = |definition: Definition, block: BlockId, index: u32| match definition {
            Definition::One(b, i) => (b == block && i < index) || (b != block && dominators.dominates(b, block)),
            _ => false,
        };
        let mut checked = vec![false; body.registers.len()];
        for &d in &unsure {
            checked[d as usize] = true;
            let (Definition::One(block, index), Some(s)) = (definitions[d as usize], source[d as usize]) else {
                continue;
            };
            if !before(definitions[s as usize], block, index) {
                source[d as usize] = None;
            }
        }
        for &block in order {
            let b = &body.blocks[block as usize];
            for (index, node) in b.nodes.iter().enumerate() {
                node.instr.slots(|slot, role| {
                    let d = slot.offset as usize;
                    if role == Role::Use && checked[d] && !before(definitions[d], block, index as u32) {
                        source[d] = None;
                    }
                });
            }
            if let Some(d) = b.end.register().map(|r| r as usize)
                && checked[d]
                && !before(definitions[d], block, u32::MAX)
            {
                source[d] = None;
            }
        }
    }
    // Chains: a copy of a copy. Each register on a chain learns its end, so that no chain is walked twice; none is a
    // circle, for a source is written before its copy.
    let mut chain = Vec::new();
    for register in 0..source.len() {
        let mut last = register;
        while let Some(next) = source[last] {
            chain.push(last);
            last = next as usize;
            if chain.len() > source.len() {
                break;
            }
        }
        for on in chain.drain(..).filter(|&on| on != last) {
            source[on] = Some(last as u32);
        }
    }
    for &block in order {
        let b = &mut body.blocks[block as usize];
        for node in &mut b.nodes {
            node.instr.slots_mut(&mut |offset, _, role| {
                if role == Role::Use
                    && let Some(s) = source[*offset as usize]
                {
                    *offset = s;
                }
            });
            if let Some((d, s)) = node.copy
                && let Some(further) = source[s as usize]
            {
                node.copy = Some((d, further));
            }
        }
        if let Some(register) = b.end.register_mut()
            && let Some(s) = source[*register as usize]
        {
            *register = s;
        }
    }
}

/// What is known of a register that holds an address in the running frame: the distance from its start, and whether it
/// is a generic address. The same in every activation, so that any reader sees it (or nothing defined).
#[derive(Clone, Copy)]
struct InFrame {
    offset: u32,
    generic: bool,
}

/// `x + 0` becomes a copy; sums of frame addresses and constants become frame addresses, and accesses through those name
/// the frame's bytes directly. True if there are new copies.
fn fold_sums(body: &mut Body, order: &[BlockId], definitions: &[Definition]) -> bool {
    let mut frame: Vec<Option<InFrame>> = vec![None; body.registers.len()];
    let mut copies = false;
    for &block in order {
        let mut nodes = std::mem::take(&mut body.blocks[block as usize].nodes);
        for (index, node) in nodes.iter_mut().enumerate() {
            let here = Definition::One(block, index as u32);
            if node.linear == Some(Linear::Add)
                && let Kind::Lane { operands, .. } = node.instr.kind
            {
                let [a, b, ..] = operands.src;
                let d = operands.dst[0];
                if let Some((constant, other)) = match (body.constant(a), body.constant(b)) {
                    (Some(constant), _) => Some((constant, b)),
                    (_, Some(constant)) => Some((constant, a)),
                    _ => None,
                } {
                    if constant == 0 {
                        make_copy(body, node, d, other);
                        copies = true;
                    } else if let Some(InFrame { offset, generic: false }) = frame[other as usize] {
                        let sum = i64::from(offset) + signed(constant, body.registers[d as usize].width);
                        if let Ok(offset) = u32::try_from(sum) {
                            node.linear = None;
                            node.instr.kind = Kind::FrameAddress {
                                dst: body.slot(d),
                                offset,
                            };
                        }
                    }
                }
            }
            let only = |d: u32| definitions[d as usize] == here;
            match &node.instr.kind {
                Kind::FrameAddress { dst, offset } if only(dst.offset) => {
                    frame[dst.offset as usize] = Some(InFrame {
                        offset: *offset,
                        generic: false,
                    });
                }
                Kind::ConvertAddress {
                    space: Space::Local,
                    to_generic: true,
                    dst,
                    src,
                } if only(dst.offset) => {
                    frame[dst.offset as usize] = frame[src.offset as usize].map(|f| InFrame { generic: true, ..f });
                }
                _ => {}
            }
            if let Some((d, s)) = node.copy
                && only(d)
            {
                frame[d as usize] = frame[s as usize];
            }
            let direct = |address: &mut Address| {
                let Some(slot) = address.register else { return };
                let Some(known) = frame[slot.offset as usize] else {
                    return;
                };
                let fits = match address.space {
                    Space::Local => !known.generic,
                    Space::Generic => known.generic,
                    _ => false,
                };
                let offset = i64::from(known.offset).wrapping_add(address.offset);
                if fits && (0..=i64::from(u32::MAX)).contains(&offset) {
                    *address = Address {
                        space: Space::Local,
                        register: None,
                        offset,
                    };
                }
            };
            match &mut node.instr.kind {
                Kind::Load { address, .. } | Kind::Store { address, .. } => direct(address),
                _ => {}
            }
        }
        body.blocks[block as usize].nodes = nodes;
    }
    copies
}

fn make_copy(body: &Body, node: &mut Node, d: Register, s: Register) {
    let lane = moves::copy(body.registers[d as usize].width);
    node.linear = Some(Linear::Copy);
    node.copy = Some((d, s));
    node.instr.kind = Kind::Lane {
        kernel: lane.kernel,
        operands: operands_of(&[d], &[s], lane.constant),
        dst: lane.dst,
        src: lane.src,
    };
}

/// The constant as a signed number of its width.
fn signed(bits: u128, width: Width) -> i64 {
    match width {
        Width::B32 => i64::from(bits as u32 as i32),
        _ => bits as u64 as i64,
    }
}

/// Takes unguarded lane operations whose operands are constants of the launch, and whose results are written nowhere
/// else, out of the code.
fn hoist_constants(body: &mut Body, order: &[BlockId], definitions: &[Definition]) -> Vec<Node> {
    let mut constant: Vec<bool> = (0..body.registers.len() as u32)
        .map(|r| body.is_launch_constant(r))
        .collect();
    let mut prologue = Vec::new();
    for &block in order {
        let mut nodes = std::mem::take(&mut body.blocks[block as usize].nodes);
        nodes.retain(|node| {
            if !matches!(node.instr.kind, Kind::Lane { .. }) || node.instr.guard.is_some() {
                return true;
            }
            let mut fixed = true;
            node.instr.slots(|slot, role| {
                fixed &= match role {
                    Role::Use => constant[slot.offset as usize],
                    Role::Def => matches!(definitions[slot.offset as usize], Definition::One(..)),
                };
            });
            if fixed {
                node.instr.slots(|slot, role| {
                    if role == Role::Def {
                        constant[slot.offset as usize] = true;
                        body.registers[slot.offset as usize].hoisted = true;
                    }
                });
                prologue.push(node.clone());
            }
            !fixed
        });
        body.blocks[block as usize].nodes = nodes;
    }
    prologue
}

/// Nobody can tell whether it ran, if nobody reads what it wrote.
fn is_removable(instr: &Instr) -> bool {
    match &instr.kind {
        Kind::ReadSpecial { .. } | Kind::Activemask { .. } => true,
        // Parameters are always there to be read; so are the frame's bytes at fixed offsets.
        Kind::Load {
            address:
                Address {
                    space: Space::Param | Space::Local,
                    register: None,
                    ..
                },
            ..
        } => true,
        kind => kind.is_pure(),
    }
}

fn remove_dead(body: &mut Body, order: &[BlockId], prologue: &mut Vec<Node>) {
    let mut uses = vec![0u32; body.registers.len()];
    for &block in order {
        let b = &body.blocks[block as usize];
        for node in &b.nodes {
            count_uses(node, &mut uses, true);
        }
        if let Some(register) = b.end.register() {
            uses[register as usize] += 1;
        }
    }
    for node in prologue.iter() {
        count_uses(node, &mut uses, true);
    }
    // A few rounds, each from the end: chains of dead code mostly die in one.
    for _ in 0..8 {
        let mut removed = false;
        for &block in order.iter().rev() {
            removed |= sweep(&mut body.blocks[block as usize].nodes, &mut uses);
        }
        removed |= sweep(prologue, &mut uses);
        if !removed {
            break;
        }
    }
}

fn count_uses(node: &Node, uses: &mut [u32], up: bool) {
    node.instr.slots(|slot, role| {
        if role == Role::Use {
            let count = &mut uses[slot.offset as usize];
            *count = if up { *count + 1 } else { count.saturating_sub(1) };
        }
    });
}

fn sweep(nodes: &mut Vec<Node>, uses: &mut [u32]) -> bool {
    let before = nodes.len();
    let mut keep = vec![true; before];
    for (index, node) in nodes.iter().enumerate().rev() {
        if !is_removable(&node.instr) {
            continue;
        }
        let mut dead = true;
        // A copy onto itself does nothing whoever reads it.
        let idle = node.copy.is_some_and(|(d, s)| d == s);
        node.instr
            .slots(|slot, role| dead &= role != Role::Def || uses[slot.offset as usize] == 0);
        if dead || idle {
            keep[index] = false;
            count_uses(node, uses, false);
        }
    }
    let mut index = 0;
    nodes.retain(|_| {
        index += 1;
        keep[index - 1]
    });
    nodes.len() != before
}
