#!/usr/bin/env python
"""The command line: finds the data folder and the database, then hands over to Django."""

from __future__ import annotations

import os
import sys

from django.core.management import execute_from_command_line

from ctxengine.site import commandline


def main() -> None:
    """Run one management command against the instance that the environment or `--data` names."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ctxengine.site.settings")
    with commandline.told_in_a_line():
        argv = commandline.take_data_option(sys.argv)
        with commandline.database_for(argv):
            execute_from_command_line(argv)


if __name__ == "__main__":
    main()
