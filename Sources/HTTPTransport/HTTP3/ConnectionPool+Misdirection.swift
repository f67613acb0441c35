// SPDX-License-Identifier: Apache-2.0

package import LoadingModel

extension ConnectionPool {
    /// Makes the shared connection with these facts take no more requests; its current exchanges may still get their responses.
    package func retire(_ facts: ConnectionFacts) {
        entries.values.first { $0.connection?.facts === facts }?.connection?.giveUp()
    }
}
