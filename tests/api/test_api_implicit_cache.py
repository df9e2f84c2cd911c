"""Caches that nobody documents: predicted from what was seen of the model, judged by what its server reports.

The server of these tests keeps the bytes of requests it has seen and counts what the next one repeats of them: it knows nothing
of places, entries or rules.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from ctxengine.engine.capacity.profile import CacheBehaviour, metadata_profile
from ctxengine.ledger.models import CapacityRow, RequestRow, RunRow
from ctxengine.service.clock import utc_now
from ctxengine.service.probe.profiles import keep_profile, profile_of
from tests.api.door import WEATHER, Door

LOCAL = {"provider": "compatible", "name": "house-coder-7b", "window": 64_000}
INSTRUCTIONS = "Answer shortly, and say where a figure comes from. " * 60
LONG_TOOL = WEATHER | {"description": "Weather of a city, as its stations measured it. " * 60}
SHORTFALL = "context.cache.shortfall"


@dataclass
class PrefixServer:
    """Keeps what it read, and reports how much of the next request it had already, in tokens of four bytes."""

    kept: list[bytes] = field(default_factory=list)
    system_first: bool = False
    """Whether its template puts the system's text in front of the tools."""

    def usage(self, body: dict[str, Any]) -> tuple[int, int]:
        """What was cached of the prompt, and the whole of it."""
        text = self._as_read(body)
        cached = max((_common(text, old) for old in self.kept), default=0)
        self.kept.append(text)
        return cached // 4, len(text) // 4

    def forget(self) -> None:
        self.kept.clear()

    def _as_read(self, body: dict[str, Any]) -> bytes:
        tools, (system, *talk) = body.get("tools", []), body["messages"]
        parts = [system, tools, *talk] if self.system_first else [tools, system, *talk]
        return "\n".join(json.dumps(part) for part in parts).encode()


def _common(a: bytes, b: bytes) -> int:
    same = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), None)
    return min(len(a), len(b)) if same is None else same


@dataclass
class Talk:
    """One session on a local model, through the REST door."""

    door: Door
    server: PrefixServer = field(default_factory=PrefixServer)
    fields: dict[str, Any] = field(default_factory=dict)
    session: str = field(init=False)

    def __post_init__(self) -> None:
        agent = {"name": "local", "version": "1", "instructions": INSTRUCTIONS}
        given = {"model": LOCAL, "agent": agent, "tools": [LONG_TOOL]}
        self.session = self.door.open(**(given | self.fields))

    def turn(self, message: str, answer: str = "Four degrees.") -> Any:
        """A run of one step; the request as REST shows it."""
        run = self.door.run(self.session, message)
        return self.step(run, {"role": "assistant", "content": answer})

    def step(self, run: str, message: dict[str, Any], cached: int | None = None) -> Any:
        """One step of a run, with what the server reports of it."""
        built = self.door.assemble(run)
        read, total = self.server.usage(built["request"])
        usage = {
            "prompt_tokens": total,
            "completion_tokens": 9,
            "prompt_tokens_details": {"cached_tokens": read if cached is None else cached},
        }
        body = {"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}
        self.door.post(f"runs/{run}/responses", {"response": body}).ok()
        return self.shown(built)

    def shown(self, built: Any) -> Any:
        return self.door.get(f"requests/{built['request_id']}").ok()

    def shortfalls(self) -> list[Any]:
        return self.door.events(self.session, f"type={SHORTFALL}&")

    def all_prove(self) -> bool:
        page = self.door.get(f"sessions/{self.session}/requests").ok()
        return all(self.door.replays(request["id"]) for request in page["items"])

    def pause(self, seconds: float) -> None:
        """Let the session have been silent for so long."""
        for row in RequestRow.objects.filter(session_id=self.session):
            entries = [
                entry | {"used_at": entry["used_at"] - seconds} for entry in row.cache["entries"]
            ]
            RequestRow.objects.filter(tenant_id=row.tenant_id, id=row.id).update(
                created_at=row.created_at - timedelta(seconds=seconds),
                cache=row.cache | {"entries": entries},
            )


def seen(tenant: UUID, cache: CacheBehaviour, **model: Any) -> CapacityRow:
    """Keep a profile as a probe leaves it."""
    named = LOCAL | model
    profile = metadata_profile(
        provider=str(named["provider"]),
        model=str(named["name"]),
        declared_window=64_000,
        max_output=4_000,
    )
    return keep_profile(
        tenant_id=tenant, profile=profile.model_copy(update={"cache": cache}), source="probe"
    )


def called(name: str) -> dict[str, Any]:
    arguments = json.dumps({"city": "Oslo"})
    call = {"id": name, "type": "function", "function": {"name": "weather", "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


# --- what is predicted ------------------------------------------------------------------------------------------------


def test_reads_that_a_run_was_told_of_are_predicted_from_the_next_run_on(door: Door) -> None:
    talk = Talk(door)
    first = talk.turn("How warm is it?")
    assert (first["cache"]["predicted"]["why"], first["verdict"]["class"]) == (
        "no_cache",
        "unpredicted",
    )
    assert "by" not in first["cache"]["predicted"]
    told = talk.turn("And in Bergen?")
    assert told["usage"]["cache_read"] > 1_000
    for question in ("And in Tromso?", "And at night?"):
        known = talk.turn(question)
        predicted, verdict = known["cache"]["predicted"], known["verdict"]
        assert (predicted["why"], predicted["by"], predicted["write"]) == ("hit", "profile", 0)
        assert predicted["read"] > 1_000
        assert (verdict["class"], verdict["reported_read"] > 1_000) == ("agrees", True)
    assert talk.shortfalls() == []
    assert talk.all_prove()
    predictions = door.get("metrics").ok()["cache_predictions"]
    assert {line["class"]: line["requests"] for line in predictions["classes"]} == {
        "agrees": 2,
        "unpredicted": 2,
    }


def test_what_a_run_starts_with_holds_for_its_steps_whatever_is_learnt_meanwhile(
    door: Door, tenant: UUID
) -> None:
    talk = Talk(door)
    run = door.run(talk.session, "How warm is it?")
    talk.step(run, called("w1"))
    door.results(run, ("w1", "4 C"))
    talk.step(run, called("w2"))
    seen(tenant, CacheBehaviour.REPORTED)
    door.results(run, ("w2", "5 C"))
    last = talk.step(run, {"role": "assistant", "content": "Five."})
    assert last["usage"]["cache_read"] > 1_000
    assert last["cache"]["predicted"]["why"] == "no_cache"
    assert RunRow.objects.get(id=run).settings["cache"]["behaviour"] == "unknown"
    following = talk.turn("And now?")
    assert (following["cache"]["predicted"]["why"], following["verdict"]["class"]) == (
        "hit",
        "agrees",
    )


def test_steps_of_a_run_are_predicted_where_the_profile_was_measured_before(
    door: Door, tenant: UUID
) -> None:
    seen(tenant, CacheBehaviour.REPORTED)
    talk = Talk(door)
    run = door.run(talk.session, "How warm is it?")
    steps = [talk.step(run, called("w0"))]
    for number in range(1, 5):
        door.results(run, (f"w{number - 1}", f"{number} C, measured at the station. " * 40))
        steps.append(talk.step(run, called(f"w{number}")))
    assert [step["verdict"]["class"] for step in steps] == ["agrees"] * 5
    assert [step["cache"]["predicted"]["why"] for step in steps] == ["first", *["hit"] * 4]
    reads = [step["cache"]["predicted"]["read"] for step in steps]
    assert reads == sorted(reads) and reads[-1] > reads[1] > 1_000


def test_a_cache_that_was_measured_to_be_none_is_predicted_to_be_none(
    door: Door, tenant: UUID
) -> None:
    seen(tenant, CacheBehaviour.NONE)
    talk = Talk(door)
    for question in ("How warm is it?", "And in Bergen?"):
        run = door.run(talk.session, question)
        step = talk.step(run, {"role": "assistant", "content": "Four."}, cached=0)
        predicted = step["cache"]["predicted"]
        assert (predicted["why"], predicted["read"], predicted["by"]) == (
            "not_cached",
            0,
            "profile",
        )
        assert (step["verdict"]["class"], step["verdict"]["cause"]) == ("agrees", "")


def test_reads_correct_a_profile_that_said_there_were_none(door: Door, tenant: UUID) -> None:
    measured = seen(tenant, CacheBehaviour.NONE)
    talk = Talk(door)
    talk.turn("How warm is it?")
    assert talk.turn("And in Bergen?")["verdict"]["class"] == "surplus"
    corrected = CapacityRow.objects.filter(tenant_id=tenant).latest("created_at")
    assert corrected.source == "feedback"
    learnt = profile_of(tenant, LOCAL["provider"], LOCAL["name"])  # type: ignore[arg-type]
    assert learnt.cache is CacheBehaviour.REPORTED
    measured.refresh_from_db()
    assert measured.profile["cache"] == "none"
    other = Talk(door, talk.server)
    assert other.turn("Hello?")["cache"]["predicted"]["why"] == "first"
    assert RunRow.objects.get(session_id=other.session).settings["cache"]["source"] == "profile"


def test_a_session_alone_begins_no_profile(door: Door, tenant: UUID) -> None:
    talk = Talk(door)
    talk.turn("How warm is it?")
    talk.turn("And in Bergen?")
    assert not CapacityRow.objects.filter(tenant_id=tenant).exists()


# --- what is not known, and blamed on nobody --------------------------------------------------------------------------


def test_what_other_sessions_left_is_no_surprise_in_a_first_request(
    door: Door, tenant: UUID
) -> None:
    seen(tenant, CacheBehaviour.REPORTED)
    server = PrefixServer()
    Talk(door, server).turn("How warm is it?")
    second = Talk(door, server)
    first = second.turn("How warm is it?")
    assert first["usage"]["cache_read"] > 1_000
    verdict = first["verdict"]
    assert (verdict["class"], verdict["cause"]) == ("unpredicted", "first_request")
    assert second.shortfalls() == []


@pytest.mark.parametrize("forgotten", [True, False])
def test_a_miss_after_a_long_pause_is_not_known_and_no_fault(
    door: Door, tenant: UUID, forgotten: bool
) -> None:
    seen(tenant, CacheBehaviour.REPORTED)
    talk = Talk(door)
    talk.turn("How warm is it?")
    talk.pause(3_000)
    if forgotten:
        talk.server.forget()
    late = talk.turn("And in Bergen?")
    predicted, verdict = late["cache"]["predicted"], late["verdict"]
    assert (predicted["why"], predicted["read"], predicted["lost"]) == ("not_known", 0, 0)
    assert (verdict["class"], verdict["cause"]) == ("unpredicted", "life_not_known")
    assert talk.shortfalls() == []
    # What it left is known again.
    assert talk.turn("And now?")["cache"]["predicted"]["why"] == "hit"


def test_a_miss_is_not_known_either_where_the_answer_came_after_a_long_while(
    door: Door, tenant: UUID
) -> None:
    seen(tenant, CacheBehaviour.REPORTED)
    talk = Talk(door)
    talk.turn("How warm is it?")
    run = door.run(talk.session, "And in Bergen?")
    built = door.assemble(run)
    row = RequestRow.objects.get(id=built["request_id"])
    assert row.cache["predicted"]["why"] == "hit"
    RequestRow.objects.filter(tenant_id=tenant, id=row.id).update(
        created_at=utc_now() - timedelta(seconds=900)
    )
    late = talk.step(run, {"role": "assistant", "content": "Late."}, cached=0)
    assert (late["verdict"]["class"], late["verdict"]["cause"]) == ("unpredicted", "life_not_known")
    # A slow model is in use until it has answered: its next request does not come late.
    assert talk.turn("And now?")["cache"]["predicted"]["why"] == "hit"
    assert talk.shortfalls() == []


def test_a_model_that_reads_sooner_but_reports_nought_is_never_accused(
    door: Door, tenant: UUID
) -> None:
    seen(tenant, CacheBehaviour.PREFIX_STABLE)
    talk = Talk(door)
    talk.turn("How warm is it?")
    run = door.run(talk.session, "And in Bergen?")
    step = talk.step(run, {"role": "assistant", "content": "Four."}, cached=0)
    assert step["cache"]["predicted"]["read"] > 1_000
    assert step["verdict"]["class"] == "unreported"
    assert talk.shortfalls() == []
    # One that reports after all is judged.
    assert talk.turn("And now?")["verdict"]["class"] == "agrees"


def test_ollama_reports_no_reads_and_gets_a_prediction_without_a_verdict(
    door: Door, tenant: UUID
) -> None:
    model = {"provider": "ollama", "name": "gemma4:e2b"}
    seen(tenant, CacheBehaviour.PREFIX_STABLE, **model)
    agent = {"name": "local", "version": "2", "instructions": INSTRUCTIONS}
    session = door.open(model=model | {"window": 64_000}, agent=agent, tools=[LONG_TOOL])
    answer = {
        "message": {"role": "assistant", "content": "Four."},
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": 2_000,
        "eval_count": 3,
    }
    asked = []
    for question in ("How warm is it?", "And in Bergen?"):
        run = door.run(session, question)
        asked.append(door.assemble(run)["request_id"])
        door.post(f"runs/{run}/responses", {"response": answer}).ok()
    shown = door.get(f"requests/{asked[-1]}").ok()
    predicted = shown["cache"]["predicted"]
    assert (predicted["why"], predicted["by"], predicted["read"] > 1_000) == (
        "hit",
        "profile",
        True,
    )
    assert shown["verdict"]["class"] == "unreported"
    assert door.events(session, f"type={SHORTFALL}&") == []


# --- what is lost, and which digest says so ---------------------------------------------------------------------------


def test_a_cache_that_forgets_is_a_shortfall_of_unchanged_bytes(door: Door, tenant: UUID) -> None:
    seen(tenant, CacheBehaviour.REPORTED)
    talk = Talk(door)
    talk.turn("How warm is it?")
    talk.server.forget()
    lost = talk.turn("And in Bergen?")
    assert (lost["verdict"]["class"], lost["verdict"]["cause"]) == ("shortfall", "unexplained")
    assert lost["cache"]["changed"] is None
    (event,) = talk.shortfalls()
    assert event["payload"]["changed"] is None
    assert talk.all_prove()


def test_a_changed_prefix_names_its_digests_and_what_of_it_changed(
    door: Door, tenant: UUID
) -> None:
    seen(tenant, CacheBehaviour.REPORTED)
    talk = Talk(door)
    before = talk.turn("How warm is it?")
    agent = {"name": "local", "version": "9", "instructions": "Answer in Norwegian. " * 60}
    door.send("PATCH", f"sessions/{talk.session}", {"agent": agent}).ok()
    after = talk.turn("And in Bergen?")
    predicted, changed = after["cache"]["predicted"], after["cache"]["changed"]
    assert (predicted["why"], predicted["cause"]) == ("changed", "epoch_rotated")
    assert (changed["part"], changed["segment"]) == ("system", None)
    for name in ("prefix_sha256", "wire_prefix_sha256"):
        assert changed[name] == {"before": before[name], "after": after[name]}
        assert before[name] != after[name]
    # The loss was foreseen and came: the answer agrees, and the log names the digest all the same.
    assert (predicted["read"], after["verdict"]["class"]) == (0, "agrees")
    (event,) = talk.shortfalls()
    told = event["payload"]
    assert (told["cause"], told["foreseen"], told["changed"]) == ("epoch_rotated", True, changed)
    assert told["lost"] == predicted["lost"] > 1_000
    assert talk.all_prove()


@pytest.mark.parametrize("system_first", [True, False])
def test_the_order_of_tools_and_system_in_a_template_is_not_guessed(
    door: Door, tenant: UUID, system_first: bool
) -> None:
    seen(tenant, CacheBehaviour.REPORTED)
    talk = Talk(door, PrefixServer(system_first=system_first))
    talk.turn("How warm is it?")
    agent = {"name": "local", "version": "9", "instructions": "Answer in Norwegian. " * 60}
    door.send("PATCH", f"sessions/{talk.session}", {"agent": agent}).ok()
    after = talk.turn("And in Bergen?")
    assert (after["usage"]["cache_read"] > 1_000) is not system_first
    assert after["verdict"]["class"] == "agrees"


def test_changed_tools_are_told_from_a_changed_system_text(door: Door, tenant: UUID) -> None:
    seen(tenant, CacheBehaviour.REPORTED)
    talk = Talk(door)
    talk.turn("How warm is it?")
    door.send("PATCH", f"sessions/{talk.session}", {"tools": [WEATHER]}).ok()
    after = talk.turn("And in Bergen?")
    assert after["cache"]["changed"]["part"] == "tools"
    assert (after["cache"]["predicted"]["read"], after["verdict"]["class"]) == (0, "agrees")


def test_a_shortfall_behind_changed_bytes_names_the_segment(door: Door, tenant: UUID) -> None:
    seen(tenant, CacheBehaviour.REPORTED)
    talk = Talk(door)
    for number in range(3):
        talk.turn(f"Question {number}: " + "how warm is it there? " * 60, "Four degrees. " * 60)
    second = door.events(talk.session, "type=user.message.created&")[1]["sequence"]
    wanted = {"target": f"{second}.0", "form": "excluded", "scope": "item"}
    door.post(f"sessions/{talk.session}/presentation", wanted).ok()
    talk.server.forget()
    after = talk.turn("And now?")
    assert after["cache"]["predicted"]["read"] > 1_000
    (event,) = talk.shortfalls()
    told = event["payload"]
    assert (told["cause"], told["foreseen"]) == ("presentation_changed", False)
    assert told["changed"] == after["cache"]["changed"]
    assert told["changed"]["part"] == "messages"
    assert told["changed"]["segment"]["before"] != told["changed"]["segment"]["after"]


def test_changed_history_names_the_first_message_part_that_differs(
    door: Door, tenant: UUID
) -> None:
    seen(tenant, CacheBehaviour.REPORTED)
    talk = Talk(door)
    bodies = []
    for number in range(4):
        run = door.run(talk.session, f"Question {number}: " + "how warm is it there? " * 60)
        bodies.append(door.assemble(run)["request"])
        talk.step(run, {"role": "assistant", "content": f"Answer {number}. " * 60})
    third = door.events(talk.session, "type=user.message.created&")[2]["sequence"]
    wanted = {"target": f"{third}.0", "form": "excluded", "scope": "item"}
    door.post(f"sessions/{talk.session}/presentation", wanted).ok()
    run = door.run(talk.session, "And now?")
    built = door.assemble(run)
    changed = built["cache"]["changed"]
    assert (built["cache"]["predicted"]["cause"], changed["part"]) == (
        "presentation_changed",
        "messages",
    )
    old, new = (body["messages"] for body in (bodies[-1], built["request"]))
    differs = next(n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b)
    in_front = sum(message["role"] == "system" for message in old)
    assert changed["segment"]["fragment"] == differs - in_front
    assert changed["segment"]["before"] != changed["segment"]["after"]
    assert changed["wire_prefix_sha256"]["before"] == changed["wire_prefix_sha256"]["after"]
    # What it keeps to find that out is nobody's business outside.
    assert not {"segments", "implicit", "entries"} & set(built["cache"])
