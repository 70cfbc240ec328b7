"""One key ring for all workers of a host, and for all hosts that share its storage (protection-1 to protection-7)."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import pkcs12

from rowcall.core.config import ConfigError
from rowcall.core.protection.key_ring import SECRET, Key, element_text, plain_secret
from rowcall.service.command.configuration_files import load_configuration
from rowcall.service.database.connector import ConnectionTarget, Connector
from rowcall.service.options.auth import auth_options
from rowcall.service.protection.key_rotation import key_rotation_for
from rowcall.service.startup_error import StartupError
from tests.harness.database import Database
from tests.harness.service import Service
from tests.http.conftest import Serve
from tests.http.members import EVERY_SCHEME, bearer, member_sql, tokens, with_cookie

DAY = 86_400.0

LINKED = """
create function linked() returns bytea language sql stable as $$ select 'file'::bytea $$;
comment on function linked() is 'HTTP GET /linked
download link 10 minutes';
create function numbers() returns table (n int) language sql stable as 'select generate_series(1, 5)';
comment on function numbers() is 'HTTP GET /numbers
queryable page 2 by n';
"""
STORAGE = """
create table protection_key (name text primary key, data text not null);
create function get_data_protection_keys() returns setof text language sql as 'select data from protection_key';
create procedure store_data_protection_keys(text, text) language sql
as 'insert into protection_key values ($1, $2) on conflict (name) do update set data = excluded.data';
"""


def in_folder(folder: Path, **others: str) -> dict[str, str]:
    return {
        **EVERY_SCHEME,
        "DataProtection:Storage": "FileSystem",
        "DataProtection:FileSystemPath": str(folder),
        "DataProtection:CustomApplicationName": "yard",
        **others,
    }


def is_accepted(service: Service, headers: dict[str, str]) -> bool:
    with service.new_client() as client:
        return client.get("/api/closed", headers=headers).status_code == 200


def sessions(service: Service) -> list[dict[str, str]]:
    return [with_cookie(service), bearer(tokens(service, "BearerToken")["accessToken"])]


def test_workers_accept_sessions_of_each_other(database: Database, serve_once: Serve) -> None:
    service = serve_once(
        database, "drop table if exists member cascade;" + _recreate_members(), EVERY_SCHEME, workers=2
    )
    made = sessions(service)
    for _ in range(20):
        # A new connection each time: either worker may receive it.
        assert [is_accepted(service, headers) for headers in made] == [True, True]


def _recreate_members() -> str:
    drops = ("sign_in(text, text, text)", "sign_out(text[])", "who(text, text, text[], json, text)", "closed()")
    names = (*drops, "for_bosses()", "opened()")
    return "".join(f"drop function if exists {name};" for name in names) + member_sql()


@pytest.mark.slow
def test_instances_accept_sessions_of_each_other(own_database: Database, serve_once: Serve, tmp_path: Path) -> None:
    own_database.execute(member_sql())
    settings = in_folder(tmp_path / "keys")
    first, second = serve_once(own_database, settings=settings), serve_once(own_database, settings=settings)
    for item, other in ((first, second), (second, first)):
        assert [is_accepted(other, headers) for headers in sessions(item)] == [True, True]
    assert len(list((tmp_path / "keys").glob("key-*.json"))) == 1
    elsewhere = serve_once(
        own_database, settings={**settings, "DataProtection:CustomApplicationName": "till", "Auth:JwtAuth": "false"}
    )
    assert [is_accepted(elsewhere, headers) for headers in sessions(first)] == [False, False]


@pytest.mark.parametrize("first_use", ["session", "download link", "cursor"])
def test_key_created_by_another_host_is_found(
    own_database: Database, serve_once: Serve, tmp_path: Path, first_use: str
) -> None:
    """It reaches all workers, without a restart."""
    own_database.execute(member_sql() + LINKED)
    folder = tmp_path / "keys"
    first = serve_once(own_database, settings=in_folder(folder), workers=2)
    now = time.time()
    newer = Key(os.urandom(16), now, now, now + 90 * DAY, os.urandom(SECRET))
    (folder / f"{newer.name}.json").write_text(element_text(newer, plain_secret(newer.secret)))
    second = serve_once(own_database, settings=in_folder(folder))
    if first_use == "download link":
        assert first.get(second.get("/linked?link").json()["url"]).text == "file"
    elif first_use == "cursor":
        following = second.get("/numbers").links["next"]["url"]
        assert first.get(f"/numbers{following}").json() == [{"n": 3}, {"n": 4}]
    made = sessions(second)
    for _ in range(6):
        assert [is_accepted(first, headers) for headers in made] == [True, True]


def test_sessions_survive_a_restart_and_key_rotation(own_database: Database, serve_once: Serve, tmp_path: Path) -> None:
    own_database.execute(member_sql())
    folder = tmp_path / "keys"
    before = serve_once(own_database, settings=in_folder(folder))
    made = sessions(before)
    before.stop()
    (file,) = folder.glob("key-*.json")
    element = json.loads(file.read_text())
    file.write_text(json.dumps({**element, "expires": time.time() - 1}))
    after = serve_once(own_database, settings=in_folder(folder))
    assert len(list(folder.glob("key-*.json"))) == 2
    assert [is_accepted(after, headers) for headers in made] == [True, True]
    assert [is_accepted(after, headers) for headers in sessions(after)] == [True, True]
    assert oct(file.stat().st_mode & 0o777) == "0o600"
    assert oct(folder.stat().st_mode & 0o777) == "0o700"


def test_keys_are_shared_in_the_database(own_database: Database, serve_once: Serve) -> None:
    own_database.execute(member_sql() + STORAGE)
    settings = {**in_folder(Path("unused")), "DataProtection:Storage": "Database"}
    first, second = serve_once(own_database, settings=settings), serve_once(own_database, settings=settings)
    assert [is_accepted(second, headers) for headers in sessions(first)] == [True, True]
    assert own_database.value("select count(*) from protection_key") == 1


def test_missing_key_storage_stops_the_start(own_database: Database, serve_once: Serve) -> None:
    with pytest.raises(AssertionError, match="DataProtection:GetAllElementsCommand"):
        serve_once(own_database, settings={"DataProtection:Storage": "Database"})


@pytest.mark.slow
def test_keys_are_encrypted_by_a_certificate(own_database: Database, serve_once: Serve, tmp_path: Path) -> None:
    own_database.execute(member_sql())
    settings = in_folder(
        tmp_path / "keys",
        **{
            "DataProtection:KeyEncryption": "Certificate",
            "DataProtection:CertificatePath": str(certificate(tmp_path)),
            "DataProtection:CertificatePassword": "pfx-password",
            "DataProtection:EncryptionAlgorithm": "AES_256_CBC",
        },
    )
    service = serve_once(own_database, settings=settings)
    made = sessions(service)
    service.stop()
    (file,) = (tmp_path / "keys").glob("key-*.json")
    assert json.loads(file.read_text())["secret"]["kind"] == "certificate"
    again = serve_once(own_database, settings=settings)
    assert [is_accepted(again, headers) for headers in made] == [True, True]
    assert "pfx-password" not in again.log
    blind = serve_once(own_database, settings=in_folder(tmp_path / "keys"))
    assert "cannot be used: its secret is encrypted to a certificate" in blind.log
    assert [is_accepted(blind, headers) for headers in made] == [False, False]


def certificate(folder: Path) -> Path:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "keys")])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1)
    builder = builder.not_valid_before(datetime(2020, 1, 1, tzinfo=UTC)).not_valid_after(
        datetime(2040, 1, 1, tzinfo=UTC)
    )
    made = builder.sign(key, hashes.SHA256())
    encryption = serialization.BestAvailableEncryption(b"pfx-password")
    path = folder / "keys.pfx"
    path.write_bytes(pkcs12.serialize_key_and_certificates(b"keys", key, made, None, encryption))
    return path


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"DataProtection:KeyEncryption": "Dpapi"}, "Windows"),
        ({"DataProtection:KeyEncryption": "Certificate"}, "CertificatePath"),
        (
            {"DataProtection:KeyEncryption": "Certificate", "DataProtection:CertificatePath": "/nowhere.pfx"},
            "/nowhere.pfx",
        ),
        ({"DataProtection:Storage": "FileSystem", "DataProtection:FileSystemPath": ""}, "FileSystemPath"),
        ({"Auth:JwtAuth": "true"}, "JwtSecret"),
        ({"Auth:JwtAuth": "true", "Auth:JwtSecret": "short"}, "32 characters"),
        ({"Auth:CookieAuth": "true", "Auth:CookieValid": "soon"}, "Auth:CookieValid"),
        ({"Auth:CookieAuth": "true", "Auth:CookieSameSite": "perhaps"}, "Strict, Lax, None, Unspecified"),
        ({"Auth:CookieAuth": "true", "Auth:Schemes:a:Enabled": "true"}, "Auth:Schemes:a:Type"),
        ({"Auth:CookieAuth": "true", "Auth:Schemes:Bearer:Type": "Cookies"}, "main scheme"),
        (
            {
                "Auth:CookieAuth": "true",
                "Auth:CookieName": "x",
                "Auth:Schemes:a:Type": "Cookies",
                "Auth:Schemes:a:CookieName": "x",
            },
            "share the cookie name x",
        ),
        ({"Service:AuthenticationOptions:BasicAuth:Enabled": "true"}, "https"),
        ({"Auth:CookieAuth": "true", "Auth:CookiePath": "shop"}, "Auth:CookiePath: 'shop' is no path"),
        ({"Auth:BearerTokenAuth": "true", "Auth:BearerTokenRefreshPath": "renew"}, "BearerTokenRefreshPath: 'renew'"),
        (
            {
                "Auth:CookieAuth": "true",
                "Auth:Schemes:a:Type": "Jwt",
                "Auth:Schemes:a:JwtSecret": "x" * 32,
                "Auth:Schemes:a:JwtRefreshPath": "/renew?x",
            },
            "JwtRefreshPath: '/renew.x'",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_invalid_data_protection_settings_stop_the_start(settings: dict[str, str], message: str) -> None:
    """With the name of the key; no database is needed to detect it."""
    loaded = load_configuration((), tuple(settings.items()), {}, Path("/"))

    def read_settings() -> None:
        auth_options(loaded.settings)
        key_rotation_for(loaded.settings, Connector(ConnectionTarget({})), lambda _ring: None)

    with pytest.raises((StartupError, ConfigError), match=message):
        read_settings()
