"""``cache``: what lies in a cache of readings, whether it is sound, and its way to other machines."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from pytest_retrieval_eval.cli.console import Console, json_text
from pytest_retrieval_eval.cli.reading import given_reader
from pytest_retrieval_eval.errors import SettingsError
from pytest_retrieval_eval.readers.reading import Reader
from pytest_retrieval_eval.readers.readings.cache import Mode, ReadingCache
from pytest_retrieval_eval.readers.readings.kept import to_text
from pytest_retrieval_eval.wording import counted, shown

_DIGEST = 12  # as many digits of a reader's digest tell it from others


def stats(arguments: argparse.Namespace, console: Console) -> int:
    """A line for each reader, or all as JSON."""
    with _cache(arguments, "ro") as cache:
        found = cache.stats()
        if arguments.json:
            console.write(
                json_text(
                    {
                        "path": str(found.path),
                        "bytes": found.bytes,
                        "readings": found.readings,
                        "claimed": found.claimed,
                        "readers": [
                            {
                                "digest": each.digest,
                                "readings": each.readings,
                                "versions": list(each.versions),
                                "identity": each.identity,
                            }
                            for each in found.readers
                        ],
                    }
                )
                + "\n"
            )
            return _told(cache, console)
        for each in found.readers:
            console.write(f"{each.digest[:_DIGEST]}\t{each.readings}\t{to_text(dict(each.identity))}\n")
            if len(each.versions) > 1:
                console.note(
                    f"the readings of {each.digest[:_DIGEST]} were made with {len(each.versions)} sets of library "
                    "versions: --json names them, and selfcheck tells whether that changes texts"
                )
        console.write(f"all\t{found.readings}\t{found.path} ({found.bytes:,} bytes)\n")
        if found.claimed:
            console.note(f"{counted(found.claimed, 'more is', 'more are')} being read at this moment")
        return _told(cache, console)


def gc(arguments: argparse.Namespace, console: Console) -> int:
    """Delete what is old, or another reader's."""
    if arguments.unused_for is None and arguments.digest is None:
        raise SettingsError("nothing says what to delete: give --unused-for DAYS, --digest DIGEST or both")
    with _cache(arguments, "rw") as cache:
        before = cache.stats()
        if arguments.digest is not None:
            _known(arguments.digest, cache)
        days = arguments.unused_for
        gone = cache.gc(unused_for=None if days is None else days * 86400.0, digest=arguments.digest)
        after = cache.stats()
        console.say(
            f"deleted {counted(gone, 'reading', 'readings')} of {before.readings}; the file has {after.bytes:,} bytes, "
            f"it had {before.bytes:,}"
        )
        return _told(cache, console)


def verify(arguments: argparse.Namespace, console: Console) -> int:
    """Check each reading; status 1 where one is damaged and stays."""
    with _cache(arguments, "rw" if arguments.delete else "ro") as cache:
        file = cache.integrity()
        if file != "ok":
            console.note(f"SQLite finds the file damaged: {file}")
        damaged = list(cache.damaged())
        for key, why in damaged:
            console.write(f"{key}\t{shown(why)}\n")
        if arguments.delete:
            cache.delete([key for key, _ in damaged])
        left = 0 if arguments.delete else len(damaged)
        total = cache.stats().readings + (len(damaged) if arguments.delete else 0)
        done = ", and deleted" if arguments.delete and damaged else ""
        console.say(f"{counted(total, 'reading', 'readings')}, {len(damaged)} damaged{done}")
        _told(cache, console)
        return 1 if left or file != "ok" else 0


def selfcheck(arguments: argparse.Namespace, console: Console) -> int:
    """Read a sample again, one item at a time, and say how many texts change."""
    from pytest_retrieval_eval.readers.readings.selfcheck import selfcheck as check
    from pytest_retrieval_eval.stats.intervals import wilson

    with _cache(arguments, "ro") as cache:
        if arguments.digest is not None:
            _known(arguments.digest, cache)
        reader, digest = _reader(arguments.reader)
        try:
            found = check(cache, reader, digest=arguments.digest or digest, sample=arguments.sample)
        finally:
            reader.close()
        for kept, now in found.flips:
            console.write(f"{kept.key}\t{to_text(kept.reading.text)}\t{to_text(now.text)}\n")
        interval = wilson(len(found.flips), found.checked)
        console.say(
            f"read {counted(found.checked, 'reading', 'readings')} of {found.reader[:_DIGEST]} again: "
            f"{len(found.flips)} with another text ({found.rate:.1%}, 95 % interval {interval.low:.1%} to "
            f"{interval.high:.1%})"
        )
        if found.failed:
            console.note(f"{counted(found.failed, 'reading', 'readings')} could not be made again, and count nowhere")
        return _told(cache, console)


def push(arguments: argparse.Namespace, console: Console) -> int:
    """Write what is new to another place."""
    from pytest_retrieval_eval.readers.readings.segments import push as write

    with _cache(arguments, "rw") as cache:
        found = write(cache, arguments.place)
        console.say(
            f"pushed {counted(found.readings, 'reading', 'readings')} in "
            f"{counted(found.segments, 'segment', 'segments')}; {found.known} were there"
        )
        return _told(cache, console)


def pull(arguments: argparse.Namespace, console: Console) -> int:
    """Take in what is new at another place."""
    from pytest_retrieval_eval.readers.readings.segments import pull as read

    with ReadingCache(arguments.cache) as cache:
        found = read(cache, arguments.place)
        for warning in found.warnings:
            console.note(warning)
        console.say(
            f"pulled {counted(found.segments, 'segment', 'segments')} with "
            f"{counted(found.readings, 'reading', 'readings')}: {found.new} new, {found.conflicts} in conflict"
        )
        if found.conflicts:
            console.note(f"of {counted(found.conflicts, 'key', 'keys')} there is another text here, which stays")
        return _told(cache, console)


def _cache(arguments: argparse.Namespace, mode: Mode) -> ReadingCache:
    """The cache in the folder of ``--cache``; one that is not there is an error, not an empty one."""
    cache = ReadingCache(arguments.cache, mode)
    if not cache.path.is_file():
        raise SettingsError(f"there is no cache of readings in {arguments.cache}; name its folder with --cache")
    return cache


def _told(cache: ReadingCache, console: Console) -> int:
    for warning in cache.warnings:
        console.note(warning)
    return 0


def _known(digest: str, cache: ReadingCache) -> None:
    """A digest that fits no reader, or more than one, is an error."""
    digests = [each.digest for each in cache.stats().readers]
    fitting = [each for each in digests if each.startswith(digest)]
    if len(fitting) != 1:
        many = f"{len(fitting)} readers" if fitting else "no reader"
        raise SettingsError(
            f"{cache.path} has {many} whose digest begins with {digest!r}; "
            f"known: {', '.join(each[:_DIGEST] for each in digests) or 'none'}"
        )


def _reader(text: str) -> tuple[Reader, str | None]:
    """The reader to read with, and the digest of the one whose readings are meant, where that is another."""
    given, root = given_reader(text)
    if not isinstance(given, Mapping):
        return given, None
    from pytest_retrieval_eval.readers.config import reader_from
    from pytest_retrieval_eval.readers.reading import identity_digest
    from pytest_retrieval_eval.readers.readings.selfcheck import alone

    identity = reader_from(given, root=root).identity
    if identity is None:
        raise SettingsError(f"--reader {text}: this reader has no identity, so none of its readings are kept")
    return reader_from(alone(given), root=root), identity_digest(identity)
