"""Configures Placement, creates its schema, and registers it with Keystone.

Safe to repeat: what exists already is kept.
"""
import pathlib
import subprocess
import sys
import time

import openstack
from keystoneauth1.exceptions import ConnectFailure

from connection import AUTHORITY, database_url, option, secret

CONFIG = pathlib.Path("/run/placement/placement.conf")
URL = sys.argv[1]


def configure(account):
    CONFIG.write_text(f"""\
[placement_database]
connection = {database_url(secret("/secrets/placement-database"))}
max_retries = -1
retry_interval = 1
[keystone_authtoken]
auth_url = {account["authURL"]}
auth_type = password
username = {option(account["user"])}
password = {option(account["password"])}
project_name = {option(account["project"])}
user_domain_name = {option(account["userDomain"])}
project_domain_name = {option(account["projectDomain"])}
region_name = {option(account["region"])}
cafile = {AUTHORITY if AUTHORITY.exists() else ""}
""", encoding="utf-8")


def connect(admin):
    """Waits for Keystone, and returns its API with the administrator's rights."""
    while True:
        try:
            cloud = openstack.connect(
                load_yaml_config=False, load_envvars=False, region_name=admin["region"],
                cacert=str(AUTHORITY) if AUTHORITY.exists() else None,
                auth={"auth_url": admin["authURL"], "username": admin["user"], "password": admin["password"],
                      "project_name": admin["project"], "user_domain_name": admin["userDomain"],
                      "project_domain_name": admin["projectDomain"]})
            cloud.session.get_token()
            return cloud.identity
        except ConnectFailure:
            print(f"waiting for Keystone at {admin['authURL']}", flush=True)
            time.sleep(0.5)


def register(identity, account):
    project = identity.find_project(account["project"]) or identity.create_project(name=account["project"])
    user = identity.find_user(account["user"]) or identity.create_user(name=account["user"])
    identity.update_user(user, password=account["password"])
    for name in "admin", "service":
        role = identity.find_role(name) or identity.create_role(name=name)
        identity.assign_project_role_to_user(project, user, role)
    service = identity.find_service("placement") or identity.create_service(name="placement", type="placement")
    for interface in "public", "internal":
        where = {"service_id": service.id, "interface": interface, "region_id": account["region"]}
        if not list(identity.endpoints(**where)):
            identity.create_endpoint(url=URL, **where)


account = secret("/secrets/placement-identity")
configure(account)
subprocess.run(["placement-manage", f"--config-file={CONFIG}", "db", "sync"], check=True)
register(connect(secret("/secrets/keystone-admin")), account)
