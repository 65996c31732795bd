//! How a register's value is kept: one number for the warp, one a few parts, or one a lane.

use crate::isa::lanes::Width;
use crate::isa::{Bitwise, Compute, logic};
use crate::program::facts::Shape;
use crate::program::{Body, Initial, Inst, Linear, Op, Ordering, Reg, Register, ShuffleMode, Space, Special, Value};

/// Parts of a warp at most, with the CPU's shortest vectors.
pub const MOST_PARTS: usize = 8;

/// Lanes of a part at least.
const SHORTEST: u32 = 32 / MOST_PARTS as u32;

/// How far the parts of a warp begin from the first one.
pub type Begins = [i32; MOST_PARTS];

/// How a register's value is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing was written to it, as far as anybody has looked.
    Unknown,
    /// One number, or one a run of parts, from which it grows by `step` with each lane. The number, or each of them, is a multiple of
    /// two to the power of `align`.
    Line { step: u64, parts: Parts, align: u8 },
    /// A number a lane.
    Vector,
    /// In the interpreter's window only.
    Window,
}

/// How the parts of a warp lie to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    /// The line goes on from each to the next.
    One,
    /// They begin so far from the first one; it goes on through runs of so many.
    Rows { begins: Begins, run: u8 },
    /// It goes on through runs of so many, between which nothing is known.
    Each { run: u8 },
}

impl Parts {
    /// How far a part of so many lanes begins from the first one, on a line that grows by `step`.
    pub(super) fn far(self, part: usize, step: u64, lanes: u32) -> Option<u64> {
        match self {
            Parts::One => Some(step.wrapping_mul(part as u64 * u64::from(lanes))),
            Parts::Rows { begins, .. } => Some(i64::from(begins[part]) as u64),
            Parts::Each { .. } => None,
        }
    }

    /// Through how many parts the line goes on.
    pub fn run(self) -> u8 {
        match self {
            Parts::One => MOST_PARTS as u8,
            Parts::Rows { run, .. } | Parts::Each { run } => run,
        }
    }

    /// Parts of so many lanes that begin so far from the first one; in numbers of so many bits. Where that is not known, the line
    /// goes on through runs of so many.
    pub(super) fn of(width: Width, step: u64, (lanes, run): (u32, u8), far: impl Fn(usize) -> Option<u64>) -> Parts {
        let unknown = Parts::Each { run };
        let cut = |number: u64| match width {
            Width::B32 => Some(i64::from(number as u32 as i32)),
            Width::B64 => Some(number as i64),
            Width::Pred | Width::B16 | Width::B128 => None,
        };
        let parts = (32 / lanes) as usize;
        let mut begins = Begins::default();
        for (part, begin) in begins.iter_mut().enumerate().take(parts).skip(1) {
            let Some(Ok(far)) = far(part).and_then(cut).map(i32::try_from) else {
                return unknown;
            };
            *begin = far;
        }
        let goes_on = |run: usize| {
            (0..parts).all(|part| {
                let on = step.wrapping_mul((part % run) as u64 * u64::from(lanes));
                let on = (i64::from(begins[part - part % run]) as u64).wrapping_add(on);
                cut(on) == Some(begins[part].into())
            })
        };
        let mut run = parts;
        while !goes_on(run) {
            run /= 2;
        }
        match run == parts {
            true => Parts::One,
            false => Parts::Rows { begins, run: run as u8 },
        }
    }

    pub(super) fn meet(self, other: Parts) -> Parts {
        match self == other {
            true => self,
            false => Parts::Each {
                run: self.run().min(other.run()),
            },
        }
    }
}

impl Kind {
    pub const SAME: Kind = Kind::line(0, Parts::One);

    pub const fn line(step: u64, parts: Parts) -> Kind {
        Kind::Line { step, parts, align: 0 }
    }

    /// Of which a multiple is known.
    pub(super) fn aligned(self, to: u32) -> Kind {
        match self {
            Kind::Line { step, parts, .. } => Kind::Line {
                step,
                parts,
                align: to.min(63) as u8,
            },
            other => other,
        }
    }

    /// A multiple of no more than what else may come to be in the register: whether that is news.
    pub(super) fn limit(&mut self, other: Kind) -> bool {
        let most = match other {
            Kind::Line { align, .. } => align,
            Kind::Unknown | Kind::Vector | Kind::Window => 0,
        };
        match self {
            Kind::Line { align, .. } if *align > most => {
                *align = most;
                true
            }
            Kind::Line { .. } | Kind::Unknown | Kind::Vector | Kind::Window => false,
        }
    }

    /// Of which nothing is known between the runs of parts, if it is not one line.
    pub(super) fn scattered(self) -> Kind {
        match self {
            Kind::Line {
                step,
                parts: Parts::Rows { run, .. },
                align,
            } => Kind::Line {
                step,
                parts: Parts::Each { run },
                align,
            },
            other => other,
        }
    }

    pub(super) fn meet(self, other: Kind) -> Kind {
        match (self, other) {
            (Kind::Unknown, kind) | (kind, Kind::Unknown) => kind,
            (
                Kind::Line {
                    step: a,
                    parts: p,
                    align: n,
                },
                Kind::Line {
                    step: b,
                    parts: q,
                    align: m,
                },
            ) if a == b => Kind::Line {
                step: a,
                parts: p.meet(q),
                // Of one line the first number is known; those of its parts are no farther from it than the lanes before them.
                align: match p == q || a == 0 {
                    true => n.min(m),
                    false => n.min(m).min(a.trailing_zeros() as u8 + SHORTEST.trailing_zeros() as u8),
                },
            },
            (Kind::Window, _) | (_, Kind::Window) => Kind::Window,
            (Kind::Line { .. } | Kind::Vector, Kind::Line { .. } | Kind::Vector) => Kind::Vector,
        }
    }

    pub fn is_line(self) -> bool {
        matches!(self, Kind::Line { .. } | Kind::Unknown)
    }

    /// One number, the same in all lanes.
    pub fn is_same(self) -> bool {
        matches!(
            self,
            Kind::Line {
                step: 0,
                parts: Parts::One,
                ..
            }
        )
    }

    /// Of what is the same in all lanes if this is.
    pub(super) fn alike(self) -> Kind {
        match self {
            Kind::Unknown => Kind::Unknown,
            same if same.is_same() => Kind::SAME,
            _ => Kind::Vector,
        }
    }
}

/// How the threads of a block lie along its x axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rows {
    /// `%tid.x` counts up through each warp, and rows are whole warps.
    Warp,
    /// It does so, but the only row ends where it ends.
    One,
    /// Rows of so many threads are whole parts of it, as long as the CPU's vectors of 32 bits, and each warp is as many whole rows of
    /// one plane.
    Short(u32),
    /// Through parts of it.
    Part,
    /// Rows end anywhere.
    Any,
}

impl Rows {
    /// How many ways there are.
    pub const COUNT: usize = 7;

    /// A number for each, less than [`Rows::COUNT`].
    pub fn number(self) -> usize {
        match self {
            Rows::Warp => 0,
            Rows::Part => 1,
            Rows::Any => 2,
            // Of 4, 8, or 16 threads: no part is shorter, and no row that shares a warp is longer.
            Rows::Short(length) => 1 + length.clamp(4, 16).ilog2() as usize,
            Rows::One => 6,
        }
    }

    /// For a block of this shape and parts of so many lanes.
    pub fn of([x, y, z]: [u32; 3], part: u32) -> Rows {
        if x.is_multiple_of(32) {
            Rows::Warp
        } else if y * z == 1 {
            Rows::One
        } else if x.is_multiple_of(part) {
            let many = 32 / x;
            let whole = 32 % x == 0 && (z == 1 || y.is_multiple_of(many));
            if whole { Rows::Short(x) } else { Rows::Part }
        } else {
            Rows::Any
        }
    }
}

/// Which operand of an operation that widens is the one that must not wrap around, and whether it counts as signed.
pub(super) fn widened(linear: Linear, kind: impl Fn(usize) -> Kind) -> Option<(usize, bool)> {
    let steps = |at: usize| matches!(kind(at), Kind::Line { step, .. } if step != 0);
    match linear {
        Linear::Widen { signed } => steps(0).then_some((0, signed)),
        Linear::MulWide { signed } | Linear::MadWide { signed } => match (steps(0), steps(1)) {
            (true, _) => Some((0, signed)),
            (false, true) => Some((1, signed)),
            (false, false) => None,
        },
        Linear::Copy
        | Linear::Add
        | Linear::Sub
        | Linear::Mul
        | Linear::Mad
        | Linear::Shl
        | Linear::Narrow
        | Linear::Compare { .. } => None,
    }
}

/// What is in a register before the code runs.
pub(super) fn initial_kind(initial: Initial, width: Width, shape: Shape, (rows, lanes): (Rows, u32)) -> Kind {
    let special = match initial {
        Initial::Constant(bits) => return Kind::SAME.aligned((bits as u64).trailing_zeros()),
        Initial::Param { .. } => return Kind::SAME,
        Initial::Special(special) => special,
    };
    // How far parts begin from the first one along an axis of the block.
    let begins = |step: u64, far: &dyn Fn(u32) -> u32| {
        Parts::of(Width::B32, step, (lanes, 1), |part| {
            Some(far(part as u32 * lanes).into())
        })
    };
    let kind = match special {
        // Warps start at multiples of 32 of a row, or parts at multiples of their length.
        Special::Tid(0) => match rows {
            Rows::Warp | Rows::One => Kind::line(1, Parts::One).aligned(5),
            Rows::Short(x) => Kind::line(1, begins(1, &|lane| lane % x)).aligned(lanes.trailing_zeros()),
            Rows::Part => Kind::line(1, Parts::Each { run: 1 }).aligned(lanes.trailing_zeros()),
            Rows::Any => Kind::Vector,
        },
        Special::Tid(axis) => match rows {
            Rows::Warp | Rows::One => Kind::SAME,
            Rows::Short(x) if axis == 1 => Kind::line(0, begins(0, &|lane| lane / x)),
            Rows::Short(_) => Kind::SAME,
            Rows::Part => Kind::line(0, Parts::Each { run: 1 }),
            Rows::Any => Kind::Vector,
        },
        Special::Ntid(0) => Kind::SAME.aligned(match rows {
            Rows::Warp => 5,
            Rows::Short(x) => x.trailing_zeros(),
            Rows::Part => lanes.trailing_zeros(),
            Rows::One | Rows::Any => 0,
        }),
        Special::Laneid => Kind::line(1, Parts::One).aligned(63),
        Special::Warpid => Kind::SAME,
        // What is the same in a block is the same in its warps.
        _ if shape == Shape::Uniform => Kind::SAME,
        _ => Kind::Vector,
    };
    match (width, kind) {
        (Width::B32 | Width::B64, kind)
        | (
            _,
            kind @ Kind::Line {
                step: 0,
                parts: Parts::One,
                ..
            },
        ) => kind,
        (Width::Pred | Width::B16 | Width::B128, _) => Kind::Vector,
    }
}

/// Bits of a number that grows by a power of two, where it begins at such a multiple that the lanes' numbers stand in bits of their own: `%tid.x % 16`,
/// `%tid.x / 32`, the multiple of 256 before `%tid.x * 4`. They are one line where all of these bits are taken or none, and one a
/// part where that holds of the bits that count within parts.
fn masked(
    body: &Body,
    op: Compute,
    src: &[Reg],
    (steps, aligns, parts): ([u64; 4], [u32; 4], [Parts; 4]),
    lanes: u32,
) -> Option<Kind> {
    let constant = |at: usize| body.constant(src[at].number).map(|bits| bits as u64);
    let (line, by) = match (op.bitwise()?, constant(0), constant(1)) {
        (Bitwise::And, _, Some(mask)) => (0, Taken::Masked(mask)),
        (Bitwise::And, Some(mask), None) => (1, Taken::Masked(mask)),
        (Bitwise::ShiftRight { .. }, _, Some(by)) => (0, Taken::From(u32::try_from(by).ok()?)),
        (Bitwise::And | Bitwise::ShiftRight { .. }, _, None) | (Bitwise::Or, ..) => return None,
    };
    let (step, align, parts) = (steps[line], aligns[line], parts[line]);
    let width = if src[line].width == Width::B32 { 32 } else { 64 };
    let first = step.trailing_zeros();
    // What lanes have of their own stands in these bits, from the first one on, and below the sign.
    let (of_part, of_warp) = (first + lanes.trailing_zeros(), first + LANE_BITS);
    if !step.is_power_of_two() || steps.iter().sum::<u64>() != step || of_warp >= width || align < of_part {
        return None;
    }
    // How far a lane's number is from that of the first one.
    let far = |lane: u64| by.of(lane << first);
    let grows = |bits: u32| {
        let next = far(1);
        (0..1 << (bits - first))
            .all(|lane| far(lane) == lane * next)
            .then_some(next)
    };
    let aligned = |to: u32| match by {
        Taken::Masked(mask) => to.max(mask.trailing_zeros()),
        Taken::From(by) => to.saturating_sub(by),
    };
    let whole = parts == Parts::One && align >= of_warp;
    if whole && let Some(step) = grows(of_warp) {
        return Some(Kind::line(step, Parts::One).aligned(aligned(align)));
    }
    let step = grows(of_part)?;
    let parts = Parts::of(src[line].width, step, (lanes, 1), |part| {
        whole.then(|| far(part as u64 * u64::from(lanes)))
    });
    Some(Kind::line(step, parts).aligned(aligned(of_part)))
}

/// Whether two numbers that are joined have no bit in common, so that they are added: one is less than what the other is a multiple of.
fn is_sum(body: &Body, op: Compute, src: &[Reg], (steps, aligns): ([u64; 4], [u32; 4])) -> bool {
    let joins = op.bitwise() == Some(Bitwise::Or);
    joins
        && [(0, 1), (1, 0)].into_iter().any(|(large, small): (usize, usize)| {
            let multiple = aligns[large].min(steps[large].trailing_zeros());
            let facts = body.facts.get(src[small].number as usize);
            let most = facts.and_then(|facts| facts.range).map(|(_, most)| most);
            most.is_some_and(|most| most.checked_shr(multiple).unwrap_or(0) == 0)
        })
}

/// A line with all bits the other way grows by as much in the other direction, and one of two lines of one step that all lanes choose is one.
fn turned(op: Compute, src: &[Reg], (steps, aligns): ([u64; 4], [u32; 4])) -> Option<Kind> {
    let Compute::Logic(op) = op else { return None };
    let (step, align) = match op {
        logic::Op::Not { .. } if steps[0] != 0 => (steps[0].wrapping_neg(), 0),
        logic::Op::Selp { .. } if steps[0] == steps[1] && steps[0] != 0 => (steps[0], aligns[0].min(aligns[1])),
        _ => return None,
    };
    let cut = match src[0].width {
        Width::B32 => step & u64::from(u32::MAX),
        Width::B64 => step,
        Width::Pred | Width::B16 | Width::B128 => return None,
    };
    Some(Kind::line(cut, Parts::One).aligned(align))
}

/// Bits of a lane's number.
const LANE_BITS: u32 = 5;

/// Bits that an operation leaves of a number.
#[derive(Clone, Copy)]
enum Taken {
    /// Those of a mask, where they are.
    Masked(u64),
    /// Those from one on, which comes first then.
    From(u32),
}

impl Taken {
    fn of(self, number: u64) -> u64 {
        match self {
            Taken::Masked(mask) => number & mask,
            Taken::From(by) => number.checked_shr(by).unwrap_or(0),
        }
    }
}

/// The kind of what lanes learn of these members.
fn told(members: Option<Value<Reg>>, of: impl Fn(Register) -> Kind) -> Kind {
    match members {
        None | Some(Value::Immediate(_)) => Kind::SAME,
        Some(Value::Register(reg)) => of(reg.number).alike(),
    }
}

/// The kind of what an operation gives, without its guard.
pub(super) fn given(body: &Body, kinds: &[Kind], inst: &Inst, lanes: u32) -> Kind {
    let of = |register: Register| kinds[register as usize];
    match &inst.op {
        Op::Compute { op, src, dst } => {
            if dst.iter().chain(src).any(|reg| reg.width == Width::B128) {
                return Kind::Vector;
            }
            if src.iter().any(|reg| of(reg.number) == Kind::Unknown) {
                return Kind::Unknown;
            }
            if src.iter().any(|reg| !of(reg.number).is_line()) {
                return Kind::Vector;
            }
            let mut parts = [Parts::One; 4];
            let mut steps = [0; 4];
            let mut aligns = [0; 4];
            for (((step, align), parts), reg) in steps.iter_mut().zip(&mut aligns).zip(&mut parts).zip(src) {
                if let Kind::Line {
                    step: s,
                    parts: p,
                    align: a,
                } = of(reg.number)
                {
                    (*step, *align, *parts) = (s, u32::from(a), p);
                }
            }
            // As the sign of a number that has none.
            let facts = dst.first().and_then(|reg| body.facts.get(reg.number as usize));
            if dst.len() == 1
                && parts == [Parts::One; 4]
                && dst[0].width != Width::Pred
                && facts.is_some_and(|facts| facts.range == Some((0, 0)))
            {
                return Kind::SAME.aligned(63);
            }
            if dst.len() == 1
                && let Some(kind) = masked(body, *op, src, (steps, aligns, parts), lanes)
            {
                return kind;
            }
            let align = match (op.linear(), op.bitwise()) {
                (Some(Linear::Copy | Linear::Narrow | Linear::Widen { .. }), _) => aligns[0],
                (Some(Linear::Add | Linear::Sub), _) | (None, Some(Bitwise::Or)) => aligns[0].min(aligns[1]),
                (Some(Linear::Mul | Linear::MulWide { .. }), _) => aligns[0] + aligns[1],
                (Some(Linear::Mad | Linear::MadWide { .. }), _) => (aligns[0] + aligns[1]).min(aligns[2]),
                (Some(Linear::Shl), _) => {
                    let by = body.constant(src[1].number).filter(|&by| by < 64);
                    by.map_or(0, |by| aligns[0] + by as u32)
                }
                (None, Some(Bitwise::And)) => aligns[0].max(aligns[1]),
                (Some(Linear::Compare { .. }), _) | (None, Some(Bitwise::ShiftRight { .. }) | None) => 0,
            };
            if parts == [Parts::One; 4]
                && dst.len() == 1
                && let Some(kind) = turned(*op, src, (steps, aligns))
            {
                return kind;
            }
            let linear = match is_sum(body, *op, src, (steps, aligns)) {
                true => Some(Linear::Add),
                false => op.linear(),
            };
            let linear = linear.filter(|_| dst.len() == 1);
            let constant = |at: usize| body.constant(src[at].number).map(|bits| bits as u64);
            // What parts begin with grows from one to the next as a line does, if numbers that are widened are looked at.
            let parts_of = |width: Width, step: u64| {
                if parts == [Parts::One; 4] {
                    return Parts::One;
                }
                // Of sources that are the same through a run, anything is.
                let run = parts.map(Parts::run).into_iter().min().unwrap_or(1);
                let Some(linear) = linear else {
                    return Parts::Each { run };
                };
                let looked_at = widened(linear, |at| of(src[at].number)).is_some();
                if linear.widens() && !looked_at && parts[..2] != [Parts::One; 2] {
                    return Parts::Each { run };
                }
                let far = |part: usize| linear.stride(|at| parts[at].far(part, steps[at], lanes), constant);
                Parts::of(width, step, (lanes, run), far)
            };
            if steps == [0; 4] {
                let width = dst.first().map_or(Width::Pred, |reg| reg.width);
                return Kind::line(0, parts_of(width, 0)).aligned(align);
            }
            let Some(linear) = linear else {
                return Kind::Vector;
            };
            let step = linear.stride(|at| Some(steps[at]), constant);
            match (step, dst[0].width) {
                (Some(step), width @ Width::B32) => {
                    Kind::line(u64::from(step as u32), parts_of(width, step)).aligned(align)
                }
                (Some(step), width @ Width::B64) => Kind::line(step, parts_of(width, step)).aligned(align),
                (_, Width::Pred | Width::B16 | Width::B32 | Width::B64 | Width::B128) => Kind::Vector,
            }
        }
        Op::Load {
            address,
            element,
            ordering: Ordering::Weak,
            dst,
            ..
        } if element.bytes <= 8
            && dst.iter().flatten().all(|reg| reg.width != Width::B128)
            && address.space != Space::Local =>
        {
            match address.register.map_or(Kind::SAME, |reg| of(reg.number)) {
                kind @ (Kind::Unknown | Kind::Line { step: 0, .. }) => kind.aligned(0).scattered(),
                Kind::Line { .. } | Kind::Vector | Kind::Window => Kind::Vector,
            }
        }
        Op::ConvertAddress { space, src, .. } if *space != Space::Local => of(src.number).aligned(0).scattered(),
        // Whoever names the same members is told the same.
        Op::Vote { members, .. } => told(*members, of),
        Op::Redux { members, .. } => told(Some(*members), of),
        Op::Activemask { .. } | Op::FrameAddress { .. } => Kind::SAME,
        // So is the whole block at a barrier.
        Op::Barrier { .. } if inst.op.reduction_of_all().is_some() => Kind::SAME,
        // All lanes ask for the same one, which is there.
        Op::Shuffle {
            mode: ShuffleMode::Idx,
            b,
            c,
            ..
        } if body.constant(c.number).is_some_and(|c| c & 0x1f1f == 0x1f) => of(b.number).alike(),
        Op::Load { .. }
        | Op::ConvertAddress { .. }
        | Op::Store { .. }
        | Op::Atomic { .. }
        | Op::Call { .. }
        | Op::Return
        | Op::Exit
        | Op::Trap
        | Op::Breakpoint
        | Op::Barrier { .. }
        | Op::WarpBarrier { .. }
        | Op::Fence { .. }
        | Op::Shuffle { .. }
        | Op::Match { .. }
        | Op::Elect { .. }
        | Op::ReadSpecial { .. }
        | Op::IsSpace { .. }
        | Op::Within(_)
        | Op::Nanosleep
        | Op::Alloca { .. }
        | Op::StackSave { .. }
        | Op::StackRestore { .. }
        | Op::CopyAsync { .. }
        | Op::CopyGroup(_)
        | Op::Joint(_)
        | Op::Texture(_)
        | Op::Surface(_)
        | Op::Shadow(_)
        | Op::HandleQuery { .. }
        | Op::IsHandle { .. }
        | Op::Syscall { .. } => Kind::Vector,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where rows of threads end is where a line is another number: parts of one row are one.
    #[test]
    fn parts_of_a_row_go_on() {
        let tid = |row: u32, lanes: u32, axis: u8| {
            let initial = Initial::Special(Special::Tid(axis));
            match initial_kind(initial, Width::B32, Shape::Varying, (Rows::Short(row), lanes)) {
                Kind::Line { step, parts, .. } => (step, parts.run()),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(tid(16, 8, 0), (1, 2));
        assert_eq!(tid(16, 4, 0), (1, 4));
        assert_eq!(tid(16, 16, 0), (1, 1));
        assert_eq!(tid(8, 8, 0), (1, 1));
        assert_eq!(tid(8, 4, 1), (0, 2));
        assert_eq!(tid(4, 4, 1), (0, 1));
    }

    /// The first number of a line tells no more of its parts than how far they are from it.
    #[test]
    fn parts_are_multiples_of_what_lanes_count() {
        let one = Kind::line(1, Parts::One).aligned(5);
        let each = Kind::line(1, Parts::Each { run: 1 }).aligned(5);
        let align = |kind: Kind| match kind {
            Kind::Line { align, .. } => align,
            other => panic!("{other:?}"),
        };
        assert_eq!(align(one.meet(one)), 5);
        assert_eq!(align(one.meet(each)), 2);
        assert_eq!(
            align(
                Kind::SAME
                    .aligned(5)
                    .meet(Kind::line(0, Parts::Each { run: 1 }).aligned(7))
            ),
            5
        );
        let mut limited = one;
        assert!(limited.limit(Kind::SAME.aligned(3)) && !limited.limit(each));
        assert_eq!(align(limited), 3);
    }

    /// What nobody knows the distances of goes on as far as all that it is made of.
    #[test]
    fn runs_are_as_short_as_the_shortest() {
        let rows = Parts::of(Width::B64, 4, (4, 1), |part| {
            Some((part as u64 / 4) * 1000 + part as u64 % 4 * 16)
        });
        assert_eq!(rows.run(), 4);
        assert_eq!(rows.far(5, 4, 4), Some(1016));
        assert_eq!(rows.meet(Parts::Each { run: 2 }), Parts::Each { run: 2 });
        assert_eq!(rows.meet(Parts::One), Parts::Each { run: 4 });
        assert_eq!(Parts::of(Width::B64, 4, (4, 2), |_| None), Parts::Each { run: 2 });
        // One line in numbers of 32 bits, through zero.
        let down = |part: usize| Some(0u64.wrapping_sub(part as u64 * 32) & 0xffff_ffff);
        assert_eq!(Parts::of(Width::B32, 0xffff_fffc, (8, 1), down), Parts::One);
    }
}
