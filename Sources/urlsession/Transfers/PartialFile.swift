// SPDX-License-Identifier: Apache-2.0

import Foundation
import URLLoading

/// The beginning of a file that an interrupted curl or wget has left under the file's final name.
///
/// The version of the partial file is unknown. The partial file matches the server's current version if the server's file was last
/// modified before the partial file was created.
struct PartialFile {
    enum Judgement {
        /// The body is the rest of the file, of this length.
        case isRemainder(Int64)
        case isComplete
        /// The body is not the rest of the file, for this reason.
        case refused(String)
    }

    let path: String
    let size: Int64
    private let birth: Date

    /// Nil if there is no data, or the file system does not record creation times.
    init?(_ path: String) {
        guard let facts = try? FileManager.default.attributesOfItem(atPath: path),
            facts[.type] as? FileAttributeType == .typeRegular, let size = (facts[.size] as? NSNumber)?.int64Value, size > 0,
            let birth = Self.birth(of: path)
        else { return nil }
        self.path = path
        self.size = size
        self.birth = birth
    }

    /// The value of the Range field.
    var range: String { "bytes=\(size)-" }

    /// Judges the response to a range request; nil for an error, which says nothing about the file.
    func judge(_ response: URLResponse, now: Date = Date()) -> Judgement? {
        guard let response = response as? HTTPURLResponse else {
            return .refused("the server does not say which part it sends")
        }
        guard response.statusCode < 400 || response.statusCode == 416 else { return nil }
        guard response.statusCode == 206 || response.statusCode == 416 else {
            return .refused(
                300..<400 ~= response.statusCode
                    ? "the server answered \(response.statusCode)" : "the server sends the whole file")
        }
        guard let changed = response.value(forHTTPHeaderField: "Last-Modified").flatMap(HTTPTime.date) else {
            return .refused("the server does not say when the file was modified, so \(path) may be of another version")
        }
        // Both times are compared by the server's clock, which may differ from the clock of this machine.
        let lead = response.value(forHTTPHeaderField: "Date").flatMap(HTTPTime.date).map { $0.timeIntervalSince(now) } ?? 0
        guard changed < birth + lead else { return .refused("the file was modified after \(path) was created") }
        let words = response.value(forHTTPHeaderField: "Content-Range")?.split(whereSeparator: { " -/".contains($0) }) ?? []
        if response.statusCode == 416 {
            return words == ["bytes", "*", "\(size)"] ? .isComplete : .refused("\(path) is longer than the file")
        }
        let codings = response.value(forHTTPHeaderField: "Content-Encoding") ?? "identity"
        guard let length = Self.restLength(words, from: size), codings.lowercased() == "identity" else {
            return .refused("the server sends a part that was not requested")
        }
        return .isRemainder(length)
    }

    /// Returns the length of a part, from the words of its Content-Range field; nil unless the part begins at an offset and ends at the
    /// end of the file, as far as the server states that end.
    static func restLength(_ words: [Substring], from offset: Int64) -> Int64? {
        guard words.count == 4, words[0] == "bytes", words[1] == "\(offset)", let last = Int64(words[2]), last >= offset,
            last < .max, words[3] == "*" || words[3] == "\(last + 1)"
        else { return nil }
        return last + 1 - offset
    }

    /// Returns the creation time of a file with statx(2), which Foundation does not use.
    private static func birth(of path: String) -> Date? {
        typealias Function = @convention(c) (CInt, UnsafePointer<CChar>, CInt, UInt32, UnsafeMutableRawPointer) -> CInt
        guard let symbol = dlsym(nil, "statx") else { return nil }
        let function = unsafeBitCast(symbol, to: Function.self)
        let wanted: UInt64 = 0x800
        // `struct statx` has 256 bytes: a mask of 32 bits at the start, and the seconds and nanoseconds of the creation time from
        // byte 80 on.
        var facts = [UInt64](repeating: 0, count: 32)
        let result = facts.withUnsafeMutableBytes { bytes in
            bytes.baseAddress.map { function(AT_FDCWD, path, 0, UInt32(wanted), $0) } ?? -1
        }
        let mask = UInt64(UInt32(truncatingIfNeeded: facts[0].littleEndian))
        guard result == 0, mask & wanted != 0 else { return nil }
        let nanoseconds = UInt32(truncatingIfNeeded: facts[11].littleEndian)
        return Date(timeIntervalSince1970: Double(Int64(bitPattern: facts[10])) + Double(nanoseconds) / 1e9)
    }
}
