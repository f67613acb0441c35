// SPDX-License-Identifier: Apache-2.0

/// The events of a resumable upload (draft-ietf-httpbis-resumable-upload).
package struct UploadPlan: Codable, Sendable, Hashable {
    package var version: Int
    package var length: Int
    /// How many bytes the server has at the end of each connection.
    package var cuts: [Int]
    /// Whether the response to the whole upload is lost.
    package var losesAnswer = false
    /// The app cancels the upload when the server has this many bytes, and resumes it in this session.
    package var stop: Int?
    package var resumesIn = 0

    package init(version: Int, length: Int, cuts: [Int]) {
        self.version = version
        self.length = length
        self.cuts = cuts
    }

    /// The plan as a header field for the server.
    package var field: String {
        ([version, length, losesAnswer ? 1 : 0, stop ?? -1] + cuts).map(String.init).joined(separator: " ")
    }

    package init?(field: String) {
        let numbers = field.split(separator: " ").compactMap { Int($0) }
        guard numbers.count >= 4 else { return nil }
        self.init(version: numbers[0], length: numbers[1], cuts: Array(numbers[4...]))
        losesAnswer = numbers[2] == 1
        stop = numbers[3] < 0 ? nil : numbers[3]
    }

    /// The content of a load's upload, in which no two parts are alike.
    package static func content(of load: Int, _ length: Int) -> [UInt8] {
        (0..<length).map { UInt8(truncatingIfNeeded: ($0 + load) &* 37 &+ $0 >> 8 &* 5 &+ $0 >> 16) }
    }
}
