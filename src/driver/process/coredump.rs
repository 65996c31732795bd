//! Dumps of what a kernel's fault leaves (driver API manual, "Coredump Attributes Control API"; CUDA-GDB manual, "GPU core
//! dump support", for the variables).
//!
//! **What a dump is.** CUDA-GDB reads ELF files that hold registers and machine code of a GPU, which there are none of here.
//! A dump is a text: the fault with kernel, block, thread, instruction and source line, and all allocations of the device.
//! The flags that leave out memory change nothing but the list of allocations; compression is refused.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::fmt::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::defect;
use crate::driver::{Error, Result};
use crate::memory::AddressSpace;
use crate::trace::signals::quietly;

/// `CUcoredumpSettings`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Setting {
    EnableOnException = 1,
    TriggerHost,
    Lightweight,
    EnableUserTrigger,
    File,
    Pipe,
    GenerationFlags,
}

impl Setting {
    /// 1 for numbers that mean nothing.
    pub fn from_number(number: u32) -> Result<Setting> {
        use Setting::*;
        let all = [
            EnableOnException,
            TriggerHost,
            Lightweight,
            EnableUserTrigger,
            File,
            Pipe,
            GenerationFlags,
        ];
        let index = (number as usize).checked_sub(1).ok_or(Error::InvalidValue)?;
        all.get(index).copied().ok_or(Error::InvalidValue)
    }

    /// Bytes of its value: a `bool`, an `int`, or text with its end.
    pub fn bytes(self) -> usize {
        match self {
            Setting::File | Setting::Pipe => TEXT,
            Setting::GenerationFlags => 4,
            _ => 1,
        }
    }
}

/// A string of up to 1023 characters, and its end.
const TEXT: usize = 1024;

const SKIP_GLOBAL_MEMORY: u32 = 1 << 1;
const SKIP_ABORT: u32 = 1 << 4;
const GZIP: u32 = 1 << 6;
const LOG_ONLY: u32 = 1 << 31;
const LIGHTWEIGHT: u32 = 0x12F;
/// Bits 0 to 8, 30 and 31.
const FLAGS: u32 = 0x1FF | 1 << 30 | 1 << 31;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Flag(bool),
    Bits(u32),
    Text(String),
}

/// Values that were set, of a context or of the process.
pub type Values = BTreeMap<Setting, Value>;

static GLOBAL: Mutex<Values> = Mutex::new(BTreeMap::new());

/// What the environment settles, once and for all.
fn environment() -> &'static Values {
    static VALUES: OnceLock<Values> = OnceLock::new();
    VALUES.get_or_init(|| {
        let text = |name: &str| std::env::var(name).ok();
        let flag = |name: &str| text(name).map(|value| Value::Flag(value.trim() != "0"));
        let named = [
            ("skip_nonrelocated_elf_images", 1),
            ("skip_global_memory", SKIP_GLOBAL_MEMORY),
            ("skip_shared_memory", 1 << 2),
            ("skip_local_memory", 1 << 3),
            ("skip_abort", SKIP_ABORT),
            ("skip_constbank_memory", 1 << 5),
            ("gzip_compress", GZIP),
            ("faulted_contexts_only", 1 << 7),
        ];
        let flags = text("CUDA_COREDUMP_GENERATION_FLAGS").map(|list| {
            let words = list.split(',').map(str::trim).filter(|word| !word.is_empty());
            Value::Bits(
                words.fold(0, |all, word| match named.iter().find(|(name, _)| *name == word) {
                    Some((_, GZIP)) => {
                        tracing::warn!("CUDA_COREDUMP_GENERATION_FLAGS: {word}: core dumps are not compressed here");
                        all
                    }
                    Some((_, bit)) => all | bit,
                    None => {
                        tracing::warn!("CUDA_COREDUMP_GENERATION_FLAGS: {word} is no flag");
                        all
                    }
                }),
            )
        });
        let known = [
            (Setting::EnableOnException, flag("CUDA_ENABLE_COREDUMP_ON_EXCEPTION")),
            (Setting::TriggerHost, flag("CUDA_ENABLE_CPU_COREDUMP_ON_EXCEPTION")),
            (Setting::Lightweight, flag("CUDA_ENABLE_LIGHTWEIGHT_COREDUMP")),
            (Setting::EnableUserTrigger, flag("CUDA_ENABLE_USER_TRIGGERED_COREDUMP")),
            (Setting::File, text("CUDA_COREDUMP_FILE").map(Value::Text)),
            (Setting::Pipe, text("CUDA_COREDUMP_PIPE").map(Value::Text)),
            (Setting::GenerationFlags, flags),
        ];
        known
            .into_iter()
            .filter_map(|(setting, value)| Some((setting, value?)))
            .collect()
    })
}

fn default(setting: Setting) -> Value {
    match setting {
        Setting::TriggerHost => Value::Flag(true),
        Setting::EnableOnException | Setting::Lightweight | Setting::EnableUserTrigger => Value::Flag(false),
        Setting::File => Value::Text(format!("core.cuda.{}.{}", host(), std::process::id())),
        Setting::Pipe => Value::Text(format!("corepipe.cuda.{}.{}", host(), std::process::id())),
        Setting::GenerationFlags => Value::Bits(0),
    }
}

fn host() -> String {
    let mut name = [0_u8; 256];
    // SAFETY: the buffer and its size.
    unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// `cuCoredumpGetAttributeGlobal`.
pub fn global(setting: Setting) -> Value {
    let set = || GLOBAL.lock().get(&setting).cloned();
    let fixed = environment().get(&setting).cloned();
    fixed.or_else(set).unwrap_or_else(|| default(setting))
}

/// `cuCoredumpGetAttribute`: a context's own value, or what holds for all.
pub fn of(values: &Values, setting: Setting) -> Value {
    match (environment().contains_key(&setting), values.get(&setting)) {
        (false, Some(value)) => value.clone(),
        _ => global(setting),
    }
}

/// `cuCoredumpSetAttribute`, of a context.
///
/// # Errors
/// 800 for what the environment settles, 801 for what only the process has and for compression, 1 for bad flags.
pub fn set(values: &mut Values, setting: Setting, value: Value) -> Result<()> {
    if matches!(setting, Setting::EnableUserTrigger | Setting::Pipe) {
        return Err(Error::NotSupported);
    }
    check(setting, &value)?;
    values.insert(setting, value);
    Ok(())
}

fn check(setting: Setting, value: &Value) -> Result<()> {
    if environment().contains_key(&setting) {
        return Err(Error::NotPermitted);
    }
    match value {
        Value::Bits(bits) if bits & !FLAGS != 0 => Err(Error::InvalidValue),
        Value::Bits(bits) if bits & GZIP != 0 => Err(Error::NotSupported),
        Value::Text(text) if text.is_empty() => Err(Error::InvalidValue),
        _ => Ok(()),
    }
}

/// `cuCoredumpSetAttributeGlobal`. The pipe is opened when dumps by it are enabled; its name is settled then.
///
/// # Errors
/// 800 for what the environment settles, and for the name of a pipe that is open; 801, 1 as [`set`].
pub fn set_global(setting: Setting, value: Value) -> Result<()> {
    check(setting, &value)?;
    let on = value == Value::Flag(true);
    {
        let mut values = GLOBAL.lock();
        let open = values.get(&Setting::EnableUserTrigger) == Some(&Value::Flag(true));
        if setting == Setting::Pipe && open {
            return Err(Error::NotPermitted);
        }
        values.insert(setting, value);
    }
    if setting == Setting::EnableUserTrigger && on {
        watch_pipe();
    }
    Ok(())
}

/// Dumps by pipe, if the environment asks for them.
pub fn start() {
    if environment().get(&Setting::EnableUserTrigger) == Some(&Value::Flag(true)) {
        watch_pipe();
    }
}

/// Waits at the pipe: whoever writes to it gets a dump.
fn watch_pipe() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let Value::Text(name) = global(Setting::Pipe) else {
            return;
        };
        let path = placeholders(&name);
        let Ok(c_path) = CString::new(path.as_str()) else {
            return;
        };
        // SAFETY: a path that ends with NUL.
        if unsafe { libc::mkfifo(c_path.as_ptr(), 0o600) } != 0 {
            tracing::error!("{path}: {}", std::io::Error::last_os_error());
            return;
        }
        let watch = move || {
            // Opening waits for a writer; the end of what he writes is the wish.
            while let Ok(wish) = std::fs::read(&path) {
                if !wish.is_empty() && global(Setting::EnableUserTrigger) == Value::Flag(true) {
                    let dumped = defect::catch(|| dump(&Values::new(), 0, "asked for by the user", false));
                    if let Err(defect) = dumped {
                        tracing::error!("{defect}\n  in a core dump that the user asked for");
                    }
                }
            }
        };
        let started = std::thread::Builder::new().name("margay-coredump".into()).spawn(watch);
        if let Err(error) = started {
            tracing::error!("no thread for user-triggered core dumps: {error}");
        }
    });
}

/// `%h`, `%p` and `%t` in a name: host, process, time.
fn placeholders(name: &str) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seconds = now.map_or(0, |since| since.as_secs());
    name.replace("%h", &host())
        .replace("%p", &std::process::id().to_string())
        .replace("%t", &seconds.to_string())
}

/// `CUcoredumpStatusCallback` and its data: `(data, process, device)`.
pub type Callback = Box<dyn Fn(i32, i32) + Send + Sync>;

type Callbacks = Mutex<Vec<(usize, std::sync::Arc<Callback>)>>;

static STARTED: Callbacks = Mutex::new(Vec::new());
static COMPLETE: Callbacks = Mutex::new(Vec::new());

thread_local! {
    static IN_CALLBACK: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Which callbacks: before anything is gathered, or after all is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    Start,
    Complete,
}

fn callbacks(moment: Moment) -> Result<&'static Callbacks> {
    if IN_CALLBACK.get() {
        return Err(Error::NotPermitted);
    }
    Ok(match moment {
        Moment::Start => &STARTED,
        Moment::Complete => &COMPLETE,
    })
}

/// Answers the callback's number; 800 from within one.
pub fn register(moment: Moment, callback: Callback) -> Result<usize> {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    callbacks(moment)?.lock().push((number, std::sync::Arc::new(callback)));
    Ok(number)
}

/// 1 if there is none of that number, 800 from within one.
pub fn deregister(moment: Moment, number: usize) -> Result<()> {
    let mut callbacks = callbacks(moment)?.lock();
    let index = callbacks.iter().position(|(other, _)| *other == number);
    callbacks.remove(index.ok_or(Error::InvalidValue)?);
    Ok(())
}

fn tell(moment: Moment, device: u32) {
    let Ok(callbacks) = callbacks(moment) else { return };
    let all: Vec<_> = callbacks.lock().iter().map(|(_, callback)| callback.clone()).collect();
    IN_CALLBACK.set(true);
    for callback in all {
        callback(std::process::id() as i32, device as i32);
    }
    IN_CALLBACK.set(false);
}

/// A context has failed: a dump, if one is wanted, and the process's end, unless that is not wanted.
pub(in crate::driver) fn on_fault(values: &Values, device: u32, report: &str) {
    if of(values, Setting::EnableOnException) == Value::Flag(true) {
        dump(values, device, report, true);
    }
}

fn dump(values: &Values, device: u32, report: &str, may_abort: bool) {
    tell(Moment::Start, device);
    let flags = match of(values, Setting::GenerationFlags) {
        Value::Bits(bits) => bits,
        _ => 0,
    };
    let light = of(values, Setting::Lightweight) == Value::Flag(true) || flags & LIGHTWEIGHT == LIGHTWEIGHT;
    let mut text = format!(
        "Margay GPU core dump, as text\nprocess {}\ndevice {device}\n\n{report}\n",
        std::process::id()
    );
    if !light && flags & SKIP_GLOBAL_MEMORY == 0 {
        text.push_str("\nallocations:\n");
        for allocation in AddressSpace::get().live(device) {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  {:#x} {} bytes", allocation.start, allocation.bytes);
        }
    }
    if flags & LOG_ONLY != 0 {
        tracing::error!("{text}");
    } else if let Value::Text(name) = of(values, Setting::File) {
        let path = placeholders(&name);
        match quietly(|| std::fs::write(&path, text)) {
            Ok(()) => tracing::warn!("core dump of the device written to {path}"),
            Err(error) => tracing::error!("core dump to {path}: {error}"),
        }
    }
    tell(Moment::Complete, device);
    let host = of(values, Setting::TriggerHost) == Value::Flag(true);
    if may_abort && host && flags & SKIP_ABORT == 0 {
        std::process::abort();
    }
}
