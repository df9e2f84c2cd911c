"""Redaction at the border: secrets are masked wherever content is shown or summarised, never where it is kept."""
