// swift-tools-version:6.2

import PackageDescription

// What Scripts/consumers builds and runs: programs that came from FoundationNetworking. It makes the repository of a release first.
let released = "file://\(Context.packageDirectory)/../../.build/released/swift-url-loading"

let package = Package(
    name: "Consumers",
    dependencies: [
        .package(url: released, from: "0.1.0", traits: []),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/OpenCombine/OpenCombine", from: "0.14.0"),
    ],
    targets: [
        // The manifest alone knows of URLLoading.
        .executableTarget(name: "Unmodified", dependencies: [.product(name: "URLLoading", package: "swift-url-loading")]),
        // So it is here, and what they depend on imports FoundationNetworking and knows nothing of URLLoading.
        .executableTarget(
            name: "OverHTTPTypes",
            dependencies: [
                .product(name: "URLLoading", package: "swift-url-loading"),
                .product(name: "HTTPTypesFoundation", package: "swift-http-types"),
            ]),
        .executableTarget(
            name: "OverOpenCombine",
            dependencies: [
                .product(name: "URLLoading", package: "swift-url-loading"),
                .product(name: "OpenCombineFoundation", package: "OpenCombine"),
            ]),
    ]
)
