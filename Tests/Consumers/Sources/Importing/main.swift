//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import URLLoading

/// The URL that is loaded.
let url = CommandLine.arguments.dropFirst().first.flatMap { URL(string: $0) } ?? URL(fileURLWithPath: "/")
let (data, response) = try await URLSession.shared.data(from: url)
print((response as? HTTPURLResponse)?.statusCode ?? 0, String(decoding: data, as: UTF8.self))
print(try String(contentsOf: url, encoding: .utf8))
