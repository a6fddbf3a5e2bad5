"""Readers whose model runs in this process, on small models of random weights."""

from __future__ import annotations

import copy
import random

import pytest
import torch
from reader_models import bart, items, llama, t5, text, texts, tokenizer
from support import testdata
from transformers import CLIPConfig
from transformers.modeling_outputs import BaseModelOutput

from pytest_retrieval_eval.errors import SettingsError
from pytest_retrieval_eval.readers.absent import AbsentReaderError
from pytest_retrieval_eval.readers.models.fid import FidReader
from pytest_retrieval_eval.readers.models.plan import Shapes
from pytest_retrieval_eval.readers.models.transformers_reader import CausalReader, Seq2seqReader
from pytest_retrieval_eval.readers.reading import Item, Passage, identity_digest

pytestmark = pytest.mark.model
NEW = 10
GREEDY = {"do_sample": False, "num_beams": 1, "max_new_tokens": NEW}


def seq2seq(dtype="float32", cls=Seq2seqReader, model=None, **settings):
    settings = {"max_new_tokens": NEW, **settings}
    return cls(model or t5(dtype), tokenizer=tokenizer(), **settings)


def fid(dtype="float32", **settings):
    return seq2seq(dtype, FidReader, **settings)


def causal(dtype="float32", template=None, model=None, pad=True, **settings):
    settings = {"max_new_tokens": NEW, **settings}
    return CausalReader(
        model or llama(dtype), tokenizer=tokenizer(pad=pad, seq2seq=False, template=template), **settings
    )


KINDS = pytest.mark.parametrize("make", [seq2seq, fid, causal], ids=["seq2seq", "fid", "causal"])


# --- the same texts as generate gives ------------------------------------------------------------------


def encoded(asked, prompt):
    """Ids and mask of the prompts of one-document items, padded on the right by the tokenizer itself."""
    tokens = tokenizer()
    tokens.padding_side = "right"
    return tokens([prompt.fill(item) for item in asked], padding=True, return_tensors="pt")


def decoded(rows):
    return [tokenizer().decode(row, skip_special_tokens=True).strip() for row in rows]


def fused(asked, model):
    """Encoder states and mask of items with several documents, padded passage by passage: queries × (n · length)."""
    reader = seq2seq()
    alone = [Item(item.query, (passage,)) for item in asked for passage in item.documents]
    batch = encoded(alone, reader.prompt)
    count = len(asked[0].documents)
    length = batch["input_ids"].shape[1]
    with torch.no_grad():
        states = model.encoder(**batch).last_hidden_state.view(len(asked), count * length, -1)
    return states, batch["attention_mask"].view(len(asked), count * length), batch["input_ids"], count


class TestEquivalences:
    """Fusion in the decoder on the stock model is what it is said to be."""

    asked = items(6, documents=4, most=30)

    def ours(self):
        return texts(fid(), self.asked)

    def test_a_greedy_loop_by_hand(self):
        states, mask, _, _ = fused(self.asked, t5())
        ids = torch.zeros(len(self.asked), 1, dtype=torch.long)
        ended = torch.zeros(len(self.asked), dtype=torch.bool)
        for _ in range(NEW):
            with torch.no_grad():
                logits = t5()(
                    encoder_outputs=BaseModelOutput(last_hidden_state=states),
                    attention_mask=mask,
                    decoder_input_ids=ids,
                    use_cache=False,
                ).logits
            best = logits[:, -1].argmax(-1).masked_fill(ended, 0)
            ended |= best == 1
            ids = torch.cat([ids, best[:, None]], 1)
        ours = self.ours()
        assert ours == decoded(ids)
        assert len(set(ours)) == len(ours)

    def test_an_encoder_that_splits_its_input(self):
        class Split(torch.nn.Module):
            main_input_name = "input_ids"

            def __init__(self, encoder, count):
                super().__init__()
                self.encoder, self.count = encoder, count

            def forward(self, input_ids, attention_mask, **_):
                rows = len(input_ids)
                found = self.encoder(
                    input_ids=input_ids.view(rows * self.count, -1),
                    attention_mask=attention_mask.view(rows * self.count, -1),
                )
                return BaseModelOutput(last_hidden_state=found.last_hidden_state.view(rows, input_ids.shape[1], -1))

        model = copy.deepcopy(t5())
        _, mask, ids, count = fused(self.asked, model)
        model.encoder = Split(model.encoder, count)
        rows = model.generate(input_ids=ids.view(len(self.asked), -1), attention_mask=mask, **GREEDY)
        assert self.ours() == decoded(rows)

    def test_plain_generate_for_one_passage(self):
        one = [Item(item.query, item.documents[:1]) for item in self.asked]
        plain = decoded(t5().generate(**encoded(one, seq2seq().prompt), **GREEDY))
        assert texts(fid(), one) == plain
        assert texts(seq2seq(), one) == plain

    def test_a_static_cache(self):
        states, mask, _, _ = fused(self.asked, t5())
        rows = t5().generate(
            encoder_outputs=BaseModelOutput(last_hidden_state=states),
            attention_mask=mask,
            cache_implementation="static",
            disable_compile=True,
            **GREEDY,
        )
        assert self.ours() == decoded(rows)

    def test_a_batch_and_one_by_one(self):
        alone = [texts(fid(shapes=Shapes("dynamic", rows=1)), [item])[0] for item in self.asked]
        assert self.ours() == alone

    def test_states_of_a_document_serve_both_levels(self):
        alone = [Item(item.query, (passage,)) for item in self.asked for passage in item.documents]
        closed = [Item(item.query, ()) for item in self.asked]
        reader = fid()
        together = texts(reader, [*alone, *self.asked, *closed])
        assert reader.encoded == len(alone) + len(closed)
        assert together == [*texts(fid(), alone), *self.ours(), *texts(fid(), closed)]
        small = fid(held_tokens=300)
        assert texts(small, [*alone, *self.asked, *closed]) == together
        assert small.encoded == reader.encoded

    def test_more_states_than_may_be_held_are_encoded_again(self):
        first, second = self.asked[:2]
        crossed = [first, second, Item(first.query, first.documents[:2])]
        small = fid(held_tokens=1)
        assert texts(small, crossed) == texts(fid(), crossed)
        assert small.encoded == 10


SAID = {
    "plain": {},
    "min": {"min_new_tokens": 6},
    "suppressed": {"suppress_tokens": list(range(20, 200))},
    "at the beginning": {"begin_suppress_tokens": list(range(20, 200))},
    "forced": {"forced_bos_token_id": 30, "forced_eos_token_id": 40},
    "not as before": {"repetition_penalty": 3.0},
    "not as in the prompt": {"encoder_no_repeat_ngram_size": 1},
}


def ends_often(model):
    """A copy that ends a text at one of a fifth of all words."""
    made = copy.deepcopy(model)
    made.generation_config.eos_token_id = [1, *range(330, 415)]
    return made


@pytest.mark.parametrize("shapes", [Shapes(), Shapes("bucket"), Shapes("dynamic")], ids=lambda shapes: shapes.policy)
@pytest.mark.parametrize("said", SAID)
def test_encoder_and_decoder_apart_say_what_generate_says(said, shapes):
    asked = items(12, most=60)
    model = ends_often(t5())
    plain = model.generate(**encoded(asked, seq2seq().prompt), **GREEDY, **SAID[said])
    found = dict(seq2seq(model=model, generation=SAID[said], shapes=shapes).read(asked))
    assert [found[index].text for index in range(12)] == decoded(plain)
    assert len({reading.output_tokens for reading in found.values()}) > (1 if said == "forced" else 3)
    if said != "plain":
        assert [reading.text for reading in found.values()] != texts(seq2seq(model=model, shapes=shapes), asked)


def test_a_model_that_counts_its_positions():
    asked = items(12, most=60)
    plain = decoded(bart().generate(**encoded(asked, seq2seq().prompt), **GREEDY))
    assert len(set(plain)) == 12
    for shapes in (Shapes(), Shapes("bucket")):
        assert texts(seq2seq(model=bart(), shapes=shapes), asked) == plain


def test_the_decoder_runs_in_fewer_batches_than_the_encoder_and_equal_prompts_are_encoded_once():
    asked = items(30, most=90)
    model, calls = copy.deepcopy(t5()), []
    generate = model.generate
    model.generate = lambda **inputs: calls.append(len(inputs["input_ids"])) or generate(**inputs)
    reader = seq2seq(model=model, shapes=Shapes("bucket", step=32))
    again = [Item(item.query, item.documents, repetition=1) for item in asked]
    found = texts(reader, [*asked, *again])
    assert found[:30] == found[30:]
    assert reader.encoded == 30
    assert sum(calls) == 60
    assert len(calls) == 1 < reader.totals.batches - len(calls)
    assert reader.identity["decoder"] == {"coarser": 4}


def test_causal_texts_are_those_of_generate():
    asked = items(8, most=40)
    reader = causal()
    tokens = tokenizer(seq2seq=False)
    for item, ours in zip(asked, texts(reader, asked), strict=True):
        ids = tokens(reader.prompt.fill(item), return_tensors="pt")["input_ids"]
        row = llama().generate(input_ids=ids, attention_mask=torch.ones_like(ids), pad_token_id=0, **GREEDY)[0]
        assert ours == tokens.decode(row[ids.shape[1] :], skip_special_tokens=True).strip()


# --- the same texts in any company ------------------------------------------------------------------------


@KINDS
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_fixed_shapes_give_an_item_one_text_in_any_company(make, dtype):
    asked = items(24, documents=1 if make is not fid else 2, most=60)
    whole = texts(make(dtype), asked)
    assert len(set(whole)) > 20
    order = random.Random(1).sample(range(24), 24)
    assert texts(make(dtype), [asked[index] for index in order]) == [whole[index] for index in order]
    some = order[:7]
    assert texts(make(dtype), [asked[index] for index in some]) == [whole[index] for index in some]
    assert texts(make(dtype), asked[3:4]) == whole[3:4]


def test_dynamic_padding_in_bfloat16_does_not():
    asked = items(32, most=120)
    shapes = Shapes("dynamic", rows=32)
    whole = texts(seq2seq("bfloat16", shapes=shapes), asked)
    alone = [texts(seq2seq("bfloat16", shapes=shapes), [item])[0] for item in asked]
    assert whole != alone
    assert seq2seq(shapes=shapes).identity is None


def test_buckets_pad_by_the_item():
    asked = items(24, most=60)
    assert texts(seq2seq(shapes=Shapes("bucket")), asked) == texts(seq2seq(), asked)


# --- traps ------------------------------------------------------------------------------------------------


def test_encoder_states_without_their_mask_give_other_texts_and_no_error():
    """Why the mask is always passed."""
    states, mask, _, _ = fused(TestEquivalences.asked, t5())

    def rows(**inputs):
        return decoded(t5().generate(encoder_outputs=BaseModelOutput(last_hidden_state=states), **inputs, **GREEDY))

    assert rows(attention_mask=mask) == TestEquivalences().ours()
    assert rows() != rows(attention_mask=mask)


def test_padding_a_causal_model_on_the_right_gives_other_texts():
    """Why rows are padded on the left, whatever the tokenizer says."""
    asked = items(12, most=40)
    tokens = tokenizer(seq2seq=False)
    tokens.padding_side = "right"
    batch = tokens([causal().prompt.fill(item) for item in asked], padding=True, return_tensors="pt")
    rows = llama().generate(**batch, **GREEDY)[:, batch["input_ids"].shape[1] :]
    wrong = [tokens.decode(row, skip_special_tokens=True).strip() for row in rows]
    right = texts(CausalReader(llama(), tokenizer=tokens, max_new_tokens=NEW), asked)
    assert sum(a != b for a, b in zip(wrong, right, strict=True)) > 6
    assert right == texts(causal(), asked)


@KINDS
def test_a_shipped_generation_config_may_sample_and_search_and_is_not_followed(make):
    asked = items(6, most=30)
    greedy = texts(make(), asked)
    model = copy.deepcopy(llama() if make is causal else t5())
    for name, value in {"do_sample": True, "num_beams": 3, "temperature": 2.0, "top_k": 50, "max_length": 3}.items():
        setattr(model.generation_config, name, value)
    assert texts(make(model=model), asked) == greedy


def test_a_tokenizer_without_a_token_that_pads():
    asked = items(6, most=30)
    model = copy.deepcopy(llama())
    model.generation_config.pad_token_id = None
    assert texts(causal(model=model, pad=False), asked) == texts(causal(), asked)


def test_a_row_that_only_fills_a_shape_ends_with_its_original():
    """A row of padding could go on to the largest number of new tokens, and the whole batch with it."""
    steps = []
    model = copy.deepcopy(t5())
    forward = model.decoder.forward
    model.decoder.forward = lambda *args, **kwargs: steps.append(1) or forward(*args, **kwargs)
    (asked,) = items(1, most=12)
    third = texts(seq2seq(), [asked])[0].split()[2]
    model.generation_config.eos_token_id = [1, tokenizer().convert_tokens_to_ids(third)]
    ((_, reading),) = seq2seq(model=model, max_new_tokens=40).read([asked])
    assert (reading.status, reading.output_tokens) == ("ok", 3)
    assert len(steps) == 3


# --- what a reading says ------------------------------------------------------------------------------------


def test_status_counts_and_truncation():
    rng = random.Random(3)
    long = Item("w1 w2", (Passage(text(rng, 200, 200)),))
    short = Item("w1 w2", (Passage("w3"),))
    bad = Item(text(rng, 100, 100), (Passage("w3"),))
    for make in (seq2seq, fid):
        reader = make(max_input_tokens=50, max_new_tokens=4)
        found = dict(reader.read([long, short, bad]))
        assert (found[0].truncated, found[0].input_tokens) == (True, 50)
        assert (found[1].truncated, found[1].input_tokens) == (False, 8)
        assert (found[2].status, found[2].input_tokens) == ("error", None)
        assert found[2].detail == "without any text of its documents the prompt has 105 tokens; at most 50 fit"
        assert {found[0].status, found[1].status} <= {"ok", "empty", "length"}
        assert all(found[at].output_tokens == 4 for at in (0, 1) if found[at].status == "length")
        assert reader.totals.items == 3
        assert reader.totals.truncated_share == pytest.approx(1 / 3)
        assert 0 < reader.totals.padding_share < 1


def test_an_answer_that_is_cut_off_says_so_and_is_the_beginning_of_the_whole():
    asked = items(12, most=30)
    whole = dict(seq2seq(max_new_tokens=20).read(asked))
    cut = dict(seq2seq(max_new_tokens=3).read(asked))
    assert {reading.status for reading in cut.values()} >= {"length"}
    for index, reading in cut.items():
        assert whole[index].text.startswith(reading.text)
        assert reading.output_tokens <= 3


@KINDS
def test_an_answer_ends_before_the_first_stop(make):
    asked = items(8, most=30)
    plain = texts(make(), asked)
    stop = plain[0].split()[2]
    stopped = dict(make(stop=[stop]).read(asked))
    assert stopped[0].status == "ok"
    assert stopped[0].output_tokens < NEW
    for index, line in enumerate(plain):
        assert stopped[index].text == line.partition(stop)[0].strip()


def test_closed_book_and_documents_side_by_side_in_one_prompt():
    seen = []
    reader = seq2seq()
    plain = reader._build
    reader._build = lambda item, shown: seen.append(plain(item, shown)) or seen[-1]
    texts(reader, [Item("w1", ()), Item("w1", (Passage("w2", "w3"), Passage("w4")))])
    assert seen == ["question: w1", "question: w1 title: w3 context: w2 context: w4"]


# --- chat ---------------------------------------------------------------------------------------------------

CHAT = (
    "<s>{% for message in messages %}{{ message.role }} : {{ message.content }} </s> {% endfor %}"
    "{% if add_generation_prompt %}assistant :{% endif %}"
)
DATED = "{{ strftime_now('%d %b %Y') }} {{ date_string }} " + CHAT


def test_a_chat_template_is_used_where_there_is_one():
    asked = items(6, most=30)
    chat = texts(causal(template=CHAT), asked)
    assert chat != texts(causal(), asked)
    assert chat != texts(causal(template=CHAT, system="w7 w8"), asked)
    assert texts(causal(template=CHAT, chat=False), asked) == texts(causal(), asked)
    by_hand = "<s>user : {prompt} </s> assistant :"
    ids = tokenizer(seq2seq=False)(by_hand.format(prompt=causal().prompt.fill(asked[0])), add_special_tokens=False)
    row = llama().generate(input_ids=torch.tensor([ids["input_ids"]]), pad_token_id=0, **GREEDY)[0]
    assert chat[0] == tokenizer().decode(row[len(ids["input_ids"]) :], skip_special_tokens=True).strip()


def test_a_template_that_asks_for_today_is_told_one_date(monkeypatch):
    reader = causal(template=DATED, date="w9")
    texts(reader, items(1))
    assert reader._build(Item("w1", ()), None).startswith("w9 w9 <s>user")


def test_chat_that_cannot_be():
    with pytest.raises(SettingsError, match="has no chat template"):
        texts(causal(chat=True), items(1))
    with pytest.raises(SettingsError, match="chat is off"):
        causal(chat=False, system="w1")


# --- memory ---------------------------------------------------------------------------------------------------


def greedy_memory(model, most, stage="generate"):
    """A copy of a model that has memory for so many rows."""
    made = copy.deepcopy(model)
    inner = made.encoder if stage == "encoder" else made
    name = "forward" if stage == "encoder" else "generate"
    call = getattr(inner, name)

    def limited(*args, **kwargs):
        rows = len(kwargs["encoder_outputs"].last_hidden_state if "encoder_outputs" in kwargs else kwargs["input_ids"])
        if rows > most:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return call(*args, **kwargs)

    setattr(inner, name, limited)
    return made


@pytest.mark.parametrize(
    ("make", "stage"), [(seq2seq, "generate"), (fid, "generate"), (fid, "encoder"), (causal, "generate")]
)
def test_memory_that_runs_out_above_three_rows(make, stage):
    asked = items(9, documents=2, most=20)
    model = greedy_memory(llama() if make is causal else t5(), 3, stage)
    reader = make(model=model)
    before = identity_digest(reader.identity)
    found = texts(reader, asked)
    assert found == texts(make(shapes=Shapes(rows=2)), asked)
    assert reader.shapes == Shapes(rows=2)
    assert (
        identity_digest(reader.identity) == identity_digest(make(model=model, shapes=Shapes(rows=2)).identity) != before
    )
    assert reader.notes[0].startswith("out of memory at 8 rows of ")


def test_an_item_for_which_there_is_no_memory_at_all_is_an_error():
    asked = items(1, documents=2, most=30)
    for stage in ("generate", "encoder"):
        found = dict(fid(model=greedy_memory(t5(), 0, stage), shapes=Shapes(rows=2)).read(asked))
        assert {reading.status for reading in found.values()} == {"error"}
        assert "out of memory with this item alone" in found[0].detail


@KINDS
def test_an_interruption_loses_no_batch_that_was_done(make):
    model = copy.deepcopy(llama() if make is causal else t5())
    generate, calls = model.generate, []

    def interrupted(**inputs):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return generate(**inputs)

    model.generate = interrupted
    got = []
    with pytest.raises(KeyboardInterrupt):
        for index, _ in make(model=model).read(items(40, most=10)):
            got.append(index)
    assert len(got) == 16


def test_the_bar_counts_tokens_where_it_is_asked_for(capsys):
    asked = items(12, most=30)
    texts(seq2seq(progress=True), asked)
    shown = capsys.readouterr().err
    assert "reading: " in shown
    assert "tok/s" in shown
    texts(seq2seq(progress=False), asked)
    texts(seq2seq(), asked)  # no terminal
    assert capsys.readouterr().err == ""


# --- from a folder ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("t5")
    t5().save_pretrained(place)
    tokenizer().save_pretrained(place)
    return place


def test_a_folder_reads_like_the_model_that_was_saved(folder, capfd):
    asked = items(6, most=30)
    for cls in (Seq2seqReader, FidReader):
        reader = cls(folder, device="cpu", max_new_tokens=NEW)
        assert texts(reader, asked) == texts(seq2seq(cls=cls), asked)
        reader.close()
        assert texts(reader, asked[:1]) == texts(seq2seq(cls=cls), asked[:1])
    assert capfd.readouterr().err == ""


def test_the_dtype_is_pinned_whatever_the_file_says(folder, tmp_path):
    t5("bfloat16").save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    reader = Seq2seqReader(tmp_path, device="cpu")
    assert reader.identity["dtype"] == "float32"
    assert reader._load().dtype == "float32"
    asked = items(12, most=60)
    half = Seq2seqReader(folder, device="cpu", dtype="bfloat16", max_new_tokens=NEW)
    assert half.identity["dtype"] == "bfloat16"
    assert texts(half, asked) == texts(seq2seq("bfloat16"), asked) != texts(seq2seq(), asked)


def test_a_model_that_is_not_here(tmp_path):
    for model, message in (
        (tmp_path / "nothing", "is not here: there is no such folder"),
        (tmp_path, "holds no model: there is no config.json in it"),
        ("nobody/nothing", "is neither a folder nor to be had from the hub"),
    ):
        with pytest.raises(AbsentReaderError, match=message):
            list(Seq2seqReader(model, device="cpu").read(items(1)))


def test_a_device_that_is_not_here(folder):
    missing = "cuda" if not torch.cuda.is_available() else "mps"
    with pytest.raises(AbsentReaderError, match=f"is to run on {missing}, and this machine has no"):
        list(Seq2seqReader(folder, device=missing).read(items(1)))


def test_a_model_of_another_kind_is_told_which_kind_reads_it(tmp_path):
    for make, cls, wanted in (
        (t5, CausalReader, r"as kind causal: it is an encoder-decoder model \(model_type t5\); set kind: transformers"),
        # Its decoder alone can be loaded, with answers that mean nothing.
        (bart, CausalReader, r"\(model_type bart\); set kind: transformers \(or fid\)"),
        (
            llama,
            Seq2seqReader,
            r"as kind transformers: it is no encoder-decoder .*model_type llama\); set kind: causal",
        ),
        (llama, FidReader, r"as kind fid: .* set kind: causal"),
    ):
        place = tmp_path / make.__name__
        make().save_pretrained(place)
        tokenizer().save_pretrained(place)
        for reader in (cls(place, device="cpu"), cls(make(), tokenizer=tokenizer())):
            with pytest.raises(SettingsError, match=wanted):
                list(reader.read(items(1)))


@pytest.mark.parametrize(
    ("cls", "wanted"), [(CausalReader, "cannot be loaded as"), (Seq2seqReader, "no kind of reader")]
)
def test_a_model_that_is_for_no_kind(tmp_path, cls, wanted):
    CLIPConfig().save_pretrained(tmp_path)
    with pytest.raises(SettingsError, match=wanted):
        list(cls(tmp_path, device="cpu").read(items(1)))


def test_the_positions_of_a_model_are_counted():
    with pytest.raises(SettingsError, match=r"the model has 2304 positions, and .* ask for 2310"):
        list(causal(max_input_tokens=2300).read(items(1)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_new_tokens": 0}, "max_new_tokens is 0"),
        ({"stop": [""]}, "stop holds ''"),
        ({"generation": {"num_beams": 4}}, "generation: num_beams is not to be set here: readers are greedy"),
        ({"attention": "fast"}, "attention 'fast'"),
        ({"dtype": "float31"}, "did you mean float32"),
        ({"device": "cude"}, "did you mean cuda"),
        ({"device": "cpu"}, "a model object keeps its dtype and device"),
    ],
)
def test_settings_that_cannot_be(settings, message):
    with pytest.raises(SettingsError, match=message):
        Seq2seqReader(t5(), tokenizer=tokenizer(), **settings)


def test_the_small_t5_of_the_test_data():
    folder = testdata("models/tiny-t5")
    asked = [Item("who is the mayor?", (Passage("the mayor is ann"),)), Item("who is the mayor?", ())]
    assert texts(Seq2seqReader(folder, device="cpu"), asked) == texts(FidReader(folder, device="cpu"), asked)


# --- identity -----------------------------------------------------------------------------------------------------


def test_everything_that_can_change_a_text_is_in_the_identity():
    base = identity_digest(seq2seq().identity)
    other = {
        "fid": fid(),
        "dtype": seq2seq("bfloat16"),
        "prompt": seq2seq(prompt="query: {query} {documents}"),
        "document": seq2seq(prompt={"untitled": "text: {text}"}),
        "max_input_tokens": seq2seq(max_input_tokens=100),
        "max_new_tokens": seq2seq(max_new_tokens=11),
        "stop": seq2seq(stop="x"),
        "generation": seq2seq(generation={"repetition_penalty": 1.2}),
        "rows": seq2seq(shapes=Shapes(rows=4)),
        "step": seq2seq(shapes=Shapes(step=64)),
        "bucket": seq2seq(shapes=Shapes("bucket")),
        "tokenizer": Seq2seqReader(t5(), tokenizer=tokenizer(seq2seq=False), max_new_tokens=NEW),
    }
    weights = copy.deepcopy(t5())
    with torch.no_grad():
        weights.shared.weight[7, 7] += 1e-3
    other["weights"] = seq2seq(model=weights)
    shipped = copy.deepcopy(t5())
    shipped.generation_config.repetition_penalty = 1.2
    other["generation config"] = seq2seq(model=shipped)
    digests = {name: identity_digest(reader.identity) for name, reader in other.items()}
    assert base not in digests.values()
    assert len(set(digests.values())) == len(digests)
    assert identity_digest(seq2seq(model=copy.deepcopy(t5()), progress=False).identity) == base
    assert identity_digest(fid(held_tokens=5).identity) == digests["fid"]


def test_template_and_settings_of_a_chat_are_in_the_identity():
    readers = [
        causal(),
        causal(template=CHAT),
        causal(template=DATED),
        causal(template=CHAT, chat=False),
        causal(template=CHAT, system="w1"),
        causal(template=CHAT, date="w1"),
    ]
    assert len({identity_digest(reader.identity) for reader in readers}) == len(readers)
