#!/usr/bin/env python3
"""Makes what the runtime facade does not implement: stubgen.py [options] SOURCE...

The real runtime's exports, as `nm -D` prints them, are what the facade must export. Those
whose definition in a SOURCE starts with FGV_EXPORT are implemented; every other gets a
stub that says cudaErrorNotSupported. Emits the stubs, the linker's version script and a
list of all names (a C header for the tests), from one list.

    --nm FILE        output of nm -D --defined-only on the real libcudart
    --node NAME      the version node
    --stubs FILE     C source to write
    --map FILE       version script to write
    --names FILE     header to write: NAME(x) for each name
"""

import argparse
import os
import re
import sys

# Called by start-up code, before the program could ask for an error.
QUIET = re.compile(r"__cudaRegister")

STUBS_HEAD = """\
/*
 * Made by stubgen.py: what the runtime has and FairGV does not.
 */
#include "frontend/libcudart/unsupported.h"

"""


def read_exports(path, node):
    """Names of the functions in nm's output."""
    names = set()
    for line in open(path, encoding="utf-8"):
        fields = line.split()
        if len(fields) == 3 and fields[1] in "TW":
            names.add(fields[2].split("@")[0])
    names.discard(node)
    if not names:
        sys.exit(f"{path}: no exported functions")
    return names


def read_implemented(sources):
    """Name to source of the definitions that are marked."""
    found = {}
    for source in sources:
        text = open(source, encoding="utf-8").read()
        for name in re.findall(r"^FGV_EXPORT\s[^;{(]*?\b(\w+)\s*\(", text, re.M):
            if name in found:
                sys.exit(f"{source}: {name} is in {found[name]} already")
            found[name] = source
    return found


def write(path, text):
    """In one step, and only if it differs, so that nothing is built anew in vain."""
    if os.path.exists(path) and open(path, encoding="utf-8").read() == text:
        os.utime(path)
        return
    with open(path + ".tmp", "w", encoding="utf-8") as out:
        out.write(text)
    os.replace(path + ".tmp", path)


def main():
    parser = argparse.ArgumentParser()
    for option in ("nm", "node", "stubs", "map", "names"):
        parser.add_argument("--" + option, required=True)
    parser.add_argument("sources", nargs="+")
    args = parser.parse_args()

    exports = read_exports(args.nm, args.node)
    implemented = read_implemented(args.sources)
    for name in sorted(set(implemented) - exports):
        sys.exit(f"{implemented[name]}: {name} is no function of the runtime")
    missing = sorted(exports - set(implemented))
    stubs = [f"{'QUIET_STUB' if QUIET.match(n) else 'STUB'}({n})\n" for n in missing]
    write(args.stubs, STUBS_HEAD + "".join(stubs))
    lines = "".join(f"\t{n};\n" for n in sorted(exports))
    write(args.map, f"{args.node} {{\nglobal:\n{lines}local:\n\t*;\n}};\n")
    write(args.names, "".join(f"NAME({n})\n" for n in sorted(exports)))


main()
