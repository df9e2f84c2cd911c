"""An item's digest is that of its canonical form, however the text of that form is made."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.canonical import canonical_bytes, sha256_hex
from ctxengine.engine.derive import item_digest
from ctxengine.engine.items import DecodedItem, FilePart, ForeignPart, ImagePart, ItemKind, TextPart

clean = st.text(st.characters(exclude_categories=["Cs"]))
perhaps = st.none() | clean


def parts(texts: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    none_or = st.none() | texts
    return st.one_of(
        st.builds(TextPart, texts),
        st.builds(ImagePart, media_type=none_or, base64=none_or, url=none_or),
        st.builds(FilePart, media_type=none_or, base64=none_or, url=none_or, name=none_or),
        st.builds(ForeignPart, kind=texts, raw=texts, api=texts),
    )


def form(part: Any) -> list[str]:
    match part:
        case TextPart(text):
            return ["text", text]
        case ImagePart():
            return ["image", part.media_type or "", part.url or "", part.base64 or ""]
        case FilePart():
            named = part.media_type or "", part.url or "", part.base64 or "", part.name or ""
            return ["file", *named]
        case _:
            return ["foreign", part.kind, part.api, part.raw]


@given(
    kind=st.sampled_from(list(ItemKind)),
    texts=st.tuples(perhaps, perhaps, perhaps),
    content=st.lists(parts(clean), max_size=3),
)
def test_the_digest_covers_the_canonical_form(
    kind: ItemKind, texts: tuple[str | None, str | None, str | None], content: list[Any]
) -> None:
    call_id, name, arguments = texts
    item = DecodedItem(0, kind, tuple(content), call_id, name, arguments)
    shape = [kind.value, call_id or "", name or "", arguments or "", [form(p) for p in content]]
    assert item_digest(item) == sha256_hex(canonical_bytes(shape))


@given(st.lists(parts(st.text(st.characters(codec=None))), min_size=1, max_size=2))
def test_text_that_is_no_utf8_has_a_digest_of_its_own(content: list[Any]) -> None:
    item = DecodedItem(0, ItemKind.USER_MESSAGE, tuple(content))
    other = DecodedItem(0, ItemKind.USER_MESSAGE, (*content, TextPart("\ud83d")))
    assert item_digest(item) == item_digest(item)
    assert item_digest(item) != item_digest(other)
