// What the programs of this folder share.
//
// A file holds tests, each of which is kernels and below them a function of the host, `TEST(name) { ... }`; the program runs the
// one that its argument names. It is compiled twice: as it stands between BROKEN(...), with a mistake, and with MENDED(...)
// instead. A comment at the end of a line says what races there in the broken one:
//
//     tile[t] = t;                 // race tile: write
//     out[t] = tile[t ^ 32];       // race tile: read
//
// Two accesses of one name, `tile`, are a pair that must be reported; nothing else may be. `// benign tile: write` is for pairs
// that are reported by `--benign` alone. A test without such comments has no race, and is not broken at all.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>

#ifdef IS_MENDED
#define MENDED(...) __VA_ARGS__
#define BROKEN(...)
#define EITHER(broken, mended) (mended)
#else
#define MENDED(...)
#define BROKEN(...) __VA_ARGS__
#define EITHER(broken, mended) (broken)
#endif

struct Test {
    const char *name;
    void (*run)();
    Test *next;
    inline static Test *first = nullptr;

    Test(const char *name, void (*run)()) : name(name), run(run), next(first) { first = this; }
};

#define TEST(name)                                                                                                     \
    static void test_##name();                                                                                         \
    static Test entry_of_##name(#name, test_##name);                                                                   \
    static void test_##name()

#define CUDA(call)                                                                                                     \
    do {                                                                                                               \
        cudaError_t error_ = (call);                                                                                   \
        if (error_ != cudaSuccess) {                                                                                   \
            printf("line %d: %s: %s\n", __LINE__, #call, cudaGetErrorString(error_));                                  \
            exit(2);                                                                                                   \
        }                                                                                                              \
    } while (0)

// Zeros, which kernels and the host see.
template <class T = int> class Array {
  public:
    explicit Array(int count) : count_(count)
    {
        CUDA(cudaMallocManaged(&start_, count * sizeof(T)));
        ::memset((void *)start_, 0, count * sizeof(T));
    }
    ~Array() { cudaFree(start_); }
    Array(const Array &) = delete;
    operator T *() const { return start_; }
    int count() const { return count_; }

    // Values that tell places apart.
    Array &number()
    {
        for (int i = 0; i < count_; i++) start_[i] = T(i * 3 + 1);
        return *this;
    }

  private:
    T *start_;
    int count_;
};

// What is launched ends, and without a mistake leaves `want(i)` at each place: one with a race may leave anything.
template <class T, class Want> void expect(const Array<T> &out, Want want)
{
    CUDA(cudaGetLastError());
    CUDA(cudaDeviceSynchronize());
    MENDED(for (int i = 0; i < out.count(); i++) if (out[i] != T(want(i))) {
        printf("[%d] is %g, not %g\n", i, double(out[i]), double(T(want(i))));
        exit(2);
    });
}

int main(int, char **arguments)
{
    for (Test *test = Test::first; test; test = test->next)
        if (arguments[1] && !strcmp(test->name, arguments[1])) {
            test->run();
            return 0;
        }
    printf("no such test\n");
    return 2;
}
