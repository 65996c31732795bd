//! The nearest valid spelling of a word, for messages that ask whether it was meant.

/// The candidate that differs least from `word`, if it differs by little.
pub fn nearest<'c>(word: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    let limit = match word.len() {
        // Everything is near to a letter or two.
        0..=2 => 0,
        3..=5 => 2,
        _ => 3,
    };
    candidates
        .filter(|candidate| candidate.len().abs_diff(word.len()) <= limit && *candidate != word)
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|&(distance, _)| distance <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}

/// `did you mean …?`, or nothing.
pub fn suggestion<'c>(word: &str, candidates: impl Iterator<Item = &'c str>) -> Option<String> {
    nearest(word, candidates).map(|near| format!("did you mean `{near}`?"))
}

/// Levenshtein's distance, in bytes; a change of case counts nothing.
pub fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let least = (diagonal + usize::from(!x.eq_ignore_ascii_case(&y)))
                .min(row[j] + 1)
                .min(row[j + 1] + 1);
            diagonal = std::mem::replace(&mut row[j + 1], least);
        }
    }
    row[b.len()]
}
