//! What of a host backtrace is the program's own: not the runtime, through which it calls the driver, nor what the C library
//! and the interpreter of Python do around it.

use super::python::{self, Line};
use super::symbols::Symbol;

/// A call on the way to the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// As the linker has it.
    pub function: Option<String>,
    pub place: Place,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Line {
        file: String,
        line: u32,
    },
    /// Where no line is known: how far the call is into the file of its object.
    Object {
        file: String,
        offset: usize,
    },
}

/// The frames that tell where in the program it was.
pub(super) fn of_program(symbols: &[Symbol], python: &str) -> Vec<Frame> {
    let from = symbols.iter().take_while(|symbol| is_runtimes(symbol)).count();
    // A program of which nothing is known but that it is the runtime's is better than none.
    let symbols = &symbols[if from < symbols.len() { from } else { 0 }..];
    let lines = python::parsed(python);
    let interpreter = python::interpreter();
    let is_interpreters = |symbol: &Symbol| Some(symbol.base) == interpreter || is_bridge(symbol);
    // What comes after `main` started the program.
    let main = symbols
        .iter()
        .position(|symbol| symbol.function.as_deref() == Some("main"));
    let end = match symbols.iter().position(is_interpreters) {
        Some(interpreter) => interpreter,
        None => main.map_or(symbols.len(), |main| main + 1),
    };
    let own = &symbols[..end];
    let around = own.iter().rev().take_while(|symbol| is_systems(symbol)).count();
    let own = &own[..own.len() - around];
    own.iter()
        .map(native)
        .chain(lines.into_iter().map(interpreted))
        .collect()
}

fn native(symbol: &Symbol) -> Frame {
    Frame {
        function: symbol.function.clone(),
        place: match &symbol.line {
            Some((file, line)) => Place::Line {
                file: file.clone(),
                line: *line,
            },
            None => Place::Object {
                file: symbol.object.clone(),
                offset: symbol.offset,
            },
        },
    }
}

fn interpreted(line: Line<'_>) -> Frame {
    Frame {
        function: Some(line.function.to_owned()),
        place: Place::Line {
            file: line.file.to_owned(),
            line: line.number,
        },
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The CUDA runtime's, or what nvcc and its headers put between a program and the runtime.
fn is_runtimes(symbol: &Symbol) -> bool {
    if file_name(&symbol.object).starts_with("libcudart") {
        return true;
    }
    let name = plain(symbol.function.as_deref().unwrap_or_default());
    if name.starts_with("__device_stub") || name.starts_with("__cuda") {
        return true;
    }
    match &symbol.line {
        // Templates such as `cudaMalloc<int>`, and stubs of kernels. Functions of the program may have names like the runtime's.
        Some((file, _)) => {
            let file = file_name(file);
            matches!(file, "cuda_runtime.h" | "cuda_runtime_api.h" | "host_runtime.h") || file.ends_with(".stub.c")
        }
        None => {
            let is_call = |rest: &str| rest.starts_with(|c: char| c.is_ascii_uppercase());
            name.starts_with("libcudart_static_")
                || ["cuda", "cu"]
                    .iter()
                    .any(|prefix| name.strip_prefix(prefix).is_some_and(is_call))
        }
    }
}

/// Of a mangled name of C++ without a namespace, the function's own; other names as they are.
fn plain(name: &str) -> &str {
    let Some(rest) = name.strip_prefix("_Z") else {
        return name;
    };
    let rest = rest.strip_prefix('L').unwrap_or(rest);
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (length, rest) = rest.split_at(digits);
    length
        .parse()
        .ok()
        .and_then(|length: usize| rest.get(..length))
        .unwrap_or(name)
}

/// By which Python calls functions of C.
fn is_bridge(symbol: &Symbol) -> bool {
    let file = file_name(&symbol.object);
    file.starts_with("_ctypes") || file.starts_with("libffi") || file.starts_with("libpython")
}

/// The C library's, which starts threads and programs.
fn is_systems(symbol: &Symbol) -> bool {
    let file = file_name(&symbol.object);
    let starts = matches!(symbol.function.as_deref(), Some("_start" | "__libc_start_main"));
    // Some stacks end with an address that is nowhere.
    starts
        || file.is_empty()
        || file.starts_with("libc.so")
        || file.starts_with("libstdc++")
        || file.starts_with("libpthread")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(function: &str, object: &str, line: Option<(&str, u32)>) -> Symbol {
        Symbol {
            address: 1,
            function: (!function.is_empty()).then(|| function.to_owned()),
            line: line.map(|(file, line)| (file.to_owned(), line)),
            object: object.to_owned(),
            ..Symbol::default()
        }
    }

    fn names(symbols: &[Symbol], python: &str) -> Vec<String> {
        let frames = of_program(symbols, python).into_iter();
        frames.map(|frame| frame.function.unwrap_or_default()).collect()
    }

    #[test]
    fn the_runtime_and_the_system_are_left_out() {
        let stack = [
            symbol("libcudart_static_8a7f", "/home/me/many", None),
            symbol("cudaLaunchKernel", "/home/me/many", None),
            symbol(
                "_Z24__device_stub__Z4fillPiPi",
                "/home/me/many",
                Some(("/tmp/many.cudafe1.stub.c", 1)),
            ),
            symbol("_Z4fillPi", "/home/me/many", Some(("/home/me/many.cu", 2))),
            symbol("main", "/home/me/many", Some(("/home/me/many.cu", 7))),
            symbol("", "/lib/x86_64-linux-gnu/libc.so.6", None),
            symbol("_start", "/home/me/many", None),
        ];
        assert_eq!(names(&stack, ""), ["_Z4fillPi", "main"]);
        let thread = [
            symbol(
                "_Z10cudaMallocIiE9cudaErrorPPT_m",
                "prog",
                Some(("/cuda/include/cuda_runtime.h", 9)),
            ),
            symbol("_Z13cudaAllocOrDiem", "prog", Some(("prog.cu", 9))),
            symbol("", "libc.so.6", None),
        ];
        assert_eq!(names(&thread, ""), ["_Z13cudaAllocOrDiem"]);
        assert_eq!(names(&[symbol("cudaMalloc", "prog", None)], ""), ["cudaMalloc"]);
    }

    #[test]
    fn lines_of_python_stand_for_the_interpreter() {
        let stack = [
            symbol("launch", "/site/fast.so", None),
            symbol("ffi_call", "/lib/libffi.so.8", None),
            symbol("_PyEval_EvalFrameDefault", "/lib/libpython3.11.so.1.0", None),
            symbol("main", "/usr/bin/python3", None),
        ];
        let lines = "  File \"/home/me/run.py\", line 7 in step\n  File \"/home/me/run.py\", line 9 in <module>\n";
        assert_eq!(names(&stack, lines), ["launch", "step", "<module>"]);
    }
}
