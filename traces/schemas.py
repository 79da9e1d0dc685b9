# SPDX-License-Identifier: Apache-2.0
"""JSON Schemas (draft 2020-12), made of the types that documents and events are written as.

It knows types and no document. Within a schema version fields are added, so no schema refuses a
field that it does not know; one that is missing or of another type it refuses.
"""

from __future__ import annotations

from typing import Any, Literal, cast, get_type_hints

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, TypeAdapter, with_config
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import CoreSchema
from pydantic_core.core_schema import DataclassField, ModelField, TypedDictField

# Pydantic reads that of `typing` from Python 3.12 on.
from typing_extensions import TypedDict

DIALECT = "https://json-schema.org/draft/2020-12/schema"
JsonSchema = dict[str, Any]


@with_config(ConfigDict(use_attribute_docstrings=True))
class Document(TypedDict):
    """A JSON object that the program writes; the string under a field is its meaning."""


class Dumped:
    """In `Annotated[dict[str, Any], Dumped(X)]`: an object with the fields of X, as X is dumped.

    X is a pydantic model, a dataclass, a NamedTuple that is written with its names, or a Document;
    of several, all their fields together.
    """

    def __init__(
        self, *parts: type, without: tuple[str, ...] = (), has_defaults: bool = True
    ) -> None:
        self._parts = tuple(_with_names(part) for part in parts)
        self._without = without
        self._has_defaults = has_defaults
        """Whether fields are written that have their default."""

    def __get_pydantic_json_schema__(
        self, _: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchema:
        properties: dict[str, Any] = {}
        required: list[str] = []
        for part in self._parts:
            schema = handler.resolve_ref_schema(handler(TypeAdapter(part).core_schema))
            properties |= schema.get("properties", {})
            needed = schema.get("required", ())
            required += needed if self._has_defaults else _without_defaults(part)
        kept = {name: each for name, each in properties.items() if name not in self._without}
        return {
            "type": "object",
            "properties": kept,
            "required": [name for name in required if name in kept],
        }


def _without_defaults(model: type) -> list[str]:
    fields = model.model_fields if issubclass(model, BaseModel) else {}
    return [name for name, field in fields.items() if field.is_required()]


class _Written(GenerateJsonSchema):
    """Of what is dumped whole: a field with a default is there, too."""

    def field_is_required(
        self,
        field: ModelField | DataclassField | TypedDictField,
        total: bool,
    ) -> bool:
        is_of_document = field["type"] == "typed-dict-field"
        return super().field_is_required(field, total) if is_of_document else True


def _with_names(part: type) -> type:
    """A NamedTuple as an object; pydantic takes it for an array."""
    if not issubclass(part, tuple):
        return part
    hints = get_type_hints(part, include_extras=True)
    return cast(type, TypedDict(part.__name__, hints))  # type: ignore[operator]


class FormsOf:
    """In an annotation: what `known` reads, or else any object with the text `tag`."""

    def __init__(self, known: TypeAdapter[Any], tag: str) -> None:
        self._known = known
        self._tag = tag

    def __get_pydantic_json_schema__(
        self, _: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchema:
        tag = {self._tag: {"type": "string"}}
        other = {"type": "object", "properties": tag, "required": [self._tag]}
        return {"anyOf": [handler(self._known.core_schema), other]}


def make_schema(
    name: str, shape: Any, *, version: int, title: str, mode: Literal["written", "read"] = "written"
) -> JsonSchema:
    """The JSON Schema of a document.

    Args:
        shape: the type; `schema_version` need not be one of its fields.
        version: what its `schema_version` is; 0: it carries none.
        mode: `read` leaves out of what is required what has a default: earlier versions wrote less.
    """
    adapter: TypeAdapter[Any] = TypeAdapter(shape)
    if mode == "written":
        made = adapter.json_schema(mode="serialization", schema_generator=_Written)
    else:
        made = adapter.json_schema(mode="validation")
    schema = cast(JsonSchema, _open(made))
    if version:
        mark = {"schema_version": {"type": "integer", "const": version}}
        schema["properties"] = mark | schema["properties"] | mark
        schema["required"] = list(dict.fromkeys(["schema_version", *schema["required"]]))
    identity = f"urn:kernelwright:{name}:{version}" if version else f"urn:kernelwright:{name}"
    return {"$schema": DIALECT, "$id": identity, **schema, "title": title}


def _open(schema: Any) -> Any:
    """The schema without what would refuse fields of later versions; pydantic's titles of fields,
    which say their names again, go as well."""
    if isinstance(schema, list):
        return [_open(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {
        key: _open_all(each) if key in ("properties", "$defs") else _open(each)
        for key, each in schema.items()
        if not (key == "additionalProperties" and each is False)
    }
    if isinstance(kept.get("title"), str) and "properties" not in kept and "enum" not in kept:
        del kept["title"]
    return kept


def _open_all(named: dict[str, Any]) -> dict[str, Any]:
    # Their keys are names of fields or of types, and no words of JSON Schema.
    return {name: _open(each) for name, each in named.items()}
