// SPDX-License-Identifier: Apache-2.0

import HTTPTransport
import HTTPWire
import LoadingModel
import NIOPosix
import Synchronization
import SystemLibraries

/// A Negotiate handshake (RFC 4559) through GSSAPI.
///
/// The handshake may contact a KDC, and therefore runs off the loop.
final class NegotiateContext {
    /// Each leg may block its thread until the KDC responds, so these threads do no other work.
    private static let threads: NIOThreadPool = {
        let threads = NIOThreadPool(numberOfThreads: 8)
        threads.start()
        return threads
    }()

    private static let availability = Mutex<Bool?>(nil)

    private let context: GSSAPI.Context
    private(set) var hasFailed = false

    init(host: String, user: String?, password: String?, binding: [UInt8]?) {
        let credential = user.flatMap { user in
            password.map { (user: OctetText.octets(of: user), password: OctetText.octets(of: $0)) }
        }
        context = GSSAPI.Context(service: "HTTP@\(host)", credential: credential, channelBinding: binding)
    }

    /// Returns whether the system has the GSSAPI library; the first call opens the library.
    static func isAvailable(in control: LoadControl) async throws(LoadError) -> Bool {
        if let known = availability.withLock({ $0 }) { return known }
        let found = try await run(in: control) { GSSAPI.isAvailable }
        availability.withLock { $0 = found }
        return found
    }

    /// Returns the next token to send; nil if there is no further token, or if the handshake failed.
    func step(_ token: [UInt8]?, in control: LoadControl) async throws(LoadError) -> [UInt8]? {
        switch try await Self.run(in: control, { [context] in context.step(token) }) {
        case .success(let step): return step.token
        case .failure:
            hasFailed = true
            return nil
        }
    }

    private static func run<Value: Sendable>(
        in control: LoadControl, _ work: @escaping @Sendable () -> Value
    ) async throws(LoadError) -> Value {
        try await LoopSlot.run(in: control, by: { job in threads.submit { _ in job() } }, work)
    }
}
