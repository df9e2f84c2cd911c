"""Sends spans where the standard OTEL_* variables say, once the extra `otel` is installed; otherwise does nothing."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os

from opentelemetry import trace

from ctxengine.site import env

_LOG = logging.getLogger(__name__)
_NAME = "ctxengine"
_SDK = "opentelemetry.sdk.trace"
_EXPORTER = "opentelemetry.exporter.otlp.proto.http.trace_exporter"


def start_tracing() -> bool:
    """Set the SDK up for this process where an OTLP address is given. The SDK reads the other variables itself.

    Returns:
        Whether spans are sent.
    """
    if env.optional("OTEL_EXPORTER_OTLP_ENDPOINT") is None:
        return False
    if not all(_is_there(name) for name in (_SDK, _EXPORTER)):
        _LOG.warning(
            "OTEL_EXPORTER_OTLP_ENDPOINT is set, but the extra `otel` is not installed: no spans are sent."
        )
        return False
    os.environ.setdefault("OTEL_SERVICE_NAME", _NAME)
    # The extra may be missing, so nothing of it is imported by name.
    sdk = importlib.import_module(_SDK)
    export = importlib.import_module(f"{_SDK}.export")
    exporter = importlib.import_module(_EXPORTER).OTLPSpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(export.BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return True


def _is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False
