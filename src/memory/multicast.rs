//! Multicast addresses: a range that stands for one range of each member of a team. The driver says which there are, and
//! kernels look them up.

use std::sync::Arc;

use super::published::{Published, Seen};

/// A mapping of a multicast object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Team {
    pub start: u64,
    pub bytes: u64,
    /// Where the memory of each member is shown, as long as the range, in the order of the devices' numbers. What nobody
    /// has bound is out of bounds there.
    pub members: Box<[u64]>,
}

/// Ascending by address.
static TEAMS: Published<Team> = Published::new();

thread_local! {
    static SEEN: Seen<Team> = const { Seen::nothing() };
}

/// From now on kernels find it.
pub fn publish(team: Team) {
    TEAMS.change(|teams| {
        teams.push(team);
        teams.sort_by_key(|team| team.start);
    });
}

/// Kernels find the range that starts here no more.
pub fn withdraw(start: u64) {
    TEAMS.change(|teams| teams.retain(|team| team.start != start));
}

/// All that there are now.
pub fn teams() -> Arc<[Team]> {
    TEAMS.get(&SEEN)
}

/// The team whose range has these bytes.
pub fn find(teams: &[Team], address: u64, bytes: u64) -> Option<&Team> {
    let team = &teams[teams.partition_point(|team| team.start <= address).checked_sub(1)?];
    let offset = address - team.start;
    (offset < team.bytes && bytes <= team.bytes - offset).then_some(team)
}
