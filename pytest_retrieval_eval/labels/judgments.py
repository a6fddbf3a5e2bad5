"""A folder of judgments: text under version control, a line a grade, and each pair of texts graded once.

judgments/.gitattributes        lines of both sides of a merge are kept
judgments/<judge>/judge.json    the identity that the grades beside it belong to
judgments/<judge>/all.jsonl     the grades, sorted; from 100,000 on in 16 files by query (all-0.jsonl … all-f.jsonl)
judgments/<judge>/journal.jsonl what was judged since; part of the judgments until it is compacted
judgments/human/<source>.jsonl  the labels of people
judgments/failures.jsonl        the pairs that got no grade, and why
judgments/.index/               what can be made anew
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pytest_retrieval_eval.collection.formats.files import PathLike, json_lines, utf8, write_atomically
from pytest_retrieval_eval.errors import GateError, SettingsError
from pytest_retrieval_eval.labels.store.failures import Failure, failure_of, merged
from pytest_retrieval_eval.labels.store.journal import append, read_journal, side_folder, writing
from pytest_retrieval_eval.labels.store.judges import FILE as JUDGE
from pytest_retrieval_eval.labels.store.judges import HUMAN, KeptJudge, chosen_judges, keep_judge, read_judges
from pytest_retrieval_eval.labels.store.rows import (
    Contradiction,
    Contradictions,
    Judgment,
    Key,
    check_contradictions,
    judgment_of,
    read_rows,
    text_hash,
    to_line,
    without_repeats,
)
from pytest_retrieval_eval.labels.store.table import Table, in_order, read_table

if TYPE_CHECKING:
    from pytest_retrieval_eval.labels.judging.judge import Judge

__all__ = ["Judgment", "Judgments", "text_hash"]

_ATTRIBUTES = "*.jsonl merge=union text eol=lf\n"
_SHARDED = 100_000  # rows from which on a judge's grades lie in several files
_JOURNAL, _ALL, _FAILURES = "journal.jsonl", "all.jsonl", "failures.jsonl"
_REPEATED = "repeated.jsonl"
_INDEXED = 2_000_000  # bytes of files from which on their columns are kept
_COMPACT = "pytest-retrieval-eval judgments compact"


@dataclass(frozen=True, slots=True)
class Grade:
    """A grade that holds for a pair of texts, and whose it is: a judge's name, or ``human``."""

    grade: float
    source: str


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a compaction did: rows and failures that came from the journal, and lines that were torn."""

    rows: int = 0
    failures: int = 0
    torn: int = 0


@dataclass(frozen=True, slots=True)
class Added:
    """What labels of people added: lines that are new, and lines that were there and have another weight now."""

    new: int
    weights: int


class Judgments:
    """The judgments in a folder. What the journal holds counts as what the files hold.

    ``judged_by`` names the judges whose grades count, in their order (folders, or beginnings of digests); it may be
    left out where there is only one. The labels of people go before all of them. ``contradictions`` says what becomes
    of different grades of one pair: ``refuse`` (a DataError with both lines), ``first``, ``max`` or ``median``.

    Files are read when they are first asked for. A folder that is not there is empty until something is added. A file
    that cannot be read is a DataError with its line, several judges of which none is named a SettingsError.

    >>> import tempfile
    >>> from pytest_retrieval_eval import CallableJudge, Pair, Scale, fill_judgments
    >>> judge = CallableJudge(lambda query, text: int("Ann" in text), Scale(0, 1), identity="names Ann, v1")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kept = Judgments(folder)
    ...     _ = fill_judgments(kept, judge, [Pair("q1", "d7", "Who?", "Ann did.")])
    ...     [grade.grade for grade in Judgments(folder).grades("q1").values()]
    [1.0]
    """

    def __init__(
        self, folder: PathLike, *, judged_by: Sequence[str] = (), contradictions: Contradictions = "refuse"
    ) -> None:
        self.folder = Path(folder)
        self._names = tuple(judged_by)
        self._how = check_contradictions(contradictions)
        self._tables: dict[str, Table] = {}
        self._known: dict[str, KeptJudge] | None = None
        self._kinds: dict[tuple[float, str], Grade] = {}
        if self.folder.exists() and not self.folder.is_dir():
            raise SettingsError(f"{self.folder} is a file; expected a folder of judgments")

    @classmethod
    def open(
        cls, folder: PathLike, *, judged_by: Sequence[str] = (), contradictions: Contradictions = "refuse"
    ) -> Judgments:
        """The judgments in a folder that is there, or a GateError."""
        if not Path(folder).is_dir():
            raise GateError(
                f"there is no folder of judgments {folder}: pytest-retrieval-eval judge makes it, and fills it"
            )
        return cls(folder, judged_by=judged_by, contradictions=contradictions)

    def __repr__(self) -> str:
        return f"<Judgments {self.folder}>"

    # --- what there is ---------------------------------------------------------------------------------

    @property
    def judges(self) -> Mapping[str, KeptJudge]:
        """Every judge whose grades are kept here, by the name of its folder."""
        if self._known is None:
            self._known = read_judges(self.folder) if self.folder.is_dir() else {}
        return self._known

    @cached_property
    def chosen(self) -> tuple[KeptJudge, ...]:
        """The judges whose grades count, in their order."""
        return chosen_judges(self.judges, self._names, self.folder)

    @property
    def sources(self) -> tuple[str, ...]:
        """The files of the labels of people, by name."""
        return tuple(path.stem for path in self._human_files())

    def table(self, judge: str) -> Table:
        """The grades of one judge; ``human`` are those of people."""
        if judge not in self._tables:
            self._tables[judge] = self._human() if judge == HUMAN else self._of_judge(judge)
        return self._tables[judge]

    def rows(self, judge: str) -> Iterator[tuple[Judgment, str]]:
        """Every row of one judge (or ``human``) as it was written, with its place; repetitions as well."""
        files = self._human_files() if judge == HUMAN else [*self._files(judge), self.folder / judge / _REPEATED]
        for path in files:
            if path.exists():
                yield from read_rows(path)
        if judge != HUMAN:
            yield from self._journal(judge).rows

    def grades(self, query_id: str) -> dict[Key, Grade]:
        """The grades of one query, those of people before those of the judges, in their order."""
        found: dict[Key, Grade] = {}
        for name in (HUMAN, *(kept.name for kept in self.chosen)):
            given = self.table(name).of_query(query_id)
            # A grade of one judge is one object, of whatever many pairs: there may be hundreds of thousands.
            kinds = {grade: self._kinds.setdefault((grade, name), Grade(grade, name)) for grade in set(given.values())}
            for key, grade in given.items():
                found.setdefault(key, kinds[grade])
        return found

    def grade(self, key: Key) -> Grade | None:
        """The grade of a pair of texts; None where nobody has judged these texts."""
        return self.grades(key[0]).get(key)

    def unjudged(self, keys: Iterable[Key]) -> list[Key]:
        """Those of the pairs that have no grade, in their order."""
        by_query: dict[str, list[Key]] = {}
        keys = list(keys)
        for key in keys:
            by_query.setdefault(key[0], []).append(key)
        known = {key for query in by_query for key in self.grades(query)}
        return [key for key in keys if key not in known]

    @property
    def query_ids(self) -> tuple[str, ...]:
        """The queries with a grade that counts."""
        names = (HUMAN, *(kept.name for kept in self.chosen))
        return tuple(dict.fromkeys(query for name in names for query in self.table(name).query_ids))

    def failures(self, judge: str | None = None) -> list[Failure]:
        """The pairs that got no grade (of one judge, or of all), sorted; not those that have got one since."""
        kept = [*self._failed(), *(each for name in self.judges for each in self._journal(name).failures)]
        lenient = Judgments(self.folder, contradictions="first")
        found = merged(each for each in kept if not lenient._is_graded(each))
        return [each for each in found if judge is None or each.judge == judge]

    def contradictions(self) -> list[Contradiction]:
        """Every pair with different grades of one judge, or of people."""
        lenient = Judgments(self.folder, contradictions="first")
        return [found for name in (HUMAN, *self.judges) for found in lenient.table(name).contradictions]

    # --- what is added ---------------------------------------------------------------------------------

    def keep(self, judge: Judge, *, allow_floating: bool = False) -> KeptJudge:
        """The folder of a judge's grades, made where its identity is new here.

        A judge without an identity is refused, and one that is not pinned unless ``allow_floating``.
        """
        with self._writing():
            return keep_judge(self.folder, judge, self.judges, allow_floating=allow_floating)

    def add(self, judge: str, rows: Iterable[Judgment]) -> int:
        """Write grades of a judge into its journal, each as it comes; returns how many."""
        self._check_judge(judge)
        count = 0
        for row in rows:
            with writing(self.folder):
                append(self.folder / judge / _JOURNAL, row.line)
            count += 1
            self._tables.pop(judge, None)
        return count

    def fail(self, failures: Iterable[Failure]) -> None:
        """Write down pairs that got no grade."""
        for failure in failures:
            self._check_judge(failure.judge)
            with writing(self.folder):
                append(self.folder / failure.judge / _JOURNAL, to_line(failure.row))

    def add_human(self, name: str, rows: Iterable[Judgment]) -> Added:
        """Put labels of people into ``human/<name>.jsonl``; returns what that changed.

        Where a row says again what is there, with another weight, its weight takes the place of the former one.
        """
        if not name or any(char in name for char in "/\\") or name.startswith("."):
            raise SettingsError(f"the name of the labels is {name!r}; expected a name such as ann")
        path = self.folder / HUMAN / f"{name}.jsonl"
        with self._writing():
            before = [row for row, _ in read_rows(path)] if path.exists() else []
            given = list(rows)
            weights = {row.said: row.w for row in given if row.w is not None}
            weighed = [replace(row, w=weights.get(row.said, row.w)) for row in before]
            after = without_repeats([*weighed, *given])
            _write(path, after)
        changed = sum(old.w != row.w for old, row in zip(before, weighed, strict=True))
        return Added(len(after) - len(before), changed)

    def compact(self, *, tidy: bool = False) -> Compacted:
        """Put what the journals hold into the files; with ``tidy`` also bring files into their order that a merge left.

        One process at a time. A process that is killed in between has lost nothing: rows that stand in a file and in
        the journal count once.
        """
        if not self.folder.is_dir():
            return Compacted()
        done = Compacted()
        with self._writing():
            failures: list[Failure] = []
            journals = []
            for name in self.judges:
                found = self._journal(name)
                self._put(name, [row for row, _ in found.rows], tidy=tidy)
                failures += found.failures
                journals.append(self.folder / name / _JOURNAL)
                done = Compacted(
                    done.rows + len(found.rows), done.failures + len(found.failures), done.torn + found.torn
                )
            self._put_failures(failures)
            for journal in journals:  # last of all: until here it holds what the files may lack
                journal.unlink(missing_ok=True)
            for path in self._human_files() if tidy else []:
                _write(path, without_repeats(row for row, _ in read_rows(path)))
        return done

    def merge(self, other: Judgments) -> int:
        """Take in what another folder has; grades go to the judge with the same identity. Returns new rows."""
        before = self._sizes()
        with self._writing():
            for theirs in other.judges.values():
                ours = next((kept.name for kept in self.judges.values() if kept.digest == theirs.digest), None)
                if ours is None:
                    # A folder may have been renamed, so that another judge has that name here.
                    ours = theirs.name if theirs.name not in self.judges else f"{theirs.name}-{theirs.digest[:8]}"
                    with write_atomically(self.folder / ours / JUDGE) as file:
                        file.write((other.folder / theirs.name / JUDGE).read_bytes())
                    self._known = None
                self._put(ours, [row for row, _ in other.rows(theirs.name)])
                failed = [each for each in other.failures() if each.judge == theirs.name]
                self._put_failures([replace(each, judge=ours) for each in failed])
        for path in other._human_files():
            self.add_human(path.stem, (row for row, _ in read_rows(path)))
        after = self._sizes()
        return sum(after.values()) - sum(before.values())

    def check(self) -> list[str]:
        """What is wrong or unfinished, a sentence each; empty where all is well."""
        found = [str(each) for each in self.contradictions()]
        for name, kept in self.judges.items():
            if any(
                grade not in map(float, range(kept.scale.least, kept.scale.most + 1)) for grade in self._given(name)
            ):
                found += [
                    f"{place}: the grade {row.g:g} is none of {name}, which gives {kept.scale}"
                    for row, place in self.rows(name)
                    if row.g != int(row.g) or int(row.g) not in kept.scale
                ]
            journal = self._journal(name)
            if journal.rows or journal.failures or journal.torn:
                torn = f", and {journal.torn} torn" if journal.torn else ""
                found.append(
                    f"{self.folder / name / _JOURNAL}: {len(journal.rows) + len(journal.failures)} lines{torn} are not "
                    f"in the files yet; {_COMPACT} puts them there"
                )
        for path in [*self._human_files(), *(file for name in self.judges for file in self._files(name))]:
            if not _is_tidy(path):
                found.append(f"{path}: the lines are not sorted, or some say the same twice; {_COMPACT} tidies them")
        attributes = self.folder / ".gitattributes"
        if not attributes.exists() or "merge=union" not in attributes.read_text(encoding="utf-8"):
            found.append(f"{attributes} does not say {_ATTRIBUTES.strip()!r}, so that merges would conflict")
        return found

    # --- how it is done --------------------------------------------------------------------------------

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """The folder, made where there is none, with its lock; what was read of it is read again afterwards."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with writing(self.folder):
            attributes = self.folder / ".gitattributes"
            if not attributes.exists():
                attributes.write_text(_ATTRIBUTES, encoding="utf-8")
            self._forget()
            try:
                yield
            finally:
                self._forget()

    def _forget(self) -> None:
        self._known = None
        self._tables.clear()
        self.__dict__.pop("chosen", None)

    def _sizes(self) -> dict[str, int]:
        lenient = Judgments(self.folder, contradictions="first")
        return {name: len(lenient.table(name)) for name in (HUMAN, *lenient.judges)}

    def _given(self, judge: str) -> set[float]:
        """The different grades of a judge."""
        table = Judgments(self.folder, contradictions="first").table(judge)
        found = set(np.unique(table.columns.grades).tolist())
        return found | {grade for several in table.beside.values() for grade in several.values()}

    def _check_judge(self, judge: str) -> None:
        if judge not in self.judges:
            raise SettingsError(f"{self.folder} has no judge {judge!r}; known: {', '.join(self.judges) or 'none'}")

    def _human_files(self) -> list[Path]:
        return sorted((self.folder / HUMAN).glob("*.jsonl"))

    def _files(self, judge: str) -> list[Path]:
        return sorted((self.folder / judge).glob("all*.jsonl"))

    def _human(self) -> Table:
        rows = [row for path in self._human_files() for row in read_rows(path)]
        return read_table([], rows, how=self._how)

    def _of_judge(self, judge: str) -> Table:
        self._check_judge(judge)
        # The journal before the files: what is compacted meanwhile stands in both, and not in neither.
        journal = self._journal(judge)
        index = None
        files = self._files(judge)
        if sum(path.stat().st_size for path in files) > _INDEXED:
            with suppress(OSError):  # a folder that cannot be written is read without an index
                index = side_folder(self.folder) / f"{judge}.npz"
        table = read_table(
            files, [(row, place) for row, place in journal.rows if not row.r], how=self._how, index=index
        )
        table.torn = journal.torn
        return table

    def _journal(self, judge: str) -> _Journal:
        found = read_journal(self.folder / judge / _JOURNAL)
        made = _Journal([], [], found.torn)
        for row, place in found.rows:
            if "outcome" in row:
                made.failures.append(failure_of(row, judge, place))
            else:
                made.rows.append((judgment_of(row, place), place))
        return made

    def _put(self, judge: str, rows: Sequence[Judgment], *, tidy: bool = False) -> None:
        """Put rows into the files of a judge."""
        place = self.folder / judge
        again = [row for row in rows if row.r]
        if again:
            _merge_into(place / _REPEATED, again)
        first = [row for row in rows if not row.r]
        files = self._files(judge)
        whole = place / _ALL
        sharded = any(path != whole for path in files)
        if not sharded and sum(map(_lines, files)) + len(first) > _SHARDED:
            sharded = True
        if sharded and whole in files:
            first += [row for row, _ in read_rows(whole)]
        by_file: dict[Path, list[Judgment]] = {}
        for row in first:
            by_file.setdefault(place / _shard(row.q) if sharded else whole, []).append(row)
        for path, new in by_file.items():
            _merge_into(path, new)
        if sharded:
            whole.unlink(missing_ok=True)
        for path in self._files(judge) if tidy else []:
            if path not in by_file and not _is_tidy(path):
                _merge_into(path, [])

    def _put_failures(self, new: Sequence[Failure]) -> None:
        path = self.folder / _FAILURES
        kept = merged(each for each in [*self._failed(), *new] if not self._is_graded(each))
        if kept:
            _write_lines(path, [each.line for each in kept])
        else:
            path.unlink(missing_ok=True)

    def _failed(self) -> list[Failure]:
        path = self.folder / _FAILURES
        if not path.exists():
            return []
        return [failure_of(row, None, f"{path}:{number}") for number, row in json_lines(path)]

    def _is_graded(self, failure: Failure) -> bool:
        if failure.judge not in self.judges:
            return False
        if failure.judge not in self._tables:
            self._tables[failure.judge] = Judgments(self.folder, contradictions="first").table(failure.judge)
        return failure.key in self._tables[failure.judge].of_query(failure.q)


@dataclass(slots=True)
class _Journal:
    rows: list[tuple[Judgment, str]]
    failures: list[Failure]
    torn: int


def now() -> str:
    """The time as judgments have it.

    >>> len(now())
    20
    """
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _shard(query_id: str) -> str:
    return f"all-{hashlib.sha256(query_id.encode()).hexdigest()[0]}.jsonl"


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def _is_tidy(path: Path) -> bool:
    if in_order(path):
        return True
    lines = path.read_bytes().decode("utf-8").split("\n")
    return lines == [*(row.line for row in without_repeats(row for row, _ in read_rows(path))), ""]


def _merge_into(path: Path, rows: Iterable[Judgment]) -> None:
    before = [row for row, _ in read_rows(path)] if path.exists() else []
    _write(path, without_repeats([*before, *rows]))


def _write(path: Path, rows: Iterable[Judgment]) -> None:
    _write_lines(path, [row.line for row in rows])


def _write_lines(path: Path, lines: Sequence[str]) -> None:
    data = utf8("".join(f"{line}\n" for line in lines))
    if not path.exists() or path.read_bytes() != data:  # an unchanged file keeps its time
        with write_atomically(path) as file:
            file.write(data)
