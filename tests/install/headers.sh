#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every public header compiles alone, as strict C11 and, where there is a C++ compiler, as C++11.
#
#   headers.sh INCLUDE_FOLDER C_COMPILER [CXX_COMPILER]
set -eu
include=$1 cc=$2 cxx=${3:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for path in "$include"/laya/*.h; do
    header="laya/$(basename "$path")"
    printf '#include <%s>\n#include <%s>\n' "$header" "$header" >"$work/one.c"
    cp "$work/one.c" "$work/one.cpp"
    echo "$header"
    "$cc" -std=c11 -pedantic-errors -Wall -Wextra -Wconversion -Wstrict-prototypes -Werror -I"$include" -c "$work/one.c" -o "$work/one.o"
    if [ -n "$cxx" ]; then
        "$cxx" -std=c++11 -pedantic-errors -Wall -Wextra -Werror -I"$include" -c "$work/one.cpp" -o "$work/one.o"
    fi
done
[ -n "$cxx" ] || echo "no C++ compiler here: the headers were not compiled as C++"
