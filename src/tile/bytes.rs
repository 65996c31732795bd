//! How numbers, strings and arrays are written.

use std::sync::Arc;

use super::error::Error;

/// A place in a part of the bytecode.
#[derive(Clone)]
pub struct Bytes<'a> {
    rest: &'a [u8],
    /// Where the part begins in the whole, for messages; and how long it was.
    origin: usize,
    length: usize,
}

impl<'a> Bytes<'a> {
    pub fn new(all: &'a [u8], origin: usize) -> Bytes<'a> {
        Bytes {
            rest: all,
            origin,
            length: all.len(),
        }
    }

    /// How much has been read.
    pub fn offset(&self) -> usize {
        self.length - self.rest.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub fn wrong(&self, why: impl Into<String>) -> Error {
        Error::Malformed {
            offset: self.origin + self.offset(),
            why: why.into(),
        }
    }

    pub fn take(&mut self, bytes: usize) -> Result<&'a [u8], Error> {
        match self.rest.split_at_checked(bytes) {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(taken)
            }
            None => Err(self.wrong(format!("{bytes} bytes are to follow, and {} do", self.rest.len()))),
        }
    }

    /// A part of so many bytes, to be read by itself.
    pub fn part(&mut self, bytes: usize) -> Result<Bytes<'a>, Error> {
        let origin = self.origin + self.offset();
        Ok(Bytes::new(self.take(bytes)?, origin))
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let taken = self.take(N)?;
        Ok(std::array::from_fn(|i| taken[i]))
    }

    pub fn byte(&mut self) -> Result<u8, Error> {
        Ok(self.array::<1>()?[0])
    }

    /// Seven bits a byte, the lowest first.
    pub fn number(&mut self) -> Result<u64, Error> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.wrong("a number of more than 64 bits"))
    }

    /// The lowest bit is the sign.
    pub fn signed(&mut self) -> Result<i64, Error> {
        let value = self.number()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// How many things follow: no more than there are bytes, for each takes one at least.
    pub fn count(&mut self) -> Result<usize, Error> {
        let count = self.number()?;
        match usize::try_from(count) {
            Ok(count) if count <= self.rest.len() => Ok(count),
            _ => Err(self.wrong(format!("{count} things are to follow in {} bytes", self.rest.len()))),
        }
    }

    /// As [`Bytes::count`], of things that may take no bytes at all.
    pub fn index(&mut self) -> Result<u32, Error> {
        let index = self.number()?;
        u32::try_from(index).map_err(|_| self.wrong(format!("an index of {index}")))
    }

    pub fn align(&mut self, to: usize) -> Result<(), Error> {
        let padding = self.offset().next_multiple_of(to) - self.offset();
        self.take(padding).map(drop)
    }

    /// So many numbers of so many bytes each, without signs.
    pub fn words(&mut self, count: usize, bytes: usize) -> Result<Vec<u64>, Error> {
        let all = self.take(count.saturating_mul(bytes))?;
        let word = |raw: &[u8]| raw.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
        Ok(all.chunks_exact(bytes).map(word).collect())
    }

    /// An array of 32-bit or 64-bit numbers with its length before it.
    pub fn integers(&mut self, bytes: usize) -> Result<Vec<i64>, Error> {
        let count = self.count()?;
        let all = self.take(count.saturating_mul(bytes))?;
        Ok(all
            .chunks_exact(bytes)
            .map(|raw| match bytes {
                4 => i64::from(i32::from_le_bytes(std::array::from_fn(|i| raw[i]))),
                _ => i64::from_le_bytes(std::array::from_fn(|i| raw[i])),
            })
            .collect())
    }

    /// A table: how many entries, where each begins, and the entries.
    pub fn table(mut self, index_bytes: usize) -> Result<Vec<Bytes<'a>>, Error> {
        let count = self.count()?;
        if count == 0 {
            return Ok(Vec::new());
        }
        self.align(index_bytes)?;
        let starts = self.words(count, index_bytes)?;
        let starts: Vec<usize> = starts
            .iter()
            .map(|&start| usize::try_from(start).unwrap_or(usize::MAX))
            .collect();
        let ends = starts.iter().skip(1).copied().chain([self.rest.len()]);
        starts
            .iter()
            .zip(ends)
            .map(|(&start, end)| match self.rest.get(start..end) {
                Some(entry) => Ok(Bytes::new(entry, self.origin + self.offset() + start)),
                None => Err(self.wrong(format!("an entry from {start} to {end}"))),
            })
            .collect()
    }
}

/// The strings of a module, which are named by number.
pub struct Strings(Vec<Arc<str>>);

impl Strings {
    /// `None`: there is no section of them.
    pub fn of(section: Option<Bytes<'_>>) -> Result<Strings, Error> {
        let entries = section.map_or(Ok(Vec::new()), |section| section.table(4))?;
        let text = |entry: &Bytes<'_>| Arc::from(String::from_utf8_lossy(entry.rest()));
        Ok(Strings(entries.iter().map(text).collect()))
    }

    /// The string whose number comes next.
    pub fn read(&self, bytes: &mut Bytes<'_>) -> Result<Arc<str>, Error> {
        let index = bytes.index()?;
        match self.0.get(index as usize) {
            Some(text) => Ok(Arc::clone(text)),
            None => Err(bytes.wrong(format!("string {index}, of {}", self.0.len()))),
        }
    }
}
