"""Creates the image empty, with which a server of the fake driver starts. Safe to repeat."""
import pathlib
import sys

import openstack

images = openstack.connect().image
if not images.find_image("empty"):
    content = pathlib.Path("/tmp/empty")
    content.write_bytes(bytes(1024))
    try:
        images.create_image("empty", filename=str(content), disk_format="raw", container_format="bare", visibility="public")
    except openstack.exceptions.SDKException as error:
        sys.exit(f"image empty: {error}")
