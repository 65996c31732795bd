//! cust: the launch macro, kinds of memory, streams, events and callbacks, globals, contexts, the linker, structures, errors.

#[path = "../../check.rs"]
mod check;

use std::ffi::CString;
use std::sync::{Arc, Mutex};

use check::{Outcome, equal, holds, same};
use cust::context::{Context, CurrentContext, ResourceLimit};
use cust::device::{Device, DeviceAttribute};
use cust::error::CudaError;
use cust::event::{Event, EventFlags, EventStatus};
use cust::function::FunctionAttribute;
use cust::link::Linker;
use cust::memory::array::{ArrayFormat, ArrayObject};
use cust::memory::{
    AsyncCopyDestination, CopyDestination, DeviceBox, DeviceBuffer, DeviceCopy, DeviceVariable, LockedBuffer,
    UnifiedBox, UnifiedBuffer,
};
use cust::module::Module;
use cust::stream::{Stream, StreamFlags, StreamWaitEventFlags};
use cust::{CudaApiVersion, launch, quick_init};

const KERNELS: &str = include_str!("../../kernels.ptx");

fn start() -> Result<(Context, Stream, Module), CudaError> {
    let context = quick_init()?;
    let stream = Stream::new(StreamFlags::NON_BLOCKING, None)?;
    let module = Module::from_ptx(KERNELS, &[])?;
    Ok((context, stream, module))
}

fn numbers(n: u32) -> Vec<u32> {
    (0..n).map(|i| i.wrapping_mul(2654435761)).collect()
}

fn scaled(data: &[u32], b: u32) -> Vec<u32> {
    data.iter().map(|v| v.wrapping_mul(3).wrapping_add(b)).collect()
}

fn device() -> Outcome {
    cust::init(cust::CudaFlags::empty())?;
    let count = Device::num_devices()?;
    holds("there is a device", count >= 1)?;
    equal("as many to iterate over", Device::devices()?.count(), count as usize)?;
    let device = Device::get_device(0)?;
    holds("it has a name", !device.name()?.is_empty())?;
    equal("warp", device.get_attribute(DeviceAttribute::WarpSize)?, 32)?;
    holds("driver of at least 13", CudaApiVersion::get()?.major() >= 13)?;
    equal(
        "a device that is not there",
        Device::get_device(1000).err(),
        Some(CudaError::InvalidDevice),
    )?;
    let context = Context::new(device)?;
    equal(
        "the current device",
        CurrentContext::get_device()?.as_raw(),
        device.as_raw(),
    )?;
    let range = CurrentContext::get_stream_priority_range()?;
    holds("greater priorities are lower numbers", range.greatest <= range.least)?;
    CurrentContext::set_resource_limit(ResourceLimit::StackSize, 4096)?;
    holds(
        "a stack as asked",
        CurrentContext::get_resource_limit(ResourceLimit::StackSize)? >= 4096,
    )?;
    let (free, total) = cust::memory::mem_get_info()?;
    holds(
        "some memory is free",
        free > 0 && free <= total && total == device.total_memory()?,
    )?;
    CurrentContext::synchronize()?;
    Context::drop(context).map_err(|(error, _)| error.into())
}

fn launches() -> Outcome {
    let (_context, stream, module) = start()?;
    let data = numbers(10007);
    let a = DeviceBuffer::from_slice(&data)?;
    let out = DeviceBuffer::<u32>::zeroed(data.len())?;
    let n = data.len() as u32;
    unsafe {
        launch!(module.scale_add<<<n.div_ceil(128), 128, 0, stream>>>(out.as_device_ptr(), a.as_device_ptr(), 5u32, n))
    }?;
    stream.synchronize()?;
    same("scale_add", &out.as_host_vec()?, &scaled(&data, 5))?;

    let out = DeviceBuffer::<u32>::zeroed(48 * 10)?;
    let look_up = module.get_function("look_up")?;
    unsafe { launch!(look_up<<<(3, 5), (16, 2), 0, stream>>>(out.as_device_ptr(), 48u32)) }?;
    stream.synchronize()?;
    let table = [1, 10, 100, 1000];
    let want: Vec<u32> = (0..480).map(|i| table[(i % 48 + i / 48) % 4] + i as u32 / 48).collect();
    same("look_up", &out.as_host_vec()?, &want)?;

    let total = DeviceBox::new(&0u32)?;
    unsafe { launch!(module.block_sum<<<39, 256, 1024, stream>>>(total.as_device_ptr(), a.as_device_ptr())) }?;
    stream.synchronize()?;
    let want = data[..39 * 256].iter().fold(0u32, |sum, v| sum.wrapping_add(*v));
    equal("block_sum", total.as_host_value()?, want)
}

#[repr(C)]
#[derive(Clone, Copy, DeviceCopy)]
struct Given {
    a: u32,
    b: u32,
    c: u64,
}

fn structures() -> Outcome {
    let (_context, stream, module) = start()?;
    let out = DeviceBox::new(&0u64)?;
    let given = Given {
        a: 4_000_000_000,
        b: 3_000_000_000,
        c: 1 << 40,
    };
    unsafe { launch!(module.of_structure<<<1, 1, 0, stream>>>(out.as_device_ptr(), given)) }?;
    stream.synchronize()?;
    equal("of_structure", out.as_host_value()?, 10_000_000_000 + (3 << 40))
}

fn globals() -> Outcome {
    let (_context, stream, module) = start()?;
    let mut factor = module.get_global::<u32>(&CString::new("factor")?)?;
    let mut value = 0;
    factor.copy_to(&mut value)?;
    equal("factor", value, 3)?;
    factor.copy_from(&11)?;
    let a = DeviceBuffer::from_slice(&numbers(64))?;
    let out = DeviceBuffer::<u32>::zeroed(64)?;
    unsafe { launch!(module.scale_add<<<1, 64, 0, stream>>>(out.as_device_ptr(), a.as_device_ptr(), 1u32, 64u32)) }?;
    stream.synchronize()?;
    let want: Vec<u32> = numbers(64).iter().map(|v| v.wrapping_mul(11).wrapping_add(1)).collect();
    same("by another factor", &out.as_host_vec()?, &want)?;
    let missing = module.get_global::<u32>(&CString::new("none_such")?).err();
    equal("a global that is not there", missing, Some(CudaError::NotFound))
}

fn memories() -> Outcome {
    let (_context, stream, module) = start()?;
    let n = 3000;
    let data = numbers(n);
    // Page-locked, copied in a stream to and fro.
    let mut locked = LockedBuffer::from_slice(&data)?;
    let mut a = unsafe { DeviceBuffer::<u32>::uninitialized(n as usize) }?;
    unsafe {
        a.async_copy_from(&locked, &stream)?;
        launch!(module.scale_add<<<n.div_ceil(64), 64, 0, stream>>>(a.as_device_ptr(), a.as_device_ptr(), 4u32, n))?;
        a.async_copy_to(&mut locked, &stream)?;
    }
    stream.synchronize()?;
    same("locked", locked.as_slice(), &scaled(&data, 4))?;

    // Managed, read and written on both sides.
    let mut unified = UnifiedBuffer::from_slice(&data)?;
    let pointer = unified.as_unified_ptr();
    unsafe { launch!(module.scale_add<<<n.div_ceil(64), 64, 0, stream>>>(pointer, pointer, 1u32, n)) }?;
    stream.synchronize()?;
    same("unified", unified.as_slice(), &scaled(&data, 1))?;
    unified[5] = 77;
    let mut single = UnifiedBox::new(1.5f64)?;
    *single += 1.0;
    holds("unified box", *single == 2.5 && unified[5] == 77)?;

    // Parts, and values to fill with.
    let buffer = DeviceBuffer::from_slice(&data)?;
    buffer.index(10..20).set_zero()?;
    buffer.index(20..30).set_32(0xDEADBEEF)?;
    buffer.index(30..40).set_16(0x1234)?;
    unsafe { buffer.index(40..50).set_8_async(0x5A, &stream) }?;
    stream.synchronize()?;
    let mut want = data.clone();
    want[10..20].fill(0);
    want[20..30].fill(0xDEADBEEF);
    want[30..40].fill(0x1234_1234);
    want[40..50].fill(0x5A5A_5A5A);
    same("filled", &buffer.as_host_vec()?, &want)?;
    same("a part", &buffer.index(25..45).as_host_vec()?, &want[25..45])?;
    let mut other = DeviceBuffer::<u32>::zeroed(n as usize)?;
    other.copy_from(&buffer)?;
    same("a copy", &other.as_host_vec()?, &want)?;
    let bytes: DeviceBuffer<u8> = buffer.cast();
    equal("as bytes", bytes.len(), 4 * n as usize)?;

    // In the order of a stream.
    let made = unsafe { DeviceBuffer::from_slice_async(&data, &stream) }?;
    let mut back = vec![0; n as usize];
    unsafe { made.async_copy_to(&mut back, &stream) }?;
    made.drop_async(&stream)?;
    stream.synchronize()?;
    same("of the stream's pool", &back, &data)?;

    let mut variable = DeviceVariable::new(4u32)?;
    *variable = 9;
    variable.copy_htod()?;
    unsafe {
        launch!(module.scale_add<<<1, 1, 0, stream>>>(variable.as_device_ptr(), variable.as_device_ptr(), 2u32, 1u32))
    }?;
    stream.synchronize()?;
    variable.copy_dtoh()?;
    equal("variable", *variable, 29)?;
    let too_much = unsafe { DeviceBuffer::<u8>::uninitialized(1 << 50) };
    equal("too much", too_much.err(), Some(CudaError::OutOfMemory))
}

fn array(dims: [usize; 3]) -> Outcome {
    let _context = quick_init()?;
    let mut array = ArrayObject::new(dims, ArrayFormat::I32, 2)?;
    let size = dims.iter().filter(|d| **d > 0).product::<usize>() * 2;
    let data: Vec<i32> = (0..size as i32).map(|i| i * 31 - 700).collect();
    array.copy_from(&data)?;
    let mut back = vec![0i32; size];
    array.copy_to(&mut back)?;
    same("array", &back, &data)?;
    equal("channels", array.descriptor()?.num_channels(), 2)
}

fn array_of_one_row() -> Outcome {
    array([40, 0, 0])
}

fn array_of_rows() -> Outcome {
    array([17, 9, 0])
}

fn streams() -> Outcome {
    let (_context, first, module) = start()?;
    let second = Stream::new(StreamFlags::DEFAULT, None)?;
    let data = numbers(30000);
    let n = data.len() as u32;
    let a = DeviceBuffer::from_slice(&data)?;
    let b = DeviceBuffer::<u32>::zeroed(data.len())?;
    let mut want = data;
    let said = Arc::new(Mutex::new(vec![]));
    for round in 0..10u32 {
        unsafe {
            launch!(module.scale_add<<<n.div_ceil(256), 256, 0, first>>>(b.as_device_ptr(), a.as_device_ptr(), round, n))
        }?;
        let there = Event::new(EventFlags::DISABLE_TIMING)?;
        there.record(&first)?;
        second.wait_event(there, StreamWaitEventFlags::DEFAULT)?;
        unsafe {
            launch!(module.scale_add<<<n.div_ceil(256), 256, 0, second>>>(a.as_device_ptr(), b.as_device_ptr(), 1u32, n))
        }?;
        let list = said.clone();
        second.add_callback(Box::new(move || list.lock().unwrap().push(round)))?;
        let back = Event::new(EventFlags::DISABLE_TIMING)?;
        back.record(&second)?;
        first.wait_event(back, StreamWaitEventFlags::DEFAULT)?;
        want = scaled(&scaled(&want, round), 1);
    }
    let end = Event::new(EventFlags::DEFAULT)?;
    end.record(&first)?;
    end.synchronize()?;
    equal("the event", end.query()?, EventStatus::Ready)?;
    second.synchronize()?;
    same("to and fro", &a.as_host_vec()?, &want)?;
    same(
        "callbacks in their order",
        &said.lock().unwrap(),
        &(0..10).collect::<Vec<u32>>(),
    )?;
    let start = Event::new(EventFlags::DEFAULT)?;
    start.record(&first)?;
    let stop = Event::new(EventFlags::DEFAULT)?;
    stop.record(&first)?;
    stop.synchronize()?;
    holds("time goes forward", stop.elapsed_time_f32(&start)? >= 0.0)?;
    Stream::drop(second).map_err(|(error, _)| error.into())
}

fn linker() -> Outcome {
    let (_context, stream, _) = start()?;
    let mut linker = Linker::new()?;
    linker.add_ptx(include_str!("../../caller.ptx"))?;
    linker.add_ptx(include_str!("../../callee.ptx"))?;
    let module = Module::from_cubin(linker.complete()?, &[])?;
    let out = DeviceBuffer::<u32>::zeroed(32)?;
    unsafe { launch!(module.call<<<1, 32, 0, stream>>>(out.as_device_ptr())) }?;
    stream.synchronize()?;
    same(
        "call",
        &out.as_host_vec()?,
        &(0..32).map(|i| 2 * i + 7).collect::<Vec<u32>>(),
    )
}

fn functions() -> Outcome {
    let (_context, _stream, module) = start()?;
    let f = module.get_function("block_sum")?;
    equal("threads", f.get_attribute(FunctionAttribute::MaxThreadsPerBlock)?, 1024)?;
    equal("PTX version", f.get_attribute(FunctionAttribute::PtxVersion)?, 70)?;
    let (blocks, threads) = f.suggested_launch_configuration(0, 0.into())?;
    holds("a suggestion", blocks >= 1 && threads % 32 == 0 && threads >= 32)?;
    holds(
        "blocks fit",
        f.max_active_blocks_per_multiprocessor(256.into(), 0)? >= 1,
    )
}

fn contexts() -> Outcome {
    use cust::context::legacy::{Context, ContextFlags, ContextStack, CurrentContext};
    cust::init(cust::CudaFlags::empty())?;
    let device = Device::get_device(0)?;
    let first = Context::create_and_push(ContextFlags::SCHED_AUTO, device)?;
    let a = DeviceBox::new(&1u32)?;
    let second = Context::create_and_push(ContextFlags::MAP_HOST, device)?;
    let b = DeviceBox::new(&2u32)?;
    holds(
        "the newest is current",
        CurrentContext::get_flags()?.contains(ContextFlags::MAP_HOST),
    )?;
    ContextStack::pop()?;
    equal("of the first", a.as_host_value()?, 1)?;
    CurrentContext::set_current(&second)?;
    equal("of the second", b.as_host_value()?, 2)?;
    drop(b);
    CurrentContext::set_current(&first)?;
    drop(a);
    Context::drop(second).map_err(|(error, _)| error)?;
    Context::drop(first).map_err(|(error, _)| error)?;
    Ok(())
}

fn errors() -> Outcome {
    let (_context, stream, module) = start()?;
    equal(
        "a function that is not there",
        module.get_function("none_such").err(),
        Some(CudaError::NotFound),
    )?;
    let wrong = Module::from_ptx(".version 7.0\n.target sm_70\n.visible .entry f() { nonsense; }\n", &[]);
    equal("wrong PTX", wrong.err(), Some(CudaError::InvalidPtx))?;
    equal(
        "a file that is not there",
        Module::from_file("/nowhere/at/all.ptx").err(),
        Some(CudaError::FileNotFound),
    )?;
    let large = unsafe { launch!(module.stray<<<1, 2048, 0, stream>>>()) };
    equal("too large a block", large.err(), Some(CudaError::InvalidValue))?;
    stream.synchronize()?;
    holds("the error has a text", !CudaError::InvalidPtx.to_string().is_empty())
}

fn error_stray() -> Outcome {
    let (_context, stream, module) = start()?;
    unsafe { launch!(module.stray<<<1, 1, 0, stream>>>()) }?;
    equal(
        "after the kernel",
        stream.synchronize().err(),
        Some(CudaError::IllegalAddress),
    )?;
    equal(
        "ever after",
        DeviceBox::new(&1u32).err(),
        Some(CudaError::IllegalAddress),
    )?;
    // What would be cleaned up could only fail.
    std::mem::forget((_context, stream, module));
    Ok(())
}

fn main() {
    check::main(&[
        ("device", device),
        ("launches", launches),
        ("structures", structures),
        ("globals", globals),
        ("memories", memories),
        ("array_of_one_row", array_of_one_row),
        ("array_of_rows", array_of_rows),
        ("streams", streams),
        ("linker", linker),
        ("functions", functions),
        ("contexts", contexts),
        ("errors", errors),
        ("error_stray", error_stray),
    ]);
}
