"""Each invalid Messages request is refused in Anthropic's words, as the official SDK sees it."""

from __future__ import annotations

from typing import Any

import anthropic
import pytest

from tests.providers.strict_local.bodies import (
    LONG,
    LONG_LIFE,
    OPUS,
    SHORT_LIFE,
    SONNET,
    Json,
    assistant,
    message,
    picture,
    result,
    says,
    tool,
    use,
    user,
)

OLD = "strict/claude-sonnet-4-5"
"""A name that the SDK does not know to be deprecated."""

PREFILL = (
    "This model does not support assistant message prefill. The conversation must end with a user"
    " message."
)
SEARCHING = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
FIRST = {"type": "thinking", "thinking": "Hm.", "signature": "forged"}
DOCUMENT = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}}
FIVE = [says(f"Part {number}", cache_control=SHORT_LIFE) for number in range(5)]
DEFERRED = tool("later", defer_loading=True)

INVALID: dict[str, tuple[str, Json]] = {
    "call without result": (
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: b."
        " Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
        message(messages=[user(), assistant(use("a"), use("b")), user(result("a"))]),
    ),
    "result without call": (
        "messages.2.content.1: unexpected `tool_use_id` found in `tool_result` blocks: b. Each"
        " `tool_result` block must have a corresponding `tool_use` block in the previous message.",
        message(messages=[user(), assistant(use("a")), user(result("a"), result("b"))]),
    ),
    "two results": (
        "each tool_use must have a single result",
        message(messages=[user(), assistant(use("a")), user(result("a"), result("a"))]),
    ),
    "ids not unique": (
        "`tool_use` ids must be unique",
        message(
            messages=[
                user(), assistant(use("a")), user(result("a")), assistant(use("a")),
                user(result("a")),
            ]
        ),
    ),
    "id pattern": (
        "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
        message(messages=[user(), assistant(use("Bash:12")), user(result("Bash:12"))]),
    ),
    "server id pattern": (
        "messages.1.content.0.server_tool_use.id: String should match pattern"
        " '^srvtoolu_[a-zA-Z0-9_]+$'",
        message(messages=[user(), assistant(SEARCHING | {"id": "toolu_1"}), user(says("And?"))]),
    ),
    "server call answered by client": (
        "unexpected `tool_use_id` found in `tool_result` blocks: srvtoolu_1",
        message(
            messages=[
                user(), assistant(SEARCHING, use("a")), user(result("a"), result("srvtoolu_1")),
            ]
        ),
    ),
    "text while a server tool is open": (
        "a server tool is still running",
        message(
            messages=[user(), assistant(SEARCHING, use("a")), user(result("a"), says("And?"))]
        ),
    ),
    "result behind text": (
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: a",
        message(messages=[user(), assistant(use("a")), user(says("Here:"), result("a"))]),
    ),
    "empty text": (
        "messages.1: text content blocks must be non-empty",
        message(messages=[user(), assistant(says("Yes?"), says("")), user()]),
    ),
    "blank text": (
        "text content blocks must contain non-whitespace text",
        message(messages=[user(says(" \n"))]),
    ),
    "empty message": (
        "messages.1: all messages must have non-empty content except for the optional final"
        " assistant message",
        message(messages=[user(), assistant(), user()]),
    ),
    "assistant first": (
        'first message must use the "user" role',
        message(messages=[assistant(says("Welcome.")), user()]),
    ),
    "prefill": (PREFILL, message(messages=[user(), assistant(says("The answer is"))])),
    "prefill with white space": (
        "final assistant content cannot end with trailing whitespace",
        message(
            model=OLD, messages=[user(), assistant(says("The answer is "))]
        ),
    ),
    "unknown role": (
        'Unexpected role "tool". Allowed roles are "user" or "assistant".',
        message(messages=[{"role": "tool", "content": "fine"}]),
    ),
    "no messages": ("messages: at least one message is required", message(messages=[])),
    "forced choice": (
        "tool_choice: `any` is not supported for this model.",
        message(model=OPUS, tools=[tool()], tool_choice={"type": "any"}),
    ),
    "forced choice with manual thinking": (
        "Thinking may not be enabled when tool_choice forces tool use.",
        message(
            max_tokens=4_000, tools=[tool()], tool_choice={"type": "tool", "name": "look"},
            thinking={"type": "enabled", "budget_tokens": 1_024},
        ),
    ),
    "choice of an unknown tool": (
        "tool_choice: Tool 'other' not found in provided tools",
        message(tools=[tool()], tool_choice={"type": "tool", "name": "other"}),
    ),
    "manual thinking on a newer model": (
        '"thinking.type.enabled" is not supported for this model',
        message(
            model="claude-opus-4-8", max_tokens=4_000,
            thinking={"type": "enabled", "budget_tokens": 1_024},
        ),
    ),
    "adaptive thinking on an older model": (
        '"thinking.type.adaptive" is not supported for this model',
        message(model=OLD, thinking={"type": "adaptive"}),
    ),
    "thinking switched off where it cannot be": (
        '"thinking.type.disabled" is not supported for this model',
        message(model=OPUS, thinking={"type": "disabled"}),
    ),
    "budget too small": (
        "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
        message(max_tokens=4_000, thinking={"type": "enabled", "budget_tokens": 500}),
    ),
    "budget above the output": (
        "`max_tokens` must be greater than `thinking.budget_tokens`.",
        message(max_tokens=1_100, thinking={"type": "enabled", "budget_tokens": 2_000}),
    ),
    "thinking missing in a loop": (
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found"
        " `tool_use`. When `thinking` is enabled, a final `assistant` message must start with a"
        " thinking block",
        message(
            max_tokens=4_000, thinking={"type": "enabled", "budget_tokens": 1_024},
            messages=[user(), assistant(use("a")), user(result("a"))],
        ),
    ),
    "sampling": (
        "temperature: Extra inputs are not permitted",
        message(extra_body={"temperature": 0.5}),
    ),
    "sampling on a newer model under the old version": (
        "`top_p` is deprecated for this model.",
        message(
            model=OPUS, extra_body={"top_p": 0.5},
            extra_headers={"anthropic-version": "2023-06-01"},
        ),
    ),
    "document in an assistant message": (
        "`document` blocks are not permitted in assistant messages",
        message(messages=[user(), assistant(DOCUMENT), user()]),
    ),
    "citations on user text": (
        "text.citations: Extra inputs are not permitted",
        message(messages=[user(says("Hello", citations=[{"type": "char_location"}]))]),
    ),
    "tool name": (
        "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'",
        message(tools=[tool("web.fetch")]),
    ),
    "tool names not unique": ("Tool names must be unique", message(tools=[tool(), tool()])),
    "too many strict tools": (
        "too many strict tools (21)",
        message(tools=[tool(f"look_{number}", strict=True) for number in range(21)]),
    ),
    "all tools deferred": (
        "At least one tool must have defer_loading=false", message(tools=[DEFERRED])
    ),
    "reference to no tool": (
        "Tool reference 'x' not found in available tools",
        message(
            tools=[tool()],
            messages=[
                user(), assistant(use("a")),
                user(result("a", [{"type": "tool_reference", "tool_name": "x"}])),
            ],
        ),
    ),
    "five markers": (
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
        message(messages=[user(*FIVE)]),
    ),
    "automatic marker beside four": (
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
        message(messages=[user(*FIVE[:4])], cache_control=SHORT_LIFE),
    ),
    "automatic marker with another life": (
        "already has cache_control with a different ttl",
        message(messages=[user(says("Hi", cache_control=LONG_LIFE))], cache_control=SHORT_LIFE),
    ),
    "long life behind a short one": (
        "messages.0.content.0.cache_control.ttl: a ttl='1h' cache_control block must not come after"
        " a ttl='5m' cache_control block. Note that blocks are processed in the following order:"
        " `tools`, `system`, `messages`.",
        message(
            tools=[tool(cache_control=SHORT_LIFE)],
            messages=[user(says("Hello", cache_control=LONG_LIFE))],
        ),
    ),
    "unknown life": (
        "cache_control.ttl: Input should be '5m' or '1h'",
        message(messages=[user(says("Hello", cache_control={"type": "ephemeral", "ttl": "2h"}))]),
    ),
    "marker on thinking": (
        "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted",
        message(
            messages=[user(), assistant(FIRST | {"cache_control": SHORT_LIFE}, says("Y")), user()]
        ),
    ),
    "marker on a deferred tool": (
        "cache_control cannot be set on a tool with defer_loading=true",
        message(tools=[tool(), DEFERRED | {"cache_control": SHORT_LIFE}]),
    ),
    "marker on empty text": (
        "cache_control cannot be set for empty text blocks",
        message(messages=[user(says("", cache_control=SHORT_LIFE))]),
    ),
    "prewarming a stream": (
        "max_tokens: 0 cannot be combined", message(max_tokens=0, stream=True)
    ),
    "thinking without signature": (
        "messages.1.content.0.thinking.signature: Field required",
        message(
            messages=[user(), assistant({"type": "thinking", "thinking": "Hm."}, says("Y")), user()]
        ),
    ),
    "forged signature": (
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        message(messages=[user(), assistant(FIRST, says("Yes.")), user()]),
    ),
    "arguments that are no object": (
        "messages.1.content.0.tool_use.input: Input should be a valid dictionary",
        message(messages=[user(), assistant(use("a", arguments=[1])), user(result("a"))]),
    ),
    "large picture": (
        "dimensions exceed max allowed size: 8000 pixels",
        message(messages=[user(picture(9_000, 10))]),
    ),
    "large picture among many": (
        "dimensions exceed max allowed size: 2000 pixels",
        message(messages=[user(*[picture(2_400, 10)] * 21)]),
    ),
    "too many pictures": (
        "too many images: 101 > 100 maximum",
        message(model=OLD, messages=[user(*[picture(10, 10)] * 101)]),
    ),
    "system message on an older model": (
        "role 'system' is not supported on this model",
        message(messages=[user(), {"role": "system", "content": "Be brief."}]),
    ),
    "system message in front": (
        "a system message must directly follow a user turn",
        message(model=OPUS, messages=[{"role": "system", "content": "Be brief."}, user()]),
    ),
    "output above the model's": (
        "max_tokens: 500000 > 128000, which is the maximum allowed number of output tokens for "
        + SONNET,
        message(max_tokens=500_000, timeout=5),
    ),
    "prompt too long": (
        "tokens > 2000 maximum",
        message(model="strict/small", messages=[user(says(LONG))]),
    ),
    "input and output too long": (
        "input length and `max_tokens` exceed context limit: ",
        message(model="claude-sonnet-4", max_tokens=1_999),
    ),
    "unknown field": (
        "context_size: Extra inputs are not permitted", message(extra_body={"context_size": 5})
    ),
    "beta field without its header": (
        "compaction: Extra inputs are not permitted",
        message(extra_body={"compaction": {"type": "summarize"}}),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", INVALID)
def test_an_invalid_request_is_refused_in_the_providers_words(
    shared_claude: anthropic.Anthropic, name: str
) -> None:
    wording, arguments = INVALID[name]
    with pytest.raises(anthropic.BadRequestError) as caught:
        shared_claude.messages.create(**arguments)
    assert caught.value.type == "invalid_request_error"
    assert wording in str(caught.value.api_message)


def test_the_table_is_long_enough_and_says_nothing_twice() -> None:
    assert len(INVALID) >= 40


@pytest.mark.parametrize(
    ("change", "error", "wording"),
    [
        ({"model": "gpt-5.6-sol"}, anthropic.NotFoundError, "model: gpt-5.6-sol"),
        (
            {"messages": [user(says("x" * 34_000_000))]},
            anthropic.ContentTooLargeError,
            "Request exceeds the maximum",
        ),
    ],
    ids=["unknown model", "too many bytes"],
)
def test_other_statuses_have_their_own_error_classes(
    shared_claude: anthropic.Anthropic, change: dict[str, Any], error: type[Exception], wording: str
) -> None:
    with pytest.raises(error, match=wording):
        shared_claude.messages.create(**message(**change))


def test_pictures_that_are_too_large_are_named_in_a_typed_error(
    shared_claude: anthropic.Anthropic,
) -> None:
    content = user(says("Look:"), picture(10, 10), picture(9_000, 10))
    with pytest.raises(anthropic.types.ImageDimensionsTooLargeError) as caught:
        shared_claude.messages.create(**message(messages=[content]))
    assert caught.value.details.max_side_length_pixels == 8_000
    assert caught.value.details.paths == ["messages.0.content.2"]


def test_counting_refuses_what_creating_refuses(shared_claude: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.BadRequestError, match="`tool_use` ids were found without"):
        shared_claude.messages.count_tokens(
            model=SONNET, messages=[user(), assistant(use("a")), user()]
        )
