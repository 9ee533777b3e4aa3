"""Progress: how far a run is, on one line.

In a terminal or a notebook it is a bar; without one, a line every 30 seconds on standard
error; under CI nothing, unless it is asked for.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from typing import Any

from whilesim.chat.throttle import Counts

_EVERY = 30.0  # seconds between two lines where there is no terminal


class Progress:
    """Shows a run's progress.

    Args:
        total: How many rows there will be; None is not known.
        show: None shows it in a terminal or notebook, and as lines elsewhere but not under CI.
    """

    def __init__(self, total: int | None, *, show: bool | None = None) -> None:
        self._bar: Any = None
        self._total, self._began = total, time.monotonic()
        self._told = self._began
        self._calls: tuple[float, int] = (self._began, 0)
        self._lines = False
        if show is False or (show is None and os.environ.get("CI")):
            return
        if _has_screen():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # tqdm warns in a notebook without ipywidgets
                from tqdm.auto import tqdm

                self._bar = tqdm(total=total, unit="row", dynamic_ncols=True)
        else:
            self._lines = True

    def update(self, rows: int, clean: int, counts: Counts) -> None:
        """Show the numbers; cheap enough to be called for every row."""
        if self._bar is not None:
            self._bar.set_postfix_str(self._describe(clean, counts), refresh=False)
            self._bar.update(rows - self._bar.n)
        elif self._lines and time.monotonic() - self._told >= _EVERY:
            self._told = time.monotonic()
            of = f"/{self._total}" if self._total is not None else ""
            print(f"whilesim: {rows}{of} rows, {self._describe(clean, counts)}{self._eta(rows)}", file=sys.stderr)

    def close(self) -> None:
        """Leave the last state on the screen."""
        if self._bar is not None:
            self._bar.close()

    def _describe(self, clean: int, counts: Counts) -> str:
        now, (then, calls) = time.monotonic(), self._calls
        rate = (counts.calls - calls) / (now - then) if now > then else 0.0
        if now - then > 5:
            self._calls = (now, counts.calls)
        usd = "price unknown" if counts.usd is None else f"${counts.usd:.2f}"
        parts = [f"{clean} clean", f"{rate:.0f} calls/s", f"{counts.tokens:,} tokens", usd]
        return ", ".join([*parts, f"{counts.retries} retries"] if counts.retries else parts)

    def _eta(self, rows: int) -> str:
        if not rows or self._total is None:
            return ""
        left = (time.monotonic() - self._began) / rows * (self._total - rows)
        return f", about {left / 60:.0f} min left"


def _has_screen() -> bool:
    return sys.stderr.isatty() or "ipykernel" in sys.modules
