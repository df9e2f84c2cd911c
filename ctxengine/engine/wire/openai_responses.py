"""OpenAI Responses, stateless: neutral messages as input items, one fragment each.

The system texts are one developer message, since top-level instructions cannot carry a breakpoint
(design 7.13). Reasoning items go back as they came, directly in front of what they produced; that
one item carries the id the provider gave it, since a server that knows the pair refuses one half
without the other. No other message, call or item of the tool search has an id, so none can demand
a partner that is not there. A text of an assistant turn is a message item with its `phase`. The API
has no error flag for outputs; a fixed line in front of the content says that the call failed.
White-space-only texts are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
    IMAGE_LEFT_OUT,
    address,
    quoted,
    refuse,
    says_something,
    utf8,
)
from ctxengine.engine.wire.markers import place
from ctxengine.engine.wire.openai_parts import EXPLICIT, check, with_breakpoint
from ctxengine.engine.wire.tool_search import (
    deferred,
    is_item,
    search_declaration,
    without_id,
)

ID_LIMIT = 64
NAME_LIMIT = 128

_REASONING = "reasoning"
_OUTPUT_OPENING = b'{"type":"function_call_output"'


class OpenAIResponsesRenderer:
    """Renders for `POST /v1/responses` with `store` off."""

    api = WireApi.OPENAI_RESPONSES
    version = "openai-responses-1"
    states_window = False

    def fragments(self, message: WireMessage) -> tuple[Fragment, ...]:
        """Items of one turn; a turn of reasoning alone gives none.

        Raises:
            WireInvalid: an id or a name breaks the API's pattern, or a result has no content.
        """
        if message.role == "assistant":
            return tuple(_fragment(text, markable=False) for text in _assistant(message))
        results = [part for part in message.parts if isinstance(part, WireResult)]
        rest = [part for part in message.parts if not isinstance(part, WireResult)]
        texts = [_output(result) for result in results]
        fragments = [_fragment(text, markable=True) for text in texts]
        whole = [part for part in rest if isinstance(part, WireOpaque)]
        fragments += [_fragment(part.raw, markable=False) for part in whole]
        if spoken := _parts([part for part in rest if not isinstance(part, WireOpaque)]):
            fragments.append(_fragment(_message("user", spoken), markable=True))
        return tuple(fragments)

    def prefix_bytes(self, prefix: WirePrefix) -> bytes:
        """Tools, then the opening of the input with the developer message."""
        return _prefix(prefix, marked=False)

    def body(
        self,
        prefix: WirePrefix,
        fragments: tuple[Fragment, ...],
        params: WireParams,
        markers: tuple[Marker, ...] = (),
    ) -> bytes:
        """The request: model, store, include, max_output_tokens, tools, input, prompt_cache_key.

        Raises:
            WireInvalid: more markers than the API keeps.
        """
        system = bool(_system(prefix))
        places = place(markers, fragments, tools=False, system=system)
        items = [
            _marked(fragment.data) if index in places.fragments else fragment.data
            for index, fragment in enumerate(fragments)
        ]
        head = (
            f'{{"model":{quoted(params.model)},"store":false,'
            f'"include":["reasoning.encrypted_content"],'
            f'"max_output_tokens":{params.max_output_tokens},'
        )
        if params.compact_threshold:
            head += (
                '"context_management":[{"type":"compaction",'
                f'"compact_threshold":{params.compact_threshold}}}],'
            )
        tail = f'],"prompt_cache_key":{quoted(params.session_key)}'
        return b"".join(
            (
                utf8(head, "The model name"),
                _prefix(prefix, marked=places.system is not None),
                b"," if system and items else b"",
                b",".join(items),
                utf8(tail, "The session key"),
                EXPLICIT if places.system or places.fragments else b"",
                b"}",
            )
        )


def _fragment(text: str, *, markable: bool) -> Fragment:
    return Fragment(role="", data=utf8(text, "An item"), markable=markable)


def _marked(data: bytes) -> bytes:
    key = b"output" if data.startswith(_OUTPUT_OPENING) else b"content"
    return with_breakpoint(data, key, b"input_text")


def _assistant(message: WireMessage) -> list[str]:
    """Items of an assistant turn; none when it holds reasoning alone."""
    texts: list[str] = []
    item_id: str | None = None
    speaks = False
    for part in message.parts:
        if isinstance(part, WireOpaque) and part.kind == _REASONING:
            texts.append(part.raw)
            item_id = part.follower_id
        elif not isinstance(part, WireText) or says_something(part.text):
            texts.append(_assistant_item(part, message.phase, item_id))
            item_id = None
            speaks = True
    return texts if speaks else []


def _assistant_item(part: WirePart, phase: str | None, item_id: str | None) -> str:
    match part:
        case WireText():
            return _spoken(part.text, phase, item_id)
        case WireCall():
            check(part.call_id, part.name, id_limit=ID_LIMIT, name_limit=NAME_LIMIT)
            own = "" if item_id is None else f'"id":{quoted(item_id)},'
            return (
                f'{{"type":"function_call",{own}"call_id":"{part.call_id}","name":"{part.name}",'
                f'"arguments":{quoted(part.arguments)}}}'
            )
        case WireOpaque():
            # What a search leaves is accepted without an id; under its own it demands the reasoning in front of it.
            return without_id(part.raw) if item_id is None and is_item(part.kind) else part.raw
        case WireImage():
            return _spoken(IMAGE_LEFT_OUT, phase, item_id)
        case WireFile():
            return _spoken(FILE_LEFT_OUT, phase, item_id)
        case WireResult():
            refuse(f"The result of call {part.call_id} stands in an assistant message.")


def _spoken(text: str, phase: str | None, item_id: str | None) -> str:
    """A message item; under the provider's own id it takes the form of the API's output."""
    suffix = "" if phase is None else f',"phase":{quoted(phase)}'
    if item_id is None:
        return f'{{"type":"message","role":"assistant","content":{quoted(text)}{suffix}}}'
    return (
        f'{{"type":"message","id":{quoted(item_id)},"status":"completed","role":"assistant",'
        f'"content":[{{"type":"output_text","text":{quoted(text)},"annotations":[]}}]{suffix}}}'
    )


def _output(result: WireResult) -> str:
    check(result.call_id, None, id_limit=ID_LIMIT, name_limit=NAME_LIMIT)
    content: list[WirePart] = list(result.content)
    parts = _parts(content)
    if not parts:
        refuse(f"The result of call {result.call_id} has no content; say that there was no output.")
    failed = CALL_FAILED if result.is_error else ""
    if len(content) == 1 and isinstance(content[0], WireText):
        output = quoted(failed + content[0].text)
    else:
        output = f"[{','.join([_text(failed)] * bool(failed) + parts)}]"
    return f'{{"type":"function_call_output","call_id":"{result.call_id}","output":{output}}}'


def _message(role: str, parts: list[str]) -> str:
    return f'{{"type":"message","role":"{role}","content":[{",".join(parts)}]}}'


def _parts(parts: Sequence[WirePart]) -> list[str]:
    return [text for part in parts for text in _part(part)]


def _part(part: WirePart) -> Iterator[str]:
    match part:
        case WireText():
            if says_something(part.text):
                yield _text(part.text)
        case WireImage():
            url = address(part)
            if url is None:
                yield _text(IMAGE_LEFT_OUT)
            else:
                yield f'{{"type":"input_image","detail":"auto","image_url":{quoted(url)}}}'
        case WireFile():
            yield _file(part)
        case WireCall() | WireResult() | WireOpaque():
            refuse("A user message holds results, texts, images and files only.")


def _file(part: WireFile) -> str:
    url = address(part)
    if url is None or (part.media_type or "").startswith("audio/"):
        return _text(FILE_LEFT_OUT)
    if part.base64 is None:
        return f'{{"type":"input_file","file_url":{quoted(url)}}}'
    name = quoted(part.name or "attachment.pdf")
    return f'{{"type":"input_file","filename":{name},"file_data":{quoted(url)}}}'


def _text(text: str) -> str:
    return f'{{"type":"input_text","text":{quoted(text)}}}'


def _system(prefix: WirePrefix) -> list[str]:
    return [_text(text) for text in prefix.system if says_something(text)]


def _prefix(prefix: WirePrefix, *, marked: bool) -> bytes:
    declared = [_tool(tool) for tool in prefix.tools]
    if prefix.deferred:
        aside = [deferred(_tool(tool)) for tool in prefix.deferred]
        declared = [search_declaration(WireApi.OPENAI_RESPONSES), *declared, *aside]
    tools = f'"tools":[{",".join(declared)}],' if declared else ""
    region = utf8(f'{tools}"input":[', "The tool definitions")
    system = _system(prefix)
    if not system:
        return region
    message = utf8(_message("developer", system), "The system text")
    return region + (_marked(message) if marked else message)


def _tool(tool: WireTool) -> str:
    check(None, tool.name, id_limit=ID_LIMIT, name_limit=NAME_LIMIT)
    return (
        f'{{"type":"function","name":"{tool.name}","description":{quoted(tool.description)},'
        f'"parameters":{tool.input_schema},"strict":false}}'
    )
