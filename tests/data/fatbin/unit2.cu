__device__ int shared_counter;
__device__ int twice(int x) { return x * 2; }
