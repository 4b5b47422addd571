"""A kernel of this distribution to boot, and the module built for it: packages fetched by apt
into a cache, unpacked there and never installed. Tests that run at once share both.
"""
import contextlib
import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from common import BUILD, TOP, Failure, Skip, require

# Of Debian and of Ubuntu: the package that names the kernel, the image that it needs, and what
# that kernel's headers need.
KERNELS = (("linux-image-cloud-amd64", r"linux-image-.*-cloud-amd64",
            r"linux-headers-.*-common|linux-kbuild-.*"),
           ("linux-image-virtual", r"linux-image-[\d.]+-\d+-generic", r"linux-headers-[\d.]+-\d+"))

# What the module is built of; api/ lies beside its own files, as where it is installed.
SOURCES = (("guest-kmod", "Kbuild"), ("guest-kmod", "*.[ch]"), ("guest-kmod", "uapi/*.h"),
           (".", "api/region.h"), (".", "api/wire.h"))


class NotThere(Exception):
    """Apt's lists lack a package, or name one that its source has no more."""


def run(*command, cwd=None):
    """Its status and output. A make in it is not told of the one that runs the tests."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False, env=env)
    return done.returncode, done.stdout


def last_line(text):
    return text.strip().splitlines()[-1] if text.strip() else "it does not say why"


def find_cache():
    """The user's, which outlives build folders; or in one, where there is none."""
    parent = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    cache = pathlib.Path(parent) / "fairgv"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=cache).close()
    except OSError:
        cache = BUILD / "tests/vm/cache"
        cache.mkdir(parents=True, exist_ok=True)
    return cache


@contextlib.contextmanager
def alone(path):
    """Whoever else comes here waits."""
    with open(path, "w", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class Apt:
    """The system's packages or, with FAIRGV_VM_APT="deb [...] URL SUITE main", that source's."""

    def __init__(self, cache):
        self.cache = cache
        self.options = []
        source = os.environ.get("FAIRGV_VM_APT")
        if source:
            state = self.state("apt")
            (state / "sources.list").write_text(source + "\n")
            self.update(state, f"-oDir::Etc::sourcelist={state}/sources.list",
                        "-oDir::Etc::sourceparts=/dev/null", "-oAPT::Architecture=amd64")

    def update_own_lists(self):
        """Of the system's sources, whose lists are the administrator's to update."""
        self.update(self.state("apt-lists"))

    def state(self, name):
        state = self.cache / name
        for folder in ("state/lists/partial", "cache/archives/partial"):
            (state / folder).mkdir(parents=True, exist_ok=True)
        return state

    def update(self, state, *options):
        self.options = [f"-oDir::State={state}/state", f"-oDir::Cache={state}/cache",
                        "-oDir::State::status=/var/lib/dpkg/status", *options]
        status, output = run("apt-get", *self.options, "-oAPT::Update::Error-Mode=any", "update")
        if status:
            raise Skip(f"apt-get update failed: {last_line(output)}")

    def depends(self, package, pattern):
        """Those packages of the ones that @package needs whose names match."""
        _, output = run("apt-cache", *self.options, "depends", package)
        names = re.findall(r"^ *\|?Depends: (\S+)$", output, re.MULTILINE)
        return [name for name in names if re.fullmatch(pattern, name)]

    def download(self, packages, folder):
        status, output = run("apt-get", *self.options, "download", *packages, cwd=folder)
        if status:
            raise NotThere(f"cannot download {packages[0]}: {last_line(output)}")


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
        require("apt-get", "apt-cache", "dpkg", "tar", "make")
        cache = find_cache()
        with alone(cache / "lock"):
            self.find(Apt(cache), cache)
        self.image = self.folder / f"boot/vmlinuz-{self.release}"
        self.headers = self.folder / f"usr/src/linux-headers-{self.release}"
        require(self.compiler())

    def find(self, apt, cache):
        try:
            self.find_in(apt, cache)
        except NotThere as why:
            if apt.options:     # just fetched
                raise Skip(str(why)) from None
            apt.update_own_lists()
            try:
                self.find_in(apt, cache)
            except NotThere as why:
                raise Skip(str(why)) from None

    def find_in(self, apt, cache):
        for meta, image_pattern, needed_pattern in KERNELS:
            images = apt.depends(meta, image_pattern)
            if images:
                break
        else:
            raise NotThere(f"apt has no {' or '.join(kernel[0] for kernel in KERNELS)}")
        self.release = images[0].removeprefix("linux-image-")
        self.folder = cache / self.release
        if not self.folder.exists():
            headers = f"linux-headers-{self.release}"
            self.fetch(apt, [images[0], headers, *apt.depends(headers, needed_pattern)])

    def fetch(self, apt, packages):
        """Into a folder of its own that takes its name when all is there."""
        part = pathlib.Path(tempfile.mkdtemp(prefix="part-", dir=self.folder.parent))
        try:
            apt.download(packages, part)
            unpack(part)
            makefile = part / f"usr/src/linux-headers-{self.release}/Makefile"
            if not makefile.is_symlink():   # Debian's includes another by its path
                makefile.write_text(makefile.read_text().replace(
                    "include /usr/src/", f"include {self.folder}/usr/src/"))
            part.rename(self.folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)

    def compiler(self):
        """The one that this kernel was built with, by its name."""
        config = (self.headers / ".config").read_text()
        return re.search(r'^CONFIG_CC_VERSION_TEXT="(\S+)', config, re.MULTILINE).group(1)

    def build_module(self):
        """fairgv.ko, from a copy of the sources; a compiler's warning is a failure."""
        sources = sorted((source.relative_to(TOP / origin), source.read_bytes())
                         for origin, pattern in SOURCES for source in (TOP / origin).glob(pattern))
        digest = hashlib.sha256(repr(sources).encode()).hexdigest()[:12]
        folder = BUILD / f"tests/vm/module-{self.release}-{digest}"
        folder.parent.mkdir(parents=True, exist_ok=True)
        with alone(folder.parent / "module.lock"):
            if not (folder / "fairgv.ko").exists():
                self.build_module_in(folder, sources)
        return folder / "fairgv.ko"

    def build_module_in(self, folder, sources):
        shutil.rmtree(folder, ignore_errors=True)
        for name, content in sources:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        status, output = run("make", "-C", self.headers, f"M={folder}", f"CC={self.compiler()}",
                             "CONFIG_DEBUG_INFO_BTF_MODULES=", "modules")
        if status or "warning:" in output:
            shutil.rmtree(folder)
            raise Failure(f"building the module: status {status}: {output}")
