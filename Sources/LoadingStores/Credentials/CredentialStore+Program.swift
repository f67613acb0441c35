//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Synchronization

extension CredentialStore {
    private static let programs = Mutex<[String: CredentialStore]>([:])

    /// This process's only store for a program's credentials.
    ///
    /// The storage is opened, and its library loaded, only when a credential is needed.
    package static func program(_ name: String) -> CredentialStore {
        programs.withLock { stores in
            if let store = stores[name] { return store }
            let service = SecretServiceCredentials(SystemSecretItems(), program: name)
            let file = StoreLocations.dataDirectory(program: name).map { SealedCredentialFile(path: $0 + "/credentials") }
            let store = CredentialStore(permanent: file.map { LayeredCredentials(service, otherwise: $0) } ?? service)
            stores[name] = store
            return store
        }
    }

    /// This process's only store for the credentials of another program, in a file or in the keyring.
    package static func other(program name: String, path: String) -> CredentialStore {
        programs.withLock { stores in
            if let store = stores[path] { return store }
            let service = SecretServiceCredentials(SystemSecretItems(), program: name)
            let store = CredentialStore(permanent: LayeredCredentials(service, otherwise: SealedCredentialFile(path: path)))
            stores[path] = store
            return store
        }
    }
}
