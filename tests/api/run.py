#!/usr/bin/env python3
"""Tests the generator as a compiler: golden outputs, and bad inputs that fail at their line.

golden/api/ is what comes out of sample.api; it is compiled and run as well, by
test_api_sample. Every file in bad/ has comments '# expect LINE: REASON': all that the
generator says about it. --update rewrites golden/ from what comes out now.
"""

import difflib
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
APIGEN = HERE.parent.parent / "api" / "apigen.py"
GOLDEN = HERE / "golden" / "api"


def apigen(*args):
    return subprocess.run([sys.executable, APIGEN, *args], capture_output=True, text=True,
                          check=False)


def texts(folder):
    return {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}


def compare_lines(name, want, got):
    lines = list(difflib.unified_diff(want, got, f"{name} (expected)", f"{name} (seen)",
                                      lineterm=""))
    if lines:
        print("\n".join(lines))
    return not lines


def test_golden(update, out):
    result = apigen("--out", out / "api", HERE / "sample.api")
    if result.returncode or result.stderr:
        print(f"sample.api: exit status {result.returncode}\n{result.stderr}")
        return False
    made = texts(out / "api")
    if update:
        GOLDEN.mkdir(parents=True, exist_ok=True)
        for path in GOLDEN.iterdir():
            path.unlink()
        for name, text in made.items():
            (GOLDEN / name).write_text(text, encoding="utf-8")
    kept = texts(GOLDEN)
    same = [compare_lines(name, kept.get(name, "").splitlines(),
                          made.get(name, "").splitlines())
            for name in sorted({*kept, *made})]
    return all(same)


def test_bad(path, out):
    expected = re.findall(rb"^# expect (\d+): (.*)$", path.read_bytes(), re.MULTILINE)
    want = sorted((int(line), reason.decode()) for line, reason in expected)
    result = apigen("--out", out / "bad", path)
    same = compare_lines(path.name, [f"{path}:{line}: {reason}" for line, reason in want],
                         result.stderr.splitlines())
    if not want or result.returncode != 1 or (out / "bad").exists():
        print(f"{path.name}: {len(want)} expectations, exit status {result.returncode}, "
              f"output: {(out / 'bad').exists()}")
        return False
    return same


def test_no_input(out):
    result = apigen(out / "missing.api")
    if result.returncode != 1 or not result.stderr.startswith("apigen: "):
        print(f"a missing file: exit status {result.returncode}, {result.stderr}")
        return False
    return True


HEADER = "/* A side's. */\n#define LIMIT 4 /* of them */\nstruct pair {\n\tint a, b;\n};\n"

# Of a description or a header: what is replaced by what, and whether both sides still understand
# each other.
CHANGES = (
    ("api", "# not the first", "# one of several", True),
    ("api", '"A post of bytes."', '"A post of data."', True),
    ("header", "/* of them */", "/* of all\n * of them */", True),
    ("header", "int a, b;", "int a,\n\t\tb;", True),
    ("api", "version 7", "version 8", False),
    ("api", "op 8 streams", "op 9 streams", False),
    ("api", "call apart errand", "call apart", False),
    ("api", "post work", "post", False),
    ("api", "ask call", "ask post", False),
    ("api", "u32[10] all", "u32[9] all", False),
    ("api", "out u64 sum", "out u32 sum", False),
    ("api", "in stream from", "in event from", False),
    ("api", "    in u64 at\n", "", False),
    ("header", "LIMIT 4", "LIMIT 5", False),
    ("header", "int a, b;", "int b, a;", False),
)


def hash_of(out, description, header):
    (out / "sample.api").write_text(description, encoding="utf-8")
    (out / "shared.h").write_text(header, encoding="utf-8")
    apigen("--out", out / "hash", "--header", out / "shared.h", out / "sample.api")
    made = (out / "hash" / "sample_wire.h").read_text(encoding="utf-8")
    return re.search(r"^#define FGV_API_HASH (0x[0-9a-f]{16})ull$", made, re.MULTILINE)[1]


def test_hash(out, change):
    kind, old, new, is_same = change
    texts_of = {"api": (HERE / "sample.api").read_text(encoding="utf-8"), "header": HEADER}
    before = hash_of(out, *texts_of.values())
    if old not in texts_of[kind]:
        print(f"{old}: the sample has no such text")
        return False
    texts_of[kind] = texts_of[kind].replace(old, new, 1)
    if (hash_of(out, *texts_of.values()) == before) != is_same:
        print(f"{old} -> {new}: the hash is {'another' if is_same else 'the same'}")
        return False
    return True


def main():
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        bad = sorted((HERE / "bad").glob("*.api"))
        results = [test_golden("--update" in sys.argv[1:], out), test_no_input(out), bool(bad),
                   *(test_bad(path, out) for path in bad),
                   *(test_hash(out, change) for change in CHANGES)]
    print(f"{len(results)} tests, {results.count(False)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
