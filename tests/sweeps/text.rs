//! A row of the list: its opcode and operands taken apart, and the kernel that runs it over arrays of inputs.

use std::fmt::Write;

/// A statement of the list.
pub struct Statement<'a> {
    pub name: &'a str,
    /// The modifiers, types among them, in written order.
    pub words: Vec<&'a str>,
    /// The types in written order; the packed and the narrow ones, too.
    pub types: Vec<&'a str>,
    pub operands: Vec<Operand<'a>>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Operand<'a> {
    /// A register and its selector.
    Register(&'a str, Option<&'a str>),
    Negated(Box<Operand<'a>>),
    Not(&'a str),
    Immediate(&'a str),
    /// A special register and the element of it.
    Special(&'a str, Option<&'a str>),
    /// A variable and bytes from its start.
    Variable(&'a str, u128),
    Group(Vec<Operand<'a>>),
    Pair(Box<Operand<'a>>, Box<Operand<'a>>),
    Sink,
}

pub const TYPES: &[&str] = &[
    "b8", "b16", "b32", "b64", "b128", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f16", "f16x2", "bf16",
    "bf16x2", "f32", "f32x2", "f64", "tf32", "u8x4", "s8x4", "u16x2", "s16x2", "e4m3x2", "e5m2x2", "e3m2x2", "e2m3x2",
    "e2m1x2", "e4m3x4", "e5m2x4", "e3m2x4", "e2m3x4", "e2m1x4", "ue8m0x2", "ue5m3x2", "s2f6x2", "pred",
];

impl<'a> Statement<'a> {
    /// `None`: no plain statement of registers and numbers.
    pub fn parse(example: &'a str) -> Option<Statement<'a>> {
        let text = example.trim().strip_suffix(';')?;
        let (opcode, rest) = text.split_once(' ')?;
        let mut words = opcode.split('.');
        let name = words.next()?;
        let words: Vec<&str> = words.collect();
        let types = words.iter().copied().filter(|word| TYPES.contains(word)).collect();
        let operands = split(rest).map(operand).collect::<Option<Vec<_>>>()?;
        Some(Statement {
            name,
            words,
            types,
            operands,
        })
    }
    pub fn has(&self, word: &str) -> bool {
        self.words.contains(&word)
    }
    /// Registers that the statement writes and reads, each once.
    pub fn registers(&self) -> (Vec<&'a str>, Vec<&'a str>) {
        let (mut written, mut read) = (Vec::new(), Vec::new());
        let mut operands = self.operands.iter();
        operands
            .by_ref()
            .take(1)
            .for_each(|operand| collect(operand, &mut written));
        operands.for_each(|operand| collect(operand, &mut read));
        (written, read)
    }
    /// Whether all values of the only operand are few enough to try: one register of sixteen bits, or of two such halves.
    pub fn is_exhaustive(&self) -> bool {
        let (_, read) = self.registers();
        let halves = self.types.last().is_some_and(|ty| matches!(*ty, "f16x2" | "bf16x2"));
        read.len() == 1 && !self.carries() && (class(read[0]).1 <= 2 || halves)
    }
    /// Reads or writes the carry flag.
    pub fn carries(&self) -> bool {
        self.has("cc") || matches!(self.name, "addc" | "subc" | "madc")
    }
}

fn collect<'a>(operand: &Operand<'a>, into: &mut Vec<&'a str>) {
    match operand {
        Operand::Register(name, _) | Operand::Not(name) if into.contains(name) => {}
        Operand::Register(name, _) | Operand::Not(name) => into.push(name),
        Operand::Negated(inner) => collect(inner, into),
        Operand::Group(list) => list.iter().for_each(|operand| collect(operand, into)),
        Operand::Pair(a, b) => [a, b].into_iter().for_each(|operand| collect(operand, into)),
        Operand::Immediate(_) | Operand::Special(..) | Operand::Variable(..) | Operand::Sink => {}
    }
}

/// At the commas outside of braces.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    text.split(move |c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    })
    .map(str::trim)
}

fn operand(text: &str) -> Option<Operand<'_>> {
    if text == "_" {
        return Some(Operand::Sink);
    }
    if let Some(list) = text.strip_prefix('{') {
        let list = list.strip_suffix('}')?;
        return Some(Operand::Group(
            list.split(',').map(|t| operand(t.trim())).collect::<Option<_>>()?,
        ));
    }
    if let Some((a, b)) = text.split_once('|') {
        return Some(Operand::Pair(Box::new(operand(a)?), Box::new(operand(b)?)));
    }
    if let Some(name) = text.strip_prefix('!') {
        return Some(Operand::Not(name));
    }
    if text.starts_with("-%") {
        return Some(Operand::Negated(Box::new(operand(&text[1..])?)));
    }
    if text.starts_with('%') {
        let (name, selector) = match text.split_once('.') {
            Some((name, selector)) => (name, Some(selector)),
            None => (text, None),
        };
        return Some(match class_of(name) {
            Some(_) => Operand::Register(name, selector),
            None => Operand::Special(name, selector),
        });
    }
    if text.starts_with(['g', 's']) {
        return Some(match text.split_once('+') {
            Some((name, offset)) => Operand::Variable(name, offset.parse().ok()?),
            None => Operand::Variable(text, 0),
        });
    }
    let number = text == "WARP_SZ" || text.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    number.then_some(Operand::Immediate(text))
}

/// The class of a register by its name: what its declaration says, and bytes.
pub fn class(register: &str) -> (&'static str, usize) {
    class_of(register).unwrap_or_else(|| panic!("no class of registers: {register}"))
}
fn class_of(register: &str) -> Option<(&'static str, usize)> {
    Some(match register.trim_end_matches(|c: char| c.is_ascii_digit()) {
        "%rb" => ("b8", 1),
        "%rs" => ("b16", 2),
        "%r" => ("b32", 4),
        "%rd" => ("b64", 8),
        "%rq" => ("b128", 16),
        "%f" => ("f32", 4),
        "%fd" => ("f64", 8),
        "%p" => ("pred", 4),
        _ => return None,
    })
}

/// Bytes between two elements of an array.
pub const STRIDE: usize = 16;

/// The kernel `name(in, out)`: input `i` of thread `t` lies at `in + (i·threads + t)·STRIDE`, outputs likewise; the carry
/// flag, where the statement knows it, is a last input and a last output. Threads beyond `threads` do nothing.
pub fn kernel(name: &str, example: &str, statement: &Statement, threads: usize) -> String {
    let (written, read) = statement.registers();
    let mut text = format!(".visible .entry {name}(.param .u64 from, .param .u64 to)\n{{\n");
    let mut all: Vec<&str> = written.iter().chain(&read).copied().collect();
    all.sort_unstable();
    all.dedup();
    for register in &all {
        let _ = writeln!(text, "  .reg .{} {register};", class(register).0);
    }
    text += "  .reg .b64 %at, %in, %out; .reg .b32 %index, %cta, %size, %word; .reg .pred %beyond;\n";
    text += "  mov.u32 %index, %tid.x; mov.u32 %cta, %ctaid.x; mov.u32 %size, %ntid.x;\n";
    text += "  mad.lo.u32 %index, %cta, %size, %index;\n";
    let _ = writeln!(text, "  setp.ge.u32 %beyond, %index, {threads}; @%beyond ret;");
    let _ = writeln!(text, "  mul.wide.u32 %at, %index, {STRIDE};");
    text += "  ld.param.u64 %in, [from]; add.u64 %in, %in, %at;\n";
    text += "  ld.param.u64 %out, [to]; add.u64 %out, %out, %at;\n";
    for (i, register) in read.iter().enumerate() {
        let at = i * threads * STRIDE;
        let _ = match class(register).0 {
            "pred" => writeln!(
                text,
                "  ld.global.b32 %word, [%in+{at}]; setp.ne.u32 {register}, %word, 0;"
            ),
            ty => writeln!(text, "  ld.global.{ty} {register}, [%in+{at}];"),
        };
    }
    if statement.carries() {
        let at = read.len() * threads * STRIDE;
        let _ = writeln!(text, "  ld.global.b32 %word, [%in+{at}]; add.cc.u32 %word, %word, -1;");
    }
    let _ = writeln!(text, "  {example}");
    if statement.carries() {
        let at = written.len() * threads * STRIDE;
        let _ = writeln!(text, "  addc.u32 %word, 0, 0; st.global.b32 [%out+{at}], %word;");
    }
    for (i, register) in written.iter().enumerate() {
        let at = i * threads * STRIDE;
        let _ = match class(register).0 {
            "pred" => writeln!(
                text,
                "  selp.u32 %word, 1, 0, {register}; st.global.b32 [%out+{at}], %word;"
            ),
            ty => writeln!(text, "  st.global.{ty} [%out+{at}], {register};"),
        };
    }
    text + "  ret;\n}\n"
}
