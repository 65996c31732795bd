//! Names of functions and variables as people write them.

use std::borrow::Cow;
use std::fmt;

use cpp_demangle::{DemangleOptions, DemangleWrite, Symbol};

/// Bytes that a readable name may have.
const LONGEST: usize = 4096;

/// `scale(float*, int)` for `_Z5scalePfi`; what is no mangled name of C++ comes back as it is.
pub fn demangle(name: &str) -> Cow<'_, str> {
    if !name.starts_with("_Z") {
        return Cow::Borrowed(name);
    }
    let mut out = Short(String::new());
    let options = DemangleOptions::new().no_return_type();
    let done = Symbol::new(name).is_ok_and(|symbol| symbol.structured_demangle(&mut out, &options).is_ok());
    if done { Cow::Owned(out.0) } else { Cow::Borrowed(name) }
}

/// Text of a bounded length: a mangled name that refers to its own parts can stand for any amount of it.
struct Short(String);

impl DemangleWrite for Short {
    fn write_string(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > LONGEST {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// A function's name for messages: readable, and behind it the name in the module where that is another one, so that it can
/// be searched for.
pub struct Named<'a>(pub &'a str);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let readable = demangle(self.0);
        f.write_str(&readable)?;
        if readable != self.0 {
            write!(f, " [{}]", self.0)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_cpp_are_readable_and_others_stay() {
        for (name, text) in [
            ("_Z5scalePfi", "scale(float*, int) [_Z5scalePfi]"),
            ("_Z3addIiEvT_S0_", "add<int>(int, int) [_Z3addIiEvT_S0_]"),
            ("_ZZ4sortPiE4tile", "sort(int*)::tile [_ZZ4sortPiE4tile]"),
            (
                "_ZN30_INTERNAL_1234abcd_4_a_cu_main3addEi",
                "_INTERNAL_1234abcd_4_a_cu_main::add(int) [_ZN30_INTERNAL_1234abcd_4_a_cu_main3addEi]",
            ),
            ("kernel", "kernel"),
            ("_Z", "_Z"),
            ("_Znonsense", "_Znonsense"),
            ("_ZN", "_ZN"),
        ] {
            assert_eq!(Named(name).to_string(), text);
        }
    }
}
