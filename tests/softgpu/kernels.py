"""Kernels on the soft GPU for what a single thread cannot show: warps that vote and shuffle, barriers,
copies that are called asynchronous, atomics; faults and their codes; and the approximations."""
import math
import random
import struct
import sys

from number import F32
from runner import Runner, fail, failed

THREADS = 64
ALL = 0xffffffff
ILLEGAL_ADDRESS, ILLEGAL_INSTRUCTION, MISALIGNED, LAUNCH_FAILED = 700, 715, 716, 719
START = """.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in)
{
.reg .pred %p<16>; .reg .b16 %rs<16>; .reg .b32 %r<32>; .reg .b64 %rd<32>; .reg .f32 %f<16>;
.reg .b64 %in, %out, %base; .reg .b32 %t;
.shared .align 16 .b8 words[4096]; .shared .align 8 .b64 bar;
mov.u32 %t, %tid.x; ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.b64 %base, %out;
mad.wide.u32 %in, %t, 8, %in; mad.wide.u32 %out, %t, 8, %out;
ld.global.v2.u32 {%r1, %r2}, [%in];
"""
END = "\nret;\n}\n"
INPUT = [(i * 2654435761 & ALL, i * 40503 + 7 & ALL) for i in range(THREADS)]


def run(runner, body, threads=THREADS, values=None):
    data = b"".join(struct.pack("<2I", *v) for v in (values or INPUT)[:threads])
    code, out = runner.run(START + body + END, threads, data, 8 * threads)
    return code, [v[0] for v in struct.iter_unpack("<Q", out)] if not code else out


def check(runner, name, body, wanted, threads=THREADS, values=None):
    """wanted: of each thread, given its index; the body leaves it in %r9."""
    code, got = run(runner, body + "cvt.u64.u32 %rd9, %r9; st.global.u64 [%out], %rd9;", threads,
                    values)
    if code:
        fail(f"{name}: {code} {got}")
        return
    for i, value in enumerate(got):
        if value != wanted(i):
            fail(f"{name}: thread {i} has {value:#x}, not {wanted(i):#x}")
            return


def in_warp(i):
    return range(i & ~31, (i & ~31) + 32)


def first(i):
    return INPUT[i][0]


def shuffles(runner):
    """All modes, over segments of several widths; out of range a lane keeps its own value."""
    def source(mode, lane, by, clamp, segment):
        low, high = lane & segment, (lane & segment) | (clamp & ~segment & 31)
        j = {"up": lane - by, "down": lane + by, "bfly": lane ^ by, "idx": low | (by & ~segment)}[mode]
        return j, j >= high if mode == "up" else j <= high
    for mode in ("up", "down", "bfly", "idx"):
        for by in (0, 1, 5, 16, 31):
            for width in (4, 8, 32):
                segment = 32 - width & 31
                clamp = 0 if mode == "up" else 31

                def wanted(i, by=by, mode=mode, clamp=clamp, segment=segment):
                    j, valid = source(mode, i & 31, by, clamp, segment)
                    return first((i & ~31) + j if valid else i) ^ (ALL if valid else 0)
                check(runner, f"shfl.{mode} {by} in {width}",
                      f"shfl.sync.{mode}.b32 %r3|%p1, %r1, {by}, {segment << 8 | clamp}, -1;"
                      "not.b32 %r4, %r3; selp.b32 %r9, %r4, %r3, %p1;", wanted)


def votes(runner):
    odd = [v[0] >> 4 & 1 for v in INPUT]
    pick = "bfe.u32 %r3, %r1, 4, 1; setp.ne.u32 %p1, %r3, 0;"
    check(runner, "vote.ballot", pick + "vote.sync.ballot.b32 %r9, %p1, -1;",
          lambda i: sum(odd[j] << (j & 31) for j in in_warp(i)))
    for mode, f in (("all", all), ("any", any), ("uni", lambda v: len(set(v)) == 1)):
        for test, value in (("!%p1", lambda j: 1 - odd[j]), ("%p1", lambda j: odd[j])):
            check(runner, f"vote.{mode} {test}",
                  pick + f"vote.sync.{mode}.pred %p2, {test}, -1; selp.u32 %r9, 1, 0, %p2;",
                  lambda i, f=f, v=value: int(f([v(j) for j in in_warp(i)])))
    # Only of the lanes that are named and run.
    check(runner, "vote of some", "mov.u32 %r9, 0; and.b32 %r4, %t, 3; setp.eq.u32 %p3, %r4, 1;"
          "@!%p3 bra $z; setp.eq.u32 %p1, %r4, 1; vote.sync.ballot.b32 %r9, %p1, 0x22222222; $z:",
          lambda i: 0x22222222 if i % 4 == 1 else 0)
    few = [v[0] >> 7 & 3 for v in INPUT]
    check(runner, "match.any", "bfe.u32 %r3, %r1, 7, 2; match.any.sync.b32 %r9, %r3, -1;",
          lambda i: sum(1 << (j & 31) for j in in_warp(i) if few[j] == few[i]))
    check(runner, "match.any of 64", "bfe.u32 %r3, %r1, 7, 2; mov.b64 %rd3, {%r3, %r3};"
          "match.any.sync.b64 %r9, %rd3, -1;",
          lambda i: sum(1 << (j & 31) for j in in_warp(i) if few[j] == few[i]))
    check(runner, "match.all", "shr.u32 %r3, %t, 5; match.all.sync.b32 %r4|%p1, %r3, -1;"
          "match.all.sync.b32 %r5|%p2, %t, -1; selp.u32 %r6, 1, 0, %p1; selp.u32 %r7, 2, 0, %p2;"
          "or.b32 %r6, %r6, %r7; add.u32 %r5, %r5, %r6; sub.u32 %r9, %r5, %r4;", lambda i: 2)
    check(runner, "elect", "elect.sync %r4|%p1, 0xfffffff0; selp.u32 %r5, 100, 0, %p1;"
          "add.u32 %r9, %r4, %r5;", lambda i: 4 + (100 if i & 31 == 4 else 0))


def reductions(runner):
    def whole(v):
        return v - (1 << 32) if v >> 31 else v
    for name, f in (("add.u32", lambda v: sum(v) & ALL), ("min.u32", min), ("max.u32", max),
                    ("min.s32", lambda v: min(v, key=whole)),
                    ("max.s32", lambda v: max(v, key=whole))):
        check(runner, "redux." + name, f"redux.sync.{name} %r9, %r1, -1;",
              lambda i, f=f: f([first(j) for j in in_warp(i)]))
    for name, f in (("and", lambda a, b: a & b), ("or", lambda a, b: a | b),
                    ("xor", lambda a, b: a ^ b)):
        def fold(i, f=f):
            value = first(i & ~31)
            for j in list(in_warp(i))[1:]:
                value = f(value, first(j))
            return value
        check(runner, "redux." + name, f"redux.sync.{name}.b32 %r9, %r1, -1;", fold)
    odd = "and.b32 %r3, %r1, 16; setp.ne.u32 %p1, %r3, 0;"
    count = sum(first(j) >> 4 & 1 for j in range(THREADS))
    check(runner, "bar.red", odd + "bar.red.popc.u32 %r4, 0, %p1; bar.red.and.pred %p2, 0, %p1;"
          "bar.red.or.pred %p3, 0, !%p1; selp.u32 %r5, 1000, 0, %p2; selp.u32 %r6, 2000, 0, %p3;"
          "add.u32 %r9, %r4, %r5; add.u32 %r9, %r9, %r6;", lambda i: count + 2000)
    # One warp arrives, the other waits for it.
    check(runner, "bar.arrive", "setp.lt.u32 %p1, %t, 32; shl.b32 %r3, %t, 2; mov.u32 %r4, words;"
          "add.u32 %r4, %r4, %r3; mov.u32 %r9, 0; @%p1 bra $wait; st.shared.u32 [%r4], %t;"
          "barrier.cta.arrive.aligned 2, 64; bra $z; $wait: barrier.cta.sync.aligned 2, 64;"
          "ld.shared.u32 %r9, [%r4+128]; $z:", lambda i: i + 32 if i < 32 else 0)


def first_stores(runner):
    """What all warps read right after their start or a barrier, none overwrites before: programs rely on it."""
    other = "setp.lt.u32 %p1, %t, 32; selp.b32 %r3, {0}, -{0}, %p1;"
    check(runner, "read, then written", other.format(256) + "cvt.s64.s32 %rd3, %r3;"
          "add.s64 %rd3, %in, %rd3; ld.global.u32 %r9, [%rd3]; st.global.u32 [%in], 0;",
          lambda i: first(i ^ 32))
    check(runner, "read behind a barrier, then written", other.format(128) + "shl.b32 %r4, %t, 2;"
          "mov.u32 %r5, words; add.u32 %r4, %r4, %r5; add.u32 %r5, %r4, %r3; st.shared.u32 [%r4], %r1;"
          "bar.sync 0; ld.shared.u32 %r9, [%r5]; st.shared.u32 [%r4], 0;", lambda i: first(i ^ 32))
    check(runner, "written by some lanes", "shl.b32 %r4, %t, 2; mov.u32 %r5, words; add.u32 %r4, %r4, %r5;"
          "st.shared.u32 [%r4], %r1; and.b32 %r3, %t, 1; setp.eq.u32 %p1, %r3, 1; bar.sync 0;"
          "@%p1 st.shared.u32 [%r4], 0; ld.shared.u32 %r9, [%r4];", lambda i: 0 if i & 1 else first(i))


def mbarriers(runner):
    """Each thread leaves a value, arrives, and takes its neighbour's when the phase is over."""
    setup = "setp.ne.u32 %p1, %t, 0; mov.u32 %r5, bar; @!%p1 mbarrier.init.shared.b64 [bar], 64;" \
            "bar.sync 0; shl.b32 %r3, %t, 2; mov.u32 %r4, words; add.u32 %r3, %r3, %r4;"
    xor = "xor.b32 %r6, %r3, 252; ld.shared.u32 %r9, [%r6];"
    wait = "$w{n}: mbarrier.{test}.shared{space}.b64 %p2, [{bar}], {phase}; @!%p2 bra $w{n};"
    for test in ("test_wait", "try_wait"):
        check(runner, f"mbarrier.{test}", setup + "st.shared.u32 [%r3], %r1;"
              "mbarrier.arrive.shared.b64 %rd3, [bar];"
              + wait.format(n=1, test=test, space="::cta", bar="%r5", phase="%rd3") + xor,
              lambda i: first(63 - i))
    # Two phases by their parity, through generic addresses.
    check(runner, "mbarrier.parity", setup + "cvt.u64.u32 %rd5, %r5; cvta.shared.u64 %rd5, %rd5;"
          "mbarrier.arrive.release.cta.b64 _, [%rd5];"
          "$a: mbarrier.try_wait.parity.b64 %p2, [%rd5], 0; @!%p2 bra $a;"
          "st.shared.u32 [%r3], %r2; mbarrier.arrive.b64 _, [%rd5];"
          "$b: mbarrier.try_wait.parity.b64 %p2, [%rd5], 1; @!%p2 bra $b;"
          + xor, lambda i: INPUT[63 - i][1])
    # Half of the threads leave for good: the second phase is over without them.
    check(runner, "mbarrier.arrive_drop", setup + "mov.u32 %r9, 5; setp.ge.u32 %p3, %t, 32;"
          "@%p3 mbarrier.arrive_drop.shared.b64 _, [bar]; @%p3 bra $z;"
          "mbarrier.arrive.shared.b64 %rd3, [bar];"
          "$a: mbarrier.test_wait.shared.b64 %p2, [bar], %rd3; @!%p2 bra $a;"
          "mbarrier.arrive.shared.b64 %rd3, [bar]; mbarrier.pending_count.b64 %r7, %rd3;"
          "$b: mbarrier.test_wait.shared.b64 %p2, [bar], %rd3; @!%p2 bra $b;"
          "ld.shared.b64 %rd4, [bar]; mbarrier.arrive.shared.b64 %rd3, [bar];"
          "setp.le.u32 %p4, %r7, 32; selp.u32 %r9, 1, 0, %p4; $z:", lambda i: 1 if i < 32 else 5)
    # The bytes of a copy count as well; one thread asks for them.
    check(runner, "cp.async.bulk", "setp.ne.u32 %p1, %t, 0; @%p1 bra $wait; ld.param.u64 %rd6, [in];"
          "mov.u32 %r4, words; mov.u32 %r5, bar; mbarrier.init.shared.b64 [bar], 1;"
          "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r5], 512;"
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%rd6], 256, [%r5];"
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4+256], [%rd6+256],"
          " 256, [%r5]; $wait: bar.sync 0;"
          "$a: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra $a;"
          "shl.b32 %r3, %t, 3; mov.u32 %r4, words; add.u32 %r3, %r3, %r4; ld.shared.u32 %r9, [%r3];",
          first)


def copies(runner):
    place = "shl.b32 %r3, %t, 4; mov.u32 %r4, words; add.u32 %r3, %r3, %r4; ld.param.u64 %rd6, [in];" \
            "and.b32 %r5, %t, 31; mad.wide.u32 %rd6, %r5, 16, %rd6;" \
            "mov.u32 %r6, 77; st.shared.v4.u32 [%r3], {%r6, %r6, %r6, %r6};"
    flat = [w for v in INPUT for w in v]
    tail = "cp.async.commit_group; cp.async.wait_group 0;" \
           "ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r3]; mad.lo.u32 %r9, %r11, 3, %r10;" \
           "mad.lo.u32 %r9, %r12, 5, %r9; mad.lo.u32 %r9, %r13, 7, %r9;"
    forms = (("cg.shared.global [%r3], [%rd6], 16;", 16, 16), ("ca.shared.global [%r3], [%rd6], 8;", 8, 8),
             ("ca.shared.global [%r3], [%rd6], 4;", 4, 4),
             ("ca.shared.global.L2::128B [%r3], [%rd6], 16, 5;", 16, 5),
             ("cg.shared.global [%r3], [%rd6], 16, 0;", 16, 0))
    for form, size, have in forms:
        def wanted(i, size=size, have=have):
            i &= 31
            data = struct.pack("<4I", *flat[4 * i:4 * i + 4])[:have].ljust(size, b"\0")
            words = struct.unpack("<4I", data + struct.pack("<4I", 77, 77, 77, 77)[size:])
            return sum(w * k for w, k in zip(words, (1, 3, 5, 7))) & ALL
        check(runner, "cp.async." + form, place + "cp.async." + form + tail, wanted)
    check(runner, "cp.async with a predicate", place + "setp.lt.u32 %p1, %t, 9;"
          "cp.async.ca.shared.global [%r3], [%rd6], 4, %p1; cp.async.wait_all;"
          "ld.shared.u32 %r9, [%r3];", lambda i: 0 if i < 9 else flat[4 * (i & 31)])


def atomics(runner):
    """A sum of halves, a pair at once, and a swap of 16 bits; one word for all threads."""
    ones = "mov.u32 %r3, 0; st.shared.v4.u32 [words], {%r3, %r3, %r3, %r3}; bar.sync 0;"
    check(runner, "atom f16x2", ones + "mov.u32 %r4, 0x3c004000;"
          "red.shared.add.noftz.f16x2 [words], %r4; bar.sync 0; ld.shared.u32 %r9, [words];",
          lambda i: 0x54005800)
    check(runner, "atom bf16", ones + "mov.u16 %rs1, 0x3f80;"
          "atom.shared.add.noftz.bf16 %rs2, [words+2], %rs1; bar.sync 0; ld.shared.u32 %r9, [words];",
          lambda i: 0x42800000)
    check(runner, "atom.v2", "mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f40000000; mov.u64 %rd4, 0;"
          "setp.eq.u32 %p1, %t, 63; bar.sync 0; @!%p1 st.global.u64 [%out], %rd4; bar.sync 0;"
          "atom.global.v2.f32.add {%f3, %f4}, [%out], {%f1, %f2}; ld.global.v2.u32 {%r10, %r11}, [%out];"
          "xor.b32 %r9, %r10, %r11; @%p1 mov.u32 %r9, 0x7f800000;", lambda i: 0x7f800000)
    check(runner, "atom.cas.b16", ones + "mov.u16 %rs1, 0; cvt.u16.u32 %rs2, %t;"
          "$l: ld.shared.u16 %rs3, [words+6]; add.u16 %rs4, %rs3, 1;"
          "atom.shared.cas.b16 %rs5, [words+6], %rs3, %rs4; setp.ne.u16 %p1, %rs5, %rs3; @%p1 bra $l;"
          "bar.sync 0; ld.shared.u16 %r9, [words+6];", lambda i: THREADS)


FAULTS = (
    ("trap;", LAUNCH_FAILED),
    ("mov.u64 %rd4, 64; ld.global.u32 %r4, [%rd4];", ILLEGAL_ADDRESS),
    ("ld.global.u64 %rd4, [%out+4];", MISALIGNED),
    ("mov.u32 %r4, words; add.u32 %r4, %r4, 4; mbarrier.init.shared.b64 [%r4], 1;", MISALIGNED),
    ("mbarrier.init.b64 [%out], 1;", ILLEGAL_ADDRESS),
    ("mbarrier.init.shared.b64 [bar], 0;", ILLEGAL_INSTRUCTION),
    ("mov.u32 %r4, words; cp.async.ca.shared.global [%r4+4], [%in], 8;", MISALIGNED),
    ("mov.u64 %rd4, 4096; mov.u32 %r4, words; cp.async.ca.shared.global [%r4], [%rd4], 4;",
     ILLEGAL_ADDRESS),
    ("mov.u32 %r4, words; cp.async.bulk.global.shared::cta.bulk_group [%base], [%r4], 24;", MISALIGNED),
    ("mov.u32 %r4, 20; bar.sync %r4;", ILLEGAL_INSTRUCTION),
)


def faults():
    """Each in a process of its own, since a fault stays."""
    for body, code in FAULTS:
        runner = Runner()
        got, _ = run(runner, body)
        if got != code:
            fail(f"{body} gives {got}, not {code}")
        runner.close()


APPROXIMATIONS = (
    ("rcp.approx.ftz.f32", lambda x: 1 / x, (0.001, 1000)),
    ("sqrt.approx.f32", math.sqrt, (0.001, 1000)),
    ("rsqrt.approx.f32", lambda x: 1 / math.sqrt(x), (0.001, 1000)),
    ("ex2.approx.f32", lambda x: 2.0 ** x, (-20, 20)),
    ("lg2.approx.ftz.f32", math.log2, (2, 1000)),
    ("lg2.approx.f32", math.log2, (0.51, 1.9)),
    ("sin.approx.f32", math.sin, (0.1, 3)),
    ("cos.approx.f32", math.cos, (-1.5, 1.5)),
    ("tanh.approx.f32", math.tanh, (-5, 5)),
)


def approximations(runner, rng):
    """As close as the PTX ISA promises, or closer."""
    for name, f, (low, high) in APPROXIMATIONS:
        values = [rng.uniform(low, high) for _ in range(THREADS)]
        bits = [(struct.unpack("<I", struct.pack("<f", v))[0], 0) for v in values]
        code, got = run(runner, f"mov.b32 %f1, %r1; {name} %f2, %f1; mov.b32 %r9, %f2;"
                        "cvt.u64.u32 %rd9, %r9; st.global.u64 [%out], %rd9;", THREADS, bits)
        for (b, _), g in zip(bits, got if not code else []):
            x, y = (struct.unpack("<f", struct.pack("<I", v))[0] for v in (b, g))
            if abs(y - f(x)) > abs(f(x)) * 2.0 ** -10.9 * (1 if "tanh" in name else 2.0 ** -9):
                fail(f"{name} of {x} is {y}, not {f(x)}")
        if code:
            fail(f"{name}: {code} {got}")
    for name, value, wanted in (("rcp.approx.f32", 0, 0x7f800000), ("lg2.approx.f32", 0, 0xff800000),
                                ("rsqrt.approx.f32", 0x80000000, 0xff800000),
                                ("sqrt.approx.f32", 0xbf800000, F32.nan),
                                ("lg2.approx.f32", 1, 0xc3150000),
                                ("lg2.approx.f32", 0x7f800000, 0x7f800000),
                                ("lg2.approx.f32", 0xbf800000, F32.nan),
                                ("ex2.approx.f32", 0xff800000, 0),
                                ("ex2.approx.f32", 0x43000000, 0x7f800000),
                                ("ex2.approx.f32", 0xc30c0000, 0x200),
                                ("sin.approx.f32", 0x7f800000, F32.nan)):
        check(runner, name, f"mov.b32 %f1, {value}; {name} %f2, %f1; mov.b32 %r9, %f2;",
              lambda i, w=wanted: w)


def main():
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else random.randrange(1 << 30)
    print(f"seed {seed}")
    runner = Runner()
    for part in (shuffles, votes, reductions, first_stores, mbarriers, copies, atomics):
        part(runner)
    approximations(runner, random.Random(seed))
    runner.close()
    faults()
    return failed()


sys.exit(main())
