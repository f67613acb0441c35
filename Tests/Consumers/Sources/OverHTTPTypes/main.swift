// SPDX-License-Identifier: Apache-2.0

import Foundation
import HTTPTypes
import HTTPTypesFoundation
#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

let url = CommandLine.arguments.dropFirst().first.flatMap { URL(string: $0) } ?? URL(fileURLWithPath: "/")
let (data, response) = try await URLSession.shared.data(for: HTTPRequest(url: url))
print(response.status.code, String(decoding: data, as: UTF8.self))
