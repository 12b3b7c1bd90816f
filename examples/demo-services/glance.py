"""Registers Glance with Keystone, and runs it with a database and images in files."""
import os
import pathlib
import secrets
import subprocess
import sys

from catalog import register

CONFIG = pathlib.Path("/var/lib/glance/glance.conf")
password = secrets.token_hex(16)
admin = register("glance", "image", sys.argv[1], password)
CONFIG.write_text(f"""\
[DEFAULT]
workers = 1
[database]
connection = sqlite:////var/lib/glance/glance.sqlite
[glance_store]
filesystem_store_datadir = /var/lib/glance/images
[paste_deploy]
config_file = /etc/glance/glance-api-paste.ini
flavor = keystone
[keystone_authtoken]
auth_url = {admin["authURL"]}
auth_type = password
username = glance
password = {password}
project_name = service
user_domain_name = Default
project_domain_name = Default
""", encoding="utf-8")
subprocess.run(["glance-manage", f"--config-file={CONFIG}", "db_sync"], check=True)
os.execvp("glance-api", ["glance-api", f"--config-file={CONFIG}"])
