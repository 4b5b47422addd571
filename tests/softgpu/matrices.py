"""Matrix instructions against products of whole numbers and quarters in Python: wmma through
memory, in all shapes, types and orders; mma, ldmatrix and movmatrix by where the PTX ISA puts each element."""
import random
import struct
import sys

from runner import Runner, fail, failed

MISALIGNED, ILLEGAL_ADDRESS, ILLEGAL_INSTRUCTION = 716, 700, 715
HEAD = """.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in)
{
.reg .pred %p<2>; .reg .b16 %h<9>; .reg .b64 %in, %out, %at, %da<9>, %db<9>, %dc<9>, %dd<9>;
.reg .b32 %a<9>, %b<9>, %c<9>, %d<9>, %t, %s, %r<9>; .shared .align 128 .b8 words[16384];
ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.u32 %t, %tid.x;
"""
TAIL = "\nret;\n}\n"


def bits_of_bf16(x):
    return struct.unpack("<I", struct.pack("<f", x))[0] >> 16


def of_bf16(bits):
    return struct.unpack("<f", struct.pack("<I", bits << 16))[0]


# Bytes of an element, to bytes and back, what it may be.
QUARTERS = [n / 4 for n in range(-16, 17)]
TYPES = {
    "f16": (2, lambda x: struct.pack("<e", x), lambda b: struct.unpack("<e", b)[0], QUARTERS),
    "bf16": (2, lambda x: struct.pack("<H", bits_of_bf16(x)),
             lambda b: of_bf16(struct.unpack("<H", b)[0]), QUARTERS),
    "tf32": (4, lambda x: struct.pack("<f", x), lambda b: struct.unpack("<f", b)[0], QUARTERS),
    "f32": (4, lambda x: struct.pack("<f", x), lambda b: struct.unpack("<f", b)[0], QUARTERS),
    "f64": (8, lambda x: struct.pack("<d", x), lambda b: struct.unpack("<d", b)[0], QUARTERS),
    "s8": (1, lambda x: struct.pack("<b", x), lambda b: struct.unpack("<b", b)[0], range(-128, 128)),
    "u8": (1, lambda x: struct.pack("<B", x), lambda b: struct.unpack("<B", b)[0], range(256)),
    "s32": (4, lambda x: struct.pack("<i", x), lambda b: struct.unpack("<i", b)[0],
            range(-1000, 1000)),
}


def random_matrix(rng, kind, rows, columns):
    return [[rng.choice(TYPES[kind][3]) for _ in range(columns)] for _ in range(rows)]


def wrap(x):
    return (x + (1 << 31)) % (1 << 32) - (1 << 31)


def limit(x):
    return max(-(1 << 31), min((1 << 31) - 1, x))


def product(a, b, c, kind, satfinite):
    """a b + c, as the type of the result has it: all sums here are exact in f64."""
    def value(i, j):
        x = sum(a[i][k] * b[k][j] for k in range(len(b))) + c[i][j]
        if kind == "s32":
            return limit(x) if satfinite else wrap(x)
        return TYPES[kind][2](TYPES[kind][1](x))
    return [[value(i, j) for j in range(len(c[0]))] for i in range(len(c))]


def registers(prefix, kind, count):
    prefix = f"%{'d' if TYPES[kind][0] == 8 else ''}{prefix}"
    return "{" + ", ".join(f"{prefix}{i}" for i in range(count)) + "}"


class Memory:
    """Matrices one behind the other, by rows or columns with room between these."""

    def __init__(self):
        self.data = b""

    def put(self, matrix, kind, order, stride):
        start = len(self.data)
        lines = matrix if order == "row" else list(zip(*matrix))
        for line in lines:
            text = b"".join(TYPES[kind][1](x) for x in line)
            self.data += text + b"\x55" * (stride * TYPES[kind][0] - len(text))
        self.data += b"\0" * (-len(self.data) % 32)
        return start


def get(data, kind, rows, columns, order, stride):
    size, _, of = TYPES[kind][:3]

    def at(i, j):
        n = i * stride + j if order == "row" else j * stride + i
        return of(data[n * size:(n + 1) * size])
    return [[at(i, j) for j in range(columns)] for i in range(rows)]


WMMA = [(shape, kind, c, d) for shape in ("m16n16k16", "m32n8k16", "m8n32k16")
        for kind, c, d in (("f16", "f32", "f32"), ("f16", "f16", "f16"), ("f16", "f32", "f16"),
                           ("f16", "f16", "f32"), ("bf16", "f32", "f32"), ("s8", "s32", "s32"),
                           ("u8", "s32", "s32"))]
WMMA += [("m16n16k8", "tf32", "f32", "f32"), ("m8n8k4", "f64", "f64", "f64")]
# Registers of a and b, by the PTX ISA; where no shape is named, of all.
FACTORS = {"f16": (8, 8), "bf16": {"m16n16k16": (4, 4), "m32n8k16": (8, 2), "m8n32k16": (2, 8)},
           "s8": {"m16n16k16": (2, 2), "m32n8k16": (4, 1), "m8n32k16": (1, 4)},
           "tf32": (4, 4), "f64": (1, 1)}
SUMS = {"f16": 4, "f32": 8, "s32": 8, "f64": 2}


def sizes(shape):
    m, rest = shape[1:].split("n")
    return (int(m), *map(int, rest.split("k")))


def factors(shape, kind):
    counts = FACTORS["s8" if kind == "u8" else kind]
    return counts if isinstance(counts, tuple) else counts[shape]


def wmma_text(shape, kinds, orders, places, strides, options):
    """Loads of a, b and c, the product, and the store of d, in global or shared memory."""
    kind, kind_c, kind_d = kinds
    counts = factors(shape, kind)
    space, satfinite = options
    source = "words" if space == ".shared" else "%at"
    text = ""
    for name, k, place, stride, order, count in zip(
            "abc", (kind, kind, kind_c), places, strides, orders, (*counts, SUMS[kind_c])):
        text += f"add.u64 %at, %in, {place};\n" if source == "%at" else ""
        where = source if source == "%at" else f"{source}+{place}"
        text += f"wmma.load.{name}.sync.aligned.{order}.{shape}{space}.{k} " \
                f"{registers(name, k, count)}, [{where}], {stride};\n"
    types = f"{kind_d}.{kind_c}" if kind == "f16" else f"{kind_d}.{kind}.{kind}.{kind_c}"
    rounding = ".rn" if kind == "f64" else ""
    text += f"wmma.mma.sync.aligned.{orders[0]}.{orders[1]}.{shape}{rounding}.{types}{satfinite} " \
            f"{registers('d', kind_d, SUMS[kind_d])}, {registers('a', kind, counts[0])}, " \
            f"{registers('b', kind, counts[1])}, {registers('c', kind_c, SUMS[kind_c])};\n"
    text += f"wmma.store.d.sync.aligned.{orders[3]}.{shape}.{kind_d} [%out], " \
            f"{registers('d', kind_d, SUMS[kind_d])}, {strides[3]};\n"
    return text


COPY = """mov.u32 %s, %t;
$copy: mul.wide.u32 %at, %s, 4; add.u64 %at, %in, %at; ld.global.u32 %r1, [%at];
shl.b32 %r2, %s, 2; mov.u32 %r3, words; add.u32 %r2, %r2, %r3; st.shared.u32 [%r2], %r1;
add.u32 %s, %s, 32; setp.lt.u32 %p1, %s, LAST; @%p1 bra $copy; bar.sync 0;
"""


def check_wmma(runner, rng, case, options):
    shape, kind, kind_c, kind_d = case
    m, n, k = sizes(shape)
    orders = [rng.choice(("row", "col")) for _ in range(4)]
    a, b = random_matrix(rng, kind, m, k), random_matrix(rng, kind, k, n)
    c = random_matrix(rng, kind_c, m, n)
    if options[1]:
        c[1][2], c[2][1] = (1 << 31) - 5, -(1 << 31) + 5
    memory, places, strides = Memory(), [], []
    for matrix, t, order in ((a, kind, orders[0]), (b, kind, orders[1]), (c, kind_c, orders[2])):
        strides.append((len(matrix[0]) if order == "row" else len(matrix)) + rng.choice((0, 16)))
        places.append(memory.put(matrix, t, order, strides[-1]))
    strides.append((n if orders[3] == "row" else m) + rng.choice((0, 16)))
    memory.data += b"\0" * 128
    copy = COPY.replace("LAST", str(len(memory.data) // 4)) if options[0] == ".shared" else ""
    text = HEAD + copy + wmma_text(shape, case[1:], orders, places, strides, options) + TAIL
    code, out = runner.run(text, 32, memory.data, 16384)
    name = f"wmma {case} {orders} {options}"
    if code:
        fail(f"{name}: {code} {out}")
    elif get(out, kind_d, m, n, orders[3], strides[3]) != product(a, b, c, kind_d, options[1]):
        fail(f"{name}: wrong")


def wmma(runner, rng):
    for case in WMMA:
        whole = case[3] == "s32"
        for _ in range(3):
            space = rng.choice(("", ".global", ".shared"))
            check_wmma(runner, rng, case, (space, rng.choice(("", ".satfinite")) if whole else ""))
    for case in (WMMA[0], WMMA[5]):
        check_wmma(runner, rng, case, (".shared", ".satfinite" if case[3] == "s32" else ""))


# mma: the place of element i of lane l, as the PTX ISA's sections on each shape say.
def place_a(kind, lane, i):
    each = 4 // TYPES[kind][0] or 1
    register, part = divmod(i, each)
    return lane // 4 + (8 if register in (1, 3) else 0), \
        lane % 4 * each + part + (4 * each if register >= 2 else 0)


def place_b(kind, lane, i):
    each = 4 // TYPES[kind][0] or 1
    register, part = divmod(i, each)
    return lane % 4 * each + part + 4 * each * register, lane // 4


def place_c(_, lane, i):
    return lane // 4 + (8 if i >= 2 else 0), lane % 4 * 2 + i % 2


MMA = [("m16n8k8", "f16", "f32"), ("m16n8k8", "f16", "f16"), ("m16n8k16", "f16", "f32"),
       ("m16n8k16", "f16", "f16"), ("m16n8k8", "bf16", "f32"), ("m16n8k16", "bf16", "f32"),
       ("m16n8k4", "tf32", "f32"), ("m16n8k8", "tf32", "f32"), ("m8n8k4", "f64", "f64"),
       ("m16n8k4", "f64", "f64"), ("m16n8k8", "f64", "f64"), ("m8n8k16", "s8", "s32"),
       ("m16n8k16", "s8", "s32"), ("m16n8k32", "s8", "s32"), ("m16n8k16", "u8", "s32"),
       ("m16n8k32", "u8", "s32")]


def spread(matrix, kind, place):
    """Each lane's part of a matrix, one behind the other, and the registers that it takes."""
    count = len(matrix) * len(matrix[0]) // 32
    data = b""
    for lane in range(32):
        for i in range(count):
            row, column = place(kind, lane, i)
            data += TYPES[kind][1](matrix[row][column])
    return data, count * TYPES[kind][0] // (8 if TYPES[kind][0] == 8 else 4)


def moves(name, kind, count, start, store=False):
    """Each lane's registers from or to its part of memory."""
    size = 8 if TYPES[kind][0] == 8 else 4
    register = f"%{'d' if size == 8 else ''}{name}"
    text = f"mad.wide.u32 %at, %t, {size * count}, {'%out' if store else '%in'};\n"
    for i in range(count):
        where = f"[%at+{start + i * size}]"
        text += f"st.global.b{size * 8} {where}, {register}{i};\n" if store else \
            f"ld.global.b{size * 8} {register}{i}, {where};\n"
    return text


def mma(runner, rng):
    for shape, kind, sums in MMA:
        m, n, k = sizes(shape)
        satfinite = rng.choice(("", ".satfinite")) if sums == "s32" else ""
        a, b = random_matrix(rng, kind, m, k), random_matrix(rng, kind, k, n)
        c = random_matrix(rng, sums, m, n)
        if satfinite:
            c[1][2], c[2][1] = (1 << 31) - 5, -(1 << 31) + 5
        data, text, counts = b"", "", {}
        for name, matrix, t, place in (("a", a, kind, place_a), ("b", b, kind, place_b),
                                       ("c", c, sums, place_c)):
            part, counts[name] = spread(matrix, t, place)
            text += moves(name, t, counts[name], len(data))
            data += part
        text += f"mma.sync.aligned.{shape}.row.col{satfinite}.{sums}.{kind}.{kind}.{sums} " + \
            ", ".join(registers(name, t, counts["c" if name == "d" else name])
                      for name, t in (("d", sums), ("a", kind), ("b", kind), ("c", sums))) + ";\n"
        code, out = runner.run(HEAD + text + moves("d", sums, counts["c"], 0, True) + TAIL, 32, data,
                               4096)
        wanted = spread(product(a, b, c, sums, satfinite), sums, place_c)[0]
        if code or out[:len(wanted)] != wanted:
            fail(f"mma {shape} {kind} {sums}{satfinite}: {code or 'wrong'}")


def rows(runner, rng):
    """ldmatrix: lane 8 k + i gives the address of row i of matrix k; movmatrix turns one."""
    data = bytes(rng.randrange(256) for _ in range(512))
    value = struct.unpack("<256H", data)
    take = "shl.b32 %r1, %t, 4; cvt.u64.u32 %at, %r1; add.u64 %at, %in, %at;" \
           "ld.global.v4.u32 {%a0, %a1, %a2, %a3}, [%at]; mov.u32 %r2, words;" \
           "add.u32 %r2, %r2, %r1; st.shared.v4.u32 [%r2], {%a0, %a1, %a2, %a3}; bar.sync 0;\n"
    for count in (1, 2, 4):
        for turned in ("", ".trans"):
            text = take + f"ldmatrix.sync.aligned.m8n8.x{count}{turned}.shared.b16 " \
                f"{registers('d', 's32', count)}, [%r2];\n" + moves("d", "s32", count, 0, True)
            wanted = b""
            for lane in range(32):
                for k in range(count):
                    for half in (0, 1):
                        row, column = lane // 4, lane % 4 * 2 + half
                        row, column = (column, row) if turned else (row, column)
                        wanted += struct.pack("<H", value[64 * k + row * 8 + column])
            code, out = runner.run(HEAD + text + TAIL, 32, data, 512)
            if code or out[:len(wanted)] != wanted:
                fail(f"ldmatrix.x{count}{turned}: {code or 'wrong'}")
    text = moves("a", "s32", 1, 0) + "movmatrix.sync.aligned.m8n8.trans.b16 %d0, %a0;\n" + \
        moves("d", "s32", 1, 0, True)
    code, out = runner.run(HEAD + text + TAIL, 32, data[:128], 128)
    if code or struct.unpack("<64H", out) != tuple(value[i % 8 * 8 + i // 8] for i in range(64)):
        fail(f"movmatrix: {code or 'wrong'}")


def special(runner):
    """Rounding happens once; infinities and NaN go through; NaN is one."""
    for inputs, start, wanted in (([1024, 1], 0.5, None), ([60000, 2], 0, "f16 inf"),
                                  ([float("inf"), 0], 0, "nan"), ([2 ** -14, 2 ** -10], 0, None)):
        a = [[inputs[0] if (i, j) == (0, 0) else 0 for j in range(16)] for i in range(16)]
        b = [[inputs[1] if (i, j) == (0, 0) else 0 for j in range(16)] for i in range(16)]
        c = [[start] * 16 for _ in range(16)]
        memory = Memory()
        places = [memory.put(x, "f16", "row", 16) for x in (a, b, c)]
        text = wmma_text("m16n16k16", ("f16", "f16", "f16"), ["row"] * 4, places, [16] * 4, ("", ""))
        code, out = runner.run(HEAD + text + TAIL, 32, memory.data, 512)
        got = out[:2]
        want = b"\xff\x7f" if wanted == "nan" else b"\x00\x7c" if wanted else \
            struct.pack("<e", inputs[0] * inputs[1] + start)
        if code or got != want:
            fail(f"wmma of {inputs} + {start}: {code} {got.hex()}, not {want.hex()}")


def faults():
    """Each ends its device, so that each has its own."""
    def load(space, where, stride):
        return f"wmma.load.a.sync.aligned.row.m16n16k16{space}.f16 {registers('a', 'f16', 8)}, " \
               f"[{where}], {stride};"
    for what, text, threads, wanted in (
            ("beyond memory", load("", "%in", 1 << 30), 32, ILLEGAL_ADDRESS),
            ("beyond shared memory", "mov.u32 %r1, 16380;" + load(".shared", "%r1", 16), 32,
             ILLEGAL_ADDRESS),
            ("odd address", load("", "%in+1", 16), 32, MISALIGNED),
            ("half a warp", load("", "%in", 16), 16, ILLEGAL_INSTRUCTION),
            ("odd row", "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%a0}, [words+8];", 32, MISALIGNED)):
        runner = Runner()
        code, _ = runner.run(HEAD + text + TAIL, threads, b"\0" * 1024, 64)
        runner.close()
        if code != wanted:
            fail(f"{what}: {code}, not {wanted}")


def main():
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else random.randrange(1 << 30)
    rng = random.Random(seed)
    runner = Runner()
    print(f"seed {seed}")
    for part in (wmma, mma, rows):
        part(runner, rng)
    special(runner)
    runner.close()
    faults()
    return failed()


sys.exit(main())
