// older nvcc: -arch=sm_75
// 64-bit (and some 32-bit) integer arithmetic: products, quotients, shifts, bits, carries, saturation.
#include "check.h"

#include <vector>

typedef unsigned long long u64;
typedef long long s64;
typedef unsigned __int128 u128;
typedef __int128 s128;

const int results = 30;
__global__ void compute(const u64 *as, const u64 *bs, u64 *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    u64 a = as[i], b = bs[i];
    s64 sa = (s64)a, sb = (s64)b;
    unsigned x = (unsigned)a, y = (unsigned)b;
    int sx = (int)x, sy = (int)y;
    u64 *o = out + i * results;
    *o++ = a + b;
    *o++ = a - b;
    *o++ = a * b;
    *o++ = __umul64hi(a, b);
    *o++ = (u64)__mul64hi(sa, sb);
    *o++ = b ? a / b : 1;
    *o++ = b ? a % b : 2;
    bool overflow = sa == (s64)(1ull << 63) && sb == -1;
    *o++ = b && !overflow ? (u64)(sa / sb) : 3;
    *o++ = b && !overflow ? (u64)(sa % sb) : 4;
    *o++ = a << (b & 63);
    *o++ = a >> (b & 63);
    *o++ = (u64)(sa >> (b & 63));
    *o++ = (u64)__popcll(a);
    *o++ = (u64)__clzll(sa);
    *o++ = (u64)__ffsll(sa);
    *o++ = __brevll(a);
    *o++ = (a & b) | (~a ^ b);
    *o++ = sa < sb ? a : b;
    *o++ = a < b ? a : b;
    *o++ = (u64)llabs(sa == (s64)(1ull << 63) ? 0 : sa);
    // 128-bit sums and products.
    u128 wide = (u128)a * b + a;
    *o++ = (u64)wide;
    *o++ = (u64)(wide >> 64);
    *o++ = (u64)(((u128)a << 64 | b) >> (x & 127));
    *o++ = (u64)__umulhi(x, y) << 32 | (unsigned)__mulhi(sx, sy);
    *o++ = (u64)(unsigned)__byte_perm(x, y, 0x7261) << 32 | __funnelshift_l(x, y, y & 31);
    *o++ = (u64)__funnelshift_rc(x, y, y & 63) << 32 | __sad(sx, sy, 7);
    *o++ = (u64)(unsigned)__popc(x) << 48 | (u64)(unsigned)__clz(sx) << 32 | (u64)(unsigned)__ffs(sx) << 16 | (__brev(x) >> 16);
    *o++ = (u64)__vadd4(x, y) << 32 | __usad(x, y, 9);
    *o++ = (u64)(unsigned)__dp4a(sx, sy, 100) << 32 | (unsigned)__hadd(sx, sy);
    *o++ = (u64)__urhadd(x, y) << 32 | (unsigned)__mul24(sx, sy);
}

static void expected(u64 a, u64 b, u64 *o)
{
    s64 sa = (s64)a, sb = (s64)b;
    unsigned x = (unsigned)a, y = (unsigned)b;
    int sx = (int)x, sy = (int)y;
    auto bits = [](u64 v, int n, bool from_top) { // zeros before the first one
        int count = 0;
        while (count < n && !((from_top ? v >> (n - 1 - count) : v >> count) & 1)) count++;
        return count;
    };
    auto reverse = [](u64 v, int n) {
        u64 r = 0;
        for (int i = 0; i < n; i++) r |= (v >> i & 1) << (n - 1 - i);
        return r;
    };
    auto population = [](u64 v) {
        int count = 0;
        for (; v; v &= v - 1) count++;
        return count;
    };
    *o++ = a + b;
    *o++ = a - b;
    *o++ = a * b;
    *o++ = (u64)((u128)a * b >> 64);
    *o++ = (u64)((s128)sa * sb >> 64);
    *o++ = b ? a / b : 1;
    *o++ = b ? a % b : 2;
    bool overflow = sa == (s64)(1ull << 63) && sb == -1;
    *o++ = b && !overflow ? (u64)(sa / sb) : 3;
    *o++ = b && !overflow ? (u64)(sa % sb) : 4;
    *o++ = a << (b & 63);
    *o++ = a >> (b & 63);
    *o++ = (u64)(sa >> (b & 63));
    *o++ = population(a);
    *o++ = bits(a, 64, true);
    *o++ = a ? bits(a, 64, false) + 1 : 0;
    *o++ = reverse(a, 64);
    *o++ = (a & b) | (~a ^ b);
    *o++ = sa < sb ? a : b;
    *o++ = a < b ? a : b;
    *o++ = sa == (s64)(1ull << 63) ? 0 : sa < 0 ? 0 - a : a;
    u128 wide = (u128)a * b + a;
    *o++ = (u64)wide;
    *o++ = (u64)(wide >> 64);
    *o++ = (u64)(((u128)a << 64 | b) >> (x & 127));
    *o++ = ((u64)x * y >> 32) << 32 | (unsigned)((s64)sx * sy >> 32);
    u64 bytes = (u64)y << 32 | x;
    unsigned perm = 0;
    for (int k = 0; k < 4; k++) perm |= (unsigned)(bytes >> 8 * (0x7261 >> 4 * k & 7) & 255) << 8 * k;
    *o++ = (u64)perm << 32 | (unsigned)((bytes << (y & 31)) >> 32);
    unsigned by = y & 63;
    *o++ = (u64)(unsigned)(bytes >> (by > 32 ? 32 : by)) << 32 |
           (unsigned)((sx < sy ? (u64)((s64)sy - sx) : (u64)((s64)sx - sy)) + 7);
    *o++ = (u64)population(x) << 48 | (u64)bits(x, 32, true) << 32 | (u64)(x ? bits(x, 32, false) + 1 : 0) << 16 | reverse(x, 32) >> 16;
    unsigned sums = 0;
    int dot = 100;
    for (int k = 0; k < 4; k++) {
        int p = x >> 8 * k & 255, q = y >> 8 * k & 255;
        sums |= (unsigned)((p + q) & 255) << 8 * k;
        dot += (int)(signed char)p * (signed char)q;
    }
    *o++ = (u64)sums << 32 | ((x < y ? y - x : x - y) + 9);
    *o++ = (u64)(unsigned)dot << 32 | (unsigned)(((s64)sx + sy) >> 1);
    s64 l = (s64)((u64)a << 40) >> 40, r = (s64)((u64)b << 40) >> 40; // the low 24 bits, signed
    *o++ = ((u64)x + y + 1) >> 1 << 32 | (unsigned)(l * r);
}

int main()
{
    const u64 special[] = {0, 1, 2, 3, 7, 10, 63, 64, 255, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x100000000, 0x123456789ABCDEF,
                           0x7FFFFFFFFFFFFFFF, 0x8000000000000000, 0x8000000000000001, ~0ull, ~0ull - 1, 0xFFFFFFFF80000000};
    std::vector<u64> a, b;
    for (u64 p : special)
        for (u64 q : special) a.push_back(p), b.push_back(q);
    Random random(6);
    for (int i = 0; i < 2000; i++) {
        a.push_back(random.next64() >> random.next() % 64);
        b.push_back(random.next64() >> random.next() % 64);
    }
    int n = (int)a.size();
    u64 *da, *db, *out;
    CUDA(cudaMalloc(&da, n * 8));
    CUDA(cudaMalloc(&db, n * 8));
    CUDA(cudaMalloc(&out, n * 8 * results));
    CUDA(cudaMemcpy(da, a.data(), n * 8, cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(db, b.data(), n * 8, cudaMemcpyHostToDevice));
    compute<<<(n + 127) / 128, 128>>>(da, db, out, n);
    LAUNCHED();
    std::vector<u64> got(n * results);
    CUDA(cudaMemcpy(got.data(), out, n * 8 * results, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
        u64 want[results];
        expected(a[i], b[i], want);
        for (int r = 0; r < results; r++)
            if (got[i * results + r] != want[r])
                fail("result %d of %#llx and %#llx is %#llx, not %#llx", r, a[i], b[i], got[i * results + r], want[r]);
    }
    return pass();
}
