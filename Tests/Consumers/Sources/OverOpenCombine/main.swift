// SPDX-License-Identifier: Apache-2.0

import Foundation
import OpenCombine
import OpenCombineFoundation
#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

let url = CommandLine.arguments.dropFirst().first.flatMap { URL(string: $0) } ?? URL(fileURLWithPath: "/")
var subscription: AnyCancellable?
let text: String = try await withCheckedThrowingContinuation { caller in
    subscription = URLSession.shared.ocombine.dataTaskPublisher(for: url).sink(
        receiveCompletion: { @Sendable in if case .failure(let error) = $0 { caller.resume(throwing: error) } },
        receiveValue: { @Sendable in caller.resume(returning: String(decoding: $0.data, as: UTF8.self)) })
}
print(text)
