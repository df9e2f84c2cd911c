"""The provider behind the socket: one call in, one answer out.

Control calls, which no real provider has: `GET` and `DELETE /_strict/requests` (the log), `POST /_strict/script`
`{"replies": [...]}`, `DELETE /_strict/script`, `POST /_strict/clock` `{"advance_seconds": N}`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

from ctxengine.providers.strict_local import anthropic, ollama, openai_chat, openai_responses
from ctxengine.providers.strict_local.clock import AdvancingClock
from ctxengine.providers.strict_local.counting import Counter
from ctxengine.providers.strict_local.exchange import (
    SCRIPTED_HEADER,
    Answer,
    Call,
    Json,
    json_answer,
)
from ctxengine.providers.strict_local.models import is_openai
from ctxengine.providers.strict_local.refusal import Dialect, Refusal, answer_of
from ctxengine.providers.strict_local.request_log import RequestLog
from ctxengine.providers.strict_local.rule_answers import RuleAnswers
from ctxengine.providers.strict_local.script import (
    Answerer,
    Reply,
    Script,
    ScriptInvalid,
    reply_from,
)
from ctxengine.providers.strict_local.signatures import DEFAULT_SECRET, Seal
from ctxengine.providers.strict_local.state import Ids, State

Endpoint = Callable[[Call, State], Answer]

_POSTS: Mapping[str, tuple[Dialect, Endpoint]] = {
    "/v1/messages": ("anthropic", anthropic.create_message),
    "/v1/messages/count_tokens": ("anthropic", anthropic.count_tokens),
    "/v1/chat/completions": ("openai", openai_chat.create_completion),
    "/v1/responses": ("openai", openai_responses.create_response),
    "/v1/responses/compact": ("openai", openai_responses.compact),
    "/v1/responses/input_tokens": ("openai", openai_responses.count_tokens),
    "/api/chat": ("ollama", ollama.chat),
    "/api/show": ("ollama", ollama.show),
}
_CONTROL = "/_strict/"
_OPENAI_LISTED = (
    "gpt-6.1-sol",
    "gpt-6.1-terra",
    "gpt-5.6-sol",
    "gpt-5.6-luna",
    "gpt-5.4",
    "gpt-4.1",
)


class StrictProvider:
    """Speaks Anthropic Messages, OpenAI Chat and Responses, and Ollama's chat.

    Every answer is scripted and says so: by the header `x-strict-provider`, by the prefix `strict/` of the model's
    name, and in its text.
    """

    def __init__(
        self,
        *,
        replies: Iterable[Reply] = (),
        answer: Answerer | None = None,
        clock: AdvancingClock | None = None,
        factor: float = 1.0,
        windows: Mapping[str, int] | None = None,
        secret: bytes = DEFAULT_SECRET,
        instance: str | None = None,
        without: Collection[str] = (),
    ) -> None:
        """Set the provider up.

        Args:
            replies: answers queued from the start.
            answer: asked for an answer when the queue is empty; None from it leaves it to the rules.
            clock: what cache lives are measured with.
            factor: multiplies every count of tokens.
            windows: windows of models by name, in tokens, where they shall not be the real ones.
            secret: what signatures are made with.
            instance: letters and digits that ids carry; random when left out.
            without: paths that this instance does not serve, as gateways that know part of an API only.
        """
        self.script = Script(RuleAnswers(), replies, answer)
        self.clock = clock or AdvancingClock()
        self.log = RequestLog()
        self._without = frozenset(without)
        self._state = State(
            clock=self.clock,
            counter=Counter(factor),
            seal=Seal(secret),
            script=self.script,
            ids=Ids(instance),
            windows=dict(windows or {}),
        )

    def handle(self, call: Call) -> Answer:
        """Answer a call; control calls under `/_strict/` are not logged."""
        with self._state.lock:
            if call.path.startswith(_CONTROL):
                return _marked(self._control(call), "")
            request_id = self._state.ids.next("req")
            dialect = _dialect_of(call)
            try:
                answer = self._serve(call, dialect)
            except Refusal as refusal:
                answer = answer_of(refusal, dialect, request_id)
            self.log.add(call, answer.status, self.clock.now())
        return _marked(answer, request_id)

    def begin(self, answer: Answer) -> None:
        """Tell that the first byte of an answer goes out."""
        if answer.begun is not None:
            with self._state.lock:
                answer.begun()

    def _serve(self, call: Call, dialect: Dialect) -> Answer:
        if dialect != "ollama":
            _refuse_without_key(call, dialect)
        if call.method == "POST" and call.path in _POSTS and call.path not in self._without:
            return _POSTS[call.path][1](call, self._state)
        if call.method == "GET":
            return self._get(call, dialect)
        raise Refusal(f"Not found: {call.method} {call.path}", status=404)

    def _get(self, call: Call, dialect: Dialect) -> Answer:
        if call.path == "/api/tags":
            return ollama.tags(self._state)
        if call.path == "/api/version":
            return json_answer({"version": "0.0.0-strict"})
        name = call.path.removeprefix("/v1/models").lstrip("/")
        if not call.path.startswith("/v1/models"):
            raise Refusal(f"Not found: GET {call.path}", status=404)
        if dialect == "anthropic":
            return (
                anthropic.get_model(name, self._state)
                if name
                else anthropic.list_models(self._state)
            )
        listed = [name] if name else list(_OPENAI_LISTED)
        if not is_openai(listed[0]):
            raise Refusal(f"The model '{name}' does not exist", status=404, code="model_not_found")
        models = [
            {"id": one, "object": "model", "created": 0, "owned_by": "strict"} for one in listed
        ]
        return json_answer(models[0] if name else {"object": "list", "data": models})

    # --- control ------------------------------------------------------------------------------------------------------

    def _control(self, call: Call) -> Answer:
        name = call.path.removeprefix(_CONTROL)
        try:
            if (call.method, name) == ("GET", "requests"):
                return json_answer({"requests": [entry.as_json() for entry in self.log.entries()]})
            if (call.method, name) == ("DELETE", "requests"):
                self.log.clear()
            elif (call.method, name) == ("POST", "script"):
                self.script.add([reply_from(one) for one in _json_of(call).get("replies", [])])
            elif (call.method, name) == ("DELETE", "script"):
                self.script.clear()
            elif (call.method, name) == ("POST", "clock"):
                self.clock.advance(float(_json_of(call).get("advance_seconds", 0)))
            elif (call.method, name) != ("GET", "script"):
                return json_answer({"error": f"No control call {call.method} {call.path}"}, 404)
        except (ScriptInvalid, ValueError, TypeError) as error:
            return json_answer({"error": str(error)}, 400)
        return json_answer({"queued": len(self.script), "now": self.clock.now()})


def _json_of(call: Call) -> Json:
    value = json.loads(call.body or b"{}")
    if not isinstance(value, dict):
        raise ScriptInvalid("A control call takes one JSON object.")
    return value


def _dialect_of(call: Call) -> Dialect:
    if call.path.startswith("/api/"):
        return "ollama"
    if call.path in _POSTS:
        return _POSTS[call.path][0]
    return "anthropic" if "anthropic-version" in call.headers else "openai"


def _refuse_without_key(call: Call, dialect: Dialect) -> None:
    bearer = call.headers.get("authorization", "").removeprefix("Bearer ").strip()
    key = call.headers.get("x-api-key") if dialect == "anthropic" else None
    if key or bearer:
        return
    if dialect == "anthropic":
        raise Refusal("x-api-key header is required", status=401)
    raise Refusal(
        "You didn't provide an API key. You need to provide your API key in an Authorization "
        "header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).",
        status=401,
    )


def _marked(answer: Answer, request_id: str) -> Answer:
    headers = {SCRIPTED_HEADER: "scripted", **answer.headers}
    if request_id:
        headers |= {"request-id": request_id, "x-request-id": request_id}
    return replace(answer, headers=headers)
