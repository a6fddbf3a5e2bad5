"""Baselines as they were committed: ``git:REF`` and ``git:REF:PATH``.

A pull request is gated against the branch that it targets, without a checkout of it: the file is read out of the
repository's objects.
"""

from __future__ import annotations

import difflib
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from pytest_retrieval_eval.collection.runs.elsewhere import run_of_bytes
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.errors import GateError
from pytest_retrieval_eval.wording import shown

PREFIX = "git:"
# Reading one file takes milliseconds; a partial clone may fetch it first.
_SECONDS = 60
_OF_A_HOOK = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")


@dataclass(frozen=True, slots=True)
class Revision:
    """``git:REF`` (``path`` None: the baseline's own place) or ``git:REF:PATH``."""

    ref: str
    path: str | None = None

    @classmethod
    def parse(cls, text: str) -> Revision:
        """What ``git:…`` names; a ``GateError`` where it names nothing.

        >>> Revision.parse("git:origin/main"), Revision.parse("git:v1.0:runs/bm25.trec")
        (Revision(ref='origin/main', path=None), Revision(ref='v1.0', path='runs/bm25.trec'))
        """
        ref, colon, path = text.removeprefix(PREFIX).partition(":")
        if not ref or (colon and not path) or ref.startswith("-") or any(c.isspace() or c < " " for c in ref):
            raise GateError(
                f"{shown(text, 60)!r} names no commit; write git:REF for the same baseline at another commit, such as "
                "git:origin/main, or git:REF:PATH for another file there"
            )
        return cls(ref, path or None)

    def __str__(self) -> str:
        return f"{PREFIX}{self.ref}" + (f":{self.path}" if self.path else "")


def read_revision(revision: Revision, place: Path | None, here: Path) -> Run:
    """The run that a repository has at a commit.

    ``place`` is where the baseline lies in the working tree (None where it has no place; a path is then needed), and
    ``./…`` in a revision's path is relative to ``here``. The run's source names the commit. Raises a ``GateError``
    that says which commit, path or fetch is missing.
    """
    path = revision.path
    if path is not None and not re.match(r"\.\.?/", path):
        git = _Git(_closest_folder(here), revision)
        return _read(git, git.commit(), os.path.normpath(path).replace(os.sep, "/"))
    inside = place if path is None else here / path
    if inside is None:
        raise GateError(
            f"{revision}: the dataset is not in a folder, so that its baseline has no place in the repository; name "
            f"the file: git:{revision.ref}:PATH"
        )
    inside = Path(os.path.abspath(inside))
    folder = _closest_folder(inside.parent)
    git = _Git(folder, revision)
    within = os.path.join(git.ask("rev-parse", "--show-prefix"), os.path.relpath(inside, folder))
    return _read(git, git.commit(), os.path.normpath(within).replace(os.sep, "/"))


def _closest_folder(place: Path) -> Path:
    """``place``, or the closest folder around it that there is: git asks from it."""
    while not place.is_dir() and place != place.parent:
        place = place.parent
    return place


def _read(git: _Git, commit: str, path: str) -> Run:
    key = commit, path, git.ask("rev-parse", "--absolute-git-dir")
    if key not in _READ:
        if len(_READ) >= 8:
            _READ.pop(next(iter(_READ)))
        _READ[key] = run_of_bytes(git.blob(commit, path), path.rpartition("/")[2], f"git:{commit[:12]}:{path}")
    return _READ[key]


# What was read by (commit, path, repository): a commit never changes.
_READ: dict[tuple[str, str, str], Run] = {}


class _Git:
    """git, asked from one folder about one revision."""

    def __init__(self, folder: Path, revision: Revision) -> None:
        self.folder, self.revision = folder, revision
        known = self.run("rev-parse", "--git-dir")
        if known.returncode:
            said = known.stderr.decode(errors="replace").strip()
            raise GateError(f"{revision}: {folder} is in no git repository that can be read (git says: {said})")

    def run(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        # The repository is that of the folder, also in a hook of another one; no prompt for a password, no lock that
        # another git would meet, messages in English.
        environment = {key: value for key, value in os.environ.items() if key not in _OF_A_HOOK}
        environment |= {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
        try:
            return subprocess.run(
                ["git", *arguments],
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_SECONDS,
                check=False,
            )
        except FileNotFoundError:
            raise GateError(f"{self.revision}: git is not installed, or not on the PATH") from None
        except subprocess.TimeoutExpired:
            raise GateError(f"{self.revision}: `git {' '.join(arguments)}` took more than {_SECONDS} seconds") from None

    def ask(self, *arguments: str) -> str:
        """The answer as text; empty where git has none."""
        done = self.run(*arguments)
        return "" if done.returncode else done.stdout.decode(errors="surrogateescape").rstrip("\n")

    def commit(self) -> str:
        """The id of the revision's commit; a ``GateError`` with what to fetch where it is not here."""
        found = self.ask("rev-parse", "--verify", "--quiet", f"{self.revision.ref}^{{commit}}")
        if found:
            return found
        ref = self.revision.ref
        shallow = self.ask("rev-parse", "--is-shallow-repository") == "true"
        fetch = self._fetch(ref, shallow=shallow)
        if not self.ask("remote"):
            fetch = "git remote add origin URL, then git fetch origin (this repository has no remote)"
        if shallow:
            raise GateError(f"{self.revision}: this clone is shallow and has no commit {ref}; fetch it: {fetch}")
        known = self.ask("for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/remotes", "refs/tags")
        close = difflib.get_close_matches(ref, known.split("\n"), n=1, cutoff=0.8)
        advice = f"did you mean {PREFIX}{close[0]}?" if close else f"fetch it: {fetch}"
        raise GateError(f"{self.revision}: the repository at {self.folder} has no commit {ref}; {advice}")

    def _fetch(self, ref: str, *, shallow: bool) -> str:
        """The command that brings the commit."""
        depth = " --depth=1" if shallow else ""
        remotes = self.ask("remote").split()
        remote = next((name for name in remotes if ref.startswith(f"{name}/")), None)
        steps = re.fullmatch(r"(.+?)(?:~\d*|\^)+", ref)
        if steps is not None:  # an ancestor: the history is cut off
            if not shallow:
                return "git fetch --all --tags"
            count = sum(int(n or 1) for n in re.findall(r"~(\d*)", ref)) + ref.count("^")
            return f"git fetch --deepen={count}"
        if remote is not None:
            branch = ref.removeprefix(f"{remote}/")
            if self._follows(remote, branch):
                return f"git fetch{depth} {remote} {branch}"
            # A clone of one branch would leave the other one without a name.
            return f"git fetch{depth} {remote} {branch}:refs/remotes/{ref}"
        origin = "origin" if "origin" in remotes or not remotes else remotes[0]
        if re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", ref):
            return f"git fetch{depth} {origin} {ref}"
        return f"git fetch{depth} {origin} tag {ref} if it is a tag; of a branch, write git:{origin}/{ref}"

    def _follows(self, remote: str, branch: str) -> bool:
        """Whether ``git fetch REMOTE BRANCH`` moves refs/remotes/REMOTE/BRANCH."""
        sources = [line.lstrip("+").partition(":")[0] for line in self._refspecs(remote)]
        return any(source in (f"refs/heads/{branch}", "refs/heads/*") for source in sources)

    def _refspecs(self, remote: str) -> list[str]:
        return self.ask("config", "--get-all", f"remote.{remote}.fetch").split("\n")

    def blob(self, commit: str, path: str) -> bytes:
        """The bytes of a file at a commit; a ``GateError`` where there is none."""
        done = self.run("cat-file", "blob", f"{commit}:{path}")
        if not done.returncode:
            return done.stdout
        what = f"the commit {commit[:12]} ({self.revision.ref})"
        kind = self.ask("cat-file", "-t", f"{commit}:{path}")
        if kind and kind != "blob":
            raise GateError(f"{self.revision}: {path} is a folder at {what}; expected a file")
        if self.ask("ls-tree", "--full-tree", commit, "--", path):
            said = done.stderr.decode(errors="replace").strip()
            raise GateError(f"{self.revision}: {path} cannot be read at {what} (git says: {said})")
        hint = self._elsewhere(commit, path)
        raise GateError(f"{self.revision}: there is no file {path} at {what}; {hint}")

    def _elsewhere(self, commit: str, path: str) -> str:
        """Runs of the commit, where the one that was looked for is missing."""
        names = self.ask("ls-tree", "-r", "--name-only", "--full-tree", commit).split("\n")
        runs = [name for name in names if re.search(r"\.(run\.jsonl|trec)(\.\w+)?$", name)]
        close = difflib.get_close_matches(path, runs, n=1, cutoff=0.6)
        if close:
            return f"did you mean {PREFIX}{self.revision.ref}:{close[0]}?"
        return "commit the baseline there first (pytest --retrieval-update=new with a baseline that has a plain name)"


def is_revision(name: str) -> bool:
    """Whether a baseline's name means a commit."""
    return name.startswith(PREFIX)
