//! Formatted output of kernels (CUDA programming guide, Formatted Output): formats are taken apart here, and each
//! conversion is the C library's.

use std::ffi::{CString, c_char, c_int, c_void};

use super::access::{self, string};
use super::context::{Cx, RawFault};

/// Arguments that one printf may have (CUDA programming guide, Formatted Output, Limitations).
const MAX_ARGUMENTS: usize = 32;
/// Bytes that one call prints at most, the default size of a device's buffer for output; what is longer is cut.
const MOST: usize = 1 << 20;

/// Output that grows as far as it may.
#[derive(Default)]
pub struct Text {
    bytes: Vec<u8>,
    /// Where the text of the call that is being formatted started.
    start: usize,
}

impl Text {
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn begin(&mut self) {
        self.start = self.bytes.len();
    }

    /// What the call that is being formatted may still add.
    fn room(&self) -> usize {
        MOST - (self.bytes.len() - self.start).min(MOST)
    }

    /// Adds text as far as there is room for it; the rest is lost.
    fn push(&mut self, text: &[u8]) {
        let text = &text[..text.len().min(self.room())];
        if self.bytes.try_reserve(text.len()).is_ok() {
            self.bytes.extend_from_slice(text);
        }
    }
}

/// A width or precision in a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    None,
    Given(u32),
    /// `*`: an argument.
    Argument,
}

/// One conversion of a format: everything from `%` to its letter.
#[derive(Debug)]
struct Conversion {
    flags: Vec<u8>,
    width: Number,
    precision: Number,
    /// Bytes of an integer argument by its length modifier: 8 for `l`, `ll`, `j`, `z`, `t`; 2 for `h`; 1 for `hh`.
    size: usize,
    letter: u8,
}

/// A decimal number or `*` at the start of `format`, and how many bytes it takes.
fn number(format: &[u8]) -> (Number, usize) {
    if format.first() == Some(&b'*') {
        return (Number::Argument, 1);
    }
    let digits = format.iter().take_while(|c| c.is_ascii_digit()).count();
    let value = format[..digits]
        .iter()
        .fold(0u32, |n, c| n.saturating_mul(10).saturating_add(u32::from(c - b'0')));
    (
        if digits == 0 {
            Number::None
        } else {
            Number::Given(value)
        },
        digits,
    )
}

/// The conversion at the start of `format`, and its length (C17, 7.21.6.1).
fn conversion(format: &[u8]) -> Option<(Conversion, usize)> {
    let mut i = 1;
    let mut flags = Vec::new();
    while let Some(&c) = format.get(i).filter(|c| b"-+ #0".contains(c)) {
        if !flags.contains(&c) {
            flags.push(c);
        }
        i += 1;
    }
    let (width, taken) = number(&format[i..]);
    i += taken;
    let mut precision = Number::None;
    if format.get(i) == Some(&b'.') {
        let (given, taken) = number(&format[i + 1..]);
        // A point alone is a precision of 0.
        precision = if given == Number::None { Number::Given(0) } else { given };
        i += 1 + taken;
    }
    let mut size = 4;
    while let Some(&c) = format.get(i).filter(|c| b"hlLjztq".contains(c)) {
        size = match (c, size) {
            (b'h', 2) => 1,
            (b'h', _) => 2,
            _ => 8,
        };
        i += 1;
    }
    let letter = *format.get(i)?;
    let conversion = Conversion {
        flags,
        width,
        precision,
        size,
        letter,
    };
    b"diouxXfFeEgGaAcsp%n".contains(&letter).then_some((conversion, i + 1))
}

/// Formats one call of one lane. The result is the number of arguments, -1 for a format that cannot be.
pub fn print<const WATCHED: bool>(
    cx: &Cx<'_>,
    lane: usize,
    format: u64,
    block: u64,
    out: &mut Text,
) -> Result<i32, RawFault> {
    if format == 0 {
        return Ok(-1);
    }
    let format = string::<WATCHED>(cx, lane, format, usize::MAX)?;
    out.begin();
    let mut arguments = Arguments::<WATCHED> {
        cx,
        lane,
        block,
        offset: 0,
        count: 0,
    };
    let mut i = 0;
    // What comes when there is no more room is not looked at.
    while i < format.len() && out.room() > 0 {
        if format[i] != b'%' {
            let plain = format[i..].iter().take_while(|c| **c != b'%').count();
            out.push(&format[i..i + plain]);
            i += plain;
            continue;
        }
        let Some((c, length)) = conversion(&format[i..]) else {
            // What is no conversion is printed as it stands.
            out.push(b"%");
            i += 1;
            continue;
        };
        i += length;
        if c.letter == b'%' {
            out.push(b"%");
            continue;
        }
        if c.letter == b'n' {
            arguments.next(8)?;
            continue;
        }
        one(c, &mut arguments, out)?;
    }
    Ok(if arguments.count > MAX_ARGUMENTS {
        -1
    } else {
        arguments.count as i32
    })
}

/// Takes arguments from a vprintf block: natural alignment, C promotions.
struct Arguments<'a, 'b, const WATCHED: bool> {
    cx: &'a Cx<'b>,
    lane: usize,
    block: u64,
    offset: u64,
    count: usize,
}

impl<const WATCHED: bool> Arguments<'_, '_, WATCHED> {
    fn next(&mut self, size: u64) -> Result<u64, RawFault> {
        // Offsets stay small: a format has at most as many conversions as bytes.
        let at = self.offset.next_multiple_of(size);
        self.offset = at + size;
        self.count += 1;
        let address = self.block.wrapping_add(at);
        Ok(if size == 4 {
            u64::from(u32::from_le_bytes(access::bytes::<WATCHED, 4>(
                self.cx, self.lane, address,
            )?))
        } else {
            u64::from_le_bytes(access::bytes::<WATCHED, 8>(self.cx, self.lane, address)?)
        })
    }
}

/// One conversion by the C library, so that every flag means what it means on the host; widths and precisions are no
/// larger than what there is room for.
fn one<const WATCHED: bool>(
    mut c: Conversion,
    arguments: &mut Arguments<'_, '_, WATCHED>,
    out: &mut Text,
) -> Result<(), RawFault> {
    if c.width == Number::Argument {
        let given = arguments.next(4)? as i32;
        // A negative width is the flag and the width.
        if given < 0 && !c.flags.contains(&b'-') {
            c.flags.push(b'-');
        }
        c.width = Number::Given(given.unsigned_abs());
    }
    if c.precision == Number::Argument {
        let given = arguments.next(4)? as i32;
        // A negative precision is none.
        c.precision = u32::try_from(given).map_or(Number::None, Number::Given);
    }
    let mut spec = vec![b'%'];
    spec.extend_from_slice(&c.flags);
    let most = MOST as u32;
    if let Number::Given(width) = c.width {
        spec.extend_from_slice(width.min(most).to_string().as_bytes());
    }
    if let Number::Given(precision) = c.precision {
        spec.extend_from_slice(format!(".{}", precision.min(most)).as_bytes());
    }
    match c.letter {
        b'd' | b'i' | b'o' | b'u' | b'x' | b'X' => {
            let raw = arguments.next(if c.size == 8 { 8 } else { 4 })?;
            let signed = matches!(c.letter, b'd' | b'i');
            let value = match (c.size, signed) {
                (8, _) => raw as i64,
                (4, true) => i64::from(raw as i32),
                (4, false) => i64::from(raw as u32),
                (2, true) => i64::from(raw as i16),
                (2, false) => i64::from(raw as u16),
                (_, true) => i64::from(raw as i8),
                (_, false) => i64::from(raw as u8),
            };
            spec.extend_from_slice(b"ll");
            spec.push(c.letter);
            format_with(&spec, Value::Integer(value), out);
        }
        b'c' => {
            let raw = arguments.next(4)? as u8;
            spec.push(b'c');
            format_with(&spec, Value::Char(c_int::from(raw)), out);
        }
        b's' => {
            let address = arguments.next(8)?;
            let text = if address == 0 {
                b"(null)".to_vec()
            } else {
                // No more than is printed is read: the text may end with the precision, not with a NUL.
                let most = match c.precision {
                    Number::Given(precision) => precision as usize,
                    Number::None | Number::Argument => usize::MAX,
                };
                string::<WATCHED>(arguments.cx, arguments.lane, address, most)?
            };
            spec.push(b's');
            let text = CString::new(text).unwrap_or_default();
            format_with(&spec, Value::Pointer(text.as_ptr().cast()), out);
        }
        b'p' => {
            let address = arguments.next(8)?;
            spec.push(b'p');
            format_with(&spec, Value::Pointer(address as *const c_void), out);
        }
        _ => {
            let value = f64::from_bits(arguments.next(8)?);
            spec.push(c.letter);
            format_with(&spec, Value::Float(value), out);
        }
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Value {
    Integer(i64),
    Char(c_int),
    Pointer(*const c_void),
    Float(f64),
}

fn format_with(spec: &[u8], value: Value, out: &mut Text) {
    let Ok(spec) = CString::new(spec) else { return };
    // SAFETY: the specification was put together here: it converts exactly the value that is passed, in its C type;
    // snprintf writes at most `size` bytes.
    let into = |to: *mut c_char, size: usize| unsafe {
        let f = spec.as_ptr();
        match value {
            Value::Integer(v) => libc::snprintf(to, size, f, v),
            Value::Char(v) => libc::snprintf(to, size, f, v),
            Value::Pointer(v) => libc::snprintf(to, size, f, v),
            Value::Float(v) => libc::snprintf(to, size, f, v),
        }
    };
    let mut small = [0u8; 128];
    let n = into(small.as_mut_ptr().cast(), small.len());
    let Ok(n) = usize::try_from(n) else { return };
    if n < small.len() {
        out.push(&small[..n]);
        return;
    }
    let n = n.min(out.room());
    let mut large = Vec::new();
    if large.try_reserve_exact(n + 1).is_err() {
        return;
    }
    large.resize(n + 1, 0u8);
    into(large.as_mut_ptr().cast(), large.len());
    out.push(&large[..n]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_are_taken_apart_as_c_says() {
        let of = |format: &str| {
            let (c, length) = conversion(format.as_bytes()).expect("a conversion");
            let flags = String::from_utf8(c.flags).expect("text");
            (flags, c.width, c.precision, c.size, c.letter, length)
        };
        use Number::{Argument, Given, None};
        assert_eq!(of("%d rest"), (String::new(), None, None, 4, b'd', 2));
        assert_eq!(of("%-+08.3lld"), ("-+0".into(), Given(8), Given(3), 8, b'd', 10));
        assert_eq!(of("%*.*hhx"), (String::new(), Argument, Argument, 1, b'x', 7));
        assert_eq!(of("%.s"), (String::new(), None, Given(0), 4, b's', 3));
        assert_eq!(of("%99999999999u"), (String::new(), Given(u32::MAX), None, 4, b'u', 13));
        assert!(conversion(b"%y").is_none());
        assert!(conversion(b"%").is_none());
    }

    #[test]
    fn a_call_prints_a_megabyte_at_most() {
        let mut out = Text::default();
        for _ in 0..2 {
            out.begin();
            format_with(b"%1048576lld", Value::Integer(7), &mut out);
            format_with(b"%1048576lld", Value::Integer(8), &mut out);
        }
        assert_eq!(out.bytes().len(), 2 * MOST);
        assert!(out.bytes().iter().filter(|c| **c != b' ').eq(b"77"));
    }
}
