//! Multicast addresses: a range that stands for one range of each member of a team. The driver says which there are;
//! kernels look them up without a lock as long as nothing has changed.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;

/// A mapping of a multicast object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Team {
    pub start: u64,
    pub bytes: u64,
    /// Where the memory of each member is shown, as long as the range, in the order of the devices' numbers. What nobody
    /// has bound is out of bounds there.
    pub members: Box<[u64]>,
}

type Teams = Arc<[Team]>;

/// Ascending by address.
static TEAMS: RwLock<Option<Teams>> = RwLock::new(None);
/// Counts changes.
static CHANGES: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// What this thread has seen of them, at which count.
    static SEEN: RefCell<(u64, Option<Teams>)> = const { RefCell::new((0, None)) };
}

fn change(f: impl FnOnce(&mut Vec<Team>)) {
    let mut teams = TEAMS.write();
    let mut list = teams.as_deref().unwrap_or_default().to_vec();
    f(&mut list);
    list.sort_by_key(|team| team.start);
    *teams = Some(list.into());
    CHANGES.fetch_add(1, Ordering::Release);
}

/// From now on kernels find it.
pub fn publish(team: Team) {
    change(|teams| teams.push(team));
}

/// Kernels find the range that starts here no more.
pub fn withdraw(start: u64) {
    change(|teams| teams.retain(|team| team.start != start));
}

/// All that there are now.
pub fn teams() -> Teams {
    SEEN.with_borrow_mut(|(count, seen)| {
        let now = CHANGES.load(Ordering::Acquire);
        if *count != now || seen.is_none() {
            *seen = Some(TEAMS.read().clone().unwrap_or_default());
            *count = now;
        }
        seen.clone().unwrap_or_default()
    })
}

/// The team whose range has these bytes.
pub fn find(teams: &[Team], address: u64, bytes: u64) -> Option<&Team> {
    let team = &teams[teams.partition_point(|team| team.start <= address).checked_sub(1)?];
    let offset = address - team.start;
    (offset < team.bytes && bytes <= team.bytes - offset).then_some(team)
}
