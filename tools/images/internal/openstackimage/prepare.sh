# Prepares the installation of packages, and reads the lists of packages. Runs inside the root
# file system, before anything else.

# No service may start while packages are configured.
printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d
chmod 0755 /usr/sbin/policy-rc.d

# The scripts of the OpenStack packages look up the host's own name.
printf '127.0.0.1 localhost\n::1 localhost\n' > /etc/hosts

cat > /etc/dpkg/dpkg.cfg.d/image <<EOF
force-unsafe-io
path-exclude=/usr/share/doc/*
path-include=/usr/share/doc/*/copyright
path-exclude=/usr/share/man/*
path-exclude=/usr/share/info/*
path-exclude=/usr/share/locale/*
EOF

apt-get -q update
