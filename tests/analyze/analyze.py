"""Static analysis of all C that is not a test's: cppcheck, and gcc's -fanalyzer. `make analyze` runs it.

Whatever they find fails, but for what cppcheck.supp and UNUSED name, with reasons. Both look at one
file after another, as the build compiles it.
"""
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import time

SOURCE = pathlib.Path(os.environ["top_srcdir"]).resolve()
BUILD = pathlib.Path(os.environ["abs_top_builddir"])
HERE = SOURCE / "tests/analyze"
FOLDERS = ("backend", "bench", "common", "frontend", "guest-kmod", "ptx", "qemu-device", "scheduler",
           "shmring", "softgpu", "tools")
# What the kernel's own build compiles; and operations, which are macros over lanes: the analyzer
# takes what a loop over them sets for what nobody has set.
NOT_GCCS = ("guest-kmod/", "softgpu/ops/")
# Of the analyzer's warnings, those that in this tree are about what it can't see.
UNUSED = (
    # It follows a call into its own file alone, and takes it that any other function may return 0 and
    # leave an out-parameter as it was, or NULL.
    "null-dereference", "null-argument", "possible-null-dereference", "possible-null-argument",
    "use-of-uninitialized-value",
    # What a tree or a list of <bsd/sys> takes over it takes for lost.
    "malloc-leak",
    # gcc 13: that dup2() to a standard descriptor is meant to stay; and that one below 0 was checked
    # by the errno that was made of it.
    "fd-leak", "fd-use-without-check",
    # gcc 13: bytes behind an array, in one piece of memory.
    "allocation-size",
)
# What a folder's own rules define.
DEFINES = {"frontend/libcuda/": ["-D__CUDA_API_VERSION_INTERNAL"]}
PROCESSORS = len(os.sched_getaffinity(0))


def sources():
    return [path for folder in FOLDERS
            for path in sorted(str(each.relative_to(SOURCE)) for each in (SOURCE / folder).rglob("*.c"))]


def define_folders():
    """What the rules of single programs define."""
    return [f'-DFGV_{name}="/{name.lower()}"'
            for name in ("SYSCONFDIR", "PKGLIBDIR", "PKGLIBEXECDIR", "RUNSTATEDIR", "LOCALSTATEDIR",
                         "SBINDIR", "DATADIR")]


def cppcheck(files):
    """Without the description of POSIX's functions, in which some versions have mmap() wrong."""
    bsd = pathlib.Path("/usr/include/bsd/sys")
    (BUILD / "tests/analyze").mkdir(parents=True, exist_ok=True)
    listed = BUILD / "tests/analyze/files"
    listed.write_text("".join(f"{file}\n" for file in files), encoding="utf-8")
    return subprocess.run(
        [os.environ["CPPCHECK"], "-q", f"-j{PROCESSORS}", "--std=c11", "--error-exitcode=1",
         "--enable=warning,portability,performance", "-D__x86_64__", "-DHAVE_CONFIG_H",
         "-DFGV_ISA=base", *define_folders(), "-I.", f"-I{BUILD}",
         f"--include={bsd / 'queue.h'}", f"--include={bsd / 'tree.h'}",
         f"--include={HERE / 'macros.h'}", f"--suppressions-list={HERE / 'cppcheck.supp'}",
         "--template={file}:{line}: {message} [{id}]", f"--file-list={listed}"],
        cwd=SOURCE, capture_output=True, text=True, check=False)


def analyze(file):
    """What gcc finds in a file, or why it can't compile it."""
    defines = [each for folder, ones in DEFINES.items() if file.startswith(folder) for each in ones]
    done = subprocess.run(
        [*os.environ["ANALYZER_CC"].split(), *os.environ["ANALYZER_FLAGS"].split(), *define_folders(),
         *defines, "-std=gnu11", "-O1", "-fanalyzer", "-fdiagnostics-plain-output",
         "-Wno-deprecated-declarations", *(f"-Wno-analyzer-{name}" for name in UNUSED), "-Werror",
         "-S", "-o", "/dev/null", file],
        cwd=SOURCE, capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""


def say(name, files, begin, findings):
    print(f"{findings}{name}: {len(files)} files, {time.monotonic() - begin:.0f} s", flush=True)


def main():
    files = sources()
    if not shutil.which(os.environ["CPPCHECK"]):
        sys.exit("analyze: there is no cppcheck: install the package of this name")
    begin = time.monotonic()
    done = cppcheck(files)
    say("cppcheck", files, begin, done.stdout + done.stderr)
    begin = time.monotonic()
    files = [file for file in files if not file.startswith(NOT_GCCS)]
    with concurrent.futures.ThreadPoolExecutor(PROCESSORS) as pool:
        findings = "".join(pool.map(analyze, files))
    say("gcc -fanalyzer", files, begin, findings)
    sys.exit(bool(done.returncode or findings))


main()
