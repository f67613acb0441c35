// SPDX-License-Identifier: Apache-2.0

import HTTPTransport
import LoadingModel
import LoadingStores
import NIOCore

/// A partial body that is combined with a stored part once the lookup of the stored part has finished.
final class JoinedBody: ResponseBody {
    private let part: any ResponseBody
    private let lookUp: DiskLookUp
    private let control: LoadControl
    private let timeout: Double
    private let join: (ResponseCache.Hit?) -> any ResponseBody
    private var joined: (any ResponseBody)?

    init(
        _ part: any ResponseBody, _ lookUp: DiskLookUp, in control: LoadControl, timeout: Double,
        _ join: @escaping (ResponseCache.Hit?) -> any ResponseBody
    ) {
        self.part = part
        self.lookUp = lookUp
        self.control = control
        self.timeout = timeout
        self.join = join
    }

    func next() async throws(LoadError) -> ByteBuffer? {
        if let joined { return try await joined.next() }
        do {
            let body = join(try await CacheStage.found(by: lookUp, in: control, timeout: timeout) ?? nil)
            joined = body
            return try await body.next()
        } catch {
            cancel()
            throw error
        }
    }

    func cancel() { (joined ?? part).cancel() }
}
