"""Made-up values for the style guide: one for each state of the components that draw figures."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ctxengine.engine.layout import ROWS
from ctxengine.engine.manifest import Reason, RowTotal
from ctxengine.engine.trust.levels import Trust
from ctxengine.ledger.queries.jobs import JobCounts
from ctxengine.ledger.queries.news import Newer
from ctxengine.ledger.queries.paging import Total
from ctxengine.ledger.queries.sums import Bill
from ctxengine.ledger.queries.usage import Usage
from inspector.contexts import JobsTile
from inspector.epochdiff import ToolChange
from inspector.lab_curves import Curve, curves_of
from inspector.request_contexts import CachePanel, ChangedBytes, RowLine
from inspector.ruler import Figure, Ruler, Segment, track
from inspector.textdiff import compare

MOMENT = datetime(2026, 11, 30, 8, 5, 9, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class SampleTool:
    """A tool of a roster."""

    name: str
    wire_name: str
    synthesised: bool
    reason: str
    tokens: int
    description: str
    side_effect: str
    result_trust: str
    required_scopes: tuple[str, ...]
    server: str
    schema: str


@dataclass(frozen=True, slots=True)
class SampleEntry:
    """Its place in the roster."""

    tool: SampleTool
    revoked: bool
    act: str


def cache_panels() -> tuple[CachePanel, ...]:
    """Agreement, a shortfall, a surplus, and nothing reported."""
    full = (("read", 8_192, 8_190, 8_190), ("written", 512, 512, 512), ("fresh", 96, None, 96))
    missed = (("read", 8_192, 8_190, 0), ("written", 512, 8_702, 8_702), ("fresh", 96, None, 96))
    none = (("read", 8_192, None, None), ("written", 512, None, None), ("fresh", 96, None, None))

    def panel(state: str, judged: str, buckets: Any, **more: Any) -> CachePanel:
        given: dict[str, Any] = {
            "cause": "",
            "causeless": "nothing was lost",
            "reason": "",
            "missed": None,
        }
        given |= {"disagreement": False, "basis": ""}
        return CachePanel(buckets=buckets, state=state, judged=judged, **(given | more))

    return (
        panel("ok", "The provider read what was predicted.", full),
        panel(
            "bad",
            "8,190 tokens less were read than predicted.",
            missed,
            cause="the entry had run out",
            reason="tools_changed",
            missed=8_190,
            disagreement=True,
        ),
        panel(
            "bad",
            "8,190 tokens less were read than predicted.",
            missed,
            cause="earlier content stands in another form",
            rules="Predicted by what was seen of this model's cache.",
            changed=ChangedBytes(
                "the messages, from part 12 on",
                (("up to its segment's end", "0c5e" * 16, "91fa" * 16),),
            ),
        ),
        panel("warn", "96 tokens more were read than predicted.", full),
        panel("", "The response reported no cache figures.", none, causeless="not known"),
    )


def bills() -> tuple[Bill, ...]:
    """One with figures, and one of which nothing is known."""
    return (Bill(1_204, 98_311, 4_096, 812, 12, 2, 1), Bill(0, 0, 0, 0, 0, 3))


def jobs_tiles() -> tuple[JobsTile, ...]:
    """Every state."""

    def tile(state: str, verdict: str, workers: int, **counts: int) -> JobsTile:
        waits = MOMENT if counts.get("queued") else None
        return JobsTile(
            JobCounts({"running": 0, "queued": 0} | counts, waits), workers, state, verdict
        )

    return (
        tile("ok", "nothing waits", 2, running=1),
        tile("warn", "the oldest waits long", 1, queued=12),
        tile("bad", "no worker is there", 0, queued=3),
    )


def row_lines() -> tuple[RowLine, ...]:
    """A row far below its cap, one near it, one that is empty, an estimated one."""

    def line(number: int, tokens: int, cap: int | None, reason: str, source: str = "") -> RowLine:
        used = min(1.0, tokens / cap) if cap else 0.0
        total = RowTotal(
            row=number, tokens=tokens, items=1 if tokens else 0, cap_tokens=cap, source="counted",
            reason=Reason.NOTHING_PINNED,
        )  # fmt: skip
        row = ROWS[number - 1]
        bar = round(90 * used) if cap else None
        return RowLine(row, total, (row.trust,), cap, bar, used >= 0.8, (reason,), source)

    return (
        line(1, 412, 2_000, "always the first"),
        line(4, 9_400, 10_000, "near its cap"),
        line(6, 0, 2_000, "no loaded skill"),
        line(2, 1_024, None, "as the agent's version says", "≈"),
    )


def tool_changes() -> tuple[ToolChange, ...]:
    """Every kind."""
    return (
        ToolChange("web.fetch", "added", "into the defined group", 0, 214, ()),
        ToolChange("shell.run", "removed", "", 96, 0, ()),
        ToolChange("mail.send", "moved", "from defined to deferred", 180, 0, ()),
        ToolChange("git.log", "changed", "its description", 90, 95, compare("Reads.", "Reads it.")),
    )


def roster() -> tuple[SampleEntry, ...]:
    """A usual tool, and one with everything there is to say."""
    schema = '{"type":"object","properties":{"cmd":{"type":"string"}}}'
    usual = SampleTool(
        "shell.run", "shell_run", False, "", 96, "Runs a command.", "write",
        Trust.EXTERNAL_UNTRUSTED.value, (), "", schema,
    )  # fmt: skip
    odd = SampleTool(
        "web.fetch", "web_fetch", True, "named by the agent", 214, "Fetches a page.", "read_only",
        Trust.EXTERNAL_UNTRUSTED.value, ("net",), "browser", schema,
    )  # fmt: skip
    return (SampleEntry(usual, False, ""), SampleEntry(odd, True, ""))


def curve() -> Curve:
    """Twelve steps with a missed cache in the seventh."""
    steps = [
        {
            "number": number,
            "turn": 1,
            "read": 0 if number == 7 else 900 * number,
            "written": 900 * number if number == 7 else 300,
            "fresh": 60,
            "cost": 1_000,
            "refused": False,
            "fidelity": {},
        }
        for number in range(1, 13)
    ]
    return curves_of(steps, budget=16_000, href=lambda _: "")[0]


@dataclass(frozen=True, slots=True)
class SampleCache:
    """What was predicted of a request."""

    predicted: Usage


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """What a glance reads of a request."""

    usage: Usage
    cache: SampleCache
    reconstructed: bool = False


@dataclass(frozen=True, slots=True)
class SampleGlance:
    """A request in a drawer."""

    request: SampleRequest
    ruler: Ruler
    window: tuple[Segment, ...]
    yielded: tuple[str, ...]


def glances() -> tuple[SampleGlance, ...]:
    """A request that was reported, and one that was not and contradicts itself."""
    parts = [
        Segment("Instructions", 2_000, "f-config", 2),
        Segment("History", 5_000, "f-user", 10),
        Segment("free", 2_000, "f-free"),
        Segment("output reserve", 1_000, "f-reserve"),
    ]
    scale = sum(part.tokens for part in parts)
    cached = [Segment("read from cache", 6_000, "f-ok"), Segment("fresh", 1_000, "f-fresh")]
    figures = (
        Figure("A · frozen prefix", 2_000),
        Figure("B · turn body", 5_000),
        Figure("free", 2_000),
        Figure("output reserve", 1_000),
    )

    def glance(told: Usage, unexplained: int, *yielded: str) -> SampleGlance:
        window, cache = track(parts, scale, 470), track(cached, scale, 470) if told.reported else ()
        ruler = Ruler(scale, window, (), cache, "", figures, (), unexplained)
        predicted = Usage(read=6_000)
        return SampleGlance(SampleRequest(told, SampleCache(predicted)), ruler, window, yielded)

    return (
        glance(Usage(read=6_000, write=0, fresh=1_000, output=80), 0),
        glance(Usage(), -12, "Tool results"),
    )


TOTAL = Total(5_000, True)
VERDICTS: tuple[dict[str, Any] | None, ...] = (
    {"pays": True, "saved_tokens": 12_000, "expected_steps": 20, "recached_tokens": 30_000},
    {"pays": False, "saved_tokens": 900, "expected_steps": 4, "recached_tokens": 30_000, "forced_by": "operator"},
    None,
)  # fmt: skip
NEWER = (Newer(3, False), Newer(100, True))
FACET = (("tool", 12_304), ("user", 96), ("assistant", 1))
