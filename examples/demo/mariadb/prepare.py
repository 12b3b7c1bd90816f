"""Creates MariaDB's data directory, and the statements that MariaDB runs at its start.

Passwords are given to MariaDB as their hashes, so that any character works.
"""
import hashlib
import pathlib
import subprocess

DATA = pathlib.Path("/var/lib/mysql")
STATEMENTS = pathlib.Path("/run/mysqld/accounts.sql")
SECRETS = pathlib.Path("/secrets")


def account(secret, host="%"):
    """Returns the account's name in SQL, and the statements that create the account."""
    user = secret["user"].replace("`", "``")
    digest = hashlib.sha1(hashlib.sha1(secret["password"].encode()).digest()).hexdigest().upper()
    name = f"`{user}`@`{host}`"
    return name, [
        f"CREATE USER IF NOT EXISTS {name};",
        f"ALTER USER {name} IDENTIFIED VIA mysql_native_password USING '*{digest}';",
    ]


def statements(admin, owners):
    # The accounts without password that mariadb-install-db creates.
    yield "DELETE FROM mysql.global_priv WHERE User IN ('', 'root') AND Host <> '%';"
    yield "FLUSH PRIVILEGES;"
    name, made = account(admin)
    yield from made
    yield f"GRANT ALL PRIVILEGES ON *.* TO {name} WITH GRANT OPTION;"
    for owner in owners:
        database = "`" + owner["database"].replace("`", "``") + "`"
        name, made = account(owner)
        yield from made
        yield f"CREATE DATABASE IF NOT EXISTS {database};"
        yield f"GRANT ALL PRIVILEGES ON {database}.* TO {name};"


def secret(directory):
    return {f.name: f.read_text(encoding="utf-8") for f in directory.iterdir() if f.is_file()}


if not (DATA / "mysql").exists():
    subprocess.run(["mariadb-install-db", "--defaults-file=/etc/demo/my.cnf", f"--datadir={DATA}",
                    "--auth-root-authentication-method=normal", "--skip-test-db"],
                   check=True, stdout=subprocess.DEVNULL)
owners = [secret(d) for d in sorted(SECRETS.glob("*-database"))]
STATEMENTS.write_text("\n".join(statements(secret(SECRETS / "mariadb-admin"), owners)) + "\n", encoding="utf-8")
