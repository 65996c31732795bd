//! Every `MARGAY_*` environment variable: one table, read once.
//!
//! What is not understood becomes a sentence for the log, and the default holds. A value's meaning is checked where it
//! is used: a profile's name, say, where profiles are known.

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use crate::isa::mma::Architecture;
use crate::sanitizer::filter::{Names, Processes};
use crate::simt::Orders;

/// One environment variable.
pub struct Variable {
    pub name: &'static str,
    /// What an unset (or empty) variable stands for, in the variable's own notation.
    pub default: &'static str,
    /// One line for `margay info` and the pages (`scripts/variables`).
    pub meaning: &'static str,
    /// Takes the default or the environment's value into the configuration; an error says what was expected.
    set: fn(&mut Config, &str) -> Result<(), String>,
}

/// The table: the only list of variables there is.
pub const VARIABLES: &[Variable] = &[
    Variable {
        name: "MARGAY_LOG",
        default: "warn",
        meaning: "what to log, as in warn or info,margay::api=debug (levels: off error warn info debug trace)",
        set: |config, value| {
            config.log = value.into();
            Ok(())
        },
    },
    Variable {
        name: "MARGAY_LOG_FILE",
        default: "",
        meaning: "file to append the log to; %p in it becomes the process id (default: standard error)",
        set: |config, value| {
            config.log_file = (!value.is_empty()).then(|| PathBuf::from(value));
            Ok(())
        },
    },
    Variable {
        name: "MARGAY_THREADS",
        default: "0",
        meaning: "worker threads that run kernels; 0 = one per available core",
        set: |config, value| {
            config.threads = match number(value, 0, 4096)? as usize {
                0 => std::thread::available_parallelism().map_or(1, |cores| cores.get()),
                threads => threads,
            };
            Ok(())
        },
    },
    Variable {
        name: "MARGAY_DEVICE",
        default: "sm_120",
        meaning: "profile of the device to report: sm_75 sm_80 sm_86 sm_89 sm_90 sm_100 sm_120",
        set: |config, value| {
            config.device = value.into();
            Ok(())
        },
    },
    Variable {
        name: "MARGAY_DEVICES",
        default: "1",
        meaning: "number of devices to report; 0 = none",
        set: |config, value| {
            config.devices = number(value, 0, 64)? as u32;
            Ok(())
        },
    },
    Variable {
        name: "MARGAY_MEMORY",
        default: "0",
        meaning: "memory of each device, as in 512M, 8G or 1.5T; 0 = what its profile says",
        set: |config, value| {
            config.memory = match size(value)? {
                0 => None,
                bytes => Some(bytes),
            };
            Ok(())
        },
    },
    Variable {
        name: "MARGAY_MULTIPROCESSORS",
        default: "48",
        meaning: "multiprocessors that each device reports, whatever the machine has: programs size their grids by it",
        set: |config, value| {
            config.multiprocessors = number(value, 1, 1024)? as u32;
            Ok(())
        },
    },
    Variable {
        name: "MARGAY_TIMEOUT",
        default: "0",
        meaning: "seconds a kernel may run before it fails with CUDA_ERROR_LAUNCH_TIMEOUT; 0 = for ever",
        set: |config, value| {
            let seconds: f64 = value.parse().map_err(|_| "expected a number of seconds".to_string())?;
            let limit = Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())?;
            config.timeout = (!limit.is_zero()).then_some(limit);
            Ok(())
        },
    },
    Variable {
        name: "MARGAY_SEED",
        default: "",
        meaning: "run each grid in one thread, in an order drawn from this number, perhaps with an intention, as in 7 or priority:7: \
                  the same order every time (default: off)",
        set: |config, value| {
            config.seed = match value {
                "" => None,
                value => Some(value.parse()?),
            };
            Ok(())
        },
    },
    Variable {
        name: "MARGAY_SIMD",
        default: "avx512",
        meaning: "most of the CPU's vector instructions to use: avx512 avx2 baseline",
        set: |config, value| match value {
            "avx512" | "avx2" | "baseline" => {
                config.simd = value.into();
                Ok(())
            }
            _ => Err("expected avx512, avx2 or baseline".into()),
        },
    },
    Variable {
        name: "MARGAY_TENSOR_ARCH",
        default: "",
        meaning: "whose tensor cores matrices are multiplied as, bit for bit: sm_70 sm_75 sm_80 sm_89 sm_90 sm_100 sm_120 \
                  (default: the device's)",
        set: |config, value| {
            config.tensor_arch = match value {
                "" => None,
                name => Some(Architecture::parse(name).ok_or("expected a target such as sm_90")?),
            };
            Ok(())
        },
    },
    Variable {
        name: "MARGAY_FMAD",
        default: "1",
        meaning: "0 = a mul and an add that leave their rounding open are rounded twice; 1 = they become one fma where NVIDIA's \
                  assembler makes one of them",
        set: |config, value| {
            config.fmad = number(value, 0, 1)? == 1;
            Ok(())
        },
    },
    Variable {
        name: "MARGAY_FIDELITY",
        default: "0",
        meaning: "1 = at the end of the process, list the instructions of all kernels that ran by how exact they are",
        set: |config, value| {
            config.fidelity = number(value, 0, 1)? == 1;
            Ok(())
        },
    },
    Variable {
        name: "MARGAY_SUMMARY",
        default: "0",
        meaning: "1 = at the end of the process, a table of kernels, copies, memory and calls, as margay run --summary prints it",
        set: |config, value| {
            config.summary = number(value, 0, 1)? == 1;
            Ok(())
        },
    },
    Variable {
        name: "MARGAY_PROGRESS",
        default: "0",
        meaning: "1 = a line on the terminal for a kernel that takes longer than two seconds, as margay run shows it",
        set: |config, value| {
            config.progress = number(value, 0, 1)? == 1;
            Ok(())
        },
    },
    Variable {
        name: "MARGAY_CHECK",
        default: "",
        meaning: "what to look for in kernels and calls, as margay check does: memory, leaks, race, benign (races that programs get away with, too), init, sync, fp, seeds:N (results that depend on the order of threads, in N orders), or several with commas (default: nothing)",
        set: |config, value| {
            let mut check = Check::default();
            for word in value.split(',').map(str::trim).filter(|word| !word.is_empty()) {
                match word {
                    "memory" => check.memory = true,
                    "leaks" => check.leaks = true,
                    "race" => check.race = true,
                    "benign" => check.benign = true,
                    word if word.starts_with("fp:") => {
                        (check.fp, check.numbers) = (true, NumberKinds::parse(&word[3..])?)
                    }
                    // How many orders of threads, as in seeds:10.
                    word if word.starts_with("seeds:") => check.seeds = number(&word[6..], 2, 1 << 16)? as u32,
                    "init" => check.init = true,
                    "sync" => check.sync = true,
                    "fp" => check.fp = true,
                    _ => {
                        return Err(
                            "expected memory, leaks, race, benign, init, sync, fp or seeds:N, or several with commas"
                                .into(),
                        );
                    }
                }
            }
            check.race |= check.benign && check.seeds == 0;
            config.check = check;
            Ok(())
        },
    },
    Variable {
        name: "MARGAY_CHECK_LOG",
        default: "",
        meaning: "file to which a line is appended for each thing that was found: a JSON object (default: none)",
        set: |config, value| {
            config.check_log = (!value.is_empty()).then(|| PathBuf::from(value));
            Ok(())
        },
    },
    Variable {
        name: "MARGAY_CHECK_SUPPRESSIONS",
        default: "",
        meaning: "file of what is not to be told of, a line each, as in race kernel=_Z7reversePi at=*/reverse.cu:6 (default: none)",
        set: |config, value| {
            config.check_suppressions = (!value.is_empty()).then(|| PathBuf::from(value));
            Ok(())
        },
    },
    Variable {
        name: "MARGAY_CHECK_LIMIT",
        default: "100",
        meaning: "how many reports a process prints of what is found; what comes after that is counted alone; 0 = all",
        set: |config, value| {
            config.check_limit = number(value, 0, u64::MAX)?;
            Ok(())
        },
    },
    Variable {
        name: "MARGAY_CHECK_KERNEL_NAME",
        default: "",
        meaning: "kernels that are looked at, as margay check --kernel-name names them, in lines if there are several expressions, as in kns=scan,kne=_Z4fillPi or regex=^scan (default: all)",
        set: |config, value| {
            config.check_kernel_name = Names::parse(value)?;
            Ok(())
        },
    },
    Variable {
        name: "MARGAY_CHECK_KERNEL_NAME_EXCLUDE",
        default: "",
        meaning: "kernels that are not looked at, likewise (default: none)",
        set: |config, value| {
            config.check_kernel_name_exclude = Names::parse(value)?;
            Ok(())
        },
    },
    Variable {
        name: "MARGAY_CHECK_LAUNCH_SKIP",
        default: "0",
        meaning: "how many launches of such kernels pass before one is looked at",
        set: |config, value| {
            config.check_launch_skip = number(value, 0, u64::MAX)?;
            Ok(())
        },
    },
    Variable {
        name: "MARGAY_CHECK_LAUNCH_COUNT",
        default: "0",
        meaning: "how many launches of such kernels are looked at; 0 = all",
        set: |config, value| {
            config.check_launch_count = number(value, 0, u64::MAX)?;
            Ok(())
        },
    },
    Variable {
        name: "MARGAY_CHECK_PARENT",
        default: "0",
        meaning: "look at a process only if the process of this number has started it, as margay check --target-processes application-only does; 0 = at all",
        set: |config, value| {
            config.check_parent = number(value, 0, i32::MAX as u64)? as u32;
            Ok(())
        },
    },
    Variable {
        name: "MARGAY_CHECK_PROCESSES",
        default: "",
        meaning: "look at a process only if its program's file is called like one of these, several with commas, or as an expression has it, as in train,regex:^test_ (default: at all)",
        set: |config, value| {
            config.check_processes = Processes::parse(value)?;
            Ok(())
        },
    },
    Variable {
        name: "MARGAY_CHECK_HOST",
        default: "1",
        meaning: "0 = races with what the host itself does to managed and pinned memory are not looked for; the handler of SIGSEGV is left alone",
        set: |config, value| {
            config.check_host = number(value, 0, 1)? == 1;
            Ok(())
        },
    },
    Variable {
        name: "MARGAY_CHECK_STRIP_PATHS",
        default: "0",
        meaning: "1 = reports name files of the source without their folders",
        set: |config, value| {
            config.check_strip_paths = number(value, 0, 1)? == 1;
            Ok(())
        },
    },
    Variable {
        name: "MARGAY_CHECK_BACKTRACE",
        default: "",
        meaning: "whose call stacks reports show: yes (all), host (where the program launched, allocated, freed), device, no (default: yes \
                  where something is looked for; yes and host also show where the program launched a kernel that fails without a check)",
        set: |config, value| {
            config.backtraces = match value {
                "" => None,
                "yes" => Some(Backtraces {
                    host: true,
                    device: true,
                }),
                "host" => Some(Backtraces {
                    host: true,
                    device: false,
                }),
                "device" => Some(Backtraces {
                    host: false,
                    device: true,
                }),
                "no" => Some(Backtraces {
                    host: false,
                    device: false,
                }),
                _ => return Err("expected yes, host, device or no".into()),
            };
            Ok(())
        },
    },
    Variable {
        name: "MARGAY_CHECK_CALLERS",
        default: "0",
        meaning: "how many calls of the program each host backtrace of a report shows, from the innermost on; 0 = all",
        set: |config, value| {
            config.callers = number(value, 0, 1 << 16)? as usize;
            Ok(())
        },
    },
    Variable {
        name: "MARGAY_COMPANIONS",
        default: "1",
        meaning: "0 = no companions: those that make NVRTC, nvJitLink, ptxas and nvcc keep PTX and tileiras Tile IR for Python programs, NVML, nvidia-smi",
        set: |config, value| {
            config.companions = number(value, 0, 1)? == 1;
            Ok(())
        },
    },
    Variable {
        name: "MARGAY_JIT",
        default: "auto",
        meaning: "which kernels to compile to machine code, if libmargay-jit.so is there: auto (those that run for long) always off",
        set: |config, value| {
            config.jit = match value {
                "off" => Jit::Off,
                "auto" => Jit::Auto,
                "always" => Jit::Always,
                _ => return Err("expected off, auto or always".into()),
            };
            Ok(())
        },
    },
    Variable {
        name: "MARGAY_JIT_CACHE",
        default: "",
        meaning: "folder that keeps compiled kernels; off = keep none (default: margay in XDG_CACHE_HOME, else ~/.cache/margay)",
        set: |config, value| {
            config.jit_cache = match value {
                "" => CacheFolder::Usual,
                "off" => CacheFolder::Off,
                folder => CacheFolder::At(PathBuf::from(folder)),
            };
            Ok(())
        },
    },
    Variable {
        name: "MARGAY_JIT_CACHE_SIZE",
        default: "256M",
        meaning: "how much that folder may hold, as in 64M or 1G: the kernels that were not used for longest go first",
        set: |config, value| {
            config.jit_cache_size = size(value)?;
            Ok(())
        },
    },
    Variable {
        name: "MARGAY_JIT_LIBRARY",
        default: "",
        meaning: "the compiler's library (default: libmargay-jit.so beside libcuda.so.1)",
        set: |config, value| {
            config.jit_library = (!value.is_empty()).then(|| PathBuf::from(value));
            Ok(())
        },
    },
    Variable {
        name: "MARGAY_JIT_TURN",
        default: "524288",
        meaning: "instructions that compiled code runs, about, until it comes back for a look at the clock; few of them bring defects of ours to light",
        set: |config, value| {
            config.jit_turn = match value.parse() {
                Ok(turn @ 1..=JIT_TURN) => turn,
                _ => return Err(format!("expected a number from 1 to {JIT_TURN}")),
            };
            Ok(())
        },
    },
    Variable {
        name: "MARGAY_JIT_AFTER",
        default: "0",
        meaning: "instructions that each block is interpreted for, about, before it goes on in compiled code that is there; few of them bring defects of ours to light",
        set: |config, value| {
            config.jit_after = number(value, 0, u64::from(JIT_TURN))? as u32;
            Ok(())
        },
    },
    Variable {
        name: "MARGAY_JIT_UNSEEN",
        default: "",
        meaning: "a number from which is drawn what nobody has been seen to do, so that no code is made of it; brings defects of ours to light",
        set: |config, value| {
            config.jit_unseen = match value {
                "" => None,
                value => Some(number(value, 0, u64::MAX)?),
            };
            Ok(())
        },
    },
];

/// The most that `MARGAY_JIT_TURN` may be, and what it is where nobody sets it.
const JIT_TURN: u32 = 1 << 19;

/// What is looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Check {
    /// Accesses beyond allocations, to the byte, and of freed memory; wrong frees.
    pub memory: bool,
    /// Memory that is not freed by the end of its context, or of the process.
    pub leaks: bool,
    /// Accesses of two threads in no order.
    pub race: bool,
    /// Also those that programs get away with.
    pub benign: bool,
    /// Run each launch under so many schedules and compare what they leave; 0: not.
    pub seeds: u32,
    /// Values that nobody has written, where they matter.
    pub init: bool,
    /// Barriers and their kin that are misused.
    pub sync: bool,
    /// Where numbers first go wrong: NaN, infinity and the like.
    pub fp: bool,
    pub numbers: NumberKinds,
}

/// What counts as a number that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberKinds {
    pub nan: bool,
    pub infinity: bool,
    pub subnormal: bool,
    /// Bits of `f32` that a sum may lose and not be told of, less one; 0: none is.
    pub lost: u32,
}

impl Default for NumberKinds {
    fn default() -> NumberKinds {
        NumberKinds {
            nan: true,
            infinity: true,
            subnormal: false,
            lost: 0,
        }
    }
}

impl NumberKinds {
    /// Bits that a sum of `f32` loses, of 24, unless somebody says how many.
    const LOST: u32 = 20;

    /// `nan:inf:subnormal:cancellation`, or `cancellation=12`.
    fn parse(text: &str) -> Result<NumberKinds, String> {
        let mut kinds = NumberKinds {
            nan: false,
            infinity: false,
            ..NumberKinds::default()
        };
        for word in text.split(':') {
            match word.split_once('=').unwrap_or((word, "")) {
                ("nan", "") => kinds.nan = true,
                ("inf", "") => kinds.infinity = true,
                ("subnormal", "") => kinds.subnormal = true,
                ("cancellation", "") => kinds.lost = NumberKinds::LOST,
                ("cancellation", bits) => kinds.lost = number(bits, 1, 24)? as u32,
                _ => return Err("expected nan, inf, subnormal, cancellation or cancellation=BITS behind fp:".into()),
            }
        }
        Ok(kinds)
    }
}

impl Check {
    /// Whether anything is looked for.
    pub fn any(self) -> bool {
        self != Check::default()
    }
}

/// Whose call stacks reports show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backtraces {
    /// The program's, on the way to the driver.
    pub host: bool,
    /// Threads' in kernels: without them the innermost place alone.
    pub device: bool,
}

/// Which kernels are compiled to machine code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Jit {
    Off,
    /// Those for which it pays.
    #[default]
    Auto,
    /// All that can be.
    Always,
}

/// Where compiled kernels are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CacheFolder {
    Off,
    /// Where the user's caches are.
    #[default]
    Usual,
    At(PathBuf),
}

/// The settings in effect.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// `MARGAY_LOG`: a filter in `EnvFilter` syntax.
    pub log: String,
    /// `MARGAY_LOG_FILE`; `None` = standard error.
    pub log_file: Option<PathBuf>,
    /// `MARGAY_THREADS`: at least 1.
    pub threads: usize,
    /// `MARGAY_DEVICE`: name of a device profile, unchecked.
    pub device: String,
    /// `MARGAY_DEVICES`.
    pub devices: u32,
    /// `MARGAY_MEMORY` in bytes; `None` = as the profile says.
    pub memory: Option<u64>,
    /// `MARGAY_MULTIPROCESSORS`
    pub multiprocessors: u32,
    /// `MARGAY_TIMEOUT`: how long a kernel may run; `None` = for ever.
    pub timeout: Option<Duration>,
    /// `MARGAY_SEED`; `None` = nothing is drawn.
    pub seed: Option<Orders>,
    /// `MARGAY_SIMD`: `avx512`, `avx2` or `baseline`.
    pub simd: String,
    /// `MARGAY_TENSOR_ARCH`; `None` = the device's.
    pub tensor_arch: Option<Architecture>,
    /// `MARGAY_FMAD`
    pub fmad: bool,
    /// `MARGAY_FIDELITY`
    pub fidelity: bool,
    /// `MARGAY_SUMMARY`
    pub summary: bool,
    /// `MARGAY_PROGRESS`
    pub progress: bool,
    /// `MARGAY_CHECK`
    pub check: Check,
    /// `MARGAY_CHECK_LOG`
    pub check_log: Option<PathBuf>,
    /// `MARGAY_CHECK_SUPPRESSIONS`
    pub check_suppressions: Option<PathBuf>,
    /// `MARGAY_CHECK_LIMIT`
    pub check_limit: u64,
    /// `MARGAY_CHECK_KERNEL_NAME`
    pub check_kernel_name: Names,
    /// `MARGAY_CHECK_KERNEL_NAME_EXCLUDE`
    pub check_kernel_name_exclude: Names,
    /// `MARGAY_CHECK_LAUNCH_SKIP`
    pub check_launch_skip: u64,
    /// `MARGAY_CHECK_LAUNCH_COUNT`; 0 = all.
    pub check_launch_count: u64,
    /// `MARGAY_CHECK_PARENT`; 0 = any.
    pub check_parent: u32,
    /// `MARGAY_CHECK_PROCESSES`
    pub check_processes: Processes,
    /// `MARGAY_CHECK_HOST`
    pub check_host: bool,
    /// `MARGAY_CHECK_STRIP_PATHS`
    pub check_strip_paths: bool,
    /// `MARGAY_CHECK_BACKTRACE`; `None` = as what is looked for asks for.
    pub backtraces: Option<Backtraces>,
    /// `MARGAY_CHECK_CALLERS`; 0 = all.
    pub callers: usize,
    /// `MARGAY_COMPANIONS`
    pub companions: bool,
    /// `MARGAY_JIT`
    pub jit: Jit,
    /// `MARGAY_JIT_CACHE`
    pub jit_cache: CacheFolder,
    /// `MARGAY_JIT_CACHE_SIZE` in bytes.
    pub jit_cache_size: u64,
    /// `MARGAY_JIT_LIBRARY`; `None` = beside this library.
    pub jit_library: Option<PathBuf>,
    /// `MARGAY_JIT_TURN`
    pub jit_turn: u32,
    /// `MARGAY_JIT_AFTER`
    pub jit_after: u32,
    /// `MARGAY_JIT_UNSEEN`
    pub jit_unseen: Option<u64>,
    /// What was not understood, one sentence each, for the log.
    pub problems: Vec<String>,
}

/// The configuration of this process. The environment is read at the first call; later changes to it have no effect.
pub fn get() -> &'static Config {
    static CONFIG: OnceLock<Config> = OnceLock::new();
    CONFIG.get_or_init(read)
}

/// What the environment says now. For what runs before the program can have set a variable, and must not be the one to read
/// them for good.
pub fn read() -> Config {
    // Values that are not UTF-8 are no values of ours; lossily they end in a sentence about them.
    let mut config = Config::parse(std::env::vars_os().filter_map(|(name, value)| {
        let name = name.into_string().ok()?;
        Some((name, value.to_string_lossy().into_owned()))
    }));
    if !config.looks_at_this_process() {
        config.check = Check::default();
    }
    config
}

impl Config {
    /// Whether what is looked for is looked for in this process.
    fn looks_at_this_process(&self) -> bool {
        let is_child = self.check_parent == 0 || self.check_parent == std::os::unix::process::parent_id();
        is_child && self.check_processes.have_this_one()
    }

    /// Whether calls are to remember where they were made.
    pub fn host_backtraces(&self) -> bool {
        self.backtraces.map_or(self.check.any(), |shown| shown.host)
    }

    /// Whether reports show call stacks of kernels' threads.
    pub fn device_backtraces(&self) -> bool {
        self.backtraces.is_none_or(|shown| shown.device)
    }

    /// The configuration that an environment asks for. Never fails: what is not understood leaves the default in place.
    pub fn parse(environment: impl IntoIterator<Item = (String, String)>) -> Config {
        let mut config = Config::default();
        for variable in VARIABLES {
            let default = (variable.set)(&mut config, variable.default);
            debug_assert_eq!(default, Ok(()), "default of {}", variable.name);
        }
        for (name, value) in environment.into_iter().filter(|(name, _)| name.starts_with("MARGAY_")) {
            match VARIABLES.iter().find(|variable| variable.name == name) {
                Some(_) if value.trim().is_empty() => {}
                Some(variable) => {
                    if let Err(expected) = (variable.set)(&mut config, value.trim()) {
                        let default = if variable.default.is_empty() {
                            "unset"
                        } else {
                            variable.default
                        };
                        config
                            .problems
                            .push(format!("{name}={value}: {expected}; it counts as {default}"));
                    }
                }
                None => {
                    let mut problem = format!("{name} is no variable of Margay's");
                    if let Some(near) = nearest(&name) {
                        let _ = write!(problem, "; is {near} meant?");
                    }
                    config.problems.push(problem);
                }
            }
        }
        config
    }
}

fn number(value: &str, least: u64, most: u64) -> Result<u64, String> {
    match value
        .strip_prefix("0x")
        .map_or_else(|| value.parse(), |digits| u64::from_str_radix(digits, 16))
    {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        Ok(_) => Err(format!("expected a number from {least} to {most}")),
        Err(_) => Err("expected a number".into()),
    }
}

/// `8G`, `8GiB`, `1.5g`, `1073741824`: binary units.
fn size(value: &str) -> Result<u64, String> {
    let expected = || "expected a size such as 512M or 8G".to_string();
    let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == ' ');
    let shift = match value[digits.len()..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(expected()),
    };
    // Whole numbers exactly; a fraction in floating point, for it is a matter of taste anyway.
    if let Ok(whole) = digits.parse::<u64>() {
        return whole.checked_mul(1 << shift).ok_or_else(expected);
    }
    let bytes = digits.parse::<f64>().map_err(|_| expected())? * (1u64 << shift) as f64;
    if bytes.is_finite() && (0.0..u64::MAX as f64).contains(&bytes) {
        Ok(bytes as u64)
    } else {
        Err(expected())
    }
}

/// The variable whose name differs in the fewest letters, if the difference can be a slip.
fn nearest(name: &str) -> Option<&'static str> {
    let (distance, name) = VARIABLES
        .iter()
        .map(|variable| (edits(name, variable.name), variable.name))
        .min()?;
    (distance <= 3).then_some(name)
}

/// Levenshtein's distance.
fn edits(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pairs: &[(&str, &str)]) -> Config {
        Config::parse(pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())))
    }

    #[test]
    fn an_empty_environment_gives_the_defaults() {
        let config = parse(&[("PATH", "/bin")]);
        assert_eq!((config.log.as_str(), &config.log_file), ("warn", &None));
        assert_eq!(
            (config.device.as_str(), config.devices, config.memory),
            ("sm_120", 1, None)
        );
        assert_eq!((config.timeout, config.simd.as_str()), (None, "avx512"));
        assert_eq!((&config.seed, config.companions), (&None, true));
        assert_eq!((config.summary, config.progress), (false, false));
        assert_eq!((config.check, &config.check_log), (Check::default(), &None));
        assert_eq!((config.jit, &config.jit_cache), (Jit::Auto, &CacheFolder::Usual));
        assert_eq!((config.jit_cache_size, &config.jit_library), (256 << 20, &None));
        assert!(config.threads >= 1);
        assert!(config.problems.is_empty());
        // Setting a variable to nothing is not setting it.
        assert_eq!(parse(&[("MARGAY_LOG", ""), ("MARGAY_DEVICES", " ")]), config);
    }

    #[test]
    fn values_are_taken() {
        let config = parse(&[
            ("MARGAY_THREADS", "3"),
            ("MARGAY_DEVICE", "sm_90"),
            ("MARGAY_DEVICES", "2"),
            ("MARGAY_MEMORY", "8G"),
            ("MARGAY_TIMEOUT", "0.25"),
            ("MARGAY_SEED", "0xfeed"),
            ("MARGAY_SIMD", "avx2"),
            ("MARGAY_LOG_FILE", "/tmp/log.%p"),
            ("MARGAY_COMPANIONS", "0"),
            ("MARGAY_SUMMARY", "1"),
            ("MARGAY_CHECK", "leaks, memory"),
            ("MARGAY_CHECK_LOG", "/tmp/found"),
            ("MARGAY_CHECK_KERNEL_NAME", "kns=a\nregex=b,c"),
            ("MARGAY_CHECK_LAUNCH_SKIP", "5"),
            ("MARGAY_PROGRESS", "1"),
            ("MARGAY_JIT", "always"),
            ("MARGAY_JIT_CACHE", "/tmp/kernels"),
            ("MARGAY_JIT_CACHE_SIZE", "1M"),
            ("MARGAY_JIT_LIBRARY", "/opt/libmargay-jit.so"),
            ("MARGAY_JIT_TURN", "100"),
            ("MARGAY_JIT_AFTER", "30"),
            ("MARGAY_JIT_UNSEEN", "9"),
        ]);
        assert_eq!(config.problems, Vec::<String>::new());
        assert_eq!(
            (config.threads, config.device.as_str(), config.devices),
            (3, "sm_90", 2)
        );
        assert_eq!(config.memory, Some(8_589_934_592));
        assert_eq!(config.timeout, Some(Duration::from_millis(250)));
        assert_eq!((config.simd.as_str(), config.seed), ("avx2", "0xfeed".parse().ok()));
        assert_eq!(config.log_file, Some("/tmp/log.%p".into()));
        assert_eq!(
            (config.companions, config.summary, config.progress),
            (false, true, true)
        );
        assert_eq!((config.check.memory, config.check.leaks), (true, true));
        assert_eq!(config.check_log, Some("/tmp/found".into()));
        assert!(config.check_kernel_name.match_any("b,c") && !config.check_kernel_name.match_any("b"));
        assert_eq!((config.check_launch_skip, config.check_launch_count), (5, 0));
        assert_eq!((config.jit, config.jit_cache_size), (Jit::Always, 1 << 20));
        assert_eq!(
            (config.jit_turn, config.jit_after, config.jit_unseen),
            (100, 30, Some(9))
        );
        assert_eq!(config.jit_cache, CacheFolder::At("/tmp/kernels".into()));
        assert_eq!(config.jit_library, Some("/opt/libmargay-jit.so".into()));
    }

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("0", 0),
            ("17", 17),
            ("1k", 1024),
            ("512M", 536_870_912),
            ("1.5 GiB", 1_610_612_736),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "G", "8Q", "-1", "-1G", "1e400", "99999999999T", "NaN", "inf", "é"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_not_understood_is_reported_and_changes_nothing() {
        let config = parse(&[
            ("MARGAY_TIMEOUT", "-3"),
            ("MARGAY_MEMORY", "much"),
            ("MARGAY_SIMD", "mmx"),
            ("MARGAY_SEED", "-1"),
            ("MARGAY_CHECK", "memory,rain"),
            ("MARGAY_JIT_TURN", "0"),
        ]);
        assert_eq!(config.problems.len(), 6);
        assert_eq!(config.check, Check::default());
        assert_eq!(
            config.problems[1],
            "MARGAY_MEMORY=much: expected a size such as 512M or 8G; it counts as 0"
        );
        assert_eq!(
            (config.timeout, config.memory, config.simd.as_str(), config.seed),
            (None, None, "avx512", None)
        );
    }

    #[test]
    fn unknown_names_are_reported_with_a_guess() {
        let config = parse(&[("MARGAY_THREAD", "1"), ("MARGAY_FROBNICATE", "1")]);
        assert_eq!(
            config.problems[0],
            "MARGAY_THREAD is no variable of Margay's; is MARGAY_THREADS meant?"
        );
        assert_eq!(config.problems[1], "MARGAY_FROBNICATE is no variable of Margay's");
    }
}
