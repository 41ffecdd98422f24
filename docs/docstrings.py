"""Docstrings as the reference shows them: two things that its tools would get wrong."""

import re
from typing import Any

import griffe

# A paragraph that begins with a prompt, with what it prints.
EXAMPLE = re.compile(r"^>>> .*?(?=\n\n|\Z)", re.DOTALL | re.MULTILINE)
# A parameter with a set of choices, of which griffe would show the first as the default.
CHOICES = re.compile(r"^(\w[\w, ]* : )\{([^}\n]+)\}", re.MULTILINE)


class Docstrings(griffe.Extension):
    """Fence every example, and name choices without a default among them."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change whatever has a docstring."""
        if obj.docstring is not None:
            fenced = EXAMPLE.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)
            obj.docstring.value = CHOICES.sub(_named, fenced)


def _named(found: re.Match[str]) -> str:
    """Return `name : a or b` in place of `name : {a, b}`."""
    return found[1] + " or ".join(found[2].split(", "))
