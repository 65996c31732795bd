//! Operations of [`Joint`]: what they reach that has a known size, and what an operation is told of where only it knows how far it
//! reaches ([`JointOp::objects`]): boxes of tensors, matrices behind descriptors, copies whose ends or bytes may be left out.
//!
//! A descriptor holds an address of shared memory without its low four bits (PTX ISA, Matrix descriptor), and is put together by shifts,
//! masks and sums: whatever is made so of one variable's address and numbers is a descriptor of that variable.

use super::columns::Columns;
use super::{Form, Made, Value, object};
use crate::isa::joint::{Joint, bulk, cluster, mbarrier, tcgen05, tensor, warpgroup};
use crate::isa::lanes::Width;
use crate::isa::{Compute, int, logic, moves};
use crate::program::ir::joint::{tcgen05 as products, warpgroup as warpgroups};
use crate::program::ir::{Address, Body, JointOp, MadeFrom, Object, ObjectKind, Op, Reg};
use crate::program::value_bytes;

/// Bytes of an mbarrier.
const BARRIER: u32 = 8;
/// Bytes of a tensor map.
const MAP: u32 = 128;
/// Bytes that `tcgen05.alloc` writes.
const ALLOCATED: u32 = 4;

/// Tells an operation what its operands were made from, where it looks itself.
pub fn add(op: &mut Op, values: &[Value], columns: &Columns) {
    let Op::Joint(joint) = op else { return };
    let mut found = objects(joint, values);
    found.extend(columns.objects(joint));
    if found.iter().any(Option::is_some) {
        joint.objects = found.into();
    }
}

fn objects(joint: &JointOp, values: &[Value]) -> Vec<Option<Object>> {
    let of = |reg: &Reg| values[reg.number as usize];
    let by_address = |address: &Address| {
        let value = of(&address.register?);
        // More than any object has, so that it is looked at in any case; whose object is not known is not.
        object(value, address, u32::MAX, false).and_then(held)
    };
    let by_descriptor = |reg: &Reg| match of(reg) {
        Value::Made(made) if made.form == Form::Descriptor => held(made.from),
        Value::Unseen | Value::Number | Value::Made(_) | Value::Unknown => None,
    };
    match joint.what {
        Joint::Tensor(tensor::Op::Load(_) | tensor::Op::Store(_)) => vec![by_address(&joint.addresses[0])],
        Joint::Bulk(bulk::Op::Copy(copy)) if copy.masked || copy.ignores_ends => {
            joint.addresses[..2].iter().map(by_address).collect()
        }
        Joint::Bulk(bulk::Op::Clear) => vec![by_address(&joint.addresses[0])],
        Joint::Warpgroup(warpgroup::Op::Mma(op)) => {
            let src = warpgroups::Multiply::of(op, &joint.src);
            let a = match src.a {
                [descriptor] if descriptor.width == Width::B64 => by_descriptor(descriptor),
                _ => None,
            };
            vec![a, by_descriptor(src.b)]
        }
        Joint::Tcgen05(tcgen05::Op::Copy(_)) => vec![by_descriptor(&joint.src[1])],
        Joint::Tcgen05(tcgen05::Op::Mma(_)) => {
            let src = products::Multiply::of(&joint.src);
            vec![by_descriptor(src.a), by_descriptor(src.b)]
        }
        Joint::Bulk(_)
        | Joint::Tensor(_)
        | Joint::Warpgroup(_)
        | Joint::Tcgen05(_)
        | Joint::Matrix(_)
        | Joint::Mbarrier(_)
        | Joint::Cluster(_)
        | Joint::Multimem(_)
        | Joint::Fabric(_) => Vec::new(),
    }
}

/// What an operation can be held to: all lanes have it in common.
fn held(from: MadeFrom) -> Option<Object> {
    let (base, what) = match from {
        MadeFrom::Shared { base, bytes } => (base, ObjectKind::Shared { bytes }),
        MadeFrom::Pointer { base, parameter } => (base, ObjectKind::Pointer { parameter }),
        MadeFrom::Frame { .. } | MadeFrom::Block { .. } | MadeFrom::Parameter { .. } | MadeFrom::Unknown => {
            return None;
        }
    };
    Some(Object { base, what })
}

/// What an operation reaches that has the same size always: address, bytes, whether it writes.
pub fn accesses(joint: &JointOp) -> Vec<(Address, u32, bool)> {
    let address = |number: usize| joint.addresses.get(number).copied();
    let barrier = |number: usize| address(number).map(|at| (at, BARRIER, true));
    let map = |number: usize| address(number).map(|at| (at, MAP, false));
    let stored = |bytes: u64, count: u8| address(0).map(|at| (at, bytes as u32 * u32::from(count), true));
    let all = match joint.what {
        Joint::Bulk(op) => match op {
            bulk::Op::Copy(_) | bulk::Op::Reduce { .. } => [barrier(2), None],
            bulk::Op::Store { ty, elements } => [stored(value_bytes(ty), elements), barrier(1)],
            bulk::Op::Update { ty, .. } => [stored(value_bytes(ty.ty()), 1), barrier(1)],
            bulk::Op::StoreGlobal { ty, .. } => [stored(value_bytes(ty), 1), None],
            bulk::Op::UpdateGlobal { ty, .. } => [stored(value_bytes(ty.ty()), 1), None],
            bulk::Op::CommitGroup | bulk::Op::WaitGroup { .. } | bulk::Op::Clear => [None, None],
        },
        Joint::Tensor(tensor::Op::Load(_)) => [barrier(1), map(2)],
        Joint::Tensor(tensor::Op::Store(_)) => [map(1), None],
        Joint::Mbarrier(mbarrier::Op::PendingCount) => [None, None],
        Joint::Mbarrier(_) => [barrier(0), None],
        Joint::Tcgen05(tcgen05::Op::Allocate(_)) => [address(0).map(|at| (at, ALLOCATED, true)), None],
        Joint::Tcgen05(tcgen05::Op::Commit(_)) => [barrier(0), None],
        Joint::Tensor(_)
        | Joint::Tcgen05(_)
        | Joint::Matrix(_)
        | Joint::Cluster(_)
        | Joint::Warpgroup(_)
        | Joint::Multimem(_)
        | Joint::Fabric(_) => [None, None],
    };
    all.into_iter().flatten().collect()
}

/// What an operation gives registers: an address in another block's shared memory is that of the same variable.
pub fn given(joint: &JointOp, of: &impl Fn(&Reg) -> Value) -> Value {
    match joint.what {
        Joint::Cluster(cluster::Op::Map(_)) => match of(&joint.src[0]) {
            Value::Made(made) if matches!(made.from, MadeFrom::Shared { .. }) => Value::Made(made),
            Value::Unseen => Value::Unseen,
            Value::Made(_) | Value::Number | Value::Unknown => Value::Unknown,
        },
        // Addresses of shared memory are among what others give.
        Joint::Matrix(_)
        | Joint::Bulk(_)
        | Joint::Mbarrier(_)
        | Joint::Tensor(_)
        | Joint::Cluster(_)
        | Joint::Warpgroup(_)
        | Joint::Tcgen05(_)
        | Joint::Multimem(_)
        | Joint::Fabric(_) => Value::Unknown,
    }
}

/// What is made of the bits of one address: an address that is aligned is the same object's; shifted, it is part of a descriptor. `None`:
/// it is no such operation.
pub fn of_address(body: &Body, op: Compute, src: &[Reg], of: &impl Fn(usize) -> Value) -> Option<Value> {
    let made = |at: usize| match of(at) {
        Value::Made(made) => Some(made),
        Value::Unseen | Value::Number | Value::Unknown => None,
    };
    let is_shared = |made: Made| made.form == Form::Own && matches!(made.from, MadeFrom::Shared { .. });
    let numbers = |from: usize| (from..src.len()).all(|at| of(at) == Value::Number);
    match op {
        Compute::Logic(logic::Op::And { .. }) => {
            let (made, mask) = match (made(0), made(1)) {
                (Some(made), None) => (made, 1),
                (None, Some(made)) => (made, 0),
                _ => return None,
            };
            if of(mask) != Value::Number || made.form == Form::Descriptor {
                return None;
            }
            let mask = body.constant(src[mask].number)?;
            // Of a shared address the bits count that a descriptor has room for.
            let most = if is_shared(made) { 18 } else { 64 };
            let kept = (1_u128 << most) - (1 << ALIGNED);
            (mask & kept == kept).then_some(Value::Made(Made { offset: None, ..made }))
        }
        Compute::Logic(logic::Op::Shr { .. }) | Compute::Int(int::Op::Bfe { .. }) => {
            let made = made(0).filter(|made| is_shared(*made) && numbers(1))?;
            Some(descriptor_of(made))
        }
        _ => None,
    }
}

/// Addresses are aligned to two to that power at most.
const ALIGNED: u32 = 10;

fn descriptor_of(made: Made) -> Value {
    Value::Made(Made {
        form: Form::Descriptor,
        offset: None,
        ..made
    })
}

/// What is put together of parts of one object's descriptors, and numbers. `None`: there is no such part.
pub fn of_descriptors(op: Compute, src: &[Reg], of: &impl Fn(usize) -> Value) -> Option<Value> {
    let puts_together = matches!(
        op,
        Compute::Logic(
            logic::Op::And { .. }
                | logic::Op::Or { .. }
                | logic::Op::Xor { .. }
                | logic::Op::Lop3 { .. }
                | logic::Op::Shr { .. }
        ) | Compute::Int(int::Op::Add { .. } | int::Op::Bfe { .. } | int::Op::Bfi { .. })
            | Compute::Move(moves::Op::Pack(_) | moves::Op::Extract { .. })
    );
    let parts = (0..src.len()).map(of);
    let mut whole = None;
    for part in parts {
        match (part, whole) {
            (Value::Number, _) => {}
            (Value::Made(made), None) if made.form == Form::Descriptor => whole = Some(made),
            (Value::Made(made), Some(whole)) if made.form == Form::Descriptor && made.from == whole.from => {}
            (Value::Made(_) | Value::Unknown | Value::Unseen, _) => return None,
        }
    }
    whole.filter(|_| puts_together).map(descriptor_of)
}
