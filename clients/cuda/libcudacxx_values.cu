// libcu++'s values and containers on the device: array, tuple, optional, variant, expected, span, mdspan, complex, bits, chrono,
// limits, algorithms, functions and big integers. The host does the same sums with C++17's own library, or by hand.
#include "check.h"

#if __has_include(<cuda/std/algorithm>)
#include <cuda/std/algorithm>
#else
// Before CCCL 3.
#include <cuda/std/__algorithm_>
#endif
#include <cuda/std/array>
#include <cuda/std/bit>
#include <cuda/std/bitset>
#include <cuda/std/chrono>
#include <cuda/std/cmath>
#include <cuda/std/complex>
#include <cuda/std/expected>
#include <cuda/std/functional>
#include <cuda/std/limits>
#include <cuda/std/mdspan>
#include <cuda/std/numeric>
#include <cuda/std/optional>
#include <cuda/std/ratio>
#include <cuda/std/span>
#include <cuda/std/tuple>
#include <cuda/std/type_traits>
#include <cuda/std/utility>
#include <cuda/std/variant>

#include <algorithm>
#include <array>
#include <bitset>
#include <chrono>
#include <complex>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <tuple>
#include <variant>

namespace cs = cuda::std;

const int threads = 64;

// What C++17 has on the host, too: the same text with two libraries. Thread t has its own numbers.
#define COMMON(NAME, LIBRARY, MARK)                                                                                    \
    struct NAME {                                                                                                      \
        struct Length {                                                                                                \
            MARK long long operator()(int v) const { return v + 1000; }                                                \
            MARK long long operator()(double v) const { return (long long)(v * 4); }                                   \
            MARK long long operator()(LIBRARY::array<short, 3> v) const { return v[0] + v[1] * v[2]; }                 \
        };                                                                                                             \
        MARK static long long containers(int t)                                                                        \
        {                                                                                                              \
            LIBRARY::array<int, 9> a{};                                                                                \
            LIBRARY::iota(a.begin(), a.end(), t - 4);                                                                  \
            LIBRARY::rotate(a.begin(), a.begin() + t % 9, a.end());                                                    \
            LIBRARY::transform(a.begin(), a.end(), a.begin(), LIBRARY::negate<int>());                                 \
            LIBRARY::reverse(a.begin() + 2, a.end() - 1);                                                              \
            long long sum = 0;                                                                                         \
            for (int v : a) sum = sum * 7 + v;                                                                         \
            sum += LIBRARY::accumulate(a.begin(), a.end(), 3ll) * 5;                                                   \
            sum += LIBRARY::inner_product(a.begin(), a.end(), a.rbegin(), 0ll);                                        \
            sum += *LIBRARY::max_element(a.begin(), a.end()) * 11 + (LIBRARY::find(a.begin(), a.end(), -t) - a.begin()); \
            auto parts = LIBRARY::make_tuple(t, t * 0.5, short(t - 9));                                                \
            auto more = LIBRARY::tuple_cat(parts, LIBRARY::make_pair(t + 1, 2u));                                      \
            LIBRARY::get<3>(more) += LIBRARY::get<0>(more);                                                            \
            sum += LIBRARY::apply([](int x, double y, short z, int u, unsigned w) { return (long long)(x + y * 2 + z * 3 + u * 5 + w); }, more); \
            return sum;                                                                                                \
        }                                                                                                              \
        MARK static long long choices(int t)                                                                           \
        {                                                                                                              \
            LIBRARY::optional<int> maybe;                                                                              \
            if (t % 3) maybe = t * 2;                                                                                  \
            long long sum = maybe.value_or(-50) + (maybe ? *maybe : 7);                                                \
            maybe.emplace(t);                                                                                          \
            auto other = maybe;                                                                                        \
            maybe.reset();                                                                                             \
            sum += other.has_value() * 100 + maybe.has_value() + (other > maybe) * 10;                                 \
            LIBRARY::variant<int, double, LIBRARY::array<short, 3>> one = t;                                           \
            if (t % 4 == 1) one = t * 0.25;                                                                            \
            if (t % 4 == 2) one = LIBRARY::array<short, 3>{short(t), short(t + 1), short(-t)};                         \
            sum += LIBRARY::visit(Length(), one) + (long long)one.index() * 100000;                                    \
            if (auto *p = LIBRARY::get_if<double>(&one)) sum += (long long)(*p * 8);                                   \
            return sum;                                                                                                \
        }                                                                                                              \
        MARK static long long numbers(int t)                                                                           \
        {                                                                                                              \
            LIBRARY::complex<double> z(t * 0.5, -3.0), w(1.0, t);                                                      \
            z = z * w + LIBRARY::conj(w) - 2.0;                                                                        \
            long long sum = (long long)(z.real() * 4) * 31 + (long long)(z.imag() * 4) + (long long)LIBRARY::norm(w);  \
            using Milli = LIBRARY::chrono::milliseconds;                                                               \
            Milli span = LIBRARY::chrono::minutes(t) + LIBRARY::chrono::seconds(7) - Milli(13 * t);                    \
            sum += LIBRARY::chrono::duration_cast<LIBRARY::chrono::seconds>(span).count() * 3 + span.count() % 1001;   \
            LIBRARY::bitset<70> bits(0x123456789ABCDEFull * (unsigned)(t + 1));                                        \
            bits <<= t % 9, bits.flip(3), bits ^= LIBRARY::bitset<70>((unsigned)t);                                    \
            sum += (long long)bits.count() + bits.test(65) * 1000 + bits.any();                                        \
            sum += LIBRARY::gcd(t * 12, 90) + LIBRARY::lcm(t + 1, 8) + LIBRARY::numeric_limits<short>::max();          \
            sum += LIBRARY::clamp(t, 10, 20) + LIBRARY::min({t, 40, 3 * t}) + (long long)LIBRARY::sqrt(25.0 * t * t); \
            return sum;                                                                                                \
        }                                                                                                              \
    }
COMMON(OnDevice, cs, __device__);
COMMON(OnHost, std, );

__device__ cs::expected<int, short> halve(int v)
{
    if (v % 2) return cs::unexpected<short>((short)-v);
    return v / 2;
}

__device__ long long bits(int t)
{
    unsigned v = 0x10325476u * (unsigned)t + 8;
    unsigned long long wide = (unsigned long long)v * 0x100000001ull;
    return cs::popcount(v) + cs::countl_zero(v) * 3 + cs::countr_zero(wide) * 5 + cs::countl_one(~v >> 1) + (long long)cs::bit_width(wide) * 7 +
           (long long)cs::bit_floor(v) + (long long)cs::bit_ceil(v >> 2) + (long long)cs::rotl(v, t) + (long long)cs::rotr(wide >> 32, t) + cs::has_single_bit(v) +
           cs::bit_cast<int>(1.0f + t);
}

__device__ long long views(int t, int *cells)
{
    // Six rows of four, as they lie, by columns, and a part of them.
    cs::mdspan<int, cs::extents<int, 6, cs::dynamic_extent>> rows(cells, 4);
    cs::mdspan<int, cs::dextents<int, 2>, cs::layout_left> columns(cells, 6, 4);
    cs::layout_stride::mapping<cs::extents<int, 3, 2>> every_second(cs::extents<int, 3, 2>(), cs::array<int, 2>{8, 2});
    cs::mdspan<int, cs::extents<int, 3, 2>, cs::layout_stride> some(cells, every_second);
    cs::span<int> all(cells, 24), middle = all.subspan(t % 8, 10);
    unsigned long long sum = 0;
#if defined(__cpp_multidimensional_subscript)
#define AT(view, i, j) view[i, j]
#else
#define AT(view, i, j) view.data_handle()[view.mapping()(i, j)]
#endif
    for (int i = 0; i < rows.extent(0); i++)
        for (int j = 0; j < rows.extent(1); j++) sum = sum * 3 + AT(rows, i, j) - 2 * AT(columns, i, j);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 2; j++) sum = sum * 5 + AT(some, i, j);
    for (int v : middle) sum = sum * 3 + v;
    return (long long)(sum + middle.last(3).size() + middle.front() + middle.back() * 2);
}

const int rows = 6;

__global__ void run(long long *out, int *cells)
{
    int t = threadIdx.x;
    out[t] = OnDevice::containers(t);
    out[threads + t] = OnDevice::choices(t);
    out[2 * threads + t] = OnDevice::numbers(t);
    auto quarter = halve(t).and_then([](int v) { return halve(v); });
    out[3 * threads + t] = quarter.has_value() ? *quarter : 1000 + quarter.error();
    out[4 * threads + t] = bits(t);
    out[5 * threads + t] = views(t, cells);
}

static long long bits_by_hand(int t)
{
    unsigned v = 0x10325476u * (unsigned)t + 8;
    unsigned long long wide = (unsigned long long)v * 0x100000001ull;
    auto highest = [](unsigned long long x) {
        int n = 0;
        while (x) n++, x >>= 1;
        return n;
    };
    auto lowest = [](unsigned long long x) {
        int n = 0;
        while (n < 64 && !(x >> n & 1)) n++;
        return n;
    };
    int ones = 0;
    for (int i = 0; i < 32; i++) ones += v >> i & 1;
    unsigned turned = t % 32 ? v << t % 32 | v >> (32 - t % 32) : v;
    unsigned long long high = wide >> 32, back = t % 64 ? high >> t % 64 | high << (64 - t % 64) : high;
    unsigned quarter = v >> 2;
    long long ceiling = quarter <= 1 ? 1 : 1ll << highest(quarter - 1);
    float f = 1.0f + t;
    int same;
    memcpy(&same, &f, sizeof same);
    // ~v >> 1 begins with a zero bit, so it has no leading ones.
    return ones + (32 - highest(v)) * 3 + lowest(wide) * 5 + 0 + highest(wide) * 7ll + (1ll << (highest(v) - 1)) + ceiling + (long long)turned + (long long)back +
           (ones == 1) + same;
}

static long long views_by_hand(int t, const int *cells)
{
    unsigned long long sum = 0;
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 4; j++) sum = sum * 3 + cells[i * 4 + j] - 2 * cells[i + j * 6];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 2; j++) sum = sum * 5 + cells[i * 8 + j * 2];
    for (int k = 0; k < 10; k++) sum = sum * 3 + cells[t % 8 + k];
    return (long long)(sum + 3 + cells[t % 8] + cells[t % 8 + 9] * 2);
}

int main()
{
    long long *out;
    int *cells;
    CUDA(cudaMallocManaged(&out, rows * threads * sizeof *out));
    CUDA(cudaMallocManaged(&cells, 24 * sizeof *cells));
    for (int i = 0; i < 24; i++) cells[i] = i * i - 50;
    run<<<1, threads>>>(out, cells);
    FINISHED();
    for (int t = 0; t < threads; t++) {
        EXPECT_EQ(out[t], OnHost::containers(t));
        EXPECT_EQ(out[threads + t], OnHost::choices(t));
        EXPECT_EQ(out[2 * threads + t], OnHost::numbers(t));
        EXPECT_EQ(out[3 * threads + t], t % 2 ? 1000 - t : t % 4 ? 1000 - t / 2 : t / 4);
        EXPECT_EQ(out[4 * threads + t], bits_by_hand(t));
        EXPECT_EQ(out[5 * threads + t], views_by_hand(t, cells));
    }
    return pass();
}
