# Installs the packages of the base, named as arguments. Runs inside the root
# file system.

apt-get -q -y --no-install-recommends upgrade
apt-get -q -y --no-install-recommends install "$@"
