// SPDX-License-Identifier: Apache-2.0

import CombinationModel
import Foundation
import LoadingTestKit
import Synchronization
import URLLoading

/// The program of one row: its sessions, stores and loads.
final class Program {
    let row: Row
    let folder: String
    let map: TownMap
    private let place: URL
    private var sessions: [String: (session: URLSession, recorder: Recorder)] = [:]
    private var ownDelegates: [Recorder] = []
    private lazy var ephemeral: URLSessionConfiguration = .ephemeral
    private lazy var ownCache = URLCache(
        memoryCapacity: 4 << 20, diskCapacity: 20 << 20, directory: place.appending(path: "cache"))

    init(_ row: Row, folder: String, map: TownMap, place: URL) {
        self.row = row
        self.folder = folder
        self.map = map
        self.place = place
    }

    func end() {
        for (session, _) in sessions.values { session.invalidateAndCancel() }
        sessions = [:]
    }

    /// Delegate calls that came after the end of a task.
    var faults: [String] { (sessions.values.map(\.recorder) + ownDelegates).flatMap(\.faults) }

    /// Waits until stored data is on disk.
    func flush() async { for (session, _) in sessions.values { await session.flush() } }

    // MARK: URLs

    func url(_ order: LoadOrder, host: String = "www.shop.localhost") -> URL {
        let user = order.login == .userInfo ? order.user.map { "\($0):secret-of-\($0)@" } ?? "" : ""
        // Only a WebSocket load has a URL with the schemes `ws` and `wss`; other loads of the same origin do not.
        let isSocket = order.way == .webSocket && order.name == "doc"
        let scheme = isSocket ? (order.scheme == "http" ? "ws" : "wss") : order.scheme
        let text = "\(scheme)://\(user)\(host):\(map.port(row, scheme: order.scheme))/\(folder)/\(order.name)"
        guard let url = URL(string: text) else { preconditionFailure("'\(text)' is not a URL") }
        return url
    }

    private var documentURL: URL {
        let scheme = row.security == .clear ? "http" : "https"
        return url(LoadOrder(label: "", session: SessionOrder(name: ""), phase: .main, scheme: scheme))
    }

    // MARK: Sessions

    /// The stores of a session, before its other settings are applied.
    private func stores(_ kind: SessionKind) -> URLSessionConfiguration {
        switch kind {
        case .ephemeral: return ephemeral
        case .standard, .twoSharing, .twoProcesses, .background, .backgroundData: return .default
        case .ownCache:
            let configuration = URLSessionConfiguration.default
            configuration.urlCache = ownCache
            return configuration
        case .noCache:
            let configuration = URLSessionConfiguration.default
            configuration.urlCache = nil
            return configuration
        case .noCookies:
            let configuration = URLSessionConfiguration.default
            configuration.httpCookieStorage = nil
            return configuration
        case .noCredentials:
            let configuration = URLSessionConfiguration.default
            configuration.urlCredentialStorage = nil
            return configuration
        }
    }

    private func configuration(_ order: SessionOrder) -> URLSessionConfiguration {
        let isBackground = order.kind == .background || order.kind == .backgroundData
        let made = isBackground ? .background(withIdentifier: "\(folder) \(order.name)") : stores(order.kind)
        guard let configuration = made.copy() as? URLSessionConfiguration else { return .ephemeral }
        if order.kind == .backgroundData { configuration.urlCache = .shared }
        let pin = order.trust == .pinnedRight ? map.pinned : order.trust == .pinnedWrong ? TownMap.otherPin : nil
        configuration.appTransportSecurity = TownMap.transportSecurity(pin: pin)
        configuration.timeoutIntervalForRequest = order.isShort ? 3 : 20
        if order.oneConnection { configuration.httpMaximumConnectionsPerHost = 1 }
        if order.trust == .sessionRoots { configuration.tlsTrustRoots = [map.strangeRoot] }
        if let user = order.fieldUser { configuration.httpAdditionalHeaders = ["Authorization": Origin.authorization(user)] }
        if row.version == .http2Clear { configuration.connectionOptions.httpVersions = .http2PriorKnowledge }
        route(order, configuration)
        return configuration
    }

    private func route(_ order: SessionOrder, _ configuration: URLSessionConfiguration) {
        if order.isIntercepted {
            configuration.connectionProxyDictionary = TownMap.proxies(http: map.forward, https: map.intercepting)
            return
        }
        map.setRoute(configuration, by: order.route)
        if order.route == .unixSocket { configuration.connectionOptions.unixSocketPath = map.socket(row) }
    }

    func session(_ load: LoadOrder) throws -> (session: URLSession, recorder: Recorder) {
        let order = load.session
        if let known = sessions[order.name] { return known }
        let identity =
            order.trust == .clientCertificate
            ? try SecIdentity(pem: Data(map.clientChain.utf8), key: Data(map.clientKey.utf8)) : nil
        let recorder = recorder(load, identity)
        let session = URLSession(
            configuration: configuration(order), delegate: order.hasDelegate ? recorder : nil, delegateQueue: nil)
        sessions[order.name] = (session, recorder)
        return (session, recorder)
    }

    private func recorder(_ load: LoadOrder, _ identity: SecIdentity?) -> Recorder {
        Recorder(
            load.session, user: load.user, login: load.login, identity: identity,
            streams: row.message == .streamOnce ? (row.way == .upload ? 1 : 0) : .max)
    }

    /// A delegate for the task of a load.
    func ownDelegate(_ load: LoadOrder) -> Recorder {
        let own = recorder(load, nil)
        ownDelegates.append(own)
        return own
    }

    // MARK: Storages

    private func storage(_ session: SessionOrder) -> HTTPCookieStorage? { stores(session.kind).httpCookieStorage }

    func signIn(_ session: SessionOrder, _ login: Login, _ user: String?) {
        if login == .cookie {
            let storage = storage(session)
            for cookie in storage?.cookies(for: documentURL) ?? [] where cookie.name == "who" { storage?.deleteCookie(cookie) }
            if let user { setCookie(session, name: "who", value: user) }
        }
        guard login == .storage, let storage = stores(session.kind).urlCredentialStorage else { return }
        let space = URLProtectionSpace(
            host: "www.shop.localhost", port: documentURL.port ?? 0, protocol: documentURL.scheme, realm: folder,
            authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
        for credential in (storage.credentials(for: space) ?? [:]).values { storage.remove(credential, for: space) }
        guard let user else { return }
        let credential = URLCredential(user: user, password: "secret-of-\(user)", persistence: .forSession)
        storage.setDefaultCredential(credential, for: space)
    }

    func setCookie(_ session: SessionOrder, name: String, value: String) {
        let properties: [HTTPCookiePropertyKey: Any] = [
            .name: name, .value: value, .domain: "www.shop.localhost", .path: "/\(folder)",
            .expires: Date(timeIntervalSinceNow: 3600),
        ]
        guard let cookie = HTTPCookie(properties: properties) else { preconditionFailure("no cookie") }
        storage(session)?.setCookie(cookie)
    }

    /// The cookies for the document in a session's storage.
    func cookies(_ session: SessionOrder) -> [String: String]? {
        guard let storage = storage(session) else { return nil }
        let cookies = (storage.cookies(for: documentURL) ?? []).filter { $0.path == "/\(folder)" }
        return Dictionary(cookies.map { ($0.name, $0.value) }) { $1 }
    }

    // MARK: Requests

    func request(_ order: LoadOrder) -> URLRequest {
        var request = URLRequest(url: url(order))
        request.httpMethod = order.method
        if order.login == .requestField, let user = order.user {
            request.setValue(Origin.authorization(user), forHTTPHeaderField: "Authorization")
        }
        if order.session.route == .proxyTold {
            request.setValue(TestProxy.authorization, forHTTPHeaderField: "Proxy-Authorization")
        }
        request.setValue(order.language, forHTTPHeaderField: "X-Language")
        // A WebSocket task sets this field itself.
        if order.way == .becomesStream, order.name == "doc" {
            request.setValue(order.way.upgrade, forHTTPHeaderField: "Upgrade")
        }
        switch order.policy {
        case .useProtocol: break
        case .reloadIgnoringLocal: request.cachePolicy = .reloadIgnoringLocalCacheData
        case .reloadIgnoringAll: request.cachePolicy = .reloadIgnoringLocalAndRemoteCacheData
        case .returnElseLoad: request.cachePolicy = .returnCacheDataElseLoad
        case .returnDontLoad: request.cachePolicy = .returnCacheDataDontLoad
        case .reloadRevalidating: request.cachePolicy = .reloadRevalidatingCacheData
        case .noStore: request.setValue("no-store", forHTTPHeaderField: "Cache-Control")
        case .noCache: request.setValue("no-cache", forHTTPHeaderField: "Cache-Control")
        case .onlyIfCached: request.setValue("only-if-cached", forHTTPHeaderField: "Cache-Control")
        }
        let data = Data(Body.content(order.bodyLength))
        switch order.message {
        case .get, .head, .file: break
        case .range: request.setValue(order.phase == .seed ? "bytes=0-9" : "bytes=5-14", forHTTPHeaderField: "Range")
        case .condition:
            let user = row.principal == .anonymous ? "all" : "ali"
            request.setValue("\"doc-v1-\(user)\"", forHTTPHeaderField: "If-None-Match")
        case .postSmall, .postLarge, .putSmall, .putLarge: if order.way != .upload { request.httpBody = data }
        case .streamAgain, .streamOnce:
            // A streamed upload also gets its first stream from the delegate.
            if order.way != .upload { request.httpBodyStream = InputStream(data: data) }
        }
        return request
    }

    /// The file that an upload sends.
    func file(_ order: LoadOrder) throws -> URL {
        let file = place.appending(path: "upload-\(folder)")
        try Data(Body.content(order.bodyLength)).write(to: file)
        return file
    }
}
