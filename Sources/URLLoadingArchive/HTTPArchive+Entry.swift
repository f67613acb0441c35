//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation

extension HTTPArchive {
    /// One request and its response.
    public struct Entry: Sendable, Equatable {
        /// When the load began.
        public var startedDateTime: Date
        /// How long it took, in milliseconds: the sum of ``timings``, where each is known.
        public var time: Double
        /// What was asked.
        public var request: Request
        /// What was answered.
        public var response: Response
        /// What the cache had.
        public var cache: CacheUse
        /// How long each phase took.
        public var timings: Timings
        /// The IP address at the other end, or nil where it is not known.
        public var serverIPAddress: String?
        /// What tells connections apart: the port at this end; or nil.
        public var connection: String?
        /// A remark, or nil.
        public var comment: String?
        /// Where in a cache the response came from, as "memory", "disk" or "cache"; nil where it came from the network.
        public var fromCache: String?

        /// Makes an entry.
        ///
        /// - Parameters:
        ///   - startedDateTime: When the load began.
        ///   - request: What was asked.
        ///   - response: What was answered.
        ///   - timings: How long each phase took.
        ///   - cache: What the cache had.
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

    /// How long each phase of an exchange took, in milliseconds; -1 where that is not known, or there was no such phase.
    public struct Timings: Sendable, Equatable {
        /// From the beginning until there was a connection, or one was begun.
        public var blocked: Double = -1
        /// To look the host's name up.
        public var dns: Double = -1
        /// To connect, TLS included.
        public var connect: Double = -1
        /// To send the request.
        public var send: Double = 0
        /// From the end of the request to the beginning of the response.
        public var wait: Double = 0
        /// To receive the response.
        public var receive: Double = 0
        /// For TLS; a part of ``connect``.
        public var ssl: Double = -1

        /// Makes timings of which nothing is known.
        public init() {}

        /// The phases that are known together, each once.
        public var sum: Double {
            let sum = [blocked, dns, connect, send, wait, receive].reduce(0) { $0 + max(0, $1) }
            return (sum * 1000).rounded() / 1000
        }
    }

    /// What the cache had before a request.
    public struct CacheUse: Sendable, Equatable {
        /// A stored response.
        public struct State: Sendable, Equatable {
            /// Until when it is fresh, or nil.
            public var expires: Date?
            /// When it was last used.
            public var lastAccess: Date
            /// Its entity tag, or an empty string.
            public var eTag: String
            /// How often it was used.
            public var hitCount: Int

            /// Makes one.
            ///
            /// - Parameters:
            ///   - expires: Until when it is fresh, or nil.
            ///   - lastAccess: When it was last used.
            ///   - eTag: Its entity tag.
            ///   - hitCount: How often it was used.
            public init(expires: Date? = nil, lastAccess: Date, eTag: String = "", hitCount: Int = 1) {
                self.expires = expires
                self.lastAccess = lastAccess
                self.eTag = eTag
                self.hitCount = hitCount
            }
        }

        /// What was stored before the request, or nil where nothing was, or nothing is known.
        public var beforeRequest: State?

        /// Makes one.
        ///
        /// - Parameter beforeRequest: What was stored before the request.
        public init(beforeRequest: State? = nil) { self.beforeRequest = beforeRequest }
    }
}

extension HTTPArchive.Entry: Codable {
    private enum Member: String, CodingKey {
        case startedDateTime, time, request, response, cache, timings, serverIPAddress, connection, comment
        case fromCache = "_fromCache"
    }

    /// Reads an entry as programs write it: times that are missing are not known.
    ///
    /// - Parameter decoder: Of JSON.
    /// - Throws: `DecodingError`, where there is no request with a URL, or the beginning is no date.
    public init(from decoder: any Decoder) throws {
        let members = try LooseMembers<Member>(decoder)
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

    /// Writes the entry.
    ///
    /// - Parameter encoder: Of JSON.
    /// - Throws: What the encoder throws.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Member.self)
        try container.encode(ArchiveDate.text(startedDateTime), forKey: .startedDateTime)
        try container.encode(time, forKey: .time)
        try container.encode(request, forKey: .request)
        try container.encode(response, forKey: .response)
        try container.encode(cache, forKey: .cache)
        try container.encode(timings, forKey: .timings)
        try container.encodeIfPresent(serverIPAddress, forKey: .serverIPAddress)
        try container.encodeIfPresent(connection, forKey: .connection)
        try container.encodeIfPresent(comment, forKey: .comment)
        try container.encodeIfPresent(fromCache, forKey: .fromCache)
    }
}

extension HTTPArchive.Timings: Codable {
    private enum CodingKeys: String, CodingKey { case blocked, dns, connect, send, wait, receive, ssl }

    /// Reads timings; what is missing, or is no number, is -1, or 0 for the phases that every exchange has.
    ///
    /// - Parameter decoder: Of JSON.
    /// - Throws: `DecodingError`, where there is no object.
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

    /// Reads what a cache had.
    ///
    /// - Parameter decoder: Of JSON.
    /// - Throws: `DecodingError`, where there is no object.
    public init(from decoder: any Decoder) throws {
        let members = try LooseMembers<CodingKeys>(decoder)
        beforeRequest = try? members.value(.beforeRequest)
    }
}

extension HTTPArchive.CacheUse.State: Codable {
    private enum Member: String, CodingKey { case expires, lastAccess, eTag, hitCount }

    /// Reads a stored response.
    ///
    /// - Parameter decoder: Of JSON.
    /// - Throws: `DecodingError`, where the last use is no date.
    public init(from decoder: any Decoder) throws {
        let members = try LooseMembers<Member>(decoder)
        expires = try? members.date(.expires)
        lastAccess = try members.date(.lastAccess)
        eTag = members.text(.eTag) ?? ""
        hitCount = Int(members.count(.hitCount) ?? 0)
    }

    /// Writes it.
    ///
    /// - Parameter encoder: Of JSON.
    /// - Throws: What the encoder throws.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Member.self)
        try container.encodeIfPresent(expires.map(ArchiveDate.text), forKey: .expires)
        try container.encode(ArchiveDate.text(lastAccess), forKey: .lastAccess)
        try container.encode(eTag, forKey: .eTag)
        try container.encode(hitCount, forKey: .hitCount)
    }
}
