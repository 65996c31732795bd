"""Two LLVMs in one process: ours, and llvmlite's, which is of another version. Each compiles, before and after the other.

    python3 jit/tests/llvmlite_too.py target/jit/release/libmargay_jit.so

Numba is such a program: it compiles for the CPU while its kernels run on Margay. Fails if either compiles anything wrong."""

import ctypes
import sys
import threading

IR = """
define i32 @{name}(i32 %a, i32 %b) {{
  %c = mul i32 %a, %b
  %d = add i32 %c, {number}
  ret i32 %d
}}
"""


class Request(ctypes.Structure):
    _fields_ = [
        ("ir", ctypes.c_char_p),
        ("ir_len", ctypes.c_size_t),
        ("cpu", ctypes.c_char_p),
        ("features", ctypes.c_char_p),
        ("passes", ctypes.c_char_p),
        ("level", ctypes.c_uint32),
        ("emit", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
    ]


class Answer(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.POINTER(ctypes.c_ubyte)),
        ("len", ctypes.c_size_t),
        ("message", ctypes.POINTER(ctypes.c_ubyte)),
        ("message_len", ctypes.c_size_t),
    ]


class Ours:
    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.margay_jit_version.restype = ctypes.c_char_p
        self.library.margay_jit_broken.restype = ctypes.c_char_p
        self.version = self.library.margay_jit_version().decode()

    def compile(self, number):
        ir = IR.format(name=f"f{number}", number=number).encode()
        # Assembly at O2, verified: the number is in it.
        request = Request(ir, len(ir), b"x86-64", b"", None, 2, 1, 1)
        answer = Answer()
        failed = self.library.margay_jit_compile(ctypes.byref(request), ctypes.byref(answer))
        message = bytes(answer.message[: answer.message_len]) if answer.message else b""
        assembly = bytes(answer.data[: answer.len]).decode() if answer.data else ""
        self.library.margay_jit_free(ctypes.byref(answer))
        assert not failed, message
        assert f"f{number}:" in assembly and "imull" in assembly and str(number) in assembly, assembly
        assert self.library.margay_jit_broken() is None


class Llvmlite:
    def __init__(self):
        from llvmlite import binding

        self.llvm = binding
        try:
            binding.initialize()
        except RuntimeError:
            pass  # newer ones do it themselves
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        self.version = "LLVM " + ".".join(map(str, binding.llvm_version_info))
        self.machine = binding.Target.from_default_triple().create_target_machine(opt=2)
        self.engine = binding.create_mcjit_compiler(binding.parse_assembly(""), self.machine)

    def compile(self, number):
        module = self.llvm.parse_assembly(IR.format(name=f"f{number}", number=number))
        module.verify()
        self.engine.add_module(module)
        self.engine.finalize_object()
        address = self.engine.get_function_address(f"f{number}")
        function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32, ctypes.c_int32)(address)
        assert function(6, 7) == 42 + number, function(6, 7)


def main():
    path = sys.argv[1]
    if len(sys.argv) > 2:
        run(path, sys.argv[2])
        return
    # In either order of loading; each in a process of its own.
    import subprocess

    for first in ["ours", "llvmlite"]:
        subprocess.run([sys.executable, __file__, path, first], check=True)


def run(path, first):
    if first == "ours":
        ours = Ours(path)
        ours.compile(1001)
        other = Llvmlite()
    else:
        other = Llvmlite()
        other.compile(2001)
        ours = Ours(path)
    for number in range(3000, 3010):
        ours.compile(number)
        other.compile(number)
    # At the same time.
    errors = []

    def many():
        try:
            for number in range(4000, 4050):
                ours.compile(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=many) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(5000, 5030):
        other.compile(number)
    for thread in threads:
        thread.join()
    assert not errors, errors
    print(f"{ours.version} and llvmlite's {other.version}, {first} first: both compile")


main()
