// SPDX-License-Identifier: Apache-2.0

/// The answer of a name server to a question for a name's HTTPS records (RFC 1035, section 4; RFC 9460).
package struct ServiceBindings: Sendable, Hashable {
    /// Why a message does not answer the question.
    package enum Failure: Error, Sendable, Hashable {
        /// The message ends too early or is not valid.
        case malformed
        /// The message is not a response, or answers another question.
        case otherQuestion
        /// The message was truncated.
        case truncated
        /// The server reports a failure by this code.
        case code(Int)

        package var message: String {
            switch self {
            case .malformed: "the answer is malformed"
            case .otherQuestion: "the answer belongs to another question"
            case .truncated: "the answer is truncated"
            case .code(let code): "the name server responded with the code \(code)"
            }
        }
    }

    /// The type of HTTPS records.
    package static let recordType = 65
    /// The maximum number of aliases (CNAME) that one answer may lead through.
    package static let maximumAliasCount = 8

    private static let internet = 1
    private static let canonicalName = 5
    private static let startOfAuthority = 6

    /// The owner of the records: the name asked for, or the name for which it is an alias (CNAME).
    package var owner: DNSName
    /// The records; empty if the owner has none, or if one of them is malformed.
    ///
    /// "If any RRs are malformed, the client MUST reject the entire RRset" (section 2.2).
    package var records: [ServiceBinding] = []
    /// Whether a record is malformed.
    package var isMalformed = false
    /// How long the answer is valid; nil if an answer without records does not say that (RFC 2308, section 5).
    package var seconds: Int?

    private struct Record {
        var owner: DNSName
        var type: Int
        var seconds: Int
        /// A reader of the message at the beginning of the record's data.
        var start: DNSReader
        var data: ArraySlice<UInt8>
    }

    /// Parses a message.
    ///
    /// - Parameters:
    ///   - message: The whole message, without the length that precedes it over TCP.
    ///   - name: The name that was asked for.
    /// - Throws: ``Failure`` if the message does not answer the question.
    package init(_ message: [UInt8], for name: DNSName) throws(Failure) {
        var reader = DNSReader(message[...])
        guard reader.number() != nil, let flags = reader.number() else { throw .malformed }
        // A response to a query; its code may say that the name does not exist (NXDOMAIN).
        guard flags & 0xF800 == 0x8000 else { throw .otherQuestion }
        guard flags & 0x0200 == 0 else { throw .truncated }
        guard flags & 0xF == 0 || flags & 0xF == 3 else { throw .code(flags & 0xF) }
        guard let questionCount = reader.number(), let answerCount = reader.number(), let authorityCount = reader.number(),
            reader.number() != nil
        else { throw .malformed }
        guard questionCount == 1 else { throw .otherQuestion }
        guard let asked = DNSName(&reader), let type = reader.number(), let kind = reader.number() else { throw .malformed }
        guard asked == name, type == Self.recordType, kind == Self.internet else { throw .otherQuestion }
        var answers: [Record] = []
        for _ in 0..<answerCount {
            let record = try Self.record(&reader)
            if let record { answers.append(record) }
        }
        owner = name
        var lifetime = try follow(answers)
        var found: [ServiceBinding] = []
        var isFound = false
        for record in answers where record.type == Self.recordType && record.owner == owner {
            isFound = true
            lifetime = min(lifetime ?? record.seconds, record.seconds)
            if let binding = ServiceBinding(record.data) { found.append(binding) } else { isMalformed = true }
        }
        if isFound {
            if !isMalformed { records = found }
            seconds = lifetime
        } else if let absence = Self.absence(&reader, authorityCount) {
            seconds = min(lifetime ?? absence, absence)
        }
    }

    /// Follows the aliases from the name to the owner of the records, and returns the smallest of their lifetimes.
    private mutating func follow(_ answers: [Record]) throws(Failure) -> Int? {
        let aliases = Dictionary(
            answers.filter { $0.type == Self.canonicalName }.map { ($0.owner, $0) }, uniquingKeysWith: { first, _ in first })
        var lifetime: Int?
        var count = 0
        while let alias = aliases[owner] {
            count += 1
            var start = alias.start
            guard count <= Self.maximumAliasCount, let target = DNSName(&start) else { throw .malformed }
            owner = target
            lifetime = min(lifetime ?? alias.seconds, alias.seconds)
        }
        return lifetime
    }

    /// Reads a record; returns nil for a record of another class.
    private static func record(_ reader: inout DNSReader) throws(Failure) -> Record? {
        guard let owner = DNSName(&reader), let type = reader.number(), let kind = reader.number(),
            let seconds = reader.longNumber(), let length = reader.number()
        else { throw .malformed }
        let start = reader
        guard let data = reader.bytes(length) else { throw .malformed }
        // A TTL with the highest bit set counts as 0 (RFC 2181, section 8).
        let lifetime = seconds < 1 << 31 ? seconds : 0
        return kind == internet ? Record(owner: owner, type: type, seconds: lifetime, start: start, data: data) : nil
    }

    /// Returns how long the absence of records is valid: "the minimum of the MINIMUM field of the SOA record and the TTL of the SOA
    /// itself" (RFC 2308, section 5).
    private static func absence(_ reader: inout DNSReader, _ count: Int) -> Int? {
        for _ in 0..<count {
            guard let found = try? record(&reader) else { return nil }
            guard found.type == startOfAuthority else { continue }
            var data = found.start
            guard DNSName(&data) != nil, DNSName(&data) != nil, data.bytes(16) != nil, let minimum = data.longNumber() else {
                return nil
            }
            return min(found.seconds, minimum)
        }
        return nil
    }
}
