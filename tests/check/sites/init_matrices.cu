// Values that nobody has written, through operations on matrices: rows, tiles and fragments take along what is missing, and an element
// of a product is missing if something is of its row of A, its column of B, or its own C. Which thread holds which element is from the
// PTX manual (Matrix Fragments for mma). Where the mistake stays in the mended program, what is looked at there is not made from it.
#include <cuda_fp16.h>
#include <mma.h>
#include "check.h"

const int threads = 32;

// Device memory of which nothing has been written but what the host copies there.
template <class T = unsigned> class Raw {
  public:
    explicit Raw(int count) : count_(count) { CUDA(cudaMalloc(&start_, count * sizeof(T))); }
    ~Raw() { cudaFree(start_); }
    Raw(const Raw &) = delete;
    operator T *() const { return start_; }
    // All but one element.
    Raw &but(int one) { return zeros(0, one).zeros(one + 1, count_); }
    Raw &zeros() { return zeros(0, count_); }
    Raw &zeros(int from, int to)
    {
        if (from < to) CUDA(cudaMemset(start_ + from, 0, (to - from) * sizeof(T)));
        return *this;
    }

  private:
    T *start_;
    int count_;
};

static void done()
{
    CUDA(cudaGetLastError());
    CUDA(cudaDeviceSynchronize());
}

// Rows of eight halves, and space behind each that nobody writes or uses.
const int pitch = 24;

static __device__ unsigned shared_address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

// One row of the second of four matrices is not there; threads 12 to 15 get it.
__global__ void load_rows(int *out)
{
    __shared__ alignas(16) __half tile[32 * pitch];
    int t = threadIdx.x;
    if (EITHER(t != 8 + 3, true))
        for (int i = 0; i < 8; i++) tile[t * pitch + i] = __half(float(i));
    __syncwarp();
    unsigned r[4];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(&tile[t * pitch])));
    if (r[0] == 7 || r[2] == 7 || r[3] == 7) out[0] = 1;
    if (t / 4 != 3 && r[1] == 7) out[1] = 1;
    if (t / 4 == 3 && r[1] == 7)                        // init row
        out[2] = 1;
}

TEST(ldmatrix)
{
    Array out(3);
    load_rows<<<1, threads>>>(out);
    done();
}

// Transposed a row is half a register of every fourth thread.
__global__ void load_columns(int *out)
{
    __shared__ alignas(16) __half tile[8 * pitch];
    int t = threadIdx.x;
    if (t < 8 && t != 3)
        for (int i = 0; i < 8; i++) tile[t * pitch + i] = __half(float(i));
    __syncwarp();
    unsigned r;
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
                 : "=r"(r)
                 : "r"(shared_address(&tile[t % 8 * pitch])));
    if (t % 4 != 1 && r == 7) out[0] = 1;
    if (t % 4 == 1 && (r & EITHER(0xffff0000, 0xffff)) == 0) // init row
        out[1] = 1;
}

TEST(ldmatrix_trans)
{
    Array out(2);
    load_columns<<<1, threads>>>(out);
    done();
}

// The element in row 5 and column 2 is thread 21's low half, and goes to row 2 and column 5, thread 10's high half.
__global__ void transpose(const __half2 *in, int *out)
{
    int t = threadIdx.x;
    unsigned r = ((const unsigned *)in)[t], moved;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(moved) : "r"(r));
    if (t != 10 && moved == 7) out[0] = 1;
    if (t == 10 && (moved & EITHER(0xffff0000, 0xffff)) == 0) // init element
        out[1] = 1;
}

TEST(movmatrix)
{
    Raw<__half> in(64);
    in.but(5 * 8 + 2);
    Array out(2);
    transpose<<<1, threads>>>((const __half2 *)(__half *)in, out);
    done();
}

// Thread 9 holds columns 2 and 3 of row 2.
__global__ void store_rows(const unsigned *in, int *out)
{
    __shared__ alignas(16) unsigned short tile[8 * pitch];
    int t = threadIdx.x;
    unsigned r = in[t];
    asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" : : "r"(shared_address(&tile[t % 8 * pitch])), "r"(r));
    __syncwarp();
    for (int i = 0; i < 8; i++)
        if ((t != 2 || (i != 2 && i != 3)) && t < 8 && tile[t * pitch + i] == 7) out[0] = 1;
    if (tile[2 * pitch + EITHER(3, 4)] == 7)            // init element
        out[1] = 1;
}

TEST(stmatrix)
{
    Raw in(threads);
    in.but(9);
    Array out(2);
    store_rows<<<1, threads>>>(in, out);
    done();
}

// Transposed columns 2 and 3 of row 2 lie in row 2 of rows 2 and 3.
__global__ void store_columns(const unsigned *in, int *out)
{
    __shared__ alignas(16) unsigned short tile[8 * pitch];
    int t = threadIdx.x;
    asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" : : "r"(shared_address(&tile[t % 8 * pitch])), "r"(in[t]));
    __syncwarp();
    if (tile[EITHER(3 * pitch + 2, 2 * pitch + 3)] == 7) // init element
        out[0] = 1;
}

TEST(stmatrix_trans)
{
    Raw in(threads);
    in.but(9);
    Array out(1);
    store_columns<<<1, threads>>>(in, out);
    done();
}

using namespace nvcuda;

// Of 16 rows and columns in device memory, behind each of which is space that nobody writes, to shared memory.
__device__ void tiles(const __half *a, const __half *b, float *c)
{
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> of_a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> of_b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> of_c;
    wmma::fill_fragment(of_c, 0);
    wmma::load_matrix_sync(of_a, a, 24);
    wmma::load_matrix_sync(of_b, b, 24);
    wmma::mma_sync(of_c, of_a, of_b, of_c);
    wmma::store_matrix_sync(c, of_c, 20, wmma::mem_row_major);
    __syncwarp();
}

// All elements but one, if it is of these lines.
static void fill(Raw<__half> &lines, int line = 16, int along = 0)
{
    for (int i = 0; i < 16; i++) {
        lines.zeros(i * 24, i * 24 + (i == line ? along : 16));
        if (i == line) lines.zeros(i * 24 + along + 1, i * 24 + 16);
    }
}

__global__ void row_of_a_tile(const __half *a, const __half *b, int *out)
{
    __shared__ float c[16 * 20];
    int t = threadIdx.x;
    tiles(a, b, c);
    for (int row = 0; row < 16; row++)
        if (row != 6 && c[row * 20 + t % 16] == 7) out[0] = 1;
    if (c[EITHER(6, 5) * 20 + t % 16] == 7)             // init row
        out[1] = 1;
}

TEST(wmma_row)
{
    Raw<__half> a(16 * 24), b(16 * 24);
    fill(a, 6, 3);
    fill(b);
    row_of_a_tile<<<1, threads>>>(a, b, Array(2));
    done();
}

__global__ void column_of_a_tile(const __half *a, const __half *b, int *out)
{
    __shared__ float c[16 * 20];
    int t = threadIdx.x;
    tiles(a, b, c);
    for (int column = 0; column < 16; column++)
        if (column != 9 && c[t % 16 * 20 + column] == 7) out[0] = 1;
    if (c[t % 16 * 20 + EITHER(9, 8)] == 7)             // init column
        out[1] = 1;
}

TEST(wmma_column)
{
    Raw<__half> a(16 * 24), b(16 * 24);
    fill(a);
    fill(b, 9, 14);
    column_of_a_tile<<<1, threads>>>(a, b, Array(2));
    done();
}

// A register of each thread for each number of a fragment, as they lie in memory.
template <int n> struct Fragment {
    unsigned of[n];
};

template <int n> __device__ Fragment<n> fragment(const unsigned *in)
{
    Fragment<n> f;
    for (int i = 0; i < n; i++) f.of[i] = in[i * threads + threadIdx.x];
    return f;
}

// m16n8k16 of halves.
__device__ Fragment<4> multiply(Fragment<4> a, Fragment<2> b, Fragment<4> c)
{
    Fragment<4> d;
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
                 : "=r"(d.of[0]), "=r"(d.of[1]), "=r"(d.of[2]), "=r"(d.of[3])
                 : "r"(a.of[0]), "r"(a.of[1]), "r"(a.of[2]), "r"(a.of[3]), "r"(b.of[0]), "r"(b.of[1]), "r"(c.of[0]), "r"(c.of[1]),
                   "r"(c.of[2]), "r"(c.of[3]));
    return d;
}

// Register 3 of thread 22 has row 5 + 8 of A, which is row 5 of registers 2 and 3 of D.
__global__ void row_of_product(const unsigned *a, const unsigned *b, const unsigned *c, int *out)
{
    auto d = multiply(fragment<4>(a), fragment<2>(b), fragment<4>(c));
    bool is_row = threadIdx.x / 4 == 5;
    if (d.of[0] == 7 || d.of[1] == 7) out[0] = 1;
    if (!is_row && (d.of[2] == 7 || d.of[3] == 7)) out[1] = 1;
    if (is_row && d.of[EITHER(3, 1)] == 7)              // init row
        out[2] = 1;
}

TEST(mma_row)
{
    Raw a(4 * threads), b(2 * threads), c(4 * threads);
    row_of_product<<<1, threads>>>(a.but(3 * threads + 22), b.zeros(), c.zeros(), Array(3));
    done();
}

// Register 1 of thread 15 has column 3 of B, which threads 4i + 1 have in registers 1 and 3 of D.
__global__ void column_of_product(const unsigned *a, const unsigned *b, const unsigned *c, int *out)
{
    auto d = multiply(fragment<4>(a), fragment<2>(b), fragment<4>(c));
    bool has_column = threadIdx.x % 4 == 1;
    if (d.of[0] == 7 || d.of[2] == 7) out[0] = 1;
    if (!has_column && (d.of[1] == 7 || d.of[3] == 7)) out[1] = 1;
    if (has_column && d.of[EITHER(1, 0)] == 7)          // init column
        out[2] = 1;
}

TEST(mma_column)
{
    Raw a(4 * threads), b(2 * threads), c(4 * threads);
    column_of_product<<<1, threads>>>(a.zeros(), b.but(threads + 15), c.zeros(), Array(3));
    done();
}

// An element of C is one of D, and no other: also where the sum goes round in a loop.
__global__ void sum_of_products(const unsigned *a, const unsigned *b, const unsigned *c, int *out, int rounds)
{
    auto sum = fragment<4>(c);
    for (int i = 0; i < rounds; i++) sum = multiply(fragment<4>(a), fragment<2>(b), sum);
    bool is_it = threadIdx.x == 19;
    if (sum.of[0] == 7 || sum.of[1] == 7 || sum.of[3] == 7) out[0] = 1;
    if (!is_it && sum.of[2] == 7) out[1] = 1;
    if (is_it && sum.of[EITHER(2, 1)] == 7)             // init element
        out[2] = 1;
}

TEST(mma_sum)
{
    Raw a(4 * threads), b(2 * threads), c(4 * threads);
    sum_of_products<<<1, threads>>>(a.zeros(), b.zeros(), c.but(2 * threads + 19), Array(3), 3);
    done();
}

// Sums of halves: two elements of a row in each register.
__global__ void halves(const unsigned *in, int *out)
{
    unsigned d[2], c = in[threadIdx.x];
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %2}, {%2}, {%3, %2};"
                 : "=r"(d[0]), "=r"(d[1])
                 : "r"(0), "r"(c));
    if (d[1] == 7 || (d[0] & EITHER(0xffff0000, 0xffff)) == 0) // init half
        out[0] = 1;
}

TEST(mma_halves)
{
    Raw<__half> in(2 * threads);
    halves<<<1, threads>>>((const unsigned *)(__half *)in.but(2 * 11 + 1), Array(1));
    done();
}

// m16n8k32 of bytes: register 1 of A has rows 8 to 15; of register 0 thread 6 has row 1.
__global__ void bytes(const unsigned *a, int *out)
{
    int d[4];
    auto of_a = fragment<4>(a);
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %8}, {%8, %8, %8, %8};"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                 : "r"(of_a.of[0]), "r"(of_a.of[1]), "r"(of_a.of[2]), "r"(of_a.of[3]), "r"(0));
    if (d[2] == 7 || d[3] == 7) out[0] = 1;
    if (threadIdx.x / 4 == EITHER(1, 2) && d[0] == 7)   // init row
        out[1] = 1;
}

TEST(mma_bytes)
{
    Raw<char> a(4 * threads * 4);
    bytes<<<1, threads>>>((const unsigned *)(char *)a.but(4 * 6 + 1), Array(2));
    done();
}

// m8n8k4 of f64: thread 14 has row 3 of A, threads 12 to 15 that of D.
__global__ void doubles(const double *a, int *out)
{
    double d[2];
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%3, %3};" : "=d"(d[0]), "=d"(d[1]) : "d"(a[threadIdx.x]), "d"(0.0));
    if (threadIdx.x / 4 != 3 && d[0] + d[1] == 7) out[0] = 1;
    if (threadIdx.x / 4 == EITHER(3, 4) && d[1] == 7)   // init row
        out[1] = 1;
}

TEST(mma_doubles)
{
    Raw<double> a(threads);
    doubles<<<1, threads>>>(a.but(14), Array(2));
    done();
}

// m8n8k4 of halves: four products at once. Thread 18 has row 6 of A of the first, which is missing in threads 16 to 19: of sums of
// f32 row 6 is registers 2, 3, 6 and 7 of threads 16 and 18.
__global__ void quad_pairs(const unsigned *a, int *out)
{
    float d[8];
    int t = threadIdx.x;
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9}, {%9, %9}, {%10, %10, %10, %10, %10, %10, %10, %10};"
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]), "=f"(d[4]), "=f"(d[5]), "=f"(d[6]), "=f"(d[7])
                 : "r"(a[t]), "r"(0), "f"(0.f));
    bool has_row = t == 16 || t == 18;
    if (d[0] == 7 || d[1] == 7 || d[4] == 7 || d[5] == 7) out[0] = 1;
    if (!has_row && (d[2] == 7 || d[3] == 7 || d[6] == 7 || d[7] == 7)) out[1] = 1;
    if (has_row && d[EITHER(6, 4)] == 7)                // init row
        out[2] = 1;
}

TEST(mma_quad_pairs)
{
    Raw a(threads);
    quad_pairs<<<1, threads>>>(a.but(18), Array(3));
    done();
}

// A sparse A whose metadata name the first two of four columns: rows 2 and 3 of four of B are not multiplied, which threads 1, 3, 5 ...
// hold. What else is not there is not looked at: metadata of the other threads of each group.
__device__ Fragment<4> sparse(const unsigned *a, const unsigned *b, const unsigned *metadata)
{
    auto of_a = fragment<4>(a), of_b = fragment<4>(b);
    Fragment<4> d;
    asm volatile("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9, %10, %11}, {%12, %12, %12, %12}, %13, 0x0;"
                 : "=r"(d.of[0]), "=r"(d.of[1]), "=r"(d.of[2]), "=r"(d.of[3])
                 : "r"(of_a.of[0]), "r"(of_a.of[1]), "r"(of_a.of[2]), "r"(of_a.of[3]), "r"(of_b.of[0]), "r"(of_b.of[1]),
                   "r"(of_b.of[2]), "r"(of_b.of[3]), "r"(0), "r"(metadata[threadIdx.x]));
    return d;
}

// Metadata of the threads that hold them, and B of the threads whose rows are multiplied.
__global__ void fill_sparse(unsigned *metadata, unsigned *b)
{
    int t = threadIdx.x;
    if (t % 4 < 2) metadata[t] = 0x44444444;
    if (t % 2 == 0)
        for (int i = 0; i < 4; i++) b[i * threads + t] = 0;
}

__global__ void sparse_rows_of_b(const unsigned *a, const unsigned *b, const unsigned *metadata, int *out)
{
    auto d = sparse(a, b, metadata);
    if (d.of[0] == 7 || d.of[1] == 7 || d.of[2] == 7 || d.of[3] == 7) // init column
        out[0] = 1;
}

TEST(mma_sparse)
{
    Raw a(4 * threads), b(4 * threads), metadata(threads);
    fill_sparse<<<1, threads>>>(metadata, b);
    // Register 2 of thread 8 has rows 16 and 17 of column 2.
    BROKEN(b.zeros());
    BROKEN(Raw some(1); CUDA(cudaMemcpy(b + 2 * threads + 8, some, sizeof(unsigned), cudaMemcpyDeviceToDevice)));
    sparse_rows_of_b<<<1, threads>>>(a.zeros(), b, metadata, Array(1));
    done();
}

// Thread 13 has half of the metadata of rows 3 and 11.
__global__ void sparse_metadata(const unsigned *a, const unsigned *b, const unsigned *metadata, int *out)
{
    auto d = sparse(a, b, metadata);
    if (threadIdx.x / 4 != 3 && (d.of[0] == 7 || d.of[3] == 7)) out[0] = 1;
    if (threadIdx.x / 4 == EITHER(3, 2) && d.of[2] == 7) // init metadata
        out[1] = 1;
}

__global__ void fill_metadata(unsigned *metadata)
{
    int t = threadIdx.x;
    if (t % 4 < 2 && t != 13) metadata[t] = 0x44444444;
}

TEST(mma_metadata)
{
    Raw a(4 * threads), b(4 * threads), metadata(threads);
    fill_metadata<<<1, threads>>>(metadata);
    sparse_metadata<<<1, threads>>>(a.zeros(), b.zeros(), metadata, Array(2));
    done();
}

// A product as libraries make it, of matrices that are no multiple of its tiles: asynchronous copies that fill what is beyond the edge
// with zeros, rows a little apart, and results that go out by way of shared memory. All of it has been written.
const int m = 37, n = 21, k = 43, tile_m = 64, tile_n = 32, tile_k = 16;

__global__ void __launch_bounds__(128) library_product(const __half *a, const __half *b, float *c)
{
    __shared__ alignas(16) __half of_a[tile_m * pitch], of_b[tile_n * pitch];
    __shared__ float of_c[tile_m * (tile_n + 4)];
    int t = threadIdx.x, lane = t % 32, warp = t / 32;
    Fragment<4> sums[4] = {};
    for (int first = 0; first < k; first += tile_k) {
        for (int i = t; i < (tile_m + tile_n) * tile_k / 2; i += 128) {
            int line = i / (tile_k / 2), along = i % (tile_k / 2) * 2;
            bool is_a = line < tile_m;
            int row = is_a ? line : line - tile_m;
            bool is_there = row < (is_a ? m : n) && first + along < k;
            const __half *from = is_there ? (is_a ? a : b) + row * (k + 1) + first + along : a;
            unsigned to = shared_address(&(is_a ? of_a : of_b)[row * pitch + along]);
            asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" : : "r"(to), "l"(from), "r"(is_there ? 4 : 0));
        }
        asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;");
        __syncthreads();
        Fragment<4> rows;
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(rows.of[0]), "=r"(rows.of[1]), "=r"(rows.of[2]), "=r"(rows.of[3])
                     : "r"(shared_address(&of_a[(warp * 16 + lane % 16) * pitch + lane / 16 * 8])));
        for (int i = 0; i < 4; i++) {
            Fragment<2> columns;
            asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                         : "=r"(columns.of[0]), "=r"(columns.of[1])
                         : "r"(shared_address(&of_b[(i * 8 + lane % 8) * pitch + lane / 8 % 2 * 8])));
            sums[i] = multiply(rows, columns, sums[i]);
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        for (int e = 0; e < 4; e++)
            of_c[(warp * 16 + lane / 4 + 8 * (e / 2)) * (tile_n + 4) + i * 8 + lane % 4 * 2 + e % 2] = __uint_as_float(sums[i].of[e]);
    __syncthreads();
    for (int i = t; i < tile_m * tile_n; i += 128) {
        float sum = of_c[i / tile_n * (tile_n + 4) + i % tile_n];
        if (i / tile_n < m && i % tile_n < n) c[i / tile_n * n + i % tile_n] = sum > 0 ? sum : 0;
    }
}

TEST(product_of_a_library)
{
    // Rows have an even number of halves, the last of which is zero.
    Raw<__half> a(m * (k + 1)), b(n * (k + 1));
    static __half of_a[m * (k + 1)], of_b[n * (k + 1)];
    for (int i = 0; i < m * (k + 1); i++) of_a[i] = __half(i % (k + 1) < k ? i % 5 - 1.f : 0.f);
    for (int i = 0; i < n * (k + 1); i++) of_b[i] = __half(i % (k + 1) < k ? i % 3 - .5f : 0.f);
    CUDA(cudaMemcpy(a, of_a, sizeof of_a, cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(b, of_b, sizeof of_b, cudaMemcpyHostToDevice));
    Raw<float> c(m * n);
    static float host[m * n];
    library_product<<<1, 128>>>(a, b, c);
    CUDA(cudaMemcpy(host, c, sizeof host, cudaMemcpyDeviceToHost));
    done();
    for (int i = 0; i < m * n; i++) {
        float want = 0;
        for (int j = 0; j < k; j++) want += float(of_a[i / n * (k + 1) + j]) * float(of_b[i % n * (k + 1) + j]);
        if (host[i] != (want > 0 ? want : 0)) printf("[%d] is %g, not %g\n", i, host[i], want), exit(2);
    }
}
