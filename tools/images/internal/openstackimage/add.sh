# Adds a layer to the image: installs packages, and runs a script inside. A hook of mmdebstrap.
# $1 is the root file system, $2 the tar file of the layer, $3 apt's configuration, $4 the
# packages, $5 the file of excluded paths, $6 configure.sh and $7 the script, whose arguments
# follow. The layer consists of the files that changed: a file that changes gets a later ctime.
root=$1 layer=$2 apt=$3 packages=$4 excluded=$5 configure=$6 script=$7
shift 7
touch "$layer.stamp"
# shellcheck disable=SC2086
APT_CONFIG=$apt apt-get -q -y -o DPkg::Chroot-Directory="$root" install $packages
chroot "$root" sh -euxc "$configure"
chroot "$root" sh -euxc "$script" sh "$@"
cd "$root"
find . -xdev -cnewer "$layer.stamp" -print0 |
  tar --create --file "$layer" --exclude-from "$excluded" --numeric-owner --no-recursion --null --files-from -
