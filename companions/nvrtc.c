/* NVRTC that answers with PTX where it is asked for machine code.
 *
 * NVRTC keeps the PTX from which it assembles a cubin, also for -arch=sm_XX. Handed out as the cubin it goes, unread by the
 * program, into the driver's load calls, which take either. Everything else is NVIDIA's. */
#include "companion.h"

#include <stddef.h>
#include <stdint.h>

enum { NVRTC_ERROR_INTERNAL_ERROR = 11 };

/* All of NVRTC's functions take at most six arguments, integers and pointers, which x86-64 passes in registers whatever they
 * are, and answer an int or a pointer. So one shape serves for all, and for those whose types nobody has published. */
typedef intptr_t any(intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t);

#define FORWARD_TO(name, real_name, otherwise)                                                            \
    EXPORT intptr_t name(intptr_t a, intptr_t b, intptr_t c, intptr_t d, intptr_t e, intptr_t f) {        \
        any *function = (any *)real(real_name);                                                           \
        return function ? function(a, b, c, d, e, f) : (intptr_t)(otherwise);                             \
    }
#define FORWARD(name) FORWARD_TO(name, #name, NVRTC_ERROR_INTERNAL_ERROR)

/* The two that differ. */
FORWARD_TO(nvrtcGetCUBINSize, "nvrtcGetPTXSize", NVRTC_ERROR_INTERNAL_ERROR)
FORWARD_TO(nvrtcGetCUBIN, "nvrtcGetPTX", NVRTC_ERROR_INTERNAL_ERROR)

FORWARD_TO(nvrtcGetErrorString, "nvrtcGetErrorString", "NVIDIA's NVRTC cannot be loaded")
FORWARD(__nvrtcCPEx)
FORWARD(__nvrtcNvvmHandle)
FORWARD(nvrtcAddNameExpression)
FORWARD(nvrtcCompileProgram)
FORWARD(nvrtcCreateProgram)
FORWARD(nvrtcDestroyProgram)
FORWARD(nvrtcGetBundledHeadersInfo)
FORWARD(nvrtcGetLTOIR)
FORWARD(nvrtcGetLTOIRSize)
FORWARD(nvrtcGetLoweredName)
FORWARD(nvrtcGetNVVM)
FORWARD(nvrtcGetNVVMSize)
FORWARD(nvrtcGetNumSupportedArchs)
FORWARD(nvrtcGetOptiXIR)
FORWARD(nvrtcGetOptiXIRSize)
FORWARD(nvrtcGetPCHCreateStatus)
FORWARD(nvrtcGetPCHHeapSize)
FORWARD(nvrtcGetPCHHeapSizeRequired)
FORWARD(nvrtcGetPTX)
FORWARD(nvrtcGetPTXSize)
FORWARD(nvrtcGetProgramLog)
FORWARD(nvrtcGetProgramLogSize)
FORWARD(nvrtcGetSupportedArchs)
FORWARD(nvrtcGetTileIR)
FORWARD(nvrtcGetTileIRSize)
FORWARD(nvrtcInstallBundledHeaders)
FORWARD(nvrtcRemoveBundledHeaders)
FORWARD(nvrtcSetFlowCallback)
FORWARD(nvrtcSetPCHHeapSize)
FORWARD(nvrtcVersion)
