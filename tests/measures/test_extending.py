"""Measures from outside: what makes one, where they may come from, what happens when one is wrong."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from pytest_retrieval_eval import Definition, GateError, JudgedRanks, Measure, MeasureError, Qrels, Run, evaluate
from pytest_retrieval_eval import measure as decorate
from pytest_retrieval_eval.measures import registry
from pytest_retrieval_eval.measures.extending import checked, plugged

QRELS = Qrels.of({"1": {"a": 1, "b": 2}, "2": {"a": 1}})
RUN = Run.of({"1": ["x", "b"], "2": ["a"]})


@pytest.fixture(autouse=True)
def _leave_no_measure() -> Iterator[None]:
    before = registry.definitions()
    yield
    for made in registry.definitions():
        if made not in before:
            registry.unregister(made.name)


def value(name: str, **options: object) -> list[float]:
    return evaluate(QRELS, RUN, name, **options)[name].values.tolist()  # type: ignore[arg-type]


def constant(answer: object, **options: object) -> Definition:
    """A measure that always answers this, whatever the run."""

    def own(ranks: JudgedRanks, measure: Measure) -> object:
        return answer

    return decorate(**options)(own)  # type: ignore[arg-type]


class TestDecorator:
    def test_a_function_becomes_a_measure(self) -> None:
        @decorate(cutoff="required", spellings=("LastGrade",))
        def last_grade(ranks: JudgedRanks, measure: Measure) -> np.ndarray:
            """Highest grade at rank k.

            More is not said.
            """
            here = (ranks.rank == measure.cutoff) & (ranks.grade >= measure.rel)
            return np.bincount(ranks.query[here], ranks.grade[here] / 2, ranks.queries)

        assert isinstance(last_grade, Definition)
        assert (last_grade.meaning, last_grade.source) == ("Highest grade at rank k", __name__)
        assert value("last_grade@2") == [1.0, 0.0]
        assert value("lastgrade@1") == [0.0, 0.5]
        assert value("last_grade(rel=2)@2") == [1.0]
        assert value("condensed(last_grade@1)") == [1.0, 0.5]
        with pytest.raises(MeasureError, match=r"did you mean last_grade@3\?"):
            Measure.parse("lst_grade@3")

    def test_to_decorate_it_again_replaces_it(self) -> None:
        first, second = constant(np.zeros(2)), constant(np.ones(2))
        assert registry.find("own") is second is not first
        assert value("own") == [1.0, 1.0]

    def test_another_function_of_that_name_is_refused(self) -> None:
        constant(np.zeros(2))
        with pytest.raises(MeasureError, match="'own' already names the measure own"):
            decorate("own")(lambda ranks, measure: np.ones(2))
        with pytest.raises(MeasureError, match="'recall' already names the measure recall"):
            decorate("recall")(lambda ranks, measure: np.ones(2))

    def test_it_is_called_before_it_decorates(self) -> None:
        with pytest.raises(MeasureError, match=r"write @measure\(\)"):
            decorate(lambda ranks, measure: np.ones(2))  # type: ignore[arg-type]

    def test_sums(self) -> None:
        constant(np.array([1.0, 3.0]), aggregate="sum", high=float("inf"))
        assert evaluate(QRELS, RUN, "own")["own"].overall == 4.0

    def test_the_table_cannot_be_written_to(self) -> None:
        @decorate()
        def greedy(ranks: JudgedRanks, measure: Measure) -> np.ndarray:
            ranks.grade[:] = 0
            return np.zeros(ranks.queries)

        with pytest.raises(MeasureError, match=f"greedy of the module {__name__} raised ValueError: .*read-only"):
            evaluate(QRELS, RUN, "greedy")


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (np.zeros(3), r"gave values of shape \(3,\); expected one for each of the 2 queries"),
        (np.zeros((2, 1)), r"gave values of shape \(2, 1\)"),
        (None, r"gave values of shape \(\)"),
        (np.array([0.5, np.nan]), "gave nan for query 2; expected a finite number"),
        (np.array([np.inf, 0.5]), "gave inf for query 1"),
        (np.array([0.5, 1.5]), "gave 1.5 for query 2, and declares values from 0 to 1"),
        (np.array([-0.5, 0.5]), "gave -0.5 for query 1"),
        (["a", "b"], "raised ValueError: could not convert string to float"),
    ],
)
def test_what_is_wrong_with_a_measure_names_it_and_its_module(answer: object, sentence: str) -> None:
    constant(answer)
    with pytest.raises(GateError, match=f"the measure own of the module {__name__} {sentence}"):
        evaluate(QRELS, RUN, "own")


def test_what_a_measure_raises_names_it_and_its_module() -> None:
    @decorate("broken")
    def function(ranks: JudgedRanks, measure: Measure) -> np.ndarray:
        raise ZeroDivisionError("by zero")

    with pytest.raises(MeasureError, match=f"broken@3 of the module {__name__} raised ZeroDivisionError: by zero"):
        evaluate(QRELS, RUN, "broken@3")


def test_which_queries_a_measure_counts_is_checked_too() -> None:
    constant(np.zeros(2), counts=lambda ranks, measure: np.array([True, False]))
    assert value("own") == [0.0]
    constant(np.zeros(2), counts=lambda ranks, measure: np.array([True]))
    with pytest.raises(MeasureError, match=r"own of the module .* gave values of shape \(1,\)"):
        value("own")


def test_what_a_hook_may_give() -> None:
    made = constant(np.zeros(2))
    assert checked(made, "it") == checked([made], "it") == checked((m for m in [made]), "it") == (made,)
    for wrong in (None, "recall", [made, 3], {"own": made}):
        with pytest.raises(MeasureError, match=r"it gave a \w+ \(.*\); expected measures, as @measure"):
            checked(wrong, "it")


MODULE = """
import numpy as np
from pytest_retrieval_eval import measure

@measure(cutoff="none")
def {name}(ranks, measure):
    return np.full(ranks.queries, 0.25)
"""


class TestPlugins:
    @pytest.fixture
    def module(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], str]]:
        monkeypatch.syspath_prepend(tmp_path)
        names: list[str] = []

        def write(text: str) -> str:
            names.append(f"plugged_{len(names)}_{os.getpid()}")
            (tmp_path / f"{names[-1]}.py").write_text(text)
            return names[-1]

        yield write
        for name in names:
            sys.modules.pop(name, None)

    def test_a_module_is_plugged_in_and_out(self, module: Callable[[str], str]) -> None:
        name = module(MODULE.format(name="quarter"))
        for _ in range(2):  # the second time the module is imported already
            with plugged([name]):
                assert value("quarter") == [0.25, 0.25]
            assert registry.find("quarter") is None

    def test_its_hook_says_what_is_offered(self, module: Callable[[str], str]) -> None:
        text = MODULE.format(name="quarter") + "def pytest_retrieval_measures():\n    return [quarter]\n"
        with plugged([module(text)]):
            assert value("quarter") == [0.25, 0.25]

    @pytest.mark.parametrize(
        ("text", "sentence"),
        [
            ("x = 1", "has no measure: decorate a function with @measure"),
            ("1 / 0", "importing it raised ZeroDivisionError: division by zero"),
            ("import no_such_thing", "importing it raised ModuleNotFoundError: No module named 'no_such_thing'"),
            ("def pytest_retrieval_measures():\n    return 3", r"gave a int \(3\); expected measures"),
            ("def pytest_retrieval_measures():\n    return 1 / 0", "raised ZeroDivisionError"),
            (MODULE.format(name="recall"), "'recall' already names the measure recall"),
        ],
    )
    def test_what_cannot_be_plugged_in(self, module: Callable[[str], str], text: str, sentence: str) -> None:
        with pytest.raises(MeasureError, match=sentence), plugged([module(text)]):
            pass

    def test_a_module_that_is_not_there(self) -> None:
        with (
            pytest.raises(MeasureError, match=r"--plugin no_such_module\.x: there is no module no_such_module; it is"),
            plugged(["no_such_module.x"]),
        ):
            pass


def installed(folder: Path, package: str, entry: str, text: str) -> None:
    """A package with an entry point, as an installer would leave it in a folder of the path."""
    (folder / f"{package}.py").write_text(text)
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[pytest_retrieval_eval.measures]\n{entry}\n")


def test_entry_points(tmp_path: Path) -> None:
    installed(tmp_path, "goodpack", "quarter = goodpack:quarter", MODULE.format(name="quarter"))
    installed(tmp_path, "modulepack", "all = modulepack", MODULE.format(name="a_quarter"))
    installed(tmp_path, "badpack", "third = badpack:third", "import no_such_thing")
    probe = textwrap.dedent("""
        from pytest_retrieval_eval import Measure, MeasureError, Qrels, Run, evaluate
        for scores in evaluate(Qrels.of({"1": ["a"]}), Run.of({"1": ["a"]}), ["quarter", "a_quarter"]):
            print(scores.measure, scores.mean)
        try:
            Measure.parse("third")
        except MeasureError as error:
            print(error)
    """)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", probe],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    first, second, third = done.stdout.splitlines()
    assert (first, second) == ("quarter 0.25", "a_quarter 0.25")
    assert "unknown measure third" in third
    assert "Not available: the entry point third = badpack:third of the package badpack cannot be loaded" in third
