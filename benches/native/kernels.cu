// The kernels of `make bench-native`, as people write them. native.c has the same work in C for the CPU.

#include <cstdint>

#define KERNEL extern "C" __global__ void

// Streaming: a thread per element, and a loop with the grid's stride.

KERNEL saxpy(int n, float a, const float *__restrict__ x, float *__restrict__ y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

KERNEL triad(int n, float s, const float *__restrict__ b, const float *__restrict__ c, float *__restrict__ a) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) a[i] = b[i] + s * c[i];
}

// One step of heat on a plane, the rim kept as it is.
KERNEL stencil(int width, int height, const float *__restrict__ in, float *__restrict__ out) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    int at = y * width + x;
    if (x == 0 || y == 0 || x == width - 1 || y == height - 1) {
        out[at] = in[at];
    } else {
        out[at] = 0.5f * in[at] + 0.125f * (in[at - 1] + in[at + 1] + in[at - width] + in[at + width]);
    }
}

// Blocks of 32×8 threads, a tile of 32×32 with a column more against bank conflicts.
KERNEL transpose(int n, const float *__restrict__ in, float *__restrict__ out) {
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x;
    int y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}

// The textbook's matrix product: 16×16 threads, an element each.
KERNEL matmul_simple(int n, const float *a, const float *b, float *c) {
    __shared__ float as[16][16], bs[16][16];
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; k += 16) {
        as[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
        bs[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + column];
        __syncthreads();
        for (int i = 0; i < 16; i++) sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

// 64×64 of the product by 256 threads, 4×4 in registers each.
KERNEL matmul_tiled(int n, const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c) {
    __shared__ float as[16][64], bs[16][64];
    int t = threadIdx.x;
    int tx = t % 16, ty = t / 16;
    int row = blockIdx.y * 64, column = blockIdx.x * 64;
    float sum[4][4] = {};
    for (int k = 0; k < n; k += 16) {
        float4 of_a = *reinterpret_cast<const float4 *>(&a[(row + t / 4) * n + k + t % 4 * 4]);
        as[t % 4 * 4 + 0][t / 4] = of_a.x;
        as[t % 4 * 4 + 1][t / 4] = of_a.y;
        as[t % 4 * 4 + 2][t / 4] = of_a.z;
        as[t % 4 * 4 + 3][t / 4] = of_a.w;
        *reinterpret_cast<float4 *>(&bs[ty][tx * 4]) =
            *reinterpret_cast<const float4 *>(&b[(k + ty) * n + column + tx * 4]);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 16; i++) {
            float4 x = *reinterpret_cast<const float4 *>(&as[i][ty * 4]);
            float4 y = *reinterpret_cast<const float4 *>(&bs[i][tx * 4]);
            float xs[4] = {x.x, x.y, x.z, x.w}, ys[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
            for (int r = 0; r < 4; r++)
#pragma unroll
                for (int s = 0; s < 4; s++) sum[r][s] += xs[r] * ys[s];
        }
        __syncthreads();
    }
    for (int r = 0; r < 4; r++) {
        float4 v = make_float4(sum[r][0], sum[r][1], sum[r][2], sum[r][3]);
        *reinterpret_cast<float4 *>(&c[(row + ty * 4 + r) * n + column + tx * 4]) = v;
    }
}

// A sum by a tree in shared memory; the sums of blocks are summed by a second launch.
KERNEL reduce(int n, const float *__restrict__ in, float *__restrict__ out) {
    __shared__ float sums[256];
    int t = threadIdx.x;
    float sum = 0;
    for (int i = blockIdx.x * 256 + t; i < n; i += gridDim.x * 256) sum += in[i];
    sums[t] = sum;
    __syncthreads();
    for (int s = 128; s > 0; s >>= 1) {
        if (t < s) sums[t] += sums[t + s];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = sums[0];
}

// A dot product: shuffles inside warps, then among them, then one addition to memory for a block.
KERNEL dot(int n, const float *__restrict__ x, const float *__restrict__ y, float *__restrict__ out) {
    __shared__ float sums[8];
    float sum = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) sum += x[i] * y[i];
    for (int d = 16; d > 0; d >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, d);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = threadIdx.x < 8 ? sums[threadIdx.x] : 0;
        for (int d = 4; d > 0; d >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, d);
        if (threadIdx.x == 0) atomicAdd(out, sum);
    }
}

KERNEL histogram(int n, const uint32_t *__restrict__ in, uint32_t *__restrict__ bins) {
    __shared__ uint32_t mine[256];
    mine[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        uint32_t four = in[i];
        atomicAdd(&mine[four & 255], 1);
        atomicAdd(&mine[four >> 8 & 255], 1);
        atomicAdd(&mine[four >> 16 & 255], 1);
        atomicAdd(&mine[four >> 24], 1);
    }
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], mine[threadIdx.x]);
}

// Blelloch's exclusive scan of 1024 elements by 512 threads, up the tree and down; the block's sum goes to `sums`.
KERNEL scan(const uint32_t *__restrict__ in, uint32_t *__restrict__ out, uint32_t *__restrict__ sums) {
    __shared__ uint32_t tree[1024];
    int t = threadIdx.x;
    size_t base = size_t(blockIdx.x) * 1024;
    tree[t] = in[base + t];
    tree[t + 512] = in[base + t + 512];
    int offset = 1;
    for (int d = 512; d > 0; d >>= 1) {
        __syncthreads();
        if (t < d) tree[offset * (2 * t + 2) - 1] += tree[offset * (2 * t + 1) - 1];
        offset *= 2;
    }
    if (t == 0) {
        sums[blockIdx.x] = tree[1023];
        tree[1023] = 0;
    }
    for (int d = 1; d < 1024; d *= 2) {
        offset >>= 1;
        __syncthreads();
        if (t < d) {
            int a = offset * (2 * t + 1) - 1, b = offset * (2 * t + 2) - 1;
            uint32_t left = tree[a];
            tree[a] = tree[b];
            tree[b] += left;
        }
    }
    __syncthreads();
    out[base + t] = tree[t];
    out[base + t + 512] = tree[t + 512];
}

KERNEL scan_add(uint32_t *__restrict__ out, const uint32_t *__restrict__ sums) {
    size_t at = size_t(blockIdx.x) * 1024 + threadIdx.x;
    uint32_t before = sums[blockIdx.x];
    out[at] += before;
    out[at + 512] += before;
}

KERNEL nbody(int n, const float4 *__restrict__ bodies, float4 *__restrict__ forces) {
    __shared__ float4 tile[256];
    int i = blockIdx.x * 256 + threadIdx.x;
    float4 me = bodies[i];
    float ax = 0, ay = 0, az = 0;
    for (int first = 0; first < n; first += 256) {
        tile[threadIdx.x] = bodies[first + threadIdx.x];
        __syncthreads();
#pragma unroll 8
        for (int j = 0; j < 256; j++) {
            float4 other = tile[j];
            float dx = other.x - me.x, dy = other.y - me.y, dz = other.z - me.z;
            float r = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-3f);
            float f = other.w * r * r * r;
            ax += dx * f;
            ay += dy * f;
            az += dz * f;
        }
        __syncthreads();
    }
    forces[i] = make_float4(ax, ay, az, 0);
}

__device__ static float normal_cdf(float d) {
    float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
    float poly = k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
    float tail = 0.39894228f * expf(-0.5f * d * d) * poly;
    return d > 0 ? 1.0f - tail : tail;
}

KERNEL black_scholes(int n, float rate, float volatility, const float *__restrict__ price, const float *__restrict__ strike,
                     const float *__restrict__ years, float *__restrict__ call, float *__restrict__ put) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float root = sqrtf(years[i]);
    float d1 = (logf(price[i] / strike[i]) + (rate + 0.5f * volatility * volatility) * years[i]) / (volatility * root);
    float d2 = d1 - volatility * root;
    float n1 = normal_cdf(d1), n2 = normal_cdf(d2);
    float discounted = strike[i] * expf(-rate * years[i]);
    call[i] = price[i] * n1 - discounted * n2;
    put[i] = discounted * (1.0f - n2) - price[i] * (1.0f - n1);
}

KERNEL mandelbrot(int width, int height, int limit, int *__restrict__ out) {
    int px = blockIdx.x * blockDim.x + threadIdx.x;
    int py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= width || py >= height) return;
    float cx = -2.0f + 3.0f * px / width, cy = -1.5f + 3.0f * py / height;
    float x = 0, y = 0;
    int n = 0;
    while (n < limit && x * x + y * y < 4.0f) {
        float next = x * x - y * y + cx;
        y = 2.0f * x * y + cy;
        x = next;
        n++;
    }
    out[py * width + px] = n;
}

// Bitonic sort: steps that stay inside 1024 elements in shared memory, the others a launch each.

KERNEL bitonic_shared(uint32_t *keys, uint32_t from, uint32_t to) {
    __shared__ uint32_t own[1024];
    uint32_t t = threadIdx.x, base = blockIdx.x * 1024;
    own[t] = keys[base + t];
    own[t + 512] = keys[base + t + 512];
    for (uint32_t size = from; size <= to; size *= 2) {
        for (uint32_t stride = min(size / 2, 512u); stride > 0; stride /= 2) {
            __syncthreads();
            uint32_t at = 2 * t - (t & (stride - 1));
            bool up = ((base + at) & size) == 0;
            uint32_t a = own[at], b = own[at + stride];
            if ((a > b) == up) {
                own[at] = b;
                own[at + stride] = a;
            }
        }
    }
    __syncthreads();
    keys[base + t] = own[t];
    keys[base + t + 512] = own[t + 512];
}

KERNEL bitonic_step(uint32_t *keys, uint32_t size, uint32_t stride) {
    uint32_t t = blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t at = 2 * t - (t & (stride - 1));
    uint32_t a = keys[at], b = keys[at + stride];
    if ((a > b) == ((at & size) == 0)) {
        keys[at] = b;
        keys[at + stride] = a;
    }
}

// A thread per row of a sparse matrix.
KERNEL spmv(int rows, const int *__restrict__ starts, const int *__restrict__ columns, const float *__restrict__ values,
            const float *__restrict__ x, float *__restrict__ y) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0;
    for (int k = starts[row]; k < starts[row + 1]; k++) sum += values[k] * x[columns[k]];
    y[row] = sum;
}

// The price of an option from random paths, with Box and Muller's normal numbers, all in double precision.
KERNEL monte_carlo(int paths, double price, double strike, double drift, double spread, double *__restrict__ sums) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    uint64_t state = 0x9e3779b97f4a7c15ull * (t + 1);
    double sum = 0;
    for (int i = 0; i < paths; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        double u = double((state >> 32) + 1) * 0x1p-32;
        double v = double(state & 0xffffffffu) * 0x1p-32;
        double z = sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
        sum += fmax(price * exp(drift + spread * z) - strike, 0.0);
    }
    sums[t] = sum;
}

// A row filter of 17 taps: coefficients in constant memory, 256 elements and their rim in shared memory.

__constant__ float taps[17];

KERNEL convolution(int n, const float *__restrict__ in, float *__restrict__ out) {
    __shared__ float row[256 + 16];
    int i = blockIdx.x * 256 + threadIdx.x;
    for (int k = threadIdx.x; k < 256 + 16; k += 256) {
        int from = int(blockIdx.x) * 256 + k - 8;
        row[k] = from >= 0 && from < n ? in[from] : 0.0f;
    }
    __syncthreads();
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 17; k++) sum += taps[k] * row[threadIdx.x + k];
    if (i < n) out[i] = sum;
}

// SHA-256 of one chunk that holds a number, a thread per number: integers, rotations, a table in constant memory.

__constant__ uint32_t sha_table[64];

__device__ static uint32_t turned(uint32_t x, int by) { return x >> by | x << (32 - by); }

KERNEL sha256(int n, uint32_t *__restrict__ out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint32_t w[16] = {uint32_t(i), 0x80000000u};
    w[15] = 32;
    uint32_t a = 0x6a09e667, b = 0xbb67ae85, c = 0x3c6ef372, d = 0xa54ff53a;
    uint32_t e = 0x510e527f, f = 0x9b05688c, g = 0x1f83d9ab, h = 0x5be0cd19;
#pragma unroll
    for (int r = 0; r < 64; r++) {
        if (r >= 16) {
            uint32_t x = w[(r + 1) % 16], y = w[(r + 14) % 16];
            w[r % 16] += (turned(x, 7) ^ turned(x, 18) ^ x >> 3) + w[(r + 9) % 16] + (turned(y, 17) ^ turned(y, 19) ^ y >> 10);
        }
        uint32_t t1 = h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & f) ^ (~e & g)) + sha_table[r] + w[r % 16];
        uint32_t t2 = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    out[i] = a + 0x6a09e667 ^ b + 0xbb67ae85 ^ c + 0x3c6ef372 ^ d + 0xa54ff53a ^ e + 0x510e527f ^ f + 0x9b05688c ^
             g + 0x1f83d9ab ^ h + 0x5be0cd19;
}

// Named by --only: what warps do together, and additions to global memory.

// A softmax of rows of 256 numbers, a warp for each: the largest and the sum go round by shuffles.
KERNEL softmax(const float *__restrict__ in, float *__restrict__ out) {
    size_t row = (size_t(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
    int lane = threadIdx.x % 32;
    float own[8], largest = -INFINITY, sum = 0;
    for (int k = 0; k < 8; k++) largest = fmaxf(largest, own[k] = in[row * 256 + k * 32 + lane]);
    for (int d = 16; d > 0; d /= 2) largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, d));
    for (int k = 0; k < 8; k++) sum += own[k] = __expf(own[k] - largest);
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
    for (int k = 0; k < 8; k++) out[row * 256 + k * 32 + lane] = own[k] / sum;
}

// How often each of 4096 keys is there, counted in global memory.
KERNEL count_keys(int n, const uint32_t *__restrict__ keys, uint32_t *__restrict__ counts) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&counts[keys[i] % 4096], 1);
}

// Keeps what is below a limit: a vote says who has something to write, and one lane makes room for its warp.
KERNEL compact(int n, uint32_t limit, const uint32_t *__restrict__ in, uint32_t *__restrict__ out, uint32_t *__restrict__ count) {
    uint32_t lane = threadIdx.x % 32;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        uint32_t x = in[i];
        uint32_t kept = __ballot_sync(0xffffffffu, x < limit);
        uint32_t at = 0;
        if (lane == 0) at = atomicAdd(count, __popc(kept));
        at = __shfl_sync(0xffffffffu, at, 0);
        if (x < limit) out[at + __popc(kept & ((1u << lane) - 1))] = x;
    }
}
