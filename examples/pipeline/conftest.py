"""The pipeline's stages, run once a session, and the handbook with roles."""

import pytest
from access import secured
from pipeline import run_pipeline

STAGES = ("bm25", "lsa", "fused", "filtered", "reranked")


@pytest.fixture(scope="session")
def retrieval_dataset():
    return secured()


@pytest.fixture(scope="session")
def retrieval_stages(retrieval_dataset, retrieval_once):
    found = {}

    def run_of(stage):
        if not found:
            found.update(run_pipeline(retrieval_dataset))
        return found[stage]

    return {stage: retrieval_once(f"stage {stage}", lambda stage=stage: run_of(stage)) for stage in STAGES}


@pytest.fixture(scope="session")
def retrieval_run(retrieval_stages):
    return retrieval_stages["reranked"]
