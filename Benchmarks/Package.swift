// swift-tools-version:6.2

import PackageDescription

let settings: [SwiftSetting] = [.swiftLanguageMode(.v6), .enableUpcomingFeature("ExistentialAny")]

let nioCore: Target.Dependency = .product(name: "NIOCore", package: "swift-nio")
let nioPosix: Target.Dependency = .product(name: "NIOPosix", package: "swift-nio")
let nioHTTP1: Target.Dependency = .product(name: "NIOHTTP1", package: "swift-nio")
let nioWebSocket: Target.Dependency = .product(name: "NIOWebSocket", package: "swift-nio")
let nioSSL: Target.Dependency = .product(name: "NIOSSL", package: "swift-nio-ssl")

/// Declares the program of one client, which runs in its own process so that its CPU time and memory can be measured.
func peer(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .executableTarget(name: name, dependencies: ["BenchKit"] + dependencies, swiftSettings: settings)
}

let package = Package(
    name: "url-loading-benchmarks",
    dependencies: [
        .package(name: "swift-url-loading", path: ".."),
        .package(url: "https://github.com/swift-server/async-http-client", exact: "1.37.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
    ],
    targets: [
        .target(name: "BenchKit", swiftSettings: settings),
        peer("bench-urlloading", [.product(name: "URLLoading", package: "swift-url-loading")]),
        peer("bench-stores", [.product(name: "URLLoading", package: "swift-url-loading")]),
        peer("bench-foundation"),
        peer("bench-ahc", [.product(name: "AsyncHTTPClient", package: "async-http-client"), nioCore, nioPosix, nioSSL]),
        peer("bench-nio", [nioCore, nioPosix]),
        peer("bench-socket"),
        .executableTarget(name: "bench-slow-server", dependencies: [nioCore, nioPosix], swiftSettings: settings),
        // `Benchmarks/scale` uses this program.
        peer("bench-scale", [.product(name: "URLLoading", package: "swift-url-loading")]),
        .executableTarget(name: "bench-scale-server", dependencies: [nioCore, nioPosix], swiftSettings: settings),
        // `Benchmarks/websocket` uses this program.
        peer("bench-websocket", [.product(name: "URLLoading", package: "swift-url-loading")]),
        peer("bench-nio-websocket", [nioCore, nioPosix, nioHTTP1, nioWebSocket]),
        .executableTarget(
            name: "bench-websocket-server", dependencies: [nioCore, nioPosix, nioHTTP1, nioWebSocket], swiftSettings: settings),
    ]
)
