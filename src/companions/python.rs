//! Python programs that start NVIDIA's compilers as programs of their own: Triton's assembler is named by variables of its
//! environment, and cuTile looks for its compiler on the path, both in `os.environ` when they compile. Python reads the process's
//! environment only when it starts, so the variables are set in that dictionary, by Python's own functions, which are part of
//! the process. Before the path cuTile looks for the compiler that the package nvidia-cuda-tileiras has, and that makes machine
//! code: it is made to find none.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use libloading::os::unix::Library;

/// The variables by which Triton finds its assembler, for architectures before and since Blackwell.
const VARIABLES: [&CStr; 2] = [c"TRITON_PTXAS_PATH", c"TRITON_PTXAS_BLACKWELL_PATH"];

/// A variable, how it is set, and to what.
type Setting<'a> = (&'a CStr, &'a CStr, &'a CStr);

/// What is used of Python's C API; all of it is in the stable ABI.
struct Python {
    is_initialized: unsafe extern "C" fn() -> c_int,
    ensure: unsafe extern "C" fn() -> c_int,
    release: unsafe extern "C" fn(c_int),
    import: unsafe extern "C" fn(*const c_char) -> *mut c_void,
    attribute: unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void,
    set_attribute: unsafe extern "C" fn(*mut c_void, *const c_char, *mut c_void) -> c_int,
    text: unsafe extern "C" fn(*const c_char) -> *mut c_void,
    list: unsafe extern "C" fn(isize) -> *mut c_void,
    call: unsafe extern "C" fn(*mut c_void, *mut c_void, ...) -> *mut c_void,
    clear: unsafe extern "C" fn(),
    forget: unsafe extern "C" fn(*mut c_void),
}

/// An object of Python's, held by this reference; null where a call failed.
struct Object<'p>(&'p Python, *mut c_void);

impl Drop for Object<'_> {
    fn drop(&mut self) {
        // SAFETY: the reference is this object's own, and the lock of the interpreter is held while objects live
        // (`Python::set`).
        unsafe { (self.0.forget)(self.1) };
    }
}

impl Python {
    /// That of this process, if it has one.
    fn of_process() -> Option<Python> {
        let process = Library::this();
        macro_rules! function {
            ($name:literal) => {
                // SAFETY: the type is the one that Python's manual gives for this name (Python/C API, stable ABI).
                *unsafe { process.get($name) }.ok()?
            };
        }
        Some(Python {
            is_initialized: function!(b"Py_IsInitialized\0"),
            ensure: function!(b"PyGILState_Ensure\0"),
            release: function!(b"PyGILState_Release\0"),
            import: function!(b"PyImport_ImportModule\0"),
            attribute: function!(b"PyObject_GetAttrString\0"),
            set_attribute: function!(b"PyObject_SetAttrString\0"),
            text: function!(b"PyUnicode_DecodeFSDefault\0"),
            list: function!(b"PyList_New\0"),
            call: function!(b"PyObject_CallMethodObjArgs\0"),
            clear: function!(b"PyErr_Clear\0"),
            forget: function!(b"Py_DecRef\0"),
        })
    }

    /// Sets variables of `os.environ`, and makes cuTile look for its compiler there alone, if it is part of the process. Gives
    /// whether Python took that.
    fn set(&self, settings: &[Setting<'_>], cutile: bool) -> bool {
        // SAFETY: it may be called at any time.
        if unsafe { (self.is_initialized)() } == 0 {
            return false;
        }
        // SAFETY: Python is initialised; a thread may ask for the interpreter's lock whether it has it or not.
        let state = unsafe { (self.ensure)() };
        let done = self.set_variables(settings) && (!cutile || self.find_no_package());
        // SAFETY: the lock is held. An error must not be left for whoever calls us.
        unsafe {
            (self.clear)();
            (self.release)(state);
        }
        done
    }

    /// The lock of the interpreter is held.
    fn set_variables(&self, settings: &[Setting<'_>]) -> bool {
        // SAFETY: the lock is held, names are NUL-terminated, and objects are references that we own, or null: those
        // end the way by `?`.
        let set = || unsafe {
            let os = is(Object(self, (self.import)(c"os".as_ptr())))?;
            let environ = is(Object(self, (self.attribute)(os.1, c"environ".as_ptr())))?;
            for (variable, how, value) in settings {
                let method = is(Object(self, (self.text)(how.as_ptr())))?;
                let value = is(Object(self, (self.text)(value.as_ptr())))?;
                let name = is(Object(self, (self.text)(variable.as_ptr())))?;
                let end = std::ptr::null_mut::<c_void>();
                is(Object(self, (self.call)(environ.1, method.1, name.1, value.1, end)))?;
            }
            Some(())
        };
        set().is_some()
    }
}

impl Python {
    /// cuTile finds no package with a compiler, and forgets which one it has found. The lock of the interpreter is held.
    fn find_no_package(&self) -> bool {
        // SAFETY: the lock is held, names are NUL-terminated, and objects are references that we own, or null: those end the way
        // by `?`. The method of an empty list gives None, and asks for nothing.
        let set = || unsafe {
            let module = is(Object(self, (self.import)(c"cuda.tile._compile".as_ptr())))?;
            let list = is(Object(self, (self.list)(0)))?;
            let nothing = is(Object(self, (self.attribute)(list.1, c"clear".as_ptr())))?;
            let finds = is(Object(self, (self.attribute)(module.1, c"_find_compiler_bin".as_ptr())))?;
            let forget = is(Object(self, (self.text)(c"cache_clear".as_ptr())))?;
            // Of a function of this name alone: others have other ways.
            is(Object(self, (self.attribute)(module.1, c"_find_pip_tileiras".as_ptr())))?;
            if (self.set_attribute)(module.1, c"_find_pip_tileiras".as_ptr(), nothing.1) != 0 {
                return None;
            }
            is(Object(
                self,
                (self.call)(finds.1, forget.1, std::ptr::null_mut::<c_void>()),
            ))?;
            Some(())
        };
        set().is_some()
    }
}

fn is(object: Object<'_>) -> Option<Object<'_>> {
    (!object.1.is_null()).then_some(object)
}

/// Tells Triton, if it is part of this process, of the assembler in the folder of companions, and cuTile of the compiler there, behind
/// all others on the path. Gives whether they know now.
pub fn tell(mapped: &[impl AsRef<Path>], folder: &Path) -> bool {
    let programs = folder.join("bin");
    let has = |parts: &[&str]| {
        mapped.iter().any(|file| {
            let names: Vec<_> = file.as_ref().components().map(|part| part.as_os_str()).collect();
            names.windows(parts.len()).any(|some| some == parts)
        })
    };
    let (assembler, compiler) = (programs.join("ptxas"), programs.join("tileiras"));
    let triton = has(&["triton"]) && assembler.is_file();
    let cutile = has(&["cuda", "tile"]) && compiler.is_file();
    let path = std::env::var_os("PATH")
        .filter(|path| !path.is_empty())
        .map(|mut path| {
            path.push(":");
            path.push(&programs);
            path
        });
    let Ok(assembler) = CString::new(assembler.as_os_str().as_bytes()) else {
        return false;
    };
    let Ok(path) = CString::new(path.unwrap_or_else(|| programs.into()).as_bytes()) else {
        return false;
    };
    let mut settings: Vec<Setting<'_>> = Vec::new();
    if triton {
        settings.extend(VARIABLES.map(|variable| (variable, c"setdefault", &*assembler)));
    }
    if cutile {
        settings.push((c"PATH", c"__setitem__", &path));
    }
    !settings.is_empty() && Python::of_process().is_some_and(|python| python.set(&settings, cutile))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_without_python_is_left_alone() {
        let folder = std::env::temp_dir();
        assert!(!tell(&["/usr/lib/libc.so.6"], &folder));
        assert!(!tell(&["/env/site-packages/triton/_C/libtriton.so"], &folder));
        assert!(Python::of_process().is_none());
    }
}
