#!/bin/sh
# Starts the command of the environment that this file was installed into; the module file puts this folder on PATH.
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../../.." && pwd) || exit 1
exec "$root/bin/tilewise" "$@"
