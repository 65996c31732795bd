//! The list of forms: see `tests/data/README.md` for its columns and how it came about.

/// One form.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub category: &'static str,
    pub form: &'static str,
    /// A complete statement.
    pub example: &'static str,
    /// It can change results: not only a hint.
    pub semantic: bool,
    /// The module needs `.target …, texmode_independent`.
    pub independent: bool,
    /// The greatest PTX version that has it, and a target of that time or one that it is limited to; `None`: today's.
    pub last: Option<(&'static str, &'static str)>,
    /// Of the list's columns: the least PTX version, the targets.
    pub least: &'static str,
    pub targets: &'static str,
}

pub fn rows() -> Vec<Row> {
    let packed = include_bytes!("../data/forms.tsv.zst");
    let text = String::from_utf8(zstd::decode_all(&packed[..]).expect("intact")).expect("text");
    let text: &'static str = Box::leak(text.into_boxed_str());
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap_or_default().split('\t').collect();
    let column = |name: &str| header.iter().position(|h| *h == name).expect("the column is there");
    let (category, form, example, kind) = (column("category"), column("form"), column("example"), column("kind"));
    let (least, last, target, targets, mode) = (
        column("min_ptx"),
        column("max_ptx"),
        column("min_target"),
        column("targets"),
        column("texmode"),
    );
    lines
        .map(|line| {
            let cells: Vec<&str> = line.split('\t').collect();
            Row {
                category: cells[category],
                form: cells[form],
                example: cells[example],
                semantic: cells[kind] == "semantic",
                independent: cells.get(mode) == Some(&"independent"),
                last: cells
                    .get(last)
                    .filter(|last| !last.is_empty())
                    .map(|&last| (last, cells[target]))
                    // What the first targets alone had.
                    .or_else(|| (cells[targets].ends_with(" sm_13")).then_some(("4.0", "sm_13"))),
                least: cells[least],
                targets: cells[targets],
            }
        })
        .collect()
}
