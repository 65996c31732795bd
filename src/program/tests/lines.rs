//! Source lines, labels and names of variables that fault reports name.

use super::link;
use crate::program::SourceLine;
use crate::ptx::ast::Span;

const TEXT: &str = ".version 8.0\n.target sm_80\n.address_size 64\n
    .extern .shared .align 16 .b8 rest[];
    .visible .entry k() {
        .shared .align 4 .b8 tile[20]; .reg .b32 %r<3>;
        mov.u32 %r1, 0;
        .loc 1 30 5\n mov.u32 %r1, 1;
        .loc 1 20 3, function_name $L__info_string0, inlined_at 1 30 5\n mov.u32 %r1, 2;
        { .loc 2 10 9, function_name $L__info_string1+1, inlined_at 1 20 3\n mov.u32 %r1, 3;
        $L_in: mov.u32 %r1, 4; }
        .loc 1 31 0\n mov.u32 %r1, 5;
        .loc 3 7 2, function_name $L__info_string9, inlined_at 9 9 9\n mov.u32 %r1, 6;
        st.shared.u32 [tile], %r1; st.shared.u32 [rest], %r1; ret;
    }
    .file 1 \"a.cu\"\n.file 2 \"b.h\"
    .section .debug_str { $L__info_string10:\n .b8 120,0\n $L__info_string0:\n.b8 95,90,49\n.b8 102,118,0\n
        $L__info_string1:\n.b8 120,95,90,49,103,118,0\n }\n";

fn lines(number: &str) -> (Vec<String>, Option<String>) {
    let (module, _) = link(&[TEXT]);
    let at = TEXT.find(&format!("mov.u32 %r1, {number};")).unwrap() as u32;
    let origin = module.origin_of(0, Span { start: at, end: at + 1 });
    let text = |line: &SourceLine| {
        let SourceLine {
            file,
            line,
            column,
            inlined,
        } = line;
        format!("{file}:{line}:{column} {}", inlined.as_deref().unwrap_or("-"))
    };
    (
        origin.lines.iter().map(text).collect(),
        origin.label.map(|label| label.to_string()),
    )
}

#[test]
fn an_instruction_has_the_lines_of_all_functions_that_were_inlined_there() {
    assert_eq!(lines("0"), (vec![], None));
    assert_eq!(lines("1"), (vec!["a.cu:30:5 -".to_owned()], None));
    assert_eq!(lines("2").0, ["a.cu:20:3 _Z1fv", "a.cu:30:5 -"]);
    assert_eq!(lines("3").0, ["b.h:10:9 _Z1gv", "a.cu:20:3 _Z1fv", "a.cu:30:5 -"]);
    assert_eq!(lines("4").0, lines("3").0);
    assert_eq!(lines("4").1.as_deref(), Some("$L_in"));
    assert_eq!(lines("5").0, ["a.cu:31:0 -"]);
    // Neither the string nor the file nor the place is there.
    assert_eq!(lines("6").0, ["file 3:7:2 an inlined function", "file 9:9:9 -"]);
}

#[test]
fn shared_variables_have_their_names() {
    let (module, _) = link(&[TEXT]);
    let kernel = module.prepare(0).unwrap();
    let names = module.shared_names(&kernel);
    let names: Vec<_> = names.iter().map(|v| (&*v.name, v.offset, v.bytes)).collect();
    assert_eq!(names, [("tile", 0, Some(20)), ("rest", 32, None)]);
}
