/* SPDX-License-Identifier: Apache-2.0 */
/* The program's versions and functions against the model's description. */
#include "coreml/verify.h"

#include <inttypes.h>
#include <string.h>

#define NEURAL_ENGINE_ALIGNMENT 32 /* values of the last axis of inputs and outputs: 64 bytes of fp16 */

/* ------------------------------------------------------------------ versions */

static void check_versions(laya_checker *checker)
{
    const laya_mil_program *program = &checker->package->program;
    int32_t version = program->specification_version;
    if (program->version != 1) {
        laya_check_error(checker, LAYA_CHECK_INTERFACE, "version of the program: expected 1, found %" PRId64,
                         program->version);
    }
    if (version < LAYA_MIL_COREML5) {
        laya_check_error(checker, LAYA_CHECK_INTERFACE,
                         "specification version %" PRId32
                         ": ML Programs begin with %d; write the version of the opset",
                         version, LAYA_MIL_COREML5);
    } else if (version > LAYA_MIL_COREML9) {
        laya_check_warning(checker, LAYA_CHECK_INTERFACE,
                           "specification version %" PRId32 " is not known here (%d is the last)", version,
                           LAYA_MIL_COREML9);
    }
    if (program->function_count > 1 && version < LAYA_MIL_COREML8) {
        laya_check_error(checker, LAYA_CHECK_INTERFACE,
                         "%" PRIu32 " functions: models of several need specification version %d, found %" PRId32,
                         program->function_count, LAYA_MIL_COREML8, version);
    }
}

static void check_opset(laya_checker *checker, const laya_mil_function *function)
{
    int32_t version = checker->package->program.specification_version;
    const char *opset = function->opset_name ? function->opset_name : "";
    const char *key = function->specialization_name ? function->specialization_name : "";
    if (function->opset == 0) {
        if (version <= (int32_t)LAYA_MIL_COREML9) {
            laya_check_error(checker, LAYA_CHECK_INTERFACE, "opset '%.64s' is not known; expected CoreML5 to CoreML9",
                             opset);
        }
    } else if ((int32_t)function->opset != version && version <= (int32_t)LAYA_MIL_COREML9) {
        laya_check_error(checker, LAYA_CHECK_INTERFACE,
                         "opset %s belongs to specification version %d, but the model has %" PRId32
                         "; let both say the same",
                         opset, (int)function->opset, version);
    }
    if (function->specialization_count == 0) {
        laya_check_error(checker, LAYA_CHECK_INTERFACE,
                         "the function has no block; expected one for its opset '%.64s'", opset);
        return;
    }
    if (strcmp(opset, key) != 0) {
        laya_check_error(checker, LAYA_CHECK_INTERFACE,
                         "block_specializations has the key '%.64s'; expected the function's opset '%.64s'", key,
                         opset);
    }
    if (function->specialization_count > 1) {
        laya_check_warning(checker, LAYA_CHECK_INTERFACE,
                           "%" PRIu32 " block specializations; only that for '%.64s' is checked",
                           function->specialization_count, key);
    }
}

/* ------------------------------------------------------------------ inputs, outputs, states */

typedef struct port {
    const char *role; /* "input", "output", "state" */
    const char *name; /* in the function */
    const laya_mil_type *type;
    const laya_mil_feature *feature; /* of the description, at the same place */
} port;

/* What a model's input or output can be. */
static void check_port_dtype(laya_checker *checker, const port *p)
{
    int32_t version = checker->package->program.specification_version;
    laya_mil_dtype dtype = p->type->dtype;
    bool state = p->type->kind == LAYA_MIL_STATE;
    int32_t needed = state ? LAYA_MIL_COREML8 : LAYA_MIL_COREML5;
    if (dtype == LAYA_MIL_FP16 && !state) needed = LAYA_MIL_COREML6;
    if (dtype == LAYA_MIL_INT8) needed = LAYA_MIL_COREML9;
    bool possible = dtype == LAYA_MIL_FP16;
    if (!state) possible |= dtype == LAYA_MIL_FP32 || dtype == LAYA_MIL_INT32 || dtype == LAYA_MIL_INT8;
    if (!possible) {
        laya_check_error(checker, LAYA_CHECK_INTERFACE, "%s '%.200s' has type %s; %s", p->role, p->name,
                         laya_mil_dtype_name(dtype),
                         state ? "states must be fp16" : "inputs and outputs can be fp16, fp32, int32 or int8");
    } else if (version < needed) {
        laya_check_error(checker, LAYA_CHECK_INTERFACE,
                         "%s '%.200s': %s %s need specification version %" PRId32 ", found %" PRId32, p->role,
                         p->name, laya_mil_dtype_name(dtype), state ? "states" : "inputs and outputs", needed,
                         version);
    }
    if (p->type->rank == 0) {
        laya_check_error(checker, LAYA_CHECK_INTERFACE,
                         "%s '%.200s' is a scalar; expected rank 1 or more (a scalar takes the shape [1])", p->role,
                         p->name);
    }
}

/* The feature's shape holds one of several where the function's dimension is open. */
static bool shapes_agree(const laya_mil_type *type, const laya_mil_feature *feature)
{
    if (type->rank != feature->type.rank) return false;
    for (uint32_t axis = 0; axis < type->rank; axis++) {
        bool open = type->dims[axis] == LAYA_MIL_UNKNOWN && feature->flexible;
        if (!open && type->dims[axis] != feature->type.dims[axis]) return false;
    }
    return true;
}

static void check_port_type(laya_checker *checker, const port *p)
{
    char declared[LAYA_MIL_TYPE_TEXT], found[LAYA_MIL_TYPE_TEXT];
    const laya_mil_type *described = &p->feature->type;
    bool state = p->type->kind == LAYA_MIL_STATE;
    bool output = strcmp(p->role, "output") == 0;
    if (p->type->dtype == described->dtype && output && described->rank == 0 && p->type->rank > 0) {
        for (uint32_t axis = 0; axis < p->type->rank; axis++) {
            if (p->type->dims[axis] == LAYA_MIL_UNKNOWN) return;
        }
        laya_check_warning(checker, LAYA_CHECK_INTERFACE,
                           "output '%.200s': the description leaves the shape out, though it is fixed: %s", p->name,
                           laya_mil_type_text(p->type, found));
        return;
    }
    if (p->type->dtype == described->dtype && shapes_agree(p->type, p->feature)) return;
    laya_check_error(checker, LAYA_CHECK_INTERFACE, "%s '%.200s': the description says %s%s, the function %s",
                     p->role, p->name, state && described->kind != LAYA_MIL_STATE ? "state " : "",
                     laya_mil_type_text(described, declared), laya_mil_type_text(p->type, found));
}

/* Check 5: what keeps a model off the Neural Engine or costs memory there. */
static void check_port_shape(laya_checker *checker, const port *p)
{
    const laya_mil_type *type = p->type;
    if (p->feature && p->feature->flexible) {
        laya_check_warning(checker, LAYA_CHECK_VALUES,
                           "%s '%.200s' has a flexible shape: such models were seen to stay off the Neural Engine; "
                           "prefer one fixed shape",
                           p->role, p->name);
    }
    int64_t last = type->rank ? type->dims[type->rank - 1] : 0;
    if (type->kind == LAYA_MIL_TENSOR && last > 0 && last % NEURAL_ENGINE_ALIGNMENT != 0) {
        laya_check_warning(checker, LAYA_CHECK_VALUES,
                           "%s '%.200s': last axis of %" PRId64
                           ", no multiple of %d: the Neural Engine pads it to 64 bytes",
                           p->role, p->name, last, NEURAL_ENGINE_ALIGNMENT);
    }
}

static void check_port(laya_checker *checker, const port *p)
{
    bool array = p->type->kind == LAYA_MIL_TENSOR || p->type->kind == LAYA_MIL_STATE;
    bool foreign = p->feature && p->feature->kind && strcmp(p->feature->kind, "multiArray") != 0 &&
                   strcmp(p->feature->kind, "state") != 0;
    if (array && !foreign) {
        check_port_dtype(checker, p);
        if (p->feature) check_port_type(checker, p);
        check_port_shape(checker, p);
    } else if (!array && p->feature && !foreign) {
        char found[LAYA_MIL_TYPE_TEXT];
        laya_check_error(checker, LAYA_CHECK_INTERFACE,
                         "%s '%.200s': the description says multiArray, the function %s", p->role, p->name,
                         laya_mil_type_text(p->type, found));
    }
}

/* The features of one role, in the order of the function. */
typedef struct feature_list {
    const char *role;
    const laya_mil_feature *features;
    uint32_t count, used;
} feature_list;

/* Match the next feature with a value of the function. */
static void check_next(laya_checker *checker, feature_list *list, const char *name, const laya_mil_type *type)
{
    const laya_mil_feature *feature = list->used < list->count ? &list->features[list->used] : NULL;
    list->used++;
    if (!feature) {
        laya_check_error(checker, LAYA_CHECK_INTERFACE, "%s '%.200s' of the function is not in the description",
                         list->role, name);
    } else if (strcmp(feature->name, name) != 0) {
        laya_check_error(checker, LAYA_CHECK_INTERFACE,
                         "%s %" PRIu32
                         " is '%.200s' in the description, but '%.200s' in the function; names and order "
                         "must agree",
                         list->role, list->used, feature->name, name);
        feature = NULL;
    }
    check_port(checker, &(port){list->role, name, type, feature});
}

static void check_rest(laya_checker *checker, const feature_list *list)
{
    for (uint32_t at = list->used; at < list->count; at++) {
        laya_check_error(checker, LAYA_CHECK_INTERFACE, "%s '%.200s' of the description is not in the function",
                         list->role, list->features[at].name);
    }
}

static void check_ports(laya_checker *checker, const laya_mil_function *function, const laya_mil_interface *interface)
{
    feature_list inputs = {"input", interface->inputs, interface->input_count, 0};
    feature_list states = {"state", interface->states, interface->state_count, 0};
    feature_list outputs = {"output", interface->outputs, interface->output_count, 0};
    for (uint32_t at = 0; at < function->input_count; at++) {
        const laya_mil_value *value = function->inputs[at];
        bool state = value->type.kind == LAYA_MIL_STATE;
        check_next(checker, state ? &states : &inputs, value->name, &value->type);
    }
    for (uint32_t at = 0; at < function->body.output_count; at++) {
        const laya_mil_binding *binding = &function->body.outputs[at];
        const laya_mil_type *type = laya_mil_bound_type(binding);
        if (type && binding->name)
            check_next(checker, &outputs, binding->name, type);
        else
            outputs.used++; /* an undefined name: an error of check 1 */
    }
    check_rest(checker, &inputs);
    check_rest(checker, &states);
    check_rest(checker, &outputs);
    if (function->body.output_count == 0)
        laya_check_error(checker, LAYA_CHECK_INTERFACE, "the function has no output");
}

/* ------------------------------------------------------------------ functions */

static laya_status check_functions(laya_checker *checker, laya_mil_names *interfaces, laya_mil_names *functions,
                                   laya_error *error)
{
    const laya_mil_program *program = &checker->package->program;
    for (uint32_t at = 0; at < program->interface_count; at++) {
        laya_mil_interface *interface = &program->interfaces[at];
        void *older;
        if (!laya_mil_names_put(interfaces, interface->name, interface, &older)) return laya_fail_memory(error, 0);
        if (older) {
            laya_check_error(checker, LAYA_CHECK_INTERFACE, "the description has function '%.200s' twice",
                             interface->name);
        }
    }
    for (uint32_t at = 0; at < program->function_count; at++) {
        laya_mil_function *function = &program->functions[at];
        void *older;
        if (!laya_mil_names_put(functions, function->name, function, &older)) return laya_fail_memory(error, 0);
        if (older) laya_check_error(checker, LAYA_CHECK_NAMES, "function '%.200s' exists twice", function->name);
        if (!laya_mil_name_is_legal(function->name)) {
            laya_check_error(checker, LAYA_CHECK_NAMES, "function '%.200s': not a legal name", function->name);
        }
        const laya_mil_interface *interface = laya_mil_names_get(interfaces, function->name);
        checker->function = program->function_count > 1 ? function->name : NULL;
        check_opset(checker, function);
        if (interface)
            check_ports(checker, function, interface);
        else
            laya_check_error(checker, LAYA_CHECK_INTERFACE, "function '%.200s' is not in the description",
                             function->name);
        checker->function = NULL;
    }
    for (uint32_t at = 0; at < program->interface_count; at++) {
        const char *name = program->interfaces[at].name;
        if (!laya_mil_names_get(functions, name)) {
            laya_check_error(checker, LAYA_CHECK_INTERFACE, "the program has no function '%.200s' of the description",
                             name);
        }
    }
    return LAYA_OK;
}

/* The function that runs when nothing else is asked for. */
static void check_default(laya_checker *checker, const laya_mil_names *functions)
{
    const char *name = checker->package->program.default_function;
    if (!name) {
        if (!laya_mil_names_get(functions, "main")) {
            laya_check_error(checker, LAYA_CHECK_INTERFACE,
                             "no function 'main', and defaultFunctionName names no other");
        }
    } else if (!laya_mil_names_get(functions, name)) {
        laya_check_error(checker, LAYA_CHECK_INTERFACE, "defaultFunctionName: the program has no function '%.200s'",
                         name);
    }
}

laya_status laya_check_interface(laya_checker *checker, laya_error *error)
{
    laya_mil_names interfaces, functions;
    laya_mil_names_init(&interfaces, &checker->package->allocator);
    laya_mil_names_init(&functions, &checker->package->allocator);
    check_versions(checker);
    laya_status status = check_functions(checker, &interfaces, &functions, error);
    if (status == LAYA_OK) check_default(checker, &functions);
    laya_mil_names_close(&interfaces);
    laya_mil_names_close(&functions);
    return status;
}
