//! Which operation is how exact ([`Fidelity`]).

use super::Operation;
use crate::isa::fidelity::Fidelity;
use crate::isa::{Compute, approx, half};

impl Compute {
    fn fidelity(self) -> Fidelity {
        match self {
            Compute::Approx(op) => approximate(op),
            Compute::Half(op) => of_halves(op),
            Compute::Int(_)
            | Compute::Float(_)
            | Compute::Compare(_)
            | Compute::Logic(_)
            | Compute::Convert(_)
            | Compute::Narrow(_)
            | Compute::Video(_)
            | Compute::Legacy(_)
            | Compute::Move(_) => Fidelity::Exact,
        }
    }
}

/// What the function unit computes has its table's bits.
fn approximate(op: approx::Op) -> Fidelity {
    use approx::Op;
    match op {
        Op::Div { .. }
        | Op::DivFull { .. }
        | Op::Rcp { .. }
        | Op::RcpF64
        | Op::Sqrt { .. }
        | Op::Rsqrt { .. }
        | Op::RsqrtF64 { .. }
        | Op::Sin { .. }
        | Op::Cos { .. }
        | Op::Lg2 { .. }
        | Op::Ex2 { .. }
        | Op::Tanh => Fidelity::AsMeasured,
    }
}

fn of_halves(op: half::Op) -> Fidelity {
    use half::Op;
    match op {
        Op::Ex2 { .. } | Op::Tanh { .. } => Fidelity::AsMeasured,
        Op::Add { .. }
        | Op::Sub { .. }
        | Op::Mul { .. }
        | Op::FmaF16 { .. }
        | Op::FmaBf16 { .. }
        | Op::FmaOobF16 { .. }
        | Op::FmaOobBf16 { .. }
        | Op::Neg { .. }
        | Op::Abs { .. }
        | Op::Min { .. }
        | Op::Max { .. }
        | Op::MixedAdd { .. }
        | Op::MixedSub { .. }
        | Op::MixedFma { .. } => Fidelity::Exact,
    }
}

impl Operation {
    /// Of its results, whatever its operands.
    pub fn fidelity(self) -> Fidelity {
        match self {
            Operation::Compute(compute) => compute.fidelity(),
            Operation::Joint(joint) => joint.fidelity(),
            // Weights of filters are fixed-point numbers whose rounding the manuals leave open.
            Operation::Texture(_) => Fidelity::WithinBounds,
            Operation::CreatePolicy(_) => Fidelity::Own,
            Operation::Move { .. }
            | Operation::Video(_)
            | Operation::Load(_)
            | Operation::Store(_)
            | Operation::Atomic(_)
            | Operation::Reduction(_)
            | Operation::Branch { .. }
            | Operation::BranchIndexed { .. }
            | Operation::Call { .. }
            | Operation::Return { .. }
            | Operation::Exit
            | Operation::Trap
            | Operation::Breakpoint
            | Operation::Nanosleep
            | Operation::Barrier(_)
            | Operation::WarpBarrier
            | Operation::Fence(_)
            | Operation::Shuffle { .. }
            | Operation::Vote { .. }
            | Operation::Match { .. }
            | Operation::Redux { .. }
            | Operation::Activemask
            | Operation::Elect
            | Operation::ConvertAddress { .. }
            | Operation::IsSpace { .. }
            | Operation::Alloca
            | Operation::StackSave
            | Operation::StackRestore
            | Operation::CopyAsync(_)
            | Operation::TextureQuery { .. }
            | Operation::IsHandle(_)
            | Operation::SurfaceLoad(_)
            | Operation::SurfaceStore(_)
            | Operation::SurfaceReduce { .. }
            | Operation::SurfaceQuery { .. }
            | Operation::Hint(_) => Fidelity::Exact,
        }
    }
}
