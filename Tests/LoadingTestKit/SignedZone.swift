// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Runs a suite in its own network namespace, with a single name server, a signed root zone, and a folder for that root's key.
///
/// The names are `good.signed` (127.0.0.1, ::1), `alias.signed`, `bad.signed`, whose address differs from the signed one, and
/// `host.unsigned`. `good.signed`, `bad.signed` and `host.unsigned` have HTTPS records, `alias.signed` leads to one. Requires root.
package enum SignedZone {
    package static func run(_ suite: String, before: String = "true") async throws {
        let folder = try TemporaryDirectory()
        try folder.write(Data(setUp.utf8), to: "setup.sh")
        let script = "cd '\(folder.path)' && . ./setup.sh && \(before) && exec \"$@\""
        // In a separate PID namespace the name server ends when the program does.
        try await SeparateProcess.run(
            suite, environment: ["NSAllowsArbitraryLoads": "YES"],
            wrapper: ["/usr/bin/env", "unshare", "-n", "-m", "-p", "--fork", "--mount-proc", "/bin/sh", "-c", script, "sh"]
        )
    }

    private static let setUp = #"""
        set -e
        ip link set lo up
        cat > root.zone <<'END'
        $TTL 3600
        . IN SOA ns.signed. admin.signed. 1 3600 600 86400 60
        . IN NS ns.signed.
        ns.signed. IN A 127.0.0.1
        good.signed. IN A 127.0.0.1
        good.signed. IN AAAA ::1
        good.signed. IN HTTPS 1 . alpn=h3,h2
        alias.signed. IN CNAME good.signed.
        bad.signed. IN A 127.0.0.1
        bad.signed. IN HTTPS 1 . alpn=h3 port=444
        unsigned. IN NS ns.signed.
        END
        cat > unsigned.zone <<'END'
        $TTL 3600
        @ IN SOA ns.signed. admin.signed. 1 3600 600 86400 60
        @ IN NS ns.signed.
        host IN A 127.0.0.1
        host IN HTTPS 1 . alpn=h3
        END
        key=$(dnssec-keygen -q -a ECDSAP256SHA256 -f KSK .)
        zone_key=$(dnssec-keygen -q -a ECDSAP256SHA256 .)
        cat "$key.key" "$zone_key.key" >> root.zone
        dnssec-signzone -q -o . -k "$key" -f root.signed root.zone "$zone_key" > /dev/null
        awk '/^[^ \t;]/ {is_bad = /^bad\.signed\./}
            is_bad {sub(/A[ \t]+127\.0\.0\.1/, "A 127.0.0.2"); sub(/port=444/, "port=445")}
            {print}' root.signed > root.tampered
        grep -v '^;' "$key.key" > root.key
        cat > named.conf <<END
        options {
            directory "$PWD"; listen-on port 53 { 127.0.0.1; }; listen-on-v6 { none; };
            recursion no; pid-file none; session-keyfile none; dnssec-validation no;
        };
        zone "." { type primary; file "root.tampered"; };
        zone "unsigned" { type primary; file "unsigned.zone"; };
        END
        echo "nameserver 127.0.0.1" > resolv.conf
        mount --bind resolv.conf /etc/resolv.conf
        mount --bind root.key /usr/share/dns/root.key
        named -c "$PWD/named.conf"
        set +e
        """#
}
