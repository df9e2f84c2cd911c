"""The one table of secrets that are masked, under one version (design 8; field note 30).

Each pattern names cheap needles: without one of them in a text, it is not even tried. Patterns are linear on any input.
"""

from __future__ import annotations

import re
from typing import NamedTuple

DETECTOR_VERSION = "secrets@1"
"""Recorded with everything that was masked; a change of the table is a new version."""


SIGN_REACH = 80
"""A secret's needle ends at most so many characters behind where its match begins."""


class SecretPattern(NamedTuple):
    """One kind of secret."""

    kind: str
    needles: tuple[str, ...]
    """Lower-case texts of which one must occur."""
    pattern: re.Pattern[str]
    """What it looks like; the group `secret`, where there is one, is the part that is masked."""
    sign: re.Pattern[str] | None = None
    """What every match holds, looked for in lower case first where that is much cheaper; None: nothing is."""


_VALUE = r"[A-Za-z0-9_\-+/=.~]"


def _pattern(
    kind: str, needles: tuple[str, ...], pattern: str, sign: str | None = None
) -> SecretPattern:
    return SecretPattern(kind, needles, re.compile(pattern), re.compile(sign) if sign else None)


PATTERNS: tuple[SecretPattern, ...] = (
    _pattern(
        "private_key",
        ("private key",),
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?"
        r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    ),
    _pattern(
        "connection_string",
        ("://",),
        r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{1,30}://[^\s:/@\"'<>]{0,200}"
        r":(?P<secret>[^\s@/\"'<>]{1,300})@",
    ),
    _pattern(
        "json_web_token",
        ("eyj",),
        r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?",
    ),
    _pattern(
        "provider_key", ("sk-",), r"(?<![A-Za-z0-9])sk-(?=[A-Za-z0-9_-]{0,120}\d)[A-Za-z0-9_-]{20,}"
    ),
    _pattern("google_key", ("aiza",), r"\bAIza[0-9A-Za-z_-]{35}"),
    _pattern("hub_token", ("hf_",), r"\bhf_[A-Za-z0-9]{30,}"),
    _pattern(
        "cloud_access_key",
        ("akia", "asia", "abia", "acca", "a3t"),
        r"(?<![A-Za-z0-9])(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16}(?![A-Za-z0-9])",
    ),
    _pattern(
        "cloud_secret_key",
        ("secret",),
        r"(?i:aws.{0,20}secret.{0,20}?)[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?P<secret>[A-Za-z0-9/+=]{40})"
        r"(?![A-Za-z0-9/+=])",
    ),
    _pattern(
        "forge_token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-"),
        r"\b(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255}|glpat-[A-Za-z0-9_-]{20,64})",
    ),
    _pattern(
        "chat_token",
        ("xox", "xapp-", "hooks.slack.com"),
        r"\b(?:xox[abeoprs]-[A-Za-z0-9-]{10,255}|xapp-[A-Za-z0-9-]{10,255})"
        r"|hooks\.slack\.com/services/(?P<secret>[A-Za-z0-9/]{20,100})",
    ),
    _pattern(
        "payment_key",
        ("k_live_", "k_test_"),
        r"\b[rsp]k_(?:live|test)_[A-Za-z0-9]{16,255}",
    ),
    _pattern(
        "package_token", ("npm_", "pypi-"), r"\b(?:npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{50,})"
    ),
    _pattern("mail_key", ("sg.",), r"\bSG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}"),
    _pattern(
        "bearer_token",
        ("bearer", "basic "),
        rf"(?i:\b(?:bearer|basic))\s{{1,4}}(?P<secret>(?=[^\s]{{0,200}}[0-9=]){_VALUE}{{16,}})",
    ),
    _pattern(
        "assigned_secret",
        ("key", "secret", "token", "passw", "credential"),
        r"(?i:(?:api|access|private|client|auth|secret|session)[_-]?(?:key|token|secret)|passwd|password"
        r"|secret|token|credential)s?[\"']?\s{0,4}[:=]\s{0,4}[\"']?"
        rf"(?P<secret>(?={_VALUE}{{0,200}}\d)(?={_VALUE}{{0,200}}[A-Za-z]){_VALUE}{{12,}})",
        # The long s is an s to a pattern that ignores case, and stays as it is in lower case; the kelvin sign is a k.
        r"(?:[k\u212a]ey|to[k\u212a]en|(?:secret|\u017fecret)|pa[s\u017f]{2}wd|pa[s\u017f]{2}word|credential)[s\u017f]?[\"']?\s{0,4}[:=]",
    ),
)
"""In the order in which they are tried; an earlier one takes the text it masks."""
