//! Random sequences of calls, from several threads at once: legal ones, whose results a sequential model of the API
//! foretells, and illegal ones, after which the library must still stand.
//!
//! Steps and seeds are fixed. `STRESS_SEED` and `STRESS_STEPS` choose others.

#[path = "../alone.rs"]
#[macro_use]
#[allow(dead_code, reason = "the table has more calls than this test makes")]
mod alone;
#[path = "../c.rs"]
#[macro_use]
mod c;
mod illegal;
mod legal;
mod random;

/// A number that the environment may set.
fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(otherwise)
}
