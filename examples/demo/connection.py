"""Converts mounted Secrets to values for OpenStack's configuration files."""
import pathlib
import urllib.parse

# The authority of the servers' certificates, if they use TLS: see ../demo-tls.
AUTHORITY = pathlib.Path("/authority/ca.crt")


def secret(directory):
    """Returns the keys of the Secret mounted at directory, as a dict."""
    files = (f for f in pathlib.Path(directory).iterdir() if f.is_file())
    return {f.name: f.read_text(encoding="utf-8") for f in files}


def database_url(account):
    """Returns SQLAlchemy's URL of a database Secret.

    Keystone's db_sync fails on a URL with a percent sign, hence on passwords
    that need one: keep to letters and digits there.
    """
    part = {k: urllib.parse.quote(v, safe="") for k, v in account.items()}
    port = account.get("port", "3306")
    url = "mysql+pymysql://{user}:{password}@{hostname}:{port}/{database}".format(**{**part, "port": port})
    return f"{url}?ssl_ca={AUTHORITY}" if AUTHORITY.exists() else url


def option(value):
    """Quotes any value so that oslo.config reads it back unchanged."""
    return '"' + value.replace("$", "\\$") + '"'
