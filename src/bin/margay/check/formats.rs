//! What was found, as data: JSON, SARIF 2.1.0 for code scanning, and lines of suppressions.

use std::path::Path;

use serde_json::{Value, json};

/// Each kind of finding, with what it is and where the pages tell of it.
const KINDS: [(&str, &str, &str); 9] = [
    ("kernel", "A kernel failed", "memory"),
    ("free", "A call frees what is not there to be freed", "memory"),
    ("leak", "Memory is not freed", "memory"),
    ("race", "Two accesses are in no order", "races"),
    (
        "init",
        "Something depends on a value that nobody has written",
        "values-that-nobody-has-written",
    ),
    ("sync", "A barrier, or what is like one, is misused", "synchronisation"),
    (
        "order",
        "What a launch leaves depends on the order of threads",
        "results-that-depend-on-the-order-of-threads",
    ),
    (
        "whole",
        "What a program prints depends on the order of threads",
        "results-that-depend-on-the-order-of-threads",
    ),
    ("fp", "A number goes wrong", "numbers"),
];

/// An object with the findings as the library has told of them, and their sum in words.
pub fn json(found: &[Value], sum: &str) -> Value {
    json!({"tool": "margay check", "version": env!("CARGO_PKG_VERSION"), "summary": sum, "findings": found})
}

/// A log of SARIF 2.1.0 (OASIS, Static Analysis Results Interchange Format) with one run. Files are named from `folder` on where
/// they lie in it.
pub fn sarif(found: &[Value], folder: &Path) -> Value {
    let rules: Vec<Value> = KINDS
        .iter()
        .map(|(kind, what, anchor)| {
            json!({
                "id": kind,
                "shortDescription": {"text": what},
                "help": {"text": format!("docs/checking.md#{anchor} in Margay's pages")},
            })
        })
        .collect();
    let results: Vec<Value> = found.iter().map(|finding| result(finding, folder)).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "margay check", "version": env!("CARGO_PKG_VERSION"), "rules": rules}},
            "originalUriBaseIds": {"FOLDER": {"uri": format!("file://{}/", escaped(&folder.to_string_lossy()))}},
            "results": results,
        }],
    })
}

fn result(finding: &Value, folder: &Path) -> Value {
    let places: Vec<Value> = stacks(finding).filter_map(|stack| location(stack, folder)).collect();
    let mut result = json!({
        "ruleId": finding["kind"],
        "level": if finding["severity"] == "warning" { "warning" } else { "error" },
        "message": {"text": finding["report"]},
        "occurrenceCount": finding["times"].as_u64().unwrap_or(1).max(1),
    });
    if let Some(index) = KINDS.iter().position(|(kind, ..)| finding["kind"] == *kind) {
        result["ruleIndex"] = index.into();
    }
    let mut places = places.into_iter();
    if let Some(first) = places.next() {
        result["locations"] = json!([first]);
    }
    let others: Vec<Value> = places.collect();
    if !others.is_empty() {
        result["relatedLocations"] = others.into();
    }
    let stacks: Vec<Value> = stacks(finding)
        .map(|stack| {
            let frames = stack
                .iter()
                .filter_map(|frame| Some(json!({"location": frame_location(frame, folder)?})));
            json!({"frames": frames.collect::<Vec<_>>()})
        })
        .filter(|stack| stack["frames"].as_array().is_some_and(|frames| !frames.is_empty()))
        .collect();
    if !stacks.is_empty() {
        result["stacks"] = stacks.into();
    }
    result
}

/// The call stacks of a finding's accesses, innermost function first.
fn stacks(finding: &Value) -> impl Iterator<Item = &Vec<Value>> {
    let accesses = finding["accesses"].as_array().into_iter().flatten();
    accesses.filter_map(|access| access["stack"].as_array())
}

/// The innermost place of a stack that is in a file.
fn location(stack: &[Value], folder: &Path) -> Option<Value> {
    stack.iter().find_map(|frame| frame_location(frame, folder))
}

fn frame_location(frame: &Value, folder: &Path) -> Option<Value> {
    let (file, line) = (frame["file"].as_str()?, frame["line"].as_u64()?);
    let artifact = match Path::new(file).strip_prefix(folder) {
        Ok(inside) => json!({"uri": escaped(&inside.to_string_lossy()), "uriBaseId": "FOLDER"}),
        Err(_) => json!({"uri": format!("file://{}", escaped(file))}),
    };
    let mut region = json!({"startLine": line.max(1)});
    if let Some(column) = frame["column"].as_u64() {
        region["startColumn"] = column.into();
    }
    let mut location = json!({"physicalLocation": {"artifactLocation": artifact, "region": region}});
    if let Some(name) = frame["name"].as_str() {
        location["logicalLocations"] = json!([{"fullyQualifiedName": name, "kind": "function"}]);
    }
    Some(location)
}

/// A path in a URI (RFC 3986, section 2.1).
fn escaped(path: &str) -> String {
    let mut out = String::new();
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' | b'+' => out.push(byte.into()),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// A line for each finding by which it would not be told of again.
pub fn suppressions(found: &[Value]) -> String {
    let mut lines: Vec<String> = found.iter().filter_map(suppression).collect();
    lines.sort();
    lines.dedup();
    let mut text = String::from("# Made by margay check --generate-suppressions.\n");
    let others = found.iter().filter(|finding| suppression(finding).is_none()).count();
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
fn suppression(finding: &Value) -> Option<String> {
    let mut line = finding["kind"].as_str().unwrap_or("*").to_owned();
    if let Some(kernel) = finding["kernel"]["mangled"].as_str() {
        line.push_str(&format!(" kernel={kernel}"));
    }
    let frames = stacks(finding).flatten();
    let place = frames
        .filter_map(|frame| Some((frame["file"].as_str()?, frame["line"].as_u64()?)))
        .next();
    if let Some((file, number)) = place {
        let name = Path::new(file)
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_else(|| file.into()).replace(char::is_whitespace, "*");
        line.push_str(&format!(" at=*{name}:{number}"));
    } else if let Some(instruction) = stacks(finding)
        .flatten()
        .find_map(|frame| frame["instruction"].as_str())
    {
        line.push_str(&format!(
            " instruction={}",
            instruction.replace(char::is_whitespace, "*")
        ));
    }
    if let Some(call) = finding["call"].as_str() {
        line.push_str(&format!(" call={call}"));
    }
    line.contains('=').then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding() -> Value {
        let frame = |line: u32| json!({"name": "f(int*)", "file": "/home/a b/f.cu", "line": line, "column": 5});
        json!({
            "kind": "race", "severity": "error", "report": "race of two writes\n  more", "times": 3,
            "kernel": {"mangled": "_Z1fPi", "name": "f(int*)"},
            "accesses": [{"stack": [frame(6)]}, {"stack": [frame(5)]}],
        })
    }

    #[test]
    fn sarif_has_places_and_rules() {
        let log = sarif(&[finding()], Path::new("/home/a b"));
        let run = &log["runs"][0];
        let result = &run["results"][0];
        let rule = &run["tool"]["driver"]["rules"][result["ruleIndex"].as_u64().unwrap() as usize];
        assert_eq!((&rule["id"], &result["ruleId"]), (&json!("race"), &json!("race")));
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"], json!({"uri": "f.cu", "uriBaseId": "FOLDER"}));
        assert_eq!(place["region"], json!({"startLine": 6, "startColumn": 5}));
        assert_eq!(
            result["relatedLocations"][0]["physicalLocation"]["region"]["startLine"],
            5
        );
        assert_eq!(run["originalUriBaseIds"]["FOLDER"]["uri"], "file:///home/a%20b/");
    }

    #[test]
    fn suppressions_name_kernel_and_place_once() {
        let text = suppressions(&[finding(), finding()]);
        let rules: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(rules, ["race kernel=_Z1fPi at=*f.cu:6"]);
    }
}
