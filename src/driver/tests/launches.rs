//! Launches: what is refused, what arrives at the executor, what a fault does; and a kernel that really runs.

use std::ffi::c_void;

use super::super::calls::launch;
use super::super::launch::{Arguments, Config, tests::RUNNER};
use super::*;
use crate::simt::{Cause, Fault, Launch, Place, Whose};

const EMPTY: &str = "
.version 8.0
.target sm_52
.address_size 64
.global .align 4 .u32 counter = 7;
.visible .entry empty() { ret; }
.visible .entry three(.param .u32 a, .param .u64 b, .param .u8 c) .maxntid 128, 1, 1 { ret; }
.visible .entry store(.param .u64 p, .param .u32 v) {
    .reg .b64 %a;
    .reg .b32 %v;
    ld.param.u64 %a, [p];
    ld.param.u32 %v, [v];
    st.global.u32 [%a], %v;
    ret;
}
\0";

fn load(text: &str) -> Arc<Module> {
    assert!(text.ends_with('\0'));
    // SAFETY: NUL-terminated text.
    unsafe { Module::load_data(text.as_ptr() as *const c_void, false) }.unwrap()
}

fn shape(grid: [u32; 3], block: [u32; 3]) -> Config {
    Config {
        grid,
        block,
        dynamic_shared: 0,
        cooperative: false,
        ..Config::default()
    }
}

fn go(function: &Arc<Function>, config: &Config, arguments: &[*const c_void]) -> Result<()> {
    let stream = Stream::resolve(0, false)?;
    let arguments = match arguments {
        [] => Arguments::None,
        some => Arguments::Pointers(some.as_ptr()),
    };
    // SAFETY: the tests pass a pointer for each parameter.
    unsafe { launch(function, config, arguments, &stream) }
}

fn address<T>(value: &T) -> *const c_void {
    (value as *const T).cast()
}

#[test]
fn shapes_beyond_the_limits_are_refused() {
    let _own = Own::new();
    let module = load(EMPTY);
    let empty = module.function("empty").unwrap();
    RUNNER.set(Some(|_| Ok(())));
    for (grid, block, expected) in [
        ([1, 1, 1], [1, 1, 1], Ok(())),
        ([1, 1, 1], [1024, 1, 1], Ok(())),
        ([1, 1, 1], [16, 16, 4], Ok(())),
        ([0x7FFF_FFFF, 1, 1], [1, 1, 1], Ok(())),
        ([1, 65535, 65535], [1, 1, 1], Ok(())),
        ([0, 1, 1], [1, 1, 1], Err(Error::InvalidValue)),
        ([1, 1, 0], [1, 1, 1], Err(Error::InvalidValue)),
        ([1, 1, 1], [1, 0, 1], Err(Error::InvalidValue)),
        ([1, 1, 1], [1025, 1, 1], Err(Error::InvalidValue)),
        ([1, 1, 1], [1, 1, 65], Err(Error::InvalidValue)),
        ([1, 1, 1], [32, 33, 1], Err(Error::InvalidValue)),
        ([1, 1, 1], [u32::MAX, u32::MAX, u32::MAX], Err(Error::InvalidValue)),
        ([0x8000_0000, 1, 1], [1, 1, 1], Err(Error::InvalidValue)),
        ([1, 65536, 1], [1, 1, 1], Err(Error::InvalidValue)),
        ([1, 1, 65536], [1, 1, 1], Err(Error::InvalidValue)),
    ] {
        assert_eq!(go(&empty, &shape(grid, block), &[]), expected, "{grid:?} {block:?}");
    }
    let with = |change: fn(&mut Config)| {
        let mut config = shape([4, 1, 1], [32, 1, 1]);
        change(&mut config);
        go(&empty, &config, &[])
    };
    // 48 KiB without asking for more (CUDA programming guide, "Shared Memory").
    assert_eq!(with(|config| config.dynamic_shared = 48 << 10), Ok(()));
    assert_eq!(
        with(|config| config.dynamic_shared = (48 << 10) + 1),
        Err(Error::InvalidValue)
    );
    assert_eq!(empty.set_attribute(8, 99 << 10), Ok(()));
    assert_eq!(with(|config| config.dynamic_shared = 99 << 10), Ok(()));
    assert_eq!(empty.set_attribute(8, (99 << 10) + 1), Err(Error::InvalidValue));
    assert_eq!(empty.set_attribute(8, -1), Err(Error::InvalidValue));
    assert_eq!(
        with(|config| config.dynamic_shared = u32::MAX),
        Err(Error::InvalidValue)
    );
    assert_eq!(with(|config| config.cluster = [2, 1, 1]), Ok(()));
    assert_eq!(
        with(|config| config.cluster = [3, 1, 1]),
        Err(Error::InvalidClusterSize)
    );
    assert_eq!(
        with(|config| config.cluster = [2, 0, 1]),
        Err(Error::InvalidClusterSize)
    );
    assert_eq!(with(|config| config.cooperative = true), Ok(()));
    assert_eq!(
        with(|config| {
            config.cooperative = true;
            config.grid = [1_000_000, 1, 1];
        }),
        Err(Error::CooperativeLaunchTooLarge)
    );
    RUNNER.set(None);
}

#[test]
fn arguments_arrive_where_the_parameters_are() {
    let _own = Own::new();
    let module = load(EMPTY);
    let three = module.function("three").unwrap();
    // Natural alignment: u32 at 0, u64 at 8, u8 at 16.
    assert_eq!(three.parameter_count(), 3);
    assert_eq!(three.parameter(0), Ok((0, 4)));
    assert_eq!(three.parameter(1), Ok((8, 8)));
    assert_eq!(three.parameter(2), Ok((16, 1)));
    assert_eq!(three.parameter(3), Err(Error::InvalidValue));
    static SEEN: parking_lot::Mutex<Vec<u8>> = parking_lot::Mutex::new(Vec::new());
    RUNNER.set(Some(|launch| {
        *SEEN.lock() = launch.params.to_vec();
        Ok(())
    }));
    let (a, b, c) = (0x0102_0304_u32, 0x1112_1314_1516_1718_u64, 0x21_u8);
    let config = shape([1; 3], [1; 3]);
    go(&three, &config, &[address(&a), address(&b), address(&c)]).unwrap();
    Context::current().unwrap().synchronize().unwrap();
    let seen = SEEN.lock().clone();
    assert_eq!(seen[0..4], a.to_le_bytes());
    assert_eq!(seen[8..16], b.to_le_bytes());
    assert_eq!(seen[16], c);
    assert_eq!(go(&three, &config, &[]), Err(Error::InvalidValue));
    assert_eq!(
        go(&three, &config, &[address(&a), std::ptr::null(), address(&c)]),
        Err(Error::InvalidValue)
    );
    let stream = Stream::resolve(0, false).unwrap();
    let buffer: Vec<u8> = (0..24).collect();
    // SAFETY: no pointers.
    unsafe {
        launch(&three, &config, Arguments::Buffer(&buffer), &stream).unwrap();
        stream.synchronize().unwrap();
        assert_eq!(SEEN.lock()[..17], buffer[..17]);
        assert_eq!(
            launch(&three, &config, Arguments::Buffer(&buffer[..16]), &stream),
            Err(Error::InvalidValue)
        );
    }
    // `.maxntid 128`
    assert_eq!(three.attribute(0), Ok(128));
    assert_eq!(
        go(
            &three,
            &shape([1; 3], [129, 1, 1]),
            &[address(&a), address(&b), address(&c)]
        ),
        Err(Error::InvalidValue)
    );
    RUNNER.set(None);
}

#[test]
fn a_fault_sticks_and_ends_what_is_queued() {
    let _own = Own::new();
    let module = load(EMPTY);
    let empty = module.function("empty").unwrap();
    let fault = |_: Arc<Launch>| Err(Box::new(Fault::of_launch(Cause::Trap, &"empty".into())));
    let stream = Stream::create(0, 0).unwrap();
    let (log, gate) = (Arc::new(Log::default()), Arc::new(Gate::default()));
    log.queue(&stream, 1, 0, Some(&gate));
    RUNNER.set(Some(fault));
    // SAFETY: no parameters.
    unsafe { launch(&empty, &shape([1; 3], [1; 3]), Arguments::None, &stream) }.unwrap();
    RUNNER.set(None);
    log.queue(&stream, 2, 0, None);
    static STATUS: AtomicU32 = AtomicU32::new(0);
    extern "C" fn status(_: usize, code: u32, _: usize) {
        STATUS.store(code, Ordering::SeqCst);
    }
    stream.callback(status, 0).unwrap();
    let event = Event::create(0).unwrap();
    event.record(&stream, false).unwrap();
    gate.open();
    assert_eq!(stream.synchronize(), Err(Error::LaunchFailed));
    // Host functions are left out, callbacks hear of it (manual, cuLaunchHostFunc and cuStreamAddCallback).
    assert_eq!(log.read(), [1]);
    assert_eq!(STATUS.load(Ordering::SeqCst), 719);
    for answer in [
        event.synchronize(),
        event.query(),
        alloc::device(4).map(drop),
        alloc::free(0),
        Stream::create(0, 0).map(drop),
        Event::create(0).map(drop),
        go(&empty, &shape([1; 3], [1; 3]), &[]),
        Context::usable().map(drop),
        Context::current().unwrap().synchronize(),
        crate::driver::copies::linear(copy::Place::Host(8), copy::Place::Host(8), 1, false),
    ] {
        assert_eq!(answer, Err(Error::LaunchFailed));
    }
}

#[test]
fn a_kernel_writes_where_it_may_and_faults_where_not() {
    let own = Own::new();
    let module = load(EMPTY);
    let store = module.function("store").unwrap();
    let (counter, bytes) = module.global("counter").unwrap();
    assert_eq!(bytes, 4);
    // SAFETY: a variable of the module's.
    assert_eq!(unsafe { (counter as *const u32).read() }, 7);
    let config = shape([1; 3], [1; 3]);
    let value = 41_u32;
    go(&store, &config, &[address(&counter), address(&value)]).unwrap();
    let mut host = vec![0_u32; 1000];
    own.0.synchronize().unwrap();
    // SAFETY: a variable of the module's, four bytes, which nobody writes any more.
    assert_eq!(unsafe { (counter as *const u32).read() }, 41);
    // Registered host memory is a kernel's to write, other host memory is not.
    let start = host.as_mut_ptr() as u64;
    alloc::register(start, 4000, 0).unwrap();
    let there = start + 400;
    go(&store, &config, &[address(&there), address(&value)]).unwrap();
    own.0.synchronize().unwrap();
    // SAFETY: the vector is alive.
    assert_eq!(unsafe { (there as *const u32).read() }, 41);
    alloc::unregister(start).unwrap();
    go(&store, &config, &[address(&there), address(&value)]).unwrap();
    assert_eq!(own.0.synchronize(), Err(Error::IllegalAddress));
    assert_eq!(host[101], 0);
}

#[test]
fn launch_and_synchronise_cost_little() {
    let own = Own::new();
    let module = load(EMPTY);
    let empty = module.function("empty").unwrap();
    let stream = Stream::create(1, 0).unwrap();
    let config = shape([1; 3], [1; 3]);
    let measure = |what: &str, rounds: u32, work: &dyn Fn()| {
        for _ in 0..200 {
            work();
        }
        own.0.synchronize().unwrap();
        // The best of ten: other tests want the cores, too.
        let batches = (0..10).map(|_| {
            let began = Instant::now();
            for _ in 0..rounds / 10 {
                work();
            }
            let each = began.elapsed() / (rounds / 10);
            own.0.synchronize().unwrap();
            each
        });
        let each = batches.min().unwrap();
        println!("{what}: {each:?}");
        each
    };
    // SAFETY: no parameters.
    let enqueue = || unsafe { launch(&empty, &config, Arguments::None, &stream) }.unwrap();
    for (name, runner) in [("stand-in", Some((|_| Ok(())) as _)), ("executor", None)] {
        RUNNER.set(runner);
        measure(&format!("launch ({name})"), 2000, &|| enqueue());
        let both = measure(&format!("launch and synchronise ({name})"), 2000, &|| {
            enqueue();
            stream.synchronize().unwrap();
        });
        // Ten times the aim, for machines that are busy with other tests.
        assert!(both < Duration::from_micros(200), "{both:?}");
    }
    RUNNER.set(None);
    let event = Event::create(0).unwrap();
    measure("record an event", 2000, &|| event.record(&stream, false).unwrap());
    let memory = alloc::device(4096).unwrap();
    let host = [0_u8; 4096];
    let source = copy::Place::Host(host.as_ptr() as u64);
    measure("copy 4 KiB to the device", 2000, &|| {
        crate::driver::copies::linear(copy::Place::Device(memory), source, 4096, false).unwrap();
    });
    measure("allocate and free", 2000, &|| {
        alloc::free(alloc::device(1 << 16).unwrap()).unwrap();
    });
    measure("synchronise an idle context", 2000, &|| own.0.synchronize().unwrap());
}

/// The report is written after the grid, whose memory another context's allocation may have by then.
#[test]
fn a_report_tells_a_window_from_the_allocation_that_has_its_place_now() {
    use crate::driver::code::fault;
    use crate::program::Space;

    let own = Own::new();
    let newer = alloc::device(4192).unwrap();
    let fault = |was_ours, past: u64| Fault {
        place: Some(Place {
            space: Space::Shared,
            offset: 200 + past as i64,
            bytes: 200,
            variable: None,
            whose: Whose::Own,
            was_ours,
        }),
        ..Fault::of_launch(
            Cause::IllegalAddress {
                address: newer + 200 + past,
                bytes: 4,
                write: true,
                space: Space::Generic,
            },
            &"kernel".into(),
        )
    };
    let window = "the address is 4 bytes past the end of the block's 200 bytes of shared memory";
    let allocation = format!("the address is 204 bytes inside an allocation of 4192 bytes at {newer:#x}");
    let text = fault::report(&fault(true, 4), 0);
    assert!(text.contains(window) && !text.contains("allocation"), "{text}");
    let text = fault::report(&fault(false, 4), 0);
    assert!(text.contains(&allocation), "{text}");
    drop(own);
}
