#!/usr/bin/env python3
"""The four calls of a snapshot provider, on top of docker snapshot. It needs Python's standard library only.

Each call takes a dict and returns one. Its "status" is "created", "restored", "listed", "deleted", "not_found" or
"error"; with "error" there are "code" and "error", as docs/json.md describes them. No call raises for what docker says.

From a shell: provider.py CALL JSON prints the result as JSON. It exits with 1 if the status is "error".
"""

import json
import re
import subprocess
import sys

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")


def docker_snapshot(*args, stdin=None):
    """Run docker snapshot ARGS --format json, with these bytes as its stdin. Returns the objects that it prints; an
    error is one of them."""
    command, *rest = args
    try:
        done = subprocess.run(
            ["docker", "snapshot", command, "--format", "json", *rest], input=stdin, capture_output=True, check=False
        )
    except OSError as error:
        return [{"status": "error", "code": "unreachable", "error": f"docker cannot be run: {error}"}]
    try:
        printed = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(b"{")]
    except ValueError as error:
        return [{"status": "error", "code": "internal", "error": f"no JSON: {error}"}]
    if not printed and done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()
        return [{"status": "error", "code": "internal", "error": said or f"exit status {done.returncode}"}]
    return printed


def first_error(printed):
    return next((one for one in printed if one.get("status") == "error"), None)


def slug(text):
    """A name that docker takes, from any text. The text itself belongs into the description."""
    made = re.sub(r"[^A-Za-z0-9_.]+", "-", text).strip("-.")[:128]
    return made or "snapshot"


def metadata_options(metadata):
    """--meta for each pair. What is no string becomes JSON, and so does a string that reads like JSON, or is empty:
    read_metadata gives back what was given."""
    options = []
    for key, value in metadata.items():
        plain = isinstance(value, str) and value and read_metadata({key: value})[key] == value
        options += ["--meta", f"{key}={value if plain else json.dumps(value, sort_keys=True)}"]
    return options


def read_metadata(meta):
    """The metadata that metadata_options wrote."""
    found = {}
    for key, value in meta.items():
        try:
            found[key] = json.loads(value)
        except ValueError:
            found[key] = value
    return found


def create_snapshot(request):
    """container; name, description, tags, metadata, trigger, run_id, step_id if wanted."""
    options = []
    name, description = request.get("name", ""), request.get("description", "")
    if name and not NAME.fullmatch(name):
        description = f"{name}: {description}" if description else name
        name = slug(name)
    if description:
        options += ["--message", description]
    for tag in request.get("tags", []):
        options += ["--tag", tag]
    for key in ("trigger", "run_id", "step_id"):
        if request.get(key):
            options += ["--" + key.replace("_", "-"), str(request[key])]
    options += metadata_options(request.get("metadata", {}))
    printed = docker_snapshot("create", *options, "--", request.get("container", ""), *([name] if name else []))
    return first_error(printed) or printed[0]


def restore_snapshot(request):
    """snapshot; in_place, or name for a copy."""
    options = []
    if request.get("in_place"):
        options += ["--replace", "--force"]
    if request.get("name"):
        options += ["--name", request["name"]]
    printed = docker_snapshot("restore", *options, "--", request.get("snapshot", ""))
    return first_error(printed) or printed[0]


def list_snapshots(request):
    """container, tag, run_id, text, limit: all of them if wanted."""
    options = []
    for key, flag in (("tag", "tag"), ("run_id", "run")):
        if request.get(key):
            options += ["--filter", f"{flag}={request[key]}"]
    if request.get("text"):
        options += ["--search", request["text"]]
    if request.get("limit"):
        options += ["--last", str(request["limit"])]
    printed = docker_snapshot("ls", *options, "--", *([request["container"]] if request.get("container") else []))
    return first_error(printed) or {"status": "listed", "snapshots": printed}


def delete_snapshot(request):
    """snapshot; force, if it may be pinned. The status of one that is gone is not_found."""
    if request.get("force"):
        printed = docker_snapshot("rm", "--force", "--", request.get("snapshot", ""))
    else:
        printed = docker_snapshot("rm", "--", request.get("snapshot", ""))
    failed = first_error(printed)
    if failed:
        return {**failed, "status": "not_found"} if failed["code"] == "not_found" else failed
    return {**printed[0], "status": "deleted"} if printed[0]["status"] == "removed" else printed[0]


CALLS = {call.__name__: call for call in (create_snapshot, restore_snapshot, list_snapshots, delete_snapshot)}


def main(args):
    if len(args) != 2 or args[0] not in CALLS:
        print(f"usage: provider.py {'|'.join(CALLS)} JSON", file=sys.stderr)
        return 125
    result = CALLS[args[0]](json.loads(args[1]))
    print(json.dumps(result))
    return 1 if result["status"] == "error" else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
