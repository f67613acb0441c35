// SPDX-License-Identifier: Apache-2.0

import HTTPTransport
import LoadingModel
import LoadingTestKit
import NIOCore
import SystemThreads
import Testing

/// Which loads get capacity for a file, and in what order.
@Suite(.timeLimit(.minutes(1))) struct FileBudgetTests {
    /// A budget of six files, of which loads that might still wait for a connection get at most three.
    private let six = FileBudget(descriptorLimit: { 16 })
    /// The names of those that got capacity, in order, with the capacity.
    private let given = Watched<[(name: String, room: FileReservation)]>([])

    private var names: [String] { given.read { $0.map(\.name) } }

    private func ask(_ part: FileBudget.Part, _ name: String) -> FileBudget.Ticket? {
        switch six.ask(part, { [given] room in given.change { $0.append((name, room)) } }) {
        case .queued(let place): return place
        case .room(let room):
            given.change { $0.append((name, room)) }
            return nil
        }
    }

    private func fill() -> [FileReservation] { (0..<6).compactMap { _ in six.take(.whole) } }

    @Test func `loads that might still wait for a connection get at most half of the capacity`() {
        let early = (0..<6).compactMap { _ in six.take(.half) }
        #expect(early.count == 3)
        #expect(fill().count == 3)
        #expect(six.usage.used == 3)
    }

    @Test func `several descriptors are granted together or not at all`() {
        let four = six.take(.whole, count: 4)
        #expect(six.take(.whole, count: 3) == nil)
        #expect(six.take(.half, count: 4) == nil)
        withExtendedLifetime(four) { #expect(six.usage.used == 4) }
    }

    @Test func `released capacity is granted to loads with a connection first, and then in order`() {
        var rooms = fill()
        for (part, name) in [(FileBudget.Part.half, "a"), (.whole, "b"), (.half, "c"), (.whole, "d")] {
            #expect(ask(part, name) != nil)
        }
        #expect(names == [])
        rooms.removeLast()
        #expect(names == ["b"])
        rooms.removeLast(3)
        #expect(names == ["b", "d", "a", "c"])
        #expect(six.usage.used == 6)
    }

    @Test func `after seven loads with a connection, a load without a connection has its turn`() {
        let fifteen = FileBudget(descriptorLimit: { 40 })
        var rooms = (0..<15).compactMap { _ in fifteen.take(.whole) }
        for (part, name) in [(FileBudget.Part.half, "half")] + (1...9).map({ (.whole, "\($0)") }) {
            _ = fifteen.ask(part) { [given] room in given.change { $0.append((name, room)) } }
        }
        rooms.removeLast(9)
        #expect(names == (1...7).map { "\($0)" } + ["half", "8"])
        rooms = []
    }

    @Test func `capacity from a raised limit goes to waiting loads first`() {
        let limit = Watched(16)
        let budget = FileBudget(descriptorLimit: { limit.read { $0 } })
        let rooms = (0..<6).compactMap { _ in budget.take(.whole) }
        let took = { [given] (name: String) in
            { @Sendable (room: FileReservation) in given.change { $0.append((name, room)) } }
        }
        guard case .queued = budget.ask(.whole, took("first")) else { return #expect(Bool(false)) }
        limit.change { $0 = 24 }
        guard case .queued = budget.ask(.whole, took("second")) else { return #expect(Bool(false)) }
        #expect(names == ["first", "second"])
        #expect(rooms.count == 6)
    }

    @Test func `a load that left the queue is skipped`() throws {
        var rooms = fill()
        let first = try #require(ask(.whole, "a"))
        #expect(ask(.whole, "b") != nil)
        six.leave(first)
        rooms.removeLast()
        #expect(names == ["b"])
        rooms = []
        given.change { $0 = [] }
        #expect(six.usage.used == 0)
        #expect(six.usage.waiting == 0)
    }

    // MARK: Loads

    /// A load that requests capacity for its file.
    private actor Load {
        nonisolated let executor: LoopExecutor
        nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
        private let control: LoadControl

        init(_ executor: LoopExecutor) {
            self.executor = executor
            control = LoadControl(on: executor, now: .now())
        }

        func room(_ budget: FileBudget) async throws -> FileReservation { try await control.reserveFile(.whole, of: budget) }
        func suspend() { control.suspend() }
        func resume() { control.resume(now: .now()) }
        func cancel() { control.abort(.cancelled) }
        var isOnHold: Bool { control.isOnHold }
    }

    private func start(_ load: Load, _ name: String) -> Task<Void, any Error> {
        // The task runs on the loop, as loads do; otherwise, another thread could intervene between a check and the wait.
        Task(executorPreference: load.executor) { [six, given] in
            let room = try await load.room(six)
            given.change { $0.append((name, room)) }
        }
    }

    private func wait(forWaiting count: Int) async { while six.usage.waiting != count { await Task.yield() } }

    @Test func `a suspended load yields its turn, and queues again when it is resumed`() async throws {
        let executor = LoopDirectory.next()
        let (first, second) = (Load(executor), Load(executor))
        var rooms = fill()
        let tasks = [start(first, "first")]
        await wait(forWaiting: 1)
        let others = [start(second, "second")]
        await wait(forWaiting: 2)
        #expect(await first.isOnHold)
        await first.suspend()
        rooms.removeLast()
        try await given.value { $0.isEmpty ? nil : () }
        #expect(names == ["second"])
        await first.resume()
        rooms = []
        for task in tasks + others { try await task.value }
        #expect(names == ["second", "first"])
        #expect(await !first.isOnHold)
        given.change { $0 = [] }
        #expect(six.usage.used == 0)
    }

    @Test func `a cancelled load leaves the queue`() async throws {
        let load = Load(LoopDirectory.next())
        let rooms = fill()
        let task = start(load, "it")
        await wait(forWaiting: 1)
        await load.cancel()
        await #expect(throws: LoadError.self) { try await task.value }
        #expect(six.usage.waiting == 0)
        withExtendedLifetime(rooms) { #expect(six.usage.used == 6) }
    }
}
