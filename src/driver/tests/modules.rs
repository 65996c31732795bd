//! Libraries, modules, kernels, functions and the linker: what is found, what is refused, what ends with what.

use std::ffi::c_void;

use super::calls::launch;
use super::launch::{Arguments, Config};
use super::*;

const ONE: &str = "
.version 8.0
.target sm_75
.address_size 64
.visible .global .align 4 .u32 counter = 5;
.visible .global .align 8 .b8 bytes[100];
.global .attribute(.managed) .align 4 .u32 shared_by_all = 9;
.visible .const .align 4 .u32 fixed = 3;
.visible .entry add(.param .u32 v) {
    .reg .b32 %r<3>;
    ld.param.u32 %r1, [v];
    ld.global.u32 %r2, [counter];
    add.u32 %r2, %r2, %r1;
    st.global.u32 [counter], %r2;
    ret;
}
.visible .entry uses_shared() {
    .shared .align 4 .b8 tile[1000];
    ret;
}
.func helper() { ret; }
\0";

fn pointer(text: &str) -> *const c_void {
    assert!(text.ends_with('\0'));
    text.as_ptr().cast()
}

fn module(text: &str) -> Result<Arc<Module>, LoadError> {
    // SAFETY: NUL-terminated text.
    unsafe { Module::load_data(pointer(text), false) }
}

fn library(text: &str) -> Result<Arc<Library>, LoadError> {
    // SAFETY: NUL-terminated text.
    unsafe { Library::load_data(pointer(text)) }
}

fn word(address: u64) -> u32 {
    // SAFETY: a live variable of a module's.
    unsafe { (address as *const u32).read() }
}

fn add(function: &Arc<Function>, value: u32) {
    let config = Config {
        grid: [1; 3],
        block: [1; 3],
        dynamic_shared: 0,
        cooperative: false,
        ..Config::default()
    };
    let stream = Stream::resolve(0, false).unwrap();
    let arguments = [(&raw const value).cast::<c_void>()];
    // SAFETY: one pointer, one parameter.
    unsafe { launch(function, &config, Arguments::Pointers(arguments.as_ptr()), &stream) }.unwrap();
    stream.synchronize().unwrap();
}

#[test]
fn a_module_has_its_names_and_no_others() {
    let _own = Own::new();
    let module = module(ONE).unwrap();
    let (counter, bytes) = module.global("counter").unwrap();
    assert_eq!((word(counter), bytes), (5, 4));
    assert_eq!(module.global("bytes").unwrap().1, 100);
    assert_eq!(word(module.global("fixed").unwrap().0), 3);
    assert_eq!(module.global("add"), Err(Error::NotFound));
    assert_eq!(module.global(""), Err(Error::NotFound));
    for none in ["counter", "helper", "missing", ""] {
        assert_eq!(module.function(none).err(), Some(Error::NotFound), "{none}");
    }
    let function = module.function("add").unwrap();
    assert_eq!(function.handle(), module.function("add").unwrap().handle());
    assert_eq!(module.functions().unwrap().len(), 2);
    add(&function, 10);
    assert_eq!(word(counter), 15);
    // A variable is not the program's to free.
    assert_eq!(alloc::free(counter), Err(Error::InvalidValue));
    let counter = Watched::new(counter);
    let handle = function.handle();
    assert!(Function::from_handle(handle).is_ok());
    module.unload().unwrap();
    assert_eq!(module.unload(), Err(Error::InvalidHandle));
    assert_eq!(Function::from_handle(handle).err(), Some(Error::InvalidHandle));
    assert!(counter.is_gone());
}

#[test]
fn functions_say_what_they_are() {
    let _own = Own::new();
    let module = module(ONE).unwrap();
    let function = module.function("uses_shared").unwrap();
    assert_eq!(function.attribute(0), Ok(1024));
    assert_eq!(function.attribute(1), Ok(1000));
    assert_eq!(function.attribute(5), Ok(75));
    assert_eq!(function.attribute(6), Ok(120));
    assert_eq!(function.attribute(8), Ok((48 << 10) - 1000));
    assert_eq!(function.attribute(99), Err(Error::InvalidValue));
    assert_eq!(function.set_attribute(0, 5), Err(Error::InvalidValue));
    assert_eq!(function.set_attribute(9, 101), Err(Error::InvalidValue));
    assert_eq!(function.set_attribute(9, 50), Ok(()));
    assert_eq!(function.attribute(9), Ok(50));
    // Half of 100 KiB is had as 64, which hold one block of 41 KiB.
    assert_eq!(occupancy::active_blocks(&function, 32, 40_000), Ok(1));
    assert_eq!(function.set_attribute(9, -1), Ok(()));
    // By the technical specifications of 12.0: 1536 threads, 24 blocks, 100 KiB of shared memory.
    assert_eq!(occupancy::active_blocks(&function, 1024, 0), Ok(1));
    assert_eq!(occupancy::active_blocks(&function, 256, 0), Ok(6));
    assert_eq!(occupancy::active_blocks(&function, 32, 0), Ok(24));
    assert_eq!(occupancy::active_blocks(&function, 32, 40_000), Ok(2));
    assert_eq!(occupancy::active_blocks(&function, 32, 101_000), Ok(0));
    assert_eq!(occupancy::active_blocks(&function, 1025, 0), Ok(0));
    assert_eq!(occupancy::active_blocks(&function, 0, 0), Err(Error::InvalidValue));
    let (grid, block) = occupancy::potential_block_size(&function, &|_| 0, 0).unwrap();
    assert_eq!((grid, block), (48 * 2, 768));
    assert_eq!(occupancy::potential_block_size(&function, &|_| 0, 100).unwrap().1, 96);
    let room = occupancy::available_shared(&function, 2, 128).unwrap();
    assert!(occupancy::active_blocks(&function, 128, room).unwrap() >= 2);
}

#[test]
fn a_library_has_a_module_in_each_context() {
    let first = Own::new();
    let library = library(ONE).unwrap();
    let kernel = library.kernel("add").unwrap();
    assert_eq!(library.kernel("add").unwrap().handle(), kernel.handle());
    assert_eq!(library.kernel("none").err(), Some(Error::NotFound));
    assert_eq!(library.kernels().unwrap().len(), 2);
    let (here, _) = library.global("counter").unwrap();
    let (managed, bytes) = library.managed("shared_by_all").unwrap();
    assert_eq!((word(managed), bytes), (9, 4));
    assert!(pointer::pointer(managed).unwrap().managed);
    assert_eq!(library.managed("counter"), Err(Error::NotFound));
    // A kernel stands for the function of the current context.
    add(&Function::from_handle(kernel.handle()).unwrap(), 1);
    {
        let _second = Own::new();
        let (there, _) = library.global("counter").unwrap();
        assert_ne!(here, there);
        assert_eq!(word(there), 5);
        add(&Function::from_handle(kernel.handle()).unwrap(), 2);
        assert_eq!((word(here), word(there)), (6, 7));
        assert_eq!(library.managed("shared_by_all").unwrap().0, managed);
    }
    let device = Device::get(0).unwrap();
    kernel.set_attribute(device, 8, 60_000).unwrap();
    assert_eq!(kernel.attribute(device, 8), Ok(60_000));
    assert_eq!(kernel.function().unwrap().attribute(8), Ok(60_000));
    // The module of a library ends with it.
    assert_eq!(library.module().unwrap().unload(), Err(Error::NotPermitted));
    first.0.synchronize().unwrap();
    let variables = [Watched::new(here), Watched::new(managed)];
    library.unload().unwrap();
    assert_eq!(library.unload(), Err(Error::InvalidHandle));
    assert_eq!(Kernel::from_handle(kernel.handle()).err(), Some(Error::InvalidHandle));
    assert_eq!(Function::from_handle(kernel.handle()).err(), Some(Error::InvalidHandle));
    assert!(variables.iter().all(Watched::is_gone));
}

#[test]
fn what_cannot_be_read_is_refused_with_words() {
    let _own = Own::new();
    let broken = module(".version 8.0\n.target sm_75\n.address_size 64\n.entry k() { add.u32 %r1, %r2 %r3; ret; }\n\0");
    let error = broken.err().unwrap();
    assert_eq!(error.error, Error::InvalidPtx);
    assert!(error.log.contains("4:"), "{}", error.log);
    let undefined = module(
        ".version 8.0\n.target sm_75\n.address_size 64\n.extern .func nobody();\n.entry k() { call nobody; ret; }\n\0",
    );
    // Functions are resolved when they are first needed.
    let function = undefined.unwrap().function("k").unwrap();
    assert_eq!(function.load(), Err(Error::InvalidPtx));
    let log = function.load_error().unwrap().log;
    assert!(log.contains("nobody"), "{log}");
    assert_eq!(module("rubbish\0").err().unwrap().error, Error::InvalidImage);
    // SAFETY: NULL is checked for.
    let null = unsafe { Module::load_data(std::ptr::null(), false) };
    assert_eq!(null.err().unwrap().error, Error::InvalidValue);
    let missing = Module::load_file(std::path::Path::new("/does/not/exist"));
    assert_eq!(missing.err().unwrap().error, Error::FileNotFound);
}

/// An ELF header of machine code for a GPU (e_machine 190): nothing in it that could be run.
fn cubin() -> Vec<u8> {
    let mut bytes = vec![0_u8; 256];
    bytes[..8].copy_from_slice(b"\x7fELF\x02\x01\x01\x41");
    bytes[16] = 2;
    bytes[18] = 190;
    bytes[20] = 1;
    bytes[52] = 64;
    bytes[54] = 56;
    bytes[58] = 64;
    bytes
}

#[test]
fn code_without_ptx_is_taken_and_refused_when_used() {
    let _own = Own::new();
    let bytes = cubin();
    let image = bytes.as_ptr().cast();
    // SAFETY: a whole ELF header and more.
    unsafe {
        let error = Module::load_data(image, false).err().unwrap();
        assert_eq!(error.error, Error::NoBinaryForGpu);
        assert!(error.log.contains("PTX"), "{}", error.log);
        let lazy = Module::load_data(image, true).unwrap();
        assert_eq!(lazy.function("k").err(), Some(Error::NoBinaryForGpu));
        assert_eq!(lazy.global("g"), Err(Error::NoBinaryForGpu));
        lazy.unload().unwrap();
        let library = Library::load_data(image).unwrap();
        assert_eq!(library.kernel("k").err(), Some(Error::NoBinaryForGpu));
        library.unload().unwrap();
    }
}

const CALLER: &str = "
.version 8.0
.target sm_75
.address_size 64
.extern .func (.param .b32 r) twice(.param .b32 x);
.extern .global .align 4 .u32 result;
.visible .entry run() {
    .reg .b32 %r<2>;
    {
        .param .b32 x;
        .param .b32 r;
        mov.u32 %r0, 21;
        st.param.b32 [x], %r0;
        call.uni (r), twice, (x);
        ld.param.b32 %r1, [r];
    }
    st.global.u32 [result], %r1;
    ret;
}
";

const CALLEE: &str = "
.version 8.0
.target sm_75
.address_size 64
.visible .global .align 4 .u32 result;
.visible .func (.param .b32 r) twice(.param .b32 x) {
    .reg .b32 %r<2>;
    ld.param.b32 %r0, [x];
    add.u32 %r1, %r0, %r0;
    st.param.b32 [r], %r1;
    ret;
}
";

#[test]
fn linked_images_can_be_stored_and_loaded() {
    let own = Own::new();
    let linker = Linker::create(Default::default()).unwrap();
    linker.add_data(1, CALLER.as_bytes(), "caller").unwrap();
    let alone = Linker::create(Default::default()).unwrap();
    alone.add_data(1, CALLER.as_bytes(), "caller").unwrap();
    let error = alone.complete().err().unwrap();
    assert_eq!(error.error, Error::Unknown);
    assert!(error.log.contains("result"), "{}", error.log);
    linker.add_data(1, CALLEE.as_bytes(), "callee").unwrap();
    assert_eq!(
        linker.add_data(9, CALLEE.as_bytes(), "").err().unwrap().error,
        Error::InvalidValue
    );
    assert_eq!(
        linker
            .add_data(1, b".version 8.0\n.target sm_75\n.entry (", "")
            .err()
            .unwrap()
            .error,
        Error::InvalidPtx
    );
    let image = linker.complete().unwrap();
    assert_eq!(image.as_ptr(), linker.complete().unwrap().as_ptr());
    let copy = image.to_vec();
    linker.destroy().unwrap();
    assert_eq!(linker.destroy(), Err(Error::InvalidHandle));
    // SAFETY: the image ends in a NUL.
    let module = unsafe { Module::load_data(copy.as_ptr().cast(), false) }.unwrap();
    let function = module.function("run").unwrap();
    let config = Config {
        grid: [1; 3],
        block: [1; 3],
        dynamic_shared: 0,
        cooperative: false,
        ..Config::default()
    };
    // SAFETY: no parameters.
    unsafe { launch(&function, &config, Arguments::None, &Stream::resolve(0, false).unwrap()) }.unwrap();
    own.0.synchronize().unwrap();
    assert_eq!(word(module.global("result").unwrap().0), 42);
}
