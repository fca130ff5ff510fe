"""The kernel of a sweep: always this Python, whatever kernels JUPYTER_PATH or the user's folders name `python3`."""

from ipykernel.kernelspec import RESOURCES, get_kernel_dict
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager


class OwnPython(AsyncKernelManager):
    """Starts ipykernel with `sys.executable`."""

    @property
    def kernel_spec(self) -> KernelSpec:
        return KernelSpec(resource_dir=RESOURCES, **get_kernel_dict())
