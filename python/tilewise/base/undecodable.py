"""What decoding may raise; apart from `errors`, which all commands import: msgspec takes a while to load."""

import msgspec

# Of a text that others wrote: another type, no UTF-8, nested too deep.
UNDECODABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
