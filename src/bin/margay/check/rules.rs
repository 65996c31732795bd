//! `--suppressions` and `--generate-suppressions`: rules of what is not to be told of.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use cuda::driver::suppressions::{self, Rule};
use serde_json::Value;

/// The rules of a file. The library leaves out what they name; what this command finds by itself it asks for here.
#[derive(Default)]
pub struct Rules {
    path: PathBuf,
    all: Vec<Rule>,
    used: BTreeSet<u64>,
}

impl Rules {
    /// # Errors
    /// The file cannot be read, or has lines that are not understood: a sentence for each.
    pub fn read(path: &Path) -> Result<Rules, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let (all, problems) = suppressions::parse(&text);
        if !problems.is_empty() {
            let problems = problems.iter().map(|problem| format!("{}:{problem}", path.display()));
            return Err(problems.collect::<Vec<_>>().join("\n"));
        }
        Ok(Rules {
            path: path.into(),
            all,
            used: BTreeSet::new(),
        })
    }

    /// Whether a finding is to be left out.
    pub fn leave_out(&mut self, finding: &Value) -> bool {
        let rule = self.all.iter().find(|rule| rule.applies(finding));
        self.used.extend(rule.map(|rule| rule.line));
        rule.is_some()
    }

    /// A sentence for each rule that has left nothing out, neither here nor by what the library has written down.
    pub fn unused(&self, records: &[Value]) -> Vec<String> {
        let used = records.iter().filter(|record| record["record"] == "suppressed");
        let used: BTreeSet<u64> = used.filter_map(|record| record["rule"].as_u64()).collect();
        let unused = self
            .all
            .iter()
            .filter(|rule| !used.contains(&rule.line) && !self.used.contains(&rule.line));
        unused
            .map(|rule| {
                format!(
                    "{}:{}: this rule suppresses nothing: {}",
                    self.path.display(),
                    rule.line,
                    rule.text
                )
            })
            .collect()
    }
}

/// A line for each finding by which it would not be told of again.
pub fn generate(found: &[Value]) -> String {
    let mut lines: Vec<String> = found.iter().filter_map(rule_for).collect();
    lines.sort();
    lines.dedup();
    let mut text = String::from("# Made by margay check --generate-suppressions.\n");
    let others = found.iter().filter(|finding| rule_for(finding).is_none()).count();
    if others > 0 {
        text.push_str(&format!(
            "# {others} more cannot be told from others of their kind, and have no line.\n"
        ));
    }
    for line in lines {
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// `None`: nothing tells it from others of its kind.
fn rule_for(finding: &Value) -> Option<String> {
    let kind = finding["kind"].as_str().unwrap_or("*");
    let mut line = kind.to_owned();
    if let Some(kernel) = finding["kernel"]["mangled"].as_str() {
        line.push_str(&format!(" kernel={}", plain(kernel)));
    }
    let accesses = finding["accesses"].as_array().into_iter().flatten();
    let places = accesses.filter_map(|access| place(access["stack"].as_array()?));
    // A race is one of two places. What else has two is known by the first: where another thread is meanwhile, or from where a value
    // comes, is not the same each time.
    for place in places.take(if kind == "race" { 2 } else { 1 }) {
        line.push(' ');
        line.push_str(&place);
    }
    if let Some(call) = finding["call"].as_str() {
        line.push_str(&format!(" call={}", plain(call)));
    }
    // There is one of a whole program.
    (line.contains('=') || kind == "whole").then_some(line)
}

/// The innermost place of a stack that is in a file, or else its innermost instruction.
fn place(stack: &[Value]) -> Option<String> {
    let in_file = stack
        .iter()
        .find_map(|frame| Some((frame["file"].as_str()?, frame["line"].as_u64()?)));
    if let Some((file, number)) = in_file {
        let name = Path::new(file)
            .file_name()
            .map_or(file.into(), |name| name.to_string_lossy());
        return Some(format!("at=*{}:{number}", plain(&name)));
    }
    let instruction = stack.iter().find_map(|frame| frame["instruction"].as_str())?;
    Some(format!("instruction={}", plain(instruction)))
}

/// A pattern for a text: what parts words and alternatives becomes `*`.
fn plain(text: &str) -> String {
    text.replace(|c: char| c.is_whitespace() || c == '|', "*")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rules_of(findings: &[Value]) -> Vec<String> {
        let text = generate(findings);
        text.lines()
            .filter(|line| !line.starts_with('#'))
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn rules_name_both_places_of_a_race_once() {
        let frame = |line: u32| json!({"file": "/home/a b/f g.cu", "line": line});
        let stacks = json!([{"stack": [{"function": "g"}, frame(6)]}, {"stack": [frame(5)]}]);
        let finding = |kind: &str| json!({"kind": kind, "kernel": {"mangled": "_Z1fPi"}, "accesses": stacks});
        let found = [finding("race"), finding("race"), finding("init")];
        let rules = rules_of(&found);
        assert_eq!(
            rules,
            [
                "init kernel=_Z1fPi at=*f*g.cu:6",
                "race kernel=_Z1fPi at=*f*g.cu:6 at=*f*g.cu:5"
            ]
        );
        // Each leaves out what it was made of.
        let (parsed, problems) = suppressions::parse(&rules.join("\n"));
        assert_eq!(problems, Vec::<String>::new());
        assert!(parsed[0].applies(&found[2]) && parsed[1].applies(&found[0]));
    }

    #[test]
    fn what_has_no_lines_is_known_by_its_instructions() {
        let stack = |instruction: &str| json!({"stack": [{"function": "f", "instruction": instruction}]});
        let found = json!({"kind": "race", "accesses": [stack("ld.u32 %r1|%p, [%rd1];"), stack("st.u32 [%rd1], 1;")]});
        assert_eq!(
            rules_of(&[found]),
            ["race instruction=ld.u32*%r1*%p,*[%rd1]; instruction=st.u32*[%rd1],*1;"]
        );
        let known = json!({"kind": "leak", "call": "cuMemAlloc"});
        let nothing = json!({"kind": "free"});
        assert_eq!(
            rules_of(&[known, nothing, json!({"kind": "whole"})]),
            ["leak call=cuMemAlloc", "whole"]
        );
    }
}
