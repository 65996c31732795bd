//! The reports of the reader and of the rules, word for word: each `tests/reports/NAME.ptx` has its report in `NAME.txt`.
//!
//! `MARGAY_REWRITE_REPORTS=1 cargo test --test reports` writes what the reader says now; read the difference before you
//! commit it.

use std::path::Path;

fn report(name: &str, bytes: &[u8]) -> String {
    let source = cuda::ptx::source_from_bytes(name, bytes);
    let found = match cuda::ptx::parse(source.clone()) {
        Ok(tree) => cuda::program::check::all(&tree),
        Err(found) => cuda::ptx::parse_all(source).err().unwrap_or(found),
    };
    match found.list.is_empty() {
        true => "nothing is wrong\n".to_owned(),
        false => found.render_plain(),
    }
}

#[test]
fn reports_read_as_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reports");
    let mut texts: Vec<_> = std::fs::read_dir(&folder)
        .expect("tests/reports")
        .map(|entry| entry.expect("entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "ptx"))
        .collect();
    texts.sort();
    assert!(!texts.is_empty());
    let rewrite = std::env::var_os("MARGAY_REWRITE_REPORTS").is_some();
    let mut differ = Vec::new();
    for path in texts {
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        let now = report(&name, &std::fs::read(&path).expect("readable"));
        assert!(
            now.lines().all(|line| line.len() < 400),
            "{name}: a report is for reading"
        );
        let expected = path.with_extension("txt");
        if rewrite {
            std::fs::write(&expected, &now).expect("writable");
        } else if std::fs::read_to_string(&expected).unwrap_or_default() != now {
            differ.push(format!("{name} now says:\n{now}"));
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}
