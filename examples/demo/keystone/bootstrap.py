"""Configures Keystone, and creates its keys, schema and administrator.

Safe to repeat: what exists already is kept.
"""
import base64
import os
import pathlib
import subprocess

from connection import database_url, secret

CONFIG = pathlib.Path("/run/keystone/keystone.conf")
KEYS = pathlib.Path("/var/lib/keystone")


def make_keys(repository):
    """Creates the same keys as keystone-manage fernet_setup, without its seconds of start-up."""
    repository.mkdir(mode=0o700, exist_ok=True)
    for name in "0", "1":  # the next key and the current one
        if not (repository / name).exists():
            (repository / name).write_bytes(base64.urlsafe_b64encode(os.urandom(32)))


def manage(*args, password=""):
    subprocess.run(["keystone-manage", f"--config-file={CONFIG}", *args], check=True,
                   env={**os.environ, "OS_BOOTSTRAP_PASSWORD": password})


admin = secret("/secrets/keystone-admin")
CONFIG.write_text(f"""\
[database]
connection = {database_url(secret("/secrets/keystone-database"))}
# MariaDB may start after Keystone.
max_retries = -1
retry_interval = 1
[fernet_tokens]
key_repository = {KEYS}/fernet-keys
[fernet_receipts]
key_repository = {KEYS}/fernet-keys
[credential]
key_repository = {KEYS}/credential-keys
[identity]
# The cheapest hash: the demo authenticates often, and its passwords need no protection.
password_hash_rounds = 4
[cache]
# In the memory of Keystone's only process: otherwise each validation of a token reads MariaDB 39 times.
# Pickled, because Keystone changes what it gets from the cache.
enabled = true
backend = dogpile.cache.memory_pickle
""", encoding="utf-8")
make_keys(KEYS / "fernet-keys")
make_keys(KEYS / "credential-keys")
manage("db_sync")
manage("bootstrap", f"--bootstrap-username={admin['user']}", f"--bootstrap-project-name={admin['project']}",
       f"--bootstrap-region-id={admin['region']}", f"--bootstrap-public-url={admin['authURL']}",
       f"--bootstrap-internal-url={admin['authURL']}", password=admin["password"])
