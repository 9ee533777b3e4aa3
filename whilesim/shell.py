"""Shell: how every command speaks: a table for people, JSON for machines, an exit code for both."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from whilesim.core.errors import GateFailed, InputError, WhilesimError
from whilesim.core.jsontext import dumps

FILE = click.Path(exists=True, dir_okay=False)
NEW = click.Path(dir_okay=False)
FOLDER = click.Path(file_okay=False)


class Commands(click.Group):
    """A group that lists its commands in the order in which one comes to need them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's signature
        return list(self.commands)


def command(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--json``, and end with the contract's exit codes: an error is a message, never a traceback."""

    @wraps(function)
    def guarded(*args: Any, **options: Any) -> None:
        try:
            function(*args, **options)
        except GateFailed as error:
            click.echo(str(error), err=True)
            sys.exit(1)
        except BrokenPipeError:
            raise  # whoever read us has read enough; click ends quietly
        except (WhilesimError, OSError) as error:
            click.echo(f"{type(error).__name__}: {error}", err=True)
            sys.exit(2)
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            sys.exit(130)

    return click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")(guarded)


def read_policy(path: str) -> str:
    """Read the file that ``--policy`` names."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"--policy {path}: it is no text in UTF-8 ({error.reason}). Save it as UTF-8.") from error
    if not text.strip():
        raise InputError(f"--policy {path}: the file is empty. Give the text that the agent is told.")
    return text


def show(value: Any, text: str, *, as_json: bool) -> None:
    """Print a value: as JSON in ASCII, which no code page can spoil, or as text."""
    click.echo(json.dumps(json.loads(dumps(value)), indent=2) if as_json else text)


def speak_plainly() -> None:
    """Let no output fail on a code page that lacks a character, and no warning show our source."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    warnings.formatwarning = lambda message, *_, **__: f"warning: {message}\n"
