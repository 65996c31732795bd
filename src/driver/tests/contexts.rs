//! Contexts: current stacks, life, limits, storage.

use super::*;

#[test]
fn each_thread_has_a_stack_of_contexts() {
    let own = Own::new();
    let device = Device::get(0).unwrap();
    let second = Context::create(device, 0).unwrap();
    assert_eq!(Context::current().unwrap().handle(), second.handle());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert!(Context::current_or_none().is_none());
            assert_eq!(Context::current().err(), Some(Error::InvalidContext));
            assert_eq!(Context::pop().err(), Some(Error::InvalidContext));
            own.enter();
            assert_eq!(Context::current().unwrap().handle(), own.0.handle());
        });
    });
    assert_eq!(Context::pop().unwrap().handle(), second.handle());
    assert_eq!(Context::current().unwrap().handle(), own.0.handle());
    Context::push(Arc::clone(&second));
    Context::set_current(None);
    assert_eq!(Context::current().unwrap().handle(), own.0.handle());
    second.destroy().unwrap();
    assert_eq!(second.destroy(), Err(Error::InvalidContext));
    assert_eq!(Context::from_handle(second.handle()).err(), Some(Error::InvalidContext));
    for nonsense in [0, 1, 8, 0x1234_5678, usize::MAX, own.0.handle() + 1] {
        assert_eq!(Context::from_handle(nonsense).err(), Some(Error::InvalidContext));
    }
    assert_eq!(Context::create(device, 0x100).err(), Some(Error::InvalidValue));
    assert_eq!(Context::create(device, 3).err(), Some(Error::InvalidValue));
}

#[test]
fn a_destroyed_context_ends_its_objects_and_is_known_to_other_threads_as_destroyed() {
    init(0).unwrap();
    let context = Context::create(Device::get(0).unwrap(), 0).unwrap();
    let (log, gate) = (Arc::new(Log::default()), Arc::new(Gate::default()));
    let stream = Stream::create(0, 0).unwrap();
    let event = Event::create(0).unwrap();
    let memory = Watched::new(alloc::device(100).unwrap());
    log.queue(&stream, 1, 0, Some(&gate));
    let (ready, go) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            Context::set_current(Some(Arc::clone(&context)));
            ready.wait();
            go.wait();
            assert_eq!(Context::usable().err(), Some(Error::ContextIsDestroyed));
            assert_eq!(alloc::device(1), Err(Error::ContextIsDestroyed));
        });
        ready.wait();
        scope.spawn(|| {
            gate.wait_arrived(1);
            std::thread::sleep(Duration::from_millis(2));
            gate.open();
        });
        // Waits for the work.
        context.destroy().unwrap();
        assert_eq!(log.read(), [1]);
        go.wait();
        other.join().unwrap();
    });
    assert!(Context::current_or_none().is_none());
    assert_eq!(
        Stream::resolve(stream.handle(), false).err(),
        Some(Error::InvalidHandle)
    );
    assert_eq!(Event::from_handle(event.handle()).err(), Some(Error::InvalidHandle));
    assert!(memory.is_gone());
}

/// All that happens to the primary context, in one test: there is only one.
#[test]
fn the_primary_context_is_known_before_it_lives() {
    let _alone = crate::driver::PRIMARY.lock();
    init(0).unwrap();
    let device = Device::get(0).unwrap();
    let handle = device.primary().handle();
    assert_eq!(Context::primary_state(device), (0, false));
    assert_eq!(Context::primary_release(device), Err(Error::InvalidContext));
    // As cudart does it: current first, retained after.
    Context::set_current(Some(Context::from_handle(handle).unwrap()));
    assert_eq!(Context::current_or_none().unwrap().handle(), handle);
    assert_eq!(alloc::device(1), Err(Error::ContextIsDestroyed));
    assert_eq!(Context::primary_retain(device).unwrap().handle(), handle);
    assert_eq!(Context::primary_state(device), (0, true));
    let memory = Watched::new(alloc::device(1000).unwrap());
    assert_eq!(pointer::pointer(memory.address).unwrap().context, handle);

    // Storage belongs to the context; destructors run when it is reset.
    static DROPPED: parking_lot::Mutex<Vec<(usize, usize, usize)>> = parking_lot::Mutex::new(Vec::new());
    extern "C" fn dropped(context: usize, key: usize, value: usize) {
        DROPPED.lock().push((context, key, value));
    }
    let context = Context::current().unwrap();
    context.storage_put(1, 10, Some(dropped));
    context.storage_put(2, 20, Some(dropped));
    context.storage_put(3, 30, None);
    context.storage_put(1, 11, Some(dropped));
    assert_eq!(Context::storage_get_current(1), Ok(11));
    assert_eq!(Context::storage_get_current(9), Err(Error::InvalidHandle));
    context.storage_delete(2).unwrap();
    assert_eq!(context.storage_delete(2), Err(Error::InvalidHandle));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(Context::storage_get_current(1), Err(Error::InvalidContext));
            assert_eq!(context.storage_get(3), Some(30));
        });
    });

    Context::primary_reset(device).unwrap();
    assert_eq!(*DROPPED.lock(), [(handle, 1, 11)]);
    assert!(memory.is_gone());
    assert_eq!(alloc::device(1), Err(Error::ContextIsDestroyed));
    assert_eq!(Context::storage_get_current(3), Err(Error::InvalidHandle));
    // Retained again it works again, under the same handle.
    assert_eq!(Context::primary_retain(device).unwrap().handle(), handle);
    let memory = Watched::new(alloc::device(1000).unwrap());
    Context::primary_release(device).unwrap();
    assert!(!memory.is_gone());
    Context::primary_release(device).unwrap();
    assert!(memory.is_gone());
    assert_eq!(Context::primary_release(device), Err(Error::InvalidContext));
    assert_eq!(device.primary().destroy(), Err(Error::InvalidContext));
    Context::set_current(None);

    // What runs while it is being emptied asks for it, and gets it; other threads wait until it is empty.
    let ended = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        the_primary_context_ends_under_its_own_destructors(device);
        ended.0.send(())
    });
    ended
        .1
        .recv_timeout(Duration::from_secs(60))
        .expect("nobody waits for itself");
}

static ENDING: Mutex<Vec<(&str, bool)>> = Mutex::new(Vec::new());

extern "C" fn retains(_: Handle, _: usize, _: usize) {
    let device = Device::get(0).unwrap();
    let elsewhere = std::thread::spawn(move || {
        Context::primary_retain(device).unwrap();
        ENDING
            .lock()
            .push(("another thread has it", Context::primary_state(device).1));
    });
    std::thread::sleep(Duration::from_millis(50));
    ENDING.lock().push(("the other thread waits", !elsewhere.is_finished()));
    let retained = Context::primary_retain(device).is_ok();
    ENDING.lock().push(("retained", retained));
    ENDING
        .lock()
        .push(("released", Context::primary_release(device).is_ok()));
    ENDING.lock().push(("reset", Context::primary_reset(device).is_ok()));
}

extern "C" fn keeps(_: Handle, _: usize, _: usize) {
    Context::primary_retain(Device::get(0).unwrap()).unwrap();
}

extern "C" fn host_function_retains(_: usize) {
    std::thread::sleep(Duration::from_millis(50));
    let answer = Context::primary_retain(Device::get(0).unwrap());
    ENDING
        .lock()
        .push(("refused in a host function", answer.err() == Some(Error::NotPermitted)));
}

fn the_primary_context_ends_under_its_own_destructors(device: &'static Device) {
    let context = Context::primary_retain(device).unwrap();
    Context::set_current(Some(Arc::clone(&context)));
    let stream = Stream::create(1, 0).unwrap();
    stream.host_function(host_function_retains, 0, 0).unwrap();
    context.storage_put(1, 1, Some(retains));
    Context::primary_release(device).unwrap();
    let other = Instant::now();
    while ENDING.lock().len() < 6 && other.elapsed() < Duration::from_secs(20) {
        std::thread::yield_now();
    }
    let expected = [
        "refused in a host function",
        "the other thread waits",
        "retained",
        "released",
        "reset",
        "another thread has it",
    ];
    assert_eq!(*ENDING.lock(), expected.map(|what| (what, true)));
    Context::primary_release(device).unwrap();
    assert_eq!(Context::primary_release(device), Err(Error::InvalidContext));

    // What a destructor retains, and keeps, is active afterwards, with nothing in it.
    Context::primary_retain(device).unwrap();
    context.storage_put(1, 1, Some(keeps));
    Context::primary_release(device).unwrap();
    assert!(Context::primary_state(device).1);
    assert_eq!(context.storage_get(1), None);
    Context::primary_release(device).unwrap();
    assert!(!Context::primary_state(device).1);
    Context::set_current(None);
}

#[test]
fn limits_are_kept_and_bounded() {
    let own = Own::new();
    let context = &own.0;
    // Defaults of the CUDA programming guide.
    assert_eq!(context.limit(0), Ok(1024));
    assert_eq!(context.limit(1), Ok(1 << 20));
    assert_eq!(context.limit(2), Ok(8 << 20));
    context.set_limit(0, 5000).unwrap();
    assert!(context.limit(0).unwrap() >= 5000);
    assert_eq!(context.set_limit(0, u64::MAX), Err(Error::InvalidValue));
    context.set_limit(2, 64 << 20).unwrap();
    assert_eq!(context.limit(2), Ok(64 << 20));
    assert_eq!(context.set_limit(2, u64::MAX), Err(Error::OutOfMemory));
    assert_eq!(context.limit(7), Err(Error::UnsupportedLimit));
    assert_eq!(context.limit(11), Err(Error::InvalidValue));
    // Once kernels use the heap its size is settled (manual, cuCtxSetLimit).
    use crate::simt::Services;
    assert_ne!(context.shared().malloc(8), 0);
    assert_eq!(context.set_limit(2, 128 << 20), Err(Error::InvalidValue));
}

#[test]
fn handles_that_are_none_are_refused_everywhere() {
    let own = Own::new();
    let local = 0_u64;
    for handle in [3, 8, 0x1000, &raw const local as usize, own.0.handle(), usize::MAX] {
        assert_eq!(Stream::resolve(handle, false).err(), Some(Error::InvalidHandle));
        assert_eq!(Event::from_handle(handle).err(), Some(Error::InvalidHandle));
        assert_eq!(Module::from_handle(handle).err(), Some(Error::InvalidHandle));
        assert_eq!(Library::from_handle(handle).err(), Some(Error::InvalidHandle));
        assert_eq!(Kernel::from_handle(handle).err(), Some(Error::InvalidHandle));
        assert_eq!(Function::from_handle(handle).err(), Some(Error::InvalidHandle));
        assert_eq!(Linker::from_handle(handle).err(), Some(Error::InvalidHandle));
        assert_eq!(Pool::from_handle(handle).err(), Some(Error::InvalidValue));
    }
    for ordinal in [-1, 1000, i32::MIN, i32::MAX] {
        assert_eq!(Device::get(ordinal).err(), Some(Error::InvalidDevice));
    }
}

#[test]
fn devices_answer_every_attribute() {
    init(0).unwrap();
    let device = Device::get(0).unwrap();
    for number in -5..400 {
        device.attribute(number);
    }
    assert_eq!(device.attribute(10), 32);
    assert_eq!((device.attribute(75), device.attribute(76)), (12, 0));
    assert_eq!(Device::by_pci_bus_id(&device.pci_bus_id()).unwrap().ordinal(), 0);
    assert_eq!(Device::by_pci_bus_id("1:0.0").unwrap().ordinal(), 0);
    assert_eq!(Device::by_pci_bus_id("0000:7f:00.0").err(), Some(Error::InvalidDevice));
    for nonsense in ["", ":", "x:y.z", "1", "0:0:0:0:0"] {
        assert_eq!(
            Device::by_pci_bus_id(nonsense).err(),
            Some(Error::InvalidValue),
            "{nonsense}"
        );
    }
}

#[test]
fn the_child_of_an_initialised_process_is_told_so() {
    let _own = Own::new();
    // SAFETY: the child calls nothing but atomics and _exit.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let told = ready() == Err(Error::NotInitialized);
        // SAFETY: `_exit` runs no handlers, so that nothing of the parent's is touched.
        unsafe { libc::_exit(if told { 42 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: our own child.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 42, "{status}");
    assert_eq!(ready(), Ok(()));
    alloc::free(alloc::device(64).unwrap()).unwrap();
}
