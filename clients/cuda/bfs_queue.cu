// older nvcc: -arch=sm_75
// Breadth-first search with a work queue in global memory: warps of several blocks take work that other warps produce
// and spin while there is none; and a spin lock taken by every lane.
#include "check.h"

#include <vector>

struct Queue {
    int head, tail, pending;
    int items[1 << 16];
};

__global__ void search(const int *starts, const int *edges, int *seen, int *parents, Queue *queue)
{
    // One warp per item; the lanes share the item's edges.
    int lane = threadIdx.x & 31;
    for (;;) {
        int item = -1;
        if (lane == 0) {
            for (;;) {
                // Nothing queued or in work: the search is over.
                if (atomicAdd(&queue->pending, 0) == 0) break;
                int head = atomicAdd(&queue->head, 0);
                if (head < atomicAdd(&queue->tail, 0) && atomicCAS(&queue->head, head, head + 1) == head) {
                    // The slot was reserved before it was written: wait for its content.
                    while ((item = atomicAdd(&queue->items[head], 0)) < 0) __nanosleep(20);
                    break;
                }
            }
        }
        item = __shfl_sync(0xFFFFFFFF, item, 0);
        if (item < 0) return;
        for (int e = starts[item] + lane; e < starts[item + 1]; e += 32) {
            int to = edges[e];
            if (atomicExch(&seen[to], 1) == 0) {
                parents[to] = item;
                atomicAdd(&queue->pending, 1);
                int slot = atomicAdd(&queue->tail, 1);
                __threadfence();
                atomicExch(&queue->items[slot], to);
            }
        }
        __syncwarp();
        if (lane == 0) atomicSub(&queue->pending, 1);
    }
}

__device__ int lock_word;
__device__ volatile long long guarded;
// Every lane takes the lock by itself: lanes of one warp must let each other go on.
__global__ void lock_each(int times)
{
    for (int k = 0; k < times; k++) {
        while (atomicCAS(&lock_word, 0, 1) != 0) {
        }
        __threadfence();
        guarded = guarded + threadIdx.x + 1;
        __threadfence();
        atomicExch(&lock_word, 0);
    }
}

// Blocks pass a token from the last to the first and back: an earlier block's progress is waited for.
__global__ void relay(volatile int *token)
{
    if (threadIdx.x == 0) {
        while (*token != (int)blockIdx.x) {
        }
        __threadfence();
        *token = blockIdx.x + 1;
    }
}

int main()
{
    const int n = 4000, degree = 6;
    std::vector<int> starts(n + 1), edges;
    Random random(7);
    for (int i = 0; i < n; i++) {
        starts[i] = (int)edges.size();
        int count = i % 97 == 0 ? 150 : (int)(random.next() % degree);
        for (int k = 0; k < count; k++) edges.push_back((int)(random.next() % n));
    }
    starts[n] = (int)edges.size();
    std::vector<int> reached(n), todo{0};
    reached[0] = 1;
    for (size_t i = 0; i < todo.size(); i++)
        for (int e = starts[todo[i]]; e < starts[todo[i] + 1]; e++)
            if (!reached[edges[e]]) reached[edges[e]] = 1, todo.push_back(edges[e]);

    int *dstarts, *dedges, *seen, *parents;
    Queue *queue;
    CUDA(cudaMalloc(&dstarts, (n + 1) * sizeof(int)));
    CUDA(cudaMalloc(&dedges, edges.size() * sizeof(int)));
    CUDA(cudaMallocManaged(&seen, n * sizeof(int)));
    CUDA(cudaMallocManaged(&parents, n * sizeof(int)));
    CUDA(cudaMallocManaged(&queue, sizeof *queue));
    CUDA(cudaMemcpy(dstarts, starts.data(), (n + 1) * sizeof(int), cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(dedges, edges.data(), edges.size() * sizeof(int), cudaMemcpyHostToDevice));
    memset(seen, 0, n * sizeof(int));
    memset(parents, -1, n * sizeof(int));
    memset(queue, -1, sizeof *queue);
    queue->head = 0;
    queue->tail = queue->pending = 1;
    queue->items[0] = 0;
    seen[0] = 1;
    search<<<4, 128>>>(dstarts, dedges, seen, parents, queue);
    FINISHED();
    EXPECT_EQ(queue->tail, todo.size());
    for (int i = 0; i < n; i++) {
        if (seen[i] != reached[i]) fail("vertex %d: reached %d, not %d", i, seen[i], reached[i]);
        if (i && seen[i]) {
            bool edge = false;
            for (int e = starts[parents[i]]; e < starts[parents[i] + 1]; e++) edge |= edges[e] == i;
            if (!edge) fail("vertex %d: no edge from its parent %d", i, parents[i]);
        }
    }

    lock_each<<<2, 64>>>(3);
    FINISHED();
    long long got;
    CUDA(cudaMemcpyFromSymbol(&got, guarded, sizeof got));
    EXPECT_EQ(got, 2 * 3 * (64 * 65 / 2));

    queue->head = 0;
    relay<<<300, 32>>>(&queue->head);
    FINISHED();
    EXPECT_EQ(queue->head, 300);
    return pass();
}
