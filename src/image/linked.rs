//! Images that the JIT linker makes of several texts, or of one with addresses for variables that nobody defines: the
//! symbols and the texts as data, after a header of our own. Programs keep such an image and load it later; to them it is
//! a cubin, of which they know the size.
//!
//! ```text
//! magic, version: u32     bytes in all: u64     symbols, texts: u32
//! for each symbol         address: u64          name: u32 bytes, the bytes
//! for each text           u64 bytes, the bytes
//! ```

use super::source::Source;
use super::{ErrorKind, Image, ImageError, Kind, text};

pub(super) const MAGIC: [u8; 4] = *b"\x8fMGY";
const VERSION: u32 = 1;
const HEADER: u64 = 24;
/// No link makes more of it than this.
const MOST: u64 = 4 << 30;

/// The image of some texts, and of addresses by name.
pub fn write<'a>(symbols: impl IntoIterator<Item = (&'a str, u64)>, texts: &[&str]) -> Vec<u8> {
    let mut symbols: Vec<(&str, u64)> = symbols.into_iter().collect();
    // The same link gives the same image.
    symbols.sort_unstable();
    let mut bytes = Vec::new();
    bytes.extend(MAGIC);
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend([0; 8]);
    bytes.extend((symbols.len() as u32).to_le_bytes());
    bytes.extend((texts.len() as u32).to_le_bytes());
    for (name, address) in symbols {
        bytes.extend(address.to_le_bytes());
        bytes.extend((name.len() as u32).to_le_bytes());
        bytes.extend(name.as_bytes());
    }
    for text in texts {
        bytes.extend((text.len() as u64).to_le_bytes());
        bytes.extend(text.as_bytes());
    }
    let total = bytes.len() as u64;
    bytes[8..16].copy_from_slice(&total.to_le_bytes());
    bytes
}

/// The rest of an image, part by part.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: u64) -> Result<&'a [u8], ImageError> {
        let part = usize::try_from(count)
            .ok()
            .and_then(|count| self.at.checked_add(count))
            .and_then(|end| self.bytes.get(self.at..end));
        let part = part.ok_or_else(|| ImageError::corrupt(self.at as u64, "a linked image ends in the middle"))?;
        self.at += part.len();
        Ok(part)
    }

    fn number(&mut self, count: u64) -> Result<u64, ImageError> {
        let mut number = [0; 8];
        number[..count as usize].copy_from_slice(self.take(count)?);
        Ok(u64::from_le_bytes(number))
    }
}

pub(super) fn parse(source: Source<'_>) -> Result<Image, ImageError> {
    let header = source.read(0, HEADER as usize, "the header of a linked image")?;
    let mut head = Reader { bytes: &header, at: 4 };
    let (version, total) = (head.number(4)?, head.number(8)?);
    let (symbols, texts) = (head.number(4)?, head.number(4)?);
    if version != u64::from(VERSION) {
        let message = format!("a linked image of version {version}, of which nothing is known here");
        return Err(ImageError::new(ErrorKind::Unsupported, message));
    }
    if !(HEADER..=MOST).contains(&total) {
        return Err(ImageError::corrupt(8, format!("a linked image of {total} bytes")));
    }
    let bytes = source.read(0, total as usize, "a linked image")?;
    let mut rest = Reader {
        bytes: &bytes,
        at: HEADER as usize,
    };
    let mut image = Image::default();
    for _ in 0..symbols {
        let address = rest.number(8)?;
        let length = rest.number(4)?;
        let at = rest.at as u64;
        let name = std::str::from_utf8(rest.take(length)?);
        let name = name.map_err(|_| ImageError::corrupt(at, "the name of a symbol is not text"))?;
        image.symbols.push((name.to_string(), address));
    }
    for _ in 0..texts {
        let length = rest.number(8)?;
        let text = rest.take(length)?;
        if !text::looks_like_ptx(text) {
            return Err(ImageError::corrupt(
                rest.at as u64,
                "a linked image holds what is not PTX",
            ));
        }
        let one = Image::of_text(text);
        debug_assert!(one.found.iter().all(|found| found.kind == Kind::Ptx));
        image.units.extend(one.units);
        image.found.extend(one.found);
    }
    Ok(image)
}

#[cfg(test)]
mod tests {
    use super::super::from_bytes;
    use super::*;

    const ONE: &str = ".version 7.0\n.target sm_70\n.address_size 64\n";
    const TWO: &str = "// two\n.version 8.0\n.target sm_90\n.address_size 64\n";

    #[test]
    fn symbols_and_texts_come_back() {
        let bytes = write([("b", 7), ("a$\u{e4}", u64::MAX)], &[ONE, TWO]);
        let image = from_bytes(&bytes).unwrap();
        assert_eq!(
            image.symbols,
            [("a$\u{e4}".to_string(), u64::MAX), ("b".to_string(), 7)]
        );
        let texts: Vec<_> = image.units.iter().map(|unit| unit.entries[0].text().unwrap()).collect();
        assert_eq!(texts.iter().map(|text| &**text).collect::<Vec<_>>(), [ONE, TWO]);
        assert_eq!(image.found.len(), 2);
        // What follows in memory is nobody's business.
        let mut longer = bytes.clone();
        longer.extend([0xAA; 64]);
        // SAFETY: a whole image.
        let image = unsafe { super::super::from_pointer(longer.as_ptr().cast()) }.unwrap();
        assert_eq!((image.units.len(), image.symbols.len()), (2, 2));
    }

    #[test]
    fn damaged_images_are_refused() {
        let bytes = write([("name", 1)], &[ONE]);
        for end in 4..bytes.len() {
            assert!(from_bytes(&bytes[..end]).is_err(), "{end}");
        }
        // Sizes, counts and lengths that promise more than there is.
        for (at, value) in [
            (4, 9),
            (8, 0xFF),
            (11, 0xFF),
            (15, 0xFF),
            (16, 2),
            (19, 0xFF),
            (20, 3),
            (23, 0xFF),
            (32, 0xFF),
        ] {
            let mut damaged = bytes.clone();
            damaged[at] = value;
            assert!(from_bytes(&damaged).is_err(), "{value} at {at}");
        }
        let mut not_text = bytes.clone();
        not_text[36] = 0xFF;
        assert!(from_bytes(&not_text).is_err());
    }
}
