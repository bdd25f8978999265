"""JSON over one HTTP connection that stays open; raises only errors of `proxmo_envs`."""

from __future__ import annotations

import http.client
import json
import threading
import weakref
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from proxmo_envs.errors import InvalidOptionError, ProxmoEnvError, ServerError

_TIMEOUT_S = 30.0


class Connection:
    """A connection to one server; threads may share it and take turns."""

    def __init__(self, base_url: str, errors: Mapping[str, type[ProxmoEnvError]]) -> None:
        """Prepare a connection, which opens with the first request.

        Args:
            base_url: such as "http://127.0.0.1:3000"; a path in it is put before all others.
            errors: error code of the server -> class to raise; ServerError for all others.

        Raises:
            InvalidOptionError: the address is not of that form.
        """
        self._base_url = base_url
        self._errors = errors
        self._lock = threading.Lock()
        try:
            parts = urlsplit(str(base_url))
            kinds = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
            host, port, kind = parts.hostname or "", parts.port, kinds[parts.scheme]
            self._http = kind(host, port, timeout=_TIMEOUT_S)
        except (KeyError, ValueError, http.client.InvalidURL) as error:
            raise InvalidOptionError(
                f"base_url is an address like http://127.0.0.1:3000, got {base_url!r:.200}"
            ) from error
        self._path = parts.path.rstrip("/")
        weakref.finalize(self, self._http.close)

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return the JSON of the response to a request.

        Raises:
            ServerError: no answer, or one that is not JSON, or an error.
            ProxmoEnvError: the class that `errors` has for the code of the error.
        """
        with self._lock:
            try:
                status, content = self._send(method, path, body)
            except (OSError, http.client.HTTPException) as error:
                self._http.close()
                raise ServerError(
                    f"no answer from the shop at {self._base_url} ({type(error).__name__}: "
                    f"{error}); is `proxmo webshop serve` running there?"
                ) from error
        try:
            answer = json.loads(content)
            if status >= 400:
                code, message = answer["error"]["code"], answer["error"]["message"]
                raise self._errors.get(code, ServerError)(
                    f"the shop at {self._base_url} answers {status}: {message}"
                )
        except (ValueError, TypeError, KeyError) as error:
            raise ServerError(
                f"{self._base_url}{path} answers {status}, and not as `proxmo webshop serve` does: "
                f"{content[:100]!r}"
            ) from error
        return answer

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None) -> tuple[int, bytes]:
        """Send a request; send it again if the server has closed the open connection.

        Sending twice is safe: an action names the step of the session that it belongs to.
        """
        content = None if body is None else json.dumps(body)
        headers = {"Content-Type": "application/json"}
        was_open = self._http.sock is not None
        try:
            self._http.request(method, self._path + path, content, headers)
            response = self._http.getresponse()
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            self._http.close()
            if not was_open:
                raise
            self._http.request(method, self._path + path, content, headers)
            response = self._http.getresponse()
        return response.status, response.read()

    def close(self) -> None:
        """Close the connection; the next request opens it again."""
        with self._lock:
            self._http.close()
