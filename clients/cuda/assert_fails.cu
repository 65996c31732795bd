// finds kernel in picky(*: it fails on purpose
// A failing assert: CUDA's line on stderr, error 710, and an error that sticks to the context.
#include "check.h"

#include <cassert>

__global__ void picky(int *data, int limit)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    data[i] = i;
    assert(i < limit && "within the limit");
}

int main()
{
    int *data;
    CUDA(cudaMalloc(&data, 256 * sizeof(int)));
    picky<<<4, 64>>>(data, 1000); // holds
    FINISHED();

    Captured err(STDERR_FILENO);
    picky<<<4, 64>>>(data, 3 * 64 + 63); // fails for block 3, thread 63 alone
    cudaError_t launch = cudaGetLastError(), sync = cudaDeviceSynchronize();
    const char *message = err.text();
    EXPECT_EQ(launch, cudaSuccess);
    EXPECT_EQ(sync, cudaErrorAssert);
    const char *parts[] = {"assert_fails.cu:", "picky", "block: [3,0,0], thread: [63,0,0] Assertion `",
                           "within the limit", "` failed."};
    const char *at = message;
    for (const char *part : parts) {
        at = strstr(at, part);
        if (!at) fail("no \"%s\" in the message \"%s\"", part, message);
    }
    // Sticky: everything that touches the context says the same, until the device is reset.
    EXPECT_ERROR(cudaDeviceSynchronize(), cudaErrorAssert);
    void *more;
    EXPECT_ERROR(cudaMalloc(&more, 16), cudaErrorAssert);
    int value;
    EXPECT_ERROR(cudaMemcpy(&value, data, sizeof value, cudaMemcpyDeviceToHost), cudaErrorAssert);
    picky<<<1, 1>>>(data, 1000);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorAssert);
    return pass();
}
