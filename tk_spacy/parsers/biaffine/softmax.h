/* Maxima and sums of rows of float32, as numpy finds them to the last bit.

   numpy adds the numbers of a row in an order of its own, which keeps rounding small: up to 128 in
   eight sums side by side, more in halves. */

#ifndef TK_SPACY_SOFTMAX_H
#define TK_SPACY_SOFTMAX_H

#include <stddef.h>

/* The largest of n >= 1 numbers; one that is not a number may be passed over. */
static inline float tk_row_max(const float *x, ptrdiff_t n)
{
    float top = x[0];
    ptrdiff_t i = 0;
    if (n >= 16) {
        float side[8];
        for (int j = 0; j < 8; j++)
            side[j] = x[j];
        for (i = 8; i + 8 <= n; i += 8)
            for (int j = 0; j < 8; j++)
                side[j] = x[i + j] > side[j] ? x[i + j] : side[j];
        for (int j = 0; j < 8; j++)
            top = side[j] > top ? side[j] : top;
    }
    for (; i < n; i++)
        top = x[i] > top ? x[i] : top;
    return top;
}

static float tk_row_sum(const float *x, ptrdiff_t n)
{
    if (n < 8) {
        float total = 0.0f;
        for (ptrdiff_t i = 0; i < n; i++)
            total += x[i];
        return total;
    }
    if (n <= 128) {
        float side[8];
        ptrdiff_t i;
        for (int j = 0; j < 8; j++)
            side[j] = x[j];
        for (i = 8; i < n - n % 8; i += 8)
            for (int j = 0; j < 8; j++)
                side[j] += x[i + j];
        float total = ((side[0] + side[1]) + (side[2] + side[3]))
            + ((side[4] + side[5]) + (side[6] + side[7]));
        for (; i < n; i++)
            total += x[i];
        return total;
    }
    ptrdiff_t half = n / 2;
    half -= half % 8;
    return tk_row_sum(x, half) + tk_row_sum(x + half, n - half);
}

#endif
