"""Makes docs/figures/top.svg, a picture of fairgvctl top:

    abs_top_builddir=build python3 docs/figures/top.py docs/figures/top.svg

A daemon shares a soft GPU between VMs whose programs come and go; what is drawn is what was measured.
"""
import pathlib
import sys
import time

sys.dont_write_bytecode = True
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tests/local"))
from harness import BUILD, backend, kill, needs

needs("pyte")
from terminal import Terminal, svg_of

VMS = {"render": 'memory = "2G"; weight = 3;', "training": 'memory = "1G"; weight = 2;',
       "notebook": 'memory = "512M"; weight = 1;'}
PHASE_S = 8     # of which one VM more is at work in each, and then one less
SIZES = {"render": 128, "training": 96, "notebook": 64}


def watch(terminal, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        terminal.read(0.1)


def start(daemon, vm):
    return daemon.start(vm, "workloads/matmul", "--size", SIZES[vm], "--iterations", 10000000)


def main(path):
    with backend(VMS) as daemon:
        terminal = Terminal([BUILD / "tools/fairgvctl", "--socket", daemon.control, "--interval", "0.5", "top"])
        watch(terminal, PHASE_S / 2)
        programs = {}
        for vm in VMS:
            programs[vm] = start(daemon, vm)
            watch(terminal, PHASE_S)
        kill(programs.pop("notebook"))
        watch(terminal, PHASE_S)
        programs["notebook"] = start(daemon, "notebook")
        watch(terminal, PHASE_S / 2)
        terminal.keys("sjj")
        watch(terminal, 1)
        pathlib.Path(path).write_text(svg_of(terminal.screen), encoding="utf-8")
        print(terminal.text())
        terminal.keys("q")
        terminal.end()
        for program in programs.values():
            kill(program)


main(*sys.argv[1:])
