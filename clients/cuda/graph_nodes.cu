// Graphs built node by node through the runtime: kernels, copies of one and more dimensions, sets, host functions, child
// graphs, events, memory; changes to what has been instantiated.
#include "check.h"

#include <cstring>
#include <vector>

__global__ void affine(int *data, int n, int by, int plus)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] = data[i] * by + plus;
}

static int host_value;
static void CUDART_CB store(void *value) { host_value = *(int *)value; }

static cudaKernelNodeParams kernel(void **arguments, int n)
{
    cudaKernelNodeParams params = {};
    params.func = (void *)affine;
    params.gridDim = dim3((n + 127) / 128);
    params.blockDim = dim3(128);
    params.kernelParams = arguments;
    return params;
}

int main()
{
    const int n = 1000;
    size_t bytes = n * sizeof(int);
    int *data;
    CUDA(cudaMalloc(&data, bytes));
    std::vector<int> in(n), out(n);
    for (int i = 0; i < n; i++) in[i] = i * 7 - 300;

    cudaGraph_t graph, child;
    CUDA(cudaGraphCreate(&graph, 0));
    CUDA(cudaGraphCreate(&child, 0));
    cudaGraphNode_t up, first, inside, embedded, down, host;
    CUDA(cudaGraphAddMemcpyNode1D(&up, graph, nullptr, 0, data, in.data(), bytes, cudaMemcpyHostToDevice));
    int size = n, by = 3, plus = 11, by_inside = -2, plus_inside = 5;
    void *arguments[] = {&data, &size, &by, &plus}, *arguments_inside[] = {&data, &size, &by_inside, &plus_inside};
    cudaKernelNodeParams params = kernel(arguments, n), params_inside = kernel(arguments_inside, n);
    CUDA(cudaGraphAddKernelNode(&first, graph, &up, 1, &params));
    CUDA(cudaGraphAddKernelNode(&inside, child, nullptr, 0, &params_inside));
    CUDA(cudaGraphAddChildGraphNode(&embedded, graph, &first, 1, child));
    CUDA(cudaGraphAddMemcpyNode1D(&down, graph, &embedded, 1, out.data(), data, bytes, cudaMemcpyDeviceToHost));
    int number = 42;
    cudaHostNodeParams call = {store, &number};
    CUDA(cudaGraphAddHostNode(&host, graph, &down, 1, &call));

    cudaKernelNodeParams found = {};
    CUDA(cudaGraphKernelNodeGetParams(first, &found));
    EXPECT(found.func == (void *)affine);
    EXPECT_EQ(found.gridDim.x, params.gridDim.x);
    EXPECT_EQ(*(int *)found.kernelParams[3], 11);

    cudaGraphExec_t exec;
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    cudaStream_t stream;
    CUDA(cudaStreamCreate(&stream));
    auto check = [&](int by, int plus) {
        memset(out.data(), 0, bytes);
        CUDA(cudaGraphLaunch(exec, stream));
        CUDA(cudaStreamSynchronize(stream));
        for (int i = 0; i < n; i++) EXPECT_EQ(out[i], (in[i] * by + plus) * -2 + 5);
    };
    check(3, 11);
    EXPECT_EQ(host_value, 42);
    by = 10, plus = -1;
    CUDA(cudaGraphExecKernelNodeSetParams(exec, first, &params));
    check(10, -1);
    // The whole graph, with the node itself changed.
    by = 4, plus = 2;
    CUDA(cudaGraphKernelNodeSetParams(first, &params));
#if CUDART_VERSION >= 12000
    cudaGraphExecUpdateResultInfo info;
    CUDA(cudaGraphExecUpdate(exec, graph, &info));
    EXPECT_EQ(info.result, cudaGraphExecUpdateSuccess);
#else
    cudaGraphNode_t node;
    cudaGraphExecUpdateResult result;
    CUDA(cudaGraphExecUpdate(exec, graph, &node, &result));
    EXPECT_EQ(result, cudaGraphExecUpdateSuccess);
#endif
    check(4, 2);

    // Two dimensions: a set of a rectangle, copied out with other pitches.
    cudaGraph_t plane;
    CUDA(cudaGraphCreate(&plane, 0));
    char *pitched;
    size_t pitch;
    const int width = 100, height = 9;
    CUDA(cudaMallocPitch(&pitched, &pitch, width, height));
    cudaMemsetParams set = {};
    set.dst = pitched;
    set.pitch = pitch;
    set.value = 0x1234;
    set.elementSize = 2;
    set.width = width / 2;
    set.height = height;
    cudaGraphNode_t set_node, copy_node;
    CUDA(cudaGraphAddMemsetNode(&set_node, plane, nullptr, 0, &set));
    std::vector<unsigned char> rectangle(120 * height, 0xee);
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr(pitched, pitch, width, height);
    copy.dstPtr = make_cudaPitchedPtr(rectangle.data(), 120, width, height);
    copy.extent = make_cudaExtent(width, height, 1);
    copy.kind = cudaMemcpyDeviceToHost;
    CUDA(cudaGraphAddMemcpyNode(&copy_node, plane, &set_node, 1, &copy));
    cudaMemcpy3DParms copy_found = {};
    CUDA(cudaGraphMemcpyNodeGetParams(copy_node, &copy_found));
    EXPECT_EQ(copy_found.dstPtr.pitch, 120);
    EXPECT_EQ(copy_found.extent.height, height);
    cudaGraphExec_t plane_exec;
    CUDA(cudaGraphInstantiate(&plane_exec, plane, 0));
    CUDA(cudaGraphLaunch(plane_exec, stream));
    CUDA(cudaStreamSynchronize(stream));
    for (int y = 0; y < height; y++)
        for (int x = 0; x < 120; x++)
            EXPECT_EQ(rectangle[y * 120 + x], x >= width ? 0xee : x % 2 ? 0x12 : 0x34);

    // Memory of the graph's own.
    cudaGraph_t owner;
    CUDA(cudaGraphCreate(&owner, 0));
    cudaMemAllocNodeParams alloc = {};
    alloc.poolProps.allocType = cudaMemAllocationTypePinned;
    alloc.poolProps.location.type = cudaMemLocationTypeDevice;
    alloc.bytesize = bytes;
    cudaGraphNode_t alloc_node, use, back, free_node;
    CUDA(cudaGraphAddMemAllocNode(&alloc_node, owner, nullptr, 0, &alloc));
    int *memory = (int *)alloc.dptr;
    CUDA(cudaGraphAddMemcpyNode1D(&up, owner, &alloc_node, 1, memory, in.data(), bytes, cudaMemcpyHostToDevice));
    by = 2, plus = 1;
    void *arguments_own[] = {&memory, &size, &by, &plus};
    cudaKernelNodeParams params_own = kernel(arguments_own, n);
    CUDA(cudaGraphAddKernelNode(&use, owner, &up, 1, &params_own));
    CUDA(cudaGraphAddMemcpyNode1D(&back, owner, &use, 1, out.data(), memory, bytes, cudaMemcpyDeviceToHost));
    CUDA(cudaGraphAddMemFreeNode(&free_node, owner, &back, 1, memory));
    cudaGraphExec_t owner_exec;
    CUDA(cudaGraphInstantiate(&owner_exec, owner, 0));
    for (int round = 0; round < 3; round++) {
        memset(out.data(), 0, bytes);
        CUDA(cudaGraphLaunch(owner_exec, stream));
        CUDA(cudaStreamSynchronize(stream));
        for (int i = 0; i < n; i++) EXPECT_EQ(out[i], in[i] * 2 + 1);
    }
    CUDA(cudaGraphExecDestroy(owner_exec));
    CUDA(cudaGraphDestroy(owner));
    CUDA(cudaGraphExecDestroy(plane_exec));
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaGraphDestroy(graph));
    return pass();
}
