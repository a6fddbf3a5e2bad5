"""Do labels foretell what the reader answers? The list's score from labels against the score of the final answer.

For each query a measure scores the retrieved list from labels, and the reader answers from the first k documents of
that list together, end to end. Labels are worth as much as the first foretells the second (Salemi & Zamani,
"Evaluating Retrieval Quality in Retrieval-Augmented Generation", SIGIR 2024, table 1). The same study is made of any
source of labels, so that they stand beside each other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from pytest_retrieval_eval.errors import GateError, MeasureError, SettingsError, did_you_mean
from pytest_retrieval_eval.labels.answers import Metric, answer_score, metric
from pytest_retrieval_eval.labels.erag import METRIC, Erag
from pytest_retrieval_eval.labels.labelling import ERAG, Labelling, LabelSource
from pytest_retrieval_eval.labels.scorable import scorable
from pytest_retrieval_eval.labels.source import check_name, source
from pytest_retrieval_eval.labels.texts import pool_of
from pytest_retrieval_eval.measures.evaluate import evaluate
from pytest_retrieval_eval.measures.names import Measure
from pytest_retrieval_eval.readers.reading import Item, Passage, Reader, Reading, read_all
from pytest_retrieval_eval.stats.association import Association, association, binary_ceiling
from pytest_retrieval_eval.stats.means import mean
from pytest_retrieval_eval.studies.systems import compare_rankings

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Dataset
    from pytest_retrieval_eval.collection.qrels import Qrels
    from pytest_retrieval_eval.collection.runs.run import Run

MEASURES = ("map", "mrr", "ndcg", "precision", "recall", "hit")
"""Cut at k."""
NORMALISE = ("pool", "list")
_DIGITS = 9  # means nearer than the project's tolerance are ties
_NAMED = 5


@dataclass(frozen=True, slots=True)
class Cell:
    """One correlation over the queries of a run: ``measure`` on the labels of a source against a reader's answers.

    ``label_reader`` is the reader that made the labels, where one did. ``found`` has the numbers.
    """

    reader: str
    run: str
    k: int
    labels: str
    label_reader: str
    measure: str
    found: Association

    @property
    def source(self) -> str:
        """The labels' name, with the reader that made them where it is another than the one that answers."""
        other = self.label_reader and self.label_reader != self.reader
        return f"{self.labels}[{self.label_reader}]" if other else self.labels


@dataclass(frozen=True, slots=True)
class Answered:
    """What a reader's answers from the first k documents of a run score: the mean, over how many queries.

    ``binary`` says that every answer is right or wrong; ``ceiling`` is then the largest tau-b that scores without
    ties can have at this rate, in many queries (None where all answers score the same).
    """

    reader: str
    run: str
    k: int
    n: int
    mean: float
    binary: bool
    ceiling: float | None


@dataclass(frozen=True, slots=True)
class SystemCell:
    """How the runs rank by the mean of a measure, against how they rank by the mean score of their answers.

    ``means`` has (run, mean of the measure, mean of the answers), over the same ``n`` queries for all. ``opposite``
    are the pairs of runs, of ``pairs``, that the two rank in opposite order.
    """

    reader: str
    k: int
    labels: str
    label_reader: str
    measure: str
    n: int
    means: tuple[tuple[str, float, float], ...]
    tau: float | None
    rho: float | None
    opposite: int
    pairs: int
    undefined: str = ""


@dataclass(frozen=True, slots=True)
class Correlation:
    """The study: its settings, the answers, the correlations over queries and over systems, and what to know."""

    dataset: str
    readers: tuple[str, ...]
    runs: tuple[str, ...]
    ks: tuple[int, ...]
    metric: str
    normalise: str
    queries: int
    level: float
    resamples: int
    answers: tuple[Answered, ...]
    cells: tuple[Cell, ...]
    systems: tuple[SystemCell, ...]
    failed: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """As builtin types: what is undefined is null, and ``undefined`` says why."""
        document = asdict(self)
        document["failed"] = dict(self.failed)
        for row, cell in zip(document["cells"], self.cells, strict=True):
            row |= row.pop("found")
            if cell.found.interval is not None:
                row["interval"] = [cell.found.interval.low, cell.found.interval.high]
        return document


class Given:
    """Labels that are there already, such as the grades of a judge, under a name."""

    pooled = False

    def __init__(self, name: str, qrels: Qrels) -> None:
        self.name, self._qrels = name, qrels

    def label(
        self, dataset: Dataset, runs: Sequence[Run], *, depth: int | None, select: frozenset[str] | None
    ) -> Labelling:
        """The grades, whatever the runs return."""
        if not len(self._qrels):
            raise GateError(f"the labels {self.name} are empty: there is nothing to correlate")
        return Labelling(lambda run: self._qrels)


def correlate(
    dataset: Dataset,
    runs: Mapping[str, Run],
    readers: Mapping[str, Reader],
    *,
    labels: Sequence[str | LabelSource] = (ERAG, "qrels", "contains(kilt)"),
    measures: Sequence[str] = MEASURES,
    ks: Sequence[int] = (5,),
    answer_metric: str | Metric = METRIC,
    normalise: str = "pool",
    select: Collection[str] | None = None,
    allow_failures: int = 0,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Correlation:
    """Correlate, for every run, reader, k, source of labels and measure.

    Each reader answers from the first k documents of every list, with nothing else at k than the labels see: measures
    are cut at the same k (``measures`` are names without a cut-off). The source ``erag`` is taken once for each
    reader, so that with a second reader the labels of one are also held against the answers of the other. A query
    counts in a correlation if it has gold answers and counts for the measure on those labels. ``normalise`` says
    whether what is relevant at all is that of all runs (``pool``), or of each list alone (``list``, as in the paper).

    A query of which a reader (or retriever) failed is left out everywhere, up to ``allow_failures`` of them.

    Raises GateError where more failed, or nothing can be correlated; SettingsError for an argument that cannot be;
    MeasureError for a measure that cannot be cut at k, or a k below the depth of a run.

    >>> from pytest_retrieval_eval import CallableReader, Dataset, Run
    >>> words = {"a": "red", "b": "blue", "c": "none"}
    >>> dataset = Dataset.of(queries={"q1": "red", "q2": "blue", "q3": "green"}, corpus=words,
    ...     qrels={"q1": ["a"], "q2": ["b"], "q3": ["c"]}, answers={"q1": "red", "q2": "blue", "q3": "green"})
    >>> reader = CallableReader(lambda query, texts: query if query in " ".join(texts) else "?", "finds the word")
    >>> run = Run.of({"q1": ["a", "b"], "q2": ["c", "b"], "q3": ["a", "c"]})
    >>> study = correlate(dataset, {"one": run}, {"finder": reader}, measures=["hit"], ks=[2])
    >>> [(cell.source, cell.found.n, cell.found.tau, cell.found.undefined) for cell in study.cells]
    [('erag', 3, 1.0, ''), ('qrels', 3, None, 'constant scores'), ('contains(kilt)', 3, 1.0, '')]
    """
    named = _checked(runs, readers, labels, ks, normalise)
    cut = {k: [_at(name, k) for name in dict.fromkeys(measures)] for k in ks}
    if not measures:
        raise SettingsError("no measure is named; name at least one, such as ndcg")
    _refuse_depth(runs, ks)
    chosen = scorable(dataset, None if select is None else frozenset(select), "correlate")
    ids = chosen.query_ids
    remembering = {name: _Remembering(reader) for name, reader in readers.items()}
    failed = {query: why for run in runs.values() for query, why in _failed_retrieval(run, ids).items()}
    notes = list(chosen.notes)
    # Labels of each k are of the first k documents: a row does not hang on what else is asked for.
    made = {k: _labelled(dataset, runs, remembering, named, k, normalise, frozenset(ids), answer_metric) for k in ks}
    for k, of_source in made.items():
        for labelling in {id(each): each for one in of_source.values() for each in one.values()}.values():
            failed |= labelling.failed
            notes += labelling.notes if k == max(ks) else ()
    asked = _asked(dataset, runs, ids, ks)
    scored = _scored(asked, remembering, chosen.answers.of_query, metric(answer_metric), failed)
    notes += _notes(asked, ks)
    if len(failed) > allow_failures:
        raise GateError(_too_many(failed, allow_failures))
    counted = [query for query in ids if query not in failed]
    if not counted:
        raise GateError(
            f"none of {len(ids)} queries of {dataset.name or 'the dataset'} could be read: {_first(failed)}"
        )
    lists = _list_scores(dataset, runs, made, cut, frozenset(counted))
    cells, systems = [], []
    for reader in readers:
        for k in ks:
            answers = {run: scored[reader, run, k] for run in runs}
            for (label, label_reader), of_measure in lists[k].items():
                for name, of_run in of_measure.items():
                    for run, values in of_run.items():
                        both = [query for query in counted if query in values]
                        found = association(
                            [values[query] for query in both],
                            [answers[run][query] for query in both],
                            level=level,
                            resamples=resamples,
                            seed=seed,
                        )
                        cells.append(Cell(reader, run, k, label, label_reader, name, found))
                    if len(runs) > 1:
                        systems.append(_ranked(reader, k, label, label_reader, name, of_run, answers, counted))
    return Correlation(
        dataset=dataset.name,
        readers=tuple(readers),
        runs=tuple(runs),
        ks=tuple(ks),
        metric=answer_metric if isinstance(answer_metric, str) else getattr(answer_metric, "__name__", "a function"),
        normalise=normalise,
        queries=len(counted),
        level=level,
        resamples=resamples,
        answers=tuple(
            _answered(reader, run, k, [scored[reader, run, k][query] for query in counted])
            for reader in readers
            for run in runs
            for k in ks
        ),
        cells=tuple(cells),
        systems=tuple(systems),
        failed=failed,
        notes=tuple(dict.fromkeys(notes)),
    )


# --- what is asked, and what it scores ------------------------------------------------------------------


class _Remembering:
    """A reader that reads an item once, for labels, lists and every k: the list of one document is that document."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._readings: dict[Item, Reading] = {}

    @property
    def identity(self) -> Mapping[str, object] | None:
        return self._reader.identity

    def read(self, items: Sequence[Item]) -> Iterator[tuple[int, Reading]]:
        new = [item for item in dict.fromkeys(items) if item not in self._readings]
        if new:
            for number, reading in self._reader.read(new):
                self._readings[new[number]] = reading
        for place, item in enumerate(items):
            if item not in self._readings:
                raise GateError(f"the reader gave no reading of the query {item.query!r}")
            yield place, self._readings[item]

    def close(self) -> None:
        self._reader.close()


def _labelled(
    dataset: Dataset,
    runs: Mapping[str, Run],
    readers: Mapping[str, Reader],
    named: Sequence[str | LabelSource],
    depth: int,
    normalise: str,
    select: frozenset[str],
    answer_metric: str | Metric,
) -> dict[tuple[str, str], dict[str, Labelling]]:
    """(labels, reader that made them) → run → its labelling; one labelling for all runs, or one for each."""
    sources: dict[tuple[str, str], LabelSource] = {}
    for one in named:
        if one == ERAG:
            sources.update({(ERAG, name): Erag(reader, answer_metric) for name, reader in readers.items()})
        else:
            made = source(one) if isinstance(one, str) else one
            sources[made.name, ""] = made
    if normalise == "list":
        return {
            key: {name: made.label(dataset, [run], depth=depth, select=select) for name, run in runs.items()}
            for key, made in sources.items()
        }
    every = list(runs.values())
    return {
        key: dict.fromkeys(runs, made.label(dataset, every, depth=depth, select=select))
        for key, made in sources.items()
    }


_Asked = dict[tuple[str, int], dict[str, Item]]  # (run, k) → query → what the reader is asked


def _asked(dataset: Dataset, runs: Mapping[str, Run], ids: Sequence[str], ks: Sequence[int]) -> _Asked:
    pool = pool_of(dataset, list(runs.values()), ids, max(ks), "answers end to end")
    asked: _Asked = {}
    for number, (name, run) in enumerate(runs.items()):
        texts = pool.texts[number]
        for k in ks:
            rankings = run.rankings(ids, depth=k)
            asked[name, k] = {
                query: Item(
                    dataset.queries.text(query),
                    tuple(
                        Passage(texts[doc].text, texts[doc].title)
                        for doc in dict.fromkeys(rankings[query].docs if query in rankings else ())
                    ),
                )
                for query in ids
            }
    return asked


def _scored(
    asked: _Asked,
    readers: Mapping[str, Reader],
    golds: Callable[[str], Sequence[str]],
    function: Metric,
    failed: dict[str, str],
) -> dict[tuple[str, str, int], dict[str, float]]:
    """(reader, run, k) → query → score of the answer; a query whose reading failed is added to ``failed``."""
    scored: dict[tuple[str, str, int], dict[str, float]] = {}
    for name, reader in readers.items():
        every = list(dict.fromkeys(item for of_query in asked.values() for item in of_query.values()))
        readings = dict(zip(every, read_all(reader, every, name), strict=True))
        for (run, k), of_query in asked.items():
            scores = scored.setdefault((name, run, k), {})
            for query, item in of_query.items():
                reading = readings[item]
                if reading.answered:
                    scores[query] = answer_score(function, reading.text, golds(query)) or 0.0
                else:
                    failed.setdefault(query, f"the reader {name} gave no answer end to end: {reading.detail}")
    return scored


def _list_scores(
    dataset: Dataset,
    runs: Mapping[str, Run],
    made: Mapping[int, Mapping[tuple[str, str], Mapping[str, Labelling]]],
    cut: Mapping[int, Sequence[Measure]],
    counted: frozenset[str],
) -> dict[int, dict[tuple[str, str], dict[str, dict[str, dict[str, float]]]]]:
    """k → labels → measure → run → query → score of the list."""
    found: dict[int, dict[tuple[str, str], dict[str, dict[str, dict[str, float]]]]] = {k: {} for k in cut}
    for k, measures in cut.items():
        for key, labellings in made[k].items():
            of_measure = found[k].setdefault(key, {str(measure): {} for measure in measures})
            for name, run in runs.items():
                qrels = labellings[name].qrels_of(run)
                judged = counted & frozenset(qrels.query_ids)
                if not judged:
                    raise GateError(f"labels={key[0]} know none of the {len(counted)} queries that have answers")
                evaluation = evaluate(qrels, run, measures, queries=dataset.queries, select=judged)
                for measure in measures:
                    of_measure[str(measure)][name] = evaluation.scores(measure).to_dict()
    return found


def _answered(reader: str, run: str, k: int, values: Sequence[float]) -> Answered:
    binary = set(values) <= {0.0, 1.0}
    rate = mean(values)
    ceiling = binary_ceiling(rate) if binary and 0.0 < rate < 1.0 else None
    return Answered(reader, run, k, len(values), rate, binary, ceiling)


def _ranked(
    reader: str,
    k: int,
    labels: str,
    label_reader: str,
    measure: str,
    of_run: Mapping[str, Mapping[str, float]],
    answers: Mapping[str, Mapping[str, float]],
    counted: Sequence[str],
) -> SystemCell:
    both = [query for query in counted if all(query in values for values in of_run.values())]
    cell = (reader, k, labels, label_reader, measure, len(both))
    pairs = len(of_run) * (len(of_run) - 1) // 2
    if not both:
        return SystemCell(*cell, (), None, None, 0, pairs, "no query counts")
    means = tuple(
        (run, mean([values[query] for query in both]), mean([answers[run][query] for query in both]))
        for run, values in of_run.items()
    )
    first = {run: round(value, _DIGITS) for run, value, _ in means}
    second = {run: round(value, _DIGITS) for run, _, value in means}
    found = compare_rankings(first, second)
    flat = [name for name, side in (("scores", first), ("answers", second)) if len(set(side.values())) == 1]
    why = f"constant {' and '.join(flat)}" if flat else ""
    return SystemCell(*cell, means, found.tau, found.rho, len(found.flips), pairs, why)


# --- what cannot be ------------------------------------------------------------------------------------


def _checked(
    runs: Mapping[str, Run],
    readers: Mapping[str, Reader],
    labels: Sequence[str | LabelSource],
    ks: Sequence[int],
    normalise: str,
) -> list[str | LabelSource]:
    for what, given in (("run", runs), ("reader", readers), ("source of labels", labels), ("k", ks)):
        if not given:
            raise SettingsError(f"no {what} is given; a correlation needs at least one")
    for k in ks:
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            raise SettingsError(f"k is {k!r}; expected a whole number from 1")
    if len(set(ks)) < len(ks):
        raise SettingsError(f"k is given twice: {', '.join(map(str, ks))}")
    if normalise not in NORMALISE:
        raise SettingsError(f"normalise is {normalise!r}; {did_you_mean(str(normalise), NORMALISE)}")
    found: dict[str, str | LabelSource] = {}
    for one in labels:
        name = check_name(one) if isinstance(one, str) else one.name
        if found.setdefault(name, one) is not one:
            raise SettingsError(f"the labels {name} are given twice; give each source a name of its own")
    return list(found.values())


def _at(name: str, k: int) -> Measure:
    if "@" in name:
        raise MeasureError(f"{name} has a cut-off; here every measure is cut at the k from which the reader answers")
    return Measure.parse(f"{name}@{k}")


def _refuse_depth(runs: Mapping[str, Run], ks: Sequence[int]) -> None:
    for name, run in runs.items():
        if run.depth is not None and max(ks) > run.depth:
            raise MeasureError(
                f"k = {max(ks)} is deeper than the run {name}, which declares depth {run.depth}: retrieve at least "
                f"{max(ks)} hits a query, or take k = {run.depth} or less"
            )


def _failed_retrieval(run: Run, ids: Sequence[str]) -> dict[str, str]:
    asked = frozenset(ids)
    return {query: f"the retriever failed: {why}" for query, why in run.errors.items() if query in asked}


def _too_many(failed: Mapping[str, str], allowed: int) -> str:
    some = ", ".join(list(failed)[:_NAMED])
    more = f" and {len(failed) - _NAMED} more" if len(failed) > _NAMED else ""
    return (
        f"{len(failed)} queries failed, and {allowed} may ({some}{more}); the first: {_first(failed)}. A failure is no "
        "score; mend it, or leave up to n such queries out with allow_failures=n"
    )


def _first(failed: Mapping[str, str]) -> str:
    return next(iter(failed.values()), "")


def _notes(asked: _Asked, ks: Sequence[int]) -> list[str]:
    notes = []
    for (run, k), of_query in asked.items():
        if k != max(ks):
            continue
        empty = sum(not item.documents for item in of_query.values())
        short = sum(0 < len(item.documents) < k for item in of_query.values())
        if empty:
            notes.append(f"{run} returned nothing for {empty} queries: the reader answered them from no document")
        if short:
            notes.append(f"{run} has fewer than {k} documents for {short} queries")
    return notes
