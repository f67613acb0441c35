// SPDX-License-Identifier: Apache-2.0

import LibC

/// A lock with a condition variable, which `Mutex` lacks.
package final class Monitor: @unchecked Sendable {
    // Sendable because the two pointers never change, and the mutex and condition variable that they point to may be used by many
    // threads.
    private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    package init() {
        pthread_mutex_init(lock, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(lock)
        condition.deallocate()
        lock.deallocate()
    }

    /// Seconds on the monotonic clock.
    package static var clock: Double {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    package func locked<Value>(_ work: () -> Value) -> Value {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        return work()
    }

    /// Releases the lock and waits until ``wakeAll()``, ``wakeOne()`` or `deadline`.
    ///
    /// Must be called only inside ``locked(_:)``. May wake up spuriously.
    ///
    /// - Returns: false if the deadline has passed.
    @discardableResult
    package func wait(until deadline: Double?) -> Bool {
        guard let deadline else {
            pthread_cond_wait(condition, lock)
            return true
        }
        let whole = deadline.rounded(.down)
        var time = timespec(tv_sec: Int(whole), tv_nsec: Int((deadline - whole) * 1e9))
        return pthread_cond_timedwait(condition, lock, &time) != ETIMEDOUT
    }

    package func wakeOne() {
        pthread_cond_signal(condition)
    }

    package func wakeAll() {
        pthread_cond_broadcast(condition)
    }
}
