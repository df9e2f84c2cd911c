"""Gemini generateContent: neutral messages as parts, neighbours of one role joined into one content.

A function response is an object: `output` holds the enveloped text, `error` that of a failed call. What is not text alone
stands whole, enveloped, behind the responses of its turn. Every first call of a step carries a thought signature: its own
inside the run, afterwards the word by which the API lets calls of unknown origin pass.
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
    FILE_LEFT_OUT,
    IMAGE_FOLLOWS,
    IMAGE_LEFT_OUT,
    image_type,
    quoted,
    refuse,
    says_something,
    utf8,
)
from ctxengine.engine.wire.names import refuse_unlike
from ctxengine.engine.wire.turns import joined

SIGNATURE_KEYS = ("thoughtSignature", "thought_signature")
UNSIGNED = "skip_thought_signature_validator"
"""Accepted in place of a signature that is not at hand (providers.md 2.3)."""
_ROLES = {"user": "user", "assistant": "model"}
_OWN_FILES = ("https://generativelanguage.googleapis.com/", "gs://")


class GoogleRenderer:
    """Renders for `POST /v1beta/models/{model}:generateContent`; `model` in the body is the path's."""

    api = WireApi.GOOGLE
    version = "google-1"
    states_window = False

    def fragments(self, message: WireMessage) -> tuple[Fragment, ...]:
        """Parts of one turn; a turn of thoughts alone gives none.

        Raises:
            WireInvalid: an id or a name breaks the API's pattern, or a result has no content.
        """
        parts = _said(message.parts) if message.role == "assistant" else list(_asked(message.parts))
        if not parts:
            return ()
        data = utf8(",".join(parts), "A message")
        return (Fragment(message.role, data, positions=len(parts), markable=False),)

    def prefix_bytes(self, prefix: WirePrefix) -> bytes:
        """Tools and system instruction as they stand in the body."""
        return _prefix(prefix)

    def body(
        self,
        prefix: WirePrefix,
        fragments: tuple[Fragment, ...],
        params: WireParams,
        markers: tuple[Marker, ...] = (),
    ) -> bytes:
        """The request: model, generationConfig, tools, systemInstruction, contents. Markers mean nothing here."""
        head = (
            f'{{"model":{quoted(params.model)},'
            f'"generationConfig":{{"maxOutputTokens":{params.max_output_tokens}}},'
        )
        pieces = [utf8(head, "The model name"), _prefix(prefix), b'"contents":[']
        pieces += joined(fragments, _ROLES, b"parts")
        pieces.append(b"]}")
        return b"".join(pieces)


def _said(parts: Sequence[WirePart]) -> list[str]:
    """Parts of a model's turn, or nothing when it only thought."""
    texts: list[str] = []
    signature, speaks, called = "", False, False
    for part in parts:
        match part:
            case WireOpaque():
                if (found := _signature_alone(part.raw)) is not None:
                    signature = found
                else:
                    texts.append(part.raw)
                    speaks |= part.kind != "reasoning"
                continue
            case WireCall():
                unsigned = "" if called else quoted(UNSIGNED)
                texts.append(_signed(_call(part), signature or unsigned))
                called = True
            case WireText(text):
                if not says_something(text):
                    continue
                texts.append(_signed(_text(text), signature))
            case WireImage() | WireFile() as media:
                texts.append(_signed(_text(_left_out(media)), signature))
            case _:
                continue
        signature, speaks = "", True
    if signature and speaks:
        texts.append(_signed(_text(""), signature))
    return texts if speaks else []


def _asked(parts: Sequence[WirePart]) -> Iterator[str]:
    results = [part for part in parts if isinstance(part, WireResult)]
    for result in results:
        yield _response(result)
    for result in results:
        if not _is_text(result):
            for piece in result.content:
                yield from _content(piece)
    for part in parts:
        yield from _content(part)


def _content(part: WirePart) -> Iterator[str]:
    match part:
        case WireText(text):
            if says_something(text):
                yield _text(text)
        case WireOpaque():
            yield part.raw
        case WireImage() | WireFile():
            yield _media(part)
        case _:
            return


def _text(text: str) -> str:
    return f'{{"text":{quoted(text)}}}'


def _left_out(part: WireImage | WireFile) -> str:
    return IMAGE_LEFT_OUT if isinstance(part, WireImage) else FILE_LEFT_OUT


def _media(part: WireImage | WireFile) -> str:
    known = part.media_type
    if isinstance(part, WireImage):
        known = known or image_type(part) or "image/png"
    kind = quoted(known or "application/pdf")
    if part.base64 is not None:
        return f'{{"inlineData":{{"mimeType":{kind},"data":{quoted(part.base64)}}}}}'
    if part.url is not None and part.url.startswith(_OWN_FILES):
        return f'{{"fileData":{{"mimeType":{kind},"fileUri":{quoted(part.url)}}}}}'
    return _text(_left_out(part))


def _call(call: WireCall) -> str:
    refuse_unlike(call.call_id, call.name)
    return (
        f'{{"functionCall":{{"id":"{call.call_id}","name":"{call.name}","args":{call.arguments}}}}}'
    )


def _signed(part: str, signature: str) -> str:
    return f'{part[:-1]},"thoughtSignature":{signature}}}' if signature else part


def _signature_alone(raw: str) -> str | None:
    """The signature's own text where an opaque block is nothing but one; None for a whole part."""
    members = parse(raw).items()
    if len(members) == 1 and members[0][0] in SIGNATURE_KEYS:
        return members[0][1].raw
    return None


def _is_text(result: WireResult) -> bool:
    return all(isinstance(part, WireText) for part in result.content)


def _response(result: WireResult) -> str:
    refuse_unlike(result.call_id, result.name)
    texts = [part.text for part in result.content if isinstance(part, WireText)]
    text = "\n".join(texts) if _is_text(result) else IMAGE_FOLLOWS
    if not says_something(text):
        refuse(f"The result of call {result.call_id} has no content; say that there was no output.")
    key = "error" if result.is_error else "output"
    return (
        f'{{"functionResponse":{{"id":"{result.call_id}","name":"{result.name}",'
        f'"response":{{"{key}":{quoted(text)}}}}}}}'
    )


def _prefix(prefix: WirePrefix) -> bytes:
    pieces = []
    if prefix.tools:
        declared = ",".join(_tool(tool) for tool in prefix.tools)
        pieces.append(f'"tools":[{{"functionDeclarations":[{declared}]}}],')
    texts = [_text(text) for text in prefix.system if says_something(text)]
    if texts:
        pieces.append(f'"systemInstruction":{{"parts":[{",".join(texts)}]}},')
    return utf8("".join(pieces), "The prefix")


def _tool(tool: WireTool) -> str:
    refuse_unlike(None, tool.name)
    return (
        f'{{"name":"{tool.name}","description":{quoted(tool.description)},'
        f'"parametersJsonSchema":{tool.input_schema}}}'
    )
