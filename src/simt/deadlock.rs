//! Who waits where and for whom, when no thread of a block can go on: the words of [`Cause::Deadlock`](super::Cause).

use std::collections::BTreeSet;
use std::fmt::{self, Display, Write};

use crate::isa::lanes::WARP;
use crate::program::{BarrierOp, Op};

use super::fault::{Site, site};
use super::interp::code::Code;
use super::interp::{Bundle, Fragment, Waits};
use super::machine::Env;
use super::machine::barrier::Barriers;
use super::machine::slots::lanes;

/// Ranges of threads that are named before the rest is counted.
const RANGES: usize = 6;

/// Threads by their number in the block.
type Threads = BTreeSet<u32>;

/// Threads that wait at one place for the same.
struct Group {
    threads: Threads,
    site: Site,
    /// What they wait for, or at.
    what: String,
    /// How many have come there, and of how many.
    come: Option<(u32, String)>,
    /// Who would have to come; those that are left.
    missing: Threads,
}

/// The words for a block all of whose threads wait.
pub fn describe(bundles: &[Bundle], barriers: &Barriers, env: &Env<'_>) -> String {
    let groups = groups(bundles, barriers, env);
    let mut text = String::from("no thread of the block can go on");
    for group in &groups {
        let (threads, place) = (Named(&group.threads), Place(&group.site));
        let _ = write!(text, "\n  {threads} wait {} ({place})", group.what);
        if let Some((come, wanted)) = &group.come {
            let _ = write!(text, ": {come} of {wanted} have come");
            let _ = match group.missing.is_empty() {
                true => write!(text, ", and nobody is left who could come"),
                false => write!(text, ", {} have not", Named(&group.missing)),
            };
        }
    }
    if let Some(circle) = circle(&groups) {
        text.push_str("\n  a circle: ");
        for (i, &member) in circle.iter().enumerate() {
            let next = circle[(i + 1) % circle.len()];
            let link = if i == 0 { "" } else { ", and " };
            let _ = write!(
                text,
                "{link}{} wait for {}",
                Named(&groups[member].threads),
                Named(&groups[next].threads)
            );
        }
    }
    let [_, y, z] = env.env.launch().block;
    if y * z > 1 {
        text.push_str("\n  threads are counted along x first, then y, then z");
    }
    text
}

fn groups(bundles: &[Bundle], barriers: &Barriers, env: &Env<'_>) -> Vec<Group> {
    let module = &env.env.launch().code.module;
    let mut groups: Vec<(Waits, Group)> = Vec::new();
    for bundle in bundles {
        for fragment in &bundle.fragments {
            let waits = fragment.waits();
            let (exec, pc) = bundle.place(fragment);
            let site = site(module, &exec.compiled, exec.pc_in_function(pc));
            let threads = lanes(&fragment.mask).map(|lane| bundle.first_thread + lane as u32);
            let known = groups
                .iter_mut()
                .find(|(other, group)| *other == waits && group.site == site);
            match known {
                Some((_, group)) => group.threads.extend(threads),
                None => {
                    let mut group = Group {
                        threads: threads.collect(),
                        what: String::new(),
                        come: None,
                        missing: Threads::new(),
                        site,
                    };
                    waited_for(waits, &mut group, (bundle, fragment), barriers, env);
                    groups.push((waits, group));
                }
            }
        }
    }
    let mut groups: Vec<Group> = groups.into_iter().map(|(_, group)| group).collect();
    groups.sort_by_key(|group| group.threads.first().copied());
    groups
}

/// What the threads of a group wait for, and for whom.
fn waited_for(
    waits: Waits,
    group: &mut Group,
    (bundle, fragment): (&Bundle, &Fragment),
    barriers: &Barriers,
    env: &Env<'_>,
) {
    match waits {
        Waits::Barrier(id) => {
            let (exec, pc) = bundle.place(fragment);
            let votes = if let Code::Rare(op) = &exec.code[pc as usize].code
                && let Op::Barrier { op, .. } = &**op
            {
                matches!(op, BarrierOp::Popc | BarrierOp::And | BarrierOp::Or)
            } else {
                false
            };
            group.what = format!("at barrier {id}{}", if votes { ", to vote" } else { "" });
            let count = barriers.count(id);
            let wanted = count.wanted.map(|wanted| format!("{wanted} threads"));
            group.come = Some((count.come, wanted.unwrap_or_else(|| "all threads".into())));
            group.missing = count.missing.collect();
        }
        // Others of the same warp, who wait as well.
        Waits::Members => {
            group.what = "for lanes of their warp".into();
            let warps: BTreeSet<usize> = lanes(&fragment.mask).map(|lane| lane / WARP).collect();
            let others = bundle.fragments.iter().flat_map(|other| lanes(&other.mask));
            let of_warp = others.filter(|lane| warps.contains(&(lane / WARP)));
            group.missing = of_warp.map(|lane| bundle.first_thread + lane as u32).collect();
            group.missing.retain(|thread| !group.threads.contains(thread));
        }
        Waits::State => {
            let what = bundle.waits_for(fragment, env);
            group.what = what.unwrap_or_else(|| format!("at `{}`", group.site.instruction));
        }
    }
}

/// Groups each of which waits for the next, and the last for the first.
fn circle(groups: &[Group]) -> Option<Vec<usize>> {
    let mut path: Vec<usize> = Vec::new();
    let mut at = 0;
    loop {
        if let Some(start) = path.iter().position(|&seen| seen == at) {
            return (path.len() - start > 1).then(|| path.split_off(start));
        }
        path.push(at);
        let missing = &groups.get(at)?.missing;
        let holds = |other: &usize| *other != at && !groups[*other].threads.is_disjoint(missing);
        at = (0..groups.len()).find(holds)?;
    }
}

/// Threads in words: `threads 0-31 and 40`.
pub struct Named<'a>(pub &'a Threads);

impl Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for &thread in self.0 {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == thread => *last = thread,
                _ => ranges.push((thread, thread)),
            }
        }
        f.write_str(if self.0.len() == 1 { "thread " } else { "threads " })?;
        for (i, (first, last)) in ranges.iter().take(RANGES).enumerate() {
            let link = match i {
                0 => "",
                _ if i + 1 == ranges.len() => " and ",
                _ => ", ",
            };
            match first == last {
                true => write!(f, "{link}{first}")?,
                false => write!(f, "{link}{first}-{last}")?,
            }
        }
        let rest: u32 = ranges.iter().skip(RANGES).map(|(first, last)| last - first + 1).sum();
        if rest > 0 {
            write!(f, " and {rest} more")?;
        }
        Ok(())
    }
}

/// Where a group waits, in a line of the source if there is one.
struct Place<'a>(&'a Site);

impl Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let site = self.0;
        match site.origin.lines.first() {
            Some(line) => write!(f, "{}:{}, PTX line {}", line.shown(), line.line, site.ptx_line),
            None => write!(f, "PTX line {}", site.ptx_line),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_named_by_ranges() {
        let named = |threads: &[u32]| Named(&threads.iter().copied().collect()).to_string();
        assert_eq!(named(&[5]), "thread 5");
        assert_eq!(named(&[0, 1, 2, 3]), "threads 0-3");
        assert_eq!(named(&[0, 1, 4, 7, 8]), "threads 0-1, 4 and 7-8");
        let even: Vec<u32> = (0..10).map(|i| 2 * i).collect();
        assert_eq!(named(&even), "threads 0, 2, 4, 6, 8, 10 and 4 more");
    }
}
