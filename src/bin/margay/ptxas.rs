//! `ptxas`, as programs start it: checks PTX as NVIDIA's assembler does, and puts it out in the place of machine code.
//!
//! Triton, XLA and others start this program and hand what it writes to the driver. Its options are those of NVIDIA's
//! (`ptxas --help` of CUDA 13.5), of which the output's place and the texts matter; the others are accepted. The output is an
//! image of the driver's own that holds the text ([`cuda::image::linked`]).

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command, value_parser};
use cuda::image::linked;
use cuda::program::check;
use cuda::ptx;

use crate::Outcome;

/// What NVIDIA's gives when it fails.
const FAILED: u8 = 255;

/// What answers `--version`, of which programs read the release: the driver's own.
const VERSION: &str = "\
ptxas: Margay's stand-in for NVIDIA's assembler, which keeps PTX
Cuda compilation tools, release 13.5, V13.5.0";

/// Options with a value, by both names; all others are switches.
const VALUED: &[(&str, &str)] = &[
    ("Ofast-compile", "Ofc"),
    ("allow-expensive-optimizations", "allow-expensive-optimizations"),
    ("apply-controls", "apply-controls"),
    ("def-load-cache", "dlcm"),
    ("def-store-cache", "dscm"),
    ("device-function-maxrregcount", "func-maxrregcount"),
    ("device-stack-protector", "device-stack-protector"),
    ("enable-func-clone-sc", "enable-func-clone-sc"),
    ("entry", "e"),
    ("fmad", "fmad"),
    ("force-load-cache", "flcm"),
    ("force-store-cache", "fscm"),
    ("gpu-name", "arch"),
    ("input-as-string", "ias"),
    ("machine", "m"),
    ("maxntid", "maxntid"),
    ("maxrregcount", "maxrregcount"),
    ("minnctapersm", "minnctapersm"),
    ("opt-level", "O"),
    ("options-file", "optf"),
    ("output-file", "o"),
    ("position-independent-code", "pic"),
    ("register-usage-level", "regUsageLevel"),
    ("sanitize", "sanitize"),
    ("split-compile", "split-compile"),
];

pub fn command() -> Command {
    stands_in(
        "ptxas",
        "Check PTX and put it out in the place of machine code, with the options of NVIDIA's assembler",
    )
}

/// A command that takes the words of the program for which it stands in as they are.
pub fn stands_in(name: &'static str, about: &'static str) -> Command {
    Command::new(name).about(about).disable_help_flag(true).arg(
        Arg::new("words")
            .num_args(0..)
            .trailing_var_arg(true)
            .allow_hyphen_values(true)
            .value_parser(value_parser!(OsString)),
    )
}

pub fn run(matches: &ArgMatches) -> Outcome {
    Ok(assemble(matches.get_many("words").into_iter().flatten().cloned()))
}

/// The whole program, with its arguments.
pub fn assemble(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let request = match Request::read(words) {
        Ok(request) => request,
        Err(why) => return fatal(&why),
    };
    match request.carry_out() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => fatal(&why),
    }
}

fn fatal(why: &str) -> ExitCode {
    eprintln!("ptxas fatal   : {why}");
    ExitCode::from(FAILED)
}

#[derive(Default)]
struct Request {
    version: bool,
    files: Vec<PathBuf>,
    /// Texts that stand in the command line.
    texts: Vec<String>,
    output: Option<PathBuf>,
    /// A virtual architecture: nothing is written.
    check_only: bool,
}

impl Request {
    fn read(words: impl IntoIterator<Item = OsString>) -> Result<Request, String> {
        let mut request = Request::default();
        let mut words: Vec<OsString> = words.into_iter().collect();
        words.reverse();
        let mut files_of_options = 0;
        while let Some(word) = words.pop() {
            let Some(option) = word.to_str().filter(|word| word.len() > 1 && word.starts_with('-')) else {
                request.files.push(word.into());
                continue;
            };
            let option = option.trim_start_matches('-');
            let (name, attached) = match option.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (option, None),
            };
            // `-O3`, `-m64`: the value stands right behind the letter.
            let (name, attached) = match (name.get(..1), name.get(1..)) {
                (Some(letter @ ("O" | "m")), Some(rest))
                    if !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()) =>
                {
                    (letter, Some(rest.to_owned()))
                }
                _ => (name, attached),
            };
            let Some((long, _)) = VALUED.iter().find(|(long, short)| name == *long || name == *short) else {
                request.version |= matches!(name, "version" | "V");
                continue;
            };
            let value = match attached {
                Some(value) => OsString::from(value),
                None => words.pop().ok_or_else(|| format!("Argument expected after '{name}'"))?,
            };
            match *long {
                "output-file" => request.output = Some(value.into()),
                "input-as-string" => request.texts.push(value.to_string_lossy().into_owned()),
                "gpu-name" => {
                    let name = value.to_string_lossy();
                    request.check_only = name.starts_with("compute_");
                    if name.starts_with("lto_") {
                        return Err(format!(
                            "'{name}' asks for intermediate code, which this stand-in does not make"
                        ));
                    }
                }
                "options-file" => {
                    // One that names itself would never end.
                    files_of_options += 1;
                    if files_of_options > 16 {
                        return Err("Files of options name each other".to_owned());
                    }
                    let path = Path::new(&value);
                    let text = std::fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
                    words.extend(text.split_whitespace().rev().map(OsString::from));
                }
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
        let mut sources = Vec::new();
        for file in &self.files {
            let bytes = std::fs::read(file).map_err(|error| unreadable(file, &error))?;
            sources.push(ptx::source_from_bytes(file.to_string_lossy(), &bytes));
        }
        for text in &self.texts {
            sources.push(ptx::source_from_bytes("<command line>", text.as_bytes()));
        }
        if sources.is_empty() {
            return Err("No input file specified; this is Margay's stand-in for NVIDIA's assembler".to_owned());
        }
        let mut good = true;
        let mut texts = Vec::new();
        for source in sources {
            let found = match ptx::parse(source.clone()) {
                // As NVIDIA's does, also of what the version and the target lack.
                Ok(module) => check::all(&module).strictly(),
                Err(found) => ptx::parse_all(source.clone()).err().unwrap_or(found),
            };
            if !found.list.is_empty() {
                eprint!("{}", found.render_plain());
            }
            good &= !found.has_errors();
            texts.push(source.text.to_string());
        }
        if !good {
            return Err("Ptx assembly aborted due to errors".to_owned());
        }
        if self.check_only {
            return Ok(());
        }
        let output = self.output.unwrap_or_else(|| "elf.o".into());
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        std::fs::write(&output, linked::write([], &texts)).map_err(|error| format!("{}: {error}", output.display()))
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> String {
    format!("Could not open input file '{}': {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Request {
        Request::read(words.iter().map(OsString::from)).unwrap()
    }

    #[test]
    fn options_are_told_from_files() {
        // Triton's command line, and ways to write a value.
        let request = read(&[
            "-lineinfo",
            "-v",
            "--fmad=false",
            "--gpu-name=sm_120a",
            "in.ptx",
            "-o",
            "out.o",
        ]);
        assert_eq!(
            (request.files, request.output),
            (vec!["in.ptx".into()], Some("out.o".into()))
        );
        let request = read(&[
            "-m64",
            "-O3",
            "-arch",
            "sm_90",
            "--maxrregcount",
            "32",
            "a.ptx",
            "--output-file=b",
        ]);
        assert_eq!(
            (request.files, request.output),
            (vec!["a.ptx".into()], Some("b".into()))
        );
        assert!(read(&["-arch=compute_90", "a.ptx"]).check_only && read(&["--version"]).version);
        assert!(Request::read(["-o".into()]).is_err());
        assert!(Request::read(["-arch=lto_90".into()]).is_err());
    }

    #[test]
    fn the_output_is_an_image_with_the_text() {
        let folder = std::env::temp_dir().join(format!("margay-ptxas-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (from, to) = (folder.join("in.ptx"), folder.join("out.o"));
        let text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry f() { ret; }\n";
        std::fs::write(&from, text).unwrap();
        let words = || [from.clone().into_os_string(), "-o".into(), to.clone().into_os_string()];
        Request::read(words()).unwrap().carry_out().unwrap();
        let image = cuda::image::from_bytes(&std::fs::read(&to).unwrap()).unwrap();
        let entry = image.units[0].choose((8, 0)).unwrap();
        assert_eq!(&*entry.text().unwrap(), text);
        std::fs::remove_file(&to).unwrap();
        std::fs::write(&from, text.replace("ret;", "return;")).unwrap();
        assert!(Request::read(words()).unwrap().carry_out().is_err() && !to.exists());
        std::fs::remove_dir_all(folder).unwrap();
    }
}
