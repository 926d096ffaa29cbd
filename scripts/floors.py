"""Print the oldest versions that the core dependencies declare, as constraints for pip."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
for need in project["dependencies"]:
    name, floor = re.fullmatch(r"([a-z-]+)>=([\d.]+).*", need).groups()
    print(f"{name}=={floor}")
