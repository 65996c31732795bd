//! A row of the list → a kernel that feeds the example statement and keeps what it leaves.
//!
//! Each thread has a record of operands, 16 bytes each in the order in which the statement names them, and a record of
//! results likewise. A statement that touches memory has a window of [`WINDOW`] bytes there, filled from behind the
//! operands and written behind the results.

use std::fmt::Write;

use crate::catalogue::Row;
use crate::model::{self, Op};

/// Bytes of memory that belong to a thread's statement.
pub const WINDOW: usize = 64;
/// Threads of a launch: as many operand records.
pub const THREADS: usize = 256;

/// A register class of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[rustfmt::skip]
pub enum Class { B8, B16, B32, B64, B128, F32, F64, Pred }

impl Class {
    /// `%rd12` → (`B64`, register).
    fn of(name: &str) -> Option<Class> {
        let letters = name.strip_prefix('%')?.trim_end_matches(|c: char| c.is_ascii_digit());
        Some(match letters {
            "rb" => Class::B8,
            "rs" => Class::B16,
            "r" => Class::B32,
            "rd" => Class::B64,
            "rq" => Class::B128,
            "f" => Class::F32,
            "fd" => Class::F64,
            "p" => Class::Pred,
            _ => return None,
        })
    }

    fn ty(self) -> &'static str {
        match self {
            Class::B8 => "b8",
            Class::B16 => "b16",
            Class::B32 => "b32",
            Class::B64 => "b64",
            Class::B128 => "b128",
            Class::F32 => "f32",
            Class::F64 => "f64",
            Class::Pred => "pred",
        }
    }

    pub fn bits(self) -> u32 {
        match self {
            Class::B8 => 8,
            Class::B16 => 16,
            Class::B32 | Class::F32 => 32,
            Class::B64 | Class::F64 => 64,
            Class::B128 => 128,
            Class::Pred => 1,
        }
    }
}

/// Where a value of the statement comes from or goes.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    Register(Class, String),
    /// `!%p3`
    Not(String),
    Sink,
    /// A constant, as written.
    Constant(String),
    /// The address of a variable and so many bytes: `gvar` of the module, or the kernel's `svar`, through which the word
    /// [`BEHIND`] is read back, since where shared memory begins is the driver's to choose.
    Address(&'static str, u64),
}

/// What lies in the shared variable.
pub const BEHIND: u32 = 0x5eed_0001;

/// What lies in brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// `[%rd1]`
    Register,
    /// The name of a variable that the statement reads or writes.
    Global,
    KernelParam,
    /// A `.param` of the function that the statement stands in.
    FunctionParam,
    /// A `.param` to hand to another function.
    Argument,
}

/// One form, ready to be run.
pub struct Case {
    pub row: Row,
    pub op: Op,
    pub destinations: Vec<Operand>,
    pub sources: Vec<Operand>,
    pub memory: Option<Memory>,
}

impl Case {
    /// `None` if the statement is of a kind that is not understood here, or that no model knows.
    pub fn of(row: &Row) -> Option<Case> {
        let statement = row.example.trim().strip_suffix(';')?;
        let (opcode, operands) = statement.split_once(char::is_whitespace).unwrap_or((statement, ""));
        let op = Op::of(opcode);
        let mut operands = split(operands);
        let mut memory = None;
        let writes_memory = matches!(op.mnemonic(), "st" | "red");
        if let Some(at) = operands.iter().position(|o| o.starts_with('[')) {
            memory = Some(match operands.remove(at) {
                "[%rd1]" => Memory::Register,
                "[gvar]" => Memory::Global,
                "[pvar]" => Memory::KernelParam,
                "[fparam]" => Memory::FunctionParam,
                "[oparam]" => Memory::Argument,
                _ => return None,
            });
        }
        let destinations = match writes_memory {
            true => Vec::new(),
            false => flatten(operands.remove(0))?,
        };
        let mut sources = Vec::new();
        for operand in operands {
            sources.extend(flatten(operand)?);
        }
        let case = Case {
            row: *row,
            op,
            destinations,
            sources,
            memory,
        };
        model::knows(&case).then_some(case)
    }

    /// Registers that the statement reads, in order, without repetition.
    pub fn inputs(&self) -> Vec<(Class, &str)> {
        let mut inputs: Vec<(Class, &str)> = Vec::new();
        for source in &self.sources {
            let (class, name) = match source {
                Operand::Register(class, name) => (*class, name.as_str()),
                Operand::Not(name) => (Class::Pred, name.as_str()),
                _ => continue,
            };
            if !inputs.iter().any(|(_, n)| *n == name) {
                inputs.push((class, name));
            }
        }
        if self.op.carries_in() {
            inputs.push((Class::B32, "%carry"));
        }
        inputs
    }

    /// Registers that it writes; the carry flag is read into one.
    pub fn outputs(&self) -> Vec<(Class, &str)> {
        self.destinations
            .iter()
            .filter_map(|d| match d {
                Operand::Register(class, name) => Some((*class, name.as_str())),
                _ => None,
            })
            .chain(self.op.carries_out().then_some((Class::B32, "%left")))
            .collect()
    }

    /// Whether result `i` of the model goes to a register.
    pub fn keeps(&self, i: usize) -> bool {
        self.destinations.get(i) != Some(&Operand::Sink)
    }

    /// Whether a thread's window lies in shared memory: some threads' generic addresses do.
    pub fn in_shared(&self, thread: usize) -> bool {
        match self.space() {
            Some("shared") => true,
            None => self.memory == Some(Memory::Register) && thread % 2 == 1 && !self.is_vector_atomic(),
            _ => false,
        }
    }

    /// Vectors are for global memory alone (PTX ISA, atom and red).
    fn is_vector_atomic(&self) -> bool {
        let vector = self.op.words.iter().any(|word| ["v2", "v4", "v8"].contains(&&**word));
        vector && matches!(self.op.mnemonic(), "atom" | "red")
    }

    /// Bytes of the window that the kernel writes back.
    pub fn checked_bytes(&self) -> usize {
        if self.memory == Some(Memory::Global) { 8 } else { WINDOW }
    }

    /// The state space that the opcode names.
    pub fn space(&self) -> Option<&'static str> {
        self.op.words.iter().find_map(|word| {
            let base = word.split([':', '[']).next().unwrap_or(word);
            ["global", "shared", "local", "const", "param"]
                .into_iter()
                .find(|s| *s == base)
        })
    }

    /// The statement, with the carry flag set before it and read behind it.
    fn statement(&self) -> String {
        let mut text = String::new();
        if self.op.carries_in() {
            // Carries out where the operand is odd.
            text += "and.b32 %carry, %carry, 1;\n    add.cc.u32 %word, %carry, 0xffffffff;\n    ";
        }
        let through = self.sources == [Operand::Address("svar", 0)];
        if through {
            let _ = write!(text, "st.shared.u32 [svar], {BEHIND:#x};\n    ");
        }
        text += self.row.example;
        if through {
            text += "\n    ld.shared.u32 %r0, [%r0];";
        }
        if self.op.carries_out() {
            text += "\n    addc.u32 %left, 0, 0;";
        }
        text
    }

    /// Bytes of a thread's record of operands; results take as many at most.
    pub fn record(&self) -> usize {
        16 * self.inputs().len().max(self.outputs().len()) + WINDOW
    }

    /// The kernel, called `name`, and what it needs beside it.
    pub fn kernel(&self, name: &str) -> String {
        let (inputs, outputs) = (self.inputs(), self.outputs());
        let mut text = String::new();
        let record = self.record();
        let window = 16 * inputs.len().max(outputs.len());
        // Declarations: every register of the statement once.
        let mut declared: Vec<&str> = Vec::new();
        let mut declarations = String::new();
        for (class, register) in inputs.iter().chain(&outputs) {
            if !declared.contains(register) {
                declared.push(register);
                let _ = writeln!(declarations, "    .reg .{} {register};", class.ty());
            }
        }
        if self.sources.contains(&Operand::Address("svar", 0)) {
            declarations += "    .shared .b32 svar;\n";
        }
        let mut body = String::new();
        for (i, (class, register)) in inputs.iter().enumerate() {
            let at = 16 * i;
            let _ = match class {
                Class::Pred => writeln!(
                    body,
                    "    ld.global.u32 %word, [%in+{at}];\n    setp.ne.u32 {register}, %word, 0;"
                ),
                class => writeln!(body, "    ld.global.{} {register}, [%in+{at}];", class.ty()),
            };
        }
        // What the statement leaves alone shows.
        for (class, register) in outputs.iter().filter(|o| !inputs.contains(o)) {
            let _ = match class {
                Class::Pred => writeln!(body, "    setp.ne.u32 {register}, 0, 0;"),
                Class::B8 | Class::B128 => Ok(()),
                class => writeln!(body, "    mov.{} {register}, {};", class.ty(), sentinel_text(*class)),
            };
        }
        let space = self.space();
        let (mut before, mut after) = (String::new(), String::new());
        let copy = |text: &mut String, to: &str, from: &str| {
            for at in (0..WINDOW).step_by(8) {
                let _ = writeln!(text, "    ld{from}+{at}];\n    st{to}+{at}], %long;");
            }
        };
        let input = format!(".global.b64 %long, [%in+{window}");
        let output = format!(".global.b64 [%out+{window}");
        match self.memory {
            None => {}
            Some(Memory::Register) => {
                let (name, declaration) = match space {
                    Some("shared") => (
                        "window",
                        format!("    .shared .align 64 .b8 window[{}];", WINDOW * THREADS),
                    ),
                    Some("local") => ("window", format!("    .local .align 64 .b8 window[{WINDOW}];")),
                    Some("const") => ("constants", String::new()),
                    _ => ("windows", String::new()),
                };
                let _ = writeln!(declarations, "{declaration}\n    .reg .b64 %rd1;");
                let _ = writeln!(before, "    mov.u64 %rd1, {name};");
                if space != Some("local") {
                    let _ = writeln!(before, "    mad.wide.u32 %rd1, %thread, {WINDOW}, %rd1;");
                }
                match space {
                    // The host filled it.
                    Some("const") => {}
                    Some(space @ ("shared" | "local")) => {
                        copy(&mut before, &format!(".{space}.b64 [%rd1"), &input);
                        copy(&mut after, &output, &format!(".{space}.b64 %long, [%rd1"));
                    }
                    // Generic addresses of some threads are global, of others shared.
                    None if !self.is_vector_atomic() => {
                        let _ = writeln!(
                            declarations,
                            "    .shared .align 64 .b8 window[{}];\n    .reg .b64 %other;\n    .reg .pred %odd;",
                            WINDOW * THREADS
                        );
                        let _ = writeln!(
                            before,
                            "    mov.u64 %other, window;\n    cvta.shared.u64 %other, %other;
    mad.wide.u32 %other, %thread, {WINDOW}, %other;\n    and.b32 %word, %thread, 1;
    setp.ne.u32 %odd, %word, 0;\n    selp.b64 %rd1, %other, %rd1, %odd;"
                        );
                        copy(&mut before, ".b64 [%rd1", &input);
                        copy(&mut after, &output, ".b64 %long, [%rd1");
                    }
                    Some(_) | None => {
                        copy(&mut before, ".global.b64 [%rd1", &input);
                        copy(&mut after, &output, ".global.b64 %long, [%rd1");
                    }
                }
            }
            Some(Memory::Global) => {
                // One variable: one thread after the other.
                return self.one_by_one(name, &declarations, &body, record, window);
            }
            Some(Memory::KernelParam) => {
                // The launch gives the same bytes to all threads.
            }
            Some(Memory::FunctionParam | Memory::Argument) => {
                return self.through_a_function(name, &declarations, &body, record, window);
            }
        }
        let mut results = String::new();
        keep(&mut results, &outputs);
        let _ = write!(
            text,
            ".visible .entry {name}(.param .u64 in, .param .u64 out, .param .align 64 .b8 pvar[{WINDOW}])\n{{
{declarations}    .reg .b32 %word, %thread;\n    .reg .b64 %in, %out, %long;
{START}    mad.wide.u32 %in, %thread, {record}, %in;\n    mad.wide.u32 %out, %thread, {record}, %out;
{body}{before}    {}\n{after}{results}    ret;\n}}\n",
            self.statement()
        );
        text
    }

    fn one_by_one(&self, name: &str, declarations: &str, body: &str, record: usize, window: usize) -> String {
        let mut results = String::new();
        keep(&mut results, &self.outputs());
        format!(
            ".visible .entry {name}(.param .u64 in, .param .u64 out, .param .align 64 .b8 pvar[{WINDOW}])\n{{
{declarations}    .reg .b32 %word, %thread;\n    .reg .b64 %in, %out, %long;\n    .reg .pred %more;
{START}    setp.ne.u32 %more, %thread, 0;\n    @%more ret;\nnext:
{body}    ld.global.b64 %long, [%in+{window}];\n    st.global.b64 [gvar], %long;\n    {}
    ld.global.b64 %long, [gvar];\n    st.global.b64 [%out+{window}], %long;
{results}    add.u64 %in, %in, {record};\n    add.u64 %out, %out, {record};\n    add.u32 %thread, %thread, 1;
    setp.lt.u32 %more, %thread, {THREADS};\n    @%more bra next;\n    ret;\n}}\n",
            self.row.example
        )
    }

    /// A function that takes the window as `fparam`, or makes it as `oparam` and hands it on.
    fn through_a_function(&self, name: &str, declarations: &str, body: &str, record: usize, window: usize) -> String {
        let mut results = String::new();
        keep(&mut results, &self.outputs());
        let mut parts = [String::new(), String::new(), String::new()];
        for at in (0..WINDOW).step_by(8) {
            let _ = writeln!(
                parts[0],
                "    ld.global.b64 %long, [%in+{}];\n    st.param.b64 [handed+{at}], %long;",
                window + at
            );
            let _ = writeln!(
                parts[1],
                "    ld.param.b64 %long, [fparam+{at}];\n    st.global.b64 [%out+{}], %long;",
                window + at
            );
            let _ = writeln!(
                parts[2],
                "    ld.global.b64 %long, [%in+{}];\n    st.param.b64 [oparam+{at}], %long;",
                window + at
            );
        }
        let [handed, taken, made] = parts;
        let head = "    .reg .b32 %word, %thread;\n    .reg .b64 %in, %out, %long;\n";
        let entry =
            format!(".visible .entry {name}(.param .u64 in, .param .u64 out, .param .align 64 .b8 pvar[{WINDOW}])");
        let step =
            format!("    mad.wide.u32 %in, %thread, {record}, %in;\n    mad.wide.u32 %out, %thread, {record}, %out;\n");
        let take = format!("(.param .align 64 .b8 fparam[{WINDOW}], .param .u64 fin, .param .u64 fout)");
        let own = "    ld.param.u64 %in, [fin];\n    ld.param.u64 %out, [fout];\n";
        let call = |what: &str| {
            format!(
                "    .param .u64 a;\n    st.param.u64 [a], %in;\n    .param .u64 b;\n    st.param.u64 [b], %out;
    call.uni {name}_f, ({what}, a, b);\n"
            )
        };
        if self.memory == Some(Memory::FunctionParam) {
            format!(
                ".func {name}_f{take}\n{{\n{declarations}{head}{own}{body}    {}\n{results}    ret;\n}}
{entry}\n{{\n{head}{START}{step}    {{\n    .param .align 64 .b8 handed[{WINDOW}];\n{handed}{}    }}\n    ret;\n}}\n",
                self.row.example,
                call("handed")
            )
        } else {
            format!(
                ".func {name}_f{take}\n{{\n{head}{own}{taken}    ret;\n}}
{entry}\n{{\n{declarations}{head}{START}{step}{body}    {{\n    .param .align 64 .b8 oparam[{WINDOW}];\n{made}    {}
{}    }}\n    ret;\n}}\n",
                self.row.example,
                call("oparam")
            )
        }
    }
}

const START: &str = "    ld.param.u64 %in, [in];\n    ld.param.u64 %out, [out];\n    mov.u32 %thread, %tid.x;\n";

/// Writes results to the record.
fn keep(text: &mut String, outputs: &[(Class, &str)]) {
    for (i, (class, register)) in outputs.iter().enumerate() {
        let at = 16 * i;
        let _ = match class {
            Class::Pred => writeln!(
                text,
                "    selp.u32 %word, 1, 0, {register};\n    st.global.u32 [%out+{at}], %word;"
            ),
            class => writeln!(text, "    st.global.{} [%out+{at}], {register};", class.ty()),
        };
    }
}

/// What a register holds that the statement should overwrite.
fn sentinel_text(class: Class) -> &'static str {
    match class {
        Class::B16 => "0xa5a5",
        Class::F32 => "0fa5a5a5a5",
        Class::F64 => "0da5a5a5a5a5a5a5a5",
        Class::B32 => "0xa5a5a5a5",
        _ => "0xa5a5a5a5a5a5a5a5",
    }
}

/// Splits operands at the commas outside of braces.
fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut start) = (0, 0);
    let mut parts = Vec::new();
    for (i, c) in text.char_indices() {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    if !text[start..].trim().is_empty() {
        parts.push(text[start..].trim());
    }
    parts
}

/// The values that an operand stands for: elements of a vector, both of `p|q`.
fn flatten(text: &str) -> Option<Vec<Operand>> {
    if let Some(inner) = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')) {
        return inner.split(',').map(|part| single(part.trim())).collect();
    }
    text.split('|').map(single).collect()
}

fn single(text: &str) -> Option<Operand> {
    if text == "_" {
        return Some(Operand::Sink);
    }
    if let Some(register) = text.strip_prefix('!') {
        return (Class::of(register) == Some(Class::Pred)).then(|| Operand::Not(register.to_owned()));
    }
    if text.starts_with('%') {
        return Class::of(text).map(|class| Operand::Register(class, text.to_owned()));
    }
    let (variable, offset) = text.split_once('+').unwrap_or((text, "0"));
    if let Some(variable) = ["gvar", "svar"].into_iter().find(|known| *known == variable) {
        return offset.parse().ok().map(|offset| Operand::Address(variable, offset));
    }
    let constant = text.starts_with(|c: char| c.is_ascii_digit() || c == '-') || text == "WARP_SZ";
    constant.then(|| Operand::Constant(text.to_owned()))
}
