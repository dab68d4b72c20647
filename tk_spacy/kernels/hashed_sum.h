/* The sums of looked-up weights that have to be fast (see hashed_map.pyx): plain C.

   Eight lanes, each summed in order, so that the result is the same to the last bit with and without
   SIMD; a lane's sums are short enough for single precision. */

#ifndef TK_SPACY_HASHED_SUM_H
#define TK_SPACY_HASHED_SUM_H

#include "simd.h"

enum { TK_MAP_LANES = 8 };

/* The weight of a hashed combination: the low bits say where, the highest one the sign. */
static inline float tk_map_weight(const float *TK_RESTRICT table, uint32_t mask, uint32_t hash)
{
    union { float value; uint32_t bits; } weight;
    weight.value = table[hash & mask];
    weight.bits ^= hash & UINT32_C(0x80000000);
    return weight.value;
}

/* The sum over heads i, edges e and modifiers j of the weight of heads[i] ^ edges[e] ^ modifiers[j].
   Edges come innermost: their hashes differ in few bits, so their weights lie close together. */
static double tk_map_sum(
    const float *TK_RESTRICT table, uint32_t mask, const uint32_t *TK_RESTRICT heads,
    ptrdiff_t n_heads, const uint32_t *TK_RESTRICT edges, ptrdiff_t n_edges,
    const uint32_t *TK_RESTRICT modifiers, ptrdiff_t n_modifiers)
{
    double total = 0;
    for (ptrdiff_t i = 0; i < n_heads; i++) {
        float acc[TK_MAP_LANES] = {0};
        ptrdiff_t j = 0;
        for (; j + TK_MAP_LANES <= n_modifiers; j += TK_MAP_LANES)
            for (ptrdiff_t e = 0; e < n_edges; e++) {
                const uint32_t before = heads[i] ^ edges[e];
                for (int lane = 0; lane < TK_MAP_LANES; lane++)
                    acc[lane] += tk_map_weight(table, mask, before ^ modifiers[j + lane]);
            }
        for (ptrdiff_t e = 0; e < n_edges; e++)
            for (ptrdiff_t lane = 0; j + lane < n_modifiers; lane++)
                acc[lane] += tk_map_weight(table, mask, heads[i] ^ edges[e] ^ modifiers[j + lane]);
        for (int lane = 0; lane < TK_MAP_LANES; lane++)
            total += (double)acc[lane];
    }
    return total;
}

#endif
