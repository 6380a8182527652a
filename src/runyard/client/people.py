"""Users, keys and teams of a server, typed."""

from __future__ import annotations

import time
import urllib.parse

from runyard.client.http import ApiPart
from runyard.proof import ID_LENGTH, hash_key
from runyard.shapes.people import Key, Me, NewKey, Session, Team, User

# A key that ends sooner is not given to a shell again.
_LEFT_SECONDS = 24 * 3600.0


class PeopleApi(ApiPart):
    """What the server lets this key know and change of its people."""

    def me(self) -> Me:
        return self._connection.get("/api/me")

    def users(self) -> list[User]:
        return self._connection.get("/api/users")

    def add_user(self, name: str) -> NewKey:
        return self._connection.post("/api/users", {"name": name})

    def remove_user(self, name: str) -> None:
        self._delete("users", name)

    def list_keys(self) -> list[Key]:
        return self._connection.get("/api/keys")

    def add_key(
        self,
        label: str,
        user: str | None = None,
        *,
        kind: str = "person",
        scope: str | None = None,
        run: int | None = None,
        days: int | None = None,
    ) -> NewKey:
        """`kind`: shell and run are for runs only, and end; see the server's `api_keys`."""
        wanted = {"kind": kind, "scope": scope, "run": run, "days": days}
        return self._connection.post("/api/keys", {"label": label, "user": user, **wanted})

    def shell_key(self, label: str, last: str | None, *, days: int | None = None) -> str:
        """A key for what is started in a shell: the last one where it is good, else a new one."""
        if last:
            last_id = hash_key(last)[:ID_LENGTH]
            until = time.time() + _LEFT_SECONDS
            for key in self.list_keys():
                if (
                    key["id"] == last_id
                    and key["kind"] == "shell"
                    and (key["expires_at"] or 0) > until
                ):
                    return last
        return self.add_key(label, kind="shell", days=days)["key"]

    def revoke_key(self, key: Key) -> None:
        self._delete("users", key["user"], "keys", key["id"])

    def revoke_kind(self, user: str, kind: str) -> int:
        """All keys of a kind that were handed out; how many."""
        path = f"{_path('users', user, 'keys')}?{urllib.parse.urlencode({'kind': kind})}"
        done: dict[str, int] = self._connection.request("DELETE", path, query=None)
        return done["revoked"]

    def sessions(self) -> list[Session]:
        return self._connection.get("/api/sessions")

    def end_session(self, session: Session) -> None:
        self._delete("sessions", session["id"])

    def end_sessions(self) -> int:
        """End all sessions of this key's user; how many there were."""
        return self._connection.request("DELETE", "/api/sessions", query=None)["ended"]

    def teams(self) -> list[Team]:
        return self._connection.get("/api/teams")

    def add_team(self, name: str, members: list[str]) -> None:
        self._connection.post("/api/teams", {"name": name, "members": members})

    def remove_team(self, name: str) -> None:
        self._delete("teams", name)

    def add_member(self, team: str, user: str) -> None:
        """Invite a user; as the admin, take them in. Of oneself: accept an invitation."""
        self._connection.request("PUT", _path("teams", team, "members", user), query=None)

    def remove_member(self, team: str, user: str) -> None:
        """End a membership or an invitation. Of oneself: leave, or decline."""
        self._delete("teams", team, "members", user)

    def _delete(self, *parts: str) -> None:
        self._connection.request("DELETE", _path(*parts), query=None)


def _path(*parts: str) -> str:
    return "/".join(("/api", *(urllib.parse.quote(part, safe="") for part in parts)))
