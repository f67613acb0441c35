// SPDX-License-Identifier: Apache-2.0

import LibC
import SystemLibraries

/// The items of the Secret Service in the desktop session.
struct SystemSecretItems: SecretItems {
    private static let schema = SecretServiceCredentials.schema

    var isAvailable: Bool { SecretService.isAvailable }

    func items(with attributes: [String: String]) throws(StoreFailure) -> [SecretItem] {
        do throws(SecretService.Failure) {
            return try SecretService.list(attributes, schema: Self.schema)
        } catch {
            throw Self.failure(error)
        }
    }

    func store(_ item: SecretItem) throws(StoreFailure) {
        do throws(SecretService.Failure) {
            try SecretService.store(item.secret, label: item.label, attributes: item.attributes, schema: Self.schema)
        } catch {
            throw Self.failure(error)
        }
    }

    func removeItems(with attributes: [String: String]) throws(StoreFailure) {
        do throws(SecretService.Failure) {
            try SecretService.remove(attributes, schema: Self.schema)
        } catch {
            throw Self.failure(error)
        }
    }

    private static func failure(_ failure: SecretService.Failure) -> StoreFailure {
        failure.isAbsence ? .refused(failure.text) : .system(EIO, while: failure.text)
    }
}
