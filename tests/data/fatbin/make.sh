#!/bin/sh
# Makes the files again, with the nvcc on PATH; NVFATBIN names libnvfatbin.so.12 of CUDA 12.9.
set -eu
cd "$(dirname "$0")"
c75='-gencode arch=compute_75,code=compute_75'
three='-gencode arch=compute_75,code=[sm_75,compute_75] -gencode arch=compute_90a,code=compute_90a
       -gencode arch=compute_100f,code=compute_100f'
for mode in default speed size balance none; do
    nvcc -fatbin -compress-mode=$mode $c75 add.cu -o ptx-$mode.fatbin
done
nvcc -fatbin -lineinfo $three add.cu -o several.fatbin
nvcc -fatbin -lineinfo -concat $three add.cu -o concat.fatbin
nvcc -fatbin -Xfatbin -compress-all -gencode 'arch=compute_80,code=[sm_80,compute_80]' add.cu -o compress-all.fatbin
nvcc -fatbin -dlto -arch=sm_90 add.cu -o lto.fatbin
nvcc -fatbin -gencode arch=compute_90,code=sm_90 add.cu -o sass.fatbin
nvcc -cubin -arch=sm_75 add.cu -o add.cubin
nvcc -fatbin -rdc=true -arch=sm_75 unit1.cu -o unit1.fatbin
nvcc -fatbin -rdc=true -arch=sm_75 unit2.cu -o unit2.fatbin
nvcc -c -rdc=true -arch=sm_75 unit2.cu -o unit2.o && strip -g unit2.o
nvcc -ptx -gencode arch=compute_90a,code=compute_90a add.cu -o add.ptx
[ -z "${NVFATBIN-}" ] || python3 - "$NVFATBIN" <<'P'
import ctypes, sys
nvfatbin = ctypes.CDLL(sys.argv[1])
ptx = open("add.ptx", "rb").read()
for name, options in {"default": [], "size": [b"-compress-mode=size"], "none": [b"-compress=false"]}.items():
    handle, size = ctypes.c_void_p(), ctypes.c_size_t()
    array = (ctypes.c_char_p * max(1, len(options)))(*options)
    assert nvfatbin.nvFatbinCreate(ctypes.byref(handle), array, ctypes.c_size_t(len(options))) == 0
    assert nvfatbin.nvFatbinAddPTX(handle, ptx, ctypes.c_size_t(len(ptx) + 1), b"90a", b"add.cu", None) == 0
    assert nvfatbin.nvFatbinSize(handle, ctypes.byref(size)) == 0
    image = ctypes.create_string_buffer(size.value)
    assert nvfatbin.nvFatbinGet(handle, image) == 0
    open(f"nvfatbin-12-{name}.fatbin", "wb").write(image.raw)
P
