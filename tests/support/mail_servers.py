"""Real mail for the tests: Dovecot, and a certificate authority made for the run.

Dovecot is a system package (`apt-get install dovecot-imapd`). It runs unprivileged, on free ports
of loopback, with mail folders that are deleted after the run: one port with TLS from the first
byte, one with STARTTLS. Any name may log in, with the same password, and has its own mailbox.
"""

from __future__ import annotations

import functools
import os
import shutil
import signal
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support import servers

PASSWORD = 'correct-horse-9f3"battery'
_CONFIG = """
protocols = imap
base_dir = {folder}/run
state_dir = {folder}/state
log_path = /dev/stderr
default_internal_user = {user}
default_internal_group = {group}
default_login_user = {user}
first_valid_uid = 1
mail_location = maildir:{folder}/mail/%u
auth_mechanisms = plain
auth_failure_delay = 0
ssl = required
ssl_cert = <{certificate}
ssl_key = <{key}
passdb {{
  driver = static
  args = password={{PLAIN}}{password}
}}
userdb {{
  driver = static
  args = uid={uid} gid={gid} home={folder}/mail/%u
}}
namespace inbox {{
  inbox = yes
  separator = /
  mailbox Drafts {{
    special_use = \\Drafts
    auto = create
  }}
  mailbox "Sent Items" {{
    special_use = \\Sent
    auto = create
  }}
}}
service anvil {{
  chroot =
}}
service imap-login {{
  chroot =
  inet_listener imap {{
    address = 127.0.0.1
    port = {plain}
  }}
  inet_listener imaps {{
    address = 127.0.0.1
    port = {tls}
    ssl = yes
  }}
}}
service stats {{
  chroot =
}}
"""


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority and the certificate of one server, as files."""

    folder: Path

    @property
    def authority(self) -> Path:
        return self.folder / "authority.pem"

    @property
    def certificate(self) -> Path:
        return self.folder / "server.pem"

    @property
    def key(self) -> Path:
        return self.folder / "server.key"

    def trusted(self) -> ssl.SSLContext:
        """Return the TLS context of a client that trusts only this authority."""
        return ssl.create_default_context(cafile=str(self.authority))

    def serving(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.certificate, self.key)
        return context


def make_authority(folder: Path, *names: str, days: int = 2) -> Authority:
    """Make an authority and a server certificate for these names and addresses."""
    folder.mkdir(parents=True, exist_ok=True)
    made = Authority(folder)
    own = ec.generate_private_key(ec.SECP256R1())
    authority = _certificate("authority of the tests", own, None, days, ())
    key = ec.generate_private_key(ec.SECP256R1())
    server = _certificate("server", key, (authority, own), days, names or ("127.0.0.1",))
    pem = serialization.Encoding.PEM
    made.authority.write_bytes(authority.public_bytes(pem))
    made.certificate.write_bytes(server.public_bytes(pem))
    shape = serialization.PrivateFormat.PKCS8
    made.key.write_bytes(key.private_bytes(pem, shape, serialization.NoEncryption()))
    return made


def _certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: tuple[x509.Certificate, ec.EllipticCurvePrivateKey] | None,
    days: int,
    names: tuple[str, ...],
) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    by, signer = (subject, key) if issuer is None else (issuer[0].subject, issuer[1])
    start = datetime.now(UTC) - timedelta(days=1 if days > 0 else 9)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(by)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(datetime.now(UTC) + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
    )
    if issuer is None:
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        builder = builder.add_extension(usage, critical=True)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    by_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    builder = builder.add_extension(identifier, critical=False)
    builder = builder.add_extension(by_key, critical=False)
    if names:
        builder = builder.add_extension(
            x509.SubjectAlternativeName([_general(each) for each in names]), critical=False
        )
    return builder.sign(signer, hashes.SHA256())


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def find_dovecot() -> str:
    """Find Dovecot; it may only be missing on a developer's machine."""
    found = shutil.which("dovecot", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if found:
        return found
    missing = "Dovecot was not found: apt install dovecot-imapd"
    if os.environ.get("CI") == "true":
        pytest.fail(missing)
    pytest.skip(missing)


@dataclass(frozen=True, slots=True)
class MailServer:
    server: servers.Server
    authority: Authority
    tls_port: int
    starttls_port: int


@functools.cache
def shared_dovecot() -> MailServer:
    """Start the run's Dovecot on first use."""
    return start_dovecot(find_dovecot())


def start_dovecot(binary: str) -> MailServer:
    folder, user = servers.folder_of("dovecot"), servers.unprivileged()
    authority = make_authority(folder / "tls", "127.0.0.1", "localhost")
    for name in ("run", "state", "mail"):
        (folder / name).mkdir()
    if user:
        for path in (folder, *folder.rglob("*")):
            shutil.chown(path, user["user"], user["group"])
    plain, tls = servers.free_port(), servers.free_port()
    config = folder / "dovecot.conf"
    owner = folder.stat()
    config.write_text(
        _CONFIG.format(
            folder=folder, plain=plain, tls=tls, certificate=authority.certificate,
            key=authority.key, password=PASSWORD, uid=owner.st_uid, gid=owner.st_gid,
            user=folder.owner(), group=folder.group(),
        )
    )  # fmt: skip
    server = servers.Server(
        name="Dovecot",
        folder=folder,
        port=tls,
        url=f"imaps://127.0.0.1:{tls}",
        command=[binary, "-F", "-c", str(config)],
        ending=signal.SIGTERM,
        is_up=lambda: servers.is_listening(tls) and servers.is_listening(plain),
        user=user,
    )
    servers.at_end(server.discard)
    server.start()
    return MailServer(server, authority, tls, plain)
