#!/usr/bin/env python3
"""Makes what the runtime facade does not implement: stubgen.py [options] SOURCE...

The real runtime's exports, as `nm -D` prints them, are what the facade must export. Those
whose definition in a SOURCE starts with FGV_EXPORT are implemented; every other gets a
stub that says cudaErrorNotSupported. The names of CUDA 12 lead to the same functions in a
version node of their own, or to those of a SOURCE that start with FGV_EXPORT_12. Emits the
stubs, the linker's version script, a list of all names (a C header for the tests) and the
table of what is supported.

    --nm FILE        output of nm -D --defined-only on the real libcudart
    --node NAME      the version node
    --cuda12 FILE    the names of CUDA 12: cuda12.txt says how
    --stubs FILE     C source to write
    --map FILE       version script to write
    --names FILE     header to write: NAME(x) for each name, NAME_12(x) for those of 12
    --support FILE   table to write
"""

import argparse
import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from marked import read_marked, write  # pylint: disable=wrong-import-position

# Called by start-up code, before the program could ask for an error.
QUIET = re.compile(r"__cudaRegister")

NODE_12 = "libcudart.so.12"
PREFIX_12 = "fgv_12_"

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


def read_names_12(path, exports):
    """Name in 12 to name in 13, or to None where that means something else."""
    names = {}
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        match = re.fullmatch(r"(\w+)(?: (\*)| = (\w+))?", line.partition("#")[0].strip())
        if not match:
            if line.strip() and not line.startswith("#"):
                sys.exit(f"{path}:{number}: not a name and how it differs")
            continue
        name, differs, same = match.groups()
        names[name] = None if differs else same or name
        if not differs and names[name] not in exports:
            sys.exit(f"{path}:{number}: {names[name]} is no function of 13")
    return names


def stubs_12(names, implemented):
    """Lines of C: where each name of 12 leads."""
    lines = []
    for name, same in sorted(names.items()):
        own = PREFIX_12 + name
        if not same and own not in implemented:
            lines.append(f"STUB_12({name})\n")
        lines.append(f"NAME_12({name}, {same or own})\n")
    return lines


def read_uses(sources, exports):
    """What a function for 12 leads to: its name to those of the runtime in its body."""
    uses = {}
    for source in sources:
        text = open(source, encoding="utf-8").read()
        for name, body in re.findall(r"^FGV_EXPORT_12\s[^;{(]*?\b(\w+)\s*\([^{;]*\{(.*?)^\}", text,
                                     re.M | re.S):
            uses[name] = set(re.findall(r"\b(\w+)\s*\(", body)) & exports
    return uses


def supported_12(names, supported, uses):
    """The names of 12 behind which there is something."""
    found = set()
    for name, same in names.items():
        own = PREFIX_12 + name
        if same in supported or (own in uses and uses[own] <= supported):
            found.add(name)
    return found


SUPPORT_HEAD = """\
# What of the CUDA runtime is supported

Of the functions that NVIDIA's `libcudart` exports, FairGV has {have_13} of {all_13} of CUDA 13 and
{have_12} of {all_12} of CUDA 12. The others return `cudaErrorNotSupported`; `FAIRGV_STATS=1`
names and counts those that a program has called. A function that is supported in
one version's form alone is so because the other's differs. Names with `_ptsz` and `_ptds` are those for
programs with a default stream per thread.

| function | CUDA 13 | CUDA 12 |
| --- | --- | --- |
"""


def support_table(supported, all_names):
    """The table, from what is supported of each version and all that each has."""
    def word(version, name):
        if name not in all_names[version]:
            return ""
        return "yes" if name in supported[version] else "not supported"

    counts = {f"have_{v}": len(supported[v]) for v in (12, 13)}
    counts.update({f"all_{v}": len(all_names[v]) for v in (12, 13)})
    return SUPPORT_HEAD.format(**counts) + "".join(
        f"| `{name}` | {word(13, name)} | {word(12, name)} |\n"
        for name in sorted(all_names[12] | all_names[13]))


def main():
    parser = argparse.ArgumentParser()
    for option in ("nm", "node", "cuda12", "stubs", "map", "names", "support"):
        parser.add_argument("--" + option, required=True)
    parser.add_argument("sources", nargs="+")
    args = parser.parse_args()

    exports = read_exports(args.nm, args.node)
    names_12 = read_names_12(args.cuda12, exports)
    implemented = read_marked(args.sources, "FGV_EXPORT(?:_12)?")
    wanted = exports | {PREFIX_12 + name for name, same in names_12.items() if not same}
    for name in sorted(set(implemented) - wanted):
        sys.exit(f"{implemented[name]}: {name} is no function of the runtime")
    missing = sorted(exports - set(implemented))
    stubs = [f"{'QUIET_STUB' if QUIET.match(n) else 'STUB'}({n})\n" for n in missing]
    write(args.stubs, STUBS_HEAD + "".join(stubs + stubs_12(names_12, implemented)))
    lines = "".join(f"\t{n};\n" for n in sorted(exports))
    write(args.map, f"{NODE_12} {{\n}};\n{args.node} {{\nglobal:\n{lines}local:\n\t*;\n}};\n")
    write(args.names, "".join([f"NAME({n})\n" for n in sorted(exports)]
                              + [f"NAME_12({n})\n" for n in sorted(names_12)]))
    supported = set(implemented) & exports
    all_names = {12: set(names_12), 13: exports}
    with_12 = supported_12(names_12, supported, read_uses(args.sources, exports))
    write(args.support, support_table({12: with_12, 13: supported}, all_names))


main()
