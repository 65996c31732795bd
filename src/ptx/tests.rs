//! What texts mean, by the manual's word. Instruction and declaration forms as a whole are under test in
//! `tests/ptx_language.rs`; reports in `tests/reports.rs`.

use super::ast::*;
use super::*;

const HEAD: &str = ".version 8.7\n.target sm_90, debug\n.address_size 64\n";

fn module(text: &str) -> Module {
    match parse_all(Source::new("test.ptx", format!("{HEAD}{text}"))) {
        Ok(module) => module,
        Err(found) => panic!("{found}"),
    }
}

fn body(text: &str) -> Vec<Statement> {
    let module = module(&format!(".entry k() {{ {text} }}"));
    match &module.items[..] {
        [Item::Function(function)] => function.body.as_ref().unwrap().statements().unwrap().to_vec(),
        other => panic!("{other:?}"),
    }
}

fn instruction(text: &str) -> Instruction {
    match &body(text)[..] {
        [Statement::Instruction(instruction)] => instruction.clone(),
        other => panic!("{other:?}"),
    }
}

fn variable(text: &str) -> Variable {
    match &module(text).items[..] {
        [Item::Variable(variable)] => (**variable).clone(),
        other => panic!("{other:?}"),
    }
}

fn refused(text: &str) -> String {
    parse_all(Source::new("test.ptx", format!("{HEAD}{text}")))
        .expect_err("refused")
        .to_string()
}

/// The value of an operand, as bits and whether it is unsigned.
fn value(expression: &str) -> (u64, bool) {
    match &instruction(&format!("mov.u64 %rd1, {expression};")).operands[1] {
        Operand::Immediate(Expr::Int { bits, unsigned, .. }) => (*bits, *unsigned),
        other => panic!("{other:?}"),
    }
}

fn double(expression: &str) -> f64 {
    match &instruction(&format!("mov.f64 %fd1, {expression};")).operands[1] {
        Operand::Immediate(Expr::F64 { bits, .. }) => f64::from_bits(*bits),
        other => panic!("{other:?}"),
    }
}

#[test]
fn prologue() {
    let module = module("");
    assert_eq!(module.version, (8, 7));
    let target: Vec<&str> = module.target.iter().map(|name| &*name.text).collect();
    assert_eq!(target, ["sm_90", "debug"]);
    assert_eq!(module.address_size, 64);
}

/// PTX ISA, Integer Constants and Integer Constant Expression Evaluation.
#[test]
fn integers() {
    for (text, bits) in [
        ("0", 0),
        ("017", 15),
        ("0x1F", 31),
        ("0X1f", 31),
        ("0b101", 5),
        ("0B11", 3),
        ("1+2*3", 7),
        ("(1+2)*3", 9),
        ("7 % 4", 3),
        ("-7 / 2", -3i64 as u64),
        ("1<<4|3", 19),
        ("0xFF & ~0xF", 0xF0),
        ("6 ^ 3", 5),
        ("!5 + !0", 1),
        ("1 ? 2 : 3", 2),
        ("0 ? 2 : 1 ? 4 : 5", 4),
        ("3 > 2 && 2 >= 3 || 1 == 1", 1),
        ("10 != 4", 1),
        ("-1 >> 1", u64::MAX),
        ("-1 < 0", 1),
        ("+3", 3),
        ("WARP_SZ - 1", 31),
        ("-9223372036854775808", 1 << 63),
        ("8 - 4 - 2", 2),
        ("2 + 3 << 1", 10),
    ] {
        assert_eq!(value(text), (bits, false), "{text}");
    }
    for (text, bits) in [
        ("5U", 5),
        ("9223372036854775808", 1 << 63),
        ("0xFFFFFFFFFFFFFFFF", u64::MAX),
        ("(.u64)-1", u64::MAX),
        // An unsigned operand makes the operation unsigned.
        ("-1 / 2U", u64::MAX / 2),
        ("(.u64)-1 >> 60", 15),
    ] {
        assert_eq!(value(text), (bits, true), "{text}");
    }
    // Comparisons are signed ints whatever they compare; a shift has the type of its left operand.
    assert_eq!(value("-1 < 0U"), (0, false));
    assert_eq!(value("1 << 4U"), (16, false));
}

#[test]
fn floats() {
    assert_eq!(double("1.5e3"), 1500.0);
    assert_eq!(double("1.0/3.0"), 1.0 / 3.0);
    assert_eq!(double("-.5 + 2."), 1.5);
    assert_eq!(double("0d3FF0000000000000"), 1.0);
    match &instruction("mov.f32 %f1, 0F3F800000;").operands[1] {
        Operand::Immediate(Expr::F32 { bits, .. }) => assert_eq!(*bits, 0x3F80_0000),
        other => panic!("{other:?}"),
    }
    assert_eq!(value("2.5 > 1.0"), (1, false));
    for text in ["-0f3F800000", "0f3F800000+1.0", "(0d3FF0000000000000)"] {
        let found = refused(&format!(".entry k() {{ mov.f32 %f1, {text}; }}"));
        assert!(found.contains("stands alone"), "{found}");
    }
}

#[test]
fn operands() {
    let text = "@!%p1 tex.2d.v4.f32.s32 {%f1, _, 1}, [tex, {%r1, %r2}], !%p2, %tid.x, var+8, -%r1.h0, %p1|_, -1;";
    let read = instruction(text);
    let guard = read.guard.as_ref().unwrap();
    assert!(guard.negated && &*guard.predicate.text == "%p1");
    assert_eq!(
        read.opcode.words().collect::<Vec<_>>(),
        ["tex", "2d", "v4", "f32", "s32"]
    );
    let printed: Vec<String> = read.operands.iter().map(|operand| operand.to_string()).collect();
    assert_eq!(
        printed,
        [
            "{%f1, _, 1}",
            "[tex, {%r1, %r2}]",
            "!%p2",
            "%tid.x",
            "var+8",
            "-%r1.h0",
            "%p1|_",
            "-1"
        ]
    );
    use Operand::*;
    assert!(matches!(
        &read.operands[..],
        [
            Vector(..),
            Group(..),
            Not(_),
            Name { select: Some(_), .. },
            Name { offset: 8, .. },
            Negated(_),
            Pair(..),
            Immediate(_)
        ]
    ));
}

#[test]
fn addresses() {
    for (text, printed, offset) in [
        ("[%rd1]", "[%rd1]", 0),
        ("[%rd1+-4]", "[%rd1+-4]", -4),
        ("[ %rd1 + 4*3 ]", "[%rd1+12]", 12),
        ("[var+(2*8)]", "[var+16]", 16),
        ("var[%r1]", "var[%r1]", 0),
        ("var[%r1+4]", "var[%r1+4]", 4),
        ("var[2]", "var[2]", 2),
        ("[240]", "[240]", 0),
        ("[%rd1].unified", "[%rd1].unified", 0),
    ] {
        match &instruction(&format!("ld.u32 %r1, {text};")).operands[1] {
            Operand::Address(address) => {
                assert_eq!(address.to_string(), printed);
                assert_eq!(address.offset, offset, "{text}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn opcodes_in_pieces() {
    for (text, opcode) in [
        ("ld .global .v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];", "ld.global.v4.f32"),
        ("ld.const[2].b32 %r1, [%rd1];", "ld.const[2].b32"),
        (
            "ld.global.L1::no_allocate.L2::cache_hint.b32 %r1, [%rd1], %rd2;",
            "ld.global.L1::no_allocate.L2::cache_hint.b32",
        ),
        ("prefetch.const [0];", "prefetch.const"),
        ("ret;", "ret"),
    ] {
        assert_eq!(&*instruction(text).opcode.text, opcode);
    }
}

#[test]
fn calls() {
    for text in [
        "call (%r1), f, (1, %r2), proto;",
        "call.uni f;",
        "call f, ();",
        "@%p1 call (_), %rd1, (a, _), table;",
        "call (%r1), f, (1);",
    ] {
        let read = instruction(text);
        assert_eq!(format!("{read}"), text);
        let arguments = text.matches('(').count();
        let lists = read.operands.iter().filter(|one| matches!(one, Operand::Arguments(..)));
        assert_eq!(lists.count(), arguments, "{text}");
    }
    // In any other instruction parentheses are an expression's.
    assert!(matches!(
        instruction("add.u32 %r1, %r2, (3);").operands[2],
        Operand::Immediate(_)
    ));
}

#[test]
fn variables() {
    let read = variable(".visible .global .align 16 .v2 .f32 a[2][3] = {{{1.0, 2.0}}, {}};");
    assert_eq!(
        (read.linkage, read.space, read.align, read.vector),
        (Linkage::Visible, Space::Global, Some(16), Some(2))
    );
    assert_eq!((read.ty, &read.dims[..]), (Type::F32, &[Some(2), Some(3)][..]));
    assert!(matches!(read.init, Some(Init::List(list)) if list.len() == 2));
    let read = variable(".extern .shared .align 4 .b8 s[];");
    assert_eq!((read.linkage, &read.dims[..]), (Linkage::Extern, &[None][..]));
    let read = variable(".global .attribute(.managed, .unified(1, 0x10)) .s32 m;");
    let attributes: Vec<_> = read
        .attributes
        .iter()
        .map(|(name, list)| (&*name.text, &list[..]))
        .collect();
    assert_eq!(attributes, [("managed", &[][..]), ("unified", &[1, 16][..])]);
    let several = module(".global .u32 a = 1, b[2], c;");
    assert_eq!(several.items.len(), 3);
}

#[test]
fn initial_addresses() {
    let read = variable(".global .u64 v[] = {a, a+8, generic(a)+4, 0xFF00(a+4), 0xFF(generic(a)+2)};");
    let Some(Init::List(list)) = read.init else {
        panic!("a list");
    };
    let list: Vec<_> = list
        .iter()
        .map(|init| match init {
            Init::Value(Expr::Symbol {
                name,
                offset,
                generic,
                mask,
                ..
            }) => (&*name.text, *offset, *generic, *mask),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        list,
        [
            ("a", 0, false, None),
            ("a", 8, false, None),
            ("a", 4, true, None),
            ("a", 4, false, Some(0xFF00)),
            ("a", 2, true, Some(0xFF))
        ]
    );
    let read = variable(".global .samplerref s = { addr_mode_0 = wrap, filter_mode = linear };");
    assert!(matches!(read.init, Some(Init::Fields(fields)) if fields.len() == 2));
}

#[test]
fn functions() {
    let text = ".visible .func .attribute(.unified_func_stub) (.param .align 8 .b8 r[16]) f(.reg .b32 x, .param .b8 v[]) \
                .noreturn;\n.weak .entry e .maxntid 8, 4 .pragma \"a\"; .pragma \"b\"; .minnctapersm 2 { ret; }\n\
                .entry p(.param .u64 .ptr .global .align 16 a) .pragma \"c;{\" { ret; }";
    let module = module(text);
    let functions: Vec<&Function> = module
        .items
        .iter()
        .map(|item| match item {
            Item::Function(function) => &**function,
            other => panic!("{other:?}"),
        })
        .collect();
    let [f, e, p] = functions[..] else {
        panic!("three functions")
    };
    assert!(f.noreturn && f.variadic && !f.entry && f.body.is_none());
    assert_eq!((f.returns.len(), f.params.len(), f.attributes.len()), (1, 2, 1));
    assert_eq!(f.params[0].space, Space::Reg);
    assert!(e.entry && e.linkage == Linkage::Weak && e.body.is_some());
    let directives: Vec<String> = e.directives.iter().map(|one| one.to_string()).collect();
    assert_eq!(
        directives,
        [".maxntid 8, 4", ".pragma \"a\";", ".pragma \"b\";", ".minnctapersm 2"]
    );
    assert_eq!(p.params[0].ptr, Some((Space::Global, Some(16))));
    assert_eq!(p.directives[0].text, ["c;{"]);
}

#[test]
fn bodies() {
    let text = "L0: L1: .reg .b32 %r<10>, t; { .param .b32 p; L: } ts: .branchtargets L0, L1; \
                fs: .calltargets f; pr: .callprototype (.param .b32 _) _ (.param .b32 _) .noreturn; \
                .loc 1 20 3, function_name $L__info+2, inlined_at 1 10 3 .pragma \"nounroll\"; ret;";
    let read = body(text);
    use Statement::*;
    assert!(matches!(
        &read[..],
        [
            Label(_),
            Label(_),
            Variable(_),
            Variable(_),
            Block(_),
            BranchTargets { .. },
            CallTargets { .. },
            CallPrototype(_),
            Loc {
                file: 1,
                line: 20,
                column: 3,
                function: Some(_),
                offset: 2,
                inlined_at: Some((1, 10, 3)),
                ..
            },
            Pragma(_),
            Instruction(_)
        ]
    ));
    match &read[2] {
        Variable(variable) => assert_eq!(variable.count, Some(10)),
        other => panic!("{other:?}"),
    }
    assert!(matches!(&read[4], Block(inner) if matches!(inner[..], [Variable(_), Label(_)])));
}

#[test]
fn module_items() {
    let module = module(
        ".file 1 \"a.cu\", 1339013327, 64118\n.file 2 \"b.cu\"\n.alias a, b;\n.pragma \"x\", \"y\";\n\
         .section .debug_info { L0: .b32 7 /* } */ .b32 L1-L0, \"}\" }\n# 1 \"x.cu\"\n#line 3 \"x.cu\"\n@@DWARF .byte 1\n",
    );
    assert!(matches!(
        &module.items[..],
        [
            Item::File {
                index: 1,
                timestamp: Some((1339013327, 64118)),
                ..
            },
            Item::File { timestamp: None, .. },
            Item::Alias { .. },
            Item::Pragma(texts),
            Item::Section(section)
        ] if texts.len() == 2 && section.text().ends_with("\"}\" }") && &*section.name.text == ".debug_info"
    ));
}

/// The first specification allows what later ones do not.
#[test]
fn first_specification() {
    let text = ".version 1.1\n.target sm_11\n.const[10] .u32 c[4];\n.global .v3 .f32 v;\n.tex tex_a;\n\
                .entry k { .reg .u32 r<4>; ld.global.u32 r1, [r0-4]; ld.const[10].u32 r1, [c[r2-4]]; mov.u32 r2, %tid.0; add.u32 r1, r2, 1+7%3*2; }";
    let module = parse_all(Source::new("old.ptx", text)).unwrap_or_else(|found| panic!("{found}"));
    assert_eq!(
        (module.version, module.address_size, module.items.len()),
        ((1, 1), 32, 4)
    );
    let Item::Function(kernel) = &module.items[3] else {
        panic!()
    };
    let add = kernel
        .body
        .as_ref()
        .unwrap()
        .statements()
        .unwrap()
        .last()
        .unwrap()
        .to_string();
    assert_eq!(add, "add.u32 r1, r2, 3;");
    assert!(refused(".entry k { mov.u32 %r1, 7%3; }").contains("unexpected `%3`"));
    assert!(refused(".entry k { ld.global.u32 %r1, [%r0-4]; }").contains("an offset is added"));
    assert!(refused(".global .v3 .f32 v;").contains("`.v3`"));
}

#[test]
fn bodies_are_read_when_asked_for() {
    let source = Source::new("test.ptx", format!("{HEAD}.entry k() {{ add.u32 1 1; }}"));
    let module = parse(source).unwrap_or_else(|found| panic!("{found}"));
    assert!(module.check().is_err());
}

/// The same name is the same string, once for each body.
#[test]
fn names_are_shared() {
    let read = body("add.u32 %r1, %r1, %r1;");
    let Statement::Instruction(add) = &read[0] else {
        panic!()
    };
    let texts: Vec<_> = add
        .operands
        .iter()
        .map(|operand| match operand {
            Operand::Name { name, .. } => name.text.clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(std::sync::Arc::ptr_eq(&texts[0], &texts[1]) && std::sync::Arc::ptr_eq(&texts[1], &texts[2]));
}

#[test]
fn places() {
    let text = format!("{HEAD}.entry k()\n{{\n\tadd.u32 %r1,\n\t\t%r2, 7;\n}}\n");
    let module = parse_all(Source::new("test.ptx", text.clone())).unwrap_or_else(|found| panic!("{found}"));
    let Item::Function(function) = &module.items[0] else {
        panic!()
    };
    let Statement::Instruction(add) = &function.body.as_ref().unwrap().statements().unwrap()[0] else {
        panic!()
    };
    let at = |span: Span| &text[span.start as usize..span.end as usize];
    assert_eq!(at(add.span), "add.u32 %r1,\n\t\t%r2, 7;");
    assert_eq!(at(add.opcode.span), "add.u32");
    assert_eq!(at(add.operands[2].span()), "7");
    assert_eq!(module.source.line_column(add.operands[1].span().start), (7, 3));
}

/// Bytes as files hold them: padded, marked, and with other encodings in comments.
#[test]
fn bytes() {
    let text = b"\xEF\xBB\xBF.version 8.7 // caf\xE9\n.target sm_90\n.file 1 \"caf\xE9.cu\"\n\0\0";
    assert!(parse_bytes("x", text).is_ok());
    let text = b".version 8.7\n.target sm_90\n.global .u32 caf\xE9;\n";
    assert_eq!(parse_bytes("x", text).unwrap_err().list.len(), 1);
    let text = b".version 8.7\n.target sm_90\n\0.global .u32 x;\n";
    assert_eq!(parse_bytes("x", text).unwrap_err().list.len(), 1);
}

/// Whatever may start a declaration is suggested for a word that nearly does.
#[test]
fn misspelt_directives_of_a_module() {
    for (wrong, right) in [
        (".regs", ".reg"),
        (".parm", ".param"),
        (".texx", ".tex"),
        (".surff", ".surf"),
        (".atribute", ".attribute"),
        (".sregs", ".sreg"),
        (".globl", ".global"),
    ] {
        let text = format!(".version 8.5\n.target sm_90\n.address_size 64\n{wrong} .b32 a;\n");
        let found = super::parse(Source::new("a.ptx", text)).expect_err(wrong);
        assert_eq!(found.list.len(), 1, "{wrong}: {found:?}");
        let label = &found.list[0].label;
        assert!(label.contains(&format!("`{right}`")), "{wrong}: {label}");
    }
}

/// Sums are as long as they like; what nests is told when it goes too deep, before any stack is used up.
#[test]
fn long_and_deep_expressions() {
    let parse = |expression: String| {
        let body = format!(".reg .b32 %r; mov.b32 %r, {expression}; ret;");
        let text = format!(".version 8.5\n.target sm_90\n.address_size 64\n.visible .entry k() {{ {body} }}\n");
        super::parse_all(Source::new("a.ptx", text)).map_err(|found| found.list[0].message.clone())
    };
    for fine in [
        vec!["1"; 20_000].join("+"),
        vec!["1"; 20_000].join("-"),
        vec!["-1"; 5_000].join(" - "),
        vec!["(1)"; 5_000].join("*"),
        format!("{}1{}", "(".repeat(150), ")".repeat(150)),
    ] {
        assert!(parse(fine.clone()).is_ok(), "{}", &fine[..40]);
    }
    for deep in [
        format!("{}1{}", "(".repeat(100_000), ")".repeat(100_000)),
        format!("{}1{}", "(-".repeat(100_000), ")".repeat(100_000)),
        format!("{}1", "-".repeat(100_000)),
        format!("{}1", "~!".repeat(100_000)),
        format!("{}1", "1?1:".repeat(100_000)),
        format!("{}1{}", "(--------------------".repeat(100), ")".repeat(100)),
    ] {
        assert_eq!(
            parse(deep.clone()).err().as_deref(),
            Some("the expression is nested too deeply"),
            "{}",
            &deep[..40]
        );
    }
}
