// SPDX-License-Identifier: Apache-2.0

import URLLoading

/// Requests and responses with their timings in the HTTP Archive format 1.2 (HAR), which browsers and many tools read.
///
/// ```swift
/// var archive = HTTPArchive()
/// // In a delegate's urlSession(_:task:didFinishCollecting:):
/// archive.append(metrics)
/// try archive.write(to: URL(fileURLWithPath: "loads.har"))
/// ```
///
/// Appended entries have no secrets and no bodies, unless ``Detail`` says otherwise.
///
/// The format is [HAR 1.2](http://www.softwareishard.com/blog/har-12-spec/). Of the extensions by other programs, only `_fromCache`
/// and `_error` are supported.
public struct HTTPArchive: Sendable, Equatable {
    /// The program that wrote an archive.
    public struct Creator: Sendable, Equatable, Codable {
        /// The program's name.
        public var name: String
        /// The program's version.
        public var version: String

        /// Creates a value.
        ///
        /// - Parameters:
        ///   - name: The program's name.
        ///   - version: The program's version.
        public init(name: String, version: String) {
            self.name = name
            self.version = version
        }
    }

    /// The version of the format: "1.2", or the version in the file.
    public var version = "1.2"
    /// The program that wrote the archive.
    public var creator = Creator(name: "URLLoading", version: URLSession.libraryVersion)
    /// The entries; appended entries are sorted by their start.
    public var entries: [Entry] = []
    /// A comment, or nil.
    public var comment: String?

    /// Creates an empty archive.
    public init() {}

    /// Inserts an entry so that the entries stay sorted by start time, after those with the same start time.
    ///
    /// - Parameter entry: The entry.
    public mutating func append(_ entry: Entry) {
        let place = entries.lastIndex { $0.startedDateTime <= entry.startedDateTime }.map { $0 + 1 } ?? 0
        entries.insert(entry, at: place)
    }

    /// Removes the secrets from all entries, for example in an archive from another program.
    ///
    /// - Parameter redaction: The secrets to remove; default ``Redaction/init()``.
    public mutating func redact(_ redaction: Redaction = Redaction()) {
        entries = entries.map(redaction.entry)
    }
}

extension HTTPArchive: Codable {
    private enum Member: String, CodingKey { case log }
    private enum LogMember: String, CodingKey { case version, creator, entries, comment }

    /// Decodes an archive.
    ///
    /// - Parameter decoder: A JSON decoder.
    /// - Throws: `DecodingError` if there is no list of entries, or if an entry has no request with a URL.
    public init(from decoder: any Decoder) throws {
        let log = try decoder.container(keyedBy: Member.self).nestedContainer(keyedBy: LogMember.self, forKey: .log)
        version = (try? log.decode(String.self, forKey: .version)) ?? "1.1"
        creator = (try? log.decode(Creator.self, forKey: .creator)) ?? Creator(name: "", version: "")
        entries = try log.decode([Entry].self, forKey: .entries)
        comment = try? log.decode(String.self, forKey: .comment)
    }

    /// Encodes the archive.
    ///
    /// - Parameter encoder: A JSON encoder.
    /// - Throws: The encoder's error.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Member.self)
        var log = container.nestedContainer(keyedBy: LogMember.self, forKey: .log)
        try log.encode(version, forKey: .version)
        try log.encode(creator, forKey: .creator)
        try log.encode(entries, forKey: .entries)
        try log.encodeIfPresent(comment, forKey: .comment)
    }
}
