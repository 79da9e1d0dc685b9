"""The corpus is complete: each row of the catalogue stands once, with what shows it."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest
import rows

HERE = Path(__file__).parent


def names_in(name: str) -> set[str]:
    tree = ast.parse((HERE / name).read_text("utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_each_row_of_the_catalogue_stands_in_exactly_one_table():
    tables = Counter(id for table in rows.TABLES for id in dict.fromkeys(rows.ids(table)))
    assert set(rows.CATALOGUE) == set(tables)
    assert len(rows.CATALOGUE) == 82
    assert [id for id, count in tables.items() if count > 1] == []


def test_rows_of_host_code_are_rows_of_the_catalogue():
    if not (HERE / "host.toml").exists():
        pytest.skip("there are no rows of host code yet")
    assert set(rows.ids("host")) <= set(rows.CATALOGUE)


def test_the_tables_name_the_files_that_are_there():
    assert sorted(row.file for row in rows.native()) == sorted(
        path.name for path in (HERE / "native").iterdir()
    )
    assert sorted(row.file for row in rows.device()) == sorted(
        path.name for path in (HERE / "gpu").iterdir()
    )


def test_a_file_is_named_after_its_row():
    for row in [*rows.native(), *rows.device()]:
        letter, number = row.id[0], int(row.id[1:])
        assert row.file.startswith(f"{letter}{number:02}_"), row.file


@pytest.mark.parametrize(
    ("table", "module"),
    [("impossible", "test_impossible.py"), ("problems", "test_problem_rows.py")],
)
def test_each_row_without_a_candidate_names_the_test_that_shows_it(table: str, module: str):
    found = rows.shown(table)
    assert {row.test for row in found} <= names_in(module)
    assert all(row.why for row in found)


def test_each_hostile_file_says_what_it_does():
    for row in rows.native():
        assert row.source.startswith("// "), row.file
