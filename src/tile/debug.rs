//! Where operations come from: the section of debug information (CUDA Tile IR Reference, Binary Format; what the reference leaves open is as
//! NVIDIA's own reader has it, `lib/Bytecode/Reader/BytecodeReader.cpp` of its `cuda-tile`).
//!
//! Each function has a list of numbers: its own, then those of its operations as they are written, of which an outer one
//! comes before those within. A number names an entry of a table, from 1 on; 0 names none.

use std::sync::Arc;

use super::bytes::{Bytes, Strings};
use super::error::Error;

/// A line of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub file: Arc<str>,
    pub line: u32,
    /// 0: not known.
    pub column: u32,
    /// The function that it is in.
    pub function: Arc<str>,
}

pub struct Debug<'a> {
    /// Where each function's numbers begin.
    starts: Vec<u64>,
    numbers: Vec<u64>,
    entries: Vec<Bytes<'a>>,
}

/// Calls that one chain may have, and scopes within each other: a module that says more is damaged.
const DEEPEST: usize = 64;

// What an entry of the table is.
const FILE: u64 = 2;
const LEXICAL_BLOCK: u64 = 3;
const LOCATION: u64 = 4;
const SUBPROGRAM: u64 = 5;
const CALL_SITE: u64 = 6;

impl<'a> Debug<'a> {
    pub fn read(mut section: Bytes<'a>) -> Result<Debug<'a>, Error> {
        let functions = section.count()?;
        section.align(4)?;
        let starts = section.words(functions, 4)?;
        let numbers = section.count()?;
        section.align(8)?;
        Ok(Debug {
            starts,
            numbers: section.words(numbers, 8)?,
            entries: section.table(4)?,
        })
    }

    /// The number of operation `at` of a function, whose own is the one at 0. `function`: its number, from 1 on; 0 has none.
    pub fn number(&self, function: u64, at: usize, bytes: &Bytes<'_>) -> Result<u64, Error> {
        let Some(function) = function.checked_sub(1) else {
            return Ok(0);
        };
        let start = usize::try_from(function).ok().and_then(|at| self.starts.get(at));
        let place = start.and_then(|&start| usize::try_from(start).ok()?.checked_add(at));
        let number = place.and_then(|place| self.numbers.get(place).copied());
        number.ok_or_else(|| {
            bytes.wrong(format!(
                "no debug information for operation {at} of function {function}"
            ))
        })
    }

    fn entry(&self, number: u64, bytes: &Bytes<'_>) -> Result<Option<Bytes<'a>>, Error> {
        let Some(at) = number.checked_sub(1) else {
            return Ok(None);
        };
        match usize::try_from(at).ok().and_then(|at| self.entries.get(at)) {
            Some(entry) => Ok(Some(entry.clone())),
            None => Err(bytes.wrong(format!("debug entry {number}, of {}", self.entries.len()))),
        }
    }

    /// The line that an entry names, then where that function was inlined, and so on; none, if it names no line.
    pub fn lines(&self, number: u64, strings: &Strings, bytes: &Bytes<'_>) -> Result<Box<[Line]>, Error> {
        let mut lines = Vec::new();
        let mut rest = vec![number];
        let mut left = 2 * DEEPEST;
        while let Some(number) = rest.pop() {
            let Some(mut entry) = self.entry(number, bytes)? else {
                continue;
            };
            left = left
                .checked_sub(1)
                .ok_or_else(|| entry.wrong("too many calls within each other"))?;
            match entry.number()? {
                LOCATION => {
                    let scope = entry.number()?;
                    let (file, function) = self.scope(scope, strings, bytes)?;
                    let named = strings.read(&mut entry)?;
                    let (line, column) = (entry.number()?, entry.number()?);
                    lines.push(Line {
                        file: if named.is_empty() { file } else { named },
                        line: u32::try_from(line).unwrap_or(0),
                        column: u32::try_from(column).unwrap_or(0),
                        function,
                    });
                }
                CALL_SITE => {
                    let (callee, caller) = (entry.number()?, entry.number()?);
                    rest.extend([caller, callee]);
                }
                // What else may stand there has no line of an operation.
                _ => {}
            }
        }
        lines.retain(|line| line.line != 0);
        Ok(lines.into())
    }

    /// The file of a scope, and the function that it is or lies in.
    fn scope(&self, mut number: u64, strings: &Strings, bytes: &Bytes<'_>) -> Result<(Arc<str>, Arc<str>), Error> {
        for _ in 0..DEEPEST {
            let Some(mut entry) = self.entry(number, bytes)? else {
                break;
            };
            match entry.number()? {
                LEXICAL_BLOCK => number = entry.number()?,
                SUBPROGRAM => {
                    let file = entry.number()?;
                    let _line = entry.number()?;
                    return Ok((self.file(file, strings, bytes)?, strings.read(&mut entry)?));
                }
                _ => break,
            }
        }
        Ok(("".into(), "".into()))
    }

    fn file(&self, number: u64, strings: &Strings, bytes: &Bytes<'_>) -> Result<Arc<str>, Error> {
        let Some(mut entry) = self.entry(number, bytes)? else {
            return Ok("".into());
        };
        if entry.number()? != FILE {
            return Ok("".into());
        }
        let (name, directory) = (strings.read(&mut entry)?, strings.read(&mut entry)?);
        Ok(match name.starts_with('/') || directory.is_empty() {
            true => name,
            false => format!("{}/{name}", directory.trim_end_matches('/')).into(),
        })
    }
}
