//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Dispatch
import Foundation
import HTTPTypes
import HTTPTypesFoundation
import OpenCombine
import OpenCombineFoundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

let url = CommandLine.arguments.dropFirst().first.flatMap { URL(string: $0) } ?? URL(fileURLWithPath: "/")
let (data, response) = try await URLSession.shared.data(for: HTTPRequest(url: url))
print(response.status.code, String(decoding: data, as: UTF8.self))
print(try await published())

/// The body as OpenCombine's publisher delivers it.
func published() async throws -> String {
    var subscription: AnyCancellable?
    defer { subscription?.cancel() }
    return try await withCheckedThrowingContinuation { caller in
        subscription = URLSession.shared.ocombine.dataTaskPublisher(for: url).sink(
            receiveCompletion: { @Sendable in if case .failure(let error) = $0 { caller.resume(throwing: error) } },
            receiveValue: { @Sendable in caller.resume(returning: String(decoding: $0.data, as: UTF8.self)) })
    }
}
