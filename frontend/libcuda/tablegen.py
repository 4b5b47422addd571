#!/usr/bin/env python3
"""Makes the tables of the driver API from the toolkit's headers: tablegen.py [options] SOURCE...

A function of the driver has a name (cuMemAlloc), and for each version of CUDA that changed it a
symbol (cuMemAlloc, cuMemAlloc_v2); some have others for programs with a default stream per thread
(cuMemcpy_ptds, cuMemcpyAsync_ptsz). cuda.h declares all symbols, and the headers with the types of
pointers to them say since which version each name has had which form: the oldest form is the
plain symbol, the next one _v2, and so on. What these headers don't say is in driver.txt.

A symbol whose definition in a SOURCE starts with FGV_EXPORT is implemented. So is a per-thread form
of one with a stream among its arguments, which is made here. Every other gets a stub that returns
CUDA_ERROR_NOT_SUPPORTED. cuGetProcAddress() finds it only if driver.txt says so.

    --api FILE       cuda.h, preprocessed with __CUDA_API_VERSION_INTERNAL
    --typedefs FILE  a header with types named PFN_<name>_v<version>; may be repeated
    --extra FILE     driver.txt
    --stubs FILE     C source to write: stubs, and per-thread forms
    --map FILE       the linker's version script to write
    --table FILE     header to write: ENTRY(name, version, thread, symbol) for each that is
                     implemented, REFUSED(name, version, thread, symbol) for each stub that is
                     found, MISSING(name, version, thread) for each other, sorted
    --names FILE     header to write: SYMBOL(name, version, thread, symbol, implemented, found)
                     for all
    --support FILE   table to write
"""

import argparse
import fnmatch
import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from marked import read_marked, write  # pylint: disable=wrong-import-position

SUFFIXES = re.compile(r"(cu\w+?)(?:_v(\d+))?(?:_(ptds|ptsz))?")

STUBS_HEAD = """\
/*
 * Made by tablegen.py: the driver's functions that FairGV does not have, and those that are others
 * for another default stream.
 */
#include "frontend/libcuda/missing.h"

"""

SUPPORT_HEAD = """\
# What of the CUDA driver API is supported

Of the {all} symbols that a driver of CUDA 13 exports, FairGV's `libcuda.so.1` has {have}. The others
return `CUDA_ERROR_NOT_SUPPORTED`; `cuGetProcAddress` finds only those marked as refused.
`FAIRGV_STATS=1` names and counts those that a program has called. The version is that of CUDA since which the symbol has
stood for its name.

| symbol | since | |
| --- | --- | --- |
"""


def split_symbol(symbol):
    """cuMemcpyHtoD_v2_ptds: cuMemcpyHtoD, 2, ptds"""
    name, version, thread = SUFFIXES.fullmatch(symbol).groups()
    return name, int(version or 1), thread or ""


def read_prototypes(path):
    """Symbol to the text of its parameters."""
    text = re.sub(r"\s+", " ", open(path, encoding="utf-8").read())
    found = {}
    for symbol, parameters in re.findall(r"\bCUresult (cu[A-Z]\w*) ?\(([^;{]*?)\) ?;", text):
        found.setdefault(symbol, parameters.strip())
    if not found:
        sys.exit(f"{path}: no functions")
    return found


def read_versions(paths):
    """(name, thread) to the versions since which it has had a new form."""
    found = {}
    for path in paths:
        text = open(path, encoding="utf-8").read()
        for name, version, thread in re.findall(r"\*PFN_(cu\w+?)_v(\d+)(?:_(ptds|ptsz))?\)", text):
            found.setdefault((name, thread), set()).add(int(version))
    if not found:
        sys.exit(f"{paths[0]}: no types of functions")
    return {key: sorted(versions) for key, versions in found.items()}


def read_extra(path):
    """Names that are no functions here; [(name, version, symbol)] of those that stand for others;
    patterns of the names that are refused."""
    absent, others, refused = set(), [], []
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        line = line.partition("#")[0].strip()
        match = re.fullmatch(r"- (\w+)|! (\w+\*?)|(\w+) (\d+) = (\w+)", line)
        if line and not match:
            sys.exit(f"{path}:{number}: not '- NAME', '! PATTERN' or 'NAME VERSION = SYMBOL'")
        if line and match[1]:
            absent.add(match[1])
        elif line and match[2]:
            refused.append(match[2])
        elif line:
            others.append((match[3], int(match[4]), match[5]))
    return absent, others, refused


def name_symbols(name, thread, versions, plain):
    """The symbols of a function that cuda.h does not declare, as they would be named there."""
    if not thread:
        return [name + (f"_v{i}" if i > 1 else "") for i in range(1, len(versions) + 1)]
    newest = sum(1 for v in plain if v <= versions[0])
    return [name + (f"_v{newest}" if newest > 1 else "") + f"_{thread}"]


def make_table(symbols, versions, absent, others):
    """[(name, version, thread, symbol)]"""
    declared = {}
    for symbol in symbols:
        name, number, thread = split_symbol(symbol)
        declared.setdefault((name, thread), []).append((number, symbol))
    table = []
    for key in sorted(set(versions) | set(declared)):
        name, thread = key
        if name in absent:
            continue
        if key not in versions:
            sys.exit(f"{name}: no version of {declared[key][0][1]} is known")
        forms = [symbol for _, symbol in sorted(declared.get(key, []))]
        forms = forms or name_symbols(name, thread, versions[key], versions.get((name, ""), []))
        if len(forms) != len(versions[key]):
            sys.exit(f"{name}: {len(forms)} symbols for {len(versions[key])} versions")
        table += [(name, version, thread, symbol)
                  for version, symbol in zip(versions[key], forms)]
    for name, version, symbol in others:
        if symbol not in symbols:
            sys.exit(f"{name} {version}: {symbol} is not declared")
        table.append((name, version, "", symbol))
    return sorted(table)


def per_thread_form(symbol, parameters):
    """C of a symbol that is another with a thread's stream for the default one; None: it isn't."""
    arguments, streams = [], 0
    for parameter in parameters.split(","):
        match = re.fullmatch(r"(.*?)(\w+)", parameter.strip())
        if not match:
            return None
        kind, argument = match[1].strip(), match[2]
        if kind == "CUstream":
            argument = f"fgv_driver_per_thread({argument})"
            streams += 1
        arguments.append(argument)
    if not streams:
        return None
    base = symbol.rpartition("_")[0]
    return f"FGV_EXPORT CUresult {symbol}({parameters})\n{{\n" \
           f"\treturn {base}({', '.join(arguments)});\n}}\n\n"


def make_forms(prototypes, implemented):
    """Symbol to C of the per-thread forms that are made of what is implemented."""
    forms = {}
    for symbol, parameters in sorted(prototypes.items()):
        base, _, thread = symbol.rpartition("_")
        if thread == "ptsz" and base in implemented and symbol not in implemented:
            form = per_thread_form(symbol, parameters)
            if form:
                forms[symbol] = form
    return forms


def thread_word(thread):
    return "PER_THREAD" if thread else "LEGACY"


def find_refused(table, implemented, patterns):
    """The symbols that are not implemented, and whose names match a pattern."""
    found = set()
    for pattern in patterns:
        symbols = {row[3] for row in table if fnmatch.fnmatchcase(row[0], pattern)}
        if not symbols - implemented:
            sys.exit(f"no function that is not implemented is named {pattern}")
        found |= symbols - implemented
    return found


def entry(row, implemented, refused):
    name, version, thread, symbol = row
    if symbol in implemented:
        return f'ENTRY("{name}", {version}, {thread_word(thread)}, {symbol})\n'
    if symbol in refused:
        return f'REFUSED("{name}", {version}, {thread_word(thread)}, {symbol})\n'
    return f'MISSING("{name}", {version}, {thread_word(thread)})\n'


def support_word(symbol, implemented, refused):
    if symbol in implemented:
        return "yes"
    return "refused" if symbol in refused else "not supported"


def support_table(table, implemented, refused):
    symbols = {}
    for _, version, _, symbol in table:
        symbols[symbol] = min(version, symbols.get(symbol, version))
    rows = [f"| `{symbol}` | {version // 1000}.{version % 1000 // 10} | "
            f"{support_word(symbol, implemented, refused)} |\n"
            for symbol, version in sorted(symbols.items())]
    have = sum(symbol in implemented for symbol in symbols)
    return SUPPORT_HEAD.format(all=len(symbols), have=have) + "".join(rows)


def main():
    parser = argparse.ArgumentParser()
    for option in ("api", "extra", "stubs", "map", "table", "names", "support"):
        parser.add_argument("--" + option, required=True)
    parser.add_argument("--typedefs", required=True, action="append")
    parser.add_argument("sources", nargs="+")
    args = parser.parse_args()

    prototypes = read_prototypes(args.api)
    absent, others, patterns = read_extra(args.extra)
    table = make_table(set(prototypes), read_versions(args.typedefs), absent, others)
    symbols = {symbol for _, _, _, symbol in table}
    implemented = read_marked(args.sources, "FGV_EXPORT")
    for symbol in sorted(set(implemented) - symbols):
        sys.exit(f"{implemented[symbol]}: {symbol} is no function of the driver")
    forms = make_forms(prototypes, implemented)
    have = set(implemented) | set(forms)
    refused = find_refused(table, have, patterns)
    stubs = [f"STUB({symbol})\n" for symbol in sorted(symbols - have)]
    write(args.stubs, STUBS_HEAD + "".join(forms[s] for s in sorted(forms)) + "".join(stubs))
    lines = "".join(f"\t{symbol};\n" for symbol in sorted(symbols))
    write(args.map, f"{{\nglobal:\n{lines}local:\n\t*;\n}};\n")
    write(args.table, "".join(entry(row, have, refused) for row in table))
    write(args.names, "".join(
        f'SYMBOL("{n}", {v}, {thread_word(t)}, {s}, {int(s in have)}, '
        f'{int(s in have | refused)})\n' for n, v, t, s in table))
    write(args.support, support_table(table, have, refused))


main()
