//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import LoadingTestKit
import URLLoading

/// A thread whose run loop runs, with a service in it and its delegate.
final class ServiceThread: NSObject, NetServiceDelegate, @unchecked Sendable {
    // Sendable because `told` locks itself, and the rest is the thread's.
    private let told = Watched<[String]>([])
    private var thread: Thread?

    /// Makes the service's calls on a thread, and waits until its delegate was told what the test waits for.
    ///
    /// - Parameters:
    ///   - service: Scheduled in the run loop of that thread, and there alone.
    ///   - calls: What is done with it.
    ///   - isOver: Whether what was told is all.
    /// - Returns: The service and what was told, in order.
    /// - Throws: When the test is over before.
    static func run(
        _ service: NetService, _ calls: @escaping @Sendable (NetService) -> Void,
        until isOver: @escaping @Sendable ([String]) -> Bool
    ) async throws -> (service: NetService, told: [String]) {
        let delegate = ServiceThread()
        Thread.detachNewThread {
            delegate.thread = .current
            service.schedule(in: .current, forMode: .default)
            service.delegate = delegate
            calls(service)
            while !isOver(delegate.told.read { $0 }), RunLoop.current.run(mode: .default, before: .distantFuture) {}
            service.remove(from: .current, forMode: .default)
        }
        return (service, try await delegate.told.value { isOver($0) ? $0 : nil })
    }

    private func note(_ text: String) {
        told.change { $0.append(Thread.current === thread ? text : "\(text) on another thread") }
    }

    func netServiceWillResolve(_ sender: NetService) { note("will resolve") }

    func netServiceDidResolveAddress(_ sender: NetService) { note("found") }

    func netService(_ sender: NetService, didNotResolve errorDict: [String: NSNumber]) {
        note("error \(errorDict[NetService.errorCode] ?? 0)")
    }

    func netServiceDidStop(_ sender: NetService) { note("stopped") }
}
