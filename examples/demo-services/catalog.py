"""Registers services with Keystone. Safe to repeat: what exists already is kept."""
import pathlib

import openstack


def register(name, kind, url, password=None):
    """Creates endpoints and, with a password, a user, and returns the administrator's Secret."""
    admin = {key.name: key.read_text(encoding="utf-8") for key in pathlib.Path("/secrets/keystone-admin").iterdir() if key.is_file()}
    identity = openstack.connect(
        load_yaml_config=False, load_envvars=False, region_name=admin["region"],
        auth={"auth_url": admin["authURL"], "username": admin["user"], "password": admin["password"],
              "project_name": admin["project"], "user_domain_name": admin["userDomain"],
              "project_domain_name": admin["projectDomain"]}).identity
    service = identity.find_service(name) or identity.create_service(name=name, type=kind)
    for interface in "public", "internal":
        where = {"service_id": service.id, "interface": interface, "region_id": admin["region"]}
        if not list(identity.endpoints(**where)):
            identity.create_endpoint(url=url, **where)
    if password:
        user = identity.find_user(name) or identity.create_user(name=name)
        identity.update_user(user, password=password)
        project = identity.find_project("service")
        for role in "admin", "service":
            identity.assign_project_role_to_user(project, user, identity.find_role(role))
    return admin
