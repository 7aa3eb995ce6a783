"""Connections to the Postgres database that a setting names."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.errors import ConfigurationError, MissingDependencyError

if TYPE_CHECKING:
    from sqlalchemy import URL, Engine

CONNECT_TIMEOUT_S: Final = 3
_IDLE_S, _INTERVAL_S, _PROBES = 30, 10, 3
_GONE_S: Final = _IDLE_S + _PROBES * _INTERVAL_S

# Both ends notice within a minute that the other is gone, for example after a power failure. The
# server's own default is two hours, for which the locks of a dead host would stay taken.
_CLIENT_LIMITS: Final = {
    "keepalives": 1,
    "keepalives_idle": _IDLE_S,
    "keepalives_interval": _INTERVAL_S,
    "keepalives_count": _PROBES,
    "tcp_user_timeout": _GONE_S * 1000,
}
_SERVER_LIMITS: Final = {
    "lock_timeout": "3s",
    "statement_timeout": "10s",
    "tcp_keepalives_idle": _IDLE_S,
    "tcp_keepalives_interval": _INTERVAL_S,
    "tcp_keepalives_count": _PROBES,
    "tcp_user_timeout": f"{_GONE_S}s",
}
_EXAMPLE: Final = "Example: postgresql://user:password@host/robotutor"  # pragma: allowlist secret


def require_packages(extra: str, *names: str) -> None:
    """Check that packages of an extra are installed.

    Raises:
        MissingDependencyError: One of them is not.
    """
    for name in names:
        if find_spec(name) is None:
            raise MissingDependencyError(name, extra)


def read_database_url(setting: str, address: str, extra: str) -> URL:
    """Return the parsed address of a database.

    Args:
        setting: Name of the setting, for the error message.
        address: Value of the setting.
        extra: Name of the package's extra that brings SQLAlchemy and alembic.

    Raises:
        ConfigurationError: The text is not the address of a database.
        MissingDependencyError: A package of the extra is not installed.
    """
    require_packages(extra, "sqlalchemy", "alembic")
    from sqlalchemy import make_url  # noqa: PLC0415  # needs an extra
    from sqlalchemy.exc import ArgumentError  # noqa: PLC0415  # needs an extra

    try:
        return make_url(address.strip())
    except (ArgumentError, ValueError):
        problem = "it is not the address of a database"
        raise ConfigurationError(setting, problem, _EXAMPLE) from None


def connect_postgres(setting: str, url: URL, extra: str, supported: str = "Postgres") -> Engine:
    """Return an engine for a Postgres database. No connection is opened before it is used.

    Args:
        setting: Name of the setting, for the error message.
        url: Address of the database.
        extra: Name of the package's extra that brings psycopg.
        supported: Names of the supported databases, for the error message.

    Raises:
        ConfigurationError: The address is not one of a Postgres database.
        MissingDependencyError: psycopg is not installed.
    """
    from sqlalchemy import create_engine  # noqa: PLC0415  # needs an extra

    if url.drivername not in {"postgresql", "postgres", "postgresql+psycopg"}:
        raise ConfigurationError(setting, f"only {supported} can be used here", _EXAMPLE)
    require_packages(extra, "psycopg")
    return create_engine(
        url.set(drivername="postgresql+psycopg"),
        connect_args={
            "connect_timeout": CONNECT_TIMEOUT_S,
            "options": " ".join(f"-c {name}={value}" for name, value in _SERVER_LIMITS.items()),
            **_CLIENT_LIMITS,
        },
        pool_pre_ping=True,
        pool_timeout=CONNECT_TIMEOUT_S,
        hide_parameters=True,
    )
