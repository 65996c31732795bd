// nvcc: -gencode arch=compute_90a,code=compute_90a
// device: sm_90
// Tiles of an array whose sizes are no multiples of theirs: copied in with the swizzle of 128 bytes, what lies outside as
// zeros, doubled, stored into a second array and added to a third one, whose edges the copies leave alone. Then the
// kernel makes a map for another array out of the one that it was given, and copies by that.
#include "tensor_copies.h"

const int WIDTH = 212, HEIGHT = 37, BOX_WIDTH = 32, BOX_HEIGHT = 16, PADDED = WIDTH + 4;

struct Room {
    float tile[BOX_WIDTH * BOX_HEIGHT];
    CUtensorMap map;
    uint64_t full;
};

__global__ void tiles(const __grid_constant__ CUtensorMap in, const __grid_constant__ CUtensorMap out,
                      const __grid_constant__ CUtensorMap sums, float *seen)
{
    extern __shared__ unsigned char memory[];
    Room *room = (Room *)(((size_t)memory + 1023) & ~(size_t)1023);
    int x = blockIdx.x * BOX_WIDTH - 4, y = blockIdx.y * BOX_HEIGHT - 2;
    if (threadIdx.x == 0) {
        barrier_init(&room->full, 1);
        barriers_ready();
        barrier_arrive_expect(&room->full, sizeof room->tile);
        copy_in(room->tile, &in, x, y, &room->full);
    }
    __syncthreads();
    barrier_wait(&room->full, 0);
    for (int i = threadIdx.x; i < BOX_WIDTH * BOX_HEIGHT; i += blockDim.x) {
        float *element = (float *)((char *)room->tile + swizzle128(i * sizeof(float)));
        int column = i % BOX_WIDTH, row = i / BOX_WIDTH;
        seen[(blockIdx.y * gridDim.x + blockIdx.x) * BOX_WIDTH * BOX_HEIGHT + row * BOX_WIDTH + column] = *element;
        *element *= 2;
    }
    written_for_copies();
    __syncthreads();
    // Copies out start inside of the array.
    if (threadIdx.x == 0 && x >= 0 && y >= 0) {
        copy_out(&out, x, y, room->tile);
        asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&sums),
                     "r"(x), "r"(y), "r"(shared_address(room->tile)) : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        copies_done();
    }
}

// Copies a box by a map that is like `like`, but for another array with fewer rows.
__global__ void changed(const __grid_constant__ CUtensorMap like, const float *array, int height, CUtensorMap *room_for_map, float *seen)
{
    extern __shared__ unsigned char memory[];
    Room *room = (Room *)(((size_t)memory + 1023) & ~(size_t)1023);
    if (threadIdx.x == 0) {
        room->map = like;
        unsigned map = shared_address(&room->map);
        asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"r"(map), "l"(array) : "memory");
        asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %1;" ::"r"(map), "r"(height) : "memory");
    }
    __syncwarp();
    asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(
                     room_for_map),
                 "r"(shared_address(&room->map)) : "memory");
    if (threadIdx.x == 0) {
        asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(room_for_map) : "memory");
        barrier_init(&room->full, 1);
        barriers_ready();
        barrier_arrive_expect(&room->full, sizeof room->tile);
        copy_in(room->tile, room_for_map, 0, 0, &room->full);
    }
    __syncwarp();
    barrier_wait(&room->full, 0);
    for (int i = threadIdx.x; i < BOX_WIDTH * BOX_HEIGHT; i += blockDim.x)
        seen[i] = *(float *)((char *)room->tile + swizzle128(i * sizeof(float)));
}

int main()
{
    const size_t bytes = PADDED * HEIGHT * sizeof(float);
    const int across = (WIDTH + 4 + BOX_WIDTH - 1) / BOX_WIDTH, down = (HEIGHT + 2 + BOX_HEIGHT - 1) / BOX_HEIGHT;
    const size_t seen_bytes = (size_t)across * down * BOX_WIDTH * BOX_HEIGHT * sizeof(float);
    std::vector<float> in(PADDED * HEIGHT), out(PADDED * HEIGHT), sums(PADDED * HEIGHT), seen(seen_bytes / sizeof(float));
    for (size_t i = 0; i < in.size(); i++)
        in[i] = (float)(i % 1000) + 1;
    float *d_in, *d_out, *d_sums, *d_seen;
    CUtensorMap *d_map;
    CUDA(cudaMalloc(&d_in, bytes));
    CUDA(cudaMalloc(&d_out, bytes));
    CUDA(cudaMalloc(&d_sums, bytes));
    CUDA(cudaMalloc(&d_seen, seen_bytes));
    CUDA(cudaMalloc(&d_map, sizeof *d_map));
    CUDA(cudaMemcpy(d_in, in.data(), bytes, cudaMemcpyHostToDevice));
    CUDA(cudaMemset(d_out, 0, bytes));
    CUDA(cudaMemcpy(d_sums, in.data(), bytes, cudaMemcpyHostToDevice));

    // Rows are 216 elements apart, of which 212 belong to the array.
    auto map = [](void *array) {
        CUtensorMap map;
        static PFN_cuTensorMapEncodeTiled_v12000 encode;
        if (!encode) {
            cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
            CUDA(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void **)&encode, 12000, cudaEnableDefault, &found));
#else
            CUDA(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", (void **)&encode, cudaEnableDefault, &found));
#endif
            if (found != cudaDriverEntryPointSuccess)
                fail("no cuTensorMapEncodeTiled");
        }
        cuuint64_t dims[2] = {WIDTH, HEIGHT}, stride = PADDED * sizeof(float);
        cuuint32_t box[2] = {BOX_WIDTH, BOX_HEIGHT}, steps[2] = {1, 1};
        CUresult made = encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, array, dims, &stride, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                               CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
        if (made != CUDA_SUCCESS)
            fail("cuTensorMapEncodeTiled: %d", (int)made);
        return map;
    };
    const int room = sizeof(Room) + 1024;
    CUtensorMap in_map = map(d_in);
    tiles<<<dim3(across, down), 128, room>>>(in_map, map(d_out), map(d_sums), d_seen);
    CUDA(cudaGetLastError());
    CUDA(cudaMemcpy(out.data(), d_out, bytes, cudaMemcpyDeviceToHost));
    CUDA(cudaMemcpy(sums.data(), d_sums, bytes, cudaMemcpyDeviceToHost));
    CUDA(cudaMemcpy(seen.data(), d_seen, seen_bytes, cudaMemcpyDeviceToHost));
    for (int b = 0; b < across * down; b++)
        for (int i = 0; i < BOX_WIDTH * BOX_HEIGHT; i++) {
            int x = b % across * BOX_WIDTH - 4 + i % BOX_WIDTH, y = b / across * BOX_HEIGHT - 2 + i / BOX_WIDTH;
            bool inside = x >= 0 && x < WIDTH && y >= 0 && y < HEIGHT;
            float expected = inside ? in[y * PADDED + x] : 0;
            if (seen[b * BOX_WIDTH * BOX_HEIGHT + i] != expected)
                fail("block %d, element (%d, %d): %g, expected %g", b, x, y, seen[b * BOX_WIDTH * BOX_HEIGHT + i], expected);
        }
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < PADDED; x++) {
            // The first column and row of blocks store nothing.
            bool stored = x < WIDTH && x >= BOX_WIDTH - 4 && y >= BOX_HEIGHT - 2;
            float was = in[y * PADDED + x];
            if (out[y * PADDED + x] != (stored ? 2 * was : 0))
                fail("stored (%d, %d): %g of %g", x, y, out[y * PADDED + x], was);
            if (sums[y * PADDED + x] != (stored ? 3 * was : was))
                fail("added (%d, %d): %g to %g", x, y, sums[y * PADDED + x], was);
        }

    changed<<<1, 32, room>>>(in_map, d_sums, 10, d_map, d_seen);
    CUDA(cudaGetLastError());
    CUDA(cudaMemcpy(seen.data(), d_seen, BOX_WIDTH * BOX_HEIGHT * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < BOX_WIDTH * BOX_HEIGHT; i++) {
        int x = i % BOX_WIDTH, y = i / BOX_WIDTH;
        float expected = y < 10 ? sums[y * PADDED + x] : 0;
        if (seen[i] != expected)
            fail("by the changed map (%d, %d): %g, expected %g", x, y, seen[i], expected);
    }
    return pass();
}
