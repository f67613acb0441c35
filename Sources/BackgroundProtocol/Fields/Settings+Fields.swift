// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import LoadingModel

extension BackgroundSettings: CodedFields {
    static var blank: Self { Self() }

    mutating func visit(_ coder: Coder) throws {
        let initial = Self.blank
        policy = try coder.optional(1, "policy", coder.isReading ? nil : policy) ?? policy
        try coder.optional(2, "proxies", &proxies)
        try coder.optional(3, "rootFile", &rootFile, .path("the roots' file"))
        try coder.list(
            4, "rootDirectories", &rootDirectories, .list("the roots' folders", limit: 64, .path("a folder of roots")))
        try coder.defaulted(5, "security", initial.security, &security)
        try coder.defaulted(6, "cookies", initial.cookies, &cookies)
        try coder.defaulted(7, "credentials", initial.credentials, &credentials)
        try coder.defaulted(8, "strictTransportSecurity", initial.strictTransportSecurity, &strictTransportSecurity)
        try coder.list(9, "knownCredentials", &knownCredentials, .list("the credentials", limit: Limits.credentials))
        try coder.defaulted(10, "isDiscretionary", initial.isDiscretionary, &isDiscretionary)
        try coder.defaulted(11, "sendsLaunchEvents", initial.sendsLaunchEvents, &sendsLaunchEvents)
        launch = try coder.optional(12, "launch", coder.isReading ? nil : launch.map { KnownLaunch(launch: $0) })?.launch
    }
}

extension BackgroundSettings.Store: CodedKinds {
    init(kind: String, from coder: Coder) throws {
        switch kind {
        case "memory": self = .memory
        case "file": self = .file(try coder.required(2, "path", nil, .path("a store's path")))
        default: throw coder.fault("has an unknown kind")
        }
    }

    func write(to coder: Coder) throws {
        switch self {
        case .none: break
        case .memory: try coder.kind("memory")
        case .file(let path):
            try coder.kind("file")
            try coder.required(2, "path", path, .path("a store's path"))
        }
    }
}

private struct KnownLaunch: CodedKinds {
    /// Nil if this version does not know the kind: the program is not started then.
    var launch: BackgroundSettings.Launch?

    private static var arguments: Rule<[String]> {
        Rule { arguments in
            guard let program = arguments.first else { throw MessageFailure.malformed("the program is missing or unknown") }
            _ = try Rule.path("the program").validate(program)
            let isValid = Rule<String>.holds("an argument is too long or contains a NUL") {
                $0.utf8.count <= 64 << 10 && !$0.utf8.contains(0)
            }
            return try Rule.list("the arguments", isValid).validate(arguments)
        }
    }

    init(launch: BackgroundSettings.Launch) { self.launch = launch }

    init(kind: String, from coder: Coder) throws {
        switch kind {
        case "arguments":
            launch = .arguments(
                try coder.required(2, "arguments", nil, Self.arguments),
                directory: try coder.optional(3, "directory", nil, .path("the program's directory")))
        case "systemdUnit": launch = .systemdUnit(try coder.required(4, "name", nil, .plain("the unit")))
        case "dBusName": launch = .dBusName(try coder.required(4, "name", nil, .plain("the bus name")))
        default: launch = nil
        }
    }

    func write(to coder: Coder) throws {
        switch launch {
        case .arguments(let arguments, let directory):
            try coder.kind("arguments")
            try coder.required(2, "arguments", arguments, Self.arguments)
            try coder.optional(3, "directory", directory, .path("the program's directory"))
        case .systemdUnit(let name):
            try coder.kind("systemdUnit")
            try coder.required(4, "name", name, .plain("the unit"))
        case .dBusName(let name):
            try coder.kind("dBusName")
            try coder.required(4, "name", name, .plain("the bus name"))
        case nil: break
        }
    }
}

extension SessionPolicy: CodedFields {
    static var blank: Self { Self() }

    mutating func visit(_ coder: Coder) throws {
        let initial = Self.blank
        try coder.defaulted(1, "requestTimeout", initial.requestTimeout, &requestTimeout, .duration("a timeout"))
        try coder.defaulted(2, "resourceTimeout", initial.resourceTimeout, &resourceTimeout, .duration("a timeout"))
        try coder.defaulted(
            3, "maximumConnectionsPerHost", initial.maximumConnectionsPerHost, &maximumConnectionsPerHost,
            .holds("a session's limit of connections per host is less than 1") { $0 >= 1 })
        // Names and values alternate.
        var texts = additionalHeaders.flatMap { [$0.name, $0.value] }
        try coder.list(4, "additionalHeaders", &texts, .list("a session's fields", limit: Limits.fields * 2))
        try Limits.check(texts.count.isMultiple(of: 2), "a field has no value")
        try Limits.check(texts.reduce(0) { $0 + $1.utf8.count } <= Limits.fieldBytes, "a session's fields are too long")
        additionalHeaders = stride(from: 0, to: texts.count, by: 2).map { (texts[$0], texts[$0 + 1]) }
        try coder.list(5, "omittedHeaders", &omittedHeaders, .list("the fields that are left out", .plain("a field's name")))
        try coder.choice(6, "cachePolicy", initial.cachePolicy, &cachePolicy)
        try coder.choice(7, "cookieAcceptance", initial.cookieAcceptance, &cookieAcceptance)
        try coder.defaulted(8, "usesCookies", initial.usesCookies, &usesCookies)
        try coder.defaulted(9, "cachedBodyLimit", initial.cachedBodyLimit, &cachedBodyLimit, .size)
        try coder.defaulted(10, "usesStrictTransportSecurity", initial.usesStrictTransportSecurity, &usesStrictTransportSecurity)
        try coder.defaulted(11, "usesKerberosTickets", initial.usesKerberosTickets, &usesKerberosTickets)
        try coder.optional(12, "minimumTLSVersion", &minimumTLSVersion)
        try coder.optional(13, "maximumTLSVersion", &maximumTLSVersion)
        try coder.list(14, "trustRoots", &trustRoots, .list("the trust roots"))
        try coder.optional(15, "connections", &connections)
        try coder.defaulted(16, "needs", initial.needs, &needs)
        for (number, name, field) in Self.plainFields {
            switch field {
            case .flag(let path): try coder.defaulted(number, name, initial[keyPath: path], &self[keyPath: path])
            case .number(let path, let text):
                try coder.defaulted(
                    number, name, initial[keyPath: path], &self[keyPath: path], .holds("\(text) is less than 1") { $0 >= 1 })
            case .limit(let path): try coder.optional(number, name, &self[keyPath: path], .size)
            case .path(let path, let text):
                try coder.defaulted(number, name, initial[keyPath: path], &self[keyPath: path], .path(text))
            }
        }
    }
}

// MARK: Connections

extension ConnectionOptions.HTTPVersions: Coded {}

extension ConnectionOptions: CodedFields {
    private struct Addresses: CodedFields {
        static var blank: Self { Self(endpoint: Endpoint(host: nil, port: nil), addresses: []) }
        var endpoint: Endpoint
        var addresses: [String]

        mutating func visit(_ coder: Coder) throws {
            try coder.required(1, "endpoint", &endpoint)
            try coder.required(2, "addresses", &addresses, .list("a host's addresses", .plain("an address")))
        }
    }

    static var blank: Self { Self() }

    mutating func visit(_ coder: Coder) throws {
        // A relative path is refused, since the daemon's working directory is not the program's.
        try coder.optional(1, "unixSocketPath", &unixSocketPath, .path("a socket's path"))
        try coder.optional(2, "interfaceName", &interfaceName, .plain("an interface's name"))
        try coder.optional(3, "localAddress", &localAddress, .plain("a local address"))
        var entries = addresses.sorted { ($0.key.host ?? "", $0.key.port ?? -1) < ($1.key.host ?? "", $1.key.port ?? -1) }
            .map { Addresses(endpoint: $0.key, addresses: $0.value) }
        try coder.list(4, "addresses", &entries, .list("the addresses"))
        addresses = Dictionary(entries.map { ($0.endpoint, $0.addresses) }) { first, _ in first }
        try Limits.check(addresses.count == entries.count, "a host's addresses are given twice")
        try coder.list(5, "nameServers", &nameServers, .list("the name servers", .plain("a name server")))
        try coder.list(6, "substitutions", &substitutions, .list("the substitutions"))
        try coder.defaulted(7, "httpVersions", Self.blank.httpVersions, &httpVersions)
    }
}

extension ConnectionOptions.Endpoint: Coded {
    static func coded(_ value: Self?, _ coder: Coder) throws -> Self {
        try coder.object {
            let host = try coder.optional(1, "host", value?.host)
            let endpoint = Self(host: host, port: try coder.optional(2, "port", value?.port, .port("an endpoint's port")))
            try Limits.check(endpoint.host == host, "an endpoint's host is not in its canonical form")
            return endpoint
        }
    }
}

extension ConnectionOptions.Substitution: Coded {
    static func coded(_ value: Self?, _ coder: Coder) throws -> Self {
        try coder.object {
            Self(
                endpoint: try coder.required(1, "endpoint", value?.endpoint),
                replacement: try coder.required(2, "replacement", value?.replacement))
        }
    }
}
