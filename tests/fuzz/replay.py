"""What lies in tests/fuzz/corpus is survived: seeds, and what fuzzers have found."""
import os
import pathlib
import re
import subprocess
import sys

BUILD = pathlib.Path(os.environ["abs_top_builddir"])
CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"


def replay(name):
    inputs = sorted(path for path in (CORPUS / name).iterdir() if path.is_file())
    done = subprocess.run([BUILD / f"tests/fuzz/fuzz_{name}", *inputs], capture_output=True,
                          text=True, check=False)
    found = re.search(r"^inputs=(\d+)$", done.stdout, re.M)
    if done.returncode or not found or int(found[1]) != len(inputs) or not inputs:
        sys.exit(f"{name}: status {done.returncode}: {done.stdout}{done.stderr}")
    print(f"{name}: {len(inputs)} inputs")


for folder in sorted(CORPUS.iterdir()):
    # Without a driver's face (configure --without-libcuda) no program calls it.
    if folder.name != "guest" or (BUILD / "tests/fuzz/fuzz_guest").exists():
        replay(folder.name)
