// SPDX-License-Identifier: Apache-2.0

import LoadingStores
import LoadingTestKit
import SystemThreads
import Testing

/// Large bodies without a spare file descriptor, in a separate process, because the budget counts all open files.
@Suite(.timeLimit(.minutes(1))) struct CacheDescriptorTests {
    @Test func `without a descriptor to spare large bodies are neither stored nor read`() async throws {
        try await SeparateProcess.run("NoSpareDescriptorScene", environment: [:])
    }
}

@Suite(.enabled(if: SeparateProcess.isCurrentSuite("NoSpareDescriptorScene")), .timeLimit(.minutes(1)))
struct NoSpareDescriptorScene {
    /// Takes all file descriptors that the budget gives to uses that can do without one.
    private func exhaustDescriptors() -> [FileReservation] {
        var reservations: [FileReservation] = []
        while let reservation = FileBudget.shared.take(.half) { reservations.append(reservation) }
        return reservations
    }

    @Test func `a stored body is found again once a descriptor is free`() throws {
        let place = try CachePlace()
        let cache = place.cache()
        let body = Sample.body(2 << 20)
        cache.put(body)
        place.settle()
        #expect(try cache.body() == body)
        place.settle()
        #expect(FileBudget.shared.usage.used == 0)
        var reservations = exhaustDescriptors()
        #expect(cache.get() == nil)
        reservations = []
        #expect(reservations.isEmpty)
        #expect(try cache.body() == body)
    }

    @Test func `a large body is not stored, and a small one is`() throws {
        let place = try CachePlace()
        let cache = place.cache()
        let (large, small) = (Sample.response("http://example.com/large"), Sample.response("http://example.com/small"))
        let reservations = exhaustDescriptors()
        cache.put(large, Sample.body(2 << 20))
        cache.put(small, Sample.body(1_000))
        place.settle()
        withExtendedLifetime(reservations) { #expect(place.files == [place.file("http://example.com/small")]) }
    }
}
