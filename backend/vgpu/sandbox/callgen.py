#!/usr/bin/env python3
"""Makes a C table from a list of system calls; calls-base.list says what a list looks like.

usage: callgen.py LIST NAME    (prints a header that defines the table NAME)
"""
import re
import sys

CONDITION = re.compile(r"arg([0-5])(?:\s*&\s*(\S.*?))?\s*==\s*(\S.*?)\s*$")
NAME = re.compile(r"[a-z_0-9]+$")
CONDITIONS_MAX = 2


class BadLine(Exception):
    pass


def parse_condition(text):
    match = CONDITION.match(text.strip())
    if not match:
        raise BadLine(f"not a condition: {text.strip()}")
    arg, mask, value = match.groups()
    if value == "self":
        return f"{{{arg}, UINT64_MAX, 0, true}}"
    if value == "NULL":
        return f"{{{arg}, UINT64_MAX, 0, false}}"
    return f"{{{arg}, {f'(uint32_t)({mask})' if mask else 'UINT32_MAX'}, (uint32_t)({value}), false}}"


def parse_rule(line):
    name, _, rest = line.partition(" ")
    if not NAME.match(name):
        raise BadLine(f"not a system call's name: {name}")
    conditions = [parse_condition(text) for text in rest.split(",")] if rest.strip() else []
    if len(conditions) > CONDITIONS_MAX:
        raise BadLine(f"more than {CONDITIONS_MAX} conditions")
    arguments = [condition[1] for condition in conditions]
    if len(set(arguments)) != len(arguments):
        raise BadLine("two conditions for one argument")
    return f'\t{{"{name}", {len(conditions)}, {{{", ".join(conditions) or "{0}"}}}}},'


def main():
    path, table = sys.argv[1:]
    print(f"/* Made by callgen.py from {path.rsplit('/', 1)[-1]}. */")
    print(f"static const struct fgv_call_rule {table}[] = {{")
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            rule = line.partition("#")[0].strip()
            if not rule:
                continue
            try:
                print(parse_rule(rule))
            except BadLine as bad:
                sys.exit(f"{path}:{number}: {bad}")
    print("};")


if __name__ == "__main__":
    main()
