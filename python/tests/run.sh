#!/bin/sh
# run.sh BUILD CACHE: installs the package from a build folder into BUILD/python-site and runs its tests.
#     AOT_TEST_PYTHON   a Python that has PyTorch 2.10 or later and pytest; else a venv is made in CACHE, from PyPI
# Status 77: PyPI cannot be reached.
set -eu
cd "$(dirname "$0")/.."
build=$1 cache=$2 torch=2.11.0
python=${AOT_TEST_PYTHON:-$cache/python-$torch/bin/python}

# PyTorch's own index has builds without CUDA, a tenth of the size.
make_venv() {
  folder=$cache/python-$torch
  rm -rf "$folder"
  python3 -m venv "$folder"
  "$folder/bin/pip" install -q --retries 0 --timeout 20 --index-url https://download.pytorch.org/whl/cpu "torch==$torch" \
    2> /dev/null || "$folder/bin/pip" install -q "torch==$torch" || return 1
  "$folder/bin/pip" install -q pytest numpy 'scikit-build-core>=0.10' || return 1
  touch "$folder/complete"
}
if [ -z "${AOT_TEST_PYTHON:-}" ] && [ ! -e "$cache/python-$torch/complete" ] && ! make_venv; then
  echo "skipped: PyTorch $torch could not be got from PyPI; AOT_TEST_PYTHON names a Python that has it" >&2
  exit 77
fi

# What pip does with a wheel, but that the library comes from this build: metadata and sources by pip, the rest by CMake.
site=$build/python-site
rm -rf "$site"
if "$python" -c "import scikit_build_core" 2> /dev/null; then isolation=--no-build-isolation; else isolation=""; fi
# shellcheck disable=SC2086
"$python" -m pip install -q --no-deps --no-index $isolation --target "$site" -C wheel.cmake=false -C wheel.py-api=py3 . 2> "$build/pip.log" || {
  cat "$build/pip.log" >&2
  exit 1
}
cmake --install "$build" --component python --prefix "$site/aothost" > /dev/null
unset AOT_PLUGIN_PATH
tests=$PWD/tests
cd "$site" # not where the sources are: they have no extension
# One thread: tests run at the same time as others, and PyTorch's results depend on the number.
PYTHONPATH=$site OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1 AOT_CACHE_DIR=$build/python-cache \
  exec "$python" -m pytest -q -p no:cacheprovider --durations=5 "$tests"
