/* SPDX-License-Identifier: Apache-2.0 */
/* Walking through the operations of a function with a stack of its own. */
#include "coreml/verify.h"

struct laya_walk_frame {
    laya_walk_frame *outer;
    const laya_mil_block *block;
    const laya_mil_op *op; /* NULL: before the first */
    uint32_t entered;      /* nested blocks of op that were entered */
    bool finished;         /* LAYA_WALK_RESULTS of op was given */
    bool left;             /* LAYA_WALK_LEAVE was given */
};

static bool push(laya_walk *walk, const laya_mil_block *block)
{
    laya_walk_frame *frame = walk->spare;
    if (frame)
        walk->spare = frame->outer;
    else
        frame = laya_arena_alloc(walk->arena, 1, sizeof *frame);
    if (!frame) return false;
    *frame = (laya_walk_frame){.outer = walk->frame, .block = block, .finished = true};
    walk->frame = frame;
    return true;
}

static void pop(laya_walk *walk)
{
    laya_walk_frame *frame = walk->frame;
    walk->frame = frame->outer;
    frame->outer = walk->spare;
    walk->spare = frame;
}

void laya_walk_begin(laya_walk *walk, const laya_mil_function *function, laya_arena *arena)
{
    *walk = (laya_walk){.arena = arena, .block = &function->body};
}

laya_walk_step laya_walk_next(laya_walk *walk)
{
    if (!walk->frame && !push(walk, walk->block)) return LAYA_WALK_FAILED;
    if (walk->frame->left) {
        pop(walk);
        if (!walk->frame) return LAYA_WALK_END;
    }
    laya_walk_frame *frame = walk->frame;
    walk->op = frame->op;
    if (frame->op && frame->entered < frame->op->block_count) {
        walk->block = &frame->op->blocks[frame->entered++];
        return push(walk, walk->block) ? LAYA_WALK_ENTER : LAYA_WALK_FAILED;
    }
    if (!frame->finished) {
        frame->finished = true;
        return LAYA_WALK_RESULTS;
    }
    frame->op = frame->op ? frame->op->next : frame->block->first;
    walk->op = frame->op;
    if (frame->op) {
        frame->entered = 0;
        frame->finished = false;
        return LAYA_WALK_OPERATION;
    }
    frame->left = true;
    walk->block = frame->block;
    walk->nested = frame->outer != NULL;
    walk->op = walk->nested ? frame->outer->op : NULL;
    return LAYA_WALK_LEAVE;
}
