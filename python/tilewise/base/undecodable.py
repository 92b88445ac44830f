"""The exceptions of decoding; not in `errors`, which every command imports, as msgspec loads slowly."""

import msgspec

# Of a text that others wrote: another type, no UTF-8, nested too deep.
UNDECODABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
