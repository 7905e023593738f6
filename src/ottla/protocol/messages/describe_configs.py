"""DescribeConfigs (key 32): the configuration of topics, brokers, groups and the like.

v1 synonyms, and a config source in place of is_default (KIP-226); v3 documentation and type (KIP-569); v4
flexible.
"""

from __future__ import annotations

from ottla.protocol.schema import field, i8, i16, i32, message, struct


@struct
class DescribeConfigsResource:
    resource_type: i8 = 0
    resource_name: str = ""
    configuration_keys: list[str] | None = field(default=[])


@message(key=32, versions="0-4", flexible="4+")
class DescribeConfigsRequest:
    resources: list[DescribeConfigsResource] = field(default=[])
    include_synonyms: bool = field("1+", default=False)
    include_documentation: bool = field("3+", default=False)


@struct
class DescribeConfigsSynonym:
    name: str = ""
    value: str | None = ""
    source: i8 = 0


@struct
class DescribeConfigsResourceResult:
    name: str = ""
    value: str | None = ""
    read_only: bool = False
    is_default: bool = field("0", default=False)
    config_source: i8 = field("1+", default=-1, ignorable=True)
    is_sensitive: bool = False
    synonyms: list[DescribeConfigsSynonym] = field("1+", default=[], ignorable=True)
    config_type: i8 = field("3+", default=0, ignorable=True)
    documentation: str | None = field("3+", default="", ignorable=True)


@struct
class DescribeConfigsResult:
    error_code: i16 = 0
    error_message: str | None = ""
    resource_type: i8 = 0
    resource_name: str = ""
    configs: list[DescribeConfigsResourceResult] = field(default=[])


@message(key=32, versions="0-4", flexible="4+")
class DescribeConfigsResponse:
    throttle_time_ms: i32 = 0
    results: list[DescribeConfigsResult] = field(default=[])
