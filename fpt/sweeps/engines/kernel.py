"""The kernel of a sweep, and of a page of the book: always this Python, whatever kernels JUPYTER_PATH or the user's
folders name `python3`."""

import sys
from uuid import uuid4

from ipykernel.kernelspec import RESOURCES, get_kernel_dict
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from traitlets import default


class OwnPython(AsyncKernelManager):
    """Starts ipykernel with `sys.executable`, and on Linux talks with it over sockets with names instead of ports.

    A port is chosen a second before the kernel takes it. Two kernels that start at once can choose the same one, and a
    page or a sweep then fails.
    """

    @property
    def kernel_spec(self) -> KernelSpec:
        return KernelSpec(resource_dir=RESOURCES, **get_kernel_dict())

    @default("transport")
    def _named_where_there_are_names(self) -> str:
        return "ipc" if sys.platform == "linux" else "tcp"

    def _ip_default(self) -> str:
        # "@": a name that no file stands for, so that nothing is left of a kernel that was killed
        return f"@fpt-{uuid4().hex}" if self.transport == "ipc" else super()._ip_default()
