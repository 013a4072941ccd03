"""Facts of Lustre's user interface, under its own names (`lustre_user.h`; the same in 2.12 to 2.17).

`preload/lustre.h` has those that the C part needs. Names of parameters stand beside their readers (`tarazu.stats`).
"""

from __future__ import annotations

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
MAX_EXTENSION_BYTES = SEL_UNIT_SIZE << 32
"""Extension sizes are below."""

LOV_USER_MAGIC_V1 = 0x0BD10BD0
LOV_USER_MAGIC_V3 = 0x0BD30BD0
LOV_USER_MAGIC_SPECIFIC = 0x0BD50BD0
LOV_USER_MAGIC_COMP_V1 = 0x0BD60BD0

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
