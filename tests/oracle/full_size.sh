#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The fixture through full-size packages: random weights with outlier channels in the multilingual shape, per-head and
# lean graph at 96 tokens, against the CPU engine. Both must pass the gate in fp32 numerics, which shows that the graphs
# compute the same function; 59 of 63 questions fit. In fp16 numerics random weights decide near ties by chance, so
# there only the error of probabilities is held to the gate's limit.
#
#   full_size.sh BUILD_FOLDER MMBERT_TOKENIZER
set -euo pipefail
build=$1 tokenizer=$2
work=$(mktemp -d "$build/full-size-XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/tokenizer"
cp "$tokenizer" "$work/tokenizer/tokenizer.json"
echo '{"cls_token": "<bos>", "sep_token": "<eos>", "mask_token": "<mask>", "pad_token": "<pad>"}' \
    >"$work/tokenizer/tokenizer_config.json"
"$build/tests/laya-make-checkpoint" --outliers multilingual "$work/tokenizer" "$work/checkpoint"
"$build/bin/layac" reference --model "$work/checkpoint" --output "$work/reference.json" >"$work/log"
member() { sed -n "s/^  \"$2\": \([^,]*\),*\$/\1/p" "$1"; }
holds() { awk -v value="$1" 'BEGIN { exit !(value != "" && value + 0 <= 0.02) }'; }
for graph in per-head lean; do
    "$build/bin/layac" export --model "$work/checkpoint" --graph "$graph" --output "$work/$graph" >"$work/log"
    for numerics in fp32 fp16; do
        summary=$work/$graph-$numerics
        status=0
        "$build/bin/layac" validate --package "$work/$graph" --reference "$work/reference.json" --repeats 1 \
            --numerics "$numerics" --output "$summary.json" >"$summary" 2>"$work/log" || status=$?
        evaluated=$(member "$summary" evaluated) unvalidated=$(member "$summary" unvalidated)
        error=$(member "$summary" probability_error) action=$(member "$summary" action_probability_error)
        echo "$graph, $numerics numerics: passed $(member "$summary" passed), $evaluated evaluated," \
            "$unvalidated unvalidated, probability error $error, action probability error $action"
        if [ "$evaluated" != 59 ] || [ "$unvalidated" != 4 ] || ! holds "$error" || ! holds "$action"; then exit 1; fi
        if [ "$numerics" = fp32 ] && [ "$status" != 0 ]; then exit 1; fi
    done
    rm -rf "${work:?}/$graph"
done
