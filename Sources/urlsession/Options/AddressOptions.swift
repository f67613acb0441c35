// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation

/// The options for the URLs to load, and for how many are loaded at once.
struct AddressOptions: ParsableArguments {
    @Option("--url <url>", "A URL, like one without an option.")
    var named: [String] = []

    @Option("--input-file <file>", "Also load the URLs in this file, one per line; - for standard input.")
    var lists: [String] = []

    @Flag(
        "-g --globoff",
        "Do not expand braces and brackets in URLs; by default, {a,b}, [1-9], [01-20:5] and [a-z] stand for several URLs.")
    var globOff = false

    @Option("--proto-default <protocol>", "The protocol of a URL without a scheme; http by default.")
    var scheme: String?

    @Flag("--disallow-username-in-url", "Exit with 67 if a URL contains a user name.")
    var refusesUsers = false

    @Flag("-Z --parallel", "Load several URLs at once, without progress; with --repeat, send several requests at once.")
    var parallel = false

    @Option("--parallel-max <count>", "How many at once, at most 300; by default 50, with --repeat 1.")
    var maximumParallel: Int?

    /// The value of `--parallel-max`, if curl would accept it; curl ignores other values.
    var most: Int? { maximumParallel.flatMap { 1...300 ~= $0 || $0 > 300 && !parallel ? $0 : nil } }

    @Flag("--fail-early", "Load no more URLs after one that failed.")
    var failsEarly = false

    func validate() throws {
        try refuse(if: lists.count(where: { $0 == "-" }) > 1, "Standard input can be read only once.")
    }

    /// Returns all loads in order.
    ///
    /// - Parameters:
    ///   - addresses: The URLs of the command line.
    ///   - uploads: The files to upload, one per URL; globs in their names are expanded, too.
    /// - Throws: If a glob is malformed, or there are too many URLs.
    /// - Returns: At most ``AddressGlob/most`` loads.
    func orders(_ addresses: [String], uploads: [String] = []) throws(ToolFailure) -> [LoadOrder] {
        var listed: [String] = []
        for list in lists { listed += try Self.addresses(in: list) }
        var orders: [LoadOrder] = []
        for (index, address) in (addresses + named + listed).enumerated() {
            let isPlain = globOff || index >= addresses.count + named.count
            let files: [String?] = index < uploads.count ? try expanded(uploads[index], isPlain: globOff).map(\.text) : [nil]
            for file in files {
                for one in try expanded(address, isPlain: isPlain) {
                    guard orders.count < AddressGlob.most else { throw AddressGlob.tooMany }
                    try check(one.text)
                    let start = RequestOptions.hasScheme(one.text) ? nil : scheme.map { $0 + "://" }
                    orders.append(
                        LoadOrder(
                            address: (start ?? "") + one.text, argument: index, number: orders.count, parts: one.parts,
                            upload: file))
                }
            }
        }
        return orders
    }

    private func expanded(_ text: String, isPlain: Bool) throws(ToolFailure) -> [AddressGlob.Address] {
        // In data URLs, braces and brackets are content.
        guard !isPlain, !text.lowercased().hasPrefix("data:") else { return [.init(text: text, parts: [])] }
        return try AddressGlob(text).addresses()
    }

    private func check(_ address: String) throws(ToolFailure) {
        guard refusesUsers, RequestOptions.hidingUser(address) != address else { return }
        throw ToolFailure(67, "a URL contains a user name (--disallow-username-in-url)")
    }

    /// Returns the URLs of a file; empty lines and lines that begin with `#` are ignored.
    static func addresses(in list: String) throws(ToolFailure) -> [String] {
        String(decoding: try InputFile.take(list), as: UTF8.self).split(whereSeparator: \.isNewline)
            .map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty && !$0.hasPrefix("#") }
    }
}

/// A load of a command.
struct LoadOrder: Sendable {
    let address: String
    /// The index of the load's URL on the command line.
    let argument: Int
    /// The index of the load.
    let number: Int
    /// The values of the URL's globs.
    let parts: [String]
    let upload: String?

    /// Replaces `#1` in a file name with the value of the first glob, and so on.
    func name(_ text: String) -> String {
        guard !parts.isEmpty, text.contains("#") else { return text }
        var name = ""
        var rest = text[...]
        while let next = rest.popFirst() {
            let digits = next == "#" ? rest.prefix { $0.isASCII && $0.isNumber } : ""
            if let number = Int(digits), parts.indices.contains(number - 1) {
                name += parts[number - 1]
                rest = rest[digits.endIndex...]
            } else {
                name.append(next)
            }
        }
        return name
    }
}
