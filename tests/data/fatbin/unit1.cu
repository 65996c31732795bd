extern __device__ int shared_counter;
extern __device__ int twice(int);
__global__ void kernel() { shared_counter = twice(21); }
