// SPDX-License-Identifier: Apache-2.0

import LoadingModel
import Testing

@testable import BackgroundDaemon

/// The decision after an attempt: to end the transfer, or to retry it.
struct VerdictTests {
    private typealias Verdict = TransferMachine.Verdict

    /// The kinds of errors after which a transfer is retried, with the cause; the number of retries after refusals is limited.
    private static let again: [LoadError.Kind: Verdict] = [
        .timedOut: .again(.network), .cannotFindHost: .again(.network), .dnsLookupFailed: .again(.network),
        .cannotConnectToHost: .again(.network), .connectionLost: .again(.network), .notConnectedToInternet: .again(.network),
        .cannotLoadFromNetwork: .again(.network), .backgroundSessionDisconnected: .again(.network),
        .cannotWriteToFile: .again(.noSpace), .cannotCreateFile: .again(.noSpace), .cannotCloseFile: .again(.noSpace),
        .resourceUnavailable: .again(.other), .badServerResponse: .again(.network, isRefusal: true),
        .cannotParseResponse: .again(.network, isRefusal: true), .secureConnectionFailed: .again(.network, isRefusal: true),
    ]

    @Test(arguments: LoadError.Kind.allCases) func `every kind of error has its verdict`(kind: LoadError.Kind) {
        for refusals in [0, 7, 8, 9, .max] {
            for leavesData in [false, true] {
                var expected = Self.again[kind] ?? .failed(leavesData: leavesData)
                if case .again(_, isRefusal: true) = expected, refusals >= 8 { expected = .failed(leavesData: leavesData) }
                #expect(Verdict(kind, leavesData: leavesData, refusals: refusals) == expected, "\(refusals)")
            }
        }
    }

    @Test func `a response completes a transfer or causes a retry`() {
        let later: Set<Int> = [408, 425, 429, 502, 503, 504]
        for status in [nil] + Array(100..<600) as [Int?] {
            for refusals in [0, 7, 8, 9] {
                let comesAgain = status.map { later.contains($0) } == true && refusals < 8
                for hasFile in [false, true] {
                    let expected: Verdict = comesAgain ? .again(.server, isRefusal: true) : hasFile ? .whole : .answered
                    #expect(Verdict(status: status, hasFile: hasFile, refusals: refusals) == expected)
                }
                #expect(Verdict.asksForRetry(status, refusals) == comesAgain)
            }
        }
    }
}
