// swift-tools-version:6.2

import Foundation
import PackageDescription

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .treatAllWarnings(as: .error),
]

/// The settings of the façade: ``settings`` without NonisolatedNonsendingByDefault.
///
/// An isolated method cannot implement a `nonisolated(nonsending)` requirement of a public protocol, so a `@MainActor` delegate would not
/// compile. The façade writes `nonisolated(nonsending)` where its own functions need it.
let facadeSettings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
]

/// The settings of tests: ``settings`` without MemberImportVisibility.
///
/// In tests, types such as sockaddr_in come from the C module that was imported first, which MemberImportVisibility rejects.
let testSettings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .treatAllWarnings(as: .error),
]

let deque: Target.Dependency = .product(name: "DequeModule", package: "swift-collections")
let nioCore: Target.Dependency = .product(name: "NIOCore", package: "swift-nio")
let nioPosix: Target.Dependency = .product(name: "NIOPosix", package: "swift-nio")
let nioTLS: Target.Dependency = .product(name: "NIOTLS", package: "swift-nio")
let nioEmbedded: Target.Dependency = .product(name: "NIOEmbedded", package: "swift-nio")
let asn1: Target.Dependency = .product(name: "SwiftASN1", package: "swift-asn1")
let nioSSL: Target.Dependency = .product(name: "NIOSSL", package: "swift-nio-ssl")
let x509: Target.Dependency = .product(name: "X509", package: "swift-certificates")
let crypto: Target.Dependency = .product(name: "Crypto", package: "swift-crypto")
let cryptoExtras: Target.Dependency = .product(name: "CryptoExtras", package: "swift-crypto")
let structuredFields: Target.Dependency = .product(name: "RawStructuredFieldValues", package: "swift-http-structured-headers")

// The dependency of a trait is only fetched and built if the trait is on.
let grdb: Target.Dependency = .product(name: "GRDB", package: "GRDB.swift", condition: .when(traits: ["Daemon"]))
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log", condition: .when(traits: ["Logging"]))
let metrics: Target.Dependency = .product(name: "Metrics", package: "swift-metrics", condition: .when(traits: ["Metrics"]))
let tracing: Target.Dependency = .product(
    name: "Tracing", package: "swift-distributed-tracing", condition: .when(traits: ["Tracing"]))
let httpTypes: Target.Dependency = .product(
    name: "HTTPTypes", package: "swift-http-types", condition: .when(traits: ["HTTPTypes"]))
let openCombine: Target.Dependency = .product(
    name: "OpenCombine", package: "OpenCombine", condition: .when(traits: ["OpenCombine"]))
let metricsTestKit: Target.Dependency = .product(
    name: "MetricsTestKit", package: "swift-metrics", condition: .when(traits: ["Metrics"]))
let inMemoryTracing: Target.Dependency = .product(
    name: "InMemoryTracing", package: "swift-distributed-tracing", condition: .when(traits: ["Tracing"]))

/// A module of docs/ARCHITECTURE.md.
///
/// The module may import only the modules in `dependencies`; `Scripts/check` verifies that.
func module(
    _ name: String, _ dependencies: [Target.Dependency] = [], settings: [SwiftSetting] = settings, path: String? = nil
) -> Target {
    .target(name: name, dependencies: dependencies, path: path, swiftSettings: settings)
}

func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .testTarget(name: name, dependencies: dependencies, swiftSettings: testSettings)
}

func example(_ name: String) -> Target {
    .executableTarget(name: name, dependencies: ["URLLoading"], path: "Examples/\(name)/Sources/\(name)")
}

var targets: [Target] = [
    // Pure modules: no I/O, no clock, no lock.
    module("HTTPWire"),
    module("HTTPRules", ["HTTPWire", crypto, cryptoExtras, structuredFields]),
    module("TransportMachines", ["HTTPWire", deque]),
    module("LoadingModel", ["HTTPWire"]),
    // Modules with I/O.
    .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
    module("LibC"),
    .target(name: "CLoadingSystem"),
    // QUIC and HTTP/3, by libraries that are loaded at run time.
    .target(name: "CQUIC"),
    module("SystemThreads", ["CLoadingSystem", "LibC"]),
    // Certificates, keys and identities as values; the evaluation of server trust.
    module("LoadingTrust", ["HTTPRules", "LoadingModel", "LibC", x509, asn1, crypto, cryptoExtras]),
    module(
        "HTTPTransport",
        [
            "HTTPWire", "HTTPRules", "TransportMachines", "LoadingModel", "LoadingTrust", "SystemThreads", "CZlib",
            "CLoadingSystem", "CQUIC", "LibC",
            nioCore, nioPosix, nioSSL, nioTLS, x509, asn1, crypto,
        ]
    ),
    // C libraries that are loaded at run time if the system has them.
    .target(name: "CSystemLibraries"),
    module("SystemLibraries", ["CSystemLibraries", "CQUIC", "LibC"]),
    // Cookies, cache, credentials and HSTS hosts: shared, durable, thread-safe.
    module(
        "LoadingStores",
        ["HTTPWire", "HTTPRules", "LoadingModel", "SystemLibraries", "SystemThreads", "CLoadingSystem", "LibC", crypto, deque]),
    module(
        "LoadingEngine",
        [
            "HTTPWire", "HTTPRules", "TransportMachines", "LoadingModel", "LoadingTrust", "SystemLibraries", "LoadingStores",
            "HTTPTransport", "SystemThreads", "LibC", nioCore, nioPosix,
        ]
    ),
    // Logging, metrics and tracing, each with a trait; without these traits, the module is empty.
    module("LoadingObservers", ["HTTPRules", "LoadingModel", logging, metrics, tracing]),
    // Background sessions: the messages between programs and the daemon.
    module("BackgroundProtocol", ["HTTPWire", "HTTPRules", "LoadingModel", "LoadingStores", "LibC"]),
    // The program's side of background sessions.
    module("BackgroundClient", ["BackgroundProtocol", "LoadingModel", "SystemThreads", "CLoadingSystem", "LibC"]),
    // The daemon's side of background sessions.
    module(
        "BackgroundDaemon",
        [
            "BackgroundProtocol", "BackgroundClient", "HTTPWire", "HTTPRules", "LoadingModel", "LoadingTrust", "LoadingStores",
            "LoadingEngine", "NetworkPaths", "SystemLibraries", "SystemThreads", "CLoadingSystem", "LibC", deque, nioCore,
            nioPosix, crypto, grdb,
        ]
    ),
    .executableTarget(name: "urlsessiond", dependencies: ["BackgroundDaemon", "LibC"], swiftSettings: settings),
    // The available networks and their properties.
    module("NetworkPaths", ["LoadingModel", "SystemLibraries", "SystemThreads", "CLoadingSystem", "LibC"]),
    // The symbol by which Foundation finds a class of the façade.
    .target(name: "CFoundationNames"),
    // The façade: Apple's API.
    module(
        "URLLoading",
        [
            "HTTPWire", "HTTPRules", "LoadingModel", "LoadingTrust", "LoadingStores", "NetworkPaths", "LoadingEngine",
            "SystemLibraries", "BackgroundProtocol", "BackgroundClient", "CFoundationNames", "LoadingObservers", logging, metrics,
            tracing, httpTypes, openCombine,
        ],
        settings: facadeSettings
    ),
    // HTTP Archives (HAR) of loads.
    module("URLLoadingArchive", ["URLLoading", "HTTPRules"]),
    // For the tests of programs that use the library.
    module("URLLoadingTestKit", ["URLLoading", "URLLoadingArchive", "LoadingEngine", nioCore, nioPosix]),
    .executableTarget(
        name: "urlsession",
        dependencies: [
            "URLLoading", "URLLoadingArchive", "BackgroundClient", "BackgroundProtocol", "LoadingModel", "LoadingTrust",
            "HTTPRules", crypto,
            .product(name: "ArgumentParser", package: "swift-argument-parser"),
        ],
        swiftSettings: settings
    ),
    // `swift package urlloading build`: makes `import FoundationNetworking` mean URLLoading in all dependencies of a package.
    .plugin(
        name: "DropIn",
        capability: .command(
            intent: .custom(
                verb: "urlloading",
                description: "Runs swift build, test or run with every import of FoundationNetworking meaning URLLoading."))),
    // Tests.
    module("SeededNumbers", path: "Tests/SeededNumbers"),
    module(
        "LoadingTestKit", ["LoadingModel", nioCore, nioPosix, nioTLS, nioSSL, nioEmbedded, x509, asn1, crypto],
        path: "Tests/LoadingTestKit"),
    tests("HTTPWireTests", ["HTTPWire", "SeededNumbers"]),
    tests("HTTPRulesTests", ["HTTPRules", "HTTPWire", "SeededNumbers"]),
    tests("TransportMachinesTests", ["TransportMachines", "HTTPWire", "SeededNumbers"]),
    tests(
        "HTTPTransportTests",
        [
            "HTTPTransport", "LoadingEngine", "LoadingTestKit", "SeededNumbers", "LoadingModel", "HTTPWire", "HTTPRules", "CQUIC",
            "CZlib", nioCore, nioPosix, nioSSL, x509, crypto, nioEmbedded,
        ]
    ),
    tests("BackgroundProtocolTests", ["BackgroundProtocol", "LoadingModel", "HTTPRules", "HTTPWire", "SeededNumbers"]),
    tests(
        "BackgroundDaemonTests",
        [
            "BackgroundDaemon", "BackgroundProtocol", "LoadingModel", "LoadingTestKit", "HTTPRules", "HTTPWire", "SeededNumbers",
            "CLoadingSystem", "urlsessiond", "TransferProgram", grdb,
        ]),
    tests(
        "BackgroundTests",
        [
            "URLLoading", "BackgroundClient", "BackgroundProtocol", "LoadingModel", "HTTPRules", "HTTPWire", "LoadingTestKit",
            "SeededNumbers", "urlsessiond", grdb,
        ]),
    tests("LoadingTrustTests", ["LoadingTrust", "LoadingModel", "LoadingTestKit", x509, asn1, crypto]),
    tests("NetworkPathsTests", ["NetworkPaths", "LoadingModel", "LoadingTestKit", "SeededNumbers"]),
    tests("SystemLibrariesTests", ["SystemLibraries", "LoadingTestKit"]),
    tests(
        "LoadingStoresTests",
        ["LoadingStores", "LoadingModel", "HTTPRules", "HTTPWire", "SystemLibraries", "LoadingTestKit", "SeededNumbers"]
    ),
    tests("URLLoadingTests", ["URLLoading", "LoadingStores", "LoadingTestKit", "SeededNumbers", httpTypes, openCombine]),
    // The tests of LoadingObservers need traits.
    tests(
        "LoadingObserversTests",
        [
            "URLLoading", "LoadingTestKit", logging, metrics, metricsTestKit, tracing, inMemoryTracing,
        ]),
    // A client in Swift 5 mode without upcoming features. As on Apple's platforms, the compiler warns
    // about a delegate with mutable properties, because delegates are Sendable.
    .testTarget(
        name: "SwiftFiveTests",
        dependencies: ["URLLoading", "LoadingTestKit"],
        swiftSettings: [.swiftLanguageMode(.v5)]
    ),
    tests("URLLoadingArchiveTests", ["URLLoadingArchive", "URLLoading", "LoadingTestKit"]),
    tests("URLLoadingTestKitTests", ["URLLoadingTestKit", "URLLoadingArchive", "URLLoading", "LoadingTestKit"]),
    tests("ToolTests", ["LoadingTestKit", "urlsession", "urlsessiond"]),
    // The program that Scripts/crash-test kills.
    .executableTarget(name: "TransferProgram", dependencies: ["URLLoading"], path: "Tests/TransferProgram"),
    // The dimensions of a load, a model of the expected results, and the program that compares the library with it.
    .target(name: "CombinationModel", path: "Tests/CombinationModel", swiftSettings: testSettings),
    .executableTarget(
        name: "CombinationProgram", dependencies: ["URLLoading", "CombinationModel", "LoadingTestKit", "SeededNumbers"],
        path: "Tests/CombinationProgram", swiftSettings: testSettings),
    tests("CombinationTests", ["CombinationModel", "CombinationProgram", "LoadingTestKit", "SeededNumbers", "urlsessiond"]),
    // Histories of requests, deployments and kills with one home folder: the rules, and the program that carries out the steps.
    .target(name: "HistoryModel", dependencies: ["SeededNumbers"], path: "Tests/HistoryModel", swiftSettings: testSettings),
    .executableTarget(
        name: "HistoryProgram",
        dependencies: ["HistoryModel", "URLLoading", "BackgroundProtocol", "LoadingTestKit", "SeededNumbers", "CLoadingSystem"],
        path: "Tests/HistoryProgram", swiftSettings: testSettings),
    tests("HistoryTests", ["HistoryModel", "LoadingTestKit", "HistoryProgram", "urlsession", "urlsessiond"]),
    // Each folder of Examples/ is a package of its own, to be copied. Here, its sources are built with this package, but belong to
    // no product.
    example("ResumableDownload"),
    example("FanOut"),
    example("EventStream"),
    example("Pinning"),
    example("BackgroundDownload"),
    .target(name: "Weather", dependencies: ["URLLoading"], path: "Examples/MockedSession/Sources/Weather"),
    .testTarget(
        name: "WeatherTests", dependencies: ["Weather", "URLLoading"], path: "Examples/MockedSession/Tests/WeatherTests"),
    tests("ExampleTests", ["LoadingTestKit", "ResumableDownload", "FanOut", "EventStream", "Pinning", "BackgroundDownload"]),
]

var dependencies: [Package.Dependency] = [
    .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
    .package(url: "https://github.com/apple/swift-certificates", from: "1.21.1"),
    .package(url: "https://github.com/apple/swift-asn1", from: "1.7.4"),
    .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/apple/swift-http-structured-headers", from: "1.7.0"),
    // These packages are needed only with traits.
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
    .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.3"),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
    .package(url: "https://github.com/OpenCombine/OpenCombine", from: "0.14.0"),
]

// Fuzz targets are in this package because they use `package` declarations; only `FUZZING=1 swift build --sanitize=fuzzer` builds them.
if ProcessInfo.processInfo.environment["FUZZING"] != nil {
    func fuzzer(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
        .executableTarget(
            name: name,
            dependencies: dependencies,
            path: "Fuzz/\(name)",
            swiftSettings: settings + [.unsafeFlags(["-parse-as-library"])]
        )
    }
    targets += [
        fuzzer("FuzzResponseParser", ["HTTPWire"]),
        fuzzer(
            "FuzzResponseParserDifferential",
            [
                "HTTPWire", nioCore, .product(name: "NIOHTTP1", package: "swift-nio"), nioEmbedded,
            ]
        ),
        fuzzer(
            "FuzzResponsePath",
            [
                "HTTPTransport", "HTTPWire", "LoadingModel", "URLLoading", nioCore, nioEmbedded,
            ]
        ),
        fuzzer("FuzzLibraryCoding", ["HTTPTransport", "LoadingEngine", nioCore]),
        fuzzer("FuzzMultipart", ["HTTPRules", "HTTPWire"]),
        fuzzer("FuzzLocation", ["HTTPRules", "HTTPWire"]),
        fuzzer("FuzzContentDisposition", ["HTTPRules", "HTTPWire"]),
        fuzzer("FuzzDataURL", ["HTTPRules", "HTTPWire"]),
        fuzzer("FuzzResumeData", ["HTTPRules", "HTTPWire"]),
        fuzzer("FuzzSetCookie", ["HTTPRules", "HTTPWire"]),
        fuzzer("FuzzCookieFile", ["HTTPRules", "HTTPWire"]),
        fuzzer("FuzzHSTS", ["HTTPRules", "HTTPWire"]),
        fuzzer("FuzzAltSvc", ["HTTPRules", "HTTPWire"]),
        fuzzer("FuzzCacheControl", ["HTTPRules", "HTTPWire"]),
        fuzzer("FuzzCookieStoreFile", ["LoadingStores", "HTTPRules", "HTTPWire"]),
        fuzzer("FuzzAuthenticate", ["HTTPRules"]),
        fuzzer("FuzzNTLM", ["HTTPRules"]),
        fuzzer("FuzzTransportSecurity", ["HTTPRules", "HTTPWire"]),
        fuzzer("FuzzCredentialFile", ["LoadingStores", "LoadingModel"]),
        fuzzer("FuzzFTPReplies", ["HTTPWire"]),
        fuzzer("FuzzSOCKS", ["TransportMachines"]),
        fuzzer("FuzzWebSocketFrames", ["HTTPWire"]),
        fuzzer("FuzzNetlink", ["NetworkPaths", "LoadingModel"]),
        fuzzer("FuzzPAC", ["HTTPRules", "HTTPWire"]),
        fuzzer("FuzzIdentity", ["LoadingTrust", "LoadingModel"]),
        fuzzer("FuzzServerCertificate", ["URLLoading"]),
        fuzzer("FuzzBackgroundMessages", ["BackgroundProtocol", "LoadingModel"]),
        // An executable cannot be imported: the folders of these targets contain links to the parsers of the tool.
        fuzzer("FuzzNetrc", []),
        fuzzer("FuzzAddressGlob", []),
        fuzzer("FuzzConfiguration", []),
        fuzzer("FuzzArchive", ["URLLoadingArchive"]),
        fuzzer("FuzzCacheEntry", ["LoadingStores", "HTTPRules", "HTTPWire"]),
        fuzzer("FuzzHTTP2Frames", ["HTTPWire"]),
        fuzzer("FuzzServiceBindings", ["HTTPWire"]),
        // The folder contains links to what the tests use, too.
        fuzzer(
            "FuzzHTTP3Events",
            [
                "HTTPTransport", "TransportMachines", "HTTPRules", "HTTPWire", "LoadingModel", "CQUIC", nioCore, nioPosix,
                nioEmbedded,
            ]
        ),
        fuzzer("FuzzHPACK", ["HTTPWire", nioCore, .product(name: "NIOHPACK", package: "swift-nio-http2")]),
    ]
    // Only for comparison: programs that use the library do not fetch it.
    dependencies.append(.package(url: "https://github.com/apple/swift-nio-http2", from: "1.46.0"))
}

// `ONLY=HTTPRulesTests swift test` builds and runs only these test targets, separated by commas, and builds what they need.
let only = ProcessInfo.processInfo.environment["ONLY"].map { $0.split(separator: ",").map(String.init) }
if let only {
    /// The names of the package's own targets that a target depends on.
    func needed(by target: Target) -> [String] {
        target.dependencies.compactMap { dependency in
            switch dependency {
            case .byNameItem(let name, _), .targetItem(let name, _): name
            default: nil
            }
        }
    }
    var kept: Set<String> = []
    var next = only
    while let name = next.popLast() {
        guard let target = targets.first(where: { $0.name == name }) else { fatalError("ONLY: no target is named \(name)") }
        if kept.insert(name).inserted { next += needed(by: target) }
    }
    targets.removeAll { !kept.contains($0.name) }
}

let package = Package(
    name: "swift-url-loading",
    products: only != nil
        ? []
        : [
            .library(name: "URLLoading", targets: ["URLLoading"]),
            .plugin(name: "DropIn", targets: ["DropIn"]),
            .library(name: "URLLoadingArchive", targets: ["URLLoadingArchive"]),
            .library(name: "URLLoadingTestKit", targets: ["URLLoadingTestKit"]),
            .executable(name: "urlsession", targets: ["urlsession"]),
            .executable(name: "urlsessiond", targets: ["urlsessiond"]),
        ],
    traits: [
        .trait(name: "Daemon", description: "Has urlsessiond, which carries out the transfers of background sessions."),
        .trait(name: "Logging", description: "Tells a session's Logger of swift-log what it loads."),
        .trait(name: "Metrics", description: "Measures requests for swift-metrics."),
        .trait(name: "Tracing", description: "Makes a span of each request for swift-distributed-tracing."),
        .trait(name: "HTTPTypes", description: "Takes and gives the requests and responses of swift-http-types."),
        .trait(name: "OpenCombine", description: "Has publishers of OpenCombine."),
        .default(enabledTraits: ["Daemon"]),
    ],
    dependencies: dependencies,
    targets: targets
)
