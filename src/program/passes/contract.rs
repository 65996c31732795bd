//! `mul` and `add` of floats become `fma`, where neither says how to round, as NVIDIA's assembler does it when it
//! optimises (`MARGAY_FMAD`). Its rule is written down nowhere; this one agrees with the code that it makes (13.5, sm_75 to
//! sm_120) of some two hundred small programs:
//!
//! - A product becomes part of sums only if *everything* that uses it is such a sum: of the same type and `.ftz`, in the
//!   same straight-line code, with the product as one of its operands. `mov` and `neg` in between are looked through,
//!   `abs` is not. The sum may be a difference, saturate or have a guard; the product may do neither.
//! - Of a sum of two such products the one that is used less often is fused, the first one if both are used alike, and
//!   the other one is rounded. The one that loses so is no part of any sum that stands before it or behind it, unless both
//!   were alike: then sums that stand before have it.
//! - Straight-line code ends where the assembler makes branches: at fences, at a `brkpt`, at calls, at operations under a
//!   guard that store, wait or leave, and at those that are routines ([`Compute::is_routine`]).
//!
//! What cannot be known: which loops the assembler unrolls, and which functions it inlines, before it looks for products.

use std::collections::HashSet;

use super::dead;
use super::liveness::{Flow, each};
use crate::isa::{Compute, Fused};
use crate::program::ir::{BlockId, Body, Contractible, End, Initial, Inst, Op, Ordering, Proxy, Register, Role};

/// A product that leaves its rounding open.
struct Product {
    of: Fused,
    factors: [Register; 2],
    /// How often its factors had been written before it.
    versions: [u32; 2],
    at: (BlockId, usize),
    segment: u32,
    /// Sums that could have it.
    uses: u32,
    /// It must be there, rounded.
    kept: bool,
    /// A factor is written before one of the sums.
    overwritten: bool,
}

/// A value that is a product, or its negation.
#[derive(Clone, Copy)]
struct Signed {
    product: usize,
    negated: bool,
}

/// A sum that leaves its rounding open, with the products that it could have.
struct Sum {
    of: Fused,
    subtract: bool,
    at: (BlockId, usize),
    operands: [Option<Signed>; 2],
}

/// What becomes of an instruction.
struct Edit {
    at: (BlockId, usize),
    before: Vec<Inst>,
    becomes: Option<Op>,
}

/// Contracts in place; products that this leaves without users die with other dead code.
pub fn run(body: &mut Body, order: &[BlockId]) {
    let is_product = |inst: &Inst| matches!(&inst.op, Op::Compute { op, .. } if matches!(op.contractible(), Some(Contractible::Product(_))));
    if !order
        .iter()
        .any(|&b| body.blocks[b as usize].insts.iter().any(is_product))
    {
        return;
    }
    // What nobody reads uses nothing.
    dead::run(body, order);
    let runs = straight(body, order);
    let outside = outlives(body, order, &runs);
    let mut search = Search::new(body.registers.len());
    let mut edits = Vec::new();
    for blocks in &runs {
        search.walk(body, blocks, &outside);
        search.settle();
        search.rewrite(body, &mut edits);
    }
    apply(body, edits);
}

/// Blocks that always run one after the other.
fn straight(body: &Body, order: &[BlockId]) -> Vec<Vec<BlockId>> {
    let mut entries = vec![0u32; body.blocks.len()];
    entries[order[0] as usize] = 1;
    for &block in order {
        body.blocks[block as usize]
            .end
            .successors(|to| entries[to as usize] += 1);
    }
    let next = |block: BlockId| match body.blocks[block as usize].end {
        End::Jump { to, .. } if entries[to as usize] == 1 => Some(to),
        End::Jump { .. } | End::Branch { .. } | End::Indexed { .. } | End::Stop => None,
    };
    let mut continues = vec![false; body.blocks.len()];
    for &block in order {
        if let Some(to) = next(block) {
            continues[to as usize] = true;
        }
    }
    let starts = order.iter().filter(|&&block| !continues[block as usize]);
    starts
        .map(|&start| std::iter::successors(Some(start), |&block| next(block)).collect())
        .collect()
}

/// Where products, and what may stand for them, are read behind the end of a run: by register and the run's last block.
fn outlives(body: &Body, order: &[BlockId], runs: &[Vec<BlockId>]) -> HashSet<(Register, BlockId)> {
    let flow = Flow::of(body, order);
    let mut numbers = HashSet::new();
    for &block in order {
        for inst in &body.blocks[block as usize].insts {
            if let Op::Compute { op, dst, .. } = &inst.op
                && (op.is_copy()
                    || matches!(
                        op.contractible(),
                        Some(Contractible::Product(_) | Contractible::Negation(_))
                    ))
                && let Some(number) = flow.number(dst[0].number)
            {
                numbers.insert(number);
            }
        }
    }
    let last: HashSet<BlockId> = runs.iter().filter_map(|run| run.last().copied()).collect();
    let mut found = HashSet::new();
    let numbers: Vec<u32> = numbers.into_iter().collect();
    flow.solve(&numbers, |group| {
        for &position in group
            .blocks
            .iter()
            .filter(|&&position| last.contains(&order[position as usize]))
        {
            each(group.live_out[position as usize], |bit| {
                let register = flow.register(group.members[bit as usize]);
                found.insert((register, order[position as usize]));
            });
        }
    });
    found
}

/// Whether the assembler makes branches of an instruction, so that straight-line code ends here.
fn divides(inst: &Inst) -> bool {
    if let Op::Compute { op, .. } = &inst.op {
        return op.is_routine();
    }
    let fence = matches!(&inst.op, Op::Fence { proxy, .. } if *proxy == Proxy::Generic);
    if fence || matches!(inst.op, Op::Breakpoint | Op::Call { .. } | Op::Syscall { .. }) {
        return true;
    }
    let effects = inst.op.effects();
    // Lanes that meet (shuffles, votes) do so without branches.
    let acts = effects.writes.is_some() || effects.waits && !effects.synchronises || effects.leaves;
    inst.guard.is_some() && (acts || effects.ordering != Ordering::Weak)
}

/// What is known of one run of straight-line code.
struct Search {
    /// What each register holds now.
    now: Vec<Option<Signed>>,
    /// How often each register was written.
    version: Vec<u32>,
    touched: Vec<Register>,
    products: Vec<Product>,
    sums: Vec<Sum>,
    /// Of each sum that has a product: which operand.
    chosen: Vec<(usize, usize)>,
}

impl Search {
    fn new(registers: usize) -> Search {
        Search {
            now: vec![None; registers],
            version: vec![0; registers],
            touched: Vec::new(),
            products: Vec::new(),
            sums: Vec::new(),
            chosen: Vec::new(),
        }
    }

    /// Finds products, sums, and what else uses products.
    fn walk(&mut self, body: &Body, blocks: &[BlockId], outside: &HashSet<(Register, BlockId)>) {
        self.products.clear();
        self.sums.clear();
        let Some(&last) = blocks.last() else { return };
        let mut segment = 0;
        for &block in blocks {
            for (index, inst) in body.blocks[block as usize].insts.iter().enumerate() {
                self.instruction(body, inst, (block, index), segment);
                segment += u32::from(divides(inst));
            }
        }
        for register in std::mem::take(&mut self.touched) {
            if let Some(value) = self.now[register as usize].take()
                && outside.contains(&(register, last))
            {
                self.products[value.product].kept = true;
            }
        }
    }

    fn instruction(&mut self, body: &Body, inst: &Inst, at: (BlockId, usize), segment: u32) {
        let compute = if let Op::Compute { op, src, .. } = &inst.op {
            Some((*op, src))
        } else {
            None
        };
        let kind = compute.and_then(|(op, _)| op.contractible());
        let mut becomes = None;
        match (compute, kind) {
            (Some((_, src)), Some(Contractible::Sum { subtract, of })) => {
                let operands = [
                    self.operand(src[0].number, of, segment),
                    self.operand(src[1].number, of, segment),
                ];
                if let [Some(a), Some(b)] = operands {
                    let (x, y) = (&self.products[a.product], &self.products[b.product]);
                    let turned = [y.factors[1], y.factors[0]];
                    let alike = x.versions == y.versions && (x.factors == y.factors || x.factors == turned);
                    // Twice a product is no product and a sum.
                    if a.product == b.product || alike && (a.negated == b.negated) != subtract {
                        self.products[a.product].kept = true;
                        self.products[b.product].kept = true;
                    }
                }
                self.sums.push(Sum {
                    of,
                    subtract,
                    at,
                    operands,
                });
            }
            (Some((_, src)), Some(Contractible::Product(of))) => {
                inst.regs(|reg, role| self.other_use(reg.number, role));
                let factors = [src[0].number, src[1].number];
                // A product of constants is one.
                let is_constant =
                    |&factor: &Register| matches!(body.registers[factor as usize].initial, Some(Initial::Constant(_)));
                if inst.guard.is_none() && !factors.iter().all(is_constant) {
                    becomes = Some(Signed {
                        product: self.products.len(),
                        negated: false,
                    });
                    self.products.push(Product {
                        of,
                        factors,
                        versions: factors.map(|factor| self.version[factor as usize]),
                        at,
                        segment,
                        uses: 0,
                        kept: false,
                        overwritten: false,
                    });
                }
            }
            (Some((op, src)), None | Some(Contractible::Negation(_))) => {
                let same = |value: &Signed| match kind {
                    Some(Contractible::Negation(of)) => of.keeps_products_of(self.products[value.product].of),
                    Some(Contractible::Product(_) | Contractible::Sum { .. }) | None => op.is_copy(),
                };
                let value = src.first().and_then(|reg| self.now[reg.number as usize]);
                match value.filter(|value| inst.guard.is_none() && same(value)) {
                    Some(value) => {
                        becomes = Some(Signed {
                            negated: value.negated != kind.is_some(),
                            ..value
                        });
                    }
                    None => inst.regs(|reg, role| self.other_use(reg.number, role)),
                }
            }
            (None, _) => inst.regs(|reg, role| self.other_use(reg.number, role)),
        }
        inst.regs(|reg, role| {
            if role == Role::Def {
                self.touched.push(reg.number);
                self.version[reg.number as usize] += 1;
                let before = std::mem::replace(&mut self.now[reg.number as usize], becomes);
                if let Some(value) = before
                    && inst.guard.is_some()
                {
                    self.products[value.product].kept = true;
                }
            }
        });
    }

    /// The product that an operand of a sum stands for, if the sum could have it.
    fn operand(&mut self, register: Register, sum: Fused, segment: u32) -> Option<Signed> {
        let value = self.now[register as usize]?;
        let product = &mut self.products[value.product];
        if product.segment != segment || product.of != sum.of_product() {
            product.kept = true;
            return None;
        }
        product.uses += 1;
        let versions = product.factors.map(|factor| self.version[factor as usize]);
        product.overwritten |= versions != product.versions;
        Some(value)
    }

    fn other_use(&mut self, register: Register, role: Role) {
        if let (Role::Use, Some(value)) = (role, self.now[register as usize]) {
            self.products[value.product].kept = true;
        }
    }

    /// Decides which sums have which products.
    fn settle(&mut self) {
        let products = &mut self.products;
        let mut losing = Vec::new();
        for sum in &self.sums {
            if let [Some(a), Some(b)] = sum.operands
                && !products[a.product].kept
                && !products[b.product].kept
            {
                match products[a.product].uses.cmp(&products[b.product].uses) {
                    std::cmp::Ordering::Less => losing.push(b.product),
                    std::cmp::Ordering::Equal => {}
                    std::cmp::Ordering::Greater => losing.push(a.product),
                }
            }
        }
        for product in losing {
            products[product].kept = true;
        }
        self.chosen.clear();
        for (index, sum) in self.sums.iter().enumerate() {
            let free = |operand: &Option<Signed>| operand.is_some_and(|value| !products[value.product].kept);
            let Some(which) = sum.operands.iter().position(free) else {
                continue;
            };
            if let Some(other) = sum.operands[1 - which] {
                products[other.product].kept = true;
            }
            self.chosen.push((index, which));
        }
    }

    /// What becomes of the chosen sums, and of the products whose factors do not last until then.
    fn rewrite(&mut self, body: &mut Body, edits: &mut Vec<Edit>) {
        let mut saved = vec![None; self.products.len()];
        for &(index, which) in &self.chosen {
            let sum = &self.sums[index];
            let Some(value) = sum.operands[which] else { continue };
            let product = &self.products[value.product];
            let inst = body.blocks[sum.at.0 as usize].insts[sum.at.1].clone();
            let Op::Compute { dst, src, .. } = &inst.op else {
                continue;
            };
            let mut before = Vec::new();
            let mut push = |body: &Body, op: Compute, dst: Register, src: &[Register]| {
                before.push(Inst {
                    guard: None,
                    op: Op::compute(body, op, &[dst], src),
                    ..inst.clone()
                });
            };
            let [mut a, b] = match product.overwritten {
                false => product.factors,
                true => *saved[value.product].get_or_insert_with(|| {
                    let (edit, copies) = save(body, product);
                    edits.push(edit);
                    copies
                }),
            };
            let mut c = src[1 - which].number;
            // c − a·b negates a, a·b − c negates c.
            let mut negate = |body: &mut Body, register: &mut Register| {
                let (of, signs) = sum.of.signs();
                let width = body.registers[*register as usize].width;
                let mask = body.initial(width, Initial::Constant(signs));
                let fresh = body.register(width);
                push(body, Compute::xor(of), fresh, &[*register, mask]);
                *register = fresh;
            };
            if value.negated != (sum.subtract && which == 1) {
                negate(body, &mut a);
            }
            if sum.subtract && which == 0 {
                negate(body, &mut c);
            }
            edits.push(Edit {
                at: sum.at,
                before,
                becomes: Some(Op::compute(body, sum.of.fma(), &[dst[0].number], &[a, b, c])),
            });
        }
    }
}

/// Copies of a product's factors, made where it stands.
fn save(body: &mut Body, product: &Product) -> (Edit, [Register; 2]) {
    let inst = body.blocks[product.at.0 as usize].insts[product.at.1].clone();
    let mut before = Vec::with_capacity(2);
    let copies = product.factors.map(|factor| {
        let width = body.registers[factor as usize].width;
        let fresh = body.register(width);
        before.push(Inst {
            op: Op::compute(body, Compute::copy(width), &[fresh], &[factor]),
            ..inst.clone()
        });
        fresh
    });
    let edit = Edit {
        at: product.at,
        before,
        becomes: None,
    };
    (edit, copies)
}

fn apply(body: &mut Body, mut edits: Vec<Edit>) {
    edits.sort_by_key(|edit| edit.at);
    let mut edits = edits.into_iter().peekable();
    while let Some(block) = edits.peek().map(|edit| edit.at.0) {
        let insts = &mut body.blocks[block as usize].insts;
        let mut out = Vec::with_capacity(insts.len() + 4);
        for (index, mut inst) in std::mem::take(insts).into_iter().enumerate() {
            while let Some(edit) = edits.next_if(|edit| edit.at == (block, index)) {
                out.extend(edit.before);
                if let Some(op) = edit.becomes {
                    inst.op = op;
                }
            }
            out.push(inst);
        }
        *insts = out;
    }
}
