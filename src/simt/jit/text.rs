//! LLVM's text: names of values, types, constants.

use std::collections::HashMap;
use std::fmt::Write;

/// What an operation is done on: a number, or as many as a part of a warp has lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    One,
    Lanes(u32),
}

impl Form {
    fn of(self, element: &str) -> String {
        match self {
            Form::One => element.to_owned(),
            Form::Lanes(lanes) => format!("<{lanes} x {element}>"),
        }
    }
    /// Whether bits of these lanes are flags ([`Text::flag`]).
    pub fn has_flags(self) -> bool {
        matches!(self, Form::Lanes(..LANES_WITH_BITS))
    }
    pub fn int(self, bits: u32) -> String {
        self.of(&format!("i{bits}"))
    }
    pub fn float(self, bits: u32) -> String {
        self.of(match bits {
            16 => "half",
            32 => "float",
            _ => "double",
        })
    }
    /// The end of an intrinsic's name.
    pub fn suffix(self, element: &str) -> String {
        match self {
            Form::One => element.to_owned(),
            Form::Lanes(lanes) => format!("v{lanes}{element}"),
        }
    }
    /// The same integer everywhere.
    pub fn constant(self, bits: u32, value: u64) -> String {
        let value = match bits {
            1 => (if value & 1 != 0 { "true" } else { "false" }).to_owned(),
            64 => (value as i64).to_string(),
            _ => {
                let spare = 64 - bits;
                ((value << spare) as i64 >> spare).to_string()
            }
        };
        match self {
            Form::One => value,
            Form::Lanes(_) if value == "0" => "zeroinitializer".to_owned(),
            Form::Lanes(_) => format!("splat (i{bits} {value})"),
        }
    }
    /// The same float everywhere, by its bits as a double.
    pub fn float_constant(self, bits: u32, value: f64) -> String {
        let one = format!("0x{:016X}", value.to_bits());
        match self {
            Form::One => one,
            Form::Lanes(_) => format!("splat ({} {one})", Form::One.float(bits)),
        }
    }
}

/// Instructions one below the other, with values numbered through a function.
#[derive(Default)]
pub struct Text {
    pub lines: String,
    values: u32,
    /// Labels so far: values that were made since the last one can be used here.
    pub labels: u32,
    /// Vectors of bits that stand for the signs of other vectors.
    signs: HashMap<String, String>,
}

/// Lanes of vectors that the CPU has registers for bits for. With shorter ones LLVM keeps bits in half words where they live on
/// behind a label, and packs and unpacks them. So they are *flags* there, 0 or -1 in 32 bits of each lane, of which bits are the
/// signs.
const LANES_WITH_BITS: u32 = 16;

impl Text {
    /// A fresh name.
    pub fn name(&mut self, what: &str) -> String {
        self.values += 1;
        format!("{what}{}", self.values)
    }
    /// A value that an instruction gives.
    pub fn value(&mut self, instruction: impl AsRef<str>) -> String {
        let name = self.name("%v");
        let _ = writeln!(self.lines, "  {name} = {}", instruction.as_ref());
        name
    }
    /// An instruction without a value.
    pub fn line(&mut self, instruction: impl AsRef<str>) {
        let _ = writeln!(self.lines, "  {}", instruction.as_ref());
    }
    pub fn label(&mut self, label: &str) {
        let _ = writeln!(self.lines, "{label}:");
        self.labels += 1;
    }

    pub fn binary(&mut self, op: &str, ty: &str, a: &str, b: &str) -> String {
        self.value(format!("{op} {ty} {a}, {b}"))
    }
    /// An operation on bits.
    pub fn logic(&mut self, op: &str, form: Form, a: &str, b: &str) -> String {
        if !form.has_flags() {
            return self.binary(op, &form.int(1), a, b);
        }
        let [a, b] = [a, b].map(|bits| self.flag(form, bits));
        let flag = self.binary(op, &form.int(32), &a, &b);
        self.of_flag(form, &flag)
    }
    pub fn select(&mut self, form: Form, ty: &str, by: &str, a: &str, b: &str) -> String {
        let bits = form.int(1);
        if ty == bits && form.has_flags() {
            let [a, b] = [a, b].map(|bits| self.flag(form, bits));
            let flag = self.select(form, &form.int(32), by, &a, &b);
            return self.of_flag(form, &flag);
        }
        self.value(format!("select {bits} {by}, {ty} {a}, {ty} {b}"))
    }
    /// Bits as they live on: flags, where vectors are short.
    pub fn flag(&mut self, form: Form, bits: &str) -> String {
        if !form.has_flags() {
            return bits.to_owned();
        }
        match self.signs.get(bits) {
            Some(flag) => flag.clone(),
            None if bits == form.constant(1, 0) => form.constant(32, 0),
            None if bits == form.constant(1, 1) => form.constant(32, u64::MAX),
            None => self.convert("sext", &form.int(1), bits, &form.int(32)),
        }
    }
    /// The way back.
    pub fn of_flag(&mut self, form: Form, flag: &str) -> String {
        if !form.has_flags() {
            return flag.to_owned();
        }
        let bits = self.value(format!("icmp slt {} {flag}, {}", form.int(32), form.constant(32, 0)));
        self.signs.insert(bits.clone(), flag.to_owned());
        bits
    }
    pub fn convert(&mut self, op: &str, from: &str, value: &str, to: &str) -> String {
        if from == to {
            return value.to_owned();
        }
        self.value(format!("{op} {from} {value} to {to}"))
    }
    /// One value everywhere.
    pub fn splat(&mut self, form: Form, element: &str, value: &str) -> String {
        let Form::Lanes(lanes) = form else {
            return value.to_owned();
        };
        if element == "i1" && form.has_flags() {
            let flag = self.convert("sext", "i1", value, "i32");
            let flag = self.splat(form, "i32", &flag);
            return self.of_flag(form, &flag);
        }
        let ty = format!("<{lanes} x {element}>");
        let one = self.value(format!("insertelement {ty} poison, {element} {value}, i64 0"));
        self.value(format!(
            "shufflevector {ty} {one}, {ty} poison, <{lanes} x i32> zeroinitializer"
        ))
    }
    /// As a float of as many bits.
    pub fn float(&mut self, form: Form, bits: u32, value: &str) -> String {
        self.convert("bitcast", &form.int(bits), value, &form.float(bits))
    }
    /// As an integer of as many bits.
    pub fn bits(&mut self, form: Form, bits: u32, value: &str) -> String {
        self.convert("bitcast", &form.float(bits), value, &form.int(bits))
    }
    /// An integer of another width; `signed` says how it grows.
    pub fn resize(&mut self, form: Form, from: u32, value: &str, to: u32, signed: bool) -> String {
        let op = match (to > from, signed) {
            (false, _) => "trunc",
            (true, false) => "zext",
            (true, true) => "sext",
        };
        self.convert(op, &form.int(from), value, &form.int(to))
    }
    /// A call of an intrinsic that takes and gives one type.
    pub fn intrinsic(&mut self, name: &str, form: Form, element: &str, arguments: &[&str]) -> String {
        let ty = form.of(match element {
            "f32" => "float",
            "f64" => "double",
            other => other,
        });
        let arguments: Vec<String> = arguments.iter().map(|argument| format!("{ty} {argument}")).collect();
        self.value(format!(
            "call {ty} @llvm.{name}.{}({})",
            form.suffix(element),
            arguments.join(", ")
        ))
    }
}
