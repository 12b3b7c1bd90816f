# Adds the layout of kolla's images: the user, the entry point with sudo, the
# folder of configuration files, and a virtual environment that comes first on
# PATH. $1 and $2 are the programs kolla_start and kolla_set_configs. Runs
# inside the root file system.

groupadd --gid 42400 kolla
groupmod --gid 42436 nova
usermod --uid 42436 --gid 42436 --append --groups kolla nova
printf '%%kolla ALL=(root) NOPASSWD:SETENV: /usr/local/bin/kolla_set_configs\n' > /etc/sudoers.d/kolla
chmod u+s /usr/bin/sudo
mkdir -p /var/lib/kolla/config_files
printf '%s' "$1" > /usr/local/bin/kolla_start
printf '%s' "$2" > /usr/local/bin/kolla_set_configs
chmod 0755 /usr/local/bin/kolla_start /usr/local/bin/kolla_set_configs
python3 -m venv --without-pip --system-site-packages /var/lib/kolla/venv
