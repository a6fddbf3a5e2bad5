from __future__ import annotations

import gzip
import os
import re
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from slowrun import check
from support import testdata

from pytest_retrieval_eval.collection.formats import ids as ids_module
from pytest_retrieval_eval.collection.formats.decimals import LEADING, NotANumber, parse_decimals
from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.collection.runs import treclines
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.errors import DataError

# --- numbers --------------------------------------------------------------------------------------


def parsed(fields: list[bytes]) -> np.ndarray:
    raw = bytes(LEADING) + b" ".join(fields) + bytes(8)
    lengths = np.array([len(field) for field in fields])
    starts = LEADING + np.cumsum(lengths + 1) - lengths - 1
    return parse_decimals(np.frombuffer(raw, np.uint8), starts, lengths)


numbers = st.floats(allow_nan=False) | st.floats(-100, 100) | st.integers(-(10**20), 10**20).map(float)
spellings: list[Callable[[float], str]] = [
    repr,
    lambda x: f"{x:.6f}",
    lambda x: f"{x:.4f}",
    lambda x: f"{x:.17g}",
    lambda x: f"{x:e}",
    lambda x: f"{x:g}",
    lambda x: f"{x:.0f}",
    lambda x: f"{x:+.3f}",
    lambda x: f"{x:.20f}",
    lambda x: f"{x:.2f}".removeprefix("0"),
    lambda x: f"{x:.0f}.",
    lambda x: f"00{abs(x):.5f}",
]
decimals = st.builds(lambda x, spell: spell(x), numbers, st.sampled_from(spellings)).filter(
    lambda text: re.fullmatch(r"\d*\.?", text.lstrip("+-")) is None or any(c.isdigit() for c in text)
)
decimals = decimals.filter(lambda text: _float(text) is not None)


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


@given(st.lists(decimals, min_size=1, max_size=40))
def test_numbers_are_those_of_float(texts: list[str]) -> None:
    values = parsed([text.encode() for text in texts])
    assert values.view(np.int64).tolist() == np.array([float(t) for t in texts]).view(np.int64).tolist()


@given(st.floats(allow_nan=False, allow_infinity=False).map(repr), st.integers(1, 20))
def test_equal_spellings_take_the_same_value_alone_and_in_company(text: str, company: int) -> None:
    assert parsed([text.encode(), *[b"1.5"] * company])[0] == float(text)


@given(st.text("0123456789.eE+-_, naif:/", min_size=1, max_size=26))
def test_whatever_float_refuses_is_refused(text: str) -> None:
    field = text.encode()
    try:
        expected = float(field)
    except ValueError:
        with pytest.raises(NotANumber) as caught:
            parsed([b"1.0", field, b"2.0"])
        assert caught.value.row == 1
    else:
        assert np.array_equal(parsed([b"1.0", field])[1:], [expected], equal_nan=True)


# --- text -----------------------------------------------------------------------------------------

# Ids share long beginnings, have bytes above 127, control characters that separate nothing, and #.
ids = st.builds(
    lambda head, tail: head + tail,
    st.sampled_from(["", "", "d", "doc", "document-", "clueweb09-en0000-", "#"]),
    st.text("ab01\x00\x01\x0b\x1f\x85\xa0é漢\U0001f600", min_size=1, max_size=4),
)
scores = st.sampled_from(["1", "1.0", "0.5", ".5", "2e-3", "0.002", "inf", "-inf", "-0.0", "0", "-1.25"]) | decimals
rows = st.lists(st.tuples(ids, ids, scores), min_size=1, max_size=25, unique_by=lambda row: row[:2])


@st.composite
def trec_texts(draw: st.DrawFn) -> tuple[str, dict[str, list[tuple[str, float]]]]:
    """A run file in any shape that must be accepted, and what it says."""
    found = draw(rows)
    if draw(st.booleans()):
        found.sort(key=lambda row: row[0])
    plain = draw(st.booleans())
    gaps = st.just(" ") if plain else st.sampled_from([" ", " ", "\t", "  ", " \t "])
    ends = st.just("\n") if plain else st.sampled_from(["\n", "\r\n", " \n", "\t\r\n", "\n\n", "\n# note\n", "\n#\r\n"])
    more = draw(st.sampled_from(["", "", " 7 8"])) if not any(q.startswith("#") for q, _, _ in found) else ""
    text = "" if plain else draw(st.sampled_from(["", "\n", "# note\n", " ", "\ufeff"]))
    lists: dict[str, list[tuple[str, float]]] = {}
    for query, doc, score in found:
        fields = [query, "Q0", doc, "1", score, "tag" + more]
        text += "".join(field + draw(gaps) for field in fields[:-1]) + fields[-1] + draw(ends)
        lists.setdefault(query, []).append((doc, float(score)))
    if draw(st.booleans()):
        text = text.rstrip("\r\n \t")
    return text, lists


@st.composite
def judgments(draw: st.DrawFn, lists: dict[str, list[tuple[str, float]]]) -> Qrels:
    judged: dict[str, dict[str, int]] = {"nowhere": {"x": 1}}
    for query, hits in lists.items():
        if draw(st.booleans()):
            judged[query] = {doc: draw(st.integers(-1, 2)) for doc, _ in hits if draw(st.booleans())}
            judged[query][draw(ids)] = 1
    return Qrels.of(judged)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_hostile_text_is_located_as_the_slow_way_says(tmp_path: Path, data: st.DataObject) -> None:
    text, lists = data.draw(trec_texts())
    qrels = data.draw(judgments(lists))
    path = tmp_path / "run.trec"
    path.write_bytes(text.encode())
    # small buffers: every place of a file comes to lie on the border of two of them
    with mock.patch.object(treclines, "_SIZE", data.draw(st.sampled_from([5, 16, 64, 1000, 1 << 20]))):
        for float32 in (False, True):
            check(Run.read(path).locate(qrels, float32=float32), lists, qrels, float32=float32)
            loaded = Run.read(path)
            assert set(loaded.query_ids) == set(lists)
            check(loaded.locate(qrels, float32=float32), lists, qrels, float32=float32)
    for query, hits in lists.items():
        ordered = sorted(hits, key=lambda hit: (hit[1], hit[0].encode()), reverse=True)
        ranking = loaded.ranking(query)
        assert ranking.docs == [doc for doc, _ in ordered]
        assert ranking.scores == [score for _, score in ordered]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
@given(st.data())
def test_keys_that_all_collide_change_nothing(tmp_path: Path, data: st.DataObject) -> None:
    text, lists = data.draw(trec_texts())
    qrels = data.draw(judgments(lists))
    (tmp_path / "run.trec").write_bytes(text.encode())
    with mock.patch.object(ids_module, "field_keys", lambda data, starts, lengths: np.zeros(len(starts), np.uint64)):
        check(Run.read(tmp_path / "run.trec").locate(qrels), lists, qrels)


CONFORMANCE = [
    ("covid-r1", "BERT"),
    ("vaswani", "bm25s"),
    ("vaswani", "sklearn-tfidf-2dp"),
    ("trec-eval-test", "results"),
    ("robust03", "MU03rob01"),
    ("web2012-rm", "rm-cata-filtered"),
]


@pytest.mark.parametrize("float32", [False, True])
@pytest.mark.parametrize(("collection", "run"), CONFORMANCE)
def test_real_runs_are_located_as_the_slow_way_says(collection: str, run: str, float32: bool) -> None:
    qrels = Qrels.read(testdata(f"conformance/{collection}/qrels.txt"))
    path = testdata(f"conformance/{collection}/runs/{run}.txt")
    lists: dict[str, list[tuple[str, float]]] = {}
    for line in path.read_text().splitlines():
        query, _, doc, _, score, _ = line.split()
        lists.setdefault(query, []).append((doc, float(score)))
    check(Run.read(path).locate(qrels, float32=float32), lists, qrels, float32=float32)
    assert Run.of({query: dict(hits) for query, hits in lists.items()}).digest == Run.read(path).digest


# --- cases ----------------------------------------------------------------------------------------


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str | bytes], Path]:
    def write(text: str | bytes) -> Path:
        path = tmp_path / "bm25.trec"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_a_byte_order_mark_costs_no_query(written: Callable[..., Path]) -> None:
    run = Run.read(written("\ufeff1 Q0 a 1 2.0 t\n2 Q0 b 1 1.0 t\n"))
    assert run.query_ids == ("1", "2")
    assert run.locate(Qrels.of({"1": ["a"], "2": ["b"]})).rank.tolist() == [1, 1]


def test_crlf_tabs_blank_lines_and_comments_are_accepted(written: Callable[..., Path]) -> None:
    run = Run.read(written("# made by hand\r\n\r\n1\tQ0  a 1\t2.0 t\r\n   \r\n1 Q0 b 2 1.0 t x y\r\n# end"))
    assert run.ranking("1").docs == ["a", "b"]


def test_ids_may_begin_with_a_hash(written: Callable[..., Path]) -> None:
    run = Run.read(written("#1 Q0 a 1 2.0 t\n# a line of many more words\n#1 Q0 b 2 1.0 t\n"))
    assert run.ranking("#1").docs == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 Q0 a 1 2.0 t\n1 Q0 b 2 1.0\n", r"bm25\.trec:2: found 5 columns in '1 Q0 b 2 1\.0'; expected 6"),
        ("1 0 a 1\n", r"bm25\.trec:1: found 4 columns.*four columns are qrels"),
        ("1 0 b", r"bm25\.trec:1: found 3 columns in '1 0 b'"),
        ("1 Q0 a 1 0,5 t\n", r"bm25\.trec:1: query '1', document 'a': the score '0,5' is no number"),
        ("\n\n1 Q0 a 1 x t\r\n", r"bm25\.trec:3: .* in the line '1 Q0 a 1 x t'; expected a decimal number"),
        ("1 Q0 a 1 2 t\n1 Q0 b 1 nan t\n", r"bm25\.trec:2: query '1', document 'b': the score 'nan' is NaN"),
        ("# a note of six words\n1 Q0 a 1 2 t\n", r"bm25\.trec:1: .*if it is a comment, remove it"),
        ("1 Q0 a 1 2 t\n2 Q0 b 1 2 t\n2 Q0 b 2 1 t\n", r"bm25\.trec:3: query '2' has document 'b' a second"),
        ("1 Q0 a 1 2 t\n2 Q0 b 1 2 t\n1 Q0 a 2 1 t\n", r"query '1' has document 'a' a second time"),
        ("1\x01Q0 a 1 2 t\n", r"bm25\.trec:1: found 5 columns"),
        (b"1 Q0 a 1 2 t\n1 Q0 \xff\xfe 2 1 t\n", r"bm25\.trec:2: byte 0xff at position 5 is not UTF-8"),
        ("", r"bm25\.trec: the run has no line"),
        ("# nothing\n\n", r"bm25\.trec: the run has no line"),
    ],
)
@pytest.mark.parametrize("size", [16, 1 << 20])
@pytest.mark.parametrize("use", [lambda run: run.locate(Qrels.of({"1": ["a"]})), lambda run: run.query_ids])
def test_what_is_malformed_is_said_with_file_and_line(
    written: Callable[..., Path], text: str | bytes, message: str, size: int, use: Callable[[Run], object]
) -> None:
    with mock.patch.object(treclines, "_SIZE", size):
        run = Run.read(written(text))
        with pytest.raises(DataError, match=message):
            use(run)


def test_a_late_fault_has_the_right_line(written: Callable[..., Path]) -> None:
    lines = [f"{q} Q0 d{d} {d} {100 - d} t" for q in range(400) for d in range(100)]
    lines[31_234] += "\r"
    lines[37_654] = "376 Q0 d54 54 oops t"
    with pytest.raises(DataError, match=r"bm25\.trec:37655: .*'oops'"):
        Run.read(written("\n".join(lines))).locate(Qrels.of({"1": ["a"]}))


def test_infinities_are_ordered(written: Callable[..., Path]) -> None:
    run = Run.read(written("1 Q0 a 1 -inf t\n1 Q0 b 2 1e308 t\n1 Q0 c 3 inf t\n"))
    assert run.ranking("1").docs == ["c", "b", "a"]


def test_single_precision_makes_the_tie_that_trec_eval_sees(written: Callable[..., Path]) -> None:
    run = Run.read(written("1 Q0 a 1 0.900000001 t\n1 Q0 b 2 0.9 t\n"))
    qrels = Qrels.of({"1": ["a"]})
    exact, trec = run.locate(qrels), run.locate(qrels, float32=True)
    assert (exact.rank.tolist(), exact.ties.tolist()) == ([1], [0])
    assert (trec.rank.tolist(), trec.ties.tolist()) == ([2], [2])


def test_a_thousand_equal_scores_have_one_order(written: Callable[..., Path]) -> None:
    docs = [f"{i * 7919 % 1000:03}-of-a-thousand-{i % 7}" for i in range(1000)]
    qrels = Qrels.of({"1": docs})
    ranks = []
    for order in (docs, docs[::-1]):
        run = Run.read(written("".join(f"1 Q0 {doc} 1 0.5 t\n" for doc in order)))
        located = run.locate(qrels)
        ranks.append(located.rank.tolist())
        assert set(located.tie_first.tolist()) == {1}
        assert set(located.tie_last.tolist()) == {1000}
    assert ranks[0] == ranks[1]
    assert [docs[i] for i in np.argsort(ranks[0])] == sorted(docs, reverse=True)


def test_scores_that_only_rise_look_like_distances(written: Callable[..., Path]) -> None:
    run = Run.read(written("1 Q0 a 1 0.0 t\n1 Q0 b 2 0.4 t\n2 Q0 a 1 0.1 t\n"))
    assert run.warnings == ()
    run.locate(Qrels.of({"1": ["a"]}))
    assert len(run.warnings) == 1
    assert "look like distances" in run.warnings[0]


def test_scores_that_rise_and_fall_are_only_out_of_order(written: Callable[..., Path]) -> None:
    run = Run.read(written("1 Q0 a 2 0.0 t\n1 Q0 b 1 0.4 t\n2 Q0 a 1 0.2 t\n2 Q0 b 2 0.1 t\n"))
    assert run.ranking("1").docs == ["b", "a"]
    assert run.warnings == ()


@pytest.mark.parametrize("first", ["locate", "ranking"])
def test_a_file_that_changes_is_not_read_in_two_states(written: Callable[..., Path], first: str) -> None:
    path = written("1 Q0 a 1 2 t\n")
    run = Run.read(path)
    if first == "locate":
        run.locate(Qrels.of({"1": ["a"]}))
    path.write_text("1 Q0 b 1 2 t\n1 Q0 a 2 1 t\n")
    with pytest.raises(DataError, match=r"bm25\.trec: the file has changed since the run was opened"):
        run.ranking("1")
    os.remove(path)
    with pytest.raises(DataError, match="the file has gone"):
        run.ranking("1")


def test_a_loaded_run_no_longer_needs_its_file(written: Callable[..., Path]) -> None:
    path = written("1 Q0 a 1 2 t\n")
    run = Run.read(path)
    assert run.query_ids == ("1",)
    path.unlink()
    assert run.locate(Qrels.of({"1": ["a"]})).rank.tolist() == [1]


def test_compressed_files_stream_too(tmp_path: Path) -> None:
    lines = "".join(f"{q} Q0 document-{d} {d} {100 - d}.25 t\n" for q in range(500) for d in range(100))
    path = tmp_path / "bm25.trec.gz"
    path.write_bytes(gzip.compress(lines.encode()))
    run = Run.read(path)
    assert run.name == "bm25"
    located = run.locate(Qrels.of({"499": ["document-7"], "250": ["document-99"]}))
    assert located.rank.tolist() == [8, 100]
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(DataError, match="cut off"):
        Run.read(path).locate(Qrels.of({"1": ["a"]}))


def test_a_missing_file_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        Run.read(tmp_path / "none.trec")


def test_one_query_may_be_longer_than_the_buffer(written: Callable[..., Path]) -> None:
    text = "".join(f"1 Q0 d{d} {d} {9000 - d} t\n" for d in range(3000)) + "2 Q0 x 1 1 t\n"
    with mock.patch.object(treclines, "_SIZE", 256):
        located = Run.read(written(text)).locate(Qrels.of({"1": ["d2999"], "2": ["x"]}))
    assert located.rank.tolist() == [3000, 1]
    assert located.returned.tolist() == [3000, 1]


def test_ranks_that_contradict_the_scores_are_counted(written: Callable[..., Path]) -> None:
    text = "1 Q0 a 9 3 t\n1 Q0 b 10 2 t\n1 Q0 c 4 1 t\n2 Q0 a 2 1 t\n2 Q0 b 1 0 t\n3 Q0 a 1 0 t\n"
    run = Run.read(written(text))
    run.locate(Qrels.of({"1": ["a"]}))
    assert run.warnings == (f"{run.source}: in 2 rows the rank contradicts the score; the scores were used",)


@pytest.mark.parametrize("ranks", ["000", "QQQ", ["-", "x", "0"]])
def test_a_rank_column_without_ranks_contradicts_nothing(written: Callable[..., Path], ranks: str) -> None:
    run = Run.read(
        written("".join(f"1 Q0 {d} {rank} {9 - i} t\n" for i, (d, rank) in enumerate(zip("abc", ranks, strict=True))))
    )
    run.locate(Qrels.of({"1": ["a"]}))
    assert run.warnings == ()
