//! The process that holds a library: reads one command a line, runs the kernel, answers with a line.
//!
//! `seed N` generates a kernel and runs it; `file PTX SEED BLOCK GRID OUT` runs one that stands in a file, with the input of
//! its seed, and leaves what memory holds afterwards in OUT. The answer is `ok HASH` or `error WHAT`.
//!
//! `TIERS_LIBRARY` names another library, as a GPU's driver; `TIERS_EXACT` then takes out what only approximates, or with
//! `TIERS_EXACT=approximate` leaves it, for a device whose approximations ours has. `TIERS_LEVEL` has the level of the driver's
//! optimisation, 0 to 4: what differs at 4 and not at 0 is its compiler's doing.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::ptr::{null, null_mut};

use libloading::Library;

use super::generate::{self, SLOTS, STRIDE};
use super::memory::{OWN, ROWS, SUMS, TABLE};
use super::random::Random;

/// Threads of the largest launch.
const MOST: usize = 1024;
/// `CU_LIMIT_STACK_SIZE`, and bytes for functions that call themselves: a GPU has room for one level otherwise.
const STACK: (c_int, usize) = (0, 32 << 10);
const CU_JIT_OPTIMIZATION_LEVEL: c_int = 7;

/// The library that belongs to this test, beside its executable; `TIERS_LIBRARY` names another.
pub fn library_path() -> PathBuf {
    match std::env::var_os("TIERS_LIBRARY") {
        Some(path) => path.into(),
        None => std::env::current_exe().unwrap_or_default().with_file_name("libcuda.so"),
    }
}

/// The second tier's compiler: the one named, the one beside the library, or that of the last `cargo build`.
pub fn compiler() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("MARGAY_JIT_LIBRARY") {
        return Some(path.into());
    }
    let library = library_path();
    let folders = library.ancestors().skip(1).take(2);
    folders
        .map(|folder| folder.join("libmargay-jit.so"))
        .find(|path| path.is_file())
}

struct Driver {
    library: Library,
    /// Input, output, table, own bytes, rows, sums.
    buffers: [u64; 6],
}

macro_rules! call {
    ($driver:expr, $symbol:literal($($value:expr => $type:ty),* $(,)?)) => {{
        // SAFETY: the type is the manual's, and the library stays loaded for the life of the process.
        let function = unsafe { $driver.get::<unsafe extern "C" fn($($type),*) -> c_int>($symbol) };
        let function = function.map_err(|error| error.to_string())?;
        // SAFETY: every pointer leads to as many bytes as the call reads or writes, and outlives it.
        match unsafe { function($($value),*) } {
            0 => Ok(()),
            code => Err(format!("{}: {code}", $symbol)),
        }
    }};
}

/// Bytes of each buffer for so many threads.
fn sizes(threads: usize) -> [usize; 6] {
    [
        8 * STRIDE * threads,
        8 * STRIDE * threads,
        TABLE,
        OWN * threads,
        8 * ROWS * threads,
        SUMS,
    ]
}

impl Driver {
    fn open() -> Result<Driver, String> {
        // SAFETY: the library's initialisers are our own.
        let library = unsafe { Library::new(library_path()) }.map_err(|error| error.to_string())?;
        let (mut device, mut context) = (0 as c_int, null_mut::<c_void>());
        call!(library, "cuInit"(0 => c_uint))?;
        call!(library, "cuDeviceGet"(&mut device => *mut c_int, 0 => c_int))?;
        call!(library, "cuDevicePrimaryCtxRetain"(&mut context => *mut *mut c_void, device => c_int))?;
        call!(library, "cuCtxSetCurrent"(context => *mut c_void))?;
        call!(library, "cuCtxSetLimit"(STACK.0 => c_int, STACK.1 => usize))?;
        let mut buffers = [0; 6];
        for (buffer, bytes) in buffers.iter_mut().zip(sizes(MOST)) {
            call!(library, "cuMemAlloc_v2"(buffer => *mut u64, bytes => usize))?;
        }
        Ok(Driver { library, buffers })
    }

    fn run(&self, text: &str, seed: u64, block: [u32; 3], grid: [u32; 2]) -> Result<Vec<u8>, String> {
        let text = std::ffi::CString::new(exact(tampered(text))).map_err(|error| error.to_string())?;
        let library = &self.library;
        let (mut module, mut function) = (null_mut::<c_void>(), null_mut::<c_void>());
        let level = std::env::var("TIERS_LEVEL").ok().map(|level| level.parse::<usize>());
        let level = level.transpose().map_err(|error| format!("TIERS_LEVEL: {error}"))?;
        let (mut option, mut value) = (CU_JIT_OPTIMIZATION_LEVEL, level.unwrap_or(4) as *mut c_void);
        call!(library, "cuModuleLoadDataEx"(
            &mut module => *mut *mut c_void, text.as_ptr().cast() => *const c_void, u32::from(level.is_some()) => c_uint,
            &mut option => *mut c_int, &mut value => *mut *mut c_void,
        ))?;
        call!(library, "cuModuleGetFunction"(&mut function => *mut *mut c_void, module => *mut c_void, c"k".as_ptr() => *const c_char))?;

        let threads = (block.iter().product::<u32>() * grid.iter().product::<u32>()) as usize;
        let memory = contents(seed, threads);
        for (bytes, buffer) in memory.iter().zip(self.buffers) {
            call!(library, "cuMemcpyHtoD_v2"(buffer => u64, bytes.as_ptr().cast() => *const c_void, bytes.len() => usize))?;
        }
        let mut random = Random::new(seed ^ 0x77);
        let values: [u64; 8] = std::array::from_fn(|_| random.integer());
        let mut parameters: Vec<*mut c_void> = self
            .buffers
            .iter()
            .map(|buffer| std::ptr::from_ref(buffer).cast_mut().cast())
            .collect();
        parameters.push(std::ptr::from_ref(&values).cast_mut().cast());
        let ([bx, by, bz], [gx, gy]) = (block, grid);
        call!(library, "cuLaunchKernel"(
            function => *mut c_void, gx => c_uint, gy => c_uint, 1 => c_uint, bx => c_uint, by => c_uint, bz => c_uint, 0 => c_uint,
            null_mut() => *mut c_void, parameters.as_mut_ptr() => *mut *mut c_void, null() => *const *mut c_void,
        ))?;
        call!(library, "cuCtxSynchronize"())?;

        let mut left = Vec::new();
        for (which, (bytes, buffer)) in memory.iter().zip(self.buffers).enumerate() {
            // The input and the table are read only.
            if which == 0 || which == 2 {
                continue;
            }
            let mut read = vec![0u8; bytes.len()];
            call!(library, "cuMemcpyDtoH_v2"(read.as_mut_ptr().cast() => *mut c_void, buffer => u64, read.len() => usize))?;
            left.extend(read);
        }
        call!(library, "cuModuleUnload"(module => *mut c_void))?;
        Ok(left)
    }
}

/// What the memory holds at the start. A thread's part does not depend on how many there are.
fn contents(seed: u64, threads: usize) -> [Vec<u8>; 6] {
    let [_, output, table, own, rows, sums] = sizes(threads);
    let mut input = Vec::new();
    for thread in 0..threads as u64 {
        let mut random = Random::new(seed ^ (thread + 1) << 32);
        for (letter, count) in SLOTS {
            for _ in 0..count {
                let bits = match letter {
                    'f' => u64::from((random.float() as f32).to_bits()),
                    'e' => random.float().to_bits(),
                    // Halves of floats are close enough to floats.
                    'x' => u64::from((random.float() as f32).to_bits() >> 16),
                    'p' => random.next(),
                    // Small ones often, so that lanes agree now and then.
                    'r' if random.chance(30) => random.next() & 7,
                    _ => random.integer(),
                };
                input.extend(bits.to_le_bytes());
            }
        }
        input.resize((thread as usize + 1) * 8 * STRIDE, 0);
    }
    let mut random = Random::new(seed ^ 0x55);
    let mut some = |bytes: usize, floats: bool| -> Vec<u8> {
        let number = |_| match floats && random.chance(50) {
            true => (random.float() as f32).to_bits(),
            false => random.next() as u32,
        };
        (0..bytes / 4).map(number).flat_map(u32::to_le_bytes).collect()
    };
    let table = some(table, true);
    let sums = some(sums, false);
    [
        input,
        vec![0xab; output],
        table,
        some(own, true),
        some(rows, false),
        sums,
    ]
}

/// For the tests of this test: a library that computes something else, dies, does not come back, or says that it compiled
/// nothing.
fn tampered(text: &str) -> String {
    match std::env::var("TIERS_TAMPER").as_deref() {
        Ok("operation") => text.replace(" xor.b32", " or.b32"),
        Ok("death") if text.contains(" brev.b") => std::process::abort(),
        Ok("refusal") if text.contains(" brev.b") => {
            eprintln!("LLVM made no code of a kernel");
            text.to_string()
        }
        Ok("hang") if text.contains(" brev.b") => loop {
            std::thread::sleep(std::time::Duration::from_secs(1));
        },
        _ => text.to_string(),
    }
}

/// With `TIERS_EXACT`, for comparisons with a GPU: approximations become exact functions or moves, but with
/// `TIERS_EXACT=approximate`, and additions and multiplications that an assembler may contract say how they round.
fn exact(text: String) -> String {
    let Some(how) = std::env::var_os("TIERS_EXACT") else {
        return text;
    };
    let approximates = how == "approximate";
    let opcode = |word: &str| -> String {
        let mut parts: Vec<&str> = word.split('.').collect();
        let ty = parts.last().copied().unwrap_or_default();
        let floats = ["f32", "f64", "f16", "f16x2", "bf16", "bf16x2"].contains(&ty);
        let approximate = parts.contains(&"approx") || parts.contains(&"full");
        match parts[0] {
            "add" | "sub" | "mul" if floats && !parts.iter().any(|part| ["rn", "rz", "rm", "rp"].contains(part)) => {
                parts.insert(1, "rn");
            }
            "div" | "rcp" | "sqrt" if approximate && !approximates => {
                parts[1] = "rn";
                parts.retain(|part| ty != "f64" || *part != "ftz");
            }
            // It folds these into moves or not as it pleases, which shows in the payloads of NaNs.
            "abs" | "neg" if floats => {
                let bits = match ty {
                    "f64" => "b64",
                    "f16" | "bf16" => "b16",
                    _ => "b32",
                };
                parts = vec!["mov", bits];
            }
            "rsqrt" | "sin" | "cos" | "ex2" | "lg2" | "tanh" if !approximates => {
                let bits = match ty {
                    "f64" => "b64",
                    "f16" | "bf16" => "b16",
                    _ => "b32",
                };
                parts = vec!["mov", bits];
            }
            _ => {}
        }
        parts.join(".")
    };
    let line = |line: &str| -> String {
        let mut words: Vec<String> = line.split(' ').map(opcode).collect();
        let Some(at) = words.iter().position(|word| !word.is_empty() && !word.starts_with('@')) else {
            return line.to_owned();
        };
        // `ptxas` 13 forgets the guards of these.
        if at > 0
            && (words[at].starts_with("testp.") || words[at].starts_with("set."))
            && words[at - 1].starts_with('@')
        {
            words.remove(at - 1);
        } else if let [operation, to, one, other] = &words[at..]
            && (operation.starts_with("min.") || operation.starts_with("max."))
            && one.trim_end_matches(',') == other.trim_end_matches(';')
        {
            // It makes a move of the least of a number and itself, which keeps a NaN's payload.
            let bits = match operation.rsplit('.').next() {
                Some("f64" | "s64" | "u64") => "b64",
                Some("f16" | "bf16" | "s16" | "u16") => "b16",
                _ => "b32",
            };
            return format!("mov.{bits} {to} {other}");
        }
        // What is beyond a word's end it takes for ones.
        if words[at].starts_with("bfe.s") && words.len() == at + 5 {
            words[at + 3] = match words[at + 3].trim_end_matches(',').parse::<u32>() {
                Ok(place) => format!("{},", place % 32),
                Err(_) => words[at + 3].clone(),
            };
        }
        words.join(" ")
    };
    text.lines().map(line).map(|line| line + "\n").collect()
}

fn hash(bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(0xcbf2_9ce4_8422_2325, |hash, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        (hash ^ u64::from_le_bytes(word))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29)
    })
}

fn command(driver: &Driver, line: &str) -> Result<u64, String> {
    let words: Vec<&str> = line.split(' ').collect();
    let number = |word: &str| word.parse::<u64>().map_err(|error| error.to_string());
    match words[..] {
        ["seed", seed] => {
            let kernel = generate::kernel(number(seed)?);
            Ok(hash(&driver.run(
                &kernel.print(),
                kernel.seed,
                kernel.block,
                kernel.grid,
            )?))
        }
        ["file", file, seed, bx, by, bz, gx, gy, out] => {
            let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
            let size = |word| number(word).map(|size| size as u32);
            let left = driver.run(
                &text,
                number(seed)?,
                [size(bx)?, size(by)?, size(bz)?],
                [size(gx)?, size(gy)?],
            )?;
            std::fs::write(out, &left).map_err(|error| error.to_string())?;
            Ok(hash(&left))
        }
        _ => Err(format!("no command: {line}")),
    }
}

/// Serves until the input ends.
pub fn serve() {
    let driver = Driver::open();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let answer = match &driver {
            Ok(driver) => command(driver, &line),
            Err(error) => Err(error.clone()),
        };
        match answer {
            Ok(hash) => println!("ok {hash:016x}"),
            Err(what) => println!("error {}", what.replace('\n', " ")),
        }
        if std::io::stdout().flush().is_err() {
            return;
        }
    }
}
