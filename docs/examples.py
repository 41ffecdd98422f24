"""Examples in docstrings as code: Markdown would take their `>>>` for a quotation."""

import re
from typing import Any

import griffe

# A paragraph that begins with a prompt, with what it prints.
EXAMPLE = re.compile(r"^>>> .*?(?=\n\n|\Z)", re.DOTALL | re.MULTILINE)


class Examples(griffe.Extension):
    """Fence every example."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Of whatever has a docstring."""
        if obj.docstring is not None:
            obj.docstring.value = EXAMPLE.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)
