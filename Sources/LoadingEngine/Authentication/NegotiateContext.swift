//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import HTTPTransport
import LoadingModel
import NIOCore
import NIOPosix
import SystemLibraries

/// One Negotiate handshake (RFC 4559) through GSSAPI, which may ask a KDC and so works off the loop.
final class NegotiateContext {
    /// Whether the system has the library.
    static var isAvailable: Bool { GSSAPI.isAvailable }

    private let context: GSSAPI.Context
    private(set) var hasFailed = false

    init(host: String, user: String?, password: String?, binding: [UInt8]?) {
        let credential = user.flatMap { user in password.map { (user: user, password: $0) } }
        context = GSSAPI.Context(service: "HTTP@\(host)", credential: credential, channelBinding: binding)
    }

    /// The next token to send; nil where there is none, or the handshake failed.
    func step(_ token: [UInt8]?, in load: Load) async throws(LoadError) -> [UInt8]? {
        let slot = NIOLoopBoundBox(nil as Result<GSSAPI.Step, GSSAPI.Failure>?, eventLoop: load.session.loop)
        let waiting = NIOLoopBound(load, eventLoop: load.session.loop)
        NIOThreadPool.singleton.submit { [context, loop = load.session.loop] _ in
            let result = context.step(token)
            loop.execute {
                slot.value = result
                waiting.value.control.wake()
            }
        }
        while slot.value == nil {
            try load.control.check()
            await load.control.wait()
        }
        switch slot.value {
        case .success(let step): return step.token
        case .failure, nil:
            hasFailed = true
            return nil
        }
    }
}
