"""Ollama's own chat API: neutral messages as whole messages, one fragment each.

By default Ollama drops the oldest messages in silence when a prompt is too long, and has a small window; every request
therefore turns both kinds of dropping off and states its window (providers.md 0). A tool message holds text only: the rest
of a result stands whole, enveloped, in a user message behind the results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxengine.engine.lexeme import parse
from ctxengine.engine.wire.base import (
    Fragment,
    Marker,
    WireApi,
    WireCall,
    WireFile,
    WireImage,
    WireMessage,
    WireOpaque,
    WireParams,
    WirePart,
    WirePrefix,
    WireResult,
    WireText,
    WireTool,
)
from ctxengine.engine.wire.encoding import (
    CALL_FAILED,
    FILE_LEFT_OUT,
    IMAGE_FOLLOWS,
    IMAGE_LEFT_OUT,
    quoted,
    refuse,
    says_something,
    utf8,
)
from ctxengine.engine.wire.names import refuse_unlike

THINKING = "thinking"
KEEP_ALIVE = "30m"
"""How long the model, and with it its key-value cache, stays loaded after a call."""


class OllamaRenderer:
    """Renders for `POST /api/chat`."""

    api = WireApi.OLLAMA
    version = "ollama-1"
    states_window = True

    def fragments(self, message: WireMessage) -> tuple[Fragment, ...]:
        """Messages of one turn: tool messages first, then the user's; or one assistant message.

        Raises:
            WireInvalid: an id or a name breaks the pattern, or a result has no content.
        """
        if message.role == "assistant":
            text = _assistant(message.parts)
            return (_fragment(text),) if text else ()
        results = [part for part in message.parts if isinstance(part, WireResult)]
        rest = [part for part in message.parts if not isinstance(part, WireResult)]
        texts = [_tool_message(result) for result in results]
        texts += [_user(result.content) for result in results if not _is_text(result)]
        if spoken := _user(rest):
            texts.append(spoken)
        return tuple(_fragment(text) for text in texts)

    def prefix_bytes(self, prefix: WirePrefix) -> bytes:
        """Tools, then the opening of the messages with the one system message."""
        return _prefix(prefix)

    def body(
        self,
        prefix: WirePrefix,
        fragments: tuple[Fragment, ...],
        params: WireParams,
        markers: tuple[Marker, ...] = (),
    ) -> bytes:
        """The request: model, stream, truncate, shift, keep_alive, options, tools, messages. Markers mean nothing here."""
        window = f'"num_ctx":{params.window},' if params.window else ""
        head = (
            f'{{"model":{quoted(params.model)},"stream":false,"truncate":false,"shift":false,'
            f'"keep_alive":"{KEEP_ALIVE}",'
            f'"options":{{{window}"num_predict":{params.max_output_tokens}}},'
        )
        return b"".join(
            (
                utf8(head, "The model name"),
                _prefix(prefix),
                b"," if _system(prefix) and fragments else b"",
                b",".join(fragment.data for fragment in fragments),
                b"]}",
            )
        )


def _fragment(text: str) -> Fragment:
    return Fragment(role="", data=utf8(text, "A message"), markable=False)


def _assistant(parts: Sequence[WirePart]) -> str:
    """One assistant message, or nothing when it neither speaks nor calls."""
    thoughts = [
        part.raw.strip()[1:-1].strip()
        for part in parts
        if isinstance(part, WireOpaque) and _is_thought(part.raw)
    ]
    content = _said(parts)
    calls = [_call(part) for part in parts if isinstance(part, WireCall)]
    if not (content or calls):
        return ""
    members = [*thoughts[:1], f'"content":{quoted(content)}']
    if calls:
        members.append(f'"tool_calls":[{",".join(calls)}]')
    return f'{{"role":"assistant",{",".join(members)}}}'


def _is_thought(raw: str) -> bool:
    return [key for key, _ in parse(raw).items()] == [THINKING]


def _call(call: WireCall) -> str:
    refuse_unlike(call.call_id, call.name)
    return (
        f'{{"id":"{call.call_id}","function":'
        f'{{"name":"{call.name}","arguments":{call.arguments}}}}}'
    )


def _is_text(result: WireResult) -> bool:
    return all(isinstance(part, WireText) for part in result.content)


def _tool_message(result: WireResult) -> str:
    refuse_unlike(result.call_id, result.name)
    text = _said(result.content) if _is_text(result) else IMAGE_FOLLOWS
    if not says_something(text):
        refuse(f"The result of call {result.call_id} has no content; say that there was no output.")
    failed = CALL_FAILED if result.is_error else ""
    return (
        f'{{"role":"tool","tool_name":"{result.name}","tool_call_id":"{result.call_id}",'
        f'"content":{quoted(failed + text)}}}'
    )


def _user(parts: Sequence[WirePart]) -> str:
    """One user message, or nothing when it says nothing."""
    images = [part.base64 for part in parts if isinstance(part, WireImage) and part.base64]
    content = _said(parts, images=True)
    if not (content or images):
        return ""
    shown = f',"images":[{",".join(quoted(image) for image in images)}]' if images else ""
    return f'{{"role":"user","content":{quoted(content)}{shown}}}'


def _said(parts: Sequence[WirePart], *, images: bool = False) -> str:
    return "\n".join(text for part in parts for text in _texts(part, images=images))


def _texts(part: WirePart, *, images: bool) -> Iterator[str]:
    match part:
        case WireText(text):
            if says_something(text):
                yield text
        case WireImage():
            if not (images and part.base64):
                yield IMAGE_LEFT_OUT
        case WireFile():
            yield FILE_LEFT_OUT
        case _:
            return


def _system(prefix: WirePrefix) -> str:
    """All rows in one message: chat templates allow a single system message."""
    return "\n\n".join(text for text in prefix.system if says_something(text))


def _prefix(prefix: WirePrefix) -> bytes:
    tools = ""
    if prefix.tools:
        tools = f'"tools":[{",".join(_tool(tool) for tool in prefix.tools)}],'
    system = _system(prefix)
    message = f'{{"role":"system","content":{quoted(system)}}}' if system else ""
    return utf8(f'{tools}"messages":[{message}', "The prefix")


def _tool(tool: WireTool) -> str:
    refuse_unlike(None, tool.name)
    return (
        f'{{"type":"function","function":{{"name":"{tool.name}",'
        f'"description":{quoted(tool.description)},"parameters":{tool.input_schema}}}}}'
    )
