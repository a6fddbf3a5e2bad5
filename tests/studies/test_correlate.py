"""List scores from labels against answers end to end, in worlds whose correlation is known."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from pytest_retrieval_eval.collection.dataset import Dataset
from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.errors import GateError, MeasureError, SettingsError
from pytest_retrieval_eval.readers.reading import Reading
from pytest_retrieval_eval.reports.studies import correlation_text
from pytest_retrieval_eval.studies.correlate import Given, correlate

K = 4
COUNTS = [0, 1, 2, 3, 4, 1, 2, 3]  # of the documents of each query, so many hold the answer


def share(predicted, gold):
    """An answer metric for readers that answer with a number."""
    return float(predicted)


def world(counts=COUNTS):
    """A dataset in which query n has K documents, the first ``counts[n]`` of which hold its answer, and that run."""
    corpus = {
        f"d{n}.{place}": f"{'right' if place < count else 'wrong'} {n}.{place}"
        for n, count in enumerate(counts)
        for place in range(K)
    }
    dataset = Dataset.of(
        queries={f"q{n}": f"query {n}" for n in range(len(counts))},
        qrels={f"q{n}": {f"d{n}.0": 1} for n in range(len(counts))},
        answers={f"q{n}": "gold" for n in range(len(counts))},
        corpus=corpus,
        name="world",
    )
    return dataset, Run.of({f"q{n}": [f"d{n}.{place}" for place in range(K)] for n in range(len(counts))})


class Reads:
    """Answers from one document whether it is right, from several what ``whole`` makes of the share of right ones."""

    identity = None

    def __init__(self, whole=lambda share, query: share, fails=()):
        self.whole, self.fails, self.read_items = whole, fails, []

    def read(self, items):
        for index, item in enumerate(items):
            self.read_items.append(item)
            right = [passage.text.startswith("right") for passage in item.documents]
            if item.query in self.fails and len(right) > 1:
                yield index, Reading("", "error", None, None, detail="no connection")
                continue
            found = float(right[0]) if len(right) == 1 else self.whole(sum(right) / K, item.query)
            yield index, Reading(str(found), "ok", 1, 1)

    def close(self):
        pass


def study(reader=None, *, dataset=None, run=None, **options):
    made = world()
    settings = {"labels": ["erag"], "measures": ["precision"], "ks": [K], "answer_metric": share, **options}
    readers = reader if isinstance(reader, dict) else {"reader": reader or Reads()}
    runs = run if isinstance(run, dict) else {"run": run or made[1]}
    return correlate(dataset or made[0], runs, readers, **settings)


def only(found):
    (cell,) = found.cells
    return cell.found


def test_a_reader_that_answers_as_its_labels_foretell():
    found = only(study())
    assert (found.tau, found.rho, found.ceiling, found.n) == (1.0, 1.0, 1.0, len(COUNTS))
    assert found.interval.high == 1.0
    assert found.auc is None  # answers are degrees here


def test_a_reader_that_answers_the_reverse():
    found = only(study(Reads(lambda share, query: 1 - share)))
    assert (found.tau, found.rho, found.ceiling) == (-1.0, -1.0, 1.0)


def test_a_reader_that_always_answers_alike_has_no_correlation():
    made = study(Reads(lambda share, query: 1.0))
    found = only(made)
    assert found.tau is found.rho is found.interval is None
    assert found.undefined == "constant answers"
    assert "undefined: constant answers" in correlation_text(made)
    assert "nan" not in correlation_text(made).lower()
    (row,) = made.to_dict()["cells"]
    assert row["tau"] is None
    assert row["undefined"] == "constant answers"


def test_ties_and_noise_as_scipy_has_them():
    scipy_stats = pytest.importorskip("scipy.stats")
    noise = dict(zip((f"query {n}" for n in range(8)), [0.1, 0.9, 0.1, 0.4, 0.9, 0.2, 0.4, 0.3], strict=True))
    found = only(study(Reads(lambda share, query: noise[query])))
    lists, answers = [count / K for count in COUNTS], list(noise.values())
    assert found.tau == pytest.approx(scipy_stats.kendalltau(lists, answers).statistic)
    assert found.rho == pytest.approx(scipy_stats.spearmanr(lists, answers).statistic)
    assert found.tied == pytest.approx(3 / 28)
    assert found.tied_other == pytest.approx(3 / 28)


def test_right_and_wrong_answers_have_their_ceiling_and_auc_beside_them():
    made = study(Reads(lambda share, query: float(share >= 0.75)))
    found = only(made)
    assert found.auc == 1.0
    assert found.tau == pytest.approx(found.ceiling)
    assert found.ceiling < 0.8
    assert made.metric == "share"
    (answered,) = made.answers
    assert (answered.mean, answered.binary) == (3 / 8, True)
    assert answered.ceiling == pytest.approx((2 * 3 / 8 * 5 / 8) ** 0.5)


def test_each_source_and_measure_has_its_own_row_over_the_queries_that_count_there():
    dataset, run = world()
    judge = Qrels.of({"q1": {"d1.0": 2}, "q3": {"d3.0": 1, "d3.1": 0}, "q4": {"d4.2": 1}})
    made = study(
        dataset=dataset,
        run=run,
        labels=["erag", "qrels", Given("judge", judge)],
        measures=["precision", "mrr", "ndcg(gain=exp)"],
    )
    assert [(cell.labels, cell.measure, cell.found.n) for cell in made.cells] == [
        (labels, measure, n)
        for labels, n in (("erag", 8), ("qrels", 8), ("judge", 3))
        for measure in ("precision@4", "mrr@4", "ndcg(gain=exp)@4")
    ]
    assert {cell.found.undefined for cell in made.cells if cell.labels == "qrels"} == {"constant scores"}


def test_the_curve_over_k_reads_each_item_once():
    reader = Reads()
    made = study(reader, ks=[1, 2, K])
    assert [cell.measure for cell in made.cells] == ["precision@1", "precision@2", "precision@4"]
    assert len(reader.read_items) == len(set(reader.read_items)) == len(COUNTS) * (K + 2)  # a list of one is read alone
    assert made.cells[0].found.tau == 1.0


def test_a_row_does_not_hang_on_the_other_rows():
    options = {"labels": ["erag", "contains(kilt)", "qrels"], "measures": ["recall", "ndcg"]}
    dataset, run = world()
    answered = {query: ["right 1.0", "right 4.3", "right 7.1"] for query in dataset.queries}
    dataset = Dataset.of(queries=dataset.queries, qrels=dataset.qrels, corpus=dataset.corpus, answers=answered)
    alone = study(dataset=dataset, run=run, ks=[2], **options)
    among = study(dataset=dataset, run=run, ks=[1, 2, K], **options)
    assert [cell for cell in among.cells if cell.k == 2] == list(alone.cells)


def test_labels_of_one_reader_against_the_answers_of_another():
    made = study({"one": Reads(), "two": Reads(lambda share, query: 1 - share)})
    assert {(cell.reader, cell.source): cell.found.tau for cell in made.cells} == {
        ("one", "erag"): 1.0,
        ("one", "erag[two]"): 1.0,
        ("two", "erag[one]"): -1.0,
        ("two", "erag"): -1.0,
    }
    assert "erag[two]" in correlation_text(made)


def test_runs_are_ranked_by_labels_and_by_answers():
    dataset, best = world()
    lists = {f"q{n}": [f"d{n}.{place}" for place in range(K)] for n in range(len(COUNTS))}
    worst = Run.of({query: docs[::-1] for query, docs in lists.items()})
    middle = Run.of({query: docs[1:] + docs[:1] for query, docs in lists.items()})
    runs = {"worst": worst, "best": best, "middle": middle}
    (cell,) = study(dataset=dataset, run=runs, ks=[2]).systems
    assert (cell.tau, cell.rho, cell.opposite, cell.pairs, cell.n) == (1.0, 1.0, 0, 3, len(COUNTS))
    means = {run: (lists, answers) for run, lists, answers in cell.means}
    assert means["best"][0] > means["middle"][0] > means["worst"][0]
    (cell,) = study(Reads(lambda share, query: 1 - share), dataset=dataset, run=runs, ks=[2]).systems
    assert (cell.tau, cell.opposite) == (-1.0, 3)
    (cell,) = study(dataset=dataset, run={"a": best, "b": best}).systems
    assert cell.tau is None
    assert cell.undefined == "constant scores and answers"
    assert study().systems == ()


def test_relevant_at_all_is_of_all_runs_or_of_each_list():
    dataset, best = world()
    half = Run.of({f"q{n}": [f"d{n}.0"] for n in range(len(COUNTS))})
    runs = {"best": best, "half": half}

    def recall(**options):
        made = study(dataset=dataset, run=runs, measures=["recall"], **options)
        return next(cell for cell in made.systems).means[1][1]

    assert recall(normalise="list") == pytest.approx(7 / 8)  # every list that has a right document has all of it
    assert recall() < 7 / 8


def test_a_reading_that_failed_is_no_score():
    with pytest.raises(GateError, match=r"1 queries failed, and 0 may \(q2\); .*no connection.*allow_failures"):
        study(Reads(fails=["query 2"]))
    made = study(Reads(fails=["query 2"]), allow_failures=1)
    assert only(made).n == made.queries == len(COUNTS) - 1
    assert list(made.failed) == ["q2"]


def test_a_retriever_that_failed_is_no_score(tmp_path):
    dataset, _ = world()

    def retrieve(query):
        if query == "query 3":
            raise RuntimeError("down")
        return [f"d{query.split()[1]}.{place}" for place in range(K)]

    run = Run.from_retriever(retrieve, dataset.queries, depth=K)
    with pytest.raises(GateError, match="the retriever failed"):
        study(dataset=dataset, run=run)
    assert study(dataset=dataset, run=run, allow_failures=1).queries == len(COUNTS) - 1
    with pytest.raises(MeasureError, match="deeper than the run run, which declares depth 4"):
        study(dataset=dataset, run=run, ks=[5])


def test_lists_that_are_short_are_said():
    dataset, _ = world()
    run = Run.of({f"q{n}": [] if n == 0 else [f"d{n}.0", f"d{n}.1"] for n in range(len(COUNTS))})
    notes = study(Reads(lambda share, query: share), dataset=dataset, run=run).notes
    assert "run returned nothing for 1 queries: the reader answered them from no document" in notes
    assert "run has fewer than 4 documents for 7 queries" in notes


JUDGE = Given("judge", Qrels.of({"q0": {"d": 1}}))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"measures": ["ndcg@10"]}, MeasureError, "ndcg@10 has a cut-off"),
        ({"measures": ["ndgc"]}, MeasureError, "did you mean ndcg"),
        ({"measures": []}, SettingsError, "no measure is named"),
        ({"labels": ["eragg"]}, SettingsError, "did you mean erag"),
        ({"labels": []}, SettingsError, "no source of labels is given"),
        ({"ks": [0]}, SettingsError, "k is 0"),
        ({"ks": [2, 2]}, SettingsError, "given twice"),
        ({"normalise": "lists"}, SettingsError, "did you mean list"),
        ({"answer_metric": "emm"}, SettingsError, "did you mean em"),
        ({"labels": [JUDGE, Given("judge", Qrels.of({"q0": {"d": 1}}))]}, SettingsError, "given twice; give each"),
    ],
    ids=lambda value: None,
)
def test_what_cannot_be_studied_is_said(options, error, message):
    with pytest.raises(error, match=message):
        study(**options)


def test_the_chart_is_an_svg_that_needs_nothing_else(tmp_path):
    pytest.importorskip("matplotlib")
    from pytest_retrieval_eval.reports.charts import correlation_chart

    made = study(
        {"one": Reads(), "two": Reads(lambda share, query: 1.0)}, ks=[2, K], labels=["erag", "qrels"], resamples=50
    )
    path, again = tmp_path / "a.svg", tmp_path / "b.svg"
    correlation_chart(made, path)
    correlation_chart(made, again)
    root = ElementTree.fromstring(path.read_text())
    assert root.tag.endswith("svg")
    assert path.read_bytes() == again.read_bytes()
    text = path.read_text()
    assert "precision@4" in text
    assert "one, run, k = 4" in text
    assert "<image" not in text
    assert "@import" not in text
    with pytest.raises(SettingsError, match="charts are SVG files"):
        correlation_chart(made, tmp_path / "a.png")


@pytest.mark.model
def test_fusion_and_one_prompt_share_their_labels_and_differ_in_their_answers():
    models = pytest.importorskip("reader_models")
    from pytest_retrieval_eval.readers.models.fid import FidReader
    from pytest_retrieval_eval.readers.models.transformers_reader import Seq2seqReader

    generator = np.random.default_rng(0)
    words = models.WORDS
    corpus = {f"d{n}": " ".join(generator.choice(words, 12)) for n in range(12)}
    queries = {f"q{n}": " ".join(generator.choice(words, 4)) for n in range(6)}
    golds = {query: " ".join(words) for query in queries}
    dataset = Dataset.of(queries=queries, corpus=corpus, answers=golds)
    run = Run.of({f"q{n}": [f"d{2 * n}", f"d{2 * n + 1}"] for n in range(6)})
    settings = {"tokenizer": models.tokenizer(), "max_new_tokens": 6}
    readers = {"fusion": FidReader(models.t5(), **settings), "prompt": Seq2seqReader(models.t5(), **settings)}
    made = correlate(
        dataset,
        {"run": run},
        readers,
        labels=["erag"],
        measures=["precision"],
        ks=[2],
        answer_metric=lambda predicted, gold: len(set(predicted)) % 7 / 6,
        resamples=20,
    )
    found = {(cell.reader, cell.label_reader): cell.found for cell in made.cells}
    assert found["prompt", "fusion"] == found["prompt", "prompt"]  # one document is read alike
    assert found["fusion", "fusion"] == found["fusion", "prompt"]
    by = {one.reader: one for one in made.answers}
    assert by["fusion"].mean != by["prompt"].mean
