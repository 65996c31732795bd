//! Versions and targets against the catalogue (`tests/data/forms.tsv.zst`): for every form the lowest ones that NVIDIA's
//! assembler takes it for.

use crate::isa::decode_all;
use crate::isa::table::Target;

fn version(text: &str) -> (u8, u8) {
    let (major, minor) = text.split_once('.').expect("a version");
    (major.parse().expect("a number"), minor.parse().expect("a number"))
}

#[test]
fn legal_forms_lack_nothing_and_agree_with_themselves() {
    let packed = include_bytes!("../../../tests/data/forms.tsv.zst");
    let table = String::from_utf8(zstd::decode_all(&packed[..]).expect("intact")).expect("text");
    let (mut rows, mut late, mut noticed) = (0, 0, 0);
    let mut wrong = Vec::new();
    for row in table.lines().skip(1) {
        let columns: Vec<&str> = row.split('\t').collect();
        let (form, target, targets, ptx) = (columns[2], columns[6], columns[7], columns[8]);
        let opcode = form.split(' ').next().unwrap_or_default();
        let forms = decode_all(opcode);
        if forms.is_empty() || columns[3] == "-" {
            continue;
        }
        rows += 1;
        if forms.iter().all(|form| form.disagreement().is_some()) {
            wrong.push(format!("{opcode}: {:?}", forms[0].disagreement()));
        }
        // The assembler takes some of 6.0's instructions for a version 5.1 that never was.
        let least = match version(ptx) {
            (5, 1..) => (6, 0),
            // And atomic instructions, which came with 1.1, for 1.0.
            least => least.max((1, 1)),
        };
        for target in targets
            .split(' ')
            .map(|target| target.trim_end_matches('+'))
            .chain([target])
        {
            let target = Target::read(target);
            assert!(target.is_some(), "{row}");
            // A later target asks for a later version.
            let found: Vec<_> = forms.iter().map(|form| form.lacks((99, 0), target)).collect();
            if found
                .iter()
                .all(|lack| lack.as_ref().is_some_and(|lack| lack.needs.contains("target")))
            {
                wrong.push(format!("{opcode} on {target:?}: {:?}", found[0]));
            }
        }
        let own = Target::read(target);
        let found: Vec<_> = forms.iter().map(|form| form.lacks(least, own)).collect();
        if found
            .iter()
            .all(|lack| lack.as_ref().is_some_and(|lack| lack.needs.starts_with("PTX")))
        {
            wrong.push(format!("{opcode} in PTX {ptx} on {target}: {:?}", found[0]));
        }
        // And it is noticed when the target is older than all of these.
        let number = own.map_or(0, |target| target.number);
        if number >= 50 {
            late += 1;
            let older = Target::read("sm_35");
            noticed += usize::from(forms.iter().all(|form| form.lacks((99, 0), older).is_some()));
        }
    }
    assert!(rows > 38_000, "{rows}");
    assert!(
        wrong.is_empty(),
        "{} of {rows}:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(40)].join("\n")
    );
    assert!(noticed * 1000 >= late * 995, "{noticed} of {late}");
}
