// SPDX-License-Identifier: Apache-2.0

import LoadingModel

@testable import NetworkPaths

/// Reading a message of the kernel ends, a part of a message results in the first results of the whole, and the stored state is
/// limited.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzNetlink(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
    let input = Array(UnsafeBufferPointer(start: data, count: size))
    let messages = read(input)
    precondition(messages.count <= size / 16, "\(messages.count) messages in \(size) bytes")
    for count in [size / 2, size - size % 16, max(0, size - 1)] {
        let part = read(Array(input.prefix(count)))
        precondition(messages.starts(with: part), "\(count) of \(size) bytes say something else")
    }
    var table = InterfaceTable()
    for message in messages {
        if case .failed(_, let code) = message { precondition(code > 0, "invalid code \(code)") }
        if case .address(_, let bytes, _, _) = message { precondition(bytes.count == 4 || bytes.count == 16, "invalid address") }
        _ = table.take(message)
        // A message that is applied again changes nothing. Routes are not stored.
        if message != .routesChanged { precondition(!table.take(message), "\(message) changed something twice") }
    }
    precondition(table.links.count <= InterfaceTable.limit && table.links.count <= messages.count, "\(table.links.count) links")
    let routes = table.links.keys.sorted()
    let path = table.path(defaultRoutes: routes, facts: { _, _ in (.other, false) }, text: { "\($0)" })
    precondition(path.isSatisfied == !routes.isEmpty && path.interfaces.count <= table.links.count, "wrong path")
    precondition(path.localAddresses.isSuperset(of: path.interfaces.flatMap(\.addresses)), "missing local addresses")
    return 0
}

private func read(_ bytes: [UInt8]) -> [NetlinkReader.Message] {
    var reader = NetlinkReader(bytes)
    var messages: [NetlinkReader.Message] = []
    while let message = reader.next() { messages.append(message) }
    return messages
}
