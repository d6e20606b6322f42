/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of a program one after the other: names, types, parameters, ranks. */
#include "coreml/verify.h"
#include "mil/operations.h"

#include <inttypes.h>
#include <string.h>

#define MAX_RANK 5           /* that the runtime takes */
#define NEURAL_ENGINE_RANK 4 /* what should run there has no more */

/* Operations of one type that is not known here. */
typedef struct unknown_type {
    struct unknown_type *next;
    const laya_mil_op *first;
    uint64_t count;
} unknown_type;

/* Things of which one finding tells how many there are. */
typedef struct tally {
    uint64_t count;
    const char *first;
} tally;

typedef struct function_check {
    laya_checker *checker;
    laya_mil_opset opset;
    laya_mil_names names; /* of the function's values; item: the value, or what its scope's end left in its place */
    laya_mil_value ended, ended_input; /* ended_input: an input of a nested block */
    laya_mil_names unknown;
    unknown_type *first_unknown, **last_unknown;
    tally nameless, high_rank;
} function_check;

static void count_in(tally *counted, const char *name)
{
    if (counted->count++ == 0) counted->first = name;
}

/* ------------------------------------------------------------------ check 1: names and order */

static void check_rank(function_check *f, const laya_mil_value *value)
{
    const laya_mil_type *type = &value->type;
    bool tensor = type->kind == LAYA_MIL_TENSOR || type->kind == LAYA_MIL_STATE;
    /* Tables of compressed constants have two axes more. */
    if (!tensor || (value->op && laya_mil_is_constexpr(value->op))) return;
    if (type->rank > MAX_RANK) {
        laya_check_error(f->checker, LAYA_CHECK_VALUES, "'%.200s' has rank %" PRIu32 "; Core ML takes at most %d",
                         value->name, type->rank, MAX_RANK);
    } else if (type->rank > NEURAL_ENGINE_RANK) {
        count_in(&f->high_rank, value->name);
    }
}

/* A name becomes visible. Blocks beside each other may call their inputs alike, as those of a while_loop do. */
static laya_status define(function_check *f, laya_mil_value *value, bool block_input, laya_error *error)
{
    void *older;
    if (!laya_mil_name_is_legal(value->name)) {
        laya_check_error(f->checker, LAYA_CHECK_NAMES,
                         "'%.200s' is no legal name: letters, digits, '_' and '@', no digit first, no keyword of MIL",
                         value->name);
    }
    if (!laya_mil_names_put(&f->names, value->name, value, &older)) return laya_fail_memory(error, 0);
    if (older && !(block_input && older == &f->ended_input)) {
        laya_check_error(f->checker, LAYA_CHECK_NAMES,
                         "'%.200s' is defined twice; every value of a function needs its own name", value->name);
    }
    check_rank(f, value);
    return LAYA_OK;
}

static laya_status define_all(function_check *f, laya_mil_value *const *values, uint32_t count, bool block_inputs,
                              laya_error *error)
{
    for (uint32_t at = 0; at < count; at++) LAYA_TRY(define(f, values[at], block_inputs, error));
    return LAYA_OK;
}

static laya_status hide(function_check *f, laya_mil_value *const *values, uint32_t count, laya_mil_value *mark,
                        laya_error *error)
{
    for (uint32_t at = 0; at < count; at++) {
        if (!laya_mil_names_put(&f->names, values[at]->name, mark, NULL)) return laya_fail_memory(error, 0);
    }
    return LAYA_OK;
}

/* The names of a nested block end with it. */
static laya_status hide_block(function_check *f, const laya_mil_block *block, laya_error *error)
{
    LAYA_TRY(hide(f, block->inputs, block->input_count, &f->ended_input, error));
    for (const laya_mil_op *op = block->first; op; op = op->next)
        LAYA_TRY(hide(f, op->outputs, op->output_count, &f->ended, error));
    return LAYA_OK;
}

/* Whether a name means, here, what the binding says. */
static bool is_defined(function_check *f, const laya_mil_binding *binding, const char *user, const char *as)
{
    if (!binding->name) return binding->constant != NULL;
    const laya_mil_value *value = laya_mil_names_get(&f->names, binding->name);
    if (value && value == binding->value) return true;
    const char *reason = "nothing of that name comes before";
    if (value == &f->ended || value == &f->ended_input)
        reason = "that name ends with its nested block";
    else if (value)
        reason = "that name has several meanings";
    laya_check_error(f->checker, LAYA_CHECK_NAMES, "%.200s: %.100s is '%.200s', which is not defined: %s", user, as,
                     binding->name, reason);
    return false;
}

static bool inputs_defined(function_check *f, const laya_mil_op *op)
{
    bool defined = true;
    for (uint32_t at = 0; at < op->input_count; at++) {
        const laya_mil_argument *argument = &op->inputs[at];
        for (uint32_t i = 0; i < argument->count; i++)
            defined &= is_defined(f, &argument->bindings[i], laya_mil_op_label(op), argument->name);
    }
    return defined;
}

static void check_block_outputs(function_check *f, const laya_mil_block *block, const char *owner, bool nested)
{
    for (uint32_t at = 0; at < block->output_count; at++) {
        const laya_mil_binding *binding = &block->outputs[at];
        if (!binding->name || !is_defined(f, binding, owner, "an output")) continue;
        const laya_mil_op *op = binding->value->op;
        if (op ? laya_mil_is_const(op) || laya_mil_is_constexpr(op) : !nested) {
            laya_check_error(
                f->checker, LAYA_CHECK_NAMES,
                "%.200s: output '%.200s' is %s; Core ML wants the result of an operation (identity will do)", owner,
                binding->name, op ? "a constant" : "an input");
        }
    }
}

static void check_op_name(function_check *f, const laya_mil_op *op)
{
    if (!op->name) {
        count_in(&f->nameless, laya_mil_op_label(op));
    } else if (!laya_mil_name_is_legal(op->name)) {
        laya_check_error(f->checker, LAYA_CHECK_NAMES,
                         "operation '%.200s' (%.60s): its attribute 'name' is no legal name", op->name, op->type);
    }
}

/* ------------------------------------------------------------------ check 3: types of outputs */

typedef enum agreement { EQUAL, LESS_EXACT, DIFFERENT } agreement;

/* A dimension that only follows when the model runs agrees with every size. */
static agreement compare_types(const laya_mil_type *declared, const laya_mil_type *inferred)
{
    if (laya_mil_type_equal(declared, inferred)) return EQUAL;
    if (declared->kind != inferred->kind || declared->dtype != inferred->dtype || declared->rank != inferred->rank)
        return DIFFERENT;
    agreement result = EQUAL;
    for (uint32_t axis = 0; axis < declared->rank; axis++) {
        int64_t stated = declared->dims[axis], found = inferred->dims[axis];
        if (stated == found || found == LAYA_MIL_UNKNOWN) continue;
        if (stated != LAYA_MIL_UNKNOWN) return DIFFERENT;
        result = LESS_EXACT;
    }
    return result;
}

static void check_output_types(function_check *f, const laya_mil_op *op, const laya_mil_type *inferred)
{
    for (uint32_t at = 0; at < op->output_count; at++) {
        char declared[LAYA_MIL_TYPE_TEXT], found[LAYA_MIL_TYPE_TEXT];
        const laya_mil_value *value = op->outputs[at];
        agreement result = compare_types(&value->type, &inferred[at]);
        if (result == EQUAL) continue;
        laya_mil_type_text(&value->type, declared);
        laya_mil_type_text(&inferred[at], found);
        if (result == DIFFERENT) {
            laya_check_error(f->checker, LAYA_CHECK_TYPES, "'%.200s' is declared %s, but %.60s gives %s", value->name,
                             declared, op->type, found);
        } else {
            laya_check_warning(f->checker, LAYA_CHECK_TYPES,
                               "'%.200s' is declared %s, though %.60s gives the fixed %s", value->name, declared,
                               op->type, found);
        }
    }
}

/* ------------------------------------------------------------------ check 4: parameters */

static laya_status count_unknown(function_check *f, const laya_mil_op *op, laya_error *error)
{
    unknown_type *entry = laya_mil_names_get(&f->unknown, op->type);
    f->checker->verdict->unknown_ops++;
    if (entry) {
        entry->count++;
        return LAYA_OK;
    }
    entry = laya_arena_alloc(&f->checker->scratch, 1, sizeof *entry);
    if (!entry || !laya_mil_names_put(&f->unknown, op->type, entry, NULL)) return laya_fail_memory(error, 0);
    *entry = (unknown_type){.first = op, .count = 1};
    *f->last_unknown = entry;
    f->last_unknown = &entry->next;
    return LAYA_OK;
}

/* An operation of which the opset has no form that is known here. */
static laya_status check_unknown(function_check *f, const laya_mil_op *op, laya_error *error)
{
    laya_mil_opset since = laya_mil_operation_since(op->type);
    if (since == 0 || f->opset == 0) return count_unknown(f, op, error);
    laya_check_error(f->checker, LAYA_CHECK_PARAMETERS, "%.200s: opset %s has no %.60s; it exists from %s on",
                     laya_mil_op_label(op), laya_mil_opset_name(f->opset), op->type, laya_mil_opset_name(since));
    return LAYA_OK;
}

static void check_defaults(function_check *f, const laya_mil_op *op, const laya_mil_operation *form)
{
    for (const laya_mil_parameter *parameter = form->parameters; parameter->name; parameter++) {
        if (!(parameter->flags & LAYA_MIL_DEFAULTED)) continue;
        bool present = form->in_attributes ? laya_mil_find_attribute(op, parameter->name) != NULL
                                           : laya_mil_find_argument(op, parameter->name) != NULL;
        if (present) continue;
        laya_check_error(
            f->checker, LAYA_CHECK_PARAMETERS,
            "%.200s: %.60s lacks '%s'; it has a default value, but in a package every such parameter must "
            "be written",
            laya_mil_op_label(op), op->type, parameter->name);
    }
}

/* The constant that a parameter of one value is bound to; NULL: none. */
static const laya_mil_constant *bound_constant(const laya_mil_op *op, const char *parameter)
{
    const laya_mil_argument *argument = laya_mil_find_argument(op, parameter);
    return argument && argument->count ? laya_mil_bound_constant(argument->bindings) : NULL;
}

/* The numbers of a floating-point constant are all above zero: sign clear, not all bits zero. */
static bool is_positive(const laya_mil_constant *constant)
{
    size_t width = laya_mil_dtype_bits(constant->type.dtype) / 8;
    if (width == 0 || !constant->bytes) return false;
    for (uint64_t at = 0; at + width <= constant->size; at += width) {
        unsigned any = 0;
        for (size_t byte = 0; byte < width; byte++) any |= constant->bytes[at + byte];
        if (any == 0 || constant->bytes[at + width - 1] & 0x80u) return false;
    }
    return true;
}

static void check_epsilon(function_check *f, const laya_mil_op *op)
{
    const laya_mil_constant *constant = bound_constant(op, "epsilon"), *variance = bound_constant(op, "variance");
    double value;
    if (!constant || !laya_mil_constant_number(constant, &value) || value > 0) return;
    /* A weight and a bias alone are written as a batch_norm of variance 1 and epsilon 0. */
    if (value == 0 && variance && is_positive(variance)) return;
    const char *label = laya_mil_op_label(op), *dtype = laya_mil_dtype_name(constant->type.dtype);
    if (value == 0 && (strcmp(op->type, "log") == 0 || strcmp(op->type, "inverse") == 0)) {
        laya_check_warning(f->checker, LAYA_CHECK_VALUES,
                           "%.200s: the epsilon of %.60s is 0 (%s): the result is infinite at 0", label, op->type,
                           dtype);
    } else {
        laya_check_error(f->checker, LAYA_CHECK_VALUES,
                         "%.200s: the epsilon of %.60s is %g; a positive value that %s can hold is needed (1e-5)",
                         label, op->type, value, dtype);
    }
}

static laya_status check_known(function_check *f, const laya_mil_op *op, laya_error *error)
{
    laya_arena *scratch = &f->checker->scratch;
    laya_arena_mark mark = laya_arena_save(scratch);
    laya_mil_type *inferred = laya_arena_alloc(scratch, op->output_count, sizeof *inferred);
    if (!inferred) return laya_fail_memory(error, 0);
    laya_error problem;
    laya_status status = laya_mil_infer(op, f->opset, inferred, &problem);
    if (status == LAYA_OK)
        check_output_types(f, op, inferred);
    else if (status == LAYA_ERROR_FORMAT)
        laya_check_error(f->checker, LAYA_CHECK_PARAMETERS, "%s", problem.message);
    laya_arena_restore(scratch, mark);
    if (status == LAYA_ERROR_UNSUPPORTED) return check_unknown(f, op, error);
    if (status == LAYA_ERROR_MEMORY) return laya_fail_memory(error, 0);
    if (!laya_mil_is_const(op)) f->checker->verdict->checked_ops++;
    const laya_mil_operation *form = laya_mil_operation_find(op->type, f->opset);
    if (form) check_defaults(f, op, form);
    check_epsilon(f, op);
    return LAYA_OK;
}

/* ------------------------------------------------------------------ one operation, one function */

static void check_constants(function_check *f, const laya_mil_op *op)
{
    for (uint32_t at = 0; at < op->input_count; at++) {
        const laya_mil_argument *argument = &op->inputs[at];
        for (uint32_t i = 0; i < argument->count; i++) {
            const laya_mil_binding *binding = &argument->bindings[i];
            if (!binding->name && binding->constant)
                laya_check_constant(f->checker, op, argument->name, binding->constant);
        }
    }
    bool is_const = laya_mil_is_const(op);
    for (uint32_t at = 0; at < op->attribute_count; at++) {
        const laya_mil_attribute *attribute = &op->attributes[at];
        laya_check_constant(f->checker, op, is_const ? NULL : attribute->name, attribute->value);
    }
}

static laya_status check_operation(function_check *f, const laya_mil_op *op, laya_error *error)
{
    check_op_name(f, op);
    check_constants(f, op);
    return inputs_defined(f, op) ? check_known(f, op, error) : LAYA_OK;
}

static laya_status check_step(function_check *f, const laya_walk *walk, laya_walk_step step, laya_error *error)
{
    switch (step) {
    case LAYA_WALK_OPERATION: return check_operation(f, walk->op, error);
    case LAYA_WALK_RESULTS: return define_all(f, walk->op->outputs, walk->op->output_count, false, error);
    case LAYA_WALK_ENTER: return define_all(f, walk->block->inputs, walk->block->input_count, true, error);
    case LAYA_WALK_LEAVE:
        check_block_outputs(f, walk->block, walk->nested ? laya_mil_op_label(walk->op) : "the function",
                            walk->nested);
        return walk->nested ? hide_block(f, walk->block, error) : LAYA_OK;
    case LAYA_WALK_FAILED: return laya_fail_memory(error, 0);
    case LAYA_WALK_END: break;
    }
    return LAYA_OK;
}

static void report_tallies(function_check *f)
{
    for (const unknown_type *entry = f->first_unknown; entry; entry = entry->next) {
        laya_check_warning(f->checker, LAYA_CHECK_PARAMETERS,
                           "operation %.100s is not known here: %" PRIu64 " of it not checked (first %.200s)",
                           entry->first->type, entry->count, laya_mil_op_label(entry->first));
    }
    if (f->nameless.count) {
        laya_check_warning(f->checker, LAYA_CHECK_NAMES,
                           "%" PRIu64
                           " operations have no attribute 'name' (first %.200s): messages of Core ML and its "
                           "compute plan cannot name them",
                           f->nameless.count, f->nameless.first);
    }
    if (f->high_rank.count) {
        laya_check_warning(f->checker, LAYA_CHECK_VALUES,
                           "%" PRIu64
                           " values have rank %d (first '%.200s'): the Neural Engine takes at most rank %d",
                           f->high_rank.count, MAX_RANK, f->high_rank.first, NEURAL_ENGINE_RANK);
    }
}

static laya_status check_function(function_check *f, const laya_mil_function *function, laya_error *error)
{
    LAYA_TRY(define_all(f, function->inputs, function->input_count, false, error));
    laya_walk walk;
    laya_walk_begin(&walk, function, &f->checker->scratch);
    for (;;) {
        laya_walk_step step = laya_walk_next(&walk);
        LAYA_TRY(check_step(f, &walk, step, error));
        if (step == LAYA_WALK_END) break;
    }
    report_tallies(f);
    return LAYA_OK;
}

laya_status laya_check_operations(laya_checker *checker, laya_error *error)
{
    const laya_mil_program *program = &checker->package->program;
    laya_status status = LAYA_OK;
    for (uint32_t at = 0; at < program->function_count && status == LAYA_OK; at++) {
        const laya_mil_function *function = &program->functions[at];
        function_check f = {.checker = checker, .opset = function->opset};
        f.last_unknown = &f.first_unknown;
        laya_mil_names_init(&f.names, &checker->package->allocator);
        laya_mil_names_init(&f.unknown, &checker->package->allocator);
        checker->function = program->function_count > 1 ? function->name : NULL;
        status = check_function(&f, function, error);
        checker->function = NULL;
        laya_mil_names_close(&f.names);
        laya_mil_names_close(&f.unknown);
    }
    return status;
}
