// nvcc: -rdc=true
// Graphs that kernels launch (to be forgotten, as a tail, as siblings) and kernel nodes that kernels change.
#include "check.h"

__device__ cudaGraphExec_t launched[4];
__device__ int results[64];

__global__ void append(int *log, int what)
{
    log[1 + atomicAdd(log, 1)] = what;
}

// Launches graph `which` through a stream of its own kind.
__global__ void launch(int *log, int what, int which, cudaStream_t stream, int slot)
{
    log[1 + atomicAdd(log, 1)] = what;
    results[slot] = cudaGraphLaunch(launched[which], stream);
}

__global__ void current(cudaGraphExec_t *out)
{
    *out = cudaGetCurrentGraphExec();
}

// A graph that comes again as long as there is something left.
__global__ void again(int *left)
{
    if (--*left > 0) results[40] = cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphTailLaunch);
    results[41] = cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphFireAndForget);
}

__device__ cudaGraphDeviceNode_t node_of_graph;

__global__ void set_value(int *out, int value)
{
    out[blockIdx.x] += value;
}

__global__ void change(int *step, int value)
{
    switch ((*step)++) {
    case 0: results[50] = cudaGraphKernelNodeSetParam(node_of_graph, 8, &value, sizeof value); break;
    case 1: results[51] = cudaGraphKernelNodeSetGridDim(node_of_graph, dim3(3)); break;
    case 2: results[52] = cudaGraphKernelNodeSetEnabled(node_of_graph, false); break;
    default: {
        alignas(cudaGraphKernelNodeUpdate) char raw[3 * sizeof(cudaGraphKernelNodeUpdate)] = {};
        cudaGraphKernelNodeUpdate *updates = (cudaGraphKernelNodeUpdate *)raw;
        int other = 1000;
        for (int i = 0; i < 3; i++) updates[i].node = node_of_graph;
        updates[0].field = cudaGraphKernelNodeFieldEnabled;
        updates[0].updateData.isEnabled = 1;
        updates[1].field = cudaGraphKernelNodeFieldGridDim;
        updates[1].updateData.gridDim = dim3(2);
        updates[2].field = cudaGraphKernelNodeFieldParam;
        updates[2].updateData.param.pValue = &other;
        updates[2].updateData.param.offset = 8;
        updates[2].updateData.param.size = sizeof other;
        results[53] = cudaGraphKernelNodeUpdatesApply(updates, 3);
        results[54] = cudaGraphKernelNodeSetParam(node_of_graph, 4096, &other, sizeof other);
        results[55] = cudaGraphKernelNodeSetGridDim((cudaGraphDeviceNode_t)0x1234, dim3(1));
    }
    }
}

template <class... A> cudaGraphNode_t add(cudaGraph_t graph, cudaGraphNode_t before, void (*kernel)(A...), A... values)
{
    void *pointers[] = {&values...};
    cudaKernelNodeParams params = {};
    params.func = (void *)kernel;
    params.gridDim = params.blockDim = dim3(1);
    params.kernelParams = pointers;
    cudaGraphNode_t node;
    CUDA(cudaGraphAddKernelNode(&node, graph, before ? &before : nullptr, before ? 1 : 0, &params));
    return node;
}

cudaGraphExec_t instantiate(cudaGraph_t graph, unsigned flags = cudaGraphInstantiateFlagDeviceLaunch)
{
    cudaGraphExec_t exec;
    CUDA(cudaGraphInstantiate(&exec, graph, flags));
    return exec;
}

int result(int slot)
{
    int all[64];
    CUDA(cudaMemcpyFromSymbol(all, results, sizeof all));
    return all[slot];
}

int main()
{
    int *log;
    CUDA(cudaMallocManaged(&log, 4096));
    cudaStream_t stream;
    CUDA(cudaStreamCreate(&stream));

    // Child: 20, 21. Tail: 30. Parent: 10 (launches the tail), 11 (launches the child), 12.
    cudaGraph_t child, tail, parent;
    CUDA(cudaGraphCreate(&child, 0));
    CUDA(cudaGraphCreate(&tail, 0));
    CUDA(cudaGraphCreate(&parent, 0));
    cudaGraphNode_t node = add(child, nullptr, append, log, 20);
    add(child, node, append, log, 21);
    add(tail, nullptr, append, log, 30);
    cudaStream_t tail_stream = cudaStreamGraphTailLaunch, forget = cudaStreamGraphFireAndForget;
    node = add(parent, nullptr, launch, log, 10, 1, tail_stream, 0);
    node = add(parent, node, launch, log, 11, 0, forget, 1);
    node = add(parent, node, append, log, 12);
    node = add(parent, node, launch, log, 13, 3, forget, 2);
    add(parent, node, launch, log, 14, 0, (cudaStream_t)nullptr, 3);
    cudaGraphExec_t execs[4] = {instantiate(child), instantiate(tail), instantiate(parent), nullptr};
    CUDA(cudaMemcpyToSymbol(launched, execs, sizeof execs));

    // Not uploaded: refused.
    *log = 0;
    CUDA(cudaGraphLaunch(execs[2], stream));
    CUDA(cudaStreamSynchronize(stream));
    EXPECT_EQ(result(0), cudaErrorInvalidValue);
    EXPECT_EQ(result(1), cudaErrorInvalidValue);

    CUDA(cudaGraphUpload(execs[0], stream));
    CUDA(cudaGraphUpload(execs[1], stream));
    for (int round = 0; round < 3; round++) {
        *log = 0;
        CUDA(cudaGraphLaunch(execs[2], stream));
        CUDA(cudaStreamSynchronize(stream));
        EXPECT_EQ(result(0), cudaSuccess);
        EXPECT_EQ(result(1), cudaSuccess);
        EXPECT_EQ(result(2), cudaErrorInvalidValue);
        EXPECT_EQ(result(3), cudaErrorInvalidValue);
        EXPECT_EQ(log[0], 8);
        int place[40] = {};
        for (int i = 1; i <= 8; i++) place[log[i]] = i;
        for (int what : {10, 11, 12, 13, 14, 20, 21, 30}) EXPECT(place[what] != 0);
        EXPECT(place[10] < place[11] && place[11] < place[12] && place[20] < place[21]);
        EXPECT(place[11] < place[20] && place[30] == 8);
    }

    // A sibling of a graph that was itself launched to be forgotten.
    cudaGraph_t middle, top;
    CUDA(cudaGraphCreate(&middle, 0));
    CUDA(cudaGraphCreate(&top, 0));
    cudaStream_t sibling = cudaStreamGraphFireAndForgetAsSibling;
    node = add(middle, nullptr, launch, log, 40, 0, sibling, 10);
    add(middle, node, launch, log, 41, 1, tail_stream, 11);
    cudaGraphExec_t middle_exec = instantiate(middle, cudaGraphInstantiateFlagDeviceLaunch | cudaGraphInstantiateFlagUpload);
    add(top, nullptr, launch, log, 50, 3, forget, 12);
    cudaGraphExec_t top_exec = instantiate(top);
    execs[3] = middle_exec;
    CUDA(cudaMemcpyToSymbol(launched, execs, sizeof execs));
    *log = 0;
    CUDA(cudaGraphLaunch(top_exec, stream));
    CUDA(cudaStreamSynchronize(stream));
    for (int slot : {10, 11, 12}) EXPECT_EQ(result(slot), cudaSuccess);
    EXPECT_EQ(log[0], 6);

    // Which graph is running: itself; outside of any, none; a graph for the host alone does not say.
    cudaGraphExec_t *seen = (cudaGraphExec_t *)(log + 512);
    cudaGraph_t who;
    CUDA(cudaGraphCreate(&who, 0));
    add(who, nullptr, current, seen);
    cudaGraphExec_t who_exec = instantiate(who);
    CUDA(cudaGraphLaunch(who_exec, stream));
    CUDA(cudaStreamSynchronize(stream));
    EXPECT(*seen == who_exec);
    current<<<1, 1, 0, stream>>>(seen);
    CUDA(cudaStreamSynchronize(stream));
    EXPECT(*seen == nullptr);

    // Over and over.
    cudaGraph_t loop;
    CUDA(cudaGraphCreate(&loop, 0));
    add(loop, nullptr, again, log);
    cudaGraphExec_t loop_exec = instantiate(loop);
    *log = 5000;
    CUDA(cudaGraphLaunch(loop_exec, stream));
    CUDA(cudaStreamSynchronize(stream));
    EXPECT_EQ(*log, 0);
    EXPECT_EQ(result(40), cudaSuccess);
    EXPECT_EQ(result(41), cudaErrorInvalidValue);

    // A kernel launched by hand is in no graph.
    launch<<<1, 1, 0, stream>>>(log, 1, 0, forget, 20);
    CUDA(cudaStreamSynchronize(stream));
    EXPECT_EQ(result(20), cudaErrorInvalidValue);

    // A node that another one changes, in the same launch.
    int *out = log + 600, *step = log + 700;
    for (int i = 0; i < 200; i++) out[i] = 0;
    cudaGraph_t changing;
    CUDA(cudaGraphCreate(&changing, 0));
    cudaGraphNode_t first = add(changing, nullptr, change, step, 7);
    cudaGraphNode_t second = add(changing, first, set_value, out, 1);
    cudaKernelNodeAttrValue value = {};
    value.deviceUpdatableKernelNode.deviceUpdatable = 1;
    CUDA(cudaGraphKernelNodeSetAttribute(second, cudaLaunchAttributeDeviceUpdatableKernelNode, &value));
    CUDA(cudaGraphKernelNodeGetAttribute(second, cudaLaunchAttributeDeviceUpdatableKernelNode, &value));
    EXPECT(value.deviceUpdatableKernelNode.deviceUpdatable == 1 && value.deviceUpdatableKernelNode.devNode != nullptr);
    CUDA(cudaMemcpyToSymbol(node_of_graph, &value.deviceUpdatableKernelNode.devNode, sizeof(void *)));
    // There is no way back, and there are no two of it.
    cudaKernelNodeAttrValue off = {};
    EXPECT_EQ(cudaGraphKernelNodeSetAttribute(second, cudaLaunchAttributeDeviceUpdatableKernelNode, &off),
              cudaErrorInvalidValue);
    EXPECT_EQ(cudaGraphDestroyNode(second), cudaErrorInvalidValue);
    EXPECT_EQ(cudaGraphKernelNodeCopyAttributes(first, second), cudaErrorInvalidValue);
    cudaGraphExec_t changing_exec = instantiate(changing, 0), another;
    EXPECT_EQ(cudaGraphInstantiate(&another, changing, 0), cudaErrorInvalidValue);
    CUDA(cudaGraphUpload(changing_exec, stream));
    const int expected[][3] = {{7, 0, 0}, {14, 7, 7}, {14, 7, 7}, {1014, 1007, 7}};
    for (auto &row : expected) {
        CUDA(cudaGraphLaunch(changing_exec, stream));
        CUDA(cudaStreamSynchronize(stream));
        for (int i = 0; i < 3; i++) EXPECT_EQ(out[i], row[i]);
    }
    for (int slot = 50; slot < 54; slot++) EXPECT_EQ(result(slot), cudaSuccess);
    EXPECT_EQ(result(54), cudaErrorInvalidValue);
    EXPECT_EQ(result(55), cudaErrorInvalidValue);

    // The same by capturing.
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeDeviceUpdatableKernelNode;
    attribute.val.deviceUpdatableKernelNode.deviceUpdatable = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = config.blockDim = dim3(1);
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    CUDA(cudaLaunchKernelEx(&config, set_value, out + 10, 3));
    cudaGraph_t captured;
    CUDA(cudaStreamEndCapture(stream, &captured));
    EXPECT(attribute.val.deviceUpdatableKernelNode.devNode != nullptr);
    CUDA(cudaMemcpyToSymbol(node_of_graph, &attribute.val.deviceUpdatableKernelNode.devNode, sizeof(void *)));
    cudaGraphExec_t captured_exec = instantiate(captured, 0);
    *step = 0;
    change<<<1, 1, 0, stream>>>(step, 77);
    CUDA(cudaGraphLaunch(captured_exec, stream));
    CUDA(cudaStreamSynchronize(stream));
    EXPECT_EQ(out[10], 77);
    return pass();
}
