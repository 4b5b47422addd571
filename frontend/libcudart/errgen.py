#!/usr/bin/env python3
"""Makes the table of CUDA's runtime errors: errgen.py DRIVER_TYPES_H ERRORS_TXT

Names and codes come from enum cudaError of the toolkit's header, texts from lines
"NAME text" of ERRORS_TXT. An error without a text gets its name in words. Prints rows
of C: {code, "name", "text"},
"""

import re
import sys


def read_enum(header):
    """(name, code) of every error, in the header's order."""
    source = re.sub(r"/\*.*?\*/", "", open(header, encoding="utf-8").read(), flags=re.S)
    body = re.search(r"enum\s+(?:\w+\s+)?cudaError\s*\{(.*?)\}", source, re.S)
    if not body:
        sys.exit(f"{header}: no enum cudaError")
    return [(name, int(code)) for name, code in re.findall(r"(cuda\w+)\s*=\s*(\d+)", body[1])]


def read_texts(path):
    """Name to text."""
    texts = {}
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        name, _, text = line.partition(" ")
        if not text or name in texts:
            sys.exit(f"{path}:{number}: not a name of its own and a text")
        texts[name] = text.strip()
    return texts


def in_words(name):
    """cudaErrorMapBufferObjectFailed: map buffer object failed"""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*", name.removeprefix("cudaError"))
    return " ".join(words).lower()


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    errors = read_enum(sys.argv[1])
    texts = read_texts(sys.argv[2])
    for name, code in errors:
        text = texts.get(name) or in_words(name)
        print(f'{{{code}, "{name}", "{text}"}},')


main()
