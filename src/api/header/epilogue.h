#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM)
/* Programs that ask for the per-thread default stream get the functions that mean it, unless they say which. */
static inline CUresult cuGetProcAddress_v2_ptsz(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                                                CUdriverProcAddressQueryResult *symbolStatus) {
    cuuint64_t kinds = CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    cuuint64_t asked = (flags & kinds) ? flags : (flags | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
    return cuGetProcAddress_v2(symbol, pfn, cudaVersion, asked, symbolStatus);
}
#define cuGetProcAddress_v2 cuGetProcAddress_v2_ptsz
#endif
