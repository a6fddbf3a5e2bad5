"""Statistics: arrays in, numbers out. Imports numpy and the standard library only."""

from __future__ import annotations

from pytest_retrieval_eval.stats.corrections import benjamini_hochberg, holm
from pytest_retrieval_eval.stats.early import EarlyStop
from pytest_retrieval_eval.stats.intervals import Interval, bootstrap_mean, wilson
from pytest_retrieval_eval.stats.means import Distribution, distribution, mean
from pytest_retrieval_eval.stats.paired import PairedTest, TTest, randomization_test, t_test
from pytest_retrieval_eval.stats.power import smallest_detectable_drop
from pytest_retrieval_eval.stats.rank_correlation import kendall_tau_b, spearman, tau_ap
from pytest_retrieval_eval.stats.tolerance import TOLERANCE, same

__all__ = [
    "TOLERANCE",
    "Distribution",
    "EarlyStop",
    "Interval",
    "PairedTest",
    "TTest",
    "benjamini_hochberg",
    "bootstrap_mean",
    "distribution",
    "holm",
    "kendall_tau_b",
    "mean",
    "randomization_test",
    "same",
    "smallest_detectable_drop",
    "spearman",
    "t_test",
    "tau_ap",
    "wilson",
]
