"""An initramfs, written as the kernel wants it: "newc" cpio, compressed; several behind one
another are one.
"""
import gzip
import os
import pathlib
import re
import shutil
import stat
import subprocess

from common import BUILD

LIBRARIES = BUILD / "frontend/.libs"
APPLETS = ("sh", "mount", "cat", "ls", "dmesg", "insmod", "rmmod", "lsmod", "stty", "sleep", "kill",
           "poweroff", "mkdir", "wc", "grep", "echo", "test", "ps", "head", "tail", "rm", "env", "id",
           "basename", "readlink", "mkfifo", "chmod", "true", "false", "printf", "hostname", "taskset",
           "nice")


class Archive:
    def __init__(self):
        self.parts = []
        self.names = set()

    def entry(self, name, mode, data=b"", device=(0, 0)):
        self.names.add(name)
        encoded = name.encode() + b"\0"
        fields = (len(self.parts) + 1, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(encoded), 0)
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + encoded
        self.parts.append(pad(head) + pad(data))

    def folders_of(self, name):
        for folder in reversed(pathlib.PurePath(name).parents[:-1]):
            if str(folder) not in self.names:
                self.entry(str(folder), stat.S_IFDIR | 0o755)

    def add(self, name, data, mode=0o644):
        name = name.lstrip("/")
        self.folders_of(name)
        self.entry(name, stat.S_IFREG | mode, data)

    def link(self, name, target):
        name = name.lstrip("/")
        self.folders_of(name)
        self.entry(name, stat.S_IFLNK | 0o777, target.encode())

    def add_file(self, name, source):
        source = pathlib.Path(source)
        self.add(name, source.read_bytes(), stat.S_IMODE(source.stat().st_mode))

    def add_program(self, name, source):
        """With the shared libraries that it loads, our libcudart among them, in /lib."""
        self.add_file(name, source)
        done = subprocess.run(["ldd", source], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True, check=False,
                              env={**os.environ, "LD_LIBRARY_PATH": str(LIBRARIES)})
        for library, path in re.findall(r"(\S+) (?:=> (/\S+) )?\(0x", done.stdout):
            self.add_library(library, path)

    def add_library(self, name, path):
        if not path:
            path = name     # the loader itself, by its full path
        if not path.startswith("/"):
            return          # the kernel's own
        target = name if name.startswith("/") else f"/lib/{name}"
        if target.lstrip("/") not in self.names:
            self.add(target, pathlib.Path(path).read_bytes(), 0o755)

    def write(self, path):
        self.entry("TRAILER!!!", 0)
        path.write_bytes(gzip.compress(b"".join(self.parts), compresslevel=1))


def pad(data):
    return data + bytes(-len(data) % 4)


def add_base(archive, init):
    """busybox, the folders that are mounted on, and @init, which the kernel starts."""
    archive.add_program("bin/busybox", shutil.which("busybox"))
    for applet in APPLETS:
        archive.link(f"bin/{applet}", "busybox")
    for folder in ("proc", "sys", "dev", "tmp"):
        archive.entry(folder, stat.S_IFDIR | 0o1777)
    archive.entry("dev/console", stat.S_IFCHR | 0o600, device=(5, 1))
    archive.add("etc/passwd", b"root::0:0::/:/bin/sh\nnobody::65534:65534::/:/bin/sh\n")
    archive.add("init", init.read_bytes(), 0o755)
