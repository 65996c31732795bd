// nvcc: -G
// What an optimising compiler makes of these loops is half of the matter: here each look is a chain of calls.
#include "forward_progress.cu"
