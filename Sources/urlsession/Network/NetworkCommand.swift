// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import URLLoading

/// `urlsession network`: shows the machine's networks as the library sees them.
struct NetworkCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "network",
        abstract: "Shows the machine's networks as loads see them.",
        discussion: """
            Shows whether other networks can be reached; each interface with its kind and its addresses, the one that leads to other \
            networks first; the system's name servers; and the optional libraries that were found. With a URL, also the proxies that a \
            load would try, according to the environment or the desktop.
            """
    )

    @Argument(help: "A URL whose proxies are shown.")
    var address: String?

    @Flag("--json", "Show the result as JSON.")
    var json = false

    private struct Picture: Encodable {
        struct Interface: Encodable {
            let name: String
            let kind: String
            let isExpensive: Bool
            let isConstrained: Bool
            let addresses: [String]
        }

        struct Library: Encodable {
            let name: String
            let path: String?
            let failure: String?
            let advice: String?
        }

        let isSatisfied: Bool
        /// The proxies for the given URL, with "direct" for no proxy; nil if no URL was given.
        let proxies: [String]?
        let nameServers: [String]
        let interfaces: [Interface]
        let libraries: [Library]
    }

    func run() async throws {
        let proxies = try await proxies()
        let path = await NetworkPath.current()
        let picture = Picture(
            isSatisfied: path.isSatisfied, proxies: proxies, nameServers: Self.nameServers(),
            interfaces: path.interfaces.map {
                Picture.Interface(
                    name: $0.name, kind: $0.kind.rawValue, isExpensive: $0.isExpensive, isConstrained: $0.isConstrained,
                    addresses: $0.addresses
                )
            },
            libraries: SystemLibraryReport.all().map {
                Picture.Library(name: $0.name, path: $0.path, failure: $0.failure, advice: $0.advice)
            }
        )
        try StandardOutput.write(json ? JSONText.of(picture) : Self.text(picture))
    }

    private func proxies() async throws -> [String]? {
        guard let address else { return nil }
        guard let url = URL(string: address), ["http", "https"].contains(url.scheme?.lowercased()) else {
            throw ToolFailure(3, "'\(address)' is not an http or https URL")
        }
        let configuration = URLSessionConfiguration.ephemeral
        // The same setting as in the loading commands.
        configuration.appTransportSecurity = ["NSAllowsArbitraryLoads": true]
        let session = URLSession(configuration: configuration)
        defer { session.invalidateAndCancel() }
        do {
            return try await session.proxies(for: url).map { $0?.absoluteString ?? "direct" }
        } catch {
            throw ToolFailure(error)
        }
    }

    /// Returns the name servers of the system's resolver (resolv.conf(5)).
    private static func nameServers() -> [String] {
        let text = (try? String(contentsOfFile: "/etc/resolv.conf", encoding: .utf8)) ?? ""
        return text.split(whereSeparator: \.isNewline).compactMap { line in
            let words = line.split(whereSeparator: \.isWhitespace)
            return words.count > 1 && words[0] == "nameserver" ? String(words[1]) : nil
        }
    }

    private static func text(_ picture: Picture) -> String {
        let interfaces = picture.interfaces.map { interface in
            let costs = [interface.isExpensive ? "metered" : nil, interface.isConstrained ? "constrained" : nil].compactMap { $0 }
            return [interface.name, interface.kind, costs.joined(separator: " "), interface.addresses.joined(separator: " ")]
        }
        let libraries = picture.libraries.map { [$0.name, $0.path ?? "not found" + ($0.advice.map { "; \($0)" } ?? "")] }
        let proxies = picture.proxies.map { "Proxies: \($0.joined(separator: ", then "))\n" } ?? ""
        let servers = "Name servers: \(picture.nameServers.isEmpty ? "none" : picture.nameServers.joined(separator: ", "))\n"
        return (picture.isSatisfied ? "Other networks can be reached.\n" : "Other networks cannot be reached.\n")
            + proxies + servers
            + "\n" + TextTable.text(interfaces, titles: ["INTERFACE", "KIND", "COSTS", "ADDRESSES"])
            + "\n" + TextTable.text(libraries, titles: ["LIBRARY", "FOUND"])
    }
}
