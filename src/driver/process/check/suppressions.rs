//! Findings that somebody knows of and does not want to hear of again: a file with a rule on each line.
//!
//! ```text
//! # the kind, and what has to be so besides; `*` stands for anything, and `|` is between alternatives
//! race kernel=_Z7reversePi at=*/reverse.cu:6 at=*/reverse.cu:5
//! leak call=cuMemAlloc
//! * instruction=ld.global*
//! ```
//!
//! Rules are compared with findings as the list of them has them ([`super::finding`]), so that the library and `margay check` do it
//! alike.

use serde_json::Value;

/// What a rule may begin with: each kind of finding, or `*`.
const KINDS: [&str; 10] = [
    "kernel", "free", "leak", "race", "init", "sync", "order", "whole", "fp", "*",
];

/// A rule. All that it names has to be so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// Its line in the file, from 1, and what is written there.
    pub line: u64,
    pub text: String,
    kind: String,
    /// The kernel's name, mangled or not.
    kernel: Vec<String>,
    /// `FILE:LINE` of a place that the report names; of two accesses two patterns name one each.
    at: Vec<String>,
    /// An instruction that the report names, as written; likewise.
    instruction: Vec<String>,
    /// The driver call that it is about.
    call: Vec<String>,
}

/// The rules of a file, and what is wrong with other lines, each as `LINE: SENTENCE`.
pub fn parse(text: &str) -> (Vec<Rule>, Vec<String>) {
    let (mut rules, mut problems) = (Vec::new(), Vec::new());
    for (number, line) in (1..).zip(text.lines()) {
        match parse_line(line) {
            Ok(Some(rule)) => rules.push(Rule { line: number, ..rule }),
            Ok(None) => {}
            Err(problem) => problems.push(format!("{number}: {problem}")),
        }
    }
    (rules, problems)
}

/// `None`: a line without a rule.
fn parse_line(line: &str) -> Result<Option<Rule>, String> {
    let line = line.trim();
    if line.starts_with('#') {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let Some(kind) = words.next() else { return Ok(None) };
    if !KINDS.contains(&kind) {
        return Err(format!("`{kind}` is no kind of finding: {}", KINDS.join(", ")));
    }
    let mut rule = Rule {
        text: line.into(),
        kind: kind.into(),
        ..Rule::default()
    };
    for word in words {
        let (patterns, pattern) = match word.split_once('=') {
            Some(("kernel", pattern)) => (&mut rule.kernel, pattern),
            Some(("at", pattern)) => (&mut rule.at, pattern),
            Some(("instruction", pattern)) => (&mut rule.instruction, pattern),
            Some(("call", pattern)) => (&mut rule.call, pattern),
            Some(_) | None => return Err(format!("`{word}` is none of kernel=, at=, instruction= and call=")),
        };
        patterns.push(pattern.into());
    }
    Ok(Some(rule))
}

impl Rule {
    /// Whether a finding is one that it leaves out.
    pub fn applies(&self, finding: &Value) -> bool {
        let is = |patterns: &[String], texts: &[&Value]| {
            let texts = || texts.iter().filter_map(|text| text.as_str());
            patterns
                .iter()
                .all(|pattern| texts().any(|text| matches(pattern, text)))
        };
        let kernel = &finding["kernel"];
        is(std::slice::from_ref(&self.kind), &[&finding["kind"]])
            && is(&self.kernel, &[&kernel["mangled"], &kernel["name"]])
            && is(&self.call, &[&finding["call"]])
            && is_at(&self.at, finding, |frame| {
                Some(format!("{}:{}", frame["file"].as_str()?, frame["line"]))
            })
            && is_at(&self.instruction, finding, |frame| {
                frame["instruction"].as_str().map(str::to_owned)
            })
    }
}

/// Whether patterns name places that a finding names. Of two accesses two patterns name one each: a race has two places.
fn is_at(patterns: &[String], finding: &Value, text: impl Fn(&Value) -> Option<String>) -> bool {
    if patterns.is_empty() {
        return true;
    }
    let accesses = finding["accesses"].as_array().into_iter().flatten();
    let sides: Vec<Vec<String>> = accesses
        .map(|access| {
            access["stack"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(&text)
                .collect()
        })
        .collect();
    let names = |pattern: &String, side: &Vec<String>| side.iter().any(|text| matches(pattern, text));
    match (patterns, &sides[..]) {
        ([a, b], [one, two]) => names(a, one) && names(b, two) || names(a, two) && names(b, one),
        (patterns, sides) => patterns
            .iter()
            .all(|pattern| sides.iter().any(|side| names(pattern, side))),
    }
}

/// Whether a text is as one of a pattern's alternatives has it.
fn matches(pattern: &str, text: &str) -> bool {
    pattern.split('|').any(|pattern| fits(pattern, text))
}

/// Whether a text is as a pattern has it, in which `*` stands for any characters.
fn fits(pattern: &str, text: &str) -> bool {
    let Some((before, after)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut rest) = text.strip_prefix(before) else {
        return false;
    };
    let mut pieces = after.split('*').peekable();
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn stars_stand_for_anything_and_bars_part_alternatives() {
        for (pattern, text, is) in [
            ("*", "", true),
            ("a*", "abc", true),
            ("*c", "abc", true),
            ("a*c*", "abcd", true),
            ("*b*d", "abcd", true),
            ("a*a", "a", false),
            ("abc", "abcd", false),
            ("*x*", "abc", false),
            ("", "", true),
            ("x|a*", "abc", true),
            ("x|y", "abc", false),
        ] {
            assert_eq!(matches(pattern, text), is, "{pattern} {text}");
        }
    }

    #[test]
    fn lines_are_read() {
        let (rules, problems) = parse("  # a word\n\nrace kernel=f* at=*/a.cu:6 at=b\nrace line=6\nrace six\nraec\n");
        let rule = Rule {
            line: 3,
            text: "race kernel=f* at=*/a.cu:6 at=b".into(),
            kind: "race".into(),
            kernel: vec!["f*".into()],
            at: vec!["*/a.cu:6".into(), "b".into()],
            ..Rule::default()
        };
        assert_eq!(rules, [rule]);
        assert_eq!(problems.len(), 3);
        assert!(problems[0].starts_with("4: `line=6` is none of"));
        assert!(problems[1].starts_with("5: `six` is none of"));
        assert!(problems[2].starts_with("6: `raec` is no kind of finding: kernel, free"));
    }

    #[test]
    fn two_places_are_one_on_each_side() {
        let frame = |line: u32| json!({"file": "/a/f.cu", "line": line, "instruction": format!("ld.u32 %r{line}")});
        let race = |one: u32, two: u32| {
            json!({
                "kind": "race", "kernel": {"mangled": "_Z1fPi", "name": "f(int*)"},
                "accesses": [{"stack": [frame(one), frame(9)]}, {"stack": [frame(two), frame(9)]}],
            })
        };
        let applies = |rule: &str, finding: &Value| parse(rule).0[0].applies(finding);
        let found = race(6, 5);
        for (rule, is) in [
            ("race at=*f.cu:6", true),
            ("race at=*f.cu:6 at=*f.cu:5", true),
            ("race at=*f.cu:5 at=*f.cu:6", true),
            ("race at=*f.cu:6 at=*f.cu:6", false),
            ("race at=*f.cu:6 at=*f.cu:7", false),
            ("race at=*f.cu:6 at=*f.cu:7|*f.cu:5", true),
            ("race at=*f.cu:9 at=*f.cu:9", true),
            ("race instruction=ld.u32*%r6 instruction=*5", true),
            ("race instruction=ld.u32*%r6 instruction=*6", false),
            ("race kernel=f(int*)|g", true),
            ("* kernel=_Z1fPi", true),
            ("* kernel=_Z1gPi", false),
            ("race call=cuMemcpy*", false),
            ("leak", false),
        ] {
            assert_eq!(applies(rule, &found), is, "{rule}");
        }
        assert!(applies("race at=*f.cu:6 at=*f.cu:6", &race(6, 6)));
    }
}
