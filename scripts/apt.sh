# To be sourced. Defines apt_install PACKAGE..., which installs Debian packages, as root or with sudo.
apt_install() {
    local sudo=""
    [ "$(id -u)" = 0 ] || sudo=sudo
    echo "installing $*" >&2
    export DEBIAN_FRONTEND=noninteractive
    $sudo apt-get update -qq >/dev/null
    # Another process may hold the lock, such as the updates of a machine that was just started.
    $sudo apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends "$@" >/dev/null
}
