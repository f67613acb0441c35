// SPDX-License-Identifier: Apache-2.0

import LibC
import LoadingModel
import NIOCore

/// The failures of a dial, address by address, and the resulting error.
struct DialFailures {
    var lookups: [LoadError] = []
    var attempts: [(address: SocketAddress, error: any Error)] = []
    /// The reason why an address was not tried.
    var objection: LoadError?

    /// Whether a missing network may be the cause: no name server answered, or no address was reachable.
    var mayBeOffline: Bool {
        guard attempts.isEmpty else {
            return attempts.allSatisfy { [ENETUNREACH, ENETDOWN].contains(Self.code($0.error)) }
        }
        return lookups.allSatisfy(\.isUnansweredLookup)
    }

    /// Whether the process, or the system, had no descriptor for a socket.
    static func isOutOfDescriptors(_ error: LoadError) -> Bool { error.cause.map { isOutOfDescriptors($0) } ?? false }

    static func isOutOfDescriptors(_ error: any Error) -> Bool {
        (error as? IOError).map { [EMFILE, ENFILE].contains($0.errnoCode) } ?? false
    }

    func error(for route: Route, to peer: ServerName, isOffline: Bool) -> LoadError {
        // An objection comes first, because the app can act on it.
        if let objection, attempts.isEmpty { return objection }
        guard let last = attempts.last else {
            // A lookup without an answer explains more than a lookup that found no address of its family.
            var found =
                lookups.first { $0.kind != .cannotFindHost } ?? lookups.first
                ?? LoadError(.cannotFindHost, "looking up \(peer.host): it has no address")
            let words = "looking up "
            if route.proxy != nil, found.message.hasPrefix(words + peer.host + ":") {
                found.message = words + "the proxy " + found.message.dropFirst(words.count)
            }
            guard isOffline else { return found }
            return LoadError(.notConnectedToInternet, "there is no network: \(found.message)", cause: found)
        }
        let causes = attempts.prefix(4).map { "\(Self.name($0.address)): \(Self.reason($0.error))" }
        let more = attempts.count > 4 ? ", and \(attempts.count - 4) more" : ""
        // If the host is an address, the message does not repeat the address.
        let isAddress = attempts.count == 1 && last.address.ipAddress == peer.host
        let place = isAddress ? "" : "\(peer.host):\(peer.port) at "
        let message = "connecting to \(route.proxy == nil ? "" : "the proxy ")\(place)\(causes.joined(separator: ", "))\(more)"
        let cause = attempts.first { [EMFILE, ENFILE].contains(Self.code($0.error)) }?.error ?? last.error
        return LoadError(kind(isOffline), message, cause: cause)
    }

    private func kind(_ isOffline: Bool) -> LoadError.Kind {
        if isOffline { return .notConnectedToInternet }
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
