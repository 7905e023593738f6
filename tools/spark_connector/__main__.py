"""`python -m tools.spark_connector fetch | compare`."""

from __future__ import annotations

import argparse
import sys

from rich.console import Console

from tools.kafka.distribution import KafkaUnavailable
from tools.spark_connector.jars import ConnectorUnavailable, fetch, jars, version_of


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.spark_connector", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("fetch", help="fetch the jars with Maven; again, if a better release may be there")
    comparing = commands.add_parser("compare", help="run the same jobs with both formats on both brokers")
    comparing.add_argument("--only", action="append", default=[], metavar="WORD", help="jobs with this word")
    comparing.add_argument("--count", type=int, default=400, help="records in a partition (default: 400)")
    comparing.add_argument("--without-kafka", action="store_true", help="on Ottla alone")
    comparing.add_argument("--list", action="store_true", help="the jobs, without running them")
    options = parser.parse_args(arguments)
    try:
        if options.command == "fetch":
            print(fetch().home)
            return 0
        return compare_all(options)
    except (ConnectorUnavailable, KafkaUnavailable) as error:
        print(error, file=sys.stderr)
        return 2


def compare_all(options: argparse.Namespace) -> int:
    from ottla.spark.session import session
    from tools.spark_connector.compare import KAFKA, OTTLA, SETTINGS, all_jobs, compare, report

    console = Console(width=max(130, Console().width))
    jobs = all_jobs(options.count, options.only)
    if options.list:
        for job in jobs:
            print(f"{job.family}: {job.name}")
        return 0
    found = jars()
    where = {"spark.jars": ",".join(str(jar) for jar in found)}
    spark = session("connector", master="local[2]", **SETTINGS, **where)
    try:
        brokers = [OTTLA] if options.without_kafka else [OTTLA, KAFKA]
        results = compare(spark, jobs, options.count, brokers, console)
        return report(results, version_of(found), spark.version, console)
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
