// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import LoadingModel

extension URLSession {
    /// Returns the proxies that a load of a URL would try, according to the configuration, the environment, the desktop's settings or
    /// a PAC script.
    ///
    /// A PAC script is fetched and evaluated as for a load, but nothing is sent to `url` or to a proxy. Proxies that failed within the
    /// last five minutes come last.
    ///
    /// Not in Apple's API, where `CFNetworkCopyProxiesForURL` is similar.
    ///
    /// - Parameter url: A URL with the scheme `http` or `https`.
    /// - Returns: The proxies in order, such as `http://proxy.example:3128`, without user names and passwords. The scheme is
    ///   `http`, `https`, `socks5h` or `socks4a`, or, if host names are looked up locally, `socks5` or `socks4`. nil stands for a
    ///   direct connection.
    /// - Throws: `URLError.cancelled` if the Swift task is cancelled, `URLError.cannotConnectToHost` if the settings or the script
    ///   name no usable proxy, or any error that a load of the URL would fail with before it is sent.
    public func proxies(for url: URL) async throws -> [URL?] {
        do throws(LoadError) {
            return try await service.proxies(for: url)
        } catch {
            throw ErrorTranslation.appError(error, url: url)
        }
    }
}
