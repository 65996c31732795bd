//! Functions and lines of addresses. The standard library knows how to find them, by symbols and DWARF, for the text of a
//! backtrace; that is what is read here.

use std::backtrace::Backtrace as Captured;

use super::object;

/// A function at an address: several where functions were inlined, the innermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Symbol {
    /// The return address.
    pub address: usize,
    /// As the linker has it, but for names of Rust.
    pub function: Option<String>,
    /// File and line.
    pub line: Option<(String, u32)>,
    /// The file of the object, and where in it the call is; the start of the object.
    pub object: String,
    pub offset: usize,
    pub base: usize,
}

/// Those of the addresses of a backtrace, which may have more.
pub(super) fn of(captured: &Captured, addresses: &[usize]) -> Vec<Symbol> {
    let mut symbols = parsed(&format!("{captured:#}"));
    let start = symbols
        .iter()
        .position(|symbol| Some(&symbol.address) == addresses.first());
    let start = start.unwrap_or(symbols.len());
    symbols.drain(..start);
    if symbols.is_empty() {
        // The text is another one than is known here: what the loader knows is left.
        symbols.extend(addresses.iter().map(|&address| Symbol {
            address,
            ..Symbol::default()
        }));
    }
    for symbol in &mut symbols {
        // The call comes before the place to which it returns.
        let call = symbol.address.wrapping_sub(1);
        if symbol.function.is_none() {
            symbol.function = object::exported(call);
        }
        if let Some((base, file)) = object::object_of(call) {
            symbol.object = String::from_utf8_lossy(file).into_owned();
            symbol.offset = call.wrapping_sub(base);
            symbol.base = base;
        }
    }
    symbols
}

/// Lines such as `   3:     0x5581b0c0a5d6 - main`, and `             at /home/me/many.cu:9:5` below.
fn parsed(text: &str) -> Vec<Symbol> {
    let mut symbols: Vec<Symbol> = Vec::new();
    for line in text.lines() {
        let line = line.trim_start();
        if let Some(place) = line.strip_prefix("at ") {
            if let Some(last) = symbols.last_mut().filter(|last| last.line.is_none()) {
                last.line = place_of(place);
            }
        } else if let Some((number, rest)) = line.split_once(':')
            && number.bytes().all(|byte| byte.is_ascii_digit())
            && let Some((address, name)) = rest.split_once(" - ")
            && let Some(digits) = address.trim().strip_prefix("0x")
            && let Ok(address) = usize::from_str_radix(digits, 16)
        {
            symbols.push(Symbol {
                address,
                function: (name != "<unknown>").then(|| name.to_owned()),
                ..Symbol::default()
            });
        }
    }
    symbols
}

/// `file:line:column`, or without a column. The column is left out: nvcc has made another text of the line.
fn place_of(text: &str) -> Option<(String, u32)> {
    let (before, last) = text.rsplit_once(':')?;
    let last: u32 = last.parse().ok()?;
    match before.rsplit_once(':').map(|(file, line)| (file, line.parse())) {
        Some((file, Ok(line))) => Some((file.to_owned(), line)),
        _ => Some((before.to_owned(), last)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_backtrace_is_read() {
        let text = "   0:     0x5581b0c0a5d6 - _Z5applyPi\n                               at /home/me/many.cu:9:5\n   \
                    1:     0x5581b0c0a5d6 - main\n                               at /home/me/a:1.cu:12\n  \
                    12:     0x7f8a34a291ca - <unknown>\n";
        let symbol = |address, function: &str, line: Option<(&str, u32)>| Symbol {
            address,
            function: (!function.is_empty()).then(|| function.to_owned()),
            line: line.map(|(file, line)| (file.to_owned(), line)),
            ..Symbol::default()
        };
        let expected = [
            symbol(0x5581b0c0a5d6, "_Z5applyPi", Some(("/home/me/many.cu", 9))),
            symbol(0x5581b0c0a5d6, "main", Some(("/home/me/a:1.cu", 12))),
            symbol(0x7f8a34a291ca, "", None),
        ];
        assert_eq!(parsed(text), expected);
    }

    /// The standard library's text may change with a toolchain: then this fails.
    #[test]
    fn the_standard_library_says_what_is_read_here() {
        let (captured, line) = (Captured::force_capture(), line!());
        let symbols = parsed(&format!("{captured:#}"));
        let is_here = |symbol: &&Symbol| match &symbol.line {
            Some((file, number)) => file.ends_with("src/backtrace/symbols.rs") && *number == line,
            None => false,
        };
        let here = symbols
            .iter()
            .find(is_here)
            .unwrap_or_else(|| panic!("{line}: {symbols:?}"));
        let name = here.function.as_deref().unwrap_or_default();
        assert!(name.contains("the_standard_library_says_what_is_read_here"), "{here:?}");
        assert!(here.address != 0, "{here:?}");
    }
}
