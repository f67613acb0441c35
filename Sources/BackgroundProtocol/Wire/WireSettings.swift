//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import FoundationEssentials
import HTTPRules
import LoadingModel

struct WireSettings: WireValue {
    var policy: WirePolicy?
    var proxies: WireProxies?
    var rootFile: String?
    var rootDirectories: [String]?
    var security: WireSecurity?
    var cookies: WireStore?
    var credentials: WireStore?
    var strictTransportSecurity: WireStore?
    var knownCredentials: [WireKnownCredential]?
    var isDiscretionary: Bool?
    var sendsLaunchEvents: Bool?
    var launch: WireLaunch?

    init(_ settings: BackgroundSettings) throws {
        policy = try WirePolicy(settings.policy)
        proxies = settings.proxies.map { WireProxies($0) }
        rootFile = settings.rootFile
        rootDirectories = settings.rootDirectories.unlessEmpty
        security = settings.security == .strict ? nil : WireSecurity(settings.security)
        cookies = WireStore(settings.cookies)
        credentials = WireStore(settings.credentials)
        strictTransportSecurity = WireStore(settings.strictTransportSecurity)
        knownCredentials = settings.knownCredentials.map { WireKnownCredential($0) }.unlessEmpty
        isDiscretionary = settings.isDiscretionary.unless(false)
        sendsLaunchEvents = settings.sendsLaunchEvents.unless(true)
        launch = settings.launch.map { WireLaunch($0) }
    }

    func model() throws -> BackgroundSettings {
        var settings = BackgroundSettings()
        if let policy { settings.policy = try policy.model() }
        settings.proxies = try proxies?.model()
        settings.rootFile = try rootFile.map { try Wire.path($0, "the roots' file") }
        settings.rootDirectories = try Wire.list(rootDirectories, "the roots' folders", limit: 64)
            .map { try Wire.path($0, "a folder of roots") }
        if let security { settings.security = try security.model() }
        settings.cookies = try cookies?.store() ?? .none
        settings.credentials = try credentials?.store() ?? .none
        settings.strictTransportSecurity = try strictTransportSecurity?.store() ?? .none
        settings.knownCredentials = try Wire.list(knownCredentials, "the credentials", limit: Wire.credentialLimit)
            .map { try $0.model() }
        settings.isDiscretionary = isDiscretionary ?? false
        settings.sendsLaunchEvents = sendsLaunchEvents ?? true
        settings.launch = try launch?.launch()
        return settings
    }
}

struct WireStore: Codable {
    enum Kind: String { case memory, file }

    var kind: String
    var path: String?

    /// Nil for none.
    init?(_ store: BackgroundSettings.Store) {
        switch store {
        case .none: return nil
        case .memory: kind = Kind.memory.rawValue
        case .file(let path):
            kind = Kind.file.rawValue
            self.path = path
        }
    }

    func store() throws -> BackgroundSettings.Store {
        switch try Wire.need(Kind(rawValue: kind), "a store's kind") {
        case .memory: .memory
        case .file: .file(try Wire.path(try Wire.need(path, "a store's path"), "a store's path"))
        }
    }
}

struct WireKnownCredential: WireValue {
    var space: WireSpace
    var credential: WireCredential
    var isDefault: Bool?

    init(_ known: BackgroundSettings.KnownCredential) {
        space = WireSpace(known.space)
        credential = WireCredential(known.credential)
        isDefault = known.isDefault.unless(false)
    }

    func model() throws -> BackgroundSettings.KnownCredential {
        BackgroundSettings.KnownCredential(
            space: try space.model(), credential: try credential.model(), isDefault: isDefault ?? false)
    }
}

struct WireLaunch: Codable {
    enum Kind: String { case arguments, systemdUnit, dBusName }

    var kind: String
    var arguments: [String]?
    var directory: String?
    var name: String?

    private static let argumentLimit = 64 << 10

    init(_ launch: BackgroundSettings.Launch) {
        switch launch {
        case .arguments(let arguments, let directory):
            kind = Kind.arguments.rawValue
            self.arguments = arguments
            self.directory = directory
        case .systemdUnit(let name):
            kind = Kind.systemdUnit.rawValue
            self.name = name
        case .dBusName(let name):
            kind = Kind.dBusName.rawValue
            self.name = name
        }
    }

    /// Nil where it is of a kind that is not known: then the program is not started.
    func launch() throws -> BackgroundSettings.Launch? {
        switch Kind(rawValue: kind) {
        case .arguments:
            let arguments = try Wire.list(arguments, "the arguments")
            _ = try Wire.path(try Wire.need(arguments.first, "the program"), "the program")
            for argument in arguments where argument.utf8.count > Self.argumentLimit || argument.utf8.contains(0) {
                throw MessageFailure.malformed("an argument is too long, or has a NUL")
            }
            return .arguments(arguments, directory: try directory.map { try Wire.path($0, "the program's directory") })
        case .systemdUnit: return .systemdUnit(try Wire.plain(try Wire.need(name, "the unit"), "the unit"))
        case .dBusName: return .dBusName(try Wire.plain(try Wire.need(name, "the bus name"), "the bus name"))
        case nil: return nil
        }
    }
}
