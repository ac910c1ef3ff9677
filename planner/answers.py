"""What a command answers: a table for people, the same numbers as JSON, and an exit code."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

DONE = 0
FAILED = 1
WITH_WARNINGS = 4


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of one command; `document` is what `--json` prints."""

    text: str
    document: dict[str, Any] = field(default_factory=dict)
    exit_code: int = DONE

    def json_text(self) -> str:
        """The document as JSON."""
        return json.dumps(self.document, ensure_ascii=False, indent=1)
