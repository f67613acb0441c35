// SPDX-License-Identifier: Apache-2.0

import CSystemLibraries
import Synchronization

extension GSSAPI {
    /// A handshake with one server, by SPNEGO (RFC 4178) with Kerberos; the handshake requests mutual authentication.
    ///
    /// A context may be used from any thread; a lock serializes the steps.
    package final class Context: Sendable {
        private struct State {
            var context: OpaquePointer?
            /// Whether the password is empty; an empty password is refused without asking a KDC.
            var isWithoutPassword = false
            var hasBegun = false
            var isOver = false
        }

        private let state: Mutex<State>

        /// Prepares a context, without contacting the server or a KDC.
        ///
        /// - Parameters:
        ///   - service: HTTP@host.
        ///   - credential: A principal ("user", "user@REALM") and its password, both without a NUL; nil for the user's own tickets.
        ///   - channelBinding: Application data that binds the context to its TLS connection ("tls-server-end-point:" and the
        ///     certificate's hash, RFC 5929); nil for none.
        package init(service: String, credential: (user: [UInt8], password: [UInt8])?, channelBinding: [UInt8]?) {
            var context: OpaquePointer?
            if let library {
                let (user, password) = (Self.text(credential?.user), Self.text(credential?.password))
                context = clib_gss_context_create(
                    library.table, service, user, password, channelBinding, channelBinding?.count ?? 0)
            }
            state = Mutex(State(context: context, isWithoutPassword: credential?.password.isEmpty == true))
        }

        /// Returns the octets as C text.
        private static func text(_ octets: [UInt8]?) -> [CChar]? {
            octets.map { $0.map(CChar.init(bitPattern:)) + [0] }
        }

        deinit {
            state.withLock { clib_gss_context_free($0.context) }
        }

        /// Performs one step of the handshake.
        ///
        /// Blocks, because a step may contact a KDC: never call this method on an event loop. `token` is the token that the server
        /// sent; nil on the first step. On later steps, nil means that the server sent no token, which is a failure.
        package func step(_ token: [UInt8]?) -> Result<Step, Failure> {
            state.withLock { state in
                guard let context = state.context else {
                    return .failure(Failure(.isUnavailable, "no GSSAPI library is installed"))
                }
                guard !state.isOver, state.hasBegun == (token != nil) else {
                    state.isOver = true
                    return .failure(Failure(.serverIsRefused, "the server's answer does not belong to this handshake"))
                }
                state.hasBegun = true
                guard !state.isWithoutPassword else {
                    state.isOver = true
                    return .failure(Failure(.credentialIsRefused, "the password is empty"))
                }
                var leg = clib_gss_leg()
                guard clib_gss_context_step(context, token, token?.count ?? 0, &leg) != 0 else {
                    state.isOver = true
                    return .failure(Failure(leg, isFirst: token == nil))
                }
                let isDone = leg.is_done != 0
                state.isOver = isDone
                var output: [UInt8]?
                if let bytes = leg.token, leg.token_length > 0 {
                    output = Array(UnsafeBufferPointer(start: bytes, count: leg.token_length))
                }
                return .success(Step(token: output, isDone: isDone, isMutual: leg.is_mutual != 0))
            }
        }
    }
}
