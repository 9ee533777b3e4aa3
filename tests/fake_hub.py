"""Fake hub: enough of the Hub's protocol, on loopback, to push datasets and load them back.

Repositories, commits with inline and LFS files, deletions, trees, revisions, downloads. Run
what talks to it in a process of its own: the client reads HF_ENDPOINT when it is imported.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit


@dataclass
class Repo:
    private: bool
    commits: list[tuple[str, dict[str, bytes], str]] = field(default_factory=list)
    """Revision, files and title of each commit, oldest first."""

    @property
    def files(self) -> dict[str, bytes]:
        return self.commits[-1][1]

    def at(self, revision: str) -> tuple[str, dict[str, bytes]] | None:
        if revision in ("main", "refs/heads/main"):
            return self.commits[-1][:2]
        return next((c[:2] for c in self.commits if c[0] == revision), None)

    def commit(self, files: dict[str, bytes], title: str) -> str:
        revision = hashlib.sha1(repr((len(self.commits), title, sorted(files))).encode()).hexdigest()
        self.commits.append((revision, files, title))
        return revision


class FakeHub:
    """A hub that lives while the block lasts: ``with FakeHub() as hub: ... hub.env(folder)``."""

    def __init__(self) -> None:
        self.repos: dict[str, Repo] = {}
        self.lfs: dict[str, bytes] = {}
        self.requests: list[str] = []
        hub = self

        class Handler(_Handler):
            pass

        Handler.hub = hub
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self) -> FakeHub:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def env(self, home: Path) -> dict[str, str]:
        """The environment variables of a process that is to use this hub."""
        return {
            "HF_ENDPOINT": self.url,
            "HF_HUB_DISABLE_XET": "1",
            "HF_TOKEN": "hf_fake",
            "HF_HOME": str(home),
            "HF_HUB_CACHE": str(home / "hub"),
            "HF_DATASETS_CACHE": str(home / "datasets"),
            "HF_HUB_OFFLINE": "0",
            "HF_DATASETS_OFFLINE": "0",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "no_proxy": "127.0.0.1",
        }


class _Handler(BaseHTTPRequestHandler):
    hub: FakeHub
    disable_nagle_algorithm = True  # head and body are two writes: the second would wait 40 ms for the first
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.route("GET")

    def do_HEAD(self) -> None:
        self.route("HEAD")

    def do_POST(self) -> None:
        self.route("POST")

    def do_PUT(self) -> None:
        self.route("PUT")

    def route(self, method: str) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length) if length else b""
        path = unquote(urlsplit(self.path).path)
        self.hub.requests.append(f"{method} {path}")
        if method == "POST" and re.search(r"/repos/create|/commit/", path) and "Authorization" not in self.headers:
            self.send_json({"error": "Invalid username or password."}, 401)
            return
        for verbs, pattern, handler in _ROUTES:
            match = re.fullmatch(pattern, path)
            if match and method in verbs:
                handler(self, body, **match.groupdict())
                return
        self.send_json({"error": f"no route {method} {path}"}, 404)

    def send_json(self, value: Any, status: int = 200, **headers: str) -> None:
        self.send_bytes(json.dumps(value).encode(), status, "application/json", **headers)

    def send_bytes(
        self, data: bytes, status: int = 200, kind: str = "application/octet-stream", **headers: str
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def repo(self, name: str) -> Repo | None:
        found = self.hub.repos.get(name)
        if found is None:
            self.send_json({"error": "Repository not found"}, 404, X_Error_Code="RepoNotFound")
        return found

    def revision(self, repo: Repo, revision: str) -> tuple[str, dict[str, bytes]] | None:
        found = repo.at(revision)
        if found is None:
            self.send_json({"error": "Revision not found"}, 404, X_Error_Code="RevisionNotFound")
        return found

    def whoami(self, body: bytes) -> None:
        self.send_json({"type": "user", "name": "you", "orgs": []})

    def create(self, body: bytes) -> None:
        asked = json.loads(body)
        name = f"{asked.get('organization') or 'you'}/{asked['name']}"
        if name in self.hub.repos:
            self.send_json(
                {"error": "You already created this dataset repo", "url": f"{self.hub.url}/datasets/{name}"}, 409
            )
            return
        repo = Repo(private=asked.get("private", asked.get("visibility") == "private"))
        repo.commit({".gitattributes": b"*.parquet filter=lfs\n"}, "initial commit")
        self.hub.repos[name] = repo
        self.send_json({"url": f"{self.hub.url}/datasets/{name}", "name": name})

    def info(self, body: bytes, name: str, revision: str = "main") -> None:
        repo = self.repo(name)
        found = self.revision(repo, revision) if repo else None
        if repo and found:
            self.send_json(
                {
                    "id": name,
                    "_id": "0",
                    "sha": found[0],
                    "private": repo.private,
                    "disabled": False,
                    "gated": False,
                    "tags": [],
                    "downloads": 0,
                    "likes": 0,
                    "siblings": [{"rfilename": path} for path in sorted(found[1])],
                }
            )

    def refs(self, body: bytes, name: str) -> None:
        repo = self.repo(name)
        if repo:
            head = {"name": "main", "ref": "refs/heads/main", "targetCommit": repo.commits[-1][0]}
            self.send_json({"branches": [head], "tags": [], "converts": []})

    def commits(self, body: bytes, name: str, revision: str) -> None:
        repo = self.repo(name)
        if repo:
            listed = [
                {"id": sha, "title": title, "message": "", "authors": [], "date": "2026-01-01T00:00:00.000Z"}
                for sha, _, title in reversed(repo.commits)
            ]
            self.send_json(listed)

    def tree(self, body: bytes, name: str, revision: str, path: str | None = None) -> None:
        repo = self.repo(name)
        found = self.revision(repo, revision) if repo else None
        if found is None:
            return
        deep = "recursive" in parse_qs(urlsplit(self.path).query)
        folder = (path or "").strip("/")
        prefix = f"{folder}/" if folder else ""
        inside = {p: data for p, data in found[1].items() if p.startswith(prefix)}
        if prefix and not inside:
            self.send_json({"error": "Entry not found"}, 404, X_Error_Code="EntryNotFound")
            return
        folders = sorted({prefix + p[len(prefix) :].split("/")[0] for p in inside if "/" in p[len(prefix) :]})
        files = [_entry(p, data) for p, data in inside.items() if deep or "/" not in p[len(prefix) :]]
        self.send_json([{"type": "directory", "path": f, "oid": "0", "size": 0} for f in folders] + files)

    def paths_info(self, body: bytes, name: str, revision: str) -> None:
        repo = self.repo(name)
        found = self.revision(repo, revision) if repo else None
        if found is None:
            return
        asked = json.loads(body) if body[:1] == b"{" else {"paths": parse_qs(body.decode())["paths"]}
        files = [_entry(p, found[1][p]) for p in asked["paths"] if p in found[1]]
        folders = [p for p in asked["paths"] if any(f.startswith(f"{p}/") for f in found[1])]
        self.send_json([*files, *({"type": "directory", "path": p, "oid": "0", "size": 0} for p in folders)])

    def preupload(self, body: bytes, name: str, revision: str) -> None:
        modes = {True: "lfs", False: "regular"}
        files = [
            {"path": f["path"], "uploadMode": modes[f["path"].endswith(".parquet")], "shouldIgnore": False, "oid": None}
            for f in json.loads(body)["files"]
        ]
        self.send_json({"files": files, "commitOid": "0"})

    def lfs_batch(self, body: bytes, name: str) -> None:
        objects = []
        for asked in json.loads(body)["objects"]:
            action = {"upload": {"href": f"{self.hub.url}/lfs/{asked['oid']}"}}
            objects.append({"oid": asked["oid"], "size": asked["size"], "actions": action})
        self.send_json({"transfer": "basic", "objects": objects})

    def lfs_put(self, body: bytes, oid: str) -> None:
        assert hashlib.sha256(body).hexdigest() == oid
        self.hub.lfs[oid] = body
        self.send_bytes(b"")

    def commit(self, body: bytes, name: str, revision: str) -> None:
        repo = self.repo(name)
        if repo is None:
            return
        files, title = dict(repo.files), ""
        for line in map(json.loads, body.splitlines()):
            value = line["value"]
            if line["key"] == "header":
                title = value["summary"]
            elif line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.hub.lfs[value["oid"]]
            elif line["key"] == "deletedFile":
                del files[value["path"]]
        oid = repo.commit(files, title)
        url = f"{self.hub.url}/datasets/{name}/commit/{oid}"
        self.send_json({"success": True, "commitOid": oid, "commitUrl": url, "hookOutput": "", "pullRequestUrl": None})

    def resolve(self, body: bytes, name: str, revision: str, path: str) -> None:
        repo = self.repo(name)
        found = self.revision(repo, revision) if repo else None
        if found is None:
            return
        data = found[1].get(path)
        if data is None:
            self.send_json({"error": "Entry not found"}, 404, X_Error_Code="EntryNotFound")
            return
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        headers = {"ETag": f'"{_sha(data)}"', "X_Repo_Commit": found[0], "Accept_Ranges": "bytes"}
        if asked:
            start, end = int(asked[1]), int(asked[2] or len(data) - 1)
            headers["Content_Range"] = f"bytes {start}-{min(end, len(data) - 1)}/{len(data)}"
            self.send_bytes(data[start : end + 1], 206, **headers)
        else:
            self.send_bytes(data, **headers)

    def validate_yaml(self, body: bytes) -> None:
        self.send_json({"errors": [], "warnings": []})


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _entry(path: str, data: bytes) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": "file", "path": path, "oid": _sha(data)[:40], "size": len(data)}
    if path.endswith(".parquet"):
        entry["lfs"] = {"oid": _sha(data), "size": len(data), "pointerSize": 130}
    return entry


_NAME = r"(?P<name>[^/]+/[^/]+)"
_API = rf"/api/datasets/{_NAME}"
_ROUTES = [
    (("GET",), r"/api/whoami-v2", _Handler.whoami),
    (("POST",), r"/api/repos/create", _Handler.create),
    (("POST",), r"/api/validate-yaml", _Handler.validate_yaml),
    (("GET",), _API, _Handler.info),
    (("GET",), rf"{_API}/revision/(?P<revision>.+)", _Handler.info),
    (("GET",), rf"{_API}/refs", _Handler.refs),
    (("GET",), rf"{_API}/commits/(?P<revision>[^/]+)", _Handler.commits),
    (("GET",), rf"{_API}/tree/(?P<revision>[^/]+)(?P<path>/.*)?", _Handler.tree),
    (("POST",), rf"{_API}/paths-info/(?P<revision>[^/]+)", _Handler.paths_info),
    (("POST",), rf"{_API}/preupload/(?P<revision>[^/]+)", _Handler.preupload),
    (("POST",), rf"{_API}/commit/(?P<revision>[^/]+)", _Handler.commit),
    (("POST",), rf"/datasets/{_NAME}\.git/info/lfs/objects/batch", _Handler.lfs_batch),
    (("PUT",), r"/lfs/(?P<oid>\w+)", _Handler.lfs_put),
    (("GET", "HEAD"), rf"/datasets/{_NAME}/resolve/(?P<revision>[^/]+)/(?P<path>.+)", _Handler.resolve),
]
