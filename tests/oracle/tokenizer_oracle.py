#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare liblaya's token ids with those of the Python package `tokenizers`, text by text.

    tokenizer_oracle.py --driver tokenize_lines --demo FILE --tiny FILE --modernbert FILE --gemma2 FILE

Each FILE is a tokenizer.json; --gemma2 is checked as it is and in mmBERT's form (gemma2_to_mmbert.py).
A file that is not given or not there is skipped with a loud note. Small tokenizers with all kinds of added
tokens and odd merges are made up here. Deterministic; exit status 1 on any difference.
"""
import argparse
import glob
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import unicodedata

os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import gemma2_to_mmbert  # noqa: E402
import tokenizers  # noqa: E402

SPACES = " \t\n\r\x0b\x0c\u0085\u00a0\u1680\u2000\u2003\u2009\u2028\u2029\u202f\u205f\u3000\u200b\x1c\x1f\ufeff"
SHOWN = 5  # differences printed per file


# ---------------------------------------------------------------- texts

def licence_texts():
    """Lines of Debian's licence texts, and some files whole."""
    names = sorted(glob.glob("/usr/share/common-licenses/*")) + sorted(glob.glob("/usr/share/doc/*/copyright"))
    seen, out, whole = set(), [], 0
    for name in names:
        try:
            with open(name, "rb") as handle:
                text = handle.read().decode("utf-8", "replace")
        except OSError:
            continue
        if whole < 40:
            out.append(text)
            whole += 1
        for line in text.split("\n"):
            if line not in seen:
                seen.add(line)
                out.append(line)
    return out[:40000]


def code_points():
    """All of the planes 0, 1 and 14 as far as they are in use, and a sample of the others."""
    for code in itertools.chain(range(0x20000), range(0x20000, 0xE0000, 17), range(0xE0000, 0xE0200),
                                range(0xE0200, 0x110000, 37)):
        if not 0xD800 <= code < 0xE000:
            yield chr(code)


def code_point_texts():
    """Every code point alone, in words, numbers and punctuation, beside marks and white space."""
    forms = [lambda c: c, lambda c: "a" + c + "b " + c, lambda c: " 1" + c + "2 !" + c + "! ",
             lambda c: "e" + c + "\u0301" + c + "\u0327\u0323", lambda c: "  " + c + "  \n" + c + "'s" + c]
    chars = list(code_points())
    out = []
    for start in range(0, len(chars), 8):
        group = chars[start:start + 8]
        out.append("".join(group))
        for form in forms[1:]:
            out.append("".join(form(char) for char in group))
    out.extend(char for char in chars if ord(char) < 0x3400 or 0xA000 <= ord(char) < 0xB000)
    return out


def combining_texts(rng, count):
    """Sequences of bases, marks of all classes, jamo and decomposable letters, in all normal forms."""
    every = [chr(code) for code in range(0x30000) if not 0xD800 <= code < 0xE000]
    marks = [char for char in every if unicodedata.combining(char)]
    whole = [char for char in every if unicodedata.decomposition(char) and unicodedata.decomposition(char)[0] != "<"]
    jamo = [chr(code) for code in itertools.chain(range(0x1100, 0x1200), range(0xAC00, 0xAC60), range(0xD780, 0xD7A4))]
    young = [chr(code) for code in itertools.chain(range(0x1AB0, 0x1B00), range(0x8D0, 0x900), range(0x11380, 0x113D8),
                                                   range(0x11930, 0x11946), range(0x105C0, 0x105F4),
                                                   range(0x16120, 0x1612C), range(0x16D60, 0x16D6C))]
    bases = [char for char in whole + list("aeiouAQ=<>1 \n\u0915\u0b92\u1025\u30ab\u0d46\u09c7\U000110a5")]
    out = [form for char in whole for form in (char, unicodedata.normalize("NFD", char))]
    out += ["x" + a + b + "y" for a in marks[::7] for b in marks[::11]][:8000]
    while len(out) < count:
        pools = rng.choices([bases, marks, whole, jamo, young, marks], k=rng.randint(1, 9))
        text = "".join(rng.choice(pool) for pool in pools)
        out.append(unicodedata.normalize(rng.choice(["NFC", "NFD", "NFKD"]), text) if rng.random() < 0.5 else text)
    out.append("a" + "".join(rng.choice(marks) for _ in range(3000)))
    return out


def confusable_texts(rng, count):
    """Words with letters replaced by look-alikes."""
    alike = {"a": "\u0430\u0251\u03b1\uff41\U0001d41a", "e": "\u0435\u212f\u0451", "o": "\u03bf\u043e0\u00ba\u0585",
             "i": "\u0456\u0131\u03b9l1|", "s": "\u0455\u017f", "c": "\u0441\u03f2", "p": "\u0440\u03c1",
             "x": "\u0445\u00d7", "K": "\u212a\u039a", "A": "\u212b\u0391\u0410", "'": "\u2019\u02bc\u0301`", " ": SPACES}
    words = "please refund the invoice it's we'll Kelvin Angstrom opaque excess paid access".split(" ")
    out = []
    for _ in range(count):
        text = " ".join(rng.choices(words, k=rng.randint(1, 6)))
        out.append("".join(rng.choice(alike[char]) if char in alike and rng.random() < 0.4 else char for char in text))
    return out


def emoji_texts(rng, count):
    parts = (["\U0001F600", "\U0001F468", "\U0001F469", "\U0001F467", "\u2764\ufe0f", "\u2764", "\U0001F44D", "\u200d",
              "\ufe0f", "\u20e3", "#\ufe0f\u20e3", "1\ufe0f\u20e3", "\U0001F3F4", "\U000E0067", "\U000E0062", "\U000E007F",
              " ", "a", "\U0001F468\u200d\U0001F469\u200d\U0001F467", "\U0001F9D1\u200d\U0001F680", "\U0001FAE8"]
             + [chr(code) for code in range(0x1F3FB, 0x1F400)] + [chr(code) for code in range(0x1F1E6, 0x1F200)])
    return ["".join(rng.choices(parts, k=rng.randint(1, 8))) for _ in range(count)]


def byte_texts(rng, count):
    out = []
    for _ in range(count):
        size = rng.randint(1, 60)
        data = bytes(rng.choice([rng.randrange(256), rng.randrange(128), rng.randrange(0xC0, 0x100)]) for _ in range(size))
        out.append(data.decode("utf-8", "replace"))
        out.append(data.decode("latin-1"))
    return out


def space_texts(rng, count):
    out = [char * n + end for char in " \n\t\r" for n in range(1, 80) for end in ("", "x", " x", "\nx")]
    while len(out) < count:
        text = "".join(rng.choice(SPACES + "  \n\n\t\t") * rng.choice([1, 1, 2, 3, 5, 8, 26, 33]) +
                       rng.choice(["", "a", "Zz", "7", "!", "\u2581", "'s", "\u00e9"]) for _ in range(rng.randint(1, 7)))
        out.append(text)
    return out


def ascii_texts(rng, count):
    pieces = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'", "''", "it", "I", "we", "don", "x1", "42", "1,000.50",
              "\u0662\u0663", "\u00bd", "\u2167", " ", "  ", "\n", "(", ")", "{\"a\": [1, true]}", "...", "!?", "_", "a_b",
              "http://x.y/z?q=1", "\u2581", "<0x41>", "\x00", "\x7f", "caf\u00e9", "Stra\u00dfe", "\u65e5\u672c\u8a9e",
              "\u0928\u092e\u0938\u094d\u0924\u0947", "\u0645\u0631\u062d\u0628\u0627", "\U0001d400\U0001d7d8"]
    return ["".join(rng.choices(pieces, k=rng.randint(1, 14))) for _ in range(count)]


def long_texts():
    return ["a" * 20000, "ab" * 15000, " " * 20000, "\n" * 5000, "\u00e9" * 9000, "e\u0301" * 9000, "\u2581" * 3000,
            "The quick brown fox " * 2000, "x\t" * 3000, "\U0001F600" * 3000, "1234567890" * 1500, "'s" * 4000]


def added_texts(rng, tokens, count):
    """Texts that spell out added tokens, whole, cut, doubled, beside words and white space."""
    around = ["", "", " ", "  ", "\n", "\t ", "\u00a0", "\u3000", "a", "_", "7", "\u00e9", "\u0301", "!", "word ", " word",
              "\u200d", "\u0939"]
    if len(tokens) > 120:
        tokens = rng.sample(tokens, 120)
    out = []
    for _ in range(count):
        text = ""
        for _ in range(rng.randint(1, 6)):
            token = rng.choice(tokens)
            shape = rng.random()
            if shape < 0.08 and len(token) > 1:
                token = token[:-1]
            elif shape < 0.12:
                token = token[1:]
            elif shape < 0.16:
                token = unicodedata.normalize("NFD", token)
            text += rng.choice(around) + token + rng.choice(around)
        out.append(text)
    return out


def common_texts():
    rng = random.Random(20240607)
    parts = [("licence texts", licence_texts()), ("code points", code_point_texts()),
             ("combining marks", combining_texts(rng, 50000)), ("confusables", confusable_texts(rng, 15000)),
             ("emoji", emoji_texts(rng, 12000)), ("random bytes", byte_texts(rng, 12000)),
             ("white space", space_texts(rng, 15000)), ("words and signs", ascii_texts(rng, 20000)),
             ("long texts", long_texts())]
    for name, texts in parts:
        print("  %-16s %7d texts" % (name, len(texts)))
    return [text for _, texts in parts for text in texts]


# ---------------------------------------------------------------- comparison

def run_driver(driver, path, texts):
    data = b"".join(b"%d\n%s" % (len(raw), raw) for raw in (text.encode("utf-8") for text in texts))
    done = subprocess.run([driver, path], input=data, stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        sys.exit("%s failed on %s (status %d)" % (driver, path, done.returncode))
    return done.stdout.decode("utf-8").split("\n")[:-1]


def compare(driver, path, texts, name, quiet=False):
    """Number of texts whose ids differ."""
    start = time.time()
    reference = tokenizers.Tokenizer.from_file(path)
    own = run_driver(driver, path, texts)
    middle = time.time()
    if len(own) != len(texts):
        sys.exit("%s: %d lines for %d texts" % (name, len(own), len(texts)))
    bad = ids = 0
    for at in range(0, len(texts), 20000):
        expected = reference.encode_batch_fast(texts[at:at + 20000], add_special_tokens=False)
        for text, line, encoding in zip(texts[at:at + 20000], own[at:at + 20000], expected):
            ids += len(encoding.ids)
            wanted = " ".join(map(str, encoding.ids))
            if line == wanted:
                continue
            bad += 1
            if bad <= SHOWN:
                print("  DIFFERENT %s: %r\n    expected %s\n    found    %s" % (name, text[:200], wanted[:400], line[:400]))
    if bad or not quiet:
        print("%-28s %7d texts, %9d ids, %d different  (%.1f s own, %.1f s reference)" %
              (name, len(texts), ids, bad, middle - start, time.time() - middle), flush=True)
    return bad


# ---------------------------------------------------------------- made-up tokenizers

def entry(number, content, **flags):
    out = {"id": number, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
           "normalized": False, "special": False}
    out.update(flags)
    return out


def pipeline(form):
    """normalizer and pre_tokenizer of one of the families."""
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    metaspace = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}
    split = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
    return {"byte-nfc": ({"type": "NFC"}, byte_level), "byte": (None, byte_level), "metaspace": (None, metaspace),
            "gemma": (replace, split)}[form]


def made_up(rng, form):
    """A small tokenizer: random merges, among them several that make the same token, and random added tokens."""
    byte_level = form.startswith("byte")
    letters = list("abc1!_") + (["\u0120", "\u010a"] if byte_level else ["\u2581", "\n", "\u00e9"])
    tokens = ["<unk>"] + letters
    if byte_level:
        tokens += [char for char in tokenizers.pre_tokenizers.ByteLevel.alphabet() if char not in tokens]
        tokens[len(letters) + 1:] = sorted(tokens[len(letters) + 1:])
    fallback = not byte_level and rng.random() < 0.7
    if fallback:
        missing = set(rng.sample(range(256), rng.choice([0, 3, 40])))
        tokens += ["<0x%02X>" % byte for byte in range(256) if byte not in missing]
    merges, small = [], letters[:3] + letters[-3:]
    for _ in range(rng.randint(5, 60)):
        left, right = rng.choice(small), rng.choice(small)
        if len(left + right) > 7:
            continue
        if left + right not in tokens:
            tokens.append(left + right)
            small.append(left + right)
        merges.append([left, right])
        if rng.random() < 0.5 and len(left + right) > 2:  # another way to the same token
            cut = rng.randint(1, len(left + right) - 1)
            first, second = (left + right)[:cut], (left + right)[cut:]
            if first in tokens and second in tokens:
                merges.insert(rng.randint(0, len(merges)), [first, second])
    merges = [pair for pair in merges if all(part in tokens for part in pair)]
    if rng.random() < 0.3 and merges:
        merges.append(rng.choice(merges))  # comes twice
    added, contents = [], ["<x>", "<xx>", "<x> ", " <x>", "ab", "a", "caf\u00e9", "cafe\u0301", "e\u0301", "\u2126", "  ", "\n\n",
                           "\n", "b c", "[M]", "_", "1", "\u0301", "<unk>", "\u3000", "a b", "\u00e9"]
    norms = {"byte-nfc": lambda text: unicodedata.normalize("NFC", text), "gemma": lambda text: text.replace(" ", "\u2581")}
    norm, used, number = norms.get(form, lambda text: text), set(), len(tokens)
    for content in rng.sample(contents, rng.randint(0, 12)):
        flags = {name: rng.random() < 0.4 for name in ("single_word", "lstrip", "rstrip", "normalized", "special")}
        pattern = norm(content) if flags["normalized"] else content
        if pattern.isspace():
            flags["lstrip"] = False  # beside rstrip the reference crashes on it, and liblaya refuses it
        if (flags["normalized"], pattern) in used:
            continue
        used.add((flags["normalized"], pattern))
        where = tokens.index(content) if content in tokens else number
        number += where == number
        added.append(entry(where, content, **flags))
    normalizer, pre_tokenizer = pipeline(form)
    unk = None if byte_level and rng.random() < 0.5 else "<unk>"
    if rng.random() < 0.5:
        merges = ["%s %s" % tuple(pair) for pair in merges]
    model = {"type": "BPE", "dropout": None, "unk_token": unk, "continuing_subword_prefix": None,
             "end_of_word_suffix": None, "fuse_unk": rng.random() < 0.5, "byte_fallback": fallback,
             "ignore_merges": False, "vocab": {token: at for at, token in enumerate(tokens)}, "merges": merges}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": normalizer,
            "pre_tokenizer": pre_tokenizer, "post_processor": None, "decoder": None, "model": model}


def compare_made_up(driver, count, lines):
    rng = random.Random(7)
    bad = total = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tokenizer.json")
        for number in range(count):
            form = ["byte-nfc", "byte", "metaspace", "gemma"][number % 4]
            data = made_up(rng, form)
            with open(path, "w", encoding="utf-8") as handle:
                json.dump(data, handle, ensure_ascii=False)
            contents = [token["content"] for token in data["added_tokens"]] or ["ab"]
            texts = added_texts(rng, contents, lines)
            letters = "aaabbbccc 1!_\n" + ("\u00e9\u20ac\U0001F600Z" if number // 4 % 2 else "")
            texts += ["".join(rng.choices(letters, k=rng.randint(1, 40))) for _ in range(lines)]
            difference = compare(driver, path, texts, "made up %d (%s)" % (number, form), quiet=True)
            if difference:
                print("  the file:", json.dumps(data, ensure_ascii=True)[:3000])
            bad += difference
            total += len(texts)
    print("%-28s %7d texts for %d files, %d different" % ("made-up tokenizers", total, count, bad), flush=True)
    return bad


# ---------------------------------------------------------------- main

def main():
    parser = argparse.ArgumentParser(description="Compare token ids with the Python package tokenizers.")
    parser.add_argument("--driver", required=True, help="the program tokenize_lines")
    for name in ("modernbert", "gemma2", "demo", "tiny"):
        parser.add_argument("--" + name, help="path of this tokenizer.json")
    arguments = parser.parse_args()
    print("reference: tokenizers %s" % tokenizers.__version__)
    texts = common_texts()
    bad, skipped = compare_made_up(arguments.driver, 240, 250), []
    with tempfile.TemporaryDirectory() as folder:
        files = [(name, getattr(arguments, name)) for name in ("demo", "tiny", "modernbert", "gemma2")]
        if arguments.gemma2 and os.path.exists(arguments.gemma2):
            files.append(("gemma2 as mmBERT", os.path.join(folder, "mmbert.json")))
            with open(arguments.gemma2, encoding="utf-8") as handle:
                data = gemma2_to_mmbert.convert(json.load(handle))
            with open(files[-1][1], "w", encoding="utf-8") as handle:
                json.dump(data, handle, ensure_ascii=False, indent=2)
        for name, path in files:
            if not path or not os.path.exists(path):
                skipped.append(name)
                continue
            with open(path, encoding="utf-8") as handle:
                contents = [token["content"] for token in json.load(handle)["added_tokens"]]
            more = added_texts(random.Random(11), contents, 20000)
            bad += compare(arguments.driver, path, texts + more, name)
    for name in skipped:
        print("*** SKIPPED: no file for --%s; THIS TOKENIZER WAS NOT CHECKED ***" % name)
    print("%s: %d differences%s" % ("FAILED" if bad else "passed", bad, ", %d files skipped" % len(skipped) if skipped else ""))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
