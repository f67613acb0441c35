// SPDX-License-Identifier: Apache-2.0

import HTTPTransport
import LoadingModel
import LoadingTestKit
import NIOCore
import NIOPosix
import Testing

/// Pools that share a budget: which pool gives up capacity, which receives it, and in what order.
@Suite(.timeLimit(.minutes(1))) struct ConnectionBudgetTests {
    private let loop = MultiThreadedEventLoopGroup.singleton.next()
    /// Notifications of the pools: `+a` that `a` has capacity, `-a` that `a` should close an idle connection.
    private let events = Watched<[String]>([])

    /// A budget of six connections, of which one pool gets at most five.
    private let six = ConnectionBudget(descriptorLimit: { 16 })

    private func pool(_ name: String, _ budget: ConnectionBudget, takes: Bool = true) async throws -> ConnectionBudget.Share {
        try await loop.submit { [loop, events] in
            budget.join(
                loop,
                made: {
                    events.change { $0.append("+\(name)") }
                    return takes
                },
                needed: { events.change { $0.append("-\(name)") } })
        }
        .get()
    }

    private func occupy(_ count: Int, _ pool: ConnectionBudget.Share) {
        for _ in 0..<count { #expect(pool.ask()) }
    }

    /// The notifications since the last call.
    private var news: [String] {
        get async throws {
            try await loop.submit {}.get()
            var news: [String] = []
            events.change { swap(&$0, &news) }
            return news
        }
    }

    @Test func `the pool with the longest idle connection gives up capacity`() async throws {
        let (a, b, c) = (try await pool("a", six), try await pool("b", six), try await pool("c", six))
        occupy(3, a)
        occupy(3, b)
        a.idle(since: 20)
        b.idle(since: 10)
        #expect(!c.ask())
        #expect(try await news == ["-b"])
        b.giveBack()
        #expect(try await news == ["+c"])
    }

    @Test func `a pool that has its full share gives up its own idle connection`() async throws {
        let (a, b) = (try await pool("a", six), try await pool("b", six))
        occupy(5, a)
        occupy(1, b)
        a.idle(since: 20)
        b.idle(since: 10)
        #expect(!a.ask())
        #expect(try await news == ["-a"])
    }

    @Test func `a waiting pool that has its full share does not block the others in the queue`() async throws {
        let (a, b, c) = (try await pool("a", six), try await pool("b", six), try await pool("c", six))
        occupy(5, a)
        occupy(1, b)
        #expect(!a.ask())
        #expect(!c.ask())
        b.giveBack()
        #expect(try await news == ["+c"])
        a.giveBack()
        #expect(try await news == ["+a"])
    }

    @Test func `two waiting pools make two other pools close connections that have been idle equally long`() async throws {
        let (a, b) = (try await pool("a", six), try await pool("b", six))
        let (c, d) = (try await pool("c", six), try await pool("d", six))
        occupy(3, a)
        occupy(3, b)
        for idling in [a, b] { idling.idle(since: 10) }
        #expect(!c.ask())
        #expect(!d.ask())
        #expect(try await news.sorted() == ["-a", "-b"])
    }

    @Test func `only as many pools are asked to close a connection as pools wait`() async throws {
        let (a, b, c) = (try await pool("a", six), try await pool("b", six), try await pool("c", six))
        occupy(3, a)
        occupy(3, b)
        a.idle(since: 10)
        #expect(!c.ask())
        b.idle(since: 20)
        b.idle(since: 5)
        #expect(try await news == ["-a"])
        a.giveBack()
        #expect(try await news == ["+c"])
    }

    @Test func `if a pool has nothing to release, the next pool is asked`() async throws {
        let (a, b, c) = (try await pool("a", six), try await pool("b", six), try await pool("c", six))
        occupy(3, a)
        occupy(3, b)
        a.idle(since: 10)
        b.idle(since: 20)
        #expect(!c.ask())
        #expect(try await news == ["-a"])
        a.hadNothingToRelease()
        #expect(try await news == ["-b"])
        b.hadNothingToRelease()
        #expect(try await news == [])
        b.idle(since: 30)
        #expect(try await news == ["-b"])
    }

    @Test func `capacity that a pool does not take goes to the next in the queue`() async throws {
        let (a, gone, c) = (try await pool("a", six), try await pool("gone", six, takes: false), try await pool("c", six))
        let b = try await pool("b", six)
        occupy(5, a)
        occupy(1, b)
        #expect(!gone.ask())
        #expect(!c.ask())
        a.giveBack()
        try await events.value { $0 == ["+gone", "+c"] ? () : nil }
        #expect(six.usage.used == 6)
    }

    @Test func `a pool that withdraws receives no capacity`() async throws {
        let (a, b, c) = (try await pool("a", six), try await pool("b", six), try await pool("c", six))
        occupy(5, a)
        occupy(1, b)
        #expect(!b.ask())
        #expect(!c.ask())
        b.withdraw()
        a.giveBack()
        #expect(try await news == ["+c"])
    }

    @Test func `when the system has no descriptors left, capacity is withheld for a moment`() async throws {
        let budget = ConnectionBudget(descriptorLimit: { 16 }, moment: .milliseconds(1))
        let (a, b) = (try await pool("a", budget), try await pool("b", budget))
        occupy(2, a)
        try await loop.submit { [events] in
            a.descriptorsRanOut()
            a.giveBack()
            if b.ask() { events.change { $0.append("too early") } }
        }
        .get()
        #expect(try await events.value { $0.first } == "+b")
        #expect(budget.usage.limit == 6)
    }

    // MARK: The pool and its dials

    @Test func `connections that have been idle equally long are closed one after the other`() async throws {
        let listener = try await LoopbackListener()
        let port = listener.port
        // A budget of three connections.
        let budget = ConnectionBudget(descriptorLimit: { 8 })
        let (c, d) = (try await pool("c", budget), try await pool("d", budget))
        let first = try await pool("first", budget)
        occupy(1, first)
        let route = Route(isSecure: false, host: "127.0.0.1", port: port)
        let made = try await loop.submit { [loop] in
            let dialer = Dialer(loop: loop, tls: TLSSession(policy: TLSPolicy()), resolver: SystemResolver(), now: { 0 })
            let pool = ConnectionPool(loop: loop, dialer: dialer, maximumConnectionsPerHost: 2, budget: budget)
            let executor = LoopExecutor(loop)
            let leases = (0..<2).map { _ in pool.acquire(route, priority: 0.5, control: LoadControl(on: executor, now: .now())) }
            return NIOLoopBound((pool: pool, leases: leases), eventLoop: loop)
        }
        .get()
        while try await loop.submit({ made.value.leases.contains { !$0.isAnswered } }).get() {}
        try await loop.submit {
            let now = NIODeadline.now()
            for lease in made.value.leases {
                let connection = try made.value.pool.take(lease)
                made.value.pool.giveBack(connection, now: now)
            }
        }
        .get()
        for (waiting, name) in [(c, "+c"), (d, "+d")] {
            #expect(!waiting.ask())
            try await events.value { $0.contains(name) ? () : nil }
        }
        try await loop.submit { made.value.pool.shutDown() }.get()
        try await listener.close()
    }

    @Test func `if the first address of a host refuses, the second address gets its capacity`() async throws {
        let listener = try await LoopbackListener()
        let port = listener.port
        let resolver = ScriptedResolver(
            v4: .success([
                try SocketAddress(ipAddress: "127.0.0.2", port: port), try SocketAddress(ipAddress: "127.0.0.1", port: port),
            ]),
            v6: .failure(LoadError(.cannotFindHost, "none"))
        )
        // A budget of three connections; an attempt without a reservation would otherwise try again only after an hour.
        let budget = ConnectionBudget(descriptorLimit: { 8 }, moment: .hours(1))
        let (own, other) = (try await pool("own", budget), try await pool("other", budget))
        occupy(2, other)
        occupy(1, own)
        let done = Watched<[Result<String?, LoadError>]>([])
        try await loop.submit { [loop] in
            let dialer = Dialer(loop: loop, tls: TLSSession(policy: TLSPolicy()), resolver: resolver, now: { 0 })
            _ = dialer.dial(Route(isSecure: false, host: "host.example", port: port), room: own) { result in
                done.change { $0.append(result.map(\.facts.remoteAddress)) }
                try? result.get().channel.close(promise: nil)
            }
        }
        .get()
        #expect(try await done.value { $0.first }.get() == "127.0.0.1")
        try await listener.close()
    }
}
