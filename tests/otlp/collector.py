#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A collector that keeps what it gets, and answers as the file `mode` in its folder says.

usage: collector.py FOLDER PORT [CERTIFICATE KEY CA]

Each request that it takes becomes FOLDER/<number>.<signal>.json; FOLDER/requests has a line for
each request: time, path, status, headers as JSON.
"""
import gzip
import json
import os
import ssl
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FOLDER, PORT = sys.argv[1], int(sys.argv[2])
COUNTS = {"logs": "rejectedLogRecords", "traces": "rejectedSpans", "metrics": "rejectedDataPoints"}
number = 0


def mode_of(signal):
    """A line of `mode` is SIGNAL MODE ARGUMENT, or MODE ARGUMENT of all that have none."""
    try:
        lines = [line.split() for line in open(os.path.join(FOLDER, "mode")) if line.strip()]
    except FileNotFoundError:
        return ["ok"]
    for line in lines:
        if line[0] == signal:
            return line[1:]
    rest = [line for line in lines if line[0] not in COUNTS]
    return rest[0] if rest else ["ok"]


class Collector(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, status, text, headers=()):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        with open(os.path.join(FOLDER, "requests"), "a") as out:
            out.write(f"{time.time():.3f} {self.path} {status} {json.dumps(dict(self.headers))}\n")

    def keep(self, signal, body):
        global number
        number += 1
        name = os.path.join(FOLDER, f"{number:04}.{signal}.json")
        with open(name + ".part", "wb") as out:
            out.write(body)
        os.rename(name + ".part", name)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        signal = self.path.rsplit("/", 1)[1]
        mode, *argument = mode_of(signal)
        if mode == "slow":
            time.sleep(float(argument[0]))
            mode = "ok"
        if mode == "ok":
            self.keep(signal, body)
            self.answer(200, '{"partialSuccess":{}}')
        elif mode == "rubbish":
            self.answer(200, "<html>" + "<!-- nothing -->" * 100)
        elif mode == "endless":
            self.send_response(200)
            self.end_headers()
            while True:
                self.wfile.write(b"{" * 65536)
        elif mode == "partial":
            self.keep(signal, body)
            self.answer(200, json.dumps({"partialSuccess": {
                COUNTS[signal]: argument[0], "errorMessage": "too old"}}))
        elif mode == "hangup":
            self.close_connection = True
        else:
            after = [("Retry-After", argument[0])] if argument else []
            self.answer(int(mode), '{"message":"not now"}', after)


server = ThreadingHTTPServer(("127.0.0.1", PORT), Collector)
server.daemon_threads = True
if len(sys.argv) > 3:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[3], sys.argv[4])
    context.load_verify_locations(sys.argv[5])
    context.verify_mode = ssl.CERT_REQUIRED
    server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
