//! What a statement's text says that it touches.

use cuda::program::{Ordering, Scope, Space};
use cuda::simt::observe::Direction;

use crate::case::{Case, Memory};

/// One access of one lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct What {
    pub bytes: u32,
    pub direction: Direction,
    pub space: Space,
    pub ordering: Ordering,
    pub scope: Option<Scope>,
}

pub struct Expected {
    pub what: What,
    /// How often each thread does it.
    pub accesses: u32,
}

impl Expected {
    /// PTX ISA, Data Movement and Conversion Instructions: ld, ldu, st; Parallel Synchronization: atom, red.
    pub fn of(case: &Case) -> Expected {
        let op = &case.op;
        let direction = match op.mnemonic() {
            "ld" | "ldu" => Direction::Read,
            "st" => Direction::Write,
            "atom" | "red" => Direction::Atomic,
            other => panic!("{other} is not in these families"),
        };
        // Parameters of functions lie in the frame of the thread.
        let space = match case.space() {
            None => Space::Generic,
            Some("global") => Space::Global,
            Some("shared") => Space::Shared,
            Some("const") => Space::Const,
            Some("local" | "param") => Space::Local,
            Some(other) => panic!("{other} is no space"),
        };
        let scope = ["cta", "cluster", "gpu", "sys"].into_iter().find(|word| op.has(word));
        let scope = scope.map(|word| match word {
            "cta" => Scope::Cta,
            "cluster" => Scope::Cluster,
            "gpu" => Scope::Gpu,
            _ => Scope::Sys,
        });
        let atomic = direction == Direction::Atomic;
        let (ordering, scope) = if op.has("volatile") || op.has("mmio") {
            (Ordering::Volatile, Some(Scope::Sys))
        } else if op.has("acquire") {
            (Ordering::Acquire, scope.or(Some(Scope::Gpu)))
        } else if op.has("release") {
            (Ordering::Release, scope.or(Some(Scope::Gpu)))
        } else if op.has("acq_rel") {
            (Ordering::AcqRel, scope.or(Some(Scope::Gpu)))
        } else if atomic || op.has("relaxed") {
            (Ordering::Relaxed, scope.or(Some(Scope::Gpu)))
        } else if ["cg", "cv", "wt"].into_iter().any(|word| op.has(word)) {
            // Weak by the manual; made strong here, for programs that talk to other blocks by them.
            (Ordering::Relaxed, Some(Scope::Gpu))
        } else {
            (Ordering::Weak, None)
        };
        // An mmio access is relaxed; atomics and reductions say volatile in no version.
        let ordering = if atomic && ordering == Ordering::Volatile {
            Ordering::Relaxed
        } else {
            ordering
        };
        let elements = [("v2", 2), ("v3", 3), ("v4", 4), ("v8", 8)];
        let elements = elements
            .into_iter()
            .find(|(word, _)| op.has(word))
            .map_or(1, |(_, n)| n);
        let ty = op.ty();
        let element = ty.bits * ty.elements / 8;
        // Vectors of three, which the first versions had, are three accesses.
        let (accesses, bytes) = if elements == 3 {
            (3, element)
        } else {
            (1, element * elements)
        };
        // A kernel's parameter at a known place is a constant of the launch: no thread reads it.
        let constant = case.memory == Some(Memory::KernelParam);
        Expected {
            what: What {
                bytes,
                direction,
                space,
                ordering,
                scope,
            },
            accesses: if constant { 0 } else { accesses },
        }
    }
}
