// compute_103a
// Values that nobody has written, through tensor memory (PTX ISA, tcgen05): thread t of 128 has lane t of it. Tiles in shared memory lie
// in blocks of eight rows of 16 bytes, two along k, then eight rows on.
#include <cuda_fp16.h>
#include "check.h"

const int threads = 128;

static void done()
{
    CUDA(cudaGetLastError());
    CUDA(cudaDeviceSynchronize());
}

static __device__ unsigned shared_address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

// Where a unit of 16 bytes of a tile lies, in bytes.
static __device__ int place(int line, int unit) { return line / 8 * 256 + unit * 128 + line % 8 * 16; }

static __device__ unsigned long long descriptor(const void *tile)
{
    // Blocks along k lie 128 bytes apart, those of other rows 256.
    return (unsigned long long)shared_address(tile) >> 4 | 128ull >> 4 << 16 | 256ull >> 4 << 32 | 1ull << 46;
}

// All of a tile of `lines` lines of 32 bytes, but one word.
static __device__ void fill(void *tile, int lines, int line = -1, int word = 0, unsigned value = 0x3c003c00)
{
    for (int i = threadIdx.x; i < lines * 8; i += threads)
        if (i / 8 != line || i % 8 != word) *(unsigned *)((char *)tile + place(i / 8, i % 8 / 4) + i % 4 * 4) = value;
}

template <int count = 32> static __device__ unsigned allocate()
{
    __shared__ unsigned columns;
    if (threadIdx.x < 32)
        asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" : : "r"(shared_address(&columns)), "n"(count) : "memory");
    __syncthreads();
    return columns;
}

template <int count = 32> static __device__ void give_back(unsigned address)
{
    __syncthreads();
    if (threadIdx.x < 32) asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" : : "r"(address), "n"(count) : "memory");
}

static __device__ void ready()
{
    asm volatile("tcgen05.wait::st.sync.aligned;\nfence.proxy.async.shared::cta;\ntcgen05.fence::before_thread_sync;" : : : "memory");
    __syncthreads();
    asm volatile("tcgen05.fence::after_thread_sync;" : : : "memory");
}

// All that thread 0 has begun is complete.
static __device__ void wait()
{
    __shared__ alignas(8) unsigned long long barrier;
    unsigned at = shared_address(&barrier);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" : : "r"(at) : "memory");
        asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" : : "r"(at) : "memory");
    }
    __syncthreads();
    asm volatile("{ .reg .pred p;\nl: mbarrier.try_wait.parity.shared.b64 p, [%0], 0;\n@!p bra l; }" : : "r"(at) : "memory");
    asm volatile("tcgen05.fence::after_thread_sync;" : : : "memory");
}

static __device__ unsigned own(unsigned address) { return address + (threadIdx.x / 32 << 21); }

static __device__ unsigned load(unsigned address)
{
    unsigned value;
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];\ntcgen05.wait::ld.sync.aligned;" : "=r"(value) : "r"(own(address)) : "memory");
    return value;
}

static __device__ void store(unsigned address, unsigned value)
{
    asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};" : : "r"(own(address)), "r"(value) : "memory");
}

// m128n16k16 of halves with a sum of floats: f32 (1) at bit 4, n / 8 at bit 17, m / 16 at bit 24.
const unsigned halves = 1 << 4 | (16 >> 3) << 17 | (128 >> 4) << 24;

static __device__ void multiply(unsigned d, const void *a, const void *b, int add)
{
    ready();
    if (threadIdx.x == 0)
        asm volatile("{ .reg .pred p;\nsetp.ne.b32 p, %4, 0;\ntcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p; }"
                     : : "r"(d), "l"(descriptor(a)), "l"(descriptor(b)), "r"(halves), "r"(add) : "memory");
    wait();
}

// What is allocated is not written, whatever was there before.
__global__ void column(int *out)
{
    unsigned first = allocate();
    for (int i = 0; i < 32; i++) store(first + i, 0);
    ready();
    give_back(first);
    unsigned columns = allocate();
    store(columns, 1);
    store(columns + 2, 2);
    ready();
    if (load(columns) == 7 || load(columns + 2) == 7) out[0] = 1;
    if (load(columns + EITHER(1, 2)) == 7)              // init column
        out[1] = 1;
    give_back(columns);
}
TEST(columns)
{
    column<<<1, threads>>>(Array(2));
    done();
}

// What is stored was loaded from memory that nobody has written, by thread 70.
__global__ void stored(const unsigned *in, int *out)
{
    unsigned columns = allocate();
    store(columns + 5, in[threadIdx.x]);
    ready();
    unsigned value = load(columns + 5);
    if (threadIdx.x != 70 && value == 7) out[0] = 1;
    if (threadIdx.x == EITHER(70, 71) && value == 7)    // init value
        out[1] = 1;
    give_back(columns);
}
TEST(store)
{
    unsigned *in;
    CUDA(cudaMalloc(&in, threads * sizeof(unsigned)));
    CUDA(cudaMemset(in, 0, 70 * sizeof(unsigned)));
    CUDA(cudaMemset(in + 71, 0, (threads - 71) * sizeof(unsigned)));
    stored<<<1, threads>>>(in, Array(2));
    done();
}

// Row 37 goes to lane 37, its sixth word to column 5.
__global__ void copied(int *out)
{
    __shared__ alignas(128) char tile[128 * 32];
    unsigned columns = allocate();
    fill(tile, 128, 37, 5);
    ready();
    if (threadIdx.x == 0) asm volatile("tcgen05.cp.cta_group::1.128x256b [%0], %1;" : : "r"(columns), "l"(descriptor(tile)) : "memory");
    wait();
    unsigned value = load(columns + EITHER(5, 4)), other = load(columns + 6);
    if (other == 7 || threadIdx.x != 37 && value == 7) out[0] = 1;
    if (threadIdx.x == 37 && value == 7)                // init element
        out[1] = 1;
    give_back(columns);
}
TEST(cp)
{
    copied<<<1, threads>>>(Array(2));
    done();
}

// Row 37 of A is lane 37 of D.
__global__ void row(int *out)
{
    __shared__ alignas(128) char a[128 * 32], b[16 * 32];
    unsigned columns = allocate();
    fill(a, 128, 37, 5);
    fill(b, 16);
    multiply(columns, a, b, 0);
    unsigned value = load(columns + 9);
    if (threadIdx.x != 37 && value == 7) out[0] = 1;
    if (threadIdx.x == EITHER(37, 38) && value == 7)    // init row
        out[1] = 1;
    give_back(columns);
}
TEST(mma_row)
{
    row<<<1, threads>>>(Array(2));
    done();
}

// Column 6 of B is column 6 of D.
__global__ void column_of_b(int *out)
{
    __shared__ alignas(128) char a[128 * 32], b[16 * 32];
    unsigned columns = allocate();
    fill(a, 128);
    fill(b, 16, 6, 7);
    multiply(columns, a, b, 0);
    for (int i = 0; i < 16; i++)
        if (i != 6 && load(columns + i) == 7) out[0] = 1;
    if (load(columns + EITHER(6, 7)) == 7)              // init column
        out[1] = 1;
    give_back(columns);
}
TEST(mma_column)
{
    column_of_b<<<1, threads>>>(Array(2));
    done();
}

// An element of D that nobody has written counts where it is added to, and not where it is overwritten.
__global__ void sum(int *out, int add)
{
    __shared__ alignas(128) char a[128 * 32], b[16 * 32];
    unsigned columns = allocate();
    fill(a, 128);
    fill(b, 16);
    for (int i = 0; i < 16; i++)
        if (i != 3) store(columns + i, 0);
    multiply(columns, a, b, add);
    for (int i = 0; i < 16; i++)
        if (i != 3 && load(columns + i) == 7) out[0] = 1;
    if (load(columns + 3) == 7)                         // init sum
        out[1] = 1;
    give_back(columns);
}
TEST(mma_sum)
{
    sum<<<1, threads>>>(Array(2), EITHER(1, 0));
    done();
}

// A in tensor memory: eight columns of two halves. The products of a second instruction are made from those of the first.
__global__ void from_tensor_memory(int *out)
{
    __shared__ alignas(128) char b[16 * 32];
    unsigned columns = allocate(), value;
    fill(b, 16);
    for (int i = 0; i < 8; i++)
        if (i != 3 || threadIdx.x / 32 != 2) store(columns + 16 + i, 0);
    ready();
    for (int i = 0; i < 2; i++)
        if (threadIdx.x == 0)
            asm volatile("{ .reg .pred p;\nsetp.ne.b32 p, %4, 0;\ntcgen05.mma.cta_group::1.kind::f16 [%0], [%1], %2, %3, p; }"
                         : : "r"(columns), "r"(columns + 16), "l"(descriptor(b)), "r"(halves), "r"(i) : "memory");
    wait();
    value = load(columns);
    if (threadIdx.x / 32 != 2 && value == 7) out[0] = 1;
    if (threadIdx.x / 32 == EITHER(2, 3) && value == 7) // init row
        out[1] = 1;
    give_back(columns);
}
TEST(mma_of_tensor_memory)
{
    from_tensor_memory<<<1, threads>>>(Array(2));
    done();
}

// m128n16k32 of e4m3 with a factor a row: of row 32 i + j in lane j, column i. The type of factors, ue8m0 (1), is at bit 23.
const unsigned bytes = 1 << 23 | (16 >> 3) << 17 | (128 >> 4) << 24;

// The factor of row 69 is missing: lane 5, column 2.
__global__ void factor(int *out)
{
    __shared__ alignas(128) char a[128 * 32], b[16 * 32];
    __shared__ alignas(128) char factors[128 * 16];
    unsigned columns = allocate();
    fill(a, 128, -1, 0, 0x38383838);
    fill(b, 16, -1, 0, 0x38383838);
    int t = threadIdx.x;
    // 128 bits of each of 32 lanes, which all four warps get.
    for (int i = 0; i < 4; i++)
        if (t < 32 && (t != 5 || i != 2)) *(unsigned *)(factors + t * 16 + i * 4) = 0x7f7f7f7f;
    store(columns + 24, 0x7f7f7f7f);
    ready();
    if (t == 0) {
        asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" : : "r"(columns + 16), "l"((unsigned long long)shared_address(factors) >> 4 | 128ull >> 4 << 32 | 1ull << 46) : "memory");
        asm volatile("tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale [%0], %1, %2, %3, [%4], [%5], 0;"
                     : : "r"(columns), "l"(descriptor(a)), "l"(descriptor(b)), "r"(bytes), "r"(columns + 16), "r"(columns + 24) : "memory");
    }
    wait();
    unsigned value = load(columns);
    if (t != 69 && value == 7) out[0] = 1;
    if (t == EITHER(69, 68) && value == 7)              // init factor
        out[1] = 1;
    give_back(columns);
}
TEST(mma_factor)
{
    factor<<<1, threads>>>(Array(2));
    done();
}

// Each lane of a warp gets what was in the next one: what is missing in lane 41 is then in lane 40.
__global__ void shifted(int *out)
{
    unsigned columns = allocate();
    for (int i = 0; i < 8; i++) store(columns + i, 0);
    ready();
    __shared__ alignas(128) char tile[128 * 32];
    fill(tile, 128, 41, 3);
    ready();
    if (threadIdx.x == 0) {
        asm volatile("tcgen05.cp.cta_group::1.128x256b [%0], %1;" : : "r"(columns), "l"(descriptor(tile)) : "memory");
        asm volatile("tcgen05.shift.cta_group::1.down [%0];" : : "r"(columns + (32 << 16)) : "memory");
    }
    wait();
    unsigned value = load(columns + 3);
    if (threadIdx.x != 40 && value == 7) out[0] = 1;
    if (threadIdx.x == EITHER(40, 41) && value == 7)    // init element
        out[1] = 1;
    give_back(columns);
}
TEST(shift)
{
    shifted<<<1, threads>>>(Array(2));
    done();
}

// Two halves of a column each in one register.
__global__ void packed(int *out)
{
    unsigned columns = allocate(), value;
    store(columns, 1);
    MENDED(store(columns + 1, 1);)
    ready();
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.pack::16b.b32 {%0}, [%1];\ntcgen05.wait::ld.sync.aligned;" : "=r"(value) : "r"(own(columns)) : "memory");
    if ((value & 0xffff) == 7) out[0] = 1;
    if (value >> 16 == 7)                               // init half
        out[1] = 1;
    give_back(columns);
}
TEST(ld_packed)
{
    packed<<<1, threads>>>(Array(2));
    done();
}

// What depends on a value that nobody has written: where an instruction goes.
__global__ void address(const unsigned *in)
{
    unsigned columns = allocate();
    asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};" : : "r"(own(columns) + (in[0] & 0)), "r"(1) : "memory");
    asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};" : : "r"(own(columns) + (in[EITHER(1, 0)] & 1)), "r"(1) : "memory"); // init address
    ready();
    give_back(columns);
}
TEST(st_address)
{
    unsigned *in;
    CUDA(cudaMalloc(&in, 8));
    CUDA(cudaMemset(in, 0, 4));
    address<<<1, threads>>>(in);
    done();
}

// A sparse: of each four halves along k of 32 the first two, as 0b0100 says. Lanes 16 i to 16 i + 7 have the metadata of k below 16 of rows 16 i
// to 16 i + 15, two rows a word, eight apart; the next eight lanes those of the rest. Bit 2 says that A is sparse.
__global__ void sparse(int *out)
{
    __shared__ alignas(128) char a[128 * 32], b[16 * 64];
    unsigned columns = allocate();
    int t = threadIdx.x;
    fill(a, 128);
    // Sixteen columns of 32 halves: four units along k, then eight columns on. In column 6 two halves are not there: the
    // first two, or the next, which nothing is multiplied with.
    for (int i = t; i < 16 * 16; i += threads)
        if (i != 6 * 16 + EITHER(0, 1)) *(unsigned *)(b + i / 128 * 512 + i % 16 / 4 * 128 + i / 16 % 8 * 16 + i % 4 * 4) = 0x3c003c00;
    store(columns + 16, 0x44444444);
    ready();
    if (t == 0)
        asm volatile("tcgen05.mma.sp.cta_group::1.kind::f16 [%0], %1, %2, [%3], %4, 0;"
                     : : "r"(columns), "l"(descriptor(a)), "l"((unsigned long long)shared_address(b) >> 4 | 128ull >> 4 << 16 | 512ull >> 4 << 32 | 1ull << 46),
                         "r"(columns + 16), "r"(halves | 1 << 2) : "memory");
    wait();
    if (load(columns + 5) == 7) out[0] = 1;
    if (load(columns + 6) == 7)                         // init column
        out[1] = 1;
    give_back(columns);
}
TEST(mma_sparse)
{
    sparse<<<1, threads>>>(Array(2));
    done();
}

// The word in lane 5 has the metadata of rows 5 and 13.
__global__ void metadata(const unsigned *in, int *out)
{
    __shared__ alignas(128) char a[128 * 32], b[16 * 64];
    unsigned columns = allocate();
    int t = threadIdx.x;
    fill(a, 128);
    for (int i = t; i < 16 * 16; i += threads) ((unsigned *)b)[i] = 0x3c003c00;
    store(columns + 16, in[t]);
    ready();
    if (t == 0)
        asm volatile("tcgen05.mma.sp.cta_group::1.kind::f16 [%0], %1, %2, [%3], %4, 0;"
                     : : "r"(columns), "l"(descriptor(a)), "l"((unsigned long long)shared_address(b) >> 4 | 128ull >> 4 << 16 | 512ull >> 4 << 32 | 1ull << 46),
                         "r"(columns + 16), "r"(halves | 1 << 2) : "memory");
    wait();
    unsigned value = load(columns);
    if (t != 5 && t != 13 && value == 7) out[0] = 1;
    if (t == EITHER(13, 14) && value == 7)              // init row
        out[1] = 1;
    give_back(columns);
}
TEST(mma_metadata)
{
    unsigned host[threads], *in;
    for (unsigned &word : host) word = 0x44444444;
    CUDA(cudaMalloc(&in, sizeof host));
    CUDA(cudaMemcpy(in, host, 5 * 4, cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(in + 6, host, (threads - 6) * 4, cudaMemcpyHostToDevice));
    metadata<<<1, threads>>>(in, Array(2));
    done();
}

// The factor of column 6 of B is missing: lane 6 of 32, which all four warps get.
__global__ void factor_of_b(int *out)
{
    __shared__ alignas(128) char a[128 * 32], b[16 * 32];
    __shared__ alignas(128) char factors[128 * 16];
    unsigned columns = allocate();
    fill(a, 128, -1, 0, 0x38383838);
    fill(b, 16, -1, 0, 0x38383838);
    int t = threadIdx.x;
    for (int i = 0; i < 4; i++)
        if (t < 32 && (t != 6 || i != 0)) *(unsigned *)(factors + t * 16 + i * 4) = 0x7f7f7f7f;
    for (int i = 0; i < 4; i++) store(columns + 16 + i, 0x7f7f7f7f);
    ready();
    if (t == 0) {
        asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" : : "r"(columns + 24), "l"((unsigned long long)shared_address(factors) >> 4 | 128ull >> 4 << 32 | 1ull << 46) : "memory");
        asm volatile("tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale [%0], %1, %2, %3, [%4], [%5], 0;"
                     : : "r"(columns), "l"(descriptor(a)), "l"(descriptor(b)), "r"(bytes), "r"(columns + 16), "r"(columns + 24) : "memory");
    }
    wait();
    for (int i = 0; i < 16; i++)
        if (i != 6 && load(columns + i) == 7) out[0] = 1;
    if (load(columns + EITHER(6, 5)) == 7)              // init factor
        out[1] = 1;
    give_back(columns);
}
TEST(mma_factor_of_a_column)
{
    factor_of_b<<<1, threads>>>(Array(2));
    done();
}

// Eight columns of B count, the next eight count as zeros, and so on: what those lack is missing of nothing. The mask has its flag in bit
// 39, and the lengths less one in bits 40 and 48.
__global__ void masked(int *out)
{
    __shared__ alignas(128) char a[128 * 32], b[64 * 32];
    unsigned columns = allocate<64>();
    fill(a, 128);
    fill(b, 64, EITHER(6, 9), 5);
    ready();
    unsigned wide = 1 << 4 | (64 >> 3) << 17 | (128 >> 4) << 24;
    if (threadIdx.x == 0)
        asm volatile("tcgen05.mma.ws.cta_group::1.kind::f16 [%0], %1, %2, %3, 0, %4;"
                     : : "r"(columns), "l"(descriptor(a)), "l"(descriptor(b)), "r"(wide), "l"(1ull << 39 | 7ull << 40 | 7ull << 48) : "memory");
    wait();
    for (int i = 0; i < 64; i++)
        if (i != 6 && load(columns + i) == 7) out[0] = 1;
    if (load(columns + 6) == 7)                         // init column
        out[1] = 1;
    give_back<64>(columns);
}
TEST(mma_zero_columns)
{
    masked<<<1, threads>>>(Array(2));
    done();
}

// The least of two columns, of which one may be missing; what is loaded with it is not missing for that.
__global__ void least(int *out)
{
    unsigned columns = allocate(), first, second, found;
    store(columns, threadIdx.x);
    MENDED(store(columns + 1, 1);)
    ready();
    asm volatile("tcgen05.ld.red.sync.aligned.32x32b.x2.min.u32 {%0, %1}, %2, [%3];\ntcgen05.wait::ld.sync.aligned;"
                 : "=r"(first), "=r"(second), "=r"(found) : "r"(own(columns)) : "memory");
    if (first == 7) out[0] = 1;
    if (found == 7)                                     // init least
        out[1] = second;
    give_back(columns);
}
TEST(ld_red)
{
    least<<<1, threads>>>(Array(2));
    done();
}
