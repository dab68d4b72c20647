/* Memory that is going to be read is fetched meanwhile, where the compiler can say so. */

#ifndef TK_SPACY_TRANSITION_PREFETCH_H
#define TK_SPACY_TRANSITION_PREFETCH_H

#if defined(__GNUC__)
#define TK_PREFETCH(address) __builtin_prefetch(address)
#else
#define TK_PREFETCH(address) ((void)(address))
#endif

static inline void tk_prefetch(const float *address) { TK_PREFETCH(address); }

#endif
