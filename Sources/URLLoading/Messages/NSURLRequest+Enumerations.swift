//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import LoadingModel

extension NSURLRequest {
    /// How a request uses the cache.
    ///
    /// Raw values are Apple's.
    public enum CachePolicy: UInt, Sendable {
        /// What the protocol of the URL says; for HTTP, RFC 9111. The default.
        case useProtocolCachePolicy = 0
        /// Always from the server; nothing stored here is used.
        case reloadIgnoringLocalCacheData = 1
        /// What is stored, whatever its age, or else from the server.
        case returnCacheDataElseLoad = 2
        /// What is stored, whatever its age, or else failure.
        case returnCacheDataDontLoad = 3
        /// Always from the server, caches on the way told to do the same.
        case reloadIgnoringLocalAndRemoteCacheData = 4
        /// What is stored if the server confirms it, or else from the server.
        case reloadRevalidatingCacheData = 5

        /// An older name of ``reloadIgnoringLocalCacheData``.
        public static var reloadIgnoringCacheData: CachePolicy { .reloadIgnoringLocalCacheData }

        init(_ policy: LoadRequest.CachePolicy) { self = Self(rawValue: policy.rawValue) ?? .useProtocolCachePolicy }

        var loadPolicy: LoadRequest.CachePolicy { LoadRequest.CachePolicy(rawValue: rawValue) ?? .useProtocolCachePolicy }
    }

    /// What traffic is for.
    ///
    /// Raw values are Apple's.
    public enum NetworkServiceType: UInt, Sendable {
        /// Ordinary traffic. The default.
        case `default` = 0
        /// Voice over IP control; deprecated by Apple.
        case voip = 1
        /// Video.
        case video = 2
        /// Background traffic nobody waits for.
        case background = 3
        /// Voice.
        case voice = 4
        /// Traffic somebody waits for.
        case responsiveData = 6
        /// Streamed audio and video.
        case avStreaming = 8
        /// Interactive audio and video.
        case responsiveAV = 9
        /// Setting up calls.
        case callSignaling = 11

        /// The name that FoundationNetworking has for ``callSignaling``.
        public static var networkServiceTypeCallSignaling: Self { .callSignaling }

        init(_ service: ConnectionNeeds.Service) { self = Self(rawValue: UInt(service.rawValue)) ?? .default }

        var service: ConnectionNeeds.Service { ConnectionNeeds.Service(rawValue: UInt8(rawValue)) ?? .ordinary }
    }

    /// Who caused a load.
    ///
    /// Raw values are Apple's.
    public enum Attribution: UInt, Sendable {
        /// The app on its own account. The default.
        case developer = 0
        /// The app's user, by following a link or the like.
        case user = 1
    }
}
