"""That programs are built so that mistakes in memory are harder to use: what the compiler and the
linker were asked for is in the files."""
import os
import pathlib
import re
import subprocess
import sys

BUILD = pathlib.Path(os.environ.get("abs_top_builddir", "."))
PROGRAMS = ("backend/fairgv-backend", "backend/vgpu/fairgv-vgpu")


def tool(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def lacks(program, flags):
    """What @program lacks of what these flags of the makefile ask for."""
    path = BUILD / program
    dynamic, symbols = tool("readelf", "-dW", path), tool("readelf", "--dyn-syms", "-W", path)
    segments = tool("readelf", "-lW", path)
    wanted = {
        "position-independent code": "PIE" in dynamic,
        "relocations that are read-only": "GNU_RELRO" in segments and "NOW" in dynamic,
        "a stack that can't be executed": not re.search(r"GNU_STACK.*RWE", segments),
    }
    if "stack-protector" in flags:
        wanted["a guarded stack"] = "__stack_chk_fail" in symbols
    if "_FORTIFY_SOURCE" in flags:
        wanted["checked functions"] = bool(re.search(r"__\w+_chk@", symbols))
    if "cf-protection" in flags:
        main = tool("objdump", "-d", "--no-show-raw-insn", "--disassemble=main", path)
        wanted["marked targets of jumps"] = "endbr64" in main
    return [name for name, there in wanted.items() if not there]


makefile = (BUILD / "Makefile").read_text()
hardened = " ".join(re.findall(r"^HARDEN_\w+ = (.*)$", makefile, re.M))
for built in PROGRAMS:
    missing = lacks(built, hardened)
    if missing:
        print(f"{built} has no {', no '.join(missing)}")
        sys.exit(1)
    print(f"{built}: passed")
