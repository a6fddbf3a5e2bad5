"""The page of fixtures, options, ini values and hooks says what the code says."""

from __future__ import annotations

import options_page


def test_the_page_is_made_from_the_code():
    assert options_page.PAGE.read_text(encoding="utf-8") == options_page.page()


def test_every_link_is_for_something_on_the_page():
    first_cells = {line.split("`")[1].split()[0] for line in options_page.page().splitlines() if line.startswith("| `")}
    assert set(options_page.MORE) <= first_cells
