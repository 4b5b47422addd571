"""What each PTX operation computes, by its description in the PTX ISA, on whole numbers of Python:
no code is shared with the soft GPU. An operation has a text, with {d}, {a}, {b}, {c}, {e} for its
registers and {x}, {y} for predicates to use in between, the widths of its result and its
operands (0: a predicate), and a function from the operands' bits to the result's."""
from collections import namedtuple

from number import (BF16, E4M3, E5M2, F16, F32, F64, TF32, add, compare, divide, multiply, negate,
                    root, to_integral)

Operation = namedtuple("Operation", "text result operands function")
OPERATIONS = []
FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}
MODES = {"rn": "n", "rz": "z", "rm": "m", "rp": "p"}


def op(text, result, operands, function):
    OPERATIONS.append(Operation(text, result, tuple(operands), function))


def signed(value, bits):
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


def clamp(value, low, high):
    return min(max(value, low), high)


def limits(kind, bits):
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if kind == "s" else (0, (1 << bits) - 1)


def value_of(kind, bits):
    """Reads bits as the number of a type."""
    return (lambda v: signed(v, bits)) if kind == "s" else (lambda v: v)


def integer(name, types, function, arity=2, result=None):
    """name.type d, a, ...: function on numbers, its result cut to the width."""
    for t in types.split():
        kind, bits = t[0], int(t[1:])
        read = value_of(kind, bits)
        op(f"{name}.{t} {{d}}, " + ", ".join("{%s}" % x for x in "abc"[:arity]) + ";",
           result or bits, [bits] * arity,
           lambda *v, f=function, r=read, n=bits: f(n, *map(r, v)) & ((1 << (result or n)) - 1))


def quotient(n, a, b):
    if not b:
        return -1
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(n, a, b):
    return a - quotient(n, a, b) * b if b else a


def integers():
    every = "u16 u32 u64 s16 s32 s64"
    integer("add", every, lambda n, a, b: a + b)
    integer("sub", every, lambda n, a, b: a - b)
    integer("mul.lo", every, lambda n, a, b: a * b)
    integer("mul.hi", every, lambda n, a, b: a * b >> n)
    integer("mad.lo", every, lambda n, a, b, c: a * b + c, 3)
    integer("mad.hi", every, lambda n, a, b, c: (a * b >> n) + c, 3)
    integer("div", "u16 u32 u64", quotient)
    integer("rem", "u16 u32 u64", remainder)
    # The quotient of the smallest and -1 is the smallest again.
    integer("div", "s16 s32 s64", quotient)
    integer("rem", "s16 s32 s64", remainder)
    integer("min", every, lambda n, a, b: min(a, b))
    integer("max", every, lambda n, a, b: max(a, b))
    integer("sad", every, lambda n, a, b, c: c + abs(a - b), 3)
    integer("abs", "s16 s32 s64", lambda n, a: abs(a), 1)
    integer("neg", "s16 s32 s64", lambda n, a: -a, 1)
    integer("min.relu", "s32", lambda n, a, b: max(min(a, b), 0))
    integer("max.relu", "s32", lambda n, a, b: max(a, b, 0))
    integer("add.sat", "s32", lambda n, a, b: clamp(a + b, *limits("s", 32)))
    integer("sub.sat", "s32", lambda n, a, b: clamp(a - b, *limits("s", 32)))
    integer("mad.hi.sat", "s32",
            lambda n, a, b, c: clamp((a * b >> 32) + c, *limits("s", 32)), 3)
    for t, w in (("u16", 32), ("s16", 32), ("u32", 64), ("s32", 64)):
        read, bits = value_of(t[0], w // 2), w // 2
        op(f"mul.wide.{t} {{d}}, {{a}}, {{b}};", w, [bits] * 2,
           lambda a, b, r=read, w=w: r(a) * r(b) & ((1 << w) - 1))
        op(f"mad.wide.{t} {{d}}, {{a}}, {{b}}, {{c}};", w, [bits, bits, w],
           lambda a, b, c, r=read, w=w: r(a) * r(b) + c & ((1 << w) - 1))
    for t in "us":
        low = (lambda v, t=t: value_of(t, 24)(v & 0xffffff))
        for part, shift in (("lo", 0), ("hi", 16)):
            op(f"mul24.{part}.{t}32 {{d}}, {{a}}, {{b}};", 32, [32] * 2,
               lambda a, b, r=low, s=shift: r(a) * r(b) >> s & 0xffffffff)
            op(f"mad24.{part}.{t}32 {{d}}, {{a}}, {{b}}, {{c}};", 32, [32] * 3,
               lambda a, b, c, r=low, s=shift: (r(a) * r(b) >> s) + c & 0xffffffff)
    halves_of_integers()


def halves_of_integers():
    for name, f in (("add", lambda a, b: a + b), ("min", min), ("max", max)):
        for t in "us":
            def both(a, b, f=f, read=value_of(t, 16)):
                return sum((f(read(a >> s & 0xffff), read(b >> s & 0xffff)) & 0xffff) << s
                           for s in (0, 16))
            op(f"{name}.{t}16x2 {{d}}, {{a}}, {{b}};", 32, [32] * 2, both)


def carries():
    """Two instructions, of which the second uses the flag that the first leaves."""
    for bits in (32, 64):
        mask, t = (1 << bits) - 1, f"u{bits}"
        op(f"add.cc.{t} {{d}}, {{a}}, {{b}}; addc.{t} {{d}}, {{c}}, {{c}};", bits, [bits] * 3,
           lambda a, b, c, m=mask: 2 * c + (a + b > m) & m)
        op(f"sub.cc.{t} {{d}}, {{a}}, {{b}}; subc.{t} {{d}}, {{c}}, {{a}};", bits, [bits] * 3,
           lambda a, b, c, m=mask: c - a - (a < b) & m)
        op(f"add.cc.{t} {{d}}, {{a}}, {{b}}; addc.cc.{t} {{d}}, {{c}}, {{b}};"
           f" addc.{t} {{d}}, {{d}}, {{d}};", bits, [bits] * 3,
           lambda a, b, c, m=mask: (lambda s: 2 * (s & m) + (s > m) & m)(c + b + (a + b > m)))
        op(f"mad.lo.cc.{t} {{d}}, {{a}}, {{b}}, {{c}}; madc.hi.{t} {{d}}, {{a}}, {{b}}, {{c}};",
           bits, [bits] * 3,
           lambda a, b, c, m=mask, n=bits: (a * b >> n) + c + ((a * b & m) + c > m) & m)
        op(f"mad.lo.cc.{t} {{d}}, {{a}}, {{b}}, {{c}}; madc.hi.cc.{t} {{d}}, {{a}}, {{c}}, {{b}};"
           f" addc.{t} {{d}}, {{d}}, 0;", bits, [bits] * 3,
           lambda a, b, c, m=mask, n=bits: (lambda s: (s & m) + (s > m) & m)(
               (a * c >> n) + b + ((a * b & m) + c > m)))


def bit(value, n):
    return value >> n & 1


def field(bits, is_signed):
    def bfe(a, start, length):
        start, length = start & 255, length & 255
        last = min(start + length - 1, bits - 1)
        fill = 0 if not is_signed or not length else bit(a, last)
        return sum((bit(a, start + i) if i < length and start + i < bits else fill) << i
                   for i in range(bits))
    return bfe


def insert(bits):
    def bfi(a, b, start, length):
        start, length = start & 255, length & 255
        for i in range(min(length, max(bits - start, 0))):
            b = b & ~(1 << (start + i)) | bit(a, i) << (start + i)
        return b
    return bfi


def permuted(a, b, selector):
    pool = [v >> s & 255 for v in (a, b) for s in (0, 8, 16, 24)]
    result = 0
    for i in range(4):
        s = selector >> (4 * i) & 15
        byte = pool[s & 7]
        result |= (0xff * (byte >> 7) if s & 8 else byte) << (8 * i)
    return result


# prmt's modes as a table: the byte of the result that is at each place, by the selector's low bits.
PERMUTED = {
    "f4e": lambda n, i: n + i, "b4e": lambda n, i: n - i & 7, "rc8": lambda n, i: n,
    "ecl": lambda n, i: max(n, i), "ecr": lambda n, i: min(n, i),
    "rc16": lambda n, i: (n & 1) * 2 + (i & 1),
}


def nth_set(mask, base, offset):
    offset = signed(offset, 32)
    if not offset:
        return base if base < 32 and bit(mask, base) else 0xffffffff
    places = range(base, 32) if offset > 0 else range(base, -1, -1)
    found = [i for i in places if bit(mask, i)] if base < 32 else []
    return found[abs(offset) - 1] if len(found) >= abs(offset) else 0xffffffff


def top_bit(bits, is_signed):
    def bfind(a):
        if is_signed and bit(a, bits - 1):
            a = ~a & ((1 << bits) - 1)
        return a.bit_length() - 1 & 0xffffffff
    return bfind


def bits_of_words():
    for bits in (16, 32, 64):
        mask, b = (1 << bits) - 1, f"b{bits}"
        for name, f in (("and", lambda a, c: a & c), ("or", lambda a, c: a | c),
                        ("xor", lambda a, c: a ^ c)):
            op(f"{name}.{b} {{d}}, {{a}}, {{b}};", bits, [bits] * 2, f)
        op(f"not.{b} {{d}}, {{a}};", bits, [bits], lambda a, m=mask: ~a & m)
        op(f"cnot.{b} {{d}}, {{a}};", bits, [bits], lambda a: int(not a))
        op(f"shl.{b} {{d}}, {{a}}, {{b}};", bits, [bits, 32],
           lambda a, n, w=bits, m=mask: a << n & m if n < w else 0)
        op(f"shr.u{bits} {{d}}, {{a}}, {{b}};", bits, [bits, 32],
           lambda a, n, w=bits: a >> n if n < w else 0)
        op(f"shr.s{bits} {{d}}, {{a}}, {{b}};", bits, [bits, 32],
           lambda a, n, w=bits, m=mask: signed(a, w) >> min(n, w) & m)
        op(f"selp.{b} {{d}}, {{a}}, {{b}}, {{c}};", bits, [bits, bits, 0],
           lambda a, c, p: a if p else c)
        op(f"slct.{b}.s32 {{d}}, {{a}}, {{b}}, {{c}};", bits, [bits, bits, 32],
           lambda a, c, s: c if bit(s, 31) else a)
    for bits in (32, 64):
        b = f"b{bits}"
        op(f"popc.{b} {{d}}, {{a}};", 32, [bits], lambda a: a.bit_count())
        op(f"clz.{b} {{d}}, {{a}};", 32, [bits], lambda a, w=bits: w - a.bit_length())
        op(f"brev.{b} {{d}}, {{a}};", bits, [bits],
           lambda a, w=bits: int(format(a, f"0{w}b")[::-1], 2))
        op(f"bfi.{b} {{d}}, {{a}}, {{b}}, {{c}}, {{e}};", bits, [bits, bits, 32, 32], insert(bits))
        for t in "us":
            op(f"bfe.{t}{bits} {{d}}, {{a}}, {{b}}, {{c}};", bits, [bits, 32, 32],
               field(bits, t == "s"))
            find = top_bit(bits, t == "s")
            op(f"bfind.{t}{bits} {{d}}, {{a}};", 32, [bits], find)
            op(f"bfind.shiftamt.{t}{bits} {{d}}, {{a}};", 32, [bits],
               lambda a, f=find, w=bits: w - 1 - f(a) if f(a) < 64 else 0xffffffff)
    words()


def words():
    whole = 0xffffffff
    for table in (0x00, 0x1a, 0x80, 0x96, 0xe8, 0xff):
        op(f"lop3.b32 {{d}}, {{a}}, {{b}}, {{c}}, {table};", 32, [32] * 3,
           lambda a, b, c, t=table: sum(
               bit(t, bit(a, i) * 4 + bit(b, i) * 2 + bit(c, i)) << i for i in range(32)))
    op("lop3.or.b32 {e}|{d}, {a}, {b}, {c}, 128, {f};", 0, [32, 32, 32, 32, 0],
       lambda a, b, c, e, p: int(bool(a & b & c) or p))
    op("fns.b32 {d}, {a}, {b}, {c};", 32, [32] * 3, nth_set)
    for mode, n in (("wrap", lambda n: n & 31), ("clamp", lambda n: min(n, 32))):
        op(f"shf.l.{mode}.b32 {{d}}, {{a}}, {{b}}, {{c}};", 32, [32] * 3,
           lambda a, b, c, n=n: (b << 32 | a) << n(c) >> 32 & whole)
        op(f"shf.r.{mode}.b32 {{d}}, {{a}}, {{b}}, {{c}};", 32, [32] * 3,
           lambda a, b, c, n=n: (b << 32 | a) >> n(c) & whole)
        op(f"bmsk.{mode}.b32 {{d}}, {{a}}, {{b}};", 32, [32] * 2,
           lambda a, b, n=n: ((1 << n(b)) - 1) << n(a) & whole)
        for t in "us":
            op(f"szext.{mode}.{t}32 {{d}}, {{a}}, {{b}};", 32, [32] * 2,
               lambda a, b, n=n, t=t: (lambda k: value_of(t, k)(a & ((1 << k) - 1)) & whole
                                       if k else 0)(n(b)))
    op("prmt.b32 {d}, {a}, {b}, {c};", 32, [32] * 3, permuted)
    for mode, place in PERMUTED.items():
        op(f"prmt.b32.{mode} {{d}}, {{a}}, {{b}}, {{c}};", 32, [32] * 3,
           lambda a, b, c, f=place: permuted(a, b, sum(f(c & 3, i) << (4 * i) for i in range(4))))
    for ta in "us":
        for tb in "us":
            ra, rb = value_of(ta, 8), value_of(tb, 8)
            op(f"dp4a.{ta}32.{tb}32 {{d}}, {{a}}, {{b}}, {{c}};", 32, [32] * 3,
               lambda a, b, c, ra=ra, rb=rb: c + sum(
                   ra(a >> s & 255) * rb(b >> s & 255) for s in (0, 8, 16, 24)) & whole)
            for part, base in (("lo", 0), ("hi", 16)):
                op(f"dp2a.{part}.{ta}32.{tb}32 {{d}}, {{a}}, {{b}}, {{c}};", 32, [32] * 3,
                   lambda a, b, c, ra=value_of(ta, 16), rb=rb, p=base: c + sum(
                       ra(a >> (16 * i) & 0xffff) * rb(b >> (p + 8 * i) & 255)
                       for i in (0, 1)) & whole)


# ---- floating point


def one_nan(width, name):
    """Makes any NaN of {d} the one that Format.nan is, where PTX leaves open which it is."""
    return f" setp.nan.{name} {{x}}, {{d}}, {{d}}; selp.b{width} {{d}}, " \
           f"{FORMATS[name].nan}, {{d}}, {{x}};"


def floating(name, fmt, function, arity, mods="", flush=False, tail=""):
    """function: numbers to bits."""
    width = fmt.bits

    def run(*operands):
        if flush:
            operands = [fmt.flush(v) for v in operands]
        bits = function(*map(fmt.decode, operands))
        # The sign of a NaN, which a number does not have, counts here, too.
        if ".xorsign" in name + mods and not fmt.is_nan(bits):
            bits = bits & ~fmt.sign | (operands[0] ^ operands[1]) & fmt.sign
        return fmt.flush(bits) if flush else bits
    op(f"{name}{mods}.{fmt.name} {{d}}, " + ", ".join("{%s}" % x for x in "abc"[:arity]) + ";"
       + tail, width, [width] * arity, run)


def saturated(fmt, bits):
    number = fmt.decode(bits)
    if number is None or compare(number, (0, 0, 0)) <= 0:
        return 0
    return fmt.encode((0, 1, 0)) if compare(number, (0, 1, 0)) > 0 else bits


def relu(fmt, bits):
    if fmt.is_nan(bits):
        return fmt.nan
    return 0 if bits & fmt.sign else bits


def fused(a, b, c, mode):
    return add(multiply(a, b), c, mode)


ARITHMETIC = {
    "add": (2, lambda mode, a, b: add(a, b, mode)),
    "sub": (2, lambda mode, a, b: add(a, negate(b), mode)),
    "mul": (2, lambda mode, a, b: multiply(a, b)),
    "fma": (3, lambda mode, a, b, c: fused(a, b, c, mode)),
}


def lesser(fmt, greater, nan, xorsign):
    def run(a, b):
        if xorsign:
            a, b = a and (0, *a[1:]), b and (0, *b[1:])
        if a is None or b is None:
            both = a is None and b is None
            if both or nan:
                return fmt.nan
            return fmt.encode(b if a is None else a)
        order = compare(a, b) or b[0] - a[0]
        return fmt.encode(a if (order >= 0) == greater else b)
    return run


def singles_and_doubles():
    for fmt in (F32, F64):
        tail = one_nan(64, "f64") if fmt is F64 else ""
        for name, (arity, f) in ARITHMETIC.items():
            for mod, mode in MODES.items():
                g = (lambda *v, f=f, m=mode, fmt=fmt: fmt.encode(f(m, *v), m))
                floating(name, fmt, g, arity, f".{mod}", tail=tail)
                if fmt is F32:
                    floating(name, fmt, g, arity, f".{mod}.ftz", flush=True)
                    floating(name, fmt, lambda *v, g=g: saturated(F32, g(*v)), arity, f".{mod}.sat")
        for mod, mode in MODES.items():
            floating("div", fmt, lambda a, b, m=mode, fmt=fmt: fmt.encode(divide(a, b), m), 2,
                     f".{mod}", tail=tail)
            floating("rcp", fmt, lambda a, m=mode, fmt=fmt: fmt.encode(divide((0, 1, 0), a), m), 1,
                     f".{mod}", tail=tail)
            floating("sqrt", fmt, lambda a, m=mode, fmt=fmt: fmt.encode(root(a), m), 1, f".{mod}",
                     tail=tail)
        floating("div", F32, lambda a, b: F32.encode(divide(a, b)), 2, ".rn.ftz", flush=True)
        for word, greater in (("min", False), ("max", True)):
            floating(word, fmt, lesser(fmt, greater, False, False), 2, tail=tail)
        clean = one_nan(fmt.bits, fmt.name)
        op(f"abs.{fmt.name} {{d}}, {{a}};" + clean, fmt.bits, [fmt.bits],
           lambda a, fmt=fmt: fmt.nan if fmt.is_nan(a) else a & ~fmt.sign)
        op(f"neg.{fmt.name} {{d}}, {{a}};" + clean, fmt.bits, [fmt.bits],
           lambda a, fmt=fmt: fmt.nan if fmt.is_nan(a) else a ^ fmt.sign)
        op(f"copysign.{fmt.name} {{d}}, {{a}}, {{b}};", fmt.bits, [fmt.bits] * 2,
           lambda a, b, fmt=fmt: a & fmt.sign | b & ~fmt.sign)
        tests(fmt)
    for word, greater in (("min", False), ("max", True)):
        for mods, nan, xorsign in ((".NaN", True, False), (".xorsign.abs", False, True),
                                   (".NaN.xorsign.abs", True, True)):
            floating(word, F32, lesser(F32, greater, nan, xorsign), 2, mods)
            floating(word, F32, lesser(F32, greater, nan, xorsign), 2, ".ftz" + mods, flush=True)
    op("abs.ftz.f32 {d}, {a};" + one_nan(32, "f32"), 32, [32],
       lambda a: F32.nan if F32.is_nan(a) else F32.flush(a) & 0x7fffffff)
    op("slct.f32.f32 {d}, {a}, {b}, {c};", 32, [32] * 3, chosen(lambda c: c))
    op("slct.ftz.f32.f32 {d}, {a}, {b}, {c};", 32, [32] * 3, chosen(F32.flush))
    op("slct.ftz.u64.f32 {d}, {a}, {b}, {c};", 64, [64, 64, 32], chosen(F32.flush))


def chosen(flush):
    def run(a, b, c):
        order = compare(F32.decode(flush(c)), (0, 0, 0))
        return a if order is not None and order >= 0 else b
    return run


def tests(fmt):
    def kind(a):
        number, exponent = fmt.decode(a), a >> fmt.fraction & fmt.top
        return {"finite": number is not None and number[2] is not None,
                "infinite": number is not None and number[2] is None,
                "number": number is not None, "notanumber": number is None,
                "normal": exponent not in (0, fmt.top),
                "subnormal": exponent == 0 and a & ~fmt.sign != 0}
    for word in kind(0):
        op(f"testp.{word}.{fmt.name} {{d}}, {{a}};", 0, [fmt.bits],
           lambda a, w=word: int(kind(a)[w]))


def halves():
    for fmt in (F16, BF16):
        for name, (arity, f) in ARITHMETIC.items():
            half(name + ".rn", fmt, lambda *v, f=f, fmt=fmt: fmt.encode(f("n", *v)), arity)
            if fmt is F16:
                g = (lambda *v, f=f: F16.encode(f("n", *v)))
                half(name + ".rn.ftz", fmt, g, arity, flush=True)
                half(name + ".rn.sat", fmt, lambda *v, g=g: saturated(F16, g(*v)), arity)
        half("fma.rn.relu", fmt,
             lambda a, b, c, fmt=fmt: relu(fmt, fmt.encode(fused(a, b, c, "n"))), 3)
        for word, greater in (("min", False), ("max", True)):
            for mods, nan, xorsign in (("", False, False), (".NaN", True, False),
                                       (".xorsign.abs", False, True),
                                       (".NaN.xorsign.abs", True, True)):
                half(word + mods, fmt, lesser(fmt, greater, nan, xorsign), 2)
                if fmt is F16:
                    half(word + ".ftz" + mods, fmt, lesser(fmt, greater, nan, xorsign), 2,
                         flush=True)
        for name, f in (("abs", lambda a, fmt=fmt: a & ~fmt.sign),
                        ("neg", lambda a, fmt=fmt: a ^ fmt.sign)):
            op(f"{name}.{fmt.name} {{d}}, {{a}};", 16, [16], f)
            op(f"{name}.{fmt.name}x2 {{d}}, {{a}};", 32, [32],
               lambda a, f=f: f(a & 0xffff) | f(a >> 16) << 16)


def half(name, fmt, function, arity, flush=False):
    """On one and on two in a register."""
    floating(name, fmt, function, arity, flush=flush)
    one = OPERATIONS[-1].function
    op(f"{name}.{fmt.name}x2 {{d}}, " + ", ".join("{%s}" % x for x in "abc"[:arity]) + ";", 32,
       [32] * arity,
       lambda *v, f=one: f(*(x & 0xffff for x in v)) | f(*(x >> 16 for x in v)) << 16)


# ---- comparisons

ORDERS = {"eq": (0,), "ne": (-1, 1), "lt": (-1,), "le": (-1, 0), "gt": (1,), "ge": (0, 1)}


def comparisons():
    for t in "u16 u32 u64 s16 s32 s64".split():
        read, bits = value_of(t[0], int(t[1:])), int(t[1:])
        for word, orders in ORDERS.items():
            f = (lambda a, b, r=read, o=orders: int((r(a) > r(b)) - (r(a) < r(b)) in o))
            op(f"setp.{word}.{t} {{d}}, {{a}}, {{b}};", 0, [bits] * 2, f)
        # The last one: with a third predicate, and its complement.
        for word, g in (("and", lambda p, q: p & q), ("or", lambda p, q: p | q),
                        ("xor", lambda p, q: p ^ q)):
            op(f"setp.ge.{word}.{t} {{d}}|{{x}}, {{a}}, {{b}}, {{c}};", 0, [bits, bits, 0],
               lambda a, b, p, f=f, g=g: g(f(a, b), p))
            op(f"setp.ge.{word}.{t} {{x}}|{{d}}, {{a}}, {{b}}, !{{c}};", 0, [bits, bits, 0],
               lambda a, b, p, f=f, g=g: g(1 - f(a, b), 1 - p))
        op(f"set.ge.u32.{t} {{d}}, {{a}}, {{b}};", 32, [bits] * 2,
           lambda a, b, f=f: 0xffffffff * f(a, b))
        op(f"set.ge.f32.{t} {{d}}, {{a}}, {{b}};", 32, [bits] * 2,
           lambda a, b, f=f: 0x3f800000 * f(a, b))
    for word, orders in (("lo", (-1,)), ("ls", (-1, 0)), ("hi", (1,)), ("hs", (0, 1))):
        op(f"setp.{word}.u32 {{d}}, {{a}}, {{b}};", 0, [32] * 2,
           lambda a, b, o=orders: int((a > b) - (a < b) in o))
    for fmt, mod in ((F16, ""), (F16, ".ftz"), (BF16, ""), (F32, ""), (F32, ".ftz"), (F64, "")):
        float_comparisons(fmt, mod)
    for name, f in (("and", lambda p, q: p & q), ("or", lambda p, q: p | q),
                    ("xor", lambda p, q: p ^ q)):
        op(f"{name}.pred {{d}}, {{a}}, {{b}};", 0, [0, 0], f)
    op("not.pred {d}, {a};", 0, [0], lambda p: 1 - p)


def float_comparisons(fmt, mod):
    def relation(orders, unordered):
        def run(a, b):
            if mod:
                a, b = fmt.flush(a), fmt.flush(b)
            order = compare(fmt.decode(a), fmt.decode(b))
            return int(unordered if order is None else order in orders)
        return run
    relations = {word: relation(o, False) for word, o in ORDERS.items()}
    relations.update({word + "u": relation(o, True) for word, o in ORDERS.items()})
    relations["num"], relations["nan"] = relation((-1, 0, 1), False), relation((), True)
    for word, f in relations.items():
        op(f"setp.{word}{mod}.{fmt.name} {{d}}, {{a}}, {{b}};", 0, [fmt.bits] * 2, f)
        one = fmt.encode((0, 1, 0))
        if fmt.bits > 16:
            op(f"set.{word}{mod}.u32.{fmt.name} {{d}}, {{a}}, {{b}};", 32, [fmt.bits] * 2,
               lambda a, b, f=f: 0xffffffff * f(a, b))
            continue
        op(f"set.{word}{mod}.{fmt.name}.{fmt.name} {{d}}, {{a}}, {{b}};", 16, [16] * 2,
           lambda a, b, f=f, one=one: one * f(a, b))
        for t, true in ((fmt.name + "x2", one), ("u32", 0xffff)):
            op(f"set.{word}{mod}.{t}.{fmt.name}x2 {{d}}, {{a}}, {{b}};", 32, [32] * 2,
               lambda a, b, f=f, t=true: t * f(a & 0xffff, b & 0xffff)
               | t * f(a >> 16, b >> 16) << 16)
        for text, shift in (("{d}|{x}", 0), ("{x}|{d}", 16)):
            op(f"setp.{word}{mod}.{fmt.name}x2 {text}, {{a}}, {{b}};", 0, [32] * 2,
               lambda a, b, f=f, s=shift: f(a >> s & 0xffff, b >> s & 0xffff))


for part in (integers, carries, bits_of_words, singles_and_doubles, halves, comparisons):
    part()
