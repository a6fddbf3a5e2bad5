"""The reference page of the measures, made from the registry, so that it cannot say what the code does not."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

from pytest_retrieval_eval.collection.dataset import Corpus
from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.collection.queries import Queries
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.collection.runs.traces import Traces
from pytest_retrieval_eval.collection.spans.chunks import Chunk, Chunks
from pytest_retrieval_eval.collection.spans.spans import Spans
from pytest_retrieval_eval.measures import registry
from pytest_retrieval_eval.measures.evaluate import evaluate
from pytest_retrieval_eval.measures.evidence import RANKS
from pytest_retrieval_eval.measures.names import PROVIDER, Measure
from pytest_retrieval_eval.measures.registry import Definition, Parameter

QRELS = {"q": {"d1": 3, "d3": 2, "d5": 2, "d4": 1}}
RUN = {"q": ["d7", "d3", "d1", "d9", "d4"]}
CHUNKS = {
    "d7": Chunk("guide", 0, 400),
    "d3": Chunk("guide", 400, 800),
    "d1": Chunk("faq", 0, 400),
    "d9": Chunk("guide", 800, 1200),
    "d4": Chunk("faq", 400, 800),
}
SPANS = {"q": [("guide", 300, 700), ("faq", 100, 200), ("rules", 0, 100)]}

FUSED = ["d9", "d7", "d4", "d3", "d1", "d5"]
HOPS = [["d3"], ["d1", "d4", "d5"]]
READERS = {"guide": ["*"], "faq": ["hr"], "d5": ["*"]}
CALLS = [
    {"hits": ["d7", "d3"], "seconds": 0.008, "cost": 0.0012},
    {"hits": ["d1", "d9", "d4"], "seconds": 0.004, "cost": 0.0008},
]
# The top scores of four queries, the last two of which have no answer.
ANSWERS = {"q": 0.9, "q2": 0.4, "q3": 0.5, "q4": None}

# What measures of another kind of evidence read.
_READS = {
    "spans": "gold spans, and which part of which document each hit is; no judgments",
    "stages": "judged documents, also those that the stage `from` returned (the fixture `retrieval_stages`)",
    "access": "the roles of whoever asks (queries.jsonl) and of whoever may read a document (corpus.jsonl)",
    "abstention": "which queries have no answer, and the score of the first hit; no judgments",
    "calls": "the calls of traces; no judgments",
    "chain": "judged documents, and which call of a trace returned them",
    "times": "the seconds and the cost of each query in the run; no judgments",
}

_HEAD = """\
# Measures

<!-- Made by: python -m pytest_retrieval_eval.measures > docs/reference/measures.md -->

A measure is written `name(parameter=value, …)@k`, as in `recall@5`, `ndcg(gain=exp)@10`, `rbp(p=0.95, rel=2)@100` or
`condensed(ndcg@10)`. Without `@k` the whole list counts. What is printed can be read again, and a value that equals its
default is left out, except `rel`. The names of trec_eval and ir_measures are read as well, in any case; the command
line also takes trec_eval's lists (`-m ndcg_cut.5,10`).

In the definitions k is the cut-off, g the grade of a document, R the number of relevant documents, and a document is
relevant if its grade is at least `rel` (1 without it). Of set measures, n is the number of documents returned (in the
top k) and h that of the relevant ones among them. Unjudged documents gain nothing. The value is for one query; a
measure is the mean over the queries that count, unless it says otherwise.

* **Which queries count**: those with a document that is relevant at the measure's level (of a grade above 0, where the
  measure has no level), with 0 where the run returned nothing. With `trec=True` (`--trec`): the topics that are in both
  the qrels and the run.
* **Negative grades** are judgments without gain. `bpref`, `infap` and `num_nonrel_judged_ret` take them for documents
  that were pooled and not judged, as trec_eval does; `condensed` and `unjudged` do so in trec mode only.
* **Real grades** are never cut: over grades that are no whole numbers, a measure with a level needs `rel` in its name.
  On the *unit* scale, where a label in [0, 1] is a degree of relevance, it needs none: for t drawn evenly from (0, 1) a
  document is relevant if its label is at least t, and the measure is the integral of its numerator over that of its
  denominator. S is the sum of a query's labels.
* **Equal scores**: `Evaluation.ties` has the least, the expected and the largest value over all orders of tied
  documents, all three exact. No closed form of the expected one is known for `iprec`, `eleven_point`, `infap` and `gm`,
  nor for `bpref` and condensed lists where a cut divides a tie; nor of any of the three for
  `map(denominator=retrieved)@k` on the unit scale. There each order is tried, and where the ties of a query have more
  than 10,000 (or those of all queries together more than 250,000 places of judged documents) there is no value.
* **Same name, other number**: `err` takes gmax from the qrels, gdeval and ir_measures always 4 (`err(gmax=4)@20`).
  ir_measures' `judged_only=True` and trec_eval's `-J` drop negative grades, as `condensed` does in trec mode.
  scikit-learn's average precision is `map(denominator=retrieved)`.
* **Measures that are not here**: `ir_measures:Compat(p=0.9)` asks the package ir_measures (the extra `ir_measures`) for
  its measure of that name, on our order of documents. [Your own](../how-to/measures.md) are a function away.
* **Gold spans**: the measures that begin with `span_` read passages (document, start, end) in the place of judgments,
  so that they stay comparable when documents are cut into other chunks. k counts hits. A span is *found* at the first
  rank r down to which the hits cover at least `min_coverage` of its characters (0.5), together if need be. Spans
  found at one rank take it and the next: the j-th to be found has the effective rank e_j = max(r_j, e_(j-1) + 1), so
  that a giant chunk gains nothing over separate ones. Spans of one group are alternatives: one of them is enough, and
  R counts groups. A query counts if it has a gold span at the measure's level. The order of hits with equal scores is
  that of the run; how far it moves a value is not known.
* **Times and costs**: `latency.…` is in milliseconds, and in the text of a gate its numbers have a unit:
  `latency.p95 <= 250ms`, `latency.p95 <= baseline * 1.2 + 0.01s`. In Python they are plain milliseconds. Every query of
  the collection counts, with or without an answer; one without a time is an error. A percentile is no mean over the
  queries: its interval is the percentile bootstrap, and its p comes from swapping both sides of queries at random
  ([Latency and cost](../how-to/latency.md)).
* **Abstention**: to abstain is to return nothing, or nothing whose score reaches `threshold`. Queries that are marked
  unanswerable count, and those with judgments ([when to return nothing](../how-to/abstention.md)).
* **Traces**: `chain_…`, `hop_recall` and `calls_to_complete` ask whether the calls of an agent found the documents
  that are relevant to the query, all of which it is taken to need; k cuts the list of each call. `calls` reads as
  `calls.max` ([agents and hops](../how-to/agents.md)).

The examples are of one query, which took 12 ms and cost 0.002: d7, d3, d1, d9, d4 were returned, in this order; the
grades are d1 3, d3 2, d5 2, d4 1. Two calls brought them, d7 and d3, then the others; the first hop needs
d3, the second the other relevant ones. The stage `fused` before had returned
d9, d7, d4, d3, d1, d5. For gold spans these are chunks: d7, d3 and d9 the characters 0–400, 400–800 and
800–1200 of the guide, d1 and d4 0–400 and 400–800 of the FAQ; gold are 300–700 of the guide, 100–200 of the FAQ and
0–100 of the rules. Staff asks the query; everybody may read the guide and d5, and HR the FAQ. Abstention is of four
queries: the top scores of two with an answer are 0.9 and 0.4, of two without 0.5 and none.
"""


def page() -> str:
    """The whole page, as Markdown."""
    ours = [one for one in registry.definitions() if one.module.startswith(__package__) and one.name != PROVIDER]
    return _HEAD + "".join(f"\n{section(one)}" for one in ours)


def section(definition: Definition) -> str:
    """One measure: what it is, its parameters, bounds, names, source, and its value in the example."""
    said, meaning = _sentence(_said(definition.score)), _sentence(definition.meaning)
    rows = [
        ("reads", _sentence(_READS.get(definition.reads, "" if definition.reads == RANKS else definition.reads))),
        ("definition", "" if said == meaning else said),
        ("on the unit scale", _unit(definition)),
        ("cut-off", {"required": "needed", "optional": "may be given", "none": "none"}[definition.cutoff]),
        *((f"`{key}`", _parameter(one)) for key, one in definition.parameters.items() if key != "rel"),
        ("counts", _sentence(_said(definition.counts)) if definition.counts else ""),
        ("values", _bounds(definition)),
        ("over the queries", definition.aggregate),
        ("also read", ", ".join(f"`{name}`" for name in _spellings(definition))),
        ("source", definition.source),
        ("example", " · ".join(f"`{name}` {value:.4f}" for name, value in _examples(definition))),
    ]
    table = "".join(f"| {head} | {text} |\n" for head, text in rows if text)
    return f"## {definition.name}\n\n{meaning}\n\n| | |\n|---|---|\n{table}"


def _said(function: object) -> str:
    return re.sub(r"\s+", " ", inspect.getdoc(function) or "").strip()


def _sentence(text: str) -> str:
    """The text with a capital at its beginning, unless that is a symbol or a name, and a full stop."""
    capital = re.match(r"[a-z]{2,}(?= )", text)
    return (text[:1].upper() + text[1:] if capital else text).removesuffix(".") + "." if text else ""


def _unit(definition: Definition) -> str:
    if definition.graded is not None:
        return _sentence(_said(definition.graded))
    if definition.table is not None:
        return "What the measure inside says."
    if definition.reads != RANKS:
        return ""
    return "Needs `rel`." if definition.binary else ""


def _parameter(parameter: Parameter) -> str:
    if parameter.measure:
        return f"{parameter.meaning}; written without its key"
    kinds = [f"`{word}`" for word in parameter.words]
    if parameter.number:
        low, high = parameter.above, parameter.below
        bounds = [f"{'from' if parameter.closed else 'above'} {low:g}"] if low > -float("inf") else []
        bounds += [f"{'to' if parameter.closed else 'below'} {high:g}"] if high < float("inf") else []
        kinds.append(" ".join(["a number", (" " if parameter.closed else " and ").join(bounds)]))
    if parameter.text:
        kinds.append("a name")
    if parameter.default is None:
        default = "must be given"
    elif parameter.default == float("inf"):
        default = "all of them without it"
    else:
        shown = f"{parameter.default:g}" if isinstance(parameter.default, float) else parameter.default
        default = f"default `{shown}`"
    return f"{parameter.meaning}: {' or '.join(kinds)}; {default}"


def _bounds(definition: Definition) -> str:
    if definition.table is not None:
        return "those of the measure inside"
    high = f"to {definition.high:g}" if definition.high < float("inf") else "and more"
    return f"{definition.low:g} {high}"


def _spellings(definition: Definition) -> Iterator[str]:
    yield from (name for name in definition.spellings if name != definition.name)
    for stem in definition.stems:
        yield f"{stem}_0.50" if definition.placed else f"{stem}_10"
    if definition.placed:
        yield "IPrec@0.5"
    yield from (f"{key}={word}" for key, word in definition.translations if word != "log2")
    yield from definition.readings


_INSIDE = {"condensed": "ndcg@5", "cut": "ndcg", "gm": "map", "lift": "ndcg@5"}


def _examples(definition: Definition) -> list[tuple[Measure, float]]:
    """The plain measure, and one for each word that a parameter takes beside its default."""
    given: dict[str, float | str | Measure] = {}
    for key, parameter in definition.parameters.items():
        if parameter.measure:
            given[key] = Measure.parse(_INSIDE[definition.name])
        elif parameter.default is None:
            given[key] = "fused" if parameter.text else 0.5
    cutoff = 5 if definition.cutoff == "required" else None
    wanted = [Measure.of(definition.name, cutoff, **given)]
    if definition.cutoff == "optional":
        wanted.append(wanted[0].at(3))
    for key, parameter in definition.parameters.items():
        words = [word for word in parameter.words if word != parameter.default]
        wanted += [Measure.of(definition.name, cutoff, **given, **{key: word}) for word in words]
    if definition.reads == "abstention":
        queries = Queries.of({query: {"text": "?", "unanswerable": query > "q2"} for query in ANSWERS})
        run = Run.of({query: {} if top is None else {"d1": top} for query, top in ANSWERS.items()})
        qrels = Qrels.of({query: {"d1": 1} for query in ("q", "q2")})
        return [(scores.measure, scores.overall) for scores in evaluate(qrels, run, wanted, queries=queries)]
    found = evaluate(
        Qrels.of(QRELS),
        Traces.of({"q": CALLS}).run(),
        wanted,
        queries=Queries.of({"q": {"text": "?", "roles": ["staff"], "hops": HOPS}}),
        spans=Spans.of(SPANS),
        chunks=Chunks.of(CHUNKS),
        corpus=Corpus.of({doc: {"text": "", "roles": roles} for doc, roles in READERS.items()}),
        stages={"fused": Run.of({"q": FUSED})},
    )
    return [(scores.measure, scores.overall) for scores in found]
