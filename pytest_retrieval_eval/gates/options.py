"""The keywords of a gate, the same for functions, markers, gate files and the command line."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pytest_retrieval_eval.collection.runs.stages import check_stage
from pytest_retrieval_eval.errors import DataError, SettingsError, did_you_mean
from pytest_retrieval_eval.gates.target import OperandError, real_number
from pytest_retrieval_eval.labels.answers import Metric, metric
from pytest_retrieval_eval.labels.labelling import ERAG
from pytest_retrieval_eval.labels.source import check_name, is_pooled
from pytest_retrieval_eval.wording import joined, shown

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.runs.run import Run
    from pytest_retrieval_eval.readers.reading import Reader

RULES = ("mean", "noninferior", "significant", "each")
CORRECTIONS = ("holm", "bh", "none")
MIN_N = 10
NORMALISATIONS = ("pool", "list")


@dataclass(frozen=True, slots=True)
class Options:
    """What a gate measures and how it decides; checked when made.

    Args:
        run: the run under test: a name, a path or a Run; None is the session's.
        dataset: a dataset's name; None is the first.
        stage: the stage of the pipeline whose run is measured, in the place of the run under test; a baseline is then
            the one of the same stage.
        labels: the source of relevance labels (``qrels``, ``spans``, ``contains(kilt)``, ``erag``, ``judged``, …),
            or several of which the first that has a grade wins; None is ``qrels``.
        where: tags that select queries; a list means any of, several keys mean and.
        by: a tag; the gate is decided for the queries of each of its values.
        min_n: with ``by``, how many counted queries a slice needs to decide anything.
        correction: ``holm``, ``bh`` (Benjamini & Hochberg) or ``none``: how the p-values of slices, or of a
            list of measures, are adjusted before ``significant`` decides; None is ``holm``.
        rule: ``mean``, ``noninferior``, ``significant`` or ``each``.
        alpha: the chance of a false alarm, between 0 and 0.5.
        sided: ``one`` or ``two``; None is what the rule asks for (``significant`` one, else the printed p is
            two).
        allow: under ``each``, how many queries may lose more than the margin.
        judged: the least judged@k of the candidate, 0 to 1; below it the verdict is ``inconclusive``.
        unit: ``document`` where chunks are ranked and the labels are on documents: each document stands at the
            rank of its best chunk, and k counts documents.
        allow_failures: how many queries the retriever may fail on; they count 0. As many may fail to be labelled;
            they are left out of both sides.
        normalise: where only what the runs return is labelled, what R and the ideal order are made of: ``pool``, the
            documents of all runs of the comparison, or ``list``, those of each run alone; None is ``pool``.
        pool: further runs whose documents belong to the pool, by name or path.
        allow_stale: how many gold spans may be stale (their passage lost in the edited source, or in several
            places there); they are left out on both sides.
        reader: with the labels ``erag``, who reads: the settings of a reader; None is the project's.
        answer_metric: with the labels ``erag``, how an answer is held against the gold answers (``em``, ``f1``,
            ``rouge_l``, ``accuracy``, or one's own); None is ``em``.
        defaulted: no keyword: those of the keywords above that the project's defaults gave, with their values.

    >>> Options.of(rule="significant", alpha=0.01).alpha
    0.01
    >>> Options.of(rul="mean")
    Traceback (most recent call last):
    pytest_retrieval_eval.errors.SettingsError: a gate has no keyword 'rul'; did you mean rule?
    """

    run: str | Path | Run | None = None
    dataset: str | None = None
    labels: str | tuple[str, ...] | None = None
    where: Mapping[str, object] | None = None
    by: str | None = None
    min_n: int = MIN_N
    correction: Literal["holm", "bh", "none"] | None = None
    rule: str = "mean"
    alpha: float = 0.05
    sided: Literal["one", "two"] | None = None
    allow: int = 0
    judged: float | None = None
    allow_failures: int = 0
    allow_stale: int = 0
    unit: Literal["document"] | None = None
    normalise: Literal["pool", "list"] | None = None
    pool: tuple[str, ...] = ()
    reader: Mapping[str, object] | Reader | None = None
    answer_metric: str | Metric | None = None
    stage: str | None = None
    defaulted: Mapping[str, object] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, **keywords: object) -> Options:
        """Options from keywords; an unknown name, a wrong type or value is a ``SettingsError``."""
        for name in keywords:
            if name not in KEYWORDS:
                raise SettingsError(f"a gate has no keyword {shown(name)!r}; {did_you_mean(name, KEYWORDS)}")
        # None is "not given" for every keyword, as in the functions' signatures.
        given: dict[str, Any] = {name: value for name, value in keywords.items() if value is not None}
        return cls(**given)

    def __post_init__(self) -> None:
        if self.run is not None and not isinstance(self.run, (str, Path)) and not hasattr(self.run, "locate"):
            raise OperandError(f"run= takes a run's name, a path or a Run, not {_a(self.run)}")
        if isinstance(self.run, str) and not self.run.strip():
            raise SettingsError("run='' names no run; leave it out for the session's run")
        if self.dataset is not None and (not isinstance(self.dataset, str) or not self.dataset.strip()):
            raise SettingsError(f"dataset= takes a dataset's name, not {_a(self.dataset)}")
        if self.stage is not None:
            try:
                check_stage(self.stage, "stage= names a stage of the pipeline, which")
            except DataError as error:
                raise SettingsError(str(error)) from None
            if self.run is not None:
                raise SettingsError(
                    f"run= and stage={self.stage!r} both say what is measured: a stage is named by the pipeline, and "
                    "its name is also that of a run; keep one of them"
                )
        self._check_labels()
        self._check_pool()
        self._check_reading()
        self._check_where()
        if self.rule not in RULES:
            raise SettingsError(f"{_a(self.rule)} is not a rule; the rules are {joined(RULES)}")
        object.__setattr__(self, "alpha", real_number(self.alpha, "alpha="))
        if not 0 < self.alpha < 0.5:
            raise SettingsError(f"alpha= lies between 0 and 0.5 (0.05 is usual), not at {self.alpha:g}")
        if self.sided not in (None, "one", "two"):
            raise SettingsError(f"sided= is 'one' or 'two', not {_a(self.sided)}")
        for name in ("allow", "allow_failures", "allow_stale", "min_n"):
            self._check_count(name)
        self._check_slices()
        if self.unit not in (None, "document"):
            raise SettingsError(
                f"unit= is 'document', or left out where the labels are on what is ranked, not {_a(self.unit)}"
            )
        if self.allow and self.rule != "each":
            raise SettingsError(
                f"allow={self.allow} counts queries under rule='each'; rule={self.rule!r} does not read it"
            )
        if self.judged is not None:
            object.__setattr__(self, "judged", real_number(self.judged, "judged="))
            if not 0 < self.judged <= 1:
                raise SettingsError(f"judged= is a share between 0 and 1, not {self.judged:g}")

    def _check_labels(self) -> None:
        if self.labels is None:
            return
        sources = (self.labels,) if isinstance(self.labels, str) else self.labels
        if not isinstance(sources, (list, tuple)) or not sources:
            raise SettingsError(f"labels= takes a source of labels or a list of them, not {_a(self.labels)}")
        for source in sources:
            check_name(source)
        if len(set(sources)) < len(sources):
            raise SettingsError(f"labels= names a source twice in {_a(self.labels)}; the first that has a grade wins")
        if not isinstance(self.labels, str):
            object.__setattr__(self, "labels", tuple(sources))

    def _check_pool(self) -> None:
        pool = (self.pool,) if isinstance(self.pool, (str, Path)) or hasattr(self.pool, "locate") else self.pool
        if not isinstance(pool, (list, tuple)):
            raise SettingsError(f"pool= takes a list of runs, not {_a(self.pool)}")
        for run in pool:
            if not isinstance(run, (str, Path)) and not hasattr(run, "locate"):
                raise SettingsError(f"pool= takes names or paths of runs, or a Run, not {_a(run)}")
        object.__setattr__(self, "pool", tuple(pool))
        if self.normalise not in (None, *NORMALISATIONS):
            raise SettingsError(f"normalise= is {joined(NORMALISATIONS)}, not {_a(self.normalise)}")
        labels = (self.labels,) if isinstance(self.labels, str) else self.labels or ("qrels",)
        if (pool or self.normalise is not None) and not is_pooled(labels):
            word = "pool" if pool else "normalise"
            raise SettingsError(
                f"{word}= says which documents R and the ideal order are made of where only what the runs return is "
                f"labelled; labels={', '.join(labels)} do not depend on the runs: leave it out"
            )

    def _check_reading(self) -> None:
        sources = (self.labels,) if isinstance(self.labels, str) else self.labels or ()
        for name in ("reader", "answer_metric"):
            if getattr(self, name) is not None and ERAG not in sources:
                raise SettingsError(f"{name}= is about what a reader answers, for labels='erag' alone: leave it out")
        reader, named = self.reader, self.answer_metric
        if isinstance(reader, Mapping):
            if not isinstance(reader.get("kind"), str):
                raise SettingsError(f"reader= takes settings with a kind, such as kind: transformers, not {_a(reader)}")
        elif reader is not None and not (hasattr(reader, "read") and hasattr(reader, "identity")):
            raise SettingsError(f"reader= takes the settings of a reader, or a reader, not {_a(reader)}")
        if named is not None:
            if not isinstance(named, str) and not callable(named):
                raise SettingsError(f"answer_metric= takes the name of a metric, or a function, not {_a(named)}")
            metric(named)

    def _check_where(self) -> None:
        if self.where is None:
            return
        if not isinstance(self.where, Mapping):
            raise SettingsError(f"where= takes tags such as {{'type': 'policy'}}, not {_a(self.where)}")
        if not self.where:
            raise SettingsError("where={} selects nothing in particular; leave it out to take every query")
        for tag in self.where:
            if not isinstance(tag, str):
                raise SettingsError(f"where= names tags by text, not by {_a(tag)}")
        object.__setattr__(self, "where", dict(self.where))

    def _check_slices(self) -> None:
        if self.by is not None and (not isinstance(self.by, str) or not self.by.strip()):
            raise SettingsError(f"by= names the tag whose values are the slices, such as by='type', not {_a(self.by)}")
        if self.min_n < 1:
            raise SettingsError(f"min_n={self.min_n}: a slice without a query decides nothing; take 1 or more")
        if self.min_n != MIN_N and self.by is None:
            raise SettingsError(f"min_n={self.min_n} is the least size of a slice, and there are none; add by=")
        if self.correction is None:
            return
        if self.correction not in CORRECTIONS:
            known = did_you_mean(str(self.correction), CORRECTIONS)
            raise SettingsError(f"{_a(self.correction)} is no correction of p-values; {known}")
        if self.rule != "significant":
            raise SettingsError(
                f"correction={self.correction!r} adjusts the p-values that rule='significant' decides by; "
                f"rule={self.rule!r} decides by none"
            )

    def _check_count(self, name: str) -> None:
        value = getattr(self, name)
        what = "gold spans" if name == "allow_stale" else "queries"
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise SettingsError(f"{name}= is a number of {what} (0, 1, 2, …), not {_a(value)}")
        if int(value) < 0:
            raise SettingsError(f"{name}= is a number of {what} (0, 1, 2, …), not {int(value)}")
        object.__setattr__(self, name, int(value))


KEYWORDS = tuple(each.name for each in dataclasses.fields(Options) if each.name != "defaulted")


def _a(value: object) -> str:
    return shown(repr(value), 60)
