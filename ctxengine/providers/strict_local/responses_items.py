"""Items of the Responses API: the window a request stands for, and what is refused or withheld in it (providers.md 2.3, 4).

Reasoning and compaction items are sealed. A reasoning item that another model or another conversation made is withheld
from the model and reported. Items in front of the newest compaction item no longer count, but for what users said.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ctxengine.providers.strict_local.exchange import Json, dump, object_of, objects, text_of
from ctxengine.providers.strict_local.openai_request import Request, bare
from ctxengine.providers.strict_local.refusal import Refusal
from ctxengine.providers.strict_local.signatures import digest
from ctxengine.providers.strict_local.state import State

REASONING = "reasoning"
_SEALED = {"reasoning": "reasoning", "compaction": "compaction"}
OUTPUTS = ("function_call_output", "custom_tool_call_output")
"""Types of the items that answer a call of the client's tools."""


class Window(NamedTuple):
    """The items that count."""

    items: list[Json]
    transformations: list[Json]
    """Reasoning items withheld from the model, and why."""


def kind_of(item: Json) -> str:
    """Type of an item; a message may leave its own out."""
    return text_of(item.get("type")) or ("message" if "role" in item else "")


def items_of(request: Request, state: State) -> list[Json]:
    """The window: what the previous response left, then this request's input.

    Raises:
        Refusal: an unknown previous response, a conversation, a reference to an item that is not kept.
    """
    value = request.body.get("input")
    if isinstance(value, str):
        value = [{"type": "message", "role": "user", "content": value}]
    if request.body.get("conversation"):
        raise Refusal("Conversation not found: this stand-in keeps none.", status=404)
    items = objects(value)
    previous = request.body.get("previous_response_id")
    if previous is not None:
        stored = state.responses.get(text_of(previous))
        if stored is None:
            raise Refusal(
                f"Previous response with id '{previous}' not found.",
                param="previous_response_id",
                code="previous_response_not_found",
            )
        items = [*stored.items, *items]
    for item in items:
        if kind_of(item) == "item_reference":
            raise Refusal(
                f"Item with id '{item.get('id')}' not found. Items are not persisted when `store` "
                "is set to false. Try again with `store` set to true, or remove this item from "
                "your input.",
                status=404,
                param="input",
            )
    return items


def refuse_broken_pairs(items: list[Json], state: State) -> None:
    """Refuse an item that came out of reasoning without that reasoning in front of it.

    Raises:
        Refusal: the reasoning is missing.
    """
    present = {text_of(item.get("id")) for item in items if kind_of(item) == REASONING}
    for item in items:
        item_id = text_of(item.get("id"))
        partner = state.partners.get(item_id)
        if partner is not None and partner not in present:
            raise Refusal(
                f"Item '{item_id}' of type '{kind_of(item)}' was provided without its required "
                f"'reasoning' item: '{partner}'.",
                param="input",
            )


def window_of(request: Request, items: list[Json], state: State) -> Window:
    """What the model would read of the items.

    Raises:
        Refusal: a sealed item that was not made here or was changed.
    """
    for number, item in enumerate(items):
        _refuse_unsealed(number, item, state)
    kept = _after_compaction(items)
    shown: list[Json] = []
    withheld: list[Json] = []
    bound = ""
    for item in kept:
        reason = _withheld(request, item, bound, kept, state)
        bound = _bind(bound, item)
        if reason is None:
            shown.append(item)
        else:
            change = {"type": "reasoning", "action": "removed", "reason": reason}
            withheld.append({"id": text_of(item.get("id")), **change})
    return Window(shown, withheld)


def bound_to(items: list[Json]) -> str:
    """Digest of all items but reasoning: what reasoning is bound to."""
    bound = ""
    for item in items:
        bound = _bind(bound, item)
    return bound


def _bind(bound: str, item: Json) -> str:
    return bound if kind_of(item) == REASONING else digest(bound, _canonical(item))


def seal_reasoning(request: Request, items: list[Json], text: str, state: State) -> str:
    """The encrypted content of a new reasoning item."""
    payload = {"m": request.model, "p": bound_to(items), "t": text}
    return state.seal.close("reasoning", payload)


def seal_compaction(request: Request, items: list[Json], state: State) -> str:
    """The encrypted content of a new compaction item: it keeps what the system said, and a summary."""
    said = [part for item in items for part in _texts(item) if item.get("role") == "user"]
    rules = [
        part
        for item in items
        for part in _texts(item)
        if item.get("role") in {"system", "developer"}
    ]
    summary = f"{len(items)} items were compacted; the user last said: {(said or [''])[-1][:120]}"
    return state.seal.close("compaction", {"m": request.model, "s": summary, "r": rules})


def sealed_text(item: Json, state: State) -> str:
    """The text that a sealed item stands for; empty for any other item."""
    kind = _SEALED.get(kind_of(item))
    payload = state.seal.open(kind, item.get("encrypted_content")) if kind else None
    if payload is None:
        return ""
    return "\n".join([text_of(payload.get("t")), text_of(payload.get("s")), *payload.get("r", [])])


def compaction_item(request: Request, items: list[Json], state: State) -> Json:
    """A new compaction item over a window."""
    sealed = seal_compaction(request, items, state)
    return {"type": "compaction", "id": state.ids.next("cmp"), "encrypted_content": sealed}


def user_messages(items: list[Json]) -> Iterator[Json]:
    """The messages of users, which a compacted window keeps."""
    return (item for item in items if kind_of(item) == "message" and item.get("role") == "user")


def parts_of(item: Json) -> list[Json]:
    """Content parts of a message or an output; a text is one part."""
    value = item.get("output") if kind_of(item) in OUTPUTS else item.get("content")
    if isinstance(value, str):
        kind = "output_text" if item.get("role") == "assistant" else "input_text"
        return [{"type": kind, "text": value}]
    return objects(value)


def part_text(part: Json) -> str:
    """A part as the prompt has it: without ids, breakpoints and what only describes output."""
    if "text" in part:
        return f"text:{text_of(part.get('text'))}"
    return dump(bare(part)).decode()


def _texts(item: Json) -> list[str]:
    return [text_of(part.get("text")) for part in parts_of(item) if part.get("text")]


def _canonical(item: Json) -> str:
    kind = kind_of(item)
    if kind == "message" or kind in OUTPUTS:
        head = text_of(item.get("role")) or text_of(item.get("call_id"))
        return digest(kind, head, *[part_text(part) for part in parts_of(item)])
    plain = {k: v for k, v in item.items() if k not in {"id", "status"} and v is not None}
    return digest(kind, dump(plain))


def _refuse_unsealed(number: int, item: Json, state: State) -> None:
    kind = _SEALED.get(kind_of(item))
    sealed = item.get("encrypted_content")
    if kind is None or (sealed is None and kind == "reasoning"):
        return
    if state.seal.open(kind, sealed) is None:
        raise Refusal(
            f"The encrypted content for item {item.get('id')} could not be verified. Reason: "
            "Encrypted content could not be decrypted or parsed.",
            param=f"input[{number}].encrypted_content",
            code="invalid_encrypted_content",
        )


def _after_compaction(items: list[Json]) -> list[Json]:
    places = [number for number, item in enumerate(items) if kind_of(item) == "compaction"]
    if not places:
        return items
    return [*user_messages(items[: places[-1]]), *items[places[-1] :]]


def _withheld(
    request: Request, item: Json, bound: str, kept: list[Json], state: State
) -> str | None:
    if kind_of(item) != REASONING:
        return None
    payload = state.seal.open("reasoning", item.get("encrypted_content"))
    context = object_of(request.body.get("reasoning")).get("context")
    if context == "current_turn" and _in_earlier_turn(item, kept):
        return "turn_boundary"
    if payload is not None and payload["m"] != request.model:
        return "model_mismatch"
    if payload is not None and payload["p"] != bound:
        return "prefix_mismatch"
    return None


def _in_earlier_turn(item: Json, kept: list[Json]) -> bool:
    users = [number for number, one in enumerate(kept) if one.get("role") == "user"]
    return bool(users) and next(n for n, one in enumerate(kept) if one is item) < users[-1]
