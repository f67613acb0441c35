//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// A task that hands the response's body over in memory: to the delegate piece by piece, or to a handler or caller at once.
open class URLSessionDataTask: URLSessionTask, @unchecked Sendable {}
