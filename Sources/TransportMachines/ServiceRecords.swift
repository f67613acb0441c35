//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// How a host can be reached by https, as the HTTPS records of its name say (RFC 9460).
package struct ServiceRecords: Hashable, Sendable {
    /// A record in ServiceMode.
    package struct Service: Hashable, Sendable {
        /// From 1, which is the first to try.
        package var priority: Int
        /// In lower case, without a last dot; the name of the record where that says ".".
        package var target: String
        /// Nil stands for the origin's own.
        package var port: Int?
        /// The protocols' ALPN ids, `http/1.1` among them unless the record excludes it (section 7.1).
        package var protocolIDs: [[UInt8]] = []
        /// IPv4 addresses, of 4 bytes, for as long as the target's own are not known.
        package var v4Hints: [[UInt8]] = []
        package var v6Hints: [[UInt8]] = []
    }

    /// By priority; those that say what is not understood, and has to be, are left out.
    package var services: [Service] = []
    /// The name whose records count in place of these: one is in AliasMode.
    package var alias: String?
    /// For how many seconds that holds.
    package var seconds = 0

    package init() {}

    /// More are not kept of what a name server sends.
    package static let maximumServiceCount = 8
    package static let maximumHintCount = 16
    package static let maximumProtocolCount = 8

    /// Reads a name server's answer to a question for HTTPS records (RFC 1035, section 4).
    ///
    /// Nil where it is none, or malformed: "If any RRs are malformed, the client MUST reject the entire RRSet" (RFC 9460, section 2.2).
    /// It has no services and no alias where the name has no such records.
    ///
    /// - Parameters:
    ///   - message: The answer.
    ///   - name: What was asked for, in lower case: an answer about another name is none. Nil takes any.
    package init?(message: [UInt8], to name: String? = nil) {
        var reader = ServiceRecordReader(message)
        guard reader.readNumber() != nil, let flags = reader.readNumber(), let questions = reader.readNumber(),
            let answers = reader.readNumber(), reader.readBytes(4) != nil
        else { return nil }
        // A response without an error, whole, to a standard query.
        guard flags & 0xFA0F == 0x8000, questions == 1, let asked = reader.readName(), reader.readNumber() == Self.type,
            reader.readNumber() == Self.internet, name.map({ $0 == asked || $0 == asked + "." }) ?? true
        else { return nil }
        var aliases: [String: (target: String, seconds: Int)] = [:]
        var records: [(owner: String, seconds: Int, data: Range<Int>)] = []
        for _ in 0..<answers {
            guard let owner = reader.readName(), let type = reader.readNumber(), let family = reader.readNumber(),
                let high = reader.readNumber(), let low = reader.readNumber(), let data = reader.readBlock()
            else { return nil }
            // "If this is set, the value is zero" (RFC 2181, section 8).
            let seconds = high & 0x8000 == 0 ? high << 16 | low : 0
            guard family == Self.internet else { continue }
            if type == Self.type {
                records.append((owner, seconds, data))
            } else if type == Self.canonicalName {
                var target = reader.at(data.lowerBound)
                guard let name = target.readName(), target.position == data.upperBound else { return nil }
                aliases[owner] = (name, seconds)
            }
        }
        var owner = asked
        var isAlias = false
        seconds = Int.max
        for _ in 0..<Self.longestChain {
            guard let next = aliases[owner] else { break }
            owner = next.target
            seconds = min(seconds, next.seconds)
        }
        for record in records where record.owner == owner {
            var data = reader.within(record.data)
            guard let priority = data.readNumber(), let target = data.readName(mayBeCompressed: false) else { return nil }
            seconds = min(seconds, record.seconds)
            if priority == 0 {
                // "In AliasMode, … recipients MUST ignore any SvcParams" (section 2.4.2); "." says that there is no service (section 2.5.1).
                // Of several the first counts: "the client SHOULD pick one at random".
                isAlias = true
                if !target.isEmpty, alias == nil { alias = target }
            } else {
                let service = Service(priority: priority, target: target.isEmpty ? owner : target)
                switch data.readParameters(of: service) {
                case .malformed: return nil
                case .unusable: break
                case .usable(let service): services.append(service)
                }
            }
        }
        // "If an RRset contains a record in AliasMode, the recipient MUST ignore any ServiceMode records in the set" (section 2.4.1).
        if isAlias { services = [] }
        if seconds == Int.max || (services.isEmpty && alias == nil) { seconds = 0 }
        // Those of one priority as they came.
        let sorted = services.enumerated().sorted { ($0.element.priority, $0.offset) < ($1.element.priority, $1.offset) }
        services = sorted.prefix(Self.maximumServiceCount).map(\.element)
    }

    /// The name that is asked for an origin's records (section 9.1).
    package static func name(host: String, port: Int) -> String { port == 443 ? host : "_\(port)._https.\(host)" }

    /// HTTPS, CNAME; IN.
    private static let type = 65
    private static let canonicalName = 5
    private static let internet = 1
    private static let longestChain = 16
}
