use super::*;

fn processed(text: &str) -> String {
    let source = Source::new("old.ptx", format!(".version 1.1\n{text}"));
    match run(source) {
        Ok(source) => source.text.strip_prefix(".version 1.1\n").unwrap().to_owned(),
        Err(found) => panic!("{found}"),
    }
}

fn refused(text: &str) -> String {
    let source = Source::new("old.ptx", format!(".version 1.1\n{text}"));
    match run(source) {
        Ok(source) => panic!("{}", source.text),
        Err(found) => found.list[0].message.clone(),
    }
}

/// Expectations: what `cpp -P` makes of the same lines, blanks aside.
#[test]
fn macros() {
    for (text, expected) in [
        ("#define N 4\n.global .u32 a[N];\n", "\n.global .u32 a[4];\n"),
        ("#define T u32\nadd.T %r1, %r1, N;\n", "\nadd.u32 %r1, %r1, N;\n"),
        (
            "#define ADD(d, a) add.u32 d, a, a;\nADD(x, y) ADD (z,(p,q))\n",
            "\nadd.u32 x, y, y; add.u32 z, (p,q), (p,q);\n",
        ),
        ("#define f(x) x f(x)\nf(1)\n", "\n1 f(1)\n"),
        ("#define a b\n#define b a\na b\n", "\n\na b\n"),
        ("#define CAT(x, y) x ## y\nCAT(%r, 1) CAT(a,b)\n", "\n%r1 ab\n"),
        ("#define S(x) #x\nS(a \"b\")\n", "\n\"a \\\"b\\\"\"\n"),
        ("#define TWO(x) x \\\n  x\nTWO(1)\n", "\n\n1 1\n"),
        ("#define ADD(a, b) a+b\nADD(1,\n 2) end\n", "\n1+2\n end\n"),
        ("#define N 4\n#undef N\nN\n", "\n\nN\n"),
        (
            "#define N /* four */ 4 // really\nN \"N\" /* N */ // N\n",
            "\n4 \"N\" /* N */ // N\n",
        ),
        ("#define EMPTY\n#define F() 7\nEMPTY F() F\n", "\n\n 7 F\n"),
        ("#define N 1\n/*\n#define N 2\n*/N\n", "\n/*\n#define N 2\n*/1\n"),
    ] {
        assert_eq!(processed(text), expected, "{text}");
    }
}

#[test]
fn conditions() {
    for (text, expected) in [
        ("#if 1\na\n#else\nb\n#endif\nc\n", "\na\n\n\n\nc\n"),
        ("#ifdef X\na\n#else\nb\n#endif\n", "\n\n\nb\n\n"),
        (
            "#define X\n#ifdef X\na\n#endif\n#ifndef X\nb\n#endif\n",
            "\n\na\n\n\n\n\n",
        ),
        (
            "#define N 3\n#if N > 2 && defined(N) && !defined M\na\n#endif\n",
            "\n\na\n\n",
        ),
        ("#if 0\n#if 1\na\n#endif\n#else\nb\n#endif\n", "\n\n\n\n\nb\n\n"),
        (
            "#if UNKNOWN\na\n#elif 7%3 == 1\nb\n#elif 1\nc\n#endif\n",
            "\n\n\nb\n\n\n\n",
        ),
        ("#if 0\n#nonsense\n#include \"x\"\n#endif\n", "\n\n\n\n"),
        (
            "#line 3 \"a.cu\"\n#if 1\n# 4 \"b\"\n#endif\n",
            "#line 3 \"a.cu\"\n\n# 4 \"b\"\n\n",
        ),
    ] {
        assert_eq!(processed(text), expected, "{text}");
    }
}

#[test]
fn refusals() {
    for (text, part) in [
        ("#include \"x.h\"\n", "`#include`"),
        ("#if 1\n", "no `#endif`"),
        ("#endif\n", "without `#if`"),
        ("#else\n", "without `#if`"),
        ("#if 1\n#else\n#else\n#endif\n", "behind `#else`"),
        ("#if (\n#endif\n", "`#if`"),
        ("#if 1/0\n#endif\n", "division by zero"),
        ("#nonsense\n", "`#nonsense`"),
        ("#define\n", "needs a name"),
        ("#define f(a\n", "parameters"),
        ("#define f(a) a\nf(1\n#define x\n)", "not closed"),
        ("#define f(a) a\nf(1,2)\n", "takes 1 arguments, not 2"),
        ("#error too old\n", "error too old"),
    ] {
        assert!(refused(text).contains(part), "{text}: {}", refused(text));
    }
}

/// Few lines that would expand to more than any machine holds, or for ever.
#[test]
fn bombs() {
    let doubling = |last: &str| {
        let lines: String = (0..60).map(|i| format!("#define a{i} a{0} a{0}\n", i + 1)).collect();
        format!("{lines}#define a60 {last}\na0\n")
    };
    let calls: String = "f(".repeat(1000) + &")".repeat(1000);
    for text in [
        doubling("x"),
        doubling(""),
        "#define f(x) x x\n".to_owned() + &"f(".repeat(40) + "1" + &")".repeat(40),
        format!("#define f(x) x\n{calls}"),
    ] {
        let message = refused(&text);
        assert!(
            message.contains("out of proportion") || message.contains("too deeply"),
            "{message}"
        );
    }
    // Two macros that open and close each other's calls end by themselves.
    assert_eq!(processed("#define f g(\n#define g(x) f x)\nf 1)\n"), "\n\ng( 1)\n");
    let chain: String = (0..20_000).map(|i| format!("#define a{i} a{}\n", i + 1)).collect();
    assert!(processed(&format!("{chain}a0\n")).ends_with("a20000\n"));
}

#[test]
fn later_versions_are_left_alone() {
    let source = Source::new("new.ptx", "// x\n.version 8.7\n#define N 4\n");
    assert!(Arc::ptr_eq(&run(source.clone()).unwrap(), &source));
}
