from __future__ import annotations

import errno
import gzip
import json
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_retrieval_eval.collection.formats import files
from pytest_retrieval_eval.errors import DataError, SettingsError

ENDINGS = ["", ".gz", ".zst", ".bz2", ".xz"]
COMPRESSED = ENDINGS[1:]
# JSON objects as tuples of (key, value), in which a key may stand twice, and texts that look like keys.
_WORDS = st.sampled_from(["a", "b", "", "a:", '":', '" :', '\\":', "é"])
_VALUES = st.recursive(
    st.one_of(_WORDS, st.integers(), st.none(), st.booleans()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.lists(st.tuples(_WORDS, inner), max_size=4).map(tuple)),
    max_leaves=8,
)
OBJECTS = st.lists(st.tuples(_WORDS, _VALUES), max_size=4).map(tuple)


def written(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("ending", ENDINGS)
class TestCompression:
    def test_round_trip(self, tmp_path, ending):
        path = tmp_path / f"a.txt{ending}"
        data = os.urandom(1000) * 3000 + "hé\r\n".encode()
        with files.write_atomically(path) as handle:
            handle.write(data)
        assert files.read_bytes(path) == data
        with files.open_bytes(path) as handle:
            assert handle.read(5) + handle.read() == data

    def test_equal_content_is_written_as_equal_bytes(self, tmp_path, ending):
        paths = [tmp_path / f"{name}.txt{ending}" for name in "ab"]
        for path in paths:
            with files.write_atomically(path) as handle:
                handle.write(b"content")
        assert paths[0].read_bytes() == paths[1].read_bytes()

    def test_members_one_after_another(self, tmp_path, ending):
        path = tmp_path / f"a.txt{ending}"
        with files.write_atomically(path) as handle:
            handle.write(b"one\n")
        path.write_bytes(path.read_bytes() * 2)
        assert [text for _, text in files.lines(path)] == ["one", "one"]


@pytest.mark.parametrize("ending", COMPRESSED)
class TestDamage:
    @pytest.fixture
    def raw(self, tmp_path, ending):
        path = tmp_path / f"whole{ending}"
        with files.write_atomically(path) as handle:
            handle.write(os.urandom(100_000))
        return path.read_bytes()

    @pytest.mark.parametrize("keep", [0.001, 0.5, 0.99])
    def test_a_cut_file_never_passes_for_a_short_one(self, tmp_path, ending, raw, keep):
        path = written(tmp_path, f"a{ending}", raw[: int(len(raw) * keep)])
        with pytest.raises(DataError, match="cut off"):
            files.read_bytes(path)

    def test_one_byte_missing(self, tmp_path, ending, raw):
        with pytest.raises(DataError, match="cut off"):
            files.read_bytes(written(tmp_path, f"a{ending}", raw[:-1]))

    def test_no_bytes(self, tmp_path, ending):
        with pytest.raises(DataError, match="no bytes"):
            files.open_bytes(written(tmp_path, f"a{ending}", b""))

    def test_another_kind_of_file(self, tmp_path, ending):
        with pytest.raises(DataError, match="cannot be decompressed"):
            files.read_bytes(written(tmp_path, f"a{ending}", b"1 0 a 1\n"))

    def test_changed_content(self, tmp_path, ending, raw):
        middle = len(raw) // 2
        changed = raw[:middle] + bytes([raw[middle] ^ 255]) + raw[middle + 1 :]
        with pytest.raises(DataError):
            files.digest(written(tmp_path, f"a{ending}", changed))


def test_zstd_without_its_package_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(DataError, match=r"pip install 'pytest-retrieval-eval\[zstd\]'"):
        files.open_bytes(written(tmp_path, "a.zst", b"x"))
    with pytest.raises(DataError, match="zstandard"), files.write_atomically(tmp_path / "b.zst"):
        pass
    assert os.listdir(tmp_path) == ["a.zst"]


class TestOpening:
    def test_missing_with_a_near_name(self, tmp_path):
        written(tmp_path, "queries.jsonl", b"")
        with pytest.raises(DataError, match=r"no such file; did you mean .*queries\.jsonl\?"):
            files.open_bytes(tmp_path / "querys.jsonl")

    def test_missing_folder(self, tmp_path):
        with pytest.raises(DataError, match=r"there is no such file$"):
            files.open_bytes(tmp_path / "no" / "x.gz")

    def test_a_folder(self, tmp_path):
        with pytest.raises(DataError, match="is a folder; expected a file"):
            files.open_bytes(tmp_path)

    @pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="permissions bind no superuser")
    def test_no_permission(self, tmp_path):
        path = written(tmp_path, "a", b"x")
        path.chmod(0)
        with pytest.raises(DataError, match="Permission denied"):
            files.open_bytes(path)

    def test_a_name_that_cannot_be(self):
        with pytest.raises(DataError, match="cannot read"):
            files.open_bytes("a\0b")


class TestLines:
    def test_line_ends_and_byte_order_mark(self, tmp_path):
        path = written(tmp_path, "a", b"\xef\xbb\xbfone\r\n\ntwo\rstays\x0c\xe2\x80\xa8\nthree")
        assert list(files.lines(path)) == [(1, "one"), (2, ""), (3, "two\rstays\x0c\u2028"), (4, "three")]

    @pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbf"])
    def test_empty(self, tmp_path, data):
        assert list(files.lines(written(tmp_path, "a", data))) == []

    def test_not_utf8(self, tmp_path):
        with pytest.raises(DataError, match=r"a:2: byte 0xe9 at position 3 is not UTF-8, in b'caf\\xe9'"):
            list(files.lines(written(tmp_path, "a", b"one\ncaf\xe9\n")))

    def test_utf16_is_recognised(self, tmp_path):
        with pytest.raises(DataError, match="looks like UTF-16"):
            list(files.lines(written(tmp_path, "a", "one\n".encode("utf-16"))))

    def test_decode_names_the_line(self):
        with pytest.raises(DataError, match="a:3: byte 0xff at position 1 is not UTF-8"):
            files.decode(b"x\ny\nz\xff\nw", "a")

    @settings(deadline=None)  # a busy machine is no failure
    @given(st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]))))
    def test_what_was_written_is_read(self, tmp_path_factory, texts):
        path = tmp_path_factory.mktemp("lines") / "a.txt"
        with files.write_atomically(path) as handle:
            handle.write("".join(text + "\n" for text in texts).encode())
        expected = [text.removeprefix("\ufeff") if i == 0 else text for i, text in enumerate(texts)]
        found = [text for _, text in files.lines(path)]
        assert found == expected


class TestJson:
    def test_blank_lines_are_skipped_and_counted(self, tmp_path):
        path = written(tmp_path, "a", b'{"a": 1}\n  \r\n\n{"b": [1.5]}\r\n')
        assert list(files.json_lines(path)) == [(1, {"a": 1}), (4, {"b": [1.5]})]

    @pytest.mark.parametrize(
        ("line", "said"),
        [
            ('{"a": 1', "malformed JSON .*'{\"a\": 1'; expected one JSON object"),
            ("[1]", "expected one JSON object in each line, found '\\[1\\]'"),
            ('{"a": 1} {"b": 2}', "malformed JSON"),
            ('{"a": 1, "a": 2}', "the key 'a' stands twice"),
            ("[" * 100_000, "nested too deeply"),
            ('{"a": ' + "9" * 5000 + "}", "expected one JSON object"),
            ("'a'", "malformed JSON"),
        ],
    )
    def test_what_is_wrong_is_said_with_its_line(self, tmp_path, line, said):
        path = written(tmp_path, "a.jsonl", b'{"fine": 1}\n' + line.encode())
        with pytest.raises(DataError, match=rf"a\.jsonl:2: .*{said}" if said else "a.jsonl:2"):
            list(files.json_lines(path))

    @given(pairs=OBJECTS, space=st.sampled_from(["", " ", "\t\n "]))
    def test_a_repeated_key_is_found_wherever_it_stands(self, pairs, space):
        def text(value):
            if isinstance(value, tuple):
                inside = (f"{json.dumps(key)}{space}:{space}{text(each)}" for key, each in value)
                return "{" + ",".join(inside) + "}"
            return "[" + ",".join(map(text, value)) + "]" if isinstance(value, list) else json.dumps(value)

        def many(value):
            """Of many objects the keys are counted; empty ones have none."""
            return f"[{'{}, ' * 20}{text(value)}]"

        def plain(value):
            if isinstance(value, tuple):
                return {key: plain(each) for key, each in value}
            return [plain(each) for each in value] if isinstance(value, list) else value

        def repeats(value):
            if isinstance(value, tuple):
                names = [key for key, _ in value]
                return len(set(names)) < len(names) or any(repeats(each) for _, each in value)
            return isinstance(value, list) and any(map(repeats, value))

        if repeats(pairs):
            with pytest.raises(DataError, match="stands twice in one JSON object"):
                files.json_value(text(pairs), "a.jsonl:1")
            with pytest.raises(DataError, match="stands twice in one JSON object"):
                files.json_value(many(pairs), "a.jsonl:1")
        else:
            assert files.json_value(text(pairs), "a.jsonl:1") == plain(pairs)
            assert files.json_value(many(pairs), "a.jsonl:1") == [*[{}] * 20, plain(pairs)]

    def test_a_document_names_the_line_of_its_fault(self, tmp_path):
        with pytest.raises(DataError, match=r"a\.json:2: malformed JSON"):
            files.json_document(written(tmp_path, "a.json", b'{\n"a": x}\n'))

    @pytest.mark.parametrize("value", [True, None, 1.0, [], {}, "", b"a", "\ud800"])
    def test_no_id(self, value):
        with pytest.raises(DataError, match=r"^here: "):
            files.json_id(value, "here")

    @pytest.mark.parametrize("value", [True, None, "1", [], float("nan"), 1j, pytest.param(10**400, id="huge")])
    def test_no_number(self, value):
        with pytest.raises(DataError, match=r"^here: the score "):
            files.json_number(value, "here", "score")

    def test_infinity_is_a_number(self):
        assert files.json_number(float("inf"), "here", "score") == float("inf")

    def test_ids_that_become_one(self):
        ids = files.JsonIds(normalize=True)
        assert ids("Café", "1") == ids("Café", "2") == "Café"
        with pytest.raises(DataError, match="become one"):
            ids("Cafe\u0301", "3")


class TestDigest:
    def test_neither_compression_nor_system_changes_it(self, tmp_path):
        digests = {files.digest(written(tmp_path, "a", data)) for data in (b"a\nb\n", b"\xef\xbb\xbfa\r\nb\r\n")}
        digests.add(files.digest(written(tmp_path, "a.gz", gzip.compress(b"a\r\nb\n"))))
        assert len(digests) == 1
        assert next(iter(digests)).startswith("sha256:")

    def test_a_lone_cr_is_content(self, tmp_path):
        one, two = (files.digest(written(tmp_path, "a", data)) for data in (b"a\rb", b"a\nb"))
        assert one != two

    def test_crlf_across_the_block_boundary(self, tmp_path, monkeypatch):
        data = b"a\r\nbb\r\r\nc\r"
        expected = files.digest(written(tmp_path, "a", data))
        for size in range(1, 6):
            monkeypatch.setattr(files, "_CHUNK", size)
            assert files.digest(tmp_path / "a") == expected


class TestWriting:
    def test_an_exception_leaves_the_old_file_and_nothing_else(self, tmp_path):
        path = written(tmp_path, "a.gz", b"old")
        with pytest.raises(KeyboardInterrupt), files.write_atomically(path) as handle:
            handle.write(b"new")
            raise KeyboardInterrupt
        assert path.read_bytes() == b"old"
        assert os.listdir(tmp_path) == ["a.gz"]

    def test_folders_are_made(self, tmp_path):
        with files.write_atomically(tmp_path / "x" / "y" / "a") as handle:
            handle.write(b"1")
        assert os.listdir(tmp_path / "x" / "y") == ["a"]

    def test_a_folder_is_no_target(self, tmp_path):
        with pytest.raises(DataError, match="is a folder"), files.write_atomically(tmp_path):
            pass

    def test_a_name_that_no_file_can_have(self):
        with pytest.raises(DataError, match="cannot write the file: embedded null"), files.write_atomically("a\0b"):
            pass

    def test_a_file_in_the_place_of_a_folder(self, tmp_path):
        written(tmp_path, "a", b"")
        with pytest.raises(DataError, match="cannot write"), files.write_atomically(tmp_path / "a" / "b"):
            pass

    @pytest.mark.skipif(os.name != "posix", reason="POSIX permissions and links")
    def test_permissions_and_links_stay(self, tmp_path):
        path, link = written(tmp_path, "a", b"old"), tmp_path / "link"
        path.chmod(0o640)
        link.symlink_to(path)
        with files.write_atomically(link) as handle:
            handle.write(b"new")
        assert link.is_symlink()
        assert path.read_bytes() == b"new"
        assert path.stat().st_mode & 0o777 == 0o640

    def test_a_long_name(self, tmp_path):
        path = tmp_path / ("n" * 250)
        with files.write_atomically(path) as handle:
            handle.write(b"1")
        assert path.read_bytes() == b"1"


def test_a_lock_that_cannot_be_had_is_a_sentence(tmp_path):
    lock, taken = tmp_path / "new" / "lock", "somebody has it"
    with files.locked(lock), pytest.raises(SettingsError, match=taken), files.locked(lock, taken=taken):
        pass
    with files.locked(lock, taken=taken):
        (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot lock the file"), files.locked(tmp_path / "file" / "lock"):
        pass


def test_a_full_disk_is_an_error_and_leaves_the_older_file(tmp_path):
    path = tmp_path / "run.txt"
    path.write_text("older")
    with pytest.raises(DataError, match=r"run\.txt: cannot write the file: No space left on device"):  # noqa: SIM117
        with files.write_atomically(path):
            raise OSError(errno.ENOSPC, "No space left on device")
    assert [place.name for place in tmp_path.iterdir()] == ["run.txt"]
    assert path.read_text() == "older"
    with pytest.raises(FileNotFoundError), files.write_atomically(path):
        open(tmp_path / "another")  # noqa: SIM115
