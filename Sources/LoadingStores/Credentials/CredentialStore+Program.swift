// SPDX-License-Identifier: Apache-2.0

import Synchronization

extension CredentialStore {
    private static let programs = Mutex<[String: CredentialStore]>([:])

    /// This process's only store for a program's credentials.
    ///
    /// The storage is opened, and its library loaded, only when a credential is needed.
    package static func program(_ name: String) -> CredentialStore {
        programs.object(named: name) {
            store(program: name, path: StoreLocations.dataDirectory(program: name).map { $0 + "/credentials" })
        }
    }

    /// This process's only store for the credentials of another program, in a file or in the keyring.
    package static func other(program name: String, path: String) -> CredentialStore {
        programs.object(named: path) { store(program: name, path: path) }
    }

    private static func store(program name: String, path: String?) -> CredentialStore {
        let service = SecretServiceCredentials(SystemSecretItems(), program: name)
        guard let path else { return CredentialStore(permanent: service) }
        return CredentialStore(permanent: LayeredCredentials(service, otherwise: SealedCredentialFile(path: path)))
    }
}
