//! cudarc's safe interface: PTX by hand and of NVRTC, streams, events, graphs, kinds of memory, errors, threads, cuBLAS and cuRAND.

#[path = "../../check.rs"]
mod check;

use std::sync::Arc;

use check::{Outcome, equal, holds, same};
use cudarc::cublas::{CudaBlas, Gemm, GemmConfig, sys::cublasOperation_t};
use cudarc::curand::CudaRng;
use cudarc::driver::sys::{CUdevice_attribute, CUevent_flags, CUfunction_attribute, CUgraphInstantiate_flags};
use cudarc::driver::sys::{CUmemAttach_flags, CUresult, CUstreamCaptureMode, CUstreamCaptureStatus};
use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, DeviceRepr, DriverError, LaunchConfig, PushKernelArg,
};
use cudarc::nvrtc::{CompileError, CompileOptions, Ptx, compile_ptx, compile_ptx_with_opts};

const KERNELS: &str = include_str!("../../kernels.ptx");

fn start() -> Result<(Arc<CudaContext>, Arc<CudaStream>), DriverError> {
    let context = CudaContext::new(0)?;
    let stream = context.new_stream()?;
    Ok((context, stream))
}

fn kernel(context: &Arc<CudaContext>, name: &str) -> Result<CudaFunction, DriverError> {
    context.load_module(Ptx::from_src(KERNELS))?.load_function(name)
}

fn scale_add(
    stream: &CudaStream,
    f: &CudaFunction,
    out: &mut CudaSlice<u32>,
    a: &CudaSlice<u32>,
    b: u32,
) -> Result<(), DriverError> {
    let n = a.len() as u32;
    let mut launch = stream.launch_builder(f);
    launch.arg(out).arg(a).arg(&b).arg(&n);
    unsafe { launch.launch(LaunchConfig::for_num_elems(n)) }?;
    Ok(())
}

fn numbers(n: u32) -> Vec<u32> {
    (0..n).map(|i| i.wrapping_mul(2654435761)).collect()
}

fn device() -> Outcome {
    let (context, _) = start()?;
    holds("there is a device", CudaContext::device_count()? >= 1)?;
    holds("it has a name", !context.name()?.is_empty())?;
    let (major, minor) = context.compute_capability()?;
    equal(
        "major",
        context.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
        major,
    )?;
    equal(
        "minor",
        context.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        minor,
    )?;
    let (free, total) = context.mem_get_info()?;
    holds("some memory is free", free > 0 && free <= total)?;
    equal("memory", context.total_mem()?, total)?;
    equal(
        "a device that is not there",
        CudaContext::new(1000).err().map(|e| e.0),
        Some(CUresult::CUDA_ERROR_INVALID_DEVICE),
    )
}

fn copies() -> Outcome {
    let (_, stream) = start()?;
    let data = numbers(1000);
    let mut a = stream.clone_htod(&data)?;
    same("there and back", &stream.clone_dtoh(&a)?, &data)?;
    let b = stream.clone_dtod(&a)?;
    same("a copy", &stream.clone_dtoh(&b)?, &data)?;
    same("a part", &stream.clone_dtoh(&b.slice(100..300))?, &data[100..300])?;
    stream.memcpy_dtod(&b.slice(0..50), &mut a.slice_mut(900..950))?;
    stream.memset_zeros(&mut a.slice_mut(10..20))?;
    let mut want = data.clone();
    want[10..20].fill(0);
    want[900..950].copy_from_slice(&data[..50]);
    same("parts that are written", &stream.clone_dtoh(&a)?, &want)?;
    let bytes = unsafe { a.transmute::<u8>(4000) }.expect("as many bytes");
    let want: Vec<u8> = want.iter().flat_map(|v| v.to_ne_bytes()).collect();
    same("as bytes", &stream.clone_dtoh(&bytes)?, &want)?;
    let zeros: CudaSlice<f64> = stream.alloc_zeros(77)?;
    same("zeros", &stream.clone_dtoh(&zeros)?, &[0.0; 77])
}

fn launches() -> Outcome {
    let (context, stream) = start()?;
    let module = context.load_module(Ptx::from_src(KERNELS))?;
    let data = numbers(10007);
    let a = stream.clone_htod(&data)?;
    let mut out = stream.alloc_zeros::<u32>(data.len())?;
    scale_add(&stream, &module.load_function("scale_add")?, &mut out, &a, 5)?;
    let want: Vec<u32> = data.iter().map(|v| v.wrapping_mul(3).wrapping_add(5)).collect();
    same("scale_add", &stream.clone_dtoh(&out)?, &want)?;

    let look_up = module.load_function("look_up")?;
    let mut out = stream.alloc_zeros::<u32>(48 * 10)?;
    let mut launch = stream.launch_builder(&look_up);
    launch.arg(&mut out).arg(&48u32);
    unsafe {
        launch.launch(LaunchConfig {
            grid_dim: (3, 5, 1),
            block_dim: (16, 2, 1),
            shared_mem_bytes: 0,
        })
    }?;
    let table = [1, 10, 100, 1000];
    let want: Vec<u32> = (0..480).map(|i| table[(i % 48 + i / 48) % 4] + i as u32 / 48).collect();
    same("look_up", &stream.clone_dtoh(&out)?, &want)?;

    let mut total = stream.alloc_zeros::<u32>(1)?;
    let block_sum = module.load_function("block_sum")?;
    let mut launch = stream.launch_builder(&block_sum);
    launch.arg(&mut total).arg(&a);
    unsafe {
        launch.launch(LaunchConfig {
            grid_dim: (39, 1, 1),
            block_dim: (256, 1, 1),
            shared_mem_bytes: 1024,
        })
    }?;
    let want = data[..39 * 256].iter().fold(0u32, |sum, v| sum.wrapping_add(*v));
    same("block_sum", &stream.clone_dtoh(&total)?, &[want])
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Given {
    a: u32,
    b: u32,
    c: u64,
}
unsafe impl DeviceRepr for Given {}

fn structures() -> Outcome {
    let (context, stream) = start()?;
    let f = kernel(&context, "of_structure")?;
    let mut out = stream.alloc_zeros::<u64>(1)?;
    let given = Given {
        a: 4_000_000_000,
        b: 3_000_000_000,
        c: 1 << 40,
    };
    let mut launch = stream.launch_builder(&f);
    launch.arg(&mut out).arg(&given);
    unsafe {
        launch.launch(LaunchConfig {
            grid_dim: (1, 1, 1),
            block_dim: (1, 1, 1),
            shared_mem_bytes: 0,
        })
    }?;
    same("of_structure", &stream.clone_dtoh(&out)?, &[10_000_000_000 + (3 << 40)])
}

fn globals() -> Outcome {
    let (context, stream) = start()?;
    let module = context.load_module(Ptx::from_src(KERNELS))?;
    let mut factor = module.get_global("factor", &stream)?;
    equal("size", factor.len(), 4)?;
    same("factor", &stream.clone_dtoh(&factor)?, &3u32.to_ne_bytes())?;
    stream.memcpy_htod(&11u32.to_ne_bytes(), &mut factor)?;
    let a = stream.clone_htod(&numbers(64))?;
    let mut out = stream.alloc_zeros::<u32>(64)?;
    scale_add(&stream, &module.load_function("scale_add")?, &mut out, &a, 1)?;
    let want: Vec<u32> = numbers(64).iter().map(|v| v.wrapping_mul(11).wrapping_add(1)).collect();
    same("by another factor", &stream.clone_dtoh(&out)?, &want)?;
    let other = context.load_module(Ptx::from_src(KERNELS))?;
    same(
        "the factor of another module",
        &stream.clone_dtoh(&other.get_global("factor", &stream)?)?,
        &3u32.to_ne_bytes(),
    )
}

fn two_streams() -> Outcome {
    let (context, first) = start()?;
    let second = first.fork()?;
    let f = kernel(&context, "scale_add")?;
    let data = numbers(50000);
    let mut a = first.clone_htod(&data)?;
    let mut b = first.alloc_zeros::<u32>(data.len())?;
    // To and fro between the streams; cudarc puts events between them.
    for round in 0..10 {
        scale_add(&first, &f, &mut b, &a, round)?;
        scale_add(&second, &f, &mut a, &b, 1)?;
    }
    first.join(&second)?;
    let mut want = data;
    for round in 0..10u32 {
        want.iter_mut()
            .for_each(|v| *v = v.wrapping_mul(9).wrapping_add(round.wrapping_mul(3)).wrapping_add(1));
    }
    same("to and fro", &first.clone_dtoh(&a)?, &want)?;
    second.synchronize()?;
    Ok(())
}

fn events() -> Outcome {
    let (context, stream) = start()?;
    let other = context.new_stream_with_priority(0)?;
    let f = kernel(&context, "scale_add")?;
    let a = stream.clone_htod(&numbers(20000))?;
    let mut out = stream.alloc_zeros::<u32>(20000)?;
    let before = stream.record_event(Some(CUevent_flags::CU_EVENT_DEFAULT))?;
    for _ in 0..20 {
        scale_add(&stream, &f, &mut out, &a, 2)?;
    }
    let after = stream.record_event(Some(CUevent_flags::CU_EVENT_DEFAULT))?;
    other.wait(&after)?;
    let last = other.record_event(None)?;
    last.synchronize()?;
    holds(
        "what was waited for is complete",
        before.is_complete() && after.is_complete() && last.is_complete(),
    )?;
    let elapsed = before.elapsed_ms(&after)?;
    holds("time goes forward", (0.0..60_000.0).contains(&elapsed))?;
    // By default cudarc's events keep no time.
    equal(
        "time without times",
        after.elapsed_ms(&last).err().map(|e| e.0),
        Some(CUresult::CUDA_ERROR_INVALID_HANDLE),
    )
}

fn graphs() -> Outcome {
    let (context, stream) = start()?;
    // All is in one stream, and a wait for an event from before would not belong in a capture.
    unsafe { context.disable_event_tracking() };
    let f = kernel(&context, "scale_add")?;
    let data = numbers(3000);
    let mut a = stream.clone_htod(&data)?;
    let mut b = stream.alloc_zeros::<u32>(data.len())?;
    stream.synchronize()?;
    stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)?;
    equal(
        "status",
        stream.capture_status()?,
        CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE,
    )?;
    scale_add(&stream, &f, &mut b, &a, 1)?;
    scale_add(&stream, &f, &mut a, &b, 2)?;
    stream.memset_zeros(&mut b.slice_mut(0..10))?;
    let graph = stream.end_capture(CUgraphInstantiate_flags(0))?.ok_or("no graph")?;
    same("nothing has run", &stream.clone_dtoh(&a)?, &data)?;
    graph.upload()?;
    let mut want = data;
    let mut middle = vec![];
    for _ in 0..5 {
        graph.launch()?;
        middle = want
            .iter()
            .map(|v| v.wrapping_mul(3).wrapping_add(1))
            .collect::<Vec<u32>>();
        want = middle.iter().map(|v| v.wrapping_mul(3).wrapping_add(2)).collect();
    }
    middle[..10].fill(0);
    same("five times", &stream.clone_dtoh(&a)?, &want)?;
    same("five times, and cleared", &stream.clone_dtoh(&b)?, &middle)
}

fn memories() -> Outcome {
    let (context, stream) = start()?;
    let f = kernel(&context, "scale_add")?;
    let n = 5000;
    let mut pinned = unsafe { context.alloc_pinned::<u32>(n) }?;
    pinned.as_mut_slice()?.copy_from_slice(&numbers(n as u32));
    let a = stream.clone_htod(&pinned)?;
    let mut out = stream.alloc_zeros::<u32>(n)?;
    scale_add(&stream, &f, &mut out, &a, 9)?;
    stream.memcpy_dtoh(&out, &mut pinned)?;
    let want: Vec<u32> = numbers(n as u32)
        .iter()
        .map(|v| v.wrapping_mul(3).wrapping_add(9))
        .collect();
    same("pinned", pinned.as_slice()?, &want)?;

    let mut unified = unsafe { context.alloc_unified::<u32>(n, true) }?;
    equal(
        "attached",
        unified.attach_mode(),
        CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL,
    )?;
    unified.as_mut_slice()?.copy_from_slice(&want);
    let mut launch = stream.launch_builder(&f);
    let count = n as u32;
    launch.arg(&mut out).arg(&unified).arg(&0u32).arg(&count);
    unsafe { launch.launch(LaunchConfig::for_num_elems(count)) }?;
    let want: Vec<u32> = want.iter().map(|v| v.wrapping_mul(3)).collect();
    same("unified", &stream.clone_dtoh(&out)?, &want)?;
    unified.prefetch()?;

    // Memory that was given back can be had again.
    let (_, total) = context.mem_get_info()?;
    for _ in 0..20 {
        drop(unsafe { stream.alloc::<u8>(total / 64) }?);
    }
    stream.synchronize()?;
    let too_much = unsafe { stream.alloc::<u8>(1 << 50) };
    equal(
        "too much",
        too_much.err().map(|e| e.0),
        Some(CUresult::CUDA_ERROR_OUT_OF_MEMORY),
    )
}

fn functions() -> Outcome {
    let (context, _) = start()?;
    let f = kernel(&context, "block_sum")?;
    equal("PTX version", f.ptx_version()?, 70)?;
    equal("static shared memory", f.shared_size_bytes()?, 0)?;
    let most = f.max_threads_per_block()?;
    holds("1024 threads", most == 1024)?;
    equal(
        "as an attribute",
        f.get_attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        most,
    )?;
    f.set_attribute(
        CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
        60000,
    )?;
    equal(
        "set",
        f.get_attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)?,
        60000,
    )?;
    let threads = context.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)? as u32;
    let blocks = f.occupancy_max_active_blocks_per_multiprocessor(1024, 0, None)?;
    holds("blocks fit", blocks >= 1 && blocks * 1024 <= threads)
}

fn errors() -> Outcome {
    let (context, stream) = start()?;
    let module = context.load_module(Ptx::from_src(KERNELS))?;
    let missing = module.load_function("none_such").err().map(|e| e.0);
    equal(
        "a function that is not there",
        missing,
        Some(CUresult::CUDA_ERROR_NOT_FOUND),
    )?;
    let wrong = context.load_module(Ptx::from_src(
        ".version 7.0\n.target sm_70\n.visible .entry f() { nonsense; }\n",
    ));
    equal(
        "wrong PTX",
        wrong.err().map(|e| e.0),
        Some(CUresult::CUDA_ERROR_INVALID_PTX),
    )?;
    let file = context.load_module(Ptx::from_file("/nowhere/at/all.ptx"));
    equal(
        "a file that is not there",
        file.err().map(|e| e.0),
        Some(CUresult::CUDA_ERROR_FILE_NOT_FOUND),
    )?;
    let f = module.load_function("scale_add")?;
    let mut launch = stream.launch_builder(&f);
    launch.arg(&0u64).arg(&0u64).arg(&0u32).arg(&0u32);
    let large = unsafe {
        launch.launch(LaunchConfig {
            grid_dim: (1, 1, 1),
            block_dim: (2048, 1, 1),
            shared_mem_bytes: 0,
        })
    };
    equal(
        "too large a block",
        large.err().map(|e| e.0),
        Some(CUresult::CUDA_ERROR_INVALID_VALUE),
    )?;
    // None of these stays.
    stream.synchronize()?;
    let text = DriverError(CUresult::CUDA_ERROR_INVALID_PTX).to_string();
    holds(
        &format!("the error has a text: {text}"),
        text.contains("CUDA_ERROR_INVALID_PTX"),
    )
}

fn sticky(name: &str, wanted: &[CUresult]) -> Outcome {
    let (context, stream) = start()?;
    let f = kernel(&context, name)?;
    unsafe { stream.launch_builder(&f).launch(LaunchConfig::for_num_elems(1)) }?;
    let error = stream.synchronize().err().map(|e| e.0);
    holds(
        &format!("{error:?} is of {wanted:?}"),
        wanted.iter().any(|w| Some(*w) == error),
    )?;
    equal("ever after", context.synchronize().err().map(|e| e.0), error)
}

fn error_stray() -> Outcome {
    sticky("stray", &[CUresult::CUDA_ERROR_ILLEGAL_ADDRESS])
}

fn error_trap() -> Outcome {
    sticky(
        "trapped",
        &[
            CUresult::CUDA_ERROR_LAUNCH_FAILED,
            CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION,
        ],
    )
}

fn threads() -> Outcome {
    let context = CudaContext::new(0)?;
    let module = context.load_module(Ptx::from_src(KERNELS))?;
    let work = |number: u32| -> Result<bool, DriverError> {
        let stream = context.new_stream()?;
        let f = module.load_function("scale_add")?;
        let data = numbers(2000 + number);
        let mut a = stream.clone_htod(&data)?;
        let mut b = stream.alloc_zeros::<u32>(data.len())?;
        for _ in 0..25 {
            scale_add(&stream, &f, &mut b, &a, number)?;
            scale_add(&stream, &f, &mut a, &b, 0)?;
        }
        let mut want = data;
        for _ in 0..25 {
            want.iter_mut()
                .for_each(|v| *v = v.wrapping_mul(3).wrapping_add(number).wrapping_mul(3));
        }
        Ok(stream.clone_dtoh(&a)? == want)
    };
    let work = &work;
    std::thread::scope(|scope| {
        let started: Vec<_> = (0..8).map(|number| scope.spawn(move || work(number))).collect();
        for (number, thread) in started.into_iter().enumerate() {
            let right = thread.join().map_err(|_| format!("thread {number} panicked"))??;
            holds(&format!("thread {number} has the right numbers"), right)?;
        }
        Ok(())
    })
}

const SOURCE: &str = r#"
template <typename T> __device__ T square(T v) { return v * v; }

extern "C" __global__ void squares(double *out, const int *in, size_t n)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) out[i] = square((double)in[i]) + OFFSET;
}

extern "C" __global__ void histogram(unsigned *bins, const int *in, size_t n)
{
    __shared__ unsigned local[16];
    if (threadIdx.x < 16) local[threadIdx.x] = 0;
    __syncthreads();
    for (size_t i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(&local[in[i] & 15], 1u);
    __syncthreads();
    if (threadIdx.x < 16) bins[threadIdx.x] = local[threadIdx.x];
}
"#;

fn nvrtc() -> Outcome {
    let (context, stream) = start()?;
    let options = CompileOptions {
        options: vec!["-DOFFSET=0.5".into()],
        ..Default::default()
    };
    let module = context.load_module(compile_ptx_with_opts(SOURCE, options)?)?;
    let data: Vec<i32> = (0..4099).map(|i| i * 7 % 1001 - 500).collect();
    let a = stream.clone_htod(&data)?;
    let n = data.len();
    let mut out = stream.alloc_zeros::<f64>(n)?;
    let squares = module.load_function("squares")?;
    let mut launch = stream.launch_builder(&squares);
    launch.arg(&mut out).arg(&a).arg(&n);
    unsafe { launch.launch(LaunchConfig::for_num_elems(n as u32)) }?;
    let want: Vec<f64> = data.iter().map(|v| f64::from(v * v) + 0.5).collect();
    same("squares", &stream.clone_dtoh(&out)?, &want)?;
    let mut bins = stream.alloc_zeros::<u32>(16)?;
    let histogram = module.load_function("histogram")?;
    let mut launch = stream.launch_builder(&histogram);
    launch.arg(&mut bins).arg(&a).arg(&n);
    unsafe {
        launch.launch(LaunchConfig {
            grid_dim: (1, 1, 1),
            block_dim: (128, 1, 1),
            shared_mem_bytes: 0,
        })
    }?;
    let mut want = [0; 16];
    data.iter().for_each(|v| want[(v & 15) as usize] += 1);
    same("histogram", &stream.clone_dtoh(&bins)?, &want)?;
    match compile_ptx("__global__ void f() { none_such(); }") {
        Err(CompileError::CompileError { log, .. }) => {
            holds("the log says what", log.to_string_lossy().contains("none_such"))
        }
        other => Err(format!("wrong source: {other:?}").into()),
    }
}

fn cublas() -> Outcome {
    let (_, stream) = start()?;
    let blas = CudaBlas::new(stream.clone())?;
    // Whole numbers, so that the sums are exact in any order. By columns, as BLAS has it.
    let (m, n, k) = (37, 29, 53);
    let a: Vec<f32> = (0..m * k).map(|i| (i * 7 % 13) as f32 - 6.0).collect();
    let b: Vec<f32> = (0..k * n).map(|i| (i * 5 % 11) as f32 - 5.0).collect();
    let da = stream.clone_htod(&a)?;
    let db = stream.clone_htod(&b)?;
    let mut dc = stream.alloc_zeros::<f32>(m * n)?;
    let config = GemmConfig {
        transa: cublasOperation_t::CUBLAS_OP_N,
        transb: cublasOperation_t::CUBLAS_OP_N,
        m: m as i32,
        n: n as i32,
        k: k as i32,
        alpha: 2.0,
        lda: m as i32,
        ldb: k as i32,
        beta: 0.0,
        ldc: m as i32,
    };
    unsafe { blas.gemm(config, &da, &db, &mut dc) }?;
    let mut want = vec![0.0; m * n];
    for j in 0..n {
        for i in 0..m {
            want[j * m + i] = 2.0 * (0..k).map(|l| a[l * m + i] * b[j * k + l]).sum::<f32>();
        }
    }
    same("a product", &stream.clone_dtoh(&dc)?, &want)
}

fn curand() -> Outcome {
    let (_, stream) = start()?;
    let n = 20000;
    let draw = |seed| -> Result<Vec<f32>, Box<dyn std::error::Error>> {
        let mut numbers = stream.alloc_zeros::<f32>(n)?;
        CudaRng::new(seed, stream.clone())?.fill_with_uniform(&mut numbers)?;
        Ok(stream.clone_dtoh(&numbers)?)
    };
    let drawn = draw(7)?;
    holds("all are in (0, 1]", drawn.iter().all(|v| *v > 0.0 && *v <= 1.0))?;
    // The mean of n has a deviation of 0.29 / sqrt(n) = 0.002.
    let mean = drawn.iter().map(|v| f64::from(*v)).sum::<f64>() / n as f64;
    holds(&format!("the mean {mean} is near a half"), (mean - 0.5).abs() < 0.012)?;
    same("the same seed again", &draw(7)?, &drawn)?;
    holds("another seed has others", draw(8)? != drawn)
}

fn main() {
    check::main(&[
        ("device", device),
        ("copies", copies),
        ("launches", launches),
        ("structures", structures),
        ("globals", globals),
        ("two_streams", two_streams),
        ("events", events),
        ("graphs", graphs),
        ("memories", memories),
        ("functions", functions),
        ("errors", errors),
        ("error_stray", error_stray),
        ("error_trap", error_trap),
        ("threads", threads),
        ("nvrtc", nvrtc),
        ("cublas", cublas),
        ("curand", curand),
    ]);
}
