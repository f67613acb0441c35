// swift-tools-version:6.2

import PackageDescription

let package = Package(
    name: "BackgroundDownload",
    dependencies: [
        // In a package of your own: .package(url: …) or the path of your clone.
        .package(name: "swift-url-loading", path: "../..")
    ],
    targets: [
        .executableTarget(
            name: "BackgroundDownload",
            dependencies: [
                .product(name: "URLLoading", package: "swift-url-loading"),
                // The daemon, built beside the program, where it is found.
                .product(name: "urlsessiond", package: "swift-url-loading"),
            ])
    ]
)
