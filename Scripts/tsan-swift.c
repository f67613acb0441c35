// SPDX-License-Identifier: Apache-2.0

// Tells ThreadSanitizer about synchronization within Swift's libraries, which are not instrumented. `Scripts/sanitize thread` preloads
// this library into the tests. Without it, the sanitizer reports races for most shared state as soon as two threads contend; with it,
// hardly any report has to be suppressed. The functions below call the real ones.
//
// - `Mutex`: the fast path is an atomic exchange, inlined into the instrumented code, which the sanitizer understands. The slow path, for
//   contention, is a futex call within libswiftSynchronization.
// - Continuations: the runtime reports a task that is resumed and enqueued, but not one that continues at once because it was resumed
//   before it waited.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

// These functions are absent in processes that inherit LD_PRELOAD but do not use the sanitizer, such as nginx.
__attribute__((weak)) void __tsan_acquire(void *address);
__attribute__((weak)) void __tsan_release(void *address);

static void acquire(void *address) {
    if (__tsan_acquire) __tsan_acquire(address);
}

static void release(void *address) {
    if (__tsan_release) __tsan_release(address);
}

static void *real_function(const char *name, void **known) {
    void *function = __atomic_load_n(known, __ATOMIC_RELAXED);
    if (function) return function;
    function = dlsym(RTLD_NEXT, name);
    __atomic_store_n(known, function, __ATOMIC_RELAXED);
    return function;
}

// The function that this library overrides: the next function of this name in the search order.
#define REAL(type, name) ({ static void *known; (type *)real_function(name, &known); })

// Mutex

#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context)) void *self

#define LOCK_SLOW "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define TRY_LOCK_SLOW "$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF"
#define UNLOCK_SLOW "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

typedef SWIFT void lock_slow_function(uint32_t thread, SELF);
typedef SWIFT bool try_lock_slow_function(SELF);
typedef SWIFT void unlock_slow_function(SELF);

SWIFT void lock_slow(uint32_t thread, SELF) __asm__(LOCK_SLOW);
SWIFT bool try_lock_slow(SELF) __asm__(TRY_LOCK_SLOW);
SWIFT void unlock_slow(SELF) __asm__(UNLOCK_SLOW);

SWIFT void lock_slow(uint32_t thread, SELF) {
    REAL(lock_slow_function, LOCK_SLOW)(thread, self);
    acquire(self);
}

SWIFT bool try_lock_slow(SELF) {
    bool is_locked = REAL(try_lock_slow_function, TRY_LOCK_SLOW)(self);
    if (is_locked) acquire(self);
    return is_locked;
}

SWIFT void unlock_slow(SELF) {
    release(self);
    REAL(unlock_slow_function, UNLOCK_SLOW)(self);
}

// Continuations

#define ASYNC __attribute__((swiftasynccall))

// The beginning of the runtime's ContinuationAsyncContext.
struct continuation_context {
    void *parent;
    void *resume_parent;
    uintptr_t flags;
    uintptr_t status;
};

enum { RESUMED = 2 };

typedef ASYNC void await_function(struct continuation_context *context);
typedef void resume_function(void *task);
typedef void deallocate_function(void *memory);
typedef void resume_with_error_function(void *task, void *error);

void *swift_task_getCurrent(void) __attribute__((weak));
ASYNC void swift_continuation_await(struct continuation_context *context);
void swift_task_dealloc(void *memory);
void swift_continuation_resume(void *task);
void swift_continuation_throwingResume(void *task);
void swift_continuation_throwingResumeWithError(void *task, void *error);

// Serializes waiting and resuming of a task, so that its status tells which came first. The sanitizer does not see these locks, so they do
// not hide races.
static struct gate {
    uintptr_t owner;
    unsigned depth;
    char padding[64 - sizeof(uintptr_t) - sizeof(unsigned)];
} gates[256];

static __thread char thread_mark;

static struct gate *enter(void *task) {
    struct gate *gate = &gates[((uintptr_t)task >> 4) % 256];
    uintptr_t me = (uintptr_t)&thread_mark;
    if (__atomic_load_n(&gate->owner, __ATOMIC_RELAXED) != me) {
        uintptr_t unowned = 0;
        while (!__atomic_compare_exchange_n(&gate->owner, &unowned, me, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            unowned = 0;
            sched_yield();
        }
    }
    gate->depth++;
    return gate;
}

static void leave(struct gate *gate) {
    if (--gate->depth == 0) __atomic_store_n(&gate->owner, 0, __ATOMIC_RELEASE);
}

ASYNC void swift_continuation_await(struct continuation_context *context) {
    await_function *real = REAL(await_function, "swift_continuation_await");
    void *task = swift_task_getCurrent();
    struct gate *gate = enter(task);
    if (__atomic_load_n(&context->status, __ATOMIC_ACQUIRE) == RESUMED) {
        leave(gate);
        acquire(task);
        __attribute__((musttail)) return real(context);
    }
    // This call returns when the task is suspended. The runtime itself reports when the task is resumed.
    real(context);
    leave(gate);
}

// This function is called after an async function has returned. Waiting for a checked continuation is such a function: the runtime's
// library waits without calling the function above. The task was resumed before it reached this point.
void swift_task_dealloc(void *memory) {
    void *task = swift_task_getCurrent();
    if (task) acquire(task);
    REAL(deallocate_function, "swift_task_dealloc")(memory);
}

void swift_continuation_resume(void *task) {
    struct gate *gate = enter(task);
    REAL(resume_function, "swift_continuation_resume")(task);
    leave(gate);
}

void swift_continuation_throwingResume(void *task) {
    struct gate *gate = enter(task);
    REAL(resume_function, "swift_continuation_throwingResume")(task);
    leave(gate);
}

void swift_continuation_throwingResumeWithError(void *task, void *error) {
    struct gate *gate = enter(task);
    REAL(resume_with_error_function, "swift_continuation_throwingResumeWithError")(task, error);
    leave(gate);
}
