"""The first messages of the wire (api/wire.h), for tests that connect as programs do."""
import os
import pathlib
import re
import struct

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("abs_top_builddir", "."))
HELLO, LANE, LOOK = 1, 3, 5
WELCOME_LEN, VIEW_LEN = 384, 7160
WELCOME_VM, VIEW_MEMORY, VIEW_VM = 64, 24, 64       # where these are in the answer


def constant(path, name):
    return int(re.search(rf"#define {name}\s+(\w+?)(ull)?\s", path.read_text())[1], 0)


VERSION = constant(TOP / "api/wire.h", "FGV_WIRE_VERSION")
HASH = constant(BUILD / "api/gpu_wire.h", "FGV_API_HASH")


def hello(vm, program, kind=HELLO):
    return struct.pack("<II64s64sIIQQIIQII", kind, VERSION, vm.encode(), program.encode(),
                       os.getpid(), 0, 0, 0, 0, 0, HASH, 0, 0)


def status(answer):
    """Of a welcome or a view."""
    return struct.unpack_from("<I", answer, 8)[0]


def name_at(answer, offset):
    return answer[offset:offset + 64].split(b"\0")[0].decode()
