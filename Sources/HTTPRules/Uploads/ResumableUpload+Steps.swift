// SPDX-License-Identifier: Apache-2.0

extension ResumableUpload {
    /// The content of one request.
    package struct Part: Hashable, Sendable {
        package var offset: Int64
        /// The number of bytes, or only a maximum if the length of the upload is unknown; nil if the part extends to the end of the
        /// body.
        package var count: Int64?
        package var isLast: Bool

        package init(offset: Int64 = 0, count: Int64? = nil, isLast: Bool = true) {
            self.offset = offset
            self.count = count
            self.isLast = isLast
        }
    }

    package enum Step: Hashable, Sendable {
        /// Deliver the response.
        case deliver
        /// Deliver the response that was kept while the server was asked for its offset or its limits.
        case deliverKept
        /// Send the creating request again with other fields or less content.
        case create(Part)
        /// Ask the server for its limits (`OPTIONS`). The response is kept meanwhile.
        case discover
        /// Ask the server for its offset after a delay in seconds.
        ///
        /// `keepsResponse` says whether the current response is kept meanwhile.
        case retrieve(after: Double, keepsResponse: Bool)
        case append(Part)
        /// The load cannot continue the upload.
        case fail(Failure)
    }

    /// Why a load cannot continue its upload.
    package enum Failure: Hashable, Sendable {
        /// The server's statements contradict each other or the data that was sent.
        case contradiction(String)
        /// The upload exceeds the server's maximum size.
        case tooLarge(limit: Int64)
        case tooSmall(limit: Int64)
        /// The server no longer has the upload.
        case gone(status: Int)
        /// The load gives up after repeated attempts without progress on the server; a later load can continue the upload.
        case unanswered(status: Int)
        /// The server, or a proxy, demands a login that the app has not provided; a later load can continue the upload.
        case unauthorized(status: Int)

        /// Whether the upload is abandoned, although the server may still store it.
        package var isRefusal: Bool {
            switch self {
            case .contradiction, .tooLarge, .tooSmall: true
            case .gone, .unanswered, .unauthorized: false
            }
        }
    }

    /// Returns the delay before another attempt, in seconds.
    ///
    /// The delay doubles with each attempt.
    static func pause(before count: Int) -> Double {
        guard count > 0 else { return 0 }
        return 0.25 * Double(1 << min(count - 1, 6))
    }
}
