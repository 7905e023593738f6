from __future__ import annotations

import pytest

from ottla.pipelines.checkpoints import Unfinished
from ottla.pipelines.failures import Failure, cause, failure_of

IN_FOREACH_BATCH = """[STREAM_FAILED] Query [id = 61af9c0a, runId = 1d2b9c97] terminated with exception: \
[FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred in the user provided function in foreach batch sink. \
Reason: An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "clientserver.py", line 644, in _call_proxy
    return_value = getattr(self.pool[obj_id], method)(*params)
                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "explore.py", line 23, in fb
    if i==3: raise ValueError("boom")
             ^^^^^^^^^^^^^^^^^^^^^^^^
ValueError: boom
 SQLSTATE: 39000 SQLSTATE: XXKST
=== Streaming Query ===
Identifier: fb [id = 61af9c0a, runId = 1d2b9c97]
Current Committed Offsets: {Rate: {"offset":30}}
"""
IN_A_TASK = """[STREAM_FAILED] Query [id = 6, runId = 1] terminated with exception: Job aborted due to stage \
failure: Task 0 in stage 4.0 failed 1 times, most recent failure: Lost task 0.0 in stage 4.0 (TID 4) \
(127.0.0.1 executor driver): org.apache.spark.SparkRuntimeException: [USER_RAISED_EXCEPTION] orders-0 at \
offset 15: the value is not JSON of the expected schema: nope SQLSTATE: P0001
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.raiseError(QueryExecutionErrors.scala:2777)
\tat org.apache.spark.sql.catalyst.expressions.RaiseError.eval(misc.scala:80)

Driver stacktrace:
=== Streaming Query ===
"""
OF_A_PYTHON_WORKER = """[STREAM_FAILED] Query [id = 6] terminated with exception: Job aborted due to stage \
failure: Task 0 in stage 4.0 failed 1 times, most recent failure: Lost task 0.0 in stage 4.0 (TID 4) \
(127.0.0.1 executor driver): org.apache.spark.api.python.PythonException: [PYTHON_EXCEPTION] An exception \
was thrown from the Python worker: Traceback (most recent call last):
  File "worker.py", line 4207, in invoke_udf
    func, profiler, deserializer, serializer = read_udfs(
  File "registry.py", line 10, in _get
ottla.pipelines.registry.RegistryUnavailable: the registry at http://r:1 gives no schema id 1: \
Connection refused
 SQLSTATE: 38000
\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:1097)
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (IN_FOREACH_BATCH, "ValueError: boom"),
        (IN_A_TASK, "orders-0 at offset 15: the value is not JSON of the expected schema: nope"),
        (
            OF_A_PYTHON_WORKER,
            "RegistryUnavailable: the registry at http://r:1 gives no schema id 1: Connection refused",
        ),
        (
            "[UNRESOLVED_COLUMN] A column `amonut` cannot be resolved. SQLSTATE: 42703;\n'Project [amonut]",
            "A column `amonut` cannot be resolved.",
        ),
        (
            "Py4JJavaError: An error occurred while calling o53.load.\n: org.apache.spark.SparkException: "
            "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: ottla. SQLSTATE: 42K02\n\tat a.B.c(D:1)",
            "Failed to find the data source: ottla.",
        ),
        ("requirement failed: no Update mode.", "requirement failed: no Update mode."),
        ("", ""),
    ],
)
def test_the_cause_is_one_line(text: str, expected: str) -> None:
    assert cause(text) == expected


def test_a_long_cause_is_cut() -> None:
    assert len(cause("x" * 5000)) == 600


def test_a_failure_names_flow_batch_and_offsets() -> None:
    unfinished = Unfinished(3, {"orders": {0: 10}}, {"orders": {0: 20}})
    assert str(failure_of("totals", IN_A_TASK, unfinished)).startswith(
        "flow totals failed in batch 3 (orders-0 10 to 20): orders-0 at offset 15: the value is not JSON"
    )
    assert str(Failure("totals", "no")) == "flow totals failed: no"
    assert str(failure_of("totals", KeyError())) == "flow totals failed: KeyError"
