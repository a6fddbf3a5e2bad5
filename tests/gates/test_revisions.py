"""Baselines as they were committed, out of real repositories."""

from __future__ import annotations

import re
import shlex
import subprocess

import pytest

from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.errors import GateError
from pytest_retrieval_eval.gates.baselines import read_baseline
from pytest_retrieval_eval.gates.gate import Gate
from pytest_retrieval_eval.gates.revisions import Revision, read_revision

PLACE = "eval/small/baselines/main.run.jsonl.gz"
LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"


class Repository:
    def __init__(self, path):
        self.path = path
        path.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments):
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments]
        return subprocess.run(command, cwd=self.path, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, files, message="files"):
        for name, content in files.items():
            place = self.path / name
            place.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, str):
                place.write_text(content)
            else:
                Run.of(content).save(place)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD")

    def read(self, text, place=PLACE, here="."):
        return read_revision(Revision.parse(text), self.path / place, self.path / here)


@pytest.fixture
def repository(tmp_path):
    """main has the run a, the branch in the working tree b."""
    made = Repository(tmp_path / "repo ü")
    made.commit({PLACE: {"q1": ["a"]}, "runs/other.trec": {"q1": {"other": 1.0}}})
    made.git("tag", "v1.0")
    made.git("checkout", "-q", "-b", "feature")
    made.commit({PLACE: {"q1": ["b"]}})
    return made


def first(run):
    return run.ranking("q1").docs[0]


@pytest.mark.parametrize("text", ["git:main", "git:v1.0", "git:HEAD~1", "git:feature^", "git:refs/heads/main"])
def test_the_same_path_at_another_commit(repository, text):
    assert first(repository.read(text)) == "a"
    assert first(repository.read("git:HEAD")) == "b"


def test_another_path(repository):
    assert first(repository.read("git:main:runs/other.trec")) == "other"
    assert first(repository.read("git:main:./other.trec", here="runs")) == "other"
    assert first(repository.read("git:main:../runs/other.trec", here="eval")) == "other"
    assert first(repository.read("git:main:./runs/other.trec")) == "other"
    # Relative to the root of the repository, wherever one stands.
    assert first(repository.read("git:main:runs/other.trec", here="eval/small")) == "other"


def test_the_working_tree_need_not_have_the_file_nor_its_folder(repository):
    repository.git("rm", "-q", "-r", "eval")
    assert not (repository.path / "eval").exists()
    assert first(repository.read("git:main")) == "a"


def test_the_source_names_the_commit(repository):
    commit = repository.git("rev-parse", "main")
    assert repository.read("git:main").source == f"git:{commit[:12]}:{PLACE}"


def test_a_worktree_and_the_variables_of_a_hook(repository, tmp_path, monkeypatch):
    repository.git("worktree", "add", "-q", "--detach", str(tmp_path / "tree"), "main")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    place = tmp_path / "tree" / PLACE
    assert first(read_revision(Revision.parse("git:feature"), place, tmp_path / "tree")) == "b"


def test_a_commit_is_read_once(repository):
    assert repository.read("git:main") is repository.read("git:v1.0")
    before = repository.read("git:feature")
    repository.commit({PLACE: {"q1": ["c"]}})
    assert repository.read("git:feature") is not before
    assert first(repository.read("git:feature")) == "c"


def test_an_unknown_commit(repository):
    with pytest.raises(
        GateError, match=r"git:mainn: the repository at .* has no commit mainn; did you mean git:main\?"
    ):
        repository.read("git:mainn")
    with pytest.raises(GateError, match=r"has no commit release/9; fetch it: .* \(this repository has no remote\)"):
        repository.read("git:release/9")
    repository.git("remote", "add", "origin", "nowhere")
    with pytest.raises(GateError, match=r"has no commit release/9; fetch it: git fetch origin tag release/9"):
        repository.read("git:release/9")


def test_a_path_that_the_commit_has_not(repository):
    commit = repository.git("rev-parse", "main")[:12]
    with pytest.raises(
        GateError,
        match=rf"no file runs/othr\.trec at the commit {commit} \(main\); did you mean git:main:runs/other\.trec",
    ):
        repository.read("git:main:runs/othr.trec")
    repository.git("rm", "-q", "-r", "eval", "runs")
    repository.commit({"readme": "x"})
    with pytest.raises(
        GateError, match=rf"no file {re.escape(PLACE)} at the commit .* \(feature\); commit the baseline"
    ):
        repository.read("git:feature")
    with pytest.raises(GateError, match="runs is a folder at the commit"):
        repository.read("git:main:runs")


def test_an_lfs_pointer_is_no_run(repository, tmp_path):
    repository.commit({PLACE: LFS})
    with pytest.raises(GateError, match="is a Git LFS pointer, not the run itself"):
        repository.read("git:HEAD")
    with pytest.raises(GateError, match="is a Git LFS pointer, not the run itself"):
        read_baseline(repository.path / PLACE, how_to_create="…")


def test_a_malformed_file_is_named_by_its_commit(repository):
    commit = repository.commit({"bad.run.jsonl": '{"format": "retrieval-run", "version": 1}\n{"query_id"\n'})
    with pytest.raises(GateError, match=rf"git:{commit[:12]}:bad\.run\.jsonl:2: malformed JSON"):
        repository.read("git:HEAD:bad.run.jsonl")


def test_outside_of_a_repository(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    folder = tmp_path / "plain"
    folder.mkdir()
    with pytest.raises(GateError, match="is in no git repository that can be read"):
        read_revision(Revision.parse("git:main"), folder / "main.run.jsonl.gz", folder)
    with pytest.raises(GateError, match=r"the dataset is not in a folder.*git:main:PATH"):
        read_revision(Revision.parse("git:main"), None, folder)


def test_without_git(repository, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(GateError, match="git is not installed"):
        repository.read("git:main")


@pytest.mark.parametrize("text", ["git:", "git::runs/a.trec", "git:main:", "git:--output=x", "git:a b", "git:a\nb"])
def test_what_names_no_commit(text):
    with pytest.raises(GateError, match="names no commit; write git:REF"):
        Revision.parse(text)


@pytest.mark.parametrize("name", ["git:origin/main", "git:HEAD~2:runs/a.trec", "git:v1:./a b.trec"])
def test_in_the_text_of_a_gate(name):
    gate = Gate.parse(f"recall@5 >= baseline[{name}] - 0.01")
    assert gate.target.reference.name == name
    assert Gate.parse(str(gate)) == gate


# --- clones that do not have everything -------------------------------------------------------------------------


def fetch_in(error):
    return re.search(r"fetch it: (git fetch .*?)(?: if it is a tag.*)?$", str(error.value)).group(1)


def clone(repository, path, *options):
    url = repository.path.resolve().as_uri()
    subprocess.run(["git", "clone", "-q", *options, url, str(path)], check=True, capture_output=True)
    made = Repository.__new__(Repository)
    made.path = path
    return made


def test_a_shallow_clone_names_the_fetch_that_is_missing(repository, tmp_path):
    # As a checkout action makes it: one commit, and a remote that knows every branch.
    shallow = clone(repository, tmp_path / "clone", "--depth=1", "--branch=feature")
    shallow.git("config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*")
    with pytest.raises(GateError, match="this clone is shallow and has no commit origin/main") as error:
        shallow.read("git:origin/main")
    assert fetch_in(error) == "git fetch --depth=1 origin main"
    shallow.git(*shlex.split(fetch_in(error))[1:])
    assert first(shallow.read("git:origin/main")) == "a"
    assert first(shallow.read("git:HEAD")) == "b"


@pytest.mark.parametrize(
    ("ref", "command"),
    [
        ("origin/main", "git fetch --depth=1 origin main:refs/remotes/origin/main"),
        ("v1.0", "git fetch --depth=1 origin tag v1.0"),
        ("HEAD~1", "git fetch --deepen=1"),
        ("COMMIT", "git fetch --depth=1 origin COMMIT"),
    ],
)
def test_a_clone_of_one_branch(repository, tmp_path, ref, command):
    commit = repository.git("rev-parse", "main")
    ref, command = ref.replace("COMMIT", commit), command.replace("COMMIT", commit)
    shallow = clone(repository, tmp_path / "clone", "--depth=1", "--branch=feature", "--no-tags")
    with pytest.raises(GateError, match="shallow") as error:
        shallow.read(f"git:{ref}")
    assert fetch_in(error) == command
    shallow.git(*shlex.split(command)[1:])
    assert first(shallow.read(f"git:{ref}")) == "a"


def test_a_full_clone_of_one_branch(repository, tmp_path):
    whole = clone(repository, tmp_path / "clone", "--single-branch", "--branch=feature")
    with pytest.raises(GateError, match="has no commit origin/main") as error:
        whole.read("git:origin/main")
    assert fetch_in(error) == "git fetch origin main:refs/remotes/origin/main"
