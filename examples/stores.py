"""Stores for what an agent knows, on top of docker snapshot: bookmarks, conversations, and the state at a mode switch.
It needs provider.py beside it, and otherwise Python's standard library only.

What is stored is a state: a light snapshot of what is attached to it, without a container. Each store has a line of
states, which is its name; a line cannot have the name of a container. What docker refuses raises SnapshotError, with a
code as docs/json.md describes it. stores.sh reads what this writes, and the other way round.
"""

import hashlib
import json
import re
import subprocess

from provider import NAME, docker_snapshot, first_error, metadata_options, read_metadata, slug

RESERVED = re.compile(r"latest$|[0-9]{8}-")  # names that mean another snapshot, or read like the ID of one


class SnapshotError(Exception):
    """What docker snapshot refused, or could not do."""

    def __init__(self, error):
        super().__init__(error["error"])
        self.code = error["code"]


class Store:
    """A line of states."""

    def __init__(self, line):
        self.line = line

    def reference(self, snapshot):
        """What docker snapshot calls a state of this line: by its ID, its name, or "latest"."""
        return f"{self.line}:{snapshot}"

    def create(self, attachment, content, options, name=""):
        """A state with these bytes as its attachment. Returns what docker snapshot prints."""
        options = ["--state-only", "--line", self.line, "--attach", f"{attachment}=-", *options]
        return one(docker_snapshot("create", *options, "--", *([name] if name else []), stdin=content))

    def rename(self, snapshot, name):
        """Give a state another name, or none."""
        one(docker_snapshot("annotate", "--name", name, "--", self.reference(snapshot)))

    def inspect(self, snapshot):
        """A state, or None if there is no such state."""
        printed = docker_snapshot("inspect", "--", self.reference(snapshot))
        if (first_error(printed) or {}).get("code") == "not_found":
            return None
        return one(printed)

    def read(self, snapshot):
        """A state, the name of its attachment, and the bytes of it; or None if there is no such state. One that is
        removed while it is read is none, or another one that has got its name."""
        found = self.inspect(snapshot)
        while found is not None:
            attachment = found["attachments"][0]["name"]
            command = ["docker", "snapshot", "cat", "--", self.reference(found["id"]), attachment]
            done = subprocess.run(command, capture_output=True, check=False)
            if done.returncode == 0:  # else what it wrote is not to be trusted
                return found, attachment, done.stdout
            now = self.inspect(snapshot)
            if now is not None and now["id"] == found["id"]:
                raise SnapshotError({"code": "internal", "error": done.stderr.decode(errors="replace").strip()})
            found = now
        return None

    def find(self, run_id="", tag="", text="", limit=100, options=()):
        """The states of a run, with a tag, with a text in name or description: the newest first, and at most limit."""
        options = ["--filter", "kind=state", "--filter", f"line={self.line}", "--last", str(limit), *options]
        for key, value in (("run", run_id), ("tag", tag)):
            if value:
                options += ["--filter", f"{key}={value}"]
        if text:
            options += ["--search", text]
        printed = docker_snapshot("ls", *options)
        failed = first_error(printed)
        if failed:
            raise SnapshotError(failed)
        return printed


class Bookmarks(Store):
    """Texts and bytes by name. Any text is a name: the state has a slug of it, and the text as its description."""

    def __init__(self, line="bookmarks"):
        super().__init__(line)

    def save(self, name, content, *, metadata=None, tags=(), run_id=""):
        """Keep a text or bytes under a name. An earlier bookmark of that name stays, without the name: list has it, and its
        ID leads to it. Returns the bookmark, without content."""
        text = isinstance(content, str)
        options = ["--message", name, *metadata_options(metadata or {})]
        for tag in tags:
            options += ["--tag", tag]
        if run_id:
            options += ["--run-id", run_id]
        earlier = self.inspect(key(name))
        if earlier:
            self.rename(earlier["id"], "")
        try:
            return bookmark(
                self.create("content.txt" if text else "content", content.encode() if text else content, options, key(name))
            )
        except SnapshotError:
            if earlier:
                self.rename(earlier["id"], key(name))
            raise

    def load(self, name):
        """The bookmark, with its content as it was saved; None if there is none."""
        read = self.read(key(name))
        if read is None:
            return None
        found, attachment, content = read
        return {**bookmark(found), "content": content.decode() if attachment == "content.txt" else content}

    def delete(self, name):
        """Whether there was such a bookmark. It is gone now."""
        printed = docker_snapshot("rm", "--", self.reference(key(name)))
        if (first_error(printed) or {}).get("code") == "not_found":
            return False
        one(printed)
        return True

    def list(self, *, run_id="", tag="", text="", limit=100):
        """The bookmarks, without their content: the newest first."""
        return [bookmark(found) for found in self.find(run_id, tag, text, limit)]


class Conversations(Store):
    """The messages of a conversation, kept before they are lost: the last five."""

    def __init__(self, line="conversation", keep=5, threshold=0.85):
        super().__init__(line)
        self.keep, self.threshold = keep, threshold

    def after_step(self, messages, usage, *, run_id=""):
        """To be called after every step, with how much of the context is in use: 0.87. Returns the state that was made,
        or {"status": "skipped"} with a reason: usage is below the threshold, or the state for it is there already."""
        options = ["--if-usage", str(usage), "--threshold", str(self.threshold)]
        return self.keep_messages(messages, options, run_id)

    def before_risky_step(self, messages, what, *, run_id=""):
        """To be called before a step that may go wrong. Returns the state."""
        return self.keep_messages(messages, ["--trigger", "before_action", "--message", what], run_id)

    def keep_messages(self, messages, options, run_id):
        options = [*options, "--keep", str(self.keep)]
        if run_id:
            options += ["--run-id", run_id]
        return self.create("messages.json", json.dumps(messages).encode(), options)

    def load(self, snapshot="latest"):
        """The messages of a state, or None if there is none."""
        read = self.read(snapshot)
        return None if read is None else json.loads(read[2])


class Modes(Store):
    """The state of an agent when it switched its mode, to go back to. It is gone after an hour."""

    def __init__(self, line="modes", expires="1h"):
        super().__init__(line)
        self.expires = expires

    def switch(self, before, after, state):
        """Keep the state at a switch from one mode to another."""
        options = ["--trigger", "event", "--expires", self.expires, "--keep", "0", "--message", f"{before} -> {after}"]
        return self.create("state.json", json.dumps(state).encode(), options)

    def last(self):
        """The state at the last switch, or None if there was none within the hour."""
        found = self.find(limit=1, options=["--filter", "expired=false"])
        read = self.read(found[0]["id"]) if found else None
        return None if read is None else json.loads(read[2])


def one(printed):
    """The only object of what docker snapshot printed."""
    failed = first_error(printed)
    if failed:
        raise SnapshotError(failed)
    return printed[0]


def key(name):
    """The name of a bookmark's state: the bookmark's own if docker takes it, else a slug. That ends with a part of a
    digest, so that different names never mean the same state."""
    if NAME.fullmatch(name) and not RESERVED.match(name):
        return name
    return f"{slug(name)[:119]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def bookmark(found):
    return {
        "id": found["id"],
        "name": found["description"],
        "metadata": read_metadata(found["meta"]),
        "tags": found["tags"],
        "run_id": found["run_id"],
        "created": found["created"],
    }
