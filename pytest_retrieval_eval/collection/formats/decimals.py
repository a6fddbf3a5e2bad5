"""Decimal numbers in text, parsed by the million: each value is exactly Python's ``float`` of its bytes.

Eight characters are one 64-bit word, and arithmetic on words treats them at once. Up to 16 characters give a
mantissa and a power of ten that are both exact doubles, so that one division rounds correctly; up to 24
characters (17 digits) take a division in double-double arithmetic with a proof of the rounding. Exponents,
infinities and whatever else ``float`` reads take one call each.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pytest_retrieval_eval.collection.formats.keys import Bools, Bytes, Ints, Keys, words

LEADING = 24
"""Bytes that must lie before the first field of a buffer, whatever they are."""

_U = np.uint64
_ZEROS = _U(0x3030303030303030)
_DOTS = _U(0x1E1E1E1E1E1E1E1E)  # "........" after the exclusive or with "00000000"
_LOW7 = _U(0x7F7F7F7F7F7F7F7F)
_HIGH = _U(0x8080808080808080)
_ABOVE_9 = _U(0x7676767676767676)
_ALL = (1 << 64) - 1

# The last n bytes before the end of a field, which is where a little-endian word has its high bytes.
_LAST = np.array([_ALL ^ ((1 << 8 * (8 - n)) - 1) for n in range(9)], _U)

# A point at byte i of a word is case i + 1, no point is case 0, a point further right is case 9. The bytes
# before the point move up by one, over it.
_BEFORE = np.array([0, *((1 << 8 * i) - 1 for i in range(8)), _ALL], _U)
_BEHIND = np.array([_ALL, *(_ALL ^ ((1 << 8 * (i + 1)) - 1) for i in range(8)), 0], _U)
_CARRY = np.array([0, *[0xFF] * 9], _U)
_CASE = _U(sum((i + 1) << (60 - 8 * i) for i in range(8)))  # (1 << 8 i) * _CASE has i + 1 in its top 4 bits
_DECIMALS = np.array([[0, *range(8 * k + 7, 8 * k - 1, -1), 0] for k in range(3)])  # in the k-th word from the right

_TENS = np.array([10**n for n in range(20)], _U)
_FLOAT_TENS = np.array([10.0**n for n in range(23)])
_E8 = _U(10**8)
_EXACT = _U(1 << 53)


def parse_decimals(data: Bytes, starts: Ints, lengths: Ints) -> npt.NDArray[np.float64]:
    """The value of each field (float64). Raises NotANumber with the first row that ``float`` does not read.

    Fields are not empty; ``data`` has ``LEADING`` bytes before the first one and 8 behind the last.
    """
    negative = data[starts] == ord("-")
    digits = starts + negative
    ends = starts + lengths
    size = ends - digits
    text = words(data)
    short = size <= 16
    if short.all():
        values, sure = _short(data, text, ends, size)
    else:
        values, sure = np.zeros(len(starts)), np.zeros(len(starts), np.bool_)
        rows = np.flatnonzero(short)
        if len(rows):
            values[rows], sure[rows] = _short(data, text, ends[rows], size[rows])
    if not sure.all():
        rows = np.flatnonzero(~sure & (size > 15) & (size <= 24))
        if len(rows):
            values[rows], sure[rows] = _long(text, ends[rows], size[rows])
    np.negative(values, out=values, where=negative)
    if not sure.all():
        rows = np.flatnonzero(~sure)
        values[rows] = _by_python(data, starts[rows], ends[rows], rows)
    return values


def _by_python(data: Bytes, starts: Ints, ends: Ints, rows: Ints) -> list[float]:
    low = int(starts[0])
    raw = data[low : int(ends[-1])].tobytes()
    spans = zip((starts - low).tolist(), (ends - low).tolist(), rows.tolist(), strict=True)
    row = -1
    try:
        return [float(raw[start:end]) for start, end, row in spans]
    except ValueError:
        for start, end, row in zip((starts - low).tolist(), (ends - low).tolist(), rows.tolist(), strict=True):
            try:
                float(raw[start:end])
            except ValueError:
                raise NotANumber(row) from None
        raise


class NotANumber(ValueError):  # it is what the field is
    """The field ``row`` is no number."""

    def __init__(self, row: int) -> None:
        super().__init__(f"field {row} is no number")
        self.row = row


def _short(data: Bytes, text: Keys, ends: Ints, lengths: Ints) -> tuple[npt.NDArray[np.float64], Bools]:
    """Values of fields of up to 16 characters, and where they are sure."""
    places = _common_places(data, ends, lengths)
    if places is not None:
        return _fixed(data, text, ends, lengths, places)
    if int(lengths.max()) <= 8 and int(lengths.min()) > 0:
        whole, other = _whole(text, ends, lengths)
        if not other.any():
            return whole, np.ones(len(ends), np.bool_)
    count = 1 if int(lengths.max()) <= 8 else 2
    parts, decimals, wrong = _digits(text, ends, lengths, count)
    mantissa = parts[0]
    sure = wrong == 0
    if count == 2:
        mantissa += parts[1] * _E8
        sure &= mantissa <= _EXACT
    if int(lengths.min()) < 2:  # "." and "-" have no digit at all
        sure &= (lengths > 1) | ((lengths == 1) & (data[ends - 1] != ord(".")))
    values = mantissa.astype(np.float64)
    values /= _FLOAT_TENS[decimals]
    return values, sure


def _whole(text: Keys, ends: Ints, lengths: Ints) -> tuple[npt.NDArray[np.float64], Bools]:
    """Values of fields of 1 to 8 digits, and which fields have something else."""
    word = text[ends - 8]
    word ^= _ZEROS
    word &= _LAST.take(lengths, mode="clip")
    wrong = (word + _ABOVE_9) | word
    wrong &= _HIGH
    return _number(word).astype(np.float64), wrong != 0


def _common_places(data: Bytes, ends: Ints, lengths: Ints) -> int | None:
    """How many decimals every field has, if 1 … 7 and the same in all of them."""
    end = int(ends[0])
    places = data[end - int(lengths[0]) : end].tobytes()[::-1].find(b".")
    if 0 < places < 8 and int(lengths.min()) > places and (data[ends - 1 - places] == ord(".")).all():
        return places
    return None


def _fixed(data: Bytes, text: Keys, ends: Ints, lengths: Ints, places: int) -> tuple[npt.NDArray[np.float64], Bools]:
    """Values of fields of up to 16 characters that all have as many decimals, and where they are sure."""
    longest = int(lengths.max())
    word = text[ends - 8]
    word ^= _ZEROS
    # the characters before the point move up by one, over it, and make room for one more
    clean = word & _BEFORE[8 - places]
    clean <<= _U(8)
    word &= _BEHIND[8 - places]
    clean |= word
    if longest <= 9:
        clean |= data[ends - 9] ^ np.uint8(ord("0"))
        clean &= _LAST.take(lengths - 1, mode="clip")
        wrong = (clean + _ABOVE_9) | clean
        mantissa = _number(clean)
    else:
        upper = text[ends - 16]
        upper ^= _ZEROS
        clean |= upper >> _U(56)
        clean &= _LAST.take(lengths - 1, mode="clip")
        upper <<= _U(8)
        upper &= _LAST.take(lengths - 9, mode="clip")
        wrong = (clean + _ABOVE_9) | clean
        wrong |= (upper + _ABOVE_9) | upper
        mantissa = _number(upper)
        mantissa *= _E8
        mantissa += _number(clean)
    wrong &= _HIGH
    values = mantissa.astype(np.float64)
    values /= _FLOAT_TENS[places]  # 15 digits at most: both are exact
    return values, wrong == 0


def _long(text: Keys, ends: Ints, lengths: Ints) -> tuple[npt.NDArray[np.float64], Bools]:
    """Values of fields of up to 24 characters (mantissa below 2**64), and where their rounding is proved."""
    parts, decimals, wrong = _digits(text, ends, lengths, 3)
    upper = parts[2] * _E8 + parts[1]
    sure = (wrong == 0) & (upper < _U((1 << 64) // 10**8)) & (decimals <= 22)
    mantissa = upper * _E8 + parts[0]
    divisor = _FLOAT_TENS.take(decimals, mode="clip")
    # mantissa = high + low, exactly
    high = mantissa.astype(np.float64)
    high[~sure] = 0.0
    low = (mantissa - high.astype(_U)).view(np.int64).astype(np.float64)
    quotient = high / divisor
    # quotient · divisor = product + error, exactly (Dekker 1971)
    product = quotient * divisor
    a, b = _halves(quotient)
    c, d = _halves(divisor)
    error = ((a * c - product) + a * d + b * c) + b * d
    rest = ((high - product) - error + low) / divisor
    # rest has a relative error of a few 2**-53: where both bounds round to one double, so does the truth
    below, above = quotient + rest * (1 - 1e-13), quotient + rest * (1 + 1e-13)
    return above, sure & (below == above)


def _halves(x: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Upper and lower 26 bits of each double, which add up to it (Veltkamp's splitting)."""
    scaled = 134217729.0 * x
    upper = scaled - (scaled - x)
    return upper, x - upper


def _digits(text: Keys, ends: Ints, lengths: Ints, count: int) -> tuple[list[Keys], Ints, Keys]:
    """The numbers that the digits of each field are: ``count`` parts of 8 from the right, without the point.

    Also how many decimals each field has, and a mask that is not 0 where a character is no digit.
    """
    read = []
    for k in range(count):
        word = text[ends - 8 * (k + 1)]
        word ^= _ZEROS
        word &= _LAST.take(lengths - 8 * k, mode="clip")
        read.append(word)

    decimals: Ints = np.zeros(len(ends), np.int64)
    parts: list[Keys] = []
    wrong = np.zeros(len(ends), _U)
    passed: Bools = np.zeros(len(ends), np.bool_)  # the point stands further right
    for k, word in enumerate(read):
        found = _zero_bytes(word ^ _DOTS)
        found &= ~found + _U(1)  # one point; a second one stays and is no digit
        case: Ints = (((found >> _U(7)) * _CASE) >> _U(60)).view(np.int64)
        case[passed] = 9
        passed = case > 0
        decimals += _DECIMALS[k].take(case)
        clean = ((word & _BEFORE[case]) << _U(8)) | (word & _BEHIND[case])
        if k + 1 < count:
            clean |= (read[k + 1] >> _U(56)) & _CARRY[case]
        wrong |= (clean + _ABOVE_9) | clean
        parts.append(_number(clean))
    wrong &= _HIGH
    return parts, decimals, wrong


def _zero_bytes(word: Keys) -> Keys:
    """0x80 in each byte that is 0, else 0."""
    zero: Keys = ~(((word & _LOW7) + _LOW7) | word | _LOW7)
    return zero


def _number(word: Keys) -> Keys:
    """The number that 8 digits (as bytes 0 … 9, the first one lowest) are."""
    pairs: Keys = word * _U(10) + (word >> _U(8))
    upper: Keys = (pairs & _U(0x000000FF000000FF)) * _U(0x000F424000000064)
    lower = ((pairs >> _U(16)) & _U(0x000000FF000000FF)) * _U(0x0000271000000001)
    upper += lower
    upper >>= _U(32)
    return upper
