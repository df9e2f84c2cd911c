"""Reading a provider's refusal: what kind it is, and the numbers in it (providers.md 3)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

from ctxengine.providers.spoken import error_of, said, voiced, words_of


class Failure(NamedTuple):
    """What a reported error means for the run."""

    code: str
    """`over_length`, `rate_limited`, `transient`, `auth`, `invalid_request` or `too_large`."""
    next: Literal["reassemble", "fail"]
    actual: int | None = None
    """Tokens the provider counted, where it says so."""
    maximum: int | None = None
    """Tokens the provider allows, where it says so."""


class _Wording(NamedTuple):
    pattern: re.Pattern[str]
    actual: int | None
    maximum: int | None


def _wording(pattern: str, actual: int | None = None, maximum: int | None = None) -> _Wording:
    # A figure begins where its digits do: otherwise a long run of digits is looked at from each of them.
    whole = pattern.replace(r"(\d+)", r"(?<!\d)(\d+)")
    return _Wording(re.compile(whole, re.IGNORECASE | re.DOTALL), actual, maximum)


_LIMIT = r"(?:maximum context length (?:is|of)|configured limit of) (\d+) tokens"

_NUMBERED = (
    _wording(r"(\d+) tokens > (\d+) maximum", 1, 2),
    _wording(r"passed (\d+) input tokens.{0,200}?maximum input length of (\d+)", 1, 2),
    _wording(r"exceed context limit: (\d+) \+ \d+ > (\d+)", 1, 2),
    _wording(rf"{_LIMIT}\D{{0,80}}?resulted in (\d+) tokens", 2, 1),
    # Servers that count output in say how much of it is prompt; only the prompt can be made shorter.
    *(
        _wording(rf"{_LIMIT}.{{0,200}}?{prompt}", 2, 1)
        for prompt in (
            r"contains (?:at least )?(\d+) input tokens",
            r"\((\d+) (?:in (?:the messages|your prompt)|of text input)",
            r"(\d+) tokens from the input messages",
            r"your request has (\d+) input tokens",
            r"(?:requested|contains)\D{0,40}(\d+)(?!\d| output| character)",
        )
    ),
    _wording(r"input \((\d+) tokens\) is longer than the model's context length \((\d+)", 1, 2),
    _wording(r"\(length (\d+)\) is longer than the maximum model length of (\d+)", 1, 2),
    _wording(r"\((\d+)\) exceeds the maximum number of tokens allowed \((\d+)\)", 1, 2),
    _wording(
        r"input length \(?(\d+)(?: tokens)?\)? exceeds (?:the |model's |the model's )?maximum "
        r"(?:context |allowed (?:input )?)?length (?:of )?\(?(\d+)",
        1,
        2,
    ),
    _wording(r"Max input tokens: (\d+), request input token count: (\d+)", 2, 1),
    _wording(r"Prompt has (\d+) tokens, but the configured context size is (\d+)", 1, 2),
    _wording(r"Prompt (\d+) > (\d+) maximum", 1, 2),
    _wording(r"token count is (\d+) but (?:the )?model only supports up to (\d+)", 1, 2),
    _wording(r"request \((\d+) tokens\) exceeds the available context size \((\d+)", 1, 2),
    _wording(r'"n_prompt_tokens"\s*:\s*(\d+)\b.{0,200}?"n_ctx"\s*:\s*(\d+)\b', 1, 2),
    _wording(r'"n_ctx"\s*:\s*(\d+)\b.{0,200}?"n_prompt_tokens"\s*:\s*(\d+)\b', 2, 1),
    _wording(r"maximum prompt length is (\d+) but the request contains (\d+)", 2, 1),
    _wording(r"prompt token count of (\d+) exceeds the limit of (\d+)", 1, 2),
    _wording(r"exceeded model token limit: (\d+) \(requested: (\d+)\)", 2, 1),
    _wording(r"Prompt contains (\d+) tokens.{0,120}?with (\d+) maximum", 1, 2),
    _wording(r"prompt is too long: (\d+), model maximum context length: (\d+)", 1, 2),
    _wording(r"current length is (\d+) while limit is (\d+)", 1, 2),
    _wording(r"tokens in the prompt cannot exceed (\d+) - received (\d+)", 2, 1),
    _wording(r"must be <= (\d+)\. Given: (\d+)\W{0,3}inputs\W{0,3}tokens", 2, 1),
    _wording(r"must have less than (\d+) tokens\. Given: (\d+)", 2, 1),
    _wording(r"(\d+)(?: tokens)?\D{0,40}?exceeds the (?:model's )?context window of (\d+)", 1, 2),
    # Those that state the maximum alone.
    *(
        _wording(stated, None, 1)
        for stated in (
            _LIMIT,
            r"maximum (?:allowed )?input length of (\d+)",
            r"exceeded model token limit: (\d+)",
            r"context length (?:of|is) only (\d+) tokens",
            # What is kept may be less than the whole prompt.
            r"n_keep\W{0,3}\d+\W{0,6}n_ctx\W{0,3}(\d+)",
            r"token count exceeds the maximum number of (?:input )?tokens allowed:? (\d+)",
            r"size limit exceeded by \d+ tokens.{0,120}?limit for this model is (\d+)",
            # The other figure counts the answer in.
            r"exceeded this model context window limit \((\d+)",
            r"range of input length should be \[\d+, ?(\d+)\]",
            r"too large for \S{1,80} model\. Max size: (\d+) tokens",
        )
    ),
)

_UNNUMBERED = re.compile(
    r"context[_ ]?(?:length|window)[_ ]?exceeded|exceed_context_size_error|exceeds the context window"
    r"|prompt is too long|input is too long|exceeds the available context size|maximum context length"
    r"|(?:longer|greater) than the (?:model's )?context length|exceeded (?:max )?context length"
    r"|reduce the length of the (?:messages|input prompt)|context window exceeds limit"
    r"|\btokens?_limit_(?:exceeded|reached)|input tokens exceeds? maximum"
    r"|too many tokens: size limit exceeded|tokens in request more than max(?:imum)? tokens allowed"
    r"|token count exceeds the maximum number of|must be less than the context length"
    r"|length of all messages is too long|exceeds (?:this |the )?model(?:'s)? context window"
    r"|(?:prompt|input) exceeds max(?:imum)? length|超长|长度超|上下文长度",
    re.IGNORECASE,
)

_RATE = re.compile(
    r"tokens per (?:min(?:ute)?|day|hour)\b|too many tokens, please wait"
    r"|rate[ _-]?limit(?:ed\b|[ _-]?(?:error|exceeded|reached)|s? (?:has been |was )?(?:exceeded|reached|hit))"
    r"|exceeded\b.{0,60}\brate[ _-]?limit|too[ _-]?many[ _-]?requests|throttl(?:ed|ing)[ _]?(?:exception|error)"
    r"|(?:request|you) (?:was|were|is|are|has been|have been) (?:being )?throttled",
    re.IGNORECASE | re.DOTALL,
)
"""Limits on how often, which some providers word like limits on length and give other statuses."""

_FAULTY = frozenset(
    {
        *("invalid_request_error", "invalid_prompt", "invalid_argument", "validationexception"),
        *("badrequesterror", "bad_request_error"),
    }
)
"""Codes (in lower case) of a request that is at fault: beside one, words about how often are about what was sent."""

_UNPAID = re.compile(
    r"insufficient[_ ](?:quota|balance)|exceeded_current_quota_error|billing_(?:hard_limit_reached|not_active)"
    r"|credit balance is too low|prepayment credits are depleted|account is not active|余额不足"
    r"|reached your (?:specified )?API usage limits|monthly spend(?:ing)? (?:limit|cap)",
    re.IGNORECASE,
)
"""An account that is used up: no waiting helps, though some providers give it the status of a rate limit."""

_MAY_PASS = re.compile(
    r"overload|unavailable|internal|server[ _]?(?:side[ _]?)?(?:error|busy)|time[ _]?d?[ _]?out|deadline|gateway"
    r"|upstream|capacity|connection|aborted|network[ _]?(?:error|failure)|unknown[ _]?error"
    r"|stream[ _]?(?:error|closed|interrupted|disconnected)"
    # An account, a subscription or a key that is terminated stays so.
    r"|(?:\A|(?<![a-z])(?:stream|socket|service|server|system|engine|backend|worker|host)[ _.]?(?:is[ _]?)?)"
    r"(?:terminated|busy)(?=\Z|[^a-z]|error|exception)"
    r"|(?<![a-z])model[ _.]?busy",
    re.IGNORECASE,
)
"""Codes of a server's trouble, by what they contain: nothing is wrong with the request."""
_CONFLICT = re.compile(r"conflict|aborted|lock", re.IGNORECASE)
_NO_CODES = frozenset(
    {
        "error",
        "failed",
        "cancelled",
        "incomplete",
        "message",
        "response.failed",
        "response.incomplete",
    }
)
"""Kinds and states of what holds an error, which say nothing of it."""

_REASONING = re.compile(
    r"signature.{0,20}thinking|thinking.{0,60}cannot be modified|binding_mismatch|thought[ _]signature"
    r"|invalid_encrypted_content|of type 'reasoning'|item with id 'rs_",
    re.IGNORECASE | re.DOTALL,
)

_MOST_TOKENS, _MOST_DIGITS = 2**31 - 1, 10
"""A larger figure is no count of a prompt, and nothing could keep it."""

_STATUS_OF_WORD: Mapping[str, int] = {
    "overloaded_error": 529,
    "invalid_api_key": 401,
    "unauthenticated": 401,
    "permission_denied": 403,
    "resource_exhausted": 429,
    "compaction_unavailable": 529,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "authentication_error": 401,
    "permission_error": 403,
    "billing_error": 402,
    "insufficient_quota": 429,
    "request_too_large": 413,
    "invalid_request_error": 400,
    "invalid_prompt": 400,
    "not_found_error": 404,
    "context_length_exceeded": 400,
    "api_error": 500,
    "server_error": 500,
    "timeout_error": 504,
    "throttlingexception": 429,
    "validationexception": 400,
    "accessdeniedexception": 403,
    "modelstreamerrorexception": 500,
    "internalserverexception": 500,
    "serviceunavailableexception": 503,
}
"""By codes in lower case."""
_FIRST_ERROR = 400


def read_failure(status: int, body: str) -> Failure:
    """Classify a provider's error by status and wording.

    An error inside a stream, whose status was that of a success, is judged by the words of its body.
    """
    decoded = _decoded(body)
    speech = said(body, decoded)
    if status < _FIRST_ERROR:
        status = status_in_stream(decoded, body)
    if status in {401, 402, 403} or (status in {400, 429} and _UNPAID.search(speech)):
        return Failure("auth", "fail")
    if status == 429:
        return Failure("rate_limited", "reassemble")
    if status >= 500 or _passes(status, decoded):
        return Failure("transient", "reassemble")
    stated = _stated_length(speech)
    if stated is None and status in {400, 413} and _is_rate(status, speech, decoded):
        return Failure("rate_limited", "reassemble")
    too_long = stated or _too_long(speech)
    if too_long is not None:
        return too_long
    if status == 413:
        return Failure("too_large", "fail")
    return Failure("invalid_request", "fail")


def _passes(status: int, body: object) -> bool:
    """Whether a status below 500 finds nothing wrong with the request: slow, early, cancelled, out of room, or two at once."""
    if status == 409:
        return all(_CONFLICT.search(word) or _MAY_PASS.search(word) for word in _codes(body))
    return status in {408, 425, 498, 499}


def _is_rate(status: int, speech: str, body: object) -> bool:
    words = words_of(body)
    if any(map(_RATE.search, words)):
        return True
    at_fault = status == _FIRST_ERROR and any(word.lower() in _FAULTY for word in words)
    return not at_fault and _RATE.search(speech) is not None


def refuses_reasoning(body: str) -> bool:
    """Whether a refused request was refused for the reasoning that it replayed (providers.md 2.2): without it, it may pass."""
    return _REASONING.search(voiced(body, _decoded(body))) is not None


def status_in_stream(body: object, text: str) -> int:
    """The status that an error would have had, had it not arrived inside a stream that had begun well.

    Args:
        body: the error, decoded; None where it is no JSON.
        text: the same as text. Where it names no code, or one of a server's trouble, it may pass: 500. A code that is not known
            is about the request: 400.
    """
    code = _number(error_of(body).get("code"))
    if _FIRST_ERROR <= code < 600:
        return code
    codes = _codes(body)
    known = next((_STATUS_OF_WORD[w.lower()] for w in codes if w.lower() in _STATUS_OF_WORD), None)
    if known is not None:
        return known
    if any(map(_RATE.search, codes)):
        return 429
    speech = said(text, body)
    if any(map(_MAY_PASS.search, codes)) and _stated_length(speech) is None:
        return 500
    at_fault = (
        codes or _is_blocked(body) or _too_long(speech) or _is_rate(_FIRST_ERROR, speech, body)
    )
    return _FIRST_ERROR if at_fault else 500


def _number(code: object) -> int:
    """A status that stands as a code, written as a number or as text; 0 where it is none."""
    if isinstance(code, str) and _DIGITS.fullmatch(code):
        return int(code)
    return code if isinstance(code, int) and not isinstance(code, bool) else 0


_DIGITS = re.compile(r"[0-9]{3}")


def _codes(body: object) -> list[str]:
    return [word for word in words_of(body) if word not in _NO_CODES]


def _is_blocked(body: object) -> bool:
    """Whether Gemini let a prompt not through."""
    if not isinstance(body, Mapping):
        return False
    feedback = body.get("promptFeedback", body.get("prompt_feedback"))
    return isinstance(feedback, Mapping) and bool({"blockReason", "block_reason"} & {*feedback})


def _too_long(text: str) -> Failure | None:
    """What a text says of a prompt that was too long; None where it says nothing of that."""
    stated = _stated_length(text)
    if stated is None and _UNNUMBERED.search(text):
        return Failure("over_length", "reassemble")
    return stated


def _stated_length(text: str) -> Failure | None:
    """The same where the provider gives figures."""
    for wording in _NUMBERED:
        match = wording.pattern.search(text)
        if match:
            actual, maximum = _tokens(match, wording.actual), _tokens(match, wording.maximum)
            return Failure("over_length", "reassemble", actual, maximum)
    return None


def _decoded(body: str) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _tokens(match: re.Match[str], group: int | None) -> int | None:
    """The figure in a group; None where there is none, or none that can be a number of tokens."""
    if group is None or len(match[group]) > _MOST_DIGITS:
        return None
    tokens = int(match[group])
    return tokens if 1 <= tokens <= _MOST_TOKENS else None
