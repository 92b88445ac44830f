"""The .png format: grey values or colours of 8 or 16 bits, always decoded and encoded as a whole."""

from __future__ import annotations

from tilewise.files.formats import Format
from tilewise.files.formats.png_samples import PngFormat

FORMAT = Format(numbers=("uint8", "uint16"), picture=True, planes=(1, 2, 3, 4))
_PNG = PngFormat("PNG", extent_max=(1 << 31) - 1)

inspect, decode, create, encode = _PNG.inspect, _PNG.decode, _PNG.create, _PNG.encode
