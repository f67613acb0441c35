// SPDX-License-Identifier: Apache-2.0

package import LoadingModel

/// The reason why a body with a `Content-Encoding` (RFC 9110, section 8.4) could not be decoded.
package enum DecodingFailure: Error, Sendable, Hashable {
    /// The body has more nested codings than any legitimate server applies.
    case tooManyCodings(Int)
    /// The body ended before its coding did.
    case truncated
    /// The data are invalid: a bad header, a bad block, a wrong checksum.
    case corrupt(String)
    /// The body expands beyond its limit.
    case bomb(coded: Int64, decoded: Int64)
    /// The body expands, and the bodies of all loads together have reached the shared limit.
    case bombs(coded: Int64, decoded: Int64)
    /// The system had no memory for the decoder's window.
    case outOfMemory

    package var message: String {
        switch self {
        case .tooManyCodings(let count): "the body has \(count) content codings; the limit is \(ContentDecoder.maximumCodings)"
        case .truncated: "the body ends before its content coding does"
        case .corrupt(let reason): "the body does not match its content coding: \(reason)"
        case .bomb(let coded, let decoded): "\(coded) bytes of the body expand to more than \(decoded), which exceeds the limit"
        case .bombs(let coded, let decoded):
            "\(coded) bytes of the body expand to \(decoded), which together with other bodies in memory exceeds the limit"
        case .outOfMemory: "there is not enough memory to decode the body"
        }
    }

    package var loadError: LoadError {
        switch self {
        case .tooManyCodings, .truncated, .corrupt, .outOfMemory: LoadError(.cannotDecodeContentData, message, cause: self)
        case .bomb, .bombs: LoadError(.dataLengthExceedsMaximum, message, cause: self)
        }
    }
}
