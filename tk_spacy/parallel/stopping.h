/* What compiled loops need to be stopped: flags that threads share, a clock, a short sleep. */

#ifndef TK_SPACY_STOPPING_H
#define TK_SPACY_STOPPING_H

#include <time.h>

/* Flags that threads share, and what each has of its own: no compiler's C has both portably yet. */
#ifdef _MSC_VER
#include <intrin.h>
#define TK_THREAD_LOCAL __declspec(thread)
static inline int tk_load(int *flag) { return _InterlockedOr((volatile long *)flag, 0); }
static inline void tk_store(int *flag, int value)
{
    _InterlockedExchange((volatile long *)flag, value);
}
static inline int tk_subtract_one(int *count)
{
    return _InterlockedDecrement((volatile long *)count);
}
#else
#define TK_THREAD_LOCAL _Thread_local
static inline int tk_load(int *flag) { return __atomic_load_n(flag, __ATOMIC_ACQUIRE); }
static inline void tk_store(int *flag, int value)
{
    __atomic_store_n(flag, value, __ATOMIC_RELEASE);
}
static inline int tk_subtract_one(int *count)
{
    return __atomic_sub_fetch(count, 1, __ATOMIC_ACQ_REL);
}
#endif

#ifdef _WIN32
/* As <windows.h> declares it, whose macros (min, near, small) would change other names. */
__declspec(dllimport) void __stdcall Sleep(unsigned long milliseconds);
static inline void tk_pause(void) { Sleep(1); }
#else
static inline void tk_pause(void)
{
    const struct timespec moment = {0, 20000};
    nanosleep(&moment, 0);
}
#endif

/* Seconds of the day's clock; only differences count, and a clock set back does no harm. */
static inline double tk_seconds(void)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* True once in 16 calls of a thread: the clock is not looked at each time. */
static inline int tk_is_due(void)
{
    static TK_THREAD_LOCAL unsigned calls;
    return (++calls & 15u) == 0;
}

#endif
