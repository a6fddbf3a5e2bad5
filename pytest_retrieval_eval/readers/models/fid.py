"""Fusion in the decoder: passages are encoded one by one, and the decoder reads all of them at once.

Izacard & Grave, "Leveraging passage retrieval with generative models for open domain question answering" (EACL 2021),
on a stock encoder-decoder model such as transformers' T5: the encoder's states of an item's passages are laid one
behind the other, without their padding, and given to ``generate`` with the mask that belongs to them. A passage is
encoded once for all items of a query: its states serve the item that has it alone (eRAG) and the one that has all (end
to end).
"""

from __future__ import annotations

from pytest_retrieval_eval.readers.models.encoder_decoder import EncoderDecoderReader
from pytest_retrieval_eval.readers.reading import Item


class FidReader(EncoderDecoderReader):
    """Fusion in the decoder, with an encoder-decoder model whose encoder states may be concatenated, such as T5.

    An item with one document is read as a plain encoder-decoder reader would, one without documents closed book.
    ``max_input_tokens`` holds for each passage. The other settings are those of
    :class:`~pytest_retrieval_eval.readers.models.encoder_decoder.EncoderDecoderReader`.
    """

    kind = "fid"

    def _parts(self, item: Item) -> list[Item]:
        return [Item(item.query, (passage,)) for passage in item.documents] or [Item(item.query, ())]

    def _kin(self, item: Item) -> object:
        return item.query
