"""What the generators of the faces share: functions that are marked as exported, and writing."""

import os
import re
import sys


def read_marked(sources, mark):
    """Name to source of the definitions that start with @mark, a regular expression."""
    found = {}
    for source in sources:
        text = open(source, encoding="utf-8").read()
        for name in re.findall(rf"^{mark}\s[^;{{(]*?\b(\w+)\s*\(", text, re.M):
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
