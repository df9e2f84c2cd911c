"""What an adapter needs to reach its provider: address, key, region."""

from __future__ import annotations

from dataclasses import dataclass, field

from ctxengine.providers.adapters.contract import ProviderError
from ctxengine.providers.adapters.secret import Secret


@dataclass(frozen=True, slots=True)
class Access:
    """Where a provider is called, and with which key."""

    provider: str
    base_url: str
    """Without a trailing slash."""
    secret: Secret = field(default_factory=Secret, repr=False)

    def key(self) -> str:
        """The key, for the one expression that hands it to a client.

        Raises:
            ProviderError: `no_key`: none is set, or its file cannot be read.
        """
        key = self.secret.reveal()
        if key is None:
            raise ProviderError(
                "no_key",
                f"There is no key for {self.provider}; set it in the environment or name its file.",
            )
        return key
