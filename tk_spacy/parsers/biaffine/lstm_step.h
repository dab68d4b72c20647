/* One step in time of an LSTM, of many words at once: everything but the matrix products.

   Rows hold `width` numbers, those of gates 4 * width: input, forget, output, candidate. */

#ifndef TK_SPACY_LSTM_STEP_H
#define TK_SPACY_LSTM_STEP_H

#include <stddef.h>

#include "clones.h"

/* tanh to 4e-7, never beyond 1: the quotient of two polynomials that was fitted for the least
   relative error on -8..8, beyond which tanh is 1 to the last bit but two. */
static inline float tk_tanh(float x)
{
    x = x > 8.0f ? 8.0f : x;
    x = x < -8.0f ? -8.0f : x;
    const float z = x * x;
    float p = 1.5230418721880563e-08f;
    p = p * z + 2.189466337856048e-05f;
    p = p * z + 0.003571598132360807f;
    p = p * z + 0.13444498075904773f;
    p = p * z + 0.99999999356906f;
    float q = 8.522447259935047e-07f;
    q = q * z + 0.000341129218054134f;
    q = q * z + 0.026164443364179942f;
    q = q * z + 0.4677782539551596f;
    q = q * z + 1.0f;
    return x * p / q;
}

static inline float tk_sigmoid(float x) { return 0.5f * tk_tanh(0.5f * x) + 0.5f; }

/* Gates before they are squashed become gates; `cell`, `squashed` and `out` of each row follow from
   them and from `before`.  added: what comes to the gates from the states before; may be NULL.
   mask: factors of `out` in `onward`, the state as the next step reads it; may be NULL. */
TK_CLONES static void tk_lstm_step(
    float *TK_RESTRICT gates, const float *TK_RESTRICT added, const float *TK_RESTRICT before,
    const float *TK_RESTRICT mask, float *TK_RESTRICT cell, float *TK_RESTRICT squashed,
    float *TK_RESTRICT out, float *TK_RESTRICT onward, ptrdiff_t rows, ptrdiff_t width)
{
    if (added)
        for (ptrdiff_t j = 0; j < 4 * rows * width; j++)
            gates[j] += added[j];
    for (ptrdiff_t row = 0; row < rows; row++) {
        float *TK_RESTRICT gate = gates + 4 * row * width;
        const ptrdiff_t start = row * width;
        for (ptrdiff_t j = 0; j < 3 * width; j++)
            gate[j] = tk_sigmoid(gate[j]);
        for (ptrdiff_t j = 3 * width; j < 4 * width; j++)
            gate[j] = tk_tanh(gate[j]);
        for (ptrdiff_t j = 0; j < width; j++) {
            const float now
                = gate[width + j] * before[start + j] + gate[j] * gate[3 * width + j];
            const float bent = tk_tanh(now);
            cell[start + j] = now;
            squashed[start + j] = bent;
            out[start + j] = gate[2 * width + j] * bent;
        }
    }
    if (onward && mask)
        for (ptrdiff_t j = 0; j < rows * width; j++)
            onward[j] = out[j] * mask[j];
    else if (onward)
        for (ptrdiff_t j = 0; j < rows * width; j++)
            onward[j] = out[j];
}

/* The gradients of what `tk_lstm_step` read, from those of what it gave.  d_out: of `out` as other
   layers read it.  d_next: of `onward`, NULL after the last step.  d_cell: of `cell` through the
   next step, becomes that of `before`. */
TK_CLONES static void tk_lstm_back(
    const float *TK_RESTRICT gates, const float *TK_RESTRICT before, const float *TK_RESTRICT mask,
    const float *TK_RESTRICT squashed, const float *TK_RESTRICT d_out,
    const float *TK_RESTRICT d_next, float *TK_RESTRICT d_cell, float *TK_RESTRICT d_gates,
    ptrdiff_t rows, ptrdiff_t width)
{
    for (ptrdiff_t row = 0; row < rows; row++) {
        const ptrdiff_t start = row * width;
        const float *TK_RESTRICT gate = gates + 4 * start;
        float *TK_RESTRICT di = d_gates + 4 * start, *TK_RESTRICT df = di + width;
        float *TK_RESTRICT d = df + width, *TK_RESTRICT dg = d + width;
        const float *TK_RESTRICT bent = squashed + start, *TK_RESTRICT old = before + start;
        float *TK_RESTRICT dc = d_cell + start;
        for (ptrdiff_t j = 0; j < width; j++)
            d[j] = d_out[start + j];
        if (d_next && mask)
            for (ptrdiff_t j = 0; j < width; j++)
                d[j] += d_next[start + j] * mask[start + j];
        else if (d_next)
            for (ptrdiff_t j = 0; j < width; j++)
                d[j] += d_next[start + j];
        for (ptrdiff_t j = 0; j < width; j++) {
            const float i = gate[j], f = gate[width + j];
            const float o = gate[2 * width + j], g = gate[3 * width + j];
            const float slope = dc[j] + d[j] * o * (1.0f - bent[j] * bent[j]);
            di[j] = slope * g * (i - i * i);
            df[j] = slope * old[j] * (f - f * f);
            d[j] = d[j] * bent[j] * (o - o * o);
            dg[j] = slope * i * (1.0f - g * g);
            dc[j] = slope * f;
        }
    }
}

#endif
