//! `margay ptx check FILE…`, `margay ptx print FILE`, `margay ptx lower FILE`: what is wrong with PTX texts, how the
//! reader understands one, and what code the executor gets of it.

use crate::Outcome;
use clap::{Arg, ArgAction, ArgMatches, Command};
use cuda::program::{Allocate, AllocateError, LinkError, Module, check};
use cuda::ptx;
use cuda::ptx::ast::{self, Item};
use cuda::ptx::diagnostic::Diagnostics;
use cuda::simt::{self, Listing};
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

pub fn command() -> Command {
    let file = || Arg::new("file").value_name("FILE").required(true);
    Command::new("ptx")
        .about("Check PTX texts, or print them as they are understood")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("check")
                .about("Read PTX files completely and report everything that is wrong with them")
                .arg(
                    Arg::new("time")
                        .long("time")
                        .action(ArgAction::SetTrue)
                        .help("Say how fast each was read, and how much memory its tree takes"),
                )
                .arg(file().num_args(1..))
                .arg(
                    Arg::new("strict")
                        .long("strict")
                        .action(ArgAction::SetTrue)
                        .help("Take what .version and .target lack as errors, as NVIDIA's assembler does"),
                ),
        )
        .subcommand(
            Command::new("print")
                .about("Print a PTX file from its syntax tree: constants folded, comments gone")
                .arg(file()),
        )
        .subcommand(
            Command::new("lower")
                .about("Print the code that the executor runs for a kernel and all that it calls directly")
                .arg(file())
                .arg(
                    Arg::new("entry")
                        .long("entry")
                        .value_name("NAME")
                        .help("Only this kernel or function"),
                )
                .arg(
                    Arg::new("llvm")
                        .long("llvm")
                        .action(ArgAction::SetTrue)
                        .conflicts_with("asm")
                        .help("As LLVM's text, which is made for one warp"),
                )
                .arg(
                    Arg::new("asm")
                        .long("asm")
                        .action(ArgAction::SetTrue)
                        .help("As the assembly that LLVM makes of it"),
                )
                .arg(
                    Arg::new("block")
                        .long("block")
                        .value_name("X,Y,Z")
                        .default_value("256")
                        .help("With --llvm and --asm: for blocks of this shape"),
                ),
        )
}

pub fn run(matches: &ArgMatches) -> Outcome {
    let (print, matches) = match matches.subcommand() {
        Some(("print", matches)) => (true, matches),
        Some(("lower", matches)) => return lower(matches),
        Some((_, matches)) => (false, matches),
        None => return Err("check or print?".to_owned()),
    };
    let coloured = std::io::stderr().is_terminal();
    let complain = |found: &Diagnostics| eprint!("{}", if coloured { found.render() } else { found.render_plain() });
    let mut code = ExitCode::SUCCESS;
    let time = !print && matches.get_flag("time");
    for file in matches.get_many::<String>("file").into_iter().flatten() {
        let bytes = std::fs::read(file).map_err(|error| format!("{file}: {error}"))?;
        if time {
            println!("{file}: {}", timed(file, &bytes));
            continue;
        }
        let source = ptx::source_from_bytes(file, &bytes);
        let read = if print {
            ptx::parse_all(source.clone())
        } else {
            ptx::parse(source.clone())
        };
        match read {
            Ok(module) if print => {
                let written = write!(std::io::stdout().lock(), "{module}");
                written.map_err(|error| format!("standard output: {error}"))?;
            }
            Ok(module) => {
                let mut found = check::all(&module);
                if matches.get_flag("strict") {
                    found = found.strictly();
                }
                if !found.list.is_empty() {
                    complain(&found);
                }
                match found.has_errors() {
                    true => code = ExitCode::FAILURE,
                    false => println!("{file}: {}", summary(&module)),
                }
            }
            Err(found) => {
                // What is wrong inside bodies, too.
                complain(&ptx::parse_all(source).err().unwrap_or(found));
                code = ExitCode::FAILURE;
            }
        }
    }
    Ok(code)
}

/// How fast a text is scanned for its declarations and read completely, by the time that this one thread had a core; how
/// much memory the tree takes beside the text.
fn timed(file: &str, bytes: &[u8]) -> String {
    let source = ptx::source_from_bytes(file, bytes);
    let megabytes = bytes.len() as f64 / 1e6;
    let before = resident();
    let start = busy();
    let module = match ptx::parse(source) {
        Ok(module) => module,
        Err(found) => return format!("not read: {} findings", found.list.len()),
    };
    let scan = (busy() - start).as_secs_f64();
    if let Err(found) = module.check() {
        return format!("not read: {} findings", found.list.len());
    }
    let full = (busy() - start).as_secs_f64();
    let tree = resident().saturating_sub(before) as f64 / bytes.len().max(1) as f64;
    format!(
        "{megabytes:.1} MB, scanned at {:.0} MB/s, read completely at {:.0} MB/s, tree {tree:.1} times the text",
        megabytes / scan,
        megabytes / full,
    )
}

/// How long this thread has had a core.
fn busy() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists on every Linux, and the place to write to is ours.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Bytes of memory that this process has.
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok());
    pages.unwrap_or(0) * 4096
}

/// Memory for variables that nobody will run on: addresses only.
struct Nowhere(u64);

impl Allocate for Nowhere {
    fn allocate(&mut self, bytes: u64, align: u64, _: bool, _: bool) -> Result<u64, AllocateError> {
        let address = self.0.next_multiple_of(align);
        self.0 = address + bytes;
        Ok(address)
    }
    fn write(&mut self, _: u64, _: &[u8]) {}
}

fn lower(matches: &ArgMatches) -> Outcome {
    let coloured = std::io::stderr().is_terminal();
    let complain = |found: &Diagnostics| eprint!("{}", if coloured { found.render() } else { found.render_plain() });
    let Some(file) = matches.get_one::<String>("file") else {
        return Err("which file?".to_owned());
    };
    let bytes = std::fs::read(file).map_err(|error| format!("{file}: {error}"))?;
    let tree = match ptx::parse_bytes(file, &bytes) {
        Ok(tree) => tree,
        Err(found) => {
            complain(&found);
            return Ok(ExitCode::FAILURE);
        }
    };
    let module = match Module::link(&[Arc::new(tree)], &mut Nowhere(0x10_0000)) {
        Ok(module) => module,
        Err(LinkError::Invalid(found)) => {
            complain(&found);
            return Ok(ExitCode::FAILURE);
        }
        Err(error) => return Err(format!("{file}: {error}")),
    };
    let wanted = matches.get_one::<String>("entry");
    let listing = match (matches.get_flag("llvm"), matches.get_flag("asm")) {
        (true, _) => Some(Listing::Llvm),
        (_, true) => Some(Listing::Assembly),
        _ => None,
    };
    let block = shape(matches.get_one::<String>("block").map_or("", String::as_str))?;
    let mut code = ExitCode::SUCCESS;
    let mut any = false;
    for (index, entry) in module.functions.iter().enumerate() {
        if wanted.is_some_and(|name| **name != *entry.name) {
            continue;
        }
        any = true;
        match module.prepare(index as u32) {
            Ok(function) => {
                let text = match listing {
                    None => format!("#{index} {function}"),
                    Some(what) => match simt::listing(&function, entry.entry, block, what) {
                        Ok(text) => text,
                        Err(why) => {
                            eprintln!("{}: {why}", entry.name);
                            code = ExitCode::FAILURE;
                            continue;
                        }
                    },
                };
                let written = write!(std::io::stdout().lock(), "{text}");
                written.map_err(|error| format!("standard output: {error}"))?;
            }
            Err(found) => {
                complain(&found);
                code = ExitCode::FAILURE;
            }
        }
    }
    match wanted {
        Some(name) if !any => Err(format!("{file} defines no `{name}`")),
        _ => Ok(code),
    }
}

/// The sizes of a block: `256`, `16,16`, `8,8,4`.
fn shape(text: &str) -> Result<[u32; 3], String> {
    let mut shape = [1; 3];
    let mut given = text.split(',');
    for (size, given) in shape.iter_mut().zip(given.by_ref()) {
        *size = given
            .trim()
            .parse()
            .ok()
            .filter(|size| (1..=1024).contains(size))
            .ok_or(format!("`{text}` is no block's shape"))?;
    }
    match given.next() {
        None => Ok(shape),
        Some(_) => Err(format!("`{text}` has more than three sizes")),
    }
}

fn summary(module: &ast::Module) -> String {
    let (mut kernels, mut functions, mut variables) = (0, 0, 0);
    for item in &module.items {
        match item {
            Item::Function(function) if function.body.is_none() => {}
            Item::Function(function) if function.entry => kernels += 1,
            Item::Function(_) => functions += 1,
            Item::Variable(_) => variables += 1,
            Item::Alias { .. } | Item::File { .. } | Item::Section(_) | Item::Pragma(_) | Item::Debug(_) => {}
        }
    }
    let count = |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    let target: Vec<&str> = module.target.iter().map(|name| &*name.text).collect();
    let (major, minor) = module.version;
    format!(
        "PTX {major}.{minor} for {}: {}, {}, {}",
        target.join(", "),
        count(kernels, "kernel"),
        count(functions, "function"),
        count(variables, "variable")
    )
}
