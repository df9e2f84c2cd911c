"""Members of foreign objects under the several names that writers give them; JSON null is no value."""

from __future__ import annotations

from ctxengine.engine.lexeme import Node, NodeKind


def first_given(record: Node | None, *names: str) -> Node | None:
    """The first of these members that is there and not null; None when there is none, or when this is no object.

    Objects that were dumped from classes carry every field they could have: a null in the place of one name says nothing
    about the others.
    """
    if record is None:
        return None
    found = (record.get(name) for name in names)
    return next(
        (node for node in found if node is not None and node.kind is not NodeKind.NULL), None
    )


def id_at(record: Node | None, *names: str) -> str | None:
    """The first of these members that is given, as the id it is: a text, or a number in its own digits."""
    node = first_given(record, *names)
    return None if node is None else id_of(node)


def id_of(node: Node) -> str | None:
    """An id that is a text or a number; None for any other value."""
    return node.raw if node.kind is NodeKind.NUMBER else node.text()


def is_true(record: Node | None, *names: str) -> bool:
    """Whether the first of these members that is given is `true`."""
    node = first_given(record, *names)
    return node is not None and node.kind is NodeKind.TRUE


def parts_of(content: Node | None) -> list[Node]:
    """Parts of a content: those of a list, or what stands in the place of one; none of null."""
    if content is None or content.kind is NodeKind.NULL:
        return []
    return list(content) if content.kind is NodeKind.ARRAY else [content]


def text_of_part(part: Node) -> str | None:
    """The text that a part is, or holds; None for any other part."""
    if part.kind is NodeKind.STRING:
        return part.text()
    held = first_given(part, "text") if part.kind is NodeKind.OBJECT else None
    return None if held is None else held.text()


def texts_of(content: Node | None) -> list[str | None]:
    """What each part of a content says, whether the content is a text, a part or a list of both.

    Whose words a message holds is judged by these: they are what is said once it was put right, whatever its form was.
    """
    return [text_of_part(part) for part in parts_of(content)]
