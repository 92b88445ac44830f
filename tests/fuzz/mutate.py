"""Changes JSON as a tree: what is a valid record stays one more often than where bytes are flipped."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

MARKUP = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>&$x^2$`a`"
EVIL = MARKUP + "\x1b[2J\x1b]0;alert\x07\x00\x9b\u202e\ud800"
WORDS: list[Any] = [
    EVIL,
    "</style><script>alert(1)</script>",
    "javascript:alert(1)",
    "../../../etc/passwd",
    "/etc/passwd",
    "$(touch alert)",
    "[link=file:///etc/passwd]alert[/link]",
    "\\text{alert} $\\frac{1}{0$ % _ ^",
    "",
    "x" * 5000,
]
NUMBERS: list[Any] = [
    0,
    -1,
    1,
    1e308,
    -1e308,
    5e-324,
    1e-300,
    1 << 31,
    1 << 62,
    (1 << 63) - 1,
    1 << 64,
    float("nan"),
    float("inf"),
]
OTHERS: list[Any] = [None, True, [], {}, [[]], [None], {"": ""}]


def mutated(data: bytes, seed: int) -> bytes:
    """`data` with one to four places of each of its lines of JSON changed; as it is where it is none."""
    chosen = random.Random(seed)
    lines = data.splitlines() or [data]
    place = chosen.randrange(len(lines))
    try:
        tree = json.loads(lines[place])
    except (ValueError, RecursionError):
        return data
    for _ in range(chosen.randint(1, 4)):
        tree = _changed(tree, chosen)
    try:
        lines[place] = json.dumps(tree).encode()
    except (ValueError, RecursionError):
        return data
    return b"\n".join(lines) + b"\n"


def _changed(tree: Any, chosen: random.Random) -> Any:
    places = _places(tree)
    if not places:
        return copy.deepcopy(chosen.choice(WORDS + NUMBERS + OTHERS))
    above, key = chosen.choice(places)
    old = above[key]
    what = chosen.random()
    if what < 0.1:
        del above[key]
    elif what < 0.2 and isinstance(above, list):
        above.append(old)
    elif what < 0.75 and isinstance(old, str):
        above[key] = chosen.choice(WORDS)
    elif what < 0.75 and isinstance(old, (int, float)):
        above[key] = chosen.choice(NUMBERS)
    elif what < 0.75 and isinstance(old, dict) and old:
        above[key] = {chosen.choice(WORDS[:9]): value for value in old.values()}
    elif what < 0.9:
        above[key] = chosen.choice(WORDS + NUMBERS)
    else:
        above[key] = copy.deepcopy(chosen.choice(OTHERS))  # which the next change may change
    return tree


def _places(tree: Any) -> list[tuple[Any, Any]]:
    """Each place of a tree, however deep: what holds it, and its key there."""
    found: list[tuple[Any, Any]] = []
    left = [tree]
    while left:
        above = left.pop()
        inside = (
            above.items() if isinstance(above, dict) else enumerate(above) if isinstance(above, list) else ()
        )
        for key, value in inside:
            found.append((above, key))
            left.append(value)
    return found
