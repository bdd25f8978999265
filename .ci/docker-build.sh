#!/usr/bin/env bash
# Builds the Dockerfile on a machine without a Docker engine and runs the CLI in the result.
#
#   bash .ci/docker-build.sh [WORKDIR]      as root; WORKDIR (default: a new folder in $TMPDIR) keeps the
#                                           base system, so that a second build takes seconds
#
# No image registry is needed: the Dockerfile's base image is replaced by a Debian bookworm system made
# with debootstrap from this machine's own package mirror. Not part of .ci/run: it costs five minutes.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
work=${1:-$(mktemp -d)}
image=proxmo
base=docker.io/library/python:3.11-slim
mkdir -p "$work"
# vfs copies whole layers, but it is the storage driver that needs no kernel support.
export STORAGE_DRIVER=vfs

command -v buildah debootstrap >/dev/null || {
    apt-get update
    apt-get install -y --no-install-recommends buildah debootstrap crun netavark
}

# The base image.
if ! buildah inspect --type image "$base" >/dev/null 2>&1; then
    if [ ! -f "$work/rootfs.tar" ]; then
        mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -n 1)
        debootstrap --variant=minbase --include=ca-certificates,python3,python3-pip,python3-venv \
            bookworm "$work/rootfs" "$mirror"
        tar -C "$work/rootfs" -cf "$work/rootfs.tar" .
        rm -rf "$work/rootfs"
    fi
    container=$(buildah from scratch)
    buildah add -q "$container" "$work/rootfs.tar" /
    buildah config --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        --cmd python3 "$container"
    buildah run --isolation chroot "$container" -- ln -sf /usr/bin/python3 /usr/local/bin/python
    buildah commit -q --rm "$container" "$base"
fi

# pip in the build must see what pip on this machine sees: its certificates, its folder of wheels and
# its settings. They are mounted, so that none of them becomes part of the image.
mounts=(--volume "$work/pip.conf:/etc/pip.conf:ro")
{
    echo "[global]"
    pip config list | sed -n "s/^\(global\|:env:\)\.\(cert\|find-links\)='\(.*\)'$/\2 = \3/p" | sort -u
} >"$work/pip.conf"
for path in $(sed -n 's/^[a-z-]* = \(\/.*\)$/\1/p' "$work/pip.conf"); do
    mounts+=(--volume "$path:$path:ro")
done

buildah bud --layers --isolation chroot --network host --pull-never --format docker \
    "${mounts[@]}" -t "$image" -f "$root/Dockerfile" "$root"

# Run it as its own user. `podman run` needs limits that a sandbox may not set; chroot isolation does not.
container=$(buildah from --pull-never "localhost/$image")
trap 'buildah rm "$container" >/dev/null' EXIT
for arguments in --help "train --preset smoke --out /home/proxmo/run"; do
    # shellcheck disable=SC2086  # words on purpose
    buildah run --isolation chroot --user proxmo "$container" -- proxmo $arguments
done
