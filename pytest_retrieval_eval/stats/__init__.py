"""Statistics: arrays in, numbers out. Imports numpy and the standard library only, each part when it is asked for."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_retrieval_eval.stats.corrections import benjamini_hochberg, holm
    from pytest_retrieval_eval.stats.early import EarlyStop
    from pytest_retrieval_eval.stats.intervals import Interval, bootstrap_mean, wilson
    from pytest_retrieval_eval.stats.means import Distribution, distribution, mean
    from pytest_retrieval_eval.stats.paired import PairedTest, TTest, randomization_test, t_test
    from pytest_retrieval_eval.stats.power import smallest_detectable_drop
    from pytest_retrieval_eval.stats.rank_correlation import kendall_tau_b, spearman, tau_ap
    from pytest_retrieval_eval.stats.resampled import (
        bootstrap_difference,
        bootstrap_statistic,
        detectable_difference,
        swap_test,
    )
    from pytest_retrieval_eval.stats.tolerance import TOLERANCE, same

__all__ = [
    "TOLERANCE",
    "Distribution",
    "EarlyStop",
    "Interval",
    "PairedTest",
    "TTest",
    "benjamini_hochberg",
    "bootstrap_difference",
    "bootstrap_mean",
    "bootstrap_statistic",
    "detectable_difference",
    "distribution",
    "holm",
    "kendall_tau_b",
    "mean",
    "randomization_test",
    "same",
    "smallest_detectable_drop",
    "spearman",
    "swap_test",
    "t_test",
    "tau_ap",
    "wilson",
]

_ROOMS = {
    "Distribution": "means",
    "EarlyStop": "early",
    "Interval": "intervals",
    "PairedTest": "paired",
    "TOLERANCE": "tolerance",
    "TTest": "paired",
    "benjamini_hochberg": "corrections",
    "bootstrap_difference": "resampled",
    "bootstrap_mean": "intervals",
    "bootstrap_statistic": "resampled",
    "detectable_difference": "resampled",
    "distribution": "means",
    "holm": "corrections",
    "kendall_tau_b": "rank_correlation",
    "mean": "means",
    "randomization_test": "paired",
    "same": "tolerance",
    "smallest_detectable_drop": "power",
    "spearman": "rank_correlation",
    "swap_test": "resampled",
    "t_test": "paired",
    "tau_ap": "rank_correlation",
    "wilson": "intervals",
}


def __getattr__(name: str) -> object:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"{__name__}.{_ROOMS[name]}"), name)
    globals()[name] = value
    return value
