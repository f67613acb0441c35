//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import HTTPTransport
import LoadingModel
import LoadingTestKit
import NIOCore
import SystemThreads
import Testing

/// Who has room for a file, and who gets it next.
@Suite(.timeLimit(.minutes(1))) struct FileBudgetTests {
    /// Six files, of which three are for loads that may wait for a connection.
    private let six = FileBudget(descriptorLimit: { 16 })
    /// Who was given room, in order, and the room.
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

    @Test func `those that may wait for a connection leave half to those that have one`() {
        let early = (0..<6).compactMap { _ in six.take(.half) }
        #expect(early.count == 3)
        #expect(fill().count == 3)
        #expect(six.usage.used == 3)
    }

    @Test func `several descriptors are there together or not at all`() {
        let four = six.take(.whole, count: 4)
        #expect(six.take(.whole, count: 3) == nil)
        #expect(six.take(.half, count: 4) == nil)
        withExtendedLifetime(four) { #expect(six.usage.used == 4) }
    }

    @Test func `room that is given back goes to those with a connection first, and then in order`() {
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

    @Test func `those without a connection have a turn after seven with one`() {
        let fifteen = FileBudget(descriptorLimit: { 40 })
        var rooms = (0..<15).compactMap { _ in fifteen.take(.whole) }
        for (part, name) in [(FileBudget.Part.half, "half")] + (1...9).map({ (.whole, "\($0)") }) {
            _ = fifteen.ask(part) { [given] room in given.change { $0.append((name, room)) } }
        }
        rooms.removeLast(9)
        #expect(names == (1...7).map { "\($0)" } + ["half", "8"])
        rooms = []
    }

    @Test func `room that the app made by raising the limit is first for those that wait`() {
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

    @Test func `who left the line is passed over`() throws {
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

    /// A load that asks for room for its file.
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
        // As loads do: otherwise there are moments between a look and a wait.
        Task(executorPreference: load.executor) { [six, given] in
            let room = try await load.room(six)
            given.change { $0.append((name, room)) }
        }
    }

    private func wait(forWaiting count: Int) async { while six.usage.waiting != count { await Task.yield() } }

    @Test func `a load that is suspended in line lets the next have its turn, and begins again`() async throws {
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

    @Test func `a load that is cancelled in line leaves it`() async throws {
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
