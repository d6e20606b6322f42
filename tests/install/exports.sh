#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The shared library exports exactly the functions that the public headers mark with LAYA_API.
#
#   exports.sh SHARED_LIBRARY INCLUDE_FOLDER
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

case $(uname -s) in
    Darwin) nm -gU "$1" | sed 's/.* _//' ;;
    *) nm -D --defined-only "$1" | awk '{ print $NF }' ;;
esac | sed 's/@.*//' | sort >"$work/exported"
# A declaration may break its line after the name's parenthesis only.
cat "$2"/laya/*.h | grep -v '^#' | sed -n 's/^LAYA_API .*[ *]\(laya_[a-z0-9_]*\)(.*/\1/p' | sort >"$work/declared"
[ -s "$work/declared" ]
diff "$work/declared" "$work/exported" || { echo "left: declared in the headers, right: exported" >&2; exit 1; }
echo "$(wc -l <"$work/exported") functions"
