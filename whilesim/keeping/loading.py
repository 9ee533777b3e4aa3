"""Loading: simulations that are on disk or on the Hub, and several as one."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from whilesim.core.errors import InputError
from whilesim.keeping.folders import read_folder
from whilesim.keeping.hub import pull
from whilesim.keeping.manifest import join_manifests
from whilesim.keeping.simulation import Simulation


def load(source: str | os.PathLike[str]) -> Simulation:
    """Read a simulation from a run folder, or from the Hub by ``owner/name``.

    Raises:
        InputError: There is no such folder, or it holds no rows.
    """
    name = os.fspath(source)
    if Path(name).is_dir():
        rows, manifest, grades = read_folder(Path(name))
        return Simulation(rows, manifest, folder=name, grades=grades)
    if name.count("/") == 1 and not name.startswith((".", "/", "~")):
        return Simulation(*pull(name))
    raise InputError(f"there is no folder {name!r}. Type the folder of a run, or 'owner/name' of a dataset on the Hub.")


def concat(parts: Sequence[Simulation | str | os.PathLike[str]]) -> Simulation:
    """Join simulations or their folders, in the order given: shards of one plan give the rows of the whole run.

    Raises:
        InputError: Nothing is given, or two rows have one id.
    """
    if not parts:
        raise InputError("concat needs at least one simulation. Type ws.concat([a, b]).")
    simulations = [part if isinstance(part, Simulation) else load(part) for part in parts]
    rows = [row for part in simulations for row in part.rows]
    if twice := [row_id for row_id, n in Counter(row.id for row in rows).items() if n > 1]:
        msg = f"row {twice[0]!r} stands in two simulations. Shards of one plan have rows of their own; "
        raise InputError(msg + "rows of two plans cannot be one simulation: export each.")
    manifest = join_manifests([part.manifest for part in simulations])
    if any(part.is_part for part in simulations):
        manifest = manifest.of_part()
    grades = {row_id: grade for part in simulations for row_id, grade in part.grades.items()}
    graded = any(part.graded for part in simulations)
    return Simulation(rows, manifest, players=simulations[0].players, grades=grades if graded else None)
