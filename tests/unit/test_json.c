/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON reader against json.loads, the writers against json.dumps and repr of CPython 3.12. */
#include "support.h"

#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A text, json.dumps(json.loads(text), ensure_ascii=False) and repr(json.loads(text)). */
static const struct {
    const char *text, *python, *repr;
} written[] = {
    {"null", "null", "None"},
    {"true", "true", "True"},
    {"false", "false", "False"},
    {"0", "0", "0"},
    {"-0", "0", "0"},
    {"12", "12", "12"},
    {"-7", "-7", "-7"},
    {"123456789012345678901234567890123456789012", "123456789012345678901234567890123456789012",
     "123456789012345678901234567890123456789012"},
    {"1E5", "100000.0", "100000.0"},
    {"1e400", "Infinity", "inf"},
    {"-1e400", "-Infinity", "-inf"},
    {"0.1", "0.1", "0.1"},
    {"2.0", "2.0", "2.0"},
    {"1e21", "1e+21", "1e+21"},
    {"1e-7", "1e-07", "1e-07"},
    {"-0.0", "-0.0", "-0.0"},
    {"1000000000000000.0", "1000000000000000.0", "1000000000000000.0"},
    {"1e16", "1e+16", "1e+16"},
    {"0.0001", "0.0001", "0.0001"},
    {"0.00001", "1e-05", "1e-05"},
    {"-0.125", "-0.125", "-0.125"},
    {"0.3333333333333333", "0.3333333333333333", "0.3333333333333333"},
    {"NaN", "NaN", "nan"},
    {"Infinity", "Infinity", "inf"},
    {"-Infinity", "-Infinity", "-inf"},
    {"1.0000", "1.0", "1.0"},
    {"100e-2", "1.0", "1.0"},
    {"5e-324", "5e-324", "5e-324"},
    {"1.7976931348623157e308", "1.7976931348623157e+308", "1.7976931348623157e+308"},
    {"\"\"", "\"\"", "''"},
    {"\"abc\"", "\"abc\"", "'abc'"},
    {"\"\\u0041\"", "\"A\"", "'A'"},
    {"\"\\u00e9\\u20ac\"", "\"\xc3\xa9\xe2\x82\xac\"", "'\xc3\xa9\xe2\x82\xac'"},
    {"\"\\ud83d\\ude00\"", "\"\xf0\x9f\x98\x80\"", "'\xf0\x9f\x98\x80'"},
    {"\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"",
     "'\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80'"},
    {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\\"\\\\/\\b\\f\\n\\r\\t\"", "'\"\\\\/\\x08\\x0c\\n\\r\\t'"},
    {"\"\\u0000\\u0001\\u001f\\u007f\"", "\"\\u0000\\u0001\\u001f\x7f\"", "'\\x00\\x01\\x1f\\x7f'"},
    {"\"\xc2\xa0\xc2\xad\xc2\x85\xc2\xa1\"", "\"\xc2\xa0\xc2\xad\xc2\x85\xc2\xa1\"", "'\\xa0\\xad\\x85\xc2\xa1'"},
    {"\"/\"", "\"/\"", "'/'"},
    {"\"it's\"", "\"it's\"", "\"it's\""},
    {"\"say \\\"hi\\\"\"", "\"say \\\"hi\\\"\"", "'say \"hi\"'"},
    {"\"it's \\\"both\\\"\"", "\"it's \\\"both\\\"\"", "'it\\'s \"both\"'"},
    {"[\"\\u0041x\",\"\\n\",{\"b\\t\":\"\\\\c\"}]", "[\"Ax\", \"\\n\", {\"b\\t\": \"\\\\c\"}]",
     "['Ax', '\\n', {'b\\t': '\\\\c'}]"},
    {"[]", "[]", "[]"},
    {"{}", "{}", "{}"},
    {"[[]]", "[[]]", "[[]]"},
    {"[{}]", "[{}]", "[{}]"},
    {"{\"a\":{}}", "{\"a\": {}}", "{'a': {}}"},
    {"{\"a\":[]}", "{\"a\": []}", "{'a': []}"},
    {"[1,[2,[3,[4]]],5]", "[1, [2, [3, [4]]], 5]", "[1, [2, [3, [4]]], 5]"},
    {"[[],[],{}]", "[[], [], {}]", "[[], [], {}]"},
    {"{\"a\":1,\"b\":[true,null,{\"c\":\"d\"}],\"e\":-1.5}",
     "{\"a\": 1, \"b\": [true, null, {\"c\": \"d\"}], \"e\": -1.5}",
     "{'a': 1, 'b': [True, None, {'c': 'd'}], 'e': -1.5}"},
    {" [ 1 , 2 ]\n", "[1, 2]", "[1, 2]"},
    {"{\"b\":1,\"a\":2}", "{\"b\": 1, \"a\": 2}", "{'b': 1, 'a': 2}"},
    {"{\"\":\"\"}", "{\"\": \"\"}", "{'': ''}"},
    {"{\"\\u00e4\":[true,null]}", "{\"\xc3\xa4\": [true, null]}", "{'\xc3\xa4': [True, None]}"},
    {"[1,{\"a\":2},[3]]", "[1, {\"a\": 2}, [3]]", "[1, {'a': 2}, [3]]"},
    {"{\"a\":{\"b\":{\"c\":[]}},\"d\":[{}]}", "{\"a\": {\"b\": {\"c\": []}}, \"d\": [{}]}",
     "{'a': {'b': {'c': []}}, 'd': [{}]}"},
    {"{\"x\":NaN,\"y\":-Infinity}", "{\"x\": NaN, \"y\": -Infinity}", "{'x': nan, 'y': -inf}"},
    {"{\"a\":1,\"b\":2,\"a\":3}", "{\"a\": 3, \"b\": 2}", "{'a': 3, 'b': 2}"},
    {"{\"a\":1,\"a\":2,\"a\":3}", "{\"a\": 3}", "{'a': 3}"},
    {"{\"a\":{\"x\":1},\"b\":[1,2],\"a\":[{\"y\":2,\"y\":3},4],\"c\":5}",
     "{\"a\": [{\"y\": 3}, 4], \"b\": [1, 2], \"c\": 5}", "{'a': [{'y': 3}, 4], 'b': [1, 2], 'c': 5}"},
    {"{\"a\":{\"k\":1,\"k\":{\"l\":2,\"l\":[3]}},\"a\":{\"k\":4,\"m\":5,\"k\":6}}", "{\"a\": {\"k\": 6, \"m\": 5}}",
     "{'a': {'k': 6, 'm': 5}}"},
    {"{\"a\":1,\"\\u0061\":2}", "{\"a\": 2}", "{'a': 2}"},
    {"{\"\":1,\"\":2}", "{\"\": 2}", "{'': 2}"},
    {"[{\"a\":1,\"a\":2},{\"a\":3,\"b\":4,\"a\":5}]", "[{\"a\": 2}, {\"a\": 5, \"b\": 4}]",
     "[{'a': 2}, {'a': 5, 'b': 4}]"},
    {"{\"b\":[1,2,3,4],\"a\":1,\"b\":7,\"c\":[1]}", "{\"b\": 7, \"a\": 1, \"c\": [1]}", "{'b': 7, 'a': 1, 'c': [1]}"},
    {"{\"k0\":0,\"k1\":1,\"k2\":2,\"k3\":3,\"k4\":4,\"k5\":5,\"k6\":6,\"k7\":7,\"k8\":8,\"k9\":9,\"k10\":10,\"k11\":"
     "11,\"k0\":12,\"k1\":13,\"k2\":14,\"k3\":15,\"k4\":16,\"k5\":17,\"k6\":18,\"k7\":19,\"k8\":20,\"k9\":21,\"k10\":"
     "22,\"k11\":23,\"k0\":24,\"k1\":25,\"k2\":26,\"k3\":27,\"k4\":28,\"k5\":29}",
     "{\"k0\": 24, \"k1\": 25, \"k2\": 26, \"k3\": 27, \"k4\": 28, \"k5\": 29, \"k6\": 18, \"k7\": 19, \"k8\": 20, "
     "\"k9\": 21, \"k10\": 22, \"k11\": 23}",
     "{'k0': 24, 'k1': 25, 'k2': 26, 'k3': 27, 'k4': 28, 'k5': 29, 'k6': 18, 'k7': 19, 'k8': 20, 'k9': 21, 'k10': "
     "22, 'k11': 23}"},
    {"{\"k0\":[0,{\"z\":0}],\"k1\":[1,{\"z\":1}],\"k2\":[2,{\"z\":2}],\"k3\":[3,{\"z\":3}],\"k4\":[4,{\"z\":4}],"
     "\"k5\":[5,{\"z\":5}],\"k6\":[6,{\"z\":6}],\"k7\":[7,{\"z\":7}],\"k8\":[8,{\"z\":8}],\"k9\":[9,{\"z\":9}],"
     "\"k3\":\"last\",\"k10\":{}}",
     "{\"k0\": [0, {\"z\": 0}], \"k1\": [1, {\"z\": 1}], \"k2\": [2, {\"z\": 2}], \"k3\": \"last\", \"k4\": [4, "
     "{\"z\": 4}], \"k5\": [5, {\"z\": 5}], \"k6\": [6, {\"z\": 6}], \"k7\": [7, {\"z\": 7}], \"k8\": [8, {\"z\": "
     "8}], \"k9\": [9, {\"z\": 9}], \"k10\": {}}",
     "{'k0': [0, {'z': 0}], 'k1': [1, {'z': 1}], 'k2': [2, {'z': 2}], 'k3': 'last', 'k4': [4, {'z': 4}], 'k5': [5, "
     "{'z': 5}], 'k6': [6, {'z': 6}], 'k7': [7, {'z': 7}], 'k8': [8, {'z': 8}], 'k9': [9, {'z': 9}], 'k10': {}}"},
    {"{\"\":0,\"x\":1,\"xx\":2,\"xxx\":3,\"xxxx\":4,\"xxxxx\":5,\"xxxxxx\":6,\"xxxxxxx\":7,\"xxxxxxxx\":8,"
     "\"xxxxxxxxx\":9,\"xxxxxxxxxx\":10,\"xxxxxxxxxxx\":11,\"xxx\":99}",
     "{\"\": 0, \"x\": 1, \"xx\": 2, \"xxx\": 99, \"xxxx\": 4, \"xxxxx\": 5, \"xxxxxx\": 6, \"xxxxxxx\": 7, "
     "\"xxxxxxxx\": 8, \"xxxxxxxxx\": 9, \"xxxxxxxxxx\": 10, \"xxxxxxxxxxx\": 11}",
     "{'': 0, 'x': 1, 'xx': 2, 'xxx': 99, 'xxxx': 4, 'xxxxx': 5, 'xxxxxx': 6, 'xxxxxxx': 7, 'xxxxxxxx': 8, "
     "'xxxxxxxxx': 9, 'xxxxxxxxxx': 10, 'xxxxxxxxxxx': 11}"},
};

static void written_as_python_does(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof written / sizeof *written; i++) {
        test_memory memory;
        laya_json doc;
        laya_buffer out;
        laya_error error;
        test_memory_init(&memory);
        laya_buffer_init(&out, &memory.hooks);
        if (laya_json_parse(&doc, written[i].text, strlen(written[i].text), &memory.hooks, &error) != LAYA_OK)
            fail_msg("%s: %s", written[i].text, error.message);
        laya_json_write_python(&out, laya_json_root(&doc));
        assert_string_equal(out.data, written[i].python);
        laya_buffer_clear(&out);
        laya_json_write_repr(&out, laya_json_root(&doc));
        assert_string_equal(out.data, written[i].repr);
        laya_buffer_close(&out);
        laya_json_close(&doc);
        assert_int_equal(memory.live, 0);
    }
}

/* Part of a document, and characters that stay as they are. */
static void parts_are_written(void **state)
{
    (void)state;
    static const char text[] = "{\"a\": [1, {\"b\": \"\xe2\x80\xa8\\u007f/\"}], \"c\": 2}";
    laya_json doc;
    laya_buffer out;
    laya_buffer_init(&out, NULL);
    assert_int_equal(laya_json_parse(&doc, text, strlen(text), NULL, NULL), LAYA_OK);
    laya_json_value a = laya_json_get(laya_json_root(&doc), "a");
    laya_json_write_python(&out, a);
    assert_string_equal(out.data, "[1, {\"b\": \"\xe2\x80\xa8\x7f/\"}]");
    laya_buffer_clear(&out);
    laya_json_write_python(&out, laya_json_get(laya_json_root(&doc), "c"));
    assert_string_equal(out.data, "2");
    laya_buffer_clear(&out);
    laya_json_write_python(&out, laya_json_get(laya_json_root(&doc), "absent"));
    assert_string_equal(out.data, "");
    laya_buffer_clear(&out);
    laya_json_write_string(&out, "a\0b", 3);
    assert_string_equal(out.data, "\"a\\u0000b\"");
    laya_buffer_close(&out);
    laya_json_close(&doc);
}

/* ------------------------------------------------------------------ errors */

static void errors_have_a_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "line 1, column 1: expected a value, but the text ends"},
        {" \n\t ", "line 2, column 3: expected a value, but the text ends"},
        {"tru", "line 1, column 1: expected a value"},
        {"nul", "line 1, column 1: expected a value"},
        {"Nan", "line 1, column 1: expected a value"},
        {"Inf", "line 1, column 1: expected a value"},
        {"-NaN", "line 1, column 1: expected a value"},
        {"-Inf", "line 1, column 1: expected a value"},
        {"+1", "line 1, column 1: expected a value"},
        {".5", "line 1, column 1: expected a value"},
        {"-", "line 1, column 1: expected a value"},
        {"'a'", "line 1, column 1: expected a value"},
        {"\xef\xbb\xbf{}", "line 1, column 1: unexpected byte order mark; save the text without it"},
        {"01", "line 1, column 1: a number must not begin with 0"},
        {"-01", "line 1, column 1: a number must not begin with 0"},
        {"1.", "line 1, column 2: expected digits after the decimal point"},
        {"[1.e5]", "line 1, column 3: expected digits after the decimal point"},
        {"1e", "line 1, column 2: expected digits in the exponent"},
        {"1E+", "line 1, column 2: expected digits in the exponent"},
        {"[1e-]", "line 1, column 3: expected digits in the exponent"},
        {"1 2", "line 1, column 3: expected the end of the text"},
        {"{} x", "line 1, column 4: expected the end of the text"},
        {"1e5.5", "line 1, column 4: expected the end of the text"},
        {"truefalse", "line 1, column 5: expected the end of the text"},
        {"[", "line 1, column 2: this array does not end"},
        {"[1", "line 1, column 3: this array does not end"},
        {"[1,", "line 1, column 4: expected a value, but the text ends"},
        {"[1 2]", "line 1, column 4: expected ',' or ']'"},
        {"[1,]", "line 1, column 4: expected a value"},
        {"[,1]", "line 1, column 2: expected a value"},
        {"[}", "line 1, column 2: expected a value"},
        {"]", "line 1, column 1: expected a value"},
        {"{", "line 1, column 2: this object does not end"},
        {"{\"a\"", "line 1, column 5: expected ':' after the key"},
        {"{\"a\" 1}", "line 1, column 6: expected ':' after the key"},
        {"{\"a\":", "line 1, column 6: expected a value, but the text ends"},
        {"{\"a\":1", "line 1, column 7: this object does not end"},
        {"{\"a\":1,}", "line 1, column 8: expected a key in double quotes"},
        {"{\"a\":1 \"b\":2}", "line 1, column 8: expected ',' or '}'"},
        {"{a:1}", "line 1, column 2: expected a key in double quotes"},
        {"{1:1}", "line 1, column 2: expected a key in double quotes"},
        {"{,}", "line 1, column 2: expected a key in double quotes"},
        {"{\"a\":1]", "line 1, column 7: expected ',' or '}'"},
        {"{\n  \"a\": 1,\n  \"b\": x\n}", "line 3, column 8: expected a value"},
        {"\"abc", "line 1, column 1: this string does not end"},
        {"[\n \"ab\\nc", "line 2, column 2: this string does not end"},
        {"\"\\", "line 1, column 2: the text ends inside a string"},
        {"\"a\\x\"", "line 1, column 3: unknown escape; expected one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u"},
        {"\"\\u12\"", "line 1, column 2: expected four hexadecimal digits after \\u"},
        {"\"\\u12g4\"", "line 1, column 2: expected four hexadecimal digits after \\u"},
        {"\"\\u", "line 1, column 2: expected four hexadecimal digits after \\u"},
        {"\"\\ud800\"", "line 1, column 2: a lone surrogate is no character; write the pair or the character itself"},
        {"\"\\udc00\\udc00\"",
         "line 1, column 2: a lone surrogate is no character; write the pair or the character itself"},
        {"\"\\udc00\"", "line 1, column 2: a lone surrogate is no character; write the pair or the character itself"},
        {"\"ab\\ud800\\u0041\"",
         "line 1, column 4: a lone surrogate is no character; write the pair or the character itself"},
        {"\"\\ud83d\\ud83d\"",
         "line 1, column 2: a lone surrogate is no character; write the pair or the character itself"},
        {"\"\\ud83d\\n\"",
         "line 1, column 2: a lone surrogate is no character; write the pair or the character itself"},
        {"\"a\nb\"", "line 1, column 3: a control character in a string must be written as an escape"},
        {"\"\\n\x01\"", "line 1, column 4: a control character in a string must be written as an escape"},
        {"\"\xff\"", "line 1, column 2: invalid UTF-8"},
        {"\"ab\\n\xc3\xa4\xed\xa0\x80\"", "line 1, column 8: invalid UTF-8"},
        {"{\"\xc0\x80\":1}", "line 1, column 3: invalid UTF-8"},
        {"\"\xf0\x9f\x91\"", "line 1, column 2: invalid UTF-8"},
        {"\xff", "line 1, column 1: expected a value"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        test_memory memory;
        laya_json doc;
        laya_error error;
        test_memory_init(&memory);
        /* A copy of the exact size, so that a sanitizer sees a read past the end. */
        size_t size = strlen(cases[i].text);
        char *copy = malloc(size ? size : 1);
        assert_non_null(copy);
        memcpy(copy, cases[i].text, size);
        assert_int_equal(laya_json_parse(&doc, copy, size, &memory.hooks, &error), LAYA_ERROR_INPUT);
        assert_string_equal(error.message, cases[i].message);
        assert_int_equal(memory.live, 0);
        assert_false(laya_json_present(laya_json_root(&doc)));
        laya_json_close(&doc);
        free(copy);
    }
    laya_json doc;
    laya_error error;
    assert_int_equal(laya_json_parse(&doc, "\"a\0b\"", 5, NULL, &error), LAYA_ERROR_INPUT);
    assert_string_equal(error.message,
                        "line 1, column 3: a control character in a string must be written as an escape");
    assert_int_equal(laya_json_parse(&doc, "1\0", 2, NULL, &error), LAYA_ERROR_INPUT);
    assert_string_equal(error.message, "line 1, column 2: expected the end of the text");
    assert_int_equal(laya_json_parse(&doc, NULL, 0, NULL, &error), LAYA_ERROR_INPUT);
}

/* Every beginning of a valid document is refused without a read past its end. */
static void every_cut_is_refused(void **state)
{
    (void)state;
    static const char text[] =
        "{\"key\": [1.5e-3, true, null, \"a\\u00e4\\ud83d\\ude00\xc3\xa4\"], \"k\": {\"z\": -12}}";
    for (size_t size = 0; size < sizeof text - 1; size++) {
        laya_json doc;
        char *copy = malloc(size ? size : 1);
        assert_non_null(copy);
        memcpy(copy, text, size);
        assert_int_equal(laya_json_parse(&doc, copy, size, NULL, NULL), LAYA_ERROR_INPUT);
        free(copy);
    }
}

static laya_status parse_depth(size_t depth, char open, char close, laya_json *doc, laya_error *error,
                               char text[2048])
{
    memset(text, open, depth);
    memset(text + depth, close, depth);
    return laya_json_parse(doc, text, 2 * depth, NULL, error);
}

static void depth_limit(void **state)
{
    (void)state;
    laya_json doc;
    laya_error error;
    laya_buffer out;
    char text[2048], nested[8192] = "";
    assert_int_equal(parse_depth(512, '[', ']', &doc, &error, text), LAYA_OK);
    laya_buffer_init(&out, NULL);
    laya_json_write_python(&out, laya_json_root(&doc));
    assert_int_equal(out.size, 1024);
    assert_memory_equal(out.data, text, 1024);
    laya_json_close(&doc);
    assert_int_equal(parse_depth(513, '[', ']', &doc, &error, text), LAYA_ERROR_INPUT);
    assert_string_equal(error.message, "line 1, column 513: nested too deeply; at most 512 levels are read");
    for (int i = 0; i < 512; i++) strcat(nested, "{\"a\":");
    strcat(nested, "1");
    for (int i = 0; i < 512; i++) strcat(nested, "}");
    assert_int_equal(laya_json_parse(&doc, nested, strlen(nested), NULL, &error), LAYA_OK);
    laya_buffer_clear(&out);
    laya_json_write_repr(&out, laya_json_root(&doc));
    assert_int_equal(out.size, 512 * 7 + 1); /* {'a': … } */
    laya_json_close(&doc);
    laya_buffer_close(&out);
}

/* ------------------------------------------------------------------ duplicates */

/*
 * Objects of n members whose keys repeat in a fixed pattern; what a dict does is computed here with plain loops.
 * Sizes on both sides of the reader's switch from pairs to a hash table.
 */
static void duplicates_first_place_last_value(void **state)
{
    (void)state;
    static const unsigned sizes[] = {1, 2, 7, 8, 9, 10, 16, 17, 100, 1000};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        for (unsigned distinct = 1; distinct <= sizes[s]; distinct += 1 + distinct / 2) {
            laya_buffer text, expected, found;
            laya_json doc;
            laya_buffer_init(&text, NULL);
            laya_buffer_init(&expected, NULL);
            laya_buffer_init(&found, NULL);
            unsigned *last = calloc(distinct, sizeof *last);
            assert_non_null(last);
            laya_buffer_putc(&text, '{');
            for (unsigned i = 0; i < sizes[s]; i++) {
                unsigned key = (i * i + i / 3) % distinct;
                laya_buffer_printf(&text, "%s\"%u\":[%u,{}]", i ? "," : "", key, i);
                last[key] = i;
            }
            laya_buffer_putc(&text, '}');
            laya_buffer_putc(&expected, '{');
            bool *done = calloc(distinct, sizeof *done);
            assert_non_null(done);
            for (unsigned i = 0, written_members = 0; i < sizes[s]; i++) {
                unsigned key = (i * i + i / 3) % distinct;
                if (done[key]) continue;
                done[key] = true;
                laya_buffer_printf(&expected, "%s\"%u\": [%u, {}]", written_members++ ? ", " : "", key, last[key]);
            }
            laya_buffer_putc(&expected, '}');
            assert_int_equal(laya_json_parse(&doc, text.data, text.size, NULL, NULL), LAYA_OK);
            laya_json_write_python(&found, laya_json_root(&doc));
            assert_string_equal(found.data, expected.data);
            laya_json_close(&doc);
            free(last);
            free(done);
            laya_buffer_close(&text);
            laya_buffer_close(&expected);
            laya_buffer_close(&found);
        }
    }
}

/*
 * 120 keys of eight characters that all fall into slot 0x2bad of the reader's hash table (they were found by running
 * its hash backwards on a little-endian machine), so that the table gives up. All differ; one more repeats the first.
 */
static void colliding_keys(void **state)
{
    (void)state;
    static const char keys[] =
        "i.6uMIAcsTPJnp-kquRUCTUU0QastsdxkPrUw-vc.8D5.4uXi.Qwu.XkerA2dcvs2H0MY7ubXD481BQeeO942FtM8UUVoEvm"
        ":jHTBohkWAFHcbGlPKGczFCI+4hmyI9AsKZWiDb3kWbVSL0qaSWkan.GvoC6yFChn.BhO+3Y:esYg33TgqrB39FFGFF2hEhq"
        "pp.Ja4-H2MoG4DtUePbnQtuVd.Cd5JhMiB7dxh0gK+2-F_F+r2.5asFPK1kyW8P2hsH-UyoVmcXhLTzIfwTxQ3:QEppH-brP"
        "B.yfIF_qvZ0ByVfEDpI+NnFiU1qRGy3JY87TB:kMs9gXpt-D3Xzplz6b0zsDyY-+bd:rUkQP7u0g-9LiF1qR9mwwtwx-7AXX"
        "LUk4CfuhN-fIf+A2S0Ia6PGWKA5Jrve-kVDnCBUiE0kza-PRLw-pIfPjH.UhtNXAxoXxwcfDqbQ_yQ:zd1LWtpdOLFMkg0SA"
        "9FD8qs_00oT_pKHTZ9qjpwl+CABdMIIWsg00odRmT7yYUO955Mk7Sjk92gIMOICp1GRfvY:H6d3LZ0sJdNlC7Tm:lrUINMFX"
        "wNGDlB4WCTQKed+Bd4riaHfTHaUORhQ50:B9JuQA7rft6yeSu.qwB0_YqR-vlefoI+B1PoIjAw6hrYEIC86P86LWduK1HQH7"
        "Z4iH:5ukaLETnkcn3Q4lILMYX6mu5IIGq7GkEJzR6JezToIj0ybByky5PCbnuTJFjHlgJIzsAoY74O+fk5cEEvqPU9a9UVB-"
        "H2OJEQNtTm11qBmqAG4hFFsna8_XBgVaCvysL-l1vjdMcZuvn7nNwgFGzileeyNef+vaF5iCjgfmS5Q3OgYep9EfFGePM.u7"
        "aO++ya8H1hZ4c1RC:xctyOnmJLU+ga999baBbE3BSzqrYWyCVl6K50gk-UCeww+K9YybEC5.U0:s0T9ki7j4KmwPdcMneudj";
    enum { KEYS = (sizeof keys - 1) / 8 };
    laya_buffer text;
    laya_json doc;
    laya_buffer_init(&text, NULL);
    laya_buffer_putc(&text, '{');
    for (unsigned i = 0; i < KEYS; i++) laya_buffer_printf(&text, "%s\"%.8s\":%u", i ? "," : "", keys + 8 * i, i);
    for (int repeats = 0; repeats < 2; repeats++) {
        if (repeats) laya_buffer_printf(&text, ",\"%.8s\":\"again\"", keys);
        laya_buffer_putc(&text, '}');
        assert_int_equal(laya_json_parse(&doc, text.data, text.size, NULL, NULL), LAYA_OK);
        laya_json_value root = laya_json_root(&doc);
        assert_int_equal(laya_json_size(root), KEYS);
        laya_json_iterator it = laya_json_first(root);
        for (unsigned i = 0; i < KEYS; i++, laya_json_next(&it)) {
            size_t size;
            uint32_t number;
            assert_memory_equal(laya_json_text(it.key, &size), keys + 8 * i, 8);
            if (repeats && i == 0) {
                assert_true(laya_json_equals(it.value, "again"));
            } else {
                assert_true(laya_json_to_uint32(it.value, &number));
                assert_int_equal(number, i);
            }
        }
        laya_json_close(&doc);
        text.size--; /* take the bracket away again */
    }
    laya_buffer_close(&text);
}

/* ------------------------------------------------------------------ access */

static void values_are_reached(void **state)
{
    (void)state;
    static const char text[] =
        "{\"n\":null,\"t\":true,\"i\":-5,\"f\":0.5,\"s\":\"a\\u0000b\",\"l\":[10,[20],30],\"o\":{\"x\":{}},"
        "\"u\":4294967295,\"v\":4294967296,\"z\":-0,\"big\":1e999,\"\":7}";
    static const char *const types[] = {"NoneType", "bool", "int", "float", "str",   "list",
                                        "dict",     "int",  "int", "int",   "float", "int"};
    laya_json doc;
    assert_int_equal(laya_json_parse(&doc, text, strlen(text), NULL, NULL), LAYA_OK);
    laya_json_value root = laya_json_root(&doc), none = {NULL, 0};
    assert_int_equal(laya_json_size(root), 12);
    size_t at = 0, size;
    for (laya_json_iterator it = laya_json_first(root); laya_json_present(it.value); laya_json_next(&it))
        assert_string_equal(laya_json_type_name(it.value), types[at++]);
    assert_int_equal(at, 12);
    assert_memory_equal(laya_json_text(laya_json_get(root, "s"), &size), "a\0b", 3);
    assert_int_equal(size, 3);
    assert_false(laya_json_equals(laya_json_get(root, "s"), "a"));
    assert_string_equal(laya_json_text(root, &size), "");
    assert_int_equal(size, 0);

    laya_json_iterator list = laya_json_first(laya_json_get(root, "l"));
    assert_false(laya_json_present(list.key));
    laya_json_next(&list);
    assert_int_equal(laya_json_size(list.value), 1);
    laya_json_next(&list);
    uint32_t number;
    double real;
    assert_true(laya_json_to_uint32(list.value, &number));
    assert_int_equal(number, 30);
    laya_json_next(&list);
    assert_false(laya_json_present(list.value));
    assert_false(laya_json_present(laya_json_first(laya_json_get(laya_json_get(root, "o"), "x")).value));

    assert_true(laya_json_to_uint32(laya_json_get(root, "u"), &number));
    assert_true(number == UINT32_MAX);
    assert_false(laya_json_to_uint32(laya_json_get(root, "v"), &number));
    assert_false(laya_json_to_uint32(laya_json_get(root, "i"), &number));
    assert_false(laya_json_to_uint32(laya_json_get(root, "f"), &number));
    assert_false(laya_json_to_uint32(laya_json_get(root, "t"), &number));
    assert_true(laya_json_to_uint32(laya_json_get(root, "z"), &number));
    assert_int_equal(number, 0);
    assert_true(laya_json_to_uint32(laya_json_get(root, ""), &number));
    assert_int_equal(number, 7);
    assert_true(laya_json_to_double(laya_json_get(root, "i"), &real));
    assert_true(real == -5);
    assert_true(laya_json_to_double(laya_json_get(root, "big"), &real));
    assert_true(isinf(real));
    assert_false(laya_json_to_double(laya_json_get(root, "t"), &real));
    assert_false(laya_json_to_double(laya_json_get(root, "s"), &real));

    assert_false(laya_json_present(laya_json_get(root, "absent")));
    assert_false(laya_json_present(laya_json_get(laya_json_get(root, "l"), "0")));
    assert_false(laya_json_present(laya_json_get(none, "a")));
    assert_int_equal(laya_json_typeof(none), LAYA_JSON_NULL);
    assert_int_equal(laya_json_size(none), 0);
    assert_false(laya_json_present(laya_json_first(none).value));
    laya_json_close(&doc);
    laya_json_close(&doc);
}

/* ------------------------------------------------------------------ memory */

static void every_failed_allocation_is_reported(void **state)
{
    (void)state;
    static const char text[] =
        "{\"a\":\"\\n\",\"b\":{\"1\":1,\"2\":2,\"3\":3,\"4\":4,\"5\":5,\"6\":6,\"7\":7,\"8\":8,\"9\":9,"
        "\"9\":10},\"a\":[]}";
    size_t failures = 0;
    for (size_t fail_at = 1;; fail_at++) {
        test_memory memory;
        laya_json doc;
        laya_error error;
        test_memory_init(&memory);
        test_memory_arm(&memory, fail_at);
        laya_status status = laya_json_parse(&doc, text, strlen(text), &memory.hooks, &error);
        if (memory.failed) {
            assert_int_equal(status, LAYA_ERROR_MEMORY);
            assert_contains(error.message, "out of memory");
            failures++;
        }
        laya_json_close(&doc);
        assert_int_equal(memory.live, 0);
        if (memory.failed) continue;
        assert_int_equal(status, LAYA_OK);
        break;
    }
    assert_true(failures >= 6); /* nodes, strings, hash table, three arrays per object with a repeated key */
}

/* ------------------------------------------------------------------ documents of our own */

static void compose(laya_buffer *out, bool pretty)
{
    laya_json_writer w;
    laya_json_writer_init(&w, out, pretty);
    laya_json_begin(&w, '{');
    laya_json_member_string(&w, "s", "\"\xc3\xa4");
    laya_json_member_uint(&w, "u", UINT64_MAX);
    laya_json_member_round4(&w, "r", 0.123456);
    laya_json_key(&w, "l", 1);
    laya_json_begin(&w, '[');
    laya_json_put_bool(&w, true);
    laya_json_begin(&w, '[');
    laya_json_end(&w, ']');
    laya_json_put_repr(&w, 1e-7);
    laya_json_end(&w, ']');
    laya_json_key(&w, "e", 1);
    laya_json_begin(&w, '{');
    laya_json_end(&w, '}');
    laya_json_key(&w, "n", 1);
    laya_json_put_raw(&w, "null");
    laya_json_end(&w, '}');
}

static void documents_are_composed(void **state)
{
    (void)state;
    laya_buffer out;
    laya_buffer_init(&out, NULL);
    compose(&out, false);
    assert_string_equal(out.data,
                        "{\"s\":\"\\\"\xc3\xa4\",\"u\":18446744073709551615,\"r\":0.1235,\"l\":[true,[],1e-07],"
                        "\"e\":{},\"n\":null}");
    laya_buffer_clear(&out);
    compose(&out, true);
    assert_string_equal(out.data, "{\n  \"s\": \"\\\"\xc3\xa4\",\n  \"u\": 18446744073709551615,\n  \"r\": 0.1235,\n"
                                  "  \"l\": [\n    true,\n    [],\n    1e-07\n  ],\n  \"e\": {},\n  \"n\": null\n}");
    laya_buffer_clear(&out);
    laya_json_writer w;
    laya_json_writer_init(&w, &out, false);
    for (int depth = 0; depth < LAYA_JSON_WRITER_DEPTH + 1; depth++) laya_json_begin(&w, '[');
    assert_true(out.failed);
    laya_buffer_close(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_as_python_does),
        cmocka_unit_test(parts_are_written),
        cmocka_unit_test(errors_have_a_place),
        cmocka_unit_test(every_cut_is_refused),
        cmocka_unit_test(depth_limit),
        cmocka_unit_test(duplicates_first_place_last_value),
        cmocka_unit_test(colliding_keys),
        cmocka_unit_test(values_are_reached),
        cmocka_unit_test(every_failed_allocation_is_reported),
        cmocka_unit_test(documents_are_composed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
