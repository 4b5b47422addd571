"""fairgv-run --strict: the program has no device of NVIDIA's, and all else as before, as root and as
another user.
"""
import os
import pathlib
import subprocess
import tempfile

from harness import BUILD, PATIENCE_S, RUN, backend, expect, main

TAKE = BUILD / "tests/local/take"
# A file of the test's own stands for a GPU where there is none, if it can be made.
STAND_IN = pathlib.Path("/dev/nvidia-fairgv-test")
LOOK = "ls /dev | grep -c '^nvidia'; echo x >/dev/null && test -r /dev/urandom && echo fine"


def run(prefix, where, *arguments):
    return subprocess.run([*prefix, RUN, "--quiet", *where, *map(str, arguments)],
                          capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def is_refused(done):
    """Where the kernel lets nobody make such namespaces."""
    return done.returncode == 125 and "--strict: no " in done.stderr


def hidden(prefix, *where):
    shown = run(prefix, where, "sh", "-c", LOOK)
    expect("fine" in shown.stdout, shown)
    done = run(prefix, where, "--strict", "sh", "-c", LOOK)
    if is_refused(done):
        print(f"left out, as the kernel refuses it: {done.stderr.strip()}")
        return
    expect(done.stdout == "0\nfine\n", done)
    done = run(prefix, where, "--strict", "sh", "-c", "touch /dev/fairgv-test")
    expect(done.returncode != 0, "/dev can be written")
    done = run(prefix, where, "--strict", TAKE, 4096)
    expect(done.returncode == 0 and "verified=yes" in done.stdout, done)
    done = run(prefix, where, "--strict", "no-such-program")
    expect(done.returncode in (126, 127), done)    # 126: a folder of PATH may not be looked into


def as_this_user():
    with backend({"vm1": ""}) as daemon:
        hidden([], "--socket", daemon.socket)


def as_nobody():
    """With a private daemon, as this user's would not let it in."""
    prefix = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
    if os.geteuid() != 0:
        return
    if subprocess.run([*prefix, "test", "-x", RUN], check=False).returncode:
        print(f"left out: nobody may not run {RUN}")
        return
    hidden(prefix, "--private")


CHROOT = """
set -e
root=$1/root; shift
for folder in bin dev etc lib lib64 proc sbin tmp usr "$BUILD"; do
    test -d "/$folder" || continue
    mkdir -p "$root/$folder"
    mount --rbind "/$folder" "$root/$folder"
done
before=$(wc -l </proc/self/mountinfo)
chroot "$root" "$@"
test "$before" = "$(wc -l </proc/self/mountinfo)" || echo mounted outside
"""


def in_a_chroot():
    """Its root is a folder, and no mount. Nothing that --strict mounts is seen outside, though all
    mounts there are shared.
    """
    if os.geteuid() != 0:
        return
    with tempfile.TemporaryDirectory() as folder:
        shell = ["unshare", "--mount", "--propagation", "shared", "sh", "-c", CHROOT, "sh", folder]
        tried = subprocess.run([*shell, "true"], env={**os.environ, "BUILD": str(BUILD.resolve())},
                               capture_output=True, text=True, check=False)
        if tried.returncode:
            print(f"left out, as nothing can be mounted here: {tried.stderr.strip()}")
            return
        os.environ["BUILD"] = str(BUILD.resolve())
        hidden(shell, "--private")


def with_stand_in(*tests):
    made = os.geteuid() == 0 and not STAND_IN.exists()
    if made:
        STAND_IN.touch()
    try:
        main(*tests)
    finally:
        if made:
            STAND_IN.unlink()


with_stand_in(as_this_user, as_nobody, in_a_chroot)
