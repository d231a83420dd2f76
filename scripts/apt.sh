# To be sourced. Installs Debian packages, as root or with sudo:
# apt_needed_for PACKAGE...   ends the script with one line if that is not possible here
# apt_install PACKAGE...
as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

apt_needed_for() {
    if ! command -v apt-get >/dev/null; then
        echo "there is no apt-get here: please install what Debian calls $*" >&2
        exit 1
    elif [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
        echo "this is not root, and there is no sudo. As root, run: apt-get install $*" >&2
        exit 1
    fi
}

apt_install() {
    apt_needed_for "$@"
    echo "installing $*" >&2
    # What was listed before, or by the sources that answer, may be all that is needed.
    as_root apt-get update -qq >/dev/null || true
    # Another process may hold the lock, such as the updates of a machine that was just started.
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 \
        install -y -qq --no-install-recommends "$@" >/dev/null
}
