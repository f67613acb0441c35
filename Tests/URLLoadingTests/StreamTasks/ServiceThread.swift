// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import URLLoading

/// Runs a `NetService` in the run loop of a new thread, as the service's delegate.
final class ServiceThread: NSObject, NetServiceDelegate, @unchecked Sendable {
    // Sendable because `events` is locked, and the rest is used only on the thread.
    private let events = Watched<[String]>([])
    private var thread: Thread?

    /// Makes calls on the service on a new thread, and waits until its delegate has received the expected callbacks.
    ///
    /// - Parameters:
    ///   - service: The service, which is scheduled only in the run loop of the new thread.
    ///   - calls: The calls to make on the service.
    ///   - isOver: Returns whether the callbacks so far are all that are expected.
    /// - Returns: The service and its delegate's callbacks, in order.
    /// - Throws: If the test's time limit is reached first.
    static func run(
        _ service: NetService, _ calls: @escaping @Sendable (NetService) -> Void,
        until isOver: @escaping @Sendable ([String]) -> Bool
    ) async throws -> (service: NetService, events: [String]) {
        let delegate = ServiceThread()
        Thread.detachNewThread {
            delegate.thread = .current
            service.schedule(in: .current, forMode: .default)
            service.delegate = delegate
            calls(service)
            while !isOver(delegate.events.read { $0 }), RunLoop.current.run(mode: .default, before: .distantFuture) {}
            service.remove(from: .current, forMode: .default)
        }
        return (service, try await delegate.events.value { isOver($0) ? $0 : nil })
    }

    private func note(_ text: String) {
        events.change { $0.append(Thread.current === thread ? text : "\(text) on another thread") }
    }

    func netServiceWillResolve(_ sender: NetService) { note("will resolve") }

    func netServiceDidResolveAddress(_ sender: NetService) { note("found") }

    func netService(_ sender: NetService, didNotResolve errorDict: [String: NSNumber]) {
        note("error \(errorDict[NetService.errorCode] ?? 0)")
    }

    func netServiceDidStop(_ sender: NetService) { note("stopped") }
}
