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


def main():
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        bad = sorted((HERE / "bad").glob("*.api"))
        results = [test_golden("--update" in sys.argv[1:], out), test_no_input(out), bool(bad),
                   *(test_bad(path, out) for path in bad)]
    print(f"{len(results)} tests, {results.count(False)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
