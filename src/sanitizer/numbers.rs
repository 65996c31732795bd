//! Where numbers first go wrong: a NaN of operands none of which is one, an infinity of finite ones, a subnormal of normal ones, a
//! sum that cancels.
//!
//! Libraries make infinities and NaN on purpose and select them away: an exponential that overflows within a hyperbolic tangent
//! comes out as 1. So what is found waits until it matters ([`State::pending`]): until the thread stores such a value to global or
//! shared memory, adds it there, or converts it to an integer; or another of its warp does, which may have it by a shuffle. A value that is
//! no number because an operand was none is nothing new.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::config::NumberKinds;
use crate::isa::floats::{Does, Packed, Real};
use crate::isa::lanes::WARP;
use crate::program::{Compute, Space};
use crate::ptx::ast::Span;
use crate::simt::observe::{Access, Computed, Direction, GridEvent, Observer, Who};
use crate::simt::{Launch, Site};

/// How a number has gone wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wrong {
    Nan,
    Infinity,
    /// The result is subnormal, or was flushed to zero.
    Subnormal,
    /// A sum is so much smaller than its terms.
    Cancellation,
}

/// What was found: the first time, and how often.
#[derive(Clone, Debug)]
pub struct Number {
    pub kernel: Arc<str>,
    pub wrong: Wrong,
    /// The operation, as it is written.
    pub op: String,
    pub real: Real,
    pub result: u64,
    /// Of the formats of the operands.
    pub operands: Vec<(Option<Real>, u64)>,
    pub site: Site,
    pub block: [u32; 3],
    pub thread: [u32; 3],
    pub times: u64,
}

/// Whoever wants to know, at the end of a grid.
pub type Listener = dyn Fn(Number) + Send + Sync;

/// Values that a thread has and that may matter, at most: the last ones.
const MOST_PENDING: usize = 8;

/// Looks at one grid.
pub struct Detector {
    launch: Arc<Launch>,
    kinds: NumberKinds,
    listener: Arc<Listener>,
    /// Somebody has something that may matter.
    any: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By block and warp, what its threads have made and nobody has used yet, the oldest first.
    pending: HashMap<[u32; 3], HashMap<u32, Vec<Origin>>>,
    found: BTreeMap<(usize, u32, Wrong), (Origin, u64)>,
}

/// A number that went wrong.
#[derive(Clone)]
struct Origin {
    wrong: Wrong,
    function: usize,
    span: Span,
    op: Compute,
    real: Real,
    result: u64,
    operands: Vec<(Option<Real>, u64)>,
    block: [u32; 3],
    thread: u32,
}

impl Detector {
    pub fn new(launch: &Arc<Launch>, kinds: NumberKinds, listener: Arc<Listener>) -> Detector {
        Detector {
            launch: Arc::clone(launch),
            kinds,
            listener,
            any: AtomicBool::new(false),
            state: Mutex::default(),
        }
    }

    /// What is wrong with one element of a result.
    fn wrong(&self, computed: &Computed<'_>, lane: usize, element: usize) -> Option<Wrong> {
        let floats = computed.floats;
        let (real, result) = (
            floats.result.real,
            floats.result.element(computed.results[lane], element),
        );
        let operands: Vec<(Real, u64)> = operands(computed, lane, element)
            .filter_map(|(real, bits)| Some((real?, bits)))
            .collect();
        let any = |is: fn(Real, u64) -> bool| operands.iter().any(|(real, bits)| is(*real, *bits));
        let none_special = !any(|real, bits| real.exponent(bits) == real.largest_exponent());
        if real.is_nan(result) {
            return (self.kinds.nan && !any(Real::is_nan)).then_some(Wrong::Nan);
        }
        if real.is_infinite(result) {
            return (self.kinds.infinity && none_special).then_some(Wrong::Infinity);
        }
        if !none_special {
            return None;
        }
        if self.kinds.subnormal && !any(Real::is_subnormal) {
            let vanishes = floats.does == Does::Product && real.is_zero(result) && !any(Real::is_zero);
            if real.is_subnormal(result) || vanishes {
                return Some(Wrong::Subnormal);
            }
        }
        let cancels = self.kinds.lost != 0 && floats.does == Does::Sum && !real.is_zero(result);
        (cancels && lost(real, result, &operands) >= lost_of(self.kinds.lost, real)).then_some(Wrong::Cancellation)
    }

    /// Something that went wrong matters.
    fn matters(found: &mut BTreeMap<(usize, u32, Wrong), (Origin, u64)>, origin: Origin) {
        let key = (origin.function, origin.span.start, origin.wrong);
        found.entry(key).or_insert_with(|| (origin, 0)).1 += 1;
    }

    /// A thread lets others have a value: what it has made, or one of its warp, matters now.
    fn uses(&self, by: &Who<'_>, thread: u32, value: &[u8], element: usize) {
        let state = &mut *self.state.lock();
        let Some(pending) = state
            .pending
            .get_mut(&by.block)
            .and_then(|warps| warps.get_mut(&(thread / WARP as u32)))
        else {
            return;
        };
        for wrong in [Wrong::Nan, Wrong::Infinity] {
            let is_it = |origin: &Origin| {
                origin.wrong == wrong && value.chunks_exact(element).any(|element| has(element, origin))
            };
            let own = pending
                .iter()
                .rposition(|origin| origin.thread == thread && is_it(origin));
            if let Some(at) = own.or_else(|| pending.iter().rposition(is_it)) {
                let origin = pending.remove(at);
                // Where a NaN is made of an infinity, that one matters, too.
                let made_of = |other: &Origin| other.wrong == Wrong::Infinity && other.thread == origin.thread;
                let is_made = origin
                    .operands
                    .iter()
                    .any(|(real, bits)| real.is_some_and(|real| real.is_infinite(*bits)));
                if wrong == Wrong::Nan
                    && is_made
                    && let Some(at) = pending.iter().rposition(made_of)
                {
                    let cause = pending.remove(at);
                    Detector::matters(&mut state.found, cause);
                }
                Detector::matters(&mut state.found, origin);
            }
        }
    }

    fn ended(&self) {
        let found = std::mem::take(&mut self.state.lock().found);
        let module = &self.launch.code.module;
        let [x, y, _] = self.launch.block;
        let mut numbers: Vec<Number> = found
            .into_values()
            .map(|(origin, times)| Number {
                kernel: Arc::clone(&module.functions[self.launch.kernel as usize].name),
                wrong: origin.wrong,
                site: Site::of_instruction(module, origin.function, origin.span),
                op: origin.op.to_string(),
                real: origin.real,
                result: origin.result,
                operands: origin.operands,
                block: origin.block,
                thread: [origin.thread % x, origin.thread / x % y, origin.thread / x / y],
                times,
            })
            .collect();
        numbers.sort_by_key(|number| (number.site.ptx_line, number.wrong));
        numbers.into_iter().for_each(|number| (self.listener)(number));
    }
}

/// The operands of one element of a result.
fn operands<'a>(
    computed: &'a Computed<'_>,
    lane: usize,
    element: usize,
) -> impl Iterator<Item = (Option<Real>, u64)> + 'a {
    let floats = computed.floats;
    let each = floats.sources.iter().zip(computed.sources);
    each.take(computed.count).map(move |(packed, values)| match packed {
        None => (None, values[lane]),
        Some(packed) => {
            // Of two numbers that become one register each has its own half: the first the upper one.
            let at = if packed.count == floats.result.count {
                element
            } else {
                0
            };
            (Some(packed.real), packed.element(values[lane], at))
        }
    })
}

/// By how many powers of two a sum is smaller than the largest of its terms.
fn lost(real: Real, result: u64, operands: &[(Real, u64)]) -> u32 {
    let power = |real: Real, bits: u64| {
        let bias = real.largest_exponent() as i64 / 2;
        real.exponent(bits).max(1) as i64 - bias
    };
    let largest = match operands {
        [(one, a), (other, b), (_, c)] => {
            let product = match one.is_zero(*a) || other.is_zero(*b) {
                true => i64::MIN,
                false => power(*one, *a) + power(*other, *b),
            };
            product.max(power(operands[2].0, *c))
        }
        _ => operands
            .iter()
            .map(|(real, bits)| power(*real, *bits))
            .max()
            .unwrap_or(0),
    };
    u32::try_from(largest - power(real, result)).unwrap_or(0)
}

/// Of how many bits the loss is told of a format: as many of `f64` are left as of `f32` and a few, and likewise of the halves.
fn lost_of(lost: u32, real: Real) -> u32 {
    let (_, kept) = real.bits();
    match real {
        Real::F64 => lost + 25,
        Real::F32 => lost,
        Real::F16 | Real::Bf16 => lost.saturating_sub(23 - kept).max(1),
    }
}

/// Whether what is stored is what went wrong, in its own format or in one that it was converted to.
fn has(element: &[u8], origin: &Origin) -> bool {
    let is = |real: Real, bits: u64| match origin.wrong {
        Wrong::Nan => real.is_nan(bits),
        Wrong::Infinity => real.is_infinite(bits),
        Wrong::Subnormal | Wrong::Cancellation => false,
    };
    let is_half = matches!(origin.real, Real::F16 | Real::Bf16);
    match *element {
        [a, b] => {
            let bits = u16::from_le_bytes([a, b]).into();
            match is_half {
                true => is(origin.real, bits),
                false => is(Real::F16, bits) || is(Real::Bf16, bits),
            }
        }
        [a, b, c, d] => {
            let two = [[a, b], [c, d]];
            let packed = is_half && two.iter().any(|half| is(origin.real, u16::from_le_bytes(*half).into()));
            packed || is(Real::F32, u32::from_le_bytes([a, b, c, d]).into())
        }
        [a, b, c, d, e, f, g, h] => is(Real::F64, u64::from_le_bytes([a, b, c, d, e, f, g, h])),
        _ => false,
    }
}

impl Observer for Detector {
    fn computed(&self, by: &Who<'_>, computed: &Computed<'_>) {
        let floats = computed.floats;
        for lane in (0..WARP).filter(|lane| computed.lanes >> lane & 1 == 1) {
            let thread = by.first_thread + (computed.warp * WARP + lane) as u32;
            if floats.does == Does::ToInteger {
                let bits = floats.result.element(computed.results[lane], 0);
                let (bytes, size) = (bits.to_le_bytes(), floats.result.real.bits().0 as usize / 8);
                self.uses(by, thread, &bytes[..size], size);
                continue;
            }
            for element in 0..floats.result.count {
                let Some(wrong) = self.wrong(computed, lane, element) else {
                    continue;
                };
                let Packed { real, .. } = floats.result;
                let origin = Origin {
                    wrong,
                    function: std::ptr::from_ref(by.function) as usize,
                    span: by.span,
                    op: *computed.op,
                    real,
                    result: floats.result.element(computed.results[lane], element),
                    operands: operands(computed, lane, element).collect(),
                    block: by.block,
                    thread,
                };
                let state = &mut *self.state.lock();
                match wrong {
                    Wrong::Nan | Wrong::Infinity => {
                        let warps = state.pending.entry(by.block).or_default();
                        let pending = warps.entry(thread / WARP as u32).or_default();
                        if pending.iter().filter(|origin| origin.thread == thread).count() >= MOST_PENDING
                            && let Some(oldest) = pending.iter().position(|origin| origin.thread == thread)
                        {
                            pending.remove(oldest);
                        }
                        pending.push(origin);
                        self.any.store(true, Ordering::Relaxed);
                    }
                    Wrong::Subnormal | Wrong::Cancellation => Detector::matters(&mut state.found, origin),
                }
            }
        }
    }

    fn access(&self, by: &Who<'_>, access: &Access<'_>) {
        let Some(stored) = access.stored.filter(|_| self.any.load(Ordering::Relaxed)) else {
            return;
        };
        if matches!(access.space, Space::Local | Space::Param) {
            return;
        }
        let mut bytes = [0; 64];
        let bytes = &mut bytes[..(access.bytes as usize).min(64)];
        for lane in (0..WARP).filter(|lane| access.lanes >> lane & 1 == 1) {
            stored(lane, bytes);
            let thread = by.first_thread + (access.warp * WARP + lane) as u32;
            self.uses(by, thread, bytes, access.element.max(1) as usize);
        }
    }

    fn has_read(&self, by: &Who<'_>, access: &Access<'_>) {
        if access.direction != Direction::Atomic || !self.any.load(Ordering::Relaxed) {
            return;
        }
        let mut bytes = [0; 16];
        let bytes = &mut bytes[..(access.bytes as usize).min(16)];
        for lane in (0..WARP).filter(|lane| access.lanes >> lane & 1 == 1) {
            // SAFETY: an atomic of the lane's has just been done there, for which the range was checked.
            unsafe {
                std::ptr::copy_nonoverlapping(access.addresses[lane] as *const u8, bytes.as_mut_ptr(), bytes.len());
            }
            let thread = by.first_thread + (access.warp * WARP + lane) as u32;
            self.uses(by, thread, bytes, access.element.max(1) as usize);
        }
    }

    fn grid(&self, _: u64, event: &GridEvent) {
        match event {
            GridEvent::BlockEnd { block } => {
                self.state.lock().pending.remove(block);
            }
            GridEvent::End => self.ended(),
            GridEvent::Launch
            | GridEvent::Complete { .. }
            | GridEvent::Block { .. }
            | GridEvent::Release { .. }
            | GridEvent::Left { .. }
            | GridEvent::ClusterRelease { .. }
            | GridEvent::Transfer { .. } => {}
        }
    }
}
