// What every program here uses: it checks itself against a computation on the host, prints one line
// `PASS name` or `FAIL name: why`, and exits 0 or 1.
#pragma once

#include <cuda_runtime.h>

#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <unistd.h>

[[noreturn]] inline void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    printf("FAIL %s: ", program_invocation_short_name);
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
    fflush(stdout);
    // Not exit(): a program that failed must end even when the driver could no longer be shut down.
    _exit(1);
}

inline int pass()
{
    printf("PASS %s\n", program_invocation_short_name);
    fflush(stdout);
    return 0;
}

#define CUDA(call)                                                                                                     \
    do {                                                                                                               \
        cudaError_t code_ = (call);                                                                                    \
        if (code_ != cudaSuccess)                                                                                      \
            fail("line %d: %s: %d %s (%s)", __LINE__, #call, (int)code_, cudaGetErrorName(code_),                      \
                 cudaGetErrorString(code_));                                                                           \
    } while (0)

// After a launch: the error of the launch itself.
#define LAUNCHED() CUDA(cudaGetLastError())
// After a launch: the error of the launch, then that of the kernel.
#define FINISHED()                                                                                                     \
    do {                                                                                                               \
        LAUNCHED();                                                                                                    \
        CUDA(cudaDeviceSynchronize());                                                                                 \
    } while (0)

#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) fail("line %d: not true: %s", __LINE__, #condition);                                         \
    } while (0)

#define EXPECT_EQ(got, want)                                                                                           \
    do {                                                                                                               \
        long long got_ = (long long)(got), want_ = (long long)(want);                                                  \
        if (got_ != want_) fail("line %d: %s is %lld, not %lld", __LINE__, #got, got_, want_);                         \
    } while (0)

#define EXPECT_ERROR(call, want)                                                                                       \
    do {                                                                                                               \
        cudaError_t code_ = (call);                                                                                    \
        if (code_ != (want))                                                                                           \
            fail("line %d: %s gives %d %s, not %d %s", __LINE__, #call, (int)code_, cudaGetErrorName(code_),           \
                 (int)(want), cudaGetErrorName((cudaError_t)(want)));                                                  \
    } while (0)

// The same numbers on both sides and on every machine.
struct Random {
    uint64_t state;
    __host__ __device__ explicit Random(uint64_t seed) : state(seed * 0x9E3779B97F4A7C15ull + 0x1234567) {}
    __host__ __device__ uint64_t next64()
    {
        uint64_t z = (state += 0x9E3779B97F4A7C15ull);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
        return z ^ (z >> 31);
    }
    __host__ __device__ uint32_t next() { return (uint32_t)(next64() >> 32); }
    // In [0, 1), a multiple of 2^-24, so exact as a float.
    __host__ __device__ float uniform() { return (float)(next() >> 8) * (1.0f / 16777216.0f); }
};

// What is written to a file descriptor between construction and text(): device printf goes to the host's stdout,
// the message of a failed assert to stderr.
class Captured {
  public:
    explicit Captured(int descriptor) : descriptor_(descriptor), file_(tmpfile()), saved_(dup(descriptor))
    {
        if (!file_ || saved_ < 0) fail("cannot capture descriptor %d", descriptor);
        fflush(stdout);
        fflush(stderr);
        dup2(fileno(file_), descriptor_);
    }
    // Ends the capture. The caller frees nothing: a program calls this once or twice in its life.
    const char *text()
    {
        fflush(stdout);
        fflush(stderr);
        dup2(saved_, descriptor_);
        long size = lseek(fileno(file_), 0, SEEK_END);
        char *text = (char *)calloc(1, (size_t)size + 1);
        if (pread(fileno(file_), text, (size_t)size, 0) != size) fail("cannot read back what was captured");
        return text;
    }

  private:
    int descriptor_;
    FILE *file_;
    int saved_;
};
