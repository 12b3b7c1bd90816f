"""Writes clouds.yaml for the administrator. JSON is YAML, and quotes any password."""
import json
import pathlib

SECRET = pathlib.Path("/secrets/keystone-admin")


def key(name):
    return (SECRET / name).read_text(encoding="utf-8")


cloud = {
    "auth": {
        "auth_url": key("authURL"),
        "username": key("user"),
        "password": key("password"),
        "project_name": key("project"),
        "user_domain_name": key("userDomain"),
        "project_domain_name": key("projectDomain"),
    },
    "region_name": key("region"),
    "identity_api_version": 3,
}
pathlib.Path("/etc/openstack/clouds.yaml").write_text(json.dumps({"clouds": {"demo": cloud}}), encoding="utf-8")
