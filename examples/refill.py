"""What the kept rows lack is played again, until it is there or three tries have failed."""

from __future__ import annotations

import whilesim as ws
from whilesim.showcase import demo_policy, demo_tools


def main() -> None:
    """Print the certificate before and after."""
    data = ws.simulate(tools=demo_tools(), system_prompt=demo_policy(), situations=15, progress=False).grade()
    print("before:", data.certificate, sep="\n")

    data.refill(rows=20)
    print("after 20 more rows:", data.certificate, sep="\n")

    data.refill(kept=len(data.kept.rows) + 10)
    print(f"{len(data.kept.rows)} rows are kept now")


if __name__ == "__main__":
    main()
