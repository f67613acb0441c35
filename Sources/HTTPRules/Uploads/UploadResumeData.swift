// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import HTTPWire

/// The data that a later task needs to continue an upload: the app's request, its body, and the state on the server.
package struct UploadResumeData: Hashable, Sendable {
    package enum Body: Hashable, Sendable {
        /// A file that must not change: its size, its modification time (nanoseconds since 1970), and its inode.
        case file(path: String, size: Int64, changed: Int64, inode: UInt64)
        case data(Data)
        /// The app provides the stream again.
        case stream
    }

    package var url: URL
    package var method: String
    /// The header fields that the app set on its request.
    package var headers: HeaderBlock
    package var settings = ResumePoint.Settings()
    package var body: Body
    package var point: UploadPoint
    /// Whether the credentials in the request belong to an origin other than the origin of the upload resource.
    package var leftOrigin = false

    package init(url: URL, method: String, headers: HeaderBlock, body: Body, point: UploadPoint) {
        self.url = url
        self.method = method
        self.headers = headers
        self.body = body
        self.point = point
    }

    /// The maximum size in bytes without an embedded body, far more than the size of any real resume data.
    private static let sizeLimit = ResumePoint.sizeLimit
    private static let version = 1

    private struct Content: Codable {
        var version: Int
        var request: ResumePoint.Request
        var resource: String
        var draft: Int
        var length: Int64?
        var acknowledged: Int64
        var limits: UploadLimits?
        var expiry: Double?
        var leftOrigin: Bool?
        var path: String?
        var size: Int64?
        var changed: Int64?
        var inode: String?
        var content: Data?

        enum CodingKeys: String, CodingKey {
            case version = "NSURLSessionResumeInfoVersion"
            case request = "NSURLSessionResumeOriginalRequest"
            case resource = "NSURLSessionUploadURL"
            case draft = "URLLoadingUploadVersion"
            case length = "URLLoadingUploadLength"
            case acknowledged = "URLLoadingUploadOffset"
            case limits = "URLLoadingUploadLimits"
            case expiry = "URLLoadingUploadExpiry"
            case leftOrigin = "URLLoadingUploadLeftOrigin"
            case path = "URLLoadingUploadFile"
            case size = "URLLoadingUploadFileSize"
            case changed = "URLLoadingUploadFileChanged"
            case inode = "URLLoadingUploadFileNumber"
            case content = "URLLoadingUploadBody"
        }
    }

    /// Returns the encoded resume data, or nil if a value is invalid.
    package func encoded() -> Data? {
        guard isPlausible else { return nil }
        var content = Content(
            version: Self.version,
            request: ResumePoint.Request(url: url, method: method, headers: headers, settings: settings),
            resource: point.resource.absoluteString, draft: point.version.rawValue, length: point.length,
            acknowledged: point.acknowledged, limits: point.limits == UploadLimits() ? nil : point.limits, expiry: point.expiry,
            leftOrigin: leftOrigin ? true : nil)
        switch body {
        case .file(let path, let size, let changed, let inode):
            (content.path, content.size, content.changed, content.inode) = (path, size, changed, String(inode))
        case .data(let data): content.content = data
        case .stream: break
        }
        return ResumePoint.sealed(content)
    }

    package init(decoding data: Data) throws(ResumePoint.Malformed) {
        let content: Content = try ResumePoint.content(of: data)
        guard data.count <= Self.sizeLimit + 2 * (content.content?.count ?? 0) else { throw .tooLarge }
        guard content.version == Self.version else { throw .unknownVersion }
        guard let url = URL(string: content.request.url), let resource = URL(string: content.resource),
            let settings = content.request.settings, let headers = content.request.headers,
            let version = UploadVersion(rawValue: content.draft)
        else { throw .badValue }
        let body: Body
        if let path = content.path {
            guard let size = content.size, let changed = content.changed, let inode = content.inode.flatMap({ UInt64($0) }) else {
                throw .badValue
            }
            body = .file(path: path, size: size, changed: changed, inode: inode)
        } else {
            body = content.content.map { .data($0) } ?? .stream
        }
        self.init(
            url: url, method: content.request.method, headers: headers, body: body,
            point: UploadPoint(
                resource: resource, version: version, length: content.length, acknowledged: content.acknowledged,
                limits: content.limits ?? UploadLimits(), expiry: content.expiry))
        self.settings = settings
        leftOrigin = content.leftOrigin ?? false
        guard isPlausible else { throw .badValue }
    }

    private var isPlausible: Bool {
        guard let origin = Origin(url), let place = Origin(point.resource), place.isSecure || !origin.isSecure,
            ASCII.isToken(method), method != "GET", settings.isPlausible, point.acknowledged >= 0,
            point.length.map({ $0 >= point.acknowledged }) ?? true, point.expiry?.isFinite != false,
            headers.fields.allSatisfy({ ASCII.isToken($0.name) && ASCII.isFieldValue($0.value) })
        else { return false }
        switch body {
        case .file(let path, let size, _, _):
            return path.hasPrefix("/") && !path.utf8.contains(0) && path.unicodeScalars.allSatisfy { $0.value >= 0x20 }
                && size == point.length
        case .data(let data): return Int64(data.count) == point.length
        case .stream: return true
        }
    }
}
