//! Work that processes share: `3/16` in a variable stands for every sixteenth piece, from the third on.

/// The first piece, and one of how many; all of them where the variable says nothing.
pub fn part(variable: &str) -> (usize, usize) {
    let text = std::env::var(variable).ok();
    let numbers = text.and_then(|text| {
        let (first, of) = text.split_once('/')?;
        Some((first.parse().ok()?, of.parse().ok()?))
    });
    numbers.unwrap_or((0, 1))
}
