//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import FoundationEssentials
import HTTPRules
package import LoadingModel

extension SessionEngine {
    /// The proxies that a load of `url` would be tried through, in their order; nil is none.
    package func proxies(for url: URL) async throws(LoadError) -> [URL?] {
        let order = TaskOrder(id: BackgroundLoads.next(), request: LoadRequest(url: url), delivery: .stream)
        // Waits as loads do, for as long as loads do, and sends nothing.
        guard let load = accept(order, Nobody()) else { throw .cancelled }
        do throws(LoadError) {
            let ways = try await ProxyChoice.ways(of: load)
            end(load, .success(.none))
            return ways.map(\.url)
        } catch {
            end(load, .failure(error))
            throw error
        }
    }

    /// Whom nothing is told, and who has no answers.
    private final class Nobody: LoadClient {
        func tell(_ event: TaskEvent) {}
        func ask(_ question: TaskQuestion, reply: @escaping @Sendable (TaskAnswer) -> Void) {
            reply(.credential(.performDefaultHandling))
        }
    }
}

extension ProxyWay {
    /// Without user and password; nil for the direct way.
    fileprivate var url: URL? {
        guard let server else { return nil }
        let scheme =
            switch server.kind {
            case .http: "http"
            case .https: "https"
            case .socks4: "socks4"
            case .socks5: "socks5"
            }
        return URL(string: "\(scheme)://\(server)")
    }
}
