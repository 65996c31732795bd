//! How accesses to memory are ordered, and among whom (PTX ISA, Memory Consistency Model).

/// `.sem`: what an access, an atomic operation or a fence promises to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Ordering { Weak, Volatile, Relaxed, Acquire, Release, AcqRel, Sc, Mmio }

impl Ordering {
    /// As written behind a dot.
    pub fn word(self) -> &'static str {
        match self {
            Ordering::Weak => "weak",
            Ordering::Volatile => "volatile",
            Ordering::Relaxed => "relaxed",
            Ordering::Acquire => "acquire",
            Ordering::Release => "release",
            Ordering::AcqRel => "acq_rel",
            Ordering::Sc => "sc",
            Ordering::Mmio => "mmio",
        }
    }

    /// The ordering that is written `.word`.
    pub fn from_word(word: &str) -> Option<Ordering> {
        Some(match word {
            "weak" => Ordering::Weak,
            "volatile" => Ordering::Volatile,
            "relaxed" => Ordering::Relaxed,
            "acquire" => Ordering::Acquire,
            "release" => Ordering::Release,
            "acq_rel" => Ordering::AcqRel,
            "sc" => Ordering::Sc,
            "mmio" => Ordering::Mmio,
            _ => return None,
        })
    }
}

/// `.scope`: the threads that an ordering concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Scope { Cta, Cluster, Gpu, Sys }

impl Scope {
    /// As written behind a dot.
    pub fn word(self) -> &'static str {
        match self {
            Scope::Cta => "cta",
            Scope::Cluster => "cluster",
            Scope::Gpu => "gpu",
            Scope::Sys => "sys",
        }
    }

    /// The scope that is written `.word`; `gl` is the name that `membar` has for `gpu`.
    pub fn from_word(word: &str) -> Option<Scope> {
        Some(match word {
            "cta" => Scope::Cta,
            "cluster" => Scope::Cluster,
            "gpu" | "gl" => Scope::Gpu,
            "sys" => Scope::Sys,
            _ => return None,
        })
    }
}
