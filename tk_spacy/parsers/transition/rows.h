/* Sums of rows of hashed weights, which are most of the transition parser's work. */

#ifndef TK_SPACY_TRANSITION_ROWS_H
#define TK_SPACY_TRANSITION_ROWS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "clones.h"

/* out[j] = the sum over i of weights[4 * ids[i] + j], j < 4. */
static inline void tk_sum_moves(
    float *TK_RESTRICT out, const float *TK_RESTRICT weights, const uint32_t *TK_RESTRICT ids,
    ptrdiff_t n)
{
    float acc[4] = {0};
    for (ptrdiff_t i = 0; i < n; i++) {
        const float *row = weights + 4 * (size_t)ids[i];
        for (int j = 0; j < 4; j++)
            acc[j] += row[j];
    }
    memcpy(out, acc, sizeof acc);
}

/* out[j] = the sum over i of weights[ids[i] + j], j < width. */
TK_CLONES static void tk_sum_labels(
    float *TK_RESTRICT out, const float *TK_RESTRICT weights, const uint32_t *TK_RESTRICT ids,
    ptrdiff_t n, ptrdiff_t width)
{
    ptrdiff_t start = 0;
    for (; start + 16 <= width; start += 16) {
        float acc[16] = {0};
        for (ptrdiff_t i = 0; i < n; i++) {
            const float *row = weights + ids[i] + start;
            for (int j = 0; j < 16; j++)
                acc[j] += row[j];
        }
        memcpy(out + start, acc, sizeof acc);
    }
    if (start < width) {
        float acc[16] = {0};
        for (ptrdiff_t i = 0; i < n; i++) {
            const float *row = weights + ids[i] + start;
            for (ptrdiff_t j = 0; j < width - start; j++)
                acc[j] += row[j];
        }
        memcpy(out + start, acc, (size_t)(width - start) * sizeof(float));
    }
}

#endif
