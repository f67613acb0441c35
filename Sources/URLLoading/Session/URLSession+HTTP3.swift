// SPDX-License-Identifier: Apache-2.0

package import Foundation
package import HTTPRules
internal import LoadingEngine

extension URLSession {
    /// Returns what the session knows about HTTP/3 for a URL's origin; nil if the session's loads run in another process, or if the
    /// URL has no origin.
    package func http3(for url: URL) async -> HTTP3Standing? {
        guard let engine = service as? SessionEngine, let origin = Origin(url) else { return nil }
        return await engine.http3(of: origin)
    }
}
