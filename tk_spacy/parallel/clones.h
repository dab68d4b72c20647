/* What loops in plain C need that compilers turn into SIMD: they are compiled for the baseline of the
   machine's family and for AVX2, chosen at run time where the compiler and the loader can
   (TK_CLONES), and are told that their arrays do not overlap (TK_RESTRICT).  Since the build does not
   contract multiplications and additions (see setup.py), both compute the same to the last bit as
   long as sums are taken in an order of their own. */

#ifndef TK_SPACY_CLONES_H
#define TK_SPACY_CLONES_H

#if !defined(TK_CLONES)
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GLIBC__) && \
    (defined(__clang__) ? __clang_major__ >= 14 : defined(__GNUC__))
#define TK_CLONES __attribute__((target_clones("default", "avx2")))
#else
#define TK_CLONES
#endif
#endif

#if defined(_MSC_VER)
#define TK_RESTRICT __restrict
#else
#define TK_RESTRICT restrict
#endif

#endif
