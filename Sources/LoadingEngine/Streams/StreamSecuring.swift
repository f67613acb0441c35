// SPDX-License-Identifier: Apache-2.0

import HTTPTransport
import LoadingModel
import NIOCore
import TransportMachines

extension ByteStreamConnection {
    /// Pauses the request timeout while the app answers a question of the TLS handshake.
    private final class Handshake: QueuePosition {
        private let control: LoadControl

        init(of control: LoadControl) { self.control = control }

        func appIsAsked(_ isAsked: Bool) {
            if isAsked { control.hold(now: .now()) } else { control.endHold(now: .now()) }
        }

        func priorityChanged(_ priority: Float) {}
        func suspended() {}
        func resumed() {}
    }

    /// Starts TLS with the named server, and waits for the handshake.
    ///
    /// The load answers the questions of the handshake about certificates.
    func secure(to server: ServerName, in load: Load) async throws(LoadError) {
        let control = load.control
        control.enter(.queued(Handshake(of: control)))
        defer { control.enter(.elsewhere) }
        var result: LoadError??
        secure(to: server, by: load) { error in
            result = .some(error)
            control.wake()
        }
        while result == nil {
            try control.check()
            await control.wait()
        }
        try control.check()
        if case .some(.some(let error)) = result { throw error }
    }
}

extension StreamMachine.Failure {
    var loadError: LoadError {
        switch self {
        case .partialWrite: LoadError(.timedOut, "a write did not complete within its timeout, and part of it may have been sent")
        case .unreadBytes:
            LoadError(
                .secureConnectionFailed,
                "bytes that arrived in clear text were not read before TLS; they may be an attacker's (CVE-2011-0411)")
        case .endedBeforeTLS:
            LoadError(.secureConnectionFailed, "one side of the stream was closed before TLS began")
        }
    }
}
