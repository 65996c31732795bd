//! What is looked at: programs by the names of their files, and kernels by theirs, as compute-sanitizer's `--kernel-name` has them:
//! pairs of a key and a value, of which one has to match.
//!
//! | key | the value is |
//! | --- | --- |
//! | `kernel_name`, `kne` | the whole name |
//! | `kernel_substring`, `kns` | a part of it |
//! | `regex` | a regular expression that is found in it; everything behind it is part of it |
//!
//! Names are the mangled one, the demangled one, and that without its parameters.

use regex_automata::Input;
use regex_automata::dfa::{Automaton, StartKind, dense};
use regex_automata::nfa::thompson;
use regex_automata::util::syntax;

use crate::program::demangle;

/// Pairs, in lines: one for each time that an option was given.
#[derive(Clone, Debug, Default)]
pub struct Names {
    text: String,
    all: Vec<Name>,
}

#[derive(Clone, Debug)]
enum Name {
    Whole(String),
    Part(String),
    Pattern(Pattern),
}

/// A regular expression, compiled.
#[derive(Clone, Debug)]
pub struct Pattern(Box<dense::DFA<Vec<u32>>>);

const KEYS: [&str; 6] = ["kernel_name=", "kne=", "kernel_substring=", "kns=", "regex=", "regex:"];

impl PartialEq for Names {
    fn eq(&self, other: &Names) -> bool {
        self.text == other.text
    }
}

impl Names {
    /// # Errors
    /// What is not understood, in a sentence.
    pub fn parse(text: &str) -> Result<Names, String> {
        let mut all = Vec::new();
        for mut line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            while !line.is_empty() {
                let key = KEYS.into_iter().find(|key| line.starts_with(key));
                let key = key.ok_or_else(|| {
                    format!(
                        "`{line}`: expected kernel_name=NAME (kne=), kernel_substring=PART (kns=) or regex=EXPRESSION"
                    )
                })?;
                line = &line[key.len()..];
                // Names have commas, too: one parts two pairs if a key follows.
                let end = match key.starts_with("regex") {
                    true => line.len(),
                    false => next_pair(line),
                };
                let (value, rest) = line.split_at(end);
                line = rest.strip_prefix(',').unwrap_or(rest).trim_start();
                if value.is_empty() {
                    return Err(format!("nothing behind `{key}`"));
                }
                all.push(match key {
                    "kernel_name=" | "kne=" => Name::Whole(value.into()),
                    "kernel_substring=" | "kns=" => Name::Part(value.into()),
                    _ => Name::Pattern(Pattern::new(value)?),
                });
            }
        }
        Ok(Names { text: text.into(), all })
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether one of them is a kernel's, given by its mangled name.
    pub fn match_any(&self, kernel: &str) -> bool {
        if self.is_empty() {
            return false;
        }
        let name = demangle(kernel);
        let names = [kernel, &name, without_parameters(&name)];
        self.all.iter().any(|one| {
            names.into_iter().any(|name| match one {
                Name::Whole(whole) => whole == name,
                Name::Part(part) => name.contains(part.as_str()),
                Name::Pattern(pattern) => pattern.is_in(name),
            })
        })
    }
}

/// Programs by the names of their files, of which one has to match; none: every program.
#[derive(Clone, Debug, Default)]
pub struct Processes {
    text: String,
    names: Vec<String>,
    patterns: Vec<Pattern>,
}

impl PartialEq for Processes {
    fn eq(&self, other: &Processes) -> bool {
        self.text == other.text
    }
}

impl Processes {
    /// Names with commas between them; `regex:` begins an expression.
    ///
    /// # Errors
    /// What is not understood, in a sentence.
    pub fn parse(text: &str) -> Result<Processes, String> {
        let mut processes = Processes {
            text: text.into(),
            ..Processes::default()
        };
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match word.strip_prefix("regex:") {
                Some(expression) => processes.patterns.push(Pattern::new(expression)?),
                None => processes.names.push(word.into()),
            }
        }
        Ok(processes)
    }

    /// Whether this process's program is one of them.
    pub fn have_this_one(&self) -> bool {
        if self.names.is_empty() && self.patterns.is_empty() {
            return true;
        }
        let program = std::env::current_exe().unwrap_or_default();
        self.have(&program.file_name().unwrap_or_default().to_string_lossy())
    }

    fn have(&self, name: &str) -> bool {
        self.names.iter().any(|own| own == name) || self.patterns.iter().any(|pattern| pattern.is_in(name))
    }
}

impl Pattern {
    /// What an expression may take, in bytes: some need room without end.
    const ROOM: usize = 4 << 20;

    /// # Errors
    /// What is wrong with it, in a sentence.
    pub fn new(text: &str) -> Result<Pattern, String> {
        let config = dense::Config::new()
            .start_kind(StartKind::Unanchored)
            .dfa_size_limit(Some(Pattern::ROOM))
            .determinize_size_limit(Some(Pattern::ROOM));
        let built = dense::Builder::new()
            .configure(config)
            .syntax(syntax::Config::new().unicode(false).utf8(false))
            .thompson(thompson::Config::new().nfa_size_limit(Some(Pattern::ROOM)))
            .build(text);
        match built {
            Ok(dfa) => Ok(Pattern(Box::new(dfa))),
            Err(error) => {
                let mut why: &dyn std::error::Error = &error;
                while let Some(source) = why.source() {
                    why = source;
                }
                Err(format!(
                    "`{text}` is no regular expression: {}",
                    one_line(&why.to_string())
                ))
            }
        }
    }

    /// Whether it is found in a text.
    pub fn is_in(&self, text: &str) -> bool {
        self.0
            .try_search_fwd(&Input::new(text))
            .is_ok_and(|found| found.is_some())
    }
}

/// The last line says what is wrong; those before show where.
fn one_line(report: &str) -> &str {
    let last = report.lines().last().unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or(last)
}

/// Where a value ends: at a comma with a key behind it, or at its line's end.
fn next_pair(line: &str) -> usize {
    let commas = line.match_indices(',').map(|(at, _)| at);
    let mut ends = commas.filter(|at| {
        let rest = line[at + 1..].trim_start();
        KEYS.into_iter().any(|key| rest.starts_with(key))
    });
    ends.next().unwrap_or(line.len())
}

/// `void f<int>(int*)`: `f<int>`. Of a template the demangled name begins with what it returns.
fn without_parameters(name: &str) -> &str {
    let mut depth = 0_usize;
    let mut start = 0;
    for (at, c) in name.char_indices() {
        match c {
            '<' | '[' | '{' => depth += 1,
            '>' | ']' | '}' => depth = depth.saturating_sub(1),
            ' ' if depth == 0 => start = at + 1,
            '(' if depth == 0 && at > start && !name[at..].starts_with("(anonymous") => return &name[start..at],
            '(' if depth == 0 => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(filter: &str, kernel: &str) -> bool {
        Names::parse(filter).unwrap().match_any(kernel)
    }

    #[test]
    fn names_are_whole_parts_or_expressions() {
        // The example of compute-sanitizer's manual.
        let kernels = ["_Z5gammaPi", "_Z5deltaPi", "_Z7epsilonPi"];
        for (filter, which) in [
            ("kne=_Z7epsilonPi", [false, false, true]),
            ("kernel_name=_Z7epsilonPi", [false, false, true]),
            ("kne=epsilon", [false, false, true]),
            ("kne=epsilon(int*)", [false, false, true]),
            ("kne=epsilo", [false, false, false]),
            ("kns=epsilon", [false, false, true]),
            ("kernel_substring=l", [false, true, true]),
            ("kns=delta,kne=_Z5gammaPi", [true, true, false]),
            ("kns=delta\nkne=_Z5gammaPi", [true, true, false]),
            ("regex=[a-z]{7}", [false, false, true]),
            ("regex:^_Z5[gd]", [true, true, false]),
            ("regex=a{1,2}Pi$", [true, true, false]),
            ("regex=\\d\\w+\nkns=x", [true, true, true]),
            ("", [false, false, false]),
        ] {
            assert_eq!(kernels.map(|kernel| matches(filter, kernel)), which, "{filter}");
        }
    }

    #[test]
    fn commas_in_names_part_nothing() {
        assert!(matches("kne=f(int*, float*)", "_Z1fPiPf"));
        assert!(matches("kne=f(int*, float*), kns=g", "_Z1gv"));
        assert!(!matches("kne=f(int*, float*), kns=g", "_Z1hv"));
    }

    #[test]
    fn templates_and_namespaces_have_names_without_parameters() {
        for (name, short) in [
            ("void f<int>(int*)", "f<int>"),
            ("a::f(int, char (*)[3])", "a::f"),
            (
                "void (anonymous namespace)::f<(int)3>(int)",
                "(anonymous namespace)::f<(int)3>",
            ),
            ("f", "f"),
        ] {
            assert_eq!(without_parameters(name), short);
        }
    }

    #[test]
    fn programs_are_named_whole_or_by_an_expression() {
        let have = |text: &str, name: &str| Processes::parse(text).unwrap().have(name);
        assert!(have("train, test", "test"));
        assert!(!have("train,test", "tests"));
        assert!(have("train,regex:^te.t", "tests"));
        assert!(!have("regex:^est", "test"));
        assert!(Processes::parse("").unwrap().have_this_one());
        assert!(Processes::parse("regex:[").is_err());
    }

    #[test]
    fn what_is_not_understood_is_said() {
        for (text, why) in [
            ("epsilon", "`epsilon`: expected kernel_name=NAME"),
            ("kns=", "nothing behind `kns=`"),
            ("kns=a,kne=", "nothing behind `kne=`"),
            ("regex=(", "`(` is no regular expression: unclosed group"),
            // As large as it would get it is refused.
            (
                "regex=(a|b|c){1000}{1000}",
                "`(a|b|c){1000}{1000}` is no regular expression",
            ),
        ] {
            let said = Names::parse(text).unwrap_err();
            assert!(said.starts_with(why), "{text}: {said}");
        }
    }
}
