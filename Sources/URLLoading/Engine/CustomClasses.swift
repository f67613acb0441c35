//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

internal import Foundation
internal import LoadingModel
internal import Synchronization

/// The `URLProtocol` classes that a session asks before it loads a request itself: those of its configuration in their order, and for
/// the shared session those registered with `URLProtocol.registerClass(_:)`, the last registered first.
struct CustomClasses: Sendable {
    private let own: [URLProtocol.Type]
    private let usesRegistered: Bool

    init(_ configuration: URLSessionConfiguration, isShared: Bool) {
        own = (configuration.protocolClasses ?? []).compactMap { $0 as? URLProtocol.Type }
        usesRegistered = isShared
    }

    var isEmpty: Bool { own.isEmpty && (!usesRegistered || URLProtocolRegistry.classes.isEmpty) }

    /// The class that wants to load a task, or nil.
    ///
    /// Where it does not say otherwise, it is asked about the task's current request.
    ///
    /// Runs code of the app's.
    func claimant(of task: URLSessionTask) -> URLProtocol.Type? {
        let registered = usesRegistered ? URLProtocolRegistry.classes : []
        return (own + registered).first { $0.canInit(with: task) }
    }
}

extension URLRequest {
    /// The request with its body as a stream too: Apple's system hands a `URLProtocol` every body so.
    fileprivate func withBodyStream() -> URLRequest {
        guard httpBodyStream == nil else { return self }
        return switch loadRequest.body {
        case .data(let data): streaming(InputStream(data: data))
        case .file(let path): InputStream(fileAtPath: path).map { streaming($0) } ?? self
        case .none, .stream, .streamOnDemand: self
        }
    }
}

extension URLSessionTask {
    /// Asks the app's classes, on a queue of their own, whether one of them loads a request.
    func findCustomLoader(for request: LoadRequest, reply: @escaping @Sendable ((any CustomLoader)?) -> Void) {
        let known: (URLSession, URLRequest)? = mutex.withLock { state in
            guard let session = state.session else { return nil }
            // What the classes ask the task for is what is about to be loaded.
            state.sentRequest = request
            state.sentFields = nil
            return state.visibleRequest().map { (session, $0) }
        }
        guard let (session, visible) = known, !session.customClasses.isEmpty else { return reply(nil) }
        CustomProtocolLoader.queue().async {
            guard let type = session.customClasses.claimant(of: self) else { return reply(nil) }
            reply(CustomProtocolLoader(type, task: self, request: type.canonicalRequest(for: visible.withBodyStream())))
        }
    }

    /// Puts a challenge of a `URLProtocol` to the delegates; default handling where there are none.
    func present(
        _ challenge: URLAuthenticationChallenge,
        reply: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        guard let bridge = mutex.withLock({ $0.bridge }) else { return reply(.performDefaultHandling, nil) }
        bridge.post(.challenge(challenge, reply: reply))
    }
}
