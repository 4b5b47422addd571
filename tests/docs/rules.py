"""How the commands of the pages are tried. What no rule names is run as it stands, and must succeed.

Each rule has a pattern, searched in the command; how it is tried; and why it is not simply run.
    LOOK        it is not run: its options, words, paths and packages must exist (words.py)
    ANY         it is run, and may judge either way, but must be no wrong usage
    FAILS       it is run, and must be refused
    ENDLESS     it is run until it has said something
    DAEMON      it is run beside what follows
    SERVICE     a unit's own lines are run, as systemd would
    a text      it is run with this in place of what the pattern found
"""
WAYS = LOOK, ANY, FAILS, ENDLESS, DAEMON, SERVICE = "look", "any", "fails", "endless", "daemon", "service"

RULES = (
    # Building and installing.
    (r"^\./quickstart ", LOOK, "builds the whole tree; check runs it, or tests/fresh/try"),
    (r"^(sudo )?make .*\binstall\b", LOOK, "this test has done it, and runs what that left"),
    (r"^\./configure ", LOOK, "configures and builds the tree again; tests/local/guest_build.py does it"),
    (r"^make$", LOOK, "builds the tree again"),
    (r"apt-get install", LOOK, "changes this machine; tests/fresh/try does it"),
    (r"pip install", LOOK, "wants a network"),
    (r"^sudo systemd-sysusers", LOOK, "changes this machine's users; tests/fresh/try does it"),
    (r"^sudo systemctl daemon-reload|systemctl restart libvirtd", LOOK, "wants systemd"),
    (r"^journalctl ", LOOK, "wants systemd; tests/fresh/try looks at the journal of a guest"),
    (r"systemctl .*fairgv", SERVICE, "wants systemd: its unit's lines are run by hand"),
    # In a guest.
    (r"^(dkms|modprobe|insmod|rmmod|lspci|make -C /lib/modules)\b", LOOK, "wants a guest; check-vm has some"),
    (r"^tar .*guest", LOOK, "wants what was built for a guest"),
    # Of a host with GPUs, QEMU, or other users.
    (r"qemu-system", LOOK, "wants a disk with a guest on it; check-vm boots guests so"),
    (r"^docker |^podman ", LOOK, "wants an image; tests/fresh/try runs podman"),
    (r"^nvidia-smi\b|/dev/nvidiactl", LOOK, "wants a GPU"),
    (r"(?<=run --vm vm1 )nvidia-smi", "{BUILD}/tests/nvml/describe", "is NVIDIA's; this program asks the same library"),
    (r"somebody-elses", FAILS, "is what others' users may not do"),
    # With what else they need.
    (r"^fairgv-backend --config", DAEMON, "serves until it is ended"),
    (r"^fairgvctl stat --interval 10", "fairgvctl stat --interval 0.2 --count 2", "never ends"),
    (r"^fairgvctl top", ENDLESS, "never ends, and wants a terminal"),
    (r"^fairgvctl end 17", "fairgvctl end {SESSION}", "names a session that is there on the page only"),
    (r"^fairgvctl freeze vm1", LOOK, "wants a VM whose memory may move; tests/local/movable.py has one"),
    (r"^fairgvctl doctor", ANY, "judges the machine that it runs on"),
    (r"program arguments\.\.\.", "program", "stands for the reader's program"),
)

# Spans of text that are commands for the reader to run; others are only looked at.
RUN_SPANS = (r"^fairgv-vm --config", r"^fairgvctl set vm1 ", r"^systemctl enable --now fairgv$")

# Blocks that are neither commands nor a configuration, by how they begin.
PICTURE, OUTPUT, PRINTED, MARKUP, QMP = "picture", "output", "printed", "markup", "qmp"
TEXTS = (
    (" guest VM, container or process", PICTURE),
    ("Two VMs share one GPU", OUTPUT),      # tools/demo.in prints it
    ("-chardev socket,id=fairgv,", PRINTED),
    ("<domain type='kvm'", MARKUP),
    ('{"execute":', QMP),
)

# Words that pages name though nothing of ours has them.
OTHERS_PACKAGES = ("dkms", "linux-headers-amd64")
