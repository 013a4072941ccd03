"""Clusters by name, with where each number comes from and what is assumed because nobody published it.

Numbers stand here once: whoever calibrates one (`tarazu sim validate`, table 6) changes it here.
"""

from __future__ import annotations

import msgspec

from tarazu.sim.model.spec import ClusterSpec, ServiceCurve

MB = 10**6
GB = 10**9
TB = 10**12


class Preset(msgspec.Struct, frozen=True):
    """A cluster, what it stands for, and what of it is known."""

    spec: ClusterSpec
    about: str
    sources: tuple[str, ...]
    assumed: tuple[str, ...]


def _paper() -> Preset:
    """The paper's testbed (section 7.1.1)."""
    disk = ServiceCurve(peak_bytes_per_s=150 * MB, stream_bytes_per_s=110 * MB, interference=0.02)
    spec = ClusterSpec(
        name="paper",
        osts=35,
        osts_per_oss=5,
        ost_bytes=10 * GB,
        write=disk,
        read=disk,
        oss_link_bytes_per_s=117 * MB,
        nodes=2,
        nic_bytes_per_s=1.17 * GB,
        create_s=0.5e-3,
        cpu_bytes_per_s=2 * GB,
    )
    return Preset(
        spec,
        "the paper's testbed: 7 OSS x 5 OST x 10 GB, 2 client nodes of 8 cores",
        ("paper, section 7.1.1: 1 MDS, 7 OSSs with 5 OSTs of 10 GB each, 2 clients, AMD FX-8320E, 16 GB",),
        (
            "an OST is a part of a SATA disk: 150 MB/s, one stream 110 MB/s, 2 % lost by each further stream",
            "OSSs on Gigabit Ethernet (117 MB/s of payload): 7 of them come to the order of section 6.4's "
            "490-612 MB/s",
            "clients are faster than that (10 Gigabit): on Gigabit two of them could not reach those figures",
            "0.5 ms of the MDS for a create; an OSS's CPUs are busy at 2 GB/s",
        ),
    )


def _titan() -> Preset:
    """One of Titan's two file systems, with the whole machine before it."""
    spec = ClusterSpec(
        name="titan",
        osts=1008,
        osts_per_oss=7,
        ost_bytes=16 * TB,
        write=ServiceCurve(peak_bytes_per_s=TB / 2016, stream_bytes_per_s=300 * MB, interference=0.02),
        read=ServiceCurve(peak_bytes_per_s=TB / 2016, stream_bytes_per_s=300 * MB, interference=0.02),
        oss_link_bytes_per_s=6 * GB,
        lnet_routers=440,
        lnet_router_bytes_per_s=2.8 * GB,
        nodes=18_688,
        nic_bytes_per_s=2.8 * GB,
        create_s=0.05e-3,
        mds_threads=1,
        cpu_bytes_per_s=8 * GB,
    )
    return Preset(
        spec,
        "Titan and one of Spider II's file systems (atlas1 or atlas2): 144 OSS x 7 OST, 440 routers, 18,688 nodes",
        (
            "Oral et al., SC'14, 'Best practices and lessons learned from deploying and operating large-scale "
            "data-centric parallel file systems': 288 OSSs, 2,016 OSTs in two namespaces, 440 I/O routers, 32 PB",
            "insidehpc.com, 2013-12, 'OLCF's Spider II file system': more than 1 TB/s in all, so 496 MB/s an OST",
            "OLCF: Titan, Cray XK7 with 18,688 compute nodes on Gemini",
        ),
        (
            "an OST reads as fast as it writes; one stream gets 300 MB/s, 2 % are lost by each further one",
            "a node sends to each OSS by a router near that OSS (fine-grained routing): routers count once, as LNet's",
            "a router and a node's Gemini interface carry 2.8 GB/s, an OSS's FDR link 6 GB/s of payload",
            "0.05 ms of the MDS for a create (20,000 a second)",
        ),
    )


def _scaling() -> Preset:
    """The scalability study's systems (section 7.5): `osts` is what one changes."""
    disk = ServiceCurve(peak_bytes_per_s=500 * MB, stream_bytes_per_s=300 * MB, interference=0.02)
    spec = ClusterSpec(
        name="scaling",
        osts=160,
        osts_per_oss=8,
        ost_bytes=10 * GB,
        write=disk,
        read=disk,
        oss_link_bytes_per_s=6 * GB,
        lnet_routers=0,
        lnet_router_bytes_per_s=6 * GB,
        io_routers=0,
        io_router_bytes_per_s=6 * GB,
        io_router_of="cyclic",
        nodes=448,
        nic_bytes_per_s=6 * GB,
        create_s=0.05e-3,
        cpu_bytes_per_s=8 * GB,
    )
    return Preset(
        spec,
        "the scalability study: 8 OSTs of 10 GB on each OSS; give `osts` from 160 to 3,600",
        (
            "paper, section 7.5: 160 to 3,600 OSTs of 10 GB, 8 on each OSS",
            "paper, table 7: applications on 128, 256 and 64 nodes, together 448",
        ),
        (
            "the paper prints no rates of its simulated disks and links: OSTs as Spider II's (500 MB/s), 6 GB/s links",
            "as many LNet routers and I/O routers as OSSs: a network that is built for its OSTs, as Titan's was; nodes "
            "take I/O routers in turn, so that a job is not tied to a few",
        ),
    )


def _frontier() -> Preset:
    """Frontier's Orion, its flash and disks in one list of OSTs."""
    write, read, flash = 4.6 * TB / 900, 5.5 * TB / 900, 10 * TB / 450
    spec = ClusterSpec(
        name="frontier",
        osts=1350,
        osts_per_oss=3,
        ost_bytes=679_000 * TB // 900,
        write=ServiceCurve(peak_bytes_per_s=write, stream_bytes_per_s=3 * GB, interference=0.0),
        read=ServiceCurve(peak_bytes_per_s=read, stream_bytes_per_s=3 * GB, interference=0.0),
        oss_link_bytes_per_s=50 * GB,
        lnet_routers=160,
        lnet_router_bytes_per_s=100 * GB,
        io_routers=1,
        nodes=9_408,
        nic_bytes_per_s=100 * GB,
        create_s=0.01e-3,
        mds_threads=40,
        cpu_bytes_per_s=60 * GB,
        speeds=(1.0, 1.0, round(flash / ((write + read) / 2), 2)),
    )
    return Preset(
        spec,
        "like Frontier's Orion: 450 OSS, on each 2 OSTs of disks and 1 of NVMe, 40 MDSs, 160 routers",
        (
            "Lustre manual, scalability: 450 OSSs with 900 HDD OSTs of 750 TiB and 450 NVMe OSTs of 25 TiB",
            "insidehpc.com, 2021-05, 'OLCF releases storage specs for Frontier exascale': disks 679 PB, 5.5 TB/s "
            "read, 4.6 TB/s written; flash 11.5 PB, 10 TB/s",
            "blocksandfiles.com, 2022-06-04: 40 MDS nodes, 160 routing nodes",
        ),
        (
            "all OSTs have the size of those of disks (flash: a thirtieth), for a cluster has one size",
            "each third OST is faster by the ratio of the tiers' peaks; Orion keeps tiers apart by pools, here "
            "policies see one list",
            "4 x 25 GB/s on each node, 2 x 25 GB/s on each OSS; one stream gets 3 GB/s",
        ),
    )


_MAKERS = {"paper": _paper, "titan": _titan, "scaling": _scaling, "frontier": _frontier}
NAMES = tuple(_MAKERS)


def named(name: str) -> Preset:
    """The preset of that name. Raises KeyError."""
    return _MAKERS[name]()
