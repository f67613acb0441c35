// SPDX-License-Identifier: Apache-2.0

/// The version of the package, used by the user agent, the tool and the changelog.
///
/// Change it only here.
package enum LibraryVersion {
    package static let text = "0.1.0"
}
