#!/usr/bin/env python3
"""Makes a table of CUDA's errors: errgen.py DRIVER_TYPES_H ERRORS_TXT [CUDA_H]

Names and codes of the runtime's come from enum cudaError of the toolkit's header, texts from lines
"NAME text" of ERRORS_TXT. An error without a text gets its name in words. Prints rows
of C: {code, "name", "text"},

With CUDA_H, they are the driver's errors, each with the text of the runtime's of the same code.
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


def read_driver_enum(header):
    """(name, code) of every error of the driver's."""
    source = re.sub(r"/\*.*?\*/", "", open(header, encoding="utf-8").read(), flags=re.S)
    body = re.search(r"enum\s+cudaError_enum\s*\{(.*?)\}", source, re.S)
    if not body:
        sys.exit(f"{header}: no enum cudaError_enum")
    return [(name, int(code)) for name, code in re.findall(r"(CUDA_\w+)\s*=\s*(\d+)", body[1])]


def in_words(name):
    """cudaErrorMapBufferObjectFailed: map buffer object failed"""
    if name.startswith("CUDA_ERROR_"):
        return name.removeprefix("CUDA_ERROR_").replace("_", " ").lower()
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*", name.removeprefix("cudaError"))
    return " ".join(words).lower()


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    errors = read_enum(sys.argv[1])
    texts = read_texts(sys.argv[2])
    if len(sys.argv) == 4:
        by_code = {code: texts.get(name) or in_words(name) for name, code in errors}
        errors = read_driver_enum(sys.argv[3])
        texts = {name: by_code[code] for name, code in errors if code in by_code}
    for name, code in errors:
        text = texts.get(name) or in_words(name)
        print(f'{{{code}, "{name}", "{text}"}},')


main()
