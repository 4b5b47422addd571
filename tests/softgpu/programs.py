"""The soft GPU against what PTX's description says: every operation of operations.py on values at the
edges, and random programs of them. Usage: programs.py [SEED [PROGRAMS]]"""
import random
import struct
import sys

import conversions  # noqa: F401, fills the table
from operations import OPERATIONS
from runner import Runner, fail, failed

EDGES = {
    16: (0, 1, 2, 7, 8, 0x1f, 0xff, 0x03ff, 0x0400, 0x3c00, 0x3c01, 0x3bff, 0x7bff, 0x7c00, 0x7c01,
         0x7e00, 0x7f7f, 0x7f80, 0x7fff, 0x8000, 0x8001, 0x8080, 0x83ff, 0xbc00, 0xc780, 0xf7ff,
         0xfbff, 0xfc00, 0xff80, 0xffff, 0x3f80, 0x3f81, 0xbf80, 0x4b80, 0x007f, 0x0080),
    32: (0, 1, 2, 3, 31, 32, 33, 63, 255, 0x8000, 0xffff, 0x10000, 0x007fffff, 0x00800000,
         0x33000001, 0x38800000, 0x387fffff, 0x3effffff, 0x3f000000, 0x3f800000, 0x3f800001,
         0x3fc00000, 0x40200000, 0x477fefff, 0x477ff000, 0x4effffff, 0x4f000000, 0x4f800000,
         0x5f000000, 0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fc00000, 0x7fffffff, 0x80000000,
         0x80000001, 0x807fffff, 0xbf800000, 0xc0200000, 0xcf000000, 0xff7fffff, 0xff800000,
         0xfffffffe, 0xffffffff, 0x12345678, 0x43e00000, 0x43e80000, 0x3c003c01, 0x00010400),
    64: (0, 1, 2, 31, 64, 0xffffffff, 1 << 32, 1 << 53, (1 << 53) + 1, (1 << 63) - 1, 1 << 63,
         (1 << 63) + 1, (1 << 64) - 1, (1 << 64) - 2, 0x3ff0000000000000, 0x3fe0000000000000,
         0x3fefffffffffffff, 0xbff8000000000000, 0x7fefffffffffffff, 0x7ff0000000000000,
         0xfff0000000000000, 0x7ff8000000000000, 0x000fffffffffffff, 0x0010000000000000,
         0x41dfffffffe00000, 0x43e0000000000000, 0x36a0000000000000, 0x47efffffe0000000,
         0x47effffff0000000, 0x40effdffffffffff, 0x123456789abcdef0),
    0: (0, 1),
}
NAMES = {0: "%p", 16: "%rs", 32: "%r", 64: "%rd"}
CASES = 48  # of each operation and run, whose seeds differ
HEAD = """.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in)
{
.reg .pred %p<16>; .reg .b16 %rs<16>; .reg .b32 %r<16>; .reg .b64 %rd<16>;
.reg .pred %px, %py; .reg .b64 %in, %out, %off; .reg .b32 %t, %ta, %tb; .reg .b64 %addr;
mov.u32 %t, %tid.x; mov.u32 %ta, %ctaid.x; ld.param.u64 %in, [in]; ld.param.u64 %out, [out];
"""


def move(width, register, place, base, store):
    """Between a register and the eight bytes at a place of this thread's."""
    if width == 0 and store:
        return f"selp.u64 %addr, 1, 0, {register}; st.global.u64 [{base}+{place}], %addr;\n"
    if width == 0:
        return f"ld.global.u64 %addr, [{base}+{place}]; setp.ne.u64 {register}, %addr, 0;\n"
    if store:
        return f"st.global.b{width} [{base}+{place}], {register};\n"
    return f"ld.global.b{width} {register}, [{base}+{place}];\n"


def thread_base(base, stride):
    return f"mad.wide.u32 {base}, %t, {stride}, {base};\n"


def text_of(operation, names):
    return operation.text.format(**names, x="%px", y="%py")


def check_edges(runner, operation, rng):
    """One operation on combinations of edges, a thread for each, among them random ones."""
    widths = operation.operands
    cases = [tuple(rng.choice(EDGES[w]) for w in widths) for _ in range(CASES)]
    if len(widths) == 1:
        cases = [(v,) for v in EDGES[widths[0]]]
    cases += [tuple(rng.getrandbits(w or 1) for w in widths) for _ in range(CASES // 3)]
    count, stride = len(cases), 8 * max(len(widths), 1)
    names = dict(zip("abcef", (f"{NAMES[w]}{i + 1}" for i, w in enumerate(widths))))
    names["d"] = f"{NAMES[operation.result]}10"
    if "{e}|{d}" in operation.text:
        names.update(e="%r11", d="%p10")
        operation = operation._replace(text=operation.text.replace("{e}|", "%r11|").replace(
            "128, {f}", "128, %p5").replace("{c}, 128", "%r3, 128"))
    body = HEAD + thread_base("%in", stride) + thread_base("%out", 8)
    for i, w in enumerate(widths):
        body += move(w, f"{NAMES[w]}{i + 1}", 8 * i, "%in", False)
    body += text_of(operation, names) + "\n" + move(operation.result, names["d"], 0, "%out", True)
    data = b"".join(struct.pack("<Q", v) for case in cases for v in case)
    code, out = runner.run(body + "ret;\n}\n", count, data, 8 * count)
    if code:
        fail(f"{operation.text}: {code} {out.decode(errors='replace')}")
        return
    got = struct.unpack(f"<{count}Q", out)
    for case, value in zip(cases, got):
        value &= (1 << (operation.result or 1)) - 1
        wanted = operation.function(*case)
        if value != wanted:
            fail(f"{operation.text} of {', '.join(map(hex, case))}: {value:#x}, not {wanted:#x}")
            return


def random_value(rng, width):
    return rng.choice(EDGES[width]) if rng.random() < 0.6 else rng.getrandbits(width or 1)


def random_step(rng, registers):
    """An instruction on random registers, perhaps under a predicate, in text and as what it is."""
    operation = rng.choice(OPERATIONS)
    while "{e}|" in operation.text or "|" in operation.text:
        operation = rng.choice(OPERATIONS)
    sources = [rng.randrange(registers) for _ in operation.operands]
    target = rng.randrange(registers)
    names = dict(zip("abce", (f"{NAMES[w]}{s}" for w, s in zip(operation.operands, sources))))
    names["d"] = f"{NAMES[operation.result]}{target}"
    text = text_of(operation, names)
    guard = None
    # Of several instructions the later ones read what the first one wrote: into no source then.
    if text.count(";") > 1 and any(w == operation.result and s == target
                                   for w, s in zip(operation.operands, sources)):
        return random_step(rng, registers)
    if text.count(";") == 1 and rng.random() < 0.3:
        guard = rng.randrange(registers), rng.random() < 0.5
        text = f"@{'!' if guard[1] else ''}%p{guard[0]} {text}"
    return text, (operation, sources, target, guard)


def evaluate(steps, state):
    for operation, sources, target, guard in steps:
        if guard and bool(state[0][guard[0]]) == guard[1]:
            continue
        values = [state[w][s] for w, s in zip(operation.operands, sources)]
        state[operation.result][target] = operation.function(*values)
    return state


def check_random(runner, seed, registers=8, length=40):
    """A straight line of operations, in some programs only for some of the threads."""
    rng = random.Random(seed)
    slots = [(w, i) for w in NAMES for i in range(registers)]
    stride = 8 * len(slots)
    threads = rng.choice((1, 31, 32, 33))
    partial = rng.random() < 0.3
    lines, steps = zip(*(random_step(rng, registers) for _ in range(length)))
    body = HEAD + thread_base("%in", stride) + thread_base("%out", stride)
    body += "".join(move(w, f"{NAMES[w]}{i}", 8 * k, "%in", False)
                    for k, (w, i) in enumerate(slots))
    if partial:
        body += "and.b32 %ta, %t, 3; setp.eq.u32 %px, %ta, 1; @%px bra $over;\n"
    body += "\n".join(lines) + "\n$over:\n"
    body += "".join(move(w, f"{NAMES[w]}{i}", 8 * k, "%out", True)
                    for k, (w, i) in enumerate(slots)) + "ret;\n}\n"
    inputs = [[random_value(rng, w) for w, _ in slots] for _ in range(threads)]
    data = b"".join(struct.pack(f"<{len(slots)}Q", *values) for values in inputs)
    code, out = runner.run(body, threads, data, stride * threads)
    if code:
        fail(f"seed {seed}: {code} {out.decode(errors='replace')}")
        return
    for thread, values in enumerate(inputs):
        state = {w: [0] * registers for w in NAMES}
        for (w, i), value in zip(slots, values):
            state[w][i] = value
        if not (partial and thread % 4 == 1):
            state = evaluate(steps, state)
        got = struct.unpack_from(f"<{len(slots)}Q", out, stride * thread)
        for (w, i), value in zip(slots, got):
            value &= (1 << (w or 1)) - 1
            if value != state[w][i]:
                fail(f"seed {seed}, thread {thread}: {NAMES[w]}{i} is {value:#x}, "
                     f"not {state[w][i]:#x}, after\n" + "\n".join(lines))
                return


def main():
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else random.randrange(1 << 30)
    programs = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    runner = Runner()
    rng = random.Random(seed)
    print(f"seed {seed}: {len(OPERATIONS)} operations, {programs} programs")
    for operation in OPERATIONS:
        check_edges(runner, operation, rng)
    for i in range(programs):
        check_random(runner, seed + i)
    runner.close()
    return failed()


sys.exit(main())
