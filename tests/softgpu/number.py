"""Floating-point formats by whole numbers: what a value is, exactly, and what it becomes when it is
rounded. A number is NaN (None), or (sign, mantissa, exponent): mantissa * 2**exponent, or
infinity where the exponent is None."""


class Format:
    def __init__(self, name, exponent_bits, fraction_bits, infinity=True):
        self.name, self.fraction = name, fraction_bits
        self.bias = (1 << (exponent_bits - 1)) - 1
        self.bits = 1 + exponent_bits + fraction_bits
        self.top = (1 << exponent_bits) - 1
        self.infinity = self.top << fraction_bits if infinity else None
        self.largest = self.infinity - 1 if infinity else (1 << (self.bits - 1)) - 2
        self.sign = 1 << (self.bits - 1)
        self.nan = self.sign - 1

    def decode(self, bits):
        sign, magnitude = bits >> (self.bits - 1) & 1, bits & (self.sign - 1)
        if magnitude == self.infinity:
            return sign, 0, None
        if magnitude > self.largest:
            return None
        exponent, fraction = magnitude >> self.fraction, magnitude & ((1 << self.fraction) - 1)
        if exponent:
            fraction |= 1 << self.fraction
        return sign, fraction, max(exponent, 1) - self.bias - self.fraction

    def encode(self, number, mode="n", satfinite=False):
        """The bits of a number rounded: n nearest even, a nearest away, z m p towards 0, -inf, +inf."""
        if number is None:
            return self.nan
        sign, mantissa, exponent = number
        if exponent is None:
            if satfinite:
                return sign * self.sign | self.largest
            return sign * self.sign | (self.infinity if self.infinity else self.nan)
        if not mantissa:
            return sign * self.sign
        # The exponent of the last bit that can be kept.
        last = max(exponent + mantissa.bit_length() - 1 - self.fraction, 1 - self.bias - self.fraction)
        if exponent >= last:
            kept, rest, half = mantissa << (exponent - last), 0, 1
        else:
            shift = last - exponent
            kept, rest, half = mantissa >> shift, mantissa & ((1 << shift) - 1), 1 << (shift - 1)
        if mode == "n":
            up = rest > half or (rest == half and kept & 1)
        elif mode == "a":
            up = rest >= half
        else:
            up = rest and mode == ("m" if sign else "p")
        kept += bool(up)
        if kept >> (self.fraction + 1):
            kept, last = kept >> 1, last + 1
        if kept >> self.fraction:
            biased = last + self.bias + self.fraction
            bits = biased << self.fraction | kept & ((1 << self.fraction) - 1)
        else:
            bits = kept
        if bits > self.largest:
            inward = mode == "z" or mode == ("p" if sign else "m")
            bits = self.largest if satfinite or inward else self.infinity or self.nan
        return sign * self.sign | bits

    def flush(self, bits):
        """A subnormal becomes zero of its sign."""
        return bits if bits >> self.fraction & self.top else bits & self.sign

    def is_nan(self, bits):
        return self.decode(bits) is None


F16, BF16 = Format("f16", 5, 10), Format("bf16", 8, 7)
F32, F64 = Format("f32", 8, 23), Format("f64", 11, 52)
TF32 = Format("tf32", 8, 10)
E4M3, E5M2 = Format("e4m3", 4, 3, infinity=False), Format("e5m2", 5, 2)


def negate(a):
    return a and (1 - a[0], a[1], a[2])


def add(a, b, mode="n"):
    if a is None or b is None:
        return None
    if a[2] is None or b[2] is None:
        if a[2] is None and b[2] is None and a[0] != b[0]:
            return None
        return a if a[2] is None else b
    e = min(a[2], b[2])
    total = ((-1) ** a[0] * a[1] << (a[2] - e)) + ((-1) ** b[0] * b[1] << (b[2] - e))
    if not total:
        # Zeros of one sign keep it; of two signs, or a difference: +0, and -0 towards -inf.
        same = a[0] if a[0] == b[0] else int(mode == "m")
        return (same if not a[1] and not b[1] else int(mode == "m")), 0, 0
    return int(total < 0), abs(total), e


def multiply(a, b):
    if a is None or b is None:
        return None
    sign = a[0] ^ b[0]
    if a[2] is None or b[2] is None:
        finite = [x for x in (a, b) if x[2] is not None]
        return None if finite and not finite[0][1] else (sign, 0, None)
    return sign, a[1] * b[1], a[2] + b[2]


def divide(a, b):
    """With enough bits, and one more that tells of a remainder, to be rounded to any format here."""
    if a is None or b is None:
        return None
    sign = a[0] ^ b[0]
    if a[2] is None:
        return None if b[2] is None else (sign, 0, None)
    if b[2] is None:
        return sign, 0, 0
    if not b[1]:
        return (sign, 0, None) if a[1] else None
    shift = 120 + b[1].bit_length()
    quotient, rest = divmod(a[1] << shift, b[1])
    return sign, quotient << 1 | bool(rest), a[2] - b[2] - shift - 1


def root(a):
    from math import isqrt
    if a is None or (a[0] and (a[1] or a[2] is None)):
        return None
    if a[2] is None or not a[1]:
        return a
    mantissa, exponent = (a[1], a[2]) if a[2] % 2 == 0 else (a[1] << 1, a[2] - 1)
    mantissa, exponent = mantissa << 240, exponent - 240
    r = isqrt(mantissa)
    return 0, r << 1 | (r * r != mantissa), exponent // 2 - 1


def compare(a, b):
    """-1, 0, 1, or None where they have no order."""
    if a is None or b is None:
        return None

    def key(x):
        if x[2] is None:
            return (2 if not x[0] else -2), 0
        return (0 if not x[1] else (-1) ** x[0]), x

    (ka, va), (kb, vb) = key(a), key(b)
    if ka != kb or not va or not vb or ka == 0:
        return (ka > kb) - (ka < kb)
    e = min(va[2], vb[2])
    x, y = (-1) ** va[0] * va[1] << (va[2] - e), (-1) ** vb[0] * vb[1] << (vb[2] - e)
    return (x > y) - (x < y)


def to_integral(a, mode):
    """Rounded to a whole number, as a number of the same kind."""
    if a is None or a[2] is None or a[2] >= 0:
        return a
    sign, mantissa, shift = a[0], a[1], -a[2]
    whole, rest, half = mantissa >> shift, mantissa & ((1 << shift) - 1), 1 << (shift - 1)
    up = {"n": rest > half or (rest == half and whole & 1), "z": False,
          "m": sign and rest, "p": not sign and rest}[mode]
    return sign, whole + bool(up), 0
