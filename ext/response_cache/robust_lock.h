/* A lock in shared memory that stays usable if a process dies while it holds the lock.

   POSIX has robust mutexes for this purpose (pthread_mutexattr_setrobust). macOS has none; there the lock contains
   the number of the process that holds it, and a waiting process checks whether that process still exists. */

#ifndef ROWCALL_ROBUST_LOCK_H
#define ROWCALL_ROBUST_LOCK_H

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <unistd.h>

#if defined(__APPLE__) && !defined(ROWCALL_LOCK_BY_PROCESS)
#define ROWCALL_LOCK_BY_PROCESS 1
#endif

#ifdef ROWCALL_LOCK_BY_PROCESS

typedef struct {
    int32_t holder;
} rowcall_lock;

static inline int rowcall_lock_init(rowcall_lock *lock)
{
    __atomic_store_n(&lock->holder, 0, __ATOMIC_RELEASE);
    return 0;
}

/* Returns 0, or EOWNERDEAD: the lock is held, but the guarded data may be inconsistent. */
static inline int rowcall_lock_take(rowcall_lock *lock)
{
    int32_t own = (int32_t)getpid();
    for (uint32_t turn = 1;; turn++) {
        int32_t holder = 0;
        if (__atomic_compare_exchange_n(&lock->holder, &holder, own, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return 0;
        if (turn % 16 == 0 && kill((pid_t)holder, 0) == -1 && errno == ESRCH &&
            __atomic_compare_exchange_n(&lock->holder, &holder, own, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return EOWNERDEAD;
        sched_yield();
    }
}

/* Declares the guarded data consistent again, after EOWNERDEAD. */
static inline void rowcall_lock_mend(rowcall_lock *lock)
{
    (void)lock;
}

static inline void rowcall_lock_give(rowcall_lock *lock)
{
    __atomic_store_n(&lock->holder, 0, __ATOMIC_RELEASE);
}

#else

typedef struct {
    pthread_mutex_t mutex;
} rowcall_lock;

static inline int rowcall_lock_init(rowcall_lock *lock)
{
    pthread_mutexattr_t attributes;
    int failure = pthread_mutexattr_init(&attributes);
    if (failure)
        return failure;
    failure = pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    if (!failure)
        failure = pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    if (!failure)
        failure = pthread_mutex_init(&lock->mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return failure;
}

static inline int rowcall_lock_take(rowcall_lock *lock)
{
    return pthread_mutex_lock(&lock->mutex);
}

static inline void rowcall_lock_mend(rowcall_lock *lock)
{
    pthread_mutex_consistent(&lock->mutex);
}

static inline void rowcall_lock_give(rowcall_lock *lock)
{
    pthread_mutex_unlock(&lock->mutex);
}

#endif

#endif
