//! Registers between code and the interpreter: in the window, and for kernels in scratch memory, where each has a number for
//! every lane of the warp.

use std::fmt::Write;

use crate::isa::lanes::Width;
use crate::program::Reg;

use super::super::compute::bits_of;
use super::super::plan::Kind;
use super::super::text::Form;
use super::Emit;

impl Emit<'_> {
    /// The numbers of a line from the window, where all lanes are on it.
    pub(super) fn bases_in_slot(&mut self, reg: Reg, (window, parts): (&str, bool), how: &str) -> Vec<String> {
        let bits = bits_of(reg.width).unwrap_or(32);
        let slot = self.slot(reg.number);
        (0..if parts { self.parts } else { 1 })
            .map(|part| {
                let lane = part * self.lanes as usize;
                let at = self.place(window, slot + lane * bits as usize / 8);
                self.text.value(format!("load i{bits}, ptr {at}{how}"))
            })
            .collect()
    }

    /// A number for each lane from memory: so many bytes behind a place, one after the other; predicates are bits of a word.
    pub(super) fn load_lanes(&mut self, place: &str, start: usize, width: Width) -> Vec<String> {
        let Some(bits @ 2..) = bits_of(width) else {
            // Where the CPU has registers for bits, they come from memory as they are.
            if self.lanes == 16 {
                return (0..self.parts)
                    .map(|part| {
                        let at = self.place(place, start + 2 * part);
                        let word = self.text.value(format!("load i16, ptr {at}"));
                        self.text.value(format!("bitcast i16 {word} to <16 x i1>"))
                    })
                    .collect();
            }
            let at = self.place(place, start);
            let word = self.text.value(format!("load i32, ptr {at}"));
            return self.spread(&word);
        };
        let ty = self.form().int(bits);
        let bytes = (bits / 8 * self.lanes) as usize;
        (0..self.parts)
            .map(|part| {
                let at = self.place(place, start + part * bytes);
                self.text.value(format!("load {ty}, ptr {at}, align {}", bytes.min(64)))
            })
            .collect()
    }

    /// The way back.
    pub(super) fn store_lanes(&mut self, place: &str, start: usize, width: Width, values: &[String]) {
        let Some(bits @ 2..) = bits_of(width) else {
            if self.lanes == 16 {
                for (part, bits) in values.iter().enumerate() {
                    let word = self.text.value(format!("bitcast <16 x i1> {bits} to i16"));
                    let at = self.place(place, start + 2 * part);
                    self.text.line(format!("store i16 {word}, ptr {at}"));
                }
                return;
            }
            let word = self.bits(values);
            let at = self.place(place, start);
            self.text.line(format!("store i32 {word}, ptr {at}"));
            return;
        };
        let ty = self.form().int(bits);
        let bytes = (bits / 8 * self.lanes) as usize;
        for (part, value) in values.iter().enumerate() {
            let at = self.place(place, start + part * bytes);
            self.text
                .line(format!("store {ty} {value}, ptr {at}, align {}", bytes.min(64)));
        }
    }

    /// All lanes of a register from the window.
    pub(super) fn load_slot(&mut self, reg: Reg) -> Vec<String> {
        self.load_lanes("%regs", self.slot(reg.number), reg.width)
    }

    /// A register to the window: the numbers of a line, or all lanes.
    pub(super) fn store_slot_whole(&mut self, reg: Reg, values: &[String]) {
        let values = self.all_lanes(reg, values);
        self.store_lanes("%regs", self.slot(reg.number), reg.width, &values);
    }

    /// All lanes of a register, from the numbers of a line or as they are.
    fn all_lanes(&mut self, reg: Reg, values: &[String]) -> Vec<String> {
        match self.kind(reg.number) {
            Kind::Line { step, .. } => self.along(bits_of(reg.width).unwrap_or(32), values, step),
            _ => values.to_vec(),
        }
    }

    /// A predicate that is the same in all lanes that take part, from the window, and whether it is not.
    pub(super) fn same_in_slot(&mut self, reg: Reg, lanes: &str) -> (String, String) {
        let at = self.place("%regs", self.slot(reg.number));
        let word = self.text.value(format!("load i32, ptr {at}"));
        let word = self.text.value(format!("and i32 {word}, {lanes}"));
        let some = self.text.value(format!("icmp ne i32 {word}, 0"));
        let missing = self.text.value(format!("icmp ne i32 {word}, {lanes}"));
        let differs = self.text.value(format!("and i1 {some}, {missing}"));
        (some, differs)
    }

    /// A register to the window, the numbers of a line or all lanes; lanes without their bit keep what is there.
    pub(super) fn store_slot(&mut self, reg: Reg, values: &[String], lanes: &str) {
        let slot = self.slot(reg.number);
        let at = self.place("%regs", slot);
        if reg.width == Width::Pred {
            let values = self.all_lanes(reg, values);
            let word = self.bits(&values);
            self.text
                .line(format!("call void @put1(ptr {at}, i32 {word}, i32 {lanes})"));
            return;
        }
        let bits = bits_of(reg.width).unwrap_or(32);
        if let Kind::Line { step, parts: false, .. } = self.kind(reg.number) {
            let step = Form::One.constant(bits, step);
            self.text.line(format!(
                "call void @line{bits}(ptr {at}, i{bits} {}, i{bits} {step}, i32 {lanes})",
                values[0]
            ));
            return;
        }
        let ty = self.form().int(bits);
        let values = self.all_lanes(reg, values);
        let values: Vec<String> = values.iter().map(|value| format!("{ty} {value}")).collect();
        self.text.line(format!(
            "call void @put{bits}(ptr {at}, {}, i32 {lanes})",
            values.join(", ")
        ));
    }
}

/// What code calls to bring registers to the window and back: rarely enough that it need not stand everywhere.
///
/// `put` and `line` write lanes whose bit is set: of values, or of a line. `first` gives the number of a line whose first lane
/// that takes part is in the window, `differs` whether any lane there is not on it.
pub(super) fn helpers(lanes: u32) -> String {
    let parts = 32 / lanes;
    let mut out = String::new();
    let list = |f: &dyn Fn(u32) -> String| (0..lanes).map(f).collect::<Vec<_>>().join(", ");
    let ones = list(&|lane| format!("i32 {}", 1u32 << lane));
    let mask = |part: u32| {
        format!(
            "  %w{part} = lshr i32 %lanes, {}\n  %i{part} = insertelement <{lanes} x i32> poison, i32 %w{part}, i64 0\n  \
             %s{part} = shufflevector <{lanes} x i32> %i{part}, <{lanes} x i32> poison, <{lanes} x i32> zeroinitializer\n  \
             %a{part} = and <{lanes} x i32> %s{part}, <{ones}>\n  \
             %m{part} = icmp ne <{lanes} x i32> %a{part}, zeroinitializer\n",
            part * lanes
        )
    };
    out.push_str(
        "define internal void @put1(ptr %at, i32 %word, i32 %lanes) #1 {\n  %o = load i32, ptr %at\n  %k = xor i32 %lanes, -1\n  \
         %a = and i32 %o, %k\n  %b = and i32 %word, %lanes\n  %c = or i32 %a, %b\n  store i32 %c, ptr %at\n  ret void\n}\n\n",
    );
    for bits in [16u32, 32, 64] {
        let ty = format!("<{lanes} x i{bits}>");
        let align = (bits / 8 * lanes).min(64);
        let place = |part: u32| {
            format!(
                "  %g{part} = getelementptr i8, ptr %at, i64 {}\n",
                part * lanes * bits / 8
            )
        };
        // What follows `%base` by `%step`.
        let along = |part: u32| {
            let numbers = list(&|lane| format!("i{bits} {}", part * lanes + lane));
            format!("  %x{part} = mul {ty} %steps, <{numbers}>\n  %v{part} = add {ty} %bases, %x{part}\n")
        };
        let splats = format!(
            "  %b0 = insertelement {ty} poison, i{bits} %base, i64 0\n  \
             %bases = shufflevector {ty} %b0, {ty} poison, <{lanes} x i32> zeroinitializer\n  \
             %t0 = insertelement {ty} poison, i{bits} %step, i64 0\n  \
             %steps = shufflevector {ty} %t0, {ty} poison, <{lanes} x i32> zeroinitializer\n"
        );
        let values: Vec<String> = (0..parts).map(|part| format!("{ty} %v{part}")).collect();
        let _ = writeln!(
            out,
            "define internal void @put{bits}(ptr %at, {}, i32 %lanes) #1 {{",
            values.join(", ")
        );
        for part in 0..parts {
            let _ = write!(
                out,
                "{}{}  %o{part} = load {ty}, ptr %g{part}, align {align}\n  \
                 %n{part} = select <{lanes} x i1> %m{part}, {ty} %v{part}, {ty} %o{part}\n  \
                 store {ty} %n{part}, ptr %g{part}, align {align}\n",
                mask(part),
                place(part)
            );
        }
        out.push_str("  ret void\n}\n\n");
        let _ = writeln!(
            out,
            "define internal void @line{bits}(ptr %at, i{bits} %base, i{bits} %step, i32 %lanes) #1 {{\n{splats}{}  \
             call void @put{bits}(ptr %at, {}, i32 %lanes)\n  ret void\n}}\n",
            (0..parts).map(along).collect::<String>(),
            values.join(", ")
        );
        let _ = writeln!(
            out,
            "define internal i{bits} @first{bits}(ptr %at, i{bits} %step, i32 %lanes) #1 {{\n  \
             %c = call i32 @llvm.cttz.i32(i32 %lanes, i1 false)\n  %f = and i32 %c, 31\n  %n = zext i32 %f to i64\n  \
             %g = getelementptr i{bits}, ptr %at, i64 %n\n  %v = load i{bits}, ptr %g\n  %i = {}\n  \
             %x = mul i{bits} %i, %step\n  %r = sub i{bits} %v, %x\n  ret i{bits} %r\n}}\n",
            match bits {
                16 => "trunc i32 %f to i16",
                32 => "add i32 %f, 0",
                _ => "zext i32 %f to i64",
            }
        );
        let _ = writeln!(
            out,
            "define internal i1 @differs{bits}(ptr %at, i{bits} %base, i{bits} %step, i32 %lanes) #1 {{\n{splats}  \
             %d = add i1 false, false"
        );
        let mut all = "%d".to_owned();
        for part in 0..parts {
            let _ = write!(
                out,
                "{}{}{}  %o{part} = load {ty}, ptr %g{part}, align {align}\n  \
                 %n{part} = icmp ne {ty} %o{part}, %v{part}\n  %y{part} = and <{lanes} x i1> %n{part}, %m{part}\n  \
                 %z{part} = bitcast <{lanes} x i1> %y{part} to i{lanes}\n  %e{part} = icmp ne i{lanes} %z{part}, 0\n  \
                 %d{part} = or i1 {all}, %e{part}\n",
                mask(part),
                place(part),
                along(part)
            );
            all = format!("%d{part}");
        }
        let _ = writeln!(out, "  ret i1 {all}\n}}\n");
    }
    out
}
