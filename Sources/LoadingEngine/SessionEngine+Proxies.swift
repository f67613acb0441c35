// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
import HTTPRules
package import LoadingModel

extension SessionEngine {
    /// Returns the proxies that a load of `url` would try, in order; nil stands for a direct connection.
    package func proxies(for url: URL) async throws(LoadError) -> [URL?] {
        let id = BackgroundLoads.next()
        let result: Result<[URL?], LoadError> = await withTaskCancellationHandler {
            do throws(LoadError) { return .success(try await proxies(for: url, id)) } catch { return .failure(error) }
        } onCancel: {
            if command(.cancel, for: id) { wake() }
        }
        return try result.get()
    }

    private func proxies(for url: URL, _ id: TaskID) async throws(LoadError) -> [URL?] {
        let order = TaskOrder(id: id, request: LoadRequest(url: url), delivery: .stream)
        // The load waits like any other, with the same timeouts, but sends no request to the URL.
        guard let load = accept(order, SilentClient()) else { throw .cancelled }
        // If the Swift task was cancelled before the load existed, the cancel command had no effect.
        if Task.isCancelled { load.cancel(producingResumeData: false) }
        do throws(LoadError) {
            var proxies: [URL?] = []
            for way in try await ProxyChoice.ways(of: load, pool) {
                proxies.append(try way.server.map { (server) throws(LoadError) in try server.url })
            }
            end(load, .success(.none))
            return proxies
        } catch {
            end(load, .failure(error))
            throw error
        }
    }

    /// Ignores events, and answers questions with the default.
    private final class SilentClient: LoadClient {
        func tell(_ event: TaskEvent) {}
        func ask(_ question: TaskQuestion, reply: @escaping @Sendable (TaskAnswer) -> Void) {
            reply(.credential(.performDefaultHandling))
        }
    }
}

extension ProxyServer {
    /// The URL that `proxyEnvironment` would use, without user and password.
    fileprivate var url: URL {
        get throws(LoadError) {
            let scheme =
                switch kind {
                case .http: "http"
                case .https: "https"
                case .socks4: looksUpHere ? "socks4" : "socks4a"
                case .socks5: looksUpHere ? "socks5" : "socks5h"
                }
            guard let url = URL(string: "\(scheme)://\(self)") else {
                throw LoadError(.cannotConnectToHost, "the proxy's host \(host.debugDescription) is not a valid host name")
            }
            return url
        }
    }
}
