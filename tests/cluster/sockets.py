"""Which network addresses processes use."""

import ipaddress
from contextlib import suppress
from pathlib import Path

LISTENING = "0A"  # such a socket has no remote address


def addresses(processes):
    """Return the local and the remote addresses of all TCP sockets of these processes."""
    found = set()
    for process in processes:
        inodes = set(_inodes(process))
        for table in ("tcp", "tcp6"):
            with suppress(OSError):
                for line in Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:]:
                    cells = line.split()
                    if cells[9] in inodes:
                        found.add(_address(cells[1]))
                        if cells[3] != LISTENING:
                            found.add(_address(cells[2]))
    return found


def _inodes(process):
    with suppress(OSError):
        for entry in Path(f"/proc/{process}/fd").iterdir():
            with suppress(OSError):
                target = str(entry.readlink())
                if target.startswith("socket:["):
                    yield target[len("socket:[") : -1]


def _address(cell):
    """From hexadecimal words in the byte order of the machine (little-endian)."""
    text = cell.partition(":")[0]
    words = [bytes.fromhex(text[k : k + 8])[::-1] for k in range(0, len(text), 8)]
    address = ipaddress.ip_address(b"".join(words))
    return getattr(address, "ipv4_mapped", None) or address
