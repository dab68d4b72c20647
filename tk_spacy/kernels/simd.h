/* The loops over support parts that have to be fast: plain C that compilers turn into SIMD.

   Compiled for the baseline of the machine's family and for AVX2, chosen at run time where the
   compiler and the loader can (TK_CLONES).  Sums are taken in a fixed number of lanes and in a
   fixed order, so the results are the same to the last bit on both; the build must not contract
   multiplications and additions (see setup.py).

   n is a multiple of TK_RUN wherever rows of blocks are read, which are padded with parts of weight
   0; the loops of plain comparison at the end take any n. */

#ifndef TK_SPACY_SIMD_H
#define TK_SPACY_SIMD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "clones.h"

enum {
    TK_LANES = 32,
    /* Parts summed in single precision before they join the double: 8 a lane, which keeps the
       rounding under 1e-6 of the sum of |weight| * kernel even if all errors point one way. */
    TK_RUN = 256
};

/* Part of its caller's loops, whatever machine these are compiled for. */
#if defined(__GNUC__)
#define TK_INLINE static inline __attribute__((always_inline))
#elif defined(_MSC_VER)
#define TK_INLINE static __forceinline
#else
#define TK_INLINE static inline
#endif

/* Adds up single-precision terms of one run. */
static inline void tk_flush(const float *acc, double *total)
{
    for (int j = 0; j < 8; j++)
        total[j] += (double)((acc[j] + acc[j + 8]) + (acc[j + 16] + acc[j + 24]));
}

/* An edge slot of support parts, coded in bytes, and of the part to score. */
typedef struct {
    const uint8_t *label, *distance, *length;
    uint8_t of_label, of_distance, of_length;
} tk_edge;

/* A head and a modifier: their counts of equal properties, whose product with 4 fits 16 bits, and
   what the edge between them has; label, distance and length are those of the support parts, in
   bytes.  some, all: runs of support parts, a bit a run, of which some or all have the distance or
   the length. */
typedef struct {
    const uint8_t *head, *modifier;
    const uint8_t *label, *distance, *length;
    uint8_t of_distance, of_length;
    uint32_t some_distance, all_distance, some_length, all_length;
} tk_pair;

enum { TK_MOST_LABELS = 8 };

/* The sum of weight * product over a run in single precision, by lanes. */
TK_INLINE void tk_sum_run(
    const float *TK_RESTRICT weight, const uint16_t *TK_RESTRICT product, float *TK_RESTRICT acc)
{
    for (int j = 0; j < TK_LANES; j++)
        acc[j] = 0;
    for (int i = 0; i < TK_RUN; i += TK_LANES)
        for (int j = 0; j < TK_LANES; j++)
            acc[j] += weight[i + j] * (float)(int32_t)product[i + j];
}

/* sums[l] = the sum of weight * head * modifier * edge over support parts, for each of at most
   TK_MOST_LABELS labels of the edge.  What does not depend on the label is taken once for all: a
   label has a sum of its own over those runs alone that have it (some_label, a bit a run).  Each
   label's result is to the last bit what it would be on its own. */
TK_CLONES static void tk_pair_sums(
    const tk_pair *pair, const uint8_t *of_labels, const uint32_t *some_label, int n_labels,
    const float *TK_RESTRICT weight, ptrdiff_t n, double *sums)
{
    const uint8_t of_distance = pair->of_distance, of_length = pair->of_length;
    /* Runs in which some parts have the distance or the length, and some have not. */
    const uint32_t mixed = (pair->some_distance & ~pair->all_distance)
        | (pair->some_length & ~pair->all_length);
    double total[TK_MOST_LABELS][8];
    uint32_t every_label = ~(uint32_t)0, any_label = 0;
    for (int l = 0; l < n_labels; l++) {
        every_label &= some_label[l];
        any_label |= some_label[l];
        for (int j = 0; j < 8; j++)
            total[l][j] = 0;
    }
    for (ptrdiff_t start = 0; start < n; start += TK_RUN) {
        const uint32_t run = (uint32_t)1 << (start / TK_RUN);
        const uint8_t *TK_RESTRICT head = pair->head + start;
        const uint8_t *TK_RESTRICT modifier = pair->modifier + start;
        const uint8_t *TK_RESTRICT label = pair->label + start;
        /* All but the label; of a mixed run the edge's factor stands in `equal`. */
        uint16_t product[TK_RUN], own[TK_RUN];
        uint8_t equal[TK_RUN];
        float acc[TK_LANES];
        const uint8_t *TK_RESTRICT distance = pair->distance + start;
        const uint8_t *TK_RESTRICT length = pair->length + start;
        const uint8_t same = (uint8_t)(1 + ((pair->all_distance & run) != 0)
            + ((pair->all_length & run) != 0));
        if (n_labels == 1 && (any_label & run)) {
            /* Nothing to share. */
            const uint8_t of_label = of_labels[0];
            for (int i = 0; i < TK_RUN; i++) {
                const uint8_t factor = (uint8_t)(1 + (label[i] == of_label)
                    + (distance[i] == of_distance) + (length[i] == of_length));
                own[i] = (uint16_t)((uint16_t)head[i] * (uint16_t)modifier[i] * (uint16_t)factor);
            }
            tk_sum_run(weight + start, own, acc);
            tk_flush(acc, total[0]);
            continue;
        }
        for (int i = 0; i < TK_RUN; i++)
            product[i] = (uint16_t)((uint16_t)head[i] * (uint16_t)modifier[i]);
        if (mixed & run)
            for (int i = 0; i < TK_RUN; i++)
                equal[i] = (uint8_t)(1 + (distance[i] == of_distance) + (length[i] == of_length));
        if (!(every_label & run)) {
            if (mixed & run) {
                for (int i = 0; i < TK_RUN; i++)
                    own[i] = (uint16_t)(product[i] * (uint16_t)equal[i]);
                tk_sum_run(weight + start, own, acc);
            } else if (same > 1) {
                for (int i = 0; i < TK_RUN; i++)
                    own[i] = (uint16_t)(product[i] * (uint16_t)same);
                tk_sum_run(weight + start, own, acc);
            } else {
                tk_sum_run(weight + start, product, acc);
            }
            for (int l = 0; l < n_labels; l++)
                if (!(some_label[l] & run))
                    tk_flush(acc, total[l]);
        }
        if (!(any_label & run))
            continue;
        for (int l = 0; l < n_labels; l++) {
            const uint8_t of_label = of_labels[l];
            if (!(some_label[l] & run))
                continue;
            if (mixed & run) {
                for (int i = 0; i < TK_RUN; i++)
                    own[i] = (uint16_t)(product[i]
                        * (uint16_t)(uint8_t)(equal[i] + (label[i] == of_label)));
            } else {
                for (int i = 0; i < TK_RUN; i++)
                    own[i] = (uint16_t)(product[i]
                        * (uint16_t)(uint8_t)(same + (label[i] == of_label)));
            }
            tk_sum_run(weight + start, own, acc);
            tk_flush(acc, total[l]);
        }
    }
    for (int l = 0; l < n_labels; l++) {
        double sum = 0;
        for (int j = 0; j < 8; j++)
            sum += total[l][j];
        sums[l] = sum;
    }
}

/* The same for any number of node slots, of any count, and of edge slots. */
TK_CLONES static double tk_part_sum(
    const uint8_t *const *nodes, int n_nodes, const tk_edge *edges, int n_edges,
    const float *TK_RESTRICT weight, ptrdiff_t n)
{
    double total[8] = {0};
    double sum = 0;
    float product[TK_RUN];
    for (ptrdiff_t start = 0; start < n; start += TK_RUN) {
        float acc[TK_LANES] = {0};
        for (int i = 0; i < TK_RUN; i++)
            product[i] = 1.0f;
        for (int slot = 0; slot < n_nodes; slot++) {
            const uint8_t *TK_RESTRICT node = nodes[slot] + start;
            for (int i = 0; i < TK_RUN; i++)
                product[i] *= (float)(int32_t)node[i];
        }
        for (int slot = 0; slot < n_edges; slot++) {
            const uint8_t *TK_RESTRICT label = edges[slot].label + start;
            const uint8_t *TK_RESTRICT distance = edges[slot].distance + start;
            const uint8_t *TK_RESTRICT length = edges[slot].length + start;
            const uint8_t of_label = edges[slot].of_label;
            const uint8_t of_distance = edges[slot].of_distance;
            const uint8_t of_length = edges[slot].of_length;
            for (int i = 0; i < TK_RUN; i++) {
                uint8_t equal = (uint8_t)(1 + (label[i] == of_label)
                    + (distance[i] == of_distance) + (length[i] == of_length));
                product[i] *= (float)(int32_t)equal;
            }
        }
        for (int i = 0; i < TK_RUN; i += TK_LANES)
            for (int j = 0; j < TK_LANES; j++)
                acc[j] += weight[start + i + j] * product[i + j];
        tk_flush(acc, total);
    }
    for (int j = 0; j < 8; j++)
        sum += total[j];
    return sum;
}

/* out = base + the sum of rows; what is added up must fit a byte. */
TK_CLONES static void tk_add_rows(
    uint8_t *TK_RESTRICT out, const uint8_t *const *rows, int n_rows, uint8_t base, ptrdiff_t n)
{
    int done = 0;
    if (n_rows >= 3) {
        const uint8_t *TK_RESTRICT a = rows[0];
        const uint8_t *TK_RESTRICT b = rows[1];
        const uint8_t *TK_RESTRICT c = rows[2];
        /* Three groups of properties, and as a rule no more than two frequent values. */
        if (n_rows >= 5) {
            const uint8_t *TK_RESTRICT d = rows[3];
            const uint8_t *TK_RESTRICT e = rows[4];
            for (ptrdiff_t i = 0; i < n; i++)
                out[i] = (uint8_t)(base + a[i] + b[i] + c[i] + d[i] + e[i]);
            done = 5;
        } else if (n_rows == 4) {
            const uint8_t *TK_RESTRICT d = rows[3];
            for (ptrdiff_t i = 0; i < n; i++)
                out[i] = (uint8_t)(base + a[i] + b[i] + c[i] + d[i]);
            done = 4;
        } else {
            for (ptrdiff_t i = 0; i < n; i++)
                out[i] = (uint8_t)(base + a[i] + b[i] + c[i]);
            done = 3;
        }
    } else {
        memset(out, base, (size_t)n);
    }
    for (; done < n_rows; done++) {
        const uint8_t *TK_RESTRICT row = rows[done];
        for (ptrdiff_t i = 0; i < n; i++)
            out[i] = (uint8_t)(out[i] + row[i]);
    }
}

enum { TK_TILE_ROWS = 4, TK_TILE_COLUMNS = 16, TK_STEP = 16 };

/* bytes[i * width + r] = rows[r * step + i] over a run; the columns from n_rows on are 0. */
TK_INLINE void tk_interleave(
    uint8_t *TK_RESTRICT bytes, const uint8_t *TK_RESTRICT rows, ptrdiff_t step, int n_rows,
    int width)
{
    if (n_rows < width)
        memset(bytes, 0, (size_t)(TK_RUN * width));
    for (int r = 0; r < n_rows; r++)
        for (int i = 0; i < TK_RUN; i++)
            bytes[i * width + r] = rows[r * step + i];
}

/* out[i][r] = weight[i] * rows[r * step + i] for the heads of a tile, at most TK_TILE_ROWS. */
TK_CLONES static void tk_left_tile(
    float *TK_RESTRICT out, const uint8_t *TK_RESTRICT rows, ptrdiff_t step, int n_rows,
    const float *TK_RESTRICT weight, ptrdiff_t n)
{
    uint8_t bytes[TK_RUN * TK_TILE_ROWS];
    for (ptrdiff_t start = 0; start < n; start += TK_RUN) {
        float *TK_RESTRICT of_run = out + start * TK_TILE_ROWS;
        tk_interleave(bytes, rows + start, step, n_rows, TK_TILE_ROWS);
        for (int i = 0; i < TK_RUN; i++)
            for (int r = 0; r < TK_TILE_ROWS; r++)
                of_run[i * TK_TILE_ROWS + r] =
                    weight[start + i] * (float)(int32_t)bytes[i * TK_TILE_ROWS + r];
    }
}

/* out[i][c] = rows[c * step + i] for the modifiers of a tile, at most TK_TILE_COLUMNS. */
TK_CLONES static void tk_right_tile(
    float *TK_RESTRICT out, const uint8_t *TK_RESTRICT rows, ptrdiff_t step, int n_rows,
    ptrdiff_t n)
{
    uint8_t bytes[TK_RUN * TK_TILE_COLUMNS];
    for (ptrdiff_t start = 0; start < n; start += TK_RUN) {
        float *TK_RESTRICT of_run = out + start * TK_TILE_COLUMNS;
        tk_interleave(bytes, rows + start, step, n_rows, TK_TILE_COLUMNS);
        for (int i = 0; i < TK_RUN * TK_TILE_COLUMNS; i++)
            of_run[i] = (float)(int32_t)bytes[i];
    }
}

/* out[r][c] = sum over i < n of left[i * left_step + r] * right[i * right_step + c], one tile of a
   matrix product, in single precision (in two levels, again for the rounding): n is at most TK_RUN.
   Written out by rows: as a loop over them gcc keeps the sums in memory, and takes seven times as
   long. */
TK_CLONES static void tk_tile(
    float *TK_RESTRICT out, const float *TK_RESTRICT left, ptrdiff_t left_step,
    const float *TK_RESTRICT right, ptrdiff_t right_step, ptrdiff_t n)
{
    float total[TK_TILE_ROWS * TK_TILE_COLUMNS] = {0};
    for (ptrdiff_t start = 0; start < n; start += TK_STEP) {
        const ptrdiff_t stop = n - start < TK_STEP ? n : start + TK_STEP;
        float acc[TK_TILE_ROWS * TK_TILE_COLUMNS] = {0};
        for (ptrdiff_t i = start; i < stop; i++) {
            const float *a = left + i * left_step;
            const float a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3];
            const float *TK_RESTRICT b = right + i * right_step;
            for (int c = 0; c < TK_TILE_COLUMNS; c++) {
                acc[c] += a0 * b[c];
                acc[TK_TILE_COLUMNS + c] += a1 * b[c];
                acc[2 * TK_TILE_COLUMNS + c] += a2 * b[c];
                acc[3 * TK_TILE_COLUMNS + c] += a3 * b[c];
            }
        }
        for (int j = 0; j < TK_TILE_ROWS * TK_TILE_COLUMNS; j++)
            total[j] += acc[j];
    }
    memcpy(out, total, sizeof total);
}

/* out[i] += column[i] == value. */
TK_CLONES static void tk_add_equal(
    const int32_t *TK_RESTRICT column, ptrdiff_t n, int32_t value, uint16_t *TK_RESTRICT out)
{
    for (ptrdiff_t i = 0; i < n; i++)
        out[i] = (uint16_t)(out[i] + (column[i] == value));
}

/* The same for fewer than 256 columns. */
TK_CLONES static void tk_count_equal(
    const int32_t *TK_RESTRICT column, ptrdiff_t n, int32_t value, uint8_t *TK_RESTRICT out)
{
    for (ptrdiff_t i = 0; i < n; i++)
        out[i] = (uint8_t)(out[i] + (column[i] == value));
}

/* The sum of weight * head * modifier * (1 + equal edge properties) over n arcs, in double
   precision; `skip` is added to the counts of equal node properties. */
TK_CLONES static double tk_plain_arc_sum(
    const uint16_t *TK_RESTRICT head, const uint16_t *TK_RESTRICT modifier, int skip_head,
    int skip_modifier, const int32_t *TK_RESTRICT label, const int32_t *TK_RESTRICT distance,
    const int32_t *TK_RESTRICT length, int32_t of_label, int32_t of_distance, int32_t of_length,
    const double *TK_RESTRICT weight, ptrdiff_t n)
{
    double total[8] = {0};
    double sum = 0;
    double product[TK_RUN];
    for (ptrdiff_t start = 0; start < n; start += TK_RUN) {
        const ptrdiff_t width = n - start < TK_RUN ? n - start : TK_RUN;
        ptrdiff_t i = 0;
        for (ptrdiff_t j = start; j < start + width; j++) {
            int32_t equal = 1 + (label[j] == of_label) + (distance[j] == of_distance)
                + (length[j] == of_length);
            product[j - start] = weight[j] * (double)(((int32_t)head[j] + skip_head)
                * ((int32_t)modifier[j] + skip_modifier) * equal);
        }
        for (; i + 8 <= width; i += 8)
            for (int j = 0; j < 8; j++)
                total[j] += product[i + j];
        for (; i < width; i++)
            sum += product[i];
    }
    for (int j = 0; j < 8; j++)
        sum += total[j];
    return sum;
}

/* The sum of weight * kernel over n support parts, arc by part by property: each compares all
   n_properties of its head and of its modifier; nodes are rows, 0 equals nothing. */
TK_CLONES static double tk_pair_sum(
    const int32_t *TK_RESTRICT head, const int32_t *TK_RESTRICT modifier, ptrdiff_t n_properties,
    const int32_t *TK_RESTRICT heads, const int32_t *TK_RESTRICT modifiers, int skip_head,
    int skip_modifier, const int32_t *TK_RESTRICT label, const int32_t *TK_RESTRICT distance,
    const int32_t *TK_RESTRICT length, int32_t of_label, int32_t of_distance, int32_t of_length,
    const double *TK_RESTRICT weight, ptrdiff_t n)
{
    double sum = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        const int32_t *TK_RESTRICT h = heads + i * n_properties;
        const int32_t *TK_RESTRICT m = modifiers + i * n_properties;
        int32_t of_head = skip_head, of_modifier = skip_modifier;
        for (ptrdiff_t p = 0; p < n_properties; p++)
            of_head += (h[p] == head[p]) & (head[p] != 0);
        for (ptrdiff_t p = 0; p < n_properties; p++)
            of_modifier += (m[p] == modifier[p]) & (modifier[p] != 0);
        sum += weight[i] * (double)(of_head * of_modifier
            * (1 + (label[i] == of_label) + (distance[i] == of_distance)
                + (length[i] == of_length)));
    }
    return sum;
}

#endif
