"""How fast the processor's counter runs, which an emulated guest counts its time by. A guest that
measures that itself while others have the processors gets it wrong by a factor, and its seconds
with it; so it is told.
"""
import ctypes
import mmap
import time

RDTSC = b"\x0f\x31\x48\xc1\xe2\x20\x48\x09\xd0\xc3"     # and rax = rdx << 32 | rax; ret
TRIES = 100
APART_S = 0.05


def closest(read):
    """The counter at a time in ns, from the try that least came in between."""
    best = None
    for _ in range(TRIES):
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        count = read()
        after = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        if not best or after - before < best[0]:
            best = (after - before, count, (before + after) // 2)
    return best[1:]


def measure_khz():
    with mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) as code:
        code.write(RDTSC)
        cell = ctypes.c_char.from_buffer(code)
        read = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(cell))
        first, first_ns = closest(read)
        time.sleep(APART_S)
        last, last_ns = closest(read)
        del cell
    return (last - first) * 1_000_000 // (last_ns - first_ns)
