//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation
internal import LoadingModel

extension URLSession {
    /// Which proxies a load of a URL would be tried through, as the configuration, the environment, the desktop or a script says.
    ///
    /// A script (PAC) is had and asked for that, as for a load; nothing is sent to `url` or a proxy. A proxy that failed within the last
    /// five minutes comes last.
    ///
    /// Not in Apple's API, whose `CFNetworkCopyProxiesForURL` is its like.
    ///
    /// - Parameter url: With the scheme `http` or `https`.
    /// - Returns: The proxies in their order, as `http://proxy.example:3128`, without users and passwords; the other schemes are `https`,
    ///   and `socks5h` and `socks4a`, or `socks5` and `socks4` where names are looked up here. nil is the direct way.
    /// - Throws: `URLError.cancelled` where the Swift task is cancelled, `URLError.cannotConnectToHost` where the settings, or the script, name no proxy that can be used, and what else a load of
    ///   the URL would fail with before it is sent.
    public func proxies(for url: URL) async throws -> [URL?] {
        do throws(LoadError) {
            return try await service.proxies(for: url)
        } catch {
            throw ErrorTranslation.appError(error, url: url)
        }
    }
}
