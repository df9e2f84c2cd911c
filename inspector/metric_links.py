"""Where the requests and sessions behind a figure are listed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from urllib.parse import urlencode

from django.urls import reverse

from ctxengine.ledger.queries.metrics import Bucket, GroupBy, MetricsFilter
from inspector.render import Twin

_STEP = {Bucket.HOUR: timedelta(hours=1), Bucket.DAY: timedelta(days=1)}


@dataclass(frozen=True, slots=True)
class Links:
    """Addresses of lists that count what a metrics filter counts."""

    slug: str
    where: MetricsFilter

    def requests(self, **more: str) -> str:
        """The requests of the range, narrowed further."""
        origin = {} if self.where.imported else {"origin": "live"}
        return self._list("inspector:requests", origin | more)

    def sessions(self, **more: str) -> str:
        """The sessions of the range, narrowed further."""
        source = {} if self.where.imported else {"format": "live"}
        return self._list("inspector:sessions", source | more)

    def session(self, session_id: object) -> str:
        """One session."""
        return reverse("inspector:session", args=[self.slug, session_id, Twin.HTML])

    def at(self, step: datetime) -> Links:
        """The same for one step of the trend."""
        end = min(step + _STEP[self.where.bucket], self.where.until)
        return Links(self.slug, replace(self.where, since=max(step, self.where.since), until=end))

    def of(self, group: GroupBy, key: str) -> Links:
        """The same for one group."""
        if group is GroupBy.PROVIDER:
            narrowed = replace(self.where, provider=key)
        elif group is GroupBy.MODEL:
            narrowed = replace(self.where, model=key)
        elif group is GroupBy.AGENT:
            narrowed = replace(self.where, agent=key)
        else:
            narrowed = replace(self.where, engine=key)
        return Links(self.slug, narrowed)

    def _list(self, name: str, more: dict[str, str]) -> str:
        where = self.where
        provider, slash, model = where.model.partition("/")
        asked = {
            "from": where.since.isoformat(),
            "to": where.until.isoformat(),
            "provider": where.provider or (provider if slash else ""),
            "model": model if slash else where.model,
            "agent": where.agent,
            "engine": where.engine,
            **more,
        }
        query = urlencode({key: value for key, value in asked.items() if value})
        return f"{reverse(name, args=[self.slug, Twin.HTML])}?{query}"
