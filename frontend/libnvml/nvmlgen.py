#!/usr/bin/env python3
"""Makes what libnvidia-ml does not implement: nvmlgen.py [options] SOURCE...

Every function of NVML is exported: those in the list of names and, where the toolkit has
nvml.h, those that this declares. Those whose definition in a SOURCE starts with FGV_EXPORT are
implemented; every other gets a stub that says NVML_ERROR_NOT_SUPPORTED. Emits the stubs, the
linker's version script, a list of all names (a C header for the tests) and the table of what
is supported.

    --list FILE      names.txt
    --header FILE    the toolkit's nvml.h, if there is one
    --stubs FILE     C source to write
    --map FILE       version script to write
    --names FILE     header to write: NAME(x) for each implemented name, STUB_NAME(x) for others
    --support FILE   table to write
"""

import argparse
import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from marked import read_marked, write  # pylint: disable=wrong-import-position

STUBS_HEAD = """\
/*
 * Made by nvmlgen.py: what NVML has and FairGV does not.
 */
#include "frontend/libnvml/unsupported.h"

"""

SUPPORT_HEAD = """\
# What of NVML is supported

Of the {all} functions of NVML, which `libnvidia-ml.so.1` exports, FairGV has {have}. They describe
the vGPU: its memory, its use and its processes are the VM's own. The others return
`NVML_ERROR_NOT_SUPPORTED`; `FAIRGV_STATS=1` names and counts those that a program has called.
Temperature, power, clocks and the PCI Express link are the host GPU's where the host knows them,
and not supported otherwise. How much of the time memory is at work is not measured: it is 0.

| function | |
| --- | --- |
"""


def read_list(path):
    """The names in names.txt."""
    names = set()
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        name = line.partition("#")[0].strip()
        if name and not re.fullmatch(r"nvml\w+", name):
            sys.exit(f"{path}:{number}: not a function of NVML's")
        names.add(name)
    return names - {""}


def read_header(path):
    """The functions that nvml.h declares, by their own names, whatever its macros make of them."""
    text = open(path, encoding="utf-8", errors="replace").read()
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)
    names = set(re.findall(r"\bDECLDIR\s+(nvml\w+)\s*\(", text))
    if not names:
        sys.exit(f"{path}: it declares no functions")
    return names


def main():
    parser = argparse.ArgumentParser()
    for option in ("list", "stubs", "map", "names", "support"):
        parser.add_argument("--" + option, required=True)
    parser.add_argument("--header")
    parser.add_argument("sources", nargs="+")
    args = parser.parse_args()

    names = read_list(args.list)
    if args.header:
        names |= read_header(args.header)
    implemented = read_marked(args.sources, "FGV_EXPORT")
    for name in sorted(set(implemented) - names):
        sys.exit(f"{implemented[name]}: {name} is no function of NVML")
    missing = sorted(names - set(implemented))
    write(args.stubs, STUBS_HEAD + "".join(f"STUB({name})\n" for name in missing))
    exports = "".join(f"\t{name};\n" for name in sorted(names))
    write(args.map, f"{{\nglobal:\n{exports}local:\n\t*;\n}};\n")
    write(args.names, "".join(f"{'NAME' if name in implemented else 'STUB_NAME'}({name})\n"
                              for name in sorted(names)))
    write(args.support, SUPPORT_HEAD.format(all=len(names), have=len(implemented)) + "".join(
        f"| `{name}` | {'yes' if name in implemented else 'not supported'} |\n"
        for name in sorted(names)))


main()
