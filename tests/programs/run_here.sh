#!/bin/sh
# HOST COMMAND...: in the place of ssh, runs here what should run on HOST.
shift
exec sh -c "$*"
