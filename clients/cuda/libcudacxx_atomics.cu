// libcu++'s atomics and what waits on them: cuda::atomic and atomic_ref of all sizes and scopes, floats, waiting and being
// notified, semaphores, latches, barriers; between threads of a warp, blocks of a grid, and a kernel and the host.
#include "check.h"

#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/semaphore>
#include <cuda/std/atomic>

#include <new>
#include <vector>

const int blocks = 24, threads = 64, everyone = blocks * threads;

struct Pair {
    int low, high;
};

struct Cells {
    cuda::atomic<unsigned char, cuda::thread_scope_device> bytes[4];
    cuda::atomic<short, cuda::thread_scope_device> words[2];
    cuda::atomic<int, cuda::thread_scope_device> sum, least, most, bits;
    cuda::atomic<long long, cuda::thread_scope_device> wide;
    cuda::atomic<float, cuda::thread_scope_device> real;
    cuda::atomic<double, cuda::thread_scope_device> twice;
    cuda::atomic<Pair, cuda::thread_scope_device> pair;
    cuda::atomic<int *, cuda::thread_scope_device> pointer;
    cuda::std::atomic<unsigned> standard;
    cuda::std::atomic_flag flag;
    int guarded;
};

__global__ void prepare(Cells *c, int *array)
{
    new (c) Cells;
    for (auto &b : c->bytes) b.store(0);
    for (auto &w : c->words) w.store(-100);
    c->sum = 0, c->least = 1 << 30, c->most = -(1 << 30), c->bits = 0, c->wide = 1ll << 40, c->real = 0.5f, c->twice = 0.25;
    c->pair = Pair{0, 0};
    c->pointer = array;
    c->standard = 7;
    c->flag.clear();
    c->guarded = 0;
}

__global__ void change(Cells *c, int *plain, float *plain_real, int *places, int *array)
{
    int t = threadIdx.x, i = blockIdx.x * threads + t;
    c->bytes[i % 4].fetch_add(3);
    c->words[i % 2]--;
    c->sum.fetch_add(i, cuda::std::memory_order_relaxed);
    c->least.fetch_min(i * 7 - 5000);
    c->most.fetch_max(i * 7 - 5000);
    c->bits.fetch_xor(1 << i % 31);
    c->wide += (long long)i << 20;
    c->real.fetch_add(0.25f, cuda::std::memory_order_relaxed);
    c->twice.fetch_sub(0.5, cuda::std::memory_order_relaxed);
    c->standard.fetch_sub(1);
    places[i] = (int)(c->pointer.fetch_add(1) - array);
    // Both halves change as one.
    Pair seen = c->pair.load();
    while (!c->pair.compare_exchange_weak(seen, Pair{seen.low + 1, seen.high - 2})) {
    }
    cuda::atomic_ref<int, cuda::thread_scope_device>(plain[i % 5]).fetch_add(i);
    cuda::atomic_ref<float, cuda::thread_scope_device>(plain_real[0]).fetch_add(2.0f);
    __shared__ int counted, old;
    if (t == 0) counted = 0;
    __syncthreads();
    cuda::atomic_ref<int, cuda::thread_scope_block>(counted).fetch_add(t);
    if (t == 5) old = cuda::atomic_ref<int, cuda::thread_scope_block>(plain[8 + blockIdx.x]).exchange(99);
    __syncthreads();
    if (t == 0) plain[40 + blockIdx.x] = counted * 1000 + old;
    // A lock of a flag, taken by each thread of a warp in its turn.
    for (bool done = false; !done;) {
        if (!c->flag.test_and_set(cuda::std::memory_order_acquire)) {
            c->guarded = c->guarded + 1;
            c->flag.clear(cuda::std::memory_order_release);
            done = true;
        }
    }
}

static void atomics()
{
    Cells *c;
    int *plain, *places, *array = nullptr;
    float *real;
    CUDA(cudaMallocManaged(&c, sizeof *c));
    CUDA(cudaMallocManaged(&plain, 80 * sizeof(int)));
    CUDA(cudaMallocManaged(&places, everyone * sizeof(int)));
    CUDA(cudaMallocManaged(&real, sizeof(float)));
    CUDA(cudaMalloc(&array, everyone * sizeof(int)));
    for (int i = 0; i < 80; i++) plain[i] = i;
    *real = 1.0f;
    prepare<<<1, 1>>>(c, array);
    change<<<blocks, threads>>>(c, plain, real, places, array);
    FINISHED();
    long long sum = (long long)everyone * (everyone - 1) / 2;
    for (int b = 0; b < 4; b++) EXPECT_EQ(c->bytes[b].load(), (unsigned char)(everyone / 4 * 3));
    for (int w = 0; w < 2; w++) EXPECT_EQ(c->words[w].load(), -100 - everyone / 2);
    EXPECT_EQ(c->sum.load(), sum);
    EXPECT_EQ(c->least.load(), -5000);
    EXPECT_EQ(c->most.load(), (everyone - 1) * 7 - 5000);
    int bits = 0;
    for (int i = 0; i < everyone; i++) bits ^= 1 << i % 31;
    EXPECT_EQ(c->bits.load(), bits);
    EXPECT_EQ(c->wide.load(), (1ll << 40) + (sum << 20));
    EXPECT(c->real.load() == 0.5f + 0.25f * everyone);
    EXPECT(c->twice.load() == 0.25 - 0.5 * everyone);
    EXPECT_EQ(c->standard.load(), 7u - everyone);
    EXPECT_EQ(c->pair.load().low, everyone);
    EXPECT_EQ(c->pair.load().high, -2 * everyone);
    EXPECT_EQ(c->guarded, everyone);
    std::vector<int> times(everyone);
    for (int i = 0; i < everyone; i++) {
        EXPECT(places[i] >= 0 && places[i] < everyone);
        // An addition of 1 to a pointer is one of an element.
        times[places[i]]++;
    }
    for (int n : times) EXPECT_EQ(n, 1);
    for (int k = 0; k < 5; k++) {
        int want = k;
        for (int i = k; i < everyone; i += 5) want += i;
        EXPECT_EQ(plain[k], want);
    }
    EXPECT(*real == 1.0f + 2.0f * everyone);
    for (int b = 0; b < blocks; b++) {
        EXPECT_EQ(plain[8 + b], 99);
        EXPECT_EQ(plain[40 + b], threads * (threads - 1) / 2 * 1000 + 8 + b);
    }
}

struct Meeting {
    cuda::counting_semaphore<cuda::thread_scope_device, 3> seats;
    cuda::binary_semaphore<cuda::thread_scope_device> door;
    cuda::latch<cuda::thread_scope_device> all_here;
    cuda::barrier<cuda::thread_scope_device> rounds;
    cuda::atomic<int, cuda::thread_scope_device> inside, most_inside, turn;
    int through_door, sums[2];
    __device__ Meeting() : seats(3), door(1), all_here(blocks), rounds(blocks), inside(0), most_inside(0), turn(0), through_door(0), sums{0, 0} {}
};

__global__ void open(Meeting *m) { new (m) Meeting; }

// One thread of each block, so that those that wait are in no one's way.
__global__ void meet(Meeting *m, int *seen)
{
    int b = blockIdx.x;
    m->seats.acquire();
    m->most_inside.fetch_max(m->inside.fetch_add(1) + 1);
    __nanosleep(1000);
    m->inside.fetch_sub(1);
    m->seats.release();

    m->door.acquire();
    m->through_door = m->through_door + 1;
    m->door.release();

    m->all_here.arrive_and_wait();
    // All have been through the door, and nobody may say otherwise.
    seen[b] = m->through_door;

    cuda::atomic_ref<int, cuda::thread_scope_device>(m->sums[0]).fetch_add(b, cuda::std::memory_order_relaxed);
    m->rounds.arrive_and_wait();
    seen[blocks + b] = m->sums[0];
    cuda::atomic_ref<int, cuda::thread_scope_device>(m->sums[1]).fetch_add(b * b, cuda::std::memory_order_relaxed);
    m->rounds.arrive_and_wait();
    seen[2 * blocks + b] = m->sums[1];

    // One after the other, from the last block to the first.
    for (int now = m->turn.load(); now != blocks - 1 - b; now = m->turn.load()) m->turn.wait(now);
    seen[3 * blocks + b] = m->turn.load();
    m->turn.fetch_add(1);
    m->turn.notify_all();
}

static void meetings()
{
    Meeting *m;
    int *seen;
    CUDA(cudaMallocManaged(&m, sizeof *m));
    CUDA(cudaMallocManaged(&seen, 4 * blocks * sizeof(int)));
    open<<<1, 1>>>(m);
    meet<<<blocks, 1>>>(m, seen);
    FINISHED();
    EXPECT(m->most_inside.load() >= 1 && m->most_inside.load() <= 3);
    for (int b = 0; b < blocks; b++) {
        EXPECT_EQ(seen[b], blocks);
        EXPECT_EQ(seen[blocks + b], blocks * (blocks - 1) / 2);
        EXPECT_EQ(seen[2 * blocks + b], (blocks - 1) * blocks * (2 * blocks - 1) / 6);
        EXPECT_EQ(seen[3 * blocks + b], blocks - 1 - b);
    }
}

// A barrier of a block whose last thread does something before the others go on.
__global__ void completion(int *out)
{
    __shared__ unsigned values[threads], total;
    __shared__ alignas(8) unsigned char room[64];
    struct Add {
        unsigned *values, *total;
        __device__ void operator()()
        {
            unsigned sum = 0;
            for (int i = 0; i < threads; i++) sum += values[i];
            *total = sum;
        }
    };
    using Barrier = cuda::barrier<cuda::thread_scope_block, Add>;
    static_assert(sizeof(Barrier) <= sizeof room, "");
    Barrier *barrier = reinterpret_cast<Barrier *>(room);
    int t = threadIdx.x;
    unsigned v = t;
    if (t == 0) init(barrier, threads, Add{values, &total});
    __syncthreads();
    for (int round = 0; round < 4; round++) {
        values[t] = v;
        barrier->arrive_and_wait();
        v = total - v;
        barrier->arrive_and_wait();
    }
    out[t] = (int)v;
}

static void completions()
{
    int *out;
    CUDA(cudaMallocManaged(&out, threads * sizeof(int)));
    completion<<<1, threads>>>(out);
    FINISHED();
    // Unsigned, for the sums outgrow an int.
    unsigned v[threads];
    for (int t = 0; t < threads; t++) v[t] = t;
    for (int round = 0; round < 4; round++) {
        unsigned total = 0;
        for (unsigned one : v) total += one;
        for (unsigned &one : v) one = total - one;
    }
    for (int t = 0; t < threads; t++) EXPECT_EQ(out[t], (int)v[t]);
}

// The kernel answers each number of the host's with its square, while it runs.
__global__ void answer(cuda::atomic<int, cuda::thread_scope_system> *asked, cuda::atomic<int, cuda::thread_scope_system> *answered, int *number, int rounds)
{
    for (int r = 1; r <= rounds; r++) {
        while (asked->load(cuda::std::memory_order_acquire) != r) {
        }
        *number *= *number;
        answered->store(r, cuda::std::memory_order_release);
    }
}

static void conversations()
{
    using Flag = cuda::atomic<int, cuda::thread_scope_system>;
    void *memory;
    CUDA(cudaHostAlloc(&memory, 4096, cudaHostAllocMapped));
    Flag *asked = new (memory) Flag(0), *answered = new ((char *)memory + 128) Flag(0);
    int *number = (int *)((char *)memory + 256);
    const int rounds = 50;
    answer<<<1, 1>>>(asked, answered, number, rounds);
    LAUNCHED();
    for (int r = 1; r <= rounds; r++) {
        *number = r + 3;
        asked->store(r, cuda::std::memory_order_release);
        while (answered->load(cuda::std::memory_order_acquire) != r) {
        }
        EXPECT_EQ(*number, (r + 3) * (r + 3));
    }
    CUDA(cudaDeviceSynchronize());
}

int main()
{
    atomics();
    meetings();
    completions();
    conversations();
    return pass();
}
