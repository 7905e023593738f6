"""JAAS text is read as Java reads it, and an error never repeats it."""

from __future__ import annotations

import pytest

from ottla.config.jaas import LoginModule, parse_jaas
from ottla.config.settings import ConfigError

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    "text",
    [
        f'{PLAIN} required user_alice="s;e=c" user_bob=\'h"i\';',
        f'{PLAIN} REQUIRED\n  user_alice = "s;e=c"\n  user_bob=\'h"i\' ;\n',
        f'// a comment\n{PLAIN} required /* and\nanother */ user_alice="s;e=c" user_bob="h\\"i";',
    ],
)
def test_names_and_passwords_come_in_quotes_of_either_kind(text: str) -> None:
    assert parse_jaas(text) == [LoginModule(PLAIN, {"user_alice": "s;e=c", "user_bob": 'h"i'})]


def test_escapes_are_those_of_java() -> None:
    (module,) = parse_jaas(r'a.B required one="tab\tquote\"back\\" two="\101\60" three="\9";')

    assert module.options == {"one": 'tab\tquote"back\\', "two": "A0", "three": "9"}


def test_there_may_be_several_login_modules() -> None:
    assert [each.name for each in parse_jaas("a.B required; c.D optional x=y;")] == ["a.B", "c.D"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        " // nothing\n",
        PLAIN,
        f"{PLAIN} perhaps;",
        f'{PLAIN} required user_alice="secret"',
        f"{PLAIN} required user_alice;",
        f"{PLAIN} required user_alice=;",
        f'{PLAIN} required user_alice="secret;',
        f"{PLAIN} required =secret;",
        f"{PLAIN} required user_alice=my secret word;",
        f'{PLAIN} required "user_alice"secret;',
        f"{PLAIN} required user_alice=secret {{}};",
        ";",
        "= required;",
    ],
)
def test_what_is_no_jaas_is_refused_in_one_line_that_shows_no_password(text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_jaas(text)

    assert "secret" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_login_module_does_not_show_its_passwords() -> None:
    assert "secret" not in repr(parse_jaas('a.B required user_alice="secret";'))
