"""The simulation of error rates: its shape, and the two laws that hold surely."""

from __future__ import annotations

import numpy as np
import pytest
from support import script

power = script("benchmarks/gate_power.py")
SCENARIOS = {(s.kind, s.name, s.margin): s for s in power.scenarios()}


def rates(kind, name, n, trials, *gates, margin=None):
    return power.rates(SCENARIOS[kind, name, margin], n, trials, gates or power.GATES)


def test_the_shape():
    found = power.simulate(3, sizes=(20,))
    seen = {(r.rule, r.margin, r.scenario) for r in found}
    assert len(seen) == len(found) == 9 * len(power.GATES) + 2 * (4 + 3)
    assert {r.rule for r in found} == {"mean", "significant", "noninferior", "each"}
    text = power.report(found)
    assert text.count("| `noninferior` | 0.01 | 20 |") == 3  # no change, loss, margin
    assert "2% quiet" in text
    again = power.simulate(3, sizes=(20,))
    assert [r.failed for r in again] == [r.failed for r in found]


@pytest.mark.parametrize("share", ["2%", "8%", "24%"])
@pytest.mark.parametrize("n", [50, 200])
def test_rule_mean_fails_on_every_true_drop(share, n):
    (mean, each) = rates("loss", f"{share} quiet", n, 40, ("mean", 0.0), ("each", 0.0))
    assert mean.failed == mean.trials == 40
    assert each.failed == 40
    assert mean.loss > 0


@pytest.mark.parametrize("noise", ["reordering", "ties", "near-duplicates"])
def test_significant_holds_its_level_where_its_test_can_resolve(noise):
    (rate,) = rates("no change", noise, 50, 300, ("significant", 0.0))
    tried = rate.trials - rate.unresolvable
    assert tried > 150
    assert rate.resolvable_share <= 0.05 + 3 * power.standard_error(0.05, tried)


def test_a_true_loss_equal_to_the_margin_is_drawn():
    for margin in power.MARGINS:
        for name in ("few lose much", "all lose a little"):
            (rate,) = rates("margin", name, 200, 60, ("mean", margin), margin=margin)
            assert rate.loss == pytest.approx(margin, abs=4 * 0.15 / np.sqrt(200 * 60))


def test_noise_is_no_change():
    # Both runs are drawn alike: over many suites the mean difference is zero.
    for noise in ("reordering", "ties", "near-duplicates"):
        (rate,) = rates("no change", noise, 200, 100, ("mean", 0.0))
        assert abs(rate.loss) < 0.005
        assert 20 < rate.failed < 80


def test_shares_with_their_errors():
    assert power.percent(0.05, 400) == "5.0 ± 1.1"
    assert (power.percent(0.0, 9), power.percent(1.0, 9)) == ("0", "100")
