"""How web processes are set up."""

from __future__ import annotations

import gc

from ctxengine.site import web

_BY_ITSELF = 700
"""Python's own bound."""


def test_what_is_loaded_is_left_out_of_collection_and_new_garbage_is_not() -> None:
    before = gc.get_threshold()
    # The run of the tests is set up in the same way.
    gc.unfreeze()
    gc.set_threshold(_BY_ITSELF)
    try:
        web.post_worker_init(None)
        assert gc.get_freeze_count() > 10_000
        assert gc.isenabled() and gc.get_threshold()[0] > _BY_ITSELF
        ring: list[object] = []
        ring.append(ring)
        del ring
        assert gc.collect() >= 1
    finally:
        gc.freeze()
        gc.set_threshold(*before)
