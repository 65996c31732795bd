//! Collatz sequences on the GPU.

use cudarc::driver::{CudaContext, DriverError, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;

/// The kernel, as nvcc compiled it.
pub const KERNEL: &str = include_str!(concat!(env!("OUT_DIR"), "/collatz.ptx"));
/// The same with a mistake in it, to test the tests.
pub const WRONG_KERNEL: &str = include_str!(concat!(env!("OUT_DIR"), "/wrong.ptx"));

/// How many steps each number takes to 1, at most 1000.
pub fn steps(ptx: &str, numbers: &[u32]) -> Result<Vec<u32>, DriverError> {
    let context = CudaContext::new(0)?;
    let stream = context.default_stream();
    let kernel = context.load_module(Ptx::from_src(ptx))?.load_function("collatz")?;
    let numbers = stream.clone_htod(numbers)?;
    let mut steps = stream.alloc_zeros::<u32>(numbers.len())?;
    let n = numbers.len() as i32;
    let mut launch = stream.launch_builder(&kernel);
    launch.arg(&mut steps).arg(&numbers).arg(&n);
    // SAFETY: the arguments are those of the kernel in collatz.cu, which stays within n elements.
    unsafe { launch.launch(LaunchConfig::for_num_elems(n as u32)) }?;
    stream.clone_dtoh(&steps)
}
