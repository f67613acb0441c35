// SPDX-License-Identifier: Apache-2.0

/// The inputs of a Digest response, which also determine the server's expected proof (RFC 7616, sections 3.4.1 and 3.5).
package struct DigestProof: Sendable, Hashable {
    /// The parts of a message that the proof protects (section 3.3, `qop`).
    enum Protection: String, Sendable {
        /// The method and the target.
        case authentication = "auth"
        /// The method, the target and the body.
        case integrity = "auth-int"
    }

    let algorithm: DigestAlgorithm
    /// The hash of A1.
    let secret: String
    package let nonce: String
    let count: String
    let clientNonce: String
    let protection: Protection?
    let uri: String

    /// Returns the client's proof.
    ///
    /// `bodyHash` is the hash of the request body, used with `auth-int`.
    func response(method: String, bodyHash: String?) -> String {
        keyed(protection, hash(of: method, bodyHash))
    }

    /// Returns the proof that the server must send, or nil if the proof cannot be checked: without `qop` there is no proof, and
    /// with `auth-int` the proof requires the hash of the response body.
    func serverResponse(protection name: String?, bodyHash: String?) -> String? {
        guard let protection = name.flatMap({ Protection(rawValue: $0.lowercased()) }) ?? protection else { return nil }
        switch protection {
        case .authentication: return keyed(protection, hash(of: "", nil))
        case .integrity: return bodyHash.map { keyed(protection, hash(of: "", $0)) }
        }
    }

    /// Returns the hash of A2.
    private func hash(of method: String, _ bodyHash: String?) -> String {
        algorithm.hash("\(method):\(uri)\(bodyHash.map { ":\($0)" } ?? "")")
    }

    /// Computes the function `KD` (section 3.4.1); without `qop`, in the form of RFC 2069.
    private func keyed(_ protection: Protection?, _ hash: String) -> String {
        let middle = protection.map { "\(count):\(clientNonce):\($0.rawValue):" } ?? ""
        return algorithm.hash("\(secret):\(nonce):\(middle)\(hash)")
    }
}

extension DigestProof: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Contains nothing that would help to guess a password.
    package var description: String { "the proof of a Digest response" }

    package var debugDescription: String { description }

    package var customMirror: Mirror { Mirror(self, children: ["algorithm": algorithm.rawValue]) }
}
