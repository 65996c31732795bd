//! The notation of values: `1 2 -3`, `0..31`, `7*32`, `0f3f800000`, `nan`, `_`, `random(seed=7)`.
//!
//! In: an element type and text. Out: elements, as bits. `tests/ptx/README.md` is the reference.

use half::{bf16, f16};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Unsigned,
    Signed,
    Half,
    Bfloat,
    Single,
    Double,
}

/// The type of an element, by its PTX name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Type {
    pub class: Class,
    pub bytes: usize,
}

/// One expected element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    Bits(u128),
    /// `nan`: any NaN.
    AnyNan,
    /// `_`: anything.
    Any,
}

impl Type {
    pub fn parse(name: &str) -> Option<Type> {
        let class = match name {
            "f16" => Class::Half,
            "bf16" => Class::Bfloat,
            "f32" => Class::Single,
            "f64" => Class::Double,
            _ => match name.split_at_checked(1)?.0 {
                "u" | "b" => Class::Unsigned,
                "s" => Class::Signed,
                _ => return None,
            },
        };
        let bytes = match name.trim_start_matches(|c: char| c.is_ascii_alphabetic()) {
            "8" => 1,
            "16" => 2,
            "32" => 4,
            "64" => 8,
            "128" => 16,
            _ => return None,
        };
        Some(Type { class, bytes })
    }

    fn is_float(self) -> bool {
        !matches!(self.class, Class::Unsigned | Class::Signed)
    }

    fn mask(self) -> u128 {
        if self.bytes == 16 {
            u128::MAX
        } else {
            (1 << (8 * self.bytes)) - 1
        }
    }

    /// The number that these bits are, for tolerances and messages.
    pub fn number(self, bits: u128) -> f64 {
        match self.class {
            Class::Half => f16::from_bits(bits as u16).to_f64(),
            Class::Bfloat => bf16::from_bits(bits as u16).to_f64(),
            Class::Single => f64::from(f32::from_bits(bits as u32)),
            Class::Double => f64::from_bits(bits as u64),
            Class::Unsigned => bits as f64,
            Class::Signed => self.signed(bits) as f64,
        }
    }

    fn signed(self, bits: u128) -> i128 {
        let unused = 128 - 8 * self.bytes as u32;
        ((bits << unused) as i128) >> unused
    }

    pub fn is_nan(self, bits: u128) -> bool {
        self.is_float() && self.number(bits).is_nan()
    }

    /// Bits in an order in which neighbours differ by one: the distance in units of the last place.
    pub fn ordinal(self, bits: u128) -> i128 {
        let sign = 1 << (8 * self.bytes - 1);
        if bits & sign == 0 {
            bits as i128
        } else {
            -((bits & (sign - 1)) as i128)
        }
    }

    /// For messages.
    pub fn show(self, bits: u128) -> String {
        let hex = format!("{:#0width$x}", bits, width = 2 + 2 * self.bytes);
        match self.class {
            Class::Unsigned => format!("{bits} ({hex})"),
            Class::Signed => format!("{} ({hex})", self.signed(bits)),
            _ => format!("{:?} ({hex})", self.number(bits)),
        }
    }

    fn scalar(self, word: &str) -> Result<Element, String> {
        let bad = || format!("`{word}` is no value of this type");
        let bits = if word == "_" {
            return Ok(Element::Any);
        } else if word == "nan" && self.is_float() {
            return Ok(Element::AnyNan);
        } else if let Some(digits) = word.strip_prefix("0f").or_else(|| word.strip_prefix("0d")) {
            // PTX's own notation for the bits of f32 and f64.
            if digits.len() != 2 * self.bytes {
                return Err(bad());
            }
            u128::from_str_radix(digits, 16).map_err(|_| bad())?
        } else if let Some(digits) = word.strip_prefix("0x") {
            u128::from_str_radix(digits, 16).map_err(|_| bad())?
        } else {
            match self.class {
                Class::Unsigned | Class::Signed => {
                    let number: i128 = word.parse().map_err(|_| bad())?;
                    let bits = 8 * self.bytes as u32;
                    if bits < 128 && !(-(1i128 << (bits - 1))..1i128 << bits).contains(&number) {
                        return Err(bad());
                    }
                    number as u128 & self.mask()
                }
                Class::Half => f16::from_f64(word.parse().map_err(|_| bad())?).to_bits().into(),
                Class::Bfloat => bf16::from_f64(word.parse().map_err(|_| bad())?).to_bits().into(),
                Class::Single => word.parse::<f32>().map_err(|_| bad())?.to_bits().into(),
                Class::Double => word.parse::<f64>().map_err(|_| bad())?.to_bits().into(),
            }
        };
        if bits & !self.mask() != 0 {
            return Err(bad());
        }
        Ok(Element::Bits(bits))
    }

    /// Reads a list of values; `count` is the declared length, which generators fill up to.
    ///
    /// # Errors
    /// What is not understood, or a length that is not the declared one.
    pub fn list(self, text: &str, count: Option<usize>) -> Result<Vec<Element>, String> {
        let mut tokens = tokens(text);
        let mut out = Vec::new();
        self.sequence(&mut tokens, &mut out, count, false)?;
        match count {
            Some(count) if out.len() != count => Err(format!("{} values, {count} declared", out.len())),
            _ => Ok(out),
        }
    }

    fn sequence(
        self,
        tokens: &mut Tokens<'_>,
        out: &mut Vec<Element>,
        count: Option<usize>,
        nested: bool,
    ) -> Result<(), String> {
        while let Some(token) = tokens.next() {
            let start = out.len();
            if token == ")" {
                return if nested { Ok(()) } else { Err("`)` without `(`".into()) };
            } else if token == "(" {
                self.sequence(tokens, out, None, true)?;
            } else if let Some(seed) = token.strip_prefix("random(seed=").and_then(|t| t.strip_suffix(')')) {
                let count = count.ok_or("random needs a declared length, as in u32[32]")?;
                let mut state: u64 = seed.parse().map_err(|_| "seed is no number")?;
                while out.len() < count {
                    out.push(Element::Bits(u128::from(splitmix(&mut state)) & self.mask()));
                }
            } else if let Some((from, to)) = token.split_once("..") {
                self.range(from, to, out)?;
            } else {
                out.push(self.scalar(token)?);
            }
            if tokens.peek().is_some_and(|next| next.starts_with('*')) {
                let times = tokens.next().unwrap_or_default();
                let times: usize = times[1..].parse().map_err(|_| format!("`{times}` is no repetition"))?;
                let block = out.split_off(start);
                out.extend(std::iter::repeat_n(block, times).flatten());
            }
        }
        if nested { Err("`(` without `)`".into()) } else { Ok(()) }
    }

    /// `a..b` and `a..b/step`, both ends included, up or down.
    fn range(self, from: &str, to: &str, out: &mut Vec<Element>) -> Result<(), String> {
        let bad = |_| format!("`{from}..{to}` is no range of integers");
        let (to, step) = to.split_once('/').unwrap_or((to, "1"));
        let (from, to, step): (i128, i128, i128) = (
            from.parse().map_err(bad)?,
            to.parse().map_err(bad)?,
            step.parse().map_err(bad)?,
        );
        let step = if to < from { -step.abs() } else { step.abs().max(1) };
        let mut at = from;
        while (step > 0 && at <= to) || (step < 0 && at >= to) {
            out.push(self.scalar(&at.to_string())?);
            at += step;
        }
        Ok(())
    }
}

type Tokens<'a> = std::iter::Peekable<std::vec::IntoIter<&'a str>>;

/// Words; parentheses of groups and a repetition `*n` stand alone, those of `random(…)` do not.
fn tokens(text: &str) -> Tokens<'_> {
    let mut out = Vec::new();
    for mut word in text.split_whitespace() {
        if let Some(end) = word.find(')')
            && word.starts_with("random(")
        {
            out.push(&word[..=end]);
            word = &word[end + 1..];
        }
        while !word.is_empty() {
            let end = match word.as_bytes()[0] {
                b'(' | b')' => 1,
                b'*' => word[1..].find(['(', ')']).map_or(word.len(), |i| i + 1),
                _ => word.find(['(', ')', '*']).unwrap_or(word.len()),
            };
            out.push(&word[..end]);
            word = &word[end..];
        }
    }
    out.into_iter().peekable()
}

/// Vigna's splitmix64.
fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
