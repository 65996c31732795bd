// Arguments of kernels and functions: structures of odd sizes, arrays inside them, up to the 4 KiB limit; many of them;
// kernels that are templates; local arrays indexed by run-time values.
#include "check.h"

struct Odd {
    char tag[3];
    double weight;
    short pair[2];
    bool flag;
};
struct Big {
    int values[1000];
};
struct alignas(16) Wide {
    float4 v;
    long long w;
};
struct Empty {};

__global__ void odd(Odd a, char c, Wide w, Empty, Odd *out, int which)
{
    a.tag[which] = c;
    a.weight += w.v.z + w.w;
    a.pair[which & 1]++;
    a.flag = !a.flag;
    *out = a;
}
__global__ void big(Big b, int *sum, int n)
{
    int total = 0;
    for (int i = threadIdx.x; i < n; i += 32) total += b.values[(i * 7) % 1000];
    atomicAdd(sum, total);
}
__global__ void many(char a, short b, int c, long long d, float e, double f, char g, unsigned char h, short i, bool j, int *out, float k, char l,
                     double m)
{
    *out = a + b + c + (int)d + (int)e + (int)f + g + h + i + j + (int)k + l + (int)m;
}

__device__ __noinline__ Big doubled(Big b, int from)
{
    for (int i = from; i < 1000; i++) b.values[i] *= 2;
    return b;
}
__global__ void through_function(int *out)
{
    Big b;
    for (int i = 0; i < 1000; i++) b.values[i] = i + threadIdx.x;
    b = doubled(b, 990 + threadIdx.x);
    int sum = 0;
    for (int i = 0; i < 1000; i++) sum += b.values[i];
    out[threadIdx.x] = sum;
}
template <int N, typename T> __global__ void local_array(T *out, int shift)
{
    T room[N];
    for (int i = 0; i < N; i++) room[(i + shift) % N] = (T)(i * 3 + threadIdx.x);
    T sum = 0;
    for (int i = 0; i < N; i++) sum += room[(i * 5) % N] * (T)i;
    out[threadIdx.x] = sum;
}

int main()
{
    Odd a = {{'x', 'y', 'z'}, 2.5, {10, 20}, true}, *out;
    Wide w = {{1, 2, 3, 4}, 1000};
    CUDA(cudaMallocManaged(&out, sizeof *out));
    odd<<<1, 1>>>(a, 'Q', w, Empty(), out, 1);
    FINISHED();
    EXPECT(out->tag[0] == 'x' && out->tag[1] == 'Q' && out->tag[2] == 'z' && out->weight == 1005.5);
    EXPECT(out->pair[0] == 10 && out->pair[1] == 21 && !out->flag);

    Big b;
    int *sum, want = 0;
    for (int i = 0; i < 1000; i++) b.values[i] = i * i;
    CUDA(cudaMallocManaged(&sum, 64 * sizeof *sum));
    *sum = 0;
    big<<<1, 32>>>(b, sum, 1000);
    FINISHED();
    for (int i = 0; i < 1000; i++) want += i * i;
    EXPECT_EQ(*sum, want);

    many<<<1, 1>>>(-1, -200, 3000, -40000, 5e5f, 6e6, 7, 250, -9000, true, sum, 11.9f, -12, -13.5);
    FINISHED();
    EXPECT_EQ(*sum, -1 - 200 + 3000 - 40000 + 500000 + 6000000 + 7 + 250 - 9000 + 1 + 11 - 12 - 13);

    CUDA(cudaDeviceSetLimit(cudaLimitStackSize, 32 << 10));
    through_function<<<1, 8>>>(sum);
    FINISHED();
    for (int t = 0; t < 8; t++) {
        want = 0;
        for (int i = 0; i < 1000; i++) want += (i + t) * (i >= 990 + t ? 2 : 1);
        EXPECT_EQ(sum[t], want);
    }
    double *wide;
    CUDA(cudaMallocManaged(&wide, 64 * sizeof *wide));
    local_array<37><<<1, 64>>>(sum, 11);
    local_array<100><<<1, 64>>>(wide, 33);
    FINISHED();
    for (int t = 0; t < 64; t++) {
        int room[37], total = 0;
        double wide_room[100], wide_total = 0;
        for (int i = 0; i < 37; i++) room[(i + 11) % 37] = i * 3 + t;
        for (int i = 0; i < 37; i++) total += room[(i * 5) % 37] * i;
        for (int i = 0; i < 100; i++) wide_room[(i + 33) % 100] = i * 3 + t;
        for (int i = 0; i < 100; i++) wide_total += wide_room[(i * 5) % 100] * i;
        EXPECT_EQ(sum[t], total);
        EXPECT(wide[t] == wide_total);
    }
    return pass();
}
