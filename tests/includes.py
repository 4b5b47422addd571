#!/usr/bin/env python3
"""Includes point downwards, as HACKING's table of the tree says, and never in circles.

A folder may include itself, what its row of the table names, and what that may include. A module
is a source with its header; a header that is private to its room (_priv, _internal) counts as a part
of the module that it is named after. CIRCLES has those that there are, with the reason.
"""
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(os.environ["top_srcdir"])
ROW = re.compile(r"\| (`[^|]*`) \|[^|]*\|([^|]*)\|$")
NAME = re.compile(r"`([\w/.-]+)`")
INCLUDE = re.compile(r'#include ["<]([^">]+)[">]')
RUNTIME = {"cuda_runtime.h", "cuda_runtime_api.h", "driver_types.h", "vector_types.h"}
RUNTIME_FREE = ("frontend/client/", "frontend/cuda/")
# What programs that are no part of FairGV's own libraries and daemons include is their affair.
UNRULED = {"workloads", "tests/cuda", "bench"}
# Programs that put together what does not know of each other.
ALONE = {("tools/fairgv-region.c", "frontend/client"), ("tools/fairgv-region.c", "guest-kmod/uapi"),
         ("backend/main.c", "qemu-device")}

# Modules whose struct is made of others of their folder, which work on all of it in turn.
WHOLES = {"backend/config/config", "backend/vgpu/session", "softgpu/device/internal"}

# Other modules that know of each other. Nothing else may.
CIRCLES = {
    frozenset({"frontend/cuda/graph/exec", "frontend/cuda/graph/exec_host"}):
    "exec_priv.h is the struct, a part of which the host's graph is",
    frozenset({"backend/mps/control", "backend/mps/keeper"}):
    "the keeper is the process that control starts and speaks with",
    frozenset({"qemu-device/link", "qemu-device/slots"}):
    "a link to QEMU has slots, and a slot tells its link",
}


def read_rules():
    """Folder to the names that it may include, from the table."""
    rules = {}
    for line in (ROOT / "HACKING.md").read_text().splitlines():
        match = ROW.match(line)
        if match:
            # What stands behind "alone" and its like is said again in ALONE.
            names = [name.rstrip("/") for name in NAME.findall(match[2].split("; its")[0].split(
                "; `fairgv")[0])]
            for folder in NAME.findall(match[1]):
                rules[folder.rstrip("/")] = names
    return rules


def closure(rules, folder):
    """All that @folder may include."""
    seen, left = set(), [folder]
    while left:
        name = left.pop()
        if name not in seen:
            seen.add(name)
            left.extend(rules.get(name, ()))
    return seen


def folder_of(rules, path):
    """The row that @path belongs to: the longest one."""
    return max((folder for folder in rules if path.startswith(folder + "/")), key=len, default="")


def module_of(path):
    return re.sub(r"(_priv|_internal)?\.[ch]$", "", path)


def may_include(allowed, path, included, folder):
    if any(path == source and included.startswith(place) for source, place in ALONE):
        return True
    # A row may name one file of a folder.
    return folder in allowed or included in allowed or \
        any(included.startswith(name + "/") for name in allowed if "/" in name and name != folder)


def read(rules):
    """Module to the modules that it includes, and what is wrong with single lines."""
    graph, wrong = {}, []
    for folder in sorted(set(rules) - UNRULED):
        allowed = closure(rules, folder)
        for path in sorted((ROOT / folder).rglob("*.[ch]")):
            name = str(path.relative_to(ROOT))
            if folder_of(rules, name) != folder:
                continue
            for included in INCLUDE.findall(path.read_text()):
                if included in RUNTIME and name.startswith(RUNTIME_FREE):
                    wrong.append(f"{name}: {included} is the runtime's")
                other = folder_of(rules, included)
                if not other:
                    continue
                if not may_include(allowed, name, included, other):
                    wrong.append(f"{name}: {included} does not lie below it")
                if module_of(included) != module_of(name):
                    graph.setdefault(module_of(name), set()).add(module_of(included))
    return graph, wrong


def reach(graph, start):
    seen, left = set(), [start]
    while left:
        for module in graph.get(left.pop(), ()):
            if module not in seen:
                seen.add(module)
                left.append(module)
    return seen


def circles(graph):
    """Sets of modules each of which reaches all the others."""
    below = {module: reach(graph, module) for module in graph}
    return {frozenset(other for other in below[module] if module in below.get(other, ()))
            for module in graph if module in below[module]}


def is_whole(circle):
    """Whether it is one of the WHOLES with its parts."""
    return any(whole in circle and {os.path.dirname(module) for module in circle} ==
               {os.path.dirname(whole)} for whole in WHOLES)


def check(rules):
    graph, wrong = read(rules)
    found = {circle for circle in circles(graph) if not is_whole(circle)}
    wrong += [f"a circle: {', '.join(sorted(circle))}" for circle in found - set(CIRCLES)]
    wrong += [f"no circle any more: {', '.join(sorted(circle))}" for circle in set(CIRCLES) - found]
    if len(graph) < 300:
        wrong.append(f"only {len(graph)} modules found")
    return wrong


def main():
    wrong = check(read_rules())
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
