//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import LoadingModel
import NIOCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// What went wrong in a dial, address by address, and what it comes to in the end.
struct DialFailures {
    var lookups: [LoadError] = []
    var attempts: [(address: SocketAddress, error: any Error)] = []

    var areAllUnreachable: Bool {
        !attempts.isEmpty && attempts.allSatisfy { [ENETUNREACH, ENETDOWN].contains(Self.code($0.error)) }
    }

    /// Whether the process, or the system, had no descriptor for a socket.
    static func isForWantOfDescriptors(_ error: LoadError) -> Bool { error.cause.map { isForWantOfDescriptors($0) } ?? false }

    static func isForWantOfDescriptors(_ error: any Error) -> Bool {
        (error as? IOError).map { [EMFILE, ENFILE].contains($0.errnoCode) } ?? false
    }

    func error(for route: Route, to peer: ServerName, hasNoNetwork: Bool) -> LoadError {
        guard let last = attempts.last else {
            // "Nobody could tell" says more than "this family has none".
            return lookups.first { $0.kind != .cannotFindHost } ?? lookups.first
                ?? LoadError(.cannotFindHost, "looking up \(peer.host): it has no address")
        }
        let causes = attempts.prefix(4).map { "\(Self.name($0.address)): \(Self.reason($0.error))" }
        let more = attempts.count > 4 ? ", and \(attempts.count - 4) more" : ""
        // Where the host is an address, that is said once.
        let isAddress = attempts.count == 1 && last.address.ipAddress == peer.host
        let place = isAddress ? "" : "\(peer.host):\(peer.port) at "
        let message = "connecting to \(route.proxy == nil ? "" : "the proxy ")\(place)\(causes.joined(separator: ", "))\(more)"
        // What the app can do something about is not hidden by what it cannot.
        let cause = attempts.first { [EMFILE, ENFILE].contains(Self.code($0.error)) }?.error ?? last.error
        return LoadError(kind(hasNoNetwork), message, cause: cause)
    }

    private func kind(_ hasNoNetwork: Bool) -> LoadError.Kind {
        if areAllUnreachable && hasNoNetwork { return .notConnectedToInternet }
        let isTimeout = attempts.allSatisfy { Self.code($0.error) == ETIMEDOUT }
        return isTimeout ? .timedOut : .cannotConnectToHost
    }

    private static func code(_ error: any Error) -> CInt? {
        if let error = error as? IOError { return error.errnoCode }
        if case .connectTimeout = error as? ChannelError { return ETIMEDOUT }
        return nil
    }

    private static func reason(_ error: any Error) -> String {
        (error as? SocketPreparation.Refusal)?.reason ?? code(error).map(PrintableFailure.text) ?? PrintableFailure.text(error)
            ?? "the connection failed"
    }

    private static func name(_ address: SocketAddress) -> String {
        let host = address.ipAddress ?? address.pathname ?? "\(address)"
        let port = address.port.map { ":\($0)" } ?? ""
        return host.contains(":") ? "[\(host)]\(port)" : "\(host)\(port)"
    }
}
