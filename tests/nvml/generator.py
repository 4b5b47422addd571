"""nvmlgen.py with a toolkit's nvml.h: what it declares is exported, and nothing else."""
import os
import pathlib
import subprocess
import sys
import tempfile

TOP = pathlib.Path(os.environ.get("top_srcdir", ".")).resolve()
GENERATOR = TOP / "frontend/libnvml/nvmlgen.py"
HEADER = """
#define nvmlDeviceGetNew nvmlDeviceGetNew_v2
/* nvmlReturn_t DECLDIR nvmlDeviceInComment(nvmlDevice_t device); */
// nvmlReturn_t DECLDIR nvmlDeviceInLine(nvmlDevice_t device);
nvmlReturn_t DECLDIR nvmlDeviceGetNew_v2(nvmlDevice_t device,
                                         unsigned int *value);
#ifdef NVML_NO_UNVERSIONED_FUNC_DEFS
nvmlReturn_t DECLDIR nvmlDeviceGetNew (nvmlDevice_t device);
#endif
nvmlReturn_t DECLDIR nvmlInit_v2(void);
typedef struct { int x; } nvmlThing_t;
"""
SOURCE = """
FGV_EXPORT enum fgv_nvml nvmlInit_v2(void)
{
	return 0;
}

FGV_EXPORT enum fgv_nvml nvmlInit(void) FGV_ALIAS(nvmlInit_v2);
"""


def generate(folder, names, header, source):
    for name, text in (("names.txt", names), ("nvml.h", header), ("source.c", source)):
        (folder / name).write_text(text, encoding="utf-8")
    outputs = [word for name in ("stubs", "map", "names", "support")
               for word in (f"--{name}", folder / name)]
    return subprocess.run(
        [sys.executable, GENERATOR, "--list", folder / "names.txt", "--header", folder / "nvml.h",
         *outputs, folder / "source.c"], capture_output=True, text=True, check=False)


def stubs(folder):
    return [line for line in (folder / "stubs").read_text(encoding="utf-8").splitlines()
            if line.startswith("STUB(")]


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        done = generate(folder, "# a list\nnvmlInit\nnvmlOld\n", HEADER, SOURCE)
        assert done.returncode == 0, done.stderr
        assert stubs(folder) == ["STUB(nvmlDeviceGetNew)", "STUB(nvmlDeviceGetNew_v2)",
                                 "STUB(nvmlOld)"], stubs(folder)
        exports = (folder / "map").read_text(encoding="utf-8")
        for wanted in ("nvmlInit;", "nvmlInit_v2;", "nvmlDeviceGetNew_v2;", "nvmlOld;"):
            assert f"\t{wanted}\n" in exports, exports
        assert "InComment" not in exports and "InLine" not in exports and "Thing" not in exports
        assert "Of the 5 functions" in (folder / "support").read_text(encoding="utf-8")
        for names, header, source, why in (
                ("nvmlInit\n", "nothing", SOURCE, "it declares no functions"),
                ("nvmlInit\ncudaInit\n", HEADER, SOURCE, "names.txt:2: not a function of NVML's"),
                ("nvmlOld\n", HEADER, SOURCE, "nvmlInit is no function of NVML")):
            done = generate(folder, names, header, source)
            assert done.returncode and why in done.stderr, done.stderr


main()
