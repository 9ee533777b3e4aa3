"""The chaos table: what is done to a run, and what comes of it.

python tests/benchmarks/bench_chaos.py            # all cases: some minutes
python tests/benchmarks/bench_chaos.py dead auth  # cases whose name holds one of these
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from chaos import CASES, HEAD


def main(words: list[str]) -> int:
    """Run the cases and return how many do not hold."""
    logging.disable(logging.CRITICAL)  # faults are warned of, thousands of times
    print(HEAD)
    wrong = 0
    for case in CASES:
        if not words or any(word in case.__name__ for word in words):
            result = case()
            wrong += bool(result.problems)
            print(result, flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
