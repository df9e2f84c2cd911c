"""A few tools that always answer the same: an adder, a weather table, a search in notes."""

from __future__ import annotations

from typing import Any


def _tool(name: str, description: str, **properties: str) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {key: {"type": kind} for key, kind in properties.items()},
        "required": list(properties),
        "additionalProperties": False,
    }
    return {"name": name, "description": description, "input_schema": schema}


TOOLS = [
    _tool("add", "Adds two whole numbers.", a="integer", b="integer"),
    _tool("weather", "Tells the weather of a city, from a fixed table.", city="string"),
    _tool("search_notes", "Searches the notes; gives the passages that match.", query="string"),
]

_WEATHER = {"Oslo": "4 °C, sleet", "Quito": "17 °C, clouds", "Kyoto": "11 °C, clear"}


def run_tool(name: str, arguments: dict[str, Any] | None) -> dict[str, Any]:
    """A result as `tool-results` takes it. A tool that cannot answer says so; the model may mend its call."""
    given = arguments or {}
    try:
        return {"content": _run(name, given)}
    except (KeyError, TypeError, ValueError) as error:
        return {"content": f"{name} failed: {error!r}", "is_error": True}


def _run(name: str, given: dict[str, Any]) -> str:
    if name == "add":
        return str(int(given["a"]) + int(given["b"]))
    if name == "weather":
        city = str(given["city"])
        return f"{city}: {_WEATHER.get(city, 'no reading today')}"
    if name == "search_notes":
        passages = [
            f"Note {number}: about {given['query']}, paragraph {number} of the travel diary."
            for number in range(1, 13)
        ]
        return "\n".join(passages)
    raise KeyError(name)
