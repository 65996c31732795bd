// How many steps each number takes to 1: halved if even, else three times itself and one.
extern "C" __global__ void collatz(unsigned *steps, const unsigned *numbers, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
#ifdef WRONG
    unsigned number = numbers[i]; // too narrow: 159487 climbs to 17202377752
#else
    unsigned long long number = numbers[i];
#endif
    unsigned count = 0;
    for (; number > 1 && count < 1000; count++) number = number % 2 ? 3 * number + 1 : number / 2;
    steps[i] = count;
}
