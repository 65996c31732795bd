//! What is PTX of a module: a kernel for each entry, with its parameters, that calls the system until its tile block is through;
//! and the variables.

use std::fmt::Write;

use super::debug::Line;
use super::error::Error;
use super::read::{Entry, Module, Site};
use super::types::{Element, TileType};

/// Runs a tile block for a while. Arguments: the entry's number, the address of a table with those of the variables, and the
/// number of the site that the call stands for. Gives 0, if the block is through, or [`to_go_on`].
pub const SYSTEM_CALL: &str = "__margay_tile_block";

/// The text that goes with a module.
///
/// # Errors
/// A name that PTX cannot have.
pub fn ptx(module: &Module) -> Result<String, Error> {
    let mut text = String::from(".version 8.0\n.target sm_80\n.address_size 64\n");
    let names =
        (module.globals.iter().map(|global| &global.name)).chain(module.entries.iter().map(|entry| &entry.name));
    for name in names {
        if !is_identifier(name) {
            return Err(Error::Unsupported {
                what: format!("the name `{name}`"),
            });
        }
    }
    let _ = writeln!(
        text,
        ".extern .func (.param .b32 next) {SYSTEM_CALL} (.param .b32 entry, .param .b64 variables, .param .b32 site);"
    );
    for global in &module.globals {
        let bytes = global.value.data.to_bytes();
        let list: Vec<String> = bytes.iter().map(u8::to_string).collect();
        let (name, align) = (&global.name, global.align);
        let _ = writeln!(
            text,
            ".visible .global .align {align} .b8 {name}[{}] = {{{}}};",
            bytes.len(),
            list.join(", ")
        );
    }
    let table = match module.globals.is_empty() {
        true => "0".to_string(),
        false => {
            let names: Vec<String> = module
                .globals
                .iter()
                .map(|global| format!("generic({})", global.name))
                .collect();
            let _ = writeln!(
                text,
                ".global .align 8 .u64 __margay_tile_variables[{}] = {{{}}};",
                names.len(),
                names.join(", ")
            );
            "__margay_tile_variables".to_string()
        }
    };
    let mut debug = Text::default();
    for (number, entry) in module.entries.iter().enumerate() {
        kernel(&mut text, (number, entry), &table, &mut debug);
    }
    for (number, file) in debug.files.iter().enumerate() {
        let _ = writeln!(text, ".file {} \"{file}\"", number + 1);
    }
    if !debug.functions.is_empty() {
        let _ = writeln!(text, ".section .debug_str\n{{");
        for (number, name) in debug.functions.iter().enumerate() {
            let bytes: Vec<String> = name.bytes().chain([0]).map(|byte| byte.to_string()).collect();
            let _ = writeln!(text, "{}{number}:\n.b8 {}", NAME, bytes.join(","));
        }
        let _ = writeln!(text, "}}");
    }
    Ok(text)
}

/// What lines of sources are named by: files from 1 on, and functions that were inlined, from 0 on.
#[derive(Default)]
struct Text {
    files: Vec<String>,
    functions: Vec<String>,
}

/// The labels of functions' names begin with it.
const NAME: &str = "$L__info_string";

impl Text {
    fn file(&mut self, name: &str) -> usize {
        // A string of PTX has no way to write these.
        let name = name.replace(|c: char| c.is_control() || c == '"' || c == '\\', "?");
        number_of(&mut self.files, name) + 1
    }

    fn function(&mut self, name: &str) -> usize {
        number_of(&mut self.functions, name.replace('\0', "?"))
    }
}

fn number_of(names: &mut Vec<String>, name: String) -> usize {
    let known = names.iter().position(|known| *known == name);
    known.unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    })
}

/// An entry: a call for each site, each with its lines, and a branch to the one that is next. So whoever looks for where the kernel
/// is finds the operation's line, as for every other kernel.
fn kernel(text: &mut String, (number, entry): (usize, &Entry), table: &str, debug: &mut Text) {
    let parameters: Vec<String> = entry
        .parameters
        .iter()
        .enumerate()
        .map(|(at, ty)| parameter(at, ty))
        .collect();
    let _ = writeln!(text, ".visible .entry {} ({})\n{{", entry.name, parameters.join(", "));
    let labels: Vec<String> = entry
        .sites
        .iter()
        .enumerate()
        .map(|(at, site)| label(at, site))
        .collect();
    let _ = write!(
        text,
        "\t.reg .pred %p;\n\t.reg .b32 %next, %site, %turn;\n\t.reg .b64 %variables;\n\tmov.b64 %variables, {table};\n\tmov.b32 \
         %site, 0;\nagain:\nsites: .branchtargets {};\n\tbrx.idx.uni %site, sites;\n",
        labels.join(", ")
    );
    for (at, (site, label)) in entry.sites.iter().zip(&labels).enumerate() {
        let _ = writeln!(text, "{label}:");
        lines(text, &site.lines, debug);
        let _ = write!(
            text,
            "\t{{\n\t.param .b32 entry;\n\t.param .b64 variables;\n\t.param .b32 site;\n\t.param .b32 \
             next;\n\tst.param.b32 [entry], {number};\n\tst.param.b64 [variables], %variables;\n\tst.param.b32 [site], \
             {at};\n\tcall.uni (next), {SYSTEM_CALL}, (entry, variables, site);\n\tld.param.b32 %next, \
             [next];\n\t}}\n\tbra.uni on;\n"
        );
    }
    let _ = writeln!(
        text,
        "on:\n\tsetp.eq.u32 %p, %next, 0;\n\t@%p ret;\n\tsub.u32 %next, %next, 1;\n\tshr.u32 %site, %next, 1;\n\tand.b32 %turn, \
         %next, 1;\n\tsetp.eq.u32 %p, %turn, 0;\n\t@%p bra.uni again;\n\tnanosleep.u32 0;\n\tbra.uni again;\n}}"
    );
}

/// What the system call answers when the entry goes on at a site; `others`: after others have had their turn.
pub fn to_go_on(site: u32, others: bool) -> u32 {
    2 * site + 1 + u32::from(others)
}

/// The label of a site names its operation.
fn label(at: usize, site: &Site) -> String {
    match site.operation {
        Some(operation) => format!("{LABEL}{}_{at}", operation.layout().name),
        None => "begin".into(),
    }
}

const LABEL: &str = "tile_";

/// The operation of Tile IR that a label of such a text stands for.
pub fn operation_at(label: &str) -> Option<&str> {
    let (operation, _number) = label.strip_prefix(LABEL)?.rsplit_once('_')?;
    Some(operation)
}

/// `.loc` of a line, after those of the calls that it was inlined by.
fn lines(text: &mut String, lines: &[Line], debug: &mut Text) {
    let mut outer: Option<String> = None;
    for line in lines.iter().rev() {
        let place = format!("{} {} {}", debug.file(&line.file), line.line, line.column);
        let _ = match outer {
            Some(outer) => {
                let name = debug.function(&line.function);
                writeln!(text, "\t.loc {place}, function_name {NAME}{name}, inlined_at {outer}")
            }
            None => writeln!(text, "\t.loc {place}"),
        };
        outer = Some(place);
    }
}

/// A parameter takes the place that C gives it.
fn parameter(at: usize, ty: &TileType) -> String {
    format!(".param .b{} parameter_{at}", 8 * parameter_bytes(ty.element))
}

/// Bytes of a parameter, and what it is aligned to.
pub fn parameter_bytes(element: Element) -> u32 {
    element.bytes()
}

fn is_identifier(name: &str) -> bool {
    let follows = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$';
    match name.as_bytes() {
        [first, rest @ ..] if first.is_ascii_alphabetic() => rest.iter().copied().all(follows),
        [b'_' | b'$', rest @ ..] => !rest.is_empty() && rest.iter().copied().all(follows),
        _ => false,
    }
}
