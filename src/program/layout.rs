//! Sizes, alignments and offsets: of types, variables, parameter lists, and a kernel's shared memory.

use crate::ptx::ast::{Type, Variable};

/// Bytes of a value in memory (PTX ISA, Fundamental Types; handles of textures, samplers and surfaces are 64 bits).
pub fn size_of(ty: Type) -> u64 {
    match ty {
        Type::B8 | Type::U8 | Type::S8 | Type::Pred => 1,
        Type::E4m3 | Type::E5m2 | Type::E3m2 | Type::E2m3 | Type::E2m1 | Type::E2m1x2 => 1,
        Type::B16
        | Type::U16
        | Type::S16
        | Type::F16
        | Type::Bf16
        | Type::E4m3x2
        | Type::E5m2x2
        | Type::E3m2x2
        | Type::E2m3x2
        | Type::E2m1x4
        | Type::Ue8m0x2
        | Type::Ue5m3x2
        | Type::S2f6x2 => 2,
        Type::B32
        | Type::U32
        | Type::S32
        | Type::F16x2
        | Type::Bf16x2
        | Type::F32
        | Type::Tf32
        | Type::U8x4
        | Type::S8x4
        | Type::U16x2
        | Type::S16x2
        | Type::E4m3x4
        | Type::E5m2x4
        | Type::E3m2x4
        | Type::E2m3x4 => 4,
        Type::B64
        | Type::U64
        | Type::S64
        | Type::F64
        | Type::F32x2
        | Type::TexRef
        | Type::SamplerRef
        | Type::SurfRef => 8,
        Type::B128 => 16,
    }
}

/// Integers that extend by sign.
pub fn is_signed(ty: Type) -> bool {
    matches!(ty, Type::S8 | Type::S16 | Type::S32 | Type::S64)
}

/// Types whose literals are floating-point.
pub fn is_float(ty: Type) -> bool {
    matches!(
        ty,
        Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2 | Type::F32 | Type::F32x2 | Type::F64 | Type::Tf32
    )
}

/// Elements of one vector; a `.v3` takes the room of a `.v4`.
pub fn lanes(variable: &Variable) -> u64 {
    match variable.vector {
        None => 1,
        Some(3) => 4,
        Some(n) => u64::from(n),
    }
}

/// Natural or declared alignment.
pub fn align_of(variable: &Variable) -> u64 {
    variable.align.unwrap_or(size_of(variable.ty) * lanes(variable)).max(1)
}

/// More than any memory holds.
pub const MAX_BYTES: u64 = 1 << 40;

/// Whether a variable's size is for its initialiser, a launch or a call to say.
pub fn is_unsized(variable: &Variable) -> bool {
    variable.dims.contains(&None)
}

/// Bytes of a variable; `None` when its first dimension is open, or nothing so large exists.
pub fn bytes_of(variable: &Variable) -> Option<u64> {
    let mut bytes = size_of(variable.ty) * lanes(variable);
    for dim in &variable.dims {
        bytes = bytes.checked_mul((*dim)?)?;
    }
    (bytes <= MAX_BYTES).then_some(bytes)
}

/// Where a parameter lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub offset: u32,
    pub bytes: u32,
}

impl Place {
    /// Whether both have bytes in common.
    pub fn meets(self, other: Place) -> bool {
        self.offset < other.offset.saturating_add(other.bytes) && other.offset < self.offset.saturating_add(self.bytes)
    }
}

/// A device function's interface in its frame: `[returns][params]`, each at its alignment, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signature {
    pub returns: Vec<Place>,
    pub params: Vec<Place>,
    pub return_bytes: u32,
    /// From the end of the returns, padding included.
    pub param_bytes: u32,
    pub align: u32,
}

/// Bytes of parameters that a kernel may have, and what it may have before PTX 8.1 (PTX ISA, Kernel Function Parameters).
pub const KERNEL_PARAM_BYTES: u32 = 32_764;
pub const OLD_KERNEL_PARAM_BYTES: u32 = 4_352;

/// Static shared memory of a block on every target (CUDA C++ Programming Guide, Compute Capabilities); what goes beyond
/// must be dynamic.
pub const SHARED_BYTES: u32 = 48 * 1024;

/// Constant memory that a unit may declare (CUDA C++ Programming Guide, Compute Capabilities).
pub const CONST_BYTES: u64 = 0x1_0000;

/// The room of an open last parameter (`.param .b8 args[]`): what one call can pass there at most.
pub const OPEN_BYTES: u32 = 256;

/// Whether the last parameter takes as many bytes as a call passes (PTX ISA, Function Declarations and Definitions).
pub fn is_open(params: &[Variable]) -> bool {
    params.last().is_some_and(|last| last.dims.first() == Some(&None))
}

/// Lays a list of parameters out from `start`; also its end and greatest alignment.
pub fn places(variables: &[Variable], start: u32) -> (Vec<Place>, u32, u32) {
    let (mut end, mut align) = (start, 1);
    let places = variables
        .iter()
        .map(|variable| {
            let own = u32::try_from(align_of(variable)).unwrap_or(1);
            let bytes = match variable.dims.first() {
                Some(None) => OPEN_BYTES,
                // What is too large is as large as can be, so that no limit lets it pass.
                _ => bytes_of(variable)
                    .and_then(|bytes| u32::try_from(bytes).ok())
                    .unwrap_or(u32::MAX),
            };
            let offset = round_up(end, own);
            end = offset.saturating_add(bytes);
            align = align.max(own);
            Place { offset, bytes }
        })
        .collect();
    (places, end, align)
}

pub fn signature(returns: &[Variable], params: &[Variable]) -> Signature {
    let (return_places, return_bytes, a) = places(returns, 0);
    let (param_places, end, b) = places(params, return_bytes);
    Signature {
        returns: return_places,
        params: param_places,
        return_bytes,
        param_bytes: end.saturating_sub(return_bytes),
        align: a.max(b),
    }
}

/// `value` rounded up to a multiple of `align` (any positive number), saturating.
pub fn round_up(value: u32, align: u32) -> u32 {
    value.checked_next_multiple_of(align.max(1)).unwrap_or(u32::MAX)
}

/// A shared variable as the layout sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedVariable {
    /// `None`: dynamic, sized by the launch.
    pub bytes: Option<u32>,
    pub align: u32,
    /// Orders variables: the unit's or function's place, then the declaration's.
    pub order: (u32, u32),
}

/// Bytes of shared memory that are kept for the system and the toolkit's headers, of kernels that ask where they are
/// (PTX ISA, Special Registers: %reserved_smem_offset). Every device of compute capability 8.0 or higher has as many.
pub const RESERVED_SHARED: u32 = 1024;

impl SharedVariable {
    /// What is kept: behind all others that have a size.
    pub const RESERVED: SharedVariable = SharedVariable {
        bytes: Some(RESERVED_SHARED),
        align: 16,
        order: (u32::MAX, u32::MAX),
    };

    fn is_reserved(&self) -> bool {
        self.order == SharedVariable::RESERVED.order
    }
}

/// A kernel's shared memory: offsets by variable index, ascending by index; static bytes; where dynamic arrays start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedLayout {
    pub offsets: Vec<(u32, u32)>,
    pub bytes: u32,
    pub dynamic: u32,
    /// Bytes of the program's own static variables.
    pub own: u32,
    /// Where the reserved bytes are, if the kernel asks for them.
    pub reserved: Option<u32>,
}

/// Static variables in the order of their declarations, then all dynamic ones at one place.
pub fn shared(variables: &[(u32, SharedVariable)]) -> SharedLayout {
    let mut sorted: Vec<_> = variables.to_vec();
    sorted.sort_by_key(|(index, variable)| (variable.order, *index));
    let mut layout = SharedLayout::default();
    for (index, variable) in &sorted {
        if let Some(bytes) = variable.bytes {
            let offset = round_up(layout.bytes, variable.align);
            layout.offsets.push((*index, offset));
            layout.bytes = offset.saturating_add(bytes);
            if variable.is_reserved() {
                layout.reserved = Some(offset);
            } else {
                layout.own = layout.bytes;
            }
        }
    }
    let dynamic = sorted.iter().filter(|(_, v)| v.bytes.is_none());
    let align = dynamic.clone().map(|(_, v)| v.align).max().unwrap_or(1).max(16);
    layout.dynamic = round_up(layout.bytes, align);
    layout
        .offsets
        .extend(dynamic.map(|(index, _)| (*index, layout.dynamic)));
    layout.offsets.sort_unstable();
    layout
}
