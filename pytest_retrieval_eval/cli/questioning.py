"""``questions``: queries that a reader writes from passages, with the passages as their gold."""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from pytest_retrieval_eval.cli.console import INTERRUPTED, Console, json_text
from pytest_retrieval_eval.cli.reading import given_reader, opened_cache, say_readings
from pytest_retrieval_eval.collection.dataset import Corpus
from pytest_retrieval_eval.collection.formats.files import bare_suffixes, json_id, json_lines
from pytest_retrieval_eval.collection.queries import Queries
from pytest_retrieval_eval.collection.spans.chunks import Chunk, Chunks
from pytest_retrieval_eval.errors import DataError
from pytest_retrieval_eval.labels.questions.folder import check_folder, save
from pytest_retrieval_eval.labels.questions.prompts import QuestionPrompt, as_it_is
from pytest_retrieval_eval.labels.questions.written import Questions, write_questions
from pytest_retrieval_eval.readers.reading import identity_digest
from pytest_retrieval_eval.readers.readings.cache import CachedReader
from pytest_retrieval_eval.readers.readings.store import ReadingCache
from pytest_retrieval_eval.readers.session import behind_cache
from pytest_retrieval_eval.wording import counted, shown

_TABLES = ((".jsonl",), (".csv",), (".tsv",), (".parquet",))


def ask_questions(arguments: argparse.Namespace, console: Console) -> int:
    """The command. What can be wrong is looked at before the reader is asked, which may cost."""
    output = Path(arguments.output)
    check_folder(output)
    prompt = QuestionPrompt.built_in() if arguments.prompt is None else QuestionPrompt.read(arguments.prompt)
    folder = Path(arguments.dataset)
    corpus_path = _in(folder, "corpus", ((".jsonl",),))
    if corpus_path is None:
        raise DataError(f"{folder}: there is no corpus.jsonl, and questions are asked about its documents")
    corpus = Corpus.read(corpus_path)
    chunks_path = Path(arguments.chunks) if arguments.chunks is not None else _in(folder, "chunks", _TABLES)
    chunks = _documents(corpus_path) if chunks_path is None else Chunks.read(chunks_path)
    queries_path = _in(folder, "queries", ((".jsonl",), (".tsv",)))
    # Questions that this command wrote here before are written anew, under the ids that they have.
    theirs = queries_path is not None and folder.resolve() != output.resolve()
    taken = Queries.read(queries_path).ids if queries_path is not None and theirs else ()
    with opened_cache(arguments) as cache:
        reader = _reader(arguments.reader, cache)
        try:
            found = write_questions(
                chunks,
                corpus,
                reader,
                sample=arguments.sample,
                seed=arguments.seed,
                number=arguments.number,
                max_overlap=arguments.max_overlap,
                rewrites=arguments.rewrites,
                prompt=prompt,
                taken=taken,
                told=lambda n: console.say(f"asking about {counted(n, 'passage')} of {chunks_path or corpus_path}"),
            )
            identity = reader.identity
        except KeyboardInterrupt:
            console.error("interrupted; nothing was written, what was read is kept, and the same command goes on")
            return INTERRUPTED
        finally:
            say_readings(cache, console)
            reader.close()
    made_of = {
        "corpus": corpus.digest,
        "reader": None if identity is None else f"sha256:{identity_digest(identity)}",
        "prompt": f"sha256:{hashlib.sha256((prompt.asking + prompt.rewriting).encode()).hexdigest()}",
    }
    if identity is None:
        console.note("the reader has no identity: nothing that it said is kept, and it is asked anew each time")
    save(found, output, made_of)
    _say(found, output, arguments, console)
    return 0 if found.complete else 1


def _reader(text: str, cache: ReadingCache) -> CachedReader:
    given, root = given_reader(text)
    return behind_cache(as_it_is(given) if isinstance(given, Mapping) else given, root, cache)


def _say(found: Questions, output: Path, arguments: argparse.Namespace, console: Console) -> None:
    for note in found.notes:
        console.note(note)
    if arguments.json:
        told = {
            "passages": found.passages,
            "questions": len(found.written),
            "rewritten": found.rewritten,
            "dropped": found.dropped,
            "overlap": {"first": found.median(first=True), "median": found.median(), "most": found.max_overlap},
            "written": [
                {"question": one.text, "chunk_id": one.source.chunk_id, "overlap": one.overlap, "first": one.first}
                for one in found.written
            ],
            "left": [asdict(one) for one in found.left],
        }
        console.write(json_text(told) + "\n")
    else:
        for one in found.left:
            console.write(f"{one.chunk_id}\t{one.outcome}\t{shown(one.detail, 200)}\n")
    without = sum(one.outcome != "overlap" for one in found.left)
    console.say(
        f"{counted(len(found.written), 'question')} from {counted(found.passages, 'passage')}: {found.rewritten} "
        f"rewritten, {found.dropped} dropped above an overlap of {found.max_overlap:g}, {without} without a question"
    )
    console.say(
        f"overlap with the passage: median {found.median():.2f}, before rewriting {found.median(first=True):.2f}; "
        f"wrote {output / 'queries.jsonl'} and {output / 'spans.jsonl'}"
    )
    outcomes = {one.outcome for one in found.left}
    if outcomes & {"refused", "error"}:
        console.say("what was refused or failed is asked for by the same command again")
    if outcomes & {"empty", "no question"}:
        console.say(
            "replies without a question are kept: --cache-mode refresh asks for others, and a small model may need a "
            "shorter --prompt"
        )


def _documents(path: Path) -> Chunks:
    """Every document as its one passage."""
    made = {}
    for number, row in json_lines(path):
        where = f"{path}:{number}"
        key = json_id(next((row[name] for name in ("_id", "doc_id", "id") if name in row), None), where)
        text = row.get("text")
        if not isinstance(text, str):
            raise DataError(f"{where}: document {key!r} has no 'text' to ask about")
        if key in made:
            raise DataError(f"{where}: document {key!r} comes a second time; ids are unique")
        made[key] = Chunk(key, 0, len(text))
    if not made:
        raise DataError(f"{path}: the corpus is empty: there is no passage to ask about")
    return Chunks.of(made, source=str(path))


def _in(folder: Path, stem: str, endings: tuple[tuple[str, ...], ...]) -> Path | None:
    """The file of that name in a folder, plain or compressed."""
    if not folder.is_dir():
        raise DataError(f"{folder}: there is no such folder; expected one with corpus.jsonl")
    for path in sorted(folder.iterdir()):
        if path.name.split(".")[0] == stem and tuple(bare_suffixes(path)[-1:]) in endings:
            return path
    return None
