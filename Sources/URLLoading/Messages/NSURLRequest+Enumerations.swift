// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingModel

extension NSURLRequest {
    /// How a request uses the cache.
    ///
    /// Raw values are Apple's.
    public enum CachePolicy: UInt, Sendable {
        /// The caching rules of the URL's protocol; for HTTP, RFC 9111. The default.
        case useProtocolCachePolicy = 0
        /// Always load from the server; ignore stored responses.
        case reloadIgnoringLocalCacheData = 1
        /// Use a stored response regardless of its age, otherwise load from the server.
        case returnCacheDataElseLoad = 2
        /// Use a stored response regardless of its age, otherwise fail.
        case returnCacheDataDontLoad = 3
        /// Always load from the server, and tell caches on the way not to use stored responses.
        case reloadIgnoringLocalAndRemoteCacheData = 4
        /// Use a stored response if the server validates it, otherwise load from the server.
        case reloadRevalidatingCacheData = 5

        /// An older name for ``reloadIgnoringLocalCacheData``.
        public static var reloadIgnoringCacheData: CachePolicy { .reloadIgnoringLocalCacheData }

        init(_ policy: LoadRequest.CachePolicy) { self = Self(rawValue: policy.rawValue) ?? .useProtocolCachePolicy }

        var loadPolicy: LoadRequest.CachePolicy { LoadRequest.CachePolicy(rawValue: rawValue) ?? .useProtocolCachePolicy }
    }

    /// The purpose of a request's network traffic.
    ///
    /// Raw values are Apple's.
    public enum NetworkServiceType: UInt, Sendable {
        /// Ordinary traffic. The default.
        case `default` = 0
        /// Voice over IP control; deprecated by Apple.
        case voip = 1
        /// Video.
        case video = 2
        /// Background traffic that is not urgent.
        case background = 3
        /// Voice.
        case voice = 4
        /// Traffic that a user is waiting for.
        case responsiveData = 6
        /// Streamed audio and video.
        case avStreaming = 8
        /// Interactive audio and video.
        case responsiveAV = 9
        /// Call signaling.
        case callSignaling = 11

        /// FoundationNetworking's name for ``callSignaling``.
        public static var networkServiceTypeCallSignaling: Self { .callSignaling }

        init(_ service: ConnectionNeeds.Service) { self = Self(rawValue: UInt(service.rawValue)) ?? .default }

        var service: ConnectionNeeds.Service { ConnectionNeeds.Service(rawValue: UInt8(rawValue)) ?? .ordinary }
    }

    /// The initiator of a load.
    ///
    /// Raw values are Apple's.
    public enum Attribution: UInt, Sendable {
        /// The app itself. The default.
        case developer = 0
        /// The app's user, for example by following a link.
        case user = 1
    }
}
