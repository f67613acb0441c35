// SPDX-License-Identifier: Apache-2.0

import Foundation
import URLLoading

/// The differences between FTP URLs and HTTP URLs.
enum FTPAddress {
    /// Returns the protection space of the URL's server; nil if the scheme is not an FTP scheme.
    static func space(_ url: URL) -> URLProtectionSpace? {
        guard let scheme = url.scheme?.lowercased(), ["ftp", "ftps"].contains(scheme), let host = url.host() else { return nil }
        return URLProtectionSpace(
            host: host.lowercased(), port: url.port ?? (scheme == "ftps" ? 990 : 21), protocol: NSURLProtectionSpaceFTP,
            realm: nil,
            authenticationMethod: NSURLAuthenticationMethodDefault)
    }

    /// Returns the URL's last path component; the `;type=` of FTP is no part of a file's name.
    static func fileName(_ url: URL) -> String {
        let name = url.lastPathComponent
        guard space(url) != nil, let mark = name.range(of: ";type=", options: [.caseInsensitive, .backwards]) else { return name }
        return String(name[..<mark.lowerBound])
    }

    /// Returns curl's exit code for an FTP failure; nil if it is the same as for HTTP.
    static func exitCode(_ error: URLError, text: String) -> Int32? {
        guard let url = error.failingURL, space(url) != nil else { return nil }
        switch error.code {
        case .fileDoesNotExist: return text.contains("the directory") ? 9 : 78
        case .noPermissionsToReadFile: return text.contains("the directory") ? 9 : 25
        case .secureConnectionFailed:
            return text.contains("the server does not") ? 64 : text.contains("the server requires TLS") ? 67 : nil
        case .networkConnectionLost: return text.contains(" bytes came") || text.contains("the data connection") ? 18 : nil
        default: return nil
        }
    }
}
