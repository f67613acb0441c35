// SPDX-License-Identifier: Apache-2.0

import BenchKit
import Foundation
import Synchronization
import URLLoading

/// The scenarios; `Benchmarks/scale` has the expectations for each.
enum Scenarios {
    static let all: [String: @Sendable (Order) throws -> [String: Any]] = [
        "hosts": hosts, "rounds": rounds, "names": names, "slow-name": slowName, "slow-disk": slowDisk, "kept": kept,
        "uploads": uploads, "downloads": downloads, "files": files,
        "line": line, "priority": priority, "expiry": expiry,
    ]

    /// The number of seconds after which a scenario gives up, because something hangs.
    private static let limit = 60.0
}

// MARK: - Many hosts, many names

extension Scenarios {
    /// Many tasks at once, spread over many hosts, while another thread opens files.
    @Sendable
    private static func hosts(_ order: Order) throws -> [String: Any] {
        let (count, hosts, port) = (try order.number("count"), try order.number("hosts"), try order.number("port"))
        let path = try order.text("path")
        return crowd(count, in: order.session()) { order.request("n\($0 % hosts).localhost", path, port: port) }
    }

    /// Many loads, each of which is redirected through many host names.
    @Sendable
    private static func rounds(_ order: Order) throws -> [String: Any] {
        let (count, hops, port) = (try order.number("count"), try order.number("hops"), try order.number("port"))
        return crowd(count, in: order.session()) { order.request("start\($0).localhost", "round/\(hops)", port: port) }
    }

    /// Tasks with a short request timeout and slow host name lookups, to a server that closes each connection.
    @Sendable
    private static func names(_ order: Order) throws -> [String: Any] {
        let (count, names, port) = (try order.number("count"), try order.number("names"), try order.number("port"))
        let lookUp = try order.number("lookup")
        let session = order.session { $0.timeoutIntervalForRequest = 3 }
        return crowd(count, in: session) { order.request("w\(lookUp).n\($0 % names).test", "close", port: port) }
    }

    private static func crowd(
        _ count: Int, _ kind: Crowd.Kind = .data, in session: URLSession, request: @escaping @Sendable (Int) -> URLRequest
    ) -> [String: Any] {
        let probe = OpenProbe()
        probe.begin()
        let crowd = Crowd(session, kind, count: count, request: request)
        let start = Usage.now
        crowd.begin()
        let tally = crowd.wait(seconds: limit)
        return tally.figures(of: count, since: start).merging(probe.end()) { $1 }
    }

    /// Requests with fast host name lookups, first alone, and then beside requests whose lookup is slow.
    @Sendable
    private static func slowName(_ order: Order) throws -> [String: Any] {
        let (count, stuck, port) = (try order.number("count"), try order.number("stuck"), try order.number("port"))
        let lookUp = try order.number("lookup")
        func others(_ letter: String) -> (tally: Crowd.Tally, start: Double) {
            let crowd = Crowd(order.session(), count: count) { order.request("\(letter)\($0).test", "ok", port: port) }
            let start = Usage.now
            crowd.begin()
            return (crowd.wait(seconds: limit), start)
        }
        // Exclude one-time initialization.
        _ = others("a")
        let alone = others("b")
        let waiting = Crowd(order.session(), count: stuck) { _ in order.request("w\(lookUp).slow.test", "ok", port: port) }
        waiting.begin()
        let beside = others("c")
        let stuckAtTheEnd = stuck - waiting.ended
        let waited = waiting.wait(seconds: limit)
        return beside.tally.figures(of: count, since: beside.start).merging([
            "alone": alone.tally.end - alone.start, "stuck_at_the_end": stuckAtTheEnd, "stuck_succeeded": waited.succeeded,
        ]) { $1 }
    }
}

// MARK: - Files

extension Scenarios {
    private static func file(_ order: Order) throws -> URL {
        let file = URL(fileURLWithPath: try order.text("folder")).appendingPathComponent("body")
        try Data(count: try order.number("size")).write(to: file)
        return file
    }

    /// Many uploads from a file, queued for the connections of a few hosts.
    @Sendable
    private static func uploads(_ order: Order) throws -> [String: Any] {
        let (count, hosts, port) = (try order.number("count"), try order.number("hosts"), try order.number("port"))
        return crowd(count, .upload(file: try file(order)), in: order.session()) {
            var request = order.request("n\($0 % hosts).localhost", "ok", port: port)
            request.httpMethod = "PUT"
            return request
        }
    }

    /// Many downloads at once, over many hosts.
    @Sendable
    private static func downloads(_ order: Order) throws -> [String: Any] {
        let (count, hosts, port) = (try order.number("count"), try order.number("hosts"), try order.number("port"))
        let size = try order.number("size")
        return crowd(count, .download(size: size), in: order.session()) {
            order.request("n\($0 % hosts).localhost", "size/\(size)", port: port)
        }
    }

    /// Many loads of one `file` URL at once.
    @Sendable
    private static func files(_ order: Order) throws -> [String: Any] {
        let file = try file(order)
        return crowd(try order.number("count"), in: order.session()) { _ in URLRequest(url: file) }
    }
}

// MARK: - Slow disks

extension Scenarios {
    /// Returns a session that stores responses and cookies in a folder.
    private static func keeping(_ order: Order) throws -> URLSession {
        let folder = URL(fileURLWithPath: try order.text("folder")).appendingPathComponent("responses")
        return order.session {
            $0.urlCache = URLCache(memoryCapacity: 4 << 20, diskCapacity: 1 << 30, directory: folder)
            // The cookies are in XDG_DATA_HOME, which the driver has set to the same folder.
            $0.httpCookieStorage = .shared
        }
    }

    /// Loads of a session without stores, first alone, and then beside a session that stores everything on a slow disk.
    @Sendable
    private static func slowDisk(_ order: Order) throws -> [String: Any] {
        let (count, kept) = (try order.number("count"), try order.number("kept"))
        let (port, other) = (try order.number("port"), try order.number("other"))
        let plain = order.session()
        func quick() -> (tally: Crowd.Tally, start: Double) {
            let crowd = Crowd(plain, count: count) { _ in order.request("127.0.0.1", "ok", port: other) }
            let start = Usage.now
            crowd.begin(atOnce: 8)
            return (crowd.wait(seconds: limit), start)
        }
        _ = quick()
        let alone = quick()
        let session = try keeping(order)
        // Each URL is loaded twice, so that the second request finds the stored response.
        let slow = Crowd(session, count: kept) { order.request("n\($0 / 2 % 7).localhost", "store/20000/\($0 / 2)", port: port) }
        let slowStart = Usage.now
        slow.begin(atOnce: 16)
        let beside = quick()
        let slowTally = slow.wait(seconds: limit)
        return beside.tally.figures(of: count, since: beside.start).merging([
            "alone": alone.tally.end - alone.start, "slowest_alone": alone.tally.latencies.max() ?? 0,
            "kept_succeeded": slowTally.succeeded, "kept_wall": slowTally.end - slowStart,
        ]) { $1 }
    }

    /// Many large responses, which are stored on a slow disk.
    @Sendable
    private static func kept(_ order: Order) throws -> [String: Any] {
        let (count, size, port) = (try order.number("count"), try order.number("size"), try order.number("port"))
        let crowd = Crowd(try keeping(order), count: count) { order.request("127.0.0.1", "store/\(size)/\($0)", port: port) }
        let start = Usage.now
        crowd.begin(atOnce: 32)
        return crowd.wait(seconds: limit).figures(of: count, since: start)
    }
}

// MARK: - Sessions beside each other

extension Scenarios {
    /// One session with a long queue for one host, and another that makes occasional requests.
    @Sendable
    private static func line(_ order: Order) throws -> [String: Any] {
        let (count, others) = (try order.number("count"), try order.number("others"))
        let (port, other) = (try order.number("port"), try order.number("other"))
        let session = order.session()
        func few(_ letter: String) -> Crowd.Tally {
            let crowd = Crowd(session, count: others) { order.request("\(letter)\($0).localhost", "ok", port: other) }
            crowd.begin(atOnce: 1)
            return crowd.wait(seconds: limit)
        }
        let alone = few("a")
        let long = Crowd(order.session(), count: count) { _ in order.request("127.0.0.1", "wait/1", port: port) }
        let start = Usage.now
        long.begin()
        let beside = few("b")
        let servedMeanwhile = long.ended
        let tally = long.wait(seconds: limit)
        return tally.figures(of: count, since: start).merging([
            "others_succeeded": beside.succeeded, "others_slowest": beside.latencies.max() ?? 0,
            "others_slowest_alone": alone.latencies.max() ?? 0, "served_meanwhile": servedMeanwhile,
        ]) { $1 }
    }

    /// One task of low priority, which is queued with a continuous stream of tasks of high priority.
    @Sendable
    private static func priority(_ order: Order) throws -> [String: Any] {
        let (count, port) = (try order.number("count"), try order.number("port"))
        let session = order.session()
        let servedBefore = Mutex(Int?.none)
        let stream = Mutex(Crowd?.none)
        let low = Crowd(
            session, count: 1, priority: URLSessionTask.lowPriority,
            afterEnd: { _ in servedBefore.withLock { $0 = stream.withLock { $0 }?.ended } },
            request: { _ in order.request("127.0.0.1", "wait/5", port: port) })
        let high = Crowd(
            session, count: count, priority: URLSessionTask.highPriority,
            afterEnd: { if $0 == 100 { low.begin() } },
            request: { _ in order.request("127.0.0.1", "wait/5", port: port) })
        stream.withLock { $0 = high }
        let start = Usage.now
        high.begin(atOnce: 24)
        let tally = high.wait(seconds: limit)
        let servedInTime = low.ended == 1
        let lowTally = low.wait(seconds: limit)
        return tally.figures(of: count, since: start).merging([
            "low_in_time": servedInTime, "low_latency": lowTally.latencies.first ?? 0,
            "served_before": servedBefore.withLock { $0 } ?? -1,
        ]) { $1 }
    }

    /// Loads that all time out at once, and how long that blocks the loop for another session.
    @Sendable
    private static func expiry(_ order: Order) throws -> [String: Any] {
        let (count, connections) = (try order.number("count"), try order.number("connections"))
        let (port, other) = (try order.number("port"), try order.number("other"))
        let resource = try order.number("resource")
        guard let url = order.request("127.0.0.1", "ok", port: other).url else { throw BenchFailure("no URL") }
        let session = order.session {
            $0.httpMaximumConnectionsPerHost = connections
            $0.timeoutIntervalForRequest = 4
            if resource > 0 { $0.timeoutIntervalForResource = Double(resource) }
        }
        let pings = Pings(order.session(), url)
        pings.begin()
        usleep(500_000)
        let calm = pings.takeSlowest()
        let crowd = Crowd(session, count: count) { _ in order.request("127.0.0.1", "never", port: port) }
        let start = Usage.now
        crowd.begin()
        // After this pause, all loads are waiting, and none has timed out.
        usleep(2_000_000)
        let beginning = pings.takeSlowest()
        let tally = crowd.wait(seconds: limit)
        let ending = pings.takeSlowest()
        let (pingCount, pingFailures) = pings.end()
        return tally.figures(of: count, since: start).merging([
            "standstill_calm": calm, "standstill_beginning": beginning, "standstill_ending": ending,
            "pings": pingCount, "pings_failed": pingFailures,
        ]) { $1 }
    }
}
