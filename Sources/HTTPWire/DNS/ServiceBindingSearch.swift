// SPDX-License-Identifier: Apache-2.0

/// A place where a server can be reached over HTTP/3, according to an HTTPS record.
package struct HTTPSEndpoint: Sendable, Hashable {
    package var host: String
    package var port: Int
    /// The addresses of the host that the record names, IPv6 first; empty if it names none.
    package var addresses: [String]

    package init(host: String, port: Int, addresses: [String] = []) {
        self.host = host
        self.port = port
        self.addresses = addresses
    }
}

/// Decides which names to ask for HTTPS records, and what they say about HTTP/3 (RFC 9460, section 3).
///
/// A search asks for one name after another while records are aliases, and ends after at most nine questions.
package struct ServiceBindingSearch: Sendable {
    /// What the records of a server say.
    package struct Outcome: Sendable, Hashable {
        /// The places that speak HTTP/3, in the order of preference; empty if no record names one.
        package var endpoints: [HTTPSEndpoint]
        /// How long the outcome is valid; nil if no answer says that.
        package var seconds: Int?

        package init(endpoints: [HTTPSEndpoint], seconds: Int?) {
            self.endpoints = endpoints
            self.seconds = seconds
        }
    }

    package enum Step: Sendable, Hashable {
        case ask(DNSName)
        case end(Outcome)
    }

    /// The maximum number of aliases (AliasMode) that are followed.
    package static let maximumAliasCount = 8
    /// The maximum number of endpoints.
    package static let maximumEndpointCount = 8

    private static let protocolID = Array("h3".utf8)

    /// The name to ask for.
    package private(set) var question: DNSName
    private let port: Int
    private var aliasCount = 0
    private var seconds: Int?

    /// Starts a search for a server; nil if its name is not a host name.
    ///
    /// For a port other than 443, the port and `_https` are prepended to the name (section 9.1).
    package init?(host: String, port: Int) {
        guard 1...65_535 ~= port, let name = DNSName(host),
            let question = port == 443 ? name : name.service("https", port: port)
        else { return nil }
        self.question = question
        self.port = port
    }

    /// Takes the answer to the question.
    ///
    /// - Parameters:
    ///   - answer: The answer.
    ///   - generator: The source of randomness for the order of records with equal priority (section 2.4.1).
    /// - Returns: The next question, or the outcome.
    package mutating func take(_ answer: ServiceBindings, using generator: inout some RandomNumberGenerator) -> Step {
        if let lifetime = answer.seconds { seconds = min(seconds ?? lifetime, lifetime) }
        // "If an RRset contains a record in AliasMode, the recipient MUST ignore any ServiceMode records in the set" (section 2.4.1).
        guard let alias = answer.records.filter(\.isAlias).shuffled(using: &generator).first else {
            return end(endpoints(answer, using: &generator))
        }
        // A root as the target means that the service does not exist (section 2.5.1).
        guard aliasCount < Self.maximumAliasCount, alias.target != .root, alias.target != question else { return end([]) }
        aliasCount += 1
        question = alias.target
        return .ask(alias.target)
    }

    private func end(_ endpoints: [HTTPSEndpoint]) -> Step { .end(Outcome(endpoints: endpoints, seconds: seconds)) }

    private func endpoints(
        _ answer: ServiceBindings, using generator: inout some RandomNumberGenerator
    ) -> [HTTPSEndpoint] {
        let records = answer.records.filter { $0.isCompatible && $0.protocols.contains(Self.protocolID) }
        let order = records.shuffled(using: &generator).enumerated().sorted {
            ($0.element.priority, $0.offset) < ($1.element.priority, $1.offset)
        }
        var endpoints: [HTTPSEndpoint] = []
        for record in order.lazy.map(\.element) {
            let target = record.target == .root ? answer.owner : record.target
            let port = record.port ?? port
            guard let host = target.host, port > 0, endpoints.count < Self.maximumEndpointCount else { continue }
            let endpoint = HTTPSEndpoint(host: host, port: port, addresses: record.addresses)
            if !endpoints.contains(endpoint) { endpoints.append(endpoint) }
        }
        return endpoints
    }
}
