/* SPDX-License-Identifier: Apache-2.0 */
/* The description of a package as a tree for people. */
#include "base/json.h"
#include "layac.h"

#include <stdio.h>

static void indent(unsigned level)
{
    for (unsigned at = 0; at < level; at++) fputs("  ", stdout);
}

/* A text, number, true, false or null. */
static void print_value(laya_json_value value)
{
    size_t size;
    const char *text = laya_json_text(value, &size);
    switch (laya_json_typeof(value)) {
    case LAYA_JSON_NULL: fputs("?", stdout); break;
    case LAYA_JSON_FALSE: fputs("false", stdout); break;
    case LAYA_JSON_TRUE: fputs("true", stdout); break;
    default: layac_print_text(stdout, text, size, 0);
    }
}

static void print_member(laya_json_value object, const char *key)
{
    print_value(laya_json_get(object, key));
}

static void print_array(laya_json_value array)
{
    const char *before = "[";
    if (laya_json_size(array) == 0) fputs(before, stdout);
    for (laya_json_iterator it = laya_json_first(array); laya_json_present(it.value); laya_json_next(&it)) {
        fputs(before, stdout);
        print_value(it.value);
        before = ", ";
    }
    putchar(']');
}

static void print_features(laya_json_value features, const char *title)
{
    if (laya_json_size(features) == 0) return;
    indent(2);
    puts(title);
    for (laya_json_iterator it = laya_json_first(features); laya_json_present(it.value); laya_json_next(&it)) {
        laya_json_value shape = laya_json_get(it.value, "shape");
        bool typed = laya_json_present(laya_json_get(it.value, "dtype"));
        indent(3);
        print_member(it.value, "name");
        fputs("  ", stdout);
        print_member(it.value, typed ? "dtype" : "kind");
        if (laya_json_size(shape) > 0) {
            putchar(' ');
            print_array(shape);
        }
        if (laya_json_present(laya_json_get(it.value, "flexible"))) fputs(", flexible", stdout);
        if (laya_json_present(laya_json_get(it.value, "optional"))) fputs(", optional", stdout);
        putchar('\n');
    }
}

/* Counts in a column, then what is counted. */
static void print_kinds(laya_json_value operations)
{
    indent(2);
    fputs("operations  ", stdout);
    print_member(operations, "non_constant");
    fputs(", const ", stdout);
    print_member(operations, "const");
    fputs(", constexpr ", stdout);
    print_member(operations, "constexpr");
    putchar('\n');
    laya_json_iterator it = laya_json_first(laya_json_get(operations, "kinds"));
    for (; laya_json_present(it.value); laya_json_next(&it)) {
        double count = 0;
        laya_json_to_double(it.value, &count);
        indent(3);
        printf("%6.0f  ", count);
        print_value(it.key);
        putchar('\n');
    }
}

/* ------------------------------------------------------------------ operations */

/* "int32 [4] [0, 3, 2, 1]", "fp16 [64, 64], 8192 bytes" */
static void print_constant(laya_json_value constant)
{
    laya_json_value value = laya_json_get(constant, "value");
    print_member(constant, "type");
    if (laya_json_present(value)) {
        putchar(' ');
        if (laya_json_typeof(value) == LAYA_JSON_ARRAY)
            print_array(value);
        else
            print_value(value);
    } else {
        fputs(", ", stdout);
        print_member(constant, "bytes");
        fputs(" bytes", stdout);
    }
}

static void print_binding(laya_json_value binding)
{
    if (laya_json_typeof(binding) == LAYA_JSON_OBJECT)
        print_constant(binding);
    else
        print_value(binding);
}

static void print_bindings(laya_json_value argument)
{
    const char *before = "(";
    if (laya_json_typeof(argument) != LAYA_JSON_ARRAY) {
        print_binding(argument);
        return;
    }
    if (laya_json_size(argument) == 0) putchar('(');
    for (laya_json_iterator it = laya_json_first(argument); laya_json_present(it.value); laya_json_next(&it)) {
        fputs(before, stdout);
        print_binding(it.value);
        before = ", ";
    }
    putchar(')');
}

/* "x=a, axis=b"; returns what goes before the next one. */
static const char *print_parameters(laya_json_value parameters, const char *before)
{
    for (laya_json_iterator it = laya_json_first(parameters); laya_json_present(it.value); laya_json_next(&it)) {
        fputs(before, stdout);
        print_value(it.key);
        putchar('=');
        print_bindings(it.value);
        before = ", ";
    }
    return before;
}

static void print_outputs(laya_json_value outputs)
{
    const char *before = "";
    for (laya_json_iterator it = laya_json_first(outputs); laya_json_present(it.value); laya_json_next(&it)) {
        fputs(before, stdout);
        print_member(it.value, "name");
        fputs(": ", stdout);
        print_member(it.value, "type");
        before = ", ";
    }
    if (*before) fputs(" = ", stdout);
}

static void print_listing(laya_json_value listing)
{
    if (!laya_json_present(listing)) return;
    indent(2);
    puts("listing");
    for (laya_json_iterator it = laya_json_first(listing); laya_json_present(it.value); laya_json_next(&it)) {
        uint32_t depth = 0;
        laya_json_to_uint32(laya_json_get(it.value, "depth"), &depth);
        indent(3 + depth);
        print_outputs(laya_json_get(it.value, "outputs"));
        print_member(it.value, "type");
        putchar('(');
        print_parameters(laya_json_get(it.value, "attributes"),
                         print_parameters(laya_json_get(it.value, "inputs"), ""));
        puts(")");
    }
}

/* ------------------------------------------------------------------ constants, files, metadata */

/* "TITLE  3, 96 bytes" */
static void print_counted(laya_json_value counted, const char *title, unsigned level)
{
    indent(level);
    printf("%s  ", title);
    print_member(counted, "count");
    fputs(", ", stdout);
    print_member(counted, "bytes");
    puts(" bytes");
}

static void print_constants(laya_json_value constants)
{
    print_counted(constants, "constants", 1);
    print_counted(laya_json_get(constants, "in_model"), "in the model", 2);
    print_counted(laya_json_get(constants, "in_weight_file"), "in the weight file", 2);
    print_counted(laya_json_get(constants, "distinct_blobs"), "distinct blobs", 2);
    laya_json_value largest = laya_json_get(constants, "largest");
    if (laya_json_size(largest) == 0) return;
    indent(2);
    puts("largest");
    for (laya_json_iterator it = laya_json_first(largest); laya_json_present(it.value); laya_json_next(&it)) {
        laya_json_value parameter = laya_json_get(it.value, "parameter");
        indent(3);
        print_member(it.value, "name");
        if (laya_json_present(parameter)) {
            putchar('.');
            print_value(parameter);
        }
        fputs("  ", stdout);
        print_constant(it.value);
        putchar('\n');
    }
}

/* ------------------------------------------------------------------ palettes */

/* "24 groups of 32 along axis 0", "4 groups of [2, 8, 1, 1]", "one table" */
static void print_groups(laya_json_value palette)
{
    laya_json_value axis = laya_json_get(palette, "axis"), shape = laya_json_get(palette, "group_shape");
    if (laya_json_present(axis) || laya_json_present(shape)) {
        print_member(palette, "groups");
        fputs(" groups of ", stdout);
    } else {
        fputs("one table", stdout);
    }
    if (laya_json_present(axis)) {
        print_member(palette, "group_size");
        fputs(" along axis ", stdout);
        print_value(axis);
    }
    if (laya_json_present(shape)) print_array(shape);
    if (!laya_json_present(laya_json_get(palette, "vector"))) return;
    fputs(", vectors of ", stdout);
    print_member(palette, "vector");
    fputs(" along axis ", stdout);
    print_member(palette, "vector_axis");
}

/* "NAME VALUE, NAME VALUE"; names as texts for people. */
static void print_members(laya_json_value object)
{
    const char *before = "";
    for (laya_json_iterator it = laya_json_first(object); laya_json_present(it.value); laya_json_next(&it)) {
        size_t size;
        const char *name = laya_json_text(it.key, &size);
        fputs(before, stdout);
        for (size_t at = 0; at < size; at++) putchar(name[at] == '_' ? ' ' : name[at]);
        putchar(' ');
        print_value(it.value);
        before = ", ";
    }
    putchar('\n');
}

/* What the tables change, with the class of the figures in front. */
static void print_figures(laya_json_value of, unsigned level)
{
    static const char *const classes[] = {"computed", "recorded"};
    for (size_t at = 0; at < sizeof classes / sizeof *classes; at++) {
        laya_json_value figures = laya_json_get(of, classes[at]);
        if (!laya_json_present(figures)) continue;
        indent(level);
        printf("%s  ", classes[at]);
        print_members(figures);
    }
}

static void print_vector(laya_json_value entry)
{
    if (laya_json_typeof(entry) == LAYA_JSON_ARRAY)
        print_array(entry);
    else
        print_value(entry);
}

static void print_tables(laya_json_value tables)
{
    unsigned number = 0;
    for (laya_json_iterator it = laya_json_first(tables); laya_json_present(it.value); laya_json_next(&it)) {
        laya_json_iterator entry = laya_json_first(laya_json_get(it.value, "values"));
        indent(3);
        printf("table %u, ", number++);
        print_member(it.value, "used");
        fputs(" used:", stdout);
        for (; laya_json_present(entry.value); laya_json_next(&entry)) {
            putchar(' ');
            print_vector(entry.value);
        }
        putchar('\n');
    }
}

static void print_palette(laya_json_value palette)
{
    laya_json_value problem = laya_json_get(palette, "problem"), function = laya_json_get(palette, "function");
    indent(2);
    if (laya_json_present(function)) {
        print_value(function);
        putchar('.');
    }
    print_member(palette, "name");
    fputs("  ", stdout);
    if (laya_json_present(problem)) {
        fputs("cannot be read: ", stdout);
        print_value(problem);
        putchar('\n');
        return;
    }
    print_member(palette, "type");
    fputs(", ", stdout);
    print_member(palette, "bits");
    fputs(" bits, form of ", stdout);
    print_member(palette, "form");
    fputs(", ", stdout);
    print_groups(palette);
    fputs(", ", stdout);
    print_member(palette, "used_least");
    fputs(" to ", stdout);
    print_member(palette, "used_most");
    fputs(" of ", stdout);
    print_member(palette, "entries");
    fputs(" entries used, ", stdout);
    print_member(palette, "unreferenced");
    fputs(" not referenced, ", stdout);
    print_member(palette, "index_bytes");
    fputs(" + ", stdout);
    print_member(palette, "table_bytes");
    fputs(" bytes for ", stdout);
    print_member(palette, "dense_bytes");
    putchar('\n');
    print_figures(palette, 3);
    print_tables(laya_json_get(palette, "tables"));
}

/* "3 (4 bits: 1, 8 bits: 2), 1234 bytes for 2468, ratio 2.0", then each. */
static void print_palettes(laya_json_value palettes, bool empty)
{
    laya_json_value weights = laya_json_get(palettes, "weights"), unreadable = laya_json_get(palettes, "unreadable");
    const char *before = " (";
    if (laya_json_size(weights) == 0 && !empty) return;
    indent(1);
    fputs("palettes  ", stdout);
    print_member(palettes, "count");
    laya_json_iterator it = laya_json_first(laya_json_get(palettes, "bits"));
    for (; laya_json_present(it.value); laya_json_next(&it)) {
        fputs(before, stdout);
        print_value(it.key);
        fputs(" bits: ", stdout);
        print_value(it.value);
        before = ", ";
    }
    fputs(*before == ',' ? "), " : ", ", stdout);
    if (laya_json_present(unreadable)) {
        print_value(unreadable);
        fputs(" cannot be read, ", stdout);
    }
    print_member(palettes, "stored_bytes");
    fputs(" bytes for ", stdout);
    print_member(palettes, "dense_bytes");
    if (!laya_json_is_null(laya_json_get(palettes, "ratio"))) {
        fputs(", ratio ", stdout);
        print_member(palettes, "ratio");
    }
    putchar('\n');
    for (it = laya_json_first(weights); laya_json_present(it.value); laya_json_next(&it)) print_palette(it.value);
}

static void print_files(laya_json_value files)
{
    indent(1);
    puts("files");
    for (laya_json_iterator it = laya_json_first(files); laya_json_present(it.value); laya_json_next(&it)) {
        indent(2);
        print_member(it.value, "path");
        fputs("  ", stdout);
        print_member(it.value, "bytes");
        puts(" bytes");
    }
}

static void print_metadata(laya_json_value metadata)
{
    if (laya_json_size(metadata) == 0) return;
    indent(1);
    puts("metadata");
    for (laya_json_iterator it = laya_json_first(metadata); laya_json_present(it.value); laya_json_next(&it)) {
        indent(2);
        print_value(it.key);
        fputs("  ", stdout);
        print_value(it.value);
        putchar('\n');
    }
}

int layac_print_tree(const char *description, size_t size)
{
    laya_json doc;
    laya_error error;
    if (laya_json_parse(&doc, description, size, NULL, &error) != LAYA_OK) return layac_fail_library(&error);
    laya_json_value root = laya_json_root(&doc);
    print_member(root, "package");
    fputs("\n  specification version ", stdout);
    print_member(root, "specification_version");
    putchar('\n');
    laya_json_iterator it = laya_json_first(laya_json_get(root, "functions"));
    for (; laya_json_present(it.value); laya_json_next(&it)) {
        indent(1);
        fputs("function ", stdout);
        print_member(it.value, "name");
        fputs(", ", stdout);
        print_member(it.value, "opset");
        putchar('\n');
        print_features(laya_json_get(it.value, "inputs"), "inputs");
        print_features(laya_json_get(it.value, "outputs"), "outputs");
        print_features(laya_json_get(it.value, "states"), "states");
        print_kinds(laya_json_get(it.value, "operations"));
        print_listing(laya_json_get(it.value, "listing"));
    }
    print_constants(laya_json_get(root, "constants"));
    print_palettes(laya_json_get(root, "palettes"), false);
    print_files(laya_json_get(root, "files"));
    print_metadata(laya_json_get(root, "metadata"));
    laya_json_close(&doc);
    return EXIT_OK;
}

int layac_print_palettes(const char *report, size_t size)
{
    laya_json doc;
    laya_error error;
    if (laya_json_parse(&doc, report, size, NULL, &error) != LAYA_OK) return layac_fail_library(&error);
    laya_json_value root = laya_json_root(&doc);
    print_member(root, "package");
    putchar('\n');
    print_figures(root, 1);
    print_palettes(laya_json_get(root, "palettes"), true);
    laya_json_close(&doc);
    return EXIT_OK;
}
