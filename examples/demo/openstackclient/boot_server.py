"""Boots a server without an image or a network, and waits until it is ACTIVE.

This needs neither Glance nor Neutron, unlike the openstack command, and works in
a cloud without them. A second run finds the server of the first.
"""
import sys
import time

import openstack
from keystoneauth1.exceptions import ClientException

NAME = sys.argv[1]
DEADLINE = time.monotonic() + 120
MICROVERSION = "2.37"  # the first that can boot a server without a network


def get(compute, path, **query):
    response = compute.get(path, params=query, microversion=MICROVERSION)
    openstack.exceptions.raise_from_response(response)
    return response.json()


def post(compute, path, body):
    response = compute.post(path, json=body, microversion=MICROVERSION)
    openstack.exceptions.raise_from_response(response)
    return response.json()


def flavor(compute, name="tiny"):
    for found in get(compute, "/flavors")["flavors"]:
        if found["name"] == name:
            return found["id"]
    return post(compute, "/flavors", {"flavor": {"name": name, "ram": 64, "vcpus": 1, "disk": 0}})["flavor"]["id"]


def find(compute, status):
    servers = get(compute, "/servers", name=f"^{NAME}$", status=status)["servers"]
    return servers[0]["id"] if servers else None


def boot(compute):
    post(compute, "/servers", {"server": {
        "name": NAME,
        "flavorRef": flavor(compute),
        "networks": "none",
        "block_device_mapping_v2": [{"boot_index": 0, "source_type": "blank", "destination_type": "local"}],
    }})


def main():
    compute = openstack.connect().compute
    if not find(compute, "ACTIVE"):
        boot(compute)
    while True:
        server = find(compute, "ACTIVE")
        if server:
            print(f"server {NAME} {server} is ACTIVE")
            return
        if find(compute, "ERROR"):
            sys.exit(f"server {NAME} is in ERROR: see the logs of nova-scheduler and of the cell's nova-conductor")
        if time.monotonic() > DEADLINE:
            sys.exit(f"server {NAME} is not ACTIVE after 120 s: see the logs of nova-scheduler and nova-compute")
        time.sleep(0.5)


try:
    main()
except (openstack.exceptions.SDKException, ClientException) as error:
    sys.exit(f"server {NAME}: {error}")
