"""Writes the screen of a server, as its console shows it, to the standard output as a PNG.

It uses the console as a browser does: a token of the API, a websocket to nova-novncproxy, and
RFB 3.8 through it.
"""
import http.client
import os
import struct
import sys
import urllib.parse
import zlib

import openstack

PIXELS = struct.pack(">BBBBHHHBBBxxx", 32, 24, 0, 1, 255, 255, 255, 16, 8, 0)  # B, G, R and an unused byte
RAW, UPDATE, BELL = 0, 0, 2


class WebSocket:
    """A websocket with binary frames (RFC 6455)."""

    def __init__(self, url):
        page = urllib.parse.urlsplit(url)
        kind = http.client.HTTPSConnection if page.scheme == "https" else http.client.HTTPConnection
        connection = kind(page.netloc, timeout=60)
        path = dict(urllib.parse.parse_qsl(page.query))["path"]
        connection.request("GET", "/" + path, headers={
            "Connection": "Upgrade", "Upgrade": "websocket", "Origin": f"{page.scheme}://{page.netloc}",
            "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "A" * 22 + "==", "Sec-WebSocket-Protocol": "binary"})
        answer = connection.getresponse()
        if answer.status != http.client.SWITCHING_PROTOCOLS:
            sys.exit(f"{page.netloc} answers {answer.status} {answer.reason}")
        self.socket, self.answer, self.content = connection.sock, answer, b""

    def send(self, content):
        mask = os.urandom(4)
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(content))
        self.socket.sendall(bytes([0x82, 0x80 | len(content)]) + mask + masked)

    def read(self, size):
        while len(self.content) < size:
            header = self.answer.fp.read(2)
            if len(header) < 2 or header[0] & 15 > 2:
                sys.exit("the proxy has closed the console")
            long = {126: ">H", 127: ">Q"}.get(header[1])
            length = struct.unpack(long, self.answer.fp.read(struct.calcsize(long)))[0] if long else header[1]
            self.content += self.answer.fp.read(length)
        part, self.content = self.content[:size], self.content[size:]
        return part


class Screen(WebSocket):
    """A connection of RFB."""

    def unpack(self, layout):
        return struct.unpack(layout, self.read(struct.calcsize(layout)))

    def begin(self):
        """Returns the width and the height."""
        self.send(self.read(12))  # the version of RFB
        self.read(*self.unpack("B"))  # of the kinds of authentication, the proxy has only None
        self.send(b"\1")
        if self.unpack(">I") != (0,):
            sys.exit("the proxy refuses the console")
        self.send(b"\1")  # shared with others
        width, height, _, name = self.unpack(">HH16sI")
        self.read(name)
        self.send(struct.pack(">Bxxx", 0) + PIXELS + struct.pack(">BxHi", 2, 1, RAW))
        return width, height

    def update(self, rows, width):
        """Draws one message into the rows, and returns how many pixels it has."""
        kind, = self.unpack("B")
        if kind == BELL:
            return 0
        if kind != UPDATE:
            sys.exit(f"message {kind} of RFB is not known")
        drawn = 0
        for _ in range(self.unpack(">xH")[0]):
            x, y, w, h, _ = self.unpack(">HHHHi")
            pixels = self.read(w * h * 4)
            for row in range(h):
                rows[y + row][x * 4:(x + w) * 4] = pixels[row * w * 4:(row + 1) * w * 4]
            drawn += w * h
        return drawn


def png(rows, width, height):
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    lines = bytearray()
    for row in rows:
        line = bytearray(1 + 3 * width)
        line[1::3], line[2::3], line[3::3] = row[2::4], row[1::4], row[0::4]
        lines += line
    return b"".join((b"\x89PNG\r\n\x1a\n", chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
                     chunk(b"IDAT", zlib.compress(bytes(lines), 9)), chunk(b"IEND", b"")))


def console(name):
    compute = openstack.connect().compute
    server = compute.find_server(name, ignore_missing=False)
    answer = compute.post(f"/servers/{server.id}/remote-consoles", microversion="2.8",
                          json={"remote_console": {"protocol": "vnc", "type": "novnc"}})
    openstack.exceptions.raise_from_response(answer)
    return answer.json()["remote_console"]["url"]


screen = Screen(console(sys.argv[1]))
width, height = screen.begin()
rows, drawn = [bytearray(4 * width) for _ in range(height)], 0
while drawn < width * height:
    screen.send(struct.pack(">BBHHHH", 3, 0, 0, 0, width, height))
    drawn += screen.update(rows, width)
sys.stdout.buffer.write(png(rows, width, height))
