// SPDX-License-Identifier: Apache-2.0

package import Foundation
package import LoadingEngine
internal import LoadingModel

extension URLSessionConfiguration {
    /// The clock of the configuration's sessions, for tests; nil for the system's clocks.
    package var steppedClock: SteppedClock? {
        get { get { $0.clock } }
        set { set { $0.clock = newValue } }
    }

    /// The roots of the configuration's sessions in DER, as if they were the system's, for tests.
    package var systemTrustRoots: [Data] {
        get { get { $0.policy.trustRootsAreTheSystems ? $0.tlsTrustRoots : [] } }
        set {
            set {
                $0.tlsTrustRoots = newValue
                $0.policy.trustRootsAreTheSystems = !newValue.isEmpty
            }
        }
    }
}

extension URLSession {
    /// Waits a number of seconds, as measured by the session's clock.
    ///
    /// `isTimeout` marks a wait that is usually cancelled before it ends.
    ///
    /// - Throws: `CancellationError` if the Swift task is cancelled first.
    func wait(_ seconds: Double, isTimeout: Bool = false) async throws {
        guard let clock = equipment.memory.stores.clock else { return try await Task.sleep(for: .seconds(seconds)) }
        try await clock.sleep(for: seconds, isTimeout: isTimeout)
    }

    /// Waits a number of seconds, but no longer than the session accepts tasks.
    ///
    /// - Throws: A `URLError` with the code `cancelled` if the session is invalidated; `CancellationError` if the Swift task is
    ///   cancelled first.
    func waitWhileValid(_ seconds: Double, for url: URL?) async throws {
        let waiting = Task { try await wait(seconds) }
        defer { waiting.cancel() }
        guard let number = registry.addWait({ waiting.cancel() }) else { throw ErrorTranslation.appError(.cancelled, url: url) }
        defer { registry.removeWait(number) }
        do {
            try await withTaskCancellationHandler {
                try await waiting.value
            } onCancel: {
                waiting.cancel()
            }
        } catch {
            throw registry.isClosed && !Task.isCancelled ? ErrorTranslation.appError(.cancelled, url: url) : error
        }
    }
}
