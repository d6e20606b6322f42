/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the stand-in for Core ML behaves: switches that a test sets, and what it recorded. One for the process.
 *
 * By default it is a macOS 15 on which everything works: compiling copies the package into a new directory,
 * predicting runs our interpreter on it, outputs are written to the arrays that the caller offers.
 */
#ifndef LAYA_STAND_IN_H
#define LAYA_STAND_IN_H

#include <stdbool.h>
#include <stddef.h>

typedef enum stand_in_failure {
    STAND_IN_WORKS,
    STAND_IN_ERROR,     /* nil and an NSError as the switches below say */
    STAND_IN_NOTHING,   /* nil and no NSError */
    STAND_IN_EXCEPTION, /* an NSException, with the description as reason */
    STAND_IN_STRING     /* an NSString is thrown */
} stand_in_failure;

/* An operation of the scripted plan. */
typedef struct stand_in_operation {
    unsigned depth; /* of blocks around it; one more than the operation before: a block of that operation */
    bool new_block; /* the first of another block of the same operation */
    const char *operator_name; /* "ios16.conv" */
    const char *output;        /* NULL: none */
    const char *preferred;     /* "cpu", "gpu", "neural_engine", "other"; "": none; NULL: no usage is reported */
    const char *supported;     /* such names, with commas */
    double cost;               /* below 0: none is reported */
} stand_in_operation;

typedef struct stand_in_settings {
    int system_major, system_minor; /* version of macOS */
    const char *caches;             /* the user's folder for caches; NULL: there is none */
    const char *temporary;          /* where compiled models are made */

    stand_in_failure compile, load, array, provider, predict, plan;
    const char *domain; /* of the NSError */
    long code;
    const char *description; /* NULL: an NSException without a reason */
    bool underlying;         /* the NSError has another one under it */
    void (*compiled)(void);  /* called at the end of compiling; NULL: nothing */
    bool vanishes;           /* the compiled model is gone when it is to be moved */

    /* the model's description */
    bool open_shapes;   /* constraints without shapes */
    long declared_type; /* element type of all features; 0: the package's */
    bool no_arrays;     /* features are no multi-arrays */

    /* predictions */
    bool ignore_backings;
    unsigned padding;  /* elements after each row of an output; they hold NaN. Backings are ignored then */
    bool move_arrays;  /* arrays over memory of the caller get memory of their own, with gaps */
    bool lose_outputs; /* the result has none */
    bool swap_axes;    /* outputs have their shape reversed */
    long output_type;  /* of the arrays returned, whose bytes are then 0; 0: the declared one */
    size_t missing_read, missing_write; /* bytes that an array's handlers say less than there are */
    bool short_strides;                 /* strides have an axis too few */
    long long stride;                   /* what they say of the second axis; 0: the truth */

    /* the plan */
    bool no_program, no_main;
    const stand_in_operation *operations;
    size_t operation_count;
} stand_in_settings;

typedef struct stand_in_record {
    unsigned compilations, loads, predictions;
    unsigned backings_used, backings_ignored;
    unsigned wrapped;  /* arrays made over memory of the caller */
    int compute_units; /* of the model loaded last */
} stand_in_record;

extern stand_in_settings stand_in;
extern stand_in_record stand_in_seen;

/* The defaults; nothing recorded. */
void stand_in_reset(void);

/* Objects of Core ML's classes that live. */
long stand_in_live_objects(void);
/* Objects of all classes that live and were made after the first call. */
long stand_in_all_objects(void);

#endif
