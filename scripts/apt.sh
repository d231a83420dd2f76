# Sourced: apt_install PACKAGE... installs Debian packages, as root or with sudo.
apt_install() {
    local sudo=""
    [ "$(id -u)" = 0 ] || sudo=sudo
    echo "installing $*" >&2
    export DEBIAN_FRONTEND=noninteractive
    $sudo apt-get update -qq >/dev/null
    $sudo apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}
