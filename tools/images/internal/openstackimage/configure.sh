# Turns the installed packages into an image for pods with any uid and a
# read-only root file system. Runs inside the root file system: of the base,
# and again of each build, which installs further packages.

apt-get clean
rm -rf /var/cache/debconf/*-old /var/cache/ldconfig/aux-cache
find /var/log -type f -delete
find /tmp /var/tmp /run -mindepth 1 -delete

# What nobody reads in a container. Compiled Python stays: nothing could be
# compiled later, and importing Nova from source takes several times as long.
find /usr/share/doc -mindepth 1 ! -name copyright ! -type d -delete
find /usr/share/doc -mindepth 1 -type d -empty -delete
rm -rf /usr/share/man/* /usr/share/info/* /usr/share/locale/* /usr/lib/udev/hwdb.d /usr/lib/udev/hwdb.bin
find /usr/share/python-babel-localedata -name '*.dat' ! -name root.dat ! -name 'en*.dat' -delete
find /usr/lib/python3/dist-packages -type d -name tests -prune -exec rm -rf {} +

# What must differ between machines, and must therefore not be in an image.
rm -f /var/lib/rabbitmq/.erlang.cookie /etc/iscsi/initiatorname.iscsi /var/lib/dbus/machine-id
: > /etc/machine-id
: > /etc/hostname
: > /etc/resolv.conf

# The default user of the image. Nothing below depends on it.
getent group openstack || groupadd --gid 42424 openstack
id openstack || useradd --uid 42424 --gid 42424 --no-log-init --home-dir /tmp --no-create-home --shell /bin/bash openstack

# Everything readable for any uid: the packages keep the configuration for
# their own users. For the group too: pods with any uid are often in group 0.
# There is nothing secret in an image. Nothing may gain rights.
find / -xdev -type d ! -path '/proc*' ! -perm -0055 -exec chmod a+rx {} +
find / -xdev -type f ! -path '/proc/*' ! -perm -0044 ! -path '/etc/*shadow*' -exec chmod a+r {} +
find / -xdev -type f ! -path '/proc/*' -perm /6000 -exec chmod ug-s {} +

# Mount points for state.
mkdir -p /var/lib/mysql /run/mysqld
