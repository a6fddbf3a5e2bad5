"""Small models of random weights, built in the test, with a tokenizer of words; and texts to read.

Random weights are unsure of everything, so that the least change of a computation shows in the texts.
"""

from __future__ import annotations

import functools
import random
import re

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

from pytest_retrieval_eval.readers.reading import Item, Passage

WORDS = [f"w{number}" for number in range(400)]
SPECIAL = ["<pad>", "</s>", "<unk>", "<s>"]
MARKS = ["question", "title", "context", "Question", "Answer", "Passage", ":", "user", "assistant", "system", "\n"]


def tokenizer(*, pad: bool = True, seq2seq: bool = True, template: str | None = None) -> PreTrainedTokenizerFast:
    vocabulary = {word: number for number, word in enumerate([*SPECIAL, *MARKS, *WORDS])}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split("\n", "isolated"), pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation()]
    )
    form = "$A </s>" if seq2seq else "<s> $A"
    backend.post_processor = processors.TemplateProcessing(single=form, special_tokens=[("</s>", 1), ("<s>", 3)])
    made = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        eos_token="</s>",
        unk_token="<unk>",
        bos_token="<s>",
        **({"pad_token": "<pad>"} if pad else {}),
    )
    made.chat_template = template
    return made


@functools.cache
def t5(dtype: str = "float32") -> T5ForConditionalGeneration:
    """Its cross attention is turned up: as initialised it says nearly the same of every input."""
    torch.manual_seed(0)
    config = T5Config(
        vocab_size=len(SPECIAL) + len(MARKS) + len(WORDS),
        d_model=64,
        d_kv=16,
        d_ff=128,
        num_layers=2,
        num_heads=4,
        dropout_rate=0.0,
        decoder_start_token_id=0,
        pad_token_id=0,
        eos_token_id=1,
        tie_word_embeddings=False,
    )
    model = T5ForConditionalGeneration(config).eval()
    with torch.no_grad():
        torch.nn.init.normal_(model.lm_head.weight)
        for name, weights in model.named_parameters():
            if re.search(r"EncDecAttention\.[qvo]\.", name):
                weights.mul_(8)
    return model.to(getattr(torch, dtype))


@functools.cache
def bart() -> BartForConditionalGeneration:
    """Positions are learned and absolute, in the encoder as in the decoder."""
    torch.manual_seed(0)
    config = BartConfig(
        vocab_size=len(SPECIAL) + len(MARKS) + len(WORDS),
        d_model=64,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=128,
        decoder_ffn_dim=128,
        max_position_embeddings=512,
        init_std=0.3,
        decoder_start_token_id=3,
        forced_eos_token_id=None,
        pad_token_id=0,
        bos_token_id=3,
        eos_token_id=1,
    )
    model = BartForConditionalGeneration(config).eval()
    with torch.no_grad():
        torch.nn.init.normal_(model.model.shared.weight)
        for name, weights in model.named_parameters():
            if re.search(r"decoder.*encoder_attn\.[vo]", name):
                weights.mul_(8)
    return model


@functools.cache
def llama(dtype: str = "float32") -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(SPECIAL) + len(MARKS) + len(WORDS),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=2304,
        initializer_range=0.2,
        bos_token_id=3,
        eos_token_id=1,
    )
    return LlamaForCausalLM(config).eval().to(getattr(torch, dtype))


def text(rng: random.Random, least: int, most: int) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randint(least, most)))


def items(count: int, *, documents: int = 1, least: int = 5, most: int = 90, seed: int = 0) -> list[Item]:
    rng = random.Random(seed)
    return [
        Item(
            text(rng, 3, 8),
            tuple(Passage(text(rng, least, most), text(rng, 0, 3)) for _ in range(documents)),
        )
        for _ in range(count)
    ]


def texts(reader, asked) -> list[str]:
    found = dict(reader.read(asked))
    assert sorted(found) == list(range(len(asked)))
    return [found[index].text for index in range(len(asked))]
