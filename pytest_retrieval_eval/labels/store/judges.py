"""The judges of a folder of judgments: one folder for each identity, so that no grade is taken for another's."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_retrieval_eval.collection.formats.files import excerpt, json_document, utf8, write_atomically
from pytest_retrieval_eval.errors import DataError, SettingsError, did_you_mean
from pytest_retrieval_eval.labels.judging.judge import Judge, judge_digest
from pytest_retrieval_eval.labels.judging.replies import Scale
from pytest_retrieval_eval.readers.reading import identity_digest

FILE = "judge.json"
HUMAN = "human"
"""The folder of the labels of people, which is no judge's."""

_VERSION = 1


@dataclass(frozen=True, slots=True)
class KeptJudge:
    """A judge whose grades are kept: the name of its folder, the digest of its identity, the identity, its scale.

    ``floating`` is a sentence where the identity does not pin what it names, and that was allowed.
    """

    name: str
    digest: str
    identity: Mapping[str, object]
    scale: Scale
    floating: str = ""


def read_judges(folder: Path) -> dict[str, KeptJudge]:
    """The judges of a folder of judgments, by name."""
    places = sorted(place for place in folder.iterdir() if place.is_dir() and not place.name.startswith("."))
    return {place.name: _read(place) for place in places if place.name != HUMAN and _holds_rows(place)}


def _holds_rows(place: Path) -> bool:
    return (place / FILE).exists() or any(place.glob("*.jsonl"))


def _read(place: Path) -> KeptJudge:
    path = place / FILE
    if not path.exists():
        raise DataError(f"{place} has grades and no {FILE}: nobody can tell which judge gave them")
    row = json_document(path)
    identity, scale = (row.get("identity"), row.get("scale")) if isinstance(row, dict) else (None, None)
    if not isinstance(row, dict) or not isinstance(identity, dict) or not isinstance(scale, list) or len(scale) != 2:
        raise DataError(f"{path}: expected an object with the identity and the scale of a judge, not {excerpt(row)}")
    digest = identity_digest(identity)
    if row.get("digest") != digest:
        raise DataError(
            f"{path}: the identity has the digest {digest[:12]}…, and the file says {excerpt(row.get('digest'), 20)}: "
            "it was changed by hand, and the grades beside it are of another judge"
        )
    return KeptJudge(place.name, digest, identity, Scale(*scale), str(row.get("floating") or ""))


def keep_judge(
    folder: Path, judge: Judge, known: Mapping[str, KeptJudge], *, allow_floating: bool = False
) -> KeptJudge:
    """The judge of this folder with that identity; a new one gets a folder of its own."""
    digest = judge_digest(judge, allow_floating=allow_floating)
    for kept in known.values():
        if kept.digest == digest:
            return kept
    identity = dict(judge.identity or {})
    kept = KeptJudge(f"{_label(identity)}-{digest[:8]}", digest, identity, judge.scale, judge.floating)
    row = {
        "version": _VERSION,
        "digest": digest,
        "scale": [judge.scale.least, judge.scale.most],
        "floating": judge.floating,
        "identity": identity,
    }
    with write_atomically(folder / kept.name / FILE) as file:
        file.write(utf8(json.dumps(row, ensure_ascii=False, indent=2, sort_keys=True) + "\n"))
    return kept


def _label(identity: Mapping[str, object]) -> str:
    """A name for a folder, from what an identity calls itself.

    >>> _label({"kind": "server judge", "reader": {"model": "org/Judge-2024:8b"}}), _label({"kind": "vote"})
    ('judge-2024-8b', 'vote')
    """
    reader = identity.get("reader")
    inside = reader if isinstance(reader, Mapping) else {}
    name = str(inside.get("model") or inside.get("name") or identity.get("name") or identity.get("kind") or "judge")
    plain = re.sub(r"[^a-z0-9.]+", "-", name.rpartition("/")[2].lower()).strip("-.")
    return plain[:40].strip("-.") or "judge"


def chosen_judges(known: Mapping[str, KeptJudge], names: Sequence[str], place: Path) -> tuple[KeptJudge, ...]:
    """The judges of these names (or beginnings of digests), in this order; of none the only one that there is."""
    if not names:
        if len(known) > 1:
            raise SettingsError(
                f"{place} has the grades of {len(known)} judges ({', '.join(known)}), and a grade of one is none of "
                "another: say whose count (the ini value retrieval_judged_by, --judged-by)"
            )
        return tuple(known.values())
    found = []
    for name in names:
        fitting = [kept for kept in known.values() if name == kept.name or (name and kept.digest.startswith(name))]
        if len(fitting) != 1:
            raise SettingsError(f"{place} has no judge {name!r}; {did_you_mean(name, known)}")
        found.append(fitting[0])
    scales = {kept.scale for kept in found}
    if len(scales) > 1:
        shown = ", ".join(f"{kept.name}: {kept.scale}" for kept in found)
        raise SettingsError(f"{place}: the judges have different scales ({shown}): their grades are not to be mixed")
    return tuple({kept.name: kept for kept in found}.values())
