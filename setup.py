"""Builds the record kernel. Everything else about the package is in pyproject.toml.

The extension is optional: without a compiler the install still succeeds, and `ottla.protocol.kernel` uses
the Python version of the same functions.
"""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "ottla.protocol._kernel",
            ["src/ottla/protocol/_kernel.pyx"],
            extra_compile_args=["-O3"],
            optional=True,
        )
    ]
)
