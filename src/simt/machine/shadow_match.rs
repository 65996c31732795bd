//! What `match.any` and `match.all` leave undefined: two threads' values are told apart by bits that both have, and may be equal
//! where none of these differs and one of the two lacks a bit.

use crate::isa::lanes::WARP;
use crate::program::ShadowOp;

use super::context::Cx;
use super::shadow_lanes::{Values, clear, gather, nonzero, scatter};
use super::slots::{Slot, bits};

/// The shadows of the mask and the predicate that `match` gives, for lanes of the mask whose members are all there.
///
/// # Safety
/// Slots lie in the running window; the operation is [`crate::program::Shadow::Match`].
pub unsafe fn execute(all: bool, op: &ShadowOp<Slot>, cx: &Cx<'_>) {
    let (&[Some(shadow)], &[value, members]) = (&*op.src, &*op.values) else {
        return;
    };
    for w in (0..cx.mask.warps as usize).filter(|&w| cx.mask.lanes[w] != 0) {
        let active = cx.mask.lanes[w];
        // SAFETY: all slots are of `op`.
        unsafe {
            if nonzero(cx, shadow, w, active) == 0 {
                op.dst.iter().flatten().for_each(|dst| clear(cx, *dst, w, active));
                continue;
            }
            let (shadows, values, named) = (gather(cx, shadow, w), gather(cx, value, w), gather(cx, members, w));
            let mut open: Values = [0; WARP];
            for lane in bits(active) {
                let group = named[lane] as u32 & active;
                open[lane] = u64::from(match all {
                    // Either all members, or none.
                    true if may_all_match(group, &values, &shadows) => group,
                    true => 0,
                    false => may_match(lane, group, &values, &shadows),
                });
            }
            // First the mask, then the predicate, if there is one, which says whether the mask is zero.
            for (index, dst) in op.dst.iter().enumerate() {
                let Some(dst) = *dst else { continue };
                match index {
                    0 => scatter(cx, dst, w, active, &open),
                    _ => scatter(cx, dst, w, active, &open.map(|open| u64::from(open != 0))),
                }
            }
        }
    }
}

/// Threads of the group of which it is not known whether their value is this lane's, which always matches itself.
fn may_match(lane: usize, group: u32, values: &Values, shadows: &Values) -> u32 {
    let is_open = |other: &usize| {
        let missing = shadows[lane] | shadows[*other];
        *other != lane && missing != 0 && (values[lane] ^ values[*other]) & !missing == 0
    };
    bits(group).filter(is_open).fold(0, |open, other| open | 1 << other)
}

/// Whether it is not known if the values of a group are all the same.
fn may_all_match(group: u32, values: &Values, shadows: &Values) -> bool {
    let (mut zeros, mut ones, mut missing) = (0, 0, 0);
    for lane in bits(group) {
        zeros |= !values[lane] & !shadows[lane];
        ones |= values[lane] & !shadows[lane];
        missing |= shadows[lane];
    }
    group.count_ones() > 1 && missing != 0 && zeros & ones == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of three lanes, of two bits each, and which of these are missing.
    fn each_case(mut look: impl FnMut(&Values, &Values, &[Values])) {
        let lanes = |of: u64| std::array::from_fn(|lane| of >> (2 * lane) & 3 & if lane < 3 { 3 } else { 0 });
        for case in 0..1 << 12 {
            let (values, shadows) = (case & 0x3f, case >> 6);
            let guesses = (0..1 << 6).map(|guess| lanes(values & !shadows | guess & shadows));
            look(&lanes(values), &lanes(shadows), &guesses.collect::<Vec<Values>>());
        }
    }

    /// Whether guesses come to different results.
    fn differ(guesses: &[Values], result: impl Fn(&Values) -> bool) -> bool {
        guesses.iter().any(&result) && !guesses.iter().all(result)
    }

    #[test]
    fn a_pair_is_open_where_missing_bits_make_it_match_or_not() {
        each_case(|values, shadows, guesses| {
            for (group, lane) in [(0b111, 0), (0b111, 1), (0b111, 2), (0b101, 2), (0b010, 1)] {
                let found = may_match(lane, group, values, shadows);
                for other in 0..WARP {
                    let open = group >> other & 1 == 1 && differ(guesses, |guess| guess[lane] == guess[other]);
                    assert_eq!(
                        found >> other & 1 == 1,
                        open,
                        "{lane} and {other}: {values:?}, missing {shadows:?}"
                    );
                }
            }
        });
    }

    #[test]
    fn a_group_is_open_where_missing_bits_make_it_match_or_not() {
        each_case(|values, shadows, guesses| {
            for group in [0b111, 0b011, 0b110, 0b100] {
                let same =
                    |guess: &Values| bits(group).all(|lane| guess[lane] == guess[group.trailing_zeros() as usize]);
                let found = may_all_match(group, values, shadows);
                assert_eq!(
                    found,
                    differ(guesses, same),
                    "{group:#b}: {values:?}, missing {shadows:?}"
                );
            }
        });
    }
}
