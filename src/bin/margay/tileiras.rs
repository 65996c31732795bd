//! `tileiras`, as programs start it: checks kernels over tiles (CUDA Tile IR), and puts their bytecode out in the place of machine
//! code: the driver runs it. Options are those of NVIDIA's (`tileiras --help` of CUDA 13.5), of which the output's place matters.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgMatches, Command};
use cuda::tile;

use crate::Outcome;
use crate::ptxas::stands_in;

/// What answers `--version`, of which programs read the release: the driver's own.
const VERSION: &str = "\
tileiras: Margay's stand-in for NVIDIA's compiler of Tile IR, which keeps the bytecode
Cuda compilation tools, release 13.5, V13.5.0";

/// Options whose value may stand in the next word; all others are switches, or have theirs behind `=`.
const VALUED: &[&str] = &[
    "apply-controls",
    "arch",
    "gpu-name",
    "host-arch",
    "host-os",
    "opt-level",
    "preview",
    "sanitize",
];

pub fn command() -> Command {
    stands_in(
        "tileiras",
        "Check Tile IR and put it out in the place of machine code, with the options of NVIDIA's compiler",
    )
}

pub fn run(matches: &ArgMatches) -> Outcome {
    Ok(compile(matches.get_many("words").into_iter().flatten().cloned()))
}

/// The whole program, with its arguments.
pub fn compile(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    match Request::read(words).and_then(Request::carry_out) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

#[derive(Default)]
struct Request {
    version: bool,
    file: Option<PathBuf>,
    output: Option<PathBuf>,
}

impl Request {
    fn read(words: impl IntoIterator<Item = OsString>) -> Result<Request, String> {
        let mut request = Request::default();
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let Some(option) = word.to_str().filter(|word| word.len() > 1 && word.starts_with('-')) else {
                if request.file.replace(word.into()).is_some() {
                    return Err("more than one file of bytecode".to_owned());
                }
                continue;
            };
            let option = option.trim_start_matches('-');
            let (name, attached) = match option.split_once('=') {
                Some((name, value)) => (name, Some(OsString::from(value))),
                None => (option, None),
            };
            let mut value = || {
                let given = attached.clone().or_else(|| words.next());
                given.ok_or_else(|| format!("`{name}` wants a value"))
            };
            match name {
                "o" | "output-file" => request.output = Some(value()?.into()),
                "l" => return Err("libraries of tile functions are not supported".to_owned()),
                "version" => request.version = true,
                _ if VALUED.contains(&name) => drop(value()?),
                _ => {}
            }
        }
        Ok(request)
    }

    fn carry_out(self) -> Result<(), String> {
        if self.version {
            println!("{VERSION}");
            return Ok(());
        }
        let Some(file) = self.file else {
            return Err("no file of bytecode; this is Margay's stand-in for NVIDIA's compiler of Tile IR".to_owned());
        };
        let bytes = std::fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let module = tile::read(&bytes).map_err(|error| error.to_string())?;
        tile::ptx(&module).map_err(|error| error.to_string())?;
        let output = self.output.unwrap_or_else(|| file.with_extension("cubin"));
        std::fs::write(&output, bytes).map_err(|error| format!("{}: {error}", output.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_told_from_the_file() {
        // cuTile's command line.
        let words = [
            "a.bytecode",
            "-o",
            "a.cubin",
            "--gpu-name",
            "sm_120",
            "-O3",
            "--preview=simt",
            "--lineinfo",
            "--remarks=all",
        ];
        let request = Request::read(words.map(OsString::from)).unwrap();
        assert_eq!(
            (request.file, request.output),
            (Some("a.bytecode".into()), Some("a.cubin".into()))
        );
        assert!(Request::read(["--version".into()]).unwrap().version);
        for wrong in [&["a", "b"][..], &["-o"], &["a", "-l", "b.tilelib"]] {
            assert!(Request::read(wrong.iter().map(OsString::from)).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn what_is_no_bytecode_is_refused() {
        let folder = std::env::temp_dir().join(format!("margay-tileiras-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (bad, out) = (folder.join("bad"), folder.join("out"));
        std::fs::write(&bad, b"\x7fTileIR\0\x0d\x01\0\0").unwrap();
        let request = |file: PathBuf| Request {
            file: Some(file),
            output: Some(out.clone()),
            version: false,
        };
        assert!(request(bad).carry_out().unwrap_err().contains("Tile IR, byte 12"));
        assert!(request(folder.join("nowhere")).carry_out().is_err() && !out.exists());
        std::fs::remove_dir_all(folder).unwrap();
    }
}
