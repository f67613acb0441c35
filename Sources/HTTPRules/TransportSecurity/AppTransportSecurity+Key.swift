//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

extension AppTransportSecurity {
    /// What the dictionary's keys are called.
    enum Key: String, CaseIterable {
        /// Where an Info.plist has the dictionary.
        case root = "NSAppTransportSecurity"
        case allowsArbitraryLoads = "NSAllowsArbitraryLoads"
        case allowsArbitraryLoadsForMedia = "NSAllowsArbitraryLoadsForMedia"
        case allowsArbitraryLoadsInWebContent = "NSAllowsArbitraryLoadsInWebContent"
        case allowsLocalNetworking = "NSAllowsLocalNetworking"
        case exceptionDomains = "NSExceptionDomains"
        case pinnedDomains = "NSPinnedDomains"
        // Of an exception.
        case includesSubdomains = "NSIncludesSubdomains"
        case allowsInsecureLoads = "NSExceptionAllowsInsecureHTTPLoads"
        case minimumVersion = "NSExceptionMinimumTLSVersion"
        case requiresForwardSecrecy = "NSExceptionRequiresForwardSecrecy"
        case requiresCertificateTransparency = "NSRequiresCertificateTransparency"
        // Of a pinned domain.
        case pinnedLeafIdentities = "NSPinnedLeafIdentities"
        case pinnedCAIdentities = "NSPinnedCAIdentities"
        case keyHash = "SPKI-SHA256-BASE64"

        /// Names that exceptions had before iOS 9 was out, or for other people's servers: `NSTemporaryException…`.
        init?(oldName: String) {
            for prefix in ["NSTemporaryException", "NSThirdPartyException"] where oldName.hasPrefix(prefix) {
                self.init(rawValue: "NSException" + oldName.dropFirst(prefix.count))
                return
            }
            return nil
        }
    }
}
