// swift-tools-version:6.2

import PackageDescription

let package = Package(
    name: "MockedSession",
    dependencies: [
        // In your own package: .package(url: …) or the path of your clone.
        .package(name: "swift-url-loading", path: "../..")
    ],
    targets: [
        .target(name: "Weather", dependencies: [.product(name: "URLLoading", package: "swift-url-loading")]),
        .testTarget(
            name: "WeatherTests",
            dependencies: ["Weather", .product(name: "URLLoading", package: "swift-url-loading")]
        ),
    ]
)
