# SPDX-License-Identifier: Apache-2.0
"""A hook of mkdocs: puts the JSON Schemas into the site, and their table into `schemas.md`.

They are made when the site is, so that no copy of them is kept.
"""

from __future__ import annotations

import json

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from kernelwright.cli.schema import SCHEMAS, schema_of

PAGE = "schemas.md"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """A file of each schema."""
    for name in SCHEMAS:
        text = json.dumps(schema_of(name), indent=2, ensure_ascii=False) + "\n"
        files.append(File.generated(config, f"schemas/{name}.json", content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """The table below the page's own words."""
    if page.file.src_uri != PAGE:
        return markdown
    rows = [f"| [{name}](schemas/{name}.json) | `{row.source}` |" for name, row in SCHEMAS.items()]
    return "\n".join([markdown, "", "| schema | of |", "|---|---|", *rows, ""])
