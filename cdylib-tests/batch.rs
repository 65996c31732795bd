//! Memory Management: copies with attributes, batches of copies, in graphs too.

use crate::alone::alone;
use crate::basics::{alloc, context, download, stream, upload};
use crate::c::*;
use crate::graph_types::zeroed;
use crate::little_memory::without_memory;
use crate::pool::Location;
use crate::test_name;
use std::ffi::{c_uint, c_ulonglong, c_void};
use std::ptr::null_mut;

/// `CUmemcpyAttributes`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Attributes {
    order: c_uint,
    src: Location,
    dst: Location,
    flags: c_uint,
}

/// `CUmemcpy3DOperand`; the union as words: an address, row length, layer height and a location, or an array and offsets.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Operand {
    kind: c_uint,
    op: [u64; 4],
}

/// `CUDA_MEMCPY3D_BATCH_OP`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct BoxCopy {
    src: Operand,
    dst: Operand,
    extent: [usize; 3],
    order: c_uint,
    flags: c_uint,
}

/// `CUgraphNodeParams` of a batch: `CUDA_MEMCPY_BATCH_NODE_PARAMS` and what is left.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct BatchNode {
    kind: c_uint,
    reserved: [c_uint; 3],
    count: usize,
    dsts: *mut CUdeviceptr,
    srcs: *mut CUdeviceptr,
    sizes: *mut usize,
    attributes: *mut Attributes,
    indices: *mut usize,
    parts: usize,
    context: CUcontext,
    rest: [u64; 22],
}

functions! {
    cuMemcpyBatchAsync_v1 = "cuMemcpyBatchAsync" (
        dsts: *mut CUdeviceptr,
        srcs: *mut CUdeviceptr,
        sizes: *mut usize,
        count: usize,
        attributes: *mut c_void,
        indices: *mut usize,
        parts: usize,
        fail_index: *mut usize,
        stream: CUstream,
    );
    cuMemcpyBatchAsync = "cuMemcpyBatchAsync_v2" (
        dsts: *mut CUdeviceptr,
        srcs: *mut CUdeviceptr,
        sizes: *mut usize,
        count: usize,
        attributes: *mut c_void,
        indices: *mut usize,
        parts: usize,
        stream: CUstream,
    );
    cuMemcpy3DBatchAsync_v1 = "cuMemcpy3DBatchAsync" (
        count: usize,
        list: *mut c_void,
        fail_index: *mut usize,
        flags: c_ulonglong,
        stream: CUstream,
    );
    cuMemcpy3DBatchAsync = "cuMemcpy3DBatchAsync_v2" (
        count: usize,
        list: *mut c_void,
        flags: c_ulonglong,
        stream: CUstream,
    );
    cuMemcpyWithAttributesAsync(
        dst: CUdeviceptr,
        src: CUdeviceptr,
        bytes: usize,
        attributes: *mut c_void,
        stream: CUstream,
    );
    cuMemcpy3DWithAttributesAsync(op: *mut c_void, flags: c_ulonglong, stream: CUstream);
    cuFabricCpyBatchAsync(count: usize, list: *mut c_void, flags: c_ulonglong, stream: CUstream);
    cuStreamWaitValue32 = "cuStreamWaitValue32_v2" (stream: CUstream, word: CUdeviceptr, value: c_uint, flags: c_uint);
    cuStreamBeginCapture = "cuStreamBeginCapture_v2" (stream: CUstream, mode: c_uint);
    cuStreamEndCapture(stream: CUstream, graph: *mut *mut c_void);
    cuGraphCreate(graph: *mut *mut c_void, flags: c_uint);
    cuGraphGetNodes(graph: *mut c_void, nodes: *mut *mut c_void, count: *mut usize);
    cuGraphNodeGetType(node: *mut c_void, kind: *mut c_uint);
    cuGraphAddNode = "cuGraphAddNode_v2" (
        node: *mut *mut c_void,
        graph: *mut c_void,
        before: *const *mut c_void,
        data: *const c_void,
        count: usize,
        params: *mut c_void,
    );
    cuGraphNodeGetParams(node: *mut c_void, params: *mut c_void);
    cuGraphNodeSetParams(node: *mut c_void, params: *mut c_void);
    cuGraphExecNodeSetParams(exec: *mut c_void, node: *mut c_void, params: *mut c_void);
    cuGraphInstantiate = "cuGraphInstantiateWithFlags" (
        exec: *mut *mut c_void,
        graph: *mut c_void,
        flags: c_ulonglong,
    );
    cuGraphLaunch(exec: *mut c_void, stream: CUstream);
    cuGraphExecDestroy(exec: *mut c_void);
    cuGraphDestroy(graph: *mut c_void);
}

// CUmemcpySrcAccessOrder
const STREAM: c_uint = 1;
const DURING_CALL: c_uint = 2;
const ANY: c_uint = 3;
const POINTER: c_uint = 1;
const ARRAY: c_uint = 2;
/// `CU_GRAPH_NODE_TYPE_MEMCPY_BATCH`
const BATCH_NODE: c_uint = 14;

fn order(order: c_uint) -> Attributes {
    Attributes { order, ..zeroed() }
}

/// Stops a stream until the word is 1.
fn hold(stream: CUstream) -> *mut u32 {
    let mut word = null_mut();
    ok(cuMemHostAlloc(&mut word, 4, 0));
    let word = word.cast::<u32>();
    // SAFETY: four bytes of ours.
    unsafe { word.write_volatile(0) };
    ok(cuStreamWaitValue32(stream, word as u64, 1, 0));
    word
}

/// The arrays of a batch, which calls take by pointer.
struct Batch {
    dsts: Vec<CUdeviceptr>,
    srcs: Vec<CUdeviceptr>,
    sizes: Vec<usize>,
    attributes: Vec<Attributes>,
    indices: Vec<usize>,
}

impl Batch {
    fn submit(&mut self, stream: CUstream) -> CUresult {
        cuMemcpyBatchAsync(
            self.dsts.as_mut_ptr(),
            self.srcs.as_mut_ptr(),
            self.sizes.as_mut_ptr(),
            self.dsts.len(),
            self.attributes.as_mut_ptr().cast(),
            self.indices.as_mut_ptr(),
            self.attributes.len(),
            stream,
        )
    }

    /// The first version also says which copy failed.
    fn submit_v1(&mut self, stream: CUstream) -> (CUresult, usize) {
        let mut fail_index = 12345;
        let result = cuMemcpyBatchAsync_v1(
            self.dsts.as_mut_ptr(),
            self.srcs.as_mut_ptr(),
            self.sizes.as_mut_ptr(),
            self.dsts.len(),
            self.attributes.as_mut_ptr().cast(),
            self.indices.as_mut_ptr(),
            self.attributes.len(),
            &mut fail_index,
            stream,
        );
        (result, fail_index)
    }

    fn node(&mut self) -> BatchNode {
        BatchNode {
            kind: BATCH_NODE,
            count: self.dsts.len(),
            dsts: self.dsts.as_mut_ptr(),
            srcs: self.srcs.as_mut_ptr(),
            sizes: self.sizes.as_mut_ptr(),
            attributes: self.attributes.as_mut_ptr(),
            indices: self.indices.as_mut_ptr(),
            parts: self.attributes.len(),
            ..zeroed()
        }
    }
}

#[test]
fn a_batch_makes_all_its_copies() {
    let context = context();
    let stream = stream();
    let source: Vec<u8> = (0..=255).collect();
    let (a, b) = (upload(&source), alloc(1000));
    let mut back = vec![0_u8; 100];
    let mut batch = Batch {
        dsts: vec![b, b + 500, back.as_mut_ptr() as u64, b + 999],
        srcs: vec![a, source.as_ptr() as u64, a + 50, a],
        sizes: vec![256, 256, 100, 0],
        attributes: vec![order(STREAM), order(ANY)],
        indices: vec![0, 1],
    };
    ok(batch.submit(stream));
    ok(cuStreamSynchronize(stream));
    assert_eq!(download(b, 256), source);
    assert_eq!(download(b + 500, 256), source);
    assert_eq!(back, source[50..150]);
    assert_eq!(batch.submit_v1(stream), (CUDA_SUCCESS, 12345));
    ok(cuStreamSynchronize(stream));

    // Which copy it is that fails; none is made then.
    ok(cuMemsetD8(b, 0, 1000));
    ok(cuCtxSynchronize());
    batch.dsts[3] = b + 1000;
    batch.sizes[3] = 1;
    assert_eq!(batch.submit_v1(stream), (CUDA_ERROR_INVALID_VALUE, 3));
    assert_eq!(batch.submit(stream), CUDA_ERROR_INVALID_VALUE);
    batch.sizes[3] = 0;
    batch.attributes[1].order = 0;
    assert_eq!(batch.submit_v1(stream), (CUDA_ERROR_INVALID_VALUE, 1));
    batch.attributes[1].order = 4;
    assert_eq!(batch.submit_v1(stream), (CUDA_ERROR_INVALID_VALUE, 1));
    batch.attributes[1].order = ANY;
    batch.attributes[0].flags = 2;
    assert_eq!(batch.submit_v1(stream), (CUDA_ERROR_INVALID_VALUE, 0));
    // CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE is a hint.
    batch.attributes[0].flags = 1;
    // Indices begin with 0, ascend and stay below the count.
    for wrong in [[1, 2], [0, 0], [0, 4]] {
        batch.indices = wrong.to_vec();
        assert_eq!(batch.submit_v1(stream), (CUDA_ERROR_INVALID_VALUE, usize::MAX));
    }
    batch.indices = vec![0, 1];
    assert_eq!(batch.submit_v1(null_mut()), (CUDA_ERROR_INVALID_VALUE, usize::MAX));
    let nobody: CUstream = back.as_mut_ptr().cast();
    assert_eq!(batch.submit_v1(nobody), (CUDA_ERROR_INVALID_HANDLE, usize::MAX));
    assert_eq!(
        cuMemcpyBatchAsync(null_mut(), null_mut(), null_mut(), 1, null_mut(), null_mut(), 1, stream),
        CUDA_ERROR_INVALID_VALUE
    );
    ok(cuCtxSynchronize());
    assert!(download(b, 1000).iter().all(|byte| *byte == 0));
    ok(batch.submit(stream));
    batch.dsts.clear();
    assert_eq!(batch.submit(stream), CUDA_ERROR_INVALID_VALUE);
    // There is no fabric.
    assert_eq!(cuFabricCpyBatchAsync(0, null_mut(), 0, stream), 801);
    ok(cuCtxDestroy(context));
}

#[test]
fn sources_are_read_when_the_attributes_say() {
    let context = context();
    let stream = stream();
    let (early, late) = (alloc(64), alloc(64));
    let mut ephemeral = [1_u8; 64];
    let mut lasting = [1_u8; 64];
    let release = hold(stream);
    let mut batch = Batch {
        dsts: vec![early, late],
        srcs: vec![ephemeral.as_ptr() as u64, lasting.as_ptr() as u64],
        sizes: vec![64, 64],
        attributes: vec![order(DURING_CALL), order(STREAM)],
        indices: vec![0, 1],
    };
    ok(batch.submit(stream));
    // The call is over, the stream has not come to the copies yet.
    ephemeral.fill(2);
    lasting.fill(2);
    // SAFETY: hold's word.
    unsafe { release.write_volatile(1) };
    ok(cuStreamSynchronize(stream));
    assert_eq!(download(early, 64), [1; 64]);
    assert_eq!(download(late, 64), [2; 64]);
    assert_eq!((ephemeral, lasting), ([2; 64], [2; 64]));

    // A single copy, with the same choices.
    let release = hold(stream);
    let mut during = order(DURING_CALL);
    let mut ordered = order(STREAM);
    let copy = |dst, src: &[u8; 64], attributes: *mut Attributes| {
        cuMemcpyWithAttributesAsync(dst, src.as_ptr() as u64, 64, attributes.cast(), stream)
    };
    ok(copy(early, &ephemeral, &mut during));
    ok(copy(late, &lasting, &mut ordered));
    ephemeral.fill(3);
    lasting.fill(3);
    // SAFETY: hold's word.
    unsafe { release.write_volatile(1) };
    ok(cuStreamSynchronize(stream));
    assert_eq!(download(early, 64), [2; 64]);
    assert_eq!(download(late, 64), [3; 64]);
    assert_eq!((ephemeral, lasting), ([3; 64], [3; 64]));
    assert_eq!(copy(early, &ephemeral, null_mut()), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(copy(early, &ephemeral, &mut order(0)), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(copy(early + 4096, &ephemeral, &mut ordered), CUDA_ERROR_INVALID_VALUE);
    ok(cuCtxDestroy(context));
}

/// What is read during the call and written later needs a copy in between, as large as the program likes.
#[test]
fn there_is_no_room_for_what_is_read_during_the_call() {
    alone(test_name!(), &[], || {
        context();
        let (stream, bytes) = (stream(), 64 << 20);
        let (dst, src) = (alloc(bytes), vec![1_u8; bytes]);
        let release = hold(stream);
        let mut batch = Batch {
            dsts: vec![dst],
            srcs: vec![src.as_ptr() as u64],
            sizes: vec![bytes],
            attributes: vec![order(DURING_CALL)],
            indices: vec![0],
        };
        assert_eq!(without_memory(|| batch.submit(stream)), CUDA_ERROR_OUT_OF_MEMORY);
        // A copy that may be read in its turn goes ahead.
        batch.attributes = vec![order(STREAM)];
        assert_eq!(batch.submit(stream), CUDA_SUCCESS);
        // SAFETY: hold's word.
        unsafe { release.write_volatile(1) };
        ok(cuStreamSynchronize(stream));
        assert_eq!(download(dst, bytes), src);
    });
}

/// Counts that no memory would be enough for: what can be read of the arrays decides.
#[test]
fn counts_beyond_all_memory() {
    alone(test_name!(), &[], || {
        context();
        let (stream, count) = (stream(), 1 << 46);
        let (mut dst, mut src, mut size) = (alloc(64), alloc(64), 64);
        let mut copies = |attributes: &mut Attributes, first: &mut usize| {
            let attributes = std::ptr::from_mut(attributes).cast();
            cuMemcpyBatchAsync(&mut dst, &mut src, &mut size, count, attributes, first, 1, stream)
        };
        assert_eq!(copies(&mut order(0), &mut 0), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(copies(&mut order(STREAM), &mut 1), CUDA_ERROR_INVALID_VALUE);
    });
}

fn at(pointer: CUdeviceptr, row: u64, height: u64) -> Operand {
    Operand {
        kind: POINTER,
        op: [pointer, row, height, 0],
    }
}

fn of_array(array: CUarray, [x, y, z]: [u64; 3]) -> Operand {
    Operand {
        kind: ARRAY,
        op: [array as u64, x, y, z],
    }
}

#[test]
fn boxes_go_between_pointers_and_arrays() {
    let context = context();
    let stream = stream();
    // 8 x 4 x 2 texels of two 16-bit channels.
    let mut array = null_mut();
    let descriptor = ArrayDescriptor {
        width: 8,
        height: 4,
        depth: 2,
        format: 2,
        channels: 2,
        flags: 0,
    };
    ok(cuArray3DCreate(&mut array, &descriptor));
    let source: Vec<u8> = (0..=255).collect();
    let (linear, back) = (upload(&source), alloc(512));
    ok(cuMemsetD8(back, 0xee, 512));
    ok(cuCtxSynchronize());
    let copy = |src, dst, extent| BoxCopy {
        src,
        dst,
        extent,
        order: STREAM,
        flags: 0,
    };
    // In elements of the array: packed in, part of it out into rows of 5 elements, layers of 3 rows.
    let mut list = [copy(at(linear, 0, 0), of_array(array, [0; 3]), [8, 4, 2])];
    ok(cuMemcpy3DBatchAsync(1, list.as_mut_ptr().cast(), 0, stream));
    let mut list = [
        copy(of_array(array, [2, 1, 0]), at(back, 5, 3), [3, 2, 2]),
        // Between pointers elements are bytes.
        copy(at(linear, 16, 0), at(back + 400, 0, 0), [4, 3, 1]),
    ];
    let mut fail_index = 777;
    ok(cuMemcpy3DBatchAsync_v1(
        2,
        list.as_mut_ptr().cast(),
        &mut fail_index,
        0,
        stream,
    ));
    ok(cuStreamSynchronize(stream));
    assert_eq!(fail_index, 777);
    let found = download(back, 512);
    let mut expected = vec![0xee_u8; 512];
    for z in 0..2 {
        for y in 0..2 {
            for byte in 0..12 {
                expected[(z * 3 + y) * 20 + byte] = (((z * 4 + y + 1) * 8 + 2) * 4 + byte) as u8;
            }
        }
    }
    for y in 0..3 {
        for x in 0..4 {
            expected[400 + y * 4 + x] = (y * 16 + x) as u8;
        }
    }
    assert_eq!(found, expected);

    // One with attributes, of an array to another one with elements of the same size.
    let (mut other, mut wider) = (null_mut(), null_mut());
    let words = ArrayDescriptor {
        format: 3,
        channels: 1,
        ..descriptor
    };
    ok(cuArray3DCreate(&mut other, &words));
    ok(cuArray3DCreate(&mut wider, &ArrayDescriptor { channels: 4, ..words }));
    let mut whole = copy(of_array(array, [0; 3]), of_array(other, [0; 3]), [8, 4, 2]);
    ok(cuMemcpy3DWithAttributesAsync((&raw mut whole).cast(), 0, stream));
    let mut out = copy(of_array(other, [0; 3]), at(back, 0, 0), [8, 4, 2]);
    ok(cuMemcpy3DWithAttributesAsync((&raw mut out).cast(), 0, stream));
    ok(cuStreamSynchronize(stream));
    assert_eq!(download(back, 256), source);

    // What is wrong, in the middle of what is right.
    let good = copy(at(linear, 0, 0), at(back, 0, 0), [16, 1, 1]);
    let wrong = [
        BoxCopy { order: 0, ..good },
        BoxCopy { flags: 2, ..good },
        BoxCopy {
            extent: [0, 1, 1],
            ..good
        },
        BoxCopy {
            extent: [16, 0, 1],
            ..good
        },
        BoxCopy {
            extent: [16, 1, 0],
            ..good
        },
        BoxCopy {
            extent: [1, 1, 1 << 40],
            ..good
        },
        copy(at(linear, 15, 0), at(back, 0, 0), [16, 2, 1]),
        copy(at(linear, 0, 1), at(back, 0, 0), [16, 2, 2]),
        copy(of_array(array, [7, 0, 0]), at(back, 0, 0), [2, 1, 1]),
        copy(of_array(array, [0; 3]), of_array(wider, [0; 3]), [8, 4, 2]),
        copy(of_array(null_mut(), [0; 3]), at(back, 0, 0), [8, 4, 2]),
        copy(
            Operand {
                kind: 3,
                ..at(linear, 0, 0)
            },
            at(back, 0, 0),
            [1, 1, 1],
        ),
        copy(at(linear, 0, 0), at(back + 4096, 0, 0), [1, 1, 1]),
    ];
    for bad in wrong {
        let mut list = [good, bad, good];
        let result = cuMemcpy3DBatchAsync_v1(3, list.as_mut_ptr().cast(), &mut fail_index, 0, stream);
        assert_eq!((result, fail_index), (CUDA_ERROR_INVALID_VALUE, 1), "{bad:?}");
        let mut bad = bad;
        let result = cuMemcpy3DWithAttributesAsync((&raw mut bad).cast(), 0, stream);
        assert_eq!(result, CUDA_ERROR_INVALID_VALUE);
    }
    let mut list = [good];
    let list: *mut c_void = list.as_mut_ptr().cast();
    for (count, list, flags, stream) in [
        (0, list, 0, stream),
        (1, null_mut(), 0, stream),
        (1, list, 1, stream),
        (1, list, 0, null_mut()),
    ] {
        assert_eq!(
            cuMemcpy3DBatchAsync_v1(count, list, &mut fail_index, flags, stream),
            CUDA_ERROR_INVALID_VALUE
        );
        assert_eq!(fail_index, usize::MAX);
        assert_eq!(
            cuMemcpy3DBatchAsync(count, list, flags, stream),
            CUDA_ERROR_INVALID_VALUE
        );
    }
    assert_eq!(cuMemcpy3DWithAttributesAsync(list, 1, stream), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(
        cuMemcpy3DWithAttributesAsync(null_mut(), 0, stream),
        CUDA_ERROR_INVALID_VALUE
    );
    ok(cuCtxDestroy(context));
}

#[test]
fn a_batch_is_one_node_of_a_graph() {
    let context = context();
    let stream = stream();
    let (a, b) = (upload(&[5; 64]), alloc(64));
    let mut batch = Batch {
        dsts: vec![b, b + 32],
        srcs: vec![a, a],
        sizes: vec![16, 16],
        attributes: vec![order(STREAM)],
        indices: vec![0],
    };
    let (mut graph, mut exec, mut node, mut count) = (null_mut(), null_mut(), null_mut(), 1);
    ok(cuStreamBeginCapture(stream, 2));
    ok(batch.submit(stream));
    ok(cuStreamEndCapture(stream, &mut graph));
    ok(cuGraphGetNodes(graph, &mut node, &mut count));
    let mut kind = 0;
    ok(cuGraphNodeGetType(node, &mut kind));
    assert_eq!((count, kind), (1, BATCH_NODE));
    let mut found: BatchNode = zeroed();
    ok(cuGraphNodeGetParams(node, (&raw mut found).cast()));
    assert_eq!((found.kind, found.count, found.context), (BATCH_NODE, 2, context));
    // SAFETY: as many as it says.
    let list = unsafe { std::slice::from_raw_parts(found.dsts, 2) };
    assert_eq!(list, [b, b + 32]);
    ok(cuGraphInstantiate(&mut exec, graph, 0));
    ok(cuMemsetD8(b, 0, 64));
    ok(cuCtxSynchronize());
    ok(cuGraphLaunch(exec, stream));
    ok(cuStreamSynchronize(stream));
    let expected = |parts: [u8; 4]| parts.iter().flat_map(|byte| [*byte; 16]).collect::<Vec<_>>();
    assert_eq!(download(b, 64), expected([5, 0, 5, 0]));
    // Pointers and sizes can be changed, 0 disables a copy; how many there are, and their attributes, stay (manual).
    batch.dsts = vec![b, b + 16];
    batch.sizes = vec![0, 16];
    let mut change = batch.node();
    ok(cuGraphExecNodeSetParams(exec, node, (&raw mut change).cast()));
    ok(cuMemsetD8(b, 0, 64));
    ok(cuCtxSynchronize());
    ok(cuGraphLaunch(exec, stream));
    ok(cuStreamSynchronize(stream));
    assert_eq!(download(b, 64), expected([0, 5, 0, 0]));
    let mut fewer = BatchNode { count: 1, ..change };
    assert_eq!(
        cuGraphExecNodeSetParams(exec, node, (&raw mut fewer).cast()),
        CUDA_ERROR_INVALID_VALUE
    );
    batch.attributes[0].order = ANY;
    let mut another = batch.node();
    assert_eq!(
        cuGraphExecNodeSetParams(exec, node, (&raw mut another).cast()),
        CUDA_ERROR_INVALID_VALUE
    );
    ok(cuGraphNodeSetParams(node, (&raw mut another).cast()));
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroy(graph));
    // Added by itself.
    ok(cuGraphCreate(&mut graph, 0));
    batch.sizes = vec![16, 16];
    let mut own = batch.node();
    ok(cuGraphAddNode(
        &mut node,
        graph,
        std::ptr::null(),
        std::ptr::null(),
        0,
        (&raw mut own).cast(),
    ));
    ok(cuGraphInstantiate(&mut exec, graph, 0));
    ok(cuGraphLaunch(exec, stream));
    ok(cuStreamSynchronize(stream));
    assert_eq!(download(b, 64), expected([5, 5, 0, 0]));
    let mut broken = [
        BatchNode { count: 0, ..own },
        BatchNode { parts: 0, ..own },
        BatchNode { parts: 3, ..own },
        BatchNode {
            dsts: null_mut(),
            ..own
        },
        BatchNode { rest: [1; 22], ..own },
    ];
    for record in &mut broken {
        let result = cuGraphAddNode(
            &mut node,
            graph,
            std::ptr::null(),
            std::ptr::null(),
            0,
            std::ptr::from_mut(record).cast(),
        );
        assert_eq!(result, CUDA_ERROR_INVALID_VALUE);
    }
    // What has to be read during the call cannot be part of a graph.
    batch.attributes[0].order = DURING_CALL;
    ok(cuStreamBeginCapture(stream, 2));
    assert_eq!(batch.submit(stream), 900);
    assert_eq!(cuStreamEndCapture(stream, &mut graph), CUDA_SUCCESS);
    ok(cuCtxDestroy(context));
}
