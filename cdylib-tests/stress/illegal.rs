//! Illegal sequences: calls with whatever comes, right and wrong mixed. Handles are those of living things, of dead ones
//! and of none; sizes are small, absurd or nothing; device addresses point anywhere. Pointers to the host's memory alone
//! are always good, or null: with others a driver may crash as well.
//!
//! Each call must answer a code that the library has a name for; and afterwards a program that does everything right must
//! find everything right.

use crate::alone::alone;
use crate::c::*;
use crate::random::Random;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::{Arc, Barrier};

functions! {
    cuMemsetD8Async(to: CUdeviceptr, value: u8, count: usize, stream: CUstream);
    cuMemsetD16 = "cuMemsetD16_v2" (to: CUdeviceptr, value: u16, count: usize);
    cuMemsetD2D32 = "cuMemsetD2D32_v2" (to: CUdeviceptr, pitch: usize, value: c_uint, width: usize, height: usize);
    cuMemcpyDtoDAsync = "cuMemcpyDtoDAsync_v2" (to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream);
    cuMemcpyPeer(to: CUdeviceptr, to_context: CUcontext, from: CUdeviceptr, context: CUcontext, bytes: usize);
    cuMemAllocPitch = "cuMemAllocPitch_v2" (
        pointer: *mut CUdeviceptr,
        pitch: *mut usize,
        width: usize,
        height: usize,
        element: c_uint,
    );
    cuMemAllocAsync(pointer: *mut CUdeviceptr, bytes: usize, stream: CUstream);
    cuMemFreeAsync(pointer: CUdeviceptr, stream: CUstream);
    cuMemGetAddressRange = "cuMemGetAddressRange_v2" (base: *mut CUdeviceptr, bytes: *mut usize, pointer: CUdeviceptr);
    cuMemAdvise(pointer: CUdeviceptr, bytes: usize, advice: c_uint, device: CUdevice);
    cuMemPrefetchAsync(pointer: CUdeviceptr, bytes: usize, device: CUdevice, stream: CUstream);
    cuMemHostRegister = "cuMemHostRegister_v2" (pointer: *mut c_void, bytes: usize, flags: c_uint);
    cuMemHostUnregister(pointer: *mut c_void);
    cuMemHostGetDevicePointer = "cuMemHostGetDevicePointer_v2" (device: *mut CUdeviceptr, host: *mut c_void, flags: c_uint);
    cuMemHostGetFlags(flags: *mut c_uint, host: *mut c_void);
    cuMemAddressReserve(pointer: *mut CUdeviceptr, bytes: usize, alignment: usize, hint: CUdeviceptr, flags: u64);
    cuMemAddressFree(pointer: CUdeviceptr, bytes: usize);
    cuMemMap(pointer: CUdeviceptr, bytes: usize, offset: usize, handle: u64, flags: u64);
    cuMemUnmap(pointer: CUdeviceptr, bytes: usize);
    cuMemRelease(handle: u64);
    cuPointerGetAttribute(data: *mut [u64; 8], attribute: c_uint, pointer: CUdeviceptr);
    cuPointerSetAttribute(data: *const [u64; 8], attribute: c_uint, pointer: CUdeviceptr);
    cuStreamAttachMemAsync(stream: CUstream, pointer: CUdeviceptr, bytes: usize, flags: c_uint);
    cuStreamGetPriority(stream: CUstream, priority: *mut c_int);
    cuStreamGetFlags(stream: CUstream, flags: *mut c_uint);
    cuStreamGetCtx(stream: CUstream, context: *mut CUcontext);
    cuStreamGetId(stream: CUstream, id: *mut u64);
    cuStreamBeginCapture = "cuStreamBeginCapture_v2" (stream: CUstream, mode: c_uint);
    cuStreamEndCapture(stream: CUstream, graph: *mut *mut c_void);
    cuThreadExchangeStreamCaptureMode(mode: *mut c_uint);
    cuStreamIsCapturing(stream: CUstream, status: *mut c_uint);
    cuStreamWriteValue32 = "cuStreamWriteValue32_v2" (stream: CUstream, at: CUdeviceptr, value: u32, flags: c_uint);
    cuEventRecordWithFlags(event: CUevent, stream: CUstream, flags: c_uint);
    cuGraphCreate(graph: *mut *mut c_void, flags: c_uint);
    cuGraphDestroy(graph: *mut c_void);
    cuGraphAddEmptyNode(node: *mut *mut c_void, graph: *mut c_void, after: *const *mut c_void, count: usize);
    cuGraphDestroyNode(node: *mut c_void);
    cuGraphInstantiate = "cuGraphInstantiateWithFlags" (exec: *mut *mut c_void, graph: *mut c_void, flags: u64);
    cuGraphLaunch(exec: *mut c_void, stream: CUstream);
    cuGraphExecDestroy(exec: *mut c_void);
    cuGraphNodeGetType(node: *mut c_void, kind: *mut c_uint);
    cuGraphClone(clone: *mut *mut c_void, graph: *mut c_void);
    cuFuncGetModule(module: *mut CUmodule, function: CUfunction);
    cuFuncGetName(name: *mut *const c_char, function: CUfunction);
    cuFuncGetParamInfo(function: CUfunction, index: usize, offset: *mut usize, bytes: *mut usize);
    cuFuncSetCacheConfig(function: CUfunction, config: c_uint);
    cuFuncSetBlockShape(function: CUfunction, x: c_int, y: c_int, z: c_int);
    cuParamSetSize(function: CUfunction, bytes: c_uint);
    cuParamSeti(function: CUfunction, offset: c_int, value: c_uint);
    cuLaunchGrid(function: CUfunction, width: c_int, height: c_int);
    cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks: *mut c_int, function: CUfunction, block: c_int, shared: usize);
    cuLaunchCooperativeKernel(
        function: CUfunction,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared: c_uint,
        stream: CUstream,
        parameters: *mut *mut c_void,
    );
    cuDeviceGetP2PAttribute(value: *mut c_int, attribute: c_uint, from: CUdevice, to: CUdevice);
    cuDeviceCanAccessPeer(can: *mut c_int, device: CUdevice, peer: CUdevice);
    cuCtxEnablePeerAccess(context: CUcontext, flags: c_uint);
    cuCtxGetApiVersion(context: CUcontext, version: *mut c_uint);
    cuCtxGetId(context: CUcontext, id: *mut u64);
    cuMemPoolCreate(pool: *mut *mut c_void, properties: *const [u64; 11]);
    cuMemPoolDestroy(pool: *mut c_void);
    cuMemPoolTrimTo(pool: *mut c_void, bytes: usize);
    cuMemPoolGetAttribute(pool: *mut c_void, attribute: c_uint, value: *mut u64);
    cuMemPoolSetAttribute(pool: *mut c_void, attribute: c_uint, value: *mut u64);
    cuGetProcAddress = "cuGetProcAddress_v2" (
        name: *const c_char,
        function: *mut *mut c_void,
        version: c_int,
        flags: u64,
        status: *mut c_uint,
    );
}

const PTX: &CStr = c"
.version 7.0
.target sm_70
.address_size 64
.visible .global .align 4 .b32 word;
.visible .entry store(.param .u64 to, .param .u32 value)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd0, [to];
    ld.param.u32 %r0, [value];
    mov.u32 %r1, %tid.x;
    mad.wide.u32 %rd0, %r1, 4, %rd0;
    st.global.u32 [%rd0], %r0;
    ret;
}
";
const HOST: usize = 1 << 16;

const KINDS: usize = 9;
#[derive(Clone, Copy)]
#[rustfmt::skip]
enum Kind { Context, Module, Function, Stream, Event, Graph, Exec, Node, Pool }

macro_rules! kinds {
    ($($name:ident $made:ident $kind:ident;)*) => {
        impl World {$(
            fn $name<T>(&mut self) -> *mut T {
                self.handle(Kind::$kind)
            }
            fn $made(&mut self, result: CUresult) -> CUresult {
                self.made(Kind::$kind, result)
            }
        )*}
    };
}
kinds! {
    context new_context Context;
    module new_module Module;
    function new_function Function;
    queue new_stream Stream;
    event new_event Event;
    graph new_graph Graph;
    exec new_exec Exec;
    node new_node Node;
    pool new_pool Pool;
}

/// What there is to put into calls: handles alive and dead, of every kind.
struct World {
    random: Random,
    handles: [Vec<u64>; KINDS],
    addresses: Vec<u64>,
    /// Memory that calls may read and write, and what they write answers to.
    host: Vec<u64>,
    out: Vec<u64>,
}

impl World {
    /// A handle, most likely of this kind.
    fn handle<T>(&mut self, kind: Kind) -> *mut T {
        let kind = match self.random.below(8) {
            0 => self.random.below(KINDS),
            _ => kind as usize,
        };
        let count = self.handles[kind].len();
        let handle = match self.random.below(12) {
            0 => 0,
            1 => self.random.pick(&[1, 2, 3, 8, u64::MAX, 0xdead_beef, 1 << 47]),
            _ if count == 0 => 0x10,
            2 => self.handles[kind][self.random.below(count)] ^ self.random.pick(&[1, 8, 16, 0x100]),
            _ => self.handles[kind][self.random.below(count)],
        };
        handle as *mut T
    }
    fn stream(&mut self) -> CUstream {
        match self.random.below(3) {
            0 => self.random.pick(&[0, 1, 2]) as CUstream,
            _ => self.queue(),
        }
    }
    fn address(&mut self) -> u64 {
        let base = self.either();
        match self.random.below(8) {
            0 => self.random.pick(&[0, 1, 4096, u64::MAX, 1 << 63, 0x7fff_ffff_f000]),
            1 => base.wrapping_add(self.random.pick(&[1, 3, 4096, 1 << 20, u64::MAX])),
            _ => base,
        }
    }
    /// For calls that take other addresses for the host's: memory of a device, perhaps no more, or the host's.
    fn either(&mut self) -> u64 {
        match self.random.below(self.addresses.len() + 1) {
            0 => self.host.as_ptr() as u64,
            at => self.addresses[at - 1],
        }
    }
    fn size(&mut self) -> usize {
        let small = self.random.below(HOST / 2);
        self.random.pick(&[
            0,
            1,
            4,
            4096,
            small,
            small,
            1 << 20,
            1 << 44,
            usize::MAX,
            usize::MAX / 2,
            1 << 63,
        ])
    }
    /// At most as many bytes as the host's memory has.
    fn modest(&mut self) -> usize {
        self.random.below(HOST)
    }
    fn number(&mut self) -> c_int {
        let small = self.random.below(40) as c_int;
        self.random
            .pick(&[0, 1, 2, 3, small, small, 128, -1, c_int::MAX, c_int::MIN])
    }
    fn flags(&mut self) -> c_uint {
        let bits = self.random.next() as c_uint;
        self.random.pick(&[0, 0, 0, 1, 2, 4, 7, bits])
    }
    /// Where an answer goes; now and then nowhere.
    fn out<T>(&mut self) -> *mut T {
        match self.random.below(8) {
            0 => null_mut(),
            _ => self.out.as_mut_ptr().cast(),
        }
    }
    fn host<T>(&mut self) -> *mut T {
        match self.random.below(10) {
            0 => null_mut(),
            _ => self.host.as_mut_ptr().cast(),
        }
    }
    /// What a call has made joins the rest.
    fn made(&mut self, kind: Kind, result: CUresult) -> CUresult {
        if result == CUDA_SUCCESS {
            let handle = self.out[0];
            let at = self.random.below(12);
            let kind = &mut self.handles[kind as usize];
            match kind.len() {
                0..12 => kind.push(handle),
                _ => kind[at] = handle,
            }
        }
        result
    }
    fn allocated(&mut self, result: CUresult) -> CUresult {
        if result == CUDA_SUCCESS {
            let address = self.out[0];
            let at = self.random.below(32);
            match self.addresses.len() {
                0..32 => self.addresses.push(address),
                _ => self.addresses[at] = address,
            }
        }
        result
    }
}

type Call = fn(&mut World) -> CUresult;

/// `@new_…`: the answer is a handle; `@allocated`: an address.
macro_rules! calls {
    ($($(@$keep:ident)? $name:ident($($argument:ident $(= $value:expr)?),* $(,)?);)*) => {
        &[$((stringify!($name), (|w: &mut World| {
            w.out[0] = 0;
            let arguments = ($(calls!(@argument w $argument $(= $value)?),)*);
            let result = calls!(@call $name arguments $($argument)*);
            $(let result = w.$keep(result);)?
            result
        }) as Call)),*]
    };
    (@argument $w:ident $argument:ident) => { $w.$argument() };
    (@argument $w:ident $argument:ident = $value:expr) => { $value };
    (@call $name:ident $arguments:ident) => { { let () = $arguments; $name() } };
    (@call $name:ident $arguments:ident $a:ident) => { { let (a,) = $arguments; $name(a) } };
    (@call $name:ident $arguments:ident $a:ident $b:ident) => { { let (a, b) = $arguments; $name(a, b) } };
    (@call $name:ident $arguments:ident $a:ident $b:ident $c:ident) => {
        { let (a, b, c) = $arguments; $name(a, b, c) }
    };
    (@call $name:ident $arguments:ident $a:ident $b:ident $c:ident $d:ident) => {
        { let (a, b, c, d) = $arguments; $name(a, b, c, d) }
    };
    (@call $name:ident $arguments:ident $a:ident $b:ident $c:ident $d:ident $e:ident) => {
        { let (a, b, c, d, e) = $arguments; $name(a, b, c, d, e) }
    };
}

const CALLS: &[(&str, Call)] = calls! {
    cuInit(flags);
    cuDriverGetVersion(out);
    cuDeviceGet(out, number);
    cuDeviceGetCount(out);
    cuDeviceGetUuid(out, number);
    cuDeviceTotalMem(out, number);
    cuDeviceGetAttribute(out, number, number);
    cuDeviceGetP2PAttribute(out, flags, number, number);
    cuDeviceCanAccessPeer(out, number, number);
    @new_context cuCtxCreate(out, flags, number);
    cuCtxDestroy(context);
    cuCtxSetCurrent(context);
    cuCtxPushCurrent(context);
    cuCtxPopCurrent(out);
    cuCtxGetCurrent(out);
    cuCtxGetDevice(out);
    cuCtxSynchronize();
    cuCtxSetLimit(number, modest);
    cuCtxGetLimit(out, number);
    cuCtxGetApiVersion(context, out);
    cuCtxGetId(context, out);
    cuCtxEnablePeerAccess(context, flags);
    @new_module cuModuleLoadData(out, text = PTX.as_ptr().cast());
    cuModuleLoadData(out, host);
    cuModuleUnload(module);
    @new_function cuModuleGetFunction(out, module, name = c"store".as_ptr());
    cuModuleGetFunction(out, module, name = c"nothing".as_ptr());
    cuModuleGetGlobal(out, out, module, name = c"word".as_ptr());
    cuFuncGetAttribute(out, number, function);
    cuFuncSetAttribute(function, number, number);
    cuFuncGetModule(out, function);
    cuFuncGetName(out, function);
    cuFuncGetParamInfo(function, modest, out, out);
    cuFuncSetCacheConfig(function, flags);
    cuFuncSetBlockShape(function, number, number, number);
    cuParamSetSize(function, flags);
    cuParamSeti(function, number, flags);
    cuLaunchGrid(function, number, number);
    cuOccupancyMaxActiveBlocksPerMultiprocessor(out, function, number, size);
    cuMemGetInfo(out, out);
    @allocated cuMemAlloc(out, size);
    @allocated cuMemAllocManaged(out, size, flags);
    @allocated cuMemAllocPitch(out, pitch = w_pitch(), size, size, flags);
    @allocated cuMemAllocAsync(out, size, stream);
    cuMemFree(address);
    cuMemFreeAsync(address, stream);
    cuMemFreeHost(host);
    cuMemGetAddressRange(out, out, address);
    cuMemcpy(either, either, modest);
    cuMemcpyHtoD(address, host, modest);
    cuMemcpyDtoH(host, address, modest);
    cuMemcpyDtoD(address, address, size);
    cuMemcpyDtoDAsync(address, address, size, stream);
    cuMemcpyPeer(address, context, address, context, size);
    cuMemsetD8(address, value = 7, size);
    cuMemsetD8Async(address, value = 7, size, stream);
    cuMemsetD16(address, value = 7, size);
    cuMemsetD32(address, flags, size);
    cuMemsetD2D32(address, size, flags, size, size);
    cuMemAdvise(address, size, flags, number);
    cuMemPrefetchAsync(address, size, number, stream);
    cuMemHostRegister(host, modest, flags);
    cuMemHostUnregister(host);
    cuMemHostGetDevicePointer(out, host, flags);
    cuMemHostGetFlags(out, host);
    @allocated cuMemAddressReserve(out, size, size, address, flags = 0);
    cuMemAddressFree(address, size);
    cuMemMap(address, size, size, handle = 7, flags = 0);
    cuMemUnmap(address, size);
    cuMemRelease(address);
    cuPointerGetAttribute(out, flags, address);
    cuPointerSetAttribute(host, flags, address);
    @new_stream cuStreamCreate(out, flags);
    cuStreamDestroy(stream);
    cuStreamSynchronize(stream);
    cuStreamQuery(stream);
    cuStreamWaitEvent(stream, event, flags);
    cuStreamAttachMemAsync(stream, address, size, flags);
    cuStreamGetPriority(stream, out);
    cuStreamGetFlags(stream, out);
    cuStreamGetCtx(stream, out);
    cuStreamGetId(stream, out);
    cuStreamBeginCapture(stream, flags);
    @new_graph cuStreamEndCapture(stream, out);
    cuStreamIsCapturing(stream, out);
    cuStreamWriteValue32(stream, address, flags, flags);
    @new_event cuEventCreate(out, flags);
    cuEventDestroy(event);
    cuEventRecord(event, stream);
    cuEventRecordWithFlags(event, stream, flags);
    cuEventSynchronize(event);
    cuEventQuery(event);
    cuEventElapsedTime(out, event, event);
    @new_graph cuGraphCreate(out, flags);
    cuGraphDestroy(graph);
    @new_node cuGraphAddEmptyNode(out, graph, after = std::ptr::null(), count = 0);
    cuGraphAddEmptyNode(out, graph, host, modest);
    cuGraphDestroyNode(node);
    @new_exec cuGraphInstantiate(out, graph, flags = 0);
    cuGraphLaunch(exec, stream);
    cuGraphExecDestroy(exec);
    cuGraphNodeGetType(node, out);
    @new_graph cuGraphClone(out, graph);
    @new_pool cuMemPoolCreate(out, host);
    cuMemPoolDestroy(pool);
    cuMemPoolTrimTo(pool, size);
    cuMemPoolGetAttribute(pool, flags, out);
    cuMemPoolSetAttribute(pool, flags, out);
    cuTexObjectDestroy(address);
    cuSurfObjectDestroy(address);
    cuTexObjectGetResourceDesc(out, address);
    cuArrayDestroy(pool);
    cuArray3DGetDescriptor(out, pool);
    cuTexRefDestroy(pool);
    @new_pool cuArray3DCreate(out, host);
    cuGetProcAddress(name = c"cuMemAlloc".as_ptr(), out, number, flags = 0, out);
    cuGetProcAddress(name = c"cuNothing".as_ptr(), out, number, flags = 5, out);
};

/// Another word than the address goes to.
fn w_pitch() -> *mut usize {
    static PITCH: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    PITCH.as_ptr()
}

/// The two launches with their many arguments.
fn launch(w: &mut World, cooperative: bool) -> CUresult {
    let (mut to, mut value) = (w.address(), 7_u32);
    let mut parameters = [(&raw mut to).cast(), (&raw mut value).cast()];
    let parameters = match w.random.below(6) {
        0 => null_mut(),
        _ => parameters.as_mut_ptr(),
    };
    let function = w.function();
    let [x, y, z, a, b, c, shared] = std::array::from_fn(|i| match w.random.below(6) {
        0 => w.flags(),
        1 => w.number() as c_uint,
        _ => c_uint::from(i < 6),
    });
    // No grid that runs for ever.
    let x = x & 0xffff;
    let stream = w.stream();
    match cooperative {
        true => cuLaunchCooperativeKernel(function, x, y, z, a, b, c, shared, stream, parameters),
        false => cuLaunchKernel(function, x, y, z, a, b, c, shared, stream, parameters, null_mut()),
    }
}

/// A program without mistakes.
fn all_is_well() {
    let (mut context, mut module, mut function, mut to) = (null_mut(), null_mut(), null_mut(), 0);
    ok(cuInit(0));
    // Captures that were begun and not ended concern nobody who says so: CU_STREAM_CAPTURE_MODE_RELAXED.
    let mut mode = 2;
    ok(cuThreadExchangeStreamCaptureMode(&mut mode));
    ok(cuCtxCreate(&mut context, 0, 0));
    ok(cuModuleLoadData(&mut module, PTX.as_ptr().cast()));
    ok(cuModuleGetFunction(&mut function, module, c"store".as_ptr()));
    ok(cuMemAlloc(&mut to, 4 * 64));
    ok(cuMemsetD32(to, 1, 64));
    let mut value = 0x1234_5678_u32;
    let mut parameters = [(&raw mut to).cast(), (&raw mut value).cast()];
    ok(cuLaunchKernel(
        function,
        1,
        1,
        1,
        32,
        1,
        1,
        0,
        null_mut(),
        parameters.as_mut_ptr(),
        null_mut(),
    ));
    let mut found = [0_u32; 64];
    ok(cuMemcpyDtoH(found.as_mut_ptr().cast(), to, 4 * 64));
    let expected: [u32; 64] = std::array::from_fn(|i| if i < 32 { value } else { 1 });
    assert_eq!(found, expected);
    ok(cuMemFree(to));
    ok(cuModuleUnload(module));
    ok(cuCtxDestroy(context));
}

fn run(seed: u64, steps: u64) {
    ok(cuInit(0));
    let mut world = World {
        random: Random(seed),
        handles: Default::default(),
        addresses: Vec::new(),
        host: vec![0; HOST / 8],
        out: vec![0; 512],
    };
    let mut calls = CALLS.to_vec();
    calls.extend([("cuLaunchKernel", (|w| launch(w, false)) as Call); 4]);
    calls.push(("cuLaunchCooperativeKernel", |w| launch(w, true)));
    let mut answered = std::collections::BTreeMap::<CUresult, u64>::new();
    let mut trail = std::collections::VecDeque::new();
    for step in 0..steps {
        // After errors that stay, a fresh context; and one now and then in any case.
        if step % 200 == 0 {
            let mut context = null_mut();
            ok(cuCtxCreate(&mut context, 0, 0));
            world.handles[Kind::Context as usize].push(context as u64);
        }
        let (name, call) = world.random.pick(&calls);
        if std::env::var_os("STRESS_TRACE").is_some() {
            eprintln!("{step}: {name}");
        }
        let result = call(&mut world);
        let mut text = std::ptr::null();
        assert_eq!(
            cuGetErrorName(result, &mut text),
            CUDA_SUCCESS,
            "step {step}: {name} answers {result}, after {trail:?}"
        );
        *answered.entry(result).or_default() += 1;
        trail.push_back((name, result));
        if trail.len() > 12 {
            trail.pop_front();
        }
    }
    // Not all of one kind: otherwise the calls would not have met anything.
    assert!(answered.len() > 8, "{answered:?}");
    assert!(answered[&CUDA_SUCCESS] > steps / 20, "{answered:?}");
    println!("answers: {answered:?}");
}

#[test]
fn illegal_calls_in_any_order_break_nothing() {
    alone(test_name!(), &[("MARGAY_LOG", "off")], || {
        let seed = crate::number("STRESS_SEED", 0xbad);
        let steps = crate::number("STRESS_STEPS", 8000);
        // Nobody makes mistakes any more: what one thread frees twice is another's the second time.
        let over = Arc::new(Barrier::new(3));
        let threads: Vec<_> = (0..3)
            .map(|thread| {
                let over = Arc::clone(&over);
                std::thread::spawn(move || {
                    run(seed + 77 * thread, steps);
                    over.wait();
                    all_is_well();
                })
            })
            .collect();
        for thread in threads {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
        all_is_well();
    });
}
