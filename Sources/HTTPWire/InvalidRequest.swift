// SPDX-License-Identifier: Apache-2.0

/// Why a request must not be sent: the peer would interpret it differently from what the caller meant.
package enum InvalidRequest: Error, Sendable, Hashable {
    /// The method is not a token (RFC 9110, section 9.1).
    case method
    /// The request-target is empty or contains a byte that is not visible ASCII (RFC 9112, section 3.2).
    case target
    /// A field name is not a token (RFC 9110, section 5.1).
    case fieldName(String)
    /// The value of this field contains CR, LF or NUL (RFC 9110, section 5.5).
    case fieldValue(name: String)
    /// The buffer to write into is smaller than ``RequestSerializer/encodedLength(of:)``.
    case bufferTooSmall

    package var message: String {
        switch self {
        case .method: "the method is not a token"
        case .target: "the request target is empty or contains whitespace, control or non-ASCII characters"
        case .fieldName(let name): "the field name \(name.debugDescription) is not a token"
        case .fieldValue(let name): "the value of the field \(name) contains CR, LF or NUL"
        case .bufferTooSmall: "the buffer is too small for the request's head"
        }
    }
}
