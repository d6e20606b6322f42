/* SPDX-License-Identifier: Apache-2.0 */
#include "text/metaspace.h"

#include <string.h>

void laya_metaspace_replace(const char *text, size_t size, laya_buffer *out)
{
    size_t copied = 0;
    while (copied < size) {
        const char *space = memchr(text + copied, ' ', size - copied);
        size_t at = space ? (size_t)(space - text) : size;
        laya_buffer_append(out, text + copied, at - copied);
        if (!space) return;
        laya_buffer_append(out, LAYA_METASPACE, LAYA_METASPACE_SIZE);
        copied = at + 1;
    }
}

static int begins_with_metaspace(const char *text, size_t size)
{
    return size >= LAYA_METASPACE_SIZE && memcmp(text, LAYA_METASPACE, LAYA_METASPACE_SIZE) == 0;
}

void laya_metaspace_prepend(const char *text, size_t size, laya_buffer *out)
{
    if (!(size && text[0] == ' ') && !begins_with_metaspace(text, size))
        laya_buffer_append(out, LAYA_METASPACE, LAYA_METASPACE_SIZE);
    laya_metaspace_replace(text, size, out);
}

size_t laya_metaspace_word(const char *text, size_t size, size_t at)
{
    for (at++; at < size; at++) {
        const char *lead = memchr(text + at, LAYA_METASPACE[0], size - at);
        if (!lead) return size;
        at = (size_t)(lead - text);
        if (begins_with_metaspace(lead, size - at)) return at;
    }
    return size;
}
