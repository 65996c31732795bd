//! Allocation by the API's rules, pools, what is known of pointers.

use super::*;
use crate::driver::managed::Location;
use crate::driver::pool::{Source, Wishes};

#[test]
fn memory_is_freed_by_its_start_and_by_its_own_call() {
    let own = Own::new();
    assert_eq!(alloc::device(0), Err(Error::InvalidValue));
    assert_eq!(alloc::device(1 << 60), Err(Error::OutOfMemory));
    assert_eq!(alloc::free(0), Ok(()));
    // Freed twice below: of a size that no other test asks for.
    let a = alloc::device(250_000).unwrap();
    let host = alloc::host(1000, 0).unwrap();
    let local = 0_u64;
    for wrong in [a + 1, a + 4096, 8, &raw const local as u64, u64::MAX, host] {
        assert_eq!(alloc::free(wrong), Err(Error::InvalidValue), "{wrong:#x}");
    }
    for wrong in [a, host + 8, 0, 8] {
        assert_eq!(alloc::free_host(wrong), Err(Error::InvalidValue), "{wrong:#x}");
    }
    assert_eq!(pointer::range(a + 249_999), Ok((a, 250_000)));
    assert_eq!(pointer::range(a + 250_000), Err(Error::NotFound));
    alloc::free(a).unwrap();
    assert_eq!(alloc::free(a), Err(Error::InvalidValue));
    alloc::free_host(host).unwrap();
    let (pitched, pitch) = alloc::pitched(1000, 10, 4).unwrap();
    assert!(pitch >= 1000 && pitch.is_multiple_of(512));
    assert_eq!(pointer::range(pitched), Ok((pitched, pitch * 10)));
    assert_eq!(alloc::pitched(u64::MAX, 10, 4), Err(Error::InvalidValue));
    let (free, total) = own.0.memory_info();
    assert!(free <= total - pitch * 10);
}

#[test]
fn pointers_are_known() {
    let own = Own::new();
    let device = alloc::device(100).unwrap();
    let managed = alloc::managed(100, 1).unwrap();
    let host = alloc::host(100, 2).unwrap();
    let vector = [0_u8; 8192];
    let registered = vector.as_ptr() as u64;
    assert!(pointer::pointer(registered).is_none());
    alloc::register(registered, 8192, 0).unwrap();
    assert_eq!(
        alloc::register(registered + 100, 8, 0),
        Err(Error::HostMemoryAlreadyRegistered)
    );
    for (address, kind, on_host, is_managed) in [
        (device, 2, 0, false),
        (managed, 2, managed + 9, true),
        (host, 1, host + 9, false),
        (registered, 1, registered + 9, false),
    ] {
        let known = pointer::pointer(address + 9).unwrap();
        assert_eq!((known.start, known.memory_type), (address, kind));
        assert_eq!(known.host_pointer, on_host);
        assert_eq!(known.device_pointer, address + 9);
        assert_eq!(known.managed, is_managed);
        assert_eq!(known.context, own.0.handle());
        assert_eq!(known.ordinal, 0);
    }
    assert_ne!(
        pointer::pointer(device).unwrap().buffer_id,
        pointer::pointer(managed).unwrap().buffer_id
    );
    assert_eq!(alloc::host_flags(host), Ok(2));
    assert_eq!(alloc::host_device_pointer(host + 4), Ok(host + 4));
    assert_eq!(alloc::host_device_pointer(registered + 4), Ok(registered + 4));
    assert_eq!(alloc::host_device_pointer(device), Err(Error::InvalidValue));
    assert_eq!(alloc::unregister(registered + 1), Err(Error::HostMemoryNotRegistered));
    alloc::unregister(registered).unwrap();
    assert_eq!(alloc::unregister(registered), Err(Error::HostMemoryNotRegistered));
    // Where the process has no memory there is nothing to register.
    assert_eq!(alloc::register(4096, 4096, 0), Err(Error::InvalidValue));
    assert_eq!(alloc::register(registered, u64::MAX, 0), Err(Error::InvalidValue));
}

#[test]
fn advice_holds_for_the_pages_that_it_was_given_for() {
    let _own = Own::new();
    let memory = alloc::managed(1 << 16, 1).unwrap();
    let plain = alloc::device(64).unwrap();
    let host = Location::of_device(-1);
    let device = Location::of_device(0);
    assert_eq!(managed::advise(plain, 64, 1, device), Err(Error::InvalidValue));
    managed::advise(memory + 4096, 4097, 3, device).unwrap();
    managed::advise(memory, 1 << 16, 5, host).unwrap();
    // Whole pages: the second and the third.
    assert_eq!(managed::range_attribute(memory + 4096, 8192, 2), Ok(0));
    assert_eq!(managed::range_attribute(memory, 8192, 2), Ok(-2));
    assert_eq!(managed::range_attribute(memory + 8192, 4097, 2), Ok(-2));
    assert_eq!(managed::accessed_by(memory, 1 << 16), Ok(vec![-1]));
    managed::advise(memory + (1 << 15), 1, 6, host).unwrap();
    assert_eq!(managed::accessed_by(memory, 1 << 15), Ok(vec![-1]));
    assert_eq!(managed::accessed_by(memory, (1 << 15) + 1), Ok(vec![]));
}

#[test]
fn pools_give_memory_back_in_stream_order() {
    let _own = Own::new();
    let device = Device::get(0).unwrap();
    let pool = Pool::create(Wishes::new(Source::Device(device.ordinal()))).unwrap();
    let stream = Stream::create(1, 0).unwrap();
    let (log, gate) = (Arc::new(Log::default()), Arc::new(Gate::default()));
    let memory = pool.allocate(1 << 20, &stream).unwrap();
    let watched = Watched::new(memory);
    assert_eq!(pointer::pointer(memory).unwrap().pool, pool.handle());
    assert_eq!(pool.attribute(7), Ok(1 << 20));
    log.queue(&stream, 1, 0, Some(&gate));
    pool::free(memory, &stream).unwrap();
    // It is there until the stream comes to it, but may be freed only once.
    assert!(!watched.is_gone());
    assert_eq!(pool::free(memory, &stream), Err(Error::InvalidValue));
    assert_eq!(alloc::free(memory), Err(Error::InvalidValue));
    gate.open();
    stream.synchronize().unwrap();
    assert!(watched.is_gone());
    assert_eq!(pool.attribute(7), Ok(0));
    assert_eq!(pool.attribute(8), Ok(1 << 20));
    pool.set_attribute(8, 0).unwrap();
    assert_eq!(pool.attribute(8), Ok(0));
    assert_eq!(pool.set_attribute(7, 0), Err(Error::InvalidValue));
    assert_eq!(pool.allocate(0, &stream), Ok(0));
    pool.set_attribute(4, u64::MAX).unwrap();
    assert_eq!(pool.attribute(4), Ok(u64::MAX));
    // Memory of `cuMemAlloc` may be freed in a stream, too, and the other way round.
    let plain = alloc::device(64).unwrap();
    pool::free(plain, &stream).unwrap();
    let pooled = pool.allocate(64, &stream).unwrap();
    alloc::free(pooled).unwrap();
    assert_eq!(device.default_pool().destroy(), Err(Error::InvalidValue));
    pool.destroy().unwrap();
    assert_eq!(pool.destroy(), Err(Error::InvalidValue));
}

#[test]
fn what_kernels_print_reaches_stdout_in_whole_calls() {
    use crate::simt::Services;
    let own = Own::new();
    let shared = own.0.shared();
    shared.print(b"");
    shared.print(b"one call\n");
    shared.printer.flush();
    shared.assert_failed("file.cu:3: void f(): block: [0,0,0], thread: [0,0,0] Assertion `x' failed.");
    assert!(shared.free(0));
    assert!(!shared.free(8));
}
