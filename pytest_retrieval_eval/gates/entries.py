"""What a gate file says: its header, and one entry for each gate, all checked, with the lines they stand on.

The file is read as YAML *nodes*, not as Python values: so each error knows its line, two equal keys are an error
instead of the last one winning, and ``on``, ``no`` and ``yes`` stay texts. Values follow YAML 1.2's core schema, as
JSON does: ``true``, ``false``, ``null`` and decimal numbers are no texts, everything else is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn, cast

import yaml

from pytest_retrieval_eval.collection.formats.files import read_bytes
from pytest_retrieval_eval.collection.runs.stages import check_stage
from pytest_retrieval_eval.errors import DataError, GateError, SettingsError, did_you_mean
from pytest_retrieval_eval.gates.defaults import reads_answers, with_defaults
from pytest_retrieval_eval.gates.families import parse_gates
from pytest_retrieval_eval.gates.options import KEYWORDS
from pytest_retrieval_eval.labels.judging.requirements import JudgeCheck
from pytest_retrieval_eval.wording import shown

HEADER = ("dataset", "split", "run", "runs", "stages", "baseline", "retriever", "reader", "defaults", "gates")
DEFAULTS = tuple(name for name in KEYWORDS if name not in HEADER)
ENTRY = ("gate", *KEYWORDS, "baseline", "marks", "xfail")
JUDGE_ENTRY = ("judge", "marks", "xfail")
NAME = re.compile(r"[A-Za-z0-9._-]+\Z")
EXAMPLE = "write gates:, and below it NAME: a gate, such as recall: recall@5 >= baseline"

_CONSTANTS = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)\Z")
_FLOAT = re.compile(r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\Z")
_STANDARD_TAGS = frozenset(f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map"))
# Marks that need arguments, or would let a gate pass without a measurement.
_OTHER_MARKS = {
    "skip": "a gate that is skipped has measured nothing: delete it, or expect its failure with xfail: REASON",
    "skipif": "a gate that is skipped has measured nothing: delete it, or expect its failure with xfail: REASON",
    "xfail": "write xfail: REASON as a key of the gate",
    "retrieval": "its keywords are keys of the gate itself",
    "parametrize": "a list of datasets makes one item of each",
    "usefixtures": "it takes arguments, which a gate file cannot give",
    "filterwarnings": "it takes arguments, which a gate file cannot give",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One gate of a file: ``options`` are keywords of :class:`Options` but ``dataset`` and ``run``.

    ``texts`` is the gate, or several that are decided as one family; ``datasets``, ``run`` and ``baseline`` stand as
    they are written, here or in the header; ``place`` is ``file:line`` of the entry. ``judge`` is what a judge is held
    to, in an entry that validates one and measures no run.
    """

    name: str
    line: int
    place: str
    texts: tuple[str, ...]
    options: Mapping[str, object]
    datasets: tuple[str, ...] = ()
    run: str | None = None
    baseline: str | None = None
    marks: tuple[str, ...] = ()
    xfail: str | None = None
    judge: JudgeCheck | None = None


@dataclass(frozen=True, slots=True)
class GateFileContent:
    """A gate file: what holds for all of its gates, and the gates in their order."""

    path: Path
    entries: tuple[Entry, ...]
    runs: Mapping[str, str] = field(default_factory=dict)
    stages: Mapping[str, str] = field(default_factory=dict)
    retriever: str | None = None
    retriever_place: str = ""
    split: str | None = None


def read_gate_file(
    path: Path, label: str | None = None, project: Mapping[str, object] | None = None
) -> GateFileContent:
    """The gate file at ``path``; ``label`` is its name in errors, ``project`` the defaults of the ini file.

    Raises :class:`SettingsError`, ``file:line: sentence``, for whatever cannot be meant.
    """
    reader = _Reader(label or path.name)
    top = reader.compose(read_bytes(path))
    if top is None:
        reader.fail(1, f"this file has no gates: {EXAMPLE}")
    header = reader.mapping(top, "a gate file")
    for key, (node, _) in header.items():
        if key not in HEADER:
            hint = did_you_mean(key, HEADER)
            if key in DEFAULTS:
                hint = f"write it under defaults:, as defaults: {{{key}: …}}"
            elif node.start_mark.column == 0 and key not in ENTRY and "gates" not in header:
                hint = f"gates stand below gates:; {hint}"
            reader.fail(node, f"a gate file has no key {shown(key)!r}; {hint}")
    if "gates" not in header:
        reader.fail(top, f"this file has no gates: {EXAMPLE}")
    if "run" in header and "retriever" in header:
        reader.fail(header["retriever"][0], "run: and retriever: are two sources of one run; keep one of them")
    return GateFileContent(
        path=path,
        entries=tuple(_entries(reader, header, project or {})),
        runs=_runs(reader, header, "runs", "run"),
        stages=_stages(reader, header),
        retriever=reader.text_of(header, "retriever"),
        retriever_place=reader.place(header["retriever"][0]) if "retriever" in header else "",
        split=reader.text_of(header, "split"),
    )


_Map = dict[str, "tuple[yaml.ScalarNode, yaml.Node]"]


def _runs(reader: _Reader, header: _Map, key: str, what: str) -> dict[str, str]:
    if key not in header:
        return {}
    rows = reader.mapping(header[key][1], f"{key}:")
    if not rows:
        reader.fail(header[key][0], f"{key}: names no {what}; write NAME: FILE below it, or leave it out")
    return {name: reader.text(node, f"the {what} {shown(name)!r}") for name, (_, node) in rows.items()}


def _stages(reader: _Reader, header: _Map) -> dict[str, str]:
    found = _runs(reader, header, "stages", "stage")
    for name, (at, _) in reader.mapping(header["stages"][1], "stages:").items() if found else ():
        try:
            check_stage(name)
        except DataError as error:
            reader.fail(at, str(error))
    return found


def _entries(reader: _Reader, header: _Map, project: Mapping[str, object]) -> Iterator[Entry]:
    key, node = header["gates"]
    rows = reader.mapping(node, "gates:")
    if not rows:
        reader.fail(key, f"gates: has no gate: {EXAMPLE}")
    defaults: dict[str, tuple[yaml.Node, object]] = {}
    if "defaults" in header:
        given = reader.mapping(header["defaults"][1], "defaults:")
        for name, (at, value) in given.items():
            if name in HEADER:
                reader.fail(at, f"{name}: stands at the top of the file, not under defaults:")
            if name not in DEFAULTS:
                reader.fail(at, f"a gate has no default {shown(name)!r}; {did_you_mean(name, DEFAULTS)}")
            defaults[name] = (value, reader.option(name, value))
    for name, (at, _) in rows.items():
        if not NAME.match(name) or name.startswith(("__", "pytest")):
            reader.refuse_split_gate(rows, name, header["gates"][1])
            reader.fail(
                at,
                f"the name of a gate is made of letters, digits, '.', '_' and '-', and begins neither with '__' nor "
                f"with 'pytest'; found {shown(name)!r}",
            )
    for name, (at, value) in rows.items():
        yield _entry(reader, name, at, value, header, defaults, project)


def _entry(
    reader: _Reader,
    name: str,
    key: yaml.ScalarNode,
    node: yaml.Node,
    header: _Map,
    defaults: Mapping[str, tuple[yaml.Node, object]],
    project: Mapping[str, object],
) -> Entry:
    own = reader.mapping(node, "") if isinstance(node, yaml.MappingNode) else {"gate": (key, node)}
    if "judge" in own:
        return _judge_entry(reader, name, key, own, header)
    for word, (at, _) in own.items():
        if word in ("skip", "skipif"):
            reader.fail(at, f"{word}: {_OTHER_MARKS[word]}")
        if word not in ENTRY:
            reader.refuse_split_gate(own, word, node)
            reader.fail(at, f"a gate has no key {shown(word)!r}; {did_you_mean(word, ENTRY)}")
    if "gate" not in own:
        reader.fail(key, f"the gate {name} has no key gate:, such as gate: recall@5 >= baseline, and no key judge:")
    text_node = own["gate"][1]
    texts = _texts(reader, text_node)
    options = dict(defaults)
    options.update(
        (word, (value, reader.option(word, value)))
        for word, (_, value) in own.items()
        if word in KEYWORDS and word not in HEADER
    )
    _reader_of(reader, own, header, options, project)
    values = {word: value for word, (_, value) in options.items()}
    if "run" in own and "stage" in own:
        reader.fail(own["stage"][0], "run: and stage: both say what is measured; keep one of them")
    datasets, run, baseline = (_own_or_header(reader, own, header, word) for word in ("dataset", "run", "baseline"))
    try:
        parse_gates(texts, with_defaults(project, values, several=len(texts) > 1))
    except GateError as error:
        about = re.match(r"(\w+)=", str(error))
        wrong = options[about.group(1)][0] if about and about.group(1) in options else text_node
        reader.fail(wrong, str(error))
    xfail = reader.text(own["xfail"][1], "xfail: takes the reason, which") if "xfail" in own else None
    return Entry(
        name=name,
        line=key.start_mark.line + 1,
        place=reader.place(key),
        texts=texts,
        options=values,
        datasets=datasets,
        run=run[0] if run else None,
        baseline=baseline[0] if baseline else None,
        marks=_marks(reader, own),
        xfail=xfail,
    )


def _reader_of(
    reader: _Reader,
    own: _Map,
    header: _Map,
    options: dict[str, tuple[yaml.Node, object]],
    project: Mapping[str, object],
) -> None:
    """The settings of the gate's reader, else of the file's: those are for the gates for which something is read."""
    labels = options["labels"][1] if "labels" in options else project.get("labels")
    if "reader" in own or ("reader" in header and reads_answers(labels)):
        node = (own if "reader" in own else header)["reader"][1]
        options["reader"] = node, reader.settings("reader", node)


def _judge_entry(reader: _Reader, name: str, key: yaml.ScalarNode, own: _Map, header: _Map) -> Entry:
    """An entry that validates a judge: the judge's name, or a mapping of what it is held to.

    The dataset of the file is asked for the tags of queries, where the entry is about some of them.
    """
    for word, (at, _) in own.items():
        if word not in JUDGE_ENTRY:
            said = f"{word}: {_OTHER_MARKS[word]}" if word in ("skip", "skipif") else did_you_mean(word, JUDGE_ENTRY)
            reader.fail(at, f"a gate with judge: measures no run and has no key {shown(word)!r}; {said}")
    node = own["judge"][1]
    if isinstance(node, yaml.MappingNode):
        rows = reader.mapping(node, "judge:")
        values = {word: reader.option(word, value) for word, (_, value) in rows.items()}
    else:
        rows, values = {}, {"name": reader.text(node, "judge:")}
    try:
        check = JudgeCheck.of(values)
    except SettingsError as error:
        about = re.match(r"'?(\w+)", str(error))
        reader.fail(rows[about.group(1)][0] if about and about.group(1) in rows else node, str(error))
    xfail = reader.text(own["xfail"][1], "xfail: takes the reason, which") if "xfail" in own else None
    return Entry(
        name=name,
        line=key.start_mark.line + 1,
        place=reader.place(key),
        texts=("judge",),
        options={},
        datasets=() if check.where is None else _own_or_header(reader, own, header, "dataset"),
        marks=_marks(reader, own),
        xfail=xfail,
        judge=check,
    )


def _texts(reader: _Reader, node: yaml.Node) -> tuple[str, ...]:
    """The text of a gate, or those of a list, which is one family."""
    if isinstance(node, yaml.ScalarNode):
        reader.value(node)
        return (node.value,)
    if not isinstance(node, yaml.SequenceNode):
        reader.fail(node, "a gate is a text with one comparison, or a list of them that is decided as one")
    reader.value(node)
    found = []
    for each in node.value:
        if not isinstance(each, yaml.ScalarNode):
            reader.fail(each, f"each gate of a list is a text, not {_kind(each)}")
        if each.value.count("(") != each.value.count(")") and node.flow_style:
            reader.fail(each, f"a comma inside [ ] splits the gate {shown(each.value)!r}: quote the gate")
        found.append(each.value)
    return tuple(found)


def _own_or_header(reader: _Reader, own: _Map, header: _Map, word: str) -> tuple[str, ...]:
    """The texts under a key of the gate, else of the header: several for a list of datasets."""
    if word not in own and word not in header:
        return ()
    node = (own if word in own else header)[word][1]
    if word != "dataset" or not isinstance(node, yaml.SequenceNode):
        return (reader.text(node, f"{word}:"),)
    names = tuple(reader.text(each, "a dataset") for each in node.value)
    if not names:
        reader.fail(node, "dataset: an empty list measures nothing; name a dataset")
    if len(set(names)) < len(names):
        reader.fail(node, "dataset: a dataset stands twice in the list")
    return names


def _marks(reader: _Reader, own: _Map) -> tuple[str, ...]:
    if "marks" not in own:
        return ()
    node = own["marks"][1]
    if not isinstance(node, yaml.SequenceNode) or not node.value:
        reader.fail(node, "marks: takes a list of names, such as marks: [slow]")
    names = []
    for each in node.value:
        name = reader.text(each, "a mark")
        if not name.isidentifier() or name.startswith("_"):
            reader.fail(each, f"{shown(name)!r} is no name of a mark")
        if name in _OTHER_MARKS:
            reader.fail(each, f"marks: [{name}]: {_OTHER_MARKS[name]}")
        names.append(name)
    return tuple(names)


class _Reader:
    """YAML nodes as checked values; every error carries the file's name and a line."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._open: set[int] = set()
        self._values: dict[int, tuple[object, int]] = {}

    def place(self, at: yaml.Node | int) -> str:
        """``file:line``."""
        return f"{self._label}:{at if isinstance(at, int) else at.start_mark.line + 1}"

    def fail(self, at: yaml.Node | int, sentence: str) -> NoReturn:
        raise SettingsError(f"{self.place(at)}: {sentence}") from None

    def compose(self, data: bytes) -> yaml.Node | None:
        """The file's one document; None where it is empty."""
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            self.fail(line, f"this is not UTF-8: byte 0x{data[error.start]:02x}; save the file as UTF-8")
        try:
            return yaml.compose(text, Loader=yaml.BaseLoader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            self.fail(mark.line + 1 if mark else 1, self._yaml_problem(text, error))
        except yaml.reader.ReaderError as error:
            line = text.count("\n", 0, cast(int, error.position)) + 1
            self.fail(line, f"this is no YAML: it holds the character U+{ord(text[error.position]):04X}")
        except RecursionError:
            self.fail(1, "this file is nested too deeply to be read")

    @staticmethod
    def _yaml_problem(text: str, error: yaml.MarkedYAMLError) -> str:
        problem = " ".join(filter(None, (error.context, error.problem)))
        line = text.splitlines()[error.problem_mark.line : error.problem_mark.line + 1] if error.problem_mark else []
        hint = ""
        if line and "\t" in line[0][: len(line[0]) - len(line[0].lstrip())]:
            hint = "; indent with spaces, not with a tab"
        elif line and re.search(r"[<>]|@\d", line[0]):
            hint = "; quote the gate where it holds brackets, quotes, ': ' or begins with a sign"
        return f"this is no YAML: {problem}{hint}"

    def mapping(self, node: yaml.Node, what: str) -> _Map:
        """A mapping's keys with their nodes, in order."""
        if not isinstance(node, yaml.MappingNode):
            self.fail(node, f"{what} holds keys with values (key: value), not {_kind(node)}")
        self._refuse_tag(node)
        found: _Map = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self.fail(key, f"a key is a name, not {_kind(key)}")
            self._refuse_tag(key)
            name = str(key.value)
            if name == "<<" and key.style is None:
                self.fail(key, "merge keys (<<) are not read; what holds for all gates stands under defaults:")
            if name in found:
                first = found[name][0].start_mark.line + 1
                self.fail(key, f"the key {shown(name)!r} stands twice, first on line {first}")
            found[name] = (key, value)
        return found

    def text(self, node: yaml.Node, what: str) -> str:
        """A text, as it is written: ``no`` and ``2024`` are names here."""
        self._refuse_tag(node)
        if not isinstance(node, yaml.ScalarNode):
            self.fail(node, f"{what} is a text, not {_kind(node)}")
        if not node.value.strip() or (node.style is None and node.value in _CONSTANTS and _is_null(node)):
            self.fail(node, f"{what} is a text, and nothing stands here")
        return str(node.value)

    def text_of(self, mapping: _Map, key: str) -> str | None:
        """The text under ``key``, or None where there is no such key."""
        return self.text(mapping[key][1], f"{key}:") if key in mapping else None

    def option(self, key: str, node: yaml.Node) -> object:
        """The value of a keyword; one without a value is an error, since it would be ignored."""
        value = self.value(node)
        if value is None:
            self.fail(node, f"{key}: has no value; give one, or leave the key out")
        return value

    def value(self, node: yaml.Node) -> object:
        """A node as Python's value: one, a list, or tags with values or lists of values."""
        value, depth = self._value(node)
        if depth > 2:
            self.fail(node, "this value is nested too deeply: a tag's value is one value or a list of values")
        return value

    def settings(self, key: str, node: yaml.Node) -> dict[str, object]:
        """The settings under ``key``: a mapping, in which mappings may stand."""
        self.mapping(node, f"{key}:")
        return cast("dict[str, object]", self._value(node)[0])

    def _value(self, node: yaml.Node) -> tuple[object, int]:
        """The value and how deep it is nested; read once, however often an alias names it."""
        if id(node) in self._open:
            self.fail(node, "this value contains itself")
        if id(node) not in self._values:
            self._open.add(id(node))
            self._values[id(node)] = self._fresh_value(node)
            self._open.discard(id(node))
        return self._values[id(node)]

    def _fresh_value(self, node: yaml.Node) -> tuple[object, int]:
        self._refuse_tag(node)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node), 0
        made: object
        if isinstance(node, yaml.MappingNode):
            rows = {key: self._value(each) for key, (_, each) in self.mapping(node, "this value").items()}
            made, inner = {key: value for key, (value, _) in rows.items()}, list(rows.values())
        else:
            inner = [self._value(each) for each in node.value]
            made = [value for value, _ in inner]
        return made, 1 + max((deep for _, deep in inner), default=0)

    @staticmethod
    def _scalar(node: yaml.ScalarNode) -> object:
        text = str(node.value)
        if node.style is not None:
            return text
        if text in _CONSTANTS:
            return _CONSTANTS[text]
        if _INTEGER.match(text):
            return int(text) if len(text) < 400 else text
        return float(text) if _FLOAT.match(text) else text

    def refuse_split_gate(self, rows: _Map, word: str, node: yaml.Node) -> None:
        """A comma inside ``{}`` ends a value: ``{gate: rbp(p=0.8, rel=2)@10 >= 0.5}`` has two keys."""
        if not (isinstance(node, yaml.MappingNode) and node.flow_style):
            return
        before: list[str] = []
        for key, (at, value) in rows.items():
            if key == word and before and value.end_mark.index - at.end_mark.index <= 1 and re.search(r"[()@<>=]", key):
                self.fail(at, f'the comma inside {{ }} splits the gate: quote the gate, "{before[-1]}, {word}"')
            before.append(str(value.value) if isinstance(value, yaml.ScalarNode) and value.value else key)

    def _refuse_tag(self, node: yaml.Node) -> None:
        if node.tag not in _STANDARD_TAGS:
            self.fail(node, f"tags such as {shown(node.tag)} are not read")


def _is_null(node: yaml.ScalarNode) -> bool:
    return _CONSTANTS[node.value] is None


def _kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    return f"{shown(repr(node.value), 40)}" if node.value else "nothing"
