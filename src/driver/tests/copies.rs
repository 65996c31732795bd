//! Copies and sets: bytes, bounds, and when they happen.

use super::copy::{End, Place, Shape};
use super::*;

fn bytes(address: u64, count: usize) -> Vec<u8> {
    // SAFETY: the tests pass memory that is theirs and idle.
    unsafe { std::slice::from_raw_parts(address as *const u8, count) }.to_vec()
}

fn host(slice: &[u8]) -> Place {
    Place::Host(slice.as_ptr() as u64)
}

#[test]
fn bytes_go_there_and_back() {
    let _own = Own::new();
    let (a, b) = (alloc::device(100_000).unwrap(), alloc::device(100_000).unwrap());
    let source: Vec<u8> = (0..100_000_u32).map(|i| (i * 7) as u8).collect();
    let back = vec![0_u8; 100_000];
    copies::linear(Place::Device(a), host(&source), 100_000, false).unwrap();
    copies::linear(Place::Device(b + 10), Place::Device(a), 99_990, false).unwrap();
    copies::linear(host(&back), Place::Unified(b + 10), 99_990, true).unwrap();
    assert_eq!(back[..99_990], source[..99_990]);
    assert_eq!(back[99_990..], [0; 10]);
    let third = vec![0_u8; 100];
    copies::linear(Place::Unified(third.as_ptr() as u64), host(&source[5..]), 100, false).unwrap();
    assert_eq!(third, source[5..105]);
    let (inside, outside) = (Place::Device(a), Place::Device(a + 100_000));
    for (to, from, count) in [
        (inside, host(&source), 100_001),
        (outside, host(&source), 1),
        (Place::Device(0), host(&source), 1),
        (Place::Host(0), inside, 1),
        (Place::Device(8), host(&source), 1),
        (Place::Device(back.as_ptr() as u64), host(&source), 1),
        (inside, Place::Device(b), u64::MAX),
        (Place::Host(u64::MAX), inside, 2),
        (Place::Host(a + 100_000), inside, 1),
    ] {
        assert_eq!(copies::linear(to, from, count, false), Err(Error::InvalidValue));
    }
    assert_eq!(copies::linear(Place::Device(0), Place::Host(0), 0, false), Ok(()));
}

#[test]
fn boxes_keep_their_rows() {
    let _own = Own::new();
    let device = alloc::device(64 * 5 * 4).unwrap();
    copies::set(device, 0, 1, 0xEE, 64 * 5 * 4, 1, false).unwrap();
    let source: Vec<u8> = (0..10 * 3 * 2).collect();
    let at = |place, pitch, rows| End { place, pitch, rows };
    let shape = Shape {
        width: 10,
        height: 3,
        depth: 2,
    };
    copies::boxed(at(Place::Device(device), 64, 5), at(host(&source), 10, 3), shape, false).unwrap();
    for (z, y) in [(0, 0), (0, 2), (1, 0), (1, 2)] {
        let row = bytes(device + (z * 5 + y) * 64, 11);
        assert_eq!(row[..10], source[(z * 30 + y * 10) as usize..][..10]);
        assert_eq!(row[10], 0xEE);
    }
    // A pitch below the width, rows that overlap, a box that does not fit.
    for (pitch, rows) in [(9, 3), (64, 2)] {
        let end = at(Place::Device(device), pitch, rows);
        assert_eq!(
            copies::boxed(end, at(host(&source), 10, 3), shape, false),
            Err(Error::InvalidValue)
        );
    }
    let wide = Shape {
        width: 64,
        height: 5,
        depth: 5,
    };
    let end = at(Place::Device(device), 64, 5);
    assert_eq!(copies::boxed(end, end, wide, false), Err(Error::InvalidValue));
    let huge = Shape {
        width: 1 << 40,
        height: 1 << 20,
        depth: 1 << 20,
    };
    assert_eq!(copies::boxed(end, end, huge, false), Err(Error::InvalidValue));
}

#[test]
fn sets_fill_elements() {
    let own = Own::new();
    let device = alloc::device(1024).unwrap();
    copies::set(device, 0, 4, 0x0403_0201, 10, 1, false).unwrap();
    copies::set(device + 40, 0, 2, 0xBBAA, 3, 1, false).unwrap();
    copies::set(device + 512, 64, 1, 0x77, 5, 3, false).unwrap();
    own.0.synchronize().unwrap();
    assert_eq!(bytes(device, 8), [1, 2, 3, 4, 1, 2, 3, 4]);
    assert_eq!(bytes(device + 36, 10), [1, 2, 3, 4, 0xAA, 0xBB, 0xAA, 0xBB, 0xAA, 0xBB]);
    for row in 0..3 {
        assert_eq!(bytes(device + 512 + row * 64, 5), [0x77; 5]);
    }
    assert_eq!(copies::set(device + 2, 0, 4, 0, 1, 1, false), Err(Error::InvalidValue));
    assert_eq!(copies::set(device, 0, 4, 0, 257, 1, false), Err(Error::InvalidValue));
    assert_eq!(
        copies::set(device, 0, 4, 0, u64::MAX, 1, false),
        Err(Error::InvalidValue)
    );
    assert_eq!(copies::set(device, 0, 1, 0, 0, 1, false), Ok(()));
}

#[test]
fn copies_of_pageable_memory_are_safe_when_they_return() {
    let _own = Own::new();
    let stream = Stream::create(1, 0).unwrap();
    let gate = Arc::new(Gate::default());
    let log = Arc::new(Log::default());
    let device = alloc::device(1000).unwrap();
    let mut source = vec![1_u8; 1000];
    log.queue(&stream, 1, 0, Some(&gate));
    copies::linear_async(Place::Device(device), host(&source), 1000, &stream).unwrap();
    // The caller may write to it again although the stream has not come to the copy.
    source.fill(2);
    assert_eq!(stream.query(), Err(Error::NotReady));
    assert_ne!(bytes(device, 1000), [1; 1000]);
    gate.open();
    // To pageable memory: done when the call returns.
    let back = vec![0_u8; 1000];
    copies::linear_async(host(&back), Place::Device(device), 1000, &stream).unwrap();
    assert_eq!(back, [1; 1000]);
}

#[test]
fn copies_of_pinned_memory_wait_for_their_turn() {
    let _own = Own::new();
    let stream = Stream::create(1, 0).unwrap();
    let (log, gate) = (Arc::new(Log::default()), Arc::new(Gate::default()));
    let device = alloc::device(1000).unwrap();
    let pinned = alloc::host(1000, 0).unwrap();
    copies::set(device, 0, 1, 5, 1000, 1, false).unwrap();
    copies::set(pinned, 0, 1, 0, 1000, 1, false).unwrap();
    Context::current().unwrap().synchronize().unwrap();
    log.queue(&stream, 1, 0, Some(&gate));
    copies::linear_async(Place::Host(pinned), Place::Device(device), 1000, &stream).unwrap();
    copies::set_async(device, 0, 1, 6, 1000, 1, &stream).unwrap();
    copies::linear_async(Place::Device(device + 500), Place::Device(device), 500, &stream).unwrap();
    gate.wait_arrived(1);
    std::thread::sleep(Duration::from_millis(2));
    assert_eq!(bytes(pinned, 1000), [0; 1000]);
    assert_eq!(bytes(device, 1000), [5; 1000]);
    gate.open();
    stream.synchronize().unwrap();
    assert_eq!(bytes(pinned, 1000), [5; 1000]);
    assert_eq!(bytes(device, 1000), [6; 1000]);
}

#[test]
fn blocking_copies_wait_for_the_default_streams_order() {
    let _own = Own::new();
    let stream = Stream::create(0, 0).unwrap();
    let (log, gate) = (Arc::new(Log::default()), Arc::new(Gate::default()));
    let device = alloc::device(8).unwrap();
    copies::set(device, 0, 1, 1, 8, 1, false).unwrap();
    log.queue(&stream, 1, 0, Some(&gate));
    copies::set_async(device, 0, 1, 9, 8, 1, &stream).unwrap();
    let back = [0_u8; 8];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            gate.wait_arrived(1);
            std::thread::sleep(Duration::from_millis(2));
            gate.open();
        });
        copies::linear(host(&back), Place::Device(device), 8, false).unwrap();
    });
    assert_eq!(back, [9; 8]);
}

#[test]
fn freeing_waits_for_what_uses_the_memory() {
    let _own = Own::new();
    let stream = Stream::create(1, 0).unwrap();
    let (log, gate) = (Arc::new(Log::default()), Arc::new(Gate::default()));
    let device = alloc::device(1 << 20).unwrap();
    log.queue(&stream, 1, 0, Some(&gate));
    copies::set_async(device, 0, 1, 9, 1 << 20, 1, &stream).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            gate.wait_arrived(1);
            std::thread::sleep(Duration::from_millis(2));
            gate.open();
        });
        alloc::free(device).unwrap();
    });
    assert_eq!(stream.query(), Ok(()));
}
