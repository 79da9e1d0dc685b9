# SPDX-License-Identifier: Apache-2.0
"""`schema`: JSON Schemas of all that is printed with `--json`, of what the viewer answers below
`/api`, and of the events that are stored.

The table names each document once; its schema is made of the type that the document is written as.
"""

from __future__ import annotations

import importlib
import json
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from ..errors import UnknownNameError
from . import common
from .completing import complete_schema

if TYPE_CHECKING:
    from ..traces.schemas import JsonSchema
    from .shapes import SchemasDocument

HERE, TRACES, PORTFOLIO = ".shapes", "..traces.shapes", "..portfolio.building"
VIEW = "..traces.view.shapes"
EVENT = "event"


class Published(NamedTuple):
    """A document that has a schema."""

    source: str
    """What prints it."""
    shape: str
    """The name of its type."""
    module: str = HERE


SCHEMAS = {
    "run": Published("run … --json", "RunDocument", TRACES),
    "run-plan": Published("run … --dry-run --json", "PlanDocument"),
    "eval": Published("eval … --json", "EvalDocument"),
    "list": Published("list --json", "ListDocument"),
    "show": Published("show ID --json", "ShowDocument"),
    "show-candidate": Published("show ID/CANDIDATE --json", "CandidateDocument", TRACES),
    "show-calls": Published("show ID --calls --json", "CallsDocument"),
    "show-call": Published("show ID --call N --json", "OneCallDocument"),
    "problems": Published("problems --json", "ProblemsDocument"),
    "problems-name": Published("problems NAME --json", "ProblemDocument"),
    "problems-check": Published("problems --check NAME --json", "AdmissionsDocument"),
    "problems-signature": Published("problems NAME --signature L --json", "SignatureDocument"),
    "suite": Published("suite … --json", "SuiteDocument"),
    "bench": Published("bench … --json", "BenchDocument", ".standings"),
    "portfolio": Published("portfolio … --json", "PortfolioDocument", PORTFOLIO),
    "audit": Published("audit … --json", "AuditDocument"),
    "ab": Published("ab … --json", "AbDocument"),
    "doctor": Published("doctor --json", "DoctorDocument"),
    "metrics-show": Published("metrics show --json", "MetricsShowDocument"),
    "metrics-derive": Published("metrics derive --json", "MetricsDeriveDocument"),
    "metrics-fit": Published("metrics fit --json", "MetricsFitDocument"),
    "space-replay": Published("space replay … --json", "SpaceReplayDocument"),
    "space-compare": Published("space compare … --json", "SpaceCompareDocument"),
    "bundle": Published("bundle … --json", "BundleDocument"),
    "archive": Published("archive … --json", "ArchiveDocument"),
    "delete": Published("delete … --json", "DeleteDocument"),
    "gc": Published("gc --json", "GcDocument"),
    "demo": Published("demo --models --json", "DemoDocument"),
    "reindex": Published("reindex --json", "ReindexDocument"),
    "config-show": Published("config show --json", "ConfigShowDocument"),
    "schema": Published("schema --json", "SchemasDocument"),
    "api-campaigns": Published("GET /api/campaigns", "CampaignsAnswer", VIEW),
    "api-campaign": Published("GET /api/c/ID", "CampaignAnswer", VIEW),
    "api-calls": Published("GET /api/c/ID/calls", "CallsAnswer", VIEW),
    "api-call": Published("GET /api/c/ID/calls/N", "WholeCallDocument", TRACES),
    "api-candidate": Published("GET /api/c/ID/CANDIDATE", "CandidateAnswer", VIEW),
    EVENT: Published("the store, bundles and the viewer's API", "Event", "..traces.events"),
}


def schema(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Of a document; without it all are listed.", autocompletion=complete_schema
        ),
    ] = None,
    as_json: common.JsonOption = False,
) -> None:
    """Print the JSON Schema of what a command prints with --json, of a viewer's answer, of events.

    Within a schema version fields are added, never renamed or retyped.
    """
    if name is not None:
        common.put(json.dumps(schema_of(name), indent=2, ensure_ascii=False))
    elif as_json:
        rows = [{"name": each, "source": row.source} for each, row in SCHEMAS.items()]
        document: SchemasDocument = {"schemas": rows}
        common.emit(document)
    else:
        width = max(map(len, SCHEMAS))
        for each, row in SCHEMAS.items():
            common.put(f"{each:{width}}  {row.source}")


def schema_of(name: str) -> JsonSchema:
    """The JSON Schema of that name.

    Raises:
        UnknownNameError: there is none.
    """
    from ..traces.schemas import make_schema

    if name not in SCHEMAS:
        raise UnknownNameError.for_name("schema", name, SCHEMAS)
    row = SCHEMAS[name]
    shape = getattr(importlib.import_module(row.module, __package__), row.shape)
    is_event = name == EVENT
    return make_schema(
        name,
        shape,
        version=0 if is_event else common.SCHEMA_VERSION,
        title=row.source,
        # What earlier versions stored lacks fields.
        mode="read" if is_event else "written",
    )
