"""Loads an image of so many bytes, of which a few are a kernel, and runs that; for images.py and chaos.

Arguments: how many MiB, and a number on which the rest of the image depends. Prints how long
loading took, and that the kernel does what it should.
"""
import ctypes
import random
import struct
import sys
import time

PTX = b""".version 8.0
.target sm_70
.address_size 64
.visible .entry put(.param .u64 to, .param .u32 value)
{
    .reg .b64 %rd<2>;
    .reg .b32 %r<2>;
    ld.param.u64 %rd1, [to];
    ld.param.u32 %r1, [value];
    st.global.u32 [%rd1], %r1;
    ret;
}
\0"""
KIND_PTX, KIND_OTHER = 1, 16


def entry(kind, data):
    data += bytes(-len(data) % 8)
    head = struct.pack("<HHIQ", kind, 0x0101, 64, len(data)) + bytes(12) + struct.pack("<I", 70)
    return head + bytes(64 - len(head)) + data


def container(*entries):
    data = b"".join(entries)
    return struct.pack("<IHHQ", 0xba55ed50, 1, 16, len(data)) + data


def check(code, what):
    if code:
        sys.exit(f"{what}: error {code}")


def run(runtime, kernel):
    value, pointer = ctypes.c_uint32(), ctypes.c_void_p()
    check(runtime.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(4)), "cudaMalloc")
    arguments = [pointer, ctypes.c_uint32(4711)]
    array = (ctypes.c_void_p * 2)(*[ctypes.addressof(each) for each in arguments])
    check(runtime.cudaLaunchKernel(kernel, DIM, DIM, array, ctypes.c_size_t(0), None), "launch")
    check(runtime.cudaMemcpy(ctypes.byref(value), pointer, ctypes.c_size_t(4), 2), "cudaMemcpy")
    if value.value != 4711:
        sys.exit(f"the kernel has put {value.value}")


class Dim3(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint) for name in "xyz"]


DIM = Dim3(1, 1, 1)


def main():
    size, seed = int(sys.argv[1]) << 20, int(sys.argv[2])
    image = container(entry(KIND_OTHER, random.Random(seed).randbytes(size)),
              entry(KIND_PTX, PTX))
    runtime = ctypes.CDLL("libcudart.so.13")
    library, kernel = ctypes.c_void_p(), ctypes.c_void_p()
    check(runtime.cudaFree(None), "cudaFree")
    began = time.monotonic()
    check(runtime.cudaLibraryLoadData(ctypes.byref(library), image, None, None, 0, None, None, 0),
          "cudaLibraryLoadData")
    check(runtime.cudaLibraryGetKernel(ctypes.byref(kernel), library, b"put"), "get kernel")
    took = time.monotonic() - began
    run(runtime, kernel)
    print(f"loaded in {took * 1e3:.1f} ms, verified=yes")


main()
