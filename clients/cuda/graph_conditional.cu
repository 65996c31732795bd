// Conditional nodes: a loop whose kernel decides how long it goes on, and a branch (CUDA 12.3 and later).
#include "check.h"

__global__ void collatz(cudaGraphConditionalHandle handle, unsigned long long *value, int *steps)
{
    unsigned long long v = *value;
    *value = v % 2 ? 3 * v + 1 : v / 2;
    ++*steps;
    cudaGraphSetConditional(handle, *value != 1);
}

__global__ void decide(cudaGraphConditionalHandle handle, const int *steps) { cudaGraphSetConditional(handle, *steps > 100); }

__global__ void mark(int *where, int what) { *where = what; }

static cudaGraphNode_t kernel(cudaGraph_t graph, cudaGraphNode_t before, void *function, void **arguments)
{
    cudaKernelNodeParams params = {};
    params.func = function;
    params.gridDim = params.blockDim = dim3(1);
    params.kernelParams = arguments;
    cudaGraphNode_t node;
    CUDA(cudaGraphAddKernelNode(&node, graph, before ? &before : nullptr, before ? 1 : 0, &params));
    return node;
}

static cudaGraphNode_t conditional(cudaGraph_t graph, cudaGraphNode_t before, cudaGraphConditionalHandle handle,
                                   cudaGraphConditionalNodeType type, cudaGraph_t *body)
{
    cudaGraphNodeParams params = {cudaGraphNodeTypeConditional};
    params.conditional.handle = handle;
    params.conditional.type = type;
    params.conditional.size = 1;
    cudaGraphNode_t node;
#if CUDART_VERSION >= 13000
    CUDA(cudaGraphAddNode(&node, graph, before ? &before : nullptr, nullptr, before ? 1 : 0, &params));
#else
    CUDA(cudaGraphAddNode(&node, graph, before ? &before : nullptr, before ? 1 : 0, &params));
#endif
    *body = params.conditional.phGraph_out[0];
    return node;
}

int main()
{
    unsigned long long *value;
    int *steps, *large;
    CUDA(cudaMallocManaged(&value, sizeof *value));
    CUDA(cudaMallocManaged(&steps, sizeof *steps));
    CUDA(cudaMallocManaged(&large, sizeof *large));
    cudaGraph_t graph, body, then;
    CUDA(cudaGraphCreate(&graph, 0));
    cudaGraphConditionalHandle loop, branch;
    CUDA(cudaGraphConditionalHandleCreate(&loop, graph, 1, cudaGraphCondAssignDefault));
    CUDA(cudaGraphConditionalHandleCreate(&branch, graph, 0, 0));
    cudaGraphNode_t looping = conditional(graph, nullptr, loop, cudaGraphCondTypeWhile, &body);
    void *arguments[] = {&loop, &value, &steps};
    kernel(body, nullptr, (void *)collatz, arguments);
    void *arguments_decide[] = {&branch, &steps};
    cudaGraphNode_t deciding = kernel(graph, looping, (void *)decide, arguments_decide);
    conditional(graph, deciding, branch, cudaGraphCondTypeIf, &then);
    int yes = 1;
    void *arguments_mark[] = {&large, &yes};
    kernel(then, nullptr, (void *)mark, arguments_mark);
    cudaGraphExec_t exec;
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    for (unsigned long long start : {2ull, 7ull, 27ull, 97ull, 6171ull}) {
        int expected = 0;
        for (unsigned long long v = start; v != 1; expected++) v = v % 2 ? 3 * v + 1 : v / 2;
        *value = start;
        *steps = 0;
        *large = 0;
        CUDA(cudaGraphLaunch(exec, 0));
        CUDA(cudaDeviceSynchronize());
        EXPECT_EQ(*steps, expected);
        EXPECT_EQ(*large, expected > 100);
    }
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaGraphDestroy(graph));
    return pass();
}
