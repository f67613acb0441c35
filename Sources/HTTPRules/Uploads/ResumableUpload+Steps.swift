//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

extension ResumableUpload {
    /// Content of one request.
    package struct Part: Hashable, Sendable {
        package var offset: Int64
        /// Nil where it reaches to the end, wherever that is.
        package var count: Int64?
        package var isLast: Bool

        package init(offset: Int64 = 0, count: Int64? = nil, isLast: Bool = true) {
            self.offset = offset
            self.count = count
            self.isLast = isLast
        }
    }

    package enum Step: Hashable, Sendable {
        /// The response is the result.
        case deliver
        /// The response that was kept is the result.
        case deliverKept
        /// The request is sent with other fields, or with less content.
        case create(Part)
        /// The server is asked how much it has, after so many seconds; what it just said is kept meanwhile, or not.
        case retrieve(after: Double, keepsResponse: Bool)
        case append(Part)
        /// The upload cannot be continued.
        case fail(Failure)
    }

    /// Why an upload cannot be continued.
    package enum Failure: Hashable, Sendable {
        /// The server contradicts itself, or what was sent.
        case contradiction(String)
        /// The server takes no upload of this size.
        case tooLarge(limit: Int64)
        case tooSmall(limit: Int64)
        /// The server does not have the upload any more.
        case gone(status: Int)
        /// What was to be continued was not interrupted by this load, and the server cannot be reached or does not answer.
        case unanswered(status: Int)

        /// The server may have an upload that is not continued.
        package var isRefusal: Bool {
            switch self {
            case .contradiction, .tooLarge, .tooSmall: true
            case .gone, .unanswered: false
            }
        }
    }

    /// Seconds before another attempt, doubled each time.
    static func pause(before count: Int) -> Double {
        guard count > 0 else { return 0 }
        return 0.25 * Double(1 << min(count - 1, 6))
    }
}
