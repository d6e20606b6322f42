#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Install into a fresh prefix, then build and run programs that use the installation alone: by pkg-config (shared and
# static), by find_package, and the installed layac with its default model.
#
#   install.sh BUILD_FOLDER SOURCE_FOLDER C_COMPILER
set -eu
build=$1 source=$2 compiler=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix="$work/prefix"
unset LAYA_MODEL

cmake --install "$build" --prefix "$prefix" >"$work/install.log"
(cd "$prefix" && find . -type f | sort)
for file in bin/layac include/laya/laya.h share/laya/models/laya-demo/model.safetensors share/man/man1/layac.1 \
    share/laya/fixtures/questions.json share/laya/fixtures/README.md \
    share/bash-completion/completions/layac share/zsh/site-functions/_layac share/fish/vendor_completions.d/layac.fish; do
    [ -f "$prefix/$file" ] || { echo "not installed: $file" >&2; exit 1; }
done
pkgconfig=$(dirname "$(find "$prefix" -name laya.pc)")
library=$(dirname "$pkgconfig")
model="$prefix/share/laya/models/laya-demo"
consumer="$source/tests/install/consumer"

# A moved tree must work as well.
mv "$prefix" "$work/moved"
prefix="$work/moved"
pkgconfig="$work/moved${pkgconfig#"$work/prefix"}" library="$work/moved${library#"$work/prefix"}"
model="$work/moved${model#"$work/prefix"}"
export PKG_CONFIG_PATH="$pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"

answered() { # answered COMMAND...: its output is an answer to the question
    "$@" >"$work/answer"
    grep -q '"refund".*"noul"' "$work/answer" || { cat "$work/answer"; echo "no answer from: $*" >&2; exit 1; }
}

echo "pkg-config, shared"
# shellcheck disable=SC2046 # lists of flags
"$compiler" "$consumer/consumer.c" -o "$work/shared" $(pkg-config --cflags --libs laya) "-Wl,-rpath,$library"
answered "$work/shared" "$model"

echo "pkg-config, static"
# shellcheck disable=SC2046
"$compiler" -DLAYA_STATIC "$consumer/consumer.c" -o "$work/static" $(pkg-config --cflags laya) "$library/liblaya.a" \
    $(pkg-config --static --libs libutf8proc libprotobuf-c libcrypto) -pthread -lm
answered "$work/static" "$model"

echo "find_package"
cmake -S "$consumer" -B "$work/consumer" "-DCMAKE_PREFIX_PATH=$prefix" "-DCMAKE_C_COMPILER=$compiler" >"$work/configure.log" ||
    { cat "$work/configure.log"; exit 1; }
cmake --build "$work/consumer" >"$work/build.log" || { cat "$work/build.log"; exit 1; }
answered "$work/consumer/consumer_laya" "$model"
answered "$work/consumer/consumer_laya_static" "$model"

echo "layac with its default model"
answered "$prefix/bin/layac" predict --state "I was billed twice, please refund me." \
    --questions '{"refund": {"type": "noul", "instructions": "Is a refund requested?"}}'
"$prefix/bin/layac" export --graph lean --output "$work/bundle" >"$work/summary"
[ -f "$work/bundle/manifest.json" ] && grep -q '"package_sha256"' "$work/summary"
"$prefix/bin/layac" reference --output "$work/reference.json"
grep -q '"format":"laya-reference"' "$work/reference.json"
