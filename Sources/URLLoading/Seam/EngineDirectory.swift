//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

internal import LoadingEngine
internal import LoadingModel

/// Says which engine serves a session.
enum EngineDirectory {
    /// An engine in this process, for a session of its own.
    static func service(for policy: SessionPolicy) -> any LoadingService { SessionEngine.make(policy: policy) }
}
