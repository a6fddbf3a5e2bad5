"""Judges and their prompts from mappings, as they stand in a file."""

from __future__ import annotations

import pytest

from pytest_retrieval_eval.errors import SettingsError
from pytest_retrieval_eval.labels.judging.config import judge_from, prompt_from
from pytest_retrieval_eval.labels.judging.judge import judge_digest
from pytest_retrieval_eval.labels.judging.judges import ServerJudge
from pytest_retrieval_eval.labels.judging.prompts import JudgeExample, JudgePrompt
from pytest_retrieval_eval.labels.judging.replies import Scale

URL = "http://127.0.0.1:9/v1"
BASIC = {"url": URL, "model": "judge-2024-08-06"}


def test_a_mapping_makes_the_judge_that_the_class_makes(tmp_path):
    (tmp_path / "mine.txt").write_text("{fence}{query}{fence}{passage}{fence}")
    example = {"query": "q", "passage": "p", "grade": 1, "said": "near"}
    made = judge_from(
        {
            **BASIC,
            "kind": "server",
            "prompt": {"file": "mine.txt", "scale": [0, 1], "said": "reason", "examples": [example]},
            "temperature": 0.2,
            "deployment": "gpu-1",
            "budget": {"cost": 5, "price": {"input": 1, "output": 2}, "path": "spent"},
        },
        root=tmp_path,
    )
    prompt = JudgePrompt(
        "{fence}{query}{fence}{passage}{fence}", Scale(0, 1), "reason", examples=(JudgeExample("q", "p", 1, "near"),)
    )
    same = ServerJudge(URL, BASIC["model"], prompt=prompt, temperature=0.2, deployment="gpu-1")
    assert judge_digest(made) == judge_digest(same)
    assert (tmp_path / "spent").exists()


def test_the_built_in_prompts_by_name():
    assert judge_digest(judge_from({**BASIC, "prompt": "handbook03"})) == judge_digest(
        judge_from({**BASIC, "prompt": {"name": "handbook03"}})
    )
    assert judge_digest(judge_from(BASIC)) == judge_digest(judge_from({**BASIC, "prompt": "pool012"}))


def test_a_vote():
    made = judge_from({"kind": "vote", "combine": "median", "judges": [BASIC, BASIC, {**BASIC, "seed": 1}]})
    assert made.identity["combine"] == "median"
    assert len(made.identity["judges"]) == 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"url": URL}, "needs the setting 'model'"),
        ({**BASIC, "kind": "sever"}, "did you mean server"),
        ({**BASIC, "cache": "x"}, "there is no setting 'cache'"),
        ({**BASIC, "settings": {}}, "there is no setting 'settings'"),
        ({**BASIC, "url": 3}, "judge: url is 3; expected the base URL"),
        ({**BASIC, "pin": "yes"}, "pin is 'yes'"),
        ({**BASIC, "structured": "yes"}, "structured is 'yes'"),
        ({**BASIC, "weights": 3}, "weights is 3"),
        ({**BASIC, "budget": 3}, "budget is 3; expected a mapping"),
        ({**BASIC, "budget": {"call": 3}}, "did you mean calls"),
        ({**BASIC, "budget": {"calls": "3"}}, "calls is '3'; expected an integer"),
        ({**BASIC, "budget": {"cost": 3}}, "needs the model's price"),
        ({**BASIC, "budget": {"cost": 3, "price": 2}}, "price is 2; expected a mapping"),
        ({**BASIC, "budget": {"cost": 3, "price": {"input": 1}}}, "needs the setting 'output'"),
        ({**BASIC, "prompt": 3}, "judge: prompt is 3"),
        ({**BASIC, "prompt": "pool"}, "there is no judge's template 'pool'"),
        ({**BASIC, "prompt": {"file": "x"}}, "needs the setting 'scale'"),
        ({**BASIC, "prompt": {"name": "pool012", "scale": [0, 5]}}, "has its scale and keys from there"),
        ({**BASIC, "prompt": {"file": "x", "scale": 3}}, "the scale is 3"),
        ({**BASIC, "prompt": {"name": "pool012", "examples": [{"query": "q"}]}}, "needs the setting 'passage'"),
        ({"kind": "vote"}, "needs the setting 'judges'"),
        ({"kind": "vote", "judges": "both"}, "expected a list of mappings"),
        ({"kind": "vote", "judges": [BASIC]}, "expected at least 2"),
        ({"kind": "vote", "judges": [BASIC, BASIC], "combine": "mean"}, "expected majority or median"),
    ],
)
def test_what_cannot_be_used_is_said(settings, message):
    with pytest.raises(SettingsError, match=message):
        judge_from(settings)


def test_an_example_with_a_grade_that_is_none():
    with pytest.raises(SettingsError, match="an example has the grade True"):
        prompt_from({"name": "pool012", "examples": [{"query": "q", "passage": "p", "grade": True, "said": "s"}]})
