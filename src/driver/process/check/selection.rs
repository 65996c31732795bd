//! Which launches are looked at, where somebody asks for some (`MARGAY_CHECK_KERNEL_NAME` and its kin). What is not selected runs
//! as if nobody looked, but that memory which it writes counts as written (`MARGAY_CHECK=init`).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use serde_json::json;

use crate::config;

use super::finding::append;

/// Whether a kernel of this mangled name is one of those that are looked at.
pub fn names(kernel: &str) -> bool {
    static KNOWN: Mutex<BTreeMap<Box<str>, bool>> = Mutex::new(BTreeMap::new());
    let config = config::get();
    let (some, none) = (&config.check_kernel_name, &config.check_kernel_name_exclude);
    if some.is_empty() && none.is_empty() || !config.check.any() {
        return true;
    }
    if let Some(&is) = KNOWN.lock().get(kernel) {
        return is;
    }
    let is = (some.is_empty() || some.match_any(kernel)) && !none.match_any(kernel);
    KNOWN.lock().insert(kernel.into(), is);
    is
}

/// Whether the launch that is made now is looked at. Only launches of kernels that are, by their name, count for those that
/// are to be skipped and for how many are to come.
pub fn takes(kernel: &str) -> bool {
    static LAUNCHES: AtomicU64 = AtomicU64::new(0);
    static TOLD: AtomicBool = AtomicBool::new(false);
    let config = config::get();
    if !config.check.any() {
        return true;
    }
    if !names(kernel) {
        return false;
    }
    let is_taken = match (config.check_launch_skip, config.check_launch_count) {
        (0, 0) if config.check_kernel_name.is_empty() && config.check_kernel_name_exclude.is_empty() => return true,
        (0, 0) => true,
        (skip, count) => {
            let before = LAUNCHES.fetch_add(1, Ordering::Relaxed);
            before >= skip && (count == 0 || before - skip < count)
        }
    };
    // Who gave a filter wants to know if it let nobody pass.
    if is_taken && !TOLD.swap(true, Ordering::Relaxed) {
        append(|| json!({"record": "launch"}));
    }
    is_taken
}
