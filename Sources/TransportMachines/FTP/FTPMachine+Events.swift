//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import HTTPWire

extension FTPMachine {
    package enum Event: Hashable, Sendable {
        /// The control connection stands.
        case opened(isIPv6: Bool)
        /// TLS stands on the control connection.
        case secured
        /// What to log in with.
        case login(user: [UInt8], password: [UInt8])
        case replied(FTPReply)
        /// The control connection is over.
        case controlEnded
        /// The data connection stands.
        case connected
        /// TLS stands on the data connection.
        case dataSecured
        /// So many bytes went through the data connection, and it was ended in order.
        case dataEnded(Int64)
        /// The data connection was lost, or its TLS was.
        case dataFailed
        /// What was expected did not come: a reply that might have said why, or more data.
        case gaveUp
    }

    package enum Action: Hashable, Sendable {
        case send(FTPCommand)
        /// Begins TLS on the control connection; nothing may be left of what came in clear.
        case secure
        /// Finds out what to log in with; what the server says where it refuses what there was.
        case findLogin(refusal: String?)
        case loggedIn
        /// Connects to that port of the server.
        case connect(Int)
        case secureData
        /// The transfer begins.
        case begin(Beginning)
        /// No more is to be waited for than what is under way: the control connection has nothing more to say.
        case expectEnd
        /// All of it is done.
        case end
        case fail(Failure)
    }

    package struct Beginning: Hashable, Sendable {
        /// Bytes of the whole file, where the server says so.
        package var size: Int64?
        /// As `MDTM` says it.
        package var modified: String?
        /// Bytes that are left out.
        package var offset: Int64 = 0
    }

    package struct Failure: Hashable, Sendable {
        package enum Kind: Hashable, Sendable {
            case noSuchFile, mayNot, tooLarge
            /// TLS is required, and the server does not provide it.
            case notSecure
            case noConnection, lost
            /// It is no FTP.
            case malformed
            /// The server refuses, or says something else than it may.
            case refused
        }

        package let kind: Kind
        package let message: String
    }
}
