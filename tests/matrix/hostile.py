"""A world in which everything that anybody can name or say is hostile, and a reader that finds what of it could act."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any, NamedTuple

from django.contrib.staticfiles import finders
from django.urls import URLPattern

from ctxengine.ledger.models import ItemRow, Role
from ctxengine.service.audit import record_audit
from ctxengine.service.working_state import working_state_view
from inspector import urls
from tests.factories import LiveSession, make_person, make_tenant, tool
from tests.inspector.sessions import PRINCIPAL, kept_session, note
from tests.matrix.world import (
    Bounded,
    World,
    client,
    make_bounded,
    make_import,
    make_job,
    make_profile,
    make_replay,
)

MARKUP = (
    "</pre></td></script></title></textarea><script>alert(1)</script><img src=x onerror=alert(1)>"
    '<svg onload=alert(1)><a href="javascript:alert(1)">x</a><xss xss=1></xss>" xss=1 '
    "' onmouseover='alert(1) {{ 7|add:7 }} {% now 'Y' %} </untrusted:00> &lt;b&gt;"
)
STEERING = "abc\u202edef\u2066ghi\u200b\ufeff\x1b[31m\U000e0041"
HOSTILE = MARKUP + STEERING
NAME = "javascript:\"'><xss xss=1>{{7|add:7}}\u202e"
"""Short enough for whatever has a name."""
FORMULA = '=HYPERLINK("http://x")' + NAME[:20]
LINE = "A" * 1_000_000
"""A megabyte without a break."""
RESULT = HOSTILE + "\x00\n" + LINE
"""The largest tool result of the world."""

_ADDRESSES = frozenset({"href", "src", "action", "formaction", "hx-get", "hx-post", "hx-push-url"})
_ACTIVE = frozenset({"img", "iframe", "object", "embed", "base", "style", "math"})


class Audit(HTMLParser):
    """Everything in a page that could act, and every element or attribute that content gave birth to."""

    def __init__(self) -> None:
        super().__init__()
        self.problems: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "script" and not _own_file(dict(attrs).get("src") or ""):
            self.problems.append(f"script {attrs}")
        if tag in _ACTIVE or tag == "xss":
            self.problems.append(tag)
        for name, value in attrs:
            if name.startswith(("on", "hx-on", "xss")) or name == "style":
                self.problems.append(f"{tag} {name}={value}")
            if name in _ADDRESSES and not _ours(value or ""):
                self.problems.append(f"{tag} {name}={value}")

    def handle_endtag(self, tag: str) -> None:
        if tag == "xss":
            self.problems.append("/xss")


def _own_file(address: str) -> bool:
    """Whether a script is one of the product's files."""
    path = address.removeprefix("/static/")
    return path != address and finders.find(path) is not None


def _ours(address: str) -> bool:
    """Whether an address stays on this site; `true` is what HTMX takes in the place of one."""
    return (address.startswith(("/", "?", "#")) and not address.startswith("//")) or address in (
        "",
        "true",
        "false",
    )


def audit(page: str) -> list[str]:
    """What of a page's text could act on its reader; nothing for a safe one."""
    reader = Audit()
    reader.feed(page)
    reader.close()
    # What a choice or a hidden field sends back is the name itself, and no reader sees it: the choice shows its words.
    seen = re.sub(r'<option value="[^"]*"|<input type="hidden"[^>]*>', "<option", page)
    steering = set(re.findall("[\u202e\u2066\u200b\ufeff\x1b\x00\U000e0041]", seen))
    raw = [text for text in ("<xss", "</xss", '" xss=1', "'><xss") if text in page]
    ran = ["template ran"] if "14" in _near(page) else []
    return reader.problems + [f"U+{ord(c):04X}" for c in steering] + raw + ran


def _near(page: str) -> str:
    """What stands where `{{ 7|add:7 }}` would have been computed."""
    found = re.search(r"(?:alert\(1\) |xss=1>)(.{0,12})", html.unescape(page))
    return found[1] if found else ""


class HostileWorld(World):
    """One of everything, all of it hostile; made through the doors that outsiders have."""

    def __init__(self) -> None:
        self.tenant = make_tenant(name=MARKUP[:200])
        self.session = kept_session(
            self.tenant,
            say=HOSTILE,
            title=FORMULA,
            agent=NAME,
            instructions=HOSTILE,
            tools=(tool("shell.run", HOSTILE), tool("web.fetch"), tool(NAME)),
        )
        self._talk()
        LiveSession(self.tenant, title=NAME, provider="ollama", model=NAME).ask(HOSTILE).answer("x")
        self.person = make_person(self.tenant, Role.ADMIN, name=NAME)
        self.client = client(self.person)
        self.furnish()
        self._act()

    def furnish(self) -> None:
        """Everything of a tenant that is no session."""
        state = working_state_view(actor=self.session.actor, session_id=self.session.id).state
        self.constraint = f"?id={state.constraints[-1].id}"
        self.job = make_job(self.tenant, NAME)
        make_import(self.tenant, NAME, detail=HOSTILE, where=NAME, raw=HOSTILE, code=NAME)
        self.model = f"ollama/{NAME}"
        make_profile(self.tenant, self.model)
        self.replay = make_replay(self.session)
        rows = ItemRow.objects.filter(session_id=self.session.id, kind="tool_result")
        row = rows.latest("sequence")
        self.evidence = f"{row.sequence}.{row.ordinal}"
        record_audit(
            actor=self.session.actor,
            action=NAME[:40],
            target=NAME,
            reason=HOSTILE,
            before={NAME: HOSTILE},
            after={NAME: [HOSTILE]},
        )

    @property
    def bounded(self) -> Bounded:
        """Its checkpoints hold what a hostile model wrote."""
        if self._bounded is None:
            self._bounded = make_bounded(self.tenant, say=HOSTILE + " ", note=HOSTILE)
        return self._bounded

    _bounded: Bounded | None = None

    def _talk(self) -> None:
        talk = self.session.ask(HOSTILE)
        note(
            talk,
            objective=HOSTILE,
            add_constraints=[HOSTILE],
            upsert_tasks=[{"title": HOSTILE}],
            next_action=HOSTILE,
        )
        (call,) = talk.call(("shell.run", {"url": "javascript:alert(1)", NAME: HOSTILE}))
        talk.result(call, RESULT)
        talk.answer(HOSTILE)

    def _act(self) -> None:
        here = f"/t/{self.tenant.slug}"
        session = f"{here}/sessions/{self.session.id}"
        persona = {"revision": "1", "entry": [HOSTILE, MARKUP], "reason": HOSTILE}
        acts: tuple[tuple[str, dict[str, Any]], ...] = (
            (f"{session}/epochs/rotate/", {"epoch": "2", "why": "operator", "reason": HOSTILE}),
            (f"{session}/compactions/mark/", {"target": "3", "form": "pinned", "reason": HOSTILE}),
            (f"{here}/personas/of/{PRINCIPAL}/", persona),
            (f"{here}/views/save/", {"page": "sessions", "name": NAME, "query": f"q={NAME}"}),
            (
                f"{here}/alerts/",
                {
                    "act": "add",
                    "name": NAME,
                    "measure": "cost",
                    "bound": "1",
                    "window": "60",
                    "reason": HOSTILE,
                },
            ),
            (
                f"{here}/api-keys/",
                {"name": NAME, "scope": "read", "days": "30", "reason": HOSTILE},
            ),
        )
        for path, form in acts:
            answer = self.client.post(path, form)
            assert answer.status_code in (200, 303), (path, answer.status_code)


class Visit(NamedTuple):
    """One address to look at."""

    name: str
    address: str
    twins: tuple[str, ...]
    """Endings of the same address that answer with data."""


def visits(world: HostileWorld) -> Iterator[Visit]:
    """Every route, and those of many contents once for each kind of them."""
    for pattern in urls.urlpatterns:
        route = str(pattern.pattern)
        twins = ("json", "csv") if "list_twin" in route else ("json",)
        for address in _addresses(world, pattern):
            yield Visit(str(pattern.name), address, twins if "twin:" in route else ())


def _addresses(world: HostileWorld, pattern: URLPattern) -> list[str]:
    name = str(pattern.name)
    converters = pattern.pattern.converters
    addresses = [world.address(pattern)]
    if "item_id" in converters and name != "evidence":
        rows = ItemRow.objects.filter(session_id=world.session.id).order_by("sequence")
        newest = {row.kind: f"{row.sequence}.{row.ordinal}" for row in rows}
        result = world.evidence
        addresses += [world.address(pattern, item_id=i) for i in {*newest.values(), result}]
    if name == "event-body":
        rows = ItemRow.objects.filter(session_id=world.session.id).order_by("-sequence")
        addresses += [world.address(pattern, sequence=row.sequence) for row in rows[:6]]
    if "request_id" in converters:
        addresses.append(world.address(pattern, request_id=world.session.requests[-1]))
    if "event" not in converters and "session_id" in converters and name.startswith("session"):
        addresses.append(world.address(pattern, session_id=world.bounded.session))
    return addresses
