// SPDX-License-Identifier: Apache-2.0

import BackgroundDaemon
import Foundation
import GRDB
import LoadingTestKit
import Synchronization
import Testing

/// Neither a killed process nor a full disk loses anything that was reported as durable.
@Suite(.timeLimit(.minutes(3)))
struct TransferStoreCrashTests {
    private static let order = [UInt8](repeating: 7, count: 3_000)

    /// Makes calls until the process is killed: each call adds a transfer with two parts, and its number is recorded once it is
    /// confirmed.
    private static func writeUntilKilled(in folder: String, until count: Int) throws {
        let store = try TransferStore.open(directory: folder)
        let log = Foundation.open(folder + "/told", O_WRONLY | O_CREAT | O_APPEND, 0o600)
        let told = Mutex(0)
        store.apply([.saveSession(session(1))]) { _ in }
        let next = Mutex<Int64>(0)
        let free = DispatchSemaphore(value: 200)
        while true {
            free.wait()
            let number = next.withLock { next in
                next += 1
                return next
            }
            store.apply([
                .addTransfer(transfer(number), order: order), .setPart(number, .outcome, order), .setState(number, [1]),
            ]) { result in
                guard case .success = result else { exit(3) }
                var bytes = number
                write(log, &bytes, 8)
                if told.withLock({ told in
                    told += 1
                    return told == count
                }) {
                    kill(getpid(), SIGKILL)
                }
                free.signal()
            }
        }
    }

    @Test(arguments: [1, 50, 777, 2_500])
    func `a killed process leaves everything that was durable, and no partial change`(count: Int) async throws {
        let folder = try TemporaryDirectory()
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = folder.path as String, count = count as Int] in
            try Self.writeUntilKilled(in: path, until: count)
        }
        let told = try folder.bytes("told").chunked(by: 8).map { $0.reversed().reduce(Int64(0)) { $0 << 8 | Int64($1) } }
        #expect(told.count == count)
        let store = try TransferStore.open(directory: folder.path)
        #expect(store.trouble == nil)
        let transfers = try store.load().transfers
        #expect(Set(transfers.map(\.id)).isSuperset(of: told))
        // The transfers are in order, without gaps.
        #expect(transfers.map(\.id) == Array(1...Int64(transfers.count)))
        for row in transfers {
            #expect(row.state == [1])
            #expect(try store.part(.order, of: row.id) == Self.order)
            #expect(try store.part(.outcome, of: row.id) == Self.order)
        }
    }

    @Test func `a change that does not fit on the disk fails, and the others are stored`() async throws {
        let folder = try TemporaryDirectory()
        await #expect(processExitsWith: .success) { [path = folder.path as String] () async throws in
            signal(SIGXFSZ, SIG_IGN)
            let store = try TransferStore.open(directory: path)
            try await store.applied([.saveSession(session(1))]).get()
            // No file may grow beyond 1 MiB.
            var limit = rlimit(rlim_cur: 1 << 20, rlim_max: 1 << 20)
            #expect(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0)
            let large = [UInt8](repeating: 7, count: 3 << 20)
            let release = await store.held()
            let results = Watched<[StorageFailure?]>([])
            for number in 1...9 as ClosedRange<Int64> {
                store.apply([.addTransfer(transfer(number), order: number == 5 ? large : [1])]) { result in
                    results.change { $0.append(failure(result)) }
                }
            }
            release()
            let kinds = try await results.value { $0.count == 9 ? $0 : nil }.map { $0?.kind }
            #expect(kinds == [nil, nil, nil, nil, "diskFull", nil, nil, nil, nil])
            // In total, these calls write far more than the limit of the write-ahead log.
            for number in 0..<600 { try await store.applied([.setPart(1, .outcome, Array(large.prefix(3_000 + number)))]).get() }
            store.close()
        }
        let store = try TransferStore.open(directory: folder.path)
        #expect(store.trouble == nil)
        #expect(try store.load().transfers.map(\.id) == [1, 2, 3, 4, 6, 7, 8, 9])
        #expect(try store.part(.outcome, of: 1)?.count == 3_599)
    }

    @Test func `the database shrinks when its content was removed`() async throws {
        let folder = try TemporaryDirectory()
        let store = try TransferStore.open(directory: folder.path)
        let order = [UInt8](repeating: 7, count: 20_000)
        try await store.applied([.saveSession(session(1))] + (1...1_000).map { .addTransfer(transfer($0), order: order) }).get()
        try await store.applied([.removeSession(1)]).get()
        let reader = try DatabaseQueue(path: folder.file("transfers.sqlite").path)
        // The database shrinks in small steps, between the calls.
        let pages = { try await reader.read { try Int.fetchOne($0, sql: "PRAGMA page_count") ?? 0 } }
        for _ in 0..<10_000 where try await pages() >= 1_500 { try await store.applied([]).get() }
        #expect(try await pages() < 1_500)
        try reader.close()
        store.close()
        #expect(try folder.bytes("transfers.sqlite").count < 6 << 20)
    }
}

extension [UInt8] {
    fileprivate func chunked(by size: Int) -> [[UInt8]] {
        stride(from: 0, to: count / size * size, by: size).map { [UInt8](self[$0..<$0 + size]) }
    }
}
