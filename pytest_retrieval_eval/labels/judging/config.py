"""A judge from a mapping, as it stands in a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_retrieval_eval.collection.files import excerpt
from pytest_retrieval_eval.errors import SettingsError, did_you_mean
from pytest_retrieval_eval.labels.judging.judge import Judge
from pytest_retrieval_eval.labels.judging.judges import ServerJudge, VoteJudge
from pytest_retrieval_eval.labels.judging.prompts import Example, JudgePrompt
from pytest_retrieval_eval.labels.judging.replies import Scale
from pytest_retrieval_eval.readers.cache import ReadingCache
from pytest_retrieval_eval.readers.config import check_keys, parameters, server_arguments
from pytest_retrieval_eval.readers.server import ServerReader

_KINDS = ("server", "vote")


def judge_from(settings: Mapping[str, object], *, root: Path | None = None, cache: ReadingCache | None = None) -> Judge:
    """The judge that a mapping such as ``{"kind": "server", "url": …, "model": …}`` describes.

    ``kind`` is ``server`` (unless given), with the settings of :class:`ServerJudge`, or ``vote``, with ``judges`` (a
    list of such mappings) and ``rule``. ``prompt`` is the name of a built-in template or a mapping: ``file``, ``scale``
    (least and most), ``said``, ``key`` and ``examples``, or ``name`` and ``examples``. Paths are from ``root``. Nothing
    is sent. Raises SettingsError for what cannot be used.

    >>> judge_from({"url": "http://localhost:8000/v1", "model": "m", "promt": "pool012"})
    Traceback (most recent call last):
    pytest_retrieval_eval.errors.SettingsError: judge: there is no setting 'promt' for kind server; did you mean prompt?
    """
    kind = settings.get("kind", "server")
    given: dict[str, Any] = {key: value for key, value in settings.items() if key != "kind"}
    if kind == "vote":
        check_keys("kind vote", given, ("judges", "rule"), needed=("judges",), where="judge")
        members = given["judges"]
        if not isinstance(members, list) or not all(isinstance(member, Mapping) for member in members):
            raise SettingsError(f"the judges of a vote are {excerpt(members)}; expected a list of mappings")
        judges = [judge_from(member, root=root, cache=cache) for member in members]
        return VoteJudge(judges, rule=given.get("rule", "majority"))
    if kind != "server":
        raise SettingsError(f"a judge of kind {excerpt(kind)}; {did_you_mean(str(kind), _KINDS)}")
    known = {*parameters(ServerJudge), *parameters(ServerReader)} - {"cache"}
    check_keys("kind server", given, known, needed=("url", "model"), where="judge")
    if "prompt" in given:
        given["prompt"] = prompt_from(given["prompt"], root=root)
    return ServerJudge(**server_arguments(given, root, where="judge"), cache=cache)


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


def _examples(value: object) -> list[Example]:
    fields = ("query", "passage", "grade", "said")
    if not isinstance(value, list):
        raise SettingsError(f"the examples are {excerpt(value)}; expected a list")
    made = []
    for one in value:
        if not isinstance(one, Mapping):
            raise SettingsError(f"an example is {excerpt(one)}; expected a mapping with {', '.join(fields)}")
        check_keys("example", one, fields, needed=fields, where="judge")
        made.append(Example(str(one["query"]), str(one["passage"]), one["grade"], str(one["said"])))
    return made
