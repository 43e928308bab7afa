#!/usr/bin/env bash
# Packs what src/torch needs to be built where none of our packages are: the library as a shared
# one with all it links, the headers it is compiled with, and `sinew`.   tools/bundle.sh BUILD [TO]
#   cmake -S src/torch -B build/torch -G Ninja -DSINEW_PREBUILT=TO && ninja -C build/torch
#   LD_LIBRARY_PATH=TO/lib TO/bin/sinew train ...     (the build leaves sinew-train beside it)
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:?a build folder, e.g. build/release}
to=${2:-build/device}
[[ -f $build/libsinew.a && -x $build/bin/sinew ]] ||
  { echo "bundle: $build holds no libsinew.a and bin/sinew: build them first" >&2; exit 3; }
rm -rf "$to"
mkdir -p "$to"/{bin,lib,include}

modules=(libhwy hwloc libxxhash libcrypto libssl liblz4 libzstd zlib tomlplusplus fmt)
# shellcheck disable=SC2046
g++ -shared -o "$to/lib/libsinew.so" -Wl,--whole-archive "$build/libsinew.a" \
  -Wl,--no-whole-archive $(pkg-config --libs "${modules[@]}") -pthread -ldl -s -Wl,-z,defs
cp "$build/bin/sinew" "$to/bin/"
strip "$to/bin/sinew"
# Everything but what every system has: the C and C++ libraries.
ldd "$to/lib/libsinew.so" "$build/bin/sinew" | awk '$3 ~ /^\// { print $3 }' | sort -u |
  grep -vE '/(libc|libm|libdl|libpthread|librt|libstdc\+\+|libgcc_s|ld-linux[^/]*)\.so' |
  xargs -I{} cp -L {} "$to/lib/"
cp -r /usr/include/fmt /usr/include/nlohmann /usr/include/CLI /usr/include/xxhash.h "$to/include/"
du -sh "$to" | cut -f1
