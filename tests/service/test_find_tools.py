"""Listed tools in a working-set session: found, shown by reading, promoted; and the measured misread (capacity spec 5)."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from ctxengine.engine.control import find
from ctxengine.engine.events import EventType
from ctxengine.engine.tail import TOOLS_TOKENS
from ctxengine.engine.tokens.counter import counter_for
from ctxengine.engine.trust.levels import Trust
from ctxengine.service.prove import replay_request
from ctxengine.service.revoke_tool import revoke_tool
from ctxengine.service.specs import PolicySpec, ReadingSpec, ToolSpec
from tests.cast import Call, Runtime, tool

pytestmark = pytest.mark.django_db

SCHEMA = '{"type":"object","properties":{"place":{"type":"string"}},"required":["place"]}'
TIDES = ToolSpec(
    name="mcp.tides",
    description="Tells the tide at a harbour. With heights.",
    input_schema_raw=SCHEMA,
    deferred=True,
    server="sea",
    serves=("harbour",),
)
NOTES = tool("notes", deferred=True, serves=("memory",))


def working(policy: PolicySpec | None = None, **fields: Any) -> Runtime:
    """A working-set session that lists two tools."""
    return Runtime(
        tools=fields.pop("tools", (tool("read"), TIDES, NOTES)),
        policy=policy,
        extra={"engine": "working_set"},
        **fields,
    )


def verdicts(player: Runtime) -> set[str]:
    """How the session's requests rebuild."""
    return {
        replay_request(actor=player.actor, request_id=row.id).verdict for row in player.requests
    }


def search(player: Runtime, query: str, name: str = "f1") -> dict[str, Any]:
    """Ask for tools; gives the answer."""
    player.assemble()
    taken = player.say("", Call(name, "find_tools", json.dumps({"query": query})))
    (call,) = taken.calls
    assert (call.action, taken.next) == ("answered", "redo")
    found: dict[str, Any] = json.loads(call.result or "")
    return found


def test_find_tools_stands_beside_the_list_in_working_set_sessions_alone() -> None:
    assert "find_tools" in working().opened.plan.tool_names
    assert "find_tools" not in Runtime(tools=(tool("read"), TIDES)).opened.plan.tool_names
    assert "find_tools" not in working(tools=(tool("read"),)).opened.plan.tool_names


def test_servers_stand_by_name_over_the_tools_last_seen_there() -> None:
    player = working()
    player.ask("Hello")
    body = player.assemble().body.decode()
    assert "server sea:\\n- mcp.tides(place): Tells the tide at a harbour." in body
    assert body.index("- notes()") < body.index("server sea:")


def test_a_found_tool_comes_with_its_whole_schema_and_is_callable_at_once() -> None:
    player = working()
    player.ask("When is high water?")
    found = search(player, "tide at a harbour")
    assert [entry["name"] for entry in found["tools"]] == ["mcp.tides"]
    assert found["tools"][0]["input_schema"] == json.loads(SCHEMA)
    player.assemble()
    inner = json.dumps({"name": "mcp.tides", "arguments": {"place": "Oslo"}})
    taken = player.say("", Call("c1", found["call_with"], inner))
    assert (taken.calls[0].name, taken.calls[0].action) == ("mcp.tides", "execute")
    assert verdicts(player) == {"identical"}


def test_a_search_that_finds_more_than_it_gives_names_the_others_and_they_can_be_asked_for() -> (
    None
):
    lamps = tuple(
        ToolSpec(
            name=f"lamp.t{number}", description="Lights.", input_schema_raw=SCHEMA, deferred=True
        )
        for number in range(9)
    )
    player = working(tools=(tool("read"), *lamps, TIDES))
    player.ask("Light the lamps.")
    found = search(player, "lamp")
    assert [entry["name"] for entry in found["tools"]] == [f"lamp.t{number}" for number in range(6)]
    rest = [f"lamp.t{number}" for number in range(6, 9)]
    assert found["more"] == {"count": 3, "names": rest, "schemas_by": "find_tools"}
    (told,) = player.events(EventType.TOOLS_FOUND)
    assert len(told.payload["names"]) == 6
    further = search(player, rest[-1], "f2")
    assert [entry["name"] for entry in further["tools"]] == [rest[-1]]
    assert "more" not in further
    assert verdicts(player) == {"identical"}


def test_a_server_is_found_by_its_name_and_what_it_wrote_stays_its_own() -> None:
    player = working()
    player.ask("When is high water?")
    assert [entry["name"] for entry in search(player, "sea")["tools"]] == ["mcp.tides"]
    assert player.events(EventType.TOOL_RESULT)[-1].trust == Trust.EXTERNAL_UNTRUSTED


def test_what_a_server_wrote_of_its_tool_stays_a_servers_text() -> None:
    player = working()
    player.ask("When is high water?")
    search(player, "tide")
    (result,) = player.events(EventType.TOOL_RESULT)
    assert result.trust == Trust.EXTERNAL_UNTRUSTED
    assert 'source=\\"find_tools\\"' in player.assemble().body.decode()
    search(player, "notes", "f2")
    assert player.events(EventType.TOOL_RESULT)[-1].trust == Trust.TRUSTED_CONFIGURATION


def test_revoked_tools_are_not_found_and_an_empty_search_says_so() -> None:
    player = working()
    revoke_tool(actor=player.actor, session_id=player.session, name="mcp.tides", note="no")
    player.ask("When is high water?")
    assert search(player, "tide")["tools"] == []
    player.assemble()
    taken = player.say("", Call("f2", "find_tools", "{}"))
    assert json.loads(taken.calls[0].result or "")["error"] == "no_query"


def test_finding_changes_no_byte_of_the_prefix_unless_promotion_asks_for_it() -> None:
    player = working()
    player.ask("When is high water?")
    before = player.assemble().prefix_sha256
    player.say("", Call("f1", "find_tools", '{"query":"tide"}'))
    assert player.assemble().prefix_sha256 == before
    assert player.events(EventType.EPOCH_ROTATED) == []


def test_promotion_moves_what_was_found_into_the_definitions_and_counts_the_break() -> None:
    player = working(PolicySpec(promotion="definitions"))
    player.ask("When is high water?")
    search(player, "tide")
    (turned,) = player.events(EventType.EPOCH_ROTATED)
    assert turned.payload["reasons"] == ["tool_promoted"]
    assert turned.payload["recached_tokens"] > 0
    body = json.loads(player.assemble().body)
    assert any(entry["name"] == "mcp_tides" for entry in body["tools"])
    taken = player.say("", Call("c1", "mcp_tides", '{"place":"Oslo"}'))
    assert (taken.calls[0].name, taken.calls[0].action) == ("mcp.tides", "execute")
    assert verdicts(player) == {"identical"}


def test_a_surface_by_reading_lists_what_serves_something_and_shows_it_to_turns_that_need_it() -> (
    None
):
    served = tool("charts", serves=("harbour",), input_schema_raw=SCHEMA)
    player = working(PolicySpec(surface="reading"), tools=(tool("read"), served))
    assert player.opened.plan.deferred_tool_names == ["charts"]
    player.ask("Where is the harbour?")
    first = player.assemble()
    assert "[tools] Listed tools" in first.body.decode()
    player.say("In the north.")
    player.ask("Write a poem about a lamp in a file.")
    second = player.assemble()
    assert second.prefix_sha256 == first.prefix_sha256
    assert "[tools] Listed tools" not in second.body.decode()
    assert verdicts(player) == {"identical"}


def test_an_uncertain_reading_shows_the_orientation_floor_and_never_everything() -> None:
    tools = (
        tool("read"),
        tool("charts", serves=("harbour",)),
        tool("glob", serves=("filesystem",)),
    )
    player = working(PolicySpec(surface="reading"), tools=tools)
    player.ask("Hm, that one?", reading=ReadingSpec(act="unclear", uncertain=True))
    body = player.assemble().body.decode()
    shown = body[body.index("[tools] Listed") :]
    assert "glob" in shown and "charts" not in shown


def test_the_tools_that_serve_a_reading_best_are_shown_and_the_others_are_said_to_stay_listed() -> (
    None
):
    wide = json.dumps({"type": "object", "description": "Says a thing of the sea. " * 60})
    names = ("aaa", "harbour_lamps", "zzz")
    tools = tuple(tool(name, serves=("harbour",), input_schema_raw=wide) for name in names)
    player = working(PolicySpec(surface="reading"), tools=(tool("read"), *tools))
    player.ask("Which lamps does the harbour have?")
    body = player.assemble().body.decode()
    block = body[body.index("[tools] Listed tools") :].split("[intent]")[0]
    assert '\\"name\\":\\"harbour_lamps\\"' in block and '\\"name\\":\\"aaa\\"' not in block
    left = '\\"more\\":{\\"count\\":2,\\"names\\":[\\"aaa\\",\\"zzz\\"],\\"schemas_by\\":\\"find_tools\\"}'
    assert left in block
    assert player.assemble().body.decode() == body
    assert verdicts(player) == {"identical"}


def tools_block(body: str) -> str:
    """What a request says of listed tools behind its prefix."""
    return json.loads('"' + body[body.index("[tools] Listed tools") :].split("[intent]")[0] + '"')


@pytest.mark.parametrize("tokens", [0, 60, 150], ids=["none", "some", "most"])
def test_listed_tools_take_no_more_than_their_room_names_and_all(tokens: int) -> None:
    said = "Says a thing of the sea and of the land behind it. " * (tokens // 10)
    wide = json.dumps({"type": "object", "description": said})
    tools = tuple(
        tool(f"a_lamp_of_the_harbour_by_the_northern_sea_number_{n}", serves=("harbour",), input_schema_raw=wide)
        for n in range(40)
    )  # fmt: skip
    player = working(PolicySpec(surface="reading"), tools=(tool("read"), *tools))
    player.ask("Which lamps does the harbour have?")
    block = tools_block(player.assemble().body.decode())
    assert '"more":{"count":' in block
    assert counter_for(player.provider, player.model).text(block.partition("\n")[2]) <= TOOLS_TOKENS


def test_a_turn_that_is_shown_no_schema_is_not_told_that_it_is() -> None:
    wide = json.dumps({"type": "object", "description": "Says a thing of the sea. " * 400})
    lamps = tool("sea_lamps", serves=("harbour",), input_schema_raw=wide)
    player = working(PolicySpec(surface="reading"), tools=(tool("read"), lamps))
    for _ in range(2):
        player.ask("Which lamps does the harbour have?")
        body = player.assemble().body.decode()
        heading = tools_block(body).partition("\n")[0]
        assert heading.startswith("[tools] Listed tools that this turn may need, by name alone")
        assert "with their input schemas" not in heading
        player.say("Two.")
    assert verdicts(player) == {"identical"}


def test_the_words_of_listed_tools_are_worked_out_once_and_not_in_every_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[str] = []
    honest = find.terms_of
    monkeypatch.setattr(find, "terms_of", lambda text: (read.append(text), honest(text))[1])
    about = f"Tells of the harbour {uuid.uuid4().hex}."
    plain = tool("chart", serves=("harbour",))
    tools = tuple(
        plain.model_copy(update={"name": f"chart{n}", "description": f"{about} Sheet {n}."})
        for n in range(30)
    )
    player = working(PolicySpec(surface="reading"), tools=(tool("read"), *tools))
    player.ask("Where is the harbour?")
    player.assemble()
    assert sum(about in text for text in read) == 30
    read.clear()
    player.say("", Call("c1", "read"))
    player.results(("c1", "In the north."))
    player.assemble()
    player.say("In the north.")
    player.ask("Which chart tells of the harbour wall?")
    find_answer = json.dumps({"query": "harbour"})
    player.assemble()
    player.say("", Call("c2", "find_tools", find_answer))
    player.assemble()
    assert read and not any(about in text for text in read)


def test_a_used_tool_that_the_reading_did_not_ask_for_is_the_measured_misread() -> None:
    tools = (tool("read"), tool("charts", serves=("harbour",)))
    player = working(PolicySpec(surface="reading"), tools=tools)
    player.ask("Write a poem into a file.")
    player.assemble()
    player.say("", Call("c1", "tool.call", '{"name":"charts","arguments":{}}'))
    (missed,) = player.events(EventType.READING_MISSED)
    assert missed.payload["names"] == ["charts"]
