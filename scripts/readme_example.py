"""Print the first Python example of a Markdown file."""

from __future__ import annotations

import re
import sys
from pathlib import Path

text = Path(sys.argv[1]).read_text(encoding="utf-8")
example = re.search(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
if example is None:
    sys.exit(f"{sys.argv[1]!r} has no Python example")
print(example[1], end="")
