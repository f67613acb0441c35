// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import LoadingModel

/// A request's body, ready to be sent once.
package enum OutgoingBody: Sendable {
    case none
    case data(Data)
    case file(BodyFile)
    /// Sent with the chunked coding if `length` is nil.
    case stream(any BodyStream, length: Int64?)

    /// The length of the body in bytes: nil without a body, -1 if it is unknown until the end.
    package var length: Int64? {
        switch self {
        case .none: nil
        case .data(let data): Int64(data.count)
        case .file(let file): file.length
        case .stream(_, let length): length ?? -1
        }
    }

    /// Returns a range of the body; nil if the range is beyond the end.
    ///
    /// A stream is returned unchanged, because it already contains exactly the range.
    package func part(from start: Int64, count: Int64?) -> OutgoingBody? {
        switch self {
        case .none: return start == 0 && (count ?? 0) == 0 ? OutgoingBody.data(Data()) : nil
        case .data(let data):
            guard start >= 0, start <= Int64(data.count), (count ?? 0) <= Int64(data.count) - start else { return nil }
            let rest = data.dropFirst(Int(start))
            return .data(count.map { rest.prefix(Int($0)) } ?? rest)
        case .file(let file): return file.part(from: start, count: count).map { .file($0) }
        case .stream: return self
        }
    }
}
