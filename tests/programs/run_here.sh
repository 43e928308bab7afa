#!/bin/sh
# HOST COMMAND...: in the place of ssh, runs here what should run on HOST. A folder for what is
# temporary belongs to a host: daemons that make the same one at the same time fail.
export TMPDIR="${TMPDIR:-/tmp}/$1"
mkdir -p "$TMPDIR"
shift
exec sh -c "$*"
