"""How web processes are set up."""

from __future__ import annotations

import gc

from ctxengine.site import web


def test_what_is_loaded_is_left_out_of_collection_and_new_garbage_is_not() -> None:
    before = gc.get_threshold()
    try:
        web.post_worker_init(None)
        assert gc.get_freeze_count() > 10_000
        assert gc.isenabled() and gc.get_threshold()[0] > before[0]
        ring: list[object] = []
        ring.append(ring)
        del ring
        assert gc.collect() >= 1
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
