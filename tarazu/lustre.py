"""Facts of Lustre's user interface, under its own names (`lustre_user.h`; the same in 2.12 to 2.17), and how the
default layout of a directory is read.

`preload/lustre.h` has those that the C part needs. Names of parameters stand beside their readers (`tarazu.stats`).
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from pathlib import Path

EOF = 2**64 - 1
"""End of a last component (`LUSTRE_EOF`)."""

XATTR_LUSTRE_LOV = "lustre.lov"
XATTR_SIZE_MAX = 65536
"""Bytes of the longest attribute, a limit of Linux."""

LOV_MIN_STRIPE_SIZE = 65536
"""Bytes: stripe sizes and the ends of extents are multiples of it."""
MAX_STRIPE_SIZE_BYTES = 2**32 - LOV_MIN_STRIPE_SIZE
"""`lmm_stripe_size` has 32 bits."""
LOV_MAX_STRIPE_COUNT = 2000
LOV_MAXPOOLNAME = 15
"""Characters of the longest name of a pool."""
LOV_ALL_STRIPES = 0xFFFF
"""Stripe count of a default layout: a stripe on each OST. Down to LOV_ALL_STRIPES_WIDE one more on each."""
LOV_ALL_STRIPES_WIDE = 0xFFE0
MAX_OSTS = LOV_ALL_STRIPES_WIDE
"""Indices of OSTs are below (`LOV_V1_INSANE_STRIPE_INDEX` is the last)."""
LOV_OFFSET_DEFAULT = 0xFFFF
"""`lmm_stripe_offset` without a start index."""
SEL_UNIT_SIZE = 1024
"""An extension component has its extension size, in these, where others have the stripe size."""
EXTENSION_UNIT_BYTES = SEL_UNIT_SIZE * LOV_MIN_STRIPE_SIZE
"""64 MiB: extension sizes are multiples, since the field is checked as if a stripe size were in it."""
MAX_EXTENSION_BYTES = SEL_UNIT_SIZE << 32
"""Extension sizes are below."""

LOV_USER_MAGIC_V1 = 0x0BD10BD0
LOV_USER_MAGIC_V3 = 0x0BD30BD0
LOV_USER_MAGIC_SPECIFIC = 0x0BD50BD0
LOV_USER_MAGIC_COMP_V1 = 0x0BD60BD0
LOV_USER_MAGIC_FOREIGN = 0x0BD70BD0

LOV_PATTERN_RAID0 = 0x001
LOV_PATTERN_MDT = 0x100
LOV_PATTERN_OVERSTRIPING = 0x200
LOV_PATTERN_F_MASK = 0xFFFF0000
PATTERNS = {
    "raid0": LOV_PATTERN_RAID0,
    "mdt": LOV_PATTERN_MDT,
    "overstriped": LOV_PATTERN_RAID0 | LOV_PATTERN_OVERSTRIPING,
}
"""Those that are placed, by the name that `Component.pattern` has."""
LLAPI_PATTERNS = {"raid0": 0x0, "mdt": 0x2, "overstriped": 0x4}
"""The same in liblustreapi (`LLAPI_LAYOUT_RAID0`, `_MDT`, `_OVERSTRIPING`)."""

LCME_FL_INIT = 0x10
"""The component has its objects."""
LCME_FL_EXTENSION = 0x40
"""The space into which the component before it grows (SEL)."""

LL_IOC_LOV_GETSTRIPE = 0x4008669B

LMV_USER_MAGIC = 0x0CD30CD0
"""Asks for the default of a directory: how those made in it are placed."""
XATTR_TRUSTED_DMV = "trusted.dmv"
"""A directory's own default of new subdirectories (`XATTR_NAME_DEFAULT_LMV`), for root alone."""
LMV_INHERIT_RR_UNLIMITED = 255
"""Of `lum_max_inherit_rr`: for how many levels clients deal directories to the MDTs in turn."""
LMV_USER_MD = struct.Struct("<IiIIIBBHII16s")
"""`struct lmv_user_md` without objects."""


def directory_default(path: str | os.PathLike[str]) -> bytes:
    """The `lustre.lov` of a directory's default layout, or of the root's where it has none of its own (since 2.13).

    By the ioctl, as `lfs getstripe -d` does it: the attribute itself hides start indices (`ll_sanitize_xattr`), and is
    read only where the user may not list the directory. Empty where there is none. Raises OSError.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK | os.O_CLOEXEC)
    except PermissionError:
        return os.getxattr(path, XATTR_LUSTRE_LOV)
    blob = bytearray(XATTR_SIZE_MAX)
    try:
        fcntl.ioctl(descriptor, LL_IOC_LOV_GETSTRIPE, blob)
    except OSError as error:
        if error.errno == errno.ENODATA:
            return b""
        raise
    finally:
        os.close(descriptor)
    return bytes(blob[: _length(blob)])


def own_default_lmv(path: str | os.PathLike[str]) -> bytes:
    """A directory's own default of new subdirectories (`struct lmv_user_md`), empty for none; for root.

    By the attribute: `lfs getdirstripe -D` shows the root's where a directory has none of its own (since 2.15).
    Raises OSError.
    """
    try:
        return os.getxattr(path, XATTR_TRUSTED_DMV, follow_symlinks=False)
    except OSError as error:
        if error.errno == errno.ENODATA:
            return b""
        raise


def root_default(path: str | os.PathLike[str]) -> bytes:
    """What Lustre shows of the topmost directory of the mount that a path is in. Empty where that is nothing."""
    shown = b""
    for above in Path(os.path.abspath(path)).parents:
        try:
            shown = directory_default(above)
        except OSError:
            break
    return shown


def _length(blob: bytes | bytearray) -> int:
    """Of the attribute at the beginning of a buffer; of a kind that is not known here, what shows the kind."""
    magic, size = struct.unpack_from("<II", blob)
    (count,) = struct.unpack_from("<H", blob, 28)
    known: dict[int, int] = {
        0: 0,
        LOV_USER_MAGIC_V3: 48,
        LOV_USER_MAGIC_SPECIFIC: 48 + 24 * count,
        LOV_USER_MAGIC_COMP_V1: size,
    }
    return known.get(magic, 32)
