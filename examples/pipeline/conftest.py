"""The pipeline's stages, run once a session, and the handbook with roles."""

import pytest
from access import secured
from pipeline import run_pipeline


@pytest.fixture(scope="session")
def retrieval_dataset():
    return secured()


@pytest.fixture(scope="session")
def retrieval_stages(retrieval_dataset, retrieval_once, tmp_path_factory):
    def make():
        folder = tmp_path_factory.mktemp("stages")
        paths = {}
        for stage, run in run_pipeline(retrieval_dataset).items():
            paths[stage] = str(folder / f"{stage}.run.jsonl.gz")
            run.save(paths[stage])
        return paths

    return retrieval_once("the pipeline", make)


@pytest.fixture(scope="session")
def retrieval_run(retrieval_stages):
    return retrieval_stages["reranked"]
