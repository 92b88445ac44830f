"""What all formats whose chunks are unpacked by ranks have in common."""

from __future__ import annotations

MOST_BYTES = 64 << 20  # of one chunk; a thread has three at a time
MOST_CHUNKS = 1 << 21  # whose places are a list that goes to every rank
