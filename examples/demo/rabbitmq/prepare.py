"""Writes RabbitMQ's definitions: the administrator and the default vhost.

The password is given as its salted hash (RabbitMQ doc: passwords), so that any
character works.
"""
import base64
import hashlib
import json
import os
import pathlib

SECRET = pathlib.Path("/secrets/rabbitmq-default-user")


def password_hash(password):
    salt = os.urandom(4)
    return base64.b64encode(salt + hashlib.sha256(salt + password.encode()).digest()).decode()


user = (SECRET / "username").read_text(encoding="utf-8")
password = (SECRET / "password").read_text(encoding="utf-8")
definitions = {
    "users": [{
        "name": user,
        "password_hash": password_hash(password),
        "hashing_algorithm": "rabbit_password_hashing_sha256",
        "tags": ["administrator"],
    }],
    "vhosts": [{"name": "/"}],
    "permissions": [{"user": user, "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}],
}
pathlib.Path("/run/rabbitmq/definitions.json").write_text(json.dumps(definitions), encoding="utf-8")
