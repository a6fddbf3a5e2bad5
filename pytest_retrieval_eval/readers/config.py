"""A reader from a mapping, as it stands in an ini file or a gate file."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

from pytest_retrieval_eval.collection.formats.files import excerpt
from pytest_retrieval_eval.errors import SettingsError, did_you_mean, raised
from pytest_retrieval_eval.readers.models.plan import Shapes
from pytest_retrieval_eval.readers.reading import Reader

_TYPES: Mapping[str, tuple[str, tuple[type, ...]]] = {
    "model": ("the folder of a model, or its id on the hub", (str, Path)),
    "revision": ("a branch, tag or commit", (str,)),
    "prompt": ("a template, or a mapping of templates", (str, dict)),
    "dtype": ("float32, bfloat16, float16 or auto", (str,)),
    "device": ("cpu, cuda, cuda:1, mps or auto", (str,)),
    "attention": ("sdpa, eager or flash_attention_2", (str,)),
    "max_input_tokens": ("an integer", (int,)),
    "max_new_tokens": ("an integer", (int,)),
    "held_tokens": ("an integer", (int,)),
    "batch_size": ("an integer", (int,)),
    "concurrency": ("an integer", (int,)),
    "stop": ("a text or a list of texts", (str, list, tuple)),
    "generation": ("a mapping", (dict,)),
    "documents": ("a mapping of templates", (dict,)),
    "shapes": ("fixed, bucket, dynamic, or a mapping with policy, rows, step, tokens", (str, dict)),
    "progress": ("true or false", (bool,)),
    "chat": ("true or false", (bool,)),
    "system": ("a text", (str,)),
    "date": ("a text", (str,)),
    "url": ("the base URL of a server, such as http://localhost:8000/v1", (str,)),
    "deployment": ("a text", (str,)),
    "weights": ("the digest of the model's weights", (str,)),
    "answers_as": ("the name of a model", (str,)),
    "pin": ("true or false", (bool,)),
    "document_chars": ("an integer", (int,)),
    "temperature": ("a number, or null to send none", (int, float, type(None))),
    "top_p": ("a number, or null to send none", (int, float, type(None))),
    "max_tokens": ("an integer", (int,)),
    "max_tokens_field": ("a text", (str,)),
    "seed": ("an integer, or null to send none", (int, type(None))),
    "extra": ("a mapping", (dict,)),
    "key_env": ("the name of an environment variable", (str,)),
    "key_header": ("the name of a header", (str,)),
    "requests_per_minute": ("a number", (int, float)),
    "tokens_per_minute": ("a number", (int, float)),
    "timeout": ("a number of seconds", (int, float)),
    "attempts": ("an integer", (int,)),
    "backoff": ("a number of seconds", (int, float)),
    "patience": ("a number of seconds", (int, float)),
    "budget": ("a mapping with calls, tokens, cost, price, path", (dict,)),
    "price": ("a mapping with input and output", (dict,)),
    "calls": ("an integer", (int,)),
    "tokens": ("an integer", (int,)),
    "cost": ("a number", (int, float)),
    "structured": ("true or false", (bool,)),
    "reader": ("a mapping: the reader of each actor", (dict,)),
    "actors": ("an integer", (int,)),
    "gpus": ("a number", (int, float)),
    "cpus": ("a number", (int, float)),
    "unit": ("an integer", (int,)),
    "address": ("the address of a cluster", (str,)),
    "identity": ("a text that names everything that can change an answer", (str,)),
}


def reader_from(settings: Mapping[str, object], *, root: Path | None = None) -> Reader:
    """The reader that a mapping such as ``{"kind": "fid", "model": "models/reader"}`` describes.

    ``kind`` is ``transformers`` (encoder-decoder), ``fid``, ``causal``, ``server``, ``callable`` or ``ray``; the other
    keys are the settings of that reader's class. Paths may be relative to ``root``. No model is loaded, no server is
    asked. Raises SettingsError for what cannot be used.

    >>> reader_from({"kind": "fid", "modle": "models/t5"})
    Traceback (most recent call last):
    pytest_retrieval_eval.errors.SettingsError: reader: there is no setting 'modle' for kind fid; did you mean model?
    """
    kind = settings.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise SettingsError(
            f"reader: kind is {excerpt(kind)}; {did_you_mean(str(kind), _KINDS)}"
            if kind is not None
            else f"reader: it has no kind; expected one of {', '.join(_KINDS)}"
        )
    return _KINDS[kind]({key: value for key, value in settings.items() if key != "kind"}, root)


def _local(module: str, name: str, kind: str) -> Callable[[Mapping[str, object], Path | None], Reader]:
    def make(settings: Mapping[str, object], root: Path | None) -> Reader:
        from importlib import import_module

        made = getattr(import_module(f"pytest_retrieval_eval.readers.models.{module}"), name)
        check_keys(f"kind {kind}", settings, parameters(made), needed=("model",))
        given = dict(settings)
        if root is not None and (root / str(given["model"])).is_dir():
            given["model"] = root / str(given["model"])
        if "shapes" in given:
            given["shapes"] = shapes_from(given["shapes"])
        return made(**given)  # type: ignore[no-any-return]

    return make


def _callable(settings: Mapping[str, object], root: Path | None) -> Reader:
    from pytest_retrieval_eval.readers.callable_reader import CallableReader

    check_keys("kind callable", settings, parameters(CallableReader), needed=("function",))
    given = dict(settings)
    function = given.pop("function")
    return CallableReader(_imported(function) if isinstance(function, str) else function, **given)  # type: ignore[arg-type]


def _server(settings: Mapping[str, object], root: Path | None) -> Reader:
    from pytest_retrieval_eval.readers.services.server import ServerReader

    check_keys("kind server", settings, parameters(ServerReader), needed=("url", "model"))
    given = server_arguments(settings, root)
    if isinstance(given.get("prompt"), str):
        given["prompt"] = {"prompt": given["prompt"]}
    return ServerReader(**given)


def server_arguments(settings: Mapping[str, object], root: Path | None, *, where: str = "reader") -> dict[str, Any]:
    """The settings of a server, as a file has them, as a class takes them: with a budget that is one."""
    from pytest_retrieval_eval.readers.services.budget import Budget, Price

    given: dict[str, Any] = dict(settings)
    if "budget" in given:
        budget = dict(given["budget"])
        check_keys("budget", budget, parameters(Budget), where=where)
        if "price" in budget:
            check_keys("price", budget["price"], parameters(Price), needed=("input", "output"), where=where)
            budget["price"] = Price(**budget["price"])
        if root is not None and "path" in budget:
            budget["path"] = root / budget["path"]
        given["budget"] = Budget(**budget)
    return given


def _ray(settings: Mapping[str, object], root: Path | None) -> Reader:
    from pytest_retrieval_eval.readers.ray_reader import RayReader

    known = ("reader", *(name for name in parameters(RayReader) if name != "factory"))
    check_keys("kind ray", settings, known, needed=("reader",))
    given: dict[str, Any] = dict(settings)
    inner = given.pop("reader")
    reader_from(inner, root=root).close()  # what cannot be is said here, and not by an actor
    return RayReader(partial(reader_from, inner, root=root), **given)


_KINDS: dict[str, Callable[[Mapping[str, object], Path | None], Reader]] = {
    "transformers": _local("transformers_reader", "Seq2seqReader", "transformers"),
    "fid": _local("fid", "FidReader", "fid"),
    "causal": _local("transformers_reader", "CausalReader", "causal"),
    "server": _server,
    "callable": _callable,
    "ray": _ray,
}


def register(name: str, make: Callable[[Mapping[str, object]], Reader]) -> bool:
    """Add a kind of reader: ``make`` gets its settings without ``kind``. A name that is taken is a SettingsError."""
    check_new_kind("reader", name, make, _KINDS)
    _KINDS[name] = lambda settings, root: make(settings)
    return True


def check_new_kind(what: str, name: object, make: object, known: Container[object]) -> None:
    """Refuse a kind of reader (or of judge: ``what``) that is no name with a function, or whose name is taken."""
    if not isinstance(name, str) or not name.isidentifier() or not callable(make):
        raise SettingsError(
            f"a kind of {what} is a name and a function of its settings, not {excerpt(name)} and {excerpt(make)}"
        )
    if name in known:
        raise SettingsError(f"there is a kind of {what} {name!r} already; give yours another name")


def unregister(name: str) -> None:
    """Take a kind of reader out again."""
    _KINDS.pop(name, None)


def shapes_from(value: object) -> Shapes:
    """Shapes from the name of a policy, or from a mapping of their sizes.

    >>> shapes_from({"policy": "bucket", "tokens": 8192}).rows_at(64)
    128
    """
    if isinstance(value, str):
        return Shapes(value)  # type: ignore[arg-type]
    if isinstance(value, Mapping):
        known = [field.name for field in fields(Shapes)]
        for key in value:
            if key not in known:
                raise SettingsError(f"reader: shapes has no {key!r}; {did_you_mean(str(key), known)}")
        return Shapes(**value)
    raise SettingsError(f"reader: shapes is {excerpt(value)}; expected {_TYPES['shapes'][0]}")


def check_keys(
    what: str,
    settings: Mapping[str, object],
    known: Collection[str],
    *,
    needed: Sequence[str] = (),
    where: str = "reader",
) -> None:
    """SettingsError for a key that there is not, a value of another type, and a key that is missing.

    >>> check_keys("kind callable", {"function": "a:b", "idenity": "v1"}, ["function", "identity"])
    Traceback (most recent call last):
    pytest_retrieval_eval.errors.SettingsError: reader: there is no setting 'idenity' for kind callable; did you mean \
identity?
    """
    for key, value in settings.items():
        if key not in known:
            raise SettingsError(f"{where}: there is no setting {key!r} for {what}; {did_you_mean(str(key), known)}")
        expected, types = _TYPES.get(key, ("", (object,)))
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types and object not in types):
            raise SettingsError(f"{where}: {key} is {excerpt(value)}; expected {expected}")
    for key in needed:
        if key not in settings:
            raise SettingsError(f"{where}: {what} needs the setting {key!r}")


def parameters(made: type) -> dict[str, object]:
    """The settings that a class takes from a file: the parameters of its constructor and those that it hands on."""
    found: dict[str, object] = {}
    for base in made.__mro__:
        if "__init__" not in vars(base):
            continue
        parameters = inspect.signature(vars(base)["__init__"]).parameters.values()
        found |= {one.name: one for one in parameters if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)}
        if not any(one.kind is one.VAR_KEYWORD for one in parameters):
            break
    return {name: one for name, one in found.items() if name not in ("self", "tokenizer")}


def _imported(text: str) -> Any:
    module, colon, name = text.partition(":")
    if not (module and colon and name):
        raise SettingsError(f"reader: function is {text!r}; expected MODULE:NAME, such as myapp.reader:answer")
    try:
        return pkgutil.resolve_name(text)
    except (Exception, SystemExit) as error:  # a module of anyone's
        raise SettingsError(f"reader: the function {text} cannot be had: {raised(error)}") from error
