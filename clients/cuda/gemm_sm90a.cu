// nvcc: -gencode arch=compute_90a,code=compute_90a
// device: sm_90
// Matrix products as kernels for sm_90a do them: one warpgroup copies boxes of the arrays to shared memory, ring buffer by
// ring buffer, two others multiply them with `wgmma`, and blocks go on from tile to tile.
#include "tensor_copies.h"

const int BM = 128, BN = 64, BK = 64, STAGES = 3, THREADS = 384;

struct Stage {
    __half a[BM * BK], b[BN * BK];
};
struct Room {
    Stage stages[STAGES];
    float c[2][64 * BN];
    uint64_t full[STAGES], empty[STAGES];
};

// Rows of 128 bytes with the swizzle of 128 bytes, eight rows every 1024 bytes (PTX ISA, "wgmma: Matrix-descriptor-format").
__device__ uint64_t descriptor(const void *tile)
{
    return (uint64_t)(shared_address(tile) >> 4 & 0x3fff) | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
}

// 64 rows of A times 64 of B, 16 columns deep.
__device__ void multiply(float (&d)[32], uint64_t a, uint64_t b, bool add)
{
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.b32 p, %34, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, p, 1, 1, 0, 0;\n"
        "}"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]),
          "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]),
          "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
          "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
        : "l"(a), "l"(b), "r"((int)add));
}

__global__ void __launch_bounds__(THREADS)
    gemm(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, const __grid_constant__ CUtensorMap c, int m, int n, int k)
{
    extern __shared__ __align__(1024) char memory[];
    Room &room = *(Room *)memory;
    int thread = threadIdx.x, group = thread / 128;
    if (thread == 0) {
        for (int s = 0; s < STAGES; s++) {
            barrier_init(&room.full[s], 1);
            // Each warp says for itself that it has read a stage: the others of its warpgroup may be behind.
            barrier_init(&room.empty[s], 8);
        }
        barriers_ready();
    }
    __syncthreads();
    int slices = (k + BK - 1) / BK, across = (n + BN - 1) / BN, tiles = across * ((m + BM - 1) / BM);
    if (group == 2) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (thread != 256) return;
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
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    int slice = 0, lane = thread % 32, warp = thread % 128 / 32;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        float d[32];
        for (int s = 0; s < slices; s++, slice++) {
            const Stage &stage = room.stages[slice % STAGES];
            barrier_wait(&room.full[slice % STAGES], slice / STAGES % 2);
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
            uint64_t left = descriptor(stage.a + group * 64 * BK), right = descriptor(stage.b);
            // 16 columns are 32 bytes; addresses count in units of 16.
            for (int step = 0; step < BK / 16; step++) multiply(d, left + step * 2, right + step * 2, s + step > 0);
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
            asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
            if (lane == 0) barrier_arrive(&room.empty[slice % STAGES]);
        }
        float *out = room.c[group];
        if (thread % 128 == 0) copies_read();
        asm volatile("bar.sync %0, 128;" ::"r"(1 + group) : "memory");
        for (int j = 0; j < BN / 8; j++)
            for (int e = 0; e < 4; e++) {
                int row = warp * 16 + lane / 4 + e / 2 * 8, column = j * 8 + lane % 4 * 2 + e % 2;
                out[row * BN + column] = d[j * 4 + e];
            }
        written_for_copies();
        asm volatile("bar.sync %0, 128;" ::"r"(1 + group) : "memory");
        if (thread % 128 == 0) copy_out(&c, tile % across * BN, tile / across * BM + group * 64, out);
    }
    if (thread % 128 == 0) copies_done();
}

void check(int m, int n, int k)
{
    Product product(m, n, k);
    CUtensorMap a = tensor_map(CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, product.a, k, m, BK, BM);
    CUtensorMap b = tensor_map(CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, product.b, k, n, BK, BN);
    CUtensorMap c = tensor_map(CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, product.c, n, m, BN, 64, CU_TENSOR_MAP_SWIZZLE_NONE);
    CUDA(cudaFuncSetAttribute(gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Room)));
    gemm<<<2, THREADS, sizeof(Room)>>>(a, b, c, m, n, k);
    FINISHED();
    product.check();
}

int main()
{
    check(128, 64, 64);
    check(256, 192, 320);
    check(200, 104, 136);
    return pass();
}
