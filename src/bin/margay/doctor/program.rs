//! The program's file: whether it can load a library of the machine's at all.

use super::report::Report;
use object::read::elf::{ElfFile64, FileHeader};
use object::{Endianness, elf};
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Scripts whose interpreters are scripts.
const MOST_SCRIPTS: u32 = 4;

pub struct Program {
    /// As it was given.
    pub name: OsString,
    /// What the system starts for it: of a script, the interpreter.
    pub file: PathBuf,
    /// Libraries that are linked to it, as far as its own search path tells where they are.
    pub needed: Vec<PathBuf>,
}

/// `None`: there is no such program, or it cannot run here.
pub fn examine(name: &OsStr, report: &mut Report) -> Option<Program> {
    let Some(file) = find(name) else {
        report.problem(
            format!("There is no program {}.", name.display()),
            "give its path, or a name that PATH leads to",
        );
        return None;
    };
    let mut text = file.display().to_string();
    let mut file = file;
    for _ in 0..MOST_SCRIPTS {
        let Some(interpreter) = interpreter_of_script(&file) else {
            break;
        };
        text += &format!(", a script for {}", interpreter.display());
        file = match find(interpreter.as_os_str()) {
            Some(file) => file,
            None => {
                report.problem(
                    format!(
                        "{} is a script for {}, which is not there.",
                        file.display(),
                        interpreter.display()
                    ),
                    "install it, or name the interpreter in front of the script",
                );
                return None;
            }
        };
    }
    report.seen("program", text);
    let mode = std::fs::metadata(&file).map_or(0, |data| data.permissions().mode());
    if mode & 0o6000 != 0 {
        report.problem(
            format!(
                "{} runs with its owner's rights (setuid or setgid): the loader ignores LD_LIBRARY_PATH and LD_PRELOAD.",
                file.display()
            ),
            "run a copy of it without these bits",
        );
    }
    let needed = examine_elf(&file, report)?;
    Some(Program {
        name: name.into(),
        file,
        needed,
    })
}

/// As a shell finds it.
fn find(name: &OsStr) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(name)).filter(|path| path.is_file());
    }
    let paths = std::env::var_os("PATH")?;
    let mut candidates = std::env::split_paths(&paths).map(|folder| folder.join(name));
    candidates
        .find(|path| std::fs::metadata(path).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0))
}

/// What stands after `#!`; for `/usr/bin/env NAME`, the name.
fn interpreter_of_script(file: &Path) -> Option<PathBuf> {
    let mut head = Vec::new();
    std::fs::File::open(file).ok()?.take(512).read_to_end(&mut head).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    let mut words = line
        .split(|byte| byte.is_ascii_whitespace())
        .filter(|word| !word.is_empty());
    let interpreter = Path::new(OsStr::from_bytes(words.next()?));
    let is_env = interpreter.file_name() == Some(OsStr::new("env"));
    let named = words.find(|word| !word.starts_with(b"-"));
    Some(match named.filter(|_| is_env) {
        Some(name) => OsStr::from_bytes(name).into(),
        None => interpreter.into(),
    })
}

/// The libraries that are linked to it; `None` if it cannot load ours.
fn examine_elf(file: &Path, report: &mut Report) -> Option<Vec<PathBuf>> {
    let bytes = match std::fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) => {
            report.problem(format!("{} cannot be read: {error}.", file.display()), "");
            return None;
        }
    };
    let Ok(parsed) = ElfFile64::<Endianness>::parse(&*bytes) else {
        report.problem(
            format!(
                "{} is no program for 64-bit Linux, nor a script that names its interpreter.",
                file.display()
            ),
            "name the interpreter in front of it",
        );
        return None;
    };
    let endian = parsed.endian();
    let machine = parsed.elf_header().e_machine(endian);
    if machine != elf::EM_X86_64 {
        report.problem(
            format!(
                "{} is for another kind of machine (ELF machine {machine}); Margay is for x86-64.",
                file.display()
            ),
            "build it for x86-64",
        );
        return None;
    }
    let headers = parsed.elf_program_headers().iter();
    let loader = headers
        .filter(|header| header.p_type.get(endian) == elf::PT_INTERP)
        .find_map(|header| {
            let start = header.p_offset.get(endian) as usize;
            let text = bytes.get(start..)?.get(..header.p_filesz.get(endian) as usize)?;
            Some(String::from_utf8_lossy(text).trim_end_matches('\0').to_string())
        });
    match loader {
        None => {
            report.problem(
                format!("{} is linked statically: it cannot load libcuda.so.1.", file.display()),
                "link it dynamically (CUDA's own libraries may stay static)",
            );
            return None;
        }
        Some(loader) if loader.contains("ld-musl") => {
            report.problem(
                format!("{} is for musl ({loader}), and Margay is for glibc.", file.display()),
                "build and run it on a distribution with glibc",
            );
            return None;
        }
        Some(_) => {}
    }
    Some(linked(&parsed, &bytes, file, report))
}

fn linked(parsed: &ElfFile64<'_, Endianness>, bytes: &[u8], file: &Path, report: &mut Report) -> Vec<PathBuf> {
    let endian = parsed.endian();
    let dynamic = parsed.elf_header().sections(endian, bytes).and_then(|sections| {
        let Some((entries, strings)) = sections.dynamic(endian, bytes)? else {
            return Ok(None);
        };
        Ok(Some((entries, sections.strings(endian, bytes, strings)?)))
    });
    let Ok(Some((entries, strings))) = dynamic else {
        return Vec::new();
    };
    let all = |tag: elf::DynamicTag| {
        let named = entries.iter().filter(move |entry| entry.d_tag.get(endian) == tag);
        named.filter_map(|entry| strings.get(entry.d_val.get(endian) as u32).ok())
    };
    let origin = file.canonicalize().unwrap_or_default();
    let origin = origin.parent().unwrap_or(Path::new("/"));
    let folders = |tag: elf::DynamicTag| -> Vec<PathBuf> {
        let lists = all(tag).flat_map(|list| list.split(|&byte| byte == b':'));
        let texts = lists.map(|folder| String::from_utf8_lossy(folder).into_owned());
        let texts = texts.map(|text| {
            text.replace("$ORIGIN", &origin.to_string_lossy())
                .replace("${ORIGIN}", &origin.to_string_lossy())
        });
        texts.map(PathBuf::from).collect()
    };
    let old: Vec<PathBuf> = folders(elf::DT_RPATH);
    let new: Vec<PathBuf> = folders(elf::DT_RUNPATH);
    // ld.so(8): an RPATH counts only where there is no RUNPATH, and then comes before LD_LIBRARY_PATH.
    if new.is_empty()
        && let Some(fixed) = old
            .iter()
            .map(|folder| folder.join(crate::place::LIBRARY))
            .find(|path| path.is_file())
        && !crate::place::is_margay(&fixed)
    {
        report.problem(
            format!(
                "{} has an RPATH that leads to {}, which comes before LD_LIBRARY_PATH.",
                file.display(),
                fixed.display()
            ),
            "`margay run --preload`, or link it with -Wl,--enable-new-dtags",
        );
    }
    let search: Vec<PathBuf> = if new.is_empty() { old } else { new };
    let names = all(elf::DT_NEEDED).map(|name| OsString::from_vec(name.to_vec()));
    names
        .filter_map(|name| {
            search
                .iter()
                .map(|folder| folder.join(&name))
                .find(|path| path.is_file())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_name_their_interpreters() {
        let folder = std::env::temp_dir().join(format!("margay-doctor-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("script");
        for (text, interpreter) in [
            ("#!/bin/sh\n", Some("/bin/sh")),
            ("#! /usr/bin/env python3\nprint()", Some("python3")),
            ("#!/usr/bin/env -S python3 -u\n", Some("python3")),
            ("#!/usr/bin/perl -w\n", Some("/usr/bin/perl")),
            ("\x7fELF", None),
            ("#!", None),
        ] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(interpreter_of_script(&file), interpreter.map(PathBuf::from), "{text}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
