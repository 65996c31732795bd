//! The report of a race: the two accesses, where they are in the source, and what would put them in order.

use std::fmt::{self, Write};

use crate::memory::AddressSpace;
use crate::program::Named;
use crate::sanitizer::race::{Missing, Party, Place, Race};
use crate::simt::observe::Direction;

use super::fault::{self, Bytes};

/// For people; several lines, the first of which says what races.
pub fn report(race: &Race) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write(race, &mut text);
    text
}

fn word(party: &Party) -> &'static str {
    match party.kind.direction {
        Direction::Read => "read",
        Direction::Write => "write",
        Direction::Atomic => "atomic",
    }
}

fn write(race: &Race, text: &mut String) -> fmt::Result {
    let [first, second] = [word(&race.first), word(&race.second)];
    let with_article = |word: &str| match word {
        "atomic" => "an atomic".to_owned(),
        word => format!("a {word}"),
    };
    let pair = match first == second {
        true => format!("two {first}s"),
        false => format!("{} and {}", with_article(first), with_article(second)),
    };
    write!(
        text,
        "race of {pair} in {}: {}",
        Named(&race.kernel),
        Bytes(race.bytes.into())
    )?;
    match &race.place {
        Place::Global(address) => {
            write!(text, " at {address:#x}")?;
            if let Some(near) = AddressSpace::get().nearest(*address).filter(|near| near.is_near()) {
                write!(text, ", {near}")?;
            }
        }
        Place::Shared {
            offset,
            variable: Some(variable),
        } => {
            let inside = offset - u64::from(variable.offset);
            write!(text, " at {inside:#x} in the shared variable {}", Named(&variable.name))?;
        }
        Place::Shared { offset, variable: None } => write!(text, " at {offset:#x} in shared memory")?,
    }
    party(&race.first, text)?;
    party(&race.second, text)?;
    write!(text, "\n  {}", missing(race))?;
    match race.times - 1 {
        0 => Ok(()),
        1 => text.write_str("\n  1 more pair of accesses by these lines races"),
        more => write!(text, "\n  {more} more pairs of accesses by these lines race"),
    }
}

fn party(party: &Party, text: &mut String) -> fmt::Result {
    let [bx, by, bz] = party.block;
    let word = word(party);
    let begun = if party.operation {
        " an asynchronous operation of"
    } else {
        ""
    };
    match party.thread {
        Some([x, y, z]) => write!(
            text,
            "\n  {word} by{begun} block ({bx},{by},{bz}), thread ({x},{y},{z})"
        )?,
        None => write!(
            text,
            "\n  {word} by{begun} another thread than that, by an instruction such as this"
        )?,
    }
    fault::stack(std::slice::from_ref(&party.site), text)
}

fn missing(race: &Race) -> &'static str {
    match race.missing {
        Missing::Warp => "the threads are of one warp, and no __syncwarp (bar.warp.sync) puts the two in order",
        Missing::Barrier => "the threads are of one block, and no barrier (__syncthreads) puts the two in order",
        Missing::Cluster => {
            "the blocks are of one cluster, and neither its barrier (barrier.cluster) nor a release and an acquire put the two in order"
        }
        Missing::Device => {
            "the blocks are different, and no release and acquire of device scope (a __threadfence before a flag is set) put the two in order"
        }
        Missing::Scope => {
            "both are atomic, volatile or relaxed, but the scope of one leaves out the thread of the other"
        }
        Missing::Size => {
            "both are atomic, volatile or relaxed, but of different sizes, so that one may see half of what the other does"
        }
        Missing::Completion => {
            "the first is made by an asynchronous operation, and nothing between the two waits for its end, or lets the second thread know of it"
        }
        Missing::ProxyFence => {
            "the second goes by the asynchronous proxy, and no fence.proxy.async lies between the two"
        }
        Missing::Guess => {
            "the read is no atomic one, though a compare-and-swap that compares what it has read finds out if that was wrong"
        }
        Missing::SameValue => "both write the same value, which programs get away with",
    }
}
