"""Which rank this process is, in the variables that torch reads."""

import os
import socket

TORCH = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
LAUNCHERS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "SINEW_RANK")


def fill_environment():
    """Sets what torch reads, where a launcher has told it in other words.

    Under ``sinew launch`` and ``torchrun`` all is there. Under ``mpirun`` or ``srun`` the ranks
    meet once, and rank 0 tells the others where torch's store shall be.
    """
    if all(os.environ.get(name) for name in TORCH):
        return
    if not any(os.environ.get(name) for name in LAUNCHERS):
        return  # nobody has started ranks: init_process_group says what it misses
    import torch  # its libraries come first

    from . import _backend

    place = _backend.place()
    if not place["launcher"] or place["size"] < 1:
        return
    os.environ.setdefault("RANK", str(place["rank"]))
    os.environ.setdefault("WORLD_SIZE", str(place["size"]))
    if place["local_rank"] >= 0:
        os.environ.setdefault("LOCAL_RANK", str(place["local_rank"]))
    if place["local_size"] > 0:
        os.environ.setdefault("LOCAL_WORLD_SIZE", str(place["local_size"]))
    if os.environ.get("MASTER_ADDR") and os.environ.get("MASTER_PORT"):
        return
    offer = _free_address(place) if place["rank"] == 0 else ""
    address, port = _backend.agree_on_master(offer).rsplit(":", 1)
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = address, port


def _free_address(place):
    one_host = place["local_size"] == place["size"]
    host = "127.0.0.1" if one_host else socket.getfqdn()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1" if one_host else "", 0))
        return f"{host}:{probe.getsockname()[1]}"
