# SPDX-License-Identifier: Apache-2.0
"""Runs the graph of a workflow, with a cursor beside the store, and takes it up again.

The cursor is langgraph's checkpointer in a file of its own. It only saves time: every step answers
from the ledger what was done before, so that a graph which begins at START comes to the same point.
A cursor that is missing, damaged, of an ended run or not of these events is therefore thrown away.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph.state import StateGraph
from langsmith import tracing_context

from ...traces.faults import storage_fault, storage_faults
from ..stop import Halt
from .loop import Loop

STEPS_BOUND = 2**31 - 1
"""langgraph's bound on steps; rounds and budgets end a campaign, never this."""

_NOT_KEPT = "the cursor of the workflow could not be kept"

STOPPED_BY = "stopped_by"
"""The key of a graph's state that says why it ended."""


def run(
    graph: StateGraph[Any, Loop, Any, Any], loop: Loop, start: dict[str, Any], part: str = ""
) -> str:
    """Runs the campaign on from where its events stand; says what stopped it.

    Args:
        part: Of a workflow that is made of several graphs, run one after the other.
    """
    version = loop.progress.started.workflow_version
    config: RunnableConfig = {
        "configurable": {"thread_id": f"{loop.ledger.campaign} {version} {part}".rstrip()},
        "recursion_limit": STEPS_BOUND,
        "max_concurrency": max(1, loop.slots),
    }
    # Traces of a campaign must not leave this machine, whatever the environment asks for.
    with tracing_context(enabled=False), _saver(loop.cursor) as saver:
        goes_on = saver is not None and _goes_on(saver, config, loop)
        compiled = graph.compile(checkpointer=saver)
        try:
            end = compiled.invoke(
                None if goes_on else start,
                config,
                context=loop,
                durability="sync" if saver else None,
            )
        except Halt as halt:
            return halt.by
        if saver is not None:
            saver.delete_thread(str(config["configurable"]["thread_id"]))
    return str(end[STOPPED_BY])


@contextmanager
def _saver(path: Path | None) -> Iterator[SqliteSaver | None]:
    if path is None:
        yield None
        return
    with storage_faults(_NOT_KEPT, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        if not _is_sound(path):
            _remove(path)
        connection = sqlite3.connect(path, check_same_thread=False)
    try:
        # What a dead machine loses here stands in the events.
        connection.execute("PRAGMA synchronous = OFF")
        saver = SqliteSaver(connection)
        saver.setup()
        yield saver
    except sqlite3.Error as error:
        raise storage_fault(_NOT_KEPT, path, error) from error
    finally:
        connection.close()


def _is_sound(path: Path) -> bool:
    try:
        connection = sqlite3.connect(path)
        try:
            return bool(connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok")
        finally:
            connection.close()
    except sqlite3.DatabaseError:
        return False


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _goes_on(saver: SqliteSaver, config: RunnableConfig, loop: Loop) -> bool:
    """Whether the cursor is one to go on from; a thread that is not is deleted."""
    try:
        found = saver.get_tuple(config)
    except (sqlite3.DatabaseError, ValueError, TypeError, KeyError):
        # Bytes that SQLite holds for sound and that nobody can read.
        found = None
    state = found.checkpoint["channel_values"] if found else {}
    if (
        state
        and STOPPED_BY not in state
        and _list_candidates(state) <= set(loop.progress.candidates)
    ):
        return True
    saver.delete_thread(str(config["configurable"]["thread_id"]))
    return False


def _list_candidates(state: dict[str, Any]) -> set[str]:
    """The candidates that a state names: ids are 64 characters long, and nothing else is."""
    flat = [v for value in state.values() for v in (value if isinstance(value, list) else [value])]
    return {value for value in flat if isinstance(value, str) and len(value) == 64}
