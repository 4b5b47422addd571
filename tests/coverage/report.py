"""What tests have run of the code: a table of folders, and lines in HTML.

usage: report.py [--floors FILE]

Reads what processes of a build with --enable-coverage have counted (coverage/raw), and leaves the
table in coverage/table.txt and the pages in coverage/html. With --floors it fails where a folder
has fallen below what FILE says, a folder and a percentage a line.
"""
import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys

BUILD = pathlib.Path(os.environ["abs_top_builddir"])
SOURCE = pathlib.Path(os.environ["top_srcdir"]).resolve()
OUT = BUILD / "coverage"
# Together they have all code. What unit tests count in their own copies is added to it by name.
PROGRAMS = ["backend/fairgv-backend", "backend/vgpu/fairgv-vgpu", "scheduler/fairgv-sim",
            "tools/fairgv-run", "tools/fairgv-vm", "tools/fairgv-region", "tools/fairgvctl",
            "tools/fairgv-metrics"]
FOLDERS_DEEP = ("backend", "frontend")  # whose folders have rows of their own


def programs():
    found = [path for name in PROGRAMS
             for path in (BUILD / os.path.dirname(name) / ".libs" / os.path.basename(name),
                          BUILD / name) if path.is_file() and is_elf(path)]
    found += [path for path in (BUILD / "frontend").rglob("*.so*")
              if re.search(r"\.so[.0-9]*$", path.name) and not path.is_symlink() and is_elf(path)]
    if not found:
        sys.exit("there is nothing built here")
    return found


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def export(profile, info):
    """An lcov tracefile of the tree's own files, under their own names."""
    objects = [word for path in programs() for word in ("-object", path)]
    done = subprocess.run([os.environ["LLVM_COV"], "export", "-format=lcov",
                           f"-instr-profile={profile}", *objects[1:]],
                          stdout=subprocess.PIPE, text=True, check=True)
    with open(info, "w", encoding="utf-8") as file:
        for record in re.findall(r"SF:.*?end_of_record\n", done.stdout, re.S):
            record = re.sub(r"^BR.*\n", "", record, flags=re.M)  # branches are not counted
            path, rest = record[3:].split("\n", 1)
            path = pathlib.Path(path).resolve()
            if is_ours(path):
                file.write(f"SF:{path}\n{rest}")


def is_ours(path):
    """Not what is generated, nor the tests themselves."""
    if SOURCE not in path.parents or BUILD.resolve() in path.parents:
        return False
    return path.relative_to(SOURCE).parts[0] != "tests"


def merge(profile):
    raw = sorted(path for path in (OUT / "raw").glob("*.profraw") if path.stat().st_size)
    if not raw:
        sys.exit("no test has run here: make coverage")
    names = OUT / "raw.list"
    names.write_text("".join(f"{path}\n" for path in raw), encoding="utf-8")
    subprocess.run([os.environ["LLVM_PROFDATA"], "merge", "-sparse", "-failure-mode=all",
                    f"-input-files={names}", "-o", profile], check=True)


def folder_of(path):
    parts = pathlib.Path(path).relative_to(SOURCE).parts[:-1]
    depth = 2 if parts[0] in FOLDERS_DEEP else 1
    return "/".join(parts[:depth]) or "."


def read(info):
    """Per file: the lines that there are, and those that have run."""
    lines = collections.defaultdict(dict)
    for line in open(info, encoding="utf-8"):
        if line.startswith("SF:"):
            current = lines[line[3:].strip()]
        elif line.startswith("DA:"):
            number, count = line[3:].split(",")[:2]
            current[int(number)] = current.get(int(number), 0) + int(count)
    return lines


def table(lines):
    rows = collections.defaultdict(lambda: [0, 0])
    for path, counts in lines.items():
        row = rows[folder_of(path)]
        row[0] += len(counts)
        row[1] += sum(1 for count in counts.values() if count)
    return rows


def show(rows):
    total = [sum(row[i] for row in rows.values()) for i in (0, 1)]
    text = f"{'folder':24} {'lines':>7} {'run':>7} {'%':>6}\n"
    for name, (all_lines, run) in sorted(rows.items()) + [("all", total)]:
        text += f"{name:24} {all_lines:7} {run:7} {100 * run / all_lines:6.1f}\n"
    return text


def check_floors(rows, path):
    failed = False
    for line in open(path, encoding="utf-8"):
        if line.startswith("#") or not line.strip():
            continue
        folder, floor = line.split()
        all_lines, run = rows[folder]
        share = 100 * run / all_lines if all_lines else 0
        if share < float(floor):
            print(f"{folder}: tests run {share:.1f} % of its lines, and not {floor} %")
            failed = True
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--floors")
    args = parser.parse_args()
    profile, info = OUT / "merged.profdata", OUT / "coverage.info"
    merge(profile)
    export(profile, info)
    rows = table(read(info))
    text = show(rows)
    (OUT / "table.txt").write_text(text, encoding="utf-8")
    print(text, end="")
    if args.floors:
        sys.exit(check_floors(rows, args.floors))
    subprocess.run([os.environ["GENHTML"], "-q", "-p", str(SOURCE), "-o", OUT / "html", info],
                   check=True)
    print(f"the lines: {OUT}/html/index.html")


main()
