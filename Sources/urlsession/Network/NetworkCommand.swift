//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import ArgumentParser
import URLLoading

/// `urlsession network`: the machine's networks as the library sees them.
struct NetworkCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "network",
        abstract: "Shows the machine's networks as loads see them.",
        discussion: """
            Whether other networks can be reached; each interface, what it is, and its addresses, first the one that leads to other \
            networks; the optional libraries that were found.
            """
    )

    @Flag(help: "Show it as JSON.")
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
        }

        let isSatisfied: Bool
        let interfaces: [Interface]
        let libraries: [Library]
    }

    func run() async throws {
        let path = await NetworkPath.current()
        let picture = Picture(
            isSatisfied: path.isSatisfied,
            interfaces: path.interfaces.map {
                Picture.Interface(
                    name: $0.name, kind: $0.kind.rawValue, isExpensive: $0.isExpensive, isConstrained: $0.isConstrained,
                    addresses: $0.addresses
                )
            },
            libraries: SystemLibraryReport.all().map { Picture.Library(name: $0.name, path: $0.path, failure: $0.failure) }
        )
        try StandardOutput.write(json ? JSONText.of(picture) : Self.text(picture))
    }

    private static func text(_ picture: Picture) -> String {
        let interfaces = picture.interfaces.map { interface in
            let costs = [interface.isExpensive ? "metered" : nil, interface.isConstrained ? "constrained" : nil].compactMap { $0 }
            return [interface.name, interface.kind, costs.joined(separator: " "), interface.addresses.joined(separator: " ")]
        }
        let libraries = picture.libraries.map { [$0.name, $0.path ?? "not found"] }
        return (picture.isSatisfied ? "Other networks can be reached.\n" : "There is no way to other networks.\n")
            + "\n" + TextTable.text(interfaces, titles: ["INTERFACE", "KIND", "COSTS", "ADDRESSES"])
            + "\n" + TextTable.text(libraries, titles: ["LIBRARY", "FOUND"])
    }
}
