//! `margay image FILE…`: what a fat binary, object, program, library or archive holds, and which of it would run.

use crate::Outcome;
use clap::{Arg, ArgAction, ArgMatches, Command};
use cuda::config;
use cuda::image::{self, Encoding, Found, Image, Target};
use std::process::ExitCode;

pub fn command() -> Command {
    Command::new("image")
        .about("List the GPU code in files: programs, shared libraries, objects, archives, fat binaries, PTX")
        .arg(
            Arg::new("ptx")
                .long("ptx")
                .action(ArgAction::SetTrue)
                .help("Print the PTX that would be used on MARGAY_DEVICE, instead of a list"),
        )
        .arg(Arg::new("file").value_name("FILE").num_args(1..).required(true))
}

pub fn run(matches: &ArgMatches) -> Outcome {
    let device = &config::get().device;
    let number = device.parse().map(|target: Target| target.number);
    let number = number.map_err(|()| format!("MARGAY_DEVICE={device}: expected something like sm_120"))?;
    let capability = (number / 10, number % 10);
    let mut code = ExitCode::SUCCESS;
    for file in matches.get_many::<String>("file").into_iter().flatten() {
        let shown = image::from_file(file)
            .map_err(|error| error.to_string())
            .and_then(|image| {
                if matches.get_flag("ptx") {
                    print_ptx(&image, capability)
                } else {
                    list(file, &image, capability)
                }
            });
        if let Err(complaint) = shown {
            eprintln!("margay image: {complaint}");
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}

fn list(file: &str, image: &Image, capability: (u32, u32)) -> Result<(), String> {
    println!("{file}: {}", image.summary());
    for found in &image.found {
        println!("  {}", line(found));
    }
    for (index, unit) in image.units.iter().enumerate() {
        let Some(entry) = unit.choose(capability) else { continue };
        let isa = entry
            .isa
            .map_or(String::new(), |(major, minor)| format!(", PTX ISA {major}.{minor}"));
        let text = entry.text().map_err(|error| error.to_string())?;
        let role = if unit.is_device_runtime() {
            ", NVIDIA's device runtime"
        } else {
            ""
        };
        println!(
            "  unit {index} runs from PTX for {}{isa}, {} bytes of text{role}",
            entry.target,
            text.len()
        );
    }
    if let Some(message) = image.no_ptx_message(|| None) {
        println!("  {message}");
    }
    Ok(())
}

fn line(found: &Found) -> String {
    let target = found.target.map_or(String::new(), |target| target.to_string());
    let encoding = match found.encoding {
        Encoding::Plain => "",
        Encoding::Lz4 => "LZ4",
        Encoding::Zstd => "zstd",
        Encoding::Scrambled => "scrambled",
    };
    let mut line = format!(
        "{:8} {:12} {:>9} bytes {encoding:9}",
        target,
        found.kind.to_string(),
        found.stored
    );
    for (what, value) in [("of", &found.name), ("options", &found.options)] {
        if let Some(value) = value {
            line += &format!(" {what} {}", value.trim().escape_debug());
        }
    }
    line.trim_end().to_string()
}

fn print_ptx(image: &Image, capability: (u32, u32)) -> Result<(), String> {
    for entry in image.units.iter().filter_map(|unit| unit.choose(capability)) {
        print!("{}", entry.text().map_err(|error| error.to_string())?);
    }
    match image.no_ptx_message(|| None) {
        Some(message) => Err(message),
        None => Ok(()),
    }
}
