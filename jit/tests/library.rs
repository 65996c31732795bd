//! The built library, through its C interface.

use std::collections::HashSet;
use std::ffi::{CStr, CString, c_char, c_int};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use std::{ptr, slice, thread};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

#[repr(C)]
struct Request {
    ir: *const u8,
    ir_len: usize,
    cpu: *const c_char,
    features: *const c_char,
    passes: *const c_char,
    level: u32,
    emit: u32,
    flags: u32,
}

#[repr(C)]
struct Answer {
    data: *mut u8,
    len: usize,
    message: *mut u8,
    message_len: usize,
}

const OBJECT: u32 = 0;
const ASSEMBLY: u32 = 1;
const IR: u32 = 2;
const VERIFY: u32 = 1;

struct Jit {
    version: extern "C" fn() -> *const c_char,
    broken: extern "C" fn() -> *const c_char,
    compile: unsafe extern "C" fn(*const Request, *mut Answer) -> c_int,
    free: unsafe extern "C" fn(*mut Answer),
}

/// Where Cargo puts the library, from where it puts the tests.
fn path() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let deps = tests.parent().unwrap();
    [deps, deps.parent().unwrap()]
        .map(|folder| folder.join("libmargay_jit.so"))
        .into_iter()
        .find(|path| path.is_file())
        .expect("a library beside the tests")
}

fn jit() -> &'static Jit {
    static JIT: OnceLock<Jit> = OnceLock::new();
    JIT.get_or_init(|| {
        // SAFETY: the library under test, and the types of its functions.
        unsafe {
            let library = Library::open(Some(path()), RTLD_NOW | RTLD_LOCAL).unwrap();
            let jit = Jit {
                version: *library.get(c"margay_jit_version").unwrap(),
                broken: *library.get(c"margay_jit_broken").unwrap(),
                compile: *library.get(c"margay_jit_compile").unwrap(),
                free: *library.get(c"margay_jit_free").unwrap(),
            };
            // Closed: it must stay all the same.
            drop(library);
            jit
        }
    })
}

/// The output and the warnings, or the message.
fn compile_flags(
    ir: &str,
    features: &str,
    passes: Option<&str>,
    level: u32,
    emit: u32,
    flags: u32,
) -> Result<(Vec<u8>, String), String> {
    let features = CString::new(features).unwrap();
    let passes = passes.map(|passes| CString::new(passes).unwrap());
    let request = Request {
        ir: ir.as_ptr(),
        ir_len: ir.len(),
        cpu: c"x86-64".as_ptr(),
        features: features.as_ptr(),
        passes: passes.as_ref().map_or(ptr::null(), |passes| passes.as_ptr()),
        level,
        emit,
        flags,
    };
    let mut answer = Answer {
        data: ptr::null_mut(),
        len: 0,
        message: ptr::null_mut(),
        message_len: 0,
    };
    // SAFETY: the request's texts live; the answer is copied before it is freed.
    unsafe {
        let failed = (jit().compile)(&request, &mut answer) != 0;
        let copy = |data: *mut u8, len| match data.is_null() {
            true => Vec::new(),
            false => slice::from_raw_parts(data, len).to_vec(),
        };
        let data = copy(answer.data, answer.len);
        let message = String::from_utf8(copy(answer.message, answer.message_len)).unwrap();
        (jit().free)(&mut answer);
        assert!(answer.data.is_null() && answer.message.is_null());
        (jit().free)(&mut answer);
        if failed { Err(message) } else { Ok((data, message)) }
    }
}

fn compile(ir: &str, level: u32, emit: u32) -> Result<Vec<u8>, String> {
    compile_flags(ir, "+avx2,+fma", None, level, emit, VERIFY).map(|(data, warnings)| {
        assert_eq!(warnings, "");
        data
    })
}

fn text(ir: &str, level: u32, emit: u32) -> String {
    String::from_utf8(compile(ir, level, emit).unwrap()).unwrap()
}

/// A vector operation with a mask, a call, a local variable and a constant.
const KERNEL: &str = "
    declare void @margay_barrier(ptr)
    declare <8 x float> @llvm.fma.v8f32(<8 x float>, <8 x float>, <8 x float>)
    define void @kernel(ptr %p, i1 %c) nounwind {
    entry:
      %local = alloca <8 x float>
      store <8 x float> zeroinitializer, ptr %local
      br i1 %c, label %work, label %done
    work:
      %x = load <8 x float>, ptr %p, align 4
      %a = load <8 x float>, ptr %local
      %y = call <8 x float> @llvm.fma.v8f32(<8 x float> %x, <8 x float> %x, <8 x float> %a)
      store <8 x float> %y, ptr %p, align 4
      call void @margay_barrier(ptr %p)
      br label %done
    done:
      ret void
    }
";

#[test]
fn the_version_is_llvms_and_ours() {
    // SAFETY: NUL-terminated, and lives as long as the library.
    let version = unsafe { CStr::from_ptr((jit().version)()) }.to_str().unwrap();
    assert!(
        version.starts_with("LLVM ") && version.ends_with(" / margay-jit 5"),
        "{version}"
    );
    assert!((jit().broken)().is_null());
}

#[test]
fn a_module_becomes_an_object_at_every_level() {
    for level in 0..=3 {
        let bytes = compile(KERNEL, level, OBJECT).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let symbol = |name| {
            let mut symbols = file.symbols().filter(|symbol| symbol.kind() != SymbolKind::File);
            symbols.find(|symbol| symbol.name() == Ok(name)).unwrap()
        };
        assert!(symbol("kernel").is_definition());
        assert!(symbol("margay_barrier").is_undefined());
        // Nothing is asked for but what the module asks for, and no section has to be written to.
        let undefined: Vec<_> = file.symbols().filter(|symbol| symbol.is_undefined()).collect();
        assert_eq!(undefined.len(), 1, "{undefined:?}");
        assert!(file.section_by_name(".text").unwrap().size() > 20);
    }
    assert!(compile(KERNEL, 4, OBJECT).is_err());
    assert!(compile(KERNEL, 1, 3).is_err());
}

#[test]
fn assembly_and_ir_are_texts() {
    assert!(text(KERNEL, 1, ASSEMBLY).contains("vfmadd"));
    for level in 0..=3 {
        let ir = text(KERNEL, level, IR);
        assert!(
            !ir.contains("alloca") && ir.contains("call void @margay_barrier"),
            "{ir}"
        );
        assert!(
            ir.contains("e-m:e-p270:32:32") && ir.contains("x86_64-unknown-linux-gnu"),
            "{ir}"
        );
    }
    let untouched = compile_flags(KERNEL, "", Some("verify"), 2, IR, 0).unwrap().0;
    assert!(String::from_utf8(untouched).unwrap().contains("alloca"));
    let message = compile_flags(KERNEL, "", Some("no-such-pass"), 2, IR, 0).unwrap_err();
    assert!(message.contains("no-such-pass"), "{message}");
}

#[test]
fn operations_are_fused_only_where_the_module_says_so() {
    let separate = "define float @f(float %a, float %b) {
        %p = fmul float %a, %b
        %s = fadd float %p, %a
        ret float %s }";
    assert!(!text(separate, 2, ASSEMBLY).contains("vfmadd"));
    let joined = separate
        .replace("fmul", "fmul contract")
        .replace("fadd", "fadd contract");
    assert!(text(&joined, 2, ASSEMBLY).contains("vfmadd"));
}

/// LLVM 19 permutes the truth table of these wrongly where memory is the third operand (`src/choices.rs`).
#[test]
fn bits_are_chosen_by_an_instruction_of_their_own() {
    let module = |ty: &str, one: &str, other: &str, instead: &str, bits: &str, rest: &str| {
        format!(
            "define {ty} @f(<16 x i1> %mask, ptr %p, {ty} %y) {{
              %x = load {ty}, ptr %p
              %a = and {ty} %{one}, splat ({bits})
              %b = and {ty} %{other}, splat ({rest})
              %chosen = or {ty} %a, %b
              %result = select <16 x i1> %mask, {ty} %chosen, {ty} %{instead}
              ret {ty} %result }}"
        )
    };
    let features = "+avx512f,+avx512bw,+avx512dq,+avx512vl";
    for (ty, bits, rest) in [
        ("<16 x i32>", "i32 65535", "i32 -65536"),
        ("<16 x i64>", "i64 -9223372036854775808", "i64 9223372036854775807"),
        ("<16 x i16>", "i16 255", "i16 -256"),
    ] {
        for (one, other, instead) in [("x", "y", "y"), ("x", "y", "x"), ("y", "x", "y"), ("y", "x", "x")] {
            let ir = module(ty, one, other, instead, bits, rest);
            let (bytes, warnings) = compile_flags(&ir, features, None, 1, ASSEMBLY, VERIFY).unwrap();
            assert_eq!(warnings, "");
            let assembly = String::from_utf8(bytes).unwrap();
            let mut lines = assembly.lines();
            assert!(
                lines.all(|line| !line.contains("vpternlog") || !line.contains("{%k")),
                "{ir}\n{assembly}"
            );
        }
    }
}

#[test]
fn large_frames_are_not_probed() {
    let ir = "declare void @use(ptr) define void @f() { %a = alloca [1000000 x i8] call void @use(ptr %a) ret void }";
    let assembly = text(ir, 1, ASSEMBLY);
    assert!(
        !assembly.contains("chkstk") && !assembly.contains("probe"),
        "{assembly}"
    );
    assert!(assembly.matches("call").count() == 1, "{assembly}");
}

#[test]
fn bad_modules_give_messages() {
    for (ir, expected) in [
        ("define void @f() { nonsense }", "expected instruction opcode"),
        ("define i32 @f() { ret i32 %x }", "use of undefined value '%x'"),
        // The line of the caller's text, though a data layout is put in front.
        ("\n\n!", "kernel:3"),
        (
            "define i32 @f() {\n %a = add i32 %b, 1\n %b = add i32 %a, 1\n ret i32 %b }",
            "does not dominate all uses",
        ),
        (
            "define void @f() { call void asm sideeffect \"no such instruction\", \"\"() ret void }",
            "unexpected token",
        ),
    ] {
        let message = compile(ir, 1, OBJECT).unwrap_err();
        assert!(message.contains(expected), "{message}");
    }
    let not_utf8 = unsafe_request(b"\xff\xfe");
    assert!(not_utf8.contains("UTF-8"), "{not_utf8}");
    assert!(compile("", 1, OBJECT).is_ok());
    assert!((jit().broken)().is_null());
}

/// The message about bytes that are no text.
fn unsafe_request(bytes: &[u8]) -> String {
    // SAFETY: the library looks at the bytes before it takes them for a text, and nobody here does.
    compile_flags(unsafe { str::from_utf8_unchecked(bytes) }, "", None, 0, OBJECT, 0).unwrap_err()
}

#[test]
fn the_same_module_gives_the_same_object_on_any_thread() {
    let expected = compile(KERNEL, 2, OBJECT).unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..20 {
                    assert!(compile(KERNEL, 2, OBJECT).unwrap() == expected);
                    assert!(compile("define void @f() { nonsense }", 1, OBJECT).is_err());
                }
            });
        }
    });
}

#[test]
fn nothing_but_the_interface_is_exported_and_only_the_system_is_needed() {
    let bytes = std::fs::read(path()).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    // Of what the dynamic linker sees, the part that is defined here.
    let exports: HashSet<_> = file
        .dynamic_symbols()
        .filter(|symbol| symbol.is_definition())
        .map(|symbol| symbol.name().unwrap().to_string())
        .collect();
    let expected = ["version", "broken", "compile", "free"].map(|name| format!("margay_jit_{name}"));
    assert_eq!(exports, HashSet::from(expected));
    // glibc has it since 2.36 only: the library's own is used (src/random.rs).
    assert!(file.dynamic_symbols().all(|symbol| symbol.name() != Ok("arc4random")));

    let output = Command::new("readelf").args(["-d", "-W"]).arg(path()).output().unwrap();
    let dynamic = String::from_utf8(output.stdout).unwrap();
    let needed: Vec<_> = dynamic
        .lines()
        .filter(|line| line.contains("(NEEDED)"))
        .map(|line| line.split(['[', ']']).nth(1).unwrap())
        .collect();
    for library in &needed {
        let system = [
            "libc.so",
            "libm.so",
            "libgcc_s.so",
            "libdl.so",
            "librt.so",
            "libpthread.so",
            "ld-linux",
        ];
        assert!(system.iter().any(|name| library.starts_with(name)), "{needed:?}");
    }
    assert!(
        dynamic.contains("libmargay-jit.so") && dynamic.contains("NODELETE"),
        "{dynamic}"
    );
}

/// Runs one of the tests below in a process of its own, and returns whether it ended well, and its standard error.
fn child(test: &str) -> (bool, String) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", test])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn when_llvm_gives_up_the_process_lives_on() {
    let (well, text) = child("in_a_child_llvm_gives_up");
    assert!(well && text.contains("1 passed"), "{text}");
    assert!(!text.contains("LLVM ERROR"), "{text}");
}

/// An intrinsic of another target's passes all checks, and no instruction can be selected for it.
#[test]
#[ignore = "breaks the library: runs in a process of its own"]
fn in_a_child_llvm_gives_up() {
    let ir = "declare void @llvm.nvvm.barrier0() define void @f() { call void @llvm.nvvm.barrier0() ret void }";
    let other = thread::spawn(|| {
        for _ in 0..50 {
            // Well, or because it is broken.
            let _ = compile(KERNEL, 2, OBJECT);
        }
    });
    thread::spawn(move || compile(ir, 1, OBJECT));
    let begin = Instant::now();
    while (jit().broken)().is_null() {
        assert!(begin.elapsed() < Duration::from_secs(60));
        thread::sleep(Duration::from_millis(5));
    }
    // SAFETY: NUL-terminated, and lives for ever.
    let message = unsafe { CStr::from_ptr((jit().broken)()) }.to_str().unwrap();
    assert!(message.contains("Cannot select"), "{message}");
    let refused = compile(KERNEL, 1, OBJECT).unwrap_err();
    assert!(refused.contains("Cannot select"), "{refused}");
    other.join().unwrap();
}

#[test]
fn when_memory_is_short_the_process_lives_on() {
    let (well, text) = child("in_a_child_memory_is_short");
    assert!(well && text.contains("1 passed"), "{text}");
}

#[repr(C)]
struct Limit {
    now: u64,
    most: u64,
}

const RLIMIT_AS: c_int = 9;

unsafe extern "C" {
    fn getrlimit(what: c_int, limit: *mut Limit) -> c_int;
    fn setrlimit(what: c_int, limit: *const Limit) -> c_int;
}

#[test]
#[ignore = "breaks the library: runs in a process of its own"]
fn in_a_child_memory_is_short() {
    let lines: String = (0..1_000_000)
        .map(|i| format!("  %v{} = mul i32 %v{i}, %x\n", i + 1))
        .collect();
    let ir = format!("define i32 @f(i32 %x, i32 %v0) {{\n{lines}  ret i32 %v1000000\n}}");
    compile(KERNEL, 1, OBJECT).unwrap();
    let mut before = Limit { now: 0, most: 0 };
    // SAFETY: both are valid limits, of this process alone.
    unsafe { getrlimit(RLIMIT_AS, &mut before) };
    let work = move || compile_flags(&ir, "", Some("verify"), 0, OBJECT, 0).is_ok();
    let (send, receive) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages: u64 = statm.split(' ').next().unwrap().parse().unwrap();
        let now = pages * 4096 + (64 << 20);
        let limit = Limit { now, ..before };
        // SAFETY: the limit is valid to read, and this process is the test's own.
        unsafe { setrlimit(RLIMIT_AS, &limit) };
        let _ = send.send(work());
    });
    let begin = Instant::now();
    while (jit().broken)().is_null() {
        assert!(begin.elapsed() < Duration::from_secs(60));
        assert!(receive.try_recv().is_err(), "it should not have fitted");
        thread::sleep(Duration::from_millis(5));
    }
    // SAFETY: the limit is the one that was there before.
    unsafe { setrlimit(RLIMIT_AS, &before) };
    assert!(compile(KERNEL, 1, OBJECT).is_err());
}

#[test]
fn a_process_may_end_while_threads_compile() {
    for _ in 0..10 {
        let (well, text) = child("in_a_child_the_process_ends");
        assert!(well, "{text}");
    }
}

#[test]
#[ignore = "ends the process: runs in one of its own"]
fn in_a_child_the_process_ends() {
    jit();
    for _ in 0..4 {
        thread::spawn(|| {
            loop {
                compile(KERNEL, 2, OBJECT).unwrap();
            }
        });
    }
    thread::sleep(Duration::from_millis(60));
    // With the functions that are registered to run at exit.
    std::process::exit(0);
}
