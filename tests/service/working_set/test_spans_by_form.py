"""What the manifest says of each closed turn's form is what stands on the wire (design 4, 7.8)."""

from __future__ import annotations

import pytest

from ctxengine.engine.events import EventType
from ctxengine.engine.ids import EventSeq, ItemId, parse_item_id
from ctxengine.engine.manifest import Form, Manifest
from ctxengine.service.end_run import end_run
from ctxengine.service.specs import EndRun
from inspector.standing import span_of
from tests.cast import Runtime
from tests.service.working_set.test_loop import body, live, opened, plans, sent

pytestmark = pytest.mark.django_db


def cancelled(runtime: Runtime, number: int) -> None:
    """A turn that takes its closed form at its end."""
    runtime.ask(f"File {number}?")
    lines = "".join(f"line {number} x {line}\n" for line in range(60))
    runtime.look(f"call{number}", f"part{number} says {number}\n{lines}")
    runtime.assemble()
    end_run(actor=runtime.actor, run_id=runtime.run, spec=EndRun(outcome="cancelled"))


def test_turns_of_both_forms_stand_in_spans_that_do_not_overlap() -> None:
    runtime = opened()
    cancelled(runtime, 900)
    live(runtime, 2, first=1, lines=60)
    cancelled(runtime, 901)
    live(runtime, 1, first=4, lines=60)
    runtime.ask("And now?")
    runtime.assemble()
    assert sent(plans(runtime)[-1]) == [2, 3, 5]
    manifest = Manifest.model_validate(runtime.requests[-1].manifest)
    shown = [span for span in manifest.spans if span.row == 10 and span.units and span.from_item]
    assert [span.form for span in shown] == [Form.DIGEST, Form.WHOLE] * 2
    ends = [
        parse_item_id(edge).sequence for s in shown for edge in (s.from_item, s.to_item) if edge
    ]
    assert ends == sorted(ends)
    assert (
        sum(span.units for span in shown) == len(runtime.log.units(EventSeq(1), EventSeq(9999))) - 1
    )
    results = runtime.events(EventType.TOOL_RESULT)
    forms = []
    for result in results:
        span = span_of(manifest, ItemId(EventSeq(result.sequence), 0), "tool_result")
        forms.append(span.form if span else None)
    assert forms == [Form.DIGEST, Form.WHOLE, Form.WHOLE, Form.DIGEST, Form.WHOLE]
    assert body(runtime).count("one line\\none line\\none line") > 0
