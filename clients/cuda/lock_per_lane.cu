// Every lane takes locks of its own choice: lanes of one warp contend with each other and with other blocks. Locks by
// compare-and-swap, tickets, and libcu++'s semaphores; two at a time for transfers between accounts.
#include "check.h"

#include <cuda/atomic>
#include <cuda/semaphore>

#include <vector>

const int accounts = 24, blocks = 6, threads = 96, rounds = 6;

struct Transfer {
    int from, to, amount;
    __host__ __device__ Transfer(int thread, int round)
    {
        Random random(thread * 1000 + round);
        from = random.next() % accounts;
        to = (from + 1 + random.next() % (accounts - 1)) % accounts;
        amount = random.next() % 100;
    }
};

struct Swap {
    int taken;
    __device__ void lock()
    {
        while (atomicCAS(&taken, 0, 1) != 0) {
        }
        __threadfence();
    }
    __device__ void unlock()
    {
        __threadfence();
        atomicExch(&taken, 0);
    }
};

struct Tickets {
    unsigned next, serving;
    __device__ void lock()
    {
        unsigned mine = atomicAdd(&next, 1u);
        cuda::atomic_ref<unsigned, cuda::thread_scope_device> now(serving);
        while (now.load(cuda::memory_order_acquire) != mine) __nanosleep(20);
    }
    __device__ void unlock()
    {
        cuda::atomic_ref<unsigned, cuda::thread_scope_device>(serving).fetch_add(1, cuda::memory_order_release);
    }
};

struct Semaphore {
    cuda::binary_semaphore<cuda::thread_scope_device> free;
    __device__ void lock() { free.acquire(); }
    __device__ void unlock() { free.release(); }
};

template <class Lock> __global__ void transfer(Lock *locks, long long *balances)
{
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    for (int round = 0; round < rounds; round++) {
        Transfer t(thread, round);
        Lock &first = locks[min(t.from, t.to)], &second = locks[max(t.from, t.to)];
        first.lock();
        second.lock();
        // Neither atomic nor volatile: the locks alone order these.
        balances[t.from] -= t.amount;
        balances[t.to] = balances[t.to] * 1 + t.amount;
        second.unlock();
        first.unlock();
    }
}

__global__ void open(Semaphore *locks) { new (&locks[threadIdx.x].free) cuda::binary_semaphore<cuda::thread_scope_device>(1); }

// A list in which each lane pushes under one lock: what was pushed is there once.
__global__ void push(Swap *lock, int *length, int *list)
{
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    bool done = false;
    while (!done) {
        if (atomicCAS(&lock->taken, 0, 1) == 0) {
            __threadfence();
            int at = *(volatile int *)length;
            list[at] = thread;
            *(volatile int *)length = at + 1;
            __threadfence();
            atomicExch(&lock->taken, 0);
            done = true;
        }
    }
}

template <class Lock> void check(const char *name, const std::vector<long long> &want)
{
    Lock *locks;
    long long *balances;
    CUDA(cudaMalloc(&locks, accounts * sizeof(Lock)));
    CUDA(cudaMemset(locks, 0, accounts * sizeof(Lock)));
    if constexpr (sizeof(Lock) == sizeof(Semaphore) && std::is_same<Lock, Semaphore>::value) open<<<1, accounts>>>(locks);
    CUDA(cudaMallocManaged(&balances, accounts * sizeof *balances));
    for (int i = 0; i < accounts; i++) balances[i] = 1000;
    transfer<<<blocks, threads>>>(locks, balances);
    FINISHED();
    for (int i = 0; i < accounts; i++)
        if (balances[i] != want[i]) fail("%s: account %d has %lld, not %lld", name, i, balances[i], want[i]);
    CUDA(cudaFree(locks));
    CUDA(cudaFree(balances));
}

int main()
{
    std::vector<long long> want(accounts, 1000);
    for (int thread = 0; thread < blocks * threads; thread++)
        for (int round = 0; round < rounds; round++) {
            Transfer t(thread, round);
            want[t.from] -= t.amount;
            want[t.to] += t.amount;
        }
    check<Swap>("compare and swap", want);
    check<Tickets>("tickets", want);
    check<Semaphore>("semaphores", want);

    const int n = blocks * threads;
    Swap *lock;
    int *list;
    CUDA(cudaMallocManaged(&list, (n + 1) * sizeof *list));
    CUDA(cudaMallocManaged(&lock, sizeof *lock));
    lock->taken = 0;
    list[n] = 0;
    push<<<blocks, threads>>>(lock, list + n, list);
    FINISHED();
    EXPECT_EQ(list[n], n);
    std::vector<bool> seen(n);
    for (int i = 0; i < n; i++) {
        EXPECT(list[i] >= 0 && list[i] < n && !seen[list[i]]);
        seen[list[i]] = true;
    }
    return pass();
}
