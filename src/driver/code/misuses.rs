//! The report of misused synchronisation: what is wrong, who did it, where in the source, and what the rule is.

use std::collections::BTreeSet;
use std::fmt::{self, Write};

use crate::program::{BarrierOp, Named};
use crate::sanitizer::sync::{Misuse, Party, Wrong};
use crate::simt::NamedThreads;

use super::fault;

/// For people; several lines, the first of which says what is wrong.
pub fn report(misuse: &Misuse) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write(misuse, &mut text);
    text
}

fn write(misuse: &Misuse, text: &mut String) -> fmt::Result {
    write!(text, "misuse in {}: {}", Named(&misuse.kernel), what(&misuse.wrong))?;
    party("by", &misuse.first, misuse.shape, text)?;
    if let Some(second) = &misuse.second {
        party(other(&misuse.wrong), second, misuse.shape, text)?;
    }
    write!(text, "\n  {}", rule(&misuse.wrong))?;
    let [_, y, z] = misuse.shape;
    let has_numbers =
        misuse.first.threads.len() > 1 || misuse.second.as_ref().is_some_and(|second| second.threads.len() > 1);
    if y * z > 1 && (has_numbers || names_threads(&misuse.wrong)) {
        text.push_str("\n  threads are counted along x first, then y, then z");
    }
    Ok(())
}

fn party(word: &str, party: &Party, [x, y, _]: [u32; 3], text: &mut String) -> fmt::Result {
    let [bx, by, bz] = party.block;
    write!(text, "\n  {word} block ({bx},{by},{bz}), ")?;
    let mut threads = party.threads.iter();
    match (threads.next(), threads.next()) {
        (Some(one), None) => write!(text, "thread ({},{},{})", one % x, one / x % y, one / x / y)?,
        _ => write!(text, "{}", NamedThreads(&party.threads))?,
    }
    fault::stack(std::slice::from_ref(&party.site), text)
}

/// `threads 0-15 have`, `thread 3 has`
fn with_verb(threads: &BTreeSet<u32>, one: &str, many: &str) -> String {
    let verb = if threads.len() == 1 { one } else { many };
    format!("{} {verb}", NamedThreads(threads))
}

fn opcode(op: BarrierOp) -> &'static str {
    match op {
        BarrierOp::Sync => "bar.sync",
        BarrierOp::Arrive => "bar.arrive",
        BarrierOp::Popc => "bar.red.popc",
        BarrierOp::And => "bar.red.and",
        BarrierOp::Or => "bar.red.or",
    }
}

fn bytes(count: i64) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} byte{s}")
}

fn of_copies(bulk: bool) -> &'static str {
    match bulk {
        true => "cp.async.bulk",
        false => "cp.async",
    }
}

fn coordinates([x, y, z]: [u32; 3]) -> String {
    format!("({x},{y},{z})")
}

/// What is wrong.
fn what(wrong: &Wrong) -> String {
    let number =
        |count: Option<u32>| count.map_or_else(|| "all threads".to_owned(), |count| format!("{count} threads"));
    match wrong {
        Wrong::Parted { barrier } => format!("threads of one warp come to barrier {barrier} by two instructions"),
        Wrong::PartOfWarp {
            barrier,
            missing,
            have_exited: true,
        } => format!(
            "part of a warp comes to barrier {barrier}, {} exited",
            with_verb(missing, "has", "have")
        ),
        Wrong::PartOfWarp { barrier, missing, .. } => format!(
            "part of a warp comes to barrier {barrier}, {} elsewhere",
            with_verb(missing, "is", "are")
        ),
        Wrong::Meets { barrier } => format!("warps of one block come to barrier {barrier} by two instructions"),
        Wrong::TooMany {
            barrier,
            threads,
            block,
        } => format!("barrier {barrier} waits for {threads} threads, and the block has {block}"),
        Wrong::Counts {
            barrier,
            threads,
            other,
        } => format!(
            "barrier {barrier} is to wait for {}, and for {}",
            number(*threads),
            number(*other)
        ),
        Wrong::Operations { barrier, ops } => {
            format!("{} and {} meet at barrier {barrier}", opcode(ops[0]), opcode(ops[1]))
        }
        Wrong::ClusterNotArrived => "a wait at the barrier of the cluster without an arrival".to_owned(),
        Wrong::ClusterNotAwaited => "an arrival at the barrier of the cluster, an exit, and no wait between".to_owned(),
        Wrong::NotMember { mask } => format!("the member mask {mask:#x} lacks the thread that names it"),
        Wrong::NeverCame { mask, missing } => format!(
            "the member mask {mask:#x} names {} that never {}",
            NamedThreads(missing),
            if missing.len() == 1 { "comes" } else { "come" }
        ),
        Wrong::MasksDiffer { masks: [one, other] } => {
            format!("members of {one:#x} name another mask, {other:#x}")
        }
        Wrong::Source { from } => format!(
            "a shuffle reads from {}, which {}",
            NamedThreads(from),
            match from.len() {
                1 => "takes no part",
                _ => "take no part",
            }
        ),
        Wrong::Vote => "a vote without a member mask by part of a warp".to_owned(),
        Wrong::Reinitialised {
            offset,
            missing,
            expected,
            bytes: left,
            waiting,
        } => {
            let mut why = Vec::new();
            if missing != expected {
                why.push(format!("{missing} of {expected} arrivals are missing"));
            }
            if *left != 0 {
                why.push(format!("{} are to come", bytes(*left)));
            }
            if !waiting.is_empty() {
                why.push(format!("{} for it", with_verb(waiting, "waits", "wait")));
            }
            format!(
                "the mbarrier at {offset:#x} in .shared is initialised again, while {}",
                why.join(" and ")
            )
        }
        Wrong::OldToken { offset, phases } => {
            format!("a wait with a token that the mbarrier at {offset:#x} in .shared gave {phases} phases ago")
        }
        Wrong::Overtaken { offset } => format!(
            "the phase of the mbarrier at {offset:#x} in .shared for which this thread waits has passed by, and the next one, too"
        ),
        Wrong::BytesLeft {
            offset,
            bytes: left @ 1..,
        } => format!(
            "the block ends, and {} that the mbarrier at {offset:#x} in .shared was told of have not come",
            bytes(*left)
        ),
        Wrong::BytesLeft { offset, bytes: left } => format!(
            "the block ends, and {} have come that the mbarrier at {offset:#x} in .shared was not told of",
            bytes(-left)
        ),
        Wrong::PeerNotBegun { peer } => format!(
            "shared memory of block {}, which may not have begun",
            coordinates(*peer)
        ),
        Wrong::PeerEnded { peer } => format!("shared memory of block {}, which may have ended", coordinates(*peer)),
        Wrong::NotCommitted { bulk } => format!("{} that is in no group, and its thread exits", of_copies(*bulk)),
        Wrong::NotAwaited { bulk } => format!("{} for which nobody waits, and its thread exits", of_copies(*bulk)),
        Wrong::BytesNotAwaited { offset } => format!(
            "an asynchronous operation whose end nobody has seen at the mbarrier at {offset:#x} in .shared, and the block ends"
        ),
        Wrong::ProductNotFenced => "wgmma.mma_async without wgmma.fence before it".to_owned(),
        Wrong::ProductTouched => "registers of wgmma.mma_async are read or written before wgmma.wait_group".to_owned(),
        Wrong::ProductNotCommitted => "wgmma.mma_async that is in no group, and its warp exits".to_owned(),
        Wrong::ProductNotAwaited => "wgmma.mma_async for which nobody waits, and its warp exits".to_owned(),
    }
}

/// What comes before the second side.
fn other(wrong: &Wrong) -> &'static str {
    match wrong {
        Wrong::NeverCame { .. } => "they are elsewhere:",
        _ => "and by",
    }
}

/// The words name threads by their numbers.
fn names_threads(wrong: &Wrong) -> bool {
    match wrong {
        Wrong::PartOfWarp { .. } | Wrong::NeverCame { .. } | Wrong::Source { .. } => true,
        Wrong::Reinitialised { waiting, .. } => !waiting.is_empty(),
        _ => false,
    }
}

/// What holds instead.
fn rule(wrong: &Wrong) -> &'static str {
    match wrong {
        Wrong::Parted { .. } | Wrong::PartOfWarp { .. } => {
            "an aligned barrier (bar, __syncthreads) is for whole warps: all threads of one come together, by one instruction"
        }
        Wrong::Meets { .. } => {
            "in a branch, __syncthreads is for conditions that hold in all threads of a block or in none"
        }
        Wrong::TooMany { .. } => "so many never come",
        Wrong::Counts { .. } => "all who meet at a barrier name the same number of threads",
        Wrong::Operations { .. } => "a reduction (bar.red) meets reductions of its own kind, and nothing else",
        Wrong::ClusterNotArrived => "barrier.cluster.wait waits for the phase in which its thread has arrived",
        Wrong::ClusterNotAwaited => "who arrives (barrier.cluster.arrive) waits (barrier.cluster.wait) before it exits",
        Wrong::NotMember { .. } => "a thread is a member of its own mask",
        Wrong::NeverCame { .. } => {
            "all threads that a mask names and that have not exited carry out the same instruction with the same mask"
        }
        Wrong::MasksDiffer { .. } => "all members of a mask carry out the instruction with the same mask",
        Wrong::Source { .. } => "what it reads there is undefined",
        Wrong::Vote => "since sm_70 nothing says which threads are together there: vote.sync names them",
        Wrong::Reinitialised { .. } => {
            "an mbarrier is initialised once, and again only when nothing is under way there"
        }
        Wrong::OldToken { .. } => "a token is good for the phase of its arrival and the one after it",
        Wrong::Overtaken { .. } => {
            "who waits for a phase sees its end before the next one can end: he is one of those who arrive there"
        }
        Wrong::BytesLeft { .. } => "bytes that are announced (expect_tx) and bytes that come are the same number",
        Wrong::PeerNotBegun { .. } => "before, a barrier of the cluster makes sure that all its blocks have begun",
        Wrong::PeerEnded { .. } => "a barrier of the cluster behind the last access keeps the block there",
        Wrong::NotCommitted { bulk: false } => {
            "cp.async.commit_group, and cp.async.wait_group: only then the data is there"
        }
        Wrong::NotCommitted { bulk: true } => {
            "cp.async.bulk.commit_group, and cp.async.bulk.wait_group: until then it uses the block's memory"
        }
        Wrong::NotAwaited { bulk: false } => "only behind cp.async.wait_group the data is there",
        Wrong::NotAwaited { bulk: true } => "until cp.async.bulk.wait_group it uses the block's memory",
        Wrong::BytesNotAwaited { .. } => "until somebody has waited there, it writes to the block's memory",
        Wrong::ProductNotFenced => "wgmma.fence orders the registers and the shared memory that were written before",
        Wrong::ProductTouched => {
            "they hold no sum before; an assembler makes the product wait at once, if it sees that"
        }
        Wrong::ProductNotCommitted | Wrong::ProductNotAwaited => {
            "wgmma.commit_group, and wgmma.wait_group: only then the sum is there"
        }
    }
}
