"""More of operations.py: cvt between all types, and the video instructions."""
from number import BF16, E4M3, E5M2, F16, F32, F64, TF32, to_integral
from operations import (FORMATS, MODES, OPERATIONS, bit, clamp, limits, one_nan, op, relu, saturated,
                        signed, value_of)

INTEGERS = "u8 u16 u32 u64 s8 s16 s32 s64".split()
INTEGRAL = {"rni": "n", "rzi": "z", "rmi": "m", "rpi": "p"}


def register(bits):
    return 16 if bits == 8 else bits


def mask(bits):
    return (1 << bits) - 1


def whole(number):
    """The integer that an integral number is."""
    return (-1) ** number[0] * (number[1] << number[2])


def between_integers():
    for to in INTEGERS:
        for source in INTEGERS:
            kt, wt, ks, ws = to[0], int(to[1:]), source[0], int(source[1:])
            rt, rs = register(wt), register(ws)
            for sat in ("", ".sat"):
                def run(a, kt=kt, wt=wt, ks=ks, ws=ws, rt=rt, sat=sat):
                    value = value_of(ks, ws)(a & mask(ws))
                    value = clamp(value, *limits(kt, wt)) if sat else value
                    # A narrow result is extended to its register by its own sign.
                    return value_of(kt, wt)(value & mask(wt)) & mask(rt)
                op(f"cvt{sat}.{to}.{source} {{d}}, {{a}};", rt, [rs], run)
    for to in ("u16", "s16", "u8", "s8"):
        bits = int(to[1:])
        for source in ("u32", "s32"):
            read = value_of(source[0], 32)

            def packed(a, b, c=0, to=to, bits=bits, read=read):
                a, b = (clamp(read(v), *limits(to[0], bits)) & mask(bits) for v in (a, b))
                return (c << (2 * bits) | a << bits | b) & mask(32)
            if bits == 16:
                op(f"cvt.pack.sat.{to}.{source} {{d}}, {{a}}, {{b}};", 32, [32] * 2, packed)
            else:
                op(f"cvt.pack.sat.{to}.{source}.b32 {{d}}, {{a}}, {{b}}, {{c}};", 32, [32] * 3,
                   packed)


def float_to_integer():
    for fmt in (F16, BF16, F32, F64):
        for to in INTEGERS:
            bits, reg = int(to[1:]), register(int(to[1:]))
            for mod, mode in INTEGRAL.items():
                for ftz in ("", ".ftz") if fmt is F32 else ("",):
                    def run(a, fmt=fmt, mode=mode, to=to, bits=bits, reg=reg, ftz=ftz):
                        number = fmt.decode(fmt.flush(a) if ftz else a)
                        low, high = limits(to[0], bits)
                        if number is None:
                            value = 1 << (bits - 1) if fmt is F64 or bits == 64 else 0
                        elif number[2] is None:
                            value = low if number[0] else high
                        else:
                            value = clamp(whole(to_integral(number, mode)), low, high)
                        return value_of(to[0], bits)(value & mask(bits)) & mask(reg)
                    op(f"cvt.{mod}{ftz}.{to}.{fmt.name} {{d}}, {{a}};", reg, [fmt.bits], run)


def integer_to_float():
    for fmt in (F16, BF16, F32, F64):
        for source in INTEGERS:
            bits = int(source[1:])
            for mod, mode in MODES.items():
                op(f"cvt.{mod}.{fmt.name}.{source} {{d}}, {{a}};", fmt.bits, [register(bits)],
                   lambda a, fmt=fmt, mode=mode, k=source[0], n=bits: (
                       lambda v: fmt.encode((int(v < 0), abs(v), 0), mode))(
                           value_of(k, n)(a & mask(n))))
        op(f"cvt.rn.sat.{fmt.name}.s32 {{d}}, {{a}};" if fmt is not BF16 else
           f"cvt.rn.{fmt.name}.s32 {{d}}, {{a}};", fmt.bits, [32],
           lambda a, fmt=fmt: (lambda v: fmt.encode(
               (int(v < 0), abs(v) if fmt is BF16 else int(v > 0), 0)) if fmt is BF16 or v > 0
                               else 0)(signed(a, 32)))


def between_floats():
    for source in (F16, BF16, F32, F64):
        for to in (F16, BF16, F32, F64):
            if source is to:
                same_float(to)
                continue
            narrows = to.bits < source.bits or (to.bits == 16 and source.bits == 16)
            tail = one_nan(to.bits, to.name) if to.bits > 16 else ""
            for mod, mode in MODES.items() if narrows else (("", "n"),):
                text = f"cvt{'.' + mod if mod else ''}"
                f = (lambda a, s=source, t=to, m=mode: t.encode(s.decode(a), m))
                op(f"{text}.{to.name}.{source.name} {{d}}, {{a}};" + tail, to.bits, [source.bits], f)
                if to is not BF16:
                    op(f"{text}.sat.{to.name}.{source.name} {{d}}, {{a}};", to.bits, [source.bits],
                       lambda a, f=f, t=to: saturated(t, f(a)))
                if F32 in (source, to):
                    op(f"{text}.ftz.{to.name}.{source.name} {{d}}, {{a}};" + tail, to.bits,
                       [source.bits],
                       lambda a, f=f, s=source, t=to: (lambda r: r if s is F32 else F32.flush(r))(
                           f(F32.flush(a) if s is F32 else a)))


def same_float(fmt):
    tail = one_nan(fmt.bits, fmt.name) if fmt.bits > 16 else ""
    for mod, mode in INTEGRAL.items():
        f = (lambda a, m=mode: fmt.encode(to_integral(fmt.decode(a), m)))
        op(f"cvt.{mod}.{fmt.name}.{fmt.name} {{d}}, {{a}};" + tail, fmt.bits, [fmt.bits], f)
        if fmt is F32:
            op(f"cvt.{mod}.ftz.f32.f32 {{d}}, {{a}};" + tail, 32, [32],
               lambda a, f=f: f(fmt.flush(a)))
    if fmt is not BF16:
        op(f"cvt.sat.{fmt.name}.{fmt.name} {{d}}, {{a}};", fmt.bits, [fmt.bits],
           lambda a: saturated(fmt, a))


def to_short():
    for fmt in (F16, BF16):
        for mod, mode in (("rn", "n"), ("rz", "z")):
            for words in ("", ".relu", ".satfinite", ".relu.satfinite"):
                mods = "." + mod + words
                f = short(fmt, mode, words)
                op(f"cvt{mods}.{fmt.name}.f32 {{d}}, {{a}};", 16, [32], f)
                op(f"cvt{mods}.{fmt.name}x2.f32 {{d}}, {{a}}, {{b}};", 32, [32] * 2,
                   lambda a, b, f=f: f(a) << 16 | f(b))
    for mods, mode in ((".rna", "a"), (".rn", "n"), (".rz", "z"), (".rn.relu", "n"),
                       (".rz.relu", "z"), (".rna.satfinite", "a")):
        f = short(TF32, mode, mods)
        op(f"cvt{mods}.tf32.f32 {{d}}, {{a}};", 32, [32],
           lambda a, f=f: 0x7fffffff if f(a) == TF32.nan else f(a) << 13)
    for fmt, name in ((E4M3, "e4m3x2"), (E5M2, "e5m2x2")):
        for words in ("", ".relu"):
            f = short(fmt, "n", ".satfinite" + words)
            g = short(fmt, "n", ".satfinite" + words, F16)
            op(f"cvt.rn.satfinite{words}.{name}.f32 {{d}}, {{a}}, {{b}};", 16, [32] * 2,
               lambda a, b, f=f: f(a) << 8 | f(b))
            op(f"cvt.rn.satfinite{words}.{name}.f16x2 {{d}}, {{a}};", 16, [32],
               lambda a, f=g: f(a >> 16) << 8 | f(a & 0xffff))
            h = (lambda a, fmt=fmt, w=words: (lambda r: relu(F16, r) if w else r)(
                F16.encode(fmt.decode(a))))
            op(f"cvt.rn{words}.f16x2.{name} {{d}}, {{a}};", 32, [16],
               lambda a, f=h: f(a >> 8) << 16 | f(a & 255))


def short(fmt, mode, words, source=F32):
    def run(a):
        number = source.decode(a)
        if number and number[0] and ".relu" in words:
            return 0
        return fmt.encode(number, mode, ".satfinite" in words)
    return run


# ---- video


def average(a, b):
    return a + b + (a + b >= 0) >> 1


VIDEO = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "absdiff": lambda a, b: abs(a - b),
         "min": min, "max": max, "avrg": average}
COMPARES = {"eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b,
            "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b}
SECOND = {"add": lambda d, r, c: r + c & mask(32),
          "min": lambda d, r, c: min(r, c, key=value_of(d, 32)),
          "max": lambda d, r, c: max(r, c, key=value_of(d, 32))}


def element(value, name, kind):
    """.b2 or .h1 of a value, or all of it."""
    bits = {"": 32, "b": 8, "h": 16}[name[:1]]
    return value_of(kind, bits)(value >> (bits * int(name[1:] or 0)) & mask(bits))


def scalar_video():
    parts = (("", "", ""), ("b1", "h1", ""), ("h0", "b3", ""), ("", "b0", "h1"), ("", "", "b2"))
    types = (("u", "u", "u"), ("s", "s", "s"), ("s", "u", "s"), ("u", "s", "s"))
    for name, f in list(VIDEO.items())[:5]:
        for d, a, b in types:
            for pa, pb, pd in parts:
                for sat in ("", ".sat"):
                    scalar(f"v{name}.{d}32.{a}32.{b}32{sat}", f, d, a, b, pa, pb, pd, sat)
            for second in SECOND:
                scalar(f"v{name}.{d}32.{a}32.{b}32.sat.{second}", f, d, a, b, "", "", "", ".sat",
                       second)
    for mode, n in (("wrap", lambda n: n & 31), ("clamp", lambda n: min(n, 32))):
        for a in "us":
            for sat in ("", ".sat"):
                scalar(f"vshl.{a}32.{a}32.u32{sat}.{mode}", lambda a, b, n=n: a << n(b), a, a, "u",
                       "", "", "", sat)
            scalar(f"vshr.{a}32.{a}32.u32.{mode}", lambda a, b, n=n: a >> n(b), a, a, "u", "h1",
                   "b0", "", "")
    for word, f in COMPARES.items():
        scalar(f"vset.s32.u32.{word}", lambda a, b, f=f: int(f(a, b)), "u", "s", "u", "", "", "", "")
        scalar(f"vset.u32.u32.{word}.add", lambda a, b, f=f: int(f(a, b)), "u", "u", "u", "b1", "b2",
               "", "", "add")


def scalar(text, f, kd, ka, kb, pa, pb, pd, sat, second=""):
    bits = {"": 32, "b": 8, "h": 16}[pd[:1]]
    place = bits * int(pd[1:] or 0)

    def run(a, b, c=0):
        result = f(element(a, pa, ka), element(b, pb, kb))
        result = clamp(result, *limits(kd, bits)) if sat else result
        if second:
            return SECOND[second](kd, result & mask(32), c)
        if pd:
            return c & ~(mask(bits) << place) & mask(32) | (result & mask(bits)) << place
        return result & mask(32)
    names = ["{d}" + ("." + pd if pd else ""), "{a}" + ("." + pa if pa else ""),
             "{b}" + ("." + pb if pb else "")] + (["{c}"] if pd or second else [])
    op(text + " " + ", ".join(names) + ";", 32, [32] * (len(names) - 1), run)


def vector_video():
    selections = {2: (("", "", ""), ("h23", "h01", "h0"), ("h12", "h33", "h10")),
                  4: (("", "", ""), ("b7654", "b0123", "b20"), ("b0246", "b7531", "b3210"))}
    for n in (2, 4):
        for name, f in VIDEO.items():
            for d, a, b in (("u", "u", "u"), ("s", "s", "s"), ("u", "s", "s")):
                types = f"{d}32.{a}32.{b}32"
                for selection in selections[n]:
                    for tail in ("", ".sat", ".add"):
                        vector(f"v{name}{n}.{types}{tail}", n, f, d, a, b, selection, tail)
        for word, f in COMPARES.items():
            for tail in ("", ".add"):
                vector(f"vset{n}.u32.s32.{word}{tail}", n, lambda a, b, f=f: int(f(a, b)), "u", "u",
                       "s", selections[n][1], tail)


def vector(text, n, f, kd, ka, kb, selection, tail):
    bits = 32 // n
    pick = [selection[i][:0:-1] or "".join(str(k + i * n) for k in range(n)) for i in (0, 1)]
    chosen = [int(k) for k in selection[2][1:]] or list(range(n))

    def run(a, b, c):
        pool = [v >> (bits * i) & mask(bits) for v in (a, b) for i in range(n)]
        result = c
        for i in chosen:
            value = f(value_of(ka, bits)(pool[int(pick[0][i])]),
                      value_of(kb, bits)(pool[int(pick[1][i])]))
            if tail == ".sat":
                value = clamp(value, *limits(kd, bits))
            if tail == ".add":
                result = result + value & mask(32)
            else:
                result = result & ~(mask(bits) << (bits * i)) | (value & mask(bits)) << (bits * i)
        return result
    names = [f"{{{x}}}" + ("." + s if s else "") for x, s in zip("dab", (selection[2], *selection))]
    op(text + " " + ", ".join(names) + ", {c};", 32, [32] * 3, run)


for part in (between_integers, float_to_integer, integer_to_float, between_floats, to_short,
             scalar_video, vector_video):
    part()
