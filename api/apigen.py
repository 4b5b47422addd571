#!/usr/bin/env python3
"""Compiles a description of operations (gpu.api) into both sides of the wire.

The description's own header comment tells its language. This is a small compiler: text ->
tokens -> statements -> a checked model (apigen_parse) -> one emitter per output file
(apigen_emit, apigen_roundtrip). What is wrong with the input is reported as
FILE:LINE: reason, all of it at once, and then nothing is written.
"""

import argparse
import os
import sys

sys.dont_write_bytecode = True  # the source tree may be read-only, and stays clean

import apigen_emit as emit  # noqa: E402
import apigen_roundtrip as roundtrip  # noqa: E402
import apigen_shape as shape  # noqa: E402
from apigen_parse import Parser  # noqa: E402

EMITTERS = {
    "{}_wire.h": emit.wire_header, "{}_wire.c": emit.wire_source,
    "{}_guest.h": emit.guest_header, "{}_guest.c": emit.guest_source,
    "{}_host.h": emit.host_header, "{}_host.c": emit.host_source,
    "{}_roundtrip.c": roundtrip.source, "{}_shape.c": shape.source,
    "operations.md": emit.docs,
}


def write(path: str, text: str) -> None:
    """In one step, so that a reader never sees half a file."""
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "w", encoding="utf-8") as stream:
        stream.write(text)
    os.replace(temporary, path)


def main() -> int:
    parser = argparse.ArgumentParser(
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Compiles a description of operations into wire structs, guest stubs,\n"
                    "host decoding, a round-trip test and the table for the docs.",
        epilog="The build does it by itself. By hand, to look at what comes out:\n\n"
               "    python3 api/apigen.py --out /tmp/gen/api api/gpu.api\n\n"
               "and compile with -I/tmp/gen -I<source tree>. Without --out the description is\n"
               "only checked. Exit status: 0, or 1 with what is wrong as FILE:LINE: reason.")
    parser.add_argument("--out", metavar="DIR", help="the folder to write to, made where missing")
    parser.add_argument("--header", metavar="FILE", action="append", default=[],
                        help="a C header that both sides must have alike as well")
    parser.add_argument("file", help="the description")
    options = parser.parse_args()

    reader = Parser()
    try:
        with open(options.file, "rb") as stream:
            data = stream.read()
        stem = os.path.splitext(os.path.basename(options.file))[0]
        api = reader.parse(data, stem)
        for line, reason in sorted(reader.mistakes):
            print(f"{options.file}:{line}: {reason}", file=sys.stderr)
        if reader.mistakes:
            return 1
        for name in options.header:
            with open(name, encoding="utf-8") as stream:
                api.headers.append(stream.read())
        if options.out:
            os.makedirs(options.out, exist_ok=True)
            for name, emitter in EMITTERS.items():
                write(os.path.join(options.out, name.format(stem)), emitter(api))
    except OSError as error:
        print(f"apigen: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
