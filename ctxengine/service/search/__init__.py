"""Finding text in the items of a tenant's sessions: an index that is made behind the loop, never in it (design 9)."""

from __future__ import annotations
