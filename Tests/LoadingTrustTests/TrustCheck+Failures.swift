// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTrust

extension TrustCheck {
    /// Returns why a chain does not prove the identity of a server; nil if it does.
    @concurrent
    static func failure(
        of chain: [[UInt8]], host: String, roots: [Data], extraRoots: [Data] = [], date: Date? = nil,
        requiresStrongKeys: Bool = false, pins: TrustPins = .none
    ) async -> TrustFailure? {
        var question = TrustQuestion(chain.map { Data($0) }, hosts: [host])
        question.roots = roots
        question.extraRoots = extraRoots
        question.date = date
        question.requiresStrongKeys = requiresStrongKeys
        question.pins = pins
        return await judge(question).failure
    }

    static func failure(
        ofTrusted chain: [[UInt8]], host: String, requiresStrongKeys: Bool, pins: TrustPins
    ) -> TrustFailure? {
        failure(ofTrusted: chain.map { Data($0) }, host: host, requiresStrongKeys: requiresStrongKeys, pins: pins)
    }
}
