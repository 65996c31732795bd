//! The device runtime: what kernels call that launch kernels (CUDA programming guide, "CUDA Dynamic Parallelism", and
//! `cuda_device_runtime_api.h`, which has the functions' types). Numbers of errors are those of `cudaError`.
//!
//! Arguments come from the lane's frame; work goes to the grid's [`Queue`], questions to [`Runtime`]. Pointers that
//! kernels pass go through the funnel.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::memory::{AddressSpace, Kind, Request};
use crate::program::{Copy3, Generation, Proxy, RuntimeCall, Space};
use crate::simt::cause::Cause;
use crate::simt::launch::{GraphUpdate, Runtime, Shape};

use super::context::{Cx, RawFault};
use super::observe::{Direction, HeapEvent};
use super::queue::{Claimed, Extent, Line, Pitched, Queue, Work};
use super::slots::lanes;
use super::{access, frame, heap_log};

mod error {
    pub const INVALID_VALUE: u32 = 1;
    pub const MEMORY_ALLOCATION: u32 = 2;
    pub const INVALID_MEMCPY_DIRECTION: u32 = 21;
    pub const LAUNCH_MAX_DEPTH_EXCEEDED: u32 = 65;
    pub const SYNC_DEPTH_EXCEEDED: u32 = 68;
    pub const INVALID_DEVICE_FUNCTION: u32 = 98;
    pub const INVALID_RESOURCE_HANDLE: u32 = 400;
    pub const LAUNCH_OUT_OF_RESOURCES: u32 = 701;
    pub const NOT_SUPPORTED: u32 = 801;
}

/// Grids below grids that the first generation allows, the host's included.
const MOST_LEVELS: u32 = 24;

/// Streams with names of their own: NULL, legacy, per thread; then those of the second generation.
const TAIL_LAUNCH: u64 = 3;
const FIRE_AND_FORGET: u64 = 4;
const STREAM_NON_BLOCKING: u64 = 1;
const EVENT_DISABLE_TIMING: u64 = 2;

/// `CU_LIMIT_DEV_RUNTIME_…`
const LIMIT_SYNC_DEPTH: u32 = 3;
const LIMIT_PENDING_LAUNCHES: u32 = 4;

/// `cudaMemcpyDeviceToDevice` and `cudaMemcpyDefault`: what kernels may copy.
const DIRECTIONS: [u64; 2] = [3, 4];

/// How a call ends early.
enum End {
    Error(u32),
    Fault(RawFault),
}

impl From<u32> for End {
    fn from(error: u32) -> End {
        End::Error(error)
    }
}

impl From<RawFault> for End {
    fn from(fault: RawFault) -> End {
        End::Fault(fault)
    }
}

type Outcome<T = u64> = Result<T, End>;

/// One lane's call.
struct Call<'a, const WATCHED: bool> {
    which: RuntimeCall,
    generation: Generation,
    args: &'a [Copy3],
    cx: &'a Cx<'a>,
    lane: usize,
}

/// Carries out a call for the lanes of `cx.mask`.
///
/// # Errors
/// A pointer that may not be used, or what befell a child that the caller waited for.
pub fn call<const WATCHED: bool>(
    which: RuntimeCall,
    generation: Generation,
    args: &[Copy3],
    results: &[Copy3],
    cx: &mut Cx<'_>,
) -> Result<(), RawFault> {
    for lane in lanes(&cx.mask.lanes) {
        let call = Call::<WATCHED> {
            which,
            generation,
            args,
            cx,
            lane,
        };
        let value = match call.run() {
            Ok(value) => value,
            Err(End::Fault(fault)) => return Err(fault),
            Err(End::Error(error)) => {
                call.queue().set_error(call.thread(), error);
                if call.answers_address() { 0 } else { u64::from(error) }
            }
        };
        frame::result::<WATCHED>(cx, lane, results, value);
    }
    Ok(())
}

fn or(condition: bool, error: u32) -> Outcome<()> {
    if condition { Ok(()) } else { Err(End::Error(error)) }
}

impl<const WATCHED: bool> Call<'_, WATCHED> {
    /// Bytes of an argument; zeros where the declaration has fewer.
    fn argument<const N: usize>(&self, index: usize) -> [u8; N] {
        frame::argument::<WATCHED, N>(self.cx, self.lane, self.args, index)
    }

    fn word(&self, index: usize) -> u64 {
        u64::from_le_bytes(self.argument(index))
    }

    fn half(&self, index: usize) -> u32 {
        u32::from_le_bytes(self.argument(index))
    }

    fn words<const N: usize>(raw: &[u8]) -> [u64; N] {
        std::array::from_fn(|i| u64::from_le_bytes(std::array::from_fn(|j| raw[i * 8 + j])))
    }

    /// A `dim3`.
    fn dims(&self, index: usize) -> [u32; 3] {
        let raw: [u8; 12] = self.argument(index);
        std::array::from_fn(|i| u32::from_le_bytes(std::array::from_fn(|j| raw[i * 4 + j])))
    }

    /// Writes what a pointer argument asks for; 1 for a null one.
    fn answer(&self, index: usize, value: &[u8]) -> Outcome {
        let address = self.word(index);
        or(address != 0, error::INVALID_VALUE)?;
        access::one::<WATCHED>(self.cx, self.lane, address, value.len() as u64, Direction::Write)?;
        // SAFETY: `access::one` has just found that the lane may write so many bytes there; `value` is the host's own,
        // so they do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(value.as_ptr(), address as *mut u8, value.len()) };
        Ok(0)
    }

    fn queue(&self) -> &Queue {
        self.cx.block.env.queue()
    }

    fn runtime(&self) -> Outcome<&dyn Runtime> {
        let runtime = self.cx.launch().family.runtime.as_deref();
        runtime.ok_or(End::Error(error::NOT_SUPPORTED))
    }

    /// The calling thread: number of its block, number in it.
    fn thread(&self) -> (u64, u32) {
        let block = self.cx.block;
        let number = self.cx.first_thread + self.lane as u32;
        (block.env.block_number(block.ctaid), number)
    }

    fn answers_address(&self) -> bool {
        use RuntimeCall::*;
        matches!(
            self.which,
            GetParameterBuffer | GetParameterBufferV2 | GetErrorString | GetErrorName
        )
    }

    fn run(&self) -> Outcome {
        use RuntimeCall::*;
        match self.which {
            GetLastError => Ok(self.queue().error(self.thread(), true).into()),
            PeekAtLastError => Ok(self.queue().error(self.thread(), false).into()),
            GetErrorName => Ok(text(self.runtime()?, self.half(0)).0),
            GetErrorString => Ok(text(self.runtime()?, self.half(0)).1),
            RuntimeGetVersion => self.answer(0, &self.runtime()?.version().to_le_bytes()),
            GetDeviceCount => self.answer(0, &self.runtime()?.device_count().to_le_bytes()),
            GetDevice => self.answer(0, &self.runtime()?.device().to_le_bytes()),
            DeviceGetAttribute => {
                let value = self
                    .runtime()?
                    .device_attribute(self.half(1) as i32, self.half(2) as i32)?;
                self.answer(0, &value.to_le_bytes())
            }
            DeviceGetLimit => self.answer(0, &self.runtime()?.limit(self.half(1))?.to_le_bytes()),
            DeviceGetCacheConfig => self.answer(0, &self.runtime()?.preferences().0.to_le_bytes()),
            DeviceGetSharedMemConfig => self.answer(0, &self.runtime()?.preferences().1.to_le_bytes()),
            DeviceSynchronize => self.synchronize(),
            FuncGetAttributes => self.function_attributes(),
            OccupancyMaxActiveBlocksPerMultiprocessor | OccupancyMaxActiveBlocksPerMultiprocessorWithFlags => {
                self.occupancy()
            }
            Malloc => {
                let (lane, bytes) = (self.lane, self.word(1));
                let address = self.cx.launch().services.malloc(bytes);
                or(address != 0 || bytes == 0, error::MEMORY_ALLOCATION)?;
                if address != 0 {
                    let event = || HeapEvent::Allocate { lane, address, bytes };
                    self.cx.heap_changed::<WATCHED>(event);
                    heap_log::allocated(self.cx, lane, address);
                }
                self.answer(0, &address.to_le_bytes())
            }
            Free => {
                let (lane, address) = (self.lane, self.word(0));
                // Told before, for another thread may be given the memory at once.
                if address != 0 {
                    self.cx.heap_changed::<WATCHED>(|| HeapEvent::Free { lane, address });
                }
                let freed = self.cx.launch().services.free(address);
                if freed {
                    heap_log::freed(self.cx, lane, address);
                }
                or(freed, error::INVALID_VALUE).map(|()| 0)
            }
            StreamCreateWithFlags => {
                or(self.word(1) == STREAM_NON_BLOCKING, error::INVALID_VALUE)?;
                self.answer(0, &self.queue().create().to_le_bytes())
            }
            EventCreateWithFlags => {
                or(self.word(1) == EVENT_DISABLE_TIMING, error::INVALID_VALUE)?;
                self.answer(0, &self.queue().create().to_le_bytes())
            }
            StreamDestroy | EventDestroy => {
                let destroyed = self.queue().destroy(self.word(0));
                or(destroyed, error::INVALID_RESOURCE_HANDLE).map(|()| 0)
            }
            // All work of a grid is done in the order in which it was asked for: what was recorded comes before what waits.
            EventRecord | EventRecordWithFlags => {
                self.plain_stream(1)?;
                or(self.word(2) <= 1, error::INVALID_VALUE)?;
                or(self.queue().knows(self.word(0)), error::INVALID_RESOURCE_HANDLE).map(|()| 0)
            }
            StreamWaitEvent => {
                self.plain_stream(0)?;
                or(self.word(2) <= 1, error::INVALID_VALUE)?;
                or(self.queue().knows(self.word(1)), error::INVALID_RESOURCE_HANDLE).map(|()| 0)
            }
            MemcpyAsync | Memcpy2DAsync | Memcpy3DAsync => self.copy(),
            MemsetAsync | Memset2DAsync | Memset3DAsync => self.fill(),
            GetParameterBuffer => self.buffer(self.word(1), self.word(0), None),
            GetParameterBufferV2 => {
                let shape = Shape {
                    kernel: self.kernel(self.word(0))?,
                    grid: self.dims(1),
                    block: self.dims(2),
                    dynamic_shared: self.half(3),
                };
                self.buffer(self.runtime()?.parameters(shape.kernel)?.into(), 64, Some(shape))
            }
            LaunchDevice => {
                let shape = Shape {
                    kernel: self.kernel(self.word(0))?,
                    grid: self.dims(2),
                    block: self.dims(3),
                    dynamic_shared: self.half(4),
                };
                self.launch(Some(shape), self.word(1), 5)
            }
            LaunchDeviceV2 => self.launch(None, self.word(0), 1),
            GraphLaunch => {
                let from = self.cx.launch().family.graph;
                self.runtime()?.launch_graph(from, self.word(0), self.word(1))?;
                Ok(0)
            }
            GraphKernelNodeSetParam => self.set_parameter(self.word(0), self.word(1), self.word(2), self.word(3)),
            GraphKernelNodeSetEnabled => self.update(self.word(0), GraphUpdate::Enabled(self.half(1) & 0xFF != 0)),
            GraphKernelNodeSetGridDim => self.update(self.word(0), GraphUpdate::Grid(self.dims(1))),
            GraphKernelNodeUpdatesApply => self.updates(),
        }
    }

    /// The index of the kernel at an address.
    fn kernel(&self, address: u64) -> Outcome<u32> {
        let module = &self.cx.launch().code.module;
        let index = address
            .checked_sub(module.code_base)
            .filter(|offset| offset.is_multiple_of(16))
            .map(|offset| offset / 16);
        let function = index.and_then(|index| module.functions.get(usize::try_from(index).ok()?));
        or(
            function.is_some_and(|function| function.kernel.is_some()),
            error::INVALID_DEVICE_FUNCTION,
        )?;
        Ok(index.unwrap_or(0) as u32)
    }

    /// Where work for a stream goes.
    fn line(&self, index: usize) -> Outcome<Line> {
        match (self.word(index), self.generation) {
            (0..=2, _) => Ok(Line::Ready),
            (TAIL_LAUNCH, Generation::Second) => Ok(Line::Tail),
            (FIRE_AND_FORGET, Generation::Second) => Ok(Line::Ready),
            (stream, _) if self.queue().knows(stream) => Ok(Line::Ready),
            _ => Err(End::Error(error::INVALID_RESOURCE_HANDLE)),
        }
    }

    /// A stream that events can be recorded in, and that can wait for them.
    fn plain_stream(&self, index: usize) -> Outcome<()> {
        or(
            !matches!(self.word(index), TAIL_LAUNCH | FIRE_AND_FORGET),
            error::INVALID_VALUE,
        )?;
        self.line(index).map(drop)
    }

    fn buffer(&self, bytes: u64, align: u64, shape: Option<Shape>) -> Outcome {
        // Buffers are as large as a power of two, and as much aligned.
        let bytes = bytes.max(align.min(4096));
        let buffer = self.queue().take_buffer(bytes, shape);
        let address = buffer.ok_or(End::Error(error::LAUNCH_OUT_OF_RESOURCES))?;
        let lane = self.lane;
        self.cx
            .heap_changed::<WATCHED>(|| HeapEvent::Allocate { lane, address, bytes });
        Ok(address)
    }

    /// Puts a launch in line: with a shape of its own, or with the one for which the buffer was made.
    fn launch(&self, shape: Option<Shape>, buffer: u64, stream: usize) -> Outcome {
        let runtime = self.runtime()?;
        let parent = self.cx.launch();
        let first = self.generation == Generation::First;
        or(
            !first || parent.family.depth + 1 < MOST_LEVELS,
            error::LAUNCH_MAX_DEPTH_EXCEEDED,
        )?;
        let queue = self.queue();
        let claimed = match (buffer, shape) {
            (0, Some(_)) => None,
            (buffer, _) => Some(queue.claim_buffer(buffer).ok_or(End::Error(error::INVALID_VALUE))?),
        };
        let params = self.parameters(shape, buffer, claimed.as_ref());
        if let Some(claimed) = &claimed {
            // Not before it was read: another thread may get it at once.
            queue.give_back(claimed);
        }
        let (shape, params) = params?;
        let line = self.line(stream)?;
        let child = runtime.child(parent, &shape, params)?;
        self.put(line, Work::Launch(Arc::new(child)))
    }

    /// What is to be launched, and its parameters.
    fn parameters(&self, shape: Option<Shape>, buffer: u64, claimed: Option<&Claimed>) -> Outcome<(Shape, Box<[u8]>)> {
        let known = claimed.and_then(|claimed| claimed.shape);
        let shape = shape.or(known).ok_or(End::Error(error::INVALID_VALUE))?;
        let bytes = self.runtime()?.parameters(shape.kernel)?;
        let room = claimed.map_or(0, Claimed::room);
        or(u64::from(bytes) <= room || bytes == 0, error::INVALID_VALUE)?;
        let mut params = vec![0; bytes as usize].into_boxed_slice();
        if bytes > 0 {
            let range = (buffer, bytes.into());
            access::tell_one::<WATCHED>(
                self.cx,
                self.lane,
                range,
                Space::Generic,
                Direction::Read,
                Proxy::Generic,
            );
            // SAFETY: the buffer is this launch's alone, has this much room, and lives as long as the grid.
            unsafe { std::ptr::copy_nonoverlapping(buffer as *const u8, params.as_mut_ptr(), params.len()) };
        }
        Ok((shape, params))
    }

    /// Puts work in line. When it is full, what can run does so now; what comes last cannot.
    fn put(&self, line: Line, work: Work) -> Outcome {
        let queue = self.queue();
        let limit = self.runtime()?.limit(LIMIT_PENDING_LAUNCHES)?;
        if queue.pending() >= limit {
            if queue.any() && self.cx.block.env.can_wait() {
                self.wait()?;
            }
            or(queue.pending() < limit, error::LAUNCH_OUT_OF_RESOURCES)?;
        }
        queue.push(line, work);
        Ok(0)
    }

    fn wait(&self) -> Outcome<()> {
        if self.cx.block.env.wait() {
            return Ok(());
        }
        // The child's own fault is what the launch ends with.
        let cause = Cause::Trap;
        Err(RawFault::new(cause, self.lane).into())
    }

    /// `cudaDeviceSynchronize` of the first generation.
    fn synchronize(&self) -> Outcome {
        let depth = u64::from(self.cx.launch().family.depth);
        or(
            depth < self.runtime()?.limit(LIMIT_SYNC_DEPTH)? && self.cx.block.env.can_wait(),
            error::SYNC_DEPTH_EXCEEDED,
        )?;
        self.wait()?;
        Ok(0)
    }

    /// `struct cudaFuncAttributes`, as far as all versions of a generation have it.
    fn function_attributes(&self) -> Outcome {
        let kernel = self.kernel(self.word(1))?;
        let runtime = self.runtime()?;
        let mut raw = Vec::new();
        for which in [1, 2, 3] {
            raw.extend((runtime.function_attribute(kernel, which)? as u64).to_le_bytes());
        }
        let first = [0, 4, 5, 6, 7, 8, 9];
        let second = [10, 11, 12, 13, 15, 14];
        let rest: &[u32] = if self.generation == Generation::First {
            &[]
        } else {
            &second
        };
        for which in first.iter().chain(rest) {
            raw.extend(runtime.function_attribute(kernel, *which)?.to_le_bytes());
        }
        self.answer(0, &raw)
    }

    fn occupancy(&self) -> Outcome {
        let kernel = self.kernel(self.word(1))?;
        let threads = self.half(2) as i32;
        or(threads > 0 && self.half(4) <= 1, error::INVALID_VALUE)?;
        let blocks = self.runtime()?.occupancy(kernel, threads as u32, self.word(3))?;
        self.answer(0, &blocks.to_le_bytes())
    }

    /// The copies. Arrays are not for kernels to copy, nor is their own shared and local memory.
    fn copy(&self) -> Outcome {
        let (to, from, extent, direction, stream) = match self.which {
            RuntimeCall::MemcpyAsync => {
                let flat = |address| pitched(address, 0, 0);
                let (to, from) = (flat(self.word(0)), flat(self.word(1)));
                (to, from, row(self.word(2)), self.half(3), 4)
            }
            RuntimeCall::Memcpy2DAsync => {
                let (to, from) = (
                    pitched(self.word(0), self.word(1), 0),
                    pitched(self.word(2), self.word(3), 0),
                );
                let extent = Extent {
                    width: self.word(4),
                    height: self.word(5),
                    depth: 1,
                };
                or(
                    extent.width <= to.pitch && extent.width <= from.pitch,
                    error::INVALID_VALUE,
                )?;
                (to, from, extent, self.half(6), 7)
            }
            _ => {
                // struct cudaMemcpy3DParms
                let raw: [u8; 160] = access::bytes::<WATCHED, _>(self.cx, self.lane, self.word(0))?;
                let words: [u64; 20] = Self::words(&raw);
                let [from_array, fx, fy, fz, fp, f_pitch, _, f_rows, ..] = words;
                let [to_array, tx, ty, tz, tp, t_pitch, _, t_rows] = Self::words(&raw[64..]);
                let [width, height, depth, direction] = Self::words(&raw[128..]);
                or(from_array == 0 && to_array == 0, error::INVALID_VALUE)?;
                let side = |address: u64, pitch: u64, rows: u64, [x, y, z]: [u64; 3]| {
                    let slice = pitch.wrapping_mul(rows);
                    let offset = z
                        .wrapping_mul(slice)
                        .wrapping_add(y.wrapping_mul(pitch))
                        .wrapping_add(x);
                    pitched(address.wrapping_add(offset), pitch, slice)
                };
                let extent = Extent { width, height, depth };
                let (to, from) = (
                    side(tp, t_pitch, t_rows, [tx, ty, tz]),
                    side(fp, f_pitch, f_rows, [fx, fy, fz]),
                );
                or(width <= t_pitch && width <= f_pitch, error::INVALID_VALUE)?;
                (to, from, extent, direction as u32, 1)
            }
        };
        or(DIRECTIONS.contains(&direction.into()), error::INVALID_MEMCPY_DIRECTION)?;
        let line = self.line(stream)?;
        self.reachable(&from, &extent, Direction::Read)?;
        self.reachable(&to, &extent, Direction::Write)?;
        let watch = self.cx.block.env.watch().clone();
        self.put(
            line,
            Work::Copy {
                to,
                from,
                extent,
                watch,
            },
        )
    }

    fn fill(&self) -> Outcome {
        let (to, value, extent, stream) = match self.which {
            RuntimeCall::MemsetAsync => (pitched(self.word(0), 0, 0), self.half(1), row(self.word(2)), 3),
            RuntimeCall::Memset2DAsync => {
                let extent = Extent {
                    width: self.word(3),
                    height: self.word(4),
                    depth: 1,
                };
                (pitched(self.word(0), self.word(1), 0), self.half(2), extent, 5)
            }
            _ => {
                let to: [u8; 32] = self.argument(0);
                let [address, pitch, _, rows] = Self::words(&to);
                let extent: [u8; 24] = self.argument(2);
                let [width, height, depth] = Self::words(&extent);
                let extent = Extent { width, height, depth };
                (
                    pitched(address, pitch, pitch.wrapping_mul(rows)),
                    self.half(1),
                    extent,
                    3,
                )
            }
        };
        or(extent.height <= 1 || extent.width <= to.pitch, error::INVALID_VALUE)?;
        let line = self.line(stream)?;
        self.reachable(&to, &extent, Direction::Write)?;
        self.put(
            line,
            Work::Fill {
                to,
                value: value as u8,
                extent,
                watch: self.cx.block.env.watch().clone(),
            },
        )
    }

    /// The first row, now: a bad pointer is told where it was used. Shared and local memory is of no use to others: 1.
    fn reachable(&self, side: &Pitched, extent: &Extent, direction: Direction) -> Outcome<()> {
        let (address, width) = (side.address, extent.width);
        let view = self.cx.block.view;
        if extent.height == 0 || extent.depth == 0 || access::anybody(view, address, width, direction.bits()) {
            return Ok(());
        }
        or(
            !access::allowed(self.cx, self.lane, address, width, direction.bits()),
            error::INVALID_VALUE,
        )?;
        let write = direction == Direction::Write;
        Err(RawFault::illegal(address, width, write, self.lane, Space::Generic).into())
    }

    fn update(&self, node: u64, update: GraphUpdate) -> Outcome {
        self.runtime()?.update_node(node, update)?;
        Ok(0)
    }

    fn set_parameter(&self, node: u64, offset: u64, value: u64, size: u64) -> Outcome {
        // Parameters of a kernel take less than this.
        or(size <= 1 << 16 && value != 0, error::INVALID_VALUE)?;
        access::one::<WATCHED>(self.cx, self.lane, value, size, Direction::Read)?;
        // SAFETY: `access::one` has just found that the lane may read so many bytes there; they are copied before
        // anything else runs here.
        let bytes = unsafe { std::slice::from_raw_parts(value as *const u8, size as usize) }.into();
        self.update(node, GraphUpdate::Parameter { offset, bytes })
    }

    /// An array of `struct cudaGraphKernelNodeUpdate`.
    fn updates(&self) -> Outcome {
        const SIZE: u64 = 40;
        let (list, count) = (self.word(0), self.word(1));
        for index in 0..count {
            let raw: [u8; 40] =
                access::bytes::<WATCHED, _>(self.cx, self.lane, list.wrapping_add(index.wrapping_mul(SIZE)))?;
            let [node, field, first, second, third] = Self::words(&raw);
            match field as u32 {
                1 => {
                    let grid = [first as u32, (first >> 32) as u32, second as u32];
                    self.update(node, GraphUpdate::Grid(grid))?;
                }
                2 => drop(self.set_parameter(node, second, first, third)?),
                3 => drop(self.update(node, GraphUpdate::Enabled(first as u32 != 0))?),
                _ => return Err(End::Error(error::INVALID_VALUE)),
            }
        }
        Ok(0)
    }
}

fn pitched(address: u64, pitch: u64, slice: u64) -> Pitched {
    Pitched { address, pitch, slice }
}

fn row(width: u64) -> Extent {
    Extent {
        width,
        height: 1,
        depth: 1,
    }
}

/// Where kernels read an error's name and description. They stay for as long as the process lives.
fn text(runtime: &dyn Runtime, error: u32) -> (u64, u64) {
    static KNOWN: OnceLock<Mutex<HashMap<u32, (u64, u64)>>> = OnceLock::new();
    let mut known = KNOWN
        .get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    // What no error has, all share.
    let (name, words) = runtime.words(error);
    let key = if name == runtime.words(u32::MAX).0 {
        u32::MAX
    } else {
        error
    };
    *known.entry(key).or_insert_with(|| {
        let bytes = (name.len() + words.len() + 2) as u64;
        let request = Request::new(Kind::Constant, bytes);
        let Ok(place) = AddressSpace::get().allocate(&request) else {
            return (0, 0);
        };
        let second = place.start + name.len() as u64 + 1;
        for (start, text) in [(place.start, name), (second, words)] {
            // SAFETY: the allocation is new, zeroed where nothing is written, and has room for both texts with their ends.
            unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), start as *mut u8, text.len()) };
            // SAFETY: the allocation has room for the text's end.
            unsafe { *((start + text.len() as u64) as *mut u8) = 0 };
        }
        (place.start, second)
    })
}
