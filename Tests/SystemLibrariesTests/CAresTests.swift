//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import LoadingTestKit
import SystemLibraries
import Testing

@Suite(.timeLimit(.minutes(1))) struct CAresTests {
    @Test func `name servers that say nothing are said to have said nothing`() async throws {
        let names = try await ScriptedNameServer.start { _, _ in .nothing }
        let answer = CAres.lookUp("never.test", isV6: false, servers: names.address, milliseconds: 100)
        #expect(answer == .failed("no name server answered"))
        await names.close()
    }

    @Test func `a name server that is not there is said in so many words`() throws {
        let port = try RefusingPort()
        let answer = CAres.lookUp("refused.test", isV6: false, servers: "127.0.0.1:\(port.number)", milliseconds: 5_000)
        guard case .failed(let reason) = answer else {
            Issue.record("there was an answer: \(answer)")
            return
        }
        #expect(!reason.lowercased().contains("channel") && !reason.isEmpty, "\(reason)")
    }
}
