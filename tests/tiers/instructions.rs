//! Instructions that compute on registers, each legal by itself: one line of PTX with operands of the pools.

use super::random::Random;
use super::tree::Node;

/// How many registers of a pool bodies use.
pub const HALVES: usize = 6;
pub const WORDS: usize = 10;
pub const DOUBLES: usize = 6;
pub const FLOATS: usize = 8;
pub const LONGS: usize = 5;
pub const PREDICATES: usize = 6;
pub const F16: usize = 3;

/// Names registers, and draws instructions.
pub struct Draw {
    pub random: Random,
    /// Words that a body may read and must not write: numbers of threads, counters of the loops around it.
    pub readable: Vec<String>,
}

impl Draw {
    pub fn predicate(&mut self) -> String {
        format!("%p{}", self.random.below(PREDICATES))
    }
    /// A predicate or its negation.
    pub fn condition(&mut self) -> String {
        let not = if self.random.chance(40) { "!" } else { "" };
        format!("{not}{}", self.predicate())
    }
    pub fn half(&mut self) -> String {
        format!("%h{}", self.random.below(HALVES))
    }
    pub fn word(&mut self) -> String {
        format!("%r{}", self.random.below(WORDS))
    }
    pub fn double(&mut self) -> String {
        format!("%d{}", self.random.below(DOUBLES))
    }
    pub fn float(&mut self) -> String {
        format!("%f{}", self.random.below(FLOATS))
    }
    pub fn long(&mut self) -> String {
        format!("%e{}", self.random.below(LONGS))
    }
    pub fn f16(&mut self) -> String {
        format!("%x{}", self.random.below(F16))
    }
    /// A word that is only read: often the number of a thread or a counter.
    pub fn source(&mut self) -> String {
        if self.random.chance(20) && !self.readable.is_empty() {
            let i = self.random.below(self.readable.len());
            return self.readable[i].clone();
        }
        self.word()
    }

    /// A destination of `bits` bits, for integers.
    fn to(&mut self, bits: usize) -> String {
        match bits {
            16 => self.half(),
            32 => self.word(),
            _ => self.double(),
        }
    }

    /// An operand of `bits` bits, for integers; a number now and then.
    fn from(&mut self, bits: usize) -> String {
        if self.random.chance(22) {
            let value = self.random.integer();
            return match bits {
                16 => format!("{}", value as i16),
                32 => format!("{}", value as i32),
                _ => format!("{}", value as i64),
            };
        }
        if bits == 32 { self.source() } else { self.to(bits) }
    }

    fn operand_f32(&mut self) -> String {
        if self.random.chance(20) {
            return format!("0f{:08X}", (self.random.float() as f32).to_bits());
        }
        self.float()
    }

    fn operand_f64(&mut self) -> String {
        if self.random.chance(20) {
            return format!("0d{:016X}", self.random.float().to_bits());
        }
        self.long()
    }

    fn ftz(&mut self) -> &'static str {
        if self.random.chance(30) { ".ftz" } else { "" }
    }

    fn sat(&mut self) -> &'static str {
        if self.random.chance(15) { ".sat" } else { "" }
    }

    fn rounding(&mut self) -> &'static str {
        self.random.pick(&["", "", "", ".rn", ".rz", ".rm", ".rp"])
    }

    /// One node that computes: an instruction, guarded now and then, or a few that carry from one to the next.
    pub fn compute(&mut self) -> Node {
        if self.random.chance(3) {
            return self.carried();
        }
        let line = match self.random.below(100) {
            0..=33 => self.integers(),
            34..=45 => self.bits(),
            46..=57 => self.compare(),
            58..=74 => self.f32(),
            75..=81 => self.f64(),
            82..=84 => self.half_floats(),
            85..=94 => self.convert(),
            95 => self.packed(),
            _ => self.moves(),
        };
        let guard = self.random.chance(15).then(|| self.condition());
        Node::Unit {
            lines: vec![line],
            guard,
        }
    }

    fn integers(&mut self) -> String {
        let bits = self.random.pick(&[16, 32, 32, 32, 64]);
        let sign = self.random.pick(&["u", "s"]);
        let t = format!("{sign}{bits}");
        let (d, a, b, c) = (self.to(bits), self.from(bits), self.from(bits), self.from(bits));
        let wide = |bits| if bits == 16 { "32" } else { "64" };
        match self.random.below(18) {
            0..=2 => format!("add.{t} {d}, {a}, {b};"),
            3 => format!("sub.{t} {d}, {a}, {b};"),
            4 => format!("mul.lo.{t} {d}, {a}, {b};"),
            5 => format!("mul.hi.{t} {d}, {a}, {b};"),
            6 => format!("mad.lo.{t} {d}, {a}, {b}, {c};"),
            7 => format!("mad.hi.{t} {d}, {a}, {b}, {c};"),
            8 if bits < 64 => {
                let d = if wide(bits) == "32" { self.word() } else { self.double() };
                format!("mul.wide.{t} {d}, {a}, {b};")
            }
            9 if bits < 64 => {
                let (d, c) = if wide(bits) == "32" {
                    (self.word(), self.from(32))
                } else {
                    (self.double(), self.from(64))
                };
                format!("mad.wide.{t} {d}, {a}, {b}, {c};")
            }
            8..=10 => format!("div.{t} {d}, {a}, {b};"),
            11 => format!("rem.{t} {d}, {a}, {b};"),
            12 => format!("min.{t} {d}, {a}, {b};"),
            13 => format!("max.{t} {d}, {a}, {b};"),
            14 => {
                let op = self.random.pick(&["abs", "neg"]);
                format!("{op}.s{bits} {d}, {a};")
            }
            15 => format!("sad.{t} {d}, {a}, {b}, {c};"),
            16 => {
                let (d, a, b, c) = (self.word(), self.from(32), self.from(32), self.from(32));
                match self.random.below(5) {
                    0 => format!("add.sat.s32 {d}, {a}, {b};"),
                    1 => format!("sub.sat.s32 {d}, {a}, {b};"),
                    2 => format!("mad.hi.sat.s32 {d}, {a}, {b}, {c};"),
                    3 => format!("mul24.lo.{sign}32 {d}, {a}, {b};"),
                    _ => format!("mad24.hi.{sign}32 {d}, {a}, {b}, {c};"),
                }
            }
            _ => {
                let (d, a, b, c) = (self.word(), self.source(), self.source(), self.source());
                let other = self.random.pick(&["u32", "s32"]);
                format!("dp4a.{sign}32.{other} {d}, {a}, {b}, {c};")
            }
        }
    }

    fn bits(&mut self) -> String {
        let bits = self.random.pick(&[16, 32, 32, 32, 64]);
        let (d, a, b) = (self.to(bits), self.from(bits), self.from(bits));
        let wide = if bits == 16 { 32 } else { bits };
        let (dw, aw, bw) = (self.to(wide), self.from(wide), self.from(wide));
        let (x, y) = (self.from(32), self.from(32));
        // Distances are mostly those that programs use.
        let by = if self.random.chance(60) {
            self.random.below(40).to_string()
        } else {
            self.source()
        };
        let word = self.word();
        let sign = self.random.pick(&["u", "s"]);
        match self.random.below(20) {
            0 | 1 => format!("shl.b{bits} {d}, {a}, {by};"),
            2 | 3 => {
                let kind = self.random.pick(&["b", "u", "s"]);
                format!("shr.{kind}{bits} {d}, {a}, {by};")
            }
            4..=6 => {
                let op = self.random.pick(&["and", "or", "xor", "xor"]);
                format!("{op}.b{bits} {d}, {a}, {b};")
            }
            7 => {
                let op = self.random.pick(&["not", "cnot"]);
                format!("{op}.b{bits} {d}, {a};")
            }
            8 => {
                let table = self.random.below(256);
                let (x, y, z) = (self.source(), self.source(), self.source());
                format!("lop3.b32 {word}, {x}, {y}, {z}, {table};")
            }
            9 | 10 => {
                let length = self.random.below(34);
                format!("bfe.{sign}{wide} {dw}, {aw}, {by}, {length};")
            }
            11 => {
                let length = self.source();
                format!("bfi.b{wide} {dw}, {aw}, {bw}, {by}, {length};")
            }
            12 => {
                let (op, a) = (self.random.pick(&["popc", "clz"]), self.to(wide));
                format!("{op}.b{wide} {word}, {a};")
            }
            13 => format!("brev.b{wide} {dw}, {aw};"),
            14 => {
                let (how, a) = (self.random.pick(&["", ".shiftamt"]), self.to(wide));
                format!("bfind{how}.{sign}{wide} {word}, {a};")
            }
            15 | 16 => {
                let mode = self
                    .random
                    .pick(&["", "", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"]);
                let selector = self.from(32);
                format!("prmt.b32{mode} {word}, {x}, {y}, {selector};")
            }
            17 => {
                let (side, mode) = (self.random.pick(&["l", "r"]), self.random.pick(&["wrap", "clamp"]));
                format!("shf.{side}.{mode}.b32 {word}, {x}, {y}, {by};")
            }
            18 => {
                let mode = self.random.pick(&["wrap", "clamp"]);
                if self.random.chance(50) {
                    format!("bmsk.{mode}.b32 {word}, {x}, {y};")
                } else {
                    format!("szext.{mode}.{sign}32 {word}, {x}, {y};")
                }
            }
            _ => {
                let (p, a, b) = (self.predicate(), self.predicate(), self.predicate());
                let op = self.random.pick(&["and", "or", "xor"]);
                if self.random.chance(25) {
                    format!("not.pred {p}, {a};")
                } else {
                    format!("{op}.pred {p}, {a}, {b};")
                }
            }
        }
    }

    fn comparison(&mut self, kind: char) -> &'static str {
        match kind {
            'b' => self.random.pick(&["eq", "ne"]),
            'u' => self
                .random
                .pick(&["eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"]),
            's' => self.random.pick(&["eq", "ne", "lt", "le", "gt", "ge"]),
            _ => self.random.pick(&[
                "eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan",
            ]),
        }
    }

    fn compare(&mut self) -> String {
        let kind = self.random.pick(&['b', 'u', 'u', 's', 's', 'f']);
        let bits = if kind == 'f' {
            self.random.pick(&[32, 32, 64])
        } else {
            self.random.pick(&[16, 32, 32, 64])
        };
        let t = format!("{kind}{bits}");
        let test = self.comparison(kind);
        let operand = |draw: &mut Draw, number: bool| match (kind, bits) {
            ('f', 32) if number => draw.operand_f32(),
            ('f', 32) => draw.float(),
            ('f', _) if number => draw.operand_f64(),
            ('f', _) => draw.long(),
            (_, bits) if number => draw.from(bits),
            (_, bits) => draw.to(bits),
        };
        let (a, b) = (operand(self, false), operand(self, true));
        let ftz = if t == "f32" { self.ftz() } else { "" };
        let (p, q) = (self.predicate(), self.condition());
        let combine = self.random.pick(&["and", "or", "xor"]);
        match self.random.below(10) {
            0..=3 => format!("setp.{test}{ftz}.{t} {p}, {a}, {b};"),
            4 | 5 => format!("setp.{test}.{combine}{ftz}.{t} {p}, {a}, {b}, {q};"),
            6 => {
                let other = format!("%p{}", (p[2..].parse::<usize>().unwrap_or(0) + 1) % PREDICATES);
                format!("setp.{test}.{combine}{ftz}.{t} {p}|{other}, {a}, {b}, {q};")
            }
            7 => {
                let (to, d) = if self.random.chance(30) {
                    ("f32", self.float())
                } else {
                    (self.random.pick(&["u32", "s32"]), self.word())
                };
                format!("set.{test}{ftz}.{to}.{t} {d}, {a}, {b};")
            }
            8 => {
                let d = match (kind, bits) {
                    ('f', 32) => self.float(),
                    ('f', _) => self.long(),
                    (_, bits) => self.to(bits),
                };
                let (x, y, p) = (operand(self, true), operand(self, true), self.predicate());
                format!("selp.{t} {d}, {x}, {y}, {p};")
            }
            _ => {
                let (d, x, y) = (operand(self, false), operand(self, true), operand(self, true));
                if bits == 16 {
                    format!("selp.{t} {d}, {x}, {y}, {p};")
                } else if self.random.chance(50) {
                    let c = self.source();
                    format!("slct.{t}.s32 {d}, {x}, {y}, {c};")
                } else {
                    let (ftz, c) = (self.ftz(), self.float());
                    format!("slct{ftz}.{t}.f32 {d}, {x}, {y}, {c};")
                }
            }
        }
    }

    fn f32(&mut self) -> String {
        let (d, a, b, c) = (self.float(), self.operand_f32(), self.operand_f32(), self.operand_f32());
        let (ftz, sat, round) = (self.ftz(), self.sat(), self.rounding());
        let exact = self.random.pick(&["rn", "rn", "rz", "rm", "rp"]);
        match self.random.below(22) {
            0..=2 => format!("add{round}{ftz}{sat}.f32 {d}, {a}, {b};"),
            3 => format!("sub{round}{ftz}{sat}.f32 {d}, {a}, {b};"),
            4..=6 => format!("mul{round}{ftz}{sat}.f32 {d}, {a}, {b};"),
            7..=9 => format!("fma.{exact}{ftz}{sat}.f32 {d}, {a}, {b}, {c};"),
            10 | 11 => {
                let (op, nan) = (self.random.pick(&["min", "max"]), self.random.pick(&["", "", ".NaN"]));
                let sign = if self.random.chance(15) { ".xorsign.abs" } else { "" };
                format!("{op}{ftz}{nan}{sign}.f32 {d}, {a}, {b};")
            }
            12 => {
                let op = self.random.pick(&["abs", "neg"]);
                format!("{op}{ftz}.f32 {d}, {a};")
            }
            13 | 14 => {
                let how = self.random.pick(&["approx", "full", "rn", "rz", "rm", "rp"]);
                format!("div.{how}{ftz}.f32 {d}, {a}, {b};")
            }
            15 => {
                let how = self.random.pick(&["approx", "rn", "rz", "rp"]);
                format!("rcp.{how}{ftz}.f32 {d}, {a};")
            }
            16 => {
                let how = self.random.pick(&["approx", "rn", "rz", "rm"]);
                format!("sqrt.{how}{ftz}.f32 {d}, {a};")
            }
            17..=19 => {
                let op = self.random.pick(&["rsqrt", "sin", "cos", "ex2", "lg2"]);
                format!("{op}.approx{ftz}.f32 {d}, {a};")
            }
            20 => {
                if self.random.chance(50) {
                    format!("tanh.approx.f32 {d}, {a};")
                } else {
                    format!("copysign.f32 {d}, {a}, {b};")
                }
            }
            _ => {
                let what = self
                    .random
                    .pick(&["finite", "infinite", "number", "notanumber", "normal", "subnormal"]);
                let (p, a) = (self.predicate(), self.float());
                format!("testp.{what}.f32 {p}, {a};")
            }
        }
    }

    fn f64(&mut self) -> String {
        let (d, a, b, c) = (self.long(), self.operand_f64(), self.operand_f64(), self.operand_f64());
        let round = self.rounding();
        let exact = self.random.pick(&["rn", "rn", "rz", "rm", "rp"]);
        match self.random.below(12) {
            0 | 1 => format!("add{round}.f64 {d}, {a}, {b};"),
            2 => format!("sub{round}.f64 {d}, {a}, {b};"),
            3 | 4 => format!("mul{round}.f64 {d}, {a}, {b};"),
            5 | 6 => format!("fma.{exact}.f64 {d}, {a}, {b}, {c};"),
            7 => {
                let op = self.random.pick(&["min", "max"]);
                format!("{op}.f64 {d}, {a}, {b};")
            }
            8 => {
                let op = self.random.pick(&["abs", "neg"]);
                format!("{op}.f64 {d}, {a};")
            }
            9 => format!("div.{exact}.f64 {d}, {a}, {b};"),
            10 => {
                let op = self.random.pick(&["rcp", "sqrt"]);
                format!("{op}.{exact}.f64 {d}, {a};")
            }
            _ => {
                let op = self
                    .random
                    .pick(&["rcp.approx.ftz", "rsqrt.approx", "rsqrt.approx.ftz"]);
                format!("{op}.f64 {d}, {a};")
            }
        }
    }

    fn half_floats(&mut self) -> String {
        let (d, a, b, c) = (self.f16(), self.f16(), self.f16(), self.f16());
        let (ftz, sat) = (self.ftz(), self.sat());
        match self.random.below(11) {
            0 => format!("add{ftz}{sat}.f16 {d}, {a}, {b};"),
            1 => format!("mul{ftz}{sat}.f16 {d}, {a}, {b};"),
            2 => format!("fma.rn{ftz}{sat}.f16 {d}, {a}, {b}, {c};"),
            3 => {
                let op = self.random.pick(&["min", "max"]);
                format!("{op}{ftz}.f16 {d}, {a}, {b};")
            }
            4 => {
                let op = self.random.pick(&["abs", "neg"]);
                format!("{op}{ftz}.f16 {d}, {a};")
            }
            5 => {
                let (test, p) = (self.comparison('f'), self.predicate());
                format!("setp.{test}{ftz}.f16 {p}, {a}, {b};")
            }
            6 => format!("ex2.approx.f16 {d}, {a};"),
            7 => {
                let test = self.comparison('f');
                format!("set.{test}{ftz}.f16.f16 {d}, {a}, {b};")
            }
            8 => {
                let (test, to) = (self.comparison('f'), self.random.pick(&["f16x2", "u32"]));
                let (d, a, b) = (self.word(), self.word(), self.word());
                format!("set.{test}{ftz}.{to}.f16x2 {d}, {a}, {b};")
            }
            9 => {
                let (test, p) = (self.comparison('f'), self.predicate());
                let other = format!("%p{}", (p[2..].parse::<usize>().unwrap_or(0) + 1) % PREDICATES);
                format!("setp.{test}{ftz}.f16x2 {p}|{other}, {}, {};", self.word(), self.word())
            }
            _ => format!(
                "fma.rn.f16x2 {}, {}, {}, {};",
                self.word(),
                self.word(),
                self.word(),
                self.word()
            ),
        }
    }

    fn convert(&mut self) -> String {
        let integer = |draw: &mut Draw| {
            let (sign, bits) = (
                draw.random.pick(&["u", "s"]),
                draw.random.pick(&[8usize, 16, 32, 32, 64]),
            );
            (format!("{sign}{bits}"), bits)
        };
        // Bytes live in wider registers.
        let register = |draw: &mut Draw, bits: usize| match bits {
            8 => {
                if draw.random.chance(50) {
                    draw.half()
                } else {
                    draw.word()
                }
            }
            bits => draw.to(bits),
        };
        let (to, to_bits) = integer(self);
        let (from, from_bits) = integer(self);
        let whole = self.random.pick(&["rni", "rzi", "rmi", "rpi"]);
        let round = self.random.pick(&["rn", "rz", "rm", "rp"]);
        let (ftz, sat) = (self.ftz(), self.sat());
        let (d, a) = (register(self, to_bits), register(self, from_bits));
        match self.random.below(14) {
            0..=2 => {
                // Only where a value can be out of range.
                let fits = match (&to[..1], &from[..1]) {
                    ("s", "u") => to_bits > from_bits,
                    ("u", "s") => false,
                    _ => to_bits >= from_bits,
                };
                let sat = if fits { "" } else { sat };
                format!("cvt{sat}.{to}.{from} {d}, {a};")
            }
            3..=5 => format!("cvt.{round}{sat}.f32.{from} {}, {a};", self.float()),
            6 => format!("cvt.{round}.f64.{from} {}, {a};", self.long()),
            7 | 8 => format!("cvt.{whole}{ftz}{sat}.{to}.f32 {d}, {};", self.float()),
            9 => format!("cvt.{whole}{sat}.{to}.f64 {d}, {};", self.long()),
            10 => format!("cvt{ftz}.f64.f32 {}, {};", self.long(), self.float()),
            11 => format!("cvt.{round}{ftz}{sat}.f32.f64 {}, {};", self.float(), self.long()),
            12 => format!("cvt.{whole}{ftz}{sat}.f32.f32 {}, {};", self.float(), self.float()),
            _ => match self.random.below(9) {
                5 | 6 => {
                    let (to, relu) = (self.narrow(), self.random.pick(&["", ".relu"]));
                    format!(
                        "cvt.rn.satfinite{relu}.{to}.f32 {}, {}, {};",
                        self.half(),
                        self.float(),
                        self.float()
                    )
                }
                7 => {
                    let (to, relu) = (self.narrow(), self.random.pick(&["", ".relu"]));
                    format!("cvt.rn.satfinite{relu}.{to}.f16x2 {}, {};", self.half(), self.word())
                }
                8 => format!("cvt.rn.f16x2.{} {}, {};", self.narrow(), self.word(), self.half()),
                0 => format!("cvt.rn{ftz}{sat}.f16.f32 {}, {};", self.f16(), self.float()),
                1 => format!("cvt{ftz}.f32.f16 {}, {};", self.float(), self.f16()),
                2 => format!("cvt.{whole}.{to}.f16 {d}, {};", self.f16()),
                3 => format!("cvt.rn.f16.{from} {}, {a};", self.f16()),
                _ => format!("cvt.{whole}{sat}.f64.f64 {}, {};", self.long(), self.long()),
            },
        }
    }

    fn narrow(&mut self) -> &'static str {
        self.random.pick(&["e4m3x2", "e5m2x2"])
    }

    /// Integers side by side in a register.
    fn packed(&mut self) -> String {
        let (d, a, b) = (self.word(), self.source(), self.source());
        match self.random.below(4) {
            0 => format!("add.{}16x2 {d}, {a}, {b};", self.random.pick(&["u", "s"])),
            1 => {
                let relu = self.random.pick(&["", ".relu"]);
                let op = self.random.pick(&["min", "max"]);
                format!("{op}{relu}.s16x2 {d}, {a}, {b};")
            }
            2 => format!("{}.u16x2 {d}, {a}, {b};", self.random.pick(&["min", "max"])),
            _ => {
                let op = self.random.pick(&["add", "sub", "mad.hi", "mad24.hi"]);
                let c = if op.starts_with("mad") {
                    format!(", {}", self.source())
                } else {
                    String::new()
                };
                format!("{op}.sat.s32 {d}, {a}, {b}{c};")
            }
        }
    }

    fn moves(&mut self) -> String {
        match self.random.below(12) {
            0 => format!("mov.b32 {}, {};", self.word(), self.source()),
            1 => format!("mov.b64 {}, {{{}, {}}};", self.double(), self.word(), self.word()),
            2 => format!("mov.b64 {{{}, {}}}, {};", "%r0", "%r1", self.double()),
            3 => format!("mov.b32 {}, {{{}, {}}};", self.word(), self.half(), self.half()),
            4 => format!("mov.b32 {{%h0, %h1}}, {};", self.word()),
            5 => format!("mov.b32 {}, {};", self.word(), self.float()),
            6 => format!("mov.b32 {}, {};", self.float(), self.word()),
            7 => format!("mov.b64 {}, {};", self.double(), self.long()),
            8 => format!("mov.f32 {}, {};", self.float(), self.operand_f32()),
            9 => format!("mov.f64 {}, {};", self.long(), self.operand_f64()),
            10 => format!(
                "mov.b32 {}, {};",
                self.word(),
                self.random.pick(&["%tid.x", "%ctaid.x", "%ntid.x", "%laneid"])
            ),
            _ => format!(
                "selp.b32 {}, {}, {}, {};",
                self.word(),
                self.from(32),
                self.from(32),
                self.predicate()
            ),
        }
    }

    /// Sums longer than a register.
    fn carried(&mut self) -> Node {
        let lines = if self.random.chance(50) {
            vec![
                format!("add.cc.u32 {}, {}, {};", self.word(), self.source(), self.source()),
                format!("addc.cc.u32 {}, {}, {};", self.word(), self.source(), self.source()),
                format!("addc.u32 {}, {}, {};", self.word(), self.source(), self.source()),
            ]
        } else {
            vec![
                format!(
                    "mad.lo.cc.u32 {}, {}, {}, {};",
                    self.word(),
                    self.source(),
                    self.source(),
                    self.source()
                ),
                format!(
                    "madc.hi.u32 {}, {}, {}, {};",
                    self.word(),
                    self.source(),
                    self.source(),
                    self.source()
                ),
                format!("sub.cc.u32 {}, {}, {};", self.word(), self.source(), self.source()),
                format!("subc.u32 {}, {}, {};", self.word(), self.source(), self.source()),
            ]
        };
        Node::Unit { lines, guard: None }
    }
}
