// SPDX-License-Identifier: Apache-2.0

package import Foundation
@_spi(SwiftCorelibsFoundation) internal import FoundationEssentials
internal import LoadingModel

/// Loads URLs other than file URLs for Foundation's synchronous initializers: `Data(contentsOf:)`, `String(contentsOf:encoding:)`,
/// `NSData(contentsOf:)`, `XMLParser(contentsOf:)` and so on.
///
/// The load belongs to a separate session, which has the shared session's stores and registered `URLProtocol` classes. The load
/// runs on the calling thread and an event loop that serves no other session. Therefore the load completes wherever it is started:
/// on the loop of a session, on a delegate queue, and even when every thread of the cooperative pool waits for such a load.
///
/// Foundation looks up this class under the name that the module `CFoundationNames` registers.
package final class NonfileURLContentLoader: _NSNonfileURLContentLoading, Sendable {
    private static let session = URLSession.withDedicatedEventLoop()

    package init() {}

    /// Loads a URL.
    ///
    /// - Returns: The body, and the name of its encoding if the response has one.
    /// - Throws: The error of the load, usually a `URLError`; `URLError.badServerResponse` for a status other than 101, 2xx, 3xx,
    ///   401 and 407, as in Foundation.
    package func contentsOf(url: URL) throws -> (result: NSData, textEncodingNameIfAvailable: String?) {
        let (data, response) = try CallingThread.wait { () async -> Result<(Data, URLResponse), any Error> in
            do {
                return .success(try await Self.session.data(from: url))
            } catch {
                return .failure(error)
            }
        }.get()
        if let status = (response as? HTTPURLResponse)?.statusCode {
            switch status {
            case 101, 200...399, 401, 407: break
            default:
                throw ErrorTranslation.appError(
                    .badServerResponse,
                    "the server responded with status \(status); to read the body of such a response, use URLSession",
                    url: response.url ?? url)
            }
        }
        return (NSData(data: data), response.textEncodingName)
    }
}

extension Data {
    /// Replaces Foundation's implementation for URLs other than file URLs.
    @_dynamicReplacement(for:init(_contentsOfRemote:options:))
    private init(contentsOfNonfileURL url: URL, options: Data.ReadingOptions = []) throws {
        self = Data(referencing: try NonfileURLContentLoader().contentsOf(url: url).result)
    }
}
