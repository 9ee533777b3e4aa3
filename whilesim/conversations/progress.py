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

from whilesim.chat.throttle import Throttle

_EVERY = 30.0  # seconds between two lines where there is no terminal


class Progress:
    """Shows a run's progress.

    Args:
        total: How many rows there will be.
        show: None shows it in a terminal or notebook, and as lines elsewhere but not under CI.
    """

    def __init__(self, total: int, *, show: bool | None = None) -> None:
        self._bar: Any = None
        self._total, self._began = total, time.monotonic()
        self._told = self._began
        self._shows = show or (show is None and not os.environ.get("CI"))
        if self._shows and _has_screen():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # tqdm warns in a notebook without ipywidgets
                from tqdm.auto import tqdm

                self._bar = tqdm(total=total, unit="row", dynamic_ncols=True)

    def update(self, rows: int, clean: int, throttle: Throttle) -> None:
        """Show the numbers; cheap enough to be called for every row."""
        now = time.monotonic()
        if self._bar is not None:
            self._bar.set_postfix_str(self._describe(clean, throttle, now), refresh=False)
            self._bar.update(rows - self._bar.n)
        elif self._shows and now - self._told >= _EVERY:
            self._told = now
            left = f", about {(now - self._began) / rows * (self._total - rows) / 60:.0f} min left" if rows else ""
            print(f"whilesim: {rows}/{self._total} rows, {self._describe(clean, throttle, now)}{left}", file=sys.stderr)

    def close(self) -> None:
        """Leave the last state on the screen."""
        if self._bar is not None:
            self._bar.close()

    def _describe(self, clean: int, throttle: Throttle, now: float) -> str:
        used, parts = throttle.used, [f"{clean} clean"]
        if used.calls:  # scripts call no model
            rate = used.calls / max(0.001, now - self._began)
            usd = "price unknown" if used.usd is None else f"${used.usd:.2f}"
            parts += [f"{rate:.0f} calls/s", f"{used.tokens_in + used.tokens_out:,} tokens", usd]
        return ", ".join([*parts, f"{throttle.retries} retries"] if throttle.retries else parts)


def _has_screen() -> bool:
    return sys.stderr.isatty() or "ipykernel" in sys.modules
