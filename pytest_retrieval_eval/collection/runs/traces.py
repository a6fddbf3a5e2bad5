"""Traces: the calls that an agent, or a multi-hop retriever, made for each query.

A trace is a list of calls in their order, each with its own question, hits and time. As JSON Lines, a row a query::

    {"query_id": "q1", "calls": [{"query": "who wrote it?", "hits": ["d4", "d7"], "seconds": 0.2}, …]}

A query for which no call was made has an empty list: the agent chose not to retrieve. A run that is made of traces
keeps them, so that a baseline, a gate file and the command line know them as well.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pytest_retrieval_eval.collection.formats.files import (
    JsonIds,
    PathLike,
    excerpt,
    json_lines,
    utf8,
    write_atomically,
)
from pytest_retrieval_eval.collection.runs.hits import Hit, read_hits
from pytest_retrieval_eval.errors import DataError

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.runs.run import Run

_QUERY_KEYS = ("query_id", "query-id", "qid", "_id")
_KEYS = frozenset({"query", "hits", "seconds", "cost", "tool"})


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a retriever: what it was asked, its hits, and what it took and cost, where that is known."""

    hits: tuple[Hit, ...] = ()
    query: str | None = None
    seconds: float | None = None
    cost: float | None = None
    tool: str = ""

    @property
    def docs(self) -> tuple[str, ...]:
        """The ids of the hits, best first."""
        return tuple(hit.id for hit in self.hits)

    @classmethod
    def of(cls, call: object, where: str) -> Call:
        """A call from a mapping with ``hits``, or from hits alone in any form that a retriever may return."""
        if isinstance(call, Call):
            return call
        if not isinstance(call, Mapping) or "hits" not in call:
            if isinstance(call, Mapping) and _KEYS.intersection(call):
                raise DataError(f"{where}: the call {excerpt(call)} has no hits; expected a list, perhaps an empty one")
            return cls(tuple(read_hits(call, where)))
        for key in call:
            if key not in _KEYS:
                raise DataError(f"{where}: a call has no field {key!r}; it has {', '.join(sorted(_KEYS))}")
        query, tool = call.get("query"), call.get("tool", "")
        for name, value in (("query", query), ("tool", tool)):
            if value is not None and not isinstance(value, str):
                raise DataError(f"{where}: the {name} of a call is {excerpt(value)}; expected a text")
        return cls(
            tuple(read_hits(call["hits"], where)),
            query,
            _amount(call.get("seconds"), "seconds", where),
            _amount(call.get("cost"), "cost", where),
            tool or "",
        )

    def to_dict(self) -> dict[str, object]:
        """The call as a row of a file has it."""
        row: dict[str, object] = {"hits": [_hit(hit) for hit in self.hits]}
        for name in ("query", "seconds", "cost"):
            if getattr(self, name) is not None:
                row[name] = getattr(self, name)
        return {**row, "tool": self.tool} if self.tool else row


def _hit(hit: Hit) -> dict[str, object]:
    fields = {"id": hit.id, "score": hit.score, "doc_id": hit.doc_id, "start": hit.start, "end": hit.end}
    return {key: value for key, value in fields.items() if value is not None}


def _amount(value: object, name: str, where: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        raise DataError(f"{where}: the {name} of a call are {excerpt(value)}; expected a number of 0 or more")
    return float(value)


def read_calls(value: object, where: str) -> tuple[Call, ...]:
    """The calls of one query."""
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Sequence):
        raise DataError(f"{where}: the calls are {excerpt(value)}; expected a list of calls, each with its hits")
    return tuple(Call.of(each, f"{where}, call {number}") for number, each in enumerate(value, 1))


class Traces(Mapping[str, "tuple[Call, ...]"]):
    """The calls of each query, in their order; immutable.

    A call has its hits, and perhaps what was asked, which tool did it, how many seconds it took and what it cost. What
    cannot be calls is a DataError that names the query.

    >>> traces = Traces.of({"q1": [["d4", "d7"], {"query": "and then?", "hits": ["d2"], "seconds": 0.2}], "q2": []})
    >>> [call.docs for call in traces["q1"]], len(traces["q2"])
    ([('d4', 'd7'), ('d2',)], 0)
    >>> traces.run().ranking("q1").docs
    ['d4', 'd7', 'd2']
    """

    def __init__(
        self,
        calls: Mapping[str, tuple[Call, ...]],
        *,
        errors: Mapping[str, str] | None = None,
        name: str = "",
        source: str = "",
    ) -> None:
        self._calls = MappingProxyType(dict(calls))
        self.errors: Mapping[str, str] = MappingProxyType(dict(errors or {}))
        self.name = name
        self.source = source
        self._made: Run | None = None

    @classmethod
    def of(cls, traces: Mapping[Any, Any], *, errors: Mapping[str, str] | None = None, name: str = "") -> Traces:
        """Traces of a mapping from query to its calls; a call is a mapping with ``hits``, or hits alone."""
        if not isinstance(traces, Mapping):
            raise DataError(f"traces are {excerpt(traces)}; expected a mapping from query id to its calls")
        ids, found = JsonIds(), {}
        for key, calls in traces.items():
            query_id = ids(key, "traces")
            found[query_id] = read_calls(calls, f"query {query_id!r}")
        return cls(found, errors=errors, name=name)

    @classmethod
    def read(cls, path: PathLike) -> Traces:
        """The traces in a file of JSON Lines (a row a query), compressed or not; or those of a run that keeps some."""
        from pytest_retrieval_eval.collection.runs.run import Run

        run = Run.read(path)
        return cls.of_run(run)

    @classmethod
    def of_run(cls, run: Run) -> Traces:
        """The traces that a run is made of. Raises DataError where it is not."""
        if not run.calls:
            raise DataError(f"the {run.called} has no traces: expected a row a query, with query_id and calls")
        return cls(run.calls, errors=run.errors, name=run.name, source=run.source)

    @classmethod
    def of_langchain(cls, trees: Mapping[str, object], *, name: str = "") -> Traces:
        """Traces of run trees of LangChain (query id → the root of its tree), known by their shape.

        Every node whose ``run_type`` is ``retriever`` is a call, in the order of ``start_time``: ``inputs["query"]``
        is its question, ``outputs["documents"]`` its hits, and the time is that between ``start_time`` and
        ``end_time``.
        """
        return cls.of({query: _langchain(root, f"query {query!r}") for query, root in trees.items()}, name=name)

    @classmethod
    def of_llamaindex(cls, events: Mapping[str, Iterable[object]], *, name: str = "") -> Traces:
        """Traces of LlamaIndex' events (query id → the events of its own), known by their shape.

        A call is a ``RetrievalStartEvent`` with the ``RetrievalEndEvent`` of the same ``span_id``: its question is
        ``str_or_query_bundle``, its hits are ``nodes``, and its time is that between the two ``timestamp``. Events of
        other kinds are passed over.
        """
        return cls.of({query: _llamaindex(each, f"query {query!r}") for query, each in events.items()}, name=name)

    @classmethod
    def of_opentelemetry(cls, records: object, *, query_key: str = "query_id", name: str = "") -> Traces:
        """Traces of OpenTelemetry's records (it calls them spans) with the attributes of OpenInference, as OTLP's JSON
        has them, or as a list.

        A trace is that of the query that an attribute ``query_key`` of any of its spans names. Its calls are the spans
        whose ``openinference.span.kind`` is RETRIEVER, by their start: ``input.value`` is the question, and
        ``retrieval.documents.N.document.id`` and ``.score`` are the hits.
        """
        by_trace: dict[str, list[tuple[Mapping[str, Any], dict[str, Any]]]] = {}
        for span in _otlp(records):
            trace = span.get("traceId") or span.get("trace_id")
            if not isinstance(trace, str) or not trace:
                raise DataError(f"the span {excerpt(dict(span))} has no traceId")
            by_trace.setdefault(trace, []).append((span, _attributes(span)))
        found: dict[str, list[dict[str, object]]] = {}
        for trace, known in by_trace.items():
            names = {str(said[query_key]) for _, said in known if query_key in said}
            if len(names) != 1:
                raise DataError(
                    f"the trace {trace} names {len(names)} queries in the attribute {query_key!r}; expected one: "
                    "set it on the root span to the id of the query"
                )
            query_id = names.pop()
            if query_id in found:
                raise DataError(f"two traces are of the query {query_id!r}; expected one for each query")
            retrievers = [
                (_nanoseconds(span, "start", trace), span, said)
                for span, said in known
                if str(said.get("openinference.span.kind", "")).upper() == "RETRIEVER"
            ]
            retrievers.sort(key=lambda each: each[0])
            found[query_id] = [
                {
                    "query": None if said.get("input.value") is None else str(said["input.value"]),
                    "hits": _documents(said, f"query {query_id!r}, call {number}"),
                    "seconds": (_nanoseconds(span, "end", trace) - start) / 1e9,
                    "tool": str(span.get("name") or ""),
                }
                for number, (start, span, said) in enumerate(retrievers, 1)
            ]
        return cls.of(found, name=name)

    def __getitem__(self, query_id: str) -> tuple[Call, ...]:
        return self._calls[query_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._calls)

    def __len__(self) -> int:
        return len(self._calls)

    def __repr__(self) -> str:
        return f"<Traces of {len(self)} queries>"

    def run(self) -> Run:
        """What the calls of each query returned together, each document where it first came, with the traces.

        Its seconds and costs are the sums over the calls, where every call says them.
        """
        if self._made is None:
            self._made = self._run(self._calls, self.name or "traces")
        return self._made

    def hop(self, number: int) -> Run:
        """What the ``number``-th call of each query returned (from 1); nothing where there were fewer.

        It is a run as any other, so that every measure takes it: ``assert_metric("recall@5", run=traces.hop(2))``.
        """
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise DataError(f"a hop is numbered from 1, not {excerpt(number)}")
        chosen = {query: calls[number - 1 : number] for query, calls in self._calls.items()}
        if not any(chosen.values()):
            raise DataError(f"no query has a call number {number}; the longest trace has {self.longest}")
        return self._run(chosen, f"{self.name or 'traces'}, hop {number}")

    @property
    def longest(self) -> int:
        """The largest number of calls for one query."""
        return max(map(len, self._calls.values()), default=0)

    def _run(self, calls: Mapping[str, tuple[Call, ...]], name: str) -> Run:
        from pytest_retrieval_eval.collection.runs.run import Run

        return Run.of_calls(calls, name=name, errors=self.errors, source=self.source)

    def save(self, path: PathLike) -> None:
        """Write the traces as JSON Lines, a row a query, sorted by id."""
        with write_atomically(path) as out:
            for query_id in sorted(self):
                row: dict[str, object] = {"query_id": query_id, "calls": [call.to_dict() for call in self[query_id]]}
                if query_id in self.errors:
                    row["error"] = self.errors[query_id]
                out.write(utf8(json.dumps(row, ensure_ascii=False) + "\n"))


def read_trace_rows(path: PathLike) -> tuple[dict[str, tuple[Call, ...]], dict[str, str]]:
    """The calls and the errors of a file of traces."""
    ids = JsonIds()
    calls: dict[str, tuple[Call, ...]] = {}
    errors: dict[str, str] = {}
    for number, row in json_lines(path):
        where = f"{path}:{number}"
        key = next((key for key in _QUERY_KEYS if key in row), None)
        if key is None or "calls" not in row:
            raise DataError(f"{where}: {excerpt(row)} is no trace; expected the keys query_id and calls")
        query_id = ids(row[key], where)
        if query_id in calls:
            raise DataError(f"{where}: query {query_id!r} has a second trace; expected one row for each query")
        calls[query_id] = read_calls(row["calls"], where)
        if row.get("error") is not None:
            errors[query_id] = str(row["error"])
    return calls, errors


def merged_hits(calls: Iterable[Call]) -> list[Hit]:
    """The hits of several calls, each document where it first came, without scores, which compare with no other's."""
    found: dict[str, Hit] = {}
    for call in calls:
        for hit in call.hits:
            found.setdefault(hit.id, Hit(hit.id, None, hit.doc_id, hit.start, hit.end))
    return list(found.values())


def totals(calls: Mapping[str, Sequence[Call]], name: str) -> dict[str, float]:
    """The seconds or costs of each query's calls together, where every call says them."""
    found = {}
    for query_id, several in calls.items():
        amounts = [getattr(call, name) for call in several]
        if all(amount is not None for amount in amounts):
            found[query_id] = math.fsum(amounts)
    # No call takes no time, but only where somebody says what calls take.
    return found if any(calls[query_id] for query_id in found) else {}


# --- other tools' traces ------------------------------------------------------------------------------------------


def _field(item: object, key: str) -> Any:
    return item.get(key) if isinstance(item, Mapping) else getattr(item, key, None)


def _langchain(root: object, where: str) -> list[dict[str, object]]:
    found: list[tuple[Any, dict[str, object]]] = []
    left = [root]
    while left:
        node = left.pop()
        left += _field(node, "child_runs") or []
        if _field(node, "run_type") != "retriever":
            continue
        outputs, inputs = _field(node, "outputs"), _field(node, "inputs") or {}
        documents = _field(outputs, "documents") if outputs is not None else None
        if documents is None:
            raise DataError(f"{where}: the retriever {_field(node, 'name')!r} of the tree has no outputs.documents")
        begin, end = _field(node, "start_time"), _field(node, "end_time")
        question = _field(inputs, "query") or _field(inputs, "input")
        call: dict[str, object] = {
            "query": question if isinstance(question, str) else None,
            "hits": list(documents),
            "tool": str(_field(node, "name") or ""),
        }
        if begin is not None and end is not None:
            call["seconds"] = _seconds(begin, end)
        found.append((begin, call))
    if all(begin is not None for begin, _ in found):
        found.sort(key=lambda each: _moment(each[0]))
    else:
        found.reverse()  # the stack gave the last child first
    return [call for _, call in found]


def _llamaindex(events: Iterable[object], where: str) -> list[dict[str, object]]:
    calls: list[dict[str, object]] = []
    begun: dict[object, list[tuple[dict[str, object], Any]]] = {}
    for event in events:
        named = _field(event, "class_name")
        kind = named() if callable(named) else named
        span = _field(event, "span_id")
        if kind == "RetrievalStartEvent":
            asked = _field(event, "str_or_query_bundle")
            question = asked if isinstance(asked, str) else _field(asked, "query_str")
            calls.append({"query": question if isinstance(question, str) else None})
            begun.setdefault(span, []).append((calls[-1], _field(event, "timestamp")))
        elif kind == "RetrievalEndEvent":
            if not begun.get(span):
                raise DataError(
                    f"{where}: the RetrievalEndEvent of the span {span!r} has no RetrievalStartEvent before it"
                )
            call, begin = begun[span].pop()
            nodes, end = _field(event, "nodes"), _field(event, "timestamp")
            if nodes is None:
                raise DataError(f"{where}: the RetrievalEndEvent of the span {span!r} has no nodes")
            call["hits"] = list(nodes)
            if begin is not None and end is not None:
                call["seconds"] = _seconds(begin, end)
    open_spans = [span for span, left in begun.items() if left]
    if open_spans:
        raise DataError(
            f"{where}: the retrieval of the span {open_spans[0]!r} began and has no RetrievalEndEvent: a query that "
            "failed belongs into errors="
        )
    return calls


def _moment(value: Any) -> float:
    if isinstance(value, str):
        from datetime import datetime

        return datetime.fromisoformat(value.replace("Z", "+00:00")).timestamp()
    return float(value.timestamp()) if hasattr(value, "timestamp") else float(value)


def _seconds(begin: Any, end: Any) -> float:
    return _moment(end) - _moment(begin)


def _otlp(spans: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(spans, Mapping):
        if "resourceSpans" not in spans:
            raise DataError(f"{excerpt(dict(spans))} is no OTLP document; expected resourceSpans, or a list of spans")
        for resource in spans["resourceSpans"]:
            for scope in resource.get("scopeSpans", ()):
                yield from scope.get("spans", ())
        return
    if isinstance(spans, (str, bytes)) or not isinstance(spans, Iterable):
        raise DataError(f"{excerpt(spans)} are no spans; expected an OTLP document, or a list of spans")
    yield from spans


def _attributes(span: Mapping[str, Any]) -> dict[str, Any]:
    said = span.get("attributes") or {}
    if isinstance(said, Mapping):
        return dict(said)
    # OTLP's own form: a list of {"key", "value": {"stringValue": …}}.
    return {each["key"]: _value(each.get("value")) for each in said}


def _value(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    for kind, given in value.items():
        return int(given) if kind == "intValue" else given
    return None


def _nanoseconds(span: Mapping[str, Any], which: str, trace: str) -> int:
    value = span.get(f"{which}TimeUnixNano", span.get(f"{which}_time_unix_nano", span.get(f"{which}_time")))
    try:
        return int(value)
    except (TypeError, ValueError):
        raise DataError(
            f"a span of the trace {trace} has the {which} time {excerpt(value)}; expected nanoseconds"
        ) from None


def _documents(said: Mapping[str, Any], where: str) -> list[dict[str, Any]]:
    prefix = "retrieval.documents."
    found: dict[int, dict[str, Any]] = {}
    for key, value in said.items():
        number, _, rest = key.removeprefix(prefix).partition(".")
        if key.startswith(prefix) and number.isdecimal() and rest in ("document.id", "document.score"):
            found.setdefault(int(number), {})[rest.removeprefix("document.")] = value
    for place, hit in found.items():
        if "id" not in hit:
            raise DataError(f"{where}: document {place} has no {prefix}{place}.document.id")
    return [found[place] for place in sorted(found)]
