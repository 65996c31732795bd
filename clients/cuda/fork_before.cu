// fork before the first CUDA call: parent and children each initialise for themselves and work.
#include "check.h"

#include <sys/wait.h>

__global__ void square(int *data) { data[threadIdx.x] *= data[threadIdx.x]; }

static void compute(int seed)
{
    int *data, host[64];
    for (int i = 0; i < 64; i++) host[i] = seed + i;
    CUDA(cudaMalloc(&data, sizeof host));
    CUDA(cudaMemcpy(data, host, sizeof host, cudaMemcpyHostToDevice));
    square<<<1, 64>>>(data);
    LAUNCHED();
    CUDA(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 64; i++) EXPECT_EQ(host[i], (seed + i) * (seed + i));
}

int main()
{
    pid_t children[3];
    for (int c = 0; c < 3; c++) {
        fflush(stdout);
        children[c] = fork();
        if (children[c] == 0) {
            compute(100 * c);
            exit(0); // runs cudart's own end-of-process work too
        }
    }
    compute(7);
    for (pid_t child : children) {
        int status;
        EXPECT(waitpid(child, &status, 0) == child);
        if (!WIFEXITED(status) || WEXITSTATUS(status)) fail("a child ended with status %#x", status);
    }
    compute(9);
    return pass();
}
