//! Order within and between streams. A queue that ran everything at once, or in any order, fails here: gates hold streams
//! until the test has looked.

use super::*;

#[test]
fn a_stream_runs_its_work_in_order_and_not_before_its_time() {
    let _own = Own::new();
    let stream = Stream::create(1, 0).unwrap();
    let (log, gate) = (Arc::new(Log::default()), Arc::new(Gate::default()));
    log.queue(&stream, 0, 0, Some(&gate));
    for number in 1..200 {
        log.queue(&stream, number, if number % 50 == 0 { 200 } else { 0 }, None);
    }
    assert_eq!(stream.query(), Err(Error::NotReady));
    gate.wait_arrived(1);
    assert!(log.read().is_empty());
    gate.open();
    stream.synchronize().unwrap();
    assert_eq!(log.read(), (0..200).collect::<Vec<_>>());
    assert_eq!(stream.query(), Ok(()));
    stream.destroy().unwrap();
}

#[test]
fn streams_overlap() {
    let _own = Own::new();
    let log = Arc::new(Log::default());
    let gate = Arc::new(Gate::default());
    let streams: Vec<_> = (0..12).map(|_| Stream::create(1, 0).unwrap()).collect();
    for (stream, number) in streams.iter().zip(0..) {
        log.queue(stream, number, 0, Some(&gate));
    }
    // All of them stand at the gate at the same time.
    gate.wait_arrived(12);
    gate.open();
    for stream in &streams {
        stream.synchronize().unwrap();
    }
    assert_eq!(log.read().len(), 12);
}

#[test]
fn a_stream_waits_for_an_event_of_another_one() {
    let _own = Own::new();
    let (a, b) = (Stream::create(1, 0).unwrap(), Stream::create(1, 0).unwrap());
    let (log, gate) = (Arc::new(Log::default()), Arc::new(Gate::default()));
    let event = Event::create(0).unwrap();
    assert_eq!(event.query(), Ok(()), "never recorded");
    log.queue(&a, 1, 0, Some(&gate));
    event.record(&a, false).unwrap();
    log.queue(&b, 2, 0, None);
    b.wait_event(&event, false).unwrap();
    log.queue(&b, 3, 0, None);
    // Recording it again does not move what `b` waits for.
    let second = Arc::new(Gate::default());
    log.queue(&a, 4, 0, Some(&second));
    event.record(&a, false).unwrap();
    gate.wait_arrived(1);
    while log.read().is_empty() {
        std::thread::yield_now();
    }
    std::thread::sleep(Duration::from_millis(5));
    assert_eq!(log.read(), [2]);
    assert_eq!(b.query(), Err(Error::NotReady));
    gate.open();
    b.synchronize().unwrap();
    assert_eq!(log.read(), [2, 1, 3]);
    assert_eq!(event.query(), Err(Error::NotReady));
    second.open();
    event.synchronize().unwrap();
    assert_eq!(log.read(), [2, 1, 3, 4]);
}

#[test]
fn waiting_streams_take_no_threads() {
    let _own = Own::new();
    let (log, gate) = (Arc::new(Log::default()), Arc::new(Gate::default()));
    let first = Stream::create(1, 0).unwrap();
    let event = Event::create(2).unwrap();
    log.queue(&first, 0, 0, Some(&gate));
    event.record(&first, false).unwrap();
    // Far more than there are threads for streams.
    let waiting: Vec<_> = (0..300).map(|_| Stream::create(1, 0).unwrap()).collect();
    for stream in &waiting {
        stream.wait_event(&event, false).unwrap();
        log.queue(stream, 1, 0, None);
    }
    let free = Stream::create(1, 0).unwrap();
    log.queue(&free, 2, 0, None);
    free.synchronize().unwrap();
    assert_eq!(log.read(), [2]);
    gate.open();
    for stream in &waiting {
        stream.synchronize().unwrap();
    }
    assert_eq!(log.read()[..2], [2, 0]);
    assert_eq!(log.read().len(), 302);
}

#[test]
fn a_chain_through_many_streams_is_followed() {
    let _own = Own::new();
    let log = Arc::new(Log::default());
    let streams: Vec<_> = (0..200).map(|_| Stream::create(1, 0).unwrap()).collect();
    let gate = Arc::new(Gate::default());
    log.queue(&streams[0], 0, 0, Some(&gate));
    for index in 1..streams.len() {
        let event = Event::create(2).unwrap();
        event.record(&streams[index - 1], false).unwrap();
        streams[index].wait_event(&event, false).unwrap();
        log.queue(&streams[index], index as u32, 0, None);
        event.destroy().unwrap();
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            gate.wait_arrived(1);
            std::thread::sleep(Duration::from_millis(2));
            gate.open();
        });
        streams[199].synchronize().unwrap();
    });
    assert_eq!(log.read(), (0..200).collect::<Vec<_>>());
}

#[test]
fn the_legacy_stream_stands_between_blocking_streams() {
    let _own = Own::new();
    let (log, gate) = (Arc::new(Log::default()), Arc::new(Gate::default()));
    let (a, b) = (Stream::create(0, 0).unwrap(), Stream::create(0, 0).unwrap());
    let aside = Stream::create(1, 0).unwrap();
    let legacy = Stream::resolve(0, false).unwrap();
    log.queue(&a, 1, 0, Some(&gate));
    log.queue(&legacy, 2, 0, None);
    log.queue(&b, 3, 0, None);
    log.queue(&aside, 4, 0, None);
    aside.synchronize().unwrap();
    gate.wait_arrived(1);
    std::thread::sleep(Duration::from_millis(5));
    // Only the non-blocking stream has gone ahead.
    assert_eq!(log.read(), [4]);
    assert_eq!(legacy.query(), Err(Error::NotReady));
    gate.open();
    b.synchronize().unwrap();
    assert_eq!(log.read(), [4, 1, 2, 3]);
    // The thread's own default stream is a blocking one, too.
    let own = Stream::resolve(0, true).unwrap();
    assert!(Arc::ptr_eq(&own, &Stream::resolve(2, false).unwrap()));
    assert!(Arc::ptr_eq(&legacy, &Stream::resolve(1, true).unwrap()));
    let gate = Arc::new(Gate::default());
    log.queue(&own, 5, 0, Some(&gate));
    log.queue(&legacy, 6, 0, None);
    std::thread::sleep(Duration::from_millis(2));
    assert_eq!(log.read().len(), 4);
    gate.open();
    legacy.synchronize().unwrap();
    assert_eq!(log.read()[4..], [5, 6]);
}

#[test]
fn synchronising_the_legacy_stream_waits_for_blocking_streams() {
    let _own = Own::new();
    let log = Arc::new(Log::default());
    let stream = Stream::create(0, 0).unwrap();
    log.queue(&stream, 1, 3000, None);
    Stream::resolve(0, false).unwrap().synchronize().unwrap();
    assert_eq!(log.read(), [1]);
}

#[test]
fn an_empty_stream_is_idle_while_the_legacy_stream_works() {
    let _own = Own::new();
    let (log, gate) = (Arc::new(Log::default()), Arc::new(Gate::default()));
    let (legacy, stream) = (Stream::resolve(0, false).unwrap(), Stream::create(0, 0).unwrap());
    log.queue(&legacy, 1, 0, Some(&gate));
    assert_eq!(stream.query(), Ok(()));
    stream.synchronize().unwrap();
    // But what is put into it now has to wait.
    let event = Event::create(2).unwrap();
    event.record(&stream, false).unwrap();
    assert_eq!(event.query(), Err(Error::NotReady));
    gate.open();
    event.synchronize().unwrap();
    assert_eq!(log.read(), [1]);
}

#[test]
fn threads_have_default_streams_of_their_own() {
    let own = Own::new();
    let (log, gate) = (Arc::new(Log::default()), Arc::new(Gate::default()));
    let mine = Stream::resolve(0, true).unwrap();
    log.queue(&mine, 1, 0, Some(&gate));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            own.enter();
            let theirs = Stream::resolve(0, true).unwrap();
            assert_ne!(theirs.id(), mine.id());
            log.queue(&theirs, 2, 0, None);
            theirs.synchronize().unwrap();
            assert_eq!(log.read(), [2]);
        });
    });
    gate.open();
    mine.synchronize().unwrap();
    assert_eq!(log.read(), [2, 1]);
}

#[test]
fn a_destroyed_stream_finishes_its_work() {
    let _own = Own::new();
    let (log, gate) = (Arc::new(Log::default()), Arc::new(Gate::default()));
    let stream = Stream::create(0, 0).unwrap();
    log.queue(&stream, 1, 0, Some(&gate));
    log.queue(&stream, 2, 0, None);
    let handle = stream.handle();
    stream.destroy().unwrap();
    assert_eq!(stream.destroy(), Err(Error::InvalidHandle));
    drop(stream);
    assert_eq!(Stream::resolve(handle, false).err(), Some(Error::InvalidHandle));
    let legacy = Stream::resolve(0, false).unwrap();
    log.queue(&legacy, 3, 0, None);
    gate.open();
    Context::current().unwrap().synchronize().unwrap();
    assert_eq!(log.read(), [1, 2, 3]);
}

#[test]
fn events_take_time() {
    let _own = Own::new();
    let stream = Stream::create(1, 0).unwrap();
    let log = Arc::new(Log::default());
    let (start, end, untimed) = (
        Event::create(0).unwrap(),
        Event::create(0).unwrap(),
        Event::create(2).unwrap(),
    );
    assert_eq!(
        Event::elapsed(&start, &end),
        Err(Error::InvalidHandle),
        "never recorded"
    );
    start.record(&stream, false).unwrap();
    log.queue(&stream, 1, 20_000, None);
    end.record(&stream, false).unwrap();
    untimed.record(&stream, false).unwrap();
    assert_eq!(Event::elapsed(&start, &end), Err(Error::NotReady));
    end.synchronize().unwrap();
    let time = Event::elapsed(&start, &end).unwrap();
    assert!((20.0..2000.0).contains(&time), "{time} ms");
    assert!(Event::elapsed(&end, &start).unwrap() < 0.0);
    assert_eq!(Event::elapsed(&start, &untimed), Err(Error::InvalidHandle));
    assert_eq!(Event::create(4).err(), Some(Error::InvalidValue));
    assert_eq!(Event::create(8).err(), Some(Error::InvalidValue));
    start.destroy().unwrap();
    assert_eq!(start.destroy(), Err(Error::InvalidHandle));
    assert_eq!(Event::from_handle(start.handle()).err(), Some(Error::InvalidHandle));
}

#[test]
fn host_functions_must_not_call_back() {
    let _own = Own::new();
    static SEEN: AtomicU32 = AtomicU32::new(0);
    extern "C" fn call_back(_: usize) {
        let answer = Stream::resolve(0, false).err().map_or(0, Error::code);
        SEEN.store(answer, Ordering::SeqCst);
    }
    let stream = Stream::create(0, 0).unwrap();
    stream.host_function(call_back, 0, 0).unwrap();
    stream.synchronize().unwrap();
    // 800, or 201 on a thread without a context.
    assert!(matches!(SEEN.load(Ordering::SeqCst), 800 | 201));
}

#[test]
fn callbacks_get_stream_and_status() {
    let _own = Own::new();
    static SEEN: parking_lot::Mutex<Option<(usize, u32, usize)>> = parking_lot::Mutex::new(None);
    extern "C" fn callback(stream: usize, status: u32, data: usize) {
        *SEEN.lock() = Some((stream, status, data));
    }
    let stream = Stream::create(0, 0).unwrap();
    stream.callback(callback, 77).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(*SEEN.lock(), Some((stream.handle(), 0, 77)));
}

#[test]
fn values_in_memory_hold_streams_up() {
    let _own = Own::new();
    let (a, b) = (Stream::create(1, 0).unwrap(), Stream::create(1, 0).unwrap());
    let flag = alloc::managed(8, 1).unwrap();
    crate::driver::copies::set(flag, 0, 4, 0, 2, 1, false).unwrap();
    Context::current().unwrap().synchronize().unwrap();
    let log = Arc::new(Log::default());
    b.memory_operations(&[MemoryOperation::Wait {
        address: flag,
        bytes: 4,
        value: 5,
        flags: 0,
    }])
    .unwrap();
    log.queue(&b, 1, 0, None);
    std::thread::sleep(Duration::from_millis(2));
    assert!(log.read().is_empty());
    a.memory_operations(&[MemoryOperation::Write {
        address: flag,
        bytes: 4,
        value: 5,
    }])
    .unwrap();
    b.synchronize().unwrap();
    assert_eq!(log.read(), [1]);
    assert_eq!(
        a.memory_operations(&[MemoryOperation::Write {
            address: flag + 1,
            bytes: 4,
            value: 5
        }]),
        Err(Error::InvalidValue)
    );
    assert_eq!(
        a.memory_operations(&[MemoryOperation::Write {
            address: 8,
            bytes: 4,
            value: 5
        }]),
        Err(Error::InvalidValue)
    );
}

#[test]
fn many_threads_and_streams_at_once() {
    let own = Own::new();
    let log = Arc::new(Log::default());
    let total: u32 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8_u32)
            .map(|thread| {
                let (own, log) = (&own, &log);
                scope.spawn(move || {
                    own.enter();
                    let streams: Vec<_> = (0..3).map(|flags| Stream::create(flags & 1, 0).unwrap()).collect();
                    let mut sent = 0;
                    for round in 0..200_u32 {
                        let stream = &streams[round as usize % 3];
                        log.queue(stream, (thread << 16) | ((round % 3) << 12) | (round / 3), 0, None);
                        sent += 1;
                        if round % 17 == 0 {
                            let event = Event::create(2).unwrap();
                            event.record(&streams[0], false).unwrap();
                            streams[1].wait_event(&event, false).unwrap();
                            event.destroy().unwrap();
                        }
                        if round % 40 == 0 {
                            log.queue(&Stream::resolve(0, false).unwrap(), u32::MAX, 0, None);
                            sent += 1;
                        }
                        if round % 61 == 0 {
                            stream.synchronize().unwrap();
                        }
                    }
                    for stream in streams {
                        stream.destroy().unwrap();
                    }
                    sent
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    own.0.synchronize().unwrap();
    let seen = log.read();
    assert_eq!(seen.len() as u32, total);
    // Within each stream, in order.
    let mut last = std::collections::HashMap::new();
    for entry in seen.into_iter().filter(|entry| *entry != u32::MAX) {
        let next = last.entry(entry >> 12).or_insert(0);
        assert_eq!(entry & 0xFFF, *next);
        *next += 1;
    }
}

#[test]
fn threads_with_little_stack_wait_instead_of_helping() {
    let own = Own::new();
    let log = Arc::new(Log::default());
    std::thread::scope(|scope| {
        let (own, log) = (&own, &log);
        let small = std::thread::Builder::new().stack_size(128 << 10);
        let waiting = small.spawn_scoped(scope, move || {
            own.enter();
            let stream = Stream::create(1, 0).unwrap();
            for number in 0..100 {
                log.queue(&stream, number, 10, None);
                stream.synchronize().unwrap();
            }
        });
        waiting.unwrap().join().unwrap();
    });
    assert_eq!(log.read(), (0..100).collect::<Vec<_>>());
}
