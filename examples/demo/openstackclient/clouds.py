"""Writes clouds.yaml for the administrator, as JSON: it is valid YAML and quotes any password."""
import json
import pathlib

from connection import AUTHORITY, secret

admin = secret("/secrets/keystone-admin")
cloud = {
    "auth": {
        "auth_url": admin["authURL"],
        "username": admin["user"],
        "password": admin["password"],
        "project_name": admin["project"],
        "user_domain_name": admin["userDomain"],
        "project_domain_name": admin["projectDomain"],
    },
    "region_name": admin["region"],
    "identity_api_version": 3,
}
if AUTHORITY.exists():
    cloud["cacert"] = str(AUTHORITY)
pathlib.Path("/etc/openstack/clouds.yaml").write_text(json.dumps({"clouds": {"demo": cloud}}), encoding="utf-8")
