// Kernels with a mistake each, for tests of what `margay check` looks at: `filters NAME…` launches them one after the other, each on
// memory of its own, and prints how each launch ended. `graph N NAME` launches a graph of one N times.

#include <cstdio>
#include <cstdlib>
#include <cstring>

// Memory has room for 31 threads of 32.
__global__ void past_the_end(int *x) { x[threadIdx.x] = 1; }

__global__ void past_its_array(int *x)
{
    __shared__ int one[32], two[32];
    one[threadIdx.x] = two[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x < 31) x[threadIdx.x] = one[threadIdx.x + 2] + two[threadIdx.x];
}

__global__ void races(int *x)
{
    __shared__ int tile[64];
    tile[threadIdx.x] = threadIdx.x;
    if (threadIdx.x < 31) x[threadIdx.x] = tile[63 - threadIdx.x];
}

// Two warps write the same words.
__global__ void races_by_one_line(int *x)
{
    if (threadIdx.x % 32 < 31) x[threadIdx.x % 32] = threadIdx.x;
}

// Writes half of what `decides` looks at.
__global__ void writes(int *x)
{
    if (threadIdx.x < 16) x[threadIdx.x] = threadIdx.x;
}

__global__ void decides(int *x)
{
    if (threadIdx.x < 16 && x[threadIdx.x] == 7) x[30] = 1;
}

__global__ void decides_too_far(int *x)
{
    if (threadIdx.x < 31 && x[threadIdx.x] == 7) x[30] = 1;
}

// Threads of different blocks, or warps, write the same word.
__global__ void counts(int *x) { *x = *x + 1; }

__global__ void shuffles(int *x)
{
    if (threadIdx.x < 16) x[threadIdx.x] += __shfl_xor_sync(0xffffffff, x[threadIdx.x], 1);
    __syncthreads();
}

__global__ void roots(int *x)
{
    float *y = reinterpret_cast<float *>(x);
    if (threadIdx.x < 31) y[threadIdx.x] = sqrtf(threadIdx.x - 3.0f);
}

template <class T> __global__ void past_the_end_of(T *x, int) { x[threadIdx.x] = 1; }

typedef void (*Kernel)(int *);

static Kernel of(const char *name)
{
    static const struct { const char *name; Kernel kernel; } all[] = {
        {"past_the_end", past_the_end}, {"past_its_array", past_its_array}, {"races", races},
        {"races_by_one_line", races_by_one_line}, {"writes", writes}, {"decides", decides},
        {"decides_too_far", decides_too_far}, {"counts", counts}, {"shuffles", shuffles}, {"roots", roots},
    };
    for (auto &each : all)
        if (!strcmp(each.name, name)) return each.kernel;
    fprintf(stderr, "no kernel %s\n", name);
    exit(9);
}

static int *memory(bool is_set)
{
    int *x;
    cudaMalloc(&x, 31 * sizeof(int));
    if (is_set) cudaMemset(x, 0, 31 * sizeof(int));
    return x;
}

static void launch(Kernel kernel, int *x)
{
    bool is_wide = kernel == races || kernel == races_by_one_line;
    kernel<<<kernel == counts ? 8 : 1, is_wide ? 64 : 32>>>(x);
}

int main(int argc, char **argv)
{
    if (!strcmp(argv[1], "graph")) {
        cudaStream_t stream;
        cudaGraph_t graph;
        cudaGraphExec_t exec;
        int *x = memory(true);
        cudaStreamCreate(&stream);
        cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
        of(argv[3])<<<1, 32, 0, stream>>>(x);
        cudaStreamEndCapture(stream, &graph);
        cudaGraphInstantiate(&exec, graph, 0);
        for (int i = 0; i < atoi(argv[2]); i++) {
            cudaGraphLaunch(exec, stream);
            puts(cudaGetErrorString(cudaStreamSynchronize(stream)));
        }
        return 0;
    }
    if (!strcmp(argv[1], "templates")) {
        float *x;
        cudaMalloc(&x, 31 * sizeof(float));
        past_the_end_of<<<1, 32>>>(x, 1);
        puts(cudaGetErrorString(cudaDeviceSynchronize()));
        return 0;
    }
    if (!strcmp(argv[1], "streams")) {
        // The copy does not wait for the kernel.
        cudaStream_t one, two;
        int *x = memory(true), *host;
        cudaMallocHost(&host, 31 * sizeof(int));
        cudaStreamCreate(&one);
        cudaStreamCreate(&two);
        writes<<<1, 32, 0, one>>>(x);
        cudaMemcpyAsync(host, x, 31 * sizeof(int), cudaMemcpyDeviceToHost, two);
        puts(cudaGetErrorString(cudaDeviceSynchronize()));
        return 0;
    }
    int *shared = memory(false);
    for (int i = 1; i < argc; i++) {
        bool is_init = !strncmp(argv[i], "writes", 6) || !strncmp(argv[i], "decides", 7);
        launch(of(argv[i]), is_init ? shared : memory(true));
        puts(cudaGetErrorString(cudaDeviceSynchronize()));
    }
    return 0;
}
