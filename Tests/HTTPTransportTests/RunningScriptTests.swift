// SPDX-License-Identifier: Apache-2.0

import LoadingEngine
import LoadingTestKit
import NIOCore
import Testing

/// Which running proxy scripts prevent others from starting.
@Suite struct RunningScriptTests {
    private let time = Watched(NIODeadline.uptimeNanoseconds(1_000_000_000_000))
    private let scripts: RunningScripts

    init() {
        scripts = RunningScripts(now: { [time] in time.read { $0 } })
    }

    private func pass(_ amount: TimeAmount) { time.change { $0 = $0 + amount } }

    @Test func `a script that runs too long counts as endless until it ends`() {
        let turn = scripts.begin()
        pass(RunningScripts.longest)
        #expect(!scripts.includesEndlessScript)
        pass(.seconds(1))
        #expect(scripts.includesEndlessScript)
        let other = scripts.begin()
        scripts.end(other)
        #expect(scripts.includesEndlessScript)
        scripts.end(turn)
        #expect(!scripts.includesEndlessScript)
    }

    @Test func `time waiting for host name lookups does not make a script endless`() {
        let turn = scripts.begin()
        scripts.pause(
            turn,
            for: {
                pass(.hours(1))
                #expect(!scripts.includesEndlessScript)
            })
        #expect(!scripts.includesEndlessScript)
        pass(RunningScripts.longest + .seconds(1))
        #expect(scripts.includesEndlessScript)
    }
}
