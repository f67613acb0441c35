// SPDX-License-Identifier: Apache-2.0

import Dispatch
import HTTPTransport
import LoadingModel
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(1))) struct FileWorkTests {
    private final class Ended: Sendable {
        let count = Atomic(0)
    }

    @Test func `a file system that does not respond leaves threads for other file systems`() async throws {
        let gate = DispatchSemaphore(value: 0)
        // The wait has a timeout, so that the test fails instead of hanging if the other file systems need these threads.
        let end = DispatchTime.now() + 20
        let ended = Ended()
        let slow = (0..<100).map { FilePlace(opening: "/slow/disk/file\($0)") }
        let all = DispatchGroup()
        for place in slow {
            all.enter()
            FileWork.submit(at: place) {
                _ = gate.wait(timeout: end)
                ended.count.add(1, ordering: .relaxed)
                all.leave()
            }
        }
        for round in 0..<100 {
            let place = FilePlace(opening: "/other/disk/file\(round)")
            let result = try await FileWork.run(at: place) { () throws(LoadError) in round }
            #expect(result == round)
        }
        #expect(ended.count.load(ordering: .relaxed) == 0)
        for _ in slow { gate.signal() }
        await withCheckedContinuation { continuation in
            all.notify(queue: .global()) { continuation.resume() }
        }
    }
}
