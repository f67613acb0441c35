// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Networks that appear, disappear and become expensive, as reported by the test's monitor.
@Suite(.timeLimit(.minutes(2)))
struct ConnectivityTests {
    static let ethernet = NetworkPath.Interface(name: "eth7", kind: .wired)
    static let mobile = NetworkPath.Interface(name: "wwan7", kind: .cellular, isExpensive: true)

    // MARK: Waiting

    @Test func `a task waits for a network, reports its wait once, and continues`() async throws {
        let network = TestNetwork(nil)
        let waiting = WaitingRecorder()
        try await withScenario(
            delegate: waiting,
            configure: {
                $0.networkPathMonitor = network
                $0.waitsForConnectivity = true
            }, reply: { _ in .ok("here") }
        ) { (server, session) async throws in
            let task = session.dataTask(with: server.url())
            task.resume()
            try await waiting.waitingTasks.count(reaches: 1)
            // There is still no usable network: the task continues to wait, and does not report its wait again.
            network.change(to: NetworkPath(interfaces: [Self.ethernet], isSatisfied: false))
            // This task starts after the first task's next attempt; a second report of the first task would precede its report.
            let next = session.dataTask(with: server.url())
            next.resume()
            try await waiting.waitingTasks.count(reaches: 2)
            #expect(waiting.waitingTasks.all == [task.taskIdentifier, next.taskIdentifier])
            next.cancel()
            try await waiting.ended.count(reaches: 1)
            network.change(to: .over(nil))
            network.change(to: .over(Self.ethernet))
            try await waiting.ended.count(reaches: 2)
            #expect(waiting.body.read { $0 } == Data("here".utf8))
            #expect(waiting.waitingTasks.all.count == 2 && task.error == nil)
        }
    }

    @Test func `a task that does not wait for connectivity fails at once without a network`() async throws {
        try await withScenario(configure: { $0.networkPathMonitor = TestNetwork(nil) }, reply: { _ in .ok("here") }) {
            (server, session) async throws in
            let url = server.url()
            let error = await expectFailure(.notConnectedToInternet) { try await session.data(from: url) }
            #expect(error?.failingURL == url)
            #expect(error?.networkUnavailableReason == nil)
            #expect(server.requests.isEmpty)
        }
    }

    @Test func `the request timeout is paused while a task waits, but the resource timeout is not`() async throws {
        let network = TestNetwork(nil)
        try await withScenario(
            configure: {
                $0.networkPathMonitor = network
                $0.waitsForConnectivity = true
                $0.timeoutIntervalForRequest = 0.05
                $0.timeoutIntervalForResource = 0.6
            }, reply: { _ in .ok("here") }
        ) { (server, session) async throws in
            let url = server.url()
            let clock = ContinuousClock()
            let start = clock.now
            await expectFailure(.timedOut) { try await session.data(from: url) }
            #expect(clock.now - start >= .milliseconds(600))
        }
    }

    @Test func `a waiting task can be cancelled, suspended and resumed`() async throws {
        let network = TestNetwork(nil)
        let waiting = WaitingRecorder()
        try await withScenario(
            delegate: waiting,
            configure: {
                $0.networkPathMonitor = network
                $0.waitsForConnectivity = true
            }, reply: { _ in .ok("here") }
        ) { (server, session) async throws in
            let cancelled = session.dataTask(with: server.url("/cancelled"))
            let suspended = session.dataTask(with: server.url("/suspended"))
            cancelled.resume()
            suspended.resume()
            try await waiting.waitingTasks.count(reaches: 2)
            cancelled.cancel()
            #expect((try await waiting.ended.value as? URLError)?.code == .cancelled)
            suspended.suspend()
            network.change(to: .over(Self.ethernet))
            // Another task has finished, and the suspended one has sent nothing.
            _ = try await session.data(from: server.url("/other"))
            #expect(server.requests.map(\.path) == ["/other"])
            suspended.resume()
            try await waiting.ended.count(reaches: 2)
            #expect(server.requests.map(\.path) == ["/other", "/suspended"])
        }
    }

    @Test func `a delegate that only observes waits is called for async calls`() async throws {
        let network = TestNetwork(Self.ethernet)
        let observer = WaitObserver()
        let reply: @Sendable (RecordedRequest) -> ScriptedReply = { request in
            switch request.path {
            case "/again": .redirect(307, to: "/")
            case "/login": .status(401, [("WWW-Authenticate", "NTLM"), ("WWW-Authenticate", "Basic realm=r")])
            case "/early": .raw("HTTP/1.1 103 Early Hints\r\n\r\n" + ScriptedReply.head(200, [("Content-Length", "0")]))
            default: .ok("here")
            }
        }
        try await withScenario(
            delegate: observer,
            configure: {
                $0.networkPathMonitor = network
                $0.waitsForConnectivity = true
            }, reply: reply
        ) { (server, session) async throws in
            for path in ["/", "/again", "/login", "/early"] { _ = try await session.data(from: server.url(path)) }
            var request = URLRequest(server.url("/again"), method: "POST")
            request.httpBodyStream = InputStream(data: Data("body".utf8))
            _ = try? await session.data(for: request)
            let ended = Delivered<Bool>()
            let delayed = session.dataTask(with: server.url()) { _, _, error in ended(error == nil) }
            delayed.earliestBeginDate = Date()
            delayed.resume()
            #expect(try await ended.value)
            network.change(to: .over(nil))
            async let text = session.text(server.url())
            try await observer.waitingTasks.count(reaches: 1)
            network.change(to: .over(Self.ethernet))
            #expect(try await text == "here")
        }
    }

    @Test func `thousands of waiting tasks all continue`() async throws {
        let network = TestNetwork(nil)
        let waiting = WaitingRecorder()
        try await withScenario(
            delegate: waiting,
            configure: {
                $0.networkPathMonitor = network
                $0.waitsForConnectivity = true
            }, reply: { _ in .ok("here") }
        ) { (server, session) async throws in
            for _ in 0..<2_000 { session.dataTask(with: server.url()).resume() }
            try await waiting.waitingTasks.count(reaches: 2_000)
            network.change(to: .over(Self.ethernet))
            try await waiting.ended.count(reaches: 2_000)
            #expect(waiting.ended.all.allSatisfy { $0 == nil })
            #expect(waiting.waitingTasks.all.count == 2_000)
        }
    }

    // MARK: Excluded networks

    enum Access: CaseIterable {
        case cellular, expensive, constrained, ultraConstrained

        var interface: NetworkPath.Interface {
            switch self {
            case .cellular: .init(name: "wwan7", kind: .cellular)
            case .expensive: .init(name: "eth7", kind: .wired, isExpensive: true)
            case .constrained: .init(name: "eth7", kind: .wired, isConstrained: true)
            case .ultraConstrained: .init(name: "sat7", kind: .other, isUltraConstrained: true)
            }
        }

        var reason: URLError.NetworkUnavailableReason {
            switch self {
            case .cellular: .cellular
            case .expensive: .expensive
            case .constrained: .constrained
            case .ultraConstrained: .ultraConstrained
            }
        }

        func forbid(to configuration: URLSessionConfiguration) {
            switch self {
            case .cellular: configuration.allowsCellularAccess = false
            case .expensive: configuration.allowsExpensiveNetworkAccess = false
            case .constrained: configuration.allowsConstrainedNetworkAccess = false
            case .ultraConstrained: configuration.allowsUltraConstrainedNetworkAccess = false
            }
        }

        func forbid(to request: inout URLRequest) {
            switch self {
            case .cellular: request.allowsCellularAccess = false
            case .expensive: request.allowsExpensiveNetworkAccess = false
            case .constrained: request.allowsConstrainedNetworkAccess = false
            case .ultraConstrained: request.allowsUltraConstrainedNetworkAccess = false
            }
        }
    }

    @Test(arguments: Access.allCases)
    func `a session that excludes the network fails with the reason`(access: Access) async throws {
        try await withScenario(
            configure: {
                $0.networkPathMonitor = TestNetwork(access.interface)
                access.forbid(to: $0)
            }, reply: { _ in .ok("here") }
        ) { (server, session) async throws in
            let url = server.url()
            let error = await expectFailure(.notConnectedToInternet) { try await session.data(from: url) }
            #expect(error?.networkUnavailableReason == access.reason)
            #expect(server.requests.isEmpty)
        }
    }

    @Test(arguments: Access.allCases)
    func `a request that excludes the network fails, even if a connection exists`(access: Access) async throws {
        try await withScenario(configure: { $0.networkPathMonitor = TestNetwork(access.interface) }, reply: { _ in .ok("here") })
        {
            (server, session) async throws in
            _ = try await session.data(from: server.url())
            var request = URLRequest(url: server.url("/not"))
            access.forbid(to: &request)
            let error = await expectFailure(.notConnectedToInternet) { [request] in try await session.data(for: request) }
            #expect(error?.networkUnavailableReason == access.reason)
            #expect(server.requests.map(\.path) == ["/"])
        }
    }

    @Test func `a task that excludes the current network waits for another network`() async throws {
        let network = TestNetwork(Self.mobile)
        let waiting = WaitingRecorder()
        try await withScenario(
            delegate: waiting,
            configure: {
                $0.networkPathMonitor = network
                $0.waitsForConnectivity = true
                $0.allowsCellularAccess = false
            }, reply: { _ in .ok("here") }
        ) { (server, session) async throws in
            session.dataTask(with: server.url()).resume()
            try await waiting.waitingTasks.count(reaches: 1)
            network.change(to: .over(Self.ethernet))
            #expect(try await waiting.ended.value == nil)
        }
    }

    @Test func `a redirect does not use a network that the request excludes`() async throws {
        let network = TestNetwork(Self.ethernet)
        try await withScenario(
            configure: { $0.networkPathMonitor = network },
            reply: { request in
                guard request.path == "/first" else { return .ok("here") }
                network.change(to: .over(Self.mobile))
                return ScriptedReply.redirect(302, to: "/second")
            }
        ) { (server, session) async throws in
            var request = URLRequest(url: server.url("/first"))
            request.allowsExpensiveNetworkAccess = false
            await expectFailure(.notConnectedToInternet, .networkConnectionLost) { [request] in
                try await session.data(for: request)
            }
            #expect(server.requests.map(\.path) == ["/first"])
        }
    }

    // MARK: Changes

    @Test func `a lost network fails its loads at once`() async throws {
        let network = TestNetwork(Self.ethernet)
        try await withScenario(
            configure: {
                $0.networkPathMonitor = network
                $0.waitsForConnectivity = true
            }, reply: { _ in [.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"), .stall] }
        ) { (server, session) async throws in
            var bytes = try await session.bytes(from: server.url()).0.makeAsyncIterator()
            #expect(try await bytes.next() == UInt8(ascii: "h"))
            network.change(to: .over(nil))
            await expectFailure(.networkConnectionLost) { while try await bytes.next() != nil {} }
        }
    }

    @Test func `a new address closes idle connections`() async throws {
        var interface = Self.ethernet
        interface.addresses = ["192.0.2.1"]
        let network = TestNetwork(interface)
        try await withScenario(configure: { $0.networkPathMonitor = network }, reply: { _ in .ok("here") }) {
            (server, session) async throws in
            _ = try await session.data(from: server.url())
            _ = try await session.data(from: server.url())
            #expect(server.connectionCount == 1)
            interface.addresses.append("192.0.2.2")
            network.change(to: .over(interface))
            try await server.waitForClose(0)
            _ = try await session.data(from: server.url())
            #expect(server.connectionCount == 2)
        }
    }

    // MARK: Metrics

    @Test func `metrics report the properties of the network`() async throws {
        var interface = Self.mobile
        interface.isConstrained = true
        let recorder = EventRecorder()
        try await withScenario(
            delegate: recorder, configure: { [interface] in $0.networkPathMonitor = TestNetwork(interface) },
            reply: { _ in .ok("here") }
        ) { (server, session) async throws in
            let task = session.dataTask(with: server.url())
            task.resume()
            let transaction = try #require(try await recorder.completion(of: task).metrics?.transactionMetrics.first)
            #expect(transaction.isCellular && transaction.isExpensive && transaction.isConstrained)
        }
    }

    // MARK: Unreliable monitors

    /// Loads that exclude no network start after a moment; other loads fail, because the network might be one that they exclude.
    @Test func `a monitor that never reports does not block loads`() async throws {
        try await withScenario(configure: { $0.networkPathMonitor = SilentNetwork() }, reply: { _ in .ok("here") }) {
            (server, session) async throws in
            _ = try await session.data(from: server.url())
            var request = URLRequest(url: server.url("/not"))
            request.allowsCellularAccess = false
            await expectFailure(.notConnectedToInternet) { [request] in try await session.data(for: request) }
        }
    }

    @Test func `a late first report wakes the waiting loads`() async throws {
        let network = LateNetwork()
        let waiting = WaitingRecorder()
        try await withScenario(
            delegate: waiting,
            configure: {
                $0.networkPathMonitor = network
                $0.waitsForConnectivity = true
                $0.allowsCellularAccess = false
            }, reply: { _ in .ok("here") }
        ) { (server, session) async throws in
            session.dataTask(with: server.url()).resume()
            try await waiting.waitingTasks.count(reaches: 1)
            try await network.update.value { $0 }(.over(Self.ethernet))
            #expect(try await waiting.ended.value == nil)
        }
    }

    @Test func `an invalidated session stops its monitor`() async throws {
        let network = TestNetwork(Self.ethernet)
        try await withScenario(configure: { $0.networkPathMonitor = network }, reply: { _ in .ok("here") }) {
            (server, session) async throws in
            _ = try await session.data(from: server.url())
            session.finishTasksAndInvalidate()
            _ = try await network.watchers.value { $0.isEmpty ? true : nil }
        }
    }
}

/// Reports the networks that a test sets.
final class TestNetwork: NetworkPathMonitor {
    let watchers = Watched<[Int: @Sendable (NetworkPath) -> Void]>([:])
    private let path: Watched<NetworkPath>

    init(_ interface: NetworkPath.Interface?) { path = Watched(.over(interface)) }

    func start(_ update: @escaping @Sendable (NetworkPath) -> Void) -> NetworkPathWatch {
        let number = watchers.change { watchers in
            watchers[watchers.count] = update
            return watchers.count - 1
        }
        update(path.read { $0 })
        return NetworkPathWatch { self.watchers.change { $0[number] = nil } }
    }

    func change(to new: NetworkPath) {
        path.change { $0 = new }
        for update in watchers.read({ $0.values }) { update(new) }
    }
}

private final class SilentNetwork: NetworkPathMonitor {
    func start(_ update: @escaping @Sendable (NetworkPath) -> Void) -> NetworkPathWatch { NetworkPathWatch {} }
}

private final class LateNetwork: NetworkPathMonitor {
    let update = Watched<(@Sendable (NetworkPath) -> Void)?>(nil)

    func start(_ update: @escaping @Sendable (NetworkPath) -> Void) -> NetworkPathWatch {
        self.update.change { $0 = update }
        return NetworkPathWatch {}
    }
}

private final class WaitObserver: NSObject, URLSessionTaskDelegate, Sendable {
    let waitingTasks = Delivered<Int>()

    func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask) {
        waitingTasks(task.taskIdentifier)
    }
}

final class WaitingRecorder: NSObject, URLSessionDataDelegate, Sendable {
    let waitingTasks = Delivered<Int>()
    let ended = Delivered<(any Error)?>()
    let body = Watched(Data())

    func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask) {
        waitingTasks(task.taskIdentifier)
    }
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) { body.change { $0 += data } }
    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) { ended(error) }
}
