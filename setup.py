"""Builds the record kernels. Everything else about the package is in pyproject.toml.

The extensions are optional: without a compiler the install still succeeds, and `ottla.protocol.kernel` and
`ottla.protocol.columns` use the Python version of the same functions.
"""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "ottla.protocol._kernel",
            ["src/ottla/protocol/_kernel.pyx"],
            depends=["src/ottla/protocol/_records.pxd"],
            extra_compile_args=["-O3"],
            optional=True,
        ),
        Extension(
            "ottla.protocol._offset_map",
            ["src/ottla/protocol/_offset_map.pyx"],
            depends=["src/ottla/protocol/_records.pxd"],
            extra_compile_args=["-O3"],
            optional=True,
        ),
        Extension(
            "ottla.protocol._columns",
            ["src/ottla/protocol/_columns.pyx"],
            depends=["src/ottla/protocol/_records.pxd", "src/ottla/protocol/_rows.pxi"],
            extra_compile_args=["-O3"],
            optional=True,
        ),
    ]
)
