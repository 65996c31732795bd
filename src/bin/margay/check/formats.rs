//! What was found, as data: JSON, and SARIF 2.1.0 for code scanning.

use std::path::Path;

use serde_json::{Map, Value, json};

/// A kind of finding.
struct Kind {
    word: &'static str,
    /// One such finding in the sum, and several.
    one: &'static str,
    many: &'static str,
    /// What it is, for readers of a log.
    what: &'static str,
    help: &'static str,
    /// Where the pages of Margay tell of it (`docs/checking.md`), and what manual says how it ought to be.
    anchor: &'static str,
    manual: &'static str,
}

/// In the order in which the sum has them.
const KINDS: [Kind; 9] = [
    Kind {
        word: "kernel",
        one: "kernel failed",
        many: "kernels failed",
        what: "A kernel failed",
        help: "The kernel touched memory that is not its own, or did something else that ends it. The report names the access, the \
               nearest allocation or variable, and the thread.",
        anchor: "memory",
        manual: "https://docs.nvidia.com/compute-sanitizer/ComputeSanitizer/index.html#memcheck-tool",
    },
    Kind {
        word: "free",
        one: "wrong free",
        many: "wrong frees",
        what: "A call frees what is not there to be freed",
        help: "The address or handle was freed before, is not the start of an allocation, or belongs to another call.",
        anchor: "memory",
        manual: "https://docs.nvidia.com/compute-sanitizer/ComputeSanitizer/index.html#memcheck-tool",
    },
    Kind {
        word: "leak",
        one: "allocation was not freed",
        many: "allocations were not freed",
        what: "Memory is not freed",
        help: "By the end of its context or process nobody has freed the memory. The report names the call that allocated it.",
        anchor: "memory",
        manual: "https://docs.nvidia.com/compute-sanitizer/ComputeSanitizer/index.html#leak-checking",
    },
    Kind {
        word: "race",
        one: "race",
        many: "races",
        what: "Two accesses are in no order",
        help: "Two accesses touch the same bytes, one of them writes, and nothing puts them in order. The last line of the report \
               says what is missing: a barrier, a release and an acquire, an event.",
        anchor: "races",
        manual: "https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#memory-consistency-model",
    },
    Kind {
        word: "init",
        one: "uninitialised value",
        many: "uninitialised values",
        what: "Something depends on a value that nobody has written",
        help: "A branch, an address, an atomic operation, output or the host depends on bits that nobody has written. The report \
               names the load that brought them.",
        anchor: "values-that-nobody-has-written",
        manual: "https://docs.nvidia.com/compute-sanitizer/ComputeSanitizer/index.html#initcheck-tool",
    },
    Kind {
        word: "sync",
        one: "misused barrier",
        many: "misused barriers",
        what: "A barrier, or what is like one, is misused",
        help: "Threads come to a barrier, a mask or an asynchronous operation in a way that is not defined, or nobody gets on any \
               more. The report says who is missing, or what rule is broken.",
        anchor: "synchronisation",
        manual: "https://docs.nvidia.com/compute-sanitizer/ComputeSanitizer/index.html#synccheck-tool",
    },
    Kind {
        word: "whole",
        one: "output that depends on the order of threads",
        many: "outputs that depend on the order of threads",
        what: "What a program prints depends on the order of threads",
        help: "The program printed something else, or ended with another exit code, when its threads ran in another order. The \
               report names a MARGAY_SEED that repeats the order.",
        anchor: "results-that-depend-on-the-order-of-threads",
        manual: "https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#memory-consistency-model",
    },
    Kind {
        word: "order",
        one: "launch whose result depends on the order of threads",
        many: "launches whose results depend on the order of threads",
        what: "What a launch leaves depends on the order of threads",
        help: "Memory held something else after the launch when its threads ran in another order. The report names who wrote it, \
               and a MARGAY_SEED that repeats the order.",
        anchor: "results-that-depend-on-the-order-of-threads",
        manual: "https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#memory-consistency-model",
    },
    Kind {
        word: "fp",
        one: "number gone wrong",
        many: "numbers gone wrong",
        what: "A number goes wrong",
        help: "An operation made a NaN or an infinity of operands that are none, or what else was asked for. The report has the \
               operands.",
        anchor: "numbers",
        manual: "https://docs.nvidia.com/cuda/floating-point/index.html",
    },
];

/// How many findings there are of a kind.
fn count(found: &[Value], kind: &Kind) -> u64 {
    let of_kind = found.iter().filter(|finding| finding["kind"] == kind.word);
    of_kind.map(|finding| finding["count"].as_u64().unwrap_or(1)).sum()
}

/// `1 kernel failed, 2 wrong frees`
pub fn sum(found: &[Value]) -> String {
    let parts = KINDS.iter().filter_map(|kind| match count(found, kind) {
        0 => None,
        1 => Some(format!("1 {}", kind.one)),
        n => Some(format!("{n} {}", kind.many)),
    });
    let parts: Vec<String> = parts.collect();
    match parts.is_empty() {
        true => "nothing found".into(),
        false => parts.join(", "),
    }
}

/// An object with the findings as the library has told of them, how many there are of each kind, how many the rules of
/// `--suppressions` have left out, and the sum in words.
pub fn json(found: &[Value], suppressed: u64, sum: &str) -> Value {
    let counts: Map<String, Value> = KINDS
        .iter()
        .map(|kind| (kind.word.to_owned(), count(found, kind).into()))
        .collect();
    json!({
        "tool": "margay check",
        "version": env!("CARGO_PKG_VERSION"),
        "summary": {"text": sum, "counts": counts, "suppressed": suppressed},
        "findings": found,
    })
}

/// A log of SARIF 2.1.0 (OASIS, Static Analysis Results Interchange Format) with one run. Files are named from `folder` on where
/// they lie in it.
pub fn sarif(found: &[Value], folder: &Path) -> Value {
    let rules: Vec<Value> = KINDS
        .iter()
        .map(|kind| {
            let Kind { what, help, anchor, .. } = kind;
            let page = format!("docs/checking.md#{anchor}");
            json!({
                "id": kind.word,
                "shortDescription": {"text": what},
                "fullDescription": {"text": help},
                "help": {
                    "text": format!("{help} More is in Margay's pages, {page}."),
                    "markdown": format!("{help}\n\nMore is in Margay's pages, `{page}`."),
                },
                "helpUri": kind.manual,
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
    if let Some(index) = KINDS.iter().position(|kind| finding["kind"] == kind.word) {
        result["ruleIndex"] = index.into();
    }
    let mut places = places.into_iter();
    if let Some(first) = places.next() {
        result["locations"] = json!([first]);
    }
    let mut others: Vec<Value> = places.collect();
    others.extend(hosts(finding).filter_map(|(title, stack)| {
        let mut place = location(stack, folder)?;
        place["message"] = json!({"text": title});
        Some(place)
    }));
    if !others.is_empty() {
        result["relatedLocations"] = others.into();
    }
    let frames = |stack: &[Value]| -> Vec<Value> {
        let places = stack.iter().filter_map(|frame| frame_location(frame, folder));
        places.map(|place| json!({"location": place})).collect()
    };
    let of_threads = stacks(finding).map(|stack| json!({"frames": frames(stack)}));
    let of_hosts = hosts(finding).map(|(title, stack)| json!({"message": {"text": title}, "frames": frames(stack)}));
    let stacks: Vec<Value> = of_threads
        .chain(of_hosts)
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

/// Where on the host was asked for what a finding is about: what it was, and the call stack.
fn hosts(finding: &Value) -> impl Iterator<Item = (&str, &Vec<Value>)> {
    let hosts = finding["host"].as_array().into_iter().flatten();
    hosts.filter_map(|host| Some((host["title"].as_str()?, host["stack"].as_array()?)))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn finding() -> Value {
        let frame = |line: u32| json!({"name": "f(int*)", "file": "/home/a b/f.cu", "line": line, "column": 5});
        json!({
            "kind": "race", "severity": "error", "report": "race of two writes\n  more", "times": 3,
            "kernel": {"mangled": "_Z1fPi", "name": "f(int*)"},
            "accesses": [{"stack": [frame(6)]}, {"stack": [frame(5)]}],
            "host": [
                {"what": "launch", "title": "the kernel was launched", "stack": [{"module": "f", "offset": "0x9"}, frame(9)]},
                {"what": "allocation", "title": "made", "stack": [{"module": "f", "offset": "0x9"}]},
            ],
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
        let host = &result["relatedLocations"][1];
        assert_eq!(host["message"]["text"], "the kernel was launched");
        assert_eq!(host["physicalLocation"]["region"]["startLine"], 9);
        let stacks = result["stacks"].as_array().unwrap();
        assert_eq!(
            (stacks.len(), result["relatedLocations"].as_array().unwrap().len()),
            (3, 2)
        );
        assert_eq!(stacks[2]["message"]["text"], "the kernel was launched");
        assert_eq!(run["originalUriBaseIds"]["FOLDER"]["uri"], "file:///home/a%20b/");
    }

    #[test]
    fn every_rule_has_help() {
        let log = sarif(&[], Path::new("/"));
        let rules = log["runs"][0]["tool"]["driver"]["rules"].as_array().unwrap().clone();
        assert_eq!(rules.len(), 9);
        for rule in rules {
            assert!(rule["helpUri"].as_str().unwrap().starts_with("https://"), "{rule}");
            let help = rule["help"]["text"].as_str().unwrap();
            assert!(
                help.starts_with(rule["fullDescription"]["text"].as_str().unwrap()),
                "{rule}"
            );
        }
    }

    #[test]
    fn findings_are_counted_by_their_kind() {
        assert_eq!(sum(&[]), "nothing found");
        let finding = |kind: &str, count: u64| json!({"record": "finding", "kind": kind, "count": count});
        assert_eq!(sum(&[finding("kernel", 1)]), "1 kernel failed");
        let found = [finding("leak", 2), finding("free", 1), finding("leak", 2)];
        assert_eq!(sum(&found), "1 wrong free, 4 allocations were not freed");
        let summary = &json(&found, 3, "words")["summary"];
        assert_eq!((&summary["text"], &summary["suppressed"]), (&json!("words"), &json!(3)));
        assert_eq!(
            (&summary["counts"]["leak"], &summary["counts"]["race"]),
            (&json!(4), &json!(0))
        );
    }
}
