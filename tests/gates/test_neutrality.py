"""Gate: neutrality. No vendor and no topic word steers engine code (capacity spec, P5; design 11).

Two ways to look: what the engine's sources say, and what the engine does. Where vendors must be told apart (their wires, their
caches, their tokenizers, their transcripts) the rooms are listed; a name in any other room fails. And a session whose tools,
servers, agent and talk are named after vendors and topics is built the same as one that is named after nothing.
"""

from __future__ import annotations

import ast
import json
import re
import string
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxengine.engine.budget.policy import DEFAULT_POLICY, BudgetPolicy, ClassCap
from ctxengine.engine.control.find import matching
from ctxengine.engine.guards.topic import TopicEvidence, judge_topic
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.plan.tool import PinnedTool
from ctxengine.engine.reading import read_directive
from ctxengine.engine.turns.relevance import refers_back
from ctxengine.service.plans import control_tools
from tests.cast import Call, sized
from tests.lab import Lab, Turn, a_plan, turns

pytestmark = pytest.mark.gate

ENGINE = Path(__file__).resolve().parents[2] / "ctxengine" / "engine"

VENDORS = (
    "anthropic", "claude", "openai", "gpt", "google", "gemini", "bedrock", "amazon", "aws", "ollama", "openrouter", "mistral",
    "deepseek", "qwen", "llama", "cohere", "grok", "gemma", "azure", "vertex",
)  # fmt: skip
SERVERS = (
    "github", "gitlab", "jira", "confluence", "notion", "asana", "trello", "gmail", "outlook", "salesforce", "hubspot",
    "stripe", "shopify", "figma", "sentry", "datadog", "snowflake", "postgres", "mongodb", "playwright", "puppeteer",
    "brave", "tavily", "spotify", "dropbox", "zapier", "zendesk", "grafana", "kubernetes",
)  # fmt: skip
TOPICS = (
    "weather", "noida", "forecast", "flight", "hotel", "recipe", "sports", "cricket", "stock", "crypto", "invoice",
    "medical", "insurance", "restaurant", "movie", "music", "horoscope", "news",
)  # fmt: skip

VENDOR_ROOMS = (
    "cache/", "content/", "exporters/", "importers/", "tokens/", "wire/",
)  # fmt: skip
"""Rooms whose business is how vendors differ."""
VENDOR_MODULES = {
    "items.py": "names the formats in which bodies arrive",
    "boundary/capability.py": "says which provider compacts in which way",
    "boundary/native.py": "reads each provider's own compaction block",
    "redaction/patterns.py": "knows vendors' keys by their form",
}
"""Single modules of other rooms that name vendors, with the reason."""
SERVER_MODULES = {"redaction/patterns.py": "knows services' keys by their form"}
TOPIC_MODULES = {"capacity/filler.py": "makes up the talk that probes are filled with"}


def spoken(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """What code says, line by line: its texts and its names; docstrings and comments steer nothing."""
    notes = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in notes:
            yield node.lineno, node.value
        elif isinstance(node, ast.Name):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute):
            yield node.lineno, node.attr
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.lineno, node.name


def named(source: str, words: Sequence[str]) -> list[tuple[int, str]]:
    """Lines of a module that say one of the words, each with the word."""
    pattern = re.compile(rf"(?<![a-z])({'|'.join(words)})s?(?![a-z])")
    found = []
    for line, text in spoken(ast.parse(source)):
        # getWeather, get_weather and GET-WEATHER are all three about the weather.
        apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text).lower()
        found += [(line, match[1]) for match in pattern.finditer(apart)]
    return sorted(set(found))


def modules() -> list[str]:
    return sorted(str(path.relative_to(ENGINE)) for path in ENGINE.rglob("*.py"))


def in_engine(module: str, words: Sequence[str]) -> list[tuple[int, str]]:
    return named((ENGINE / module).read_text(encoding="utf-8"), words)


@pytest.mark.parametrize("module", modules())
def test_no_engine_module_speaks_of_topics_and_only_the_listed_ones_of_vendors(module: str) -> None:
    if module not in TOPIC_MODULES:
        assert in_engine(module, TOPICS) == []
    if module not in SERVER_MODULES:
        assert in_engine(module, SERVERS) == []
    if not module.startswith(VENDOR_ROOMS) and module not in VENDOR_MODULES:
        assert in_engine(module, VENDORS) == []


def test_every_exception_is_needed() -> None:
    for module in VENDOR_MODULES:
        assert in_engine(module, VENDORS), module
    for module in SERVER_MODULES:
        assert in_engine(module, SERVERS), module
    for module in TOPIC_MODULES:
        assert in_engine(module, TOPICS), module
    for room in VENDOR_ROOMS:
        assert any(in_engine(one, VENDORS) for one in modules() if one.startswith(room)), room


@pytest.mark.parametrize(
    "line",
    [
        'if "weather" in directive: ...',
        'live = re.search(r"(?i)\\b(stocks|news)\\b", text)',
        "def is_weather(text): ...",
        "chosen = tool.isGithubTool",
        'ROUTES = {"mcp.jira": 1}',
        'if plan.provider == "anthropic": ...',
        'big = model.startswith("gpt-5")',
        "rank = ClaudeRank()",
    ],
)
def test_the_gate_sees_a_word_that_could_steer(line: str) -> None:
    assert named(line, VENDORS + SERVERS + TOPICS)
    assert named(f'"""Explains: {line.replace(chr(34), "")}"""\n# {line}', VENDORS + TOPICS) == []


# --- what the engine does -------------------------------------------------------------------------------------------------

Naming = Callable[[str], str]

_LOADED = tuple({word[:3]: word for word in VENDORS + SERVERS + TOPICS}.values())
"""Words that their beginnings tell apart."""
_letters = st.text(string.ascii_lowercase, min_size=12, max_size=12)


@st.composite
def neutral_names(draw: st.DrawFn) -> dict[str, str]:
    """For each loaded word one of the same length that says nothing, and that sorts at the same place among tools."""
    # The order of names decides the order of bytes and nothing else may, so a word keeps just what its rank needs.
    filling = draw(st.sampled_from("jkq"))
    names = {word: word[: min(3, len(word) - 1)].ljust(len(word), filling) for word in _LOADED}
    fixed = {tool.name: tool.name for tool in control_tools(())}
    both = sorted((names | fixed).items())
    assert [name for _, name in both] == sorted({name for _, name in both})
    return names


SCARCE = {**DEFAULT_POLICY.caps, "tools": ClassCap(tokens=9_000, items=6)}
"""Six definitions, three of which are the platform's own: tools have to be ranked."""


def loaded_tools(words: Sequence[str], say: Naming) -> list[PinnedTool]:
    return [
        PinnedTool(
            name=f"{say(word)}.{say(word)}" if place % 2 else say(word),
            wire_name="",
            description=f"Asks {say(word)}. Knows {say(words[0])}.",
            input_schema=json.dumps({"type": "object", "properties": {say(word): {}}}),
            server=say(word) if place % 3 else "",
            serves=(say(word),),
            side_effect="none" if place % 4 else "world",
            deferred=place % 5 == 0,
        )
        for place, word in enumerate(words)
    ]


def lived(session: Sequence[Turn], words: Sequence[str], say: Naming) -> tuple[Plan, Lab]:
    """A session about these words, told with this naming."""
    tools = loaded_tools(words, say)
    plan = a_plan(
        window=16_000,
        tools=[*tools, *control_tools(())],
        policy=BudgetPolicy(reserve=500, history_floor=300, recall_floor=50, caps=SCARCE),
        agent_name=say(words[-1]),
    )
    lab = Lab(plan)
    calls = 0
    for number, turn in enumerate(session):
        word = words[number % len(words)]
        lab.seed = lab.scribe.user(f"{turn.message}|What does {say(word)} say of {say(words[0])}?")
        lab.build()
        for sizes in turn.steps:
            ids = [f"c{calls + n}" for n in range(len(sizes))]
            calls += len(sizes)
            lab.scribe.step(*(Call(name, tools[0].name) for name in ids))
            for name, size in zip(ids, sizes, strict=True):
                lab.scribe.result(name, sized(size, f"{say(word)} answered"))
            lab.build()
        lab.scribe.answers(f"{turn.reply}|{say(word)} says so.")
    return plan, lab


def decisions(plan: Plan, lab: Lab, back: Naming) -> list[object]:
    """Everything that was decided, in the loaded words: what stands where in which form, what yielded, what it cost."""
    surface = [(back(tool.name), tool.group, back(tool.reason), tool.tokens) for tool in plan.tools]
    steps = [
        (
            [
                (s.row, s.part, s.form, [u.sequence for u in s.units], s.totals.tokens)
                for s in step.built.stretches
            ],
            step.built.budget,
            step.prepared.allocation.yields,
            [(raised.budget_class, raised.floor) for raised in step.prepared.allocation.raises],
        )
        for step in lab.steps
    ]
    return [surface, plan.by_class, plan.warnings, steps]


@settings(max_examples=40)
@given(
    session=turns(largest=900, most=6),
    words=st.lists(st.sampled_from(_LOADED), min_size=2, max_size=12, unique=True),
    names=neutral_names(),
)
def test_a_session_about_vendors_and_topics_is_built_as_one_about_nothing(
    session: list[Turn], words: list[str], names: dict[str, str]
) -> None:
    meant = {name: word for word, name in names.items()}
    found = re.compile("|".join(sorted(meant, key=len, reverse=True)))

    def back(text: str) -> str:
        return found.sub(lambda match: meant[match[0]], text)

    loaded = decisions(*lived(session, words, lambda word: word), lambda text: text)
    neutral = decisions(*lived(session, words, names.__getitem__), back)
    assert loaded == neutral


@given(st.sampled_from(_LOADED), _letters)
def test_a_directive_leans_on_what_came_before_by_its_small_words_alone(
    word: str, other: str
) -> None:
    for form in ("What is the {}?", "Show {} in the north, please.", "{}", "And the same for {}?"):
        assert refers_back(form.format(word)) == refers_back(form.format(other))


_nonsense = st.text("jkqxz", min_size=12, max_size=12)
"""No word of any language, so none that a reading goes by."""


@given(st.sampled_from(_LOADED), _nonsense)
def test_a_directive_is_read_by_its_small_words_alone(word: str, other: str) -> None:
    for form in (
        "What is the current {} in the north?",
        "Show me the live {}.",
        "Find the {} and compare it with last year.",
        "{}",
        "Write a page about {}.",
    ):
        known, unknown = (read_directive(form.format(name)) for name in (word, other))
        assert (known.act, known.domains, known.live, known.uncertain) == (
            unknown.act,
            unknown.domains,
            unknown.live,
            unknown.uncertain,
        )


@given(st.sampled_from(_LOADED), _nonsense, st.integers(0, 2))
def test_a_card_is_judged_by_the_words_it_shares_and_not_by_which_they_are(
    word: str, other: str, strikes: int
) -> None:
    verdicts = []
    for name in (word, other):
        fits = judge_topic(TopicEvidence(f"{name} 28", f"what of {name}", ("zzzzz",), strikes))
        foreign = judge_topic(TopicEvidence(f"{name} 28", "what of it", ("zzzzz",), strikes))
        assert fits is not None and foreign is not None
        verdicts.append((fits.verdict, foreign.verdict))
    assert verdicts[0] == verdicts[1]


@given(st.sampled_from(_LOADED), _nonsense)
def test_a_listed_tool_is_found_by_its_own_words_alone(word: str, other: str) -> None:
    for name in (word, other):
        tools = loaded_tools([name, "qqqqqq"], lambda text: text)
        assert [tool.name for tool in matching(tools, f"a tool for {name}")][:1] == [name]


@pytest.mark.parametrize("provider", ["openai", "google", "ollama", "bedrock"])
@settings(max_examples=15)
@given(session=turns(largest=900, most=5))
def test_a_provider_changes_the_wire_and_not_what_is_kept(
    provider: str, session: list[Turn]
) -> None:
    kept = []
    for name in ("anthropic", provider):
        lab = Lab(a_plan(provider=name))
        for turn in session:
            lab.ask(turn.message)
            for sizes in turn.steps:
                lab.act(*sizes)
            lab.build()
            lab.reply(turn.reply)
        kept.append(decisions(lab.plan, lab, lambda text: text))
    assert kept[0] == kept[1]
