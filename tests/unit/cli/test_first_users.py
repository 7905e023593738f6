"""`ottla serve --add-scram`, and what becomes of it."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from ottla.cli.first_users import first_users
from ottla.config.settings import ConfigError
from ottla.core.scram import Keys, ScramMechanism, keys, salted_password
from ottla.protocol.stored.metadata import UserScramCredentialRecord
from ottla.runtime.snapshots import read_snapshot
from ottla.server.broker import Broker

SHA_256, SHA_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512


def one(text: str, **environment: str) -> UserScramCredentialRecord:
    (made,) = first_users([text], environment)
    return made


def knows(credential: UserScramCredentialRecord, password: str) -> bool:
    mechanism = ScramMechanism(credential.mechanism)
    salted = salted_password(mechanism, password, credential.salt, credential.iterations)
    return keys(mechanism, salted) == Keys(credential.stored_key, credential.server_key)


def test_a_user_is_given_as_to_kafkas_own_format_command() -> None:
    made = one('SCRAM-SHA-512=[name=alice,password="se=cret",iterations=8192]')
    assert (made.name, made.mechanism, made.iterations) == ("alice", SHA_512, 8192)
    assert knows(made, "se=cret") and not knows(made, "secret")
    other = one("SCRAM-SHA-256=[name=alice,password=secret]")
    assert (other.mechanism, other.iterations) == (SHA_256, 4096)
    assert other.salt != one("SCRAM-SHA-256=[name=alice,password=secret]").salt


def test_a_password_may_have_been_salted_before() -> None:
    salt, salted = b"pepper", salted_password(SHA_256, "secret", b"pepper", 4096)
    texts = [base64.b64encode(each).decode() for each in (salt, salted)]
    made = one('SCRAM-SHA-256=[name=alice,iterations=4096,salt="{}",saltedpassword="{}"]'.format(*texts))
    assert made.salt == salt and knows(made, "secret")


def test_a_password_may_be_in_a_file_or_in_the_environment(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("a,b]c\nand more\n")
    assert knows(one(f"SCRAM-SHA-256=[name=a,password-file={tmp_path / 'password'}]"), "a,b]c")
    assert knows(one("SCRAM-SHA-256=[name=a,password-env=SECRET]", SECRET="s e"), "s e")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("canary", "it should look like"),
        ("SCRAM-SHA-256=name=a,password=canary", "it should look like"),
        ("SCRAM-SHA-1=[name=a,password=canary]", "no mechanism SCRAM-SHA-1"),
        ("SCRAM-SHA-256=[password=canary]", "needs a name"),
        ("SCRAM-SHA-256=[name=,password=canary]", "needs a name"),
        ("SCRAM-SHA-256=[name=a]", "needs a password"),
        ("SCRAM-SHA-256=[name=a,password=]", "is empty"),
        ("SCRAM-SHA-256=[name=a,password=x,canary]", "it should look like"),
        ("SCRAM-SHA-256=[name=a,password=x,canary=y]", "a part too many"),
        ("SCRAM-SHA-256=[name=a,password=canary,iterations=4095]", "from 4096 to 16384"),
        ("SCRAM-SHA-256=[name=a,password=canary,iterations=many]", "from 4096 to 16384"),
        ("SCRAM-SHA-256=[name=a,password=canary,salt=?]", "is not base64"),
        ("SCRAM-SHA-256=[name=a,saltedpassword=c2FsdA==]", "needs its salt"),
        ("SCRAM-SHA-256=[name=a,password-file=/does/not/exist]", "cannot read /does/not/exist"),
        ("SCRAM-SHA-256=[name=a,password-env=NOT_THERE]", "no environment variable NOT_THERE"),
    ],
)
def test_what_is_no_user_is_told_without_the_password(text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=r"--add-scram|cannot read") as refused:
        one(text)
    assert says in str(refused.value)
    assert "canary" not in str(refused.value)


def test_the_same_user_twice_is_a_slip() -> None:
    twice = ["SCRAM-SHA-256=[name=a,password=x]", "SCRAM-SHA-256=[name=a,password=y]"]
    with pytest.raises(ConfigError, match="a is there twice"):
        first_users(twice, {})
    assert len(first_users([twice[0], "SCRAM-SHA-512=[name=a,password=y]"], {})) == 2


def test_first_users_are_bootstrap_records_of_a_new_cluster(tmp_path: Path) -> None:
    users = first_users(["SCRAM-SHA-256=[name=alice,password=secret]"], {})
    with Broker(data_dir=tmp_path, first_users=users) as broker:
        assert broker.node.image.scram == {(1, "alice"): users[0]}
    bootstrap = tmp_path / "bootstrap.checkpoint"
    assert read_snapshot(str(bootstrap)).records[-1:] == users
    for path in (bootstrap, tmp_path / "__cluster_metadata-0"):
        assert path.stat().st_mode & 0o077 == 0
    # They are not added to a cluster that is there already, and those it has stay.
    others = first_users(["SCRAM-SHA-256=[name=bob,password=secret]"], {})
    with Broker(data_dir=tmp_path, first_users=others) as broker:
        assert broker.node.image.scram == {(1, "alice"): users[0]}
    with Broker(data_dir=tmp_path) as broker:
        assert broker.node.image.scram == {(1, "alice"): users[0]}


def test_first_users_join_what_a_directory_was_formatted_with(tmp_path: Path) -> None:
    """As one that `kafka-storage format` has made for a controller quorum that is not dynamic."""
    with Broker(data_dir=tmp_path / "other") as broker:
        features = broker.node.image.features
    (tmp_path / "data").mkdir()
    (tmp_path / "other" / "bootstrap.checkpoint").rename(tmp_path / "data" / "bootstrap.checkpoint")
    users = first_users(["SCRAM-SHA-256=[name=alice,password=secret]"], {})
    with Broker(data_dir=tmp_path / "data", first_users=users) as broker:
        assert broker.node.image.features == features
        assert list(broker.node.image.scram) == [(1, "alice")]
