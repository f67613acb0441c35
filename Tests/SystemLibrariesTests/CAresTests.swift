// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import SystemLibraries
import Testing

#if canImport(Glibc)
import Glibc
#endif

/// Queries to name servers, without a session.
@Suite(.timeLimit(.minutes(2))) struct CAresTests {
    @Test func `a thread suspended for longer than the timeout gives up`() async throws {
        let library = try PreloadedLibrary(source: LeapingClock.source)
        try await SeparateProcess.run("LeapingClock", environment: library.environment.mapValues { $0 })
    }

    @Test func `silent name servers are reported as such`() async throws {
        let names = try await ScriptedNameServer.start { _, _ in .nothing }
        let answer = CAres.lookUp("never.test", isV6: false, servers: names.address, milliseconds: 100)
        #expect(answer == .failed("no name server answered"))
        await names.close()
    }

    @Test func `an unreachable name server is reported in plain words`() throws {
        let port = try RefusingPort()
        let answer = CAres.lookUp("refused.test", isV6: false, servers: "127.0.0.1:\(port.number)", milliseconds: 5_000)
        guard case .failed(let reason) = answer else {
            Issue.record("the lookup succeeded: \(answer)")
            return
        }
        #expect(!reason.lowercased().contains("channel") && !reason.isEmpty, "\(reason)")
    }
}

/// On a thread that enables this, each reading of the clock advances it by 40 s, as if the thread had been suspended.
@Suite(.enabled(if: SeparateProcess.isCurrentSuite("LeapingClock")), .timeLimit(.minutes(1)))
struct LeapingClock {
    static let source = #"""
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <time.h>

        static __thread int leaps;
        static __thread long seconds;
        void clock_leap(int does) { leaps = does; }
        int clock_gettime(clockid_t clock, struct timespec *time) {
            static int (*real)(clockid_t, struct timespec *);
            if (real == NULL) *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
            int result = real(clock, time);
            if (leaps && clock == CLOCK_MONOTONIC) time->tv_sec += seconds += 40;
            return result;
        }
        """#

    @Test func `a query to a name server that never replies ends`() throws {
        // This socket receives datagrams that the test never reads.
        let server = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        defer { close(server) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let status = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(server, $0, length) == 0 && getsockname(server, $0, &length) == 0
            }
        }
        try #require(status)
        let port = UInt16(bigEndian: address.sin_port)
        typealias Leap = @convention(c) (CInt) -> Void
        let leap = try #require(PreloadedLibrary.function("clock_leap", as: Leap.self))
        leap(1)
        let answer = CAres.lookUp("a.test", isV6: false, servers: "127.0.0.1:\(port)")
        leap(0)
        guard case .failed = answer else {
            Issue.record("\(answer)")
            return
        }
    }
}
