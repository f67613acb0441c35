// SPDX-License-Identifier: Apache-2.0

public import Foundation

extension HTTPArchive {
    /// A request and its response.
    public struct Entry: Sendable, Equatable {
        /// The start of the load.
        public var startedDateTime: Date
        /// The duration in milliseconds: the sum of the known ``timings``.
        public var time: Double
        /// The request.
        public var request: Request
        /// The response.
        public var response: Response
        /// The state of the cache.
        public var cache: CacheUse
        /// The duration of each phase.
        public var timings: Timings
        /// The IP address of the server or proxy; nil if unknown.
        public var serverIPAddress: String?
        /// An identifier of the connection: the local port; nil if unknown.
        public var connection: String?
        /// A comment, or nil.
        public var comment: String?
        /// The cache that the response came from, such as "memory", "disk" or "cache"; nil if it came from the network.
        public var fromCache: String?

        /// Creates an entry.
        ///
        /// - Parameters:
        ///   - startedDateTime: The start of the load.
        ///   - request: The request.
        ///   - response: The response.
        ///   - timings: The duration of each phase.
        ///   - cache: The use of the cache.
        public init(
            startedDateTime: Date, request: Request, response: Response, timings: Timings = Timings(),
            cache: CacheUse = CacheUse()
        ) {
            self.startedDateTime = startedDateTime
            self.request = request
            self.response = response
            self.timings = timings
            self.cache = cache
            time = timings.sum
        }
    }

    /// The duration of each phase of an exchange, in milliseconds; -1 if the duration is unknown, or if the phase did not occur.
    public struct Timings: Sendable, Equatable {
        /// The time from the start of the load until a connection was available or being established.
        public var blocked: Double = -1
        /// The time of the host name lookup.
        public var dns: Double = -1
        /// The time of establishing the connection, including TLS.
        public var connect: Double = -1
        /// The time of sending the request.
        public var send: Double = 0
        /// The time from the end of the request to the start of the response.
        public var wait: Double = 0
        /// The time of receiving the response.
        public var receive: Double = 0
        /// The time of the TLS handshake, which is a part of ``connect``.
        public var ssl: Double = -1

        /// Creates timings without any known phase.
        public init() {}

        /// The sum of the known phases; ``ssl`` is not added, because ``connect`` includes it.
        public var sum: Double {
            let sum = [blocked, dns, connect, send, wait, receive].reduce(0) { $0 + max(0, $1) }
            return (sum * 1000).rounded() / 1000
        }
    }

    /// The state of the cache before a request.
    public struct CacheUse: Sendable, Equatable {
        /// A stored response.
        public struct State: Sendable, Equatable {
            /// The expiration time, or nil.
            public var expires: Date?
            /// The time of the last use.
            public var lastAccess: Date
            /// The entity tag, or an empty string.
            public var eTag: String
            /// The number of uses.
            public var hitCount: Int

            /// Creates a state.
            ///
            /// - Parameters:
            ///   - expires: The expiration time, or nil.
            ///   - lastAccess: The time of the last use.
            ///   - eTag: The entity tag.
            ///   - hitCount: The number of uses.
            public init(expires: Date? = nil, lastAccess: Date, eTag: String = "", hitCount: Int = 1) {
                self.expires = expires
                self.lastAccess = lastAccess
                self.eTag = eTag
                self.hitCount = hitCount
            }
        }

        /// The stored response before the request; nil if no response was stored or its state is unknown.
        public var beforeRequest: State?

        /// Creates a value.
        ///
        /// - Parameter beforeRequest: The stored response before the request.
        public init(beforeRequest: State? = nil) { self.beforeRequest = beforeRequest }
    }
}

extension HTTPArchive.Entry: Codable {
    private enum CodingKeys: String, CodingKey {
        case startedDateTime, time, request, response, cache, timings, serverIPAddress, connection, comment
        case fromCache = "_fromCache"
    }

    /// Decodes an entry leniently: missing timings are unknown.
    ///
    /// - Parameter decoder: A JSON decoder.
    /// - Throws: `DecodingError` if the entry has no request with a URL, or if the start is not a date.
    public init(from decoder: any Decoder) throws {
        let members = try LooseMembers<CodingKeys>(decoder)
        startedDateTime = try members.date(.startedDateTime)
        request = try members.container.decode(HTTPArchive.Request.self, forKey: .request)
        response = (try members.value(.response)) ?? HTTPArchive.Response(status: 0)
        cache = (try? members.value(.cache)) ?? HTTPArchive.CacheUse()
        timings = (try? members.value(.timings)) ?? HTTPArchive.Timings()
        time = members.number(.time) ?? timings.sum
        serverIPAddress = members.text(.serverIPAddress)
        connection = members.text(.connection)
        comment = members.text(.comment)
        fromCache = members.text(.fromCache)
    }
}

extension HTTPArchive.Timings: Codable {
    private enum CodingKeys: String, CodingKey { case blocked, dns, connect, send, wait, receive, ssl }

    /// Decodes timings; a missing or malformed value is -1, or 0 for the phases that every exchange has.
    ///
    /// - Parameter decoder: A JSON decoder.
    /// - Throws: `DecodingError` if the value is not an object.
    public init(from decoder: any Decoder) throws {
        let members = try LooseMembers<CodingKeys>(decoder)
        blocked = members.number(.blocked) ?? -1
        dns = members.number(.dns) ?? -1
        connect = members.number(.connect) ?? -1
        send = max(0, members.number(.send) ?? 0)
        wait = max(0, members.number(.wait) ?? 0)
        receive = max(0, members.number(.receive) ?? 0)
        ssl = members.number(.ssl) ?? -1
    }
}

extension HTTPArchive.CacheUse: Codable {
    private enum CodingKeys: String, CodingKey { case beforeRequest }

    /// Decodes the state of the cache.
    ///
    /// - Parameter decoder: A JSON decoder.
    /// - Throws: `DecodingError` if the value is not an object.
    public init(from decoder: any Decoder) throws {
        let members = try LooseMembers<CodingKeys>(decoder)
        beforeRequest = try? members.value(.beforeRequest)
    }
}

extension HTTPArchive.CacheUse.State: Codable {
    private enum CodingKeys: String, CodingKey { case expires, lastAccess, eTag, hitCount }

    /// Decodes a stored response.
    ///
    /// - Parameter decoder: A JSON decoder.
    /// - Throws: `DecodingError` if the time of the last use is not a date.
    public init(from decoder: any Decoder) throws {
        let members = try LooseMembers<CodingKeys>(decoder)
        expires = try? members.date(.expires)
        lastAccess = try members.date(.lastAccess)
        eTag = members.text(.eTag) ?? ""
        hitCount = Int(members.count(.hitCount) ?? 0)
    }
}
