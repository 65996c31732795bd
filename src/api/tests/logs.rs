//! What the JIT's log buffers hold: the same report that `margay ptx check` prints, errors in one, the rest in the other.

use super::*;
use crate::program::check;
use crate::ptx::{self, Source};

/// A text with two mistakes of meaning in a body.
const WRONG: &std::ffi::CStr = c".version 8.0
.target sm_80
.address_size 64
.visible .entry k()
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    add.u32 %r0, %r1, %rd2;
    mov.u32 %r9, 1;
    ret;
}
";

/// Legal, but for a newer target than it names, and with a table that has more than eight bits.
const ODD: &std::ffi::CStr = c".version 8.0
.target sm_70
.address_size 64
.visible .entry k()
{
    .reg .b32 %r<4>;
    redux.sync.add.u32 %r0, %r1, -1;
    lop3.b32 %r0, %r1, %r2, %r3, 300;
    ret;
}
";

/// The report of the rules, under the name that a text without one has.
fn report(text: &std::ffi::CStr) -> String {
    let tree = ptx::parse(Source::new("PTX", text.to_str().expect("UTF-8"))).expect("its shape is right");
    check::all(&tree).render_plain()
}

/// Buffers for both logs, and the arrays that name them.
struct Logs {
    info: Vec<u8>,
    error: Vec<u8>,
    options: [CUjit_option; 4],
    values: [*mut c_void; 4],
}

impl Logs {
    fn new() -> Box<Logs> {
        let mut logs = Box::new(Logs {
            info: vec![0x7f; 4096],
            error: vec![0x7f; 4096],
            options: [
                CUjit_option::CU_JIT_INFO_LOG_BUFFER,
                CUjit_option::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
                CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
            ],
            values: [null_mut(); 4],
        });
        logs.reset();
        logs
    }

    fn reset(&mut self) {
        self.values = [
            self.info.as_mut_ptr().cast(),
            std::ptr::without_provenance_mut(self.info.len()),
            self.error.as_mut_ptr().cast(),
            std::ptr::without_provenance_mut(self.error.len()),
        ];
    }

    /// Loads a text; the result, the log for information and the one for errors.
    fn load(&mut self, text: &std::ffi::CStr) -> (CUresult, String, String) {
        self.reset();
        let mut module = null_mut();
        // Text on the heap has no file's name.
        let text = text.to_owned();
        let result = call!(cuModuleLoadDataEx(
            &mut module,
            text.as_ptr().cast(),
            4,
            self.options.as_mut_ptr(),
            self.values.as_mut_ptr()
        ));
        (result, self.text(1), self.text(3))
    }

    fn text(&self, size: usize) -> String {
        let buffer = if size == 1 { &self.info } else { &self.error };
        let written = self.values[size].addr();
        assert_eq!(buffer[written], 0);
        String::from_utf8_lossy(&buffer[..written]).into_owned()
    }
}

#[test]
fn mistakes_in_bodies_are_found_when_a_module_is_loaded() {
    let _own = Own::new();
    let (result, info, error) = Logs::new().load(WRONG);
    assert_eq!(result, CUresult::CUDA_ERROR_INVALID_PTX);
    assert_eq!(info, "");
    assert_eq!(error, report(WRONG));
    for words in [
        "PTX:8:23",
        "`%rd2` is declared `.b64`",
        "a `.u32` is expected",
        "PTX:9:13",
        "`%r9` is not declared",
    ] {
        assert!(error.contains(words), "{words} is not in\n{error}");
    }
}

#[test]
fn what_is_odd_is_told_and_runs() {
    let _own = Own::new();
    let (result, info, error) = Logs::new().load(ODD);
    assert_eq!(result, CUresult::CUDA_SUCCESS);
    assert_eq!(error, "");
    assert_eq!(info, report(ODD));
    assert!(info.contains("needs `.target` sm_80 or later"), "{info}");
    assert!(info.contains("300 is out of range"), "{info}");
}

#[test]
fn a_version_of_the_future_has_its_own_code() {
    let _own = Own::new();
    let (result, _, error) = Logs::new().load(c".version 99.0\n.target sm_80\n.address_size 64\n");
    assert_eq!(result, CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
    assert!(error.contains("PTX 99.0 is newer than what is known here"), "{error}");
}

#[test]
fn linkers_tell_the_same() {
    let _own = Own::new();
    let mut logs = Logs::new();
    let mut link = null_mut();
    ok!(cuLinkCreate_v2(
        4,
        logs.options.as_mut_ptr(),
        logs.values.as_mut_ptr(),
        &mut link
    ));
    let add = |text: &std::ffi::CStr| {
        call!(cuLinkAddData_v2(
            link,
            CUjitInputType::CU_JIT_INPUT_PTX,
            text.as_ptr().cast_mut().cast(),
            text.count_bytes() + 1,
            c"PTX".as_ptr(),
            0,
            null_mut(),
            null_mut()
        ))
    };
    assert_eq!(add(WRONG), CUresult::CUDA_ERROR_INVALID_PTX);
    assert_eq!(logs.text(3), report(WRONG));
    assert_eq!(add(ODD), CUresult::CUDA_SUCCESS);
    assert_eq!(logs.text(1), report(ODD));
    ok!(cuLinkDestroy(link));
}
