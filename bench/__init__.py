"""Benchmarks: each prints medians and ratios taken inside one run; none is a test."""

from __future__ import annotations
