"""Every option and ini value: declared, parsed and checked in one place.

The plugin feeds in what pytest parsed and turns a :class:`SettingsError` into a usage error before any test is
collected. Nothing here knows pytest, and nothing heavy is imported: this runs in every pytest session.
"""

from __future__ import annotations

import os  # whose questions about a path that cannot even be asked for are answered with no
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast

from pytest_retrieval_eval.errors import SettingsError, did_you_mean

IRDS = "irds:"  # what the id of a dataset of ir_datasets stands behind, as in collection.dataset
UPDATE_MODES = ("new", "all")
CACHE = ".retrieval-cache"
JUDGMENTS = "judgments"
JUDGE = "judge.yaml"  # in the folder of judgments: the settings of the judge that fills it
CONTRADICTIONS = ("refuse", "first", "max", "median")
CACHE_MODES = ("rw", "ro", "refresh", "off")
REANCHOR_MODES = ("report", "write")
_URL = re.compile(r"[a-z][a-z0-9+.-]*://.+", re.DOTALL)


def is_url(text: str) -> bool:
    """Whether a place is a URL, to be read with fsspec, and not a path.

    >>> is_url("s3://bucket/main.run.jsonl.gz"), is_url("C:/runs/a.trec"), is_url("handbook=s3://bucket/a.trec")
    (True, False, False)
    """
    return _URL.match(text) is not None


@dataclass(frozen=True)
class Ini:
    """One ini value: its name, pytest's type for it, its default and its help text."""

    name: str
    type: Literal["string", "linelist", "int", "float"]
    default: object
    help: str


@dataclass(frozen=True)
class Flag:
    """One command-line option: its flag, help text and the keywords that argparse takes."""

    flag: str
    help: str
    keywords: Mapping[str, object] = field(default_factory=dict)

    @property
    def dest(self) -> str:
        """The attribute under which the parsed value is kept."""
        return self.flag.lstrip("-").replace("-", "_")


INI = (
    Ini(
        "retrieval_datasets",
        "linelist",
        [],
        "test collections, a line each: 'name = folder' or 'name = irds:ID'; the first is the default",
    ),
    Ini("retrieval_runs", "linelist", [], "runs with a name, a line each: 'name = file' (or a URL)"),
    Ini(
        "retrieval_stages",
        "linelist",
        [],
        "stages of the pipeline in their order, a line each: 'name = file' (a URL, or a name of retrieval_runs)",
    ),
    Ini("retrieval_run", "string", "", "name or file of the run that gates measure where nothing else says"),
    Ini(
        "retrieval_baseline",
        "string",
        "main",
        "name of the baseline that `baseline` stands for; also git:REF, git:REF:PATH or a URL",
    ),
    Ini(
        "retrieval_baseline_dir",
        "string",
        "",
        "folder of the baselines (one folder a dataset below it); default: baselines/ in the dataset",
    ),
    Ini("retrieval_split", "string", "", "which qrels/SPLIT.tsv of a dataset; default: test, else the only one"),
    Ini("retrieval_depth", "int", 100, "how many hits a query are asked of the `retriever`"),
    Ini("retrieval_warmup", "int", 0, "how many queries the `retriever` is asked before times are taken"),
    Ini(
        "retrieval_repeat",
        "int",
        1,
        "how many times the `retriever` is asked every query; the median of its times is kept",
    ),
    Ini(
        "retrieval_gate_files",
        "linelist",
        ["*.gates.yaml", "*.gates.yml"],
        "patterns of the names of gate files, a line each",
    ),
    Ini(
        "retrieval_defaults",
        "linelist",
        [],
        "keywords of gates that do not say otherwise, a line each: 'name = value', such as 'rule = each'",
    ),
    Ini(
        "retrieval_cache",
        "string",
        CACHE,
        "folder of what language models have read, so that they read it once",
    ),
    Ini("retrieval_judgments", "string", JUDGMENTS, "folder of the judgments that labels=judged reads"),
    Ini(
        "retrieval_judged_by",
        "linelist",
        [],
        "whose judgments count, a line each: a folder of retrieval_judgments, or the beginning of a digest; the first "
        "that has a grade wins; default: the only judge",
    ),
    Ini(
        "retrieval_contradictions",
        "string",
        "refuse",
        "what becomes of different grades of one pair: refuse, first, max or median",
    ),
    Ini(
        "retrieval_reader",
        "string",
        "",
        "the language model that reads for labels=erag: settings such as {kind: transformers, model: models/reader}, "
        "or a YAML or JSON file of them",
    ),
    Ini(
        "retrieval_weak_drop",
        "float",
        0.02,
        "a gate that passes, but could not have seen a drop of this size, is called weak",
    ),
)

FLAGS = (
    Flag(
        "--retrieval-run",
        "gate this run instead of asking the retriever (may be repeated, once a dataset)",
        {"action": "append", "default": [], "metavar": "[DATASET=]PATH"},
    ),
    Flag("--retrieval-save-runs", "save the runs that were gated into this folder", {"metavar": "DIR"}),
    Flag("--retrieval-json", "write every gate of the session into this JSON file", {"metavar": "PATH"}),
    Flag(
        "--retrieval-update",
        "write baselines from the runs of this session: new = only those that are missing, "
        "all = every one that a gate asks for",
        {"metavar": "new|all"},
    ),
    Flag(
        "--retrieval-to-judge",
        "write the (query, document) pairs without a judgment that the gates of this session looked at, as .jsonl or "
        ".tsv, worst queries first",
        {"metavar": "PATH"},
    ),
    Flag(
        "--retrieval-cache-mode",
        "how what language models have read is kept: rw = look up and keep, ro = look up only, and a miss is an error, "
        "refresh = read all anew, off = neither look up nor keep; default: rw",
        {"metavar": "rw|ro|refresh|off"},
    ),
    Flag(
        "--retrieval-reanchor",
        "list the gold spans whose source was edited: report = where each passage stands now, or why nobody knows; "
        "write = also put the moved ones into their file",
        {"metavar": "report|write"},
    ),
    Flag(
        "--retrieval-stop-early",
        "let gates with a margin whose labels a reader makes stop reading once their verdict is settled",
        {"action": "store_true"},
    ),
    Flag(
        "--retrieval-allow-missing-reader",
        "skip gates whose reader cannot be had on this machine also where the environment variable CI is set",
        {"action": "store_true"},
    ),
    Flag(
        "--retrieval-update-in-ci",
        "allow --retrieval-update and --retrieval-reanchor=write where the environment variable CI is set",
        {"action": "store_true"},
    ),
)


@dataclass(frozen=True)
class Settings:
    """The settings of one session, checked.

    ``stages`` maps the stages of the pipeline, in their order, to names or places of runs;
    ``datasets`` and ``runs`` map names to paths (absolute; a run's may be a URL), in the order of the ini file;
    ``command_runs`` maps a dataset name, or ``None`` for every dataset, to the run that the command line names.
    ``file`` is the ini file, where there is one.
    """

    root: Path
    file: Path | None = None
    datasets: Mapping[str, Path] = field(default_factory=dict)
    runs: Mapping[str, Path | str] = field(default_factory=dict)
    stages: Mapping[str, str] = field(default_factory=dict)
    run: str | None = None
    baseline: str = "main"
    baseline_dir: Path | str | None = None
    split: str | None = None
    depth: int = 100
    warmup: int = 0
    repeat: int = 1
    weak_drop: float = 0.02
    defaults: Mapping[str, object] = field(default_factory=dict)
    gate_files: tuple[str, ...] = ("*.gates.yaml", "*.gates.yml")
    command_runs: Mapping[str | None, Path | str] = field(default_factory=dict)
    save_runs: Path | None = None
    update: Literal["new", "all"] | None = None
    json: Path | None = None
    to_judge: Path | None = None
    cache: Path = Path(CACHE)
    cache_mode: Literal["rw", "ro", "refresh", "off"] = "rw"
    reanchor: Literal["report", "write"] | None = None
    judgments: Path = Path(JUDGMENTS)
    judged_by: tuple[str, ...] = ()
    contradictions: Literal["refuse", "first", "max", "median"] = "refuse"
    reader: Mapping[str, object] | None = None
    reader_root: Path = Path()
    skip_without_reader: bool = True
    stop_early: bool = False

    @classmethod
    def parse(
        cls,
        ini: Mapping[str, object],
        options: Mapping[str, object],
        *,
        root: Path,
        here: Path,
        ci: bool,
        file: Path | None = None,
    ) -> Settings:
        """Check what was configured.

        ``ini`` and ``options`` hold the values by their names (see ``INI`` and ``FLAGS``); paths of the ini file are
        relative to ``root``, those of the command line to ``here``. ``file`` is the ini file. Raises
        :class:`SettingsError`.
        """
        update = options.get("retrieval_update")
        if update is not None and update not in UPDATE_MODES:
            raise SettingsError(f"--retrieval-update={update}: {did_you_mean(str(update), UPDATE_MODES)}")
        if update is not None and ci and not options.get("retrieval_update_in_ci"):
            raise SettingsError(
                f"--retrieval-update={update} is refused where CI is set: a baseline that a pipeline writes for "
                "itself makes every gate pass. Write it on a desk and commit it, or add --retrieval-update-in-ci"
            )
        mode = options.get("retrieval_cache_mode") or "rw"
        if mode not in CACHE_MODES:
            raise SettingsError(f"--retrieval-cache-mode={mode}: {did_you_mean(str(mode), CACHE_MODES)}")
        reanchor = options.get("retrieval_reanchor")
        if reanchor is not None and reanchor not in REANCHOR_MODES:
            raise SettingsError(f"--retrieval-reanchor={reanchor}: {did_you_mean(str(reanchor), REANCHOR_MODES)}")
        if reanchor == "write" and ci and not options.get("retrieval_update_in_ci"):
            raise SettingsError(
                "--retrieval-reanchor=write is refused where CI is set: gold that a pipeline moves for itself is read "
                "by nobody. Write it on a desk and commit it, or add --retrieval-update-in-ci"
            )
        depth = cast(int, ini.get("retrieval_depth", 100))
        if depth < 1:
            raise SettingsError(f"retrieval_depth = {depth}: expected 1 or more")
        warmup, repeat = cast(int, ini.get("retrieval_warmup", 0)), cast(int, ini.get("retrieval_repeat", 1))
        if warmup < 0:
            raise SettingsError(f"retrieval_warmup = {warmup}: expected 0 or more")
        if repeat < 1:
            raise SettingsError(f"retrieval_repeat = {repeat}: expected 1 or more")
        weak_drop = cast(float, ini.get("retrieval_weak_drop", 0.02))
        if not 0 <= weak_drop < 1e9:
            raise SettingsError(f"retrieval_weak_drop = {weak_drop}: expected 0 or more")
        contradictions = str(ini.get("retrieval_contradictions") or "refuse")
        if contradictions not in CONTRADICTIONS:
            raise SettingsError(
                f"retrieval_contradictions = {contradictions}: {did_you_mean(contradictions, CONTRADICTIONS)}"
            )
        reader, reader_root = _reader(str(ini.get("retrieval_reader") or ""), root)
        save = options.get("retrieval_save_runs")
        directory = str(ini.get("retrieval_baseline_dir") or "")
        return cls(
            root=root,
            file=file,
            datasets={
                name: Path(path) if path.startswith(IRDS) else root / path
                for name, path in _named("retrieval_datasets", ini).items()
            },
            runs={name: _unless_url(path, root) for name, path in _named("retrieval_runs", ini).items()},
            stages=_stages(ini),
            run=str(ini.get("retrieval_run") or "") or None,
            baseline=str(ini.get("retrieval_baseline") or "main"),
            baseline_dir=_unless_url(directory, root) if directory else None,
            split=str(ini.get("retrieval_split") or "") or None,
            depth=depth,
            warmup=warmup,
            repeat=repeat,
            weak_drop=weak_drop,
            defaults={name: _value(text) for name, text in _named("retrieval_defaults", ini, "value").items()},
            gate_files=_gate_files(ini),
            command_runs=_command_runs(cast("Sequence[str]", options.get("retrieval_run") or ()), here),
            save_runs=here / str(save) if save else None,
            update=cast("Literal['new', 'all'] | None", update),
            json=json_path(options.get("retrieval_json"), here),
            to_judge=_to_judge(options.get("retrieval_to_judge"), here),
            cache=root / str(ini.get("retrieval_cache") or CACHE),
            judgments=root / str(ini.get("retrieval_judgments") or JUDGMENTS),
            judged_by=tuple(
                str(name).strip() for name in cast("Sequence[object]", ini.get("retrieval_judged_by") or ())
            ),
            contradictions=cast('Literal["refuse", "first", "max", "median"]', contradictions),
            cache_mode=cast('Literal["rw", "ro", "refresh", "off"]', mode),
            reanchor=cast("Literal['report', 'write'] | None", reanchor),
            reader=reader,
            reader_root=reader_root,
            stop_early=bool(options.get("retrieval_stop_early")),
            # A pipeline that cannot measure what it is there for must not be green.
            skip_without_reader=not ci or bool(options.get("retrieval_allow_missing_reader")),
        )

    def where_to_add(self, name: str, line: str) -> str:
        """Where a line of an ini value is to be added, and how it is written there."""
        file = self.file or self.root / "pyproject.toml"
        if file.suffix != ".toml":
            return f"{file.name}, under {'[tool:pytest]' if file.suffix == '.cfg' else '[pytest]'}, {name} = {line}"
        section = "[pytest]"
        if file.name not in ("pytest.toml", ".pytest.toml"):
            own = file.is_file() and "[tool.pytest]" in map(str.strip, file.read_text("utf-8", "replace").splitlines())
            section = "[tool.pytest]" if own else "[tool.pytest.ini_options]"
        return f'{file.name}, under {section}, {name} = ["{line}"]'

    def judge_command(self, pairs: str, judgments: Path | None = None, dataset: str = "") -> str:
        """The command that judges a file of pairs; ``judgments`` is the folder of the grades, where not the ini's.

        Which judge is for the user to say, as ``JUDGE``, where the folder has no ``judge.yaml``.
        """
        folder = judgments or self.judgments
        place = str(folder.relative_to(self.root) if folder.is_relative_to(self.root) else folder)
        words = ["pytest-retrieval-eval", "judge", pairs]
        words += ["--dataset", dataset] if dataset else []
        words += [] if place == JUDGMENTS else ["--judgments", place]
        words += [] if (folder / JUDGE).exists() else ["--judge", "JUDGE"]
        return shlex.join(words)

    @property
    def default_dataset(self) -> str | None:
        """The name of the first dataset, or None where none is configured."""
        return next(iter(self.datasets), None)

    def dataset_path(self, name: str) -> Path:
        """Where a dataset lies: a name of ``retrieval_datasets``, ``irds:ID``, or a path below the root folder."""
        if name in self.datasets:
            return self.datasets[name]
        return Path(name) if name.startswith(IRDS) else self._path("dataset", name, self.datasets)

    def run_path(self, name: str, also: Iterable[str] = ()) -> Path | str:
        """Where a run lies: a name of ``retrieval_runs``, a path relative to the root folder, or a URL.

        ``also`` are further names, for the error of one that is not known.
        """
        if name in self.runs:
            return self.runs[name]
        return name if is_url(name) else self._path("run", name, [*self.runs, *also])

    def _path(self, what: str, name: str, known: Iterable[str]) -> Path:
        path = self.root / name
        if os.path.exists(path):
            return path
        raise SettingsError(
            f"there is no {what} {name!r}: it is neither a name of retrieval_{what}s nor a path below {self.root}; "
            f"{did_you_mean(name, known)}"
        )


def _reader(text: str, root: Path) -> tuple[dict[str, object] | None, Path]:
    """The settings of the reader, and the folder that their paths are relative to."""
    if not text.strip():
        return None, root
    place, folder, source = "retrieval_reader", root, text
    if is_settings_file(text.strip()) and "\n" not in text.strip():
        file = root / text.strip()
        place, folder = f"retrieval_reader: {file}", file.parent
        try:
            source = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"{place}: cannot be read: {error}") from None
    what = "a reader with their kind, such as {kind: transformers, model: models/reader}"
    settings = settings_of(source, place, what)
    if not isinstance(settings.get("kind"), str):
        raise SettingsError(f"{place}: expected the settings of {what}, not {str(settings)[:60]!r}")
    return settings, folder


def is_settings_file(text: str) -> bool:
    """Whether a reader or a judge is given as a file of settings, and not as an import string or as the settings.

    >>> is_settings_file("readers/small.yaml"), is_settings_file("myapp.readers:make")
    (True, False)
    """
    return text.lower().endswith((".yaml", ".yml", ".json"))


def settings_of(source: str, place: str, what: str) -> dict[str, object]:
    """The settings that a text of YAML or JSON has; ``place`` says in an error where it stands, ``what`` of what.

    >>> settings_of("kind: fid", "reader.yaml", "a reader")
    {'kind': 'fid'}
    >>> settings_of("fid", "reader.yaml", "a reader")
    Traceback (most recent call last):
    pytest_retrieval_eval.errors.SettingsError: reader.yaml: expected the settings of a reader, not 'fid'
    """
    import yaml  # only a project that has a reader pays for it

    try:
        found = yaml.safe_load(source)
    except yaml.YAMLError as error:
        raise SettingsError(f"{place}: this is no YAML: {' '.join(str(error).split())}") from None
    if not isinstance(found, dict):
        raise SettingsError(f"{place}: expected the settings of {what}, not {str(found)[:60]!r}")
    return {str(key): value for key, value in found.items()}


def is_stage_name(text: str) -> bool:
    """Whether a text can be the name of a stage, which is part of a baseline's file and of a measure's text.

    >>> is_stage_name("bm25"), is_stage_name("runs/bm25.trec")
    (True, False)
    """
    return re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", text) is not None


def _stages(ini: Mapping[str, object]) -> dict[str, str]:
    """The stages of the pipeline, in their order."""
    found = _named("retrieval_stages", ini)
    for name in found:
        if not is_stage_name(name):
            raise SettingsError(
                f"retrieval_stages: the name {name!r} is made of other characters than letters, digits, _ and -, or "
                "begins with none of the letters"
            )
    return found


def _gate_files(ini: Mapping[str, object]) -> tuple[str, ...]:
    """The patterns of gate files; one that would match other files than YAML is an error."""
    patterns = cast("Sequence[str]", ini.get("retrieval_gate_files", Settings.gate_files))
    for pattern in patterns:
        if not pattern.endswith((".yaml", ".yml")):
            raise SettingsError(
                f"retrieval_gate_files: {pattern!r} names no YAML files: expected a pattern such as *.gates.yaml"
            )
    return tuple(patterns)


def json_path(value: object, here: Path) -> Path | None:
    """Where ``--retrieval-json`` is to be written, if anywhere."""
    if value is None:
        return None
    path = here / str(value)
    if not value or os.path.isdir(path):
        raise SettingsError(f"--retrieval-json={value}: expected the name of a file, and this is a folder")
    return path


def _to_judge(value: object, here: Path) -> Path | None:
    if not value:
        return None
    path = here / str(value)
    name = path.name.lower()
    for ending in (".gz", ".zst", ".bz2", ".xz"):
        name = name.removesuffix(ending)
    if not name.endswith((".jsonl", ".tsv")):
        raise SettingsError(f"--retrieval-to-judge={value}: expected a file that ends in .jsonl or .tsv (also .gz)")
    return path


def _unless_url(place: str, folder: Path) -> Path | str:
    return place if is_url(place) else folder / place


def _named(setting: str, ini: Mapping[str, object], what: str = "path") -> dict[str, str]:
    """Lines 'name = path' (or what else) of an ini value, by name."""
    found: dict[str, str] = {}
    for line in cast("Sequence[str]", ini.get(setting) or ()):
        # TOML may hold something else than texts in its list.
        name, equals, path = (part.strip() for part in str(line).partition("="))
        if not (name and equals and path):
            raise SettingsError(f"{setting}: {line!r} is not of the form 'name = {what}'")
        if name in found:
            raise SettingsError(f"{setting}: the name {name!r} stands twice")
        found[name] = path
    return found


def _value(text: str) -> object:
    """A value of JSON, else the text as it is: the types are the same in every kind of ini file.

    >>> _value("0.01"), _value("each"), _value('{"type": ["faq"]}')
    (0.01, 'each', {'type': ['faq']})
    """
    import json  # an ini file without defaults needs none

    try:
        return cast(object, json.loads(text))
    except ValueError:
        return text


def _command_runs(values: Sequence[str], here: Path) -> dict[str | None, Path | str]:
    """The values of --retrieval-run by dataset name; a file name that contains '=' is taken as it is."""
    found: dict[str | None, Path | str] = {}
    for value in values:
        dataset: str | None = None
        path = _unless_url(value, here)
        if isinstance(path, Path) and not os.path.exists(path) and "=" in value:
            dataset, _, rest = value.partition("=")
            path = _unless_url(rest, here)
        if isinstance(path, Path) and not os.path.isfile(path):
            raise SettingsError(f"--retrieval-run={value}: there is no file {path}")
        if dataset in found:
            which = f"dataset {dataset!r}" if dataset else "every dataset"
            raise SettingsError(f"--retrieval-run={value}: a run for {which} was given before ({found[dataset]})")
        found[dataset] = path
    return found
