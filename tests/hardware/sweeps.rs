//! Whole functions: all arguments of 32 or 16 bits, and grids of special values, hashed; and the raw values from which
//! models of the functions can be made whose bits are not public.

use std::fmt::Write;

use sha2::{Digest, Sha256};

use crate::driver::{Buffer, Driver, Launch, Module};

/// Arguments in one hash.
pub const CHUNK: usize = 1 << 24;

/// A body of PTX from `%r1`, a number, to `%r2`; or to `%rd2` where it ends in 64 bits.
pub struct Sweep {
    pub name: String,
    /// The compute capability that it needs, and the PTX version.
    pub needs: (i32, &'static str),
    body: String,
    /// Of how many numbers, from 0.
    pub count: u64,
    wide: bool,
    /// Arguments of a grid: constants of 32 or 64 bits.
    grid: Vec<u64>,
}

/// From bits in `%r1` to bits in `%r2`.
fn unary(name: &str, needs: (i32, &'static str), count: u64, body: impl Into<String>) -> Sweep {
    Sweep {
        name: name.to_owned(),
        needs,
        body: body.into(),
        count,
        wide: false,
        grid: Vec::new(),
    }
}

const ANY: (i32, &str) = (75, "7.5");

/// NaNs of both kinds with payloads, infinities, one, zero, subnormal: of an IEEE format of so many bits of exponent and
/// significand, in both signs.
fn specials(exponent: u32, significand: u32) -> Vec<u64> {
    let (one, top) = (
        ((1u64 << (exponent - 1)) - 1) << significand,
        ((1u64 << exponent) - 1) << significand,
    );
    let quiet = 1u64 << (significand - 1);
    let positive = [
        0,
        1,
        one,
        one | 1,
        top - 1,
        top,
        top | quiet,
        top | quiet | 5,
        top | 1,
        top | 5,
    ];
    let sign = 1u64 << (exponent + significand);
    positive
        .iter()
        .copied()
        .chain(positive.iter().map(|bits| bits | sign))
        .collect()
}

/// Numbers of `f32` whose products and quotients lie about the least normal one.
fn beside_the_least() -> Vec<u64> {
    let positive = [
        0x0080_0000u64,
        0x0080_0001,
        0x00ff_ffff,
        0x0100_0000,
        0x3f7f_ffff,
        0x3f7f_fffe,
        0x3f80_0000,
        0x3f80_0001,
        0x3f00_0000,
        0x7e80_0000,
        0x7e80_0001,
        0x7eff_ffff,
        0x007f_ffff,
    ];
    positive.iter().flat_map(|bits| [*bits, bits | 1 << 31]).collect()
}

pub fn all() -> Vec<Sweep> {
    let mut list = Vec::new();
    // Approximations (A, and what B to D are about).
    for name in [
        "rcp.approx",
        "rcp.approx.ftz",
        "rsqrt.approx",
        "rsqrt.approx.ftz",
        "sqrt.approx",
        "sqrt.approx.ftz",
        "ex2.approx",
        "ex2.approx.ftz",
        "lg2.approx",
        "lg2.approx.ftz",
        "sin.approx",
        "sin.approx.ftz",
        "cos.approx",
        "cos.approx.ftz",
        "tanh.approx",
    ] {
        let body = format!("mov.b32 %f0, %r1; {name}.f32 %f1, %f0; mov.b32 %r2, %f1;");
        list.push(unary(&format!("{name}.f32"), ANY, 1 << 32, body));
    }
    for name in ["rcp.approx.ftz.f64", "rsqrt.approx.ftz.f64"] {
        let body = format!("mov.b64 %fd0, {{%r3, %r1}}; {name} %fd1, %fd0; mov.b64 {{%r4, %r2}}, %fd1;");
        list.push(unary(name, ANY, 1 << 32, body));
    }
    // Half precision (E).
    for (name, needs) in [
        ("tanh.approx.f16", ANY),
        ("ex2.approx.f16", ANY),
        ("ex2.approx.ftz.f16", ANY),
        ("tanh.approx.bf16", (90, "7.8")),
        ("ex2.approx.ftz.bf16", (90, "7.8")),
    ] {
        let body = format!("cvt.u16.u32 %h0, %r1; {name} %h1, %h0; cvt.u32.u16 %r2, %h1;");
        list.push(unary(name, needs, 1 << 16, body));
    }
    // Conversions (F).
    for (to, register, needs) in [
        ("rn.f16", "%h1", ANY),
        ("rz.f16", "%h1", ANY),
        ("rn.relu.f16", "%h1", (80, "7.0")),
        ("rn.bf16", "%h1", (80, "7.0")),
        ("rz.bf16", "%h1", (80, "7.0")),
        ("rna.tf32", "%r2", (80, "7.0")),
        ("rn.tf32", "%r2", (90, "7.8")),
        ("rz.tf32", "%r2", (90, "7.8")),
        ("rni.s8", "%r2", ANY),
        ("rzi.u8", "%r2", ANY),
        ("rni.s16", "%h1", ANY),
        ("rzi.u16", "%h1", ANY),
        ("rni.s32", "%r2", ANY),
        ("rzi.s32", "%r2", ANY),
        ("rmi.u32", "%r2", ANY),
        ("rpi.ftz.s32", "%r2", ANY),
        ("rni.f32", "%f1", ANY),
        ("rzi.sat.f32", "%f1", ANY),
    ] {
        let after = match register {
            "%h1" => "cvt.u32.u16 %r2, %h1;",
            "%f1" => "mov.b32 %r2, %f1;",
            _ => "",
        };
        let body = format!("mov.b32 %f0, %r1; cvt.{to}.f32 {register}, %f0; {after}");
        list.push(unary(&format!("cvt.{to}.f32"), needs, 1 << 32, body));
    }
    for to in ["e4m3x2", "e5m2x2"] {
        let body = format!(
            "mov.b32 %f0, %r1; mov.b32 %f1, 0f3F800000; cvt.rn.satfinite.{to}.f32 %h1, %f0, %f1; cvt.u32.u16 %r2, %h1;"
        );
        list.push(unary(&format!("cvt.rn.satfinite.{to}.f32"), (89, "8.1"), 1 << 32, body));
    }
    // Special values with each other (G).
    for (ty, load, store, needs, specials) in [
        ("f32", "mov.b32 %fA, %rB;", "mov.b32 %r2, %f3;", ANY, specials(8, 23)),
        (
            "f64",
            "mov.b64 %fdA, %rdB;",
            "mov.b64 %rd2, %fd3;",
            ANY,
            specials(11, 52),
        ),
        (
            "f16",
            "cvt.u16.u32 %hA, %rB;",
            "cvt.u32.u16 %r2, %h3;",
            ANY,
            specials(5, 10),
        ),
        (
            "bf16",
            "cvt.u16.u32 %hA, %rB;",
            "cvt.u32.u16 %r2, %h3;",
            (90, "7.8"),
            specials(8, 7),
        ),
    ] {
        let register = match ty {
            "f32" => "%f",
            "f64" => "%fd",
            _ => "%h",
        };
        let operations: &[(&str, usize)] = match ty {
            "f32" => &[
                ("add.rn", 2),
                ("sub.rm", 2),
                ("mul.rn", 2),
                ("fma.rn", 3),
                ("min", 2),
                ("max", 2),
                ("div.rn", 2),
                ("sqrt.rn", 1),
                ("add.ftz", 2),
                ("min.NaN", 2),
            ],
            "f64" => &[
                ("add.rn", 2),
                ("sub.rm", 2),
                ("mul.rn", 2),
                ("fma.rn", 3),
                ("min", 2),
                ("max", 2),
                ("div.rn", 2),
                ("sqrt.rn", 1),
            ],
            "f16" => &[
                ("add.rn", 2),
                ("sub.rn", 2),
                ("mul.rn", 2),
                ("fma.rn", 3),
                ("fma.rn.relu", 3),
                ("min", 2),
                ("max.NaN", 2),
            ],
            _ => &[
                ("add.rn", 2),
                ("mul.rn", 2),
                ("fma.rn", 3),
                ("fma.rn.relu", 3),
                ("min", 2),
                ("max.NaN", 2),
            ],
        };
        for (operation, arguments) in operations {
            let needs = match () {
                () if operation.contains("NaN")
                    || operation.contains("relu")
                    || ty == "f16" && operation.starts_with("m") && *operation != "mul.rn" =>
                {
                    (needs.0.max(80), if needs.0 > 80 { needs.1 } else { "7.0" })
                }
                () => needs,
            };
            let wide = ty == "f64";
            let mut body = String::new();
            // The number's digits, base the size of the grid, choose the arguments.
            let size = specials.len();
            for at in 0..*arguments {
                let _ = write!(
                    body,
                    "rem.u32 %r5, %r1, {size}; div.u32 %r1, %r1, {size}; mov.u64 %rd4, grid; "
                );
                let _ = match wide {
                    true => write!(body, "mad.wide.u32 %rd4, %r5, 8, %rd4; ld.const.b64 %rd5, [%rd4]; "),
                    false => write!(body, "mad.wide.u32 %rd4, %r5, 4, %rd4; ld.const.b32 %r6, [%rd4]; "),
                };
                let load = load
                    .replace('A', &at.to_string())
                    .replace("%rdB", "%rd5")
                    .replace("%rB", "%r6");
                let _ = write!(body, "{load} ");
            }
            let list_of: Vec<String> = (0..*arguments).map(|at| format!("{register}{at}")).collect();
            let _ = write!(body, "{operation}.{ty} {register}3, {}; {store}", list_of.join(", "));
            list.push(Sweep {
                name: format!("grid.{operation}.{ty}"),
                needs,
                body,
                count: (size as u64).pow(*arguments as u32),
                wide,
                grid: specials.clone(),
            });
        }
    }
    // What an addition in memory makes of them: the second operand is added to the first, which is there.
    for (ty, operation, load, needs, specials) in [
        ("f32", "add.f32", "mov.b32 %f1, %r6;", ANY, specials(8, 23)),
        ("f64", "add.f64", "mov.b64 %fd1, %rd5;", ANY, specials(11, 52)),
        ("f16", "add.noftz.f16", "cvt.u16.u32 %h1, %r6;", ANY, specials(5, 10)),
        (
            "bf16",
            "add.noftz.bf16",
            "cvt.u16.u32 %h1, %r6;",
            (90, "7.8"),
            specials(8, 7),
        ),
    ] {
        let (wide, size) = (ty == "f64", specials.len());
        let (bytes, register, bits) = match ty {
            "f64" => (8, "%fd", "%rd"),
            "f32" => (4, "%f", "%r"),
            _ => (4, "%h", "%r"),
        };
        let value = if wide { "%rd5" } else { "%r6" };
        let argument = |index: &str| {
            format!(
                "mov.u64 %rd4, grid; mad.wide.u32 %rd4, {index}, {bytes}, %rd4; ld.const.b{} {value}, [%rd4]; ",
                8 * bytes
            )
        };
        for space in ["global", "shared"] {
            let place = match space {
                "global" => format!("mad.wide.u32 %rd6, %r0, {bytes}, %rd0;"),
                _ => format!(
                    "{{ .shared .align 8 .b8 own[2048]; mov.u64 %rd6, own; }} mov.u32 %r5, %tid.x; mad.wide.u32 %rd6, %r5, {bytes}, %rd6;"
                ),
            };
            list.push(Sweep {
                name: format!("atom.{space}.{operation}"),
                needs,
                body: format!(
                    "{place} rem.u32 %r4, %r1, {size}; div.u32 %r5, %r1, {size}; {}st.{space}.b{} [%rd6], {value}; {}{load} \
                     atom.{space}.{operation} {register}2, [%rd6], {register}1; ld.{space}.b{} {bits}2, [%rd6];",
                    argument("%r4"),
                    8 * bytes,
                    argument("%r5"),
                    8 * bytes
                ),
                count: (size as u64).pow(2),
                wide,
                grid: specials.clone(),
            });
        }
    }
    // Results on both sides of the least normal number, flushed and not, in every rounding.
    let beside = beside_the_least();
    let size = beside.len();
    for (operation, arguments) in [("add", 2), ("mul", 2), ("fma", 3), ("div", 2), ("rcp", 1), ("sqrt", 1)] {
        for mode in ["rn", "rz", "rm", "rp"] {
            let mut body = String::new();
            for at in 0..arguments {
                let _ = write!(
                    body,
                    "rem.u32 %r5, %r1, {size}; div.u32 %r1, %r1, {size}; mov.u64 %rd4, grid; \
                     mad.wide.u32 %rd4, %r5, 4, %rd4; ld.const.b32 %r6, [%rd4]; mov.b32 %f{at}, %r6; "
                );
            }
            let list_of: Vec<String> = (0..arguments).map(|at| format!("%f{at}")).collect();
            let _ = write!(
                body,
                "{operation}.{mode}.ftz.f32 %f3, {}; mov.b32 %r2, %f3;",
                list_of.join(", ")
            );
            list.push(Sweep {
                name: format!("beside.{operation}.{mode}.ftz.f32"),
                needs: ANY,
                body,
                count: (size as u64).pow(arguments as u32),
                wide: false,
                grid: beside.clone(),
            });
        }
    }
    // What becomes of NaNs and infinities.
    for (operation, from, to) in [
        ("cvt.rn.f32.f64", "f64", "f32"),
        ("cvt.rn.f16.f64", "f64", "f16"),
        ("cvt.rn.bf16.f64", "f64", "bf16"),
        ("cvt.f64.f32", "f32", "f64"),
        ("cvt.f64.f16", "f16", "f64"),
        ("cvt.f64.bf16", "bf16", "f64"),
        ("cvt.f32.f16", "f16", "f32"),
        ("cvt.f32.bf16", "bf16", "f32"),
        ("cvt.rn.f32.bf16", "bf16", "f32"),
        ("cvt.rn.f16.f32", "f32", "f16"),
        ("cvt.rn.bf16.f32", "f32", "bf16"),
        ("cvt.rni.f64.f64", "f64", "f64"),
        ("cvt.rni.f32.f32", "f32", "f32"),
        ("abs.f32", "f32", "f32"),
        ("neg.f32", "f32", "f32"),
        ("abs.ftz.f32", "f32", "f32"),
        ("abs.f64", "f64", "f64"),
        ("neg.f64", "f64", "f64"),
        ("abs.f16", "f16", "f16"),
        ("neg.f16", "f16", "f16"),
        ("abs.bf16", "bf16", "bf16"),
        ("neg.bf16", "bf16", "bf16"),
        ("sqrt.rn.f64", "f64", "f64"),
        ("sqrt.rz.f64", "f64", "f64"),
        ("rcp.rn.f64", "f64", "f64"),
        ("sqrt.rn.f32", "f32", "f32"),
        ("rcp.rn.f32", "f32", "f32"),
        ("rsqrt.approx.f64", "f64", "f64"),
        ("ex2.approx.f32", "f32", "f32"),
    ] {
        let specials = match from {
            "f64" => specials(11, 52),
            "f32" => specials(8, 23),
            "f16" => specials(5, 10),
            _ => specials(8, 7),
        };
        let size = if from == "f64" { 8 } else { 4 };
        let load = match from {
            "f64" => "ld.const.b64 %rd5, [%rd4]; mov.b64 %fd0, %rd5;",
            "f32" => "ld.const.b32 %r6, [%rd4]; mov.b32 %f0, %r6;",
            _ => "ld.const.b32 %r6, [%rd4]; cvt.u16.u32 %h0, %r6;",
        };
        let register = |ty: &str| match ty {
            "f64" => "%fd",
            "f32" => "%f",
            _ => "%h",
        };
        // A sweep stores as many bits as its grid has.
        let store = match (to, size) {
            ("f64", 8) => "mov.b64 %rd2, %fd3;",
            ("f64", _) => "mov.b64 {%r3, %r2}, %fd3; xor.b32 %r2, %r2, %r3;",
            ("f32", 4) => "mov.b32 %r2, %f3;",
            ("f32", _) => "mov.b32 %r2, %f3; cvt.u64.u32 %rd2, %r2;",
            (_, 4) => "cvt.u32.u16 %r2, %h3;",
            _ => "cvt.u64.u16 %rd2, %h3;",
        };
        list.push(Sweep {
            name: format!("special.{operation}"),
            needs: (90, "7.8"),
            body: format!(
                "mov.u64 %rd4, grid; mad.wide.u32 %rd4, %r1, {size}, %rd4; {load} {operation} {}3, {}0; {store}",
                register(to),
                register(from)
            ),
            count: specials.len() as u64,
            wide: size == 8,
            grid: specials,
        });
    }
    // Integers where the manual leaves something to the machine (H).
    let hash = "mul.wide.u32 %rd4, %r1, 0x9E3779B9; mad.lo.u64 %rd4, %rd4, 6364136223846793005, 1442695040888963407; \
                shr.u64 %rd5, %rd4, 29; xor.b64 %rd4, %rd4, %rd5; mul.lo.u64 %rd4, %rd4, 0xBF58476D1CE4E5B9; \
                mov.b64 {%r3, %r4}, %rd4;";
    for operation in [
        "div.u32",
        "rem.u32",
        "div.s32",
        "rem.s32",
        "mul24.hi.s32",
        "mul24.hi.u32",
        "bfind.s32",
        "shl.b32",
        "shr.s32",
        "fns.b32",
    ] {
        let arguments = match operation {
            "bfind.s32" => "%r3",
            "fns.b32" => "%r3, %r5, %r6",
            _ => "%r3, %r4",
        };
        // Every sixteenth divisor is zero; amounts of shifts reach 63; offsets of fns are small and have both signs.
        let shape = match operation {
            "shl.b32" | "shr.s32" => "and.b32 %r4, %r4, 63;",
            "fns.b32" => "and.b32 %r5, %r4, 31; shr.u32 %r6, %r4, 28; sub.u32 %r6, %r6, 8;",
            _ => "and.b32 %r5, %r1, 15; setp.eq.u32 %p, %r5, 0; @%p mov.u32 %r4, 0;",
        };
        list.push(unary(
            &format!("random.{operation}"),
            ANY,
            1 << 22,
            format!("{hash} {shape} {operation} %r2, {arguments};"),
        ));
    }
    for operation in ["bfe.u64", "bfe.s64", "bfi.b64"] {
        // Positions and lengths beyond 255, which documents describe differently.
        let arguments = if operation == "bfi.b64" {
            "%rd4, %rd5, %r5, %r6"
        } else {
            "%rd4, %r5, %r6"
        };
        let body = format!("{hash} and.b32 %r5, %r3, 1023; shr.u32 %r6, %r4, 22; {operation} %rd2, {arguments};");
        list.push(Sweep {
            wide: true,
            ..unary(&format!("random.{operation}"), ANY, 1 << 22, body)
        });
    }
    list
}

impl Sweep {
    pub fn chunks(&self) -> usize {
        self.count.div_ceil(CHUNK as u64) as usize
    }

    pub fn text(&self) -> String {
        let (capability, version) = self.needs;
        let mut grid = String::new();
        if !self.grid.is_empty() {
            let (ty, bytes) = if self.wide { ("b64", 8) } else { ("b32", 4) };
            let values: Vec<String> = self.grid.iter().map(|bits| format!("{bits:#x}")).collect();
            let _ = write!(
                grid,
                ".const .align {bytes} .{ty} grid[{}] = {{ {} }};",
                self.grid.len(),
                values.join(", ")
            );
        }
        let (bytes, store) = if self.wide {
            (8, "st.global.b64 [%rd1], %rd2;")
        } else {
            (4, "st.global.b32 [%rd1], %r2;")
        };
        format!(
            ".version {version}\n.target sm_{capability}\n.address_size 64\n{grid}\n\
             .visible .entry sweep(.param .u64 out, .param .u32 base, .param .u32 count)\n{{\n\
             .reg .b64 %rd<8>; .reg .b32 %r<10>; .reg .f32 %f<8>; .reg .f64 %fd<8>; .reg .b16 %h<8>; .reg .pred %p, %q;\n\
             ld.param.u64 %rd0, [out]; ld.param.u32 %r8, [base]; ld.param.u32 %r9, [count];\n\
             mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r0, %r0, %r1, %r2;\n\
             setp.ge.u32 %q, %r0, %r9; @%q exit;\n\
             add.u32 %r1, %r8, %r0; mov.u32 %r3, 0;\n{}\n\
             mad.wide.u32 %rd1, %r0, {bytes}, %rd0; {store}\nret;\n}}\n",
            self.body
        )
    }

    /// The sweep on a device, ready to run.
    ///
    /// # Errors
    /// What kept it from being loaded.
    pub fn on<'a>(&self, driver: &'a Driver) -> Result<Loaded<'a>, String> {
        let bytes = if self.wide { 8 } else { 4 };
        let most = self.count.min(CHUNK as u64) as usize * bytes;
        Ok(Loaded {
            module: driver.module(&self.text())?,
            buffer: driver.buffer(&vec![0; most])?,
            count: self.count,
            bytes,
        })
    }
}

/// A sweep's kernel and the room for the results of a chunk.
pub struct Loaded<'a> {
    module: Module<'a>,
    buffer: Buffer<'a>,
    count: u64,
    bytes: usize,
}

impl Loaded<'_> {
    /// The results of a chunk, little-endian.
    ///
    /// # Errors
    /// What kept it from being computed.
    pub fn values(&self, chunk: usize) -> Result<Vec<u8>, String> {
        let base = chunk as u64 * CHUNK as u64;
        let count = (self.count - base).min(CHUNK as u64) as u32;
        let launch = Launch {
            entry: "sweep",
            grid: [count.div_ceil(256), 1, 1],
            block: [256, 1, 1],
            shared: 0,
            cooperative: false,
            cluster: None,
        };
        let parameters = [
            self.buffer.address.to_le_bytes().to_vec(),
            (base as u32).to_le_bytes().to_vec(),
            count.to_le_bytes().to_vec(),
        ];
        self.module
            .run(&launch, &parameters)?
            .map_err(|failure| format!("error {}", failure.0))?;
        let mut values = self.buffer.read()?;
        values.truncate(count as usize * self.bytes);
        Ok(values)
    }
}

/// Sixteen digits of the SHA-256 of a chunk's results.
pub fn hash(values: &[u8]) -> String {
    let digest = Sha256::digest(values);
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Raw results from which models can be made: a name, of which sweep, from which number to before which and every how many,
/// and what they are told as differences from.
type Dump = (&'static str, &'static str, Vec<(u64, u64, usize)>, fn(u32) -> u32);

/// B to D.
pub fn dumps() -> Vec<Dump> {
    let octave = |exponent: u64| (exponent << 23, (exponent + 1) << 23, 1);
    // tanh: exponents -8 to 3. The unit does not see an argument's low bits: ever fewer of them, until the last octave.
    let tanh = [6, 6, 6, 5, 5, 4, 4, 4, 3, 2, 0, 0]
        .iter()
        .zip(119..)
        .map(|(unseen, exponent)| (exponent << 23, (exponent + 1) << 23, 1 << unseen))
        .collect();
    fn wide(high: u32) -> f64 {
        f64::from_bits(u64::from(high) << 32)
    }
    vec![
        ("sqrt", "sqrt.approx.f32", vec![octave(127), octave(128)], |x| {
            f32::from_bits(x).sqrt().to_bits()
        }),
        (
            "rcp64h",
            "rcp.approx.ftz.f64",
            vec![(0x3ff0_0000, 0x4000_0000, 1)],
            |x| ((1.0 / wide(x)).to_bits() >> 32) as u32,
        ),
        (
            "rsqrt64h",
            "rsqrt.approx.ftz.f64",
            vec![(0x3ff0_0000, 0x4010_0000, 1)],
            |x| ((1.0 / wide(x).sqrt()).to_bits() >> 32) as u32,
        ),
        ("tanh", "tanh.approx.f32", tanh, |x| {
            (f64::from(f32::from_bits(x)).tanh() as f32).to_bits()
        }),
    ]
}
