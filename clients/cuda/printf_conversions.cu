// Device printf: every conversion, flag and width, the order of lines, the value it returns.
#include "check.h"

#include <string>

__device__ char device_text[] = "text in global memory";
__constant__ char constant_text[] = "constant";

// One list for both sides: what the kernel prints is compared with what the host's printf makes of the same arguments.
#define LINES(P, text, constant)                                                                                       \
    P("%d %i %u|%5d|%-5d|%05d|%+d|% d|%.3d\n", 1, -2, 3u, 42, 42, 42, 42, 42, 7);                                      \
    P("%x %X %o %#x %#o|%08X|%#010x|%-#8o|\n", 0xbeefu, 0xBEEFu, 511u, 255u, 8u, 0xABCu, 0x12u, 8u);                   \
    P("%ld %lu %lx|%lld %llu %llX|%20lld|%-20lld|\n", -1L, 4000000000UL, 0xFFFFFFFFFFL, -9000000000000LL,              \
      18446744073709551615ULL, 0x123456789ABCDEFULL, -5LL, -5LL);                                                      \
    P("%hd %hhd %hu %zu\n", (int)(short)-3, (int)(signed char)-4, 65535u, (size_t)123456789012ULL);                    \
    P("%f %e %g %G %E|%.3f|%10.2f|%-10.1f|%+.0f|%#.0f|%010.3f\n", 1.5, 12345.678, 0.0001, 1e20, 1e-9, 3.14159265,      \
      2.71828, 0.05, 2.5, 3.0, -1.25);                                                                                 \
    P("%a %A|%.2a|%g %g %g|%F\n", 1.0, -0.1, 3.99, 1e300 * 1e10, -1e300 * 1e10, 100000.0, 1e5);                        \
    P("%c%c%c|%5c|%-5c|\n", 'a', 'b', 'c', 'd', 'e');                                                                  \
    P("%s|%30s|%-30s|%.6s|%s\n", text, text, text, text, constant);                                                    \
    P("100%% %*d|%-*d|%.*f|%*.*f\n", 6, 12, 6, 12, 2, 3.14159, 9, 3, 2.71828);                                         \
    P("no arguments\n");                                                                                               \
    P("many: %d %d %d %d %d %d %d %d %d %d %f %d %s %d %lld %c\n", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11.0, 12, "13", 14,  \
      15LL, '6');

__global__ void print()
{
    LINES(printf, device_text, constant_text);
    // Pointers: as the host prints them.
    printf("%p %p\n", (void *)0x1234abcd, (void *)0x7fff00000000);
}

__global__ void ordered(int n)
{
    for (int k = 0; k < n; k++) printf("%d.%d.%d\n", blockIdx.x, threadIdx.x, k);
}

__global__ void returned(int *out)
{
    out[0] = printf("%d %d %s\n", 1, 2, "three");
    out[1] = printf("nothing to convert\n");
    out[2] = printf(nullptr);
}

int main()
{
    {
        Captured out(STDOUT_FILENO);
        printf("before ");
        print<<<1, 1>>>();
        FINISHED();
        printf("after\n");
        std::string got = out.text(), want = "before ";
        char line[4096];
        auto add = [&](const char *format, auto... arguments) {
            snprintf(line, sizeof line, format, arguments...);
            want += line;
        };
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-security"
        LINES(add, "text in global memory", "constant");
#pragma GCC diagnostic pop
        add("%p %p\n", (void *)0x1234abcd, (void *)0x7fff00000000);
        want += "after\n";
        if (got != want) {
            size_t at = 0;
            while (at < got.size() && at < want.size() && got[at] == want[at]) at++;
            size_t start = want.rfind('\n', at ? at - 1 : 0);
            start = start == std::string::npos ? 0 : start + 1;
            fail("at character %zu\n  printed: %s\n  wanted:  %s", at, got.substr(start, got.find('\n', at) - start).c_str(),
                 want.substr(start, want.find('\n', at) - start).c_str());
        }
    }
    {
        // Many threads: each one's lines in its order, none torn.
        Captured out(STDOUT_FILENO);
        ordered<<<4, 64>>>(3);
        FINISHED();
        const char *text = out.text();
        int next[4][64] = {}, block, thread, k, used, lines = 0;
        while (*text) {
            if (sscanf(text, "%d.%d.%d\n%n", &block, &thread, &k, &used) != 3) fail("a torn line: %.40s", text);
            EXPECT(block >= 0 && block < 4 && thread >= 0 && thread < 64);
            EXPECT_EQ(k, next[block][thread]++);
            text += used;
            lines++;
        }
        EXPECT_EQ(lines, 4 * 64 * 3);
    }
    {
        int *values;
        CUDA(cudaMallocManaged(&values, 3 * sizeof(int)));
        Captured out(STDOUT_FILENO);
        returned<<<1, 1>>>(values);
        FINISHED();
        out.text();
        // The number of arguments, or -1 for an unusable format.
        EXPECT_EQ(values[0], 3);
        EXPECT_EQ(values[1], 0);
        EXPECT_EQ(values[2], -1);
    }
    size_t size = 0;
    CUDA(cudaDeviceGetLimit(&size, cudaLimitPrintfFifoSize));
    EXPECT(size >= 1 << 16);
    return pass();
}
