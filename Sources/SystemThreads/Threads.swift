// SPDX-License-Identifier: Apache-2.0

import CLoadingSystem
package import LibC

/// The library's own threads, for work that would block an event loop or Swift's cooperative thread pool.
package enum Threads {
    private final class Start {
        let name: String
        let body: @Sendable () -> Void

        init(_ name: String, _ body: @escaping @Sendable () -> Void) {
            self.name = name
            self.body = body
        }
    }

    /// Starts a thread that ends when `body` returns.
    ///
    /// The thread blocks all signals, so that the app's signal handlers run on the app's threads.
    ///
    /// - Parameters:
    ///   - name: The name that system tools show; at most 15 bytes.
    ///   - body: The body of the thread.
    /// - Returns: The thread, or nil if the system cannot create a thread.
    package static func start(_ name: String, _ body: @escaping @Sendable () -> Void) -> pthread_t? {
        var everySignal = sigset_t()
        var before = sigset_t()
        sigfillset(&everySignal)
        // The new thread inherits the signal mask.
        pthread_sigmask(SIG_SETMASK, &everySignal, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setdetachstate(&attributes, CInt(PTHREAD_CREATE_DETACHED))
        #if canImport(Glibc)
        var thread = pthread_t()
        #else
        var thread: pthread_t?
        #endif
        let start = Unmanaged.passRetained(Start(name, body))
        let code = pthread_create(
            &thread,
            &attributes,
            { argument in
                guard let argument else { return nil }
                let start = Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
                cls_name_thread(start.name)
                start.body()
                return nil
            },
            start.toOpaque()
        )
        guard code == 0 else {
            start.release()
            return nil
        }
        return thread
    }
}
