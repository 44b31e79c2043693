"""Certificates for tests, made on the spot."""

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Certificate(NamedTuple):
    """The files of a certificate that signs itself, for 127.0.0.1 and localhost."""

    certificate: Path
    key: Path

    @property
    def trust(self) -> ssl.SSLContext:
        """What a client checks it with."""
        return ssl.create_default_context(cafile=str(self.certificate))


def new_certificate(
    folder: Path, name: str = "server", *, days: float = 30, passphrase: str | None = None
) -> Certificate:
    """A new certificate and its key; with negative ``days`` it has expired."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    end = datetime.now(UTC) + timedelta(days=days)
    addresses: list[x509.GeneralName] = [x509.DNSName("localhost")]
    addresses.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(end - timedelta(days=60))
        .not_valid_after(end)
        .add_extension(x509.SubjectAlternativeName(addresses), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    hidden: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if passphrase is not None:
        hidden = serialization.BestAvailableEncryption(passphrase.encode())
    files = Certificate(folder / f"{name}.pem", folder / f"{name}.key")
    files.certificate.write_bytes(made.public_bytes(pem))
    files.key.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, hidden))
    files.key.chmod(0o600)
    return files
