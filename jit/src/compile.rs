//! One compilation: text → module → passes → object.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fmt::Write;
use std::sync::OnceLock;
use std::{ptr, slice};

use crate::{choices, fatal, llvm};

/// The only target. ELF, as `libcuda.so.1` loads it.
const TRIPLE: &CStr = c"x86_64-unknown-linux-gnu";

/// A program's name, and options that `llc` would take.
const OPTIONS: [&CStr; 4] = [
    c"margay-jit",
    // How far the register allocator looks for places to split one range, 10000 by default. Where there are thousands of blocks that
    // is half of all the time, and makes the code longer; kernels of up to some hundred instructions come out the same with 2000.
    c"-grow-region-complexity-budget=2000",
    // A pass that looks for masks which are computed with as numbers, and finds next to none: a fifth of the time for large kernels.
    c"-disable-x86-domain-reassignment",
    // Instructions are put in order from the first one on: from both ends, LLVM brings the parts of a warp together again that stand one behind the
    // other, and has registers for none of them (a product of tiles takes a fifth more time).
    FORWARDS,
];

/// How this LLVM is told to do so; build.rs looks which name it has for that.
const FORWARDS: &CStr = match CStr::from_bytes_with_nul(concat!(env!("MARGAY_LLVM_FORWARDS"), "\0").as_bytes()) {
    Ok(option) => option,
    Err(_) => panic!("an option has no NUL in it"),
};

pub enum Emit {
    Object,
    Assembly,
    Ir,
}

pub struct Job<'a> {
    pub ir: &'a str,
    pub cpu: &'a CStr,
    pub features: &'a CStr,
    pub passes: Option<&'a CStr>,
    pub level: usize,
    pub emit: Emit,
    pub verify: bool,
}

/// Something of LLVM's, and the function that disposes of it.
struct Owned<T>(*mut T, unsafe extern "C" fn(*mut T));

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: owned, and disposed of once.
            unsafe { (self.1)(self.0) };
        }
    }
}

/// What LLVM reports along the way; errors do not stop it.
#[derive(Default)]
struct Diagnostics {
    failed: bool,
    text: String,
}

impl Job<'_> {
    /// The output and the warnings, or the errors.
    pub fn run(&self) -> Result<(Vec<u8>, String), String> {
        initialize();
        // Dropped in the other order than made: the module before its context, the diagnostics after it.
        let mut diagnostics = Box::new(Diagnostics::default());
        let diagnostics: *mut Diagnostics = &raw mut *diagnostics;
        let machine = self.machine()?;
        // SAFETY: makes a thing that is ours.
        let context = unsafe { Owned(llvm::LLVMContextCreate(), llvm::LLVMContextDispose) };
        // SAFETY: the context is ours, the handler is of the type that it asks for, and the diagnostics outlive the context. From
        // here on they are looked at through the pointer alone.
        unsafe { llvm::LLVMContextSetDiagnosticHandler(context.0, diagnose, diagnostics.cast()) };

        let module = self.parse(&machine, &context)?;
        if self.verify {
            verify(&module)?;
        }
        self.optimize(&machine, &module)?;
        if choices::concerns(self.features.to_bytes()) {
            // SAFETY: both are alive, and ours alone.
            unsafe { choices::apart(context.0, module.0) };
        }
        let output = self.emit(&machine, &module);
        // SAFETY: the handler runs on this thread, inside calls that have returned.
        let Diagnostics { failed, text } = unsafe { std::mem::take(&mut *diagnostics) };
        match output {
            Ok(output) if !failed => Ok((output, text)),
            Ok(_) => Err(text),
            Err(message) => Err([text, message].concat()),
        }
    }

    fn machine(&self) -> Result<Owned<llvm::TargetMachine>, String> {
        let mut target = ptr::null_mut();
        let mut message = ptr::null_mut();
        // SAFETY: the texts are NUL-terminated, and what is returned is used as the headers say.
        unsafe {
            if llvm::LLVMGetTargetFromTriple(TRIPLE.as_ptr(), &mut target, &mut message) != 0 {
                return Err(take(message));
            }
            let machine = llvm::LLVMCreateTargetMachine(
                target,
                TRIPLE.as_ptr(),
                self.cpu.as_ptr(),
                self.features.as_ptr(),
                llvm::CODEGEN_LEVELS[self.level],
                llvm::RELOC_PIC,
                llvm::CODE_MODEL_SMALL,
            );
            match machine.is_null() {
                true => Err("LLVM has no machine for these features".into()),
                false => Ok(Owned(machine, llvm::LLVMDisposeTargetMachine)),
            }
        }
    }

    fn parse(
        &self,
        machine: &Owned<llvm::TargetMachine>,
        context: &Owned<llvm::Context>,
    ) -> Result<Owned<llvm::Module>, String> {
        // SAFETY: the machine is alive; the layout is ours.
        let layout = unsafe { Owned(llvm::LLVMCreateTargetDataLayout(machine.0), llvm::LLVMDisposeTargetData) };
        // The parser must know the layout: it fills in the alignments that the text leaves out.
        let mut text = String::with_capacity(self.ir.len() + 160);
        if !self.ir.contains("target datalayout") {
            // SAFETY: the layout is alive, and its text is ours.
            let layout = unsafe { take(llvm::LLVMCopyStringRepOfTargetData(layout.0)) };
            // In front of the first line: the numbers in messages stay right.
            let _ = write!(text, "target datalayout = \"{layout}\" ");
        }
        text.push_str(self.ir);

        let mut module = ptr::null_mut();
        let mut message = ptr::null_mut();
        text.push('\0');
        // SAFETY: the buffer is the text without the NUL at its end, which outlives it: the parser consumes it. The module is ours
        // from here on.
        unsafe {
            let len = text.len() - 1;
            let buffer = llvm::LLVMCreateMemoryBufferWithMemoryRange(text.as_ptr().cast(), len, c"kernel".as_ptr(), 1);
            if buffer.is_null() {
                return Err("no memory for the text".into());
            }
            if llvm::LLVMParseIRInContext(context.0, buffer, &mut module, &mut message) != 0 {
                return Err(take(message));
            }
            let module = Owned(module, llvm::LLVMDisposeModule as _);
            llvm::LLVMSetTarget(module.0, TRIPLE.as_ptr());
            llvm::LLVMSetModuleDataLayout(module.0, layout.0);
            Ok(module)
        }
    }

    fn optimize(&self, machine: &Owned<llvm::TargetMachine>, module: &Owned<llvm::Module>) -> Result<(), String> {
        let passes = self.passes.unwrap_or(match self.level {
            0 => c"function(sroa)",
            1 => c"default<O1>",
            2 => c"default<O2>",
            _ => c"default<O3>",
        });
        // SAFETY: all of it is alive; the error, if any, is consumed.
        unsafe {
            let options = Owned(
                llvm::LLVMCreatePassBuilderOptions(),
                llvm::LLVMDisposePassBuilderOptions,
            );
            let error = llvm::LLVMRunPasses(module.0, passes.as_ptr(), machine.0, options.0);
            if error.is_null() {
                return Ok(());
            }
            let message = llvm::LLVMGetErrorMessage(error);
            let text = CStr::from_ptr(message).to_string_lossy().into_owned();
            llvm::LLVMDisposeErrorMessage(message);
            Err(text)
        }
    }

    fn emit(&self, machine: &Owned<llvm::TargetMachine>, module: &Owned<llvm::Module>) -> Result<Vec<u8>, String> {
        let kind = match self.emit {
            Emit::Object => llvm::OBJECT_FILE,
            Emit::Assembly => llvm::ASSEMBLY_FILE,
            // SAFETY: the module is alive, and its text is ours.
            Emit::Ir => return Ok(unsafe { take(llvm::LLVMPrintModuleToString(module.0)) }.into_bytes()),
        };
        let mut buffer = ptr::null_mut();
        let mut message = ptr::null_mut();
        // SAFETY: both are alive; the buffer is ours, and has as many bytes as it says.
        unsafe {
            if llvm::LLVMTargetMachineEmitToMemoryBuffer(machine.0, module.0, kind, &mut message, &mut buffer) != 0 {
                return Err(take(message));
            }
            let buffer = Owned(buffer, llvm::LLVMDisposeMemoryBuffer);
            let start = llvm::LLVMGetBufferStart(buffer.0).cast();
            Ok(slice::from_raw_parts(start, llvm::LLVMGetBufferSize(buffer.0)).to_vec())
        }
    }
}

fn verify(module: &Owned<llvm::Module>) -> Result<(), String> {
    let mut message = ptr::null_mut();
    // SAFETY: the module is alive, and the message, which is there in any case, ours.
    unsafe {
        let failed = llvm::LLVMVerifyModule(module.0, llvm::RETURN_STATUS, &mut message) != 0;
        let message = take(message);
        if failed { Err(message) } else { Ok(()) }
    }
}

fn initialize() {
    static DONE: OnceLock<()> = OnceLock::new();
    DONE.get_or_init(|| {
        fatal::install();
        // SAFETY: they fill LLVM's own tables, once.
        unsafe {
            llvm::LLVMInitializeX86TargetInfo();
            llvm::LLVMInitializeX86Target();
            llvm::LLVMInitializeX86TargetMC();
            llvm::LLVMInitializeX86AsmPrinter();
            llvm::LLVMInitializeX86AsmParser();
        }
        let words = OPTIONS.map(CStr::as_ptr);
        // SAFETY: the words are texts, as many as is said, and outlive the call, which sets LLVM's own variables before anything is
        // compiled.
        unsafe { llvm::LLVMParseCommandLineOptions(words.len() as c_int, words.as_ptr(), c"".as_ptr()) };
    });
}

/// Without a handler LLVM writes to standard error, and ends the process after an error.
extern "C" fn diagnose(info: *mut llvm::DiagnosticInfo, diagnostics: *mut c_void) {
    // SAFETY: LLVM passes what was given with the handler, which nobody else looks at meanwhile, and a message that is ours.
    unsafe {
        let diagnostics = &mut *diagnostics.cast::<Diagnostics>();
        let severity: c_uint = llvm::LLVMGetDiagInfoSeverity(info);
        let text = take(llvm::LLVMGetDiagInfoDescription(info));
        // Errors and warnings; no remarks.
        if severity <= llvm::SEVERITY_ERROR + 1 {
            diagnostics.failed |= severity == llvm::SEVERITY_ERROR;
            diagnostics.text.push_str(&text);
            diagnostics.text.push('\n');
        }
    }
}

/// A message of LLVM's as a string of ours.
///
/// # Safety
///
/// Null, or NUL-terminated and to be freed by `LLVMDisposeMessage`.
unsafe fn take(message: *mut c_char) -> String {
    if message.is_null() {
        return String::new();
    }
    // SAFETY: the text is NUL-terminated and ours, by the caller's word; it is copied before it goes.
    unsafe {
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        llvm::LLVMDisposeMessage(message);
        text
    }
}
