#include "smooth.h"

#include <cstdio>
#include <exception>
#include <vector>

int main()
try {
    // Not a multiple of the block's size. Small whole numbers: the sums and the division by four are exact.
    const int n = 100003;
    std::vector<float> in(n), out(n);
    for (int i = 0; i < n; i++) in[i] = float((i * 7 + 1) % 1000);

    smooth(out.data(), in.data(), n);

    for (int i = 0; i < n; i++) {
        float before = i == 0 ? in[0] : in[i - 1];
        float after = i == n - 1 ? in[n - 1] : in[i + 1];
        float want = 0.25f * before + 0.5f * in[i] + 0.25f * after;
        if (out[i] != want) {
            std::printf("out[%d] is %g, not %g\n", i, out[i], want);
            return 1;
        }
    }
    std::printf("%d values are those of the CPU\n", n);
} catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
