#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turn Gemma-2's tokenizer.json into mmBERT's form: gemma2_to_mmbert.py gemma2.json mmbert.json

Same vocabulary and merges; Metaspace (prepend always, split) instead of Replace and Split, `<mask>` special
with lstrip, `<bos> A <eos>` around the text, merges as pairs. Indented by two spaces, as the package
`tokenizers` writes its files.
"""
import json
import sys


def convert(data):
    assert data["model"]["vocab"]["<mask>"] == 4, "not Gemma-2's vocabulary"
    out = dict(data)
    out["normalizer"] = None
    out["pre_tokenizer"] = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}
    special = {"<bos>": 2, "<eos>": 1}
    template = [{"SpecialToken": {"id": "<bos>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                {"SpecialToken": {"id": "<eos>", "type_id": 0}}]
    out["post_processor"] = {
        "type": "TemplateProcessing",
        "single": template,
        "pair": template + [{"Sequence": {"id": "B", "type_id": 0}}, {"SpecialToken": {"id": "<eos>", "type_id": 0}}],
        "special_tokens": {name: {"id": name, "ids": [number], "tokens": [name]} for name, number in special.items()},
    }
    out["added_tokens"] = [dict(token, special=True, lstrip=True) if token["content"] == "<mask>" else token
                           for token in data["added_tokens"]]
    merges = [merge.split(" ") if isinstance(merge, str) else merge for merge in data["model"]["merges"]]
    out["model"] = dict(data["model"], merges=merges)
    return out


def main():
    with open(sys.argv[1], encoding="utf-8") as handle:
        data = json.load(handle)
    with open(sys.argv[2], "w", encoding="utf-8") as handle:
        json.dump(convert(data), handle, ensure_ascii=False, indent=2)


if __name__ == "__main__":
    main()
