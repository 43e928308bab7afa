#!/usr/bin/env bash
# The torch backend for a machine where nothing can be installed: a GPU host with its own torch.
#   tools/device_build.sh pack [BUILD]   here: libsinew and what it needs, into build/device
#   tools/device_build.sh build          there: the module against its torch, beside them
# Then PYTHONPATH=build/device/python has `import sinew_torch`.
set -euo pipefail
root=$(cd -- "$(dirname -- "$0")/.." && pwd)
device=$root/build/device

# pack BUILD: one shared library of the static one, and those shared libraries that a bare system
# may lack, found by each other.
pack() {
  local build=${1:-$root/build/release} library
  rm -rf "$device" && mkdir -p "$device/lib"
  g++ -shared -o "$device/lib/libsinew.so" -Wl,-soname,libsinew.so \
    -Wl,--whole-archive "$build/libsinew.a" -Wl,--no-whole-archive -Wl,-rpath,'$ORIGIN' -s \
    -lfmt -lhwy -lhwloc -lxxhash -lcrypto -lssl -llz4 -lzstd -lz -ldl -lpthread
  ldd "$device/lib/libsinew.so" | awk '$3 ~ /^\// { print $3 }' | while read -r library; do
    case $(basename "$library") in
      libc.so* | libm.so* | libdl.so* | libpthread.so* | libstdc++.so* | libgcc_s.so* | ld-*) ;;
      *) cp -L "$library" "$device/lib/" ;;
    esac
  done
  cp "$build/bin/sinew" "$device/" 2>/dev/null || true
  echo "packed: $(du -sh "$device" | cut -f1) in $device"
}

build() {
  local python=${PYTHON:-python3} package=$device/python/sinew_torch objects=$device/objects
  local flags=() includes=() suffix source pids=()
  mkdir -p "$package" "$objects"
  mapfile -t includes < <("$python" - <<'PY'
import sysconfig
import torch.utils.cpp_extension as e
for path in [*e.include_paths(), sysconfig.get_path("include")]:
    print("-isystem")
    print(path)
PY
  )
  mapfile -t flags < <("$python" - <<'PY'
import torch
print(f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}")
for name in ("COMPILER_TYPE", "STDLIB", "BUILD_ABI"):
    value = getattr(torch._C, f"_PYBIND11_{name}", None)
    if value:
        print(f'-DPYBIND11_{name}="{value}"')
PY
  )
  suffix=$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
  local torch_lib
  torch_lib=$("$python" -c 'import os, torch; print(os.path.join(os.path.dirname(torch.__file__), "lib"))')
  for source in "$root"/src/torch_backend/*.cpp; do
    g++ -std=c++20 -O2 -fPIC -w -DUSE_DISTRIBUTED -DUSE_C10D -DUSE_C10D_GLOO "${flags[@]}" \
      "${includes[@]}" -I"$root/include" -I"$root/src" \
      -c "$source" -o "$objects/$(basename "$source" .cpp).o" &
    pids+=($!)
  done
  for source in "${pids[@]}"; do wait "$source"; done
  g++ -shared -o "$package/_backend$suffix" "$objects"/*.o -L"$device/lib" -lsinew \
    -L"$torch_lib" -ltorch_python -ltorch -ltorch_cpu -lc10 \
    -Wl,-rpath,'$ORIGIN/../../lib' -Wl,-rpath,"$torch_lib" -Wl,-rpath-link,"$device/lib"
  cp "$root"/python/sinew_torch/*.py "$package/"
  PYTHONPATH=$device/python "$python" -c 'import sinew_torch; print("built: sinew_torch for torch", sinew_torch._backend.torch_version())'
}

case ${1:-} in
  pack) pack "${@:2}" ;;
  build) build ;;
  *) sed -n '2,5s/^# \?//p' "$0" >&2 && exit 2 ;;
esac
