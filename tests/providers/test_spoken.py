"""What an error quotes of the request never decides what kind of error it is; what one server hands on of another does."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.providers import spoken
from ctxengine.providers.failures import read_failure, refuses_reasoning
from ctxengine.providers.spoken import MOST_CHARS, error_of, said, unquoted, voiced, words_of
from tests.providers.test_failure_dialects import OVER_LENGTH
from tests.providers.test_failures import NUMBERED, UNNUMBERED

TELLING = (
    *(text for text, *_ in (*OVER_LENGTH.values(), *NUMBERED.values())),
    *(text for text in UNNUMBERED.values() if not text.startswith("{")),
    *(
        "context_length_exceeded",
        "insufficient_quota",
        "rate_limit_exceeded",
        "exceeded_current_quota_error",
    ),
    *(
        "Counts tokens per minute of each shop",
        "Too many tokens, please wait",
        "Rate limit exceeded",
    ),
    *("Your credit balance is too low", "too many requests", "ThrottlingException"),
    "Why does my server say that the maximum context length is 4096 tokens?",
)
"""Words that decide where a provider says them."""

TOO_LONG = "prompt is too long: 213462 tokens > 200000 maximum"


def faulty(message: str, **members: Any) -> dict[str, Any]:
    return {"error": {"type": "invalid_request_error", "message": message, **members}}


def written(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


HANDED_ON: dict[str, Callable[[str], str]] = {
    "an exception": lambda words: f"ValueError({written(words)})",
    "an exception, in other quotes": lambda words: f"Failed: provider.ApiException({words!r}) at 3",
    "an exception that quotes an answer": lambda words: (
        f"BadRequestError({written(f'Error code: 400 - {faulty(words)}')})"
    ),
    "an exception within an exception": lambda words: (
        f"RouterError({written(f'HostException - ValueError({written(words)})')})"
    ),
    "an exception's only argument": lambda words: str((words,)),
    "an exception's only argument, after its name": lambda words: f"ValueError: {(words,)}",
    "what a server said": lambda words: f"Failed: upstream said {written(words)}.",
    "what a server answered": lambda words: (
        f"Upstream server replied with body: {written(written(faulty(words)))}"
    ),
}
"""Texts in which one server hands on the words of another."""
SENT = (*TELLING, *(handed_on(TOO_LONG) for handed_on in HANDED_ON.values()))


def found(words: str) -> list[dict[str, Any]]:
    """Pydantic's list of what is wrong, as vLLM and FastAPI give it."""
    return [{"type": "string_type", "loc": ["body", 1], "msg": "Input is no text", "input": words}]


QUOTING: dict[str, Callable[[str], str]] = {
    "a list of faults": lambda words: json.dumps({"detail": found(words)}),
    "a list of faults with what was sent in it": lambda words: json.dumps(
        {"detail": [{"msg": "Extra inputs", "input": {"message": words, "error": words}}]}
    ),
    "a list of faults as the message": lambda words: json.dumps(
        {"object": "error", "message": str(found(words)), "type": "BadRequestError", "code": 400}
    ),
    "that list handed on": lambda words: json.dumps(
        faulty(f"BadRequestError: {json.dumps({'error': {'message': str(found(words))}})}")
    ),
    "a text that quotes": lambda words: (
        f"Invalid value: {words!r}. Supported values are: 'system'."
    ),
    "a text that quotes JSON": lambda words: f"Bad member {json.dumps(words)} in messages[3].",
    "a message that quotes": lambda words: json.dumps(faulty(f"Invalid value: {words!r}.")),
    "a message that quotes JSON": lambda words: json.dumps(
        faulty(f"Unexpected {json.dumps(words)}")
    ),
    "a message that quotes an object": lambda words: json.dumps(
        faulty(f"Bad message: { ({'role': 'user', 'content': words}) }")
    ),
    "a quotation that was cut off": lambda words: json.dumps(
        faulty(f"Bad text {json.dumps(words)[:-1]}")
    ),
    "printers' quotes": lambda words: json.dumps(faulty(f"Bad text “{words}”.")),
    "a parameter": lambda words: json.dumps(faulty("Invalid role.", param=words)),
    "a value": lambda words: json.dumps(
        faulty("Invalid role.", value=words, input={"text": words})
    ),
    "a schema": lambda words: json.dumps(
        faulty("Invalid schema.", schema={"message": {"description": words}})
    ),
    "what was sent, as JSON": lambda words: json.dumps(
        {"request": {"messages": [{"content": words}]}, "error": "Bad request"}
    ),
    "what was sent, in a broken body": lambda words: (
        f'{{"error":{{"message":"No.","input":{json.dumps(words)}}},"next_call":"x}}'
    ),
    "what was sent, beside a mere code": lambda words: json.dumps(
        {"error": {"code": "bad_request", "input": {"message": words}, "value": words}}
    ),
    "what was sent, under no name of an error": lambda words: json.dumps(
        {"request": {"messages": [{"content": words, "error": words}]}}
    ),
    "what was sent, as a body": lambda words: json.dumps(
        {"code": 400, "body": {"messages": [{"error": words}], "tools": [{"title": words}]}}
    ),
    "what was sent, as a body's text": lambda words: json.dumps(
        {"code": 400, "body": json.dumps({"messages": [{"input": {"message": words}}]})}
    ),
    "a body beside a message": lambda words: json.dumps({"error": "Bad request.", "body": words}),
    "a name that is missing": lambda words: json.dumps(faulty(f"KeyError({words!r})")),
    "names that are missing": lambda words: json.dumps(faulty(f"KeyError: {(words,)}")),
    "a tuple in a text": lambda words: json.dumps(faulty(f"Invalid role, got {(words,)}")),
    "what a user said": lambda words: json.dumps(faulty(f"Bad turn: user said {words!r}")),
    "an exception that quotes": lambda words: json.dumps(
        faulty(f"ValueError({json.dumps(f'Invalid role: {json.dumps(words)}')})")
    ),
    "an event": lambda words: f"data: {json.dumps(faulty('Invalid role.', param=words))}",
}
AROUND = st.text("ab XYZ.,:;!?-'\n{}[]()", max_size=12)


@pytest.mark.parametrize("quote", QUOTING)
@given(words=st.sampled_from(SENT), before=AROUND, after=AROUND)
def test_words_quoted_from_the_request_decide_nothing(
    quote: str, words: str, before: str, after: str
) -> None:
    sent = words if "cut off" in quote else f"{before} {words} {after}"
    if "printers" in quote:
        sent = words
    body = QUOTING[quote](sent)
    for status in (400, 413, 422):
        expected = "too_large" if status == 413 else "invalid_request"
        assert read_failure(status, body) == (expected, "fail", None, None), body
    assert read_failure(429, body).code == "rate_limited", body
    assert read_failure(200, body).code in ("invalid_request", "transient"), body


@pytest.mark.parametrize("words", TELLING)
def test_the_same_words_said_by_the_provider_decide(words: str) -> None:
    body = json.dumps({"error": {"message": words}})
    assert read_failure(400, body).code in ("over_length", "rate_limited", "auth")
    assert read_failure(400, body) == read_failure(400, words)


@pytest.mark.parametrize("form", HANDED_ON)
@given(words=st.sampled_from(TELLING))
def test_the_same_words_handed_on_from_another_server_decide(form: str, words: str) -> None:
    handed_on = HANDED_ON[form](words)
    assert read_failure(400, json.dumps({"error": {"message": handed_on}})) == read_failure(
        400, words
    )
    assert read_failure(400, handed_on) == read_failure(400, words)


@pytest.mark.parametrize(
    "body",
    [
        {"statusCode": 400, "body": TOO_LONG},
        {"statusCode": 400, "body": json.dumps({"error": {"message": TOO_LONG}})},
        {"message": "ValidationError", "body": {"error": TOO_LONG}},
        {"error": {"code": "BadRequest", "innererror": {"message": TOO_LONG}}},
        {"error": {"code": "BadRequest"}, "message": TOO_LONG},
        {"Response": {"Error": {"Code": "InvalidParameter", "Message": TOO_LONG}}},
        {"fault": {"faultstring": TOO_LONG}},
        {"description": TOO_LONG},
        {"errorMessage": TOO_LONG, "code": "Error"},
        {"outcome": {"told": [{"message": TOO_LONG}]}},
    ],
)
def test_an_error_that_says_no_sentence_is_read_where_another_answer_may_stand(body: Any) -> None:
    assert read_failure(400, json.dumps(body)) == ("over_length", "reassemble", 213_462, 200_000)


def test_a_long_message_hides_neither_codes_nor_figures() -> None:
    long = f"Bad text {'x' * MOST_CHARS * 2!r}"
    coded = {"error": {"message": long, "code": "context_length_exceeded"}}
    assert read_failure(400, json.dumps(coded)).code == "over_length"
    counted = {"error": {"message": long, "n_prompt_tokens": 9_412, "n_ctx": 8_192}}
    assert read_failure(400, json.dumps(counted)).maximum == 8_192


QUOTES = 'error":"' * 2_400


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": [[QUOTES] * 25] * 40}},
        {"error": [{"message": [QUOTES] * 25}] * 40},
        {"detail": [{"errors": {"message": [QUOTES] * 50}}] * 40},
        {"code": 400, "body": [[QUOTES] * 25] * 40},
        {"error": {"message": [["x" * 40] * 50] * 50}},
        {"other": [[{"message": QUOTES}] * 25] * 40},
        [QUOTES] * 900,
    ],
)
def test_what_is_looked_at_does_not_grow_with_the_body(
    body: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at = 0

    def counted(text: str, nested: int = spoken._NESTED) -> str:
        nonlocal looked_at
        looked_at += len(text)
        return unquoted(text, nested)

    monkeypatch.setattr(spoken, "unquoted", counted)
    text = json.dumps(body)
    assert len(said(text, body)) <= MOST_CHARS
    # The text itself, and each level of the quotations in it.
    assert 0 < looked_at <= MOST_CHARS * (1 + spoken._NESTED)
    assert len(voiced(text, body)) <= 2 * MOST_CHARS


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("the model's own words, and users' too", "the model's own words, and users' too"),
        ("'max_tokens' is too large", '"" is too large'),
        (
            """{'error': {'message': "it's so", 'param': 'x'}}""",
            """{"": {"": "it's so", "": ""}}""",
        ),
        (r'x - {"message": "a \"b\" c"}', 'x - {"": "a "" c"}'),
        ('desc = "so"', 'desc = "so"'),
        ('an inch is 5" long', 'an inch is 5" long'),
        ("\"n_prompt_tokens\": 4, 'n_ctx': 3", '"n_prompt_tokens": 4, "n_ctx": 3'),
        ('"\\', '""'),
        ("", ""),
    ],
)
def test_a_quotation_is_left_out_unless_a_server_speaks_in_it(text: str, own: str) -> None:
    assert unquoted(text) == own


@given(st.text("'\"\\“”{}[]:,=ab \n", max_size=60))
def test_any_text_is_read(text: str) -> None:
    assert len(unquoted(text)) <= 2 * len(text) + 2
    assert read_failure(400, text).code == "invalid_request"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("error", "Error", "response", "base_resp", "message", "details", "metadata"),
                    *("raw", "__type", "aException", "code", "n_ctx", "input", ""),
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(json_values)
def test_any_body_is_read(body: Any) -> None:
    assert isinstance(said("", body), str)
    assert all(word.isascii() for word in words_of(body))
    assert read_failure(400, json.dumps(body)).next == "fail"


def test_an_object_within_an_object_without_end_is_read() -> None:
    assert read_failure(400, '{"error":' * 900 + "1" + "}" * 900).code == "invalid_request"
    assert read_failure(400, '{"detail":[' * 9_000).code == "invalid_request"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"validationException": {"message": "x"}}, ["validationException"]),
        ({"validationException": None}, ["validationException"]),
        ({"a": {}, "validationException": {}}, []),
        ({"an own Exception": {"message": "x"}}, []),
        ({"__type": "com.amazon.coral#SlowException"}, ["SlowException"]),
        ({"__type": "SlowException:http://x/"}, ["SlowException"]),
        ({"__type": "a#b c"}, []),
        ({"Error": {"Code": "SlowException", "Message": "x"}}, ["SlowException"]),
        ({"error": {"code": "a1", "type": "b1", "status": "c1"}}, ["a1", "b1", "c1"]),
    ],
)
def test_an_error_is_named_by_its_code_its_type_or_its_only_member(
    body: dict[str, Any], words: list[str]
) -> None:
    assert words_of(body) == words


def test_the_error_stands_under_its_name() -> None:
    assert error_of({"throttlingException": {"message": "x"}}) == {"message": "x"}
    assert error_of({"throttlingException": "x"}) == {"throttlingException": "x"}


def test_reasoning_is_refused_by_what_the_provider_says_quotes_and_all() -> None:
    refusal = "Item 'rs_1' of type 'reasoning' was provided without its required following item."
    assert refuses_reasoning(json.dumps({"error": {"message": refusal}}))
    assert refuses_reasoning(refusal)
    assert not refuses_reasoning(json.dumps(faulty("Invalid role.", param=refusal)))
    assert not refuses_reasoning(json.dumps({"detail": found(refusal)}))


@pytest.mark.parametrize(
    "filler", ['"', "'", '": "', "'message':'", '"message":"', '\\"', "message=", "a:''", " 'a"]
)
def test_a_hostile_body_of_quotes_costs_no_time(filler: str) -> None:
    body = "maximum context length is 1 tokens " + filler * (200_000 // len(filler))
    assert read_failure(400, body).code == "over_length"
    assert read_failure(400, json.dumps({"message": body})).code == "over_length"
