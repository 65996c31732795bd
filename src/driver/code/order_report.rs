//! The report of a launch whose results depend on the order of its threads: what differs and where, who wrote it in either order,
//! and how to have that order again.

use std::fmt::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use crate::memory::AddressSpace;
use crate::program::Named;
use crate::sanitizer::orders::{Unit, Writer};
use crate::simt::{Cause, Fault, Order};

use super::fault::{self, Bytes};

/// What two orders of a launch have come to.
pub struct Difference<'a> {
    pub kernel: &'a Arc<str>,
    /// The launch's number among those of the process.
    pub launch: u64,
    pub ending: Ending<'a>,
    /// All that differs are sums of floats that atomics have made, and near each other.
    pub rounds: bool,
    /// How many orders were tried, and in how many something else came out than in the first.
    pub orders: u32,
    pub differ: u32,
    pub first: Order,
    pub other: Order,
    /// What `MARGAY_SEED` is to be, so that the other comes again.
    pub replay: String,
}

pub enum Ending<'a> {
    /// The first ended as it should, and the other did not, within this time.
    Fault(&'a Fault, Duration),
    /// Both did, and so many bytes differ: here is the first of them.
    Bytes {
        address: u64,
        bytes: u64,
        sides: &'a [Side; 2],
    },
}

pub struct Side {
    pub value: Unit,
    pub writer: Option<Writer>,
}

/// For people; several lines, the first of which says what depends on the order.
pub fn report(difference: &Difference<'_>) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write(difference, &mut text);
    text
}

fn write(it: &Difference<'_>, text: &mut String) -> fmt::Result {
    let Difference { kernel, launch, .. } = it;
    write!(
        text,
        "the order of threads matters in {}, launch {launch}: ",
        Named(kernel)
    )?;
    match &it.ending {
        Ending::Fault(fault, limit) => {
            write!(text, "it ends well in one order and fails in another")?;
            write!(text, "\n  with MARGAY_SEED={} it ends well", it.first)?;
            let report = fault::report(fault, 0).replace('\n', "\n  ");
            match matches!(fault.cause, Cause::Timeout { .. }) {
                true => write!(
                    text,
                    "\n  with MARGAY_SEED={} it does not end within {} seconds",
                    it.other,
                    limit.as_secs()
                )?,
                false => write!(text, "\n  with MARGAY_SEED={} it fails: {report}", it.other)?,
            }
        }
        Ending::Bytes { address, bytes, sides } => {
            write!(text, "{} at {address:#x}", Bytes(sides[0].value.count as u64))?;
            if let Some(near) = AddressSpace::get().nearest(*address).filter(|near| near.is_near()) {
                write!(text, ", {near}")?;
            }
            for (side, order) in sides.iter().zip([it.first, it.other]) {
                write!(
                    text,
                    "\n  with MARGAY_SEED={order} they are {}",
                    Value(side.value, it.rounds)
                )?;
                match &side.writer {
                    None => text.write_str(", as before the launch")?,
                    Some(writer) => {
                        let ([bx, by, bz], [x, y, z]) = (writer.block, writer.thread);
                        write!(text, ", written by block ({bx},{by},{bz}), thread ({x},{y},{z})")?;
                        fault::stack(std::slice::from_ref(&writer.site), text)?;
                    }
                }
            }
            if it.rounds {
                text.write_str(
                    "\n  all that differs are sums of floats by atomics, and they differ by rounding alone",
                )?;
            }
            if *bytes > sides[0].value.count as u64 {
                write!(text, "\n  {} differ in all", Bytes(*bytes))?;
            }
        }
    }
    let others = it.orders - 1;
    let s = if others == 1 { "" } else { "s" };
    write!(
        text,
        "\n  {} of {others} other order{s} came to something else than the first; MARGAY_SEED={} repeats this one",
        it.differ, it.replay
    )
}

/// A value as hexadecimal digits, and as a number if it is as long as one.
struct Value(Unit, bool);

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unit { bytes, count } = self.0;
        f.write_str("0x")?;
        bytes[..count]
            .iter()
            .rev()
            .try_for_each(|byte| write!(f, "{byte:02x}"))?;
        let mut low = [0; 8];
        low.copy_from_slice(&bytes[..8]);
        let low = u64::from_le_bytes(low);
        // Small numbers of whole numbers are no sensible floats, nor the other way round.
        let is_float = |value: f64| self.1 || value == 0.0 || (1e-9..1e12).contains(&value.abs());
        match count {
            4 if low == 0 => f.write_str(" (0)"),
            4 if is_float(f32::from_bits(low as u32).into()) => write!(f, " ({:?}f)", f32::from_bits(low as u32)),
            4 => write!(f, " ({})", low as u32 as i32),
            8 if low == 0 => f.write_str(" (0)"),
            8 if is_float(f64::from_bits(low)) => write!(f, " ({:?})", f64::from_bits(low)),
            8 => write!(f, " ({})", low as i64),
            1 | 2 => write!(f, " ({low})"),
            _ => Ok(()),
        }
    }
}
