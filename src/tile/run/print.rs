//! `print_tko`: a format as C's `printf` has it, with tiles in the place of numbers. One of several elements is printed in brackets,
//! a pair for each dimension.

use std::fmt::Write;
use std::sync::Arc;

use super::convert::to_f64;
use crate::tile::value::Tile;

pub fn text<'a>(
    format: &str,
    operands: &[u32],
    tile: impl Fn(u32) -> Result<&'a Arc<Tile>, String>,
) -> Result<Vec<u8>, String> {
    let mut out = String::new();
    let mut operands = operands.iter();
    let mut rest = format.chars().peekable();
    while let Some(character) = rest.next() {
        if character != '%' {
            out.push(character);
            continue;
        }
        if rest.next_if_eq(&'%').is_some() {
            out.push('%');
            continue;
        }
        let mut directive = Directive::default();
        while let Some(flag) = rest.next_if(|character| "-+ #0".contains(*character)) {
            directive.left |= flag == '-';
            directive.plus |= flag == '+';
            directive.zeros |= flag == '0';
        }
        while let Some(digit) = rest.next_if(char::is_ascii_digit) {
            directive.width = (10 * directive.width + digit as usize - '0' as usize).min(1 << 10);
        }
        if rest.next_if_eq(&'.').is_some() {
            let mut precision = 0;
            while let Some(digit) = rest.next_if(char::is_ascii_digit) {
                precision = (10 * precision + digit as usize - '0' as usize).min(1 << 10);
            }
            directive.precision = Some(precision);
        }
        while rest.next_if(|character| "hlLqjzt".contains(*character)).is_some() {}
        directive.kind = rest.next().ok_or("a format that ends within a directive")?;
        let Some(&operand) = operands.next() else {
            return Err("a format with more directives than operands".to_string());
        };
        let tile = tile(operand)?;
        nested(&mut out, &directive, tile, 0, 0..tile.len());
    }
    Ok(out.into_bytes())
}

#[derive(Default)]
struct Directive {
    left: bool,
    plus: bool,
    zeros: bool,
    width: usize,
    precision: Option<usize>,
    kind: char,
}

fn nested(out: &mut String, directive: &Directive, tile: &Tile, dimension: usize, range: std::ops::Range<usize>) {
    let Some(&size) = tile.shape.get(dimension) else {
        one(out, directive, tile, range.start);
        return;
    };
    let each = range.len() / size as usize;
    out.push('[');
    for at in 0..size as usize {
        if at > 0 {
            out.push_str(", ");
        }
        let start = range.start + at * each;
        nested(out, directive, tile, dimension + 1, start..start + each);
    }
    out.push(']');
}

fn one(out: &mut String, directive: &Directive, tile: &Tile, at: usize) {
    let bits = tile.data.get(at);
    let number = match tile.element.is_float() {
        true => to_f64(tile.element, bits),
        false => tile.signed(at) as f64,
    };
    let precision = directive.precision.unwrap_or(6);
    let integer = match tile.element.is_float() {
        true => number as i64,
        // One bit is a truth value.
        false if tile.element.bits() == 1 => bits as i64,
        false => tile.signed(at),
    };
    let mut text = String::new();
    let _ = match directive.kind {
        'd' | 'i' => write!(text, "{integer}"),
        'u' => write!(text, "{bits}"),
        'x' => write!(text, "{bits:x}"),
        'X' => write!(text, "{bits:X}"),
        'o' => write!(text, "{bits:o}"),
        'p' => write!(text, "{bits:#x}"),
        'c' => write!(text, "{}", char::from(bits as u8)),
        'e' | 'E' => {
            let written = format!("{number:.precision$e}");
            let written = match written.split_once('e') {
                Some((digits, exponent)) => {
                    let exponent: i32 = exponent.parse().unwrap_or(0);
                    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
                }
                None => written,
            };
            text = if directive.kind == 'E' {
                written.to_uppercase()
            } else {
                written
            };
            Ok(())
        }
        'g' | 'G' => write!(text, "{number}"),
        _ => write!(text, "{number:.precision$}"),
    };
    if directive.plus && !text.starts_with('-') {
        text.insert(0, '+');
    }
    let missing = directive.width.saturating_sub(text.chars().count());
    match (directive.left, directive.zeros) {
        (true, _) => text.push_str(&" ".repeat(missing)),
        (false, true) => {
            let sign = usize::from(text.starts_with(['-', '+']));
            text.insert_str(sign, &"0".repeat(missing));
        }
        (false, false) => text.insert_str(0, &" ".repeat(missing)),
    }
    out.push_str(&text);
}
