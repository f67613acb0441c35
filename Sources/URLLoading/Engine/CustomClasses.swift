// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import LoadingModel
internal import Synchronization

/// The `URLProtocol` classes that a session asks before it loads a request itself.
///
/// The session asks the classes of its configuration in order. The shared session then asks the classes registered with
/// `URLProtocol.registerClass(_:)`, most recent first.
struct CustomClasses: Sendable {
    private let own: [URLProtocol.Type]
    private let usesRegistered: Bool

    init(_ configuration: URLSessionConfiguration, isShared: Bool) {
        own = (configuration.protocolClasses ?? []).compactMap { $0 as? URLProtocol.Type }
        usesRegistered = isShared
    }

    var isEmpty: Bool { own.isEmpty && (!usesRegistered || URLProtocolRegistry.classes.isEmpty) }

    /// Returns the first class that loads the task, or nil.
    ///
    /// Runs app code: the classes' `canInit(with:)`, which by default decides by the task's current request.
    func loaderClass(of task: URLSessionTask) -> URLProtocol.Type? {
        let registered = usesRegistered ? URLProtocolRegistry.classes : []
        return (own + registered).first { $0.canInit(with: task) }
    }
}

extension URLRequest {
    /// Returns the request with its body as a stream: as on Apple's platforms, a `URLProtocol` gets every body as a stream.
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
    /// Asks the app's `URLProtocol` classes, on a separate queue, whether one of them loads a request.
    func findCustomLoader(for request: LoadRequest, reply: @escaping @Sendable ((any CustomLoader)?) -> Void) {
        let known: (URLSession, URLRequest)? = mutex.withLock { state in
            guard let session = state.session else { return nil }
            // While the classes are asked, the task's current request is the request to be loaded.
            state.messages.note(request)
            return state.visibleRequest().map { (session, $0) }
        }
        guard let (session, visible) = known, !session.customClasses.isEmpty else { return reply(nil) }
        CustomProtocolLoader.queue().async {
            guard let type = session.customClasses.loaderClass(of: self) else { return reply(nil) }
            reply(CustomProtocolLoader(type, task: self, request: type.canonicalRequest(for: visible.withBodyStream())))
        }
    }

    /// Passes a challenge of a `URLProtocol` to the delegates; without a delegate, default handling applies.
    func present(
        _ challenge: URLAuthenticationChallenge,
        reply: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        guard let bridge = mutex.withLock({ $0.recipients.bridge }) else { return reply(.performDefaultHandling, nil) }
        bridge.post(.challenge(challenge, reply: reply))
    }
}
