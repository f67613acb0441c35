//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import ArgumentParser
import Foundation

/// The options that say which URLs are loaded, and how many at once.
struct AddressOptions: ParsableArguments {
    @Option(name: .customLong("url"), help: "A URL, as one that no option comes before.")
    var named: [String] = []

    @Option(
        name: .customLong("input-file"),
        help: ArgumentHelp("Load the URLs of this file, too, one a line; - for standard input.", valueName: "file"),
        completion: .file())
    var lists: [String] = []

    @Flag(
        name: [.short, .customLong("globoff")],
        help: "Take braces and brackets in a URL as they are: otherwise {a,b}, [1-9], [01-20:5] and [a-z] stand for several URLs."
    )
    var globOff = false

    @Option(
        name: .customLong("proto-default"),
        help: ArgumentHelp("The protocol of a URL without a scheme; http.", valueName: "protocol"))
    var scheme: String?

    @Flag(name: .customLong("disallow-username-in-url"), help: "Exit with 67 where a URL names a user.")
    var refusesUsers = false

    @Flag(
        name: [.customShort("Z"), .long],
        help: "Load several URLs at once, and show no progress; with --repeat, several requests.")
    var parallel = false

    @Option(
        name: .customLong("parallel-max"),
        help: ArgumentHelp("How many at once, at most 300; 50, with --repeat 1.", valueName: "count"))
    var mostAtOnce: Int?

    /// What curl does not take it passes over.
    var most: Int? { mostAtOnce.flatMap { 1...300 ~= $0 || $0 > 300 && !parallel ? $0 : nil } }

    @Flag(name: .customLong("fail-early"), help: "Of several URLs load none after one that failed.")
    var failsEarly = false

    func validate() throws {
        if lists.count(where: { $0 == "-" }) > 1 { throw ValidationError("Standard input can be read once.") }
    }

    /// All loads, in their order.
    ///
    /// - Parameters:
    ///   - addresses: The URLs of the command line.
    ///   - uploads: The file that each sends; globs are for these, too.
    /// - Throws: Where a glob makes no sense, or stands for too many.
    /// - Returns: At most ``AddressGlob/most``.
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
                    orders.append(
                        LoadOrder(
                            address: scheme.map { Self.adding($0, to: one.text) } ?? one.text, argument: index,
                            number: orders.count,
                            parts: one.parts, upload: file))
                }
            }
        }
        return orders
    }

    private func expanded(_ text: String, isPlain: Bool) throws(ToolFailure) -> [AddressGlob.Address] {
        // Braces and brackets are content there.
        guard !isPlain, !text.lowercased().hasPrefix("data:") else { return [.init(text: text, parts: [])] }
        return try AddressGlob(text).addresses()
    }

    private func check(_ address: String) throws(ToolFailure) {
        guard refusesUsers, RequestOptions.hidingUser(address) != address else { return }
        throw ToolFailure(67, "a URL names a user (--disallow-username-in-url)")
    }

    private static func adding(_ scheme: String, to address: String) -> String {
        let hasScheme =
            RequestOptions.schemeEnd(address) != nil || ["data:", "file:"].contains { address.lowercased().hasPrefix($0) }
        return hasScheme ? address : "\(scheme)://\(address)"
    }

    /// Empty lines and those that begin with a `#` are passed over.
    static func addresses(in list: String) throws(ToolFailure) -> [String] {
        String(decoding: try InputFile.take(list), as: UTF8.self).split(whereSeparator: \.isNewline)
            .map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty && !$0.hasPrefix("#") }
    }
}

/// One load of several.
struct LoadOrder: Sendable {
    let address: String
    /// Which URL of the command line it comes from, from 0 on.
    let argument: Int
    /// Which load it is, from 0 on.
    let number: Int
    /// What the globs of the URL stand for in this one.
    let parts: [String]
    let upload: String?

    /// A file's name in which `#1` stands for what the first glob does.
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
