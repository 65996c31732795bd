#!/usr/bin/env python3
"""Expected values of the arithmetic cases, by exact arithmetic: integers and fractions of unbounded size, rounded once.

    tests/ptx/reference.py            writes the `in` and `out` lines of every case listed here
    tests/ptx/reference.py --check    fails if a file holds anything else

Knows the formulas of the PTX ISA manual and IEEE 754, and nothing of Margay. Standard library only.
"""

import math
import random
import re
import struct
import sys
from fractions import Fraction
from itertools import product
from pathlib import Path

HERE = Path(__file__).resolve().parent
CASES = {}


def case(name):
    def register(function):
        CASES[name] = function
        return function

    return register


class Lines:
    """Collects the header lines of a case, in order of parameters."""

    def __init__(self):
        self.lines = []

    def put(self, role, name, ty, values, extra=""):
        words = compact([v if isinstance(v, str) else text(ty, v) for v in values])
        rows, row = [], f"// {role} {name}: {ty}{extra} ="
        for word in words:
            if len(row) + 1 + len(word) > 116:
                rows.append(row)
                row = "//    "
            row += " " + word
        rows.append(row)
        self.lines += rows

    def given(self, name, ty, values):
        self.put("in", name, ty, values)

    def expect(self, name, ty, values, extra=""):
        self.put("out", name, ty, values, extra)


def compact(words):
    """`7*9` for runs, `(0 1 2)*9` for a sequence that the list repeats from its start."""
    best, times = 0, 1
    for period in range(2, len(words) // 2 + 1):
        k = 1
        while words[k * period : (k + 1) * period] == words[:period]:
            k += 1
        if k > 2 and k * period > best * times:
            best, times = period, k
    if len(set(words[:best])) > 1:
        first = runs(words[:best])
        first[0], first[-1] = "(" + first[0], first[-1] + f")*{times}"
        return first + runs(words[best * times :])
    return runs(words)


def runs(words):
    out = []
    for word in words:
        if out and out[-1][0] == word:
            out[-1][1] += 1
        else:
            out.append([word, 1])
    return [w for word, n in out for w in ([f"{word}*{n}"] if n > 2 else [word] * n)]


def text(ty, value):
    """Signed and small numbers in decimal, patterns in hex, floats by their bits."""
    n = int(ty[1:]) if ty[0] != "b" or ty[1] != "f" else 16
    if ty[0] in "fb" or abs(value) >= 10000:
        return f"0x{value & ((1 << n) - 1):0{n // 4}x}"
    return str(value)


# Integers.


def u(n, x):
    return x & ((1 << n) - 1)


def s(n, x):
    x = u(n, x)
    return x - (1 << n) if x >> (n - 1) else x


def clamp(x, low, high):
    return max(low, min(high, x))


def edges(n):
    top = 1 << (n - 1)
    return [0, 1, 2, 7, top - 1, top, top + 1, 2 * top - 2, 2 * top - 1]


def mixed(n, count, seed):
    """Pseudo-random patterns: a multiplicative congruence, high bits."""
    out, x = [], seed
    for _ in range(count):
        x = (x * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        y = (x * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        out.append(((x >> 32) << 32 | y >> 32) >> (64 - n))
    return out


def columns(rows):
    return [list(c) for c in zip(*rows)]


def pairs(n, count=15):
    rows = list(product(edges(n), repeat=2))
    rows += list(zip(mixed(n, count, 1), mixed(n, count, 2)))
    return columns(rows)


# Floats: (exponent bits, fraction bits).
FORMATS = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}
NAN = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF}


def inf(ty, sign=0):
    e, f = FORMATS[ty]
    return sign << (e + f) | ((1 << e) - 1) << f


def is_nan(ty, bits):
    return bits & (inf(ty, 1) ^ inf(ty) ^ ((1 << sum(FORMATS[ty])) - 1)) & ~(1 << sum(FORMATS[ty])) > inf(ty)


def sign_of(ty, bits):
    return bits >> sum(FORMATS[ty]) & 1


def is_inf(ty, bits):
    return bits in (inf(ty), inf(ty, 1))


def value(ty, bits):
    """The exact value of a finite pattern."""
    e, f = FORMATS[ty]
    exponent, fraction = bits >> f & ((1 << e) - 1), bits & ((1 << f) - 1)
    bias = (1 << (e - 1)) - 1
    if exponent == 0:
        magnitude = Fraction(fraction) * Fraction(2) ** (1 - bias - f)
    else:
        magnitude = Fraction((1 << f) + fraction) * Fraction(2) ** (exponent - bias - f)
    return -magnitude if sign_of(ty, bits) else magnitude


def log2_floor(x):
    n = x.numerator.bit_length() - x.denominator.bit_length()
    return n if Fraction(2) ** n <= x else n - 1


def nearest(q, mode, negative):
    """A fraction to an integer."""
    whole = math.floor(q)
    rest = q - whole
    if rest == 0:
        return whole
    if mode == "rn":
        return whole + (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole & 1))
    if mode == "rna":
        return whole + (rest >= Fraction(1, 2))
    return whole + (mode == ("rm" if negative else "rp"))


def rounded(ty, x, mode="rn", zero=0, ftz=False):
    """An exact value to bits; `zero` is the sign that an exact zero gets."""
    e, f = FORMATS[ty]
    if x == 0:
        return zero << (e + f)
    negative = x < 0
    magnitude, bias = abs(x), (1 << (e - 1)) - 1
    exponent = max(log2_floor(magnitude), 1 - bias)
    units = nearest(magnitude / Fraction(2) ** (exponent - f), mode, negative)
    if units >> (f + 1):
        units, exponent = units >> 1, exponent + 1
    bits = units if units >> f == 0 else (exponent + bias) << f | (units & ((1 << f) - 1))
    if bits >= inf(ty):
        away = mode in ("rn", "rna") or mode == ("rm" if negative else "rp")
        bits = inf(ty) if away else inf(ty) - 1
    if ftz and bits >> f == 0:
        bits = 0
    return negative << (e + f) | bits


def flush(ty, bits):
    """Subnormal to zero of its sign."""
    e, f = FORMATS[ty]
    return bits if bits >> f & ((1 << e) - 1) else bits & 1 << (e + f)


def saturate(ty, bits):
    """To [0, 1]; NaN to +0."""
    one = rounded(ty, Fraction(1))
    if is_nan(ty, bits) or sign_of(ty, bits):
        return 0
    return min(bits, one)


def nan_of(ty):
    return "nan" if ty == "f64" else NAN[ty]


def fma(ty, a, b, c, mode="rn", ftz=False):
    if ftz:
        a, b, c = (flush(ty, x) for x in (a, b, c))
    if any(is_nan(ty, x) for x in (a, b, c)):
        return nan_of(ty)
    sign = sign_of(ty, a) ^ sign_of(ty, b)
    zero_times_inf = (is_inf(ty, a) and value(ty, b) == 0) if is_inf(ty, a) and not is_inf(ty, b) else (
        is_inf(ty, b) and not is_inf(ty, a) and value(ty, a) == 0)
    if zero_times_inf:
        return nan_of(ty)
    if is_inf(ty, a) or is_inf(ty, b):
        return nan_of(ty) if is_inf(ty, c) and sign_of(ty, c) != sign else inf(ty, sign)
    if is_inf(ty, c):
        return c
    product_, addend = value(ty, a) * value(ty, b), value(ty, c)
    if product_ + addend == 0:
        # IEEE 754 6.3: equal signs keep theirs (an exactly zero product has one, too); otherwise −0 only downwards.
        same = sign == sign_of(ty, c)
        zero = sign if same and product_ == 0 and addend == 0 else int(mode == "rm")
        return rounded(ty, Fraction(0), zero=zero)
    return rounded(ty, product_ + addend, mode, ftz=ftz)


def add(ty, a, b, mode="rn", ftz=False):
    return fma(ty, a, rounded(ty, Fraction(1)), b, mode, ftz)


def mul(ty, a, b, mode="rn", ftz=False):
    if ftz:
        a, b = flush(ty, a), flush(ty, b)
    if is_nan(ty, a) or is_nan(ty, b):
        return nan_of(ty)
    sign = sign_of(ty, a) ^ sign_of(ty, b)
    if is_inf(ty, a) or is_inf(ty, b):
        other = b if is_inf(ty, a) else a
        return nan_of(ty) if not is_inf(ty, other) and value(ty, other) == 0 else inf(ty, sign)
    return rounded(ty, value(ty, a) * value(ty, b), mode, sign, ftz)


def div(ty, a, b, mode="rn", ftz=False):
    if ftz:
        a, b = flush(ty, a), flush(ty, b)
    sign = sign_of(ty, a) ^ sign_of(ty, b)
    if is_nan(ty, a) or is_nan(ty, b) or (is_inf(ty, a) and is_inf(ty, b)):
        return nan_of(ty)
    if is_inf(ty, a):
        return inf(ty, sign)
    if is_inf(ty, b):
        return rounded(ty, Fraction(0), zero=sign)
    if value(ty, b) == 0:
        return nan_of(ty) if value(ty, a) == 0 else inf(ty, sign)
    return rounded(ty, value(ty, a) / value(ty, b), mode, sign, ftz)


def sqrt(ty, a, mode="rn", ftz=False):
    if ftz:
        a = flush(ty, a)
    if is_nan(ty, a) or (sign_of(ty, a) and (is_inf(ty, a) or value(ty, a) != 0)):
        return nan_of(ty)
    if is_inf(ty, a) or value(ty, a) == 0:
        return a
    x = value(ty, a)
    # Scaled so that the root has far more bits than the format; a bit below them says whether there is more.
    shift = 1300
    scaled = x * Fraction(2) ** (2 * shift)
    assert scaled.denominator == 1
    root = math.isqrt(scaled.numerator)
    exact = root * root == scaled.numerator
    return rounded(ty, Fraction(2 * root + (0 if exact else 1)) / Fraction(2) ** (shift + 1), mode, ftz=ftz)


def hexes(ty, *words):
    """Patterns from decimal numbers and names."""
    names = {
        "min": 1 << FORMATS[ty][1],
        "sub": (1 << FORMATS[ty][1]) - 1,
        "tiny": 1,
        "max": inf(ty) - 1,
        "inf": inf(ty),
        "nan": inf(ty) | 1 << (FORMATS[ty][1] - 1) | (3 if ty != "f64" else 0),
        "snan": inf(ty) | 1,
        "eps": rounded(ty, Fraction(2) ** -FORMATS[ty][1]),
        "half_eps": rounded(ty, Fraction(2) ** -(FORMATS[ty][1] + 1)),
        "one_up": rounded(ty, Fraction(1)) + 1,
        "one_down": rounded(ty, Fraction(1)) - 1,
    }
    out = []
    for word in words:
        sign = word.startswith("-")
        body = word.lstrip("-")
        bits = names[body] if body in names else rounded(ty, Fraction(body))
        out.append(bits | sign << sum(FORMATS[ty]))
    return out


def samples(ty, count, seed):
    """Finite patterns with exponents near 1, so that operations round rather than overflow."""
    e, f = FORMATS[ty]
    bias, out = (1 << (e - 1)) - 1, []
    for x in mixed(64, count, seed):
        exponent = bias + (x >> 56) % 9 - 4
        out.append((x >> 63) << (e + f) | exponent << f | x & ((1 << f) - 1))
    return out


SPECIAL = "0 -0 1 -1 one_up one_down min -min sub tiny -tiny max -max inf -inf half_eps 3".split()
MODES = ("rn", "rz", "rm", "rp")


# integer/


@case("integer/add_carry")
def _(w):
    a0, b0 = pairs(32)
    a1, b1 = list(reversed(a0)), b0[40:] + b0[:40]
    total = [(x0 | x1 << 32) + (y0 | y1 << 32) for x0, x1, y0, y1 in zip(a0, a1, b0, b1)]
    for name, values in zip(("a0", "a1", "b0", "b1"), (a0, a1, b0, b1)):
        w.given(name, "u32", values)
    w.expect("s0", "u32", [u(32, t) for t in total])
    w.expect("s1", "u32", [u(32, t >> 32) for t in total])
    w.expect("carry", "u32", [t >> 64 for t in total])


@case("integer/sub_borrow")
def _(w):
    a0, b0 = pairs(32)
    a1, b1 = list(reversed(a0)), b0[40:] + b0[:40]
    total = [(x0 | x1 << 32) - (y0 | y1 << 32) for x0, x1, y0, y1 in zip(a0, a1, b0, b1)]
    for name, values in zip(("a0", "a1", "b0", "b1"), (a0, a1, b0, b1)):
        w.given(name, "u32", values)
    w.expect("d0", "u32", [u(32, t) for t in total])
    w.expect("d1", "u32", [u(32, t >> 32) for t in total])
    w.expect("borrow", "s32", [t >> 64 for t in total])


@case("integer/mad_carry")
def _(w):
    a, b = pairs(64)
    parts = lambda v: ([u(32, x) for x in v], [x >> 32 for x in v])
    (a0, a1), (b0, b1) = parts(a), parts(b)
    total = [x * y for x, y in zip(a, b)]
    for name, values in zip(("a0", "a1", "b0", "b1"), (a0, a1, b0, b1)):
        w.given(name, "u32", values)
    for i in range(4):
        w.expect(f"p{i}", "u32", [u(32, t >> 32 * i) for t in total])


@case("integer/carry_64")
def _(w):
    a, b = pairs(64)
    w.given("a", "u64", a)
    w.given("b", "u64", b)
    w.expect("sum", "u64", [u(64, x + y) for x, y in zip(a, b)])
    w.expect("carry", "u64", [(x + y) >> 64 for x, y in zip(a, b)])
    w.expect("difference", "u64", [u(64, x - y) for x, y in zip(a, b)])
    w.expect("borrow", "s64", [(x - y) >> 64 for x, y in zip(a, b)])


@case("integer/mul_32")
def _(w):
    a, b = pairs(32)
    w.given("a", "u32", a)
    w.given("b", "u32", b)
    unsigned = [x * y for x, y in zip(a, b)]
    signed = [s(32, x) * s(32, y) for x, y in zip(a, b)]
    w.expect("lo", "u32", [u(32, p) for p in unsigned])
    w.expect("hi_u", "u32", [u(32, p >> 32) for p in unsigned])
    w.expect("hi_s", "u32", [u(32, p >> 32) for p in signed])
    w.expect("wide_u", "u64", unsigned)
    w.expect("wide_s", "u64", [u(64, p) for p in signed])


@case("integer/mul_16")
def _(w):
    a, b = pairs(16)
    w.given("a", "u16", a)
    w.given("b", "u16", b)
    unsigned = [x * y for x, y in zip(a, b)]
    signed = [s(16, x) * s(16, y) for x, y in zip(a, b)]
    w.expect("lo", "u16", [u(16, p) for p in unsigned])
    w.expect("hi_u", "u16", [u(16, p >> 16) for p in unsigned])
    w.expect("hi_s", "u16", [u(16, p >> 16) for p in signed])
    w.expect("wide_u", "u32", unsigned)
    w.expect("wide_s", "u32", [u(32, p) for p in signed])


@case("integer/mul_64")
def _(w):
    a, b = pairs(64)
    w.given("a", "u64", a)
    w.given("b", "u64", b)
    w.expect("lo", "u64", [u(64, x * y) for x, y in zip(a, b)])
    w.expect("hi_u", "u64", [x * y >> 64 for x, y in zip(a, b)])
    w.expect("hi_s", "u64", [u(64, s(64, x) * s(64, y) >> 64) for x, y in zip(a, b)])


@case("integer/mul24")
def _(w):
    a, b = pairs(32)
    w.given("a", "u32", a)
    w.given("b", "u32", b)
    # 24-bit operands, 48-bit product: .lo is bits 31..0, .hi bits 47..16.
    unsigned = [u(24, x) * u(24, y) for x, y in zip(a, b)]
    signed = [s(24, x) * s(24, y) for x, y in zip(a, b)]
    w.expect("lo_u", "u32", [u(32, p) for p in unsigned])
    w.expect("hi_u", "u32", [u(32, p >> 16) for p in unsigned])
    w.expect("lo_s", "u32", [u(32, p) for p in signed])
    w.expect("hi_s", "u32", [u(32, p >> 16) for p in signed])
    w.expect("mad", "u32", [u(32, p + x) for p, x in zip(signed, a)])


@case("integer/mad")
def _(w):
    a, b = pairs(32)
    c = list(reversed(a))
    w.given("a", "u32", a)
    w.given("b", "u32", b)
    w.given("c", "u32", c)
    rows = list(zip(a, b, c))
    w.expect("lo", "u32", [u(32, x * y + z) for x, y, z in rows])
    w.expect("hi_u", "u32", [u(32, (x * y >> 32) + z) for x, y, z in rows])
    w.expect("hi_s", "u32", [u(32, (s(32, x) * s(32, y) >> 32) + z) for x, y, z in rows])
    sat = [clamp((s(32, x) * s(32, y) >> 32) + s(32, z), -(1 << 31), (1 << 31) - 1) for x, y, z in rows]
    w.expect("hi_sat", "s32", sat)
    w.expect("wide_s", "u64", [u(64, s(32, x) * s(32, y) + (z << 32 | z)) for x, y, z in rows])


def quotient(a, b):
    """Truncated, as in C."""
    q = abs(a) // abs(b)
    return -q if (a < 0) != (b < 0) else q


for n in (16, 32, 64):

    def division(w, n=n):
        a, b = columns([(x, y) for x, y in zip(*pairs(n)) if y != 0 and (s(n, x), s(n, y)) != (-(1 << (n - 1)), -1)])
        w.given("a", f"u{n}", a)
        w.given("b", f"u{n}", b)
        w.expect("q_u", f"u{n}", [x // y for x, y in zip(a, b)])
        w.expect("r_u", f"u{n}", [x % y for x, y in zip(a, b)])
        sa, sb = [s(n, x) for x in a], [s(n, x) for x in b]
        w.expect("q_s", f"s{n}", [quotient(x, y) for x, y in zip(sa, sb)])
        w.expect("r_s", f"s{n}", [x - y * quotient(x, y) for x, y in zip(sa, sb)])

    CASES[f"integer/div_{n}"] = division

AMOUNTS = [0, 1, 4, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 0x80000000, 0xFFFFFFFF]


@case("integer/shift")
def _(w):
    a, n = columns(product([0x8000000180004321, 0x7FFFFFFE3FFF8ABC, 0xFFFFFFFFFFFFFFFF, 1], AMOUNTS))
    w.given("a", "u64", a)
    w.given("n", "u32", n)
    # The amount is unsigned and clamped to the width.
    for bits in (16, 32, 64):
        shift = [min(x, bits) for x in n]
        w.expect(f"shl{bits}", f"u{bits}", [u(bits, x << k) for x, k in zip(a, shift)])
        w.expect(f"shr_u{bits}", f"u{bits}", [u(bits, x) >> k for x, k in zip(a, shift)])
        w.expect(f"shr_s{bits}", f"u{bits}", [u(bits, s(bits, x) >> k) for x, k in zip(a, shift)])


@case("integer/funnel_shift")
def _(w):
    a, b, c = columns([(x, y, n) for (x, y), n in product([(0x89ABCDEF, 0x01234567), (0xFFFF0000, 0x8000F00F), (1, 0x80000000)], AMOUNTS)])
    w.given("a", "u32", a)
    w.given("b", "u32", b)
    w.given("c", "u32", c)
    both = [y << 32 | x for x, y in zip(a, b)]
    for mode, limit in (("clamp", lambda n: min(n, 32)), ("wrap", lambda n: n & 31)):
        w.expect(f"l_{mode}", "u32", [u(32, x << limit(n) >> 32) for x, n in zip(both, c)])
        w.expect(f"r_{mode}", "u32", [u(32, x >> limit(n)) for x, n in zip(both, c)])


FIELDS = [(0, 0), (0, 1), (0, 8), (4, 8), (24, 8), (28, 8), (31, 1), (31, 5), (0, 32), (0, 33), (0, 255), (5, 0),
          (32, 1), (32, 8), (60, 10), (63, 1), (200, 3), (255, 255), (1, 31), (7, 57), (0, 64), (33, 0)]


def bfe(bits, a, pos, length, signed):
    # The loop of the manual's "Semantics" section.
    msb = bits - 1
    fill = a >> min(pos + length - 1, msb) & 1 if signed and length else 0
    return sum((a >> (pos + i) & 1 if i < length and pos + i <= msb else fill) << i for i in range(bits))


def bfi(bits, a, b, pos, length):
    msb = bits - 1
    for i in range(length):
        if pos + i <= msb:
            b = b & ~(1 << (pos + i)) | (a >> i & 1) << (pos + i)
    return b


@case("integer/bfe")
def _(w):
    a, pos, length = columns([(x, p, n) for x, (p, n) in product([0x8F5A37C1DEADBEEF, 0x70A5C83E21524110], FIELDS)])
    w.given("a", "u64", a)
    w.given("pos", "u32", pos)
    w.given("len", "u32", length)
    for bits in (32, 64):
        for kind in "us":
            w.expect(f"{kind}{bits}", f"u{bits}",
                     [bfe(bits, u(bits, x), p, n, kind == "s") for x, p, n in zip(a, pos, length)])


@case("integer/bfi")
def _(w):
    a, b, pos, length = columns([(x, y, p, n) for (x, y), (p, n) in product([(0x8F5A37C1DEADBEEF, 0), (0x1234, 2**64 - 1)], FIELDS)])
    w.given("a", "u64", a)
    w.given("b", "u64", b)
    w.given("pos", "u32", pos)
    w.given("len", "u32", length)
    for bits in (32, 64):
        w.expect(f"b{bits}", f"u{bits}", [bfi(bits, u(bits, x), u(bits, y), p, n) for x, y, p, n in zip(a, b, pos, length)])


def byte(a, b, i):
    return (b << 32 | a) >> 8 * i & 0xFF


@case("integer/prmt")
def _(w):
    selectors = [0x3210, 0x7654, 0x0123, 0x4567, 0x6420, 0x7531, 0x0000, 0x7777, 0xBA98, 0xFEDC, 0xB3A2, 0x8F1C, 0xFFFF0123, 0x12345678]
    a, b, c = columns([(x, y, z) for (x, y), z in product([(0x83C20100, 0x7F80E00F), (0x04030201, 0x88776605)], selectors)])
    w.given("a", "u32", a)
    w.given("b", "u32", b)
    w.given("c", "u32", c)

    def generic(x, y, selector):
        out = 0
        for i in range(4):
            nibble = selector >> 4 * i & 15
            picked = byte(x, y, nibble & 7)
            out |= ((0xFF if picked & 0x80 else 0) if nibble & 8 else picked) << 8 * i
        return out

    w.expect("r", "u32", [generic(*row) for row in zip(a, b, c)])
    # The tables of the manual, as the four source bytes for each value of c[1:0], most significant first.
    modes = {
        "f4e": ["3210", "4321", "5432", "6543"],
        "b4e": ["5670", "6701", "7012", "0123"],
        "rc8": ["0000", "1111", "2222", "3333"],
        "ecl": ["3210", "3211", "3222", "3333"],
        "ecr": ["0000", "1110", "2210", "3210"],
        "rc16": ["1010", "3232", "1010", "3232"],
    }
    for mode, rows in modes.items():
        w.expect(mode, "u32", [sum(byte(x, y, int(d)) << 8 * (3 - i) for i, d in enumerate(rows[z & 3])) for x, y, z in zip(a, b, c)])


@case("integer/lop3")
def _(w):
    a = [0xF0F0F0F0, 0xFFFF0000, 0x12345678, 0, 0xFFFFFFFF] + mixed(32, 3, 3)
    b = [0xCCCCCCCC, 0xFF00FF00, 0x9ABCDEF0, 0, 0xFFFFFFFF] + mixed(32, 3, 4)
    c = [0xAAAAAAAA, 0xF0F0F0F0, 0x0F1E2D3C, 0, 0xFFFFFFFF] + mixed(32, 3, 5)
    for name, values in zip("abc", (a, b, c)):
        w.given(name, "u32", values)
    for table in (0x80, 0xFE, 0x96, 0xE8, 0xCA, 0x1B, 0x00, 0xFF):
        w.expect(f"t{table:02x}", "u32", [
            sum((table >> ((x >> i & 1) << 2 | (y >> i & 1) << 1 | z >> i & 1) & 1) << i for i in range(32))
            for x, y, z in zip(a, b, c)])


@case("integer/logic")
def _(w):
    a, b = columns([(0, 0), (0xF0F0F0F0F0F0F0F0, 0xCCCCCCCCCCCCCCCC), (2**64 - 1, 0), (1, 2**63), (2**32, 2**16), (0xFFFF, 1)])
    w.given("a", "u64", a)
    w.given("b", "u64", b)
    for n in (16, 32, 64):
        ty = f"u{n}"
        w.expect(f"and{n}", ty, [u(n, x & y) for x, y in zip(a, b)])
        w.expect(f"or{n}", ty, [u(n, x | y) for x, y in zip(a, b)])
        w.expect(f"xor{n}", ty, [u(n, x ^ y) for x, y in zip(a, b)])
        w.expect(f"not{n}", ty, [u(n, ~x) for x in a])
        w.expect(f"cnot{n}", ty, [int(u(n, x) == 0) for x in a])


def find_top(n, x, signed):
    if signed and x >> (n - 1):
        x = u(n, ~x)
    return x.bit_length() - 1


@case("integer/bit_counts")
def _(w):
    a = edges(64) + [0x00010000, 0xFFFF0000, 0x80000000, 0xF0000000, 0x7FFFFFFF00000000] + mixed(64, 8, 6)
    w.given("a", "u64", a)
    for n in (32, 64):
        low = [u(n, x) for x in a]
        w.expect(f"popc{n}", "u32", [bin(x).count("1") for x in low])
        w.expect(f"clz{n}", "u32", [n - x.bit_length() for x in low])
        w.expect(f"brev{n}", f"u{n}", [int(f"{x:0{n}b}"[::-1], 2) for x in low])
        for kind in "us":
            top = [find_top(n, x, kind == "s") for x in low]
            w.expect(f"bfind_{kind}{n}", "s32", top)
            w.expect(f"shiftamt_{kind}{n}", "s32", [-1 if t < 0 else n - 1 - t for t in top])


@case("integer/fns")
def _(w):
    def fns(mask, base, offset):
        if offset == 0:
            return base if mask >> base & 1 else 0xFFFFFFFF
        step, left, at = (1, offset, base) if offset > 0 else (-1, -offset, base)
        while 0 <= at < 32:
            if mask >> at & 1:
                left -= 1
                if left == 0:
                    return at
            at += step
        return 0xFFFFFFFF

    rows = list(product([0x80000001, 0xAAAAAAAA, 0x00FF0000, 0, 0xFFFFFFFF], [0, 1, 15, 16, 31], [0, 1, 2, 3, 32, -1, -2, -3]))
    mask, base, offset = columns(rows)
    w.given("mask", "u32", mask)
    w.given("base", "u32", base)
    w.given("offset", "s32", offset)
    w.expect("r", "u32", [fns(*row) for row in rows])


@case("integer/min_max")
def _(w):
    a, b = pairs(64, 5)
    w.given("a", "u64", a)
    w.given("b", "u64", b)
    for n in (16, 32, 64):
        for kind, of in (("u", u), ("s", s)):
            both = [(of(n, x), of(n, y)) for x, y in zip(a, b)]
            w.expect(f"min_{kind}{n}", f"{kind}{n}", [min(p) for p in both])
            w.expect(f"max_{kind}{n}", f"{kind}{n}", [max(p) for p in both])


@case("integer/abs_neg")
def _(w):
    a = edges(64) + [x << 16 | y for x, y in zip(edges(32), edges(16))]
    w.given("a", "u64", a)
    for n in (16, 32, 64):
        w.expect(f"abs{n}", f"u{n}", [u(n, abs(s(n, x))) for x in a])
        w.expect(f"neg{n}", f"u{n}", [u(n, -x) for x in a])


@case("integer/add_sat")
def _(w):
    a, b = pairs(32)
    w.given("a", "u32", a)
    w.given("b", "u32", b)
    limit = lambda x: clamp(x, -(1 << 31), (1 << 31) - 1)
    w.expect("add", "s32", [limit(s(32, x) + s(32, y)) for x, y in zip(a, b)])
    w.expect("sub", "s32", [limit(s(32, x) - s(32, y)) for x, y in zip(a, b)])


@case("integer/sad")
def _(w):
    a, b = pairs(32)
    c = list(reversed(b))
    for name, values in zip("abc", (a, b, c)):
        w.given(name, "u32", values)
    rows = list(zip(a, b, c))
    w.expect("u", "u32", [u(32, z + abs(x - y)) for x, y, z in rows])
    w.expect("s", "u32", [u(32, z + abs(s(32, x) - s(32, y))) for x, y, z in rows])


@case("integer/dot_product")
def _(w):
    a, b = mixed(32, 24, 7) + [0xFFFFFFFF, 0x80808080, 0x7F7F7F7F], mixed(32, 24, 8) + [0xFFFFFFFF, 0x80808080, 0x80808080]
    c = mixed(32, 24, 9) + [0, 0x7FFFFFFF, 0x80000000]
    for name, values in zip("abc", (a, b, c)):
        w.given(name, "u32", values)
    part = lambda of, n, x, i: of(n, x >> n * i)
    rows = list(zip(a, b, c))
    for (ka, fa), (kb, fb) in product((("u", u), ("s", s)), repeat=2):
        w.expect(f"dp4a_{ka}{kb}", "u32", [u(32, z + sum(part(fa, 8, x, i) * part(fb, 8, y, i) for i in range(4))) for x, y, z in rows])
        for half, first in (("lo", 0), ("hi", 2)):
            w.expect(f"dp2a_{half}_{ka}{kb}", "u32",
                     [u(32, z + sum(part(fa, 16, x, i) * part(fb, 8, y, first + i) for i in range(2))) for x, y, z in rows])


@case("integer/masks")
def _(w):
    a, b = columns(product([0, 1, 5, 24, 31, 32, 33, 255], [0, 1, 5, 12, 31, 32, 40]))
    w.given("a", "u32", a)
    w.given("b", "u32", b)
    w.given("x", "u32", [0x9ABCDEF8 ^ (i * 0x01010101) for i in range(len(a))])
    x = [0x9ABCDEF8 ^ (i * 0x01010101) for i in range(len(a))]

    def mask(start, width):
        return u(32, ((1 << width) - 1) << start)

    w.expect("bmsk_clamp", "u32", [mask(min(p, 32), min(q, 32)) for p, q in zip(a, b)])
    w.expect("bmsk_wrap", "u32", [mask(p & 31, q & 31) for p, q in zip(a, b)])
    for kind, of in (("u", u), ("s", s)):
        extend = lambda y, n: 0 if n == 0 else u(32, of(n, y))
        w.expect(f"szext_clamp_{kind}", "u32", [extend(y, min(q, 32)) for y, q in zip(x, b)])
        w.expect(f"szext_wrap_{kind}", "u32", [extend(y, q & 31) for y, q in zip(x, b)])


@case("integer/packed_16x2")
def _(w):
    a, b = pairs(32)
    w.given("a", "u32", a)
    w.given("b", "u32", b)

    def each(op, of):
        return [sum(u(16, op(of(16, x >> 16 * i), of(16, y >> 16 * i))) << 16 * i for i in (0, 1)) for x, y in zip(a, b)]

    w.expect("add", "u32", each(lambda x, y: x + y, u))
    w.expect("min_u", "u32", each(min, u))
    w.expect("max_s", "u32", each(max, s))
    w.expect("min_relu", "u32", each(lambda x, y: max(min(x, y), 0), s))


# float/


def operands(ty, seed=11, count=24):
    special = hexes(ty, *SPECIAL)
    rows = [(x, y) for x, y in product(special, repeat=2)][:: 3 if ty != "f32" else 2]
    rows += list(zip(samples(ty, count, seed), samples(ty, count, seed + 1)))
    return columns(rows)


for ty in ("f32", "f64"):

    def addition(w, ty=ty):
        a, b = operands(ty)
        w.given("a", ty, a)
        w.given("b", ty, b)
        for mode in MODES:
            w.expect(f"add_{mode}", ty, [add(ty, x, y, mode) for x, y in zip(a, b)])
        flip = 1 << sum(FORMATS[ty])
        w.expect("sub_rn", ty, [add(ty, x, y ^ flip) for x, y in zip(a, b)])

    def multiplication(w, ty=ty):
        a, b = operands(ty, 13)
        w.given("a", ty, a)
        w.given("b", ty, b)
        for mode in MODES:
            w.expect(f"mul_{mode}", ty, [mul(ty, x, y, mode) for x, y in zip(a, b)])

    def division_(w, ty=ty):
        a, b = operands(ty, 15)
        w.given("a", ty, a)
        w.given("b", ty, b)
        for mode in MODES:
            w.expect(f"div_{mode}", ty, [div(ty, x, y, mode) for x, y in zip(a, b)])

    def fused(w, ty=ty):
        a, b = operands(ty, 17)
        third = hexes(ty, "0", "-0", "tiny", "-max", "inf", "1", "-half_eps")
        c = [third[i % 7] for i in range(len(a))]
        # a·b with more bits than the format has, minus its rounded value: the error term, which only one rounding keeps.
        for x, y in zip(samples(ty, 12, 19), samples(ty, 12, 20)):
            a.append(x), b.append(y), c.append(mul(ty, x, y) ^ 1 << sum(FORMATS[ty]))
        for name, values in zip("abc", (a, b, c)):
            w.given(name, ty, values)
        for mode in MODES:
            w.expect(f"fma_{mode}", ty, [fma(ty, x, y, z, mode) for x, y, z in zip(a, b, c)])

    def roots(w, ty=ty):
        a = hexes(ty, *SPECIAL, "2", "4", "nan") + [x & ~(1 << sum(FORMATS[ty])) for x in samples(ty, 24, 21)]
        w.given("a", ty, a)
        one = hexes(ty, "1")[0]
        for mode in MODES:
            w.expect(f"sqrt_{mode}", ty, [sqrt(ty, x, mode) for x in a])
        for mode in MODES:
            w.expect(f"rcp_{mode}", ty, [div(ty, one, x, mode) for x in a])

    CASES[f"float/add_{ty}"] = addition
    CASES[f"float/mul_{ty}"] = multiplication
    CASES[f"float/div_{ty}"] = division_
    CASES[f"float/fma_{ty}"] = fused
    CASES[f"float/roots_{ty}"] = roots


@case("float/ftz")
def _(w):
    ty = "f32"
    special = hexes(ty, "0", "-0", "1", "-1", "min", "-min", "sub", "-sub", "tiny", "-tiny", "one_up", "0.5", "inf", "nan")
    a, b = columns(product(special, repeat=2))
    # What lies within half a unit below the least normal number is left out: manuals do not say which way it goes.
    w.given("a", ty, a)
    w.given("b", ty, b)
    rows = list(zip(a, b))
    w.expect("add", ty, [add(ty, x, y, ftz=True) for x, y in rows])
    w.expect("mul", ty, [mul(ty, x, y, ftz=True) for x, y in rows])
    w.expect("fma", ty, [fma(ty, x, y, y, ftz=True) for x, y in rows])
    w.expect("div", ty, [div(ty, x, y, ftz=True) for x, y in rows])
    w.expect("sqrt", ty, [sqrt(ty, x, ftz=True) for x in a])


@case("float/sat")
def _(w):
    ty = "f32"
    a, b = columns(product(hexes(ty, "0", "-0", "0.25", "0.75", "1", "-1", "2", "tiny", "-tiny", "inf", "-inf", "nan"), repeat=2))
    w.given("a", ty, a)
    w.given("b", ty, b)
    fix = lambda x: saturate(ty, x)
    w.expect("add", ty, [fix(add(ty, x, y)) for x, y in zip(a, b)])
    w.expect("mul", ty, [fix(mul(ty, x, y)) for x, y in zip(a, b)])
    w.expect("fma", ty, [fix(fma(ty, x, y, y)) for x, y in zip(a, b)])
    w.expect("cvt", ty, [fix(x) for x in a])


def order(ty, bits):
    """Sorts as the manual's min and max do: −0 below +0."""
    magnitude = bits & ~(1 << sum(FORMATS[ty]))
    return -magnitude - 1 if sign_of(ty, bits) else magnitude


def least(ty, a, b, pick, strict=False):
    na, nb = is_nan(ty, a), is_nan(ty, b)
    if (na and nb) or (strict and (na or nb)):
        return nan_of(ty)
    if na or nb:
        return b if na else a
    return pick(a, b, key=lambda x: order(ty, x))


for ty in ("f32", "f64", "f16", "bf16"):

    def extremes(w, ty=ty):
        a, b = columns(product(hexes(ty, "0", "-0", "1", "-1", "tiny", "-tiny", "max", "inf", "-inf", "nan", "-nan"), repeat=2))
        w.given("a", ty, a)
        w.given("b", ty, b)
        w.expect("min", ty, [least(ty, x, y, min) for x, y in zip(a, b)])
        w.expect("max", ty, [least(ty, x, y, max) for x, y in zip(a, b)])
        if ty != "f64":
            w.expect("min_nan", ty, [least(ty, x, y, min, True) for x, y in zip(a, b)])
            w.expect("max_nan", ty, [least(ty, x, y, max, True) for x, y in zip(a, b)])

    CASES[f"float/min_max_{ty}" if ty in ("f32", "f64") else f"half/min_max_{ty}"] = extremes


@case("float/signs")
def _(w):
    a, b = columns(product(hexes("f32", "0", "-0", "1.5", "-1.5", "tiny", "-max", "inf", "-inf"), repeat=2))
    w.given("a", "f32", a)
    w.given("b", "f32", b)
    w.expect("abs", "f32", [x & 0x7FFFFFFF for x in a])
    w.expect("neg", "f32", [x ^ 0x80000000 for x in a])
    w.expect("copysign", "f32", [x & 0x80000000 | y & 0x7FFFFFFF for x, y in zip(a, b)])


@case("float/testp")
def _(w):
    for ty, bits in (("f32", 32), ("f64", 64)):
        a = hexes(ty, *SPECIAL, "nan", "-nan", "snan")
        w.given(f"a{bits}", ty, a)
    for ty, bits in (("f32", 32), ("f64", 64)):
        a = hexes(ty, *SPECIAL, "nan", "-nan", "snan")
        f = FORMATS[ty][1]
        subnormal = lambda x: not is_nan(ty, x) and not is_inf(ty, x) and value(ty, x) != 0 and abs(value(ty, x)) < value(ty, 1 << f)
        tests = [
            lambda x: not is_nan(ty, x) and not is_inf(ty, x),
            lambda x: is_inf(ty, x),
            lambda x: not is_nan(ty, x),
            lambda x: is_nan(ty, x),
            lambda x: not is_nan(ty, x) and not is_inf(ty, x) and not subnormal(x),
            subnormal,
        ]
        # Bits: finite, infinite, number, notanumber, normal (zero counts), subnormal.
        w.expect(f"r{bits}", "u32", [sum(bool(t(x)) << i for i, t in enumerate(tests)) for x in a])


@case("float/nan_results")
def _(w):
    ty = "f32"
    a = hexes(ty, "nan", "-nan", "snan", "-snan", "1", "inf", "0", "-1") + [0x7F812345, 0xFFC54321]
    b = hexes(ty, "1", "nan", "1", "snan", "-nan", "-inf", "inf", "0") + [0x3F800000, 0x7FC00001]
    w.given("a", ty, a)
    w.given("b", ty, b)
    w.expect("add", ty, [add(ty, x, y) for x, y in zip(a, b)])
    w.expect("mul", ty, [mul(ty, x, y) for x, y in zip(a, b)])
    w.expect("fma", ty, [fma(ty, x, y, x) for x, y in zip(a, b)])
    w.expect("mov", ty, a)


def single(x):
    return struct.unpack("<I", struct.pack("<f", x))[0]


def real(bits):
    return struct.unpack("<f", struct.pack("<I", bits))[0]


@case("float/approx")
def _(w):
    a = [single(x) for x in (0.001, 0.1, 0.25, 0.3333, 0.5, 0.7, 0.999, 1.0, 1.0001, 1.5, 2.0, 2.718281, 3.0, 3.14159, 5.5, 6.28, 7.0, 10.0, 100.5, 1234.5, 65536.0, 1e10, 1e-10, 1e20, 1e-20, 1e30)]
    w.given("a", "f32", a)
    x = [real(v) for v in a]
    w.expect("rcp", "f32", [single(1 / v) for v in x], " within 1 ulp")
    w.expect("sqrt", "f32", [single(math.sqrt(v)) for v in x], " within 2^-23 rel")
    w.expect("rsqrt", "f32", [single(1 / math.sqrt(v)) for v in x], " within 2^-22.8 rel")
    w.expect("div", "f32", [single(3 / v) for v in x], " within 2 ulp")
    w.expect("div_full", "f32", [single(3 / v) for v in x], " within 2 ulp")


@case("float/approx_transcendental")
def _(w):
    a = [single(x) for x in (-6.28, -3.14159, -1.5707964, -1.0, -0.5, -0.1, 0.001, 0.1, 0.25, 0.5, 0.785, 1.0, 1.25, 1.5707964, 2.0, 2.5, 3.0, 3.14159, 4.0, 5.0, 6.0, 6.28)]
    w.given("a", "f32", a)
    x = [real(v) for v in a]
    # The bound of the manual, and half a unit of the expectation's own rounding.
    w.expect("sin", "f32", [single(math.sin(v)) for v in x], " within 2^-20.4 abs")
    w.expect("cos", "f32", [single(math.cos(v)) for v in x], " within 2^-20.4 abs")
    w.expect("ex2", "f32", [single(2.0 ** v) for v in x], " within 3 ulp")
    w.expect("lg2", "f32", [single(math.log2(abs(v))) for v in x], " within 2^-21.9 abs")
    w.expect("tanh", "f32", [single(math.tanh(v)) for v in x], " within 2^-10.9 rel")


@case("float/approx_special")
def _(w):
    a = hexes("f32", "0", "-0", "inf", "-inf", "nan", "1", "-1", "-4")
    w.given("a", "f32", a)
    # The manual's tables of special inputs.
    w.expect("rcp", "f32", "inf -inf 0.0 -0.0 nan _ _ _".replace("nan", "0x7fffffff").split())
    w.expect("rsqrt", "f32", "inf -inf 0.0 nan nan _ nan nan".replace("nan", "0x7fffffff").split())
    w.expect("sqrt", "f32", "0.0 -0.0 inf nan nan _ nan nan".replace("nan", "0x7fffffff").split())
    w.expect("lg2", "f32", "-inf -inf inf nan nan _ nan nan".replace("nan", "0x7fffffff").split())
    w.expect("ex2", "f32", "1.0 1.0 inf 0.0 nan 2.0 0.5 0.0625".replace("nan", "0x7fffffff").split())
    w.expect("sin", "f32", "0.0 -0.0 nan nan nan _ _ _".replace("nan", "0x7fffffff").split())
    w.expect("cos", "f32", "1.0 1.0 nan nan nan _ _ _".replace("nan", "0x7fffffff").split())
    w.expect("tanh", "f32", "0.0 -0.0 1.0 -1.0 nan _ _ _".replace("nan", "0x7fffffff").split())


# half/


@case("half/f16")
def _(w):
    ty = "f16"
    a, b = operands(ty, 31)
    c = list(reversed(b))
    for name, values in zip("abc", (a, b, c)):
        w.given(name, ty, values)
    rows = list(zip(a, b, c))
    w.expect("add", ty, [add(ty, x, y) for x, y, _ in rows])
    w.expect("sub", ty, [add(ty, x, y ^ 0x8000) for x, y, _ in rows])
    w.expect("mul", ty, [mul(ty, x, y) for x, y, _ in rows])
    w.expect("fma", ty, [fma(ty, x, y, z) for x, y, z in rows])
    w.expect("fma_relu", ty, [relu(ty, fma(ty, x, y, z)) for x, y, z in rows])
    w.expect("add_sat", ty, [saturate(ty, add(ty, x, y)) for x, y, _ in rows])
    w.expect("mul_ftz", ty, [mul(ty, x, y, ftz=True) for x, y, _ in rows])


def relu(ty, bits):
    return 0 if sign_of(ty, bits) and not is_nan(ty, bits) else bits


@case("half/f16x2")
def _(w):
    ty = "f16"
    a, b = samples(ty, 40, 33), samples(ty, 40, 34)
    pack = lambda values: [x | y << 16 for x, y in zip(values[::2], values[1::2])]
    w.given("a", "u32", pack(a))
    w.given("b", "u32", pack(b))
    w.expect("add", "u32", pack([add(ty, x, y) for x, y in zip(a, b)]))
    w.expect("mul", "u32", pack([mul(ty, x, y) for x, y in zip(a, b)]))
    w.expect("fma", "u32", pack([fma(ty, x, y, x) for x, y in zip(a, b)]))
    w.expect("neg", "u32", pack([x ^ 0x8000 for x in a]))
    w.expect("abs", "u32", pack([x & 0x7FFF for x in a]))


@case("half/bf16")
def _(w):
    ty = "bf16"
    a, b = operands(ty, 35)
    c = list(reversed(b))
    for name, values in zip("abc", (a, b, c)):
        w.given(name, ty, values)
    rows = list(zip(a, b, c))
    w.expect("add", ty, [add(ty, x, y) for x, y, _ in rows])
    w.expect("sub", ty, [add(ty, x, y ^ 0x8000) for x, y, _ in rows])
    w.expect("mul", ty, [mul(ty, x, y) for x, y, _ in rows])
    w.expect("fma", ty, [fma(ty, x, y, z) for x, y, z in rows])


@case("half/fma_bf16_range")
def _(w):
    ty = "bf16"
    draw = random.Random(39)
    half = lambda exponent: draw.getrandbits(1) << 15 | exponent << 7 | draw.getrandbits(7)
    rows = []
    for _ in range(64):
        # Products of 2^127 to 2^129, which an addend brings back or not.
        e = draw.randrange(130, 254)
        a, b = half(e), half(127 + draw.randrange(254, 257) - e)
        rows.append((a, b, (a ^ b ^ 0x8000) & 0x8000 | draw.randrange(253, 255) << 7 | draw.getrandbits(7)))
        # Products about the least subnormal and below, with subnormals and nothing to add to.
        e = draw.randrange(1, 120)
        a, b = half(e), half(draw.randrange(max(1, 110 - e), 125 - e + 1))
        rows.append((a, b, draw.choice([0, 0x8000, draw.getrandbits(1) << 15 | draw.getrandbits(draw.randrange(1, 9))])))
    while len(rows) < 256:
        # Products halfway between two numbers, and addends far away that say which is nearer, or none.
        a, b = half(draw.randrange(100, 150)), half(draw.randrange(100, 150))
        product = (a & 0x7F | 0x80) * (b & 0x7F | 0x80)
        below = product.bit_length() - 8
        if product & (1 << below) - 1 == 1 << below - 1:
            rows.append((a, b, draw.choice([0, 0x8000, half(draw.randrange(0, 60))])))
    for name, values in zip("abc", zip(*rows)):
        w.given(name, ty, list(values))
    w.expect("fma", ty, [fma(ty, x, y, z) for x, y, z in rows])
    w.expect("fma_relu", ty, [relu(ty, fma(ty, x, y, z)) for x, y, z in rows])


# control/


@case("control/rows")
def _(w):
    # Rows of numbers, one a thread, that meet their bound before, in, at the end of or behind a warp, or wrap around: one a block.
    blocks, threads = 40, 64
    bases = [u(32, (block << 29) + block - 35) for block in range(blocks)]
    bounds = [u(32, base + 7 * block - 110) for block, base in enumerate(bases)]
    places = [(x, y, t) for x, y in zip(bases, bounds) for t in range(threads)]
    relations = {"lt": lambda x, y: x < y, "le": lambda x, y: x <= y, "gt": lambda x, y: x > y, "ge": lambda x, y: x >= y}
    # Those that fall begin higher, so that some of them wrap around, too, and come back to their bound.
    for step, begin, called in ((1, 0, "up"), (-3, 70, "down")):
        for kind, signed in (("s", s), ("u", u)):
            for name, relation in relations.items():
                w.expect(f"{name}_{kind}32_{called}", "u32", [int(relation(signed(32, x + begin + step * t), signed(32, y))) for x, y, t in places])
    # The same numbers in the upper half of 64 bits.
    for kind, signed in (("s", s), ("u", u)):
        for name in ("lt", "ge"):
            w.expect(f"{name}_{kind}64", "u32", [int(relations[name](signed(64, x + t << 32), signed(64, y << 32))) for x, y, t in places])


# convert/


def to_int(ty, bits, n, signed, mode, nan):
    """Rounds, then clamps; what a NaN becomes is said by the manual for each pair of widths."""
    low, high = (-(1 << (n - 1)), (1 << (n - 1)) - 1) if signed else (0, (1 << n) - 1)
    if is_nan(ty, bits):
        return nan
    if is_inf(ty, bits):
        return low if sign_of(ty, bits) else high
    x = value(ty, bits)
    whole = nearest(abs(x), mode, x < 0)
    return clamp(-whole if x < 0 else whole, low, high)


INTEGRAL = "0 -0 0.5 -0.5 1.5 -1.5 2.5 -2.5 0.49999 -0.75 127.5 128.5 255.5 256 32767.5 -32769 65535.5 65536 -1 1e9 2147483647 2147483648 -2147483648 -2147483904 4294967296 1e19 -1e19 2e19 max -max inf -inf tiny -tiny".split()
TO_INT = (("rni", "rn"), ("rzi", "rz"), ("rmi", "rm"), ("rpi", "rp"))

for ty in ("f32", "f64"):

    def to_integer(w, ty=ty):
        a = hexes(ty, *INTEGRAL)
        w.given("a", ty, a)
        for name, mode in TO_INT:
            w.expect(f"s32_{name}", "s32", [to_int(ty, x, 32, True, mode, 0) for x in a])
        for kind, n in (("u", 32), ("s", 64), ("u", 64)):
            w.expect(f"{kind}{n}_rni", f"{kind}{n}", [to_int(ty, x, n, kind == "s", "rn", 0) for x in a])
            w.expect(f"{kind}{n}_rzi", f"{kind}{n}", [to_int(ty, x, n, kind == "s", "rz", 0) for x in a])
        for kind, n in (("u", 8), ("s", 8), ("u", 16), ("s", 16)):
            w.expect(f"{kind}{n}_rzi", f"{kind}{n}", [to_int(ty, x, n, kind == "s", "rz", 0) for x in a])

    CASES[f"convert/{ty}_to_int"] = to_integer


@case("convert/int_to_float")
def _(w):
    a = edges(64) + [2**24 + 1, 2**24 + 3, 2**53 + 1, 2**53 + 3, 2**63 + 2**39, 2**63 + 2**10 + 1, 0xFFFFFF7FFFFFFFFF, 0xFFFFFFFF, 0x80000001] + mixed(64, 8, 41)
    w.given("a", "u64", a)
    exact = lambda ty, x, mode: rounded(ty, Fraction(x), mode)
    for mode in MODES:
        w.expect(f"f32_u32_{mode}", "f32", [exact("f32", u(32, x), mode) for x in a])
        w.expect(f"f32_s32_{mode}", "f32", [exact("f32", s(32, x), mode) for x in a])
        w.expect(f"f32_s64_{mode}", "f32", [exact("f32", s(64, x), mode) for x in a])
        w.expect(f"f64_u64_{mode}", "f64", [exact("f64", x, mode) for x in a])
    w.expect("f64_s32", "f64", [exact("f64", s(32, x), "rn") for x in a])
    w.expect("f16_s16", "f16", [exact("f16", s(16, x), "rn") for x in a])
    w.expect("f32_u8", "f32", [exact("f32", u(8, x), "rn") for x in a])
    w.expect("f32_s8", "f32", [exact("f32", s(8, x), "rn") for x in a])


@case("convert/wide_integers")
def _(w):
    # What is between the halves of a 64-bit integer, between two floats, and about the limits of all.
    i = edges(64) + [2**63 + 2**39, 2**63 + 2**39 + 1, u(64, -(2**62) - 2**38 - 1), 2**32 - 1, 2**32, 2**52, 2**52 + 1, 2**53 - 1, u(64, -(2**53) - 1), 2**63 - 2**9, 2**63 - 2**9 - 1, 2**64 - 2**10, 2**64 - 2**10 - 1]
    i += mixed(64, 8, 43)
    numbers = "0.5 -0.5 2.5 -2.5 1234567890123456 -1234567890123456 -4294967297.5 6442450943.5 4503599627370497.5 -4503599627370495.5 9007199254740993 -9.2e18 9.2e18 9223372036854775807 -9223372036854775808 -9.3e18 1.8e19 18446744073709551615 inf -inf max -max tiny -tiny".split()
    f, d = hexes("f32", *numbers), hexes("f64", *numbers)
    f += samples("f32", len(i) - len(f), 44)
    d += samples("f64", len(i) - len(d), 45)
    w.given("i", "u64", i)
    w.given("f", "f32", f)
    w.given("d", "f64", d)
    for ty in ("f32", "f64"):
        for kind, signed in (("s", s), ("u", u)):
            for mode in MODES:
                w.expect(f"{ty}_{kind}64_{mode}", ty, [rounded(ty, Fraction(signed(64, x)), mode) for x in i])
    for ty, name, floats in (("f32", "f", f), ("f64", "d", d)):
        for kind in ("s", "u"):
            for said, mode in TO_INT:
                w.expect(f"{kind}64_{ty}_{said}", f"{kind}64", [to_int(ty, x, 64, kind == "s", mode, 0) for x in floats])


@case("convert/int_to_int")
def _(w):
    a = edges(64) + [127, 128, 255, 256, 32767, 32768, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**32, u(64, -129), u(64, -32769), u(64, -(2**31) - 1), u(64, -200)]
    w.given("a", "u64", a)
    w.expect("s32_s8", "s32", [s(8, x) for x in a])
    w.expect("u32_u8", "u32", [u(8, x) for x in a])
    w.expect("s64_s32", "s64", [s(32, x) for x in a])
    w.expect("u64_u32", "u64", [u(32, x) for x in a])
    w.expect("s32_s64", "u32", [u(32, x) for x in a])
    # The destination register is wider than the type: it is extended by the destination's sign.
    w.expect("s8_in_b32", "s32", [s(8, x) for x in a])
    w.expect("u16_in_b32", "u32", [u(16, x) for x in a])
    sat = lambda x, n, signed: clamp(x, -(1 << (n - 1)) if signed else 0, (1 << (n - 1)) - 1 if signed else (1 << n) - 1)
    w.expect("sat_s32_s64", "s32", [sat(s(64, x), 32, True) for x in a])
    w.expect("sat_u32_s64", "u32", [sat(s(64, x), 32, False) for x in a])
    w.expect("sat_s32_u64", "s32", [sat(x, 32, True) for x in a])
    w.expect("sat_s8_s32", "s32", [sat(s(32, x), 8, True) for x in a])
    w.expect("sat_u8_s32", "u32", [sat(s(32, x), 8, False) for x in a])
    w.expect("sat_u16_u32", "u32", [sat(u(32, x), 16, False) for x in a])


def narrow(src, dst, bits, mode="rn"):
    if is_nan(src, bits):
        return nan_of(dst)
    if is_inf(src, bits):
        return inf(dst, sign_of(src, bits))
    return rounded(dst, value(src, bits), mode, sign_of(src, bits))


@case("convert/float_to_float")
def _(w):
    a = hexes("f64", *SPECIAL, "1e-45", "7e-46", "-7e-46", "3.4028235677973366e38", "3.4028235e38", "1e39", "1e-320", "65519.99", "65520") + samples("f64", 12, 51)
    w.given("a", "f64", a)
    for mode in MODES:
        w.expect(f"f32_{mode}", "f32", [narrow("f64", "f32", x, mode) for x in a])
    w.expect("f16_rn", "f16", [narrow("f64", "f16", x) for x in a])
    single_ = [narrow("f64", "f32", x) for x in a]
    w.expect("back", "f64", [rounded("f64", value("f32", x), zero=sign_of("f32", x)) if not is_inf("f32", x) else inf("f64", sign_of("f32", x)) for x in single_])


HALVES = SPECIAL + "65504 65519 65520 65536 -65520 5.9604645e-8 2.98e-8 2.9802322e-8 6.1e-5 6.0976e-5 2049 2051 0.1 nan".split()


@case("convert/f32_to_half")
def _(w):
    a = hexes("f32", *HALVES) + samples("f32", 16, 53)
    w.given("a", "f32", a)
    w.expect("f16_rn", "f16", [narrow("f32", "f16", x) for x in a])
    w.expect("f16_rz", "f16", [narrow("f32", "f16", x, "rz") for x in a])
    w.expect("bf16_rn", "bf16", [narrow("f32", "bf16", x) for x in a])
    w.expect("bf16_rz", "bf16", [narrow("f32", "bf16", x, "rz") for x in a])
    w.expect("f16_relu", "f16", [relu("f16", narrow("f32", "f16", x)) for x in a])
    # cvt.f16x2.f32 d, a, b: a goes to the upper half.
    other = a[1:] + a[:1]
    w.expect("f16x2", "u32", [narrow("f32", "f16", x) << 16 | narrow("f32", "f16", y) for x, y in zip(a, other)])
    w.expect("bf16x2", "u32", [narrow("f32", "bf16", x) << 16 | narrow("f32", "bf16", y) for x, y in zip(a, other)])


@case("convert/half_to_f32")
def _(w):
    a = hexes("f16", "0", "-0", "1", "tiny", "-tiny", "sub", "min", "max", "-max", "inf", "-inf", "nan", "-nan", "0.1")
    w.given("a", "f16", a)
    b = hexes("bf16", "0", "-0", "1", "tiny", "-tiny", "sub", "min", "max", "-max", "inf", "-inf", "3", "-0.5", "0.1")
    w.given("b", "bf16", b)
    w.expect("f16", "f32", [narrow("f16", "f32", x) for x in a])
    w.expect("bf16", "f32", [x << 16 for x in b])
    w.expect("f64", "f64", [narrow("f16", "f64", x) for x in a])


@case("convert/integral_float")
def _(w):
    a = hexes("f32", "0.5", "1.5", "2.5", "-0.5", "-1.5", "-2.5", "0.75", "-0.75", "8388607.5", "8388609", "1e10", "inf", "-inf", "0", "-0", "tiny", "-tiny")
    w.given("a", "f32", a)

    def whole(x, mode):
        if is_inf("f32", x):
            return x
        v = value("f32", x)
        n = nearest(abs(v), mode, v < 0)
        return rounded("f32", Fraction(-n if v < 0 else n), zero=sign_of("f32", x))

    for name, mode in TO_INT:
        w.expect(name, "f32", [whole(x, mode) for x in a])


# compare/


ORDERED = ("eq", "ne", "lt", "le", "gt", "ge")
OPS = {"eq": lambda x, y: x == y, "ne": lambda x, y: x != y, "lt": lambda x, y: x < y,
       "le": lambda x, y: x <= y, "gt": lambda x, y: x > y, "ge": lambda x, y: x >= y}


@case("compare/integers")
def _(w):
    a, b = pairs(64, 3)
    w.given("a", "u64", a)
    w.given("b", "u64", b)
    # Bit i of a result is the i-th of eq ne lt le gt ge.
    for n in (16, 32, 64):
        for kind, of in (("u", u), ("s", s)):
            w.expect(f"{kind}{n}", "u32", [sum(OPS[o](of(n, x), of(n, y)) << i for i, o in enumerate(ORDERED)) for x, y in zip(a, b)])
    w.expect("spelled", "u32", [sum(t << i for i, t in enumerate((x < y, x <= y, x > y, x >= y))) for x, y in zip([u(32, v) for v in a], [u(32, v) for v in b])])


@case("compare/floats")
def _(w):
    for ty in ("f32", "f64"):
        a, b = columns(product(hexes(ty, "0", "-0", "1", "-1", "tiny", "inf", "-inf", "nan"), repeat=2))
        w.given(f"a{ty[1:]}", ty, a)
        w.given(f"b{ty[1:]}", ty, b)
    for ty in ("f32", "f64"):
        a, b = columns(product(hexes(ty, "0", "-0", "1", "-1", "tiny", "inf", "-inf", "nan"), repeat=2))
        out = []
        for x, y in zip(a, b):
            unordered = is_nan(ty, x) or is_nan(ty, y)
            key = lambda v: value(ty, v) if not is_inf(ty, v) else Fraction(-1 if sign_of(ty, v) else 1) * 2**2000
            tests = [not unordered and OPS[o](key(x), key(y)) for o in ORDERED]
            tests += [unordered or OPS[o](key(x), key(y)) for o in ORDERED]
            tests += [not unordered, unordered]
            out.append(sum(t << i for i, t in enumerate(tests)))
        # Bits: eq ne lt le gt ge equ neu ltu leu gtu geu num nan.
        w.expect(f"r{ty[1:]}", "u32", out)


@case("compare/boolean")
def _(w):
    a, b, c = columns(product([1, 2], [1, 2], [0, 1]))
    w.given("a", "u32", a)
    w.given("b", "u32", b)
    w.given("c", "u32", c)
    # setp.CmpOp.BoolOp p|q, a, b, c:  p = (a op b) bool c,  q = !(a op b) bool c; bit 0 is p, bit 1 q.
    for name, op in (("and", lambda t, k: t & k), ("or", lambda t, k: t | k), ("xor", lambda t, k: t ^ k)):
        w.expect(name, "u32", [op(int(x < y), z) | op(int(not x < y), z) << 1 for x, y, z in zip(a, b, c)])
    w.expect("negated", "u32", [(x < y) & (1 - z) for x, y, z in zip(a, b, c)])


@case("compare/f16")
def _(w):
    ty = "f16"
    a, b = columns(product(hexes(ty, "0", "-0", "1", "-1", "tiny", "inf", "-inf", "nan"), repeat=2))
    w.given("a", ty, a)
    w.given("b", ty, b)
    key = lambda v: value(ty, v) if not is_inf(ty, v) else Fraction(-1 if sign_of(ty, v) else 1) * 2**20
    out = []
    for x, y in zip(a, b):
        unordered = is_nan(ty, x) or is_nan(ty, y)
        tests = [not unordered and OPS[o](key(x), key(y)) for o in ("lt", "eq", "ge")]
        tests += [unordered or OPS[o](key(x), key(y)) for o in ("ne", "gt")] + [unordered]
        out.append(sum(t << i for i, t in enumerate(tests)))
    # Bits: lt eq ge neu gtu nan.
    w.expect("r", "u32", out)


@case("convert/f16_to_int")
def _(w):
    ty = "f16"
    a = hexes(ty, *"0 -0 0.5 -0.5 1.5 2.5 -2.5 2049 65504 -65504 255.5 inf -inf tiny".split())
    w.given("a", ty, a)
    for kind, n in (("s", 32), ("u", 32), ("s", 16), ("u", 16), ("s", 64)):
        w.expect(f"{kind}{n}_rni", f"{kind}{n}", [to_int(ty, x, n, kind == "s", "rn", 0) for x in a])
        w.expect(f"{kind}{n}_rzi", f"{kind}{n}", [to_int(ty, x, n, kind == "s", "rz", 0) for x in a])
    w.expect("u8_rpi", "u32", [to_int(ty, x, 8, False, "rp", 0) for x in a])


@case("convert/tf32")
def _(w):
    a = hexes("f32", *SPECIAL[:12], "inf", "-inf") + samples("f32", 24, 61)
    w.given("a", "f32", a)

    def tf32(x):
        # 8 bits of exponent, 10 of fraction; ties away from zero. The low 13 bits of the register are zero.
        if is_inf("f32", x):
            return x
        FORMATS["tf32"] = (8, 10)
        return rounded("tf32", value("f32", x), "rna", sign_of("f32", x)) << 13

    w.expect("r", "b32", [tf32(x) for x in a])


# Bits of threads' numbers.


@case("operand/bits_of_multiples")
def _(w):
    def row(t):
        return [
            (t << 2) & 0xFFFFFF00,
            t & 0x3FFFFFC0 | t & 63,
            t & 48,
            (t << 3) & 0xF0,
            (t << 4) >> 2,
            (t << 2) >> 4,
            u(32, (t << 2) - 256) >> 7,
            u(32, s(32, (t << 2) - 256) >> 6),
            (t + 16) & 0xFFFFFFE0,
            (t << 1) & 0x3E | (t << 6) & 0xFFFFF000,
        ]

    w.expect("r", "u32", [x for t in range(160) for x in row(t)])


@case("operand/bits_after_a_rare_way")
def _(w):
    def of(t, way):
        k = way % 4
        x = (t << k) + 5
        return (x >> 5 + k) + 4 * (x & (31 << k)) + 4096 * (x >> 5 + k << 5 + k)

    w.expect("r", "u32", [of(t, way) for way in range(32) for t in range(32)])


@case("operand/warps_of_a_grid")
def _(w):
    def row(g, count):
        back = count + ~g
        return [(g >> 5) * 1000 + (g & 31), u(32, ~g * 3), g + 5, u(32, (g & 0xFFFFFFE0) - 1), back * 2]

    for name, count in (("whole", 3 * 96), ("ragged", 3 * 80)):
        w.expect(name, "u32", [x for g in range(count) for x in row(g, count)])


# Matrices.


@case("matrix/doubles")
def _(w):
    def matrix(rows, columns, seed):
        return [[(x >> 11) * 2.0**-53 - 0.5 for x in mixed(64, columns, seed + 100 * row)] for row in range(rows)]

    a, b, c = matrix(32, 16, 1), matrix(32, 8, 7), matrix(32, 8, 9)
    # The second product has infinities, a NaN, and what only one rounding of each step gives.
    a[16][3], b[16 + 3][2], a[20][15], a[24][0], c[24][1] = math.inf, 0.0, -math.inf, math.nan, math.inf
    a[31][0], b[16][7], c[31][7] = 1.0 + 2.0**-52, 1.0 - 2.0**-53, -1.0

    def step(x, y, z):
        if all(map(math.isfinite, (x, y, z))):
            return float(Fraction(x) * Fraction(y) + Fraction(z))
        return x * y + z

    def bits(x):
        return struct.unpack("<Q", struct.pack("<d", x))[0]

    def chain(product, row, column, depth):
        total = c[16 * product + row][column]
        for k in range(depth):
            total = step(a[16 * product + row][k], b[16 * product + k][column], total)
        return "nan" if math.isnan(total) else f"0x{bits(total):016x}"

    for name, values in (("a", a), ("b", b), ("c", c)):
        w.given(name, "f64", [bits(x) for row in values for x in row])
    for name, rows, depth in (("large", 16, 16), ("small", 8, 4)):
        places = [(p, r, k) for p in range(2) for r in range(rows) for k in range(8)]
        w.expect(name, "f64", [chain(p, r, k, depth) for p, r, k in places])


# Files.


def header(name):
    lines = Lines()
    CASES[name](lines)
    return lines.lines


def updated(path, name):
    """The file's text with fresh `in` and `out` lines."""
    old = path.read_text().split("\n")
    fresh, out, inside, placed = header(name), [], False, False
    for i, line in enumerate(old):
        parameter = re.match(r"// (in|out) ", line)
        if parameter or (inside and line.startswith("//    ")):
            inside = True
            if not placed:
                out += fresh
                placed = True
            continue
        inside = False
        out.append(line)
    return "\n".join(out)


def main():
    check = "--check" in sys.argv[1:]
    stale = 0
    for name in sorted(CASES):
        path = HERE / f"{name}.ptx"
        if not path.exists():
            print(f"{name}: no such file")
            stale += 1
            continue
        text_ = updated(path, name)
        if text_ != path.read_text():
            stale += 1
            print(f"{name}: {'differs' if check else 'written'}")
            if not check:
                path.write_text(text_)
    sys.exit(1 if check and stale else 0)


if __name__ == "__main__":
    main()
