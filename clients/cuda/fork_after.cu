// fork after the parent used CUDA: in the child every call says "initialization error", as NVIDIA documents; the
// parent goes on, and a child that starts a new program is free of it.
#include "check.h"

#include <sys/wait.h>

__global__ void square(int *data) { data[threadIdx.x] *= data[threadIdx.x]; }

static cudaError_t compute(int seed)
{
    int *data, host[64];
    cudaError_t error;
    for (int i = 0; i < 64; i++) host[i] = seed + i;
    if ((error = cudaMalloc(&data, sizeof host))) return error;
    if ((error = cudaMemcpy(data, host, sizeof host, cudaMemcpyHostToDevice))) return error;
    square<<<1, 64>>>(data);
    if ((error = cudaGetLastError())) return error;
    if ((error = cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost))) return error;
    for (int i = 0; i < 64; i++) EXPECT_EQ(host[i], (seed + i) * (seed + i));
    return cudaFree(data);
}

int main(int argc, char **argv)
{
    if (argc > 1) return compute(5) == cudaSuccess ? 0 : 1;
    CUDA(compute(1));
    fflush(stdout);
    for (int again = 0; again < 2; again++) {
        pid_t child = fork();
        if (child == 0) {
            if (again) {
                execl("/proc/self/exe", argv[0], "again", (char *)nullptr);
                _exit(99);
            }
            EXPECT_ERROR(compute(2), cudaErrorInitializationError);
            EXPECT_ERROR(cudaDeviceSynchronize(), cudaErrorInitializationError);
            exit(0);
        }
        int status;
        EXPECT(waitpid(child, &status, 0) == child);
        if (!WIFEXITED(status) || WEXITSTATUS(status)) fail("child %d ended with status %#x", again, status);
        CUDA(compute(3));
    }
    return pass();
}
