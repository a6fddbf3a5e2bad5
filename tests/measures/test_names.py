"""Names of measures: what is read, what is printed, what is refused and with which sentence."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_retrieval_eval.errors import GateError, MeasureError
from pytest_retrieval_eval.measures import registry
from pytest_retrieval_eval.measures.names import Measure, ParameterValue
from pytest_retrieval_eval.measures.registry import Definition, Parameter


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("ndcg@10", "ndcg@10"),
        ("ndcg", "ndcg"),
        ("ndcg(gain=exp)@10", "ndcg(gain=exp)@10"),
        ("ndcg(gain=linear)@10", "ndcg@10"),
        (" ndcg ( gain = exp ) @ 10 ", "ndcg(gain=exp)@10"),
        ("recall(rel=2)@5", "recall(rel=2)@5"),
        ("recall(rel=2.0)@5", "recall(rel=2)@5"),
        ("recall(rel=.5)@5", "recall(rel=0.5)@5"),
        ("recall(rel=1)@5", "recall(rel=1)@5"),
        ("recall()@05", "recall@5"),
        ("r_precision", "r_precision"),
        ("f1(rel=3)@10", "f1(rel=3)@10"),
    ],
)
def test_our_names(text: str, printed: str) -> None:
    assert str(Measure.parse(text)) == printed


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        # trec_eval
        ("ndcg_cut_10", "ndcg@10"),
        ("ndcg_cut.10", "ndcg@10"),
        ("P_5", "precision@5"),
        ("recall_100", "recall@100"),
        ("recip_rank", "mrr"),
        ("map_cut_10", "map@10"),
        ("map", "map"),
        ("success_5", "hit@5"),
        ("Rprec", "r_precision"),
        ("iprec_at_recall_0.50", "iprec(recall=0.5)"),
        ("iprec_at_recall_0.00", "iprec(recall=0)"),
        ("iprec_at_recall_1.00", "iprec(recall=1)"),
        ("iprec_at_recall.0.3", "iprec(recall=0.3)"),
        ("11pt_avg", "eleven_point"),
        ("gm_map", "gm(map)"),
        ("gm_bpref", "gm(bpref)"),
        ("set_P", "set_precision"),
        ("set_recall", "set_recall"),
        ("set_F", "set_f1"),
        ("set_map", "set_map"),
        ("num_q", "num_q"),
        ("num_ret", "num_ret"),
        ("num_rel", "num_rel"),
        ("num_rel_ret", "num_rel_ret"),
        ("num_nonrel_judged_ret", "num_nonrel_judged_ret"),
        ("infAP", "infap"),
        ("bpref", "bpref"),
        ("unj_10", "unjudged@10"),
        ("ndcg", "ndcg"),
        # ir_measures
        ("nDCG@10", "ndcg@10"),
        ("nDCG(dcg='exp-log2')@10", "ndcg(gain=exp)@10"),
        ('nDCG(dcg="log2")@10', "ndcg@10"),
        ("P@5", "precision@5"),
        ("P(rel=2)@5", "precision(rel=2)@5"),
        ("R@100", "recall@100"),
        ("RR", "mrr"),
        ("RR@10", "mrr@10"),
        ("RR(rel=2)", "mrr(rel=2)"),
        ("AP", "map"),
        ("AP@10", "map@10"),
        ("AP(rel=2)@100", "map(rel=2)@100"),
        ("Success@5", "hit@5"),
        ("Judged@10", "judged@10"),
        ("RBP(p=0.8)", "rbp"),
        ("RBP(p=0.5)@10", "rbp(p=0.5)@10"),
        ("ERR@10", "err@10"),
        ("Rprec(rel=2)", "r_precision(rel=2)"),
        ("Bpref", "bpref"),
        ("Bpref(rel=2)", "bpref(rel=2)"),
        ("IPrec@0.5", "iprec(recall=0.5)"),
        ("IPrec@.5", "iprec(recall=0.5)"),
        ("SetP", "set_precision"),
        ("SetR(rel=2)", "set_recall(rel=2)"),
        ("SetF", "set_f1"),
        ("SetAP", "set_map"),
        ("NumQ", "num_q"),
        ("NumRet", "num_ret"),
        ("NumRel", "num_rel"),
        ("NumRelRet", "num_rel_ret"),
        ("nDCG(judged_only=True)@10", "condensed(ndcg@10)"),
        ("AP(judged_only=True, rel=2)", "condensed(map(rel=2))"),
        ("AP(judged_only=False)", "map"),
        # others, and any case
        ("success@5", "hit@5"),
        ("hit_rate@5", "hit@5"),
        ("MRR@10", "mrr@10"),
        ("NDCG@10", "ndcg@10"),
        ("MAP@100", "map@100"),
        ("Recall@100", "recall@100"),
        ("r-precision", "r_precision"),
        ("ndcg_10", "ndcg@10"),
    ],
)
def test_the_spellings_of_other_tools(text: str, printed: str) -> None:
    assert str(Measure.parse(text)) == printed


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("recal@5", "unknown measure recal@5: did you mean recall@5?"),
        ("recal(rel=2)@5", "did you mean recall(rel=2)@5?"),
        ("sucess@5", "did you mean success@5?"),
        (
            "xyzzy@3",
            "unknown measure xyzzy@3: known: abstention.auc, abstention.f1, ",
        ),
        ("recall", "recall needs a cut-off; write recall@5, or another k."),
        ("precision", "precision needs a cut-off"),
        ("hit", "hit needs a cut-off"),
        ("f1", "f1 needs a cut-off"),
        ("judged", "judged needs a cut-off"),
        ("recall(rel=2)", "write recall(rel=2)@5"),
        ("r_precision@5", "r_precision has no cut-off; write r_precision."),
        ("recall@0", "the cut-off must be at least 1"),
        ("recall@-3", "the cut-off must be at least 1"),
        ("P_0", "the cut-off must be at least 1"),
        ("recall@9999999999", "the cut-off is beyond any ranking"),
        ("recall@" + 5000 * "9", "must be a whole number"),
        ("recall@5.0", "must be a whole number of at least 1, not 5.0"),
        ("recall@five", "must be a whole number of at least 1, not five"),
        ("recall@", "must be a whole number of at least 1, not empty"),
        ("recall@5@6", "not 5@6"),
        ("recall@٥", "must be a whole number"),
        ("recall 5", "only a cut-off such as @10 may follow"),
        ("", "it begins with the name of a measure"),
        ("@5", "it begins with the name of a measure"),
        ("recall(rel=2@5", "a bracket is not closed"),
        ("recall(rel)@5", "'rel' is no parameter=value"),
        ("recall(rel=2,)@5", "an empty place is no parameter=value"),
        ("recall(rel=)@5", "nothing is no value for rel"),
        ("recall(rel=2, rel=3)@5", "the parameter rel is given twice"),
        ("nDCG(dcg='log2', gain=exp)@5", "the parameter gain is given twice"),
        ("ndcg(gian=exp)@10", "ndcg has no parameter gian; did you mean gain?"),
        ("ndcg(gain=expo)@10", "gain cannot be expo; did you mean exp?"),
        ("ndcg(gain=2)@10", "gain cannot be 2; expected linear or exp"),
        ("ndcg(rel=2)@10", "ndcg has no parameter rel"),
        ("iprec", "iprec needs the parameter recall"),
        ("iprec(recall=1.5)", "recall must be a number from 0 to 1, not 1.5"),
        ("iprec_at_recall_1.50", "recall must be a number from 0 to 1, not 1.5"),
        ("condensed(ndcg)@10", "condensed has no cut-off; write condensed(ndcg), or give the cut-off to the measure"),
        ("condensed", "condensed needs the parameter measure"),
        ("condensed(3)", "unknown measure 3"),
        ("cut(map)", "cut needs a cut-off; write cut(map)@5"),
        ("gm(map, floor=0)", "floor must be a number above 0"),
        ("recall(rel=0)@5", "rel must be a number above 0, not 0"),
        ("recall(rel=-1)@5", "rel must be a number above 0, not -1"),
        ("recall(rel=1e999)@5", "rel must be a number above 0, not inf"),
        ("recall(rel=nan)@5", "rel cannot be nan; expected a number"),
    ],
)
def test_what_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(MeasureError) as caught:
        Measure.parse(text)
    assert sentence in str(caught.value)
    assert isinstance(caught.value, GateError)


def test_parts() -> None:
    measure = Measure.parse("recall(rel=2)@5")
    assert (measure.name, measure.cutoff, measure.params) == ("recall", 5, (("rel", 2.0),))
    assert measure.rel == 2.0
    assert measure.get("rel") == 2.0
    assert Measure.parse("recall@5").rel == 1.0
    assert Measure.parse("recall@5").get("rel") is None
    assert repr(measure) == "Measure('recall(rel=2)@5')"
    assert measure == Measure.of("recall", 5, rel=2)
    assert Measure.of("ndcg", np.int64(5)) == Measure.parse("ndcg@5")
    assert len({measure, Measure.of("recall", 5, rel=2.0), Measure.of("recall", 5)}) == 2


def test_another_cutoff() -> None:
    assert str(Measure.parse("ndcg(gain=exp)@10").at(5)) == "ndcg(gain=exp)@5"
    assert str(Measure.parse("ndcg@10").at(None)) == "ndcg"
    with pytest.raises(MeasureError, match="recall needs a cut-off"):
        Measure.parse("recall@10").at(None)
    with pytest.raises(MeasureError, match="has no cut-off"):
        Measure.parse("r_precision").at(3)
    with pytest.raises(MeasureError, match="at least 1"):
        Measure.parse("recall@10").at(0)


@pytest.mark.parametrize("cutoff", [0, -1, 2.5, 5.0, True, "5"])
def test_a_measure_built_from_parts_is_checked_too(cutoff: object) -> None:
    with pytest.raises(MeasureError):
        Measure("recall", cutoff)  # type: ignore[arg-type]


def test_a_measure_built_from_unknown_parts_is_refused_when_it_is_used() -> None:
    with pytest.raises(MeasureError, match=r"did you mean recall@5\?"):
        Measure("recal", 5).checked()
    with pytest.raises(MeasureError, match="did you mean gain"):
        Measure("ndcg", 5, (("gian", "exp"),)).checked()
    with pytest.raises(MeasureError, match="unknown measure P@5"):
        Measure("P", 5).checked()


def test_a_measure_is_a_value() -> None:
    measure = Measure.parse("ndcg(gain=exp)@10")
    assert pickle.loads(pickle.dumps(measure)) == measure
    assert copy.deepcopy(measure) == measure
    with pytest.raises(AttributeError):
        measure.cutoff = 3  # type: ignore[misc]


@st.composite
def measures(draw: st.DrawFn) -> Measure:
    found = draw(st.sampled_from([one for one in registry.definitions() if one.name != "ir_measures"]))
    cutoffs = st.integers(1, 10**6)
    cutoff = draw({"required": cutoffs, "optional": cutoffs | st.none(), "none": st.none()}[found.cutoff])
    params: dict[str, ParameterValue] = {}
    for key, declared in found.parameters.items():
        # Within the declared bounds; few digits and whole numbers among them.
        low, high = max(declared.above, 0.0), min(declared.below, 1e6)
        open_ends = not declared.closed
        numbers: st.SearchStrategy[ParameterValue] = st.floats(
            low, high, exclude_min=open_ends, exclude_max=open_ends, allow_subnormal=False
        )
        numbers |= st.sampled_from([x for x in (0.25, 0.5, 1.0, 2.0, 3.0) if low < x < high])
        words: st.SearchStrategy[ParameterValue] = st.sampled_from(declared.words or ("none",))
        choice = measures() if declared.measure else numbers if declared.number else words
        if declared.default is None or draw(st.booleans()):
            params[key] = draw(choice)
    return Measure.of(found.name, cutoff, **params)


@given(measures())
def test_what_is_printed_can_be_read_again(measure: Measure) -> None:
    assert Measure.parse(str(measure)) == measure
    assert str(Measure.parse(str(measure))) == str(measure)


@given(st.text(max_size=20) | st.from_regex(r"[a-z_]{1,8}(\([a-z=,.0-9 ()]*\))?(@[0-9.-]*)?", fullmatch=True))
def test_any_text_is_a_measure_or_a_measure_error(text: str) -> None:
    try:
        measure = Measure.parse(text)
    except MeasureError:
        return
    assert Measure.parse(str(measure)) == measure


class TestRegistry:
    @pytest.fixture
    def definition(self) -> Iterator[Definition]:
        made = Definition(
            "first_two",
            "the grades of the first two",
            "this test",
            lambda ranks, measure: np.zeros(ranks.queries),
            parameters={"weight": Parameter("how much it weighs", number=True, above=0.0, below=1.0)},
            binary=False,
            spellings=("FirstTwo",),
            stems=("first_two",),
        )
        registry.register(made)
        yield made
        if registry.find("first_two") is made:
            registry.unregister("first_two")

    def test_a_registered_measure_is_read_and_printed(self, definition: Definition) -> None:
        assert definition in registry.definitions()
        measure = Measure.parse("FirstTwo(weight=0.25)@3")
        assert str(measure) == "first_two(weight=0.25)@3"
        assert Measure.parse(str(measure)) == measure

    def test_a_parameter_without_a_default_must_be_given(self, definition: Definition) -> None:
        with pytest.raises(MeasureError, match="first_two needs the parameter weight: how much it weighs"):
            Measure.parse("first_two@3")
        with pytest.raises(MeasureError, match="above 0 and below 1, not 1"):
            Measure.parse("first_two(weight=1)@3")

    def test_it_takes_part_in_suggestions(self, definition: Definition) -> None:
        with pytest.raises(MeasureError, match=r"did you mean first_two@3\?"):
            Measure.parse("frst_two@3")

    def test_to_register_it_twice_changes_nothing(self, definition: Definition) -> None:
        registry.register(definition)
        assert registry.definitions().count(definition) == 1

    def test_a_name_or_spelling_that_is_taken_is_refused(self, definition: Definition) -> None:
        for name, spelling in [("recall", "x"), ("mine", "nDCG"), ("mine", "firsttwo"), ("rr", "x")]:
            with pytest.raises(MeasureError, match="already names the measure"):
                registry.register(Definition(name, "", "", definition.score, spellings=(spelling,)))
            assert registry.find("mine") is None

    def test_it_can_be_taken_out_again(self, definition: Definition) -> None:
        registry.unregister("first_two")
        for spelling in ("first_two@3", "FirstTwo(weight=0.5)", "first_two_3"):
            with pytest.raises(MeasureError, match="unknown measure"):
                Measure.parse(spelling)
        with pytest.raises(MeasureError, match="unknown measure first_two"):
            registry.unregister("first_two")

    def test_a_name_must_look_like_one(self) -> None:
        with pytest.raises(MeasureError, match="cannot name a measure"):
            Definition("My measure", "", "", lambda ranks, measure: np.zeros(1))

    def test_a_measure_can_be_a_parameter(self) -> None:
        made = Definition(
            "nested",
            "another measure",
            "this test",
            lambda ranks, measure: np.zeros(ranks.queries),
            parameters={
                "measure": Parameter("the measure", measure=True),
                "share": Parameter("a share", 0.5, number=True),
            },
            binary=False,
        )
        registry.register(made)
        try:
            measure = Measure.parse("nested(nDCG(dcg='exp-log2')@10, share=0.1)")
            assert str(measure) == "nested(ndcg(gain=exp)@10, share=0.1)"
            assert measure.get("measure") == Measure.parse("ndcg(gain=exp)@10")
            assert Measure.parse(str(measure)) == measure
            assert Measure.parse("nested(recall(rel=2)@5)") == Measure.parse("nested(measure=recall(rel=2)@5)")
            with pytest.raises(MeasureError, match=r"did you mean recall@5\?"):
                Measure.parse("nested(recal@5)")
            with pytest.raises(MeasureError, match="nested needs the parameter measure"):
                Measure.parse("nested(share=0.1)")
        finally:
            registry.unregister("nested")

    def test_our_definitions_are_complete(self) -> None:
        ours = registry.definitions()
        assert {d.name for d in ours} >= {
            "hit", "precision", "recall", "f1", "mrr", "map", "ndcg", "r_precision", "judged"
        }  # fmt: skip
        for one in ours:
            assert one.meaning
            assert one.source
            assert one.low < one.high


def test_common_measures_do_without_what_others_read() -> None:
    code = """
        import sys
        from pytest_retrieval_eval import Measure, MeasureError, Qrels, Run, evaluate
        found = evaluate(Qrels.of({"q": {"a": 1}}), Run.of({"q": ["a"]}), ["recall@5", "ndcg@10", "map", "mrr"])
        print(found["map"].mean)
        rooms = [f"pytest_retrieval_eval.{room}" for room in ("measures.times", "measures.calls", "stats.paired")]
        print(*[room for room in rooms if room in sys.modules])
        print(Measure.parse("latency.p95"), Measure.parse("calls"), Measure.parse("gm_map"))
        try:
            Measure.parse("lattency.p95")
        except MeasureError as error:
            print(error)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "1.0",
        "",
        "latency.p95 calls.max gm(map)",
        "unknown measure lattency.p95: did you mean latency.p95?",
    ]


def test_names_are_found_by_several_threads_at_once() -> None:
    code = """
        import sys, threading
        sys.setswitchinterval(1e-6)
        from pytest_retrieval_eval.measures.names import Measure
        names = ("calls.max", "leaks@3", "abstention.recall", "latency.p95") * 4
        together = threading.Barrier(len(names))
        def parse(name):
            together.wait()
            Measure.parse(name)
            print(name)
        threads = [threading.Thread(target=parse, args=(name,)) for name in names]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert (done.stdout.count("\n"), done.stderr) == (16, "")
