"""What reading costs: our readers beside the published procedure and beside bare ``generate``, in one process.

    python benchmarks/erag.py [--queries N] [--depth N] [--repeat N] [--threads N] [--json PATH]
    python benchmarks/erag.py --gpu [--tiny] [--queries N] [--depth N] [--json PATH]

Without ``--gpu``: a T5 of the size of t5-small with random weights reads 20 queries × 10 documents, prompts of 30 to
250 tokens, in float32 on the CPU. Sides, by CPU time (they take turns, medians are compared):

* published: one call for each rank position over all queries, padded to the longest (Salemi & Zamani 2024, section 4);
* one by one: a call for each document;
* bucket and fixed: our reader under either policy of shapes.

What our reader adds to the work of the encoder and of ``generate`` is measured inside the same run. Then a baseline
and a candidate that share 80 % of their documents, and a repeat, through the cache; the published procedure reads both
runs whole. Random weights never end a text: a fifth of the vocabulary does here, and how long answers are then is
printed. The status is 1 where a target is missed.

With ``--gpu`` (a CUDA device is needed): t5-small, t5-base and a causal model of a billion weights, random, in
bfloat16; seconds a query, tokens a second and peak memory above the loaded model at each level: document, end to end
by fusion in the decoder, end to end by concatenation. The status is 1 where an item could not be read. With ``--tiny``
models are so small that the same runs in seconds without such a device too; its figures mean nothing then.
"""

from __future__ import annotations

import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
if __name__ == "__main__":  # this folder's statistics.py would hide the standard library's
    sys.path[0] = ROOT
os.environ.setdefault("OMP_NUM_THREADS", "1")

# ruff: noqa: E402
import argparse
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from benchmarks.figures import Figures, json_option, median
from pytest_retrieval_eval.readers.models.fid import FidReader
from pytest_retrieval_eval.readers.models.plan import Shapes
from pytest_retrieval_eval.readers.models.transformers_reader import CausalReader, Seq2seqReader
from pytest_retrieval_eval.readers.prompts import Prompt
from pytest_retrieval_eval.readers.reading import Item, Passage
from pytest_retrieval_eval.readers.readings.cache import CachedReader
from pytest_retrieval_eval.readers.readings.store import ReadingCache

VOCABULARY = 32_128
ENDS = VOCABULARY // 5
NEW = 16
GREEDY = {"do_sample": False, "num_beams": 1, "max_new_tokens": NEW}
FASTER, SHARED, OVERHEAD = 1.6, 3.0, 5.0
SIZES = {
    "t5-small": {"d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6, "num_heads": 8},
    "t5-base": {"d_model": 768, "d_kv": 64, "d_ff": 3072, "num_layers": 12, "num_heads": 12},
    "t5-tiny": {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4},
}
CAUSAL = {
    "causal-1b": {
        "hidden_size": 2048,
        "intermediate_size": 5632,
        "num_hidden_layers": 22,
        "num_attention_heads": 32,
        "num_key_value_heads": 4,
    },
    "causal-tiny": {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
    },
}


def tokenizer() -> Any:
    """A word is a token."""
    vocabulary = {"<pad>": 0, "</s>": 1, "<unk>": 2, **{f"w{number}": number for number in range(3, VOCABULARY)}}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )


def t5(size: str, dtype: torch.dtype, device: str) -> Any:
    """A T5 of this size. Its cross attention is turned up, so that each input has an answer of its own."""
    torch.manual_seed(0)
    config = transformers.T5Config(
        vocab_size=VOCABULARY,
        decoder_start_token_id=0,
        pad_token_id=0,
        eos_token_id=1,
        dropout_rate=0.0,
        tie_word_embeddings=False,
        **SIZES[size],
    )
    model = transformers.T5ForConditionalGeneration(config).eval()
    with torch.no_grad():
        torch.nn.init.normal_(model.lm_head.weight)
        for name, weights in model.named_parameters():
            if "EncDecAttention" in name and not name.endswith("k.weight") and "bias" not in name:
                weights.mul_(8)
    return ends_often(model.to(device, dtype))


def causal(size: str, dtype: torch.dtype, device: str) -> Any:
    """A Llama of this size."""
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY,
        max_position_embeddings=8192,
        pad_token_id=0,
        eos_token_id=1,
        **CAUSAL[size],
    )
    with torch.device(device):
        model = transformers.LlamaForCausalLM(config).eval()
    return ends_often(model.to(dtype))


def ends_often(model: Any) -> Any:
    model.generation_config.eos_token_id = [1, *range(VOCABULARY - ENDS, VOCABULARY)]
    return model


def lists(queries: int, depth: int, seed: int = 0) -> list[list[Item]]:
    """Items by query and rank; a prompt has 30 to 250 tokens."""
    rng = random.Random(seed)
    words = [f"w{number}" for number in range(3, VOCABULARY)]

    def text(count: int) -> str:
        return " ".join(rng.choices(words, k=count))

    # The default prompt and the end take eight tokens with the query's five.
    return [
        [Item(query, (Passage(text(rng.randint(22, 242))),)) for _ in range(depth)]
        for query in (text(5) for _ in range(queries))
    ]


def published(model: Any, tokens: Any, ranked: Sequence[Sequence[Item]], pad_to: str = "longest") -> int:
    """One call for each rank position over all queries; returns the number of answers."""
    found = 0
    for position in range(len(ranked[0])):
        prompts = [Prompt().fill(row[position]) for row in ranked]
        batch = tokens(prompts, padding=pad_to, truncation=True, max_length=512, return_tensors="pt")
        with torch.inference_mode():
            ids = model.generate(**batch, pad_token_id=0, **GREEDY)
        found += len(tokens.batch_decode(ids, skip_special_tokens=True))
    return found


def one_by_one(model: Any, tokens: Any, ranked: Sequence[Sequence[Item]]) -> int:
    return sum(published(model, tokens, [[item]]) for row in ranked for item in row)


class Timed:
    """A model whose encoder and calls of ``generate`` are timed."""

    def __init__(self, model: Any) -> None:
        self._model, self.seconds = model, 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def get_encoder(self) -> Callable[..., Any]:
        return lambda **inputs: self._timed(self._model.get_encoder(), inputs)

    def generate(self, **inputs: Any) -> Any:
        return self._timed(self._model.generate, inputs)

    def _timed(self, call: Callable[..., Any], inputs: dict[str, Any]) -> Any:
        begin = time.process_time()
        try:
            return call(**inputs)
        finally:
            self.seconds += time.process_time() - begin


def timed(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def on_cpu(figures: Figures, queries: int, depth: int, repeat: int) -> None:
    """Every part on the CPU."""
    model, tokens = t5("t5-small", torch.float32, "cpu"), tokenizer()
    ranked = lists(queries, depth)
    flat = [item for row in ranked for item in row]
    readers: dict[str, Seq2seqReader] = {}
    overheads: list[float] = []

    def ours(shapes: Shapes) -> None:
        watched = Timed(model)
        reader = readers[shapes.policy] = Seq2seqReader(watched, tokenizer=tokens, max_new_tokens=NEW, shapes=shapes)
        spent = timed(lambda: list(reader.read(flat)))
        if shapes.policy == "bucket":
            overheads.append(spent / watched.seconds - 1)

    sides: dict[str, Callable[[], object]] = {
        "published": lambda: published(model, tokens, ranked),
        "one by one": lambda: one_by_one(model, tokens, ranked),
        "bucket": lambda: ours(Shapes("bucket")),
        "fixed": lambda: ours(Shapes("fixed")),
    }
    published(model, tokens, ranked[:1])  # warm
    turns = [{name: timed(work) for name, work in sides.items()} for _ in range(repeat)]
    seconds = {name: median([turn[name] for turn in turns]) for name in sides}
    for name, spent in seconds.items():
        share = f", padding {readers[name].totals.padding_share:.0%} of the prompts' tokens" if name in readers else ""
        print(f"{name:12} {spent:6.2f} s CPU  {seconds['published'] / spent:5.2f} × published{share}")
    written = readers["bucket"].totals.output_tokens / len(flat)
    print(f"{len(flat)} answers of {written:.1f} tokens in the mean, at most {NEW}")
    peer = seconds["published"]
    faster = figures.ratio("bucket, CPU s, against the published procedure", seconds["bucket"], peer, FASTER)
    print(f"bucket is {faster.ratio:.2f} × published {faster.verdict}")
    figures.ratio("fixed, CPU s, against the published procedure", seconds["fixed"], peer)
    overhead = figures.bound("overhead over bare encoder and generate, %", 100 * median(overheads), OVERHEAD)
    print(f"overhead over bare encoder and generate {overhead.ours:.1f} % {overhead.verdict}")

    candidate = lists(queries, depth, seed=1)
    kept = depth - round(depth * 0.2)
    changed = [
        [*row[:kept], *(Item(row[0].query, other.documents) for other in new[kept:])]
        for row, new in zip(ranked, candidate, strict=True)
    ]
    both = [*flat, *(item for row in changed for item in row)]
    twice = timed(lambda: published(model, tokens, ranked)) + timed(lambda: published(model, tokens, changed))
    with tempfile.TemporaryDirectory() as folder:
        cache = ReadingCache(Path(folder) / "readings.sqlite")
        reader = CachedReader(
            Seq2seqReader(model, tokenizer=tokens, max_new_tokens=NEW, shapes=Shapes("bucket")), cache
        )
        first = timed(lambda: list(reader.read(both)))
        calls = reader.counters.calls
        again = timed(lambda: list(reader.read(both)))
        more = reader.counters.calls - calls
        cache.close()
    print(f"two runs that share 80 %: {len(both)} items, {calls} read; published {twice:.2f} s, ours {first:.2f} s CPU")
    shared = figures.ratio("two runs that share 80 %, CPU s, against the published procedure", first, twice, SHARED)
    print(f"with sharing {shared.ratio:.2f} × published {shared.verdict}")
    print(f"again: {again:.3f} s CPU")
    repeated = figures.bound("reader calls on a repeat", more, 0)
    print(f"reader calls on the repeat: {more} {repeated.verdict}")


def on_gpu(figures: Figures, queries: int, depth: int, tiny: bool) -> None:
    """Each model and level: seconds a query, tokens a second, peak memory above the loaded model."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu" and not tiny:
        sys.exit("--gpu: there is no CUDA device here")
    where = torch.cuda.get_device_name() if device == "cuda" else "without a CUDA device"
    print(where, "torch", torch.__version__, "transformers", transformers.__version__)
    failed = 0
    for name, level, reader, items in gpu_cases(tokenizer(), lists(queries, depth), device, tiny):
        list(reader.read(items[:1]))  # kernels are chosen, memory is pooled
        loaded = memory(device)
        before = reader.totals.input_tokens
        begin = time.perf_counter()
        readings = list(reader.read(items))
        if device == "cuda":
            torch.cuda.synchronize()
        spent = time.perf_counter() - begin
        wrong = [reading for _, reading in readings if not reading.answered]
        failed += len(wrong)
        rate = (reader.totals.input_tokens - before) / spent
        shapes = f"{reader.shapes.policy}, {reader.shapes.rows} rows"
        line = f"{name:11} {level:14} {spent / queries:8.4f} s a query {rate:10,.0f} tok/s"
        figures.bound(f"{name}, {level}, {shapes}: s a query", spent / queries)
        if device == "cuda":
            peak = (torch.cuda.max_memory_allocated() - loaded) / 2**20
            line += f" {peak:9,.0f} MiB"
            figures.bound(f"{name}, {level}, {shapes}: peak memory above the model, MiB", peak)
        print(f"{line}  ({shapes})")
        if wrong:
            print(f"    {len(wrong)} ERRORS, such as: {wrong[0].detail}")
    figures.bound("items that could not be read", failed, 0)


def memory(device: str) -> int:
    """Bytes in use on the device, from where its peak counts from now on."""
    if device == "cpu":
        return 0
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    return torch.cuda.memory_allocated()


def gpu_cases(
    tokens: Any, ranked: Sequence[Sequence[Item]], device: str, tiny: bool
) -> Iterator[tuple[str, str, Any, list[Item]]]:
    dtype = torch.bfloat16 if device == "cuda" else torch.float32  # bfloat16 takes a CPU minutes
    alone = [item for row in ranked for item in row]
    whole = [Item(row[0].query, tuple(item.documents[0] for item in row)) for row in ranked]
    long = 260 * len(ranked[0])
    for size in ("t5-tiny",) if tiny else ("t5-small", "t5-base"):
        model = t5(size, dtype, device)
        for rows in (8, 64):
            settings: dict[str, Any] = {"tokenizer": tokens, "max_new_tokens": NEW, "shapes": Shapes(rows=rows)}
            yield size, "document", Seq2seqReader(model, **settings), alone
            yield size, "fusion", FidReader(model, **settings), whole
            yield size, "concatenation", Seq2seqReader(model, max_input_tokens=long, **settings), whole
        del model
    size = "causal-tiny" if tiny else "causal-1b"
    model = causal(size, dtype, device)
    for rows in (8, 64):
        settings = {"tokenizer": tokens, "max_new_tokens": NEW, "shapes": Shapes(rows=rows)}
        yield size, "document", CausalReader(model, **settings), alone
        yield size, "concatenation", CausalReader(model, max_input_tokens=long, **settings), whole


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=20)
    parser.add_argument("--depth", type=int, default=10)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--tiny", action="store_true", help="with --gpu: tiny models, wherever they run")
    json_option(parser)
    options = parser.parse_args()
    if options.tiny and not options.gpu:
        parser.error("--tiny goes with --gpu")
    torch.set_num_threads(options.threads)
    figures = Figures(options.json)
    if options.gpu:
        on_gpu(figures, options.queries, options.depth, options.tiny)
    else:
        on_cpu(figures, options.queries, options.depth, options.repeat)
    return figures.status


if __name__ == "__main__":
    sys.exit(main())
