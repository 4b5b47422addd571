"""What the tests of the soft GPU share: the program that runs PTX, and the count of what failed."""
import os
import struct
import subprocess

BUILD = os.environ.get("abs_top_builddir", ".")
SHOWN = 20
failures = 0


class Runner:
    """The program that runs PTX, fed with jobs."""

    def __init__(self):
        self.process = subprocess.Popen([os.path.join(BUILD, "tests/softgpu/run_ptx")],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self, text, threads, data, out_bytes):
        text = text.encode()
        self.process.stdin.write(struct.pack("<4I", len(text), threads, len(data), out_bytes)
                                 + text + data)
        self.process.stdin.flush()
        code, length = struct.unpack("<2I", self.process.stdout.read(8))
        return code, self.process.stdout.read(length)

    def close(self):
        self.process.stdin.close()
        if self.process.wait():
            fail(f"run_ptx ended with {self.process.returncode}")


def fail(text):
    global failures
    failures += 1
    if failures <= SHOWN:
        print(text, flush=True)


def failed():
    """The status to exit with."""
    print(f"{failures} failures")
    return 1 if failures else 0
