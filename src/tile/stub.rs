//! What is PTX of a module: a kernel for each entry, with its parameters, that calls the system until its tile block is through;
//! and the variables.

use std::fmt::Write;

use super::error::Error;
use super::read::Module;
use super::types::{Element, TileType};

/// Runs a tile block for a while. Arguments: the entry's number, and the address of a table with those of the variables. Gives
/// whether there is more to do.
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
        ".extern .func (.param .b32 more) {SYSTEM_CALL} (.param .b32 entry, .param .b64 variables);"
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
    for (number, entry) in module.entries.iter().enumerate() {
        let parameters: Vec<String> = entry
            .parameters
            .iter()
            .enumerate()
            .map(|(at, ty)| parameter(at, ty))
            .collect();
        let _ = writeln!(text, ".visible .entry {} ({})", entry.name, parameters.join(", "));
        let _ = writeln!(
            text,
            "{{\n\t.reg .pred %p;\n\t.reg .b32 %r;\n\t.reg .b64 %rd;\n\tmov.b64 %rd, {table};\nagain:\n\t{{\n\t.param .b32 \
             entry;\n\t.param .b64 variables;\n\t.param .b32 more;\n\tst.param.b32 [entry], {number};\n\tst.param.b64 \
             [variables], %rd;\n\tcall.uni (more), {SYSTEM_CALL}, (entry, variables);\n\tld.param.b32 %r, \
             [more];\n\t}}\n\tsetp.eq.u32 %p, %r, 0;\n\t@%p ret;\n\tnanosleep.u32 0;\n\tbra.uni again;\n}}"
        );
    }
    Ok(text)
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
