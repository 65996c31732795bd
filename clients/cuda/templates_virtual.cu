// nvcc: --extended-lambda
// C++ on the device: templates, lambdas handed to kernels, virtual functions, placement new, operators.
#include "check.h"

#include <new>

template <typename F> __global__ void for_each(int n, F f)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) f(i);
}

template <int N> struct Power {
    template <typename T> __host__ __device__ static T of(T x) { return x * Power<N - 1>::of(x); }
};
template <> struct Power<0> {
    template <typename T> __host__ __device__ static T of(T) { return T(1); }
};

struct Shape {
    __host__ __device__ Shape(int id) : id(id) {}
    __host__ __device__ virtual ~Shape() {}
    __host__ __device__ virtual int area() const = 0;
    __host__ __device__ virtual int scaled(int by) const { return area() * by + id; }
    int id;
};
struct Square : Shape {
    __host__ __device__ Square(int id, int side) : Shape(id), side(side) {}
    __host__ __device__ int area() const override { return side * side; }
    int side;
};
struct Rectangle : Square {
    __host__ __device__ Rectangle(int id, int w, int h) : Square(id, w), height(h) {}
    __host__ __device__ int area() const override { return side * height; }
    __host__ __device__ int scaled(int by) const override { return Square::scaled(by) - 1000; }
    int height;
};

__global__ void build(Shape **shapes, char *room, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    void *here = room + i * sizeof(Rectangle);
    if (i % 3)
        shapes[i] = new (here) Rectangle(i, i % 11, i % 7);
    else
        shapes[i] = new (here) Square(i, i % 13);
}

__global__ void ask(Shape **shapes, int *out, int n, int by)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = shapes[(i * 17) % n]->scaled(by); // neighbours differ in type
}

__global__ void destroy(Shape **shapes, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) shapes[i]->~Shape();
}

int main()
{
    const int n = 1000;
    long long *wide;
    int *out;
    CUDA(cudaMallocManaged(&wide, n * sizeof *wide));
    CUDA(cudaMallocManaged(&out, n * sizeof *out));
    int bias = 17;
    for_each<<<8, 128>>>(n, [=] __device__(int i) { wide[i] = Power<5>::of((long long)i - 500) + bias; });
    FINISHED();
    for (int i = 0; i < n; i++) {
        long long x = i - 500;
        if (wide[i] != x * x * x * x * x + 17) fail("lambda: [%d] is %lld", i, wide[i]);
    }
    for_each<<<8, 128>>>(n, [=] __host__ __device__(int i) { wide[i] = Power<3>::of(i % 100) - (wide[i] & 1); });
    FINISHED();
    for (int i = 0; i < n; i++) {
        long long x = i - 500, before = x * x * x * x * x + 17, c = i % 100;
        EXPECT_EQ(wide[i], c * c * c - (before & 1));
    }

    Shape **shapes;
    char *room;
    CUDA(cudaMalloc(&shapes, n * sizeof *shapes));
    CUDA(cudaMalloc(&room, n * sizeof(Rectangle)));
    build<<<8, 128>>>(shapes, room, n);
    ask<<<8, 128>>>(shapes, out, n, 5);
    destroy<<<8, 128>>>(shapes, n);
    FINISHED();
    for (int i = 0; i < n; i++) {
        int j = (i * 17) % n;
        Square square(j, j % 13);
        Rectangle rectangle(j, j % 11, j % 7);
        const Shape &shape = j % 3 ? (const Shape &)rectangle : square;
        EXPECT_EQ(out[i], shape.scaled(5));
    }
    return pass();
}
