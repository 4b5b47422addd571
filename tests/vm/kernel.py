"""A Debian kernel to boot, and the module built for it: packages fetched by apt into a
cache, unpacked there and never installed.
"""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from common import BUILD, TOP, Failure, Skip, require

CACHE = (pathlib.Path(os.environ["XDG_CACHE_HOME"]) / "fairgv"
         if os.environ.get("XDG_CACHE_HOME") else BUILD / "tests/vm/cache")

# What the module is built of; api/ lies beside its own files, as where it is installed.
SOURCES = (("guest-kmod", "Kbuild"), ("guest-kmod", "*.[ch]"), ("guest-kmod", "uapi/*.h"),
           (".", "api/region.h"), (".", "api/wire.h"))


def run(*command, cwd=None):
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    return done.returncode, done.stdout


class Apt:
    """The system's packages or, with FAIRGV_VM_APT="deb [...] URL SUITE main", that source's."""

    def __init__(self):
        self.options = []
        source = os.environ.get("FAIRGV_VM_APT")
        if source:
            self.use(source)

    def use(self, source):
        state = CACHE / "apt"
        for folder in ("state/lists/partial", "cache/archives/partial"):
            (state / folder).mkdir(parents=True, exist_ok=True)
        (state / "sources.list").write_text(source + "\n")
        self.options = [f"-oDir::State={state}/state", f"-oDir::Cache={state}/cache",
                        f"-oDir::Etc::sourcelist={state}/sources.list",
                        "-oDir::Etc::sourceparts=/dev/null", "-oAPT::Architecture=amd64"]
        status, output = run("apt-get", *self.options, "update")
        if status:
            raise Skip(f"apt-get update failed: {output.strip().splitlines()[-1]}")

    def depends(self, package, pattern):
        """Those packages of the ones that @package needs whose names match."""
        _, output = run("apt-cache", *self.options, "depends", package)
        names = re.findall(r"^ *\|?Depends: (\S+)$", output, re.MULTILINE)
        found = [name for name in names if re.fullmatch(pattern, name)]
        if not found:
            raise Skip(f"apt knows no {pattern} for {package}: is this Debian, with its lists fetched?")
        return found

    def download(self, packages, folder):
        status, output = run("apt-get", *self.options, "download", *packages, cwd=folder)
        if status:
            raise Skip(f"cannot download {packages[0]}: {output.strip().splitlines()[-1]}")


def unpack(folder):
    """All packages in @folder; of the kernel's only /boot, as the module needs no other."""
    for package in folder.glob("*.deb"):
        if package.name.startswith("linux-image"):
            with subprocess.Popen(["dpkg", "--fsys-tarfile", package],
                                  stdout=subprocess.PIPE) as tar:
                subprocess.run(["tar", "x", "-C", folder, "./boot"], stdin=tar.stdout, check=True)
        else:
            subprocess.run(["dpkg", "-x", package, folder], check=True)
        package.unlink()


class Kernel:
    def __init__(self):
        # The compiler is the one that these kernels' headers name.
        require("apt-get", "apt-cache", "dpkg", "tar", "make", "gcc-12")
        apt = Apt()
        image = apt.depends("linux-image-cloud-amd64", r"linux-image-.*-cloud-amd64")[0]
        self.release = image.removeprefix("linux-image-")
        self.folder = CACHE / self.release
        if not self.folder.exists():
            self.fetch(apt, image)
        self.image = self.folder / f"boot/vmlinuz-{self.release}"
        self.headers = self.folder / f"usr/src/linux-headers-{self.release}"

    def fetch(self, apt, image):
        """Into a folder of its own that takes its name when all is there."""
        headers = f"linux-headers-{self.release}"
        needed = apt.depends(headers, r"linux-headers-.*-common|linux-kbuild-.*")
        CACHE.mkdir(parents=True, exist_ok=True)
        part = pathlib.Path(tempfile.mkdtemp(prefix="part-", dir=CACHE))
        try:
            apt.download([image, headers, *needed], part)
            unpack(part)
            common = next((part / "usr/src").glob("linux-headers-*-common")).name
            # The one absolute path in there.
            (part / "usr/src" / headers / "Makefile").write_text(
                f"include {self.folder}/usr/src/{common}/Makefile\n")
            if not self.folder.exists():
                part.rename(self.folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)

    def build_module(self):
        """fairgv.ko, from a copy of the sources; a compiler's warning is a failure."""
        folder = BUILD / f"tests/vm/module-{self.release}"
        shutil.rmtree(folder, ignore_errors=True)
        for origin, pattern in SOURCES:
            for source in (TOP / origin).glob(pattern):
                copy(source, folder / source.relative_to(TOP / origin))
        status, output = run("make", "-C", self.headers, f"M={folder}",
                             "CONFIG_DEBUG_INFO_BTF_MODULES=", "modules")
        if status or "warning:" in output:
            raise Failure(f"building the module: status {status}: {output}")
        return folder / "fairgv.ko"


def copy(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
