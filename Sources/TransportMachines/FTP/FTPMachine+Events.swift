// SPDX-License-Identifier: Apache-2.0

package import HTTPWire

extension FTPMachine {
    package enum Event: Hashable, Sendable {
        /// The control connection is established with this port of the server, or an earlier load has left it where it stands.
        case opened(isIPv6: Bool, port: Int, continuing: FTPStanding? = nil)
        /// TLS is established on the control connection.
        case secured
        /// The user and password to log in with.
        case login(user: [UInt8], password: [UInt8])
        case replied(FTPReply)
        /// The control connection ended.
        case controlEnded
        /// The data connection is established.
        case connected
        /// The server refuses the data connection.
        case connectionRefused
        /// TLS is established on the data connection.
        case dataSecured
        /// The data connection transferred this many bytes and was closed properly.
        case dataEnded(Int64)
        /// The data connection, or its TLS session, was lost.
        case dataFailed
        /// The wait for data timed out, or the wait for a reply that explains why the data connection was lost.
        case waitTimedOut
    }

    package enum Action: Hashable, Sendable {
        case send(FTPCommand)
        /// Starts TLS on the control connection; no cleartext may be left in its buffer.
        case secure
        /// Looks up the login; `refusal` is the server's message if it refused the previous login.
        case findLogin(refusal: String?)
        case loggedIn
        /// Starts anew over a new control connection, because the server has closed the idle one.
        case reconnect
        /// Connects to this port of the server; replies wait meanwhile.
        case connect(Int)
        case secureData
        /// The transfer starts.
        case begin(Beginning)
        /// The control connection is closed, or the server reported a failure: wait only for data that is in flight.
        case expectEnd
        /// The transfer is complete.
        case end
        case fail(Failure)
    }

    package struct Beginning: Hashable, Sendable {
        /// The size of the whole file, if the server reports it.
        package var size: Int64?
        /// The value of `MDTM`.
        package var modified: String?
        /// The number of bytes at the start of the file that the transfer skips.
        package var offset: Int64 = 0
    }

    package struct Failure: Hashable, Sendable {
        package enum Kind: Hashable, Sendable {
            case noSuchFile, mayNot, tooLarge
            /// TLS is required, and the server does not provide it.
            case notSecure
            case noConnection, lost
            /// The reply is not an FTP reply.
            case malformed
            /// The server refuses, or sends an unexpected reply.
            case refused
        }

        package let kind: Kind
        package let message: String
    }
}
