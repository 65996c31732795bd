// malloc, free, new and delete in kernels; a linked list that lives from launch to launch; the heap's limit.
#include "check.h"

struct Node {
    int value;
    Node *next;
};
__device__ Node *head;
__device__ int lost;

__global__ void push(int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Node *node = (Node *)malloc(sizeof(Node));
    if (!node) {
        atomicAdd(&lost, 1);
        return;
    }
    node->value = i;
    // Put it in front: compare and swap until nobody came between.
    Node *seen = *(Node *volatile *)&head;
    for (;;) {
        node->next = seen;
        Node *before = (Node *)atomicCAS((unsigned long long *)&head, (unsigned long long)seen, (unsigned long long)node);
        if (before == seen) break;
        seen = before;
    }
}

__global__ void sum_list(long long *sum, int *count)
{
    *sum = 0;
    *count = 0;
    for (Node *node = head; node; node = node->next) {
        *sum += node->value;
        ++*count;
    }
}

__global__ void pop_all(int *count)
{
    *count = 0;
    while (head) {
        Node *node = head;
        head = node->next;
        free(node);
        ++*count;
    }
}

struct Matrix {
    __device__ Matrix(int n) : n(n), cells(new float[n * n]) {}
    __device__ ~Matrix() { delete[] cells; }
    int n;
    float *cells;
};

__global__ void churn(float *out, int rounds)
{
    int i = threadIdx.x;
    float sum = 0;
    for (int r = 0; r < rounds; r++) {
        Matrix *m = new Matrix(2 + (i + r) % 5);
        for (int k = 0; k < m->n * m->n; k++) m->cells[k] = i + k;
        sum += m->cells[m->n * m->n - 1];
        delete m;
    }
    out[i] = sum;
}

__global__ void too_much(int *got_null, unsigned long long bytes)
{
    void *p = malloc(bytes);
    *got_null = p == nullptr;
    free(p);
    free(nullptr);
}

__global__ void aligned(int *wrong)
{
    void *p[4];
    for (int k = 0; k < 4; k++) {
        p[k] = malloc(1 + 7 * k);
        if ((unsigned long long)p[k] % 16) atomicAdd(wrong, 1);
        memset(p[k], threadIdx.x, 1 + 7 * k);
    }
    for (int k = 0; k < 4; k++) {
        for (int b = 0; b < 1 + 7 * k; b++)
            if (((unsigned char *)p[k])[b] != (unsigned char)threadIdx.x) atomicAdd(wrong, 1);
        free(p[k]);
    }
}

int main()
{
    const int n = 2000;
    CUDA(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 16 << 20));
    size_t heap = 0;
    CUDA(cudaDeviceGetLimit(&heap, cudaLimitMallocHeapSize));
    EXPECT(heap >= 16 << 20);
    push<<<16, 125>>>(n);
    FINISHED();
    long long *sum;
    int *count;
    CUDA(cudaMallocManaged(&sum, sizeof *sum));
    CUDA(cudaMallocManaged(&count, sizeof *count));
    sum_list<<<1, 1>>>(sum, count);
    FINISHED();
    EXPECT_EQ(*count, n);
    EXPECT_EQ(*sum, (long long)n * (n - 1) / 2);
    pop_all<<<1, 1>>>(count);
    FINISHED();
    EXPECT_EQ(*count, n);

    float *out;
    CUDA(cudaMallocManaged(&out, 64 * sizeof *out));
    churn<<<1, 64>>>(out, 50);
    FINISHED();
    for (int i = 0; i < 64; i++) {
        float want = 0;
        for (int r = 0; r < 50; r++) {
            int size = 2 + (i + r) % 5;
            want += i + size * size - 1;
        }
        EXPECT(out[i] == want);
    }
    *count = 0;
    too_much<<<1, 1>>>(count, 1ull << 40);
    FINISHED();
    EXPECT_EQ(*count, 1);
    *count = 0;
    aligned<<<2, 96>>>(count);
    FINISHED();
    EXPECT_EQ(*count, 0);
    return pass();
}
