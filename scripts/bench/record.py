"""Writes a result of a benchmark with all that is needed to repeat it."""

import datetime
import json
import shlex
import sys
from pathlib import Path
from typing import Any

from nmt.run_folder import describe_command, write_json

RESULTS = Path(__file__).resolve().parent / "results"


def write_result(name: str, figures: dict[str, Any]) -> None:
    """Keep figures under results/NAME.json, beside hardware, versions, commit and command."""
    about = describe_command()
    script = Path(sys.argv[0]).resolve().relative_to(RESULTS.parent.parent.parent)
    about["command"] = shlex.join(["python", str(script), *sys.argv[1:]])
    about["date"] = datetime.date.today().isoformat()
    write_json(RESULTS / f"{name}.json", {**about, "figures": figures})
    print(json.dumps(figures, indent=2))
