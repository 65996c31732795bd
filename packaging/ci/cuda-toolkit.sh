#!/bin/sh
# Lays out NVIDIA's compiler, as published on the Python package index, the way NVIDIA's installer does, so that CMake and Meson
# take it for a toolkit:
#
#   packaging/ci/cuda-toolkit.sh --to FOLDER                     fetches the packages (about 200 MB) into FOLDER/packages
#   packaging/ci/cuda-toolkit.sh --to FOLDER --packages SITE     takes those that are installed in a folder site-packages
#   … --driver LIB                                               the library that programs link with -lcuda: Margay's lib folder
#
# FOLDER/bin goes onto PATH, and FOLDER is CUDA_PATH. The host's compiler (g++) and, to fetch, python3 with pip must be there.
set -eu

say() { printf 'cuda-toolkit: %s\n' "$*"; }
die() { printf 'cuda-toolkit: %s\n' "$*" >&2; exit 1; }

packages='
nvidia-cuda-nvcc==13.5.37
nvidia-nvvm==13.5.37
nvidia-cuda-crt==13.5.37
nvidia-cuda-runtime==13.5.37
nvidia-cuda-cccl==13.3.5.0.6
'

to= site= driver=
while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || die "$1 needs a value"
    case $1 in
        --to) to=$2 ;;
        --packages) site=$2 ;;
        --driver) driver=$2 ;;
        *) die "no option $1" ;;
    esac
    shift 2
done
[ -n "$to" ] || die "say --to FOLDER"
[ "$(uname -s) $(uname -m)" = 'Linux x86_64' ] || die "needs Linux on x86_64; this is $(uname -s) on $(uname -m)"
command -v "${CXX:-g++}" >/dev/null || die "needs a C++ compiler, which nvcc starts: install g++"

mkdir -p "$to"
to=$(cd "$to" && pwd)
if [ -z "$site" ]; then
    site=$to/packages
    say "fetching NVIDIA's compiler (about 200 MB)"
    # --no-deps: the list above is complete, and dependencies would float.
    # shellcheck disable=SC2086 # a list of words on purpose
    python3 -m pip install -q --disable-pip-version-check --no-deps --upgrade --target "$site" $packages
fi
top=$(cd "$site" && pwd)/nvidia/cu13
[ -x "$top/bin/nvcc" ] || die "no nvcc in $top/bin"

rm -rf "$to/bin" "$to/nvvm" "$to/targets" "$to/lib" "$to/lib64" "$to/include"
# nvcc finds everything relative to the path that it was started by, so folders are made and files are linked.
target=$to/targets/x86_64-linux
mkdir -p "$to/bin" "$target/include" "$target/lib/stubs"
for file in "$top"/bin/*; do ln -s "$file" "$to/bin/"; done
for file in "$top"/lib/*; do ln -s "$file" "$target/lib/"; done
for file in "$top"/include/*; do ln -s "$file" "$target/include/"; done
ln -s "$top/nvvm" "$to/nvvm"
ln -s libcudart.so.13 "$target/lib/libcudart.so"
ln -s targets/x86_64-linux/lib "$to/lib64"
# Where the packages' own nvcc looks.
ln -s targets/x86_64-linux/lib "$to/lib"
ln -s targets/x86_64-linux/include "$to/include"
# NVIDIA's toolkit has a library of the driver's functions to link with, which the packages lack.
if [ -n "$driver" ]; then
    [ -e "$driver/libcuda.so.1" ] || die "no libcuda.so.1 in $driver"
    ln -s "$(cd "$driver" && pwd)/libcuda.so.1" "$target/lib/stubs/libcuda.so"
fi
"$to/bin/nvcc" --version >/dev/null || die "$to/bin/nvcc does not start"
say "nvcc is $to/bin/nvcc"
