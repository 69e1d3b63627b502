#!/bin/sh
# Makes the packages of the platforms from the archives of a release, for npm publish:
#
#     packaging/npm/platforms.sh VERSION FOLDER-WITH-ARCHIVES OUT
set -eu
version=$1 archives=$2 out=$3
package() { # npm's platform, npm's cpu, the target
    name="epitome-mcp-$1-$2"
    mkdir -p "$out/$name"
    case $1 in
    win32) unzip -p "$archives/epitome-$3.zip" '*epitome.exe' >"$out/$name/epitome.exe" ;;
    *)
        tar -xJOf "$archives/epitome-$3.tar.xz" "epitome-$3/epitome" >"$out/$name/epitome"
        chmod 755 "$out/$name/epitome"
        ;;
    esac
    cat >"$out/$name/package.json" <<JSON
{"name": "$name", "version": "$version", "description": "epitome for $1 $2", "license": "MIT OR Apache-2.0", "os": ["$1"], "cpu": ["$2"]}
JSON
}
package linux x64 x86_64-unknown-linux-musl
package linux arm64 aarch64-unknown-linux-musl
package darwin x64 x86_64-apple-darwin
package darwin arm64 aarch64-apple-darwin
package win32 x64 x86_64-pc-windows-msvc
