"""A judge from a mapping, as it stands in a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pytest_retrieval_eval.collection.formats.files import excerpt
from pytest_retrieval_eval.errors import GateError, SettingsError, did_you_mean, raised
from pytest_retrieval_eval.labels.judging.judge import Judge
from pytest_retrieval_eval.labels.judging.judges import ServerJudge, VoteJudge
from pytest_retrieval_eval.labels.judging.prompts import JudgeExample, JudgePrompt
from pytest_retrieval_eval.labels.judging.replies import Scale
from pytest_retrieval_eval.readers.config import check_keys, check_new_kind, parameters, server_arguments
from pytest_retrieval_eval.readers.readings.cache import ReadingCache
from pytest_retrieval_eval.readers.services.server import ServerReader


def judge_from(settings: Mapping[str, object], *, root: Path | None = None, cache: ReadingCache | None = None) -> Judge:
    """The judge that a mapping such as ``{"kind": "server", "url": …, "model": …}`` describes.

    ``kind`` is ``server`` (unless given), with the settings of :class:`ServerJudge`; ``vote``, with ``judges`` (a list
    of such mappings) and ``combine``; or what a plugin has registered. ``prompt`` is the name of a built-in template or
    a mapping: ``file``, ``scale`` (least and most), ``said``, ``key`` and ``examples``, or ``name`` and ``examples``.
    Paths are from ``root``. Nothing is sent. Raises SettingsError for what cannot be used.

    >>> judge_from({"url": "http://localhost:8000/v1", "model": "m", "promt": "pool012"})
    Traceback (most recent call last):
    pytest_retrieval_eval.errors.SettingsError: judge: there is no setting 'promt' for kind server; did you mean prompt?
    """
    kind = settings.get("kind", "server")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise SettingsError(f"a judge of kind {excerpt(kind)}; {did_you_mean(str(kind), _KINDS)}")
    return _KINDS[kind]({key: value for key, value in settings.items() if key != "kind"}, root, cache)


def _vote(given: dict[str, Any], root: Path | None, cache: ReadingCache | None) -> Judge:
    check_keys("kind vote", given, ("judges", "combine"), needed=("judges",), where="judge")
    members = given["judges"]
    if not isinstance(members, list) or not all(isinstance(member, Mapping) for member in members):
        raise SettingsError(f"the judges of a vote are {excerpt(members)}; expected a list of mappings")
    judges = [judge_from(member, root=root, cache=cache) for member in members]
    return VoteJudge(judges, combine=given.get("combine", "majority"))


def _server(given: dict[str, Any], root: Path | None, cache: ReadingCache | None) -> Judge:
    known = {*parameters(ServerJudge), *parameters(ServerReader)} - {"cache"}
    check_keys("kind server", given, known, needed=("url", "model"), where="judge")
    if "prompt" in given:
        given["prompt"] = prompt_from(given["prompt"], root=root)
    return ServerJudge(**server_arguments(given, root, where="judge"), cache=cache)


_KINDS: dict[str, Callable[[dict[str, Any], Path | None, ReadingCache | None], Judge]] = {
    "server": _server,
    "vote": _vote,
}
_PARTS = ("identity", "scale", "floating", "grade", "close")


def register(name: str, make: Callable[[Mapping[str, object]], Judge]) -> bool:
    """Add a kind of judge: ``make`` gets its settings without ``kind``. A name that is taken is a SettingsError."""
    check_new_kind("judge", name, make, _KINDS)
    _KINDS[name] = lambda settings, root, cache: _made(name, make, settings)
    return True


def unregister(name: str) -> None:
    """Take a kind of judge out again."""
    _KINDS.pop(name, None)


def _made(name: str, make: Callable[[Mapping[str, object]], Judge], settings: Mapping[str, object]) -> Judge:
    """What somebody's function makes of settings, if it is a judge."""
    try:
        made = make(settings)
    except GateError:
        raise
    except Exception as error:  # anyone may write a judge
        raise SettingsError(f"the judge of kind {name} cannot be made: {raised(error)}") from error
    missing = [part for part in _PARTS if not hasattr(made, part)]
    if missing:
        raise SettingsError(f"the kind of judge {name} made {excerpt(made)}, which has no {missing[0]}")
    return made


def prompt_from(value: object, *, root: Path | None = None) -> JudgePrompt:
    """The prompt that a name or a mapping describes; see :func:`judge_from`.

    >>> prompt_from("handbook03").scale
    Scale(least=0, most=3)
    """
    if isinstance(value, str):
        return JudgePrompt.named(value)
    if not isinstance(value, Mapping):
        raise SettingsError(f"the prompt is {excerpt(value)}; expected the name of a template, or a mapping")
    check_keys("prompt", value, ("name", "file", "scale", "said", "key", "examples"), where="judge")
    examples = _examples(value.get("examples", []))
    if "name" in value:
        if set(value) - {"name", "examples"}:
            raise SettingsError("a judge's prompt with the name of a template has its scale and keys from there")
        return JudgePrompt.named(str(value["name"]), examples)
    check_keys("prompt", value, value, needed=("file", "scale"), where="judge")
    ends = value["scale"]
    if not isinstance(ends, list) or len(ends) != 2:
        raise SettingsError(f"the scale is {excerpt(ends)}; expected a list of two numbers, such as [0, 3]")
    words = {name: str(value[name]) for name in ("said", "key") if name in value}
    return JudgePrompt.read((root or Path()) / str(value["file"]), Scale(*ends), examples=examples, **words)


def _examples(value: object) -> list[JudgeExample]:
    fields = ("query", "passage", "grade", "said")
    if not isinstance(value, list):
        raise SettingsError(f"the examples are {excerpt(value)}; expected a list")
    made = []
    for one in value:
        if not isinstance(one, Mapping):
            raise SettingsError(f"an example is {excerpt(one)}; expected a mapping with {', '.join(fields)}")
        check_keys("example", one, fields, needed=fields, where="judge")
        made.append(JudgeExample(str(one["query"]), str(one["passage"]), one["grade"], str(one["said"])))
    return made
