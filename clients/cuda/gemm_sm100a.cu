// nvcc: -gencode arch=compute_100a,code=compute_100a
// device: sm_100
// Matrix products as kernels for sm_100a do them: a thread copies boxes of the arrays to shared memory, another has them
// multiplied into tensor memory with `tcgen05.mma`, and four warps bring the sums of one tile out while the next is made.
#include "tensor_copies.h"

const int BM = 128, BN = 64, BK = 64, STAGES = 3, SUMS = 2, THREADS = 256, COLUMNS = SUMS * BN;

struct Stage {
    __half a[BM * BK], b[BN * BK];
};
struct Room {
    Stage stages[STAGES];
    uint64_t full[STAGES], empty[STAGES], made[SUMS], taken[SUMS];
    unsigned tensor_memory;
};

// Rows of 128 bytes with the swizzle of 128 bytes, eight rows every 1024 bytes (PTX ISA, "tcgen05: Shared memory descriptor").
__device__ uint64_t descriptor(const void *tile)
{
    return (uint64_t)(shared_address(tile) >> 4 & 0x3fff) | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 46 |
           (uint64_t)2 << 61;
}

// Sums in f32 of products of f16; both matrices lie row by row (PTX ISA, "tcgen05: Instruction descriptor").
const unsigned KIND = 1 << 4 | BN / 8 << 17 | BM / 16 << 24;

__device__ void multiply(unsigned sums, uint64_t a, uint64_t b, bool add)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %4, 0;\n"
                 "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;\n"
                 "}" ::"r"(sums), "l"(a), "l"(b), "r"(KIND), "r"((int)add) : "memory");
}

// The barrier gets an arrival when all matrix instructions of this thread so far are done.
__device__ void commit(uint64_t *barrier)
{
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(shared_address(barrier)) : "memory");
}

__device__ void before_barrier() { asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory"); }
__device__ void after_barrier() { asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory"); }

__device__ void load(float (&row)[32], unsigned from)
{
    asm volatile(
        "tcgen05.ld.sync.aligned.32x32b.x32.b32 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, [%32];"
        : "=f"(row[0]), "=f"(row[1]), "=f"(row[2]), "=f"(row[3]), "=f"(row[4]), "=f"(row[5]), "=f"(row[6]), "=f"(row[7]),
          "=f"(row[8]), "=f"(row[9]), "=f"(row[10]), "=f"(row[11]), "=f"(row[12]), "=f"(row[13]), "=f"(row[14]), "=f"(row[15]),
          "=f"(row[16]), "=f"(row[17]), "=f"(row[18]), "=f"(row[19]), "=f"(row[20]), "=f"(row[21]), "=f"(row[22]), "=f"(row[23]),
          "=f"(row[24]), "=f"(row[25]), "=f"(row[26]), "=f"(row[27]), "=f"(row[28]), "=f"(row[29]), "=f"(row[30]), "=f"(row[31])
        : "r"(from));
}

__global__ void __launch_bounds__(THREADS)
    gemm(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, float *c, int m, int n, int k)
{
    extern __shared__ __align__(1024) char memory[];
    Room &room = *(Room *)memory;
    int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    if (thread == 0) {
        for (int s = 0; s < STAGES; s++) {
            barrier_init(&room.full[s], 1);
            barrier_init(&room.empty[s], 1);
        }
        for (int s = 0; s < SUMS; s++) {
            barrier_init(&room.made[s], 1);
            barrier_init(&room.taken[s], 128);
        }
        barriers_ready();
    }
    if (warp == 2) {
        asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(shared_address(&room.tensor_memory)),
                     "n"(COLUMNS) : "memory");
        asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
    }
    before_barrier();
    __syncthreads();
    after_barrier();
    unsigned tensor_memory = room.tensor_memory;
    int slices = (k + BK - 1) / BK, across = (n + BN - 1) / BN, tiles = across * ((m + BM - 1) / BM);

    if (warp == 0 && lane == 0) {
        int slice = 0;
        for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x)
            for (int s = 0; s < slices; s++, slice++) {
                Stage &stage = room.stages[slice % STAGES];
                uint64_t *full = &room.full[slice % STAGES];
                // The ring is empty at first: a wait for the phase before the first one ends at once.
                barrier_wait(&room.empty[slice % STAGES], slice / STAGES % 2 ^ 1);
                barrier_arrive_expect(full, sizeof(Stage));
                copy_in(stage.a, &a, s * BK, tile / across * BM, full);
                copy_in(stage.b, &b, s * BK, tile % across * BN, full);
            }
    } else if (warp == 1 && lane == 0) {
        int slice = 0, round = 0;
        for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x, round++) {
            unsigned sums = tensor_memory + round % SUMS * BN;
            barrier_wait(&room.taken[round % SUMS], round / SUMS % 2 ^ 1);
            after_barrier();
            for (int s = 0; s < slices; s++, slice++) {
                const Stage &stage = room.stages[slice % STAGES];
                barrier_wait(&room.full[slice % STAGES], slice / STAGES % 2);
                after_barrier();
                // 16 columns are 32 bytes; addresses count in units of 16.
                for (int step = 0; step < BK / 16; step++)
                    multiply(sums, descriptor(stage.a) + step * 2, descriptor(stage.b) + step * 2, s + step > 0);
                commit(&room.empty[slice % STAGES]);
            }
            commit(&room.made[round % SUMS]);
        }
    } else if (warp >= 4) {
        int round = 0;
        for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x, round++) {
            // A warp reaches the 32 lanes of tensor memory that its number in its warpgroup says.
            unsigned from = tensor_memory + round % SUMS * BN + ((unsigned)(warp % 4 * 32) << 16);
            barrier_wait(&room.made[round % SUMS], round / SUMS % 2);
            after_barrier();
            float low[32], high[32];
            load(low, from);
            load(high, from + 32);
            asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
            before_barrier();
            barrier_arrive(&room.taken[round % SUMS]);
            int row = tile / across * BM + warp % 4 * 32 + lane, column = tile % across * BN;
            for (int j = 0; j < BN; j++)
                if (row < m && column + j < n) c[(size_t)row * n + column + j] = j < 32 ? low[j] : high[j - 32];
        }
    }
    __syncwarp();
    before_barrier();
    __syncthreads();
    after_barrier();
    if (warp == 2)
        asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(tensor_memory), "n"(COLUMNS) : "memory");
}

void check(int m, int n, int k)
{
    Product product(m, n, k);
    CUtensorMap a = tensor_map(CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, product.a, k, m, BK, BM);
    CUtensorMap b = tensor_map(CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, product.b, k, n, BK, BN);
    CUDA(cudaFuncSetAttribute(gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Room)));
    gemm<<<2, THREADS, sizeof(Room)>>>(a, b, product.c, m, n, k);
    FINISHED();
    product.check();
}

int main()
{
    check(128, 64, 64);
    check(384, 192, 320);
    check(200, 104, 136);
    return pass();
}
