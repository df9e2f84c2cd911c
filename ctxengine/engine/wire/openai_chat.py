"""OpenAI Chat Completions: neutral messages as whole chat messages, one fragment each.

A tool message holds text only. A result with an image or a file therefore says so in its tool
message, and its whole enveloped content stands in a user message right behind the results: the
envelope is never torn apart. The API has no error flag; a fixed line in front of the content says
that the call failed. White-space-only texts are left out.
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
    address,
    quoted,
    refuse,
    says_something,
    utf8,
)
from ctxengine.engine.wire.markers import place
from ctxengine.engine.wire.openai_parts import EXPLICIT, check, with_breakpoint

MEMBER_KINDS = frozenset({"reasoning_content", "reasoning", "reasoning_details", "thinking_blocks"})
"""Opaque kinds that are members of the assistant message: their raw text is an object of that one
member.
"""

ID_LIMIT = 40
NAME_LIMIT = 64

_SOUNDS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mp3": "mp3", "audio/mpeg": "mp3"}


class OpenAIChatRenderer:
    """Renders for `POST /v1/chat/completions`."""

    api = WireApi.OPENAI_CHAT
    version = "openai-chat-1"
    states_window = False

    def fragments(self, message: WireMessage) -> tuple[Fragment, ...]:
        """Messages of one turn: tool messages first, then the user's; or one assistant message.

        Raises:
            WireInvalid: an id or a name breaks the API's pattern, or a result has no content.
        """
        if message.role == "assistant":
            text = _assistant(message.parts)
            return (_fragment(text, markable=False),) if text else ()
        results = [part for part in message.parts if isinstance(part, WireResult)]
        rest = [part for part in message.parts if not isinstance(part, WireResult)]
        texts = [_tool_message(result) for result in results]
        texts += [_user(result.content) for result in results if not _is_text(result)]
        if spoken := _spoken(rest):
            texts.append(_user_message(spoken))
        return tuple(_fragment(text, markable=True) for text in texts)

    def prefix_bytes(self, prefix: WirePrefix) -> bytes:
        """Tools, then the opening of the messages with the one system message."""
        return _prefix(prefix, marked=False)

    def body(
        self,
        prefix: WirePrefix,
        fragments: tuple[Fragment, ...],
        params: WireParams,
        markers: tuple[Marker, ...] = (),
    ) -> bytes:
        """The request: model, max_completion_tokens, tools, messages, prompt_cache_key.

        Raises:
            WireInvalid: more markers than the API keeps.
        """
        system = bool(_system(prefix))
        places = place(markers, fragments, tools=False, system=system)
        region = _prefix(prefix, marked=places.system is not None)
        messages = [
            with_breakpoint(fragment.data, b"content", b"text")
            if index in places.fragments
            else fragment.data
            for index, fragment in enumerate(fragments)
        ]
        head = (
            f'{{"model":{quoted(params.model)},"max_completion_tokens":{params.max_output_tokens},'
        )
        tail = f'],"prompt_cache_key":{quoted(params.session_key)}'
        return b"".join(
            (
                utf8(head, "The model name"),
                region,
                b"," if system and messages else b"",
                b",".join(messages),
                utf8(tail, "The session key"),
                EXPLICIT if places.system or places.fragments else b"",
                b"}",
            )
        )


def _fragment(text: str, *, markable: bool) -> Fragment:
    return Fragment(role="", data=utf8(text, "A message"), markable=markable)


def _assistant(parts: Sequence[WirePart]) -> str:
    """One assistant message, or nothing when it neither speaks nor calls."""
    members = [
        part.raw.strip()[1:-1].strip()
        for part in parts
        if isinstance(part, WireOpaque) and _is_member(part)
    ]
    audio = [part.raw for part in parts if isinstance(part, WireOpaque) and part.kind == "audio"]
    calls = [_call(part) for part in parts if isinstance(part, WireCall)]
    spoken = _spoken(parts, assistant=True)
    if not (calls or spoken or audio):
        return ""
    members.append(f'"content":{_content(spoken) if spoken else "null"}')
    if audio:
        members.append(f'"audio":{audio[-1]}')
    if calls:
        members.append(f'"tool_calls":[{",".join(calls)}]')
    return f'{{"role":"assistant",{",".join(members)}}}'


def _is_member(part: WireOpaque) -> bool:
    """Whether reasoning came as a member of its message rather than as a content part."""
    if part.kind not in MEMBER_KINDS:
        return False
    keys = [key for key, _ in parse(part.raw).items()]
    return bool(keys) and MEMBER_KINDS.issuperset(keys)


def _call(call: WireCall) -> str:
    check(call.call_id, call.name, id_limit=ID_LIMIT, name_limit=NAME_LIMIT)
    return (
        f'{{"id":"{call.call_id}","type":"function","function":'
        f'{{"name":"{call.name}","arguments":{quoted(call.arguments)}}}}}'
    )


def _is_text(result: WireResult) -> bool:
    return all(isinstance(part, WireText) for part in result.content)


def _tool_message(result: WireResult) -> str:
    check(result.call_id, None, id_limit=ID_LIMIT, name_limit=NAME_LIMIT)
    texts = [part.text for part in result.content if isinstance(part, WireText)]
    text = "\n".join(texts) if _is_text(result) else IMAGE_FOLLOWS
    if not says_something(text):
        refuse(f"The result of call {result.call_id} has no content; say that there was no output.")
    failed = CALL_FAILED if result.is_error else ""
    return f'{{"role":"tool","tool_call_id":"{result.call_id}","content":{quoted(failed + text)}}}'


def _user(parts: Sequence[WirePart]) -> str:
    return _user_message(_spoken(parts))


def _user_message(spoken: list[tuple[str | None, str]]) -> str:
    return f'{{"role":"user","content":{_content(spoken)}}}'


def _spoken(parts: Sequence[WirePart], *, assistant: bool = False) -> list[tuple[str | None, str]]:
    """Content parts as (text of a text part or nothing, JSON text of the part)."""
    return [pair for part in parts for pair in _part(part, assistant=assistant)]


def _part(part: WirePart, *, assistant: bool) -> Iterator[tuple[str | None, str]]:
    match part:
        case WireText():
            if says_something(part.text):
                yield _text(part.text)
        case WireOpaque():
            if part.kind != "audio" and not _is_member(part):
                yield None, part.raw
        case WireImage():
            url = address(part)
            if assistant or url is None:
                yield _text(IMAGE_LEFT_OUT)
            else:
                yield None, f'{{"type":"image_url","image_url":{{"url":{quoted(url)}}}}}'
        case WireFile(base64=str(data)) if (form := _sound(part)) and not assistant:
            heard = f'{{"data":{quoted(data)},"format":"{form}"}}'
            yield None, f'{{"type":"input_audio","input_audio":{heard}}}'
        case WireFile():
            url = None if part.base64 is None or _is_audio(part) else address(part)
            if assistant or url is None:
                yield _text(FILE_LEFT_OUT)
            else:
                name = quoted(part.name or "attachment.pdf")
                yield (
                    None,
                    f'{{"type":"file","file":{{"filename":{name},"file_data":{quoted(url)}}}}}',
                )
        case _:
            return


def _is_audio(part: WireFile) -> bool:
    return (part.media_type or "").startswith("audio/")


def _sound(part: WireFile) -> str:
    """The API's word for a recording's format; empty for any other file, and for formats that it does not hear."""
    return _SOUNDS.get(part.media_type or "", "")


def _text(text: str) -> tuple[str, str]:
    return text, f'{{"type":"text","text":{quoted(text)}}}'


def _content(spoken: list[tuple[str | None, str]]) -> str:
    """One text alone is a plain string, which every server reads; anything else is a list."""
    text = spoken[0][0]
    if len(spoken) == 1 and text is not None:
        return quoted(text)
    return f"[{','.join(part for _, part in spoken)}]"


def _system(prefix: WirePrefix) -> str:
    """All rows in one message: chat templates of many servers allow a single system message."""
    return "\n\n".join(text for text in prefix.system if says_something(text))


def _prefix(prefix: WirePrefix, *, marked: bool) -> bytes:
    tools = ""
    if prefix.tools:
        tools = f'"tools":[{",".join(_tool(tool) for tool in prefix.tools)}],'
    region = utf8(f'{tools}"messages":[', "The tool definitions")
    system = _system(prefix)
    if not system:
        return region
    message = utf8(f'{{"role":"system","content":{quoted(system)}}}', "The system text")
    return region + (with_breakpoint(message, b"content", b"text") if marked else message)


def _tool(tool: WireTool) -> str:
    check(None, tool.name, id_limit=ID_LIMIT, name_limit=NAME_LIMIT)
    return (
        f'{{"type":"function","function":{{"name":"{tool.name}",'
        f'"description":{quoted(tool.description)},"parameters":{tool.input_schema}}}}}'
    )
