// compute_120a
// Values that nobody has written, in products whose blocks have factors (PTX ISA, mma, Block scaling): factors of rows of A lie in two
// threads of each group of four, those of columns of B in one, and of these only the bytes count that the instruction names.
#include "check.h"

const int threads = 32;

__device__ float4 product(const unsigned *a, unsigned of_rows, unsigned of_columns)
{
    float4 d;
    int t = threadIdx.x;
    asm volatile("mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %8}, {%9, %9, %9, %9}, %10, {1, 0}, %11, {0, 2};"
                 : "=f"(d.x), "=f"(d.y), "=f"(d.z), "=f"(d.w)
                 : "r"(a[t]), "r"(a[t + 32]), "r"(a[t + 64]), "r"(a[t + 96]), "r"(0), "f"(0.f), "r"(of_rows), "r"(of_columns));
    return d;
}

struct Memory {
    Memory(unsigned char leave)
    {
        CUDA(cudaMalloc(&a, 4 * threads * sizeof(unsigned)));
        CUDA(cudaMemset(a, 0, 4 * threads * sizeof(unsigned)));
        // Byte 1 of the first two threads of each group, byte 0 of the third.
        CUDA(cudaMalloc(&rows, threads * 4));
        CUDA(cudaMalloc(&columns, threads * 4));
        for (int t = 0; t < threads; t++) {
            if (t % 4 < 2 && t != leave) CUDA(cudaMemset(rows + 4 * t + 1, 127, 1));
            if (t % 4 == 2 && t != leave) CUDA(cudaMemset(columns + 4 * t, 127, 1));
        }
    }
    unsigned *a;
    char *rows, *columns;
    Array<> out{2};
};

static void done()
{
    CUDA(cudaGetLastError());
    CUDA(cudaDeviceSynchronize());
}

// Thread 21 has the factors of row 5 + 8.
__global__ void row(const unsigned *a, const unsigned *of_rows, const unsigned *of_columns, int *out)
{
    int t = threadIdx.x;
    float4 d = product(a, of_rows[t], of_columns[t]);
    if (d.x == 7 || d.y == 7) out[0] = 1;
    if (t / 4 == EITHER(5, 6) && d.z == 7)              // init row
        out[1] = 1;
}

TEST(factor_of_a_row)
{
    Memory m(21);
    row<<<1, threads>>>(m.a, (unsigned *)m.rows, (unsigned *)m.columns, m.out);
    done();
}

// Thread 22 has those of column 5, which threads 4i + 2 hold in registers 1 and 3.
__global__ void column(const unsigned *a, const unsigned *of_rows, const unsigned *of_columns, int *out)
{
    int t = threadIdx.x;
    float4 d = product(a, of_rows[t], of_columns[t]);
    if (d.x == 7 || d.z == 7) out[0] = 1;
    if (t % 4 == EITHER(2, 1) && d.w == 7)              // init column
        out[1] = 1;
}

TEST(factor_of_a_column)
{
    Memory m(22);
    column<<<1, threads>>>(m.a, (unsigned *)m.rows, (unsigned *)m.columns, m.out);
    done();
}
