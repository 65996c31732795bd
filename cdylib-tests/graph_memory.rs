//! Graph Management: memory that launches allocate and free.

use crate::alone::alone;
use crate::c::*;
use crate::graph_types::*;
use crate::graph_world::*;
use crate::test_name;
use std::ffi::{c_int, c_void};
use std::ptr::{null, null_mut};

fn allocation(bytes: usize) -> AllocParams {
    AllocParams {
        alloc_type: 1,
        location_type: 1,
        bytes,
        ..zeroed()
    }
}

fn memory_attribute(which: c_int) -> u64 {
    let mut value = 1;
    ok(cuDeviceGetGraphMemAttribute(0, which, &mut value));
    value
}

/// In a process of its own: others might get the address first.
#[test]
fn a_late_free_of_a_graph_that_is_gone_frees_nothing_else() {
    alone(test_name!(), &[], || {
        let world = World::new();
        for bytes in [100, 3 << 20] {
            let graph = create();
            let mut node = null_mut();
            let mut record = allocation(bytes);
            ok(cuGraphAddMemAllocNode(&mut node, graph, null(), 0, &mut record));
            ok(cuGraphDestroy(graph));
            let stale = record.pointer;
            let mut others = [0; 4];
            for other in &mut others {
                ok(cuMemAlloc(other, bytes));
                ok(cuMemsetD8(*other, 7, bytes));
            }
            assert_eq!(cuMemFreeAsync(stale, world.stream), CUDA_ERROR_INVALID_VALUE);
            assert_eq!(cuMemFree(stale), CUDA_ERROR_INVALID_VALUE);
            for other in others {
                let mut byte = 0_u8;
                ok(cuMemcpyDtoH((&raw mut byte).cast(), other + bytes as u64 - 1, 1));
                assert_eq!(byte, 7);
                ok(cuMemFree(other));
            }
            // The next graph has the place, and its memory works.
            let graph = create();
            let mut record = allocation(bytes);
            ok(cuGraphAddMemAllocNode(&mut node, graph, null(), 0, &mut record));
            assert_eq!(record.pointer, stale);
            let exec = instantiate(graph);
            ok(cuGraphLaunch(exec, world.stream));
            ok(cuMemsetD8(stale, 9, bytes));
            ok(cuMemFree(stale));
            ok(cuGraphExecDestroy(exec));
            ok(cuGraphDestroy(graph));
        }
    });
}

/// In a process of its own: it has a small device.
#[test]
fn an_address_that_the_limit_forbids_now_is_there_later() {
    const BYTES: usize = 16 << 20;
    alone(test_name!(), &[("MARGAY_MEMORY", "64M")], || {
        let _world = World::new();
        let take = || {
            let (graph, mut node, mut record) = (create(), null_mut(), allocation(BYTES));
            let result = cuGraphAddMemAllocNode(&mut node, graph, null(), 0, &mut record);
            ok(cuGraphDestroy(graph));
            (result, record.pointer)
        };
        let first = take();
        assert_eq!(first.0, CUDA_SUCCESS);
        let mut rest = 0;
        ok(cuMemAlloc(&mut rest, 60 << 20));
        assert_eq!(take().0, CUDA_ERROR_OUT_OF_MEMORY);
        ok(cuMemFree(rest));
        assert_eq!(take(), first);
    });
}

/// In a process of its own: the attributes are the device's.
#[test]
fn memory_of_graphs_comes_and_goes_with_launches() {
    const BYTES: usize = 1 << 20;
    alone(test_name!(), &[], || {
        let world = World::new();
        let graph = create();
        let (mut alloc, mut set, mut free) = (null_mut(), null_mut(), null_mut());
        let mut record = allocation(BYTES);
        ok(cuGraphAddMemAllocNode(&mut alloc, graph, null(), 0, &mut record));
        let pointer = record.pointer;
        let mut found: AllocParams = zeroed();
        ok(cuGraphMemAllocNodeGetParams(alloc, &mut found));
        assert_eq!((found.pointer, found.bytes), (pointer, BYTES));
        let fill = MemsetParams {
            dst: pointer,
            pitch: 0,
            value: 3,
            element: 4,
            width: BYTES / 4,
            height: 1,
        };
        ok(cuGraphAddMemsetNode(&mut set, graph, &alloc, 1, &fill, world.context));
        let mut word = Box::new(0_u32);
        let mut copy = null_mut();
        let record = Memcpy3D {
            src_type: DEVICE,
            src_device: pointer,
            src_x: BYTES - 4,
            src_pitch: BYTES,
            dst_type: HOST,
            dst_host: (&raw mut *word).cast(),
            width: 4,
            height: 1,
            depth: 1,
            ..zeroed()
        };
        ok(cuGraphAddMemcpyNode(&mut copy, graph, &set, 1, &record, world.context));
        // Nothing is in use before the first launch.
        assert_eq!(memory_attribute(0), 0);
        let exec = instantiate(graph);
        // One executable graph at a time; nodes and edges stay; no copies.
        let mut second = null_mut();
        assert_eq!(cuGraphInstantiate(&mut second, graph, 0), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(cuGraphDestroyNode(set), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(
            cuGraphRemoveDependencies(graph, &alloc, &set, null(), 1),
            CUDA_ERROR_INVALID_VALUE
        );
        assert_eq!(cuGraphClone(&mut second, graph), CUDA_ERROR_INVALID_VALUE);
        ok(cuGraphLaunch(exec, world.stream));
        ok(cuStreamSynchronize(world.stream));
        assert_eq!(
            (*word, memory_attribute(0), memory_attribute(2)),
            (3, BYTES as u64, BYTES as u64)
        );
        // It has not been freed.
        assert_eq!(cuGraphLaunch(exec, world.stream), CUDA_ERROR_INVALID_VALUE);
        // The program may use it, and frees it, in a stream or at once.
        let mut last = 0_u32;
        ok(cuMemcpyDtoH((&raw mut last).cast(), pointer + BYTES as u64 - 4, 4));
        assert_eq!(last, 3);
        ok(cuMemFreeAsync(pointer, world.stream));
        assert_eq!(cuMemFreeAsync(pointer, world.stream), CUDA_ERROR_INVALID_VALUE);
        ok(cuGraphLaunch(exec, world.stream));
        ok(cuMemFree(pointer));
        assert_eq!(cuMemFree(pointer), CUDA_ERROR_INVALID_VALUE);
        assert_eq!((memory_attribute(0), memory_attribute(1)), (0, BYTES as u64));
        ok(cuDeviceGraphMemTrim(0));
        assert_eq!((memory_attribute(2), memory_attribute(3)), (0, BYTES as u64));
        let (mut zero, mut one) = (0, 1);
        ok(cuDeviceSetGraphMemAttribute(0, 1, &mut zero));
        assert_eq!(memory_attribute(1), 0);
        assert_eq!(cuDeviceSetGraphMemAttribute(0, 1, &mut one), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(cuDeviceSetGraphMemAttribute(0, 0, &mut zero), CUDA_ERROR_INVALID_VALUE);
        ok(cuGraphExecDestroy(exec));
        // Freed by itself before each launch.
        ok(cuGraphInstantiate(&mut second, graph, 1));
        for _ in 0..3 {
            *word = 0;
            ok(cuGraphLaunch(second, world.stream));
            ok(cuStreamSynchronize(world.stream));
            assert_eq!((*word, memory_attribute(0)), (3, BYTES as u64));
        }
        ok(cuMemFree(pointer));
        ok(cuGraphExecDestroy(second));
        // Freed by the graph.
        ok(cuGraphAddMemFreeNode(&mut free, graph, &copy, 1, pointer));
        let twice = cuGraphAddMemFreeNode(&mut second, graph, &copy, 1, pointer);
        assert_eq!(twice, CUDA_ERROR_INVALID_VALUE);
        let foreign = cuGraphAddMemFreeNode(&mut second, graph, &copy, 1, world.words);
        assert_eq!(foreign, CUDA_ERROR_INVALID_VALUE);
        let exec = instantiate(graph);
        for _ in 0..3 {
            *word = 0;
            ok(cuGraphLaunch(exec, world.stream));
        }
        ok(cuStreamSynchronize(world.stream));
        assert_eq!((*word, memory_attribute(0)), (3, 0));
        assert_eq!(cuMemFree(pointer), CUDA_ERROR_INVALID_VALUE);
        ok(cuGraphExecDestroy(exec));
        ok(cuGraphDestroy(graph));
        assert_eq!(memory_attribute(2), 0);
        // A kernel that touches it now is caught.
        let (mut to, mut n) = (pointer, 1_u32);
        let mut params = [(&raw mut to).cast::<c_void>(), (&raw mut n).cast()];
        let params = params.as_mut_ptr();
        ok(cuLaunchKernel(
            world.mix,
            1,
            1,
            1,
            1,
            1,
            1,
            0,
            world.stream,
            params,
            null_mut(),
        ));
        assert_eq!(cuStreamSynchronize(world.stream), CUDA_ERROR_ILLEGAL_ADDRESS);
        std::mem::forget(world);
    });
}
