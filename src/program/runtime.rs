//! The device runtime by name: functions that kernels declare and libcudadevrt would define.
//!
//! Most are system calls, which stand here by name and generation; barriers over a grid, which a call of the host
//! cannot wait for, are functions in PTX of our own (`grid_sync.ptx`), a unit of every link that declares one.
//!
//! Two generations share most names (CUDA programming guide, "CUDA Dynamic Parallelism"): the first is what PTX of toolkits
//! before 12 calls, or of later ones with `CUDA_FORCE_CDP1_IF_SUPPORTED` (`cudaLaunchDeviceV2`), the second what all else
//! calls (`__cudaCDP2LaunchDeviceV2`). Functions for graphs are of no generation and have the plain names.

use std::sync::{Arc, LazyLock};

use crate::ptx::ast::{Item, Module};
use crate::ptx::{self, Source};

/// The functions of [`grid_sync`].
const GRID_SYNC: [&str; 2] = ["cudaCGGetIntrinsicHandle", "cudaCGSynchronize"];

/// The unit that defines barriers over a grid, if one of `units` declares such a function and none defines one.
pub fn grid_sync(units: &[Arc<Module>]) -> Option<Arc<Module>> {
    static UNIT: LazyLock<Arc<Module>> = LazyLock::new(|| {
        let source = Source::new("barriers over a grid", include_str!("grid_sync.ptx"));
        Arc::new(ptx::parse(source).expect("our own PTX"))
    });
    let functions = units.iter().flat_map(|unit| &unit.items).filter_map(|item| match item {
        Item::Function(function) if GRID_SYNC.contains(&&*function.name.text) => Some(function),
        _ => None,
    });
    let mut declared = false;
    for function in functions {
        if function.body.is_some() {
            return None;
        }
        declared = true;
    }
    declared.then(|| UNIT.clone())
}

/// Which of the two a name belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Generation {
    /// Threads may wait for their children; 24 levels at most.
    First,
    Second,
}

macro_rules! calls {
    ($($name:ident)*) => {
        /// A function of the device runtime, without prefix and without `_ptsz`: default streams are one per block at
        /// most, whichever was meant.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum RuntimeCall {
            $($name,)*
        }

        impl RuntimeCall {
            fn plain(name: &str) -> Option<RuntimeCall> {
                match name {
                    $(stringify!($name) => Some(RuntimeCall::$name),)*
                    _ => None,
                }
            }
        }
    };
}

calls! {
    DeviceGetAttribute
    DeviceGetLimit
    DeviceGetCacheConfig
    DeviceGetSharedMemConfig
    DeviceSynchronize
    GetLastError
    PeekAtLastError
    GetErrorString
    GetErrorName
    GetDeviceCount
    GetDevice
    StreamCreateWithFlags
    StreamDestroy
    StreamWaitEvent
    EventCreateWithFlags
    EventRecord
    EventRecordWithFlags
    EventDestroy
    FuncGetAttributes
    Malloc
    Free
    MemcpyAsync
    Memcpy2DAsync
    Memcpy3DAsync
    MemsetAsync
    Memset2DAsync
    Memset3DAsync
    RuntimeGetVersion
    GetParameterBuffer
    GetParameterBufferV2
    LaunchDevice
    LaunchDeviceV2
    OccupancyMaxActiveBlocksPerMultiprocessor
    OccupancyMaxActiveBlocksPerMultiprocessorWithFlags
    GraphLaunch
    GraphKernelNodeSetParam
    GraphKernelNodeSetEnabled
    GraphKernelNodeSetGridDim
    GraphKernelNodeUpdatesApply
}

impl RuntimeCall {
    /// What a declared function is, if it is one of these.
    pub fn of(name: &str) -> Option<(RuntimeCall, Generation)> {
        if name == "__cudaDeviceSynchronizeDeprecationAvoidance" {
            return Some((RuntimeCall::DeviceSynchronize, Generation::First));
        }
        let (rest, generation) = match name.strip_prefix("__cudaCDP2") {
            Some(rest) => (rest, Generation::Second),
            None => (name.strip_prefix("cuda")?, Generation::First),
        };
        let plain = rest.strip_suffix("_ptsz").unwrap_or(rest);
        Some((RuntimeCall::plain(plain)?, generation))
    }
}
