"""How settings are declared, parsed, refused and written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.config.settings import ConfigError, Kind, declared, load, replace, setting, settings, text_of


@settings
class Base:
    alpha_ms: int = setting(5, kind=Kind.LONG, at_least=-1, at_most=100, about="A number.")


@settings
class Example(Base):
    beta_enable: bool = setting(True, about="A switch.")
    gamma_ratio: float = setting(0.5, at_least=0, at_most=1, about="A share.")
    delta_name: str | None = setting(None, about="A name.")
    epsilon_list: tuple[str, ...] = setting(("a", "b"), choices=("a", "b", "c"), about="A list.")
    zeta_secret: str = setting("", kind=Kind.PASSWORD, about="A secret.", check=lambda v: "too short")
    eta_short: int = setting(1, kind=Kind.SHORT, about="A small number.")


def test_a_property_is_an_attribute_with_underscores() -> None:
    example = load(Example, {"alpha.ms": "7", "beta.enable": "FALSE", "epsilon.list": "c, a"})

    assert (example.alpha_ms, example.beta_enable, example.epsilon_list) == (7, False, ("c", "a"))


def test_what_is_not_given_has_its_default() -> None:
    example = load(Example, {})

    assert example == Example()
    assert (example.alpha_ms, example.gamma_ratio, example.delta_name) == (5, 0.5, None)


def test_kinds_follow_from_annotations() -> None:
    kinds = {name: each.kind for name, each in declared(Example).items()}

    assert kinds == {
        "alpha.ms": Kind.LONG,
        "beta.enable": Kind.BOOLEAN,
        "gamma.ratio": Kind.DOUBLE,
        "delta.name": Kind.STRING,
        "epsilon.list": Kind.LIST,
        "zeta.secret": Kind.PASSWORD,
        "eta.short": Kind.SHORT,
    }


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("alpha.ms", "-2", "Value must be at least -1"),
        ("alpha.ms", "101", "Value must be no more than 100"),
        ("alpha.ms", "", "Not a number of type LONG"),
        ("alpha.ms", "1_000", "Not a number of type LONG"),
        ("alpha.ms", "0x10", "Not a number of type LONG"),
        ("alpha.ms", "\N{ARABIC-INDIC DIGIT FIVE}", "Not a number of type LONG"),
        ("alpha.ms", "9223372036854775808", "Not a number of type LONG"),
        ("alpha.ms", "9" * 10_000, "Not a number of type LONG"),
        ("eta.short", "32768", "Not a number of type SHORT"),
        ("gamma.ratio", "1.5", "Value must be no more than 1"),
        ("gamma.ratio", "nan", "Not a number of type DOUBLE"),
        ("gamma.ratio", "Infinity", "Not a number of type DOUBLE"),
        ("beta.enable", "yes", "Expected value to be either true or false"),
        ("epsilon.list", "d", "String must be one of: a, b, c"),
    ],
)
def test_a_bad_value_is_refused_with_kafkas_words(name: str, text: str, reason: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(Example, {name: text})

    assert str(refused.value) == f"Invalid value {text} for configuration {name}: {reason}"


def test_a_blank_element_of_a_list_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^Configuration 'epsilon.list' values must not be empty\.$"):
        load(Example, {"epsilon.list": "a,,b"})


def test_an_element_named_twice_counts_once() -> None:
    assert load(Example, {"epsilon.list": "b,a,b"}).epsilon_list == ("b", "a")


def test_a_refused_secret_is_not_shown() -> None:
    with pytest.raises(ConfigError) as refused:
        load(Example, {"zeta.secret": "hunter2"})

    assert "hunter2" not in str(refused.value)


def test_an_unknown_name_is_refused_with_a_suggestion() -> None:
    with pytest.raises(ConfigError, match=r"^unknown property beta.enabled; did you mean beta.enable\?$"):
        load(Example, {"beta.enabled": "true"})


def test_a_name_like_no_other_is_refused_without_one() -> None:
    with pytest.raises(ConfigError, match=r"^unknown property xyzzy$"):
        load(Example, {"xyzzy": "1"})


def test_settings_are_frozen() -> None:
    example = Example()

    with pytest.raises(AttributeError):
        example.alpha_ms = 6  # type: ignore[misc]
    with pytest.raises(AttributeError):
        del example.alpha_ms


def test_settings_are_compared_by_value() -> None:
    assert Example(alpha_ms=6) == Example(alpha_ms=6)
    assert Example(alpha_ms=6) != Example()
    assert len({Example(), Example(), Example(alpha_ms=6)}) == 2


def test_settings_show_what_differs_from_the_defaults() -> None:
    assert repr(Example(alpha_ms=6, delta_name="x")) == "Example(alpha_ms=6, delta_name='x')"


def test_a_stranger_among_typed_values_is_a_programming_error() -> None:
    with pytest.raises(TypeError, match="no setting omega"):
        Example(omega=1)  # type: ignore[call-arg]


def test_replace_changes_some_values() -> None:
    changed = replace(Example(alpha_ms=6), gamma_ratio=1.0)

    assert (changed.alpha_ms, changed.gamma_ratio) == (6, 1.0)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (0.0, "0.0"),
        (1e3, "1000.0"),
        (1e7, "1.0E7"),
        (12345678.5, "1.23456785E7"),
        (1e-4, "1.0E-4"),
        (0.00012, "1.2E-4"),
        (-2e-5, "-2.0E-5"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
    ],
)
def test_a_double_is_written_as_java_writes_it(value: float, text: str) -> None:
    assert text_of(Kind.DOUBLE, value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_written_double_reads_back(value: float) -> None:
    text = text_of(Kind.DOUBLE, value)

    assert text is not None
    assert float(text) == value


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_written_long_reads_back(value: int) -> None:
    @settings
    class Number:
        number: int = setting(0, kind=Kind.LONG, about="Any number.")

    assert load(Number, {"number": str(value)}).number == value
