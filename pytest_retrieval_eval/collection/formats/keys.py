"""64-bit keys of byte fields, and the table that finds judged (query, document) pairs by them.

A key only ever proposes a match: equal fields have equal keys, and whoever finds equal keys compares the
bytes. So no input, however contrived, is answered wrongly; collisions cost time, never truth.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Keys = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]

# Freed at once: from now on the C library keeps blocks of up to this size for reuse, which else it gives back to the
# system and has anew, page by page, for every array.
np.empty(8 << 20, np.uint8)

PADDING = 8
"""Zero bytes that stand behind the last field of a buffer, so that every 8-byte read stays inside it."""

_KEEP = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)  # the first n bytes of a little-endian word
_LAST = ~_KEEP[::-1]  # the last n bytes
_STEP = 0x9E3779B97F4A7C15  # odd; its powers spread the words of a long field
_MIX = np.uint64(0xC2B2AE3D27D4EB4F)


def words(data: Bytes) -> Keys:
    """Every 8 bytes of ``data`` as a little-endian word: ``words(data)[i]`` reads the bytes i … i + 7."""
    view: Keys = np.ndarray((max(len(data) - 7, 0),), "<u8", data.data, 0, (1,))
    return view


def field_keys(data: Bytes, starts: Ints, lengths: Ints) -> Keys:
    """One key a field; exact (injective) for fields of up to 8 bytes without NUL bytes of equal length.

    ``data`` has at least ``PADDING`` bytes behind the last field.
    """
    if not len(starts):
        return np.zeros(0, np.uint64)
    longest = int(lengths.max())
    text = words(data)
    keys: Keys = text[starts]
    keys &= _KEEP.take(lengths, mode="clip")
    for offset in range(8, longest, 8):
        # Σ word · STEP^i: a field that has ended adds nothing, so no key depends on its neighbours' lengths
        factor = np.uint64(pow(_STEP, offset // 8, 1 << 64))
        rows = np.flatnonzero(lengths > offset)
        part = text[starts[rows] + offset]
        part &= _KEEP.take(lengths[rows] - offset, mode="clip")
        keys[rows] += part * factor
    return keys


def same_bytes(
    data: Bytes, starts: Ints, lengths: Ints, other: Bytes, other_starts: Ints, other_lengths: Ints
) -> Bools:
    """Whether field i of one buffer is, byte for byte, field i of the other."""
    same: Bools = lengths == other_lengths
    if not len(starts):
        return same
    text, other_text = words(data), words(other)
    longest = int(lengths.max())
    for offset in range(0, longest, 8):
        rows = np.flatnonzero(same & (lengths > offset))
        differs = text[starts[rows] + offset] ^ other_text[other_starts[rows] + offset]
        differs &= _KEEP.take(lengths[rows] - offset, mode="clip")
        same[rows] = differs == 0
    return same


def changes(data: Bytes, starts: Ints, lengths: Ints) -> Ints:
    """The rows, but for the first, whose field differs from the one in the row before."""
    differs: Bools = lengths[1:] != lengths[:-1]
    text = words(data)
    longest = int(lengths.max()) if len(lengths) else 0
    for offset in range(0, longest, 8):
        part = text[starts + np.minimum(offset, lengths)] if offset else text[starts]
        part &= _KEEP.take(lengths - offset, mode="clip")
        differs |= part[1:] != part[:-1]
    return np.flatnonzero(differs) + 1


def descending(data: Bytes, starts: Ints, lengths: Ints) -> list[npt.NDArray[np.generic]]:
    """Sort keys (the last is the first, as in ``np.lexsort``) that order fields by bytes, descending."""
    longest = int(lengths.max()) if len(lengths) else 0
    text = words(data)
    order: list[npt.NDArray[np.generic]] = [-lengths]  # after equal words only trailing NUL bytes can differ
    for offset in reversed(range(0, longest, 8)):
        part = text[starts + np.minimum(offset, lengths)]
        part &= _KEEP.take(lengths - offset, mode="clip")
        order.append(~part.astype("<u8", copy=False).view(">u8").astype(np.uint64))
    return order


def right_numbers(data: Bytes, ends: Ints, lengths: Ints) -> tuple[Keys, Bools]:
    """A value for each field that is ordered as the numbers are, and which fields are such: 1 … 8 digits.

    ``data`` has 8 bytes before the first field.
    """
    word: Keys = words(data)[ends - 8]
    word ^= np.uint64(0x3030303030303030)
    word &= _LAST.take(lengths, mode="clip")
    above_9 = ((word + np.uint64(0x7676767676767676)) | word) & np.uint64(0x8080808080808080)
    return word.byteswap(), (above_9 == 0) & (lengths <= 8)


def scramble(keys: Keys) -> Keys:
    """A bijection of 64-bit keys that carries every bit into the high ones."""
    mixed: Keys = keys ^ (keys >> np.uint64(32))
    mixed *= _MIX
    mixed ^= mixed >> np.uint64(29)
    return mixed


def pair_keys(query_keys: Keys, doc_keys: Keys) -> Keys:
    """Keys of (query, document) pairs; ``query_keys`` are scrambled ones."""
    mixed: Keys = query_keys ^ doc_keys
    mixed ^= mixed >> np.uint64(32)
    mixed *= _MIX
    mixed ^= mixed >> np.uint64(29)
    return mixed


class PairTable:
    """Judged pairs by key: proposes the table rows that each of many probed pairs may be."""

    __slots__ = ("_filter", "_first", "_fullest", "_keys", "_longest_run", "_rows", "_shift")

    def __init__(self, pairs: Keys) -> None:
        self._rows = np.argsort(pairs)
        self._keys = pairs[self._rows]
        # A bitmap over the high bits turns away almost every unjudged pair for one byte read each, from a cache that
        # a sparser one would not fit in.
        bits = max(12, min(18, (len(pairs) * 32).bit_length()), min(22, (len(pairs) * 8).bit_length()))
        self._shift = np.uint64(64 - bits)
        slots = (self._keys >> self._shift).view(np.int64)
        self._filter = np.zeros(1 << bits, np.bool_)
        self._filter[slots] = True
        # The keys are sorted, so that those of one slot stand together: where they begin, of the slots that are filled.
        heads = np.flatnonzero(np.diff(slots, prepend=-1))
        self._first = np.zeros(1 << bits, np.int32)
        self._first[slots[heads]] = heads
        self._fullest = int(np.diff(np.append(heads, len(pairs))).max(initial=0))
        edges = np.flatnonzero(np.diff(self._keys)) + 1
        self._longest_run = int(np.diff(np.concatenate(([0], edges, [len(pairs)]))).max())

    def probe(self, pairs: Keys) -> tuple[Ints, Ints]:
        """Positions in ``pairs`` whose key is in the table, with the table row of each.

        A position comes more than once where judged pairs share a key.
        """
        slots = (pairs >> self._shift).view(np.int64)
        maybe = np.flatnonzero(self._filter.take(slots))
        if not len(maybe):
            return maybe, maybe
        wanted = pairs[maybe]
        slot = self._first.take(slots[maybe])
        hit = self._keys.take(slot) == wanted
        for _ in range(self._fullest - 1):  # onward in the slot; keys of a later slot are no danger, for they differ
            missed = np.flatnonzero(~hit)
            slot[missed] += 1
            hit[missed] = self._keys.take(slot[missed], mode="clip") == wanted[missed]
        found, slot = np.flatnonzero(hit), np.minimum(slot[hit], len(self._keys) - 1)
        positions, rows = [maybe[found]], [self._rows[slot]]
        for step in range(1, self._longest_run):  # judged pairs that share their 64 bits
            more = slot + step < len(self._keys)
            more &= self._keys.take(slot + step, mode="clip") == wanted[found]
            positions.append(maybe[found[more]])
            rows.append(self._rows[slot[more] + step])
        return np.concatenate(positions), np.concatenate(rows)
