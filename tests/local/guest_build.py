"""What a guest needs is built with the toolkit's headers and its libcudart.so.13, without nvcc and
without the daemon and its libraries: configured so here, and looked at, but not built once more.
"""
import os
import pathlib
import re
import subprocess
import tempfile

from harness import BUILD, expect, main

SOURCE = pathlib.Path(os.environ["top_srcdir"]).resolve()
OF_THE_HOST = re.compile(r"\b(backend|softgpu|scheduler|qemu-device|workloads|bench)/[\w.-]*\.(c|cu|lo|la)\b")


def variable(name):
    return re.search(rf"^{name} = (.*)$", (BUILD / "Makefile").read_text(), re.M)[1]


def headers_alone(folder):
    """A toolkit that has nothing else."""
    (folder / "lib").mkdir()
    (folder / "include").symlink_to(f"{variable('CUDA_DIR')}/include")
    (folder / "lib/libcudart.so.13").symlink_to(f"{variable('CUDA_LIBDIR')}/libcudart.so.13")


def configure(folder, *options):
    env = {key: value for key, value in os.environ.items() if key != "CONFIG_SITE"}
    return subprocess.run(
        [SOURCE / "configure", "-q", f"CC={variable('CC')}", *options],
        cwd=folder, env={**env, "PATH": f"{folder}/bin:{env['PATH']}"}, capture_output=True, text=True,
        check=False)


def hide_libraries(folder):
    """A pkg-config that knows nothing of what only the daemon uses."""
    (folder / "bin").mkdir()
    wrapper = folder / "bin/pkg-config"
    wrapper.write_text("""#!/bin/sh
case " $* " in
*libconfig* | *liblz4* | *libzstd* | *libseccomp* | *libcap-ng* | *libsystemd* | *check*) exit 1 ;;
esac
PATH=${PATH#*:} exec pkg-config "$@"
""")
    wrapper.chmod(0o755)


def a_guest_is_built_with_less():
    with tempfile.TemporaryDirectory(prefix="fairgv-guest-") as name:
        folder = pathlib.Path(name)
        toolkit = folder / "toolkit"
        toolkit.mkdir()
        headers_alone(toolkit)
        done = configure(folder, f"--with-cuda={toolkit}")
        expect(done.returncode != 0 and "--without-nvcc" in done.stderr, done)
        hide_libraries(folder)
        done = configure(folder, f"--with-cuda={toolkit}", "--disable-host",
                         f"PKG_CONFIG={folder}/bin/pkg-config")
        expect(done.returncode == 0, done.stderr)
        env = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MAKELEVEL")}
        plan = subprocess.run(["make", "-n", "all", "install", "DESTDIR=/nonexistent"], cwd=folder,
                              env=env, capture_output=True, text=True, check=False)
        expect(plan.returncode == 0, plan.stderr)
        expect("libcuda" in plan.stdout and "fairgv-run" in plan.stdout, plan.stdout[-2000:])
        found = OF_THE_HOST.search(plan.stdout)
        expect(not found, f"it would build {found and found[0]}")


main(a_guest_is_built_with_less)
